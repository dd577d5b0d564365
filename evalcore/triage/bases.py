"""Who says which level an answer gives: matrices, rates and harm by judge, by physicians of the study, or by both, all in one form."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import widest_claim
from evalcore.stats.intervals import interval_words, percent_words
from evalcore.study.analysis import Analysis
from evalcore.study.schema import Claim, Format, Physicians
from evalcore.triage import words as triage_words
from evalcore.triage.corrected import (  # fmt: skip
    BOUNDS,
    CORRECTED,
    MEASURES,
    PHYSICIANS,
    Answers,
    answered,
    asked,
    corrected_cells,
    corrected_harm,
    corrected_rates,
    made_from,
    on_same_answers,
)
from evalcore.triage.data import TriageData
from evalcore.triage.differences import judged_differences, paired_costs, read_differences
from evalcore.triage.harm import STEP, changes, costs, expected_harm, harm_differences, on_same_cases
from evalcore.triage.physicians import physicians_cells, physicians_harm, physicians_rates, physicians_summary
from evalcore.triage.rates import RULES, Measure, confusion, denominator_words, of_matrices, rates, summary

PUBLISHED = " (published)"
"""Behind the name of a model whose finished matrix was imported: it may also have cases here."""
_WORDS = {"model": str, "format": str}


class Basis(StrEnum):
    """Who says which level an answer gives."""

    JUDGE = "by judge"
    PHYSICIANS = "by physicians"
    CORRECTED = "corrected"
    """The judge on all answers, put right by what physicians read on some."""


WHOSE = {
    Basis.JUDGE: "In the judge's opinion",
    Basis.PHYSICIANS: "By what physicians read",
    Basis.CORRECTED: "After correction",
}
"""Who says so, at the head of a sentence."""


@dataclass(frozen=True)
class Weights:
    """What errors cost.

    Attributes:
        under, over: Weight of an answer too low, and of one too high; 0 or more.
        steps: Whether an error counts as many times as it is levels wide, or once.
    """

    under: float
    over: float
    steps: bool = True


@dataclass(frozen=True)
class Held:
    """What the intervals of corrected numbers are to hold for."""

    claim: Claim = Claim.NEW_EXAMPLES
    physicians: Physicians = Physicians.THESE
    settled: bool = False
    """An adjudicated level takes the place of the readers' votes."""


def usual_held(
    triage_data: TriageData, judges: Mapping[str, str], spec: Analysis, *, known: Sequence[Answers] | None = None
) -> tuple[Held, str]:
    """What intervals are to hold for where nobody chooses otherwise, and why: as the study states, else the widest claim that the reads can carry.

    Args:
        judges: By format whose levels count.
        known: What `answered` gave for further cases, these judges and the stated rule of settling, where it is at hand.
    """
    known = answered(triage_data, judges, settled=spec.settled) if known is None else known
    exact = MEASURES[Measure.EXACT]
    enough = [
        about
        for about in known
        if made_from(about, asked(about, exact, about.by_level()), "", Physicians.THESE)["enough"]
    ]
    usual = widest_claim([about.n_effective_readers for about in enough])
    held = Held(spec.claim or usual.claim, spec.physicians or usual.physicians, spec.settled)
    return held, "" if spec.claim and spec.physicians else usual.why


def stated_judges(triage_data: TriageData, spec: Analysis) -> dict[str, str]:
    """By format the first of the stated judges that has looked at any response; formats that none of them has read are left out."""
    read = {word.value: [name for name in spec.judges if name in triage_data.judges(word)] for word in Format}
    return {word: names[0] for word, names in read.items() if names}


