"""Populations of items and samples of reads for the formulas of the corrected score."""

import numpy as np
from hypothesis import settings, strategies as st

from evalcore.stats import estimator
from evalcore.stats.estimator import Population, Sample

many = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 10_000)


def population(moves, labels=None, example=None):
    moves = np.asarray(moves, dtype=float)
    said = np.zeros((len(moves), 0)) if labels is None else np.asarray(labels, dtype=float).reshape(len(moves), -1)
    numbers = np.arange(len(moves)) if example is None else np.asarray(example)
    return Population(moves, moves < 0, said, numbers)


def sample(rows, votes, probabilities, *, units=None, readers=None):
    """Each item read by one physician."""
    n = len(rows)
    votes = np.asarray(votes, dtype=float)
    return Sample(
        rows=np.asarray(rows, dtype=int),
        votes=votes,
        probabilities=np.broadcast_to(np.asarray(probabilities, dtype=float), n),
        units=np.arange(n) if units is None else np.unique(units, return_inverse=True)[1],
        places=np.arange(n),
        readers=np.zeros(n, dtype=int) if readers is None else np.asarray(readers),
        said=votes,
    )


def invented(seed, *, n=120, accuracy=0.8, share=0.5, n_judges=1, power=1):
    """A population of `n` items with n/4 examples, a quarter undesirable, and what was read of it: with its true votes.

    Points are raised to a power, to make a few items move the score far more than the others.
    """
    rng = np.random.default_rng(seed)
    points = rng.integers(1, 11, n) ** power * np.where(rng.random(n) < 0.25, -1, 1)
    truth = (rng.random(n) < 0.6).astype(float)
    right = rng.random((n, n_judges)) < accuracy
    about = population(
        points / points.clip(min=0).sum(), np.where(right, truth[:, None], 1 - truth[:, None]), np.arange(n) // 4
    )
    rows = np.flatnonzero(rng.random(n) < share)
    return about, truth, sample(rows, truth[rows], share, readers=rng.integers(0, 3, len(rows)))


def variance(about, read, fit):
    return estimator.benchmark_parts(read, fit.factors * estimator.deviations(about, read, fit)).sum()
