"""Resampled examples and flipped signs against the plain sums that they stand for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from evalcore.stats.pair_tests import percentiles, resample_weights, resampled_means, sign_flips

many = settings(max_examples=20, deadline=None)
score = st.one_of(st.just(math.nan), st.floats(-3, 1, width=32))
tables = arrays.arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=score)
seed = st.integers(0, 2**32)


def chance(number=20261120):
    return np.random.default_rng(number)


def stacked(blocks):
    return np.concatenate(list(blocks))


# ---------------------------------------------------------------- weights and signs


@many
@given(n=st.integers(1, 40), n_resamples=st.integers(1, 30), block=st.integers(1, 9), number=seed)
def test_every_resample_draws_as_many_examples_as_there_are(n, n_resamples, block, number):
    weights = stacked(resample_weights(n, n_resamples, rng=chance(number), block=block))
    assert weights.shape == (n_resamples, n)
    assert (weights.sum(axis=1) == n).all()
    assert (weights >= 0).all()


def test_blocks_make_no_difference_to_the_draws():
    in_one = stacked(resample_weights(7, 20, rng=chance(), block=20))
    in_many = stacked(resample_weights(7, 20, rng=chance(), block=3))
    assert (in_one == in_many).all()


def test_an_example_is_drawn_once_on_average_and_seldom_always():
    weights = stacked(resample_weights(50, 4_000, rng=chance()))
    # Binomial(50, 1/50): mean 1, variance 1 - 1/50; 200,000 numbers.
    assert weights.mean() == pytest.approx(1)
    assert weights.var() == pytest.approx(0.98, abs=0.02)
    assert np.abs(weights.mean(axis=0) - 1).max() < 4 * math.sqrt(0.98 / 4_000)


@many
@given(n=st.integers(1, 40), n_flips=st.integers(1, 30), block=st.integers(1, 9), number=seed)
def test_signs_are_plus_or_minus_one(n, n_flips, block, number):
    signs = stacked(sign_flips(n, n_flips, rng=chance(number), block=block))
    assert signs.shape == (n_flips, n)
    assert set(np.unique(signs)) <= {-1.0, 1.0}


def test_signs_are_fair_and_independent():
    signs = stacked(sign_flips(20, 5_000, rng=chance()))
    assert np.abs(signs.mean(axis=0)).max() < 4 / math.sqrt(5_000)
    together = signs.T @ signs / 5_000
    assert np.abs(together - np.eye(20)).max() < 4.5 / math.sqrt(5_000)


def test_of_no_examples_nothing_is_drawn():
    assert list(resample_weights(0, 10, rng=chance())) == []
    assert list(sign_flips(0, 10, rng=chance())) == []


# ---------------------------------------------------------------- means


@many
@given(values=tables, number=seed)
def test_resampled_means_are_the_means_of_the_drawn_rows(values, number):
    found = resampled_means(values, rng=chance(number), n_resamples=11)
    weights = stacked(resample_weights(len(values), 11, rng=chance(number)))
    for means, drawn in zip(found, weights, strict=True):
        rows = np.repeat(values, drawn.astype(int), axis=0)
        for mean, column in zip(means, rows.T, strict=True):
            entered = column[~np.isnan(column)]
            if len(entered):
                assert mean == pytest.approx(entered.mean(), abs=1e-5)
            else:
                assert math.isnan(mean)


def test_a_large_common_part_costs_no_digits():
    small = chance().normal(size=(200, 1)) * 1e-6
    assert resampled_means(small + 1e4, rng=chance(), n_resamples=50) - 1e4 == pytest.approx(
        resampled_means(small, rng=chance(), n_resamples=50), abs=1e-10
    )


def test_columns_that_the_same_examples_entered_are_as_each_alone():
    nothing = math.nan
    table = np.array([[1.0, nothing, 3.0], [nothing, 5.0, nothing], [2.0, 7.0, 9.0], [4.0, nothing, 6.0]])
    together = resampled_means(table, rng=chance(), n_resamples=20)
    alone = [resampled_means(table[:, [place]], rng=chance(), n_resamples=20)[:, 0] for place in range(3)]
    np.testing.assert_allclose(together, np.column_stack(alone), rtol=1e-6)


@many
@given(values=tables, level=st.floats(0.5, 0.99))
def test_percentiles_leave_out_what_has_no_mean(values, level):
    low, high = percentiles(values, level=level)
    for column in range(values.shape[1]):
        known = values[~np.isnan(values[:, column]), column]
        if len(known):
            expected = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
            assert [low[column], high[column]] == pytest.approx(expected, abs=1e-12)
        else:
            assert math.isnan(low[column])
            assert math.isnan(high[column])
