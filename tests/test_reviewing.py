"""Assigned reading, one reader after the other: the queue, marks, the lock, keep or revise, amend."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore import deciding, desks, overriding, reviewing, store
from evalcore.db import writing
from evalcore.deciding import Decision, check_decision
from evalcore.desks import missing
from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.queries import study
from evalcore.queries.candidates import Planned
from evalcore.queries.tasks import Draft
from evalcore.schema import (
    Acuity,
    Ask,
    CannotReason,
    Cause,
    ErrorKind,
    Label,
    RaterKind,
    ReadingMode,
    ReadingState,
    Role,
    Rules,
    Selection,
    Severity,
    Stage,
    Verdict,
)
from tests import world
from tests.world import after, answer, assigned, submitted

IMANI, TOVE, THIRD = "Dr. Imani Noor", "Dr. Tove Lind", "Dr. Third"
MET, NOT_MET, CANNOT = Label.MET, Label.NOT_MET, Label.CANNOT_ASSESS


@pytest.fixture
def small(database_url):
    """Two responses with two criteria each; the judge says + - of the first and + + of the second."""
    yield from two_responses(database_url)


@pytest.fixture
def quick(sqlite_database_url):
    """The same on SQLite alone, for what no database decides."""
    yield from two_responses(sqlite_database_url)


def two_responses(url):
    made = world.made(url)
    world.add_researcher(made.engine, THIRD, Role.REVIEWER)
    yield made
    made.engine.dispose()


def take(small, name=IMANI, *, at=world.START):
    return reviewing.take(small.engine, small.viewer(name), at=at)


def in_hand(small, name=IMANI, *, at=world.START):
    """The response of the item that a reader has in hand; None where nothing waits."""
    desk = take(small, name, at=at)
    return desk.asked.response_id if desk else None


def mark(small, desk, label=MET, *, item=0, name=IMANI, at=world.START, **said):
    key = desk.keys[item]
    reviewing.mark(small.engine, small.viewer(name), desk.reading.id, key, label, at=at, **said)


def at_desk(small, number, name=IMANI):
    return desks.desk(small.engine, small.viewer(name), number)


def decide(small, number, key, decision, *, seen=None, name=IMANI):
    return deciding.decide(small.engine, small.viewer(name), number, key, decision, seen=seen)


def finish(small, number, name=IMANI):
    deciding.finish(small.engine, small.viewer(name), number)


def use(small, **rules):
    with writing(small.engine) as session:
        store.set_rules(session, Rules(**rules), actor="Ana Ruiz")


def order(small):
    """The responses in the order of reading."""
    return [response for (response,) in world.rows(small.engine, "SELECT response_id FROM task ORDER BY id")]


def only_the_first(small, **choice):
    """One item alone: the first response."""
    plan = assign_plan(("prompt-0", 1.0))
    return assigned(small, plan=plan, **choice)


def assign_plan(*lines):
    return tuple(Planned(prompt_id, "Alder-2", 0, share) for prompt_id, share in lines)


# ---------------------------------------------------------------- the queue


def test_everybody_reads_in_the_order_that_was_drawn(database_url):
    small = world.made(database_url, points=((1,),) * 6, judged="++++++")
    assigned(small, seed=4)
    drawn = order(small)
    assert drawn != sorted(drawn)  # seed 4 draws another order than that of the rows
    for name in (IMANI, TOVE):
        read = []
        for _ in drawn:
            read.append(in_hand(small, name))
            submitted(small, name, "+")
        assert read == drawn
        assert take(small, name) is None
    small.engine.dispose()


def test_taking_again_gives_the_same_item(quick):
    assigned(quick)
    first, again = take(quick), take(quick, at=after(1))
    assert first.reading.id == again.reading.id
    assert world.count(quick.engine, "reading") == 1


def test_a_place_is_kept_for_45_minutes_and_each_mark_moves_that_on(small):
    only_the_first(small, n_readers=1)
    desk = take(small)
    assert take(small, TOVE, at=after(44.9)) is None
    mark(small, desk, at=after(44))
    assert take(small, TOVE, at=after(44 + 44.9)) is None
    reviewing.undo_mark(small.engine, small.viewer(), desk.reading.id, at=after(80))
    assert take(small, TOVE, at=after(80 + 44.9)) is None
    assert in_hand(small, TOVE, at=after(80 + 45)) == small.responses[0]


def test_how_long_a_place_is_kept_is_the_assignments_own(quick):
    only_the_first(quick, n_readers=1, reserve_minutes=5)
    take(quick)
    assert take(quick, TOVE, at=after(4.9)) is None
    assert in_hand(quick, TOVE, at=after(5)) == quick.responses[0]


def test_who_comes_back_while_the_place_is_free_has_it_reserved_anew(small):
    only_the_first(small, n_readers=1)
    number = take(small).reading.id
    back = take(small, at=after(60))
    assert (back.reading.id, back.reading.reserved_until) == (number, after(60 + 45))
    assert back.reading.seconds == 0.0  # nothing was done yet
    assert take(small, TOVE, at=after(61)) is None
    mark(small, back, at=after(60.5))
    assert at_desk(small, number).reading.seconds == 120.0  # the hour away counts as one pause


def test_who_marked_nothing_gives_the_item_back_where_others_have_filled_it(small):
    only_the_first(small, n_readers=1)
    desk = take(small)
    take(small, TOVE, at=after(50))
    assert take(small, at=after(51)) is None
    for act in (
        lambda: at_desk(small, desk.reading.id),
        lambda: mark(small, desk, at=after(52)),
        lambda: reviewing.submit(small.engine, small.viewer(), desk.reading.id),
    ):
        with pytest.raises(NotFound, match=r"There is no item \d+ in your hands: it was given back"):
            act()
    # and when the other one does not read it either, it comes again
    again = take(small, at=after(50 + 46))
    assert again.asked.response_id == small.responses[0]
    assert again.reading.id > desk.reading.id  # never the number that a forgotten tab may still hold


def test_who_marked_something_keeps_the_item_and_may_submit_which_counts_as_one_read_more(small):
    only_the_first(small, n_readers=1)
    desk = take(small)
    mark(small, desk, MET, at=after(1))
    submitted(small, TOVE, "+-", at=after(50))
    kept = take(small, at=after(51))
    assert (kept.reading.id, kept.drafts[kept.keys[0]].label) == (desk.reading.id, "met")
    mark(small, desk, NOT_MET, item=1, at=after(52))
    assert reviewing.submit(small.engine, small.viewer(), desk.reading.id, at=after(53)) is ReadingState.DONE
    assert take(small, THIRD, at=after(53)) is None
    assert sorted((row["rater"], row["label"]) for row in small.history()) == sorted(
        (name, label) for name in (IMANI, TOVE) for label in ("met", "not_met")
    )


def test_a_submit_after_the_reservation_has_run_out_is_kept(small):
    only_the_first(small)
    desk = take(small)
    number = answer(small, small.viewer(), desk, "+-", at=after(2))
    assert reviewing.submit(small.engine, small.viewer(), number, at=after(600)) is ReadingState.DONE
    assert [row["label"] for row in small.history()] == ["met", "not_met"]


def test_a_second_reader_keeps_the_task_when_the_first_has_finished(small):
    only_the_first(small)
    second = take(small, TOVE)
    submitted(small, IMANI, "+-")
    assert take(small, TOVE, at=after(1)).reading.id == second.reading.id
    assert submitted(small, TOVE, "+-", at=after(2)) == (second.reading.id, ReadingState.DONE)
    assert take(small, THIRD, at=after(3)) is None  # two were wanted


def test_an_item_is_read_by_as_many_as_are_wanted(small):
    assigned(small, n_readers=2)
    first, second = order(small)
    assert [in_hand(small, name) for name in (IMANI, TOVE, THIRD)] == [first, first, second]


def test_nobody_reads_an_item_twice_also_over_two_assignments(small):
    """Assigning leaves out what is assigned; where an item came in twice all the same, its reader is not asked again."""
    only_the_first(small)
    with writing(small.engine) as session:
        everybody = [person.person_id for person in study.people(session) if Role.REVIEWER in person.roles]
        store.add_assignment(
            session, [(1, small.responses[0], 0.5)], ask=Ask.RUBRIC, readers=everybody, n_readers=2, seed=1,
            reserve_minutes=45, selection=Selection.RANDOM, chosen_by={}, n_population=2, actor="Ana Ruiz",
        )  # fmt: skip
    number = take(small).reading.id
    assert take(small, at=after(50)).reading.id == number
    submitted(small, IMANI, "+-", at=after(51))
    assert take(small, at=after(51)) is None
    submitted(small, TOVE, "+-", at=after(52))
    assert take(small, TOVE, at=after(52)) is None
    assert in_hand(small, THIRD, at=after(53)) == small.responses[0]  # from the second assignment


def test_who_has_given_an_open_verdict_on_the_response_is_not_asked_to_read_it_blind(small):
    said = overriding.Reading(NOT_MET)
    imani = small.viewer()
    seen = overriding.give_verdict(small.engine, imani, **small.item(), reading=said, judge=world.JUDGE, seen=None)
    only_the_first(small)
    only_the_first(small, ask=Ask.RESPONSE_ACUITY)
    assert take(small) is None  # neither for the rubric nor for the acuity
    overriding.undo(small.engine, imani, **small.item(), seen=seen)
    assert take(small) is None  # who took it back has seen the judge's verdict all the same
    assert in_hand(small, TOVE) == small.responses[0]


def test_who_has_read_the_rubric_is_still_asked_for_the_acuity_and_never_for_the_rubric_again(small):
    only_the_first(small)
    only_the_first(small, ask=Ask.RESPONSE_ACUITY)
    number, _ = submitted(small, IMANI, "+-")
    with writing(small.engine) as session:
        session.connection().exec_driver_sql(f"DELETE FROM mark WHERE reading_id = {number}")
        session.connection().exec_driver_sql(f"DELETE FROM reading WHERE id = {number}")  # only the verdicts tell now
    assert take(small).asked.ask is Ask.RESPONSE_ACUITY


def test_an_item_goes_to_readers_of_its_language(database_url):
    small = world.made(database_url, points=((1,), (1,), (1,)), judged="+++", languages={0: "ar", 1: None})
    world.add_researcher(small.engine, "Dr. Arabic", Role.REVIEWER, languages=("ar",))
    world.add_researcher(small.engine, "Dr. Both", Role.REVIEWER, languages=("fr", "ar", "en"))
    assigned(small, n_readers=4)
    arabic, unknown, english = small.responses
    may_read = {
        "Dr. Imani Noor": {unknown, english},  # a profile without languages reads English
        "Dr. Arabic": {arabic, unknown},
        "Dr. Both": {arabic, unknown, english},
    }
    for name, wanted in may_read.items():
        read = set()
        while (response := in_hand(small, name)) is not None:
            read.add(response)
            submitted(small, name, "+")
        assert read == wanted, name
    small.engine.dispose()


def test_only_the_chosen_readers_are_asked_and_only_readers_may_take(small):
    world.add_researcher(small.engine, "Dr. Adjudicator", Role.ADJUDICATOR)
    assigned(small, readers=(IMANI, "Dr. Adjudicator"))
    assert take(small, TOVE) is None
    assert take(small, "Dr. Adjudicator") is not None
    with pytest.raises(NotAllowed, match="Reading assigned items takes the role"):
        take(small, "Ana Ruiz")


def test_the_desk_of_a_blind_reader_names_neither_model_nor_judge_nor_another_reader(small):
    only_the_first(small)
    submitted(small, TOVE, "-+")
    desk = take(small)
    assert desk.keys == small.criteria[0]
    assert [item.position for item in desk.sheet.items] == [1, 2]
    assert desk.sheet.response == "Drink water, rest, and come back. Answer 0."
    assert (desk.judge, desk.judged, desk.first, desk.decided) == (None, {}, {}, {})
    assert not any(word in repr(desk) for word in ("Alder", "Magpie", "Tove", "It does."))


# ---------------------------------------------------------------- marks


def test_what_cannot_be_assessed_needs_its_reason_before_the_lock(small):
    only_the_first(small)
    desk = take(small)
    mark(small, desk, CANNOT)
    mark(small, desk, MET, item=1)
    with pytest.raises(
        OverreadError, match=r"^1 of 2 still need an answer, or the reason why they cannot be assessed\.$"
    ):
        reviewing.submit(small.engine, small.viewer(), desk.reading.id)
    assert small.history() == []
    assert at_desk(small, desk.reading.id).state is ReadingState.READING
    mark(small, desk, CANNOT, reason=CannotReason.OUTSIDE_SPECIALTY)
    reviewing.submit(small.engine, small.viewer(), desk.reading.id)
    assert [(row["label"], row["reason"]) for row in small.history()] == [
        ("cannot_assess", "outside_specialty"),
        ("met", None),
    ]


@given(
    st.lists(st.none() | st.tuples(st.sampled_from([None, *Label]), st.sampled_from([None, *CannotReason])), max_size=6)
)
def test_an_item_misses_its_answer_until_it_has_a_label_and_the_label_its_reason(said):
    keys = list(range(len(said)))
    drafts = {key: Draft(draft[0], draft[1], None) for key, draft in zip(keys, said, strict=True) if draft is not None}
    complete = {key for key, draft in drafts.items() if draft.label in (MET, NOT_MET) or (draft.label and draft.reason)}
    assert missing(keys, drafts) == [key for key in keys if key not in complete]


def test_the_newest_mark_of_an_item_counts_with_its_note(small):
    only_the_first(small)
    desk = take(small)
    mark(small, desk, None, note="first I thought")
    mark(small, desk, MET, note="  It names it.  ")
    mark(small, desk, NOT_MET, item=1, note=" ")
    assert take(small).drafts == {
        desk.keys[0]: Draft("met", None, "It names it."),
        desk.keys[1]: Draft("not_met", None, None),
    }
    reviewing.submit(small.engine, small.viewer(), desk.reading.id)
    assert [(row["label"], row["explanation"]) for row in small.history()] == [
        ("met", "It names it."),
        ("not_met", None),
    ]


def test_a_reason_belongs_to_what_cannot_be_assessed_alone(quick):
    only_the_first(quick)
    desk = take(quick)
    mark(quick, desk, CANNOT, reason=CannotReason.LANGUAGE)
    mark(quick, desk, MET, reason=CannotReason.LANGUAGE)
    assert take(quick).drafts[desk.keys[0]] == Draft("met", None, None)


def test_undo_goes_back_one_mark_at_a_time_over_several_criteria(small):
    only_the_first(small)
    desk = take(small)
    one, two = desk.keys
    for item, label in ((0, MET), (1, MET), (0, NOT_MET), (1, CANNOT)):
        mark(small, desk, label, item=item)

    def undone():
        key = reviewing.undo_mark(small.engine, small.viewer(), desk.reading.id)
        return key, {key: draft.label for key, draft in take(small).drafts.items()}

    assert undone() == (two, {one: "not_met", two: "met"})
    assert undone() == (one, {one: "met", two: "met"})
    assert undone() == (two, {one: "met"})
    assert undone() == (one, {})
    with pytest.raises(AlreadyChanged, match="There is nothing to undo here"):
        undone()


def test_a_mark_that_is_none_is_refused_with_a_sentence_and_not_stored(small):
    assigned(small)
    desk = take(small)
    foreign = (set(small.criteria[0]) | set(small.criteria[1])) - set(desk.keys)
    number, own = desk.reading.id, desk.keys[0]
    refused = [
        ((IMANI, number, own, Acuity.A), {}, OverreadError, "label: A came, expected one of met, not_met, cannot_assess"),
        ((IMANI, number, foreign.pop(), MET), {}, NotFound, "This item has no criterion"),
        ((IMANI, number, None, MET), {}, NotFound, "This item has no criterion"),
        ((IMANI, number, 9_999, MET), {}, NotFound, "This item has no criterion 9999."),
        ((TOVE, number, own, MET), {}, NotFound, f"There is no item {number} in your hands"),
        ((IMANI, 9_999, own, MET), {}, NotFound, "There is no item 9999 in your hands"),
        (("Ana Ruiz", number, own, MET), {}, NotFound, "There is no item"),
        ((IMANI, number, own, MET), {"note": "x" * (desks.MAX_NOTE + 1)}, OverreadError, "note: 5,001 characters came"),
        ((IMANI, number, own, MET), {"note": "a\x00b"}, OverreadError, "note: a character came that no database holds"),
        ((IMANI, number, own, MET), {"note": "half \ud83e"}, OverreadError, "expected plain text"),
    ]  # fmt: skip
    for (name, *what), said, error, sentence in refused:
        with pytest.raises(error, match=re.escape(sentence)):
            reviewing.mark(small.engine, small.viewer(name), *what, **said)
    assert world.count(small.engine, "mark") == 0
    for act in (reviewing.undo_mark, reviewing.submit, deciding.finish, desks.desk):
        with pytest.raises(NotFound, match="in your hands"):
            act(small.engine, small.viewer(TOVE), number)


def test_after_the_lock_nothing_is_marked_undone_or_submitted(small):
    only_the_first(small)
    number, _ = submitted(small, IMANI, "--")
    imani, key = small.viewer(), small.criteria[0][0]
    n_marks, n_events = world.count(small.engine, "mark"), len(small.events())
    for act in (
        lambda: reviewing.mark(small.engine, imani, number, key, MET),
        lambda: reviewing.undo_mark(small.engine, imani, number),
        lambda: reviewing.submit(small.engine, imani, number),
    ):
        with pytest.raises(
            AlreadyChanged, match=r"submitted already, in another tab or by a second press\. Nothing was saved"
        ):
            act()
    assert (world.count(small.engine, "mark"), len(small.events())) == (n_marks, n_events)
    assert [row["label"] for row in small.history()] == ["not_met", "not_met"]


# ---------------------------------------------------------------- the lock


def test_the_first_read_carries_how_it_came_about(small):
    assigned(small, n_items=1)
    number, _ = submitted(small, IMANI, "--")
    rows = small.history()
    assert [row["criterion_id"] for row in rows] == at_desk(small, number).keys
    for row in rows:
        assert (row["stage"], row["selection"], row["inclusion_probability"]) == ("first", "random", 0.5)  # 1 of 2
        assert (row["blinded"], row["rater"], row["cause"]) == (True, IMANI, None)
    assert small.events()[-1] == (IMANI, "first read submitted")


def test_a_planned_read_carries_the_plans_probability(quick):
    assigned(quick, plan=assign_plan(("prompt-1", 0.125)))
    submitted(quick, IMANI, "++")
    assert {(row["selection"], row["inclusion_probability"]) for row in quick.history()} == {("importance", 0.125)}


def test_where_the_judge_differs_its_verdicts_are_shown_and_wait_for_a_word(small):
    only_the_first(small)
    number, state = submitted(small, IMANI, "++")  # the judge: + -
    assert state is ReadingState.REVEALED
    desk = at_desk(small, number)
    one, two = desk.keys
    assert desk.judge == world.JUDGE
    assert {key: given.label for key, given in desk.judged.items()} == {one: "met", two: "not_met"}
    assert desk.judged[two].explanation == "It does."
    assert {key: given.label for key, given in desk.first.items()} == {one: "met", two: "met"}
    assert desk.differing == desk.undecided == [two]
    assert take(small).reading.id == number  # nothing new before this is decided


def test_where_the_judge_says_the_same_the_item_is_done_and_so_where_it_says_nothing(database_url):
    small = world.made(database_url, judged="+-  ")
    assigned(small)
    states = {}
    for _ in range(2):
        labels = "+-" if in_hand(small) == small.responses[0] else "?+"
        number, state = submitted(small, IMANI, labels)
        desk = at_desk(small, number)
        states[desk.asked.response_id] = (state, desk.judge, desk.differing)
    assert states == {
        small.responses[0]: (ReadingState.DONE, world.JUDGE, []),
        small.responses[1]: (ReadingState.DONE, None, []),
    }
    assert take(small) is None
    small.engine.dispose()


def test_the_studys_own_judge_is_the_one_that_is_revealed(small):
    with writing(small.engine) as session:
        wren = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        of_wren = Verdict(
            example_id=1, **small.item(0, 1), rater_id=wren, stage=Stage.JUDGE, label=MET, explanation="So says Wren."
        )
        store.add_verdicts(session, [of_wren], actor="set-up", action="x")
    only_the_first(small)
    number, _ = submitted(small, IMANI, "--")
    assert at_desk(small, number).judge == world.JUDGE  # two verdicts against one
    use(small, judge="Wren")
    assert at_desk(small, number).judge == world.JUDGE  # what was shown once stays what was shown
    other, _ = submitted(small, TOVE, "--")
    desk = at_desk(small, other, TOVE)
    assert (desk.judge, desk.differing) == ("Wren", [small.criteria[0][1]])


# ---------------------------------------------------------------- time


def test_of_each_pause_two_minutes_count_at_most(small):
    pauses = (10, 300, 0, 119.5, 120, 121, 86_400)
    only_the_first(small)
    desk, clock = take(small), 0.0
    for pause in pauses:
        clock += pause
        mark(small, desk, CANNOT, reason=CannotReason.LANGUAGE, at=after(seconds=clock))
    mark(small, desk, item=1, at=after(seconds=clock))
    reviewing.submit(small.engine, small.viewer(), desk.reading.id, at=after(seconds=clock + 7))
    spent = sum(min(pause, 120) for pause in pauses) + 7
    assert at_desk(small, desk.reading.id).reading.seconds == pytest.approx(spent)


def test_a_clock_that_was_set_back_takes_no_time_away(quick):
    only_the_first(quick)
    desk = take(quick)
    mark(quick, desk, at=after(seconds=30))
    mark(quick, desk, at=after(seconds=10))
    assert at_desk(quick, desk.reading.id).reading.seconds == 30.0


# ---------------------------------------------------------------- an open study


def test_in_an_open_study_the_judge_is_shown_from_the_start_and_the_verdicts_say_so(small):
    use(small, mode=ReadingMode.OPEN)
    only_the_first(small)
    desk = take(small)
    assert (desk.reading.blinded, desk.judge) == (False, world.JUDGE)
    assert [desk.judged[key].label for key in desk.keys] == ["met", "not_met"]
    number, state = submitted(small, IMANI, "--")
    assert state is ReadingState.REVEALED
    assert {(row["stage"], row["blinded"], row["selection"]) for row in small.history()} == {
        ("open", False, "importance")
    }
    assert {key: given.label for key, given in at_desk(small, number).first.items()} == dict.fromkeys(
        desk.keys, "not_met"
    )


def test_a_read_stays_blind_when_the_study_is_opened_meanwhile(quick):
    only_the_first(quick)
    take(quick)
    use(quick, mode=ReadingMode.OPEN)
    desk = take(quick)
    assert (desk.reading.blinded, desk.judge, desk.judged) == (True, None, {})
    submitted(quick, IMANI, "+-")
    assert {(row["stage"], row["blinded"]) for row in quick.history()} == {("first", True)}


def test_an_open_verdict_given_in_the_middle_of_an_open_read_does_not_block_its_submission(small):
    use(small, mode=ReadingMode.OPEN)
    only_the_first(small)
    take(small)
    imani = small.viewer()
    override = overriding.Reading(NOT_MET)
    seen = overriding.give_verdict(small.engine, imani, **small.item(), reading=override, judge=world.JUDGE, seen=None)
    number, _ = submitted(small, IMANI, "+-")
    assert [row["label"] for row in small.history()] == ["not_met", "met", "not_met"]
    assert [row["selection"] for row in small.history()] == ["volunteered", "importance", "importance"]
    desk = at_desk(small, number)
    assert [desk.first[key].label for key in desk.keys] == ["met", "not_met"]
    # and what is said of one's own accord afterwards leaves the submitted read as it was
    (mine,) = [row["verdict_id"] for row in small.history() if row["label"] == "met"]
    seen = overriding.give_verdict(small.engine, imani, **small.item(), reading=override, judge=world.JUDGE, seen=mine)
    assert at_desk(small, number).first == desk.first
    overriding.undo(small.engine, imani, **small.item(), seen=seen)  # says again what was submitted, in a newer verdict
    assert at_desk(small, number).first == desk.first


# ---------------------------------------------------------------- keep, revise, amend


def test_a_difference_is_kept_or_revised_and_the_first_read_stays(small):
    only_the_first(small)
    number, _ = submitted(small, IMANI, "-+")  # the judge: + -
    one, two = small.criteria[0]
    with pytest.raises(OverreadError, match=r"^2 of 2 differences still wait: keep your label or revise it\.$"):
        finish(small, number)
    kept = Decision(NOT_MET, Cause.MISREAD_ANSWER, Severity.SEVERE, ErrorKind.OMISSION, note=" It is absent. ")
    first_decision = decide(small, number, one, kept)
    assert small.events()[-1] == (IMANI, "read kept")
    with pytest.raises(OverreadError, match="1 of 2 differences still wait"):
        finish(small, number)
    decide(small, number, two, Decision(NOT_MET, right_for_wrong_reason=True))
    assert small.events()[-1] == (IMANI, "read revised")
    desk = at_desk(small, number)
    assert (desk.undecided, desk.differing) == ([], [one, two])
    assert desk.decided[one].verdict_id == first_decision
    finish(small, number)
    assert at_desk(small, number).state is ReadingState.DONE
    revised = [row for row in small.history() if row["stage"] == "revised"]
    said = ("label", "cause", "severity", "error_kind", "right_for_wrong_reason", "explanation")
    assert [tuple(row[name] for name in said) for row in revised] == [
        ("not_met", "judge_misread_answer", "severe", "omission", False, "It is absent."),
        ("not_met", None, None, None, True, None),
    ]
    assert {(row["blinded"], row["selection"], row["inclusion_probability"]) for row in revised} == {
        (False, "importance", 1.0)
    }
    assert [row["label"] for row in small.history() if row["stage"] == "first"] == ["not_met", "met"]


def test_finishing_twice_changes_nothing(quick):
    only_the_first(quick)
    number, _ = submitted(quick, IMANI, "+-")
    before = at_desk(quick, number).reading
    deciding.finish(quick.engine, quick.viewer(), number, at=after(30))
    assert at_desk(quick, number).reading == before


def test_nothing_is_decided_before_the_lock(quick):
    only_the_first(quick)
    number = take(quick).reading.id
    for act in (lambda: decide(quick, number, quick.criteria[0][0], Decision(MET)), lambda: finish(quick, number)):
        with pytest.raises(NotAllowed, match="shown once your first read is submitted"):
            act()


def test_a_decision_that_another_tab_has_replaced_is_told(small):
    only_the_first(small)
    number, _ = submitted(small, IMANI, "--")
    key = small.criteria[0][0]
    seen = decide(small, number, key, Decision(NOT_MET))
    for stale in (None, seen + 100):
        with pytest.raises(AlreadyChanged, match=r"decided in another tab\. .* the last press was not saved"):
            decide(small, number, key, Decision(MET), seen=stale)
    decide(small, number, key, Decision(MET), seen=seen)
    assert at_desk(small, number).decided[key].label == "met"
    with pytest.raises(AlreadyChanged):
        decide(small, number, key, Decision(NOT_MET), seen=seen)


def test_what_is_done_can_be_amended_by_a_newer_verdict_and_the_first_read_stays(small):
    only_the_first(small)
    number, state = submitted(small, IMANI, "+-")
    assert state is ReadingState.DONE
    key = small.criteria[0][0]
    seen = decide(small, number, key, Decision(NOT_MET, Cause.OTHER))  # the judge says met
    assert small.events()[-1] == (IMANI, "read amended")
    newer = decide(small, number, key, Decision(MET, right_for_wrong_reason=True), seen=seen)
    desk = at_desk(small, number)
    assert (desk.state, desk.decided[key].verdict_id, desk.decided[key].label) == (ReadingState.DONE, newer, "met")
    assert desk.first[key].label == "met"
    assert [(row["stage"], row["label"]) for row in small.history()] == [
        ("first", "met"), ("first", "not_met"), ("revised", "not_met"), ("revised", "met"),
    ]  # fmt: skip
    ((supersedes,),) = world.rows(small.engine, "SELECT supersedes FROM verdict WHERE id = :number", number=newer)
    assert supersedes == seen


def test_a_decision_that_is_none_is_refused(quick):
    only_the_first(quick)
    number, _ = submitted(quick, IMANI, "--")
    one, two = quick.criteria[0]
    n_events = len(quick.events())
    for key, decision, error, sentence in (
        (one, Decision(Acuity.B), OverreadError, "label: B came, expected one of met, not_met, cannot_assess"),
        (quick.criteria[1][0], Decision(MET), NotFound, "This item has no criterion"),
        (None, Decision(MET), NotFound, "This item has no criterion"),
        (one, Decision(MET, Cause.OTHER), OverreadError, "this one agrees"),
        (two, Decision(MET, right_for_wrong_reason=True), OverreadError, "this one differs"),
        (one, Decision(NOT_MET, note="x" * (desks.MAX_NOTE + 1)), OverreadError, "note: 5,001 characters came"),
    ):
        with pytest.raises(error, match=re.escape(sentence)):
            decide(quick, number, key, decision)
    with pytest.raises(NotFound, match="in your hands"):
        decide(quick, number, one, Decision(MET), name=TOVE)
    assert len(quick.events()) == n_events


@given(
    label=st.sampled_from(list(Label)),
    judge_label=st.sampled_from([*Label, None]),
    cause=st.none() | st.sampled_from(list(Cause)),
    severity=st.none() | st.sampled_from(list(Severity)),
    error_kind=st.none() | st.sampled_from(list(ErrorKind)),
    right_for_wrong_reason=st.booleans(),
)
def test_a_cause_belongs_to_a_difference_and_a_wrong_reason_to_an_agreement(
    label, judge_label, cause, severity, error_kind, right_for_wrong_reason
):
    """Where the judge says nothing there is neither."""
    decision = Decision(label, cause, severity, error_kind, right_for_wrong_reason)
    blames = any(part is not None for part in (cause, severity, error_kind))
    agrees, differs = judge_label == label, judge_label not in (None, label)
    if (agrees or not right_for_wrong_reason) and (differs or not blames):
        check_decision(decision, judge_label)
    else:
        with pytest.raises(OverreadError, match=r"belongs? to a label that (differs|agrees)"):
            check_decision(decision, judge_label)


def test_what_could_not_be_assessed_keeps_its_reason_when_it_is_kept(quick):
    only_the_first(quick)
    number, _ = submitted(quick, IMANI, "?-")  # for the context that is missing
    key = quick.criteria[0][0]
    seen = decide(quick, number, key, Decision(CANNOT))
    assert at_desk(quick, number).decided[key].reason == "context_missing"
    seen = decide(quick, number, key, Decision(CANNOT, reason=CannotReason.LANGUAGE), seen=seen)
    assert at_desk(quick, number).decided[key].reason == "language"
    decide(quick, number, key, Decision(MET, reason=CannotReason.LANGUAGE), seen=seen)
    assert at_desk(quick, number).decided[key].reason is None


# ---------------------------------------------------------------- acuity


@pytest.mark.parametrize("ask", [Ask.RESPONSE_ACUITY, Ask.GOLD_ACUITY])
def test_a_level_of_care_is_one_question_with_one_answer(small, ask):
    response = small.responses[0] if ask is Ask.RESPONSE_ACUITY else None
    with writing(small.engine) as session:
        judge = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE)
        said = Verdict(
            example_id=1, response_id=response, criterion_id=None, rater_id=judge, stage=Stage.JUDGE, label=Acuity.C
        )
        store.add_verdicts(session, [said], actor="set-up", action="x")
    only_the_first(small, ask=ask)
    desk = take(small)
    assert (desk.keys, desk.sheet.items, desk.judged) == ([None], (), {})
    assert (desk.sheet.response is None) == (ask is Ask.GOLD_ACUITY)
    number, imani = desk.reading.id, small.viewer()
    with pytest.raises(
        OverreadError, match="label: met came, expected one of A, A/B, B, B/C, C, C/D, D, remove, cannot_assess"
    ):
        reviewing.mark(small.engine, imani, number, None, MET)
    with pytest.raises(NotFound):
        reviewing.mark(small.engine, imani, number, small.criteria[0][0], Acuity.A)
    for label in Acuity:
        reviewing.mark(small.engine, imani, number, None, label)
    mark(small, desk, CANNOT)
    with pytest.raises(OverreadError, match="1 of 1 still need an answer"):
        reviewing.submit(small.engine, imani, number)
    mark(small, desk, CANNOT, reason=CannotReason.NEEDS_EXAMINATION)
    reviewing.undo_mark(small.engine, imani, number)
    reviewing.undo_mark(small.engine, imani, number)
    assert desks.desk(small.engine, imani, number).drafts[None].label == "remove"
    mark(small, desk, Acuity.B_C)
    assert reviewing.submit(small.engine, imani, number) is ReadingState.REVEALED
    desk = at_desk(small, number)
    assert (desk.first[None].label, desk.judged[None].label, desk.differing) == ("B/C", "C", [None])
    seen = decide(small, number, None, Decision(Acuity.C))
    finish(small, number)
    decide(small, number, None, Decision(Acuity.REMOVE, Cause.CONTEXT_MISSING), seen=seen)
    columns = "example_id, response_id, criterion_id, stage, label, supersedes"
    found = world.rows(small.engine, f"SELECT {columns} FROM verdict WHERE stage IN ('first', 'revised') ORDER BY id")
    assert found == [
        (1, response, None, "first", "B/C", None),
        (1, response, None, "revised", "C", None),
        (1, response, None, "revised", "remove", seen),
    ]


def test_a_level_of_care_that_cannot_be_told_is_stored_with_its_reason(quick):
    only_the_first(quick, ask=Ask.GOLD_ACUITY)
    desk = take(quick)
    mark(quick, desk, CANNOT, reason=CannotReason.CONTEXT_MISSING)
    assert reviewing.submit(quick.engine, quick.viewer(), desk.reading.id) is ReadingState.DONE
    found = world.rows(quick.engine, "SELECT label, reason, blinded FROM verdict WHERE stage = 'first'")
    assert [(label, reason, bool(blinded)) for label, reason, blinded in found] == [
        ("cannot_assess", "context_missing", True)
    ]


def test_the_order_of_marks_by_two_tabs_is_the_order_in_which_they_came(quick):
    """The desk of either tab shows the same drafts, whatever the tab had shown before."""
    only_the_first(quick)
    tab, other = take(quick), take(quick)
    mark(quick, tab, MET)
    mark(quick, other, NOT_MET)
    assert take(quick).drafts[tab.keys[0]].label == "not_met"
    assert world.count(quick.engine, "mark") == 2
