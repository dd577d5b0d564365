"""Which responses to read next: probabilities that add up, a drawing that keeps them, the same again from its seed and its record."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.planning.acts import drawn_systematically
from evalcore.planning.sample_size import FLOOR, at_odds, inclusion_probabilities
from evalcore.rubric.drawings import AGREED, SPLIT, UNKNOWN, clipped, disagreement, doubt, unit_sizes

many = settings(max_examples=20, deadline=None)
size = st.floats(0, 1e4) | st.sampled_from([0.0, 1.0, 1.0, 2.0])
wanted = st.lists(size, min_size=1, max_size=30).flatmap(
    lambda sizes: st.tuples(st.just(np.array(sizes)), st.integers(1, len(sizes)))
)


# ---------------------------------------------------------------- sizes


def test_physicians_are_doubted_the_more_the_judges_disagree_and_alike_with_one_judge():
    labels = pd.DataFrame({"a": [1, 0, 1], "b": [1, 0, 0], "c": [1, 0, 1]}, dtype=float)
    assert doubt(disagreement(labels[["a", "b"]])).tolist() == [AGREED, AGREED, SPLIT] == [0.3, 0.3, 0.5]
    # one of three differs: twice its share is 2/3 of the way from .3 to .5
    assert doubt(disagreement(labels)) == pytest.approx([0.3, 0.3, 0.3 + 0.2 * 2 / 3])
    assert doubt(disagreement(labels[["a"]])).tolist() == [UNKNOWN] * 3 == [0.4] * 3


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, math.nan]), min_size=4, max_size=4), min_size=1, max_size=12))
def test_disagreement_is_the_same_whichever_judge_says_what_and_whatever_met_is_called(rows):
    votes = pd.DataFrame(rows, columns=list("abcd"))
    found = disagreement(votes)
    assert np.array_equal(found, disagreement(votes[["d", "b", "c", "a"]]), equal_nan=True)
    assert np.array_equal(found, disagreement(1 - votes), equal_nan=True)
    for row, value in zip(rows, found, strict=True):
        said = [label for label in row if not math.isnan(label)]
        if len(said) < 2:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(2 * min(said.count(0.0), said.count(1.0)) / len(said))
    assert ((doubt(found) >= AGREED) & (doubt(found) <= SPLIT)).all()


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, math.nan]), st.floats(0.1, 10)), min_size=2, max_size=30),
    st.data(),
)
def test_of_two_units_that_move_the_number_alike_the_one_with_more_disagreement_is_never_drawn_less_often(items, data):
    disagreements, weights = (np.array(column) for column in zip(*items, strict=True))
    weights[:] = weights[0]
    n_wanted = data.draw(st.integers(1, len(items)))
    found = inclusion_probabilities(weights * doubt(disagreements), n_wanted).of_units
    assert found.sum() == pytest.approx(n_wanted)
    assert ((found > 0) & (found <= 1)).all()
    order = np.argsort(np.nan_to_num(disagreements, nan=0.5), kind="stable")
    assert (np.diff(found[order]) >= -1e-12).all()
    at = at_odds(disagreements, found)
    assert at.n_items == int((~np.isnan(disagreements)).sum())
    if not math.isnan(at.times):
        assert at.times >= 1 - 1e-12
        assert at.times <= SPLIT / AGREED + 1e-9


def test_the_size_of_a_response_is_the_root_of_its_summed_squares_and_the_sum_only_if_all_errors_go_one_way():
    weights, unit = np.array([3.0, 4.0, 2.0]), np.array([0, 0, 1])
    assert unit_sizes(weights, unit) == pytest.approx([5, 2])
    assert unit_sizes(weights, unit, correlation=1.0) == pytest.approx([7, 2])
    assert unit_sizes(weights, unit, correlation=0.5) == pytest.approx([math.sqrt((25 + 49) / 2), 2])


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_no_other_probabilities_of_the_same_number_give_a_smaller_variance(correlation):
    # V = sum (1/pi - 1) size^2 is least at pi ~ size: moving a little from any unit to any other makes it larger
    rng = np.random.default_rng(5)
    unit = np.sort(rng.integers(0, 12, 60))
    unit = np.unique(unit, return_inverse=True)[1]
    sizes = unit_sizes(rng.random(60), unit, correlation=correlation)
    best = inclusion_probabilities(sizes, 3, floor=0.01).of_units
    assert best.max() < 1

    def variance(pi):
        return float(((1 / pi - 1) * sizes**2).sum())

    for one in range(len(sizes)):
        for other in range(len(sizes)):
            moved = best.copy()
            moved[one] += 0.01
            moved[other] -= 0.01
            assert variance(moved) >= variance(best)


# ---------------------------------------------------------------- probabilities


def test_probabilities_are_proportional_to_size_where_neither_bound_is_met():
    # 1, 2, 3 of 6 units wanted: 1/6 of each point of size
    found = inclusion_probabilities(np.array([1.0, 2.0, 3.0]), 1)
    assert found.of_units == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert found.scale == pytest.approx(1 / 6)


def test_what_is_above_one_is_certain_and_the_rest_is_scaled_anew():
    # 2 wanted of 10, 1, 1, 2: the first is certain, and 1 more of sizes 1, 1, 2
    assert inclusion_probabilities(np.array([10.0, 1, 1, 2]), 2).of_units == pytest.approx([1, 1 / 4, 1 / 4, 1 / 2])


def test_no_probability_is_below_a_fifth_of_the_mean():
    # 1 wanted of 5, mean .2, floor .04; the other .96 go to 16 points of size: .06 a point
    found = inclusion_probabilities(np.array([0.01, 4, 4, 4, 4]), 1)
    assert found.of_units == pytest.approx([0.04, 0.24, 0.24, 0.24, 0.24])
    assert found.floor == pytest.approx(0.2 / 5)


@many
@given(wanted)
def test_probabilities_add_up_lie_above_the_floor_and_grow_with_size(case):
    sizes, n = case
    found = inclusion_probabilities(sizes, n)
    pi = found.of_units
    assert pi.sum() == pytest.approx(n, abs=1e-6)
    assert (pi > 0).all()
    assert (pi <= 1).all()
    assert (pi >= FLOOR * n / len(sizes) - 1e-9).all()
    assert (np.diff(pi[np.argsort(sizes, kind="stable")]) >= -1e-9).all()
    assert clipped(sizes, found.scale, found.floor).tolist() == pi.tolist()


@many
@given(wanted, st.randoms(use_true_random=False))
def test_the_order_of_units_does_not_matter(case, chance):
    sizes, n = case
    order = list(range(len(sizes)))
    chance.shuffle(order)
    assert inclusion_probabilities(sizes[order], n).of_units == pytest.approx(
        inclusion_probabilities(sizes, n).of_units[order], abs=1e-9
    )


@many
@given(wanted)
def test_drawing_more_makes_nothing_less_likely(case):
    sizes, n = case
    if n < len(sizes):
        fewer, more = inclusion_probabilities(sizes, n).of_units, inclusion_probabilities(sizes, n + 1).of_units
        assert (more >= fewer - 1e-9).all()


@many
@given(wanted, st.floats(0.01, 100))
def test_only_the_ratios_of_sizes_matter(case, times):
    sizes, n = case
    assert inclusion_probabilities(sizes * times, n).of_units == pytest.approx(
        inclusion_probabilities(sizes, n).of_units, abs=1e-9
    )


def test_sizes_alike_or_none_at_all_are_drawn_alike():
    for sizes in (np.full(8, 3.0), np.zeros(8)):
        assert inclusion_probabilities(sizes, 2).of_units == pytest.approx([0.25] * 8)
    assert inclusion_probabilities(np.array([1.0, 5.0]), 1, floor=1.0).of_units.tolist() == [0.5, 0.5]
    assert inclusion_probabilities(np.array([0.0, 5.0]), 2).of_units.tolist() == [1, 1]


@pytest.mark.parametrize("n", [0, -1, 4])
def test_more_than_there_are_and_none_is_refused(n):
    with pytest.raises(ValueError, match="expected more than 0 and at most 3"):
        inclusion_probabilities(np.ones(3), n)


# ---------------------------------------------------------------- the drawing


@many
@given(wanted, st.integers(0, 2**31))
def test_a_drawing_has_the_wanted_number_each_once_and_all_that_are_certain(case, seed):
    sizes, n = case
    pi = inclusion_probabilities(sizes, n).of_units
    drawn = drawn_systematically(pi, rng=np.random.default_rng(seed))
    assert len(drawn) == len(set(drawn.tolist())) == n
    assert set(np.flatnonzero(pi == 1)) <= set(drawn.tolist())
    assert drawn.tolist() == drawn_systematically(pi, rng=np.random.default_rng(seed)).tolist()


def test_every_unit_is_drawn_as_often_as_its_probability_says():
    pi = inclusion_probabilities(np.array([0.1, 1, 1, 2, 3, 5, 8, 40.0]), 3).of_units
    assert pi.max() == 1
    rng, n_draws = np.random.default_rng(3), 2_000
    counts = np.zeros(len(pi))
    for _ in range(n_draws):
        counts[drawn_systematically(pi, rng=rng)] += 1
    assert (np.abs(counts / n_draws - pi) <= 4 * np.sqrt(pi * (1 - pi) / n_draws)).all(), counts / n_draws - pi


def test_units_are_drawn_in_random_order_so_that_any_two_can_come_together():
    pi, rng = np.full(6, 1 / 3), np.random.default_rng(4)
    pairs = {tuple(sorted(drawn_systematically(pi, rng=rng).tolist())) for _ in range(600)}
    assert len(pairs) == 15  # all of 6 over 2; in one fixed order only neighbours 3 apart would meet


def test_probabilities_that_add_up_to_no_whole_number_draw_one_more_or_less():
    pi, rng = np.full(5, 0.5), np.random.default_rng(6)
    numbers = [len(drawn_systematically(pi, rng=rng)) for _ in range(2_000)]
    assert set(numbers) == {2, 3}
    assert abs(np.mean(numbers) - 2.5) < 4 * 0.5 / math.sqrt(2_000)


def test_nothing_to_draw_from_is_nothing_drawn():
    assert drawn_systematically(np.empty(0), rng=np.random.default_rng(1)).tolist() == []
