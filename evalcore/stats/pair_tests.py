"""Tests of many pairs at once: sign flips that all pairs share, and what their number does to each."""

from collections.abc import Callable

import numpy as np
from scipy.stats import false_discovery_control

from evalcore.stats.resampling import Floats, sign_flips


def sign_flip_chances(gaps: Floats, *, rng: np.random.Generator, n_flips: int) -> tuple[Floats, Floats]:
    """Two-sided p of the mean of each column being nought, alone and against the largest of all columns.

    With T = sum d_i and T* = sum s_i d_i for fair signs s, p = (#{|T*| >= |T|} + 1) / (n_flips + 1). Under flips sum d_i^2 stays as it
    is, so dividing by its root makes columns comparable for the largest, and changes no p.

    Args:
        gaps: One row an example, one column a pair; 0 where the pair does not have the example.
        rng: Chance.
        n_flips: How many.

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
    found: Floats = false_discovery_control(p)
    return found


def adjusted(p: Floats, adjust: Callable[[Floats], Floats]) -> Floats:
    """The p of all pairs that have one, adjusted for their number."""
    found = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        found[known] = adjust(p[known])
    return found


def holm(p: Floats) -> Floats:
    """Holm's adjusted p (1979): the smallest times m, the next times m - 1, ..., never falling, at most 1.

    (statsmodels' `multipletests` gives the same, and stops the whole process for a collection of garbage.)
    """
    order = np.argsort(p, kind="stable")
    found = np.empty(len(p))
    found[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return found
