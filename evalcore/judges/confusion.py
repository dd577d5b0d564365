"""The weighted confusion of a rater's labels with physicians': every measure of a judge's quality is a view of it."""

import math
from collections.abc import Callable, Collection

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.stats.arrays import Floats, quotient
from evalcore.stats.intervals import LEVEL, AnyNumbers, grouped_shares

ACCURACY, SENSITIVITY, SPECIFICITY = "accuracy", "sensitivity", "specificity"
MEASURES = (ACCURACY, SENSITIVITY, SPECIFICITY)
_ROUNDING = 1e-9


def rates(
    counts: AnyNumbers,
    weights: Floats,
    examples: AnyNumbers,
    groups: AnyNumbers,
    n_groups: int,
    measures: Collection[str] = MEASURES,
) -> dict[str, pd.DataFrame]:
    """Accuracy, sensitivity and specificity of each group, or some of them, weighted, with intervals clustered by example.

        accuracy = w (n_both + n_neither) / w n      sensitivity = w n_both / w (n_both + n_other_only)
        specificity = w n_neither / w (n_neither + n_rater_only)                    each summed over the rows of the group

    `counts` has one row an item (`quality.COUNTS`). By measure one row a group, as `grouped_shares` gives them: n and n_hits count pairs, unweighted.
    """
    both, rater_only, other_only, neither = counts.T
    parts = {
        ACCURACY: (both + neither, rater_only + other_only),
        SENSITIVITY: (both, other_only),
        SPECIFICITY: (neither, rater_only),
    }
    tables = {}
    for measure in measures:
        right, wrong = parts[measure]
        n = right + wrong
        kept = np.flatnonzero(n)
        of_items = right[kept], examples[kept], groups[kept]
        shares = grouped_shares(*of_items, n_groups, sizes=n[kept], weights=weights[kept])
        tables[measure] = shares.drop(columns="design_effect").astype({"n_hits": np.int64})
    return tables


def f1_scores(counts: Floats) -> pd.DataFrame:
    """Precision, recall and F1 of both classes, and the balanced F1, from weighted counts of pairs; NaN where undefined (see `quality.balanced_f1`)."""
    both, rater_only, other_only, neither = np.asarray(counts, dtype=float).T
    table: dict[str, Floats] = {}
    sides = (("met", both, rater_only, other_only), ("not_met", neither, other_only, rater_only))
    for name, right, false, missed in sides:
        precision, recall = quotient(right, right + false), quotient(right, right + missed)
        defined = ~np.isnan(precision) & ~np.isnan(recall)
        f1 = np.where(defined, quotient(2 * right, 2 * right + false + missed), math.nan)
        table |= {f"precision_{name}": precision, f"recall_{name}": recall, f"f1_{name}": f1}
    table["balanced_f1"] = (table["f1_met"] + table["f1_not_met"]) / 2
    return pd.DataFrame(table)


def balanced(counts: Floats) -> Floats:
    """The balanced F1 of rows of counts, as `f1_scores`."""
    return f1_scores(counts)["balanced_f1"].to_numpy()


def sums(codes: AnyNumbers, counts: Floats, n: int) -> Floats:
    """The counts added up by code: a row a code."""
    summed = [np.bincount(codes, weights=column, minlength=n) for column in counts.T]
    return np.column_stack(summed).astype(np.float64)


def f1_interval(
    groups: AnyNumbers,
    examples: AnyNumbers,
    counts: Floats,
    whole: Floats,
    *,
    of: Callable[[Floats], Floats] = balanced,
) -> tuple[Floats, Floats, AnyNumbers]:
    """Bounds of the balanced F1 (or what else `of` measures of rows of counts) of each group, and how many examples it has.

    theta_g = F1 of the sums without example g;  V = (G-1)/G sum_g (theta_g - mean theta)^2;  F1 +- t(G-1) sqrt(V), cut at 0 and 1. NaN where one
    example alone holds a class, with one example, and where nothing varies. `counts` are weighted, one row an item; `whole` is their `sums` by group.
    """
    n = len(whole)
    n_names = int(examples.max(initial=0)) + 1
    units, numbers = pd.factorize(groups * n_names + examples)
    of_group = np.asarray(numbers, dtype=np.int64) // n_names
    n_examples = np.bincount(of_group, minlength=n)
    left = whole[of_group] - sums(units, counts, len(numbers))
    left[left < _ROUNDING * whole[of_group]] = 0  # a weighted class that the example alone holds
    without = of(left)
    deviation = without - (np.bincount(of_group, weights=without, minlength=n) / np.maximum(n_examples, 1))[of_group]
    spread = np.bincount(of_group, weights=deviation**2, minlength=n)
    variance = spread * (n_examples - 1) / np.maximum(n_examples, 1)
    varies = variance > np.finfo(float).eps  # of numbers in [0, 1]: less is rounding
    half = np.where(varies, stdtrit(np.maximum(n_examples - 1, 1), (1 + LEVEL) / 2) * np.sqrt(variance), math.nan)
    value = of(whole)
    return np.clip(value - half, 0, 1), np.clip(value + half, 0, 1), n_examples
