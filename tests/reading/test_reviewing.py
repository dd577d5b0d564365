"""Assigned reading, one reader after the other: marks, the lock, the time, an open study, a level of care."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from evalcore.errors import AlreadyChanged, NotFound, OverreadError
from evalcore.reading import overriding, reviewing
from evalcore.reading.queries import Draft
from evalcore.reading.reviewing import Decision, missing
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import (
    Acuity,
    Ask,
    CannotReason,
    Cause,
    Label,
    RaterKind,
    ReadingMode,
    ReadingState,
    Stage,
    Verdict,
)
from tests import world
from tests.reading_steps import (
    IMANI,
    THIRD,
    TOVE,
    at_desk,
    decide,
    finish,
    in_hand,
    mark,
    only_the_first,
    plan_of,
    take,
    use,
)
from tests.world import after, assigned, submitted

MET, NOT_MET, CANNOT = Label.MET, Label.NOT_MET, Label.CANNOT_ASSESS


# ---------------------------------------------------------------- marks


def test_what_cannot_be_assessed_needs_its_reason_before_the_lock(three_readers):
    only_the_first(three_readers)
    desk = take(three_readers)
    mark(three_readers, desk, CANNOT)
    mark(three_readers, desk, MET, item=1)
    with pytest.raises(
        OverreadError, match=r"^1 of 2 still need an answer, or the reason why they cannot be assessed\.$"
    ):
        world.lock(three_readers.engine, three_readers.viewer(), desk.reading.id)
    assert three_readers.history() == []
    assert at_desk(three_readers, desk.reading.id).state is ReadingState.READING
    mark(three_readers, desk, CANNOT, reason=CannotReason.OUTSIDE_SPECIALTY)
    world.lock(three_readers.engine, three_readers.viewer(), desk.reading.id)
    assert [(row["label"], row["reason"]) for row in three_readers.history()] == [
        ("cannot_assess", "outside_specialty"),
        ("met", None),
    ]


@settings(max_examples=50)
@given(
    st.lists(st.none() | st.tuples(st.sampled_from([None, *Label]), st.sampled_from([None, *CannotReason])), max_size=6)
)
def test_an_item_misses_its_answer_until_it_has_a_label_and_the_label_its_reason(said):
    keys = list(range(len(said)))
    drafts = {key: Draft(draft[0], draft[1], None) for key, draft in zip(keys, said, strict=True) if draft is not None}
    complete = {key for key, draft in drafts.items() if draft.label in (MET, NOT_MET) or (draft.label and draft.reason)}
    assert missing(keys, drafts) == [key for key in keys if key not in complete]


def test_the_newest_mark_of_an_item_counts_with_its_note(three_readers):
    only_the_first(three_readers)
    desk = take(three_readers)
    mark(three_readers, desk, None, note="first I thought")
    mark(three_readers, desk, MET, note="  It names it.  ")
    mark(three_readers, desk, NOT_MET, item=1, note=" ")
    assert take(three_readers).drafts == {
        desk.keys[0]: Draft("met", None, "It names it."),
        desk.keys[1]: Draft("not_met", None, None),
    }
    world.lock(three_readers.engine, three_readers.viewer(), desk.reading.id)
    assert [(row["label"], row["explanation"]) for row in three_readers.history()] == [
        ("met", "It names it."),
        ("not_met", None),
    ]


def test_a_reason_belongs_to_what_cannot_be_assessed_alone(three_readers_quick):
    only_the_first(three_readers_quick)
    desk = take(three_readers_quick)
    mark(three_readers_quick, desk, CANNOT, reason=CannotReason.LANGUAGE)
    mark(three_readers_quick, desk, MET, reason=CannotReason.LANGUAGE)
    assert take(three_readers_quick).drafts[desk.keys[0]] == Draft("met", None, None)


def test_undo_goes_back_one_mark_at_a_time_over_several_criteria(three_readers):
    only_the_first(three_readers)
    desk = take(three_readers)
    one, two = desk.keys
    for item, label in ((0, MET), (1, MET), (0, NOT_MET), (1, CANNOT)):
        mark(three_readers, desk, label, item=item)

    def undone():
        key = reviewing.undo_mark(three_readers.engine, three_readers.viewer(), desk.reading.id)
        return key, {key: draft.label for key, draft in take(three_readers).drafts.items()}

    assert undone() == (two, {one: "not_met", two: "met"})
    assert undone() == (one, {one: "met", two: "met"})
    assert undone() == (two, {one: "met"})
    assert undone() == (one, {})
    with pytest.raises(AlreadyChanged, match="There is nothing to undo here"):
        undone()


def test_undo_takes_labels_away_and_keeps_the_note_as_it_was_written_last(three_readers):
    only_the_first(three_readers)
    desk = take(three_readers)
    one, two = desk.keys
    mark(three_readers, desk, MET)
    mark(three_readers, desk, MET, note="It says so.")
    mark(three_readers, desk, NOT_MET, note="It says so.")
    mark(three_readers, desk, MET, item=1)
    mark(three_readers, desk, NOT_MET, note="It says otherwise.")  # written after the other item was marked

    def undone():
        key = reviewing.undo_mark(three_readers.engine, three_readers.viewer(), desk.reading.id)
        return key, {key: (draft.label, draft.note) for key, draft in take(three_readers).drafts.items()}

    note = "It says otherwise."
    assert undone() == (two, {one: ("not_met", note)})
    assert undone() == (one, {one: ("met", note)})
    assert undone() == (one, {one: (None, note)})
    with pytest.raises(AlreadyChanged, match="There is nothing to undo here"):
        undone()
    assert take(three_readers).drafts == {one: Draft(None, None, note)}


def test_a_mark_that_is_none_is_refused_with_a_sentence_and_not_stored(three_readers):
    assigned(three_readers)
    desk = take(three_readers)
    foreign = (set(three_readers.criteria[0]) | set(three_readers.criteria[1])) - set(desk.keys)
    number, own = desk.reading.id, desk.keys[0]
    refused = [
        ((IMANI, number, own, Acuity.A), {}, OverreadError, "label: expected one of met, not_met, cannot_assess, got A"),
        ((IMANI, number, foreign.pop(), MET), {}, NotFound, "This item has no criterion"),
        ((IMANI, number, None, MET), {}, NotFound, "This item has no criterion"),
        ((IMANI, number, 9_999, MET), {}, NotFound, "This item has no criterion 9999."),
        ((TOVE, number, own, MET), {}, NotFound, f"There is no item {number} in your hands"),
        ((IMANI, 9_999, own, MET), {}, NotFound, "There is no item 9999 in your hands"),
        (("Ana Ruiz", number, own, MET), {}, NotFound, "There is no item"),
        ((IMANI, number, own, MET), {"note": "x" * (reviewing.MAX_NOTE + 1)}, OverreadError, "note: expected at most 5,000 characters, got 5,001"),
        ((IMANI, number, own, MET), {"note": "a\x00b"}, OverreadError, "note: expected plain text, got a character that no database holds (NUL, or half of a surrogate pair)"),
        ((IMANI, number, own, MET), {"note": "half \ud83e"}, OverreadError, "expected plain text"),
    ]  # fmt: skip
    for (name, *what), said, error, sentence in refused:
        with pytest.raises(error, match=re.escape(sentence)):
            reviewing.mark(three_readers.engine, three_readers.viewer(name), *what, **said)
    assert world.count(three_readers.engine, "mark") == 0
    for act in (reviewing.undo_mark, reviewing.submit, reviewing.finish, reviewing.open_review):
        with pytest.raises(NotFound, match="in your hands"):
            act(three_readers.engine, three_readers.viewer(TOVE), number)


def test_after_the_lock_nothing_is_marked_undone_or_submitted(three_readers):
    only_the_first(three_readers)
    number, _ = submitted(three_readers, IMANI, "--")
    imani, key = three_readers.viewer(), three_readers.criteria[0][0]
    n_marks, n_events = world.count(three_readers.engine, "mark"), len(three_readers.events())
    for act in (
        lambda: reviewing.mark(three_readers.engine, imani, number, key, MET),
        lambda: reviewing.undo_mark(three_readers.engine, imani, number),
        lambda: world.lock(three_readers.engine, imani, number),
    ):
        with pytest.raises(
            AlreadyChanged, match=r"submitted already, in another tab or by a second press\. Nothing was saved"
        ):
            act()
    assert (world.count(three_readers.engine, "mark"), len(three_readers.events())) == (n_marks, n_events)
    assert [row["label"] for row in three_readers.history()] == ["not_met", "not_met"]


# ---------------------------------------------------------------- the lock


def test_the_first_read_carries_how_it_came_about(three_readers):
    assigned(three_readers, n_items=1)
    number, _ = submitted(three_readers, IMANI, "--")
    rows = three_readers.history()
    assert [row["criterion_id"] for row in rows] == at_desk(three_readers, number).keys
    for row in rows:
        assert (row["stage"], row["selection"], row["inclusion_probability"]) == ("first", "random", 0.5)  # 1 of 2
        assert (row["blinded"], row["rater"], row["cause"]) == (True, IMANI, None)
    assert three_readers.events()[-1] == (IMANI, "first read submitted")


def test_a_planned_read_carries_the_plans_probability(three_readers_quick):
    assigned(three_readers_quick, plan=plan_of(("prompt-1", 0.125)))
    submitted(three_readers_quick, IMANI, "++")
    assert {(row["selection"], row["inclusion_probability"]) for row in three_readers_quick.history()} == {
        ("importance", 0.125)
    }


def test_where_the_judge_differs_its_verdicts_are_shown_and_wait_for_a_word(three_readers):
    only_the_first(three_readers)
    number, state = submitted(three_readers, IMANI, "++")  # the judge: + -
    assert state is ReadingState.REVEALED
    desk = at_desk(three_readers, number)
    one, two = desk.keys
    assert desk.judge == world.JUDGE
    assert {key: given.label for key, given in desk.judged.items()} == {one: "met", two: "not_met"}
    assert desk.judged[two].explanation == "It does."
    assert {key: given.label for key, given in desk.first.items()} == {one: "met", two: "met"}
    assert desk.differing == desk.undecided == [two]
    assert take(three_readers).reading.id == number  # nothing new before this is decided


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


def test_the_studys_own_judge_is_the_one_that_is_revealed(three_readers):
    world.judged(three_readers, "Wren", MET, criterion=1, explanation="So says Wren.")
    use(three_readers, judge="Wren")  # with one verdict against two
    only_the_first(three_readers)
    number, _ = submitted(three_readers, IMANI, "--")
    desk = at_desk(three_readers, number)
    assert (desk.judge, desk.differing) == ("Wren", [three_readers.criteria[0][1]])


def test_the_judge_that_is_revealed_stays_that_of_the_assignment_whatever_comes_later(three_readers):
    only_the_first(three_readers, n_readers=3)
    first, _ = submitted(three_readers, IMANI, "--")
    for criterion in (0, 1):
        world.judged(three_readers, "Adder", MET, criterion=criterion)  # as many verdicts, and earlier by name
    second, _ = submitted(three_readers, TOVE, "--")
    use(three_readers, judge="Adder")
    third, _ = submitted(three_readers, THIRD, "--")
    shown = [
        at_desk(three_readers, number, name).judge for number, name in ((first, IMANI), (second, TOVE), (third, THIRD))
    ]
    assert shown == [world.JUDGE] * 3
    (detail,) = world.rows(three_readers.engine, "SELECT detail FROM audit_event WHERE action = 'items assigned'")
    assert f'"judge": "{world.JUDGE}"' in detail[0]


@pytest.mark.parametrize("settled", [True, False])
def test_where_the_judge_of_the_assignment_says_nothing_no_other_is_shown_and_without_one_whoever_came(
    database_url, settled
):
    small = world.made(database_url, judged="  +-" if settled else "    ")  # on the second response alone, or nowhere
    assigned(small)
    for criterion in (0, 1):
        world.judged(small, "Adder", MET, criterion=criterion)
    while in_hand(small) != small.responses[0]:
        submitted(small, IMANI, "+-")
    number, state = submitted(small, IMANI, "--")
    found = (ReadingState.DONE, None) if settled else (ReadingState.REVEALED, "Adder")
    assert (state, at_desk(small, number).judge) == found
    small.engine.dispose()


# ---------------------------------------------------------------- time


def test_of_each_pause_two_minutes_count_at_most(three_readers):
    pauses = (10, 300, 0, 119.5, 120, 121, 86_400)
    only_the_first(three_readers)
    desk, clock = take(three_readers), 0.0
    for pause in pauses:
        clock += pause
        mark(three_readers, desk, CANNOT, reason=CannotReason.LANGUAGE, at=after(seconds=clock))
    mark(three_readers, desk, item=1, at=after(seconds=clock))
    world.lock(three_readers.engine, three_readers.viewer(), desk.reading.id, at=after(seconds=clock + 7))
    spent = sum(min(pause, 120) for pause in pauses) + 7
    assert at_desk(three_readers, desk.reading.id).reading.seconds == pytest.approx(spent)


def test_a_clock_that_was_set_back_takes_no_time_away(three_readers_quick):
    only_the_first(three_readers_quick)
    desk = take(three_readers_quick)
    mark(three_readers_quick, desk, at=after(seconds=30))
    mark(three_readers_quick, desk, at=after(seconds=10))
    assert at_desk(three_readers_quick, desk.reading.id).reading.seconds == 30.0


# ---------------------------------------------------------------- an open study


def test_in_an_open_study_the_judge_is_shown_from_the_start_and_the_verdicts_say_so(three_readers):
    use(three_readers, mode=ReadingMode.OPEN)
    only_the_first(three_readers)
    desk = take(three_readers)
    assert (desk.reading.blinded, desk.judge) == (False, world.JUDGE)
    assert [desk.judged[key].label for key in desk.keys] == ["met", "not_met"]
    number, state = submitted(three_readers, IMANI, "--")
    assert state is ReadingState.REVEALED
    assert {(row["stage"], row["blinded"], row["selection"]) for row in three_readers.history()} == {
        ("open", False, "importance")
    }
    assert {key: given.label for key, given in at_desk(three_readers, number).first.items()} == dict.fromkeys(
        desk.keys, "not_met"
    )


def test_a_read_stays_blind_when_the_study_is_opened_meanwhile(three_readers_quick):
    only_the_first(three_readers_quick)
    take(three_readers_quick)
    use(three_readers_quick, mode=ReadingMode.OPEN)
    desk = take(three_readers_quick)
    assert (desk.reading.blinded, desk.judge, desk.judged) == (True, None, {})
    submitted(three_readers_quick, IMANI, "+-")
    assert {(row["stage"], row["blinded"]) for row in three_readers_quick.history()} == {("first", True)}


def test_an_open_verdict_given_in_the_middle_of_an_open_read_does_not_block_its_submission(three_readers):
    use(three_readers, mode=ReadingMode.OPEN)
    only_the_first(three_readers)
    take(three_readers)
    imani = three_readers.viewer()
    override = reviewing.Decision(NOT_MET)
    seen = overriding.give_verdict(
        three_readers.engine, imani, **three_readers.item(), decision=override, judge=world.JUDGE, seen=None
    )
    number, _ = submitted(three_readers, IMANI, "+-")
    assert [row["label"] for row in three_readers.history()] == ["not_met", "met", "not_met"]
    assert [row["selection"] for row in three_readers.history()] == ["volunteered", "importance", "importance"]
    desk = at_desk(three_readers, number)
    assert [desk.first[key].label for key in desk.keys] == ["met", "not_met"]
    # and what is said of one's own accord afterwards leaves the submitted read as it was
    (mine,) = [row["verdict_id"] for row in three_readers.history() if row["label"] == "met"]
    seen = overriding.give_verdict(
        three_readers.engine, imani, **three_readers.item(), decision=override, judge=world.JUDGE, seen=mine
    )
    assert at_desk(three_readers, number).first == desk.first
    overriding.undo(
        three_readers.engine, imani, **three_readers.item(), seen=seen
    )  # says again what was submitted, in a newer verdict
    assert at_desk(three_readers, number).first == desk.first


# ---------------------------------------------------------------- acuity


@pytest.mark.parametrize("ask", [Ask.RESPONSE_ACUITY, Ask.GOLD_ACUITY])
def test_a_level_of_care_is_one_question_with_one_answer(three_readers, ask):
    response = three_readers.responses[0] if ask is Ask.RESPONSE_ACUITY else None
    with writing(three_readers.engine) as session:
        judge = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE)
        said = Verdict(
            example_id=1, response_id=response, criterion_id=None, rater_id=judge, stage=Stage.JUDGE, label=Acuity.C
        )
        store.add_verdicts(session, [said], actor="set-up", action="x")
    only_the_first(three_readers, ask=ask)
    desk = take(three_readers)
    assert (desk.keys, desk.material.items, desk.judged) == ([None], (), {})
    assert (desk.material.response is None) == (ask is Ask.GOLD_ACUITY)
    number, imani = desk.reading.id, three_readers.viewer()
    levels = [label for label in Acuity if label is not Acuity.REMOVE or ask is Ask.GOLD_ACUITY]
    for other in {MET, Acuity.REMOVE} - set(levels):  # a response can recommend no case's removal
        expected = f"label: expected one of {', '.join(levels)}, cannot_assess, got {other}"
        with pytest.raises(OverreadError, match=expected):
            reviewing.mark(three_readers.engine, imani, number, None, other)
    with pytest.raises(NotFound):
        reviewing.mark(three_readers.engine, imani, number, three_readers.criteria[0][0], Acuity.A)
    for label in levels:
        reviewing.mark(three_readers.engine, imani, number, None, label)
    mark(three_readers, desk, CANNOT)
    with pytest.raises(OverreadError, match="1 of 1 still need an answer"):
        world.lock(three_readers.engine, imani, number)
    mark(three_readers, desk, CANNOT, reason=CannotReason.NEEDS_EXAMINATION)
    reviewing.undo_mark(three_readers.engine, imani, number)
    reviewing.undo_mark(three_readers.engine, imani, number)
    assert reviewing.open_review(three_readers.engine, imani, number).drafts[None].label == levels[-1]
    mark(three_readers, desk, Acuity.B_C)
    assert world.lock(three_readers.engine, imani, number) is ReadingState.REVEALED
    desk = at_desk(three_readers, number)
    assert (desk.first[None].label, desk.judged[None].label, desk.differing) == ("B/C", "C", [None])
    seen = decide(three_readers, number, None, Decision(Acuity.C))
    finish(three_readers, number)
    decide(three_readers, number, None, Decision(levels[-1], Cause.CONTEXT_MISSING), seen=seen)
    columns = "example_id, response_id, criterion_id, stage, label, supersedes"
    found = world.rows(
        three_readers.engine, f"SELECT {columns} FROM verdict WHERE stage IN ('first', 'revised') ORDER BY id"
    )
    assert found == [
        (1, response, None, "first", "B/C", None),
        (1, response, None, "revised", "C", None),
        (1, response, None, "revised", levels[-1], seen),
    ]


def test_a_level_of_care_that_cannot_be_told_is_stored_with_its_reason(three_readers_quick):
    only_the_first(three_readers_quick, ask=Ask.GOLD_ACUITY)
    desk = take(three_readers_quick)
    mark(three_readers_quick, desk, CANNOT, reason=CannotReason.CONTEXT_MISSING)
    assert world.lock(three_readers_quick.engine, three_readers_quick.viewer(), desk.reading.id) is ReadingState.DONE
    found = world.rows(three_readers_quick.engine, "SELECT label, reason, blinded FROM verdict WHERE stage = 'first'")
    assert [(label, reason, bool(blinded)) for label, reason, blinded in found] == [
        ("cannot_assess", "context_missing", True)
    ]


def test_the_order_of_marks_by_two_tabs_is_the_order_in_which_they_came(three_readers_quick):
    """The desk of either tab shows the same drafts, whatever the tab had shown before."""
    only_the_first(three_readers_quick)
    tab, other = take(three_readers_quick), take(three_readers_quick)
    mark(three_readers_quick, tab, MET)
    mark(three_readers_quick, other, NOT_MET)
    assert take(three_readers_quick).drafts[tab.keys[0]].label == "not_met"
    assert world.count(three_readers_quick.engine, "mark") == 2
