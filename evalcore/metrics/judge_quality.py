"""Balanced F1 of judges and of physicians against physicians, as HealthBench's meta-evaluation counts it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.opinions import Opinions
from evalcore.metrics.pairs import COUNTS, JUDGE, PHYSICIAN, PHYSICIANS, judge_pairs, physician_pairs, together

OVERALL, CATEGORY = "overall", "category"
GROUPINGS = (OVERALL, CATEGORY)
COLUMNS = [
    "rater_kind", "rater", "grouping", "group", "n_pairs", "n_items", "n_examples", *COUNTS, "share_met", "share_met_by_others",
    "precision_met", "recall_met", "f1_met", "precision_not_met", "recall_not_met", "f1_not_met", "balanced_f1", "low", "high", "undefined",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]


def balanced_f1(
    opinions: Opinions, *, by: Sequence[str] = GROUPINGS, jury: bool = True, level: float = LEVEL
) -> pd.DataFrame:
    """How well each judge, each physician, and all physicians together say what physicians say: F1 of both classes, and their plain mean.

    A pair is a rater's label and one physician's blind first read of the same item: an item with three reads makes three pairs with a
    judge, and each of its physicians makes two. Of the pairs of a group, with n_both, n_rater_only, n_other_only, n_neither:

        precision_met = n_both / (n_both + n_rater_only)    recall_met = n_both / (n_both + n_other_only)
        f1_met        = 2 n_both / (2 n_both + n_rater_only + n_other_only); not met likewise, from n_neither
        balanced_f1   = (f1_met + f1_not_met) / 2           macro F1; a coin reaches 0.5 where half is met

    A class that the rater or the other physicians never say has no precision or no recall, and then neither F1 nor the mean is
    defined: NaN, with the reason, and never 0. (scikit-learn's macro F1 says 0 for the class there; elsewhere it is the same number.)

    Intervals cluster by example: delete-one-example jackknife on the four sums, t with n_examples - 1 degrees of freedom, cut at 0 and 1.
    No interval (NaN) where the value is undefined, where one example alone holds a class, with one example, and where
    nothing varies between examples.

    Args:
        opinions: What everybody says; all items enter, whether drawn or not.
        by: Some of `GROUPINGS`; category is the criterion's cluster, and items without one are left out of it.
        jury: Two judges and more enter as their majority and their mean too (`pairs.judge_pairs`).
        level: Of confidence, in (0, 1).

    Returns:
        One row a rater and group with a pair, judges first, then all physicians together, then each physician: rater_kind (`judge`,
        `physicians` or `physician`), rater, grouping (`overall` or `category`), group, n_pairs, n_items, n_examples, the four counts,
        share_met and share_met_by_others (of the pairs, those that the rater and that the other physician calls met), precision,
        recall and F1 of the classes met and not met, balanced_f1 with its interval low to high, all in [0, 1], and undefined: why
        there is no balanced F1, empty where there is one.

    Raises:
        ValueError: `by` names something else.

    References:
        Arora et al. 2025, HealthBench (arXiv 2505.08775), section 8, and openai/simple-evals, healthbench_meta_eval.
    """
    if unknown := sorted(set(by) - set(GROUPINGS)):
        msg = f"by: {', '.join(unknown)} came, expected some of {', '.join(GROUPINGS)}"
        raise ValueError(msg)
    among = physician_pairs(opinions)
    examples = pd.factorize(opinions.items["example_id"])[0]
    parts = [
        _of_kind(pairs, grouping, opinions.items, examples, level=level)
        for pairs in (judge_pairs(opinions, jury=jury), together(among), among)
        for grouping in dict.fromkeys(by)
    ]
    table = pd.concat(parts, ignore_index=True)
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(table["rater_kind"]))}
    return table.sort_values("rater_kind", key=lambda column: column.map(kinds), kind="stable", ignore_index=True)


def f1_scores(counts: Floats) -> pd.DataFrame:
    """Precision, recall and F1 of both classes, and the balanced F1, from counts of pairs.

    Args:
        counts: One row a group: n_both, n_rater_only, n_other_only, n_neither.

    Returns:
        The same rows; NaN where undefined (see `balanced_f1`).

    >>> f1_scores(np.array([[40.0, 10, 20, 30]]))[["f1_met", "f1_not_met", "balanced_f1"]].round(3).to_numpy().tolist()
    [[0.727, 0.667, 0.697]]
    """
    both, rater_only, other_only, neither = np.asarray(counts, dtype=float).T
    table: dict[str, Floats] = {}
    for name, right, false, missed in (
        ("met", both, rater_only, other_only),
        ("not_met", neither, other_only, rater_only),
    ):
        precision, recall = _ratio(right, right + false), _ratio(right, right + missed)
        defined = ~np.isnan(precision) & ~np.isnan(recall)
        f1 = np.where(defined, _ratio(2 * right, 2 * right + false + missed), math.nan)
        table |= {f"precision_{name}": precision, f"recall_{name}": recall, f"f1_{name}": f1}
    table["balanced_f1"] = (table["f1_met"] + table["f1_not_met"]) / 2
    return pd.DataFrame(table)


def _ratio(part: Floats, whole: Floats) -> Floats:
    ratio: Floats = np.divide(part, whole, out=np.full(len(whole), math.nan), where=whole > 0)
    return ratio


def _of_kind(
    pairs: pd.DataFrame, grouping: str, items: pd.DataFrame, examples: Numbers, *, level: float
) -> pd.DataFrame:
    """The rows of one kind of rater and one grouping."""
    rows = pairs["row"].to_numpy()
    groups, names = _groups(items, grouping)
    kept = np.flatnonzero(groups[rows] >= 0)
    n_groups = max(len(names), 1)
    cells, numbers = pd.factorize(
        pairs["rater"].cat.codes.to_numpy(dtype=np.int64)[kept] * n_groups + groups[rows[kept]], sort=True
    )
    raters, of_group = np.divmod(np.asarray(numbers, dtype=np.int64), n_groups)
    counts = pairs[list(COUNTS)].to_numpy(dtype=float)[kept]
    sums = _sums(cells, counts, len(numbers))
    found = f1_scores(sums)
    low, high, n_examples = _jackknife(cells, examples[rows[kept]], counts, sums, level=level)
    return pd.DataFrame(
        {
            "rater_kind": str(pairs["rater_kind"].cat.categories[0]),
            "rater": pairs["rater"].cat.categories.to_numpy(dtype=object)[raters],
            "grouping": grouping,
            "group": np.asarray(names, dtype=object)[of_group],
            "n_pairs": sums.sum(axis=1).astype(np.int64),
            "n_items": np.bincount(cells, minlength=len(numbers)),
            "n_examples": n_examples,
            **dict(zip(COUNTS, sums.astype(np.int64).T, strict=True)),
            "share_met": _ratio(sums[:, 0] + sums[:, 1], sums.sum(axis=1)),
            "share_met_by_others": _ratio(sums[:, 0] + sums[:, 2], sums.sum(axis=1)),
            **found,
            "low": low,
            "high": high,
            "undefined": _reasons(sums, str(pairs["rater_kind"].cat.categories[0])),
        },
        columns=COLUMNS,
    )


def _groups(items: pd.DataFrame, grouping: str) -> tuple[Numbers, Sequence[str]]:
    """The group of each item as a number, -1 where it has none, and the groups' names."""
    if grouping == OVERALL:
        return np.zeros(len(items), dtype=np.int64), [OVERALL]
    clusters = items["cluster"].astype("category")
    clusters = clusters.cat.set_categories(sorted(clusters.cat.categories))
    return clusters.cat.codes.to_numpy(dtype=np.int64), list(clusters.cat.categories)


def _sums(codes: Numbers, counts: Floats, n: int) -> Floats:
    """The counts added up by code: a row a code."""
    summed = [np.bincount(codes, weights=column, minlength=n) for column in counts.T]
    return np.column_stack(summed).astype(np.float64)


def _jackknife(
    cells: Numbers, examples: Numbers, counts: Floats, sums: Floats, *, level: float
) -> tuple[Floats, Floats, Numbers]:
    """Bounds of the balanced F1 of each cell, and how many examples it has.

    theta_g = F1 of the sums without example g;  V = (G-1)/G sum_g (theta_g - mean theta)^2;  F1 +- t(G-1) sqrt(V)
    """
    n = len(sums)
    n_names = int(examples.max(initial=0)) + 1
    units, numbers = pd.factorize(cells * n_names + examples)
    of_cell = np.asarray(numbers, dtype=np.int64) // n_names
    n_examples = np.bincount(of_cell, minlength=n)
    without = _balanced(sums[of_cell] - _sums(units, counts, len(numbers)))
    deviation = without - (np.bincount(of_cell, weights=without, minlength=n) / np.maximum(n_examples, 1))[of_cell]
    spread = np.bincount(of_cell, weights=deviation**2, minlength=n)
    variance = spread * (n_examples - 1) / np.maximum(n_examples, 1)
    varies = variance > np.finfo(float).eps  # of numbers in [0, 1]: less is rounding
    half = np.where(varies, stdtrit(np.maximum(n_examples - 1, 1), (1 + level) / 2) * np.sqrt(variance), math.nan)
    value = _balanced(sums)
    return np.clip(value - half, 0, 1), np.clip(value + half, 0, 1), n_examples


def _balanced(counts: Floats) -> Floats:
    return f1_scores(counts)["balanced_f1"].to_numpy()


_WHO = {
    JUDGE: ("it never says", "physicians never say"),
    PHYSICIAN: ("this physician never says", "the others never say"),
    PHYSICIANS: ("physicians never say", "physicians never say"),
}


def _reasons(sums: Floats, kind: str) -> list[str]:
    """Why there is no balanced F1, in words: which class is never said, and by whom; empty where there is one."""
    both, rater_only, other_only, neither = sums.T
    rater, others = _WHO[kind]
    never = {
        f"{rater} met": both + rater_only,
        f"{rater} not met": other_only + neither,
        f"{others} met": both + other_only,
        f"{others} not met": rater_only + neither,
    }
    return [", ".join(words for words, said in never.items() if said[number] == 0) for number in range(len(sums))]
