"""AcuityBench's published matrices (arXiv 2605.11398), as cases whose responses say just that."""

import numpy as np
import pandas as pd

from evalcore.study.schema import PARSER
from evalcore.triage.data import TriageData, described
from evalcore.triage.predictions import joined, predictions
from tests.triage_cases import CONVERSATION, QA, drawn

MODEL = "GPT-5.4"
GPT_QA = ((48, 15, 13, 1), (11, 57, 41, 1), (0, 5, 64, 9), (0, 0, 27, 235))
GPT_CONVERSATION = ((67, 6, 4, 0), (34, 69, 7, 0), (8, 9, 59, 2), (7, 1, 38, 216))
JUDGES = {QA: PARSER, CONVERSATION: "Magpie"}


def published(**matrices: object) -> pd.DataFrame:
    """Matrices by format, as `TriageData.published`; without any the two of GPT-5.4."""
    of = matrices or {QA: GPT_QA, CONVERSATION: GPT_CONVERSATION}
    return pd.DataFrame(
        [
            {"model": MODEL, "format": name, "gold": float(gold), **dict(zip("ABCD", line, strict=True))}
            for name, matrix in of.items()
            for gold, line in enumerate(matrix, start=1)
        ]
    )


def as_triaged(qa=GPT_QA, conversation=GPT_CONVERSATION, *, n_samples: int = 1) -> TriageData:
    """Cases whose gold and predictions give these two matrices, which have the same row totals."""
    levels = {QA: np.asarray(qa), CONVERSATION: np.asarray(conversation)}
    totals = levels[QA].sum(axis=1)
    assert (totals == levels[CONVERSATION].sum(axis=1)).all()
    triage_data, _ = drawn(
        np.random.default_rng(1),
        n_cases=int(totals.sum()),
        models=(MODEL,),
        n_samples=n_samples,
        share_panel=0,
        share_read=0,
        invalid=0,
    )
    triage_data.cases["file_gold"] = np.repeat([1.0, 2, 3, 4], totals)
    said = {
        name: np.concatenate([np.repeat([1.0, 2, 3, 4], line) for line in matrix]) for name, matrix in levels.items()
    }
    row, asked = triage_data.samples["row"].to_numpy(), triage_data.samples["format"]
    for name, judge in JUDGES.items():
        triage_data.levels[judge] = np.where(asked.eq(name), said[name][row], np.nan).astype(np.float32)
    return described(triage_data)


def found_of(triage_data: TriageData) -> pd.DataFrame:
    """Its predictions, joined."""
    return joined(triage_data, predictions(triage_data, JUDGES))
