"""Resampled examples and flipped signs as matrices, so that a bootstrap or a test over all pairs of models is a matrix product.

Chance is passed in; the same generator, seeded alike, gives the same numbers.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 500
"""Resamples at a time: with 5,000 examples a block is 10 MB."""
REFERENCE_RESAMPLES = 1_000
"""As openai/simple-evals draws them for its `bootstrap_std`."""

Weights = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


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


def resampled_means(
    values: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    counts: npt.ArrayLike | None = None,
    n_resamples: int,
) -> Floats:
    """The mean of each column in each resample of the rows; all columns share the resamples.

    Args:
        values: One row an example, one column a mean that is wanted; NaN where the example does not enter.
        rng: Chance.
        counts: As many responses as each value sums up, in the same shape; without them each value counts once. The mean is then
            the sum of values over the sum of counts, and an example's responses stay together.
        n_resamples: How many.

    Returns:
        One row a resample, one column a column of `values`; NaN where a resample holds no example that enters.
    """
    table = np.asarray(values, dtype=float)
    entered = ~np.isnan(table)
    sizes = np.where(entered, 1.0 if counts is None else np.asarray(counts, dtype=float), 0.0)
    sums = np.where(entered, table, 0.0)
    whole = sizes.sum(axis=0)
    centre = np.divide(sums.sum(axis=0), whole, out=np.zeros(table.shape[1]), where=whole > 0)
    # Single precision is enough for what is left after the mean is taken out.
    spread = (sums - sizes * centre).astype(np.float32)
    distinct, which = distinct_columns(sizes.astype(np.float32))
    complete = bool((distinct == 1).all())
    means = np.full((n_resamples, table.shape[1]), np.nan)
    start = 0
    for weights in resample_weights(len(table), n_resamples, rng=rng):
        part = means[start : start + len(weights)]
        if complete:
            np.divide(weights @ spread, len(table), out=part)
        else:
            drawn = (weights @ distinct)[:, which]
            np.divide(weights @ spread, drawn, out=part, where=drawn > 0)
        start += len(weights)
    means += centre
    return means


def distinct_columns(table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Codes]:
    """The columns of a table that differ, and which of them each column is: complete tables need one product instead of hundreds."""
    places: dict[bytes, int] = {}
    which = np.array(
        [places.setdefault(column.tobytes(), len(places)) for column in np.ascontiguousarray(table.T)], dtype=np.int64
    )
    first = [int(np.flatnonzero(which == place)[0]) for place in range(len(places))]
    return np.ascontiguousarray(table[:, first]), which


def percentiles(means: Floats, *, level: float) -> tuple[Floats, Floats]:
    """The percentile interval of each column; resamples without a mean (NaN) are left out, NaN where all are.

    Returns:
        Lower and upper bounds, one a column.
    """
    tail = (1 - level) / 2
    low, high = np.full((2, means.shape[1]), np.nan)
    missing = np.isnan(means)
    whole = ~missing.any(axis=0)
    if whole.any() and len(means):
        low[whole], high[whole] = np.quantile(means[:, whole], [tail, 1 - tail], axis=0)
    for column in np.flatnonzero(~whole & ~missing.all(axis=0)):
        low[column], high[column] = np.quantile(means[~missing[:, column], column], [tail, 1 - tail])
    return low, high


def reference_std(
    values: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    counts: npt.ArrayLike | None = None,
    n_resamples: int = REFERENCE_RESAMPLES,
) -> Floats:
    """The uncertainty that the reference implementation states: the standard deviation (ddof 0) of resampled, clipped means.

    Each resampled mean is clipped to [0, 1] first, so the number is near 0 where the raw mean lies below 0: no sign of
    certainty. The reference resamples responses; here an example's repeats stay together.

    Args:
        values: One row an example, one column a score; NaN where the example does not enter. With counts: sums over responses.
        rng: Chance.
        counts: As for `resampled_means`.
        n_resamples: How many.

    Returns:
        One number a column, 0 or more; NaN where no example enters.

    Source: openai/simple-evals, `bootstrap_std`.
    """
    means = np.clip(resampled_means(values, rng=rng, counts=counts, n_resamples=n_resamples), 0, 1)
    found = np.full(means.shape[1], np.nan)
    some = ~np.isnan(means).all(axis=0)
    if some.any():
        found[some] = np.nanstd(means[:, some], axis=0)
    return found
