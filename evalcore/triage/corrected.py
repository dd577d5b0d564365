"""Triage corrected: the judge's levels of all responses, physicians' of those that were drawn, and intervals that hold.

A share here is of responses: each counts 1 / the responses of its case in that model and format, so that each case counts once. `triage.confusion` counts
cases instead, by the most frequent level of their responses.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import (
    MIN_EXAMPLES_READ,
    MIN_READ,
    Claim,
    Estimate,
    Physicians,
    claim_sentence,
    further_readers,
    of_reads,
)
from evalcore.stats import estimator
from evalcore.stats.estimator import Floats
from evalcore.stats.intervals import LEVEL, wilson
from evalcore.stats.wording import counted
from evalcore.triage.counts import KEYS
from evalcore.triage.data import LETTERS, Triaged
from evalcore.triage.panels import N_LEVELS
from evalcore.triage.rates import ABOVE_A, BELOW_D, OF_ALL, OF_EMERGENCIES, RULES, Base, Measure
from evalcore.triage.surveyed import Answers, Asked, answers, asked

_Held = tuple[Claim, Physicians]
"""What an interval is to hold for."""
JUDGE, PHYSICIANS, CORRECTED = "judge_only", "physicians_only", "corrected"
BOUNDS = ("", "_low", "_high")
COUNTS = (
    "n_cases",
    "n_responses",
    "n_unreached",
    "n_no_level",
    "n_read",
    "n_cases_read",
    "n_readers",
    "n_effective_readers",
    "enough",
    "n_needed",
    "needed",
)
"""Columns of what a share was made from."""
ALL_COLUMNS = (*(kind + bound for kind in (JUDGE, PHYSICIANS, CORRECTED) for bound in BOUNDS), *COUNTS)
CELL_COLUMNS = (*KEYS, "gold", "predicted", "n", "n_gold", "share", "low", "high", *ALL_COLUMNS)
RATE_COLUMNS = (*KEYS, "measure", *ALL_COLUMNS)

_GOLD, _LEVEL = np.indices((N_LEVELS, N_LEVELS))
MEASURES: Mapping[Measure, Floats] = {
    measure: np.where(rule.base, rule.hits.astype(float), np.nan) for measure, rule in RULES.items()
}
"""Of each rate, gold x level: 1 where it counts, 0 where it does not, NaN where it is not about that gold."""
_WHICH: Mapping[Base, str] = {
    OF_ALL: "", OF_EMERGENCIES: "with the gold D", BELOW_D: "with a gold below D", ABOVE_A: "with a gold above A",
}  # fmt: skip
"""The cases that reads are lacking of, in words."""


def claim_words(claim: Claim, physicians: Physicians, *, value: str = "share") -> str:
    """What the interval of a corrected share means, or of another value.

    >>> claim_words(Claim.BENCHMARK, Physicians.THESE)  # doctest: +ELLIPSIS
    'The interval says where the share would lie if these physicians read every response with a text of this benchmark, ...fixed beforehand.'
    >>> "where the expected harm would lie" in claim_words(Claim.BENCHMARK, Physicians.THESE, value="expected harm")
    True
    """
    return claim_sentence(claim, physicians, value=value, item="response with a text", of="cases")


def answered(
    triaged: Triaged, judges: Mapping[str, str], claim: Claim = Claim.NEW_EXAMPLES, *, settled: bool = True
) -> list[Answers]:
    """The `triage_surveyed.answers` that count for a claim: for these cases alone only those that can be read."""
    return list(answers(triaged, judges, settled=settled, only_texts=claim is Claim.BENCHMARK))


def corrected_cells(
    triaged: Triaged,
    judges: Mapping[str, str],
    *,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    settled: bool = True,
    known: Sequence[Answers] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Confusion matrices by the judge alone, by physicians alone, and by the judge corrected by physicians, with intervals.

    Of the responses to the cases of one gold, with a = 1 / (cases x responses of the case), w = (a/pi) / sum (a/pi) over the read ones:

        judge only         sum a f                          f what the judge says; Wilson, a case once
        physicians only    sum w y                          y the mean vote of those who read it (Hajek)
        corrected          sum a m + sum w (y - m)          m what physicians say where the judge says this level (GREG, as in `estimator`)

    m is taken from all that was read of the model in this format, `Answers.by_level`. All four shares of a row add up to 1. The variance is over cases,
    which are what is drawn together; t with (cases read - numbers fitted) degrees of freedom, or fewer where cases are few (`corrected.of_reads`, whose
    claims these are). For physicians in general it is over physicians, who must have got their responses at random, and needs three effective readers.
    Where nearly all votes are as predicted the interval is widened by what three others would add.

    Counted are responses to clear cases in which the judge found a level. Reads count that were made blind of a drawn response and gave a level
    (`triage_votes.drawn_votes`); a read of a response in which the judge found none does not. Responses without a text (n_unreached) cannot be read: for
    further cases they enter by the judge's level, as if physicians would say the same of them as of those with a text; for these cases alone they are
    left out.

    Args:
        triaged: `panels.described`.
        judges: By format the judge whose levels count.
        claim: What the interval is to hold for: further cases of the same kind, or these cases alone (then its width is 0 where everything was read).
        physicians: Whose judgement it is to hold for: those who have read, or physicians in general.
        settled: An adjudicated level takes the place of the readers' votes.
        known: What `answered` gave for the same cases, judges, claim and settled, where it is at hand.
        level: Of confidence, in (0, 1).

    Returns:
        Sixteen rows a model and format: model, format, gold, predicted (1..4); n_gold (cases with this gold), share (corrected, in [0, 1]; the four of
        a row add up to 1), low, high (in [0, 1]), n (share x n_gold: an estimate, no count); for each of judge_only, physicians_only and corrected the
        share as it was estimated (corrected may lie a little outside [0, 1]), _low and _high; NaN where there is none; n_cases (of the row); n_responses,
        n_unreached and n_no_level (of the model and format); n_read (responses of the row), n_cases_read, n_readers (physicians), n_effective_readers
        (of the model and format: 1 / sum q^2, q their shares of the reading), enough (physicians-only
        and corrected are said), n_needed (responses to be read until they are, at least), needed (the same in words, empty where enough).

        Enough is 30 responses read of the model and format, and cases of this gold with a read: 10; for physicians in general by 3 effective readers.
    """
    rows: list[dict[str, Any]] = []
    for about in answered(triaged, judges, claim, settled=settled) if known is None else known:
        model = about.by_level()
        for gold in range(N_LEVELS):
            rows += _cells_of(about, gold, model, (claim, physicians), level)
    found = pd.DataFrame(rows, columns=list(CELL_COLUMNS))
    return found.astype({"model": triaged.samples["model"].dtype, "format": triaged.samples["format"].dtype})


