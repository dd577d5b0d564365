"""Means of cells whose values come in clusters, with their intervals: the responses to one example are not independent."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.stats.intervals import LEVEL
from evalcore.stats.resampling import Codes, Floats

CLIPPED = ("score", "low", "high")
SCORE_COLUMNS = ("raw_mean", "raw_low", "raw_high", *CLIPPED)
NO_SPREAD = 1e-9
"""A standard error below this is rounding: all clusters are the same."""


def codes_of(column: pd.Series) -> tuple[Codes, npt.NDArray[np.object_]]:
    """Names as numbers: the place of each row's name among the names that occur, sorted.

    Args:
        column: Names, none missing; a categorical column is not gone through name by name.

    >>> codes, names = codes_of(pd.Series(["b", "a", "b"]).astype("category"))
    >>> codes.tolist(), names.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    categories = column.astype("category").cat
    held = categories.codes.to_numpy().astype(np.int64)
    names = np.asarray(categories.categories, dtype=object)
    occurs = np.flatnonzero(np.bincount(held, minlength=len(names)))
    ordered = occurs[np.argsort(names[occurs].astype(str), kind="stable")] if len(occurs) else occurs
    place = np.zeros(len(names), dtype=np.int64)
    place[ordered] = np.arange(len(ordered))
    return place[held], names[ordered]


def cells_of(table: pd.DataFrame, names: Sequence[str]) -> tuple[Codes, pd.DataFrame]:
    """Number of each row's combination of names, and the combinations that occur by their number, sorted.

    Args:
        table: With these columns; no name is missing.
        names: One column or more.

    >>> cells, keys = cells_of(
    ...     pd.DataFrame({"model": ["b", "a", "b"], "evaluation": ["x", "x", "x"]}), ["model", "evaluation"]
    ... )
    >>> cells.tolist(), keys["model"].tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    coded = [codes_of(table[name]) for name in names]
    sizes = [max(1, len(values)) for _, values in coded]
    numbers = np.zeros(len(table), dtype=np.int64)
    for (codes, _), size in zip(coded, sizes, strict=True):
        numbers = numbers * size + codes
    cells, which = pd.factorize(numbers, sort=True)
    places = np.unravel_index(which, sizes)
    keys = {name: values[place] for name, (_, values), place in zip(names, coded, places, strict=True)}
    return cells, pd.DataFrame(keys)


def clustered_means(
    cells: Codes,
    clusters: Codes,
    values: Floats,
    *,
    n_cells: int,
    weights: Floats | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The mean of each cell with its interval, clustered.

    With n values in G clusters, cluster g having n_g values that sum to y_g, and m = sum y_g / n:

        variance   v = G/(G-1) sum (y_g - m n_g)^2 / n^2      of a ratio, by linearisation
        interval   m +- t(G-1) sqrt(v)

    With as many values in each cluster that is the t interval of the clusters' means. With weights n_g, y_g and n are the weighted sums.

    Args:
        cells: The cell of each value, from 0.
        clusters: The cluster of each value, from 0; one that lies in several cells is a cluster in each.
        values: None of them NaN.
        n_cells: How many there are; some may be empty.
        weights: Of each value, above 0; None: all alike.
        level: Of confidence, in (0, 1).

    Returns:
        One row a cell: n_values, n_clusters, mean, low, high. NaN where undefined: the mean of an empty cell; the interval of
        fewer than two clusters, or of clusters that are all the same, since nothing is then known of how they differ.
    """
    n_names = int(clusters.max()) + 1 if len(clusters) else 1
    both, pairs = pd.factorize(cells * n_names + clusters)
    cell_of = pairs // n_names
    each = np.ones(len(values)) if weights is None else weights
    sums, sizes = np.bincount(both, values * each, len(pairs)), np.bincount(both, each, len(pairs))
    n_values = np.bincount(cells, minlength=n_cells)
    n_clusters = np.bincount(cell_of, minlength=n_cells)
    whole = np.bincount(cells, each, n_cells)
    mean = over(np.bincount(cells, values * each, n_cells), whole)
    squares = np.bincount(cell_of, (sums - mean[cell_of] * sizes) ** 2, n_cells)
    variance = over(squares * n_clusters, (n_clusters - 1) * whole**2)
    error = np.sqrt(variance)
    error[error <= NO_SPREAD * np.maximum(1.0, np.abs(mean))] = np.nan
    half = stdtrit(np.where(n_clusters > 1, n_clusters - 1, np.nan), (1 + level) / 2) * error
    return pd.DataFrame(
        {
            "n_values": n_values,
            "n_clusters": n_clusters,
            "mean": mean,
            "low": mean - half,
            "high": mean + half,
        }
    )


def as_scores(means: pd.DataFrame) -> pd.DataFrame:
    """Means and intervals as scores: raw_mean, raw_low, raw_high as they are, and score, low, high clipped to [0, 1].

    Args:
        means: As `clustered_means` gives them.
    """
    columns = {"raw_mean": means["mean"], "raw_low": means["low"], "raw_high": means["high"]}
    return pd.DataFrame(
        columns | {name: column.clip(0, 1) for name, column in zip(CLIPPED, columns.values(), strict=True)}
    )


def over(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> Floats:
    """The quotient; NaN where the denominator is not positive."""
    found = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=found, where=denominator > 0)
    return found
