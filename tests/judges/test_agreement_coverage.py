"""Whether the 95 % intervals of agreement hold the truth as often as they say, on items that come in clusters. Slow."""

import functools

import numpy as np
import pandas as pd
import pytest

from evalcore.judges.agreement import agreement
from evalcore.stats.agreement_sums import Coefficient

SEED = 20_261_121
N_DRAWS = 1_000
N_ITEMS = 11
SHOWN = (Coefficient.AGREEMENT, Coefficient.KAPPA, Coefficient.ALPHA_NOMINAL, Coefficient.AC1)


def labels(rng, n_examples, *, n_readers=2):
    """Two of the readers label each item; examples differ in how much of them is met, and in how often two readers agree on it.

    Agreement has an intraclass correlation of 1 / (1 + 1.6 + 0.5) = .32.
    """
    size = n_examples * N_ITEMS
    example = np.repeat(np.arange(n_examples), N_ITEMS)
    chance_met = 1 / (1 + np.exp(-(0.6 + 1.5 * rng.normal(size=n_examples))))
    agreed = rng.random(size) < rng.beta(1.6, 0.5, size=n_examples)[example]
    first = rng.random(size) < chance_met[example]
    said = [first, np.where(agreed, first, ~first)]
    who = np.argsort(rng.random((size, n_readers)), axis=1)[:, :2]
    return pd.DataFrame(
        {
            "unit": np.tile(np.arange(size), 2),
            "example_id": np.tile(example, 2),
            "rater": who.T.ravel(),
            "value": np.concatenate(said).astype(int),
        }
    )


@functools.cache
def truth(n_readers):
    """Of a study so large that its own error is a tenth of those that are judged by it."""
    drawn = labels(np.random.default_rng(SEED - 1), 100_000, n_readers=n_readers)
    table = agreement(drawn, coefficients=SHOWN)
    return table.set_index("coefficient")["value"]


@functools.cache
def coverage(n_examples, n_readers=2):
    """The share of draws whose interval holds the truth, by coefficient: clustered by example, and as if items were independent."""
    rng = np.random.default_rng(SEED + n_examples)
    held = []
    for _ in range(N_DRAWS):
        drawn = labels(rng, n_examples, n_readers=n_readers)
        for way, frame in (("clustered", drawn), ("naive", drawn.assign(example_id=drawn["unit"]))):
            table = agreement(frame, coefficients=SHOWN).set_index("coefficient")
            true = truth(n_readers).reindex(table.index)
            held.append((table["low"].le(true) & true.le(table["high"])).rename(way))
    return pd.concat(held, axis=1).T.groupby(level=0).mean()


@pytest.mark.slow
@pytest.mark.parametrize("coefficient", SHOWN)
@pytest.mark.parametrize("n_examples", [50, 120])
def test_from_50_examples_on_the_interval_covers_what_it_says_and_the_naive_one_does_not(n_examples, coefficient):
    held = coverage(n_examples)[coefficient]
    # 1,000 draws: two standard errors are .014
    assert 0.92 <= held["clustered"] <= 0.97
    assert held["naive"] < 0.80


@pytest.mark.slow
@pytest.mark.parametrize("coefficient", SHOWN)
def test_with_20_examples_it_covers_a_little_less(coefficient):
    held = coverage(20)[coefficient]
    assert 0.89 <= held["clustered"] <= 0.97
    assert held["naive"] < 0.80


@pytest.mark.slow
@pytest.mark.parametrize("coefficient", SHOWN)
def test_more_readers_of_whom_two_read_each_item_change_nothing(coefficient):
    held = coverage(50, 6)[coefficient]
    assert 0.92 <= held["clustered"] <= 0.97
    assert held["naive"] < 0.80


# Raters in general


def by_raters(rng, n_examples, n_raters, n_reads, spread):
    """Each item is read by some of the raters, who differ in how readily they say met (a standard deviation of log odds)."""
    example = np.repeat(np.arange(n_examples), 8)
    size = len(example)
    log_odds = 0.6 + 1.2 * rng.normal(size=n_examples)[example] + 1.5 * rng.normal(size=size)
    who = rng.permuted(np.tile(np.arange(n_raters), (size, 1)), axis=1)[:, :n_reads]
    met = rng.random(who.shape) < 1 / (1 + np.exp(-(log_odds[:, None] + spread * rng.normal(size=n_raters)[who])))
    return pd.DataFrame(
        {
            "unit": np.repeat(np.arange(size), n_reads),
            "example_id": np.repeat(example, n_reads),
            "rater": who.ravel(),
            "value": met.ravel().astype(int),
        }
    )


@functools.cache
def truth_in_general(spread):
    """Of 60 studies with 40 raters each: their own error is a tenth of those that are judged by it."""
    drawn = [by_raters(np.random.default_rng(n), 500, 40, 2, spread) for n in range(60)]
    every = pd.concat(
        [part + 1_000_000 * n * np.array([1, 1, 1, 0]) for n, part in enumerate(drawn)], ignore_index=True
    )
    return agreement(every, coefficients=SHOWN).set_index("coefficient")["value"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_examples", "n_raters", "n_reads"), [(60, 4, 2), (60, 6, 2), (60, 10, 2), (200, 6, 2), (60, 6, 3)]
)
def test_the_interval_for_raters_in_general_covers_and_the_one_for_these_raters_does_not(n_examples, n_raters, n_reads):
    """For these raters .64 to .95, for raters in general .95 to .99."""
    rng, true = np.random.default_rng(7), truth_in_general(1.0)
    these, general = [], []
    for _ in range(100):
        drawn = by_raters(rng, n_examples, n_raters, n_reads, 1.0)
        table = agreement(drawn, coefficients=SHOWN).set_index("coefficient")
        these.append(table["low"].le(true) & true.le(table["high"]))
        general.append(table["general_low"].le(true) & true.le(table["general_high"]))
    held = pd.concat(general, axis=1).mean(axis=1)
    assert held.ge(0.92).all()
    assert pd.concat(these, axis=1).mean(axis=1)[Coefficient.AC1] < 0.92