def corrected_rates(
    triaged: Triaged,
    judges: Mapping[str, str],
    *,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    settled: bool = True,
    known: Sequence[Answers] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """How often responses are right, too high, too low, and dangerously so: by the judge, by physicians, and corrected.

    The formulas of `corrected_cells` with what counts as y, over the cases of all golds that a rate is about; not sums of rounded cells.

    Args:
        triaged: As in `corrected_cells`.
        judges: As in `corrected_cells`.
        claim: As in `corrected_cells`.
        physicians: As in `corrected_cells`.
        settled: As in `corrected_cells`.
        known: As in `corrected_cells`.
        level: As in `corrected_cells`.

    Returns:
        One row a model, format and measure of `MEASURES`: model, format, measure, and the columns of `corrected_cells` from judge_only on, of the
        cases that the rate is of.

        Enough is 30 responses read of the model and format, from 10 of the cases that the rate is of; for physicians in general by 3 effective readers.
    """
    rows: list[dict[str, Any]] = []
    for about in answered(triaged, judges, claim, settled=settled) if known is None else known:
        model = about.by_level()
        for measure, counts in MEASURES.items():
            share = asked(about, counts, model)
            made = made_from(about, share, _WHICH[RULES[measure].of], physicians)
            found = _three(share, (claim, physicians), level, is_enough=made["enough"])
            rows.append({"model": about.model, "format": about.format, "measure": measure.value, **found, **made})
    table = pd.DataFrame(rows, columns=list(RATE_COLUMNS))
    kinds = {"model": triaged.samples["model"].dtype, "format": triaged.samples["format"].dtype}
    return table.astype({**kinds, "measure": pd.CategoricalDtype([measure.value for measure in MEASURES])})


def _cells_of(
    about: Answers, gold: int, model: tuple[Floats, Floats], claim: _Held, level: float
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for place in range(N_LEVELS):
        share = asked(about, np.where(gold == _GOLD, place == _LEVEL, np.nan), model)
        made = made_from(about, share, f"with the gold {LETTERS[gold].value}", claim[1])
        found.append(_three(share, claim, level, is_enough=made["enough"]) | made)
    shares = on_simplex(np.array([row[CORRECTED] for row in found]))
    for place, (row, share_shown) in enumerate(zip(found, shares, strict=True)):
        row |= {
            "model": about.model, "format": about.format, "gold": gold + 1.0, "predicted": place + 1.0,
            "n": share_shown * row["n_cases"], "n_gold": row["n_cases"], "share": share_shown,
            "low": np.clip(min(row[f"{CORRECTED}_low"], share_shown), 0, 1), "high": np.clip(max(row[f"{CORRECTED}_high"], share_shown), 0, 1),
        }  # fmt: skip
    return found


def on_simplex(shares: Floats) -> Floats:
    """The nearest four shares that are nowhere below 0 and add up to 1; never further from the truth than what came, which adds up to 1 as well.

    >>> on_simplex(np.array([0.5, 0.55, -0.05, 0.0])).round(3).tolist()
    [0.475, 0.525, 0.0, 0.0]
    """
    if np.isnan(shares).any():
        return shares
    ordered = np.sort(shares)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    n_kept = int(np.flatnonzero(ordered > above)[-1])
    return np.asarray(np.maximum(shares - above[n_kept], 0.0))


def _three(share: Asked, claim: _Held, level: float, *, is_enough: bool) -> dict[str, float]:
    """The judge's share, physicians' and the corrected one, with their bounds."""
    found = _of_judge(share, level)
    for kind in (PHYSICIANS, CORRECTED):
        if is_enough:
            fit = share.corrected if kind == CORRECTED else estimator.by_physicians(share.population, share.sample)
            estimate: Estimate = of_reads(share.population, share.sample, fit, *claim)
            columns = estimate.columns(kind, level)
            found |= {name: columns[name] for name in (kind, f"{kind}_low", f"{kind}_high")}
        else:
            found |= {kind + bound: np.nan for bound in BOUNDS}
    return found


def _of_judge(share: Asked, level: float) -> dict[str, float]:
    by_case = share.by_case
    low, high = wilson(by_case.sum(keepdims=True), np.array([len(by_case)]), level=level)
    value = float(by_case.mean()) if len(by_case) else np.nan
    return {JUDGE: value, f"{JUDGE}_low": float(low[0]), f"{JUDGE}_high": float(high[0])}


def made_from(about: Answers, share: Asked, words: str, physicians: Physicians) -> dict[str, Any]:
    """The columns `COUNTS`."""
    n_read, n_cases_read = len(about.read), share.sample.n_units
    lacking, of_cases = max(0, MIN_READ - n_read), max(0, MIN_EXAMPLES_READ - n_cases_read)
    by_others, by_whom = (
        further_readers(share.sample.n_readers, about.n_effective_readers)
        if physicians is Physicians.IN_GENERAL
        else (0, "")
    )
    n_needed = max(lacking, of_cases, by_others)
    said = [f"{counted(n_needed, 'more response')} to be read"] if n_needed else []
    if of_cases:
        said.append(
            f"{of_cases} of them to {'another case' if of_cases == 1 else 'as many other cases'} {words}".rstrip()
        )
    if by_others:
        said.append(by_whom)
    return {
        "n_cases": share.population.n_examples,
        "n_responses": about.n_responses,
        "n_unreached": about.n_unreached,
        "n_no_level": about.n_no_level,
        "n_read": len(share.sample.rows),
        "n_cases_read": n_cases_read,
        "n_readers": share.sample.n_readers,
        "n_effective_readers": about.n_effective_readers,
        "enough": n_needed == 0,
        "n_needed": n_needed,
        "needed": ", ".join(said),
    }