def with_cases(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of models that have cases here: published matrices are of other cases, of another mix, and are not held against them."""
    return table.loc[~table["model"].astype(str).str.endswith(PUBLISHED)]


@dataclass(frozen=True)
class Matrices:
    """The matrices of all models by one basis.

    Attributes:
        cells: As `triage.confusion` gives them, model and format as plain words; n is NaN where shares are estimates; and n_open: how many cases (by
            physicians: responses) there are to look at in the cell, by physicians with those that enter no share, corrected those that the judge puts there.
        rates: As `triage.rates`; k and n are NaN where shares are estimates, and reason says what has to be read.
        summary: As `triage_scores.summary`; no rows where shares are estimates.
    """

    cells: pd.DataFrame
    rates: pd.DataFrame
    summary: pd.DataFrame


def by_judge(triage_data: TriageData, found: pd.DataFrame) -> Matrices:
    """What judges say of every answer, and the published matrices behind them, marked `PUBLISHED`."""
    cells = _judged(triage_data, found)
    return Matrices(cells.assign(n_open=cells["n"]), rates(cells), summary(cells))


def _judged(triage_data: TriageData, found: pd.DataFrame) -> pd.DataFrame:
    cells = confusion(found).astype(_WORDS)
    if not len(triage_data.published):
        return cells
    finished = of_matrices(triage_data.published.assign(model=triage_data.published["model"] + PUBLISHED))
    return pd.concat([cells, finished.astype(_WORDS)], ignore_index=True)


def by_physicians(triage_data: TriageData, *, settled: bool = False) -> Matrices:
    """What physicians of the study say of the responses that they have read; responses are counted, not cases.

    Args:
        settled: An adjudicated level takes the place of the readers' votes.
    """
    cells = physicians_cells(triage_data, settled=settled).astype(_WORDS)
    cells = cells.assign(n_open=cells["n"] + cells["n_volunteered"])
    rated, whole = (
        make(triage_data, settled=settled).astype(_WORDS) for make in (physicians_rates, physicians_summary)
    )
    return Matrices(cells, rated, whole)


def corrected(
    triage_data: TriageData,
    found: pd.DataFrame,
    judges: Mapping[str, str],
    held: Held = Held(),
    *,
    known: Sequence[Answers] | None = None,
) -> Matrices:
    """The judge's levels of all responses, put right by physicians'; estimates, so without counts.

    Args:
        judges: By format whose levels count.
        held: What the intervals are to hold for.
        known: What `triage_corrected.answered` gave for the same cases, judges and claim, where it is at hand.

    Returns:
        Cells and rates with the further columns of `triage_corrected`. Those may lie a little outside [0, 1]; value, low and high of a rate do not.
    """
    known = answered(triage_data, judges, held.claim, settled=held.settled) if known is None else known
    cells = corrected_cells(triage_data, judges, claim=held.claim, physicians=held.physicians, known=known).astype(
        _WORDS
    )
    judged = confusion(found).astype(_WORDS).rename(columns={"n": "n_open"})
    keys = [*_WORDS, "gold", "predicted"]
    judged = judged.astype({key: cells[key].dtype for key in keys})  # without a case they are of nothing in particular
    cells = cells.merge(judged[[*keys, "n_open"]], on=keys, how="left")
    made = corrected_rates(triage_data, judges, claim=held.claim, physicians=held.physicians, known=known)
    made = made.astype({**_WORDS, "measure": str})
    told = made[[f"{CORRECTED}{bound}" for bound in BOUNDS]].set_axis(["value", "low", "high"], axis=1).clip(0, 1)
    of = [denominator_words(RULES[name].of, n) for name, n in zip(made["measure"], made["n_cases"], strict=True)]
    said = pd.concat([made, told], axis=1).assign(k=np.nan, n=np.nan, denominator=of, reason=made["needed"])
    return Matrices(cells.assign(n=np.nan, n_open=cells["n_open"].fillna(0)), said, pd.DataFrame())


def harm(
    basis: Basis,
    triage_data: TriageData,
    found: pd.DataFrame,
    weights: Weights,
    *,
    judges: Mapping[str, str],
    held: Held = Held(),
    known: Sequence[Answers] | None = None,
) -> pd.DataFrame:
    """Expected harm of all models by the chosen basis.

    Args:
        basis: Who says which level an answer gives.
        judges: By format whose levels count; corrected.
        held: What the intervals are to hold for; corrected.

    Returns:
        As `harm.expected_harm`, model and format as plain words: by judge with the published matrices, by physicians of responses, corrected with the
        further columns of `triage_corrected_harm`.
    """
    under, over, steps = weights.under, weights.over, weights.steps
    if basis is Basis.PHYSICIANS:
        made = physicians_harm(triage_data, under, over, steps=steps, settled=held.settled)
    elif basis is Basis.CORRECTED:
        known = answered(triage_data, judges, held.claim, settled=held.settled) if known is None else known
        made = corrected_harm(
            triage_data, judges, under, over, steps=steps, claim=held.claim, physicians=held.physicians, known=known
        )
    else:
        made = expected_harm(_judged(triage_data, found), under, over, steps=steps)
    return made.astype(_WORDS)


@dataclass(frozen=True)
class Ranked:
    """The models' expected harm on the same cases, and how they differ there.

    Attributes:
        harm: As `harm.expected_harm`, of the models that have cases here, over the cases that all of them answered in the format.
        differences: As `harm.harm_differences`: of every two models, on the cases that both answered.
    """

    harm: pd.DataFrame
    changes: pd.DataFrame
    differences: pd.DataFrame


def ranked(
    basis: Basis,
    triage_data: TriageData,
    found: pd.DataFrame,
    weights: Weights,
    *,
    judges: Mapping[str, str],
    held: Held = Held(),
    known: Sequence[Answers] | None = None,
) -> Ranked:
    """The models on the same cases, published matrices in none of it.

    By physicians each model is of the responses that were read of it, so that nothing is ranked and the differences alone are told.

    Args:
        basis: Who says which level an answer gives.
        judges: By format whose levels count.
        held: What the intervals are to hold for; not by judge.
    """
    under, over, steps = weights.under, weights.over, weights.steps
    if basis is Basis.JUDGE:
        made = expected_harm(confusion(on_same_cases(found)), under, over, steps=steps)
        differences = harm_differences(found, under, over, steps=steps)
        return Ranked(made.astype(_WORDS), changes(made, steps=steps), differences)
    known = answered(triage_data, judges, held.claim, settled=held.settled) if known is None else known
    largest = max(under, over) or 1.0
    kind = CORRECTED if basis is Basis.CORRECTED else PHYSICIANS
    differences = paired_costs(
        known, costs(STEP, under, over, steps=steps) / largest, kind=kind, claim=held.claim, physicians=held.physicians
    )
    scaled = {name: differences[name] * largest for name in ("difference", "low", "high", "se")}
    if basis is Basis.PHYSICIANS:
        made = physicians_harm(triage_data, under, over, steps=steps).iloc[:0]
    else:
        same = on_same_answers(known)
        made = corrected_harm(
            triage_data, judges, under, over, steps=steps, claim=held.claim, physicians=held.physicians, known=same
        )
    return Ranked(made.astype(_WORDS), changes(made, steps=steps), differences.assign(**scaled))


def safety(basis: Basis, found: pd.DataFrame, *, known: Sequence[Answers] = (), held: Held = Held()) -> pd.DataFrame:
    """Differences of under-triage and of missed emergencies of every two models, on the cases that both answered.

    Args:
        basis: Who says which level an answer gives; by judge they are the judge's opinion.
        known: What `triage_corrected.answered` gave; not by judge.
        held: What the intervals are to hold for; not by judge.

    Returns:
        As `triage_differences.judged_differences` or `read_differences`.
    """
    if basis is Basis.JUDGE:
        return judged_differences(found)
    kind = CORRECTED if basis is Basis.CORRECTED else PHYSICIANS
    return read_differences(known, kind=kind, claim=held.claim, physicians=held.physicians)


def rate_words(row: Mapping[Any, Any]) -> str:
    """A rate with its count and interval; an estimate without a count; where there is none, why.

    >>> nan = float("nan")
    >>> rate_words({"value": 0.25, "k": nan, "n": nan, "low": 0.05, "high": 0.7, "reason": ""})
    '25 % [5 %, 70 %]'
    """
    if math.isnan(row["value"]) or not math.isnan(row["k"]):
        return triage_words.rate_words(row)
    return f"{percent_words(row['value'])} {interval_words(row['low'], row['high'])}"


def matrices(
    basis: Basis,
    triage_data: TriageData,
    found: pd.DataFrame,
    *,
    judges: Mapping[str, str],
    held: Held = Held(),
    known: Sequence[Answers] | None = None,
) -> Matrices:
    """The matrices of all models by the chosen basis; all as for `harm`."""
    if basis is Basis.PHYSICIANS:
        return by_physicians(triage_data, settled=held.settled)
    if basis is Basis.CORRECTED:
        return corrected(triage_data, found, judges, held, known=known)
    return by_judge(triage_data, found)


def rates_columns(rates: pd.DataFrame, measures: Sequence[str]) -> dict[str, list[str]]:
    """Some measures of `Matrices.rates` by the headers of a table: a row a model and format, in their order."""
    short = rates.assign(reason=[triage_words.short_reason(reason) for reason in rates["reason"]])
    of = triage_words.by_model(short)
    columns = {"Model": [model for model, _ in of], "Format": [word for _, word in of]}
    occurring = [name for name in measures if any(name in rows for rows in of.values())]
    return columns | {
        triage_words.NAMES[name]: [rate_words(rows[name]) if name in rows else "" for rows in of.values()]
        for name in occurring
    }
