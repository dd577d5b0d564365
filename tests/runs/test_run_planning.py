"""What a run would ask, and what that costs."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as some

from evalcore.runs import item_queries
from evalcore.runs.acts import retry
from evalcore.runs.prompts import Asker
from evalcore.study.db import reading
from evalcore.study.schema import CASES, Acuity, Administrator, Format, Outcome
from tests.run_steps import MET, NOT_MET, Scripted
from tests.run_world import add_cases, add_response, begun, done, judged, judging, planned, responding, triage, worked


def asked(small, run_id):
    return small.rows(
        "SELECT example_id, response_id, criterion_id, format, sample_index, repeat, outcome FROM run_question WHERE run_id = :run ORDER BY id",
        run=run_id,
    )


def test_a_judge_is_asked_about_every_criterion_of_every_response_that_it_has_not_judged(small_run):
    spec = judging(n_repeats=2)
    criteria = [number for (number,) in small_run.rows("SELECT id FROM criterion ORDER BY id")]
    judged(small_run, spec, small_run.responses[0], criteria[0], example=small_run.examples[0])
    judged(small_run, spec, small_run.responses[1], criteria[2], example=small_run.examples[1], repeat=1)
    judged(small_run, spec, small_run.responses[2], criteria[4], example=small_run.examples[2], name="Another judge")
    # 3 responses with 2 criteria each, twice; two of these have the judge's verdict, the third is another judge's
    found = planned(small_run, spec)
    assert (found.n_all, found.n_there, found.n_failed, found.n_missing) == (12, 2, 0, 10)
    rows = asked(small_run, begun(small_run, spec))
    everything = {
        (small_run.examples[n], small_run.responses[n], criteria[2 * n + place], "", 0, repeat, None)
        for n in range(3)
        for place in range(2)
        for repeat in range(2)
    }
    there = {
        (small_run.examples[0], small_run.responses[0], criteria[0], "", 0, 0, None),
        (small_run.examples[1], small_run.responses[1], criteria[2], "", 0, 1, None),
    }
    assert set(rows) == everything - there
    assert len(rows) == 10
    assert [row[5] for row in rows] == sorted(row[5] for row in rows)  # no item twice before each was asked once


def test_only_responses_of_the_chosen_models_to_the_data_set_are_judged(small_run):
    other = add_response(small_run, small_run.examples[0], "Birch-1", "invented_hard", "Go to bed.")
    add_response(small_run, add_cases(small_run, 1)[0], "Birch-1", Format.QA.evaluation, "C")
    assert (
        planned(small_run, judging()).n_all == 8
    )  # one response more to an example of the data set, whatever it was made for
    assert planned(small_run, judging(of_models=["Birch-1"])).n_all == 2
    assert {row[1] for row in asked(small_run, begun(small_run, judging(of_models=["Birch-1"])))} == {other}


def test_a_model_is_asked_each_example_and_sample_that_it_has_not_answered(small_run):
    spec = responding(n_samples=2)
    first, second, third = small_run.examples
    add_response(small_run, first, "Magpie", "invented", "Rest.", sample_index=1)
    add_response(small_run, second, "Magpie", "invented_hard", "Rest.")
    add_response(small_run, third, "Magpie", "invented", "Rest.", sample_index=2)
    # the second was made for another evaluation, the third is a sample that is not asked for
    found = planned(small_run, spec)
    assert (found.n_all, found.n_there, found.n_missing) == (6, 1, 5)
    rows = asked(small_run, begun(small_run, spec))
    assert [(row[0], row[4]) for row in rows] == [(first, 0), (second, 0), (third, 0), (second, 1), (third, 1)]


def test_a_case_is_asked_in_each_format_and_sample_that_has_no_response(small_run):
    one, two = add_cases(small_run, 2)
    add_response(small_run, one, "Magpie", Format.QA.evaluation, "ACUITY: C")
    add_response(
        small_run, two, "Magpie", Format.CONVERSATION.evaluation, "", sample_index=1
    )  # known by its level alone
    spec = triage(n_samples=2)
    assert (planned(small_run, spec).n_all, planned(small_run, spec).n_there) == (8, 2)
    rows = {(row[0], row[3], row[4]) for row in asked(small_run, begun(small_run, spec))}
    every = {(case, word.value, sample) for case in (one, two) for word in Format for sample in range(2)}
    assert rows == every - {(one, "qa", 0), (two, "conversation", 1)}


def test_a_judge_of_levels_is_asked_about_conversations_with_a_text(small_run):
    one, two = add_cases(small_run, 2)
    spec = judging(dataset=CASES)
    told = add_response(small_run, one, "Alder-2", Format.CONVERSATION.evaluation, "See a doctor tomorrow.")
    known = add_response(small_run, two, "Alder-2", Format.CONVERSATION.evaluation, "Rest.")
    add_response(small_run, two, "Alder-2", Format.CONVERSATION.evaluation, "", sample_index=1)
    add_response(small_run, two, "Alder-2", Format.QA.evaluation, "ACUITY: A")
    judged(small_run, spec, known, None, example=two, label=Acuity.A)
    assert (planned(small_run, spec).n_all, planned(small_run, spec).n_there) == (2, 1)
    assert asked(small_run, begun(small_run, spec)) == [(one, told, None, "", 0, 0, None)]


def test_starting_again_goes_on_with_the_same_run_and_adds_what_has_come(small_run):
    spec = judging()
    first = begun(small_run, spec)
    assert len(asked(small_run, first)) == 6
    assert begun(small_run, spec) == first
    assert len(asked(small_run, first)) == 6
    add_response(small_run, small_run.examples[0], "Birch-1", "invented", "Go to bed.")
    assert begun(small_run, spec) == first
    assert len(asked(small_run, first)) == 8
    dearer = msgspec.structs.replace(spec, model=msgspec.structs.replace(spec.model, price_in=9.0))
    assert begun(small_run, dearer) == first  # a price changes no answer
    assert begun(small_run, judging(n_repeats=2)) != first
    assert [event["new_questions"] for event in small_run.events("run started")] == [6, 0, 2, 0, 16]


def test_a_question_whose_answer_came_with_a_file_is_not_asked(small_run):
    spec = judging()
    run_id = begun(small_run, spec)
    ((criterion,),) = small_run.rows("SELECT min(id) FROM criterion")
    judged(small_run, spec, small_run.responses[0], criterion, example=small_run.examples[0])
    assert begun(small_run, spec) == run_id
    assert [row[-1] for row in asked(small_run, run_id)] == [Outcome.ANSWERED, None, None, None, None, None]
    client = Scripted()
    assert worked(small_run, run_id, client=client).n_answered == len(client.asked) == 5
    assert set(small_run.verdicts().values()) == {1}


def test_a_run_with_nothing_to_ask_is_done(small_run):
    spec = judging()
    assert done(small_run, spec, client=Scripted()).n_answered == 6
    assert planned(small_run, judging(limit=3)).n_missing == 0
    run_id = begun(small_run, judging(limit=3))
    assert small_run.rows("SELECT state, reason FROM run WHERE id = :run", run=run_id) == [("done", None)]
    assert worked(small_run, run_id, client=Scripted()).outcomes == {}


@given(limit=some.integers(1, 8), more=some.integers(1, 8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=4)
def test_a_limit_holds_over_all_starts_of_a_run(small_run, limit, more):
    """Six items: a run asks at most so many; another limit is another run, which asks the next ones."""
    spec = judging(limit=limit, model={"name": f"Magpie {limit} {more}"})
    assert planned(small_run, spec).n_missing == min(limit, 6)
    assert done(small_run, spec, client=Scripted()).n_answered == min(limit, 6)
    assert planned(small_run, spec).n_missing == 0
    assert done(small_run, spec, client=Scripted()).n_answered == 0
    next_spec = judging(limit=more, model={"name": f"Magpie {limit} {more}"})
    left = 6 - min(limit, 6) if more != limit else 0
    assert planned(small_run, next_spec).n_missing == min(more, left)


def test_failures_are_asked_again_only_when_that_is_said(small_run):
    spec = judging()
    client = Scripted(lambda n, _request: Outcome.REFUSED if n == 1 else Outcome.REJECTED if n == 2 else MET)
    run_id = begun(small_run, spec, concurrency=1)
    first = worked(small_run, run_id, client=client)
    assert first.outcomes == {Outcome.REFUSED: 1, Outcome.REJECTED: 1, Outcome.ANSWERED: 4}
    found = planned(small_run, spec)
    assert (found.n_there, found.n_failed, found.n_missing) == (4, 2, 0)
    assert begun(small_run, spec, concurrency=1) == run_id
    assert worked(small_run, run_id, client=Scripted()).outcomes == {}
    assert (
        retry(
            small_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED, Outcome.ANSWERED]
        )
        == 1
    )
    assert worked(small_run, run_id, client=Scripted(NOT_MET)).outcomes == {Outcome.ANSWERED: 1}
    assert small_run.events("run retried") == [{"run": run_id, "questions": 1, "outcomes": ["refused"]}]
    assert small_run.one("SELECT count(*) FROM run_call") == 7  # what came first is still known
    assert small_run.progress(run_id).outcomes == {Outcome.ANSWERED: 5, Outcome.REJECTED: 1}


def test_tokens_are_expected_by_the_length_of_what_would_be_sent(small_run):
    spec = judging()
    with reading(small_run.engine) as session:
        questions = item_queries.drawn(session, spec, 100)
        sent = [Asker(spec).request(one) for one in Asker(spec).prepared(session, questions)]
    assert len({(one.response_id, one.criterion_id) for one in questions}) == 6
    found = planned(small_run, spec)
    characters = sum(len(message.content) for request in sent for message in request.messages)
    assert found.prompt_tokens == pytest.approx(characters / 4, rel=0.01)
    assert found.completion_tokens == 6 * 120
    assert found.cost == pytest.approx((found.prompt_tokens * 1.0 + found.completion_tokens * 4.0) / 1_000_000)
    assert found.seconds(8) is None
    assert planned(small_run, judging(model={"max_tokens": 50})).completion_tokens == 6 * 50
    assert planned(small_run, responding()).completion_tokens == 3 * 600


def test_tokens_and_time_are_expected_by_earlier_calls_with_the_model_and_prompt(small_run):
    assert done(small_run, judging(limit=2), client=Scripted()).n_calls == 2
    found = planned(small_run, judging())
    # 100 tokens in, 10 out and half a second each, of which four are missing
    assert (found.prompt_tokens, found.completion_tokens, found.n_before) == (400, 40, 2)
    assert found.cost == pytest.approx((400 * 1.0 + 40 * 4.0) / 1_000_000)
    assert found.seconds(8) == pytest.approx(4 * 0.5 / 8)
    assert planned(small_run, judging(with_points=False)).n_before == 0


def test_without_prices_no_cost_is_expected(small_run):
    assert planned(small_run, judging(model={"price_out": None})).cost is None
