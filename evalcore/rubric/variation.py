"""How a judge's scores vary between a model's responses: the worst of k answers to an example, and longer against shorter ones."""

import numpy as np
import pandas as pd
from scipy.special import comb, stdtrit

from evalcore.stats.arrays import Floats, Numbers, Truths, cells_of, quotient
from evalcore.stats.intervals import LEVEL, NO_SPREAD, SCORE_COLUMNS, as_scores, clustered_means

WORST_COLUMNS = ("model", "evaluation", "k", "n_examples", "n_left_out", *SCORE_COLUMNS)
PER_CHARS = 1_000
"""Slopes are said as points of score a thousand characters."""
N_BINS = 5
MIN_SLOPE_EXAMPLES = 3
"""A line through two examples fits them exactly and has no interval."""
SLOPE_COLUMNS = (
    "model", "evaluation", "n_examples", "n_responses", "n_left_out", "mean_chars", *SCORE_COLUMNS, "slope", "slope_low", "slope_high",
    "correlation",
)  # fmt: skip
BIN_COLUMNS = (
    "model", "evaluation", "bin", "from_chars", "to_chars", "mean_chars", "n_examples", "n_responses", *SCORE_COLUMNS,
)  # fmt: skip


def worst_at_k(responses: pd.DataFrame) -> pd.DataFrame:
    """The expected lowest score of k answers to one example, drawn from the N that the model gave, for every k that some example has.

    With the scores of an example in order, x_1 <= ... <= x_N, the mean of the minimum over all subsets of k is

        sum_j C(N - j, k - 1) / C(N, k) x_j

    and worst-at-k is its mean over examples, clipped to [0, 1]. At k = 1 it is the mean of the examples' mean scores.
    A response without a score (`scores.response_scores`) is no answer to draw.

    Returns:
        One row a model, evaluation and k from 1 to the most scored answers that one of its examples has: model, evaluation, k, n_examples (with k
        scored answers or more), n_left_out (with fewer: undefined), raw_mean (may be negative) with the t interval over examples
        raw_low to raw_high, and score, low, high, which are the same clipped to [0, 1]. The interval is NaN with one example, or where all have
        the same value. Where n_examples falls along k, the curve compares different examples.

    Source: arXiv 2505.08775, section on reliability.
    """
    cells, keys = cells_of(responses, ["model", "evaluation"])
    examples = pd.factorize(responses["example_id"].to_numpy())[0]
    score = responses["score"].to_numpy(dtype=float)
    n_examples = int(examples.max(initial=0)) + 1
    of_example, pairs = pd.factorize(cells * n_examples + examples, sort=True)
    n_scored = np.bincount(of_example, ~np.isnan(score), len(pairs)).astype(np.int64)
    order = np.lexsort((score, of_example))
    order = order[~np.isnan(score[order])]
    example, ordered = of_example[order], score[order]
    place = np.arange(len(example)) - (np.cumsum(n_scored) - n_scored)[example] + 1  # j, from 1
    cell_of, example_of = np.divmod(pairs, n_examples)
    tables = []
    for k in range(1, int(n_scored.max(initial=0)) + 1):
        lowest = np.bincount(example, _share_of_subsets(n_scored[example], place, k) * ordered, len(pairs))
        kept = n_scored >= k
        means = clustered_means(cell_of[kept], example_of[kept], lowest.astype(float)[kept], n_cells=len(keys))
        table = as_scores(means).assign(k=k, cell=np.arange(len(keys)), n_examples=means["n_clusters"])
        table["n_left_out"] = np.bincount(cell_of, minlength=len(keys)) - means["n_clusters"]
        tables.append(table.loc[table["n_examples"].gt(0)])
    if not tables:
        return pd.DataFrame(columns=list(WORST_COLUMNS))
    table = pd.concat(tables).sort_values(["cell", "k"], kind="stable", ignore_index=True)
    return table.join(keys, on="cell")[list(WORST_COLUMNS)]


