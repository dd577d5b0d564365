"""What waits for whom, what is blind to whom, how far a reader is, what was read."""

import json

import pytest

from evalcore.reading import assignment_queries, overriding, queries, reviewing
from evalcore.reading.assignment_queries import Planned
from evalcore.reading.queries import Progress
from evalcore.reading.read_queries import my_reads
from evalcore.reading.reviewing import Decision
from evalcore.study import policies, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Acuity, Ask, Label, RaterKind, Role, Stage, Verdict
from tests import world
from tests.world import after, answer, assigned, submitted

IMANI, TOVE, THIRD = "Dr. Imani Noor", "Dr. Tove Lind", "Dr. Third"


@pytest.fixture
def small(database_url):
    """Three responses with one criterion each; the judge says +; the third is in Arabic."""
    made = world.made(database_url, points=((1,), (1,), (1,)), judged="+++", languages={2: "ar"})
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    yield made
    made.engine.dispose()


def ask(small, query, *arguments):
    with reading(small.engine) as session:
        return query(session, *arguments)


def progress(small, name=IMANI, at=world.START):
    return ask(small, queries.progress, small.viewer(name), at)


def blind(small, name=IMANI):
    return ask(small, queries.blind_examples, small.viewer(name))


def plan(*examples):
    return tuple(Planned(f"prompt-{index}", "Alder-2", 0, 1.0) for index in examples)


def take(small, name=IMANI, at=world.START):
    return reviewing.take(small.engine, small.viewer(name), at=at)


# ---------------------------------------------------------------- how far


def test_progress_counts_what_is_locked_and_what_waits_the_item_in_hand_too(small):
    assert progress(small) == Progress(n_done=0, n_left=0, seconds_each=None)
    assigned(small, n_readers=1)
    assert progress(small) == Progress(0, 2, None)  # two in English
    desk = take(small)
    assert progress(small) == Progress(0, 2, None)
    assert progress(small, TOVE) == Progress(0, 1, None)  # one is reserved for Imani
    assert progress(small, TOVE, after(45)) == Progress(0, 2, None)
    answer(small, small.viewer(), desk, "-", at=after(seconds=20))
    world.lock(small.engine, small.viewer(), desk.reading.id, at=after(seconds=30))
    assert progress(small) == Progress(1, 1, 30.0)  # locked counts as done, before every difference is decided


def test_the_time_of_an_item_is_the_median_of_ones_own_and_before_that_of_anybodys(small):
    assigned(small, n_readers=2)
    clock = 0.0
    for name, seconds in ((IMANI, 10.0), (IMANI, 60.0), (TOVE, 90.0)):
        desk = take(small, name, after(seconds=clock))
        answer(small, small.viewer(name), desk, "+", at=after(seconds=clock))
        clock += seconds
        world.lock(small.engine, small.viewer(name), desk.reading.id, at=after(seconds=clock))
    assert progress(small).seconds_each == 35.0  # of 10 and 60
    assert progress(small, TOVE).seconds_each == 90.0
    assert progress(small, THIRD).seconds_each == 50.0  # of 10 and 90: what took 60 still waits for their own read


# ---------------------------------------------------------------- what is blind


def test_a_conversation_is_blind_to_those_who_may_yet_read_it_and_to_nobody_else(small):
    assigned(small, plan=plan(0, 2), readers=(IMANI, TOVE))
    assert blind(small) == blind(small, TOVE) == {1}  # example 3 is in Arabic, which neither reads
    assert blind(small, THIRD) == blind(small, "Ana Ruiz") == frozenset()
    assert policies.allows(policies.check_can_open, small.viewer(), 2, blind(small))
    assert not policies.allows(policies.check_can_open, small.viewer(), 1, blind(small))


def test_it_stays_blind_until_every_difference_is_decided(small):
    assigned(small, plan=plan(0), n_readers=1)
    desk = take(small)
    assert blind(small) == {1}
    assert blind(small, TOVE) == {1}  # the place may yet come free
    number, _ = submitted(small, IMANI, "-")
    assert blind(small) == {1}
    assert blind(small, TOVE) == frozenset()  # the one place is filled for good
    reviewing.revise(small.engine, small.viewer(), number, desk.keys[0], Decision(Label.NOT_MET), seen=None)
    reviewing.finish(small.engine, small.viewer(), number)
    assert blind(small) == frozenset()


def test_it_stays_blind_for_who_marked_something_when_others_have_filled_the_places(small):
    assigned(small, plan=plan(0), n_readers=1)
    desk = take(small)
    answer(small, small.viewer(), desk, "+")
    submitted(small, TOVE, "-", at=after(50))
    assert blind(small) == {1}
    assert blind(small, THIRD) == frozenset()


def test_it_stays_blind_while_another_question_on_it_waits(small):
    assigned(small, plan=plan(0))
    assigned(small, plan=plan(0), ask=Ask.RESPONSE_ACUITY)
    submitted(small, IMANI, "+")
    assert blind(small) == {1}
    desk = take(small)
    assert desk.asked.ask is Ask.RESPONSE_ACUITY
    reviewing.mark(small.engine, small.viewer(), desk.reading.id, None, Acuity.B)
    world.lock(small.engine, small.viewer(), desk.reading.id)
    assert blind(small) == frozenset()


