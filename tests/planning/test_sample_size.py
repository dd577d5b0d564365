"""How many responses have to be read: the formulas, what they are fed from, and that what they promise comes true."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import ndtr

from evalcore.planning import words as planning_words
from evalcore.planning.acts import drawn_systematically
from evalcore.planning.pilot_estimates import (
    ASSUMED_CORRELATION,
    Basis,
    Target,
    detectable,
    estimator_population,
    measured,
    population,
)
from evalcore.planning.sample_size import IMPORTANCE, UNIFORM, Readers, Variances, answer, curve, variances
from evalcore.rubric.data import RubricData, votes
from evalcore.rubric.drawings import Goal, by_recipe
from evalcore.stats import estimator
from evalcore.study.schema import Claim, Physicians
from tests.population import corrected_scores, drawn
from tests.rubric_rows import shuffled

FULL_BENCHMARK = 57_237  # criteria of HealthBench
many = settings(max_examples=15, deadline=None)


def study(seed=1, **how):
    return drawn(np.random.default_rng(seed), **({"n_examples": 120, "whole_responses": True} | how))[0]


def score(within=0.03, judges=("Magpie",)):
    return Target(Goal.SCORE, within, ("Alder",), judges, "invented")


def difference(within=0.05, judges=("Magpie",)):
    return Target(Goal.DIFFERENCE, within, ("Alder", "Birch"), judges, "invented", claim=Claim.NEW_EXAMPLES)


ERROR = Target(Goal.JUDGE_ERROR, 0.03, (), ("Magpie",))


def unread(rubric_data):
    return RubricData(rubric_data.items, rubric_data.judged, rubric_data.reads.iloc[:0])


# ---------------------------------------------------------------- the formulas


def reads_for_share(share, within, *, effect=1.0, n=FULL_BENCHMARK):
    """By hand: n0/(1 + n0/M), n0 = (1.96/x)^2 p(1-p) deff."""
    at_once = (1.959964 / within) ** 2 * share * (1 - share) * effect
    return math.ceil(at_once / (1 + at_once / n))


def alike(share, n):
    """Items of a share: each moves it by 1/n."""
    return Variances(np.full(n, share * (1 - share) / n**2), np.ones(n), 0.0, 0.0, n)


def test_a_judges_error_rate_of_a_fifth_within_three_points_needs_675_of_the_criteria_of_healthbench():
    # (1.96/.03)^2 .2 .8 = 682.95 of endless many; 682.95 / (1 + 682.95/57,237) = 674.9
    assert alike(0.2, FULL_BENCHMARK).n_needed(0.03, UNIFORM) == reads_for_share(0.2, 0.03) == 675


@pytest.mark.parametrize(
    ("width", "n_needed"), [(1, 3131), (0.86, 2343), (0.61, 1192), (0.34, 383)]
)  # one judge of .78; three of .78 and three of .905 with importance sampling
def test_reads_go_with_the_square_of_the_width_as_the_simulations_of_real_rubrics_do(width, n_needed):
    # 3,131 physicians-only give sd(a e): n0 = 3131 / (1 - 3131/57237) = 3312.2, sd = .03 sqrt(n0) / (1.96 M)
    alone = 0.03 * math.sqrt(3131 / (1 - 3131 / FULL_BENCHMARK)) / (1.959964 * FULL_BENCHMARK)
    low, high = (
        Variances(
            np.full(FULL_BENCHMARK, (alone * (width + rounded)) ** 2), np.ones(FULL_BENCHMARK), 0.0, 0.0, FULL_BENCHMARK
        )
        for rounded in (-0.005, 0.005)
    )
    assert low.n_needed(0.03, UNIFORM) - 1 <= n_needed <= high.n_needed(0.03, UNIFORM) + 1


# ---------------------------------------------------------------- variances


parts = st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=25)


@many
@given(parts, st.floats(0, 0.9), st.floats(0, 0.1), st.sampled_from([UNIFORM, IMPORTANCE]))
def test_reading_more_never_widens(units, share_taken, of_examples, design):
    spread, sizes = np.array(units).T
    n_free = max(round(len(units) * (1 - share_taken)), 1)
    found = Variances(spread**2, sizes, of_examples, 1 - n_free / len(units), n_free)
    widths = [found.half_width(n, design) for n in range(n_free + 1)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(widths))
    assert widths[-1] == pytest.approx(1.959964 * math.sqrt(of_examples), abs=1e-6)
    assert math.isinf(widths[0]) == (n_free == len(units))


@many
@given(parts, st.floats(0.01, 2.0), st.sampled_from([UNIFORM, IMPORTANCE]))
def test_the_number_needed_is_the_smallest_that_is_enough(units, within, design):
    spread, sizes = np.array(units).T
    found = Variances(spread**2, sizes, 0.0, 0.0, len(units))
    needed = found.n_needed(within, design)
    assert needed is not None
    assert found.half_width(needed, design) <= within
    assert needed == 0 or found.half_width(needed - 1, design) > within


def test_units_drawn_alike_need_what_the_formula_says():
    # n0 = (1.96 x 400 x .002 / .05)^2 = 983.4, 983.4 / (1 + 983.4/400) = 284.3
    found = Variances(np.full(400, 0.002**2), np.ones(400), 0.0, 0.0, 400)
    assert found.n_needed(0.05, UNIFORM) == 285
    # what was read already is taken off
    half = Variances(np.full(400, 0.002**2), np.ones(400), 0.0, 0.25, 300)
    assert half.n_needed(0.05, UNIFORM) == 185


def test_examples_that_vary_are_a_floor_that_no_reading_goes_below():
    found = Variances(np.full(10, 0.01), np.ones(10), 0.04, 0.0, 10)
    assert found.half_width(10, UNIFORM) == pytest.approx(1.959964 * 0.2)
    assert found.n_needed(0.39, UNIFORM) is None
    assert found.n_needed(0.3921, UNIFORM) == 10


def test_sizes_that_are_what_units_move_the_number_by_never_make_it_worse_than_drawing_alike():
    spread = np.random.default_rng(2).gamma(2, 0.01, 200)
    found = Variances(spread**2, spread, 0.0, 0.0, 200)
    for n in (5, 40, 150):
        assert found.half_width(n, IMPORTANCE) < found.half_width(n, UNIFORM)


# ---------------------------------------------------------------- what the reads so far say


def test_with_nothing_read_a_judge_of_80_percent_is_assumed_and_said():
    rubric_data = unread(study())
    found = answer(rubric_data, score())
    assert found.pilot.basis is Basis.ASSUMED
    assert found.pilot.spread == pytest.approx(math.sqrt(0.8 * 0.2))
    assert found.pilot.correlation == ASSUMED_CORRELATION
    assert set(found.pilot.expected.round(9)) == {0.2, 0.8}
    assert math.isinf(found.half_width_now)
    assert "assumes a judge that is right on 80 %" in planning_words.basis_words(found)


def test_without_reads_a_judges_errors_need_the_textbook_number_times_the_design_effect():
    rubric_data = unread(study(n_examples=900))
    found = answer(rubric_data, ERROR)
    about = population(rubric_data, ERROR)
    n_items = np.bincount(about.unit)
    # deff = 1 + (b - 1) r with b = sum m^2 / sum m, the criteria of a response as a criterion meets them
    effect = 1 + ((n_items**2).sum() / n_items.sum() - 1) * ASSUMED_CORRELATION
    expected = reads_for_share(0.2, 0.03, effect=effect, n=len(about.items)) / n_items.mean()
    assert found.designs[UNIFORM].n_units == math.ceil(expected)


def test_the_spread_is_that_of_what_was_read_and_a_handful_of_reads_promises_little():
    exact = study(judges={"Magpie": 1.0}, share_read=0.4)  # the judge is never wrong
    pilot = measured(exact, score(), population(exact, score()))
    n = pilot.n_reads
    assert pilot.basis is Basis.DRAWN
    assert pilot.spread.max() == pytest.approx(
        math.sqrt(10 * 0.16 / (10 + n))
    )  # as if 10 more had been read with what is assumed
    wrong = study(judges={"Magpie": 0.5}, share_read=0.4)  # the judge says nothing
    noisy = measured(wrong, score(), population(wrong, score()))
    assert 0.45 < noisy.spread.mean() < 0.52


def test_several_judges_have_a_spread_where_they_agree_and_another_where_they_split():
    judges = {"Magpie": 0.85, "Wren": 0.85, "Finch": 0.85}
    rubric_data = study(n_examples=300, judges=judges, share_read=0.5)
    pilot = measured(
        rubric_data, score(judges=tuple(judges)), about := population(rubric_data, score(judges=tuple(judges)))
    )
    labels = about.rubric_data.judged
    split = labels.nunique(axis=1).gt(1).to_numpy()
    assert pilot.spread[split].min() > 2 * pilot.spread[~split].max()


def test_criteria_of_one_response_that_go_wrong_together_are_found_to_be_alike():
    found = []
    for spread in (0.0, 4.0):  # of the examples' difficulty
        rubric_data = study(judges={"Magpie": 0.5}, spread=spread, share_read=0.6)
        desirable = RubricData(
            rubric_data.items.assign(points=rubric_data.items["points"].abs()), rubric_data.judged, rubric_data.reads
        )
        found += [measured(part, score(), population(part, score())).correlation for part in (desirable, rubric_data)]
    apart, _, alike, with_signs = found
    assert apart < 0.15
    assert alike > 0.4
    assert alike > 2 * with_signs  # what is met more often everywhere adds points here and takes them there


def test_reads_of_other_models_serve_where_too_few_of_the_models_own_are_there():
    rubric_data = study(models=("Alder", "Birch"), share_read=0.3)
    alder = rubric_data.items["model"].eq("Alder").to_numpy()[rubric_data.reads["row"].to_numpy()]
    others = RubricData(rubric_data.items, rubric_data.judged, rubric_data.reads.loc[~alder].reset_index(drop=True))
    pilot = measured(others, score(), about := population(others, score()))
    assert (pilot.basis, pilot.n_reads) == (Basis.OTHERS, len(others.reads))
    assert len(pilot.expected) == len(pilot.spread) == len(about.items)
    met = about.rubric_data.judged["Magpie"].eq(1).to_numpy()
    assert pilot.expected[met].min() > pilot.expected[~met].max()


def test_reads_that_nobody_drew_are_a_guess_and_said_to_be():
    rubric_data = study(share_read=0.3)
    reads = rubric_data.reads.assign(selection="volunteered", inclusion_probability=np.nan)
    found = answer(RubricData(rubric_data.items, rubric_data.judged, reads), score())
    assert (found.pilot.basis, found.pilot.n_reads) == (Basis.NOT_DRAWN, len(reads))
    assert (found.n_responses_read, found.n_items_read) == (0, 0)  # they are no part of the estimate
    assert "not all of them were drawn" in planning_words.basis_words(found)


def test_a_judges_errors_are_those_that_were_read():
    rubric_data = study(judges={"Magpie": 0.7}, share_read=0.5)
    pilot = measured(rubric_data, ERROR, population(rubric_data, ERROR))
    rows = rubric_data.reads["row"].to_numpy()
    wrong = rubric_data.reads["met"].to_numpy() != rubric_data.judged["Magpie"].to_numpy()[rows]
    assert pilot.share_wrong == pytest.approx(wrong.mean())
    share = (10 * 0.2 + wrong.sum()) / (10 + len(rows))
    assert pilot.spread[0] ** 2 == pytest.approx(share * (1 - share))


# ---------------------------------------------------------------- the answer


def test_what_is_read_and_what_is_assigned_counts_once():
    rubric_data = study(share_read=0.2)
    read = set(rubric_data.reads["response_id"])
    waiting = set(range(1, 121)) - read
    some = frozenset(sorted(waiting)[:30])
    found = answer(rubric_data, score(), taken=some | frozenset(read))
    assert (found.n_responses, found.n_items) == (120, len(rubric_data.items))
    assert (found.n_responses_read, found.n_items_read) == (len(read), len(rubric_data.reads))
    assert found.n_responses_waiting == 30
    assert found.variances.n_free == 120 - len(read) - 30
    alone = answer(rubric_data, score())
    assert alone.n_responses_waiting == 0
    assert found.half_width_now < alone.half_width_now
    assert alone.designs[UNIFORM].n_units - found.designs[UNIFORM].n_units == 30


def test_with_everything_read_nothing_more_is_needed():
    found = answer(study(share_read=1.0, readers=("Dr. Noor",)), score(0.001))
    assert found.half_width_now == found.half_width_all == 0
    assert [design.n_units for design in found.designs.values()] == [0, 0]
    assert planning_words.finding(found) == (
        "Nothing more has to be read: with what is read and assigned, the 95 % interval of Alder's corrected score is expected to be "
        "±0.000 on this benchmark, for these physicians."
    )


def test_a_difference_takes_examples_that_both_models_have_answered_and_both_responses_of_them():
    rubric_data = study(models=("Alder", "Birch", "Cedar"), share_read=0.2)
    birch = rubric_data.items["model"].eq("Birch") & rubric_data.items["example_id"].gt(100)
    about = population(rubric_data.where(~birch), difference())
    assert set(about.items["model"]) == {"Alder", "Birch"}
    assert about.n_units == about.items["example_id"].nunique() == 100
    assert len({*zip(about.unit, about.items["example_id"], strict=True)}) == 100
    # Alder's moves add up to those of its score, Birch's go the other way
    sign = np.sign(about.item_weights) * np.sign(about.items["points"])
    assert set(sign[about.items["model"].eq("Alder")]) == {1}
    assert set(sign[about.items["model"].eq("Birch")]) == {-1}
    assert (
        about.item_weights[about.item_weights * sign > 0].shape == about.item_weights[about.items["points"] > 0].shape
    )


def test_a_difference_that_the_examples_cannot_tell_is_not_promised():
    found = answer(study(models=("Alder", "Birch"), n_examples=40), difference(0.01))
    assert not any(design.reachable for design in found.designs.values())
    assert found.half_width_all > 0.01
    assert "That takes more examples." in planning_words.finding(found)


def test_what_has_no_points_or_lacks_a_judges_label_is_no_part_of_a_score():
    rubric_data = study(n_examples=30)
    items = rubric_data.items.assign(points=rubric_data.items["points"].where(rubric_data.items["example_id"].ne(3)))
    judged = rubric_data.judged.assign(
        Magpie=rubric_data.judged["Magpie"].where(rubric_data.items["item_id"].ne(items["item_id"].iloc[0]))
    )
    found = answer(RubricData(items, judged, rubric_data.reads), score())
    assert found.n_responses == 28
    errors = answer(RubricData(items, judged, rubric_data.reads), ERROR)
    assert errors.n_items == len(items) - 1


def test_nothing_to_read_is_said():
    rubric_data = study(n_examples=5)
    bare = RubricData(rubric_data.items.assign(points=np.nan), rubric_data.judged, rubric_data.reads)
    found = answer(bare, score())
    assert (found.n_units, found.n_responses, len(found.designs)) == (0, 0, 0)
    assert math.isnan(found.half_width_now)
    assert "There is nothing to read for this" in planning_words.finding(found)
    assert curve(found).empty


@pytest.mark.parametrize("target", [score(), difference(), ERROR])
def test_the_order_of_rows_does_not_matter(target):
    rubric_data = study(models=("Alder", "Birch"), judges={"Magpie": 0.8, "Wren": 0.7}, share_read=0.3)
    mixed = shuffled(rubric_data, np.random.default_rng(8))
    one, other = answer(rubric_data, target), answer(mixed, target)
    assert other.half_width_now == pytest.approx(one.half_width_now)
    pd.testing.assert_frame_equal(*(pd.DataFrame(part.designs.values()) for part in (one, other)))


def test_the_curve_ends_narrow_and_passes_what_is_needed():
    found = answer(study(share_read=0.1, n_examples=400, readers=("Dr. Noor",)), score(0.02))
    table = curve(found)
    for design in (UNIFORM, IMPORTANCE):
        rows = table.loc[table["design"].eq(design)].set_index("n_units")["half_width"]
        assert rows.is_monotonic_decreasing
        needed = found.designs[design]
        assert rows.loc[rows.index <= needed.n_units - 1].min() > 0.02
        assert rows.loc[rows.index >= needed.n_units].max() <= 0.02


def test_sizes_can_be_made_again_when_responses_were_added():
    judges = {"Magpie": 0.8, "Wren": 0.7}
    rubric_data, target = study(judges=judges, n_examples=60), score(judges=tuple(judges))
    fewer = rubric_data.where(rubric_data.items["example_id"].le(40))
    recipe = {"goal": target.goal, "models": target.models, "judges": target.judges, "evaluation": target.evaluation}
    recipe |= {"voters": list(judges), "correlation": 0.1, "scale": 0.3, "floor": 0.02}
    before, after = (by_recipe(study, recipe) for study in (fewer, rubric_data))
    assert len(before) == 40
    pd.testing.assert_series_equal(before, after.loc[before.index])


# ---------------------------------------------------------------- what it is to hold for


LEANINGS = {"Dr. 0": 0.3, "Dr. 1": 0.15, "Dr. 2": 0.0, "Dr. 3": -0.15, "Dr. 4": -0.3}


def leaning(seed, **how):
    plain = {"n_examples": 200, "readers": list(LEANINGS), "leanings": LEANINGS, "share_read": 0.4, "n_readers": 1}
    return study(seed, **(plain | how))


def holding(target, claim, physicians):
    return replace(target, claim=claim, physicians=physicians)


@pytest.mark.parametrize("claim", list(Claim))
@pytest.mark.parametrize("physicians", list(Physicians))
def test_the_width_that_is_expected_is_that_of_the_claim_that_is_asked_for(claim, physicians):
    expected, found = [], []
    for seed in range(8):
        rubric_data = leaning(seed, n_readers=1 + seed % 2)
        row = corrected_scores(rubric_data, judges=["Magpie"], claim=claim, physicians=physicians).iloc[0]
        expected.append(answer(rubric_data, holding(score(), claim, physicians)).half_width_now)
        found.append((row["corrected_high"] - row["corrected_low"]) / 2)
    # both are guesses from five physicians: on average over eight studies they lie within a quarter of one another
    assert 0.8 < np.mean(expected) / np.mean(found) < 1.3


def test_for_physicians_in_general_the_same_reads_are_less_exact_and_the_plan_says_so():
    rubric_data = leaning(1)
    these, general = (answer(rubric_data, holding(score(0.08), Claim.BENCHMARK, who)) for who in Physicians)
    assert general.half_width_now > 1.5 * these.half_width_now
    widths = these.claims.set_index(["claim", "physicians"])["half_width_now"]
    assert widths["benchmark", "in_general"] == pytest.approx(general.half_width_now)
    assert (
        f"±{widths['benchmark', 'in_general']:.3f} on this benchmark, for physicians in general"
        in planning_words.claims_words(these)
    )


def test_where_more_responses_never_reach_it_the_plan_says_how_many_physicians_do():
    found = answer(leaning(1, n_readers=2), holding(score(0.06), Claim.BENCHMARK, Physicians.IN_GENERAL), n_each=2)
    assert not any(design.reachable for design in found.designs.values())
    who = found.variances
    needed = found.n_readers_needed
    assert needed is not None
    assert (
        who.half_width(who.n_free, UNIFORM, n_readers=needed)
        <= 0.06
        < who.half_width(who.n_free, UNIFORM, n_readers=needed - 1)
    )
    said = planning_words.finding(found)
    assert said.startswith(
        f"With 5 physicians no number of reads reaches ±0.060 on this benchmark, for physicians in general; {needed} do. By 5, "
    )


@many
@given(parts, st.integers(3, 30), st.floats(1e-6, 0.01), st.floats(0, 1))
def test_more_physicians_never_widen_and_one_never_speaks_for_others(units, k, of_readers, share_of_rest):
    spread, sizes = np.array(units).T
    who = Readers(n=k, n_effective=k * 0.8, of_readers=of_readers, share_of_rest=share_of_rest, in_general=True)
    found = Variances(spread**2, sizes, 0.0, 0.5, len(units), who)
    widths = [found.half_width(0, UNIFORM, n_readers=n) for n in (2, 3, k, k + 1, 2 * k)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(widths))
    assert math.isinf(found.half_width(0, UNIFORM, n_readers=1))


def test_reading_everything_once_by_one_of_several_readers_leaves_their_noise():
    # everything read by one of five who say the opposite in one of four: v f (1/1 - 1/5) is left, and nothing where all five have read each
    once, double, alone = (
        answer(
            study(2, share_read=1.0, reader_accuracy=0.75, readers=[f"Dr. {n}" for n in range(k)], n_readers=r),
            score(0.001),
        )
        for k, r in ((5, 1), (5, 2), (1, 1))
    )
    assert alone.half_width_now == 0
    assert once.half_width_now > double.half_width_now > 0


# ---------------------------------------------------------------- power


def test_a_difference_of_three_points_with_80_percent_power_takes_a_half_width_of_two():
    target = replace(difference(0.03), power=0.8)
    # .03 = (1.95996 + .84162) SE: SE .010708, half-width 1.95996 SE = .020988
    assert target.half_width == pytest.approx(0.020988, abs=1e-6)
    # then 0 is outside of the interval in 80 % of studies: P(Z > 1.96 - .03/.010708) + P(Z < -1.96 - .03/.010708)
    shift = 0.03 / (target.half_width / 1.959964)
    assert ndtr(shift - 1.959964) + ndtr(-shift - 1.959964) == pytest.approx(0.8, abs=1e-5)
    assert detectable(target.half_width, 0.8) == pytest.approx(0.03)


def test_what_is_needed_for_power_is_what_the_narrower_interval_needs_and_what_is_read_finds_so_much():
    rubric_data = study(models=("Alder", "Birch"), n_examples=300, share_read=0.2)
    found = answer(rubric_data, replace(difference(0.1), power=0.8))
    assert found.designs == answer(rubric_data, difference(found.target.half_width)).designs
    least = f"{detectable(found.half_width_now, 0.8):.3f}"
    assert f"a true difference of {least} on new examples too, for these physicians" in planning_words.detectable_words(
        found, 0.8
    )
    assert planning_words.detectable_words(answer(rubric_data, score()), 0.8) == ""


# ---------------------------------------------------------------- whether it comes true


def test_what_has_to_be_read_is_said_once_where_both_ways_of_drawing_take_the_same():
    found = answer(study(share_read=0.2, n_examples=300), score(0.05))
    alike, important = found.designs[UNIFORM], found.designs[IMPORTANCE]
    assert alike.n_units > important.n_units > 0
    units = [
        f"{one.n_units} further responses ({one.n_items:,} criteria) drawn {how}"
        for one, how in ((alike, "with equal chances"), (important, "by importance"))
    ]
    then = "Then Alder's corrected score is known within ±0.050 on this benchmark, for these physicians."
    assert planning_words.finding(found) == f"Physicians have to read {', or '.join(units)}. {then}"
    same = replace(found, designs={UNIFORM: alike, IMPORTANCE: replace(alike, design=IMPORTANCE)})
    once = f"{alike.n_units} further responses ({alike.n_items:,} criteria)"
    assert planning_words.finding(same) == f"Physicians have to read {once}. {then}"


def test_the_width_that_is_expected_of_what_is_read_is_that_of_the_corrected_score():
    ratios = []
    for seed in range(5):
        rubric_data = study(seed, n_examples=400, judges={"Magpie": 0.8}, share_read=0.3)
        expected = answer(rubric_data, score()).half_width_now
        row = corrected_scores(rubric_data, judges=["Magpie"]).iloc[0]
        ratios.append(expected / ((row["corrected_high"] - row["corrected_low"]) / 2))
    # the assumptions still weigh as ten reads and ten responses: rather too wide than too narrow
    assert 0.9 < np.mean(ratios) < 1.25


@pytest.mark.parametrize("judges", [{"Magpie": 0.8}, {"Magpie": 0.8, "Wren": 0.78, "Finch": 0.78}])
def test_the_width_that_is_expected_is_the_error_that_drawings_have(judges):
    # everything is read, so that the truth is known: what is expected of a third of it, against 300 drawings of a third
    rubric_data = study(n_examples=500, judges=judges, share_read=1.0)
    target = score(judges=tuple(judges))
    about = population(rubric_data, target)
    expected = variances(about, measured(rubric_data, target, about), target, taken=frozenset(), parts=None, n_each=1)
    rng, survey_of, n_drawn = np.random.default_rng(4), estimator_population(about), about.n_units // 3
    vote = votes(about.rubric_data.reads).set_index("row")["vote"].to_numpy()
    truth = float(about.item_weights @ vote)
    for design in (UNIFORM, IMPORTANCE):
        pi = expected.probabilities(n_drawn, design).of_units
        errors = []
        for _ in range(150):
            rows = np.flatnonzero(np.isin(about.unit, drawn_systematically(pi, rng=rng)))
            units, n = np.unique(about.unit[rows], return_inverse=True)[1], len(rows)
            alone = np.zeros(n, dtype=np.int64)
            sample = estimator.Sample(rows, vote[rows], pi[about.unit[rows]], units, np.arange(n), alone, vote[rows])
            errors.append(estimator.corrected(survey_of, sample).value - truth)
        half = expected.half_width(n_drawn, design)
        assert half / 1.96 == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.2), design  # 150 drawings: 6 %