def _share_of_subsets(n: Numbers, place: Numbers, k: int) -> Floats:
    """Of the subsets of k out of n, the share in which the value at this place is the lowest."""
    return np.asarray(np.divide(comb(n - place, k - 1), comb(n, k), out=np.zeros(len(n)), where=n >= k))


def length_slopes(responses: pd.DataFrame) -> pd.DataFrame:
    """By how much a model's score rises with the length of its response: a line through all its responses, interval by example.

    It is a relation, not an effect of length. With lengths x in thousands of characters, x' = x - mean, residuals r, S = sum x'^2, and G examples:

        slope b = sum x' s / S,    v = G/(G-1) (n-1)/(n-2) sum_g (sum_{i in g} x'_i r_i)^2 / S^2,    b +- t(G-1) sqrt(v)

    A response without a score or length (`scores.response_scores`) is left out and counted.

    Returns:
        One row a model and evaluation: model, evaluation, n_examples, n_responses, n_left_out (responses), mean_chars; raw_mean of
        these responses with raw_low and raw_high, and score, low, high clipped to [0, 1]; slope (score a thousand characters) with slope_low and
        slope_high; correlation in [-1, 1] (Pearson's, over responses). Slope and correlation are
        NaN where all lengths are the same (correlation also where all scores are), the slope's interval with fewer than three examples or
        where the line fits exactly.

    Source: the interval is the cluster-robust one (CR1; Liang and Zeger 1986), as statsmodels' `fit(cov_type="cluster")`.
    """
    every_cell, examples, kept, keys = _cells(responses)
    n_cells = len(keys)
    cells, examples = every_cell[kept], examples[kept]
    x = responses["n_chars"].to_numpy(dtype=float)[kept] / PER_CHARS
    y = responses["score"].to_numpy(dtype=float)[kept]
    n = np.bincount(cells, minlength=n_cells)
    mean_x, mean_y = (quotient(np.bincount(cells, values, n_cells), n) for values in (x, y))
    dx, dy = x - mean_x[cells], y - mean_y[cells]
    square, cross, spread = (np.bincount(cells, values, n_cells) for values in (dx**2, dx * dy, dy**2))
    square = np.where(square > NO_SPREAD, square, 0.0)
    slope = quotient(cross, square)
    residual = dy - slope[cells] * dx
    width = int(examples.max(initial=0)) + 1
    both, pairs = pd.factorize(cells * width + examples)
    cell_of = pairs // width
    n_examples = np.bincount(cell_of, minlength=n_cells)
    meat = np.bincount(cell_of, np.bincount(both, dx * residual, len(pairs)) ** 2, n_cells)
    enough = (n_examples >= MIN_SLOPE_EXAMPLES) & (n > 2)  # noqa: PLR2004 - two coefficients
    correction = quotient(n_examples * (n - 1.0), np.where(enough, (n_examples - 1.0) * (n - 2.0), 0.0))
    error = np.sqrt(correction * quotient(meat, square**2))
    error[error <= NO_SPREAD] = np.nan
    half = stdtrit(np.where(enough, n_examples - 1, np.nan), (1 + LEVEL) / 2) * error
    table = keys.assign(
        n_examples=n_examples,
        n_responses=n,
        n_left_out=np.bincount(every_cell, minlength=n_cells) - n,
        mean_chars=mean_x * PER_CHARS,
        slope=slope,
        slope_low=slope - half,
        slope_high=slope + half,
        correlation=quotient(cross, np.sqrt(square * np.where(spread > NO_SPREAD, spread, 0.0))).clip(-1, 1),
        **as_scores(clustered_means(cells, examples, y, n_cells=n_cells)),
    )
    return table[list(SLOPE_COLUMNS)]


