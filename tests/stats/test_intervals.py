"""Intervals of shares: Wilson where items stand alone, wider where they come in clusters, and honest about how few there are."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.proportion import proportion_confint

from evalcore.stats.intervals import interval_words, share_interval, share_words

many = settings(max_examples=60, deadline=None)
drawn = st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=60)


def alone(n_hits, n):
    """n items, each a cluster of its own."""
    return share_interval([place < n_hits for place in range(n)], range(n))


def bounds(found):
    return found.low, found.high


def interval_of(items):
    return share_interval([hit for hit, _ in items], [cluster for _, cluster in items])


# ---------------------------------------------------------------- one item a cluster: Wilson's published numbers


@pytest.mark.parametrize(
    ("n_hits", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_items_that_stand_alone_get_wilsons_interval(n_hits, n, low, high):
    found = alone(n_hits, n)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert (found.n, found.n_hits, found.n_clusters, found.design_effect) == (n, n_hits, n, pytest.approx(1))
    assert found.share == n_hits / n


@many
@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_any_items_that_stand_alone_get_wilsons_interval(counts):
    n_hits, n = counts
    expected = proportion_confint(n_hits, n, method="wilson")
    assert bounds(alone(n_hits, n)) == pytest.approx(expected, abs=1e-9)


# ---------------------------------------------------------------- clusters


def test_the_design_effect_is_the_ratio_of_the_two_variances():
    # two clusters of 4 and 2: y = 4, 0; p = 4/6
    #   v = 2/1 ((4 - 8/3)^2 + (0 - 4/3)^2) / 36 = 2 (16/9 + 16/9) / 36 = 16/81
    #   alone = (2/3)(1/3) / 5 = 2/45;  d = (16/81) / (2/45) = 40/9
    found = share_interval([True] * 4 + [False] * 2, [1] * 4 + [2] * 2)
    assert found.design_effect == pytest.approx(40 / 9)
    # n_eff = 6 / (40/9) (2.571 / 12.706)^2 < 1, so it is the number of clusters that count: 36 / (16 + 4) = 1.8
    assert bounds(found) == pytest.approx(proportion_confint(1.2, 1.8, method="wilson"))


def test_the_effective_number_is_lowered_by_the_design_effect_and_by_few_clusters():
    # ten clusters of 4: five with 3 hits, five with 2: p = 25/40
    #   v = 10/9 * 10 (1/2)^2 / 1600 = 1/576; alone = (15/64) / 39 = 5/832; v / alone < 1, so d = 1
    #   n_eff = 40 (t(39) / t(9))^2 = 40 (2.02269 / 2.26216)^2 = 31.98
    hits = ([True] * 3 + [False]) * 5 + ([True] * 2 + [False] * 2) * 5
    found = share_interval(hits, np.repeat(np.arange(10), 4))
    assert found.design_effect == 1
    effective = 40 * (2.0226909 / 2.2621572) ** 2
    assert bounds(found) == pytest.approx(proportion_confint(0.625 * effective, effective, method="wilson"), abs=1e-6)


@many
@given(items=drawn)
def test_an_interval_lies_in_zero_to_one_and_holds_its_share(items):
    found = interval_of(items)
    assert 0 <= found.low <= found.share <= found.high <= 1
    assert found.low < found.high
    assert found.design_effect >= 1
    assert (found.n, found.n_hits) == (len(items), sum(hit for hit, _ in items))
    assert found.n_clusters == len({cluster for _, cluster in items})


@many
@given(items=drawn)
def test_an_interval_never_lies_inside_plain_wilson(items):
    found = interval_of(items)
    low, high = proportion_confint(found.n_hits, found.n, method="wilson")
    assert found.low <= low + 1e-12
    assert found.high >= high - 1e-12


@many
@given(items=st.lists(st.booleans(), min_size=2, max_size=40), times=st.integers(2, 6))
def test_reading_the_same_answer_over_and_over_in_a_cluster_adds_nothing(items, times):
    repeated = share_interval(np.repeat(items, times), np.repeat(np.arange(len(items)), times))
    once = share_interval(items, range(len(items)))
    if 0 < once.n_hits < once.n:
        assert bounds(repeated) == pytest.approx(bounds(once), abs=1e-9)
    else:  # nothing tells that the repeats are repeats
        assert repeated.low >= once.low - 1e-12
        assert repeated.high <= once.high + 1e-12


def test_the_more_alike_the_items_of_a_cluster_the_wider_the_interval():
    # 20 clusters of 5, half of the 100 items hits; s clusters are of one mind, the others mixed 2 and 3
    widths, effects = [], []
    for unanimous in range(0, 21, 4):
        of_one_mind = [True] * 5, [False] * 5
        mixed = [True, True, True, False, False], [True, True, False, False, False]
        clusters = [of_one_mind[g % 2] if g < unanimous else mixed[g % 2] for g in range(20)]
        found = share_interval(np.concatenate(clusters), np.repeat(np.arange(20), 5))
        assert found.n_hits == 50
        widths.append(found.high - found.low)
        effects.append(found.design_effect)
    assert widths == sorted(widths)
    assert effects == sorted(effects)
    assert widths[-1] > 1.9 * widths[0]  # about the root of five: 20 things are known instead of 100


@many
@given(items=drawn, order=st.randoms(use_true_random=False))
def test_order_and_names_of_clusters_do_not_matter(items, order):
    shuffled = [(hit, f"example {cluster}") for hit, cluster in items]
    order.shuffle(shuffled)
    one, other = interval_of(items), interval_of(shuffled)
    assert bounds(one) == pytest.approx(bounds(other), abs=1e-12)
    assert one.design_effect == pytest.approx(other.design_effect)


@many
@given(items=drawn)
def test_misses_have_the_mirrored_interval_of_hits(items):
    hits, misses = interval_of(items), interval_of([(not hit, cluster) for hit, cluster in items])
    assert bounds(misses) == pytest.approx((1 - hits.high, 1 - hits.low), abs=1e-9)


@many
@given(items=drawn)
def test_more_confidence_is_a_wider_interval(items):
    hits, clusters = [hit for hit, _ in items], [cluster for _, cluster in items]
    narrow, wide = share_interval(hits, clusters, level=0.8), share_interval(hits, clusters, level=0.99)
    assert wide.low <= narrow.low
    assert wide.high >= narrow.high


# ---------------------------------------------------------------- edges


def test_without_items_there_is_no_share_and_no_interval():
    found = share_interval(pd.Series([], dtype=bool), pd.Series([], dtype="int64"))
    assert (found.n, found.n_hits, found.n_clusters) == (0, 0, 0)
    assert all(math.isnan(value) for value in (found.share, found.low, found.high, found.design_effect))


@pytest.mark.parametrize("n_hits", [0, 3, 7])
def test_one_cluster_counts_as_one_item(n_hits):
    found = share_interval([place < n_hits for place in range(7)], ["e"] * 7)
    assert bounds(found) == pytest.approx(proportion_confint(n_hits / 7, 1, method="wilson"))
    assert found.design_effect == 7


def test_one_item_says_little():
    assert bounds(alone(1, 1)) == pytest.approx(proportion_confint(1, 1, method="wilson"))


@pytest.mark.parametrize("hit", [True, False])
def test_without_any_difference_the_design_effect_is_one(hit):
    found = share_interval([hit] * 60, np.repeat(np.arange(20), 3))
    assert found.design_effect == 1
    effective = 60 * (2.0009954 / 2.0930241) ** 2  # t(59), t(19)
    assert bounds(found) == pytest.approx(proportion_confint(effective * hit, effective, method="wilson"), abs=1e-6)


@pytest.mark.parametrize(
    ("hits", "clusters"),
    [
        ([True, False], [1]),
        ([1, 0], [1, 2]),
        ([True, None], [1, 2]),
        (["met", "not_met"], [1, 2]),
        ([True, False], [1, None]),
        ([True, False], [1.0, math.nan]),
    ],
)
def test_what_is_no_truth_value_or_has_no_cluster_is_refused(hits, clusters):
    with pytest.raises(ValueError, match="expected truth values with a cluster each"):
        share_interval(hits, clusters)


def test_missing_values_are_said_by_a_dash():
    assert share_words(0, 0, math.nan) == "– (0/0)"
    assert interval_words(math.nan, math.nan) == "–"
    assert share_words(1234, 2468, 0.5) == "50 % (1,234/2,468)"


# ---------------------------------------------------------------- coverage


def coverage(*, share, correlation, n_clusters, size=8, n_draws=2_000):
    """Of drawn samples: how often the interval holds the true share, and how often plain Wilson does.

    The share of each cluster is beta-distributed around the true one, sizes are 1 + Poisson.
    """
    rng = np.random.default_rng(20261120)
    spread = (1 - correlation) / correlation
    held = held_plain = 0
    for _ in range(n_draws):
        sizes = 1 + rng.poisson(size - 1, n_clusters)
        clusters = np.repeat(np.arange(n_clusters), sizes)
        hits = rng.random(len(clusters)) < rng.beta(share * spread, (1 - share) * spread, n_clusters)[clusters]
        found = share_interval(hits, clusters)
        low, high = proportion_confint(found.n_hits, found.n, method="wilson")
        held += found.low <= share <= found.high
        held_plain += low <= share <= high
    return held / n_draws, held_plain / n_draws


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [30, 60, 150])
@pytest.mark.parametrize("share", [0.6, 0.85])
def test_on_clustered_draws_it_covers_what_it_says_and_plain_wilson_does_not(share, n_clusters):
    held, held_plain = coverage(share=share, correlation=0.3, n_clusters=n_clusters)
    # 2,000 draws: two standard errors are .01
    assert 0.93 <= held <= 0.97
    assert held_plain < 0.80


@pytest.mark.slow
def test_with_few_clusters_it_still_covers():
    held, held_plain = coverage(share=0.6, correlation=0.3, n_clusters=8)
    assert held >= 0.92
    assert held_plain < 0.80


@pytest.mark.slow
def test_where_clusters_do_not_matter_it_is_hardly_wider_than_it_must_be():
    held, held_plain = coverage(share=0.6, correlation=0.001, n_clusters=60)
    assert 0.93 <= held_plain <= 0.97
    assert held_plain <= held <= 0.98