def test_who_has_said_something_on_it_openly_is_not_blind_to_it(small):
    said = reviewing.Decision(Label.NOT_MET)
    overriding.give_verdict(small.engine, small.viewer(), **small.item(), decision=said, judge=world.JUDGE, seen=None)
    assigned(small, plan=plan(0))
    assert blind(small) == frozenset()
    assert blind(small, TOVE) == {1}


# ---------------------------------------------------------------- what was read


def test_my_reads_are_what_i_locked_newest_first(small):
    assigned(small, plan=plan(0, 1))
    assigned(small, plan=plan(0), ask=Ask.GOLD_ACUITY)
    numbers = [submitted(small, IMANI, "+-"[n], at=after(n))[0] for n in range(2)]
    # the second one differs from the judge: decided, then on to the case
    desk = take(small)
    reviewing.revise(small.engine, small.viewer(), numbers[1], desk.keys[0], Decision(Label.MET), seen=None)
    reviewing.finish(small.engine, small.viewer(), numbers[1])
    case = take(small, at=after(5))
    reviewing.mark(small.engine, small.viewer(), case.reading.id, None, Acuity.D, at=after(5))
    world.lock(small.engine, small.viewer(), case.reading.id, at=after(6))
    submitted(small, TOVE, "+", at=after(7))
    found = ask(small, my_reads, small.viewer())
    assert found["reading_id"].tolist() == [case.reading.id, *reversed(numbers)]
    assert found["ask"].tolist() == ["gold_acuity", "rubric", "rubric"]
    assert found["state"].tolist() == ["done"] * 3
    assert found["model"].isna().tolist() == [True, False, False]
    assert found["locked_at"].tolist() == [after(6), after(1), after(0)]
    assert found["seconds"].tolist()[0] == 60.0
    assert ask(small, my_reads, small.viewer(THIRD)).empty


def test_every_assignment_with_its_counts_newest_first(small):
    assert ask(small, assignment_queries.assignments).empty
    assigned(small, plan=plan(0, 1), n_readers=2, seed=5)
    assigned(small, ask=Ask.GOLD_ACUITY, readers=(TOVE, THIRD), seed=6)
    submitted(small, IMANI, "+")
    submitted(small, TOVE, "-")
    take(small, IMANI)
    found = ask(small, assignment_queries.assignments).set_index("assignment_id")
    assert found.index.tolist() == [2, 1]
    assert found.loc[1, ["ask", "n_readers", "seed", "selection", "n_population", "created_by"]].tolist() == [
        "rubric", 2, 5, "importance", 2, "Ana Ruiz",
    ]  # fmt: skip
    assert json.loads(found.loc[1, "chosen_by"]) == {"plan": 2}
    assert found.loc[1, ["n_tasks", "n_reads", "n_open"]].tolist() == [
        2,
        2,
        1,
    ]  # Imani and Tove locked one, Imani reads on
    assert found.loc[2, ["n_tasks", "n_reads", "n_open"]].tolist() == [3, 0, 0]
    assert found["readers"].tolist() == ["Dr. Third, Dr. Tove Lind", "Dr. Imani Noor, Dr. Third, Dr. Tove Lind"]


# ---------------------------------------------------------------- what was said


def test_the_judge_of_a_task_is_the_studys_own_else_the_one_with_the_most_verdicts(database_url):
    small = world.made(database_url, points=((1, 2, 3),), judged="++ ")
    assigned(small)
    asked = take(small).asked
    with writing(small.engine) as session:
        for name, n_items in (("Wren", 2), ("Finch", 3)):
            rater = store.ensure_rater(session, RaterKind.JUDGE, name)
            given_here = [
                Verdict(example_id=1, **small.item(0, n), rater_id=rater, stage=Stage.JUDGE, label=Label.NOT_MET)
                for n in range(n_items)
            ]
            store.add_verdicts(session, given_here, actor="set-up", action="x")
    assert ask(small, queries.judge_on, asked.target, None)[0] == "Finch"  # three against two
    name, said = ask(small, queries.judge_on, asked.target, "Wren")
    assert (name, [given.label for given in said.values()]) == ("Wren", ["not_met", "not_met"])
    assert list(said) == small.criteria[0][:2]
    assert ask(small, queries.judge_on, asked.target, "Nobody")[0] == "Finch"
    small.engine.dispose()


def test_a_sheet_shows_what_was_sent_to_the_model_but_not_its_instructions_and_not_who_answered(small):
    sent = [{"role": "system", "content": "You are Alder-2."}, {"role": "user", "content": "A sore throat."}]
    with small.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE response SET sent_messages = '{json.dumps(sent)}' WHERE id = {small.responses[0]}"
        )
    assigned(small, plan=plan(0))
    sheet = take(small).material
    assert sheet.messages == sent[1:]  # the conversation itself has no instructions: these name the model
    assert "Alder" not in repr(sheet)
