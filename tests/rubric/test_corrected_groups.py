"""Corrected scores by group: the study's own estimator on each group alone, and tests of whether groups differ."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evalcore.rubric.corrected_groups import (
    DIFFERENCE,
    JUDGE_ERROR,
    by_group,
    error_words,
    group_corrected_scores,
    group_differences,
    group_words,
    interaction_words,
    interactions,
)
from evalcore.rubric.scores import group_scores
from evalcore.stats.pair_tests import holm
from evalcore.study.schema import Claim, Physicians
from tests.population import corrected_scores, drawn

HOW = {"claim": Claim.NEW_EXAMPLES, "physicians": Physicians.THESE}


def study(seed=1, **more):
    return drawn(np.random.default_rng(seed), **{"n_examples": 120, "models": ["A", "B"], "share_read": 0.4} | more)


def grouped(rubric_data, grouping, **how):
    return group_corrected_scores(by_group(rubric_data, grouping, **how), **HOW)


def test_a_group_of_examples_has_the_score_of_a_study_of_these_alone():
    rubric_data, _ = study()
    found = grouped(rubric_data, "theme")
    for theme in rubric_data.items["theme"].unique():
        alone = corrected_scores(rubric_data.where(rubric_data.items["theme"].eq(theme)), **HOW)
        here = found.loc[found["group"].eq(theme)].drop(columns="group").reset_index(drop=True)
        pd.testing.assert_frame_equal(here, alone)


@pytest.mark.parametrize("grouping", ["theme", "axis", "language"])
def test_judge_only_is_healthbenchs_score_of_the_group_and_leaves_out_the_same(grouping):
    rubric_data, _ = study()
    gone = rubric_data.items["response_id"].eq(rubric_data.items["response_id"].iloc[0]) & rubric_data.items[
        "position"
    ].eq(1)
    rubric_data = rubric_data.where(~gone)  # a criterion is missing: the response has no score in any group
    found = grouped(rubric_data, grouping)
    both = found.merge(
        group_scores(rubric_data, "Magpie", by=(grouping,)), on=["group", "model"], suffixes=("", "_judge")
    )
    assert len(both) == len(found) > 0
    np.testing.assert_allclose(both["judge_only"], both["raw_mean"], atol=1e-12)
    assert both["n_examples"].to_list() == both["n_examples_judge"].to_list()
    assert both["n_left_out"].to_list() == both["n_undefined"].to_list()


@pytest.mark.parametrize("grouping", ["theme", "axis"])
def test_with_everything_read_the_corrected_score_of_a_group_is_its_true_one(grouping):
    """A judge who is wrong in 3 of 10 labels; physicians who read everything and are right."""
    rubric_data, truth = study(share_read=1.0, judges={"Magpie": 0.7})
    found = grouped(rubric_data, grouping).set_index(["group", "model"])
    right = rubric_data.judged.assign(truth=truth.to_numpy())
    true = group_scores(type(rubric_data)(rubric_data.items, right, rubric_data.reads), "truth", by=(grouping,))
    true = true.set_index(["group", "model"])["raw_mean"]
    np.testing.assert_allclose(found["corrected"], true.reindex(found.index), atol=1e-9)
    assert (found["judge_only"] - found["corrected"]).abs().max() > 0.02


def test_a_group_of_which_little_is_read_says_what_lacks_and_no_score():
    rubric_data, _ = study(share_read=0.03)
    found = grouped(rubric_data, "theme")
    assert not found["enough"].any()
    assert found["corrected"].isna().all()
    assert found["needed"].str.contains("more criteria to be read").all()
    tests = interactions(by_group(rubric_data, "theme"), "theme")
    assert tests["p"].isna().all()
    assert tests["n_groups"].eq(0).all()
    assert interaction_words(tests.iloc[0], "theme") == (
        "Whether the difference between A and B depends on the theme cannot be said: enough is read in 0 of 4 themes."
    )


def test_differences_are_adjusted_over_all_groups_and_pairs():
    rubric_data, _ = study(models=["A", "B", "C"])
    known = by_group(rubric_data, "axis")
    found = group_differences(known, **HOW)
    assert len(found) == 4 * 3
    np.testing.assert_allclose(found["p_holm"], holm(found["p"].to_numpy()))


def test_welchs_test_is_that_of_groups_of_plain_values():
    """Everything read, one criterion an example, a judge of nothing but "met": a group's corrected score is a plain mean of its votes.

    The judge's error is then 1 less that mean; Welch's test of it is that of the values themselves, but for the widening for votes not seen (0 here).
    """
    rubric_data, truth = study(share_read=1.0, n_examples=200)
    first = rubric_data.items["position"].eq(1) & rubric_data.items["model"].eq("A")
    rubric_data = rubric_data.where(first)
    items = rubric_data.items.assign(n_expected=1, points=1.0)
    rubric_data = type(rubric_data)(items, rubric_data.judged.assign(Magpie=1.0), rubric_data.reads)
    test = interactions(by_group(rubric_data, "theme"), "theme").iloc[0]
    assert test["about"] == JUDGE_ERROR
    values = [truth.to_numpy()[first.to_numpy()][items["theme"].eq(theme)] for theme in items["theme"].unique()]
    sizes, means, variances = (np.array([f(v) for v in values]) for f in (len, np.mean, lambda v: v.var(ddof=1)))
    # the residual of an item counts 1/(1 - h), h = 1/n, in the influence values: variances are (n/(n-1))^2 times the plain ones
    weights = sizes / (variances * (sizes / (sizes - 1)) ** 2)
    lost = ((1 - weights / weights.sum()) ** 2 / (sizes - 1)).sum()
    between = (weights * (means - weights @ means / weights.sum()) ** 2).sum() / 3
    f = between / (1 + 2 * 2 / 15 * lost)
    assert test["f"] == pytest.approx(f)
    assert test["p"] == pytest.approx(stats.f.sf(f, 3, 15 / (3 * lost)))


@pytest.mark.parametrize("grouping", ["theme", "axis"])
def test_a_judge_that_is_lenient_in_one_group_alone_is_found(grouping):
    rubric_data, _ = study(seed=3, n_examples=240)
    before = interactions(by_group(rubric_data, grouping), grouping)
    group = rubric_data.items[grouping].eq(rubric_data.items[grouping].iloc[0]).to_numpy()
    best = rubric_data.items["points"].gt(0).astype(float)  # desirable things met, undesirable ones not
    lenient = rubric_data.judged.assign(Magpie=rubric_data.judged["Magpie"].where(~group, best))
    rubric_data = type(rubric_data)(rubric_data.items, lenient, rubric_data.reads)
    after = interactions(by_group(rubric_data, grouping), grouping)
    errors, differences = after["about"].eq(JUDGE_ERROR), after["about"].eq(DIFFERENCE)
    assert (after.loc[errors, "p_holm"] < 0.01).all()
    assert (before.loc[errors, "p_holm"] > 0.05).all()
    assert (after.loc[differences, "p_holm"] > 0.05).all()  # lenient with both alike
    said = interaction_words(after.loc[errors].iloc[0], grouping)
    assert said.startswith(f"The judge's error about A depends on the {grouping} (F(3, ")
    assert "is not clear" in interaction_words(after.loc[differences].iloc[0], grouping)
    assert error_words(after.loc[errors], grouping).startswith(
        f"The judge's error depends on the {grouping} for A and B (p at most"
    )
    assert "is not clear" in error_words(before.loc[errors], grouping)


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["theme", "axis"])
def test_where_groups_are_alike_the_test_says_otherwise_in_one_study_of_twenty(grouping):
    """60 studies, 3 tests each (pair, two judge's errors): 180 p, of which 5 % below .05; at most 10 % (3.1 SE)."""
    chances = []
    for seed in range(60):
        rubric_data, _ = study(seed=seed, share_read=0.3)
        chances += interactions(by_group(rubric_data, grouping), grouping)["p"].to_list()
    assert np.mean(np.array(chances) < 0.05) <= 0.1


def test_the_sentence_is_about_the_primary_comparison_where_one_is_stated_else_about_the_two_best():
    rubric_data, _ = study(models={"A": 1.0, "B": 0.5, "C": -1.0})
    known = by_group(rubric_data, "axis")
    scores, tests = group_corrected_scores(known, **HOW), interactions(known, "axis")
    assert "the difference between A and B" in group_words(scores, tests, "axis").replace("The diff", "the diff")
    stated = group_words(scores, tests, "axis", ("C", "A")).replace("The diff", "the diff")
    assert "the difference between A and C" in stated
    assert "A and B" not in stated
    assert group_words(scores, tests, "axis", ("C", "gone")) == group_words(scores, tests, "axis")
