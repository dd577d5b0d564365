"""Cases behind the rates of triage: those answered wrongly, those that flip with the format, and all as a table."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtr, ndtri

from evalcore.stats.arrays import Floats, Numbers, quotient
from evalcore.stats.intervals import LEVEL, wilson
from evalcore.study.schema import CASES, Acuity, Format
from evalcore.triage.data import N_LEVELS, Kind, TriageData, case_keys, labels_of
from evalcore.triage.predictions import COUNTS, joined, judges_of, levels_by, predictions
from evalcore.triage.rates import clear_answers, coded
from evalcore.triage.reads import case_levels, response_levels

_OF_CASE = ["example_id", "case_id", "source", "language", "original_label", "mapped_label", "method", "is_edge_case"]
_OF_CASE += ["uncertainty", "n_votes", "n_removed", "spread", "strength", "kind"]
COLUMNS = ["dataset", *_OF_CASE, "votes", "gold", "gold_read_here", "gold_how", "gold_readers", "model", "format"]
COLUMNS += ["judge", "predicted", *COUNTS, "n_no_level", "n_samples", "share", "confidence", "n_read", "levels_read"]


def case_table(triage_data: TriageData, judges: Mapping[str, str]) -> pd.DataFrame:
    """One row a case, model and format with a response, or a case that nobody answered: `COLUMNS`, levels as labels.

    votes in their order and levels_read (by physicians), joined by ";"; gold as the study takes it, gold_read_here as
    `reads.case_levels`.
    """
    cases, samples = triage_data.cases, triage_data.samples
    rows = np.arange(len(cases))
    votes = triage_data.votes.sort_values(["row", "place"])
    words = labels_of(votes["vote"]).fillna(Acuity.REMOVE.value)
    here = case_levels(triage_data).set_index("row").reindex(rows)
    of_case = cases[_OF_CASE].assign(row=rows, gold=labels_of(cases["gold"]))
    of_case["votes"] = words.groupby(votes["row"].to_numpy()).agg(";".join).reindex(rows).to_numpy(dtype=object)
    of_case["gold_read_here"] = labels_of(here["level"]).to_numpy(dtype=object)
    of_case["gold_how"] = here["how"].to_numpy(dtype=object)
    of_case["gold_readers"] = here["n_readers"].to_numpy(dtype=float)
    read = response_levels(triage_data)
    of = samples[["model", "format"]].take(read["sample"].to_numpy(dtype=np.int64)).reset_index(drop=True)
    read = read[["row"]].assign(model=of["model"].array, format=of["format"].array, level=labels_of(read["level"]))
    levels = read.groupby(["row", "model", "format"], observed=True)["level"]
    read = levels.agg(n_read="size", levels_read=lambda words: ";".join(words.dropna())).reset_index()
    found = predictions(triage_data, judges)
    found = found.assign(judge=found["format"].map(dict(judges)).astype(object))
    found = found.merge(read, on=["row", "model", "format"], how="left")
    table = of_case.merge(found.astype({"model": object, "format": object}), on="row", how="left")
    table = table.rename(columns={"n_invalid": "n_no_level", "stated": "confidence"})
    n_read = table["n_read"].where(table["model"].isna(), table["n_read"].fillna(0))
    return table.assign(dataset=CASES, predicted=labels_of(table["predicted"]), n_read=n_read)[COLUMNS]


class Miss(StrEnum):
    """Which way an answer is wrong."""

    UNDER = "under"
    OVER = "over"


WORST_FIRST = ((4, 1), (4, 2), (4, 3), (3, 1), (3, 2), (2, 1))
"""Gold and prediction of each miss, the most dangerous first."""
DANGEROUS = WORST_FIRST[:4]


def chosen_cases(
    triage_data: TriageData,
    *,
    kind: Kind | None = None,
    miss: Miss | None = None,
    judge: str | None = None,
    model: str | None = None,
    asked: str | None = None,
) -> frozenset[int]:
    """The examples of the cases that fit; `miss`: a clear case is wrong this way, by `judge` where it has looked."""
    cases = triage_data.cases
    fits = np.ones(len(cases), dtype=bool) if kind is None else cases["kind"].eq(kind).to_numpy(dtype=bool)
    if miss is not None:
        judges = {word: name for word, name in judges_of(triage_data, judge).items() if asked in (None, word)}
        found = joined(triage_data, predictions(triage_data, judges))
        counts, gold, predicted = clear_answers(found)
        wrong = counts & (predicted < gold if miss is Miss.UNDER else predicted > gold)
        if model is not None:
            wrong &= found["model"].eq(model).to_numpy(dtype=bool)
        missed = np.zeros(len(cases), dtype=bool)
        missed[found["row"].to_numpy()[wrong]] = True
        fits = fits & missed
    return frozenset(cases["example_id"].to_numpy()[fits].tolist())


def misses(triage_data: TriageData, found: pd.DataFrame, *, judges: Mapping[str, str]) -> pd.DataFrame:
    """Clear cases whose answer lies below the gold, worst first (rank: place in `WORST_FIRST`), then by share."""
    counts, gold, predicted = clear_answers(found)
    missed = counts & (predicted < gold)
    mine, gold, predicted = found.loc[missed].reset_index(drop=True), gold[missed], predicted[missed]
    ranks = np.zeros((N_LEVELS + 1, N_LEVELS + 1), dtype=np.int64)
    ranks[tuple(zip(*WORST_FIRST, strict=True))] = np.arange(len(WORST_FIRST))
    table = mine.assign(rank=ranks[gold.astype(int), predicted.astype(int)])
    table = table.assign(sample=shown_samples(triage_data, mine, judges))
    codes = [pd.Categorical(table[name]).codes for name in ("format", "model")]
    order = np.lexsort((*codes, mine["row"].to_numpy(), -table["share"].to_numpy(), table["rank"].to_numpy()))
    return table.iloc[order].reset_index(drop=True)


def shown_samples(triage_data: TriageData, mine: pd.DataFrame, judges: Mapping[str, str]) -> Numbers:
    """The first sample with a text that was read as the predicted level, else the first with a text; or -1."""
    samples = triage_data.samples
    texts = np.flatnonzero(samples["has_text"].to_numpy())
    n_models, n_formats = (len(samples[name].cat.categories) for name in ("model", "format"))
    n_keys = len(triage_data.cases) * max(n_models, 1) * n_formats
    place = np.full(n_keys, -1, dtype=np.int64)
    place[case_keys(mine, samples)] = np.arange(len(mine))
    of = place[case_keys(samples.iloc[texts], samples)]
    texts, of = texts[of >= 0], of[of >= 0]
    level = levels_by(triage_data, judges)[texts]
    predicted = mine["predicted"].to_numpy(dtype=float)[of]
    agrees = (np.floor(level) == predicted) | (np.ceil(level) == predicted)
    sample = mine["first"].to_numpy(dtype=np.int64).copy()
    sample[of[agrees][::-1]] = texts[agrees][::-1]  # the earliest is written last
    return sample


NOT_BOTH = "no case with a clear gold has a prediction in both formats"
_SIDES = (Format.QA.value, Format.CONVERSATION.value)


def in_both(found: pd.DataFrame) -> pd.DataFrame:
    """Cases with a prediction in both formats, a row a case and model: qa and conversation are their levels."""
    known = found.loc[found["predicted"].notna(), ["row", "model", "gold", "kind", "format", "predicted", "first"]]
    qa, conversation = (
        known.loc[known["format"].eq(side)].rename(columns={"predicted": side, "first": f"{side}_first"})
        for side in _SIDES
    )
    beside = conversation[["row", "model", "conversation", "conversation_first"]]
    both = qa.drop(columns="format").merge(beside, on=["row", "model"])
    return both.sort_values(["model", "row"], ignore_index=True)


def flips(found: pd.DataFrame) -> pd.DataFrame:
    """Cases whose answer changes with the format: those to or from D first, then by steps; `_first`: samples."""
    both = in_both(found)
    changed = both.loc[both["qa"].ne(both["conversation"])].reset_index(drop=True)
    qa, conversation = (changed[name].to_numpy(dtype=float) for name in _SIDES)
    crosses = (qa == N_LEVELS) != (conversation == N_LEVELS)
    models = changed["model"].cat.codes.to_numpy()
    order = np.lexsort((models, changed["row"].to_numpy(), -np.abs(conversation - qa), ~crosses))
    return changed.assign(crosses=crosses).iloc[order].reset_index(drop=True)


def flip_counts(found: pd.DataFrame) -> pd.DataFrame:
    """How often the format changes a model's answer, and what that does to under-triage.

    Of cases of every kind: n_both (with a prediction in both formats), n_flipped, n_lower and n_higher (conversation
    against qa), n_crossing (one of the two is D and the other is not); of the n with a clear gold: how many were sent
    too low, difference (conversation minus qa, -1..1), reason (why it is NaN).
    """
    _, names = coded(found, ["model"])
    both = in_both(found)
    place = np.zeros(len(both["model"].cat.categories), dtype=np.int64)
    place[names["model"].cat.codes.to_numpy()] = np.arange(len(names))
    of = place[both["model"].cat.codes.to_numpy()]
    qa, conversation, gold = (both[name].to_numpy(dtype=float) for name in ("qa", "conversation", "gold"))
    clear = both["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)
    low_qa, low_conversation = clear & (qa < gold), clear & (conversation < gold)

    def count(mask: Any) -> Numbers:
        return np.bincount(of[mask], minlength=len(names)).astype(np.int64)

    n_both, n_flipped, n = count(slice(None)), count(qa != conversation), count(clear)
    more, less = count(low_conversation & ~low_qa), count(low_qa & ~low_conversation)
    flipped_low, flipped_high = wilson(n_flipped, n_both)
    low, high = bonett_price(more, less, n)
    table = names.assign(n_both=n_both, n_flipped=n_flipped, flipped=quotient(n_flipped, n_both))
    table = table.assign(flipped_low=flipped_low, flipped_high=flipped_high, n_lower=count(conversation < qa))
    table = table.assign(n_higher=count(conversation > qa))
    table = table.assign(n_crossing=count((qa == N_LEVELS) != (conversation == N_LEVELS)), n=n, under_qa=count(low_qa))
    table = table.assign(under_conversation=count(low_conversation), only_qa=less, only_conversation=more)
    table = table.assign(difference=quotient(more - less, n), low=low, high=high, p=mcnemar(more, less, n))
    return table.assign(reason=np.where(n > 0, "", NOT_BOTH).astype(object))


def mcnemar(more: Numbers | Floats, less: Numbers | Floats, n: Numbers | Floats) -> Floats:
    """McNemar's exact p, two-sided, of cases in the one and in the other alone; NaN where n is 0."""
    p = np.minimum(2 * bdtr(np.minimum(more, less), (more + less).astype(np.int64), 0.5), 1)
    return np.where(n > 0, p, np.nan)


def bonett_price(more: Numbers | Floats, less: Numbers | Floats, n: Numbers | Floats) -> tuple[Floats, Floats]:
    """The interval of a paired difference of shares of n cases (Bonett and Price 2012); NaN where n is 0.

    With p = (more + 1)/(n + 2) and q = (less + 1)/(n + 2):

        p - q +- z sqrt((p + q - (p - q)^2)/(n + 2))
    """
    size = np.where(n > 0, n + 2, np.nan)
    p, q = (more + 1) / size, (less + 1) / size
    half = float(ndtri((1 + LEVEL) / 2)) * np.sqrt((p + q - (p - q) ** 2) / size)
    return np.maximum(p - q - half, -1), np.minimum(p - q + half, 1)
