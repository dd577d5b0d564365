"""Cases behind the rates of triage: boundary and ambiguous ones, what is counted and what left out, dangerous misses, and flips."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalcore.stats.intervals import wilson
from evalcore.study.schema import Format
from evalcore.triage.case_choice import shown_samples
from evalcore.triage.data import TriageData
from evalcore.triage.formats import FLIP_COLUMNS, Direction, in_both
from evalcore.triage.panels import N_LEVELS, Kind
from evalcore.triage.predictions import COUNTS, usual_judges
from evalcore.triage.rates import KEYS, Base, as_rates, coded, ratio, repeated

BOUNDARY_MEASURES = ("constituent", "upper_share", "outside_high", "outside_low")
"""Measures of `boundary`: the answer is one of the two letters; of those the more severe one; above both; below both."""
NO_BOUNDARY = "no boundary case has a prediction"
_OF_BOUNDARY = Base("of the one boundary case", "of all {} boundary cases", NO_BOUNDARY)
_OF_INSIDE = Base(
    "of the one answered with one of its letters", "of {} answered with one of their letters", "no answer is one of the letters"
)  # fmt: skip
_FEW_ANSWERS = 2
WORST_FIRST = ((4, 1), (4, 2), (4, 3), (3, 1), (3, 2), (2, 1))
"""Gold and prediction of each miss, the most dangerous first."""
DANGEROUS = WORST_FIRST[:4]
"""The misses that are dangerous: an emergency sent lower, and a case for tomorrow sent home."""
MISS_COLUMNS = (
    "row", "case_id", "source", "strength", "first_words", "model", "format", "gold", "predicted", "rank", "steps", "share", "n_samples",
    "n_unread", "n_invalid", "n_valid", *COUNTS, "sample", "response_id", "says_so",
)  # fmt: skip


def boundary(found: pd.DataFrame, *, keys: Sequence[str] = KEYS) -> pd.DataFrame:
    """How models answer cases whose gold lies between two letters, either of which is right.

    Returns:
        One row a model and format that occur in `found` and each of `BOUNDARY_MEASURES`, with the columns of `triage.rates`. constituent, outside_high and
        outside_low are of all boundary cases with a prediction and add up to 1; upper_share is of those answered with one of their letters.
    """
    numbers, names = coded(found, keys)
    gold, predicted = (found[name].to_numpy(dtype=float) for name in ("gold", "predicted"))
    counts = found["kind"].eq(Kind.BOUNDARY).to_numpy(dtype=bool) & ~np.isnan(predicted)
    low, high = np.floor(gold), np.ceil(gold)
    inside = counts & (predicted >= low) & (predicted <= high)
    hits = (inside, inside & (predicted == high), counts & (predicted > high), counts & (predicted < low))
    bases = (counts, inside, counts, counts)
    k, n = (
        np.stack([np.bincount(numbers[mask], minlength=len(names)) for mask in masks], axis=1)
        for masks in (hits, bases)
    )
    of = [_OF_INSIDE if name == "upper_share" else _OF_BOUNDARY for name in BOUNDARY_MEASURES]
    return as_rates(names, BOUNDARY_MEASURES, k.astype(float), n.astype(float), of)


def ambiguous(found: pd.DataFrame) -> pd.DataFrame:
    """What models answer where physicians do not agree: there is no right or wrong, only which level and how surely.

    Returns:
        Four rows a model and format that occur in `found`: model, format, predicted (1..4), n (ambiguous cases so answered), n_cases (ambiguous cases with
        a prediction), share (n / n_cases), low, high (Wilson), n_several (of n_cases, those with two valid samples or more), n_sure (of n_several, those
        whose samples all say one level), sure (n_sure / n_several; NaN where there is none).
    """
    numbers, names = coded(found, KEYS)
    predicted = found["predicted"].to_numpy(dtype=float)
    kept = found["kind"].eq(Kind.AMBIGUOUS).to_numpy(dtype=bool) & ~np.isnan(predicted)
    of, level = numbers[kept], predicted[kept].astype(np.int64) - 1
    n = np.bincount(of * N_LEVELS + level, minlength=len(names) * N_LEVELS)
    several = found["n_valid"].to_numpy()[kept] >= _FEW_ANSWERS
    sure = several & (found["share"].to_numpy()[kept] == 1)
    sizes = [np.bincount(of[mask], minlength=len(names)) for mask in (slice(None), several, sure)]
    n_cases, n_several, n_sure = (np.repeat(size, N_LEVELS) for size in sizes)
    low, high = wilson(n, n_cases)
    columns: dict[str, Any] = {
        "predicted": np.tile(np.arange(1.0, N_LEVELS + 1), len(names)),
        "n": n,
        "n_cases": n_cases,
        "share": ratio(n, n_cases),
        "low": low,
        "high": high,
        "n_several": n_several,
        "n_sure": n_sure,
        "sure": ratio(n_sure, n_several),
    }
    return repeated(names, N_LEVELS).assign(**columns)


def accounted(triage_data: TriageData, found: pd.DataFrame) -> pd.DataFrame:
    """What of the study each model's numbers are of, and what they leave out.

    Args:
        found: As `predictions.joined` gives it, of these cases.

    Returns:
        One row a model and format that occur in `found`: model, format, n_study (cases of the study), n_cases (those with a response; so many are without:
        n_no_response), and of n_cases: n_clear, n_boundary, n_ambiguous, n_unlabelled (they add up to it); of each of these kinds `_predicted` (a level
        was found in a sample), `_unread` (the judge has looked at no sample) and `_no_level` (looked, and found none), e.g. clear_predicted, which add
        up to the kind; n_predicted, n_unread, n_no_level over all kinds; samples, samples_valid, samples_unread, samples_invalid (add up to samples);
        n_elsewhere (responses of the model to these cases in neither format: they are in none of the other numbers).
    """
    numbers, names = coded(found, KEYS)
    kinds = [kind.value for kind in Kind]
    kind = pd.Categorical(found["kind"], categories=kinds).codes.astype(np.int64)
    valid, invalid = (found[name].to_numpy() > 0 for name in ("n_valid", "n_invalid"))
    state = np.select([valid, invalid], [0, 2], 1)
    states = ("predicted", "unread", "no_level")
    cell = (numbers * len(kinds) + kind) * len(states) + state
    size = len(kinds) * len(states)
    counts = np.bincount(cell, minlength=len(names) * size).reshape(len(names), len(kinds), len(states))
    n_study, n_cases = len(triage_data.cases), counts.sum(axis=(1, 2))
    columns: dict[str, Any] = {"n_study": n_study, "n_cases": n_cases, "n_no_response": n_study - n_cases}
    columns |= {f"n_{word}": counts[:, place].sum(axis=1) for place, word in enumerate(kinds)}
    columns |= {
        f"{word}_{how}": counts[:, place, step] for place, word in enumerate(kinds) for step, how in enumerate(states)
    }
    columns |= {f"n_{how}": counts[:, :, step].sum(axis=1) for step, how in enumerate(states)}
    of_samples = {
        "samples": "n_samples",
        "samples_valid": "n_valid",
        "samples_unread": "n_unread",
        "samples_invalid": "n_invalid",
    }
    for name, of in of_samples.items():
        columns[name] = np.bincount(numbers, found[of].to_numpy(dtype=float), len(names)).astype(np.int64)
    elsewhere = triage_data.elsewhere["model"].astype(str).value_counts()
    columns["n_elsewhere"] = names["model"].astype(str).map(elsewhere).fillna(0).astype(np.int64)
    return names.assign(**columns)


def misses(triage_data: TriageData, found: pd.DataFrame, *, judges: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Cases with a clear gold whose answer lies below it, the most dangerous first.

    The order is that of `WORST_FIRST`: an emergency sent home, to a doctor within weeks, within a day or two; then the others. Among equals those come first
    that more of the samples agree on, then by case, model and format.

    Args:
        found: As `predictions.joined` gives it, of these cases.
        judges: By format the judge whose levels `found` has; default: `usual_judges`.

    Returns:
        One row a case, model and format: row (of `cases`), case_id, source, strength, first_words, model, format, gold, predicted (1..4), rank (0: the most
        dangerous kind of miss, to 5), steps (1..3 below the gold), share (of the valid samples that say so, in (0, 1]), n_samples, n_unread, n_invalid,
        n_valid, n_A .. n_D, sample (row of `samples`: the first response with text that this judge read as the predicted level, else the first with text;
        -1: none has a text), response_id (of that sample, -1: none), says_so (whether that text was read as the predicted level).
    """
    gold, predicted = (found[name].to_numpy(dtype=float) for name in ("gold", "predicted"))
    missed = found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool) & (predicted < gold)
    mine = found.loc[missed].reset_index(drop=True)
    ranks = np.zeros((N_LEVELS + 1, N_LEVELS + 1), dtype=np.int64)
    for rank, (one, other) in enumerate(WORST_FIRST):
        ranks[one, other] = rank
    gold, predicted = gold[missed], predicted[missed]
    sample, says_so = shown_samples(triage_data, mine, judges or usual_judges(triage_data))
    rows = mine["row"].to_numpy()
    response_ids = np.append(triage_data.samples["response_id"].to_numpy(dtype=np.int64), -1)
    told = mine.assign(
        **{name: triage_data.cases[name].array.take(rows) for name in ("case_id", "source", "strength", "first_words")},
        rank=ranks[gold.astype(int), predicted.astype(int)],
        steps=(gold - predicted).astype(np.int64),
        sample=sample,
        response_id=response_ids[sample],
        says_so=says_so,
    )
    codes = [pd.Categorical(told[name]).codes for name in ("format", "model")]
    order = np.lexsort((*codes, rows, -told["share"].to_numpy(), told["rank"].to_numpy()))
    return told.iloc[order].reset_index(drop=True)[list(MISS_COLUMNS)]


