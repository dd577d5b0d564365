"""Paired differences and ranks of models: against scipy, against all flips by hand, and by their properties."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from statsmodels.stats.multitest import multipletests

from evalcore.rubric.benchmark import CITATION, published_scores
from evalcore.rubric.judge_only import differences, judge_only_warning
from evalcore.stats.pair_tests import benjamini_hochberg, holm


def chance(number=20261120):
    return np.random.default_rng(number)


def quick(scores, number=1, **other):
    return differences(scores, rng=chance(number), **({"n_resamples": 200, "n_flips": 200} | other))


def row_of(found):
    (row,) = found.to_dict(orient="records")
    return row


# ---------------------------------------------------------------- differences

grid = st.integers(-4, 4).map(lambda number: number / 4)  # scores on a grid: ties are common, as in real ones
holed = st.one_of(grid, grid, grid, st.just(math.nan))
shape = st.tuples(st.integers(1, 9), st.integers(2, 4))


def framed(values):
    return pd.DataFrame(
        values,
        index=pd.Index(np.arange(1, len(values) + 1), name="example_id"),
        columns=pd.Index([f"model {n}" for n in range(values.shape[1])], name="model"),
    )


whole_scores = arrays.arrays(float, shape, elements=grid).map(framed)
holed_scores = arrays.arrays(float, shape, elements=holed).map(framed)
NUMBERS = ["difference", "low", "high", "p", "p_holm", "p_bh", "p_max_t"]


@given(holed_scores)
def test_a_difference_is_the_mean_over_examples_that_both_have(scores):
    for row in quick(scores).to_dict(orient="records"):
        one, other = scores[row["model_1"]], scores[row["model_2"]]
        gaps = (one - other).dropna()
        assert row["n_examples"] == len(gaps)
        assert row["n_left_out"] == (one.notna() ^ other.notna()).sum()
        assert row["difference"] == pytest.approx(gaps.mean(), abs=1e-12, nan_ok=True)
        assert row["small"]
        if math.isnan(row["low"]):
            assert gaps.nunique() < 2
        else:
            assert gaps.min() - 1e-6 <= row["low"] <= row["high"] <= gaps.max() + 1e-6


@given(holed_scores, st.randoms(use_true_random=False))
def test_the_order_of_examples_does_not_matter(scores, random):
    order = list(scores.index)
    random.shuffle(order)
    pd.testing.assert_frame_equal(quick(scores.loc[order]), quick(scores))


@given(holed_scores)
def test_turned_round_a_difference_has_the_other_sign_and_the_same_chance(scores):
    there = quick(scores)
    back = quick(scores[scores.columns[::-1]]).set_index(["model_2", "model_1"])
    back = back.loc[zip(there["model_1"], there["model_2"], strict=True)]
    assert back["difference"].tolist() == pytest.approx((-there["difference"]).tolist(), nan_ok=True)
    assert back["low"].tolist() == pytest.approx((-there["high"]).tolist(), abs=1e-6, nan_ok=True)
    for name in ("p", "p_max_t"):
        assert back[name].tolist() == pytest.approx(there[name].tolist(), nan_ok=True)


@given(whole_scores, st.floats(-1, 1))
def test_a_constant_added_to_a_model_shifts_its_difference_by_it(scores, constant):
    first = scores.columns[0]
    shifted = quick(scores.assign(**{first: scores[first] + constant}))
    before, mine = quick(scores), quick(scores)["model_1"].eq(first)
    for name in ("difference", "low", "high"):
        moved = (shifted[name] - before[name]).loc[mine]
        assert moved.dropna().to_numpy() == pytest.approx(constant, abs=1e-5)
        assert moved.isna().equals(before[name].loc[mine].isna())
        assert shifted.loc[~mine, name].tolist() == pytest.approx(before.loc[~mine, name].tolist(), nan_ok=True)


@given(holed_scores)
def test_chances_of_many_pairs_are_never_smaller_than_that_of_one(scores):
    found = quick(scores)
    known = found.loc[found["n_examples"].gt(0)]
    for name in ("p_holm", "p_bh", "p_max_t"):
        assert (known[name] >= known["p"] - 1e-12).all()
    assert known[["p", "p_holm", "p_bh", "p_max_t"]].le(1).all(axis=None)
    assert (known["p"] >= 1 / 201).all()
    assert found.loc[found["n_examples"].eq(0), NUMBERS].isna().all(axis=None)


def test_the_chance_is_the_exact_one_of_all_flips():
    gaps = np.array([0.3, 0.1, -0.2, 0.4, 0.25, 0.1, 0.05, -0.1, 0.3])
    scores = framed(np.column_stack([gaps + 0.2, np.full(9, 0.2)]))
    exact = scipy.stats.permutation_test(
        (gaps,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )  # all 512 flips
    row = row_of(quick(scores, n_flips=40_000))
    assert row["p"] == pytest.approx(exact.pvalue, abs=4 * math.sqrt(exact.pvalue / 40_000))
    assert row["p"] == row["p_holm"] == row["p_bh"] == row["p_max_t"]  # one pair alone


@pytest.mark.parametrize("n", [1, 2, 5])
def test_with_n_examples_all_the_same_way_the_chance_is_two_in_two_to_the_n(n):
    row = row_of(quick(framed(np.column_stack([np.full(n, 0.7), np.full(n, 0.2)])), n_flips=20_000))
    assert row["difference"] == pytest.approx(0.5)
    assert row["p"] == pytest.approx(2 / 2**n, abs=0.01)


def test_sums_that_are_equal_on_paper_are_equal_here():
    # Every flip of 0.1, 0.2, 0.3 with an absolute sum of 0.6 or more: all plus, all minus. 0.1 + 0.2 + 0.3 is not 0.6 in binary.
    row = row_of(quick(framed(np.column_stack([[0.1, 0.2, 0.3], np.zeros(3)])), n_flips=20_000))
    assert row["p"] == pytest.approx(2 / 8, abs=0.015)


def test_two_models_that_differ_on_one_example_of_many_do_not_differ():
    values = chance().random((3_000, 2))
    values[:, 1] = values[:, 0]
    values[17, 1] += 0.1
    row = row_of(quick(framed(values)))
    assert row["p"] == 1


def test_the_interval_is_scipys_percentile_interval():
    gaps = chance(2).normal(0.05, 0.2, 150)
    expected = scipy.stats.bootstrap(
        (gaps,), np.mean, method="percentile", n_resamples=10_000, rng=chance(3)
    ).confidence_interval  # fmt: skip
    row = row_of(differences(framed(np.column_stack([gaps, np.zeros(150)])), rng=chance(), n_flips=10))
    # The ends of a percentile interval of 10,000 resamples have a standard error of about .03 standard errors of the mean.
    noise = 5 * 0.03 * 0.2 / math.sqrt(150)
    assert [row["low"], row["high"]] == pytest.approx(list(expected), abs=noise)
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * gaps.std() / math.sqrt(150), rel=0.04)


def test_holm_multiplies_the_smallest_chance_by_the_number_of_pairs():
    values = chance(5).normal([0, 0.15, 0.3], 0.3, (40, 3))
    found = quick(framed(values), n_flips=2_000).sort_values("p")
    one, two, three = found["p"]
    assert found["p_holm"].tolist() == pytest.approx(
        np.minimum(1, [3 * one, max(3 * one, 2 * two), max(3 * one, 2 * two, three)]).tolist()
    )
    assert found["p_bh"].tolist() == pytest.approx(
        [min(3 * one, 3 / 2 * two, three), min(3 / 2 * two, three), three]
    )  # fmt: skip


@pytest.mark.parametrize("number", range(3))
def test_adjusted_chances_are_those_of_statsmodels(number):
    p = chance(number).choice([0.0, 0.001, 0.01, 0.02, 0.04, 0.3, 0.5, 1.0], 10)
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)


def test_the_largest_of_pairs_that_are_one_and_the_same_is_that_one():
    values = chance(5).normal([0, 0.05], 0.3, (40, 2))
    doubled = framed(np.column_stack([values, values[:, 1]]))
    found = quick(doubled).set_index(["model_1", "model_2"])
    assert found.loc[("model 0", "model 1"), "p_max_t"] == found.loc[("model 0", "model 1"), "p"]
    assert found.loc[("model 1", "model 2"), "p"] == 1
    assert found.loc[("model 1", "model 2"), "p_max_t"] == 1


def test_the_largest_of_pairs_is_what_the_flips_by_hand_say():
    values = np.round(chance(7).normal(0, 0.3, (6, 3)), 2)
    gaps = np.column_stack([values[:, 0] - values[:, 1], values[:, 0] - values[:, 2], values[:, 1] - values[:, 2]])
    signs = np.array(np.meshgrid(*[[1, -1]] * 6)).reshape(6, -1).T  # all 64
    root = np.sqrt((gaps**2).sum(axis=0))
    largest = (np.abs(signs @ gaps) / root).max(axis=1)
    exact = [(largest >= abs(gap.sum()) / each - 1e-9).mean() for gap, each in zip(gaps.T, root, strict=True)]
    assert quick(framed(values), n_flips=20_000)["p_max_t"].tolist() == pytest.approx(exact, abs=0.015)


def test_models_without_a_shared_example_have_no_difference():
    row = row_of(quick(framed(np.array([[0.5, math.nan], [math.nan, 0.5]]))))
    assert (row["n_examples"], row["n_left_out"]) == (0, 2)
    assert all(math.isnan(row[name]) for name in NUMBERS)


def test_one_shared_example_gives_a_difference_and_no_interval():
    row = row_of(quick(framed(np.array([[0.5, 0.25], [math.nan, 0.5]]))))
    assert (row["n_examples"], row["difference"], row["p"]) == (1, 0.25, 1)
    assert math.isnan(row["low"])


def test_where_all_examples_differ_alike_no_spread_was_seen_and_there_is_no_interval():
    row = row_of(quick(framed(np.array([[0.5, 0.4], [0.9, 0.8], [0.3, 0.2]]))))
    assert row["difference"] == pytest.approx(0.1)
    assert math.isnan(row["low"])
    assert math.isnan(row["high"])


def test_from_twenty_examples_on_a_pair_is_not_small():
    assert quick(framed(chance().random((19, 2))))["small"].tolist() == [True]
    assert quick(framed(chance().random((20, 2))))["small"].tolist() == [False]


@pytest.mark.parametrize("n_models", [0, 1])
def test_without_a_pair_there_is_no_row(n_models):
    assert quick(framed(np.zeros((3, n_models)))).empty


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    scores = framed(chance().random((30, 3)))
    pd.testing.assert_frame_equal(quick(scores, 4), quick(scores, 4))
    assert not quick(scores, 4)["low"].equals(quick(scores, 5)["low"])


@pytest.mark.slow
def test_where_models_do_not_differ_every_chance_is_as_likely_as_any_other():
    rng = chance()
    found = [
        differences(framed(rng.normal(0, 0.3, (40, 3))), rng=rng, n_resamples=1, n_flips=499) for _ in range(1_500)
    ]
    p = np.array([row["p"].iloc[0] for row in found])
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01
    family = np.mean([row["p_max_t"].min() <= 0.05 for row in found])
    assert 0.037 <= family <= 0.064  # .05 within 2.4 standard errors of 1,500 draws
    assert np.mean([row["p"].min() <= 0.05 for row in found]) > 0.09  # what three tests without a correction would say


@pytest.mark.slow
@pytest.mark.parametrize(("n_examples", "lowest"), [(200, 0.93), (20, 0.90)])
def test_the_interval_covers_the_true_difference(n_examples, lowest):
    rng, held = chance(), 0
    for _ in range(1_500):
        # Two skewed scores that share their example's difficulty.
        common = rng.normal(0, 0.3, n_examples)
        values = np.column_stack([common - rng.exponential(0.2, n_examples), common - rng.exponential(0.3, n_examples)])
        row = row_of(differences(framed(values), rng=rng, n_resamples=1_000, n_flips=1))
        held += row["low"] <= 0.1 <= row["high"]
    assert lowest <= held / 1_500 <= 0.965


# ---------------------------------------------------------------- words, and what others published


def test_the_warning_names_the_judge_and_says_whose_opinion_it_is():
    words = judge_only_warning("Magpie")
    assert "Magpie" in words
    assert "opinion" in words
    assert "not a significant difference by physicians" in words


def test_published_scores_are_marked_as_another_judges_and_cited():
    found = published_scores()
    assert not found.duplicated(["model", "subset"]).any()
    assert found["score"].between(0, 1).all()
    assert found["citation"].eq(CITATION).all()
    assert "2505.08775" in CITATION
    assert found["judge"].str.contains("published").all()
    full = found.loc[found["subset"].eq("full")]
    assert full.iloc[0][["model", "score"]].tolist() == ["o3", 0.598]
    assert full["score"].is_monotonic_decreasing
