"""Score against length: do longer responses score higher in the judge's opinion? A relation, not an effect of length."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.stats.intervals import LEVEL
from evalcore.stats.means import NO_SPREAD, SCORE_COLUMNS, as_scores, cells_of, clustered_means, over
from evalcore.stats.resampling import Codes

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


def length_slopes(responses: pd.DataFrame, *, level: float = LEVEL) -> pd.DataFrame:
    """By how much a model's score rises with the length of its response: a line through all its responses, interval by example.

    With lengths x in thousands of characters, x' = x - mean, residuals r, S = sum x'^2, and G examples:

        slope b = sum x' s / S,    v = G/(G-1) (n-1)/(n-2) sum_g (sum_{i in g} x'_i r_i)^2 / S^2,    b +- t(G-1) sqrt(v)

    Args:
        responses: As `comparison.response_scores` gives them. One without a score or length is left out and counted.
        level: Of confidence, in (0, 1).

    Returns:
        One row a model and evaluation: model, evaluation, n_examples, n_responses, n_left_out (responses), mean_chars; raw_mean of
        these responses with raw_low and raw_high, and score, low, high clipped to [0, 1]; slope (score a thousand characters) with slope_low and
        slope_high; correlation in [-1, 1] (Pearson's, over responses). Slope and correlation are
        NaN where all lengths are the same (correlation also where all scores are), the slope's interval with fewer than three examples or
        where the line fits exactly.

    Source: the interval is the cluster-robust one (CR1; Liang and Zeger 1986), as statsmodels' `fit(cov_type="cluster")`.
    """
    cells, examples, kept, keys = _cells(responses)
    n_cells = len(keys)
    x = responses["n_chars"].to_numpy(dtype=float)[kept] / PER_CHARS
    y = responses["score"].to_numpy(dtype=float)[kept]
    every, (cells, examples) = cells, (cells[kept], examples[kept])
    n = np.bincount(cells, minlength=n_cells)
    mean_x, mean_y = (over(np.bincount(cells, values, n_cells), n) for values in (x, y))
    dx, dy = x - mean_x[cells], y - mean_y[cells]
    square, cross, spread = (np.bincount(cells, values, n_cells) for values in (dx**2, dx * dy, dy**2))
    square = np.where(square > NO_SPREAD, square, 0.0)
    slope = over(cross, square)
    residual = dy - slope[cells] * dx
    both, pairs = pd.factorize(cells * (int(examples.max(initial=0)) + 1) + examples)
    cell_of = pairs // (int(examples.max(initial=0)) + 1)
    n_examples = np.bincount(cell_of, minlength=n_cells)
    meat = np.bincount(cell_of, np.bincount(both, dx * residual, len(pairs)) ** 2, n_cells)
    enough = (n_examples >= MIN_SLOPE_EXAMPLES) & (n > 2)  # noqa: PLR2004 - two coefficients
    correction = over(n_examples * (n - 1.0), np.where(enough, (n_examples - 1.0) * (n - 2.0), 0.0))
    error = np.sqrt(correction * over(meat, square**2))
    error[error <= NO_SPREAD] = np.nan
    half = stdtrit(np.where(enough, n_examples - 1, np.nan), (1 + level) / 2) * error
    found = keys.assign(
        n_examples=n_examples,
        n_responses=n,
        n_left_out=np.bincount(every, minlength=n_cells) - n,
        mean_chars=mean_x * PER_CHARS,
        slope=slope,
        slope_low=slope - half,
        slope_high=slope + half,
        correlation=over(cross, np.sqrt(square * np.where(spread > NO_SPREAD, spread, 0.0))).clip(-1, 1),
        **as_scores(clustered_means(cells, examples, y, n_cells=n_cells, level=level)),
    )
    return found[list(SLOPE_COLUMNS)]


def length_finding(slopes: pd.DataFrame) -> str:
    """Whose score rises or falls with the length of the response, a sentence: only where the slope's interval leaves out 0.

    Args:
        slopes: As `length_slopes` gives them, of one evaluation.

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
    said = []
    for row in shown.to_dict(orient="records"):
        low, high = sorted(abs(row[f"slope_{end}"]) for end in ("low", "high"))
        way = "higher" if row["slope"] > 0 else "lower"
        said.append(
            f"of {row['model']} score {way} by {abs(row['slope']):.3f} [{low:.3f}, {high:.3f}] per 1,000 characters"
        )
    others = "; of the other models none is shown to score higher or lower" if len(shown) < len(slopes) else ""
    return f"Longer responses {'; '.join(said)}{others}."


def length_bins(responses: pd.DataFrame, *, n_bins: int = N_BINS, level: float = LEVEL) -> pd.DataFrame:
    """Mean scores of each model's responses by length, in bins that all models share.

    Bins hold about as many of all responses each; equal lengths are never apart, so there may be fewer bins than were asked for.

    Args:
        responses: As `comparison.response_scores` gives them. One without a score or length is left out (`length_slopes` counts them).
        n_bins: At most.
        level: Of confidence, in (0, 1).

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
    place, held = pd.factorize(np.searchsorted(edges, chars, side="left"), sort=True)
    n_held = len(held)
    first, last = (np.full(n_held, limit) for limit in (np.inf, -np.inf))
    np.minimum.at(first, place, chars)
    np.maximum.at(last, place, chars)
    at = cells * n_held + place
    means = clustered_means(at, examples, score, n_cells=len(keys) * n_held, level=level)
    length = over(np.bincount(at, chars, len(means)), means["n_values"].to_numpy())
    which, numbers = np.divmod(np.arange(len(means)), n_held)
    found = keys.take(which).reset_index(drop=True).assign(
        bin=numbers + 1,
        from_chars=first[numbers],
        to_chars=last[numbers],
        mean_chars=length,
        n_examples=means["n_clusters"],
        n_responses=means["n_values"],
        **as_scores(means),
    )  # fmt: skip
    return found.loc[found["n_responses"].gt(0), list(BIN_COLUMNS)].reset_index(drop=True)


def _cells(responses: pd.DataFrame) -> tuple[Codes, Codes, npt.NDArray[np.bool_], pd.DataFrame]:
    """Number of each response's model and evaluation, number of its example, whether it counts; models and evaluations by number."""
    cells, keys = cells_of(responses, ["model", "evaluation"])
    kept = (responses["score"].notna() & responses["n_chars"].notna()).to_numpy(dtype=bool)
    return cells, pd.factorize(responses["example_id"].to_numpy())[0], kept, keys
