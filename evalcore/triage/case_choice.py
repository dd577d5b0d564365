"""Cases of triage as lists and tables: those of a kind, those answered wrongly in one direction, and which response to show."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.study.schema import CASES, Acuity, Format
from evalcore.triage.data import LEVELS, TriageData
from evalcore.triage.panels import Kind
from evalcore.triage.predictions import joined, predictions, usual_judges
from evalcore.triage.rates import Numbers
from evalcore.triage.reads import case_levels, response_levels

_WORDS = {value: label.value for label, value in LEVELS.items() if not np.isnan(value)}
_OF_CASE = ("example_id", "case_id", "source", "language", "original_label", "mapped_label", "method", "is_edge_case", "uncertainty",
            "n_votes", "n_removed", "spread", "strength", "kind")  # fmt: skip
_COUNTS = ("n_A", "n_B", "n_C", "n_D", "n_no_level", "n_samples", "share", "confidence")
COLUMNS = (
    "dataset", *_OF_CASE, "votes", "gold", "gold_read_here", "gold_how", "gold_readers", "model", "format", "judge", "predicted", *_COUNTS,
    "n_read", "levels_read",
)  # fmt: skip


def judges_of(triage_data: TriageData, judge: str | None) -> dict[str, str]:
    """Who is taken at their word for each format: this judge where it has looked, else the usual one."""
    found = usual_judges(triage_data)
    return found | {word: judge for word in found if judge is not None and judge in triage_data.judges(word)}


def words_of(levels: pd.Series) -> pd.Series:
    """Levels as their labels, missing where there is none.

    >>> words_of(pd.Series([4.0, 2.5, float("nan")])).tolist()[:2]
    ['D', 'B/C']
    """
    return levels.map(_WORDS).astype(object)


def case_table(triage_data: TriageData, judges: Mapping[str, str]) -> pd.DataFrame:
    """One row a case, model and format that has any response; a case that nobody answered has one row.

    Args:
        judges: By format whose levels count.

    Returns:
        `COLUMNS`: what is known of the case (votes in their order, joined by ";"; gold as the study takes it; gold_read_here, gold_how and
        gold_readers as `triage_reads.case_levels` has them), and of the model's answers (predicted, its samples by level; a boundary counts half to
        each), n_read (responses that physicians have read) and levels_read (their levels, joined by ";"). Levels are labels.
    """
    found = predictions(triage_data, judges)
    found = found.assign(judge=found["format"].map(dict(judges)).astype(object))
    found = found.merge(_reads(triage_data), on=["row", "model", "format"], how="left")
    cases = _described(triage_data)
    table = cases.merge(found.astype({"model": object, "format": object}), on="row", how="left")
    table = table.assign(
        dataset=CASES,
        predicted=words_of(table["predicted"]),
        n_no_level=table["n_invalid"],
        confidence=table["stated"],
        n_read=table["n_read"].where(table["model"].isna(), table["n_read"].fillna(0)),
    )
    return table[list(COLUMNS)]


def _described(triage_data: TriageData) -> pd.DataFrame:
    cases = triage_data.cases
    votes = triage_data.votes.sort_values(["row", "place"])
    words = words_of(votes["vote"]).fillna(Acuity.REMOVE.value)
    joined = words.groupby(votes["row"].to_numpy()).agg(";".join)
    here = case_levels(triage_data).set_index("row")
    rows = np.arange(len(cases))
    return cases[list(_OF_CASE)].assign(
        row=rows,
        votes=joined.reindex(rows).to_numpy(dtype=object),
        gold=words_of(cases["gold"]),
        gold_read_here=words_of(here["level"]).reindex(rows).to_numpy(dtype=object),
        gold_how=here["how"].reindex(rows).to_numpy(dtype=object),
        gold_readers=here["n_readers"].reindex(rows).to_numpy(dtype=float),
    )


def _reads(triage_data: TriageData) -> pd.DataFrame:
    """What physicians read of each case, model and format: row, model, format, n_read, levels_read."""
    read = response_levels(triage_data)
    places = read["sample"].to_numpy(dtype=np.int64)
    of = triage_data.samples[["model", "format"]].take(places).reset_index(drop=True)
    table = read[["row"]].assign(model=of["model"].array, format=of["format"].array, level=words_of(read["level"]))
    grouped = table.groupby(["row", "model", "format"], observed=True)["level"]
    return grouped.agg(n_read="size", levels_read=lambda words: ";".join(words.dropna())).reset_index()


class Miss(StrEnum):
    """Which way an answer is wrong."""

    UNDER = "under"
    """It asks for less care than the case needs."""
    OVER = "over"


def chosen_cases(
    triage_data: TriageData,
    *,
    kind: Kind | None = None,
    miss: Miss | None = None,
    judge: str | None = None,
    model: str | None = None,
    asked: str | None = None,
) -> frozenset[int]:
    """The examples of the cases that fit.

    Args:
        kind: What can be asked about the case; None: anything.
        miss: At least one model's prediction in one format is wrong this way; counted are cases with one letter as their gold, as in every rate.
        judge: Whose levels count where this judge has looked; else the usual one of each format.
    """
    cases = triage_data.cases
    fits = np.ones(len(cases), dtype=bool) if kind is None else cases["kind"].eq(kind).to_numpy(dtype=bool)
    if miss is not None:
        judges = {word: name for word, name in judges_of(triage_data, judge).items() if asked in (None, word)}
        found = joined(triage_data, predictions(triage_data, judges))
        steps = found["predicted"].to_numpy(dtype=float) - found["gold"].to_numpy(dtype=float)
        wrong = (steps < 0 if miss is Miss.UNDER else steps > 0) & found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)
        if model is not None:
            wrong &= found["model"].eq(model).to_numpy(dtype=bool)
        missed = np.zeros(len(cases), dtype=bool)
        missed[found["row"].to_numpy()[wrong]] = True
        fits = fits & missed
    return frozenset(cases["example_id"].to_numpy()[fits].tolist())


def shown_samples(
    triage_data: TriageData, mine: pd.DataFrame, judges: Mapping[str, str]
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """The response to show for each prediction: the first with text that was read as the predicted level, else the first with text.

    Args:
        mine: Rows of `predictions.predictions`: row, model, format, predicted, first; each case, model and format once.
        judges: By format the judge whose levels the predictions have.

    Returns:
        For each row: the row in `triage_data.samples` (-1: no response has a text), and whether that text was read as the predicted level (either
        letter of a boundary counts).
    """
    samples = triage_data.samples
    models, formats = samples["model"].cat.categories, [word.value for word in Format]
    texts = np.flatnonzero(samples["has_text"].to_numpy())
    place = np.full(len(triage_data.cases) * len(models) * len(formats), -1, dtype=np.int64)
    place[_keys(mine, models, formats)] = np.arange(len(mine))
    of = place[_keys(samples.iloc[texts], models, formats)]
    texts, of = texts[of >= 0], of[of >= 0]
    asked = samples["format"].take(texts)
    level = np.full(len(texts), np.nan)
    for word, judge in judges.items():
        if judge in triage_data.levels:
            chosen = asked.eq(word).to_numpy(dtype=bool)
            level[chosen] = triage_data.levels[judge].to_numpy(dtype=float)[texts[chosen]]
    predicted = mine["predicted"].to_numpy(dtype=float)[of]
    agrees = (np.floor(level) == predicted) | (np.ceil(level) == predicted)
    sample = mine["first"].to_numpy(dtype=np.int64).copy()
    sample[of[agrees][::-1]] = texts[agrees][::-1]  # the earliest is written last
    says_so = np.zeros(len(mine), dtype=bool)
    says_so[of[agrees]] = True
    return sample, says_so


def _keys(table: pd.DataFrame, models: pd.Index, formats: Sequence[Any]) -> Numbers:
    """Case, model and format of each row as one number."""
    model = pd.Categorical(table["model"], categories=models).codes.astype(np.int64)
    asked = pd.Categorical(table["format"], categories=formats).codes.astype(np.int64)
    found: Numbers = (table["row"].to_numpy(dtype=np.int64) * max(len(models), 1) + model) * len(formats) + asked
    return found
