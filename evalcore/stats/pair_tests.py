"""Tests of many pairs at once: resampled examples and sign flips that all pairs share, and p adjusted for the number of pairs.

Resamples and flips are matrices, so that a bootstrap or a test over all pairs of models is a matrix product. The same generator, seeded alike,
gives the same numbers.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from evalcore.stats.arrays import Floats, Numbers

BLOCK = 500
"""Resamples at a time: with 5,000 examples a block is 10 MB."""

Weights = npt.NDArray[np.float32]


def resample_weights(n: int, n_resamples: int, *, rng: np.random.Generator, block: int = BLOCK) -> Iterator[Weights]:
    """How often each of n examples is drawn in each resample of size n, with replacement.

    Yields:
        Blocks of at most `block` resamples, one row a resample and one column an example; each row adds up to n.
    """
    for start in range(0, n_resamples if n else 0, block):
        weights = np.empty((min(block, n_resamples - start), n), dtype=np.float32)
        for row in weights:  # one at a time stays in the processor's cache: twice as quick as the block in one call
            row[:] = np.bincount(rng.integers(0, n, size=n), minlength=n)
        yield weights


def sign_flips(n: int, n_flips: int, *, rng: np.random.Generator, block: int = BLOCK) -> Iterator[Weights]:
    """A fair sign for each of n examples, anew in each flip.

    Yields:
        Blocks of at most `block` flips, one row a flip and one column an example, of +1 and -1.
    """
    for start in range(0, n_flips if n else 0, block):
        rows = min(block, n_flips - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes((rows * n + 7) // 8), dtype=np.uint8), count=rows * n)
        yield bits.reshape(rows, n).astype(np.float32) * 2 - 1


def resampled_means(values: npt.ArrayLike, *, rng: np.random.Generator, n_resamples: int) -> Floats:
    """The mean of each column in each resample of the rows; all columns share the resamples.

    `values` has one row an example and one column a mean that is wanted; NaN where the example does not enter.

    Returns:
        One row a resample, one column a column of `values`; NaN where a resample holds no example that enters.
    """
    table = np.asarray(values, dtype=float)
    entered = ~np.isnan(table)
    sizes = entered.astype(float)
    sums = np.where(entered, table, 0.0)
    whole = sizes.sum(axis=0)
    centre = np.divide(sums.sum(axis=0), whole, out=np.zeros(table.shape[1]), where=whole > 0)
    # Single precision is enough for what is left after the mean is taken out.
    spread = (sums - sizes * centre).astype(np.float32)
    distinct, column = distinct_columns(sizes.astype(np.float32))
    complete = bool(entered.all())
    means = np.full((n_resamples, table.shape[1]), np.nan)
    start = 0
    for weights in resample_weights(len(table), n_resamples, rng=rng):
        part = means[start : start + len(weights)]
        if complete:
            np.divide(weights @ spread, len(table), out=part)
        else:
            drawn = (weights @ distinct)[:, column]
            np.divide(weights @ spread, drawn, out=part, where=drawn > 0)
        start += len(weights)
    means += centre
    return means


def distinct_columns(table: Weights) -> tuple[Weights, Numbers]:
    """The columns of a table that differ, and which of them each column is: complete tables need one product instead of hundreds."""
    places: dict[bytes, int] = {}
    which = np.array(
        [places.setdefault(column.tobytes(), len(places)) for column in np.ascontiguousarray(table.T)], dtype=np.int64
    )
    first = [int(np.flatnonzero(which == place)[0]) for place in range(len(places))]
    return np.ascontiguousarray(table[:, first]), which


def percentiles(means: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Lower and upper bound of the percentile interval of each column; resamples without a mean (NaN) are left out, NaN where all are."""
    tail = (1 - level) / 2
    low, high = np.full((2, means.shape[1]), np.nan)
    missing = np.isnan(means)
    whole = ~missing.any(axis=0)
    if whole.any() and len(means):
        low[whole], high[whole] = np.quantile(means[:, whole], [tail, 1 - tail], axis=0)
    for column in np.flatnonzero(~whole & ~missing.all(axis=0)):
        low[column], high[column] = np.quantile(means[~missing[:, column], column], [tail, 1 - tail])
    return low, high


def sign_flip_chances(gaps: Floats, *, rng: np.random.Generator, n_flips: int) -> tuple[Floats, Floats]:
    """Two-sided p of the mean of each column being nought, alone and against the largest of all columns.

    With T = sum d_i and T* = sum s_i d_i for fair signs s, p = (#{|T*| >= |T|} + 1) / (n_flips + 1). Under flips sum d_i^2 stays as it
    is, so dividing by its root makes columns comparable for the largest, and changes no p.
    `gaps` has one row an example and one column a pair; 0 where the pair does not have the example.

    Returns:
        For each column: p alone, and p against the largest |T*| / sqrt(sum d_i^2) of all columns; both in (0, 1], 1 for a column of zeros.
    """
    n_examples, n_pairs = gaps.shape
    root = np.sqrt((gaps**2).sum(axis=0))
    scaled = np.divide(gaps, root, out=np.zeros_like(gaps), where=root > 0)
    # Sums that are equal on paper differ by rounding in single precision; equal counts as reached.
    reached = (np.abs(scaled.sum(axis=0)) - 1e-6 * np.abs(scaled).sum(axis=0)).astype(np.float32)
    columns = scaled.astype(np.float32)
    alone, over_all = np.ones(n_pairs), np.ones(n_pairs)
    for signs in sign_flips(n_examples, n_flips, rng=rng):
        flipped = np.abs(signs @ columns)
        alone += (flipped >= reached).sum(axis=0)
        over_all += (flipped.max(axis=1, keepdims=True, initial=0) >= reached).sum(axis=0)
    return alone / (n_flips + 1), over_all / (n_flips + 1)


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p (1995), for the rate of false discoveries."""
    return np.asarray(false_discovery_control(p), dtype=np.float64)


def holm(p: Floats) -> Floats:
    """Holm's adjusted p (1979): the smallest times m, the next times m - 1, ..., never falling, at most 1.

    (statsmodels' `multipletests` gives the same, and stops the whole process for a collection of garbage.)
    """
    order = np.argsort(p, kind="stable")
    adjusted_p = np.empty(len(p))
    adjusted_p[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return adjusted_p


def adjusted(p: Floats, adjust: Callable[[Floats], Floats]) -> Floats:
    """The p of all pairs that have one, adjusted for their number; NaN stays."""
    known = ~np.isnan(p)
    table = np.full(len(p), np.nan)
    if known.any():
        table[known] = adjust(p[known])
    return table