def length_finding(slopes: pd.DataFrame) -> str:
    """Whose score rises or falls with the length of the response, by `length_slopes` of one evaluation: only where the slope's interval leaves out 0.

    >>> table = pd.DataFrame(
    ...     {"model": ["A", "B"], "slope": [0.2, 0.1], "slope_low": [0.1, -0.1], "slope_high": [0.3, 0.3]}
    ... )
    >>> length_finding(table)
    'Longer responses of A score higher by 0.200 [0.100, 0.300] per 1,000 characters; of the other models none is shown to score higher or lower.'
    >>> length_finding(table.iloc[1:])
    'No model is shown to score higher or lower where its responses are longer.'
    """
    shown = slopes.loc[slopes["slope_low"].gt(0) | slopes["slope_high"].lt(0)]
    if shown.empty:
        return "No model is shown to score higher or lower where its responses are longer."
    parts = []
    for row in shown.to_dict(orient="records"):
        low, high = sorted(abs(row[f"slope_{end}"]) for end in ("low", "high"))
        way = "higher" if row["slope"] > 0 else "lower"
        parts.append(
            f"of {row['model']} score {way} by {abs(row['slope']):.3f} [{low:.3f}, {high:.3f}] per 1,000 characters"
        )
    others = "; of the other models none is shown to score higher or lower" if len(shown) < len(slopes) else ""
    return f"Longer responses {'; '.join(parts)}{others}."


def length_bins(responses: pd.DataFrame, *, n_bins: int = N_BINS) -> pd.DataFrame:
    """Mean scores of each model's responses by length, in at most `n_bins` bins that all models share.

    Bins hold about as many of all responses each; equal lengths are never apart. A response without a score or length is left out
    (`length_slopes` counts them).

    Returns:
        One row a model, evaluation and bin that holds a response of it: model, evaluation, bin (from 1), from_chars and to_chars
        (both inclusive, the shortest and the longest response in the bin), mean_chars (of the model's), n_examples, n_responses,
        raw_mean with the interval raw_low to raw_high, clustered by example (NaN with one example, or where all score the same), and
        score, low, high clipped to [0, 1].
    """
    cells, examples, kept, keys = _cells(responses)
    cells, examples = cells[kept], examples[kept]
    chars = responses["n_chars"].to_numpy(dtype=float)[kept]
    score = responses["score"].to_numpy(dtype=float)[kept]
    if not len(chars):
        return pd.DataFrame(columns=list(BIN_COLUMNS))
    edges = np.unique(np.quantile(chars, np.arange(1, n_bins) / n_bins, method="lower"))
    place = pd.factorize(np.searchsorted(edges, chars, side="left"), sort=True)[0]
    lengths = pd.Series(chars).groupby(place)
    first, last = lengths.min().to_numpy(), lengths.max().to_numpy()
    n_filled = len(first)
    at = cells * n_filled + place
    means = clustered_means(at, examples, score, n_cells=len(keys) * n_filled)
    row, number = np.divmod(np.arange(len(means)), n_filled)
    table = keys.take(row).reset_index(drop=True).assign(
        bin=number + 1,
        from_chars=first[number],
        to_chars=last[number],
        mean_chars=quotient(np.bincount(at, chars, len(means)), means["n_values"]),
        n_examples=means["n_clusters"],
        n_responses=means["n_values"],
        **as_scores(means),
    )  # fmt: skip
    return table.loc[table["n_responses"].gt(0), list(BIN_COLUMNS)].reset_index(drop=True)


def _cells(responses: pd.DataFrame) -> tuple[Numbers, Numbers, Truths, pd.DataFrame]:
    """Number of each response's model and evaluation, number of its example, whether it counts; models and evaluations by number."""
    cells, keys = cells_of(responses, ["model", "evaluation"])
    kept = (responses["score"].notna() & responses["n_chars"].notna()).to_numpy(dtype=bool)
    return cells, pd.factorize(responses["example_id"].to_numpy())[0], kept, keys
