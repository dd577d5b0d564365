"""The rates of triage by what is known of the cases: where they come from, which level they need, how much their panel agreed."""

from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.composition import UNKNOWN
from evalcore.triage.cases import BOUNDARY_MEASURES, boundary
from evalcore.triage.data import LEVELS, TriageData
from evalcore.triage.panels import Kind
from evalcore.triage.rates import KEYS, Base, Measure, as_rates, coded, confusion, rates
from evalcore.triage.reads import READ_HERE

FEW = 10
"""With fewer cases a rate is shown in grey."""
NO_PANEL, NO_LEVEL = "no panel", "no clear level"
NO_RIGHT = "physicians do not agree: no answer is right or wrong"
NO_GOLD = "nobody has said which level these cases need"


class TriageGrouping(StrEnum):
    """By what cases are told apart."""

    SOURCE = "source"
    """The data set that they come from."""
    GOLD = "gold"
    """The level that they need; between two letters: a boundary."""
    STRENGTH = "strength"
    """How many votes of the panel stand together: unanimous, 4-1, 3-2; direct: the source's own label."""
    LANGUAGE = "language"
    KIND = "kind"
    """Clear, boundary, ambiguous, unlabelled."""


def by_group(triage_data: TriageData, found: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rates of `triage.rates` for each group of cases.

    Boundary cases have those of `triage_cases.boundary` instead, where they are told apart (by gold or kind); ambiguous and unlabelled cases, by kind, have
    one row without a value and why.

    Args:
        found: As `predictions.joined` gives it, of these cases.

    Returns:
        One row a model, format, group (words, categorical, in order) and measure, with the columns of `triage.rates`, and n_group (cases of the group with
        a prediction), is_small (fewer than 10 cases in the denominator). Only combinations that occur.
    """
    grouping = TriageGrouping(name)
    keys = [*KEYS, "group"]
    of_cases = _groups(triage_data.cases, grouping)
    mine = found[[*KEYS, "gold", "kind", "predicted"]].assign(
        group=of_cases.take(found["row"].to_numpy(dtype=np.int64))
    )
    kind = mine["kind"]
    parts = [rates(confusion(mine.loc[kind.eq(Kind.CLEAR)], keys=keys), keys=keys)]
    if grouping in (TriageGrouping.GOLD, TriageGrouping.KIND):
        parts.append(boundary(mine.loc[kind.eq(Kind.BOUNDARY)], keys=keys))
    if grouping is TriageGrouping.KIND:
        parts += [_nothing(mine.loc[kind.eq(word)], keys, why) for word, why in _WITHOUT.items()]
    measures = pd.CategoricalDtype([*(word.value for word in Measure), *BOUNDARY_MEASURES])
    together = pd.concat([part.astype({"measure": measures}) for part in parts], ignore_index=True)
    numbers, names = coded(mine, keys)
    sizes = names.assign(n_group=np.bincount(numbers, mine["predicted"].notna(), len(names)).astype(np.int64))
    told = together.merge(sizes, on=keys, how="left", validate="many_to_one")
    told = told.assign(is_small=told["n"].lt(FEW))
    return told.sort_values(keys, kind="stable", ignore_index=True)


def _groups(cases: pd.DataFrame, grouping: TriageGrouping) -> "pd.Categorical[Any]":
    """The group of each case, in words and in their order."""
    column = cases[grouping.value]
    if grouping is TriageGrouping.GOLD:
        levels = {level: word.value for word, level in LEVELS.items() if not np.isnan(level)}
        return pd.Categorical(column.map(levels).fillna(NO_LEVEL), categories=[*levels.values(), NO_LEVEL])
    if grouping is TriageGrouping.KIND:
        return pd.Categorical(column, categories=[word.value for word in Kind])
    words = column.astype(object)
    if grouping is TriageGrouping.STRENGTH:
        words = words.where(words.ne(""), NO_PANEL)
        return pd.Categorical(words, categories=sorted(words.unique(), key=_strength_order))
    words = words.where(words.notna(), UNKNOWN)
    return pd.Categorical(words, categories=sorted(words.unique(), key=lambda word: (word == UNKNOWN, word)))


def _strength_order(word: str) -> tuple[int, list[int]]:
    """Unanimous, then the panels that agree most, then what has no panel."""
    if word in _OTHERS:
        return _OTHERS[word], []
    return 1, [-int(k) for k in word.split("-")]


_OTHERS = {"unanimous": 0, "direct": 2, READ_HERE: 3, NO_PANEL: 4}
_WITHOUT = {Kind.AMBIGUOUS: NO_RIGHT, Kind.UNLABELLED: NO_GOLD}


def _nothing(mine: pd.DataFrame, keys: list[str], why: str) -> pd.DataFrame:
    """One row a model and format, without a value."""
    _, names = coded(mine, keys)
    none = np.zeros((len(names), 1))
    return as_rates(names, [Measure.EXACT.value], none, none, [Base("", "", why)])
