"""Judge drift: flips counted by hand, McNemar's test with examples as clusters, scores before and after."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import norm
from statsmodels.stats.contingency_tables import mcnemar

from evalcore.judges.drift import (
    ALL_MODELS,
    CLUSTERED,
    EXACT,
    GROUPINGS,
    NO_FLIPS,
    NO_ITEMS,
    _sign_flip_chance,
    flips,
    score_drift,
)
from evalcore.rubric.data import RubricData
from evalcore.stats.intervals import share_interval
from tests import population
from tests.rubric_rows import of_columns, shuffled


def two(old, new, *, example=None, criterion=None, **more):
    """Items of two judges; each an example of its own unless told otherwise."""
    n = len(old)
    return of_columns(
        example=example or list(range(1, n + 1)),
        criterion=criterion or [1] * n,
        judges={"old": old, "new": new},
        **more,
    )


def overall(rubric_data):
    return flips(rubric_data, "old", "new", by=("overall",)).iloc[0]


# ---------------------------------------------------------------- counts


def test_flips_are_counted_in_their_direction_on_items_that_both_labelled():
    #                  flips:  -  -  +          not common: the last two
    found = overall(two("++++--+.", "+--+-+.+"))
    assert (found["n"], found["n_before_only"], found["n_after_only"]) == (6, 1, 1)
    assert (found["n_met_before"], found["n_met_after"]) == (4, 3)
    assert (found["n_flips"], found["n_to_not_met"], found["n_to_met"]) == (3, 2, 1)
    assert (found["flips"], found["to_not_met"], found["to_met"]) == (3 / 6, 2 / 4, 1 / 2)
    alone = share_interval([False, True, True, False], range(4))
    assert (found["to_not_met_low"], found["to_not_met_high"]) == pytest.approx((alone.low, alone.high))


def test_flips_are_told_by_category_axis_and_sign():
    rubric_data = two(
        "++++",
        "+-+-",
        points=[3, -2, 5, math.nan],
        cluster=["hedging_any", None, "hedging_only", "hedging_any"],
        axis=["accuracy", "accuracy", "completeness", None],
    )
    table = flips(rubric_data, "old", "new").set_index(["grouping", "group"])
    assert table["n_flips"].to_dict() == {
        ("overall", "overall"): 2,
        ("category", "hedging_any"): 1,
        ("category", "hedging_only"): 0,
        ("axis", "accuracy"): 1,
        ("axis", "completeness"): 0,
        ("sign", "desirable"): 0,
        ("sign", "undesirable"): 1,
        ("sign", "no points known"): 1,
    }
    assert table["n"].to_dict()["axis", "accuracy"] == 2


# ---------------------------------------------------------------- McNemar's test


def test_with_one_item_an_example_and_few_examples_the_test_is_mcnemars_exact_one():
    old = "+" * 86 + "-" * 150 + "+" * 50 + "-" * 50
    new = "-" * 86 + "+" * 150 + "+" * 50 + "-" * 50
    found = overall(two(old, new))
    assert (found["test"], found["z"]) == (CLUSTERED, pytest.approx((150 - 86) / math.sqrt(236)))
    few = overall(two("+" * 3 + "-" * 9 + "+-", "-" * 3 + "+" * 9 + "+-"))
    assert few["test"] == EXACT
    assert few["p"] == pytest.approx(mcnemar([[1, 3], [9, 1]], exact=True).pvalue, rel=1e-9)


def test_flips_of_one_example_are_one_cluster():
    # example 1: three to met; 2: two to not met; 3: one each way, d = 0; 4: one to met, one stays
    found = overall(
        two(
            "---" "++" "+-" "--",
            "+++" "--" "-+" "+-",
            example=[1, 1, 1, 2, 2, 3, 3, 4, 4],
            criterion=[1, 2, 3, 1, 2, 1, 2, 1, 2],
        )
    )  # fmt: skip
    z = (3 - 2 + 0 + 1) / math.sqrt(9 + 4 + 0 + 1)
    assert found["z"] == pytest.approx(z)
    # |3 - 2 + 1| = 2 or more of +-3 +-2 +-1: all but 3 - 2 - 1 = 0 and its opposite, of 8
    assert (found["test"], found["p"]) == (EXACT, 6 / 8)
    assert (found["n_flips"], found["n_examples"]) == (8, 4)


def test_flips_that_balance_in_every_example_are_no_drift():
    found = overall(two("+-+-", "-+-+", example=[1, 1, 2, 2], criterion=[1, 2, 1, 2]))
    assert (found["z"], found["p"], found["reason"]) == (0, 1, "")


def test_identical_judges_have_no_flips_and_no_p():
    found = overall(two("+-+-", "+-+-"))
    assert (found["n_flips"], found["flips"]) == (0, 0)
    assert math.isnan(found["p"])
    assert math.isnan(found["z"])
    assert found["reason"] == NO_FLIPS


def test_judges_without_a_common_item_have_no_shares():
    found = overall(two("++..", "..--"))
    assert (found["n"], found["n_before_only"], found["n_after_only"], found["reason"]) == (0, 2, 2, NO_ITEMS)
    assert math.isnan(found["flips"])
    assert math.isnan(found["p"])


def test_the_p_of_several_groups_is_adjusted_for_their_number():
    table = flips(
        two("-" * 12, "+" * 12, axis=["accuracy"] * 5 + ["completeness"] * 7), "old", "new", by=("overall", "axis")
    ).set_index("group")
    # 5 and 7 examples that all flip one way: 2/32 and 2/128, of two groups Holm doubles the smaller
    assert table["p"].to_dict() == pytest.approx({"overall": 2 / 4096, "accuracy": 2 / 32, "completeness": 2 / 128})
    assert table["p_holm"].to_dict() == pytest.approx(
        {"overall": 2 / 4096, "accuracy": 2 / 32, "completeness": 4 / 128}
    )


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
def test_the_exact_test_counts_every_assignment_of_signs(leanings):
    d = np.array([lean for lean in leanings if lean], dtype=np.int64)
    sums = [abs(int(np.dot(signs, d))) for signs in product((-1, 1), repeat=len(d))]
    assert _sign_flip_chance(d) == pytest.approx(np.mean([total >= abs(int(d.sum())) for total in sums]))


def test_with_few_examples_the_exact_test_holds_its_level():
    """Ten examples of which about four lean by up to three flips: normal p rejects .08 to .13 of the time at 5 %."""
    rng = np.random.default_rng(5)
    leanings = rng.choice([-3, -1, 0, 0, 0, 1, 3], (2_000, 10))
    exact = np.mean([_sign_flip_chance(row[row != 0]) < 0.05 for row in leanings])
    root = np.sqrt((leanings**2).sum(axis=1))
    normal = np.mean(2 * norm.sf(np.abs(leanings.sum(axis=1) / np.where(root > 0, root, 1))) < 0.05)
    assert exact <= 0.05
    assert normal > exact


def rejections(rng, n_runs, *, n_examples=60, n_criteria=8):
    """How often the clustered and the naive test reject at 5 % where examples lean either way with equal chance."""
    clustered, naive = 0, 0
    example = np.repeat(np.arange(1, n_examples + 1), n_criteria)
    criterion = np.tile(np.arange(1, n_criteria + 1), n_examples).tolist()
    for _ in range(n_runs):
        old = rng.random(len(example)) < 0.5
        # of an example that flips at all, labels flip to one side: met for some examples, not met for as many
        lean = np.repeat(rng.choice([-1, 0, 0, 0, 1], n_examples), n_criteria)
        moved = rng.random(len(example)) < 0.35
        new = np.where(moved & (lean != 0), lean > 0, old)
        found = overall(
            two(
                "".join("+" if met else "-" for met in old),
                "".join("+" if met else "-" for met in new),
                example=example.tolist(),
                criterion=criterion,
            )
        )
        clustered += found["p"] < 0.05
        n_up, n_down = found["n_to_met"], found["n_to_not_met"]
        naive += mcnemar([[0, n_up], [n_down, 0]], exact=False, correction=False).pvalue < 0.05
    return clustered / n_runs, naive / n_runs


@pytest.mark.slow
def test_the_clustered_test_holds_its_level_where_the_naive_one_rejects_four_times_too_often():
    clustered, naive = rejections(np.random.default_rng(1947), 800)
    assert clustered == pytest.approx(0.05, abs=0.025)  # 800 runs: standard error .008
    assert naive > 0.17


# ---------------------------------------------------------------- scores


def test_scores_before_and_after_are_means_over_the_same_responses():
    # two examples, two criteria each (4 and -2 points): old 4/4 and 2/4; new 2/4 and 0/4; the third lacks a label
    rubric_data = two(
        "+-" "++" "+-",
        "++" "--" "+.",
        example=[1, 1, 2, 2, 3, 3],
        criterion=[1, 2] * 3,
        points=[4, -2] * 3,
    )  # fmt: skip
    table = score_drift(rubric_data, "old", "new")
    assert len(table) == 1
    found = table.iloc[0]
    assert (found["model"], found["evaluation"]) == ("Alder", "invented")
    assert (found["n_responses"], found["n_left_out"], found["n_examples"]) == (2, 1, 2)
    assert (found["score_before"], found["score_after"]) == (0.75, 0.25)
    # differences -1/2 and -1/2: no spread
    assert (found["difference"], found["low"], found["high"]) == pytest.approx((-0.5, -0.5, -0.5))


def test_the_interval_of_a_difference_is_that_of_a_mean_over_examples():
    # differences 1, 0, 0, -1, 1 of five examples with one response: mean .2, sd .8367, se .3742, t(4) = 2.7764
    found = score_drift(two("-+-+-", "++--+"), "old", "new").iloc[0]
    assert found["difference"] == pytest.approx(0.2)
    assert (found["low"], found["high"]) == pytest.approx((0.2 - 2.7764 * 0.37417, 0.2 + 2.7764 * 0.37417), abs=1e-4)


def test_all_models_together_are_clustered_by_the_examples_they_share():
    # two models on the same three examples, moving alike: together nothing is known beyond three examples
    rubric_data = of_columns(
        example=[1, 2, 3] * 2,
        criterion=[1] * 6,
        model=["Alder"] * 3 + ["Briar"] * 3,
        judges={"old": "-+-" * 2, "new": "++-" * 2},
    )
    table = score_drift(rubric_data, "old", "new").set_index("model")
    assert list(table.index) == ["Alder", "Briar", ALL_MODELS]
    for column in ("difference", "low", "high", "n_examples"):
        assert table[column].iloc[2] == pytest.approx(table[column].iloc[0])
    assert table["n_responses"].iloc[2] == 6


def test_one_example_has_a_difference_and_no_interval():
    found = score_drift(two("-", "+"), "old", "new").iloc[0]
    assert found["difference"] == 1
    assert math.isnan(found["low"])


# ---------------------------------------------------------------- properties


@pytest.fixture(scope="module")
def study():
    rubric_data, _ = population.drawn(
        np.random.default_rng(17),
        n_examples=40,
        models=("Alder", "Briar"),
        judges={"old": 0.8, "new": 0.7},
        n_repeats=2,
    )
    told = rubric_data.judged.mask(np.random.default_rng(18).random(rubric_data.judged.shape) < 0.02)
    return RubricData(rubric_data.items, told, rubric_data.reads)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(study, seed):
    anew = shuffled(study, np.random.default_rng(seed))
    pd.testing.assert_frame_equal(
        flips(study, "old", "new", by=GROUPINGS), flips(anew, "old", "new", by=GROUPINGS), rtol=1e-9
    )
    pd.testing.assert_frame_equal(score_drift(study, "old", "new"), score_drift(anew, "old", "new"), rtol=1e-9)


@given(seed=st.integers(0, 2**32 - 1))
def test_swapping_the_judges_turns_the_sign_and_nothing_else(study, seed):
    some = study.where(np.random.default_rng(seed).random(len(study.items)) < 0.3)
    there, back = flips(some, "old", "new", by=GROUPINGS), flips(some, "new", "old", by=GROUPINGS)
    np.testing.assert_allclose(there["z"], -back["z"])
    for same in ("n", "n_flips", "flips", "flips_low", "flips_high", "p"):
        np.testing.assert_allclose(there[same], back[same])
    assert there["n_to_met"].tolist() == back["n_to_not_met"].tolist()
    assert there["n_before_only"].tolist() == back["n_after_only"].tolist()


def test_swapping_the_judges_turns_the_difference_of_scores(study):
    there, back = score_drift(study, "old", "new"), score_drift(study, "new", "old")
    np.testing.assert_allclose(there["difference"], -back["difference"])
    np.testing.assert_allclose(there["low"], -back["high"])
    np.testing.assert_allclose(there["score_before"], back["score_after"])


def test_a_judge_beside_itself_has_no_flips_and_no_difference(study):
    table = flips(study, "old", "old", by=GROUPINGS)
    assert not table["n_flips"].any()
    assert table["p"].isna().all()
    scores = score_drift(study, "old", "old")
    assert not scores["difference"].any()
    np.testing.assert_array_equal(scores["low"], scores["high"])


def test_the_groups_of_a_grouping_hold_every_flip_once(study):
    table = flips(study, "old", "new", by=("overall", "axis", "sign", "theme"))
    counted = table.groupby("grouping")[["n", "n_flips", "n_to_met", "n_before_only"]].sum()
    assert (counted == counted.loc["overall"]).all(axis=None)


def test_a_study_without_items_has_no_rows(study):
    nothing = study.where(np.zeros(len(study.items), dtype=bool))
    assert flips(nothing, "old", "new", by=GROUPINGS).empty
    assert score_drift(nothing, "old", "new").empty
