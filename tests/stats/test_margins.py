"""Non-inferiority and equivalence, against scipy's t tests and by what must hold of any difference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from evalcore.stats.pair_tests import against_margin, margin_words

many = settings(max_examples=50, deadline=None)
difference = st.floats(-0.3, 0.3).map(lambda value: round(value, 4))
error = st.floats(0.001, 0.2)
freedom = st.one_of(st.floats(1, 500), st.just(math.inf))
margin = st.floats(0.01, 0.2)


@pytest.mark.parametrize("is_better", [True, False])
def test_p_and_bound_are_those_of_scipys_one_sided_t_tests(is_better):
    apart = np.array([0.02, -0.11, 0.05, 0.0, -0.04, 0.03, -0.07, 0.01, -0.02, 0.04])
    se = apart.std(ddof=1) / math.sqrt(len(apart))
    held = against_margin(float(apart.mean()), se, len(apart) - 1, 0.06, higher_is_better=is_better)
    above = stats.ttest_1samp(apart, -0.06, alternative="greater").pvalue
    below = stats.ttest_1samp(apart, 0.06, alternative="less").pvalue
    assert held.p_non_inferior == pytest.approx(above if is_better else below, abs=1e-12)
    assert held.p_equivalent == pytest.approx(max(above, below), abs=1e-12)
    low, high = stats.ttest_1samp(apart, 0).confidence_interval(0.95)
    assert held.bound == pytest.approx(low if is_better else high, abs=1e-12)
    assert (held.low, held.high) == pytest.approx(tuple(stats.ttest_1samp(apart, 0).confidence_interval(0.90)))


@many
@given(difference, error, freedom, margin, st.booleans())
def test_a_claim_is_made_exactly_where_its_interval_keeps_the_margin(d, se, df, m, is_better):
    held = against_margin(d, se, df, m, higher_is_better=is_better)
    low, high = stats.t.interval(0.95, df, d, se)
    worse, better = (-low, -high) if is_better else (high, low)
    assert held.non_inferior == (worse < m)
    assert held.inferior == (better > m)
    low, high = stats.t.interval(0.90, df, d, se)
    assert held.equivalent == (-m < low and high < m)
    assert not (held.non_inferior and held.inferior)


@many
@given(difference, error, freedom, margin)
def test_turning_the_pair_and_the_sense_of_better_changes_no_verdict(d, se, df, m):
    more, less = against_margin(d, se, df, m), against_margin(-d, se, df, m, higher_is_better=False)
    assert (more.non_inferior, more.equivalent, more.inferior) == (less.non_inferior, less.equivalent, less.inferior)
    assert (more.p_non_inferior, more.p_equivalent) == (less.p_non_inferior, less.p_equivalent)
    assert more.bound == pytest.approx(-less.bound)


@many
@given(difference, error, freedom, margin, st.floats(0.001, 0.1))
def test_a_wider_margin_never_takes_a_claim_back(d, se, df, m, further):
    narrow, wide = against_margin(d, se, df, m), against_margin(d, se, df, m + further)
    assert narrow.p_non_inferior >= wide.p_non_inferior
    assert narrow.p_equivalent >= wide.p_equivalent
    assert narrow.bound == wide.bound


def test_at_the_edge_of_the_margin_the_claim_is_wrong_as_often_as_it_says():
    """Truly worse by just the margin: 2.5 % of studies may call it non-inferior. 20,000 of them: ± 0.3 points at 3 SE."""
    rng = np.random.default_rng(1)
    studies = rng.normal(-0.05, 0.1, size=(20_000, 30))
    errors = studies.std(axis=1, ddof=1) / math.sqrt(30)
    claims = [against_margin(d, se, 29, 0.05).non_inferior for d, se in zip(studies.mean(axis=1), errors, strict=True)]
    assert abs(np.mean(claims) - 0.025) < 0.0033


@pytest.mark.parametrize(
    ("d", "se", "df"), [(math.nan, 0.1, 9), (0.1, math.nan, 9), (0.1, 0.1, 0), (0.1, 0.1, math.nan)]
)
def test_without_a_number_nothing_is_shown(d, se, df):
    held = against_margin(d, se, df, 0.05)
    assert not held.is_known
    assert (held.non_inferior, held.equivalent, held.inferior) == (False, False, False)
    assert math.isnan(held.p_non_inferior)
    assert margin_words(held, "A", "B", "score") == "Too little is known to hold A against B by the margin of 0.050."


@pytest.mark.parametrize(("d", "shown"), [(-0.05, False), (-0.0499, True)])
def test_without_error_a_difference_of_the_margin_itself_shows_nothing(d, shown):
    held = against_margin(d, 0.0, 9, 0.05)
    assert held.non_inferior is shown
    assert held.p_non_inferior == (0.0 if shown else 1.0)


def test_what_rounding_leaves_of_the_margin_is_none():
    rounded = 0.2 - 0.3  # -0.09999999999999998, a margin of 0.1 but for the last digit
    assert not against_margin(rounded, 0.0, 9, 0.1).non_inferior
    assert not against_margin(rounded, 1e-17, 9, 0.1).non_inferior


@pytest.mark.parametrize("wrong", [0.0, -0.1, math.nan, math.inf])
def test_a_margin_is_a_number_above_0(wrong):
    with pytest.raises(ValueError, match="expected a number above 0"):
        against_margin(0.1, 0.1, 9, wrong)


def test_the_sentence_says_what_is_shown_and_no_more():
    better = against_margin(0.2, 0.05, 30, 0.05)
    assert margin_words(better, "A", "B", "score") == (
        "A is non-inferior to B: its score is higher by at least 0.098 (one-sided 97.5 % bound); the margin is 0.050 (p < 0.001)."
    )
    close = margin_words(against_margin(-0.01, 0.015, 40, 0.05), "A", "B", "score")
    assert close == (
        "A is non-inferior to B: its score may be lower by up to 0.040 (one-sided 97.5 % bound), less than the margin of 0.050 (p 0.006). "
        "It is also equivalent: the 90 % interval of the difference [−0.035, +0.015] lies within ±0.050."
    )
    open_ = against_margin(0.02, 0.03, 40, 0.05, higher_is_better=False)
    assert margin_words(open_, "A", "B", "rate", as_percent=True) == (
        "It is not shown that A is non-inferior to B: its rate may be higher by up to 8.1 percentage points (one-sided 97.5 % bound), "
        "and the margin is 5 percentage points (p 0.16; below 0.025 would show it)."
    )
    worse = against_margin(-0.3, 0.05, 30, 0.05)  # 0.3 - 2.0423 x 0.05 = 0.198
    assert margin_words(worse, "A", "B", "score") == (
        "A is inferior to B: its score is lower by at least 0.198 (one-sided 97.5 % bound), more than the margin of 0.050."
    )
    fewer = margin_words(
        against_margin(-0.1, 0.02, 30, 0.05, higher_is_better=False), "A", "B", "rate", as_percent=True
    )
    assert "its rate is lower by at least 5.9 percentage points" in fewer
