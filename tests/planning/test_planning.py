"""From what somebody wants to know to an assignment: targets, what is taken, the drawing, its record."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from evalcore.errors import OverreadError
from evalcore.planning import acts as planning_acts
from evalcore.planning.acts import drawn_systematically
from evalcore.planning.pilot_estimates import Target
from evalcore.planning.sample_size import IMPORTANCE, UNIFORM, answer, inclusion_probabilities
from evalcore.reading import assigning, read_queries, reviewing
from evalcore.reading.assigning import Choice, assign, read_plan
from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.rubric.drawings import Drawing, Goal, by_recipe, clipped, over_all
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, Selection
from tests import world
from tests.population import drawn

LEAD = "Ana Ruiz"
N_EXAMPLES = 12


@pytest.fixture
def small(database_url):
    # twelve conversations of 1 to 4 criteria, two models
    points = tuple((7, -4, 2, 5)[: 1 + index % 4] for index in range(N_EXAMPLES))
    made = world.made(
        database_url, points=points, judged="+" * sum(map(len, points)), models=("Alder:2", "Birch"), languages={}
    )
    yield made
    made.engine.dispose()


def known(small):
    with reading(small.engine) as session:
        return rubric_queries.load(session)


def target_of(small, words, **how):
    return planning_acts.target_of(words, known(small), **how)


@pytest.fixture(scope="module")
def study():
    return drawn(np.random.default_rng(1), n_examples=5, models=("Alder:2", "Birch"))[0]


def draw(small, words="score:Alder:2:0.05", n_units=4, design=IMPORTANCE, seed=1):
    with reading(small.engine) as session:
        return planning_acts.draw(session, target_of(small, words), n_units=n_units, design=design, seed=seed)


def tasks(small):
    return world.rows(small.engine, "SELECT response_id, inclusion_probability FROM task ORDER BY place")


# ---------------------------------------------------------------- targets


def test_a_target_is_read_from_words_also_where_names_hold_colons(study):
    score = planning_acts.target_of("score:Alder:2:0.05", study)
    assert score == Target(Goal.SCORE, 0.05, ("Alder:2",), ("Magpie",), "invented")
    assert planning_acts.target_of("difference:Alder:2:Birch:0.03", study).models == ("Alder:2", "Birch")
    assert planning_acts.target_of("difference:Birch:Alder:2:0.03", study).models == ("Birch", "Alder:2")
    error = planning_acts.target_of("judge-error:0.03", study)
    assert error == Target(Goal.JUDGE_ERROR, 0.03, (), ("Magpie",), None)
    assert planning_acts.target_of("judge-error:.1", study, evaluation="invented").evaluation == "invented"


@pytest.mark.parametrize(
    ("words", "how", "sentence"),
    [
        ("mean:Birch:0.03", {}, "target: expected score:MODEL:0.03, difference:MODEL:MODEL:0.03 or judge-error:0.03, got 'mean:Birch:0.03'"),
        ("score:Birch:much", {}, "target: expected a width at the end, for example 0.03, got 'much'"),
        ("score:Birch:0", {}, "target: expected a width of more than 0 and at most 0.5, got 0.0"),
        ("score:Birch:nan", {}, "target: expected a width of more than 0 and at most 0.5, got nan"),
        ("score:Birch:0.51", {}, "target: expected a width of more than 0 and at most 0.5, got 0.51"),
        ("score:Cedar:0.03", {}, "models: expected some of Alder:2, Birch, got 'Cedar'"),
        ("score:0.03", {}, "models: expected one model for score, got none"),
        ("difference:Birch:0.03", {}, "models: expected two different models for difference, got Birch"),
        ("difference:Birch:Birch:0.03", {}, "models: expected two different models for difference, got Birch, Birch"),
        ("difference:Birch:Cedar:0.03", {}, "models: expected some of Alder:2, Birch, got 'Cedar'"),
        ("judge-error:Birch:0.03", {}, "models: expected no model for judge-error, got Birch"),
        ("judge-error:0.03", {"judges": ["Wren"]}, "judges: expected some of Magpie, got 'Wren'"),
        ("score:Birch:0.03", {"evaluation": "hard"}, "evaluation: expected some of invented, got 'hard'"),
    ],
)  # fmt: skip
def test_a_target_that_is_none_says_what_came_and_what_was_expected(study, words, how, sentence):
    with pytest.raises(OverreadError, match="^" + re.escape(sentence)):
        planning_acts.target_of(words, study, **how)


def test_a_judges_errors_are_of_one_judge():
    study, _ = drawn(np.random.default_rng(1), n_examples=5, judges={"Magpie": 0.8, "Wren": 0.8})
    with pytest.raises(OverreadError, match="expected one, since a judge's errors are its own"):
        planning_acts.target(Goal.JUDGE_ERROR, 0.03, [], study, judges=["Magpie", "Wren"])


def test_without_a_judge_nothing_can_be_planned(sqlite_database_url):
    bare = world.made(sqlite_database_url, judged="    ")
    with pytest.raises(OverreadError, match=r"no judge has labelled a response\. Import a file of results first"):
        target_of(bare, "judge-error:0.03")
    bare.engine.dispose()


# ---------------------------------------------------------------- how long


def test_hours_come_from_the_measured_time_a_criterion(small):
    world.assigned(small, n_readers=1)
    with reading(small.engine) as session:
        assert planning_acts.seconds_each(session) is None
    assert planning_acts.hours(100, 2, None) is None
    for minutes in (0, 10, 20):
        name = "Dr. Imani Noor"
        desk_labels = reviewing.take(small.engine, small.viewer(name), at=world.after(minutes))
        number = world.answer(
            small, small.viewer(name), desk_labels, "+" * len(desk_labels.keys), at=world.after(minutes, seconds=30)
        )
        world.lock(small.engine, small.viewer(name), number, at=world.after(minutes, seconds=60))
    with reading(small.engine) as session:
        times = read_queries.reading_times(session)
        each = planning_acts.seconds_each(session)
    stored = world.rows(
        small.engine,
        "SELECT r.seconds, (SELECT count(*) FROM criterion c WHERE c.example_id = t.example_id) FROM reading r JOIN task t ON t.id = r.task_id",
    )
    assert sorted(zip(times["seconds"], times["n_criteria"], strict=True)) == sorted(stored)
    assert len(stored) == 3
    assert each == pytest.approx(float(np.median([seconds / n for seconds, n in stored])))
    assert planning_acts.hours(100, 2, each) == pytest.approx(100 * 2 * each / 3600)


# ---------------------------------------------------------------- drawing


def test_a_drawing_has_the_wanted_number_its_probabilities_and_the_same_again_by_its_seed(small):
    plan = draw(small)
    assert len(plan.drawn.shares) == 4
    assert plan.drawn.n_population == N_EXAMPLES
    assert plan.drawn.selection is Selection.IMPORTANCE
    alder = {response for place, response in enumerate(small.responses) if place % 2 == 0}
    assert {response for _, response in plan.drawn.shares} <= alder
    assert plan.n_items == sum(1 + (example - 1) % 4 for example, _ in plan.drawn.shares)
    assert draw(small).drawn == plan.drawn
    assert draw(small, seed=2).drawn != plan.drawn


def test_drawn_alike_every_response_has_the_same_probability(small):
    plan = draw(small, design=UNIFORM)
    assert set(plan.drawn.shares.values()) == {4 / N_EXAMPLES}
    assert plan.drawn.selection is Selection.RANDOM


def test_a_response_whose_criteria_move_the_score_more_is_the_more_likely_drawn(small):
    shares = draw(small, n_units=6, seed=3).drawn.shares | draw(small, n_units=6, seed=4).drawn.shares
    # of one criterion: 7/7; of two: 7/7 and 4/7: sqrt(1 + .33)
    one = {share for (example, _), share in shares.items() if (example - 1) % 4 == 0}
    two = {share for (example, _), share in shares.items() if (example - 1) % 4 == 1}
    assert len(one) == len(two) == 1
    assert max(one) < min(two)


def test_for_a_difference_both_responses_to_an_example_are_drawn_with_one_probability(small):
    plan = draw(small, "difference:Alder:2:Birch:0.05", n_units=3)
    assert len(plan.drawn.shares) == 6
    examples = {example for example, _ in plan.drawn.shares}
    assert len(examples) == 3
    for example in examples:
        assert len({share for (of, _), share in plan.drawn.shares.items() if of == example}) == 1


def test_what_is_assigned_already_is_not_drawn_again(small):
    world.assigned(small, filters=assigning.Filters(model="Alder:2"), n_items=9)
    gone = {response for response, _ in tasks(small)}
    plan = draw(small, n_units=3)
    assert plan.drawn.n_population == 3
    assert not gone & {response for _, response in plan.drawn.shares}
    with pytest.raises(
        OverreadError, match=r"responses: expected 1 to 3, as many as are neither read nor assigned yet, got 4"
    ):
        draw(small, n_units=4)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"design": "bold"}, "design: expected one of uniform, importance, got 'bold'"),
        ({"seed": -1}, "seed: expected 0 to "),
        ({"n_units": 0}, "responses: expected 1 to "),
    ],
)
def test_a_drawing_that_cannot_be_made_is_refused(small, how, sentence):
    with pytest.raises(OverreadError, match=re.escape(sentence)):
        draw(small, **how)


# ---------------------------------------------------------------- handed over


def test_what_is_drawn_is_assigned_with_its_probabilities_and_a_record_that_gives_those_of_all_others(small):
    plan = draw(small, n_units=5)
    report = assign(small.engine, Choice(drawn=plan.drawn, n_readers=2, seed=plan.seed), actor=Administrator(name=LEAD))
    assert (report.n_items, report.n_population, report.seed) == (5, N_EXAMPLES, 1)
    assert dict(tasks(small)) == {response: share for (_, response), share in plan.drawn.shares.items()}
    ((selection, chosen_by, n_population),) = world.rows(
        small.engine, "SELECT selection, chosen_by, n_population FROM assignment"
    )
    assert (selection, n_population) == ("importance", N_EXAMPLES)
    recipe = json.loads(chosen_by)
    assert recipe["plan"] == 5
    shares = by_recipe(known(small), recipe)
    assert len(shares) == N_EXAMPLES
    assert shares.sum() == pytest.approx(5)  # the wanted number: what every response could have been drawn with
    for (_, response), share in plan.drawn.shares.items():
        assert shares[response] == pytest.approx(share)


def test_over_two_drawings_by_importance_each_read_has_its_own_joint_probability(small):
    reader = "Dr. Imani Noor"
    recipes, drawn_by = [], []
    for seed, minutes in ((1, 0), (2, 60)):
        plan = draw(small, n_units=4, seed=seed)
        drawn_by.append({response: share for (_, response), share in plan.drawn.shares.items()})
        assign(
            small.engine,
            Choice(drawn=plan.drawn, readers=(reader,), n_readers=1, seed=seed),
            actor=Administrator(name=LEAD),
        )
        recipes.append(json.loads(world.rows(small.engine, "SELECT chosen_by FROM assignment ORDER BY id DESC")[0][0]))
        for minute in range(4):
            desk = reviewing.take(small.engine, small.viewer(reader), at=world.after(minutes + minute))
            number = world.answer(
                small, small.viewer(reader), desk, "+" * len(desk.keys), at=world.after(minutes + minute)
            )
            world.lock(small.engine, small.viewer(reader), number, at=world.after(minutes + minute))
    study = known(small)
    points = study.items["points"]
    pull = (
        0.4 * points.abs() / points.clip(lower=0).groupby(study.items["response_id"]).transform("sum")
    )  # one judge: .4
    found = study.reads.drop_duplicates("response_id").set_index("response_id")["inclusion_probability"]
    assert set(found.index) == {*drawn_by[0], *drawn_by[1]}
    for response, joint in found.items():
        w, r = pull[study.items["response_id"].eq(response)], recipes[0]["correlation"]
        missed = 1.0
        for recipe, drawn_here in zip(recipes, drawn_by, strict=True):
            r = recipe["correlation"]
            size = np.sqrt((1 - r) * (w**2).sum() + r * w.sum() ** 2)
            missed *= 1 - drawn_here.get(response, np.clip(recipe["scale"] * size, recipe["floor"], 1))
        assert joint == pytest.approx(1 - missed)
    assert found.round(6).nunique() >= 4  # one for each kind of rubric, at least
    with reading(small.engine) as session:
        beside = blind_reads(session).drop_duplicates("response_id").set_index("response_id")["inclusion_probability"]
    assert beside.to_dict() == pytest.approx(found.to_dict()), (
        "the record of a judge weighs reads as its other numbers do"
    )


@pytest.mark.slow
def test_the_joint_probability_of_two_drawings_by_importance_is_how_often_a_response_comes_to_be_read():
    rng, n_studies = np.random.default_rng(5), 250
    sizes = np.repeat([1.0, 2.0, 4.0, 8.0], 40)
    first = inclusion_probabilities(sizes, 48).of_units
    own, mean = np.zeros(160), np.zeros(160)
    for _ in range(n_studies):
        taken = drawn_systematically(first, rng=rng)
        left = np.setdiff1d(np.arange(160), taken)
        second = inclusion_probabilities(sizes[left], 32)
        again = left[drawn_systematically(second.of_units, rng=rng)]
        drawings = [
            Drawing(pd.Series(first[taken], taken), 48 / 160, None, others=pd.Series(first)),
            Drawing(
                pd.Series(clipped(sizes[again], second.scale, second.floor), again),
                32 / 112,
                None,
                others=pd.Series(clipped(sizes, second.scale, second.floor)),
            ),
        ]
        both = np.concatenate([taken, again])
        reads = pd.DataFrame({"response_id": both, "item_id": both})
        drawn_all = pd.Series(data=True, index=reads.index)
        own[both] += 1 / over_all(drawings, reads, drawn_all).to_numpy()
        mean[both] += 1 / over_all([replace(one, others=None) for one in drawings], reads, drawn_all).to_numpy()
    # reads stand for all 160, those of a size for the 40 of that size: 1/pi adds up to 40 a study
    assert own.reshape(4, 40).sum(axis=1) / n_studies == pytest.approx(
        [40] * 4, rel=0.08
    )  # a standard error is 3 % of the smallest
    assert (
        np.abs(mean.reshape(4, 40).sum(axis=1) / n_studies - 40).max() > 2
    )  # by the mean of those that were not drawn


def test_what_was_assigned_in_between_falls_out(small):
    plan = draw(small, n_units=N_EXAMPLES, design=UNIFORM)
    world.assigned(small, n_items=20)
    report = assign(small.engine, Choice(drawn=plan.drawn), actor=Administrator(name=LEAD))
    assert report.n_items + report.n_waiting == N_EXAMPLES
    assert report.n_waiting >= 8  # 20 of 24 responses, 12 of which are Birch's
    ((selection,),) = world.rows(small.engine, "SELECT selection FROM assignment WHERE id = 2")
    assert selection == "random"


def test_a_drawing_and_a_number_of_items_contradict_each_other(small):
    with pytest.raises(OverreadError, match="a plan says itself which items are read"):
        assign(small.engine, Choice(drawn=draw(small).drawn, n_items=2), actor=Administrator(name=LEAD))
    assert world.count(small.engine, "assignment") == 0


def test_a_drawing_as_csv_is_a_plan_that_assigning_reads(small):
    plan = draw(small, n_units=5)
    with reading(small.engine) as session:
        content = planning_acts.csv_of(session, plan)
    assign(small.engine, Choice(plan=read_plan(content)), actor=Administrator(name=LEAD))
    assert dict(tasks(small)) == {response: share for (_, response), share in plan.drawn.shares.items()}


def test_responses_that_wait_are_counted_as_if_they_were_read(small):
    world.assigned(small, filters=assigning.Filters(model="Birch"), n_items=4)
    wanted = target_of(small, "score:Birch:0.05")
    with reading(small.engine) as session:
        found = answer(known(small), wanted, taken=planning_acts.taken(session))
    assert (found.n_responses_read, found.n_responses_waiting, found.n_responses) == (0, 4, N_EXAMPLES)
    assert found.variances.n_free == N_EXAMPLES - 4


def test_a_plan_reads_names_as_they_were_before_they_were_guarded():
    written = "prompt_id,model,inclusion_probability\n'=p,'＠m,0.5\n"
    (item,) = read_plan(written.encode())
    assert (item.prompt_id, item.model) == ("=p", "＠m")
