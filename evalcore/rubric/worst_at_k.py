"""Worst-at-k: the score that a model is expected to reach at the worst of k of its answers to an example."""

import numpy as np
import pandas as pd
from scipy.special import comb

from evalcore.stats.intervals import LEVEL
from evalcore.stats.means import SCORE_COLUMNS, as_scores, cells_of, clustered_means
from evalcore.stats.resampling import Codes, Floats

COLUMNS = (
    "model", "evaluation", "k", "n_examples", "n_left_out", *SCORE_COLUMNS,
)  # fmt: skip


def worst_at_k(responses: pd.DataFrame, *, level: float = LEVEL) -> pd.DataFrame:
    """The expected lowest score of k answers to one example, drawn from the N that the model gave, for every k that some example has.

    With the scores of an example in order, x_1 <= ... <= x_N, the mean of the minimum over all subsets of k is

        sum_j C(N - j, k - 1) / C(N, k) x_j

    and worst-at-k is its mean over examples, clipped to [0, 1]. At k = 1 it is the mean of the examples' mean scores.

    Args:
        responses: As `comparison.response_scores` gives them. One without a score is no answer to draw.
        level: Of confidence, in (0, 1).

    Returns:
        One row a model, evaluation and k from 1 to the most scored answers that one of its examples has: model, evaluation, k, n_examples (with k
        scored answers or more), n_left_out (with fewer: undefined), raw_mean (may be negative) with the t interval over examples
        raw_low to raw_high, and score, low, high, which are the same clipped to [0, 1]. The interval is NaN with one example, or where all have
        the same value. Where n_examples falls along k, the curve compares different examples.

    Source: arXiv 2505.08775, section on reliability.
    """
    cells, which = cells_of(responses, ["model", "evaluation"])
    examples = pd.factorize(responses["example_id"].to_numpy())[0]
    score = responses["score"].to_numpy(dtype=float)
    n_examples = int(examples.max(initial=0)) + 1
    of_example, pairs = pd.factorize(cells * n_examples + examples, sort=True)
    n_scored = np.bincount(of_example, ~np.isnan(score), len(pairs)).astype(np.int64)
    order = np.lexsort((score, of_example))
    order = order[~np.isnan(score[order])]
    mine, ordered = of_example[order], score[order]
    place = np.arange(len(mine)) - (np.cumsum(n_scored) - n_scored)[mine] + 1  # j, from 1
    cell_of, example_of = np.divmod(pairs, n_examples)
    parts = []
    for k in range(1, int(n_scored.max(initial=0)) + 1):
        n = n_scored[mine]
        lowest = np.bincount(mine, _share_of_subsets(n, place, k) * ordered, len(pairs)).astype(float)
        kept = n_scored >= k
        means = clustered_means(cell_of[kept], example_of[kept], lowest[kept], n_cells=len(which), level=level)
        found = as_scores(means).assign(k=k, cell=np.arange(len(which)), n_examples=means["n_clusters"])
        found["n_left_out"] = np.bincount(cell_of, minlength=len(which)) - means["n_clusters"]
        parts.append(found.loc[found["n_examples"].gt(0)])
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    found = pd.concat(parts).sort_values(["cell", "k"], kind="stable", ignore_index=True)
    named = which.take(found["cell"].to_numpy()).reset_index(drop=True)
    return found.assign(model=named["model"], evaluation=named["evaluation"])[list(COLUMNS)]


def _share_of_subsets(n: Codes, place: Codes, k: int) -> Floats:
    """Of the subsets of k out of n, the share in which the value at this place is the lowest."""
    share = np.zeros(len(n))
    np.divide(comb(n - place, k - 1), comb(n, k), out=share, where=n >= k)
    return share
