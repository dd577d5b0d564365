"""Win rates against a plain count of pairs, and their interval against Wilson's."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.proportion import proportion_confint

from evalcore.rubric.judge_only import win_rate

many = settings(max_examples=20, deadline=None)
score = st.one_of(st.integers(-2, 4).map(lambda number: number / 4), st.just(math.nan))
length = st.one_of(st.integers(90, 120).map(float), st.just(math.nan))
responses = st.lists(st.tuples(st.integers(1, 4), score, length), max_size=8)


def framed(rows):
    found = pd.DataFrame(rows, columns=["example_id", "score", "n_chars"]).astype({"score": float, "n_chars": float})
    return found.assign(evaluation=pd.Categorical(["invented"] * len(found)))


def alone(scores_1, scores_2):
    """One response each to example 1, 2, ..."""
    one, other = (
        [(number, value, 100.0) for number, value in enumerate(scores, start=1)] for scores in (scores_1, scores_2)
    )
    return win_rate(framed(one), framed(other))


def bounds(found):
    return found.low, found.share, found.high


@many
@given(responses, responses, st.booleans())
def test_it_is_the_mean_over_examples_of_the_share_of_decided_pairs(rows_1, rows_2, length_controlled):
    found = win_rate(framed(rows_1), framed(rows_2), length_controlled=length_controlled)
    wins, counts = {}, {"ties": 0, "unscored": 0, "unlike": 0, "pairs": 0}
    for example_1, score_1, length_1 in rows_1:
        for example_2, score_2, length_2 in rows_2:
            if example_1 != example_2:
                continue
            if math.isnan(score_1) or math.isnan(score_2):
                counts["unscored"] += 1
            elif length_controlled and not abs(length_1 - length_2) <= 0.1 * (length_1 + length_2) / 2:
                counts["unlike"] += 1
            else:
                counts["pairs"] += 1
                if score_1 == score_2:
                    counts["ties"] += 1
                else:
                    wins.setdefault(example_1, []).append(score_1 > score_2)
    assert found.share == pytest.approx(
        np.mean([np.mean(each) for each in wins.values()]) if wins else math.nan, nan_ok=True
    )
    assert (found.n_examples, found.n_ties) == (len(wins), counts["ties"])
    assert (found.n_unlike, found.n_pairs) == (counts["unlike"], counts["pairs"])


@many
@given(responses, responses, st.booleans())
def test_what_one_wins_the_other_loses(rows_1, rows_2, length_controlled):
    there = win_rate(framed(rows_1), framed(rows_2), length_controlled=length_controlled)
    back = win_rate(framed(rows_2), framed(rows_1), length_controlled=length_controlled)
    if there.n_examples:
        assert there.share + back.share == pytest.approx(1)
        assert bounds(back) == pytest.approx((1 - there.high, 1 - there.share, 1 - there.low))
        assert 0 <= there.low <= there.share <= there.high <= 1
        assert there.high - there.low > 0
    else:
        assert all(math.isnan(value) for value in bounds(there))
    assert there.n_pairs == back.n_pairs


@many
@given(responses, responses, st.randoms(use_true_random=False))
def test_the_order_of_responses_does_not_matter(rows_1, rows_2, random):
    mixed_1, mixed_2 = rows_1[:], rows_2[:]
    random.shuffle(mixed_1)
    random.shuffle(mixed_2)
    one, other = win_rate(framed(rows_1), framed(rows_2)), win_rate(framed(mixed_1), framed(mixed_2))
    assert bounds(one) == pytest.approx(bounds(other), nan_ok=True)
    assert (one.n_pairs, one.n_ties) == (other.n_pairs, other.n_ties)


@pytest.mark.parametrize("n_wins", [0, 1, 13, 20])
def test_with_one_pair_an_example_the_interval_is_wilsons(n_wins):
    found = alone([1.0] * n_wins + [0.0] * (20 - n_wins), [0.5] * 20)
    assert (found.low, found.high) == pytest.approx(proportion_confint(n_wins, 20, method="wilson"), abs=1e-12)


def test_three_wins_of_three_are_not_certainty_however_many_pairs_they_are():
    three = framed([(number, 1.0, 100.0) for number in (1, 2, 3) for _ in range(8)])
    beaten = framed([(number, 0.0, 100.0) for number in (1, 2, 3) for _ in range(8)])
    found = win_rate(three, beaten)
    assert (found.n_pairs, found.n_examples, found.share) == (192, 3, 1)
    assert found.low == pytest.approx(proportion_confint(3, 3, method="wilson")[0])


def test_more_examples_that_disagree_less_make_a_narrower_interval():
    rng = np.random.default_rng(1)
    one = framed([(number, value, 100.0) for number in range(40) for value in rng.normal(0.1, 1, 8)])
    other = framed([(number, value, 100.0) for number in range(40) for value in rng.normal(0, 1, 8)])
    found = win_rate(one, other)
    assert found.high - found.low < alone([1.0] * 20 + [0.0] * 20, [0.5] * 40).high - 0.5


@pytest.mark.parametrize(("longer", "counted"), [(110.0, True), (110.6, False), (math.nan, False)])
def test_lengths_may_differ_by_a_tenth_of_their_mean(longer, counted):
    # |110 - 100| = 10 <= .1 * 105; |110.6 - 100| = 10.6 > .1 * 105.3
    found = win_rate(framed([(1, 1.0, 100.0)]), framed([(1, 0.0, longer)]), length_controlled=True)
    assert (found.n_pairs, found.n_unlike) == ((1, 0) if counted else (0, 1))


def test_scores_that_differ_by_rounding_are_a_tie():
    assert alone([0.1 + 0.2], [0.3]).n_ties == 1


def test_an_example_of_another_evaluation_is_another_example():
    one = framed([(1, 1.0, 100.0)])
    assert win_rate(one, one.assign(evaluation=pd.Categorical(["hard"]))).n_pairs == 0


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "n_examples"), [(0.0, 40), (0.5, 40), (0.8, 120), (0.3, 12)])
def test_the_interval_covers_the_true_rate(shift, n_examples):
    rng, held, n_draws = np.random.default_rng(20261120), 0, 800
    true = win_rate(*drawn(rng, 40_000, shift)).share
    for _ in range(n_draws):
        found = win_rate(*drawn(rng, n_examples, shift))
        held += found.low <= true <= found.high
    assert 0.925 <= held / n_draws <= 0.98


def drawn(rng, n_examples, shift):
    """Three responses of each model to each example; examples favour one model or the other."""
    examples = np.repeat(np.arange(n_examples), 3)
    favour = rng.normal(shift, 1, n_examples)[examples]
    scores = rng.normal(favour, 0.7), rng.normal(0, 0.7, len(examples))
    return [
        pd.DataFrame({"evaluation": "invented", "example_id": examples, "score": values, "n_chars": 100.0})
        for values in scores
    ]
