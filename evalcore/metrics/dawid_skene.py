"""Who differs from whom: each rater's habits against a label that nobody knows (Dawid and Skene 1979). For exploration alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from evalcore.metrics.agreement_labels import value_codes
from evalcore.metrics.agreement_sums import Codes, Floats

N_STEPS = 2_000
CLOSE = 1e-9
TINY = 1e-300  # keeps the logarithm of a habit that was never seen finite


@dataclass(frozen=True)
class Habits:
    """What `dawid_skene` finds.

    Attributes:
        shares: Of each category, how much of the items the raters' shared label is estimated to be, in [0, 1], sum 1; NaN without items.
        raters: One row a rater and category of the shared label: rater, shared, n_labels (of the rater), and one column a category: how often
            the rater says it of such items, in [0, 1]; each row adds up to 1.
        n_items: Items with two labels or more.
        settled: The estimate had stopped moving.
    """

    shares: pd.Series
    raters: pd.DataFrame
    n_items: int
    settled: bool


def dawid_skene(
    labels: pd.DataFrame,
    *,
    categories: Sequence[str] | None = None,
    pseudo_counts: tuple[float, float] = (4.0, 1.0),
) -> Habits:
    """Each rater's habits and the shares of the categories, by the EM algorithm from the mean vote on.

        E  T_ij ~ p_j prod_r prod_l (h_rjl)^(n_irl)          how likely item i is of category j
        M  p_j = mean_i T_ij,  h_rjl ~ prior_jl + sum_i T_ij n_irl

    n_irl: how often rater r gave item i the label l. The prior adds labels that nobody gave, so that a rater with few labels is taken for a
    fairly good one. It assumes that raters err on their own: errors that they share count as truth, and it is surer than it should be. So it is for
    finding raters whose habits differ, never an input of an estimate.

    Args:
        labels: One row a label: unit, rater, value (missing: could not assess, left out). A rater may label an item more than once. Items with one
            label tell nothing and are left out.
        categories: All that could be given, in their order; default: those of `value`, sorted where it is not categorical.
        pseudo_counts: Added to each habit: of agreeing with the shared label, and of each other one. (0, 0) is the estimate of 1979.
    """
    every, names = value_codes(labels["value"], categories)
    all_units, known = pd.factorize(labels["unit"])[0], every >= 0
    known &= np.bincount(all_units[known], minlength=len(labels))[all_units] > 1
    raters = labels["rater"].loc[known].astype("category").cat.remove_unused_categories()
    codes, units = pd.factorize(all_units[known])
    unit, rater, value = np.asarray(codes, dtype=np.int64), np.asarray(raters.cat.codes, dtype=np.int64), every[known]
    n, n_raters, size = len(units), len(raters.cat.categories), len(names)
    given = np.bincount((rater * size + value), minlength=n_raters * size).reshape(n_raters, size)
    prior = np.full((size, size), pseudo_counts[1]) + np.eye(size) * (pseudo_counts[0] - pseudo_counts[1])
    likely = np.bincount(unit * size + value, minlength=n * size).reshape(n, size).astype(float)
    likely /= np.maximum(likely.sum(axis=1, keepdims=True), 1)
    habits, shares, moved = np.zeros((n_raters, size, size)), np.full(size, np.nan), np.inf
    for _ in range(N_STEPS if n else 0):
        shares = likely.mean(axis=0)
        habits = _habits(likely, unit, rater, value, n_raters) + prior
        habits /= np.maximum(habits.sum(axis=2, keepdims=True), TINY)
        each = np.log(np.maximum(habits, TINY))[rater, :, value]
        score = np.stack([np.bincount(unit, weights=column, minlength=n) for column in each.T], axis=1)
        score += np.log(np.maximum(shares, TINY))
        new = np.exp(score - score.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        moved, likely = float(np.abs(new - likely).max()), new
        if moved < CLOSE:
            break
    words = [str(name) for name in names]
    table = pd.DataFrame(habits.reshape(n_raters * size, size), columns=words)
    table.insert(0, "rater", np.repeat(np.array(raters.cat.categories, dtype=object), size))
    table.insert(1, "shared", np.tile(np.array(words, dtype=object), n_raters))
    table.insert(2, "n_labels", np.repeat(given.sum(axis=1), size))
    return Habits(pd.Series(shares, index=words), table, n, moved < CLOSE)


def _habits(likely: Floats, unit: Codes, rater: Codes, value: Codes, n_raters: int) -> Floats:
    """Expected counts (raters, shared category, label given)."""
    size = likely.shape[1]
    place = rater * size + value
    counts = [np.bincount(place, weights=likely[unit, j], minlength=n_raters * size).astype(float) for j in range(size)]
    return np.stack(counts, axis=1).reshape(n_raters, size, size).transpose(0, 2, 1)
