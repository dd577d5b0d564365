"""Drawing again from what was read: a seeded trial of the two designs on reads whose whole is known."""

import math

import numpy as np
import pandas as pd
import pytest

from evalcore.metrics import plan_words
from evalcore.metrics.retrospect import COLUMNS, CORRECTED, MIN_ITEMS, PHYSICIANS_ONLY, retrospect
from evalcore.metrics.sample_size import IMPORTANCE, UNIFORM
from evalcore.metrics.targets import Goal, Target
from evalcore.opinions import Opinions
from tests.population import drawn

SCORE = Target(Goal.SCORE, 0.03, ("Alder",), ("Magpie",), "invented")
DIFFERENCE = Target(Goal.DIFFERENCE, 0.03, ("Alder", "Birch"), ("Magpie",), "invented")


def study(seed=1, **how):
    return drawn(np.random.default_rng(seed), **({"n_examples": 300, "whole_responses": True, "share_read": 0.5} | how))


def tried(opinions, target=SCORE, seed=7, **how):
    return retrospect(opinions, target, rng=np.random.default_rng(seed), **how)


def cell(found, design, estimator, column):
    rows = found.table.set_index(["design", "estimator"])
    return rows.loc[(design, estimator), column]


def test_the_truth_of_a_trial_is_what_physicians_say_of_all_that_was_read():
    opinions, truth = study()
    found = tried(opinions, n_draws=5)
    items, rows = opinions.items, opinions.reads["row"].to_numpy()
    positive = items["points"].clip(lower=0).groupby(items["response_id"]).transform("sum")
    moves = items["points"] / positive / 300
    assert found.truth == pytest.approx(float((moves * truth)[rows].sum()))
    assert (found.n_items, found.n_responses) == (len(rows), opinions.reads["response_id"].nunique())
    assert found.n_drawn == round(found.n_units / 3)
    assert found.table.columns.tolist() == COLUMNS
    assert set(zip(found.table["design"], found.table["estimator"], strict=True)) == {
        (design, estimator) for design in (UNIFORM, IMPORTANCE) for estimator in (PHYSICIANS_ONLY, CORRECTED)
    }


def test_the_same_seed_gives_the_same_trial():
    opinions, _ = study()
    one, other, third = (tried(opinions, seed=seed, n_draws=40).table for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, other)
    assert not one["error"].equals(third["error"])


def test_a_good_judge_saves_reads_and_a_judge_that_guesses_none():
    good, _ = study(judges={"Magpie": 0.92})
    guess, _ = study(judges={"Magpie": 0.5})
    assert cell(tried(good), UNIFORM, CORRECTED, "share_saved") > 0.4
    assert abs(cell(tried(guess), UNIFORM, CORRECTED, "share_saved")) < 0.15
    assert cell(tried(good), UNIFORM, PHYSICIANS_ONLY, "share_saved") == pytest.approx(0)


def test_what_is_saved_follows_from_the_errors():
    opinions, _ = study(judges={"Magpie": 0.85})
    found = tried(opinions)
    # error^2 goes with 1/n - 1/N: physicians alone reach the corrected error with n where that is so much smaller
    ratio = (cell(found, UNIFORM, CORRECTED, "error") / cell(found, UNIFORM, PHYSICIANS_ONLY, "error")) ** 2
    n, n_all = found.n_drawn, found.n_units
    n_same = 1 / (1 / n_all + ratio * (1 / n - 1 / n_all))
    assert cell(found, UNIFORM, CORRECTED, "n_same") == pytest.approx(n_same)
    assert cell(found, UNIFORM, CORRECTED, "share_saved") == pytest.approx(1 - n / n_same)
    assert n < n_same < n_all


def test_a_judge_that_is_always_right_leaves_next_to_no_error():
    opinions, _ = study(judges={"Magpie": 1.0})
    found = tried(opinions, n_draws=30)
    assert cell(found, UNIFORM, CORRECTED, "error") < 1e-9
    assert cell(found, UNIFORM, CORRECTED, "coverage") == 1
    assert cell(found, UNIFORM, CORRECTED, "half_width") > 0  # nobody knows that it will stay right


@pytest.mark.parametrize("target", [SCORE, DIFFERENCE])
def test_the_intervals_of_the_trial_hold_the_truth(target):
    opinions, _ = study(models=("Alder", "Birch"), judges={"Magpie": 0.8})
    found = tried(opinions, target)
    # 300 drawings: two standard errors are .025
    assert found.table["coverage"].between(0.9, 0.99).all(), found.table
    assert (found.table["n_covered"] / found.table["n_draws"]).tolist() == pytest.approx(
        found.table["coverage"].tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("judges", [{"Magpie": 0.8}, {"Magpie": 0.8, "Wren": 0.78, "Finch": 0.78}])
@pytest.mark.parametrize("models", [("Alder",), ("Alder", "Birch")])
def test_over_many_studies_the_intervals_cover_what_they_say(judges, models):
    goal = Goal.SCORE if len(models) == 1 else Goal.DIFFERENCE
    target = Target(goal, 0.03, models, tuple(judges), "invented")
    tables = [
        tried(study(seed, models=models, judges=judges)[0], target, seed, n_draws=100).table for seed in range(20)
    ]
    coverage = pd.concat(tables).groupby(["design", "estimator"])["coverage"].mean()
    assert coverage.between(0.92, 0.97).all(), coverage


def test_a_difference_is_drawn_by_example_and_each_model_corrected_by_its_own_reads():
    opinions, _ = study(models=("Alder", "Birch"), n_examples=200, share_read=1.0, judges={"Magpie": 0.8})
    found = tried(opinions, DIFFERENCE, n_draws=50)
    assert (found.n_units, found.n_responses) == (200, 400)
    scores = [
        tried(opinions, Target(Goal.SCORE, 0.03, (model,), ("Magpie",), "invented"), n_draws=2).truth
        for model in ("Alder", "Birch")
    ]
    assert found.truth == pytest.approx(scores[0] - scores[1])
    assert not math.isclose(found.truth, 0)
    assert found.table["error"].max() < 0.1


def test_with_too_few_reads_it_is_too_early():
    opinions, _ = study(n_examples=30, share_read=0.2)
    assert len(opinions.reads) < MIN_ITEMS
    found = tried(opinions)
    assert found.is_too_early
    assert found.table.columns.tolist() == COLUMNS
    assert (found.n_items, found.n_drawn) == (len(opinions.reads), 0)
    assert (
        f"It is too early to try this out on your own reads: {len(opinions.reads)} criteria"
        in plan_words.saving_words(found, SCORE)
    )


def test_a_judges_errors_have_nothing_to_correct():
    opinions, _ = study()
    target = Target(Goal.JUDGE_ERROR, 0.03, (), ("Magpie",))
    found = tried(opinions, target)
    assert found.is_too_early
    assert plan_words.saving_words(found, target) == ""


def test_reads_that_nobody_drew_are_part_of_the_whole_that_is_drawn_from():
    opinions, _ = study()
    volunteered = Opinions(
        opinions.items, opinions.judged, opinions.reads.assign(selection="volunteered", inclusion_probability=np.nan)
    )
    pd.testing.assert_frame_equal(tried(volunteered, n_draws=10).table, tried(opinions, n_draws=10).table)


def test_the_order_of_reads_does_not_matter():
    opinions, _ = study(n_readers=2)
    mixed = Opinions(
        opinions.items, opinions.judged, opinions.reads.sample(frac=1, random_state=1).reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(tried(mixed, n_draws=10).table, tried(opinions, n_draws=10).table)
