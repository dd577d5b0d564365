"""Which cases of triage are of a kind, or are answered wrongly in one direction."""

from enum import StrEnum

import numpy as np

from evalcore.triage.case_table import judges_of
from evalcore.triage.data import Triaged
from evalcore.triage.panels import Kind
from evalcore.triage.predictions import joined, predictions


class Miss(StrEnum):
    """Which way an answer is wrong."""

    UNDER = "under"
    """It asks for less care than the case needs."""
    OVER = "over"


def chosen_cases(
    triaged: Triaged,
    *,
    kind: Kind | None = None,
    miss: Miss | None = None,
    judge: str | None = None,
    model: str | None = None,
    asked: str | None = None,
) -> frozenset[int]:
    """The examples of the cases that fit.

    Args:
        triaged: `panels.described`.
        kind: What can be asked about the case; None: anything.
        miss: At least one model's prediction in one format is wrong this way; counted are cases with one letter as their gold, as in every rate.
        judge: Whose levels count where this judge has looked; else the usual one of each format.
        model: Of this model's predictions alone.
        asked: Of this format alone.
    """
    cases = triaged.cases
    fits = np.ones(len(cases), dtype=bool) if kind is None else cases["kind"].eq(kind).to_numpy(dtype=bool)
    if miss is not None:
        judges = {word: name for word, name in judges_of(triaged, judge).items() if asked in (None, word)}
        found = joined(triaged, predictions(triaged, judges))
        steps = found["predicted"].to_numpy(dtype=float) - found["gold"].to_numpy(dtype=float)
        wrong = (steps < 0 if miss is Miss.UNDER else steps > 0) & found["kind"].eq(Kind.CLEAR).to_numpy(dtype=bool)
        if model is not None:
            wrong &= found["model"].eq(model).to_numpy(dtype=bool)
        missed = np.zeros(len(cases), dtype=bool)
        missed[found["row"].to_numpy()[wrong]] = True
        fits = fits & missed
    return frozenset(cases["example_id"].to_numpy()[fits].tolist())
