"""Judge-check: a judge against adjudicated labels, with bounds that it must reach; for the continuous integration of prompts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics.intervals import LEVEL, share_interval

F1, ACCURACY, SENSITIVITY, SPECIFICITY = "f1", "accuracy", "sensitivity", "specificity"
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

    The interval of F1 is a delete-one-example jackknife with t(G-1), clipped to [0, 1]; the others are `share_interval`. A judge without
    an error shows no spread to a jackknife: then the lower end of F1 is that of accuracy.

    Args:
        pairs: One row an item: gold (True: met), judged (True: met), example (what it belongs to). Only items with both labels.
        level: Of confidence, in (0, 1).

    Returns:
        One row a measure, in the order of `MEASURES`: measure, value, low, high in [0, 1], n (items), n_examples, reason (why value
        is NaN; else empty). Sensitivity is NaN where no gold label is met, specificity where all are, F1 in both cases.
    """
    gold, judged = (pairs[name].to_numpy(dtype=bool) for name in ("gold", "judged"))
    example, numbers = pd.factorize(pairs["example"])
    right = gold == judged
    rows = []
    for measure, mask in ((ACCURACY, np.ones_like(gold)), (SENSITIVITY, gold), (SPECIFICITY, ~gold)):
        found = share_interval(right[mask], example[mask], level=level)
        rows.append(_row(measure, found.share, found.low, found.high, found.n, found.n_clusters))
    value, low, high = _f1(gold, judged, np.asarray(example, dtype=np.int64), level)
    if right.all() and not np.isnan(value):
        low, high = rows[0]["low"], 1.0
    rows.insert(0, _row(F1, value, low, high, len(gold), len(numbers)))
    table = pd.DataFrame(rows)
    missing = _missing(gold)
    undefined = table["value"].isna()
    return table.assign(reason=np.where(undefined, missing, ""))


def _row(measure: str, value: float, low: float, high: float, n: int, n_examples: int) -> dict[str, Any]:
    return {"measure": measure, "value": value, "low": low, "high": high, "n": n, "n_examples": n_examples}


def _missing(gold: npt.NDArray[np.bool_]) -> str:
    if not len(gold):
        return "no item has both a gold label and the judge's"
    return "no gold label is not met" if gold.all() else "no gold label is met"


def _f1(
    gold: npt.NDArray[np.bool_], judged: npt.NDArray[np.bool_], example: npt.NDArray[np.int64], level: float
) -> tuple[float, float, float]:
    if not len(gold) or gold.all() or not gold.any():
        return np.nan, np.nan, np.nan
    kinds = 2 * gold.astype(np.int64) + judged  # TN, FP, FN, TP
    n_examples = int(example.max()) + 1
    cells = np.bincount(example * 4 + kinds, minlength=4 * n_examples).reshape(n_examples, 4).astype(float)
    whole = cells.sum(axis=0)
    value = float(_balanced(whole[None])[0])
    without = _balanced(whole - cells)
    if n_examples < 2 or np.isnan(without).any():  # noqa: PLR2004 - nothing to leave out; or one example alone holds a class
        return value, np.nan, np.nan
    variance = (n_examples - 1) / n_examples * float(((without - without.mean()) ** 2).sum())
    half = float(stdtrit(n_examples - 1, (1 + level) / 2)) * np.sqrt(variance)
    return value, max(value - half, 0.0), min(value + half, 1.0)


def _balanced(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of rows of TN, FP, FN, TP; NaN where a class does not occur in the gold labels."""
    tn, fp, fn, tp = counts.T
    with np.errstate(divide="ignore", invalid="ignore"):
        found = tp / (2 * tp + fp + fn) + tn / (2 * tn + fp + fn)
    return np.where((tn + fp > 0) & (tp + fn > 0), found, np.nan)


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
