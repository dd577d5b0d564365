"""Who says which level an answer gives: matrices and rates by judge, by physicians of the study, or by both, all in one form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.metrics import triage_words
from evalcore.metrics.intervals import interval_words, percent_words
from evalcore.metrics.triage import confusion, of_matrices, rates, summary
from evalcore.metrics.triage_corrected import BOUNDS, CORRECTED, corrected_cells, corrected_rates
from evalcore.metrics.triage_reads import physicians_cells
from evalcore.metrics.wording import counted
from evalcore.triaged import Triaged

PUBLISHED = " (published, no cases)"
"""Behind the name of a model whose finished matrix was imported: it may also have cases here."""
_WORDS = {"model": str, "format": str}


class Basis(StrEnum):
    """Who says which level an answer gives."""

    JUDGE = "by judge"
    PHYSICIANS = "by physicians"
    CORRECTED = "corrected"
    """The judge on all answers, put right by what physicians read on some."""


@dataclass(frozen=True)
class Matrices:
    """The matrices of all models by one basis.

    Attributes:
        cells: As `triage.confusion` gives them, model and format as plain words; n is NaN where shares are estimates.
        rates: As `triage.rates`; k and n are NaN where shares are estimates, and reason says what has to be read.
        summary: As `triage.summary`; no rows where shares are estimates.
    """

    cells: pd.DataFrame
    rates: pd.DataFrame
    summary: pd.DataFrame

    @property
    def is_counted(self) -> bool:
        """Whether cells hold cases (or responses), not estimates."""
        return bool(self.cells["n"].notna().all())


def by_judge(triaged: Triaged, found: pd.DataFrame) -> Matrices:
    """What judges say of every answer, and the published matrices behind them, marked `PUBLISHED`.

    Args:
        triaged: The cases.
        found: As `predictions.joined` gives it.
    """
    cells = confusion(found).astype(_WORDS)
    if len(triaged.published):
        finished = of_matrices(triaged.published.assign(model=triaged.published["model"] + PUBLISHED))
        cells = pd.concat([cells, finished.astype(_WORDS)], ignore_index=True)
    return Matrices(cells, rates(cells), summary(cells))


def by_physicians(triaged: Triaged) -> Matrices:
    """What physicians of the study say of the responses that they have read; responses are counted, not cases.

    Args:
        triaged: The cases, `panels.described`.
    """
    cells = physicians_cells(triaged).astype(_WORDS)
    return Matrices(cells, rates(cells), summary(cells))


def corrected(triaged: Triaged, judges: Mapping[str, str]) -> Matrices:
    """The judge's levels of all responses, put right by physicians'; estimates, so without counts.

    Args:
        triaged: The cases, `panels.described`.
        judges: By format whose levels count.

    Returns:
        Cells and rates with the further columns of `triage_corrected`.
    """
    cells = corrected_cells(triaged, judges).astype(_WORDS)
    made = corrected_rates(triaged, judges).astype({**_WORDS, "measure": str})
    told = made[[f"{CORRECTED}{bound}" for bound in BOUNDS]].set_axis(["value", "low", "high"], axis=1)
    of = [f"of {counted(n, 'case')}" for n in made["n_cases"]]
    said = pd.concat([made, told], axis=1).assign(k=np.nan, n=np.nan, denominator=of, reason=made["needed"])
    return Matrices(cells.assign(n=np.nan), said, pd.DataFrame())


def rate_words(row: Mapping[Any, Any]) -> str:
    """A rate with its count and interval; an estimate without a count; where there is none, why.

    >>> nan = float("nan")
    >>> rate_words({"value": 0.25, "k": nan, "n": nan, "low": 0.05, "high": 0.7, "reason": ""})
    '25 % [5 %, 70 %]'
    """
    if math.isnan(row["value"]) or not math.isnan(row["k"]):
        return triage_words.rate_words(row)
    return f"{percent_words(row['value'])} {interval_words(row['low'], row['high'])}"