def flips(found: pd.DataFrame) -> pd.DataFrame:
    """Cases whose answer changes with the format, those that cross the line to an emergency first, then by steps, case and model.

    Args:
        found: As `predictions.joined` gives it, of both formats; cases of every kind count, whether they have a gold or not.

    Returns:
        One row a case and model with a prediction in both formats that differ: row (of `cases`), model, gold, kind, qa, conversation (levels 1..4), steps
        (conversation - qa, -3..3: below 0 the conversation is lower), direction (Direction), crosses (one of them is D, the other is not), nearer
        (which format lies nearer to the gold, "" where both are as near or there is no clear gold), qa_share, conversation_share (of the valid samples),
        qa_first, conversation_first (row in `samples` of the first response with text, -1: none).
    """
    both = in_both(found)
    changed = both.loc[both["qa"].ne(both["conversation"])].reset_index(drop=True)
    qa, conversation, gold = (changed[name].to_numpy(dtype=float) for name in ("qa", "conversation", "gold"))
    steps = (conversation - qa).astype(np.int64)
    off = np.where(changed["kind"].eq(Kind.CLEAR), np.abs(conversation - gold) - np.abs(qa - gold), 0)
    columns: dict[str, Any] = {
        "steps": steps,
        "direction": pd.Categorical(np.where(steps < 0, Direction.LOWER, Direction.HIGHER), categories=list(Direction)),
        "crosses": (qa == N_LEVELS) != (conversation == N_LEVELS),
        "nearer": pd.Categorical(np.select([off < 0, off > 0], [Format.CONVERSATION.value, Format.QA.value], "")),
    }
    changed = changed.assign(**columns)
    models = changed["model"].cat.codes.to_numpy()
    order = np.lexsort((models, changed["row"].to_numpy(), -np.abs(steps), ~changed["crosses"].to_numpy()))
    return changed.iloc[order].reset_index(drop=True)[list(FLIP_COLUMNS)]
