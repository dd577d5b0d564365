"""What each model says of each case: its samples counted by level, the most frequent one, and how sure that is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.study.schema import PARSER, Format
from evalcore.triage.data import NO_LEVEL, TriageData
from evalcore.triage.panels import N_LEVELS

Floats = npt.NDArray[np.floating[Any]]
Numbers = npt.NDArray[np.int64]
_STATES = 2 * N_LEVELS + 1
_WORDS = [word.value for word in Format]
_FORMATS = pd.CategoricalDtype(_WORDS)
COUNTS = ("n_A", "n_B", "n_C", "n_D")
"""Columns of a prediction's valid samples by level."""


def judges_by_format(triage_data: TriageData) -> dict[str, list[str]]:
    """Who has looked at responses of each format that anybody has looked at: the usual judge first, then who looked at most."""
    found = {}
    for word in Format:
        if judges := triage_data.judges(word):
            of_their_own = [name for name in judges if name not in triage_data.juries]
            usual = PARSER if word is Format.QA and PARSER in judges else (of_their_own or judges)[0]
            found[word.value] = [usual, *(name for name in judges if name != usual)]
    return found


def usual_judges(triage_data: TriageData) -> dict[str, str]:
    """Who is taken at their word for each format: the parser for qa where it has read any, else who has looked at most responses.

    A jury is chosen, and usual only where nobody else has looked.
    """
    return {word: judges[0] for word, judges in judges_by_format(triage_data).items()}


def predictions(triage_data: TriageData, judges: Mapping[str, str]) -> pd.DataFrame:
    """One row a case, model and format that has any response.

    Args:
        judges: By format (`Format`) the judge whose levels count; a format that is missing gives no rows.

    Returns:
        row (of `cases`), model, format (categorical), n_samples, n_unread (that judge has not looked), n_invalid (no level was found:
        not a level, counted apart), n_valid, n_A .. n_D (valid samples by level; a boundary counts half to each), predicted (1..4: the most frequent
        level, of equals the more severe; NaN without a valid sample), share (of the valid samples that say so; NaN likewise), stated (mean
        confidence that the model states itself with those samples, NaN where it states none), first (row in `samples` of the first response
        with text, -1: none).
    """
    parts = [_of_format(triage_data, word, judge) for word, judge in judges.items()]
    return pd.concat(parts, ignore_index=True) if parts else _of_format(triage_data, "", "")


def _of_format(triage_data: TriageData, asked: str, judge: str) -> pd.DataFrame:
    samples = triage_data.samples
    places = np.flatnonzero(samples["format"].eq(asked).to_numpy())
    n_models = max(len(samples["model"].cat.categories), 1)
    keys = samples["row"].to_numpy()[places] * n_models + samples["model"].cat.codes.to_numpy()[places]
    present = np.bincount(keys) if len(keys) else np.zeros(0, dtype=np.int64)
    groups = np.flatnonzero(present)
    number = np.zeros(len(present), dtype=np.int64)
    number[groups] = np.arange(len(groups))
    group, n = number[keys], len(groups)
    level = (
        triage_data.levels[judge].to_numpy()[places] if judge in triage_data.levels else np.full(len(places), np.nan)
    )
    tally = np.bincount(group * _STATES + _states(level), minlength=n * _STATES).reshape(n, _STATES)
    counts, between = tally[:, 2::2].astype(float), tally[:, 3::2] / 2
    counts[:, :-1] += between
    counts[:, 1:] += between
    n_valid = tally[:, 2:].sum(axis=1)
    mode = N_LEVELS - 1 - np.argmax(counts[:, ::-1], axis=1)
    top = counts[np.arange(n), mode]
    is_known = n_valid > 0
    predicted = np.where(is_known, mode + 1.0, np.nan)
    first = np.full(n, -1, dtype=np.int64)
    texts = samples["has_text"].to_numpy()[places]
    first[group[texts][::-1]] = places[texts][::-1]  # the earliest is written last
    return pd.DataFrame(
        {
            "row": groups // n_models,
            "model": pd.Categorical.from_codes((groups % n_models).astype(np.int32), samples["model"].cat.categories),
            "format": pd.Categorical.from_codes(np.full(n, _WORDS.index(asked) if asked else -1, np.int8), dtype=_FORMATS),
            "n_samples": present[groups],
            "n_unread": tally[:, 0],
            "n_invalid": tally[:, 1],
            "n_valid": n_valid,
            **{name: counts[:, place] for place, name in enumerate(COUNTS)},
            "predicted": predicted,
            "share": np.divide(top, n_valid, out=np.full(n, np.nan), where=is_known),
            "stated": _stated(triage_data, judge, places, group, predicted, level),
            "first": first,
        }
    )  # fmt: skip


def _states(level: Floats) -> Numbers:
    """What a judge said of each sample as a whole number: 0 not looked at, 1 no level, from 2 on the levels and the boundaries between them."""
    twice = np.where(level == NO_LEVEL, 1, 2 * level)
    return np.where(np.isnan(twice), 0, twice).astype(np.int64)


def _stated(
    triage_data: TriageData, judge: str, places: Numbers, group: Numbers, predicted: Floats, level: Floats
) -> Floats:
    """Mean of the confidences that the model states itself with the samples that give the predicted level.

    The parser takes both from the model's own words. What comes with another judge's level says how sure the judge is of its reading.
    """
    given = triage_data.confidence.loc[triage_data.confidence["rater"].eq(judge) & (judge == PARSER)]
    if given.empty:
        return np.full(len(predicted), np.nan)
    confidence = np.full(len(triage_data.samples), np.nan)
    confidence[given["sample"].to_numpy()] = given["confidence"].to_numpy()
    mine = confidence[places]
    counted = ~np.isnan(mine) & (np.ceil(level) == predicted[group])
    n = len(predicted)
    total = np.bincount(group[counted], mine[counted], minlength=n)
    times = np.bincount(group[counted], minlength=n)
    found: Floats = np.divide(total, times, out=np.full(n, np.nan), where=times > 0)
    return found


def joined(triage_data: TriageData, found: pd.DataFrame, columns: Sequence[str] = ("gold", "kind")) -> pd.DataFrame:
    """Predictions with columns of their cases (of `panels.described`)."""
    rows = found["row"].to_numpy()
    return found.assign(**{name: triage_data.cases[name].array.take(rows) for name in columns})
