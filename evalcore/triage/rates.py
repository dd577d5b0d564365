"""Triage against the gold: confusion matrices, and the rates that follow from them (AcuityBench, arXiv 2605.11398).

Levels are 1 (A, home) to 4 (D, emergency now). Over-triage is a level above the gold, under-triage one below. The population is always the cases with a
clear gold and a prediction; boundary and ambiguous cases are in `triage_cases`, coefficients of whole matrices in `triage_scores`.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.intervals import wilson
from evalcore.triage.counts import KEYS, Floats, cells_of, coded, matrices, ratio, repeated, tallied
from evalcore.triage.data import LETTERS
from evalcore.triage.panels import N_LEVELS, Kind

RATE_COLUMNS = ("measure", "k", "n", "value", "low", "high", "denominator", "reason")
NO_CASE = "no case has both a clear gold and a prediction"

_GOLD, _PREDICTED = np.indices((N_LEVELS, N_LEVELS))
_STEP = (_PREDICTED - _GOLD).astype(float)
_TOP = N_LEVELS - 1
_SEVERE = 2


class Measure(StrEnum):
    """What share of the cases is told."""

    EXACT = "exact"
    """The prediction is the gold."""
    OVER = "over"
    """It lies above, of all cases; exact, over and under add up to 1."""
    UNDER = "under"
    """It lies below, of all cases."""
    WITHIN_ONE = "within_one"
    """It lies at most one level off."""
    OVER_POSSIBLE = "over_possible"
    """It lies above, of the cases where that is possible: gold below D."""
    UNDER_POSSIBLE = "under_possible"
    """It lies below, of the cases where that is possible: gold above A."""
    MISSED_EMERGENCIES = "missed_emergencies"
    """Gold D sent to any lower level, of the emergencies."""
    SEVERE_OVER = "severe_over"
    """Two levels or more above, of all cases."""
    SEVERE_UNDER = "severe_under"
    """Two levels or more below, of all cases."""
    SENT_HOME = "sent_home"
    """Gold D answered A, of the emergencies."""


class Base(NamedTuple):
    """The cases that a share is of, in words: of one case, of several ({} for how many), and why there is no value where there is none."""

    one: str
    many: str
    none: str


class Rule(NamedTuple):
    """What counts, of which cases: gold x prediction, the second the same for all predictions; and the words for the cases."""

    hits: npt.NDArray[np.bool_]
    base: npt.NDArray[np.bool_]
    of: Base


_EVERY = np.ones_like(_STEP, dtype=bool)
_EMERGENCY = _GOLD == _TOP
OF_ALL = Base("of the one case", "of all {} cases", NO_CASE)
OF_EMERGENCIES = Base("of the one emergency", "of {} emergencies", "no case is an emergency")
BELOW_D = Base("of the one case below D", "of {} cases below D", "no case has a gold below D")
ABOVE_A = Base("of the one case above A", "of {} cases above A", "no case has a gold above A")
RULES: Mapping[Measure, Rule] = {
    Measure.EXACT: Rule(_STEP == 0, _EVERY, OF_ALL),
    Measure.OVER: Rule(_STEP > 0, _EVERY, OF_ALL),
    Measure.UNDER: Rule(_STEP < 0, _EVERY, OF_ALL),
    Measure.WITHIN_ONE: Rule(np.abs(_STEP) <= 1, _EVERY, OF_ALL),
    Measure.OVER_POSSIBLE: Rule(_STEP > 0, _GOLD < _TOP, BELOW_D),
    Measure.UNDER_POSSIBLE: Rule(_STEP < 0, _GOLD > 0, ABOVE_A),
    Measure.MISSED_EMERGENCIES: Rule((_STEP < 0) & _EMERGENCY, _EMERGENCY, OF_EMERGENCIES),
    Measure.SEVERE_OVER: Rule(_STEP >= _SEVERE, _EVERY, OF_ALL),
    Measure.SEVERE_UNDER: Rule(_STEP <= -_SEVERE, _EVERY, OF_ALL),
    Measure.SENT_HOME: Rule((_PREDICTED == 0) & _EMERGENCY, _EMERGENCY, OF_EMERGENCIES),
}


def confusion(found: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """Every model's answers by gold, one confusion matrix a format.

    Args:
        found: As `predictions.joined` gives it: model, format, gold, kind, predicted; any order of rows.
        keys: What one matrix is of.

    Returns:
        Sixteen rows a model and format that occur in `found`, in order of model, format, gold and prediction: model, format, gold, predicted (1..4),
        n (cases; a case without a prediction, or without a clear gold, is in none), n_gold (cases with this gold), share (n / n_gold), low, high
        (Wilson 95 %); the last three NaN where no case has this gold. No row where nothing came.
    """
    numbers, names = coded(found, keys)
    gold, predicted = (found[name].to_numpy(dtype=float) for name in ("gold", "predicted"))
    counts = found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool) & ~np.isnan(predicted)
    return cells_of(names, tallied(numbers[counts], gold[counts], predicted[counts], len(names)))


def of_matrices(published: pd.DataFrame) -> pd.DataFrame:
    """Finished confusion matrices as the cells that `confusion` gives.

    Args:
        published: As `Triaged.published`: model, format, gold (a level), A, B, C, D (counts). Rows whose gold lies between two levels are left out.
    """
    clear = published.loc[published["gold"].isin(range(1, N_LEVELS + 1))]
    columns = [letter.value for letter in LETTERS]
    long = clear.melt([*KEYS, "gold"], columns, "predicted", "n")
    letters = {name: place for place, name in enumerate(columns, start=1)}
    names, counts = matrices(long.assign(predicted=long["predicted"].map(letters).astype(float)))
    return cells_of(names, counts)


def rates(cells: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """How often the answers are right, too high, too low, and dangerously so.

    Args:
        cells: As `confusion` or `of_matrices` gives them: the key columns, gold, predicted, n.
        keys: What one matrix is of.

    Returns:
        One row a model, format and measure (`Measure`, in its order): model, format, measure, k (cases that count), n (of so many), value = k / n in
        [0, 1], low, high (Wilson 95 %), denominator (in words: "of 262 emergencies"), reason (why the value is NaN; empty where it is not).
    """
    names, counts = matrices(cells, keys=keys)
    k = np.stack([(counts * rule.hits).sum(axis=(1, 2)) for rule in RULES.values()], axis=1)
    n = np.stack([(counts * rule.base).sum(axis=(1, 2)) for rule in RULES.values()], axis=1)
    return as_rates(names, list(RULES), k, n, [rule.of for rule in RULES.values()])


def as_rates(
    names: pd.DataFrame,
    measures: Sequence[str],
    k: Floats,
    n: Floats,
    bases: Sequence[Base],
    *,
    bounds: tuple[Floats, Floats] | None = None,
) -> pd.DataFrame:
    """Shares k / n as rows, with intervals and denominators in words.

    Args:
        names: One row a group.
        measures: Of each column of k and n.
        k: Groups x measures, what counts.
        n: Groups x measures, of how many.
        bases: What each measure is of. Where a group has no case for any measure, the first says why for all.
        bounds: Groups x measures, low and high; without them Wilson's, which takes each case to count once.

    Returns:
        The names with `RATE_COLUMNS`.
    """
    low, high = wilson(k, n) if bounds is None else bounds
    whole = bool(np.all(k == np.rint(k)) and np.all(n == np.rint(n)))
    kind: Any = np.int64 if whole else np.float64
    words = [str(measure) for measure in measures]
    columns: dict[str, Any] = {
        "measure": pd.Categorical(words * len(names), categories=words),
        "k": k.ravel().astype(kind),
        "n": n.ravel().astype(kind),
        "value": ratio(k.ravel(), n.ravel()),
        "low": low.ravel(),
        "high": high.ravel(),
        "denominator": [denominator_words(of, number) for line in n for of, number in zip(bases, line, strict=True)],
        "reason": [_why(of, number, line, bases) for line in n for of, number in zip(bases, line, strict=True)],
    }
    return repeated(names, len(measures)).assign(**columns)


def denominator_words(base: Base, n: float) -> str:
    """The cases that a share is of.

    >>> denominator_words(OF_EMERGENCIES, 262), denominator_words(OF_ALL, 1)
    ('of 262 emergencies', 'of the one case')
    """
    return base.one if n == 1 else base.many.format(f"{n:,.0f}")


def _why(base: Base, n: float, every: Floats, bases: Sequence[Base]) -> str:
    if n > 0:
        return ""
    return base.none if every.any() else bases[0].none
