"""Expected harm corrected: what the judge's levels of all responses cost, put right by physicians' of those that were drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.corrected import Claim, Physicians, of_reads
from evalcore.stats.estimator import Floats
from evalcore.stats.intervals import LEVEL
from evalcore.triage.corrected import COUNTS, answered, made_from
from evalcore.triage.data import Triaged
from evalcore.triage.harm import HARM_COLUMNS, costs, highest
from evalcore.triage.panels import N_LEVELS
from evalcore.triage.surveyed import Answers, asked

_GOLD, _LEVEL = np.indices((N_LEVELS, N_LEVELS))
_STEP = _LEVEL - _GOLD
CORRECTED_HARM_COLUMNS = (*HARM_COLUMNS, *COUNTS)


def corrected_harm(  # noqa: PLR0913 - all but the weights by name
    triaged: Triaged,
    judges: Mapping[str, str],
    under: float,
    over: float,
    *,
    steps: bool = True,
    claim: Claim = Claim.NEW_EXAMPLES,
    physicians: Physicians = Physicians.THESE,
    known: Sequence[Answers] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """What an answer costs on average, by the judge on all responses and physicians on those that they have read, with an interval.

    It is the mean of the corrected cells' shares times what each cell costs, with the formulas of `triage_corrected.corrected_cells` over the cases of all
    golds: y is what a response costs by its level and its case's gold. The variance is over cases. Where nearly all votes are as predicted, it is widened
    by what three others would add that each cost one level more at the larger weight. Measured coverage of the 95 % interval, weights 5 and 1, 120 and 400
    cases of which 30 to 50 % were read, judge accuracy .65 and .9: .945 to .985, for these cases and for further ones.

    Args:
        triaged: `panels.described`.
        judges: By format the judge whose levels count.
        under: As in `harm.expected_harm`.
        over: As in `harm.expected_harm`.
        steps: As in `harm.expected_harm`.
        claim: As in `triage_corrected.corrected_cells`.
        physicians: As in `triage_corrected.corrected_cells`.
        known: As in `triage_corrected.corrected_cells`.
        level: Of confidence, in (0, 1).

    Returns:
        As `harm.expected_harm`, one row a model and format: n (cases), harm (of_under and of_over add up to it), low, high, n_under, n_over,
        steps_under and steps_over (of n cases, estimated: no counts), reason (what has still to be read); NaN where too little was read. And the columns
        `triage_corrected.COUNTS`.
    """
    rows: list[dict[str, Any]] = []
    for about in answered(triaged, judges, claim) if known is None else known:
        model = about.by_level()
        largest = max(under, over) or 1.0
        share = asked(about, costs(_STEP, under, over, steps=steps) / largest, model)
        made = made_from(about, share, "", physicians)
        row = dict.fromkeys(HARM_COLUMNS, np.nan) | {"model": about.model, "format": about.format, "n": made["n_cases"]}
        if made["enough"]:
            ways = _ways(about, model)
            n_steps = "steps" if steps else "n"
            row |= {f"{kind}_{way}": value * made["n_cases"] for (kind, way), value in ways.items()}
            row |= {"of_under": under * ways[n_steps, "under"], "of_over": over * ways[n_steps, "over"]}
            row["harm"] = row["of_under"] + row["of_over"]
            estimate = of_reads(share.population, share.sample, share.corrected, claim, physicians).columns("", level)
            low, high = (float(estimate[bound]) * largest for bound in ("_low", "_high"))
            row |= {
                "low": max(min(low, row["harm"]), 0.0),
                "high": max(min(high, highest(under, over, steps=steps)), row["harm"]),
            }
        rows.append(row | made | {"reason": made["needed"]})
    found = pd.DataFrame(rows, columns=list(CORRECTED_HARM_COLUMNS))
    return found.astype({"model": triaged.samples["model"].dtype, "format": triaged.samples["format"].dtype})


def _ways(about: Answers, model: tuple[Floats, Floats]) -> dict[tuple[str, str], float]:
    """Corrected shares of errors (n) and mean levels (steps) by way; an estimate may lie a little below 0, what it stands for cannot."""
    found = {}
    for kind in ("n", "steps"):
        for way, weights in (("under", (1.0, 0.0)), ("over", (0.0, 1.0))):
            cost = costs(_STEP, *weights, steps=kind == "steps")
            found[kind, way] = max(0.0, asked(about, cost, model).corrected.value)
    return found
