"""Judge-check: a judge against adjudicated labels, with bounds that it must reach; for the continuous integration of prompts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats import confusion
from evalcore.stats.arrays import Floats
from evalcore.stats.confusion import ACCURACY, SENSITIVITY, SPECIFICITY
from evalcore.stats.intervals import LEVEL

F1 = "f1"
RATES = (ACCURACY, SENSITIVITY, SPECIFICITY)
MEASURES: Mapping[str, str] = {
    F1: "balanced F1",
    ACCURACY: "accuracy",
    SENSITIVITY: "sensitivity",
    SPECIFICITY: "specificity",
}
"""Each measure by its name in words."""
DEFAULT_MIN_F1 = 0.6
"""Where no bound is given. Random labels have .5; published judges on HealthBench's physicians .58 to .71 (arXiv 2505.08775)."""
POINT, LOW = "point", "low"
"""What must reach a bound: the measure itself, or the lower end of its interval."""


def gold_check(pairs: pd.DataFrame, *, level: float = LEVEL) -> pd.DataFrame:
    """How a judge does on gold labels.

        sensitivity = TP/(TP+FN)    specificity = TN/(TN+FP)    accuracy = (TP+TN)/n
        balanced F1 = (2TP/(2TP+FP+FN) + 2TN/(2TN+FP+FN)) / 2

    The interval of F1 is a delete-one-example jackknife with t(G-1), clipped to [0, 1]; the others are those of `confusion.rates`.
    Gold labels stand for themselves: no weights. A judge without an error shows no spread to a jackknife: then the lower end of F1 is that of accuracy.

    Args:
        pairs: One row an item: gold (True: met), judged (True: met), example (what it belongs to). Only items with both labels.
        level: Of confidence, in (0, 1).

    Returns:
        One row a measure, in the order of `MEASURES`: measure, value, low, high in [0, 1], n (items), n_examples, reason (why value
        is NaN; else empty). Sensitivity is NaN where no gold label is met, specificity where all are, F1 in both cases.
    """
    gold, judged = (pairs[name].to_numpy(dtype=bool) for name in ("gold", "judged"))
    counts = np.column_stack([gold & judged, ~gold & judged, gold & ~judged, ~gold & ~judged]).astype(float)
    example = np.asarray(pd.factorize(pairs["example"])[0], dtype=np.int64)
    one = np.zeros(len(gold), dtype=np.int64)
    rates = confusion.rates(counts, np.ones(len(gold)), example, one, 1, level=level)
    rows = [_row(measure, *rates[measure].iloc[0][["share", "low", "high", "n", "n_clusters"]]) for measure in RATES]
    whole = confusion.sums(one, counts, 1)
    low, high, n_examples = (
        bound[0] for bound in confusion.f1_interval(one, example, counts, whole, of=_balanced, level=level)
    )
    value = _balanced(whole)[0]
    if (gold == judged).all() and not np.isnan(value):
        low, high = rows[0]["low"], 1.0
    rows.insert(0, _row(F1, value, low, high, len(gold), n_examples))
    table = pd.DataFrame(rows)
    return table.assign(reason=np.where(table["value"].isna(), _missing(gold), ""))


def _row(measure: str, value: float, low: float, high: float, n: int, n_examples: int) -> dict[str, Any]:
    return {
        "measure": measure,
        "value": float(value),
        "low": float(low),
        "high": float(high),
        "n": int(n),
        "n_examples": int(n_examples),
    }


def _missing(gold: npt.NDArray[np.bool_]) -> str:
    if not len(gold):
        return "no item has both a gold label and the judge's"
    return "no gold label is not met" if gold.all() else "no gold label is met"


def _balanced(counts: Floats) -> Floats:
    """Macro F1; a label that the judge never gives has F1 0, one that the gold labels do not hold leaves it NaN."""
    both, judge_only, gold_only, neither = counts.T
    with np.errstate(divide="ignore", invalid="ignore"):
        found = both / (2 * both + judge_only + gold_only) + neither / (2 * neither + judge_only + gold_only)
    return np.where((neither + judge_only > 0) & (both + gold_only > 0), found, np.nan)


def failures(measures: pd.DataFrame, bounds: Mapping[str, float], *, by: str = POINT) -> list[str]:
    """Which bounds are not reached, a sentence each; empty where all are.

    Args:
        measures: As `gold_check` gives them.
        bounds: Measure to the least value.
        by: `POINT` or `LOW`: what has to reach it. An undefined value reaches no bound.
    """
    said = []
    for row in measures.to_dict(orient="records"):
        name, value = str(row["measure"]), row["value" if by == POINT else "low"]
        if name not in bounds or value >= bounds[name]:
            continue
        what = MEASURES[name] if by == POINT else f"lower end of {MEASURES[name]}"
        why = row["reason"] or "its interval cannot be computed"
        got = f"is undefined ({why})" if np.isnan(value) else f"{value:.3f} came"
        said.append(f"{what}: {got}, at least {bounds[name]:g} was expected")
    return said
