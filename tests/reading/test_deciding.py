"""After the lock: keep or revise each difference from the judge, amend later; the first read stays."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.reading import reviewing
from evalcore.reading.reviewing import Decision, check_decision
from evalcore.study.schema import Acuity, CannotReason, Cause, ErrorKind, Label, ReadingState, Severity
from tests import world
from tests.reading_steps import IMANI, TOVE, at_desk, decide, finish, only_the_first, take
from tests.world import after, submitted

MET, NOT_MET, CANNOT = Label.MET, Label.NOT_MET, Label.CANNOT_ASSESS


def test_a_difference_is_kept_or_revised_and_the_first_read_stays(three_readers):
    only_the_first(three_readers)
    number, _ = submitted(three_readers, IMANI, "-+")  # the judge: + -
    one, two = three_readers.criteria[0]
    with pytest.raises(OverreadError, match=r"^2 of 2 differences still wait: keep your label or revise it\.$"):
        finish(three_readers, number)
    kept = Decision(NOT_MET, Cause.MISREAD_ANSWER, Severity.SEVERE, ErrorKind.OMISSION, note=" It is absent. ")
    first_decision = decide(three_readers, number, one, kept)
    assert three_readers.events()[-1] == (IMANI, "read kept")
    with pytest.raises(OverreadError, match="1 of 2 differences still wait"):
        finish(three_readers, number)
    decide(three_readers, number, two, Decision(NOT_MET, right_for_wrong_reason=True))
    assert three_readers.events()[-1] == (IMANI, "read revised")
    desk = at_desk(three_readers, number)
    assert (desk.undecided, desk.differing) == ([], [one, two])
    assert desk.decided[one].verdict_id == first_decision
    finish(three_readers, number)
    assert at_desk(three_readers, number).state is ReadingState.DONE
    revised = [row for row in three_readers.history() if row["stage"] == "revised"]
    said = ("label", "cause", "severity", "error_kind", "right_for_wrong_reason", "explanation")
    assert [tuple(row[name] for name in said) for row in revised] == [
        ("not_met", "judge_misread_answer", "severe", "omission", False, "It is absent."),
        ("not_met", None, None, None, True, None),
    ]
    assert {(row["blinded"], row["selection"], row["inclusion_probability"]) for row in revised} == {
        (False, "importance", 1.0)
    }
    assert [row["label"] for row in three_readers.history() if row["stage"] == "first"] == ["not_met", "met"]


def test_finishing_twice_changes_nothing(three_readers_quick):
    only_the_first(three_readers_quick)
    number, _ = submitted(three_readers_quick, IMANI, "+-")
    before = at_desk(three_readers_quick, number).reading
    reviewing.finish(three_readers_quick.engine, three_readers_quick.viewer(), number, at=after(30))
    assert at_desk(three_readers_quick, number).reading == before


def test_nothing_is_decided_before_the_lock(three_readers_quick):
    only_the_first(three_readers_quick)
    number = take(three_readers_quick).reading.id
    for act in (
        lambda: decide(three_readers_quick, number, three_readers_quick.criteria[0][0], Decision(MET)),
        lambda: finish(three_readers_quick, number),
    ):
        with pytest.raises(NotAllowed, match="shown once your first read is submitted"):
            act()


def test_a_decision_that_another_tab_has_replaced_is_told(three_readers):
    only_the_first(three_readers)
    number, _ = submitted(three_readers, IMANI, "--")
    key = three_readers.criteria[0][0]
    seen = decide(three_readers, number, key, Decision(NOT_MET))
    for stale in (None, seen + 100):
        with pytest.raises(AlreadyChanged, match=r"decided in another tab\. .* the last press was not saved"):
            decide(three_readers, number, key, Decision(MET), seen=stale)
    decide(three_readers, number, key, Decision(MET), seen=seen)
    assert at_desk(three_readers, number).decided[key].label == "met"
    with pytest.raises(AlreadyChanged):
        decide(three_readers, number, key, Decision(NOT_MET), seen=seen)


def test_what_is_done_can_be_amended_by_a_newer_verdict_and_the_first_read_stays(three_readers):
    only_the_first(three_readers)
    number, state = submitted(three_readers, IMANI, "+-")
    assert state is ReadingState.DONE
    key = three_readers.criteria[0][0]
    seen = decide(three_readers, number, key, Decision(NOT_MET, Cause.OTHER))  # the judge says met
    assert three_readers.events()[-1] == (IMANI, "read amended")
    newer = decide(three_readers, number, key, Decision(MET, right_for_wrong_reason=True), seen=seen)
    desk = at_desk(three_readers, number)
    assert (desk.state, desk.decided[key].verdict_id, desk.decided[key].label) == (ReadingState.DONE, newer, "met")
    assert desk.first[key].label == "met"
    assert [(row["stage"], row["label"]) for row in three_readers.history()] == [
        ("first", "met"), ("first", "not_met"), ("revised", "not_met"), ("revised", "met"),
    ]  # fmt: skip
    ((supersedes,),) = world.rows(
        three_readers.engine, "SELECT supersedes FROM verdict WHERE id = :number", number=newer
    )
    assert supersedes == seen


def test_a_decision_that_is_none_is_refused(three_readers_quick):
    only_the_first(three_readers_quick)
    number, _ = submitted(three_readers_quick, IMANI, "--")
    one, two = three_readers_quick.criteria[0]
    n_events = len(three_readers_quick.events())
    for key, decision, error, sentence in (
        (one, Decision(Acuity.B), OverreadError, "label: expected one of met, not_met, cannot_assess, got B"),
        (three_readers_quick.criteria[1][0], Decision(MET), NotFound, "This item has no criterion"),
        (None, Decision(MET), NotFound, "This item has no criterion"),
        (one, Decision(MET, Cause.OTHER), OverreadError, "this one agrees"),
        (two, Decision(MET, right_for_wrong_reason=True), OverreadError, "this one differs"),
        (
            one,
            Decision(NOT_MET, note="x" * (reviewing.MAX_NOTE + 1)),
            OverreadError,
            "note: expected at most 5,000 characters, got 5,001",
        ),
    ):
        with pytest.raises(error, match=re.escape(sentence)):
            decide(three_readers_quick, number, key, decision)
    with pytest.raises(NotFound, match="in your hands"):
        decide(three_readers_quick, number, one, Decision(MET), name=TOVE)
    assert len(three_readers_quick.events()) == n_events


@settings(max_examples=50)
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


def test_what_could_not_be_assessed_keeps_its_reason_when_it_is_kept(three_readers_quick):
    only_the_first(three_readers_quick)
    number, _ = submitted(three_readers_quick, IMANI, "?-")  # for the context that is missing
    key = three_readers_quick.criteria[0][0]
    seen = decide(three_readers_quick, number, key, Decision(CANNOT))
    assert at_desk(three_readers_quick, number).decided[key].reason == "context_missing"
    seen = decide(three_readers_quick, number, key, Decision(CANNOT, reason=CannotReason.LANGUAGE), seen=seen)
    assert at_desk(three_readers_quick, number).decided[key].reason == "language"
    decide(three_readers_quick, number, key, Decision(MET, reason=CannotReason.LANGUAGE), seen=seen)
    assert at_desk(three_readers_quick, number).decided[key].reason is None
