"""Give a verdict, override, change: each a new verdict; who may, on what, and what contradicts itself."""

import re

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import NotAllowed, NotFound, OverreadError
from evalcore.reading import assigning, overriding
from evalcore.reading.reviewing import MAX_NOTE, Decision, check_decision
from evalcore.study import contents, frames, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Administrator, Cause, Label, RaterKind, Role, Severity, Stage, Verdict
from tests import world
from tests.invented import study
from tests.overriding_steps import SAID, labels, press, standing, take_back

# ---------------------------------------------------------------- giving


def test_a_verdict_given_here_is_open_volunteered_and_not_blinded(small):
    said = Decision(Label.NOT_MET, Cause.MISREAD_ANSWER, Severity.MILD, note="  It names two of three signs.  ")
    number = press(small, said)
    (row,) = small.history()
    assert row["verdict_id"] == number
    assert {name: row[name] for name in SAID} == {
        "label": "not_met",
        "cause": "judge_misread_answer",
        "severity": "mild",
        "right_for_wrong_reason": False,
        "explanation": "It names two of three signs.",
    }
    assert (row["stage"], row["selection"], row["blinded"]) == ("open", "volunteered", False)
    assert row["inclusion_probability"] is None
    assert (row["rater"], row["rater_kind"]) == ("Dr. Imani Noor", "reviewer")
    assert row["created_at"].tzinfo is not None


@pytest.mark.parametrize("label", list(Label))
def test_every_label_can_be_given(small, label):
    press(small, Decision(label))
    assert standing(small) == {"Dr. Imani Noor": label}


def test_an_empty_note_is_no_note(small):
    press(small, Decision(Label.MET, note=" \n "))
    assert small.history()[0]["explanation"] is None


def test_the_judges_verdict_stays_as_it_was(small):
    columns = ["verdict_id", "item_id", "rater", "stage", "label", "explanation", "created_at"]
    with reading(small.engine) as session:
        before = frames.verdicts(session, kind=RaterKind.JUDGE, texts=True)[columns]
    press(small, Decision(Label.NOT_MET))
    with reading(small.engine) as session:
        after = frames.verdicts(session, kind=RaterKind.JUDGE, texts=True)[columns]
    assert after.equals(before)
    assert before["label"].tolist() == ["met", "not_met", "met", "met"]


def test_a_change_is_a_new_verdict_and_the_history_keeps_both(small):
    first = press(small, Decision(Label.NOT_MET, Cause.LANGUAGE))
    second = press(small, Decision(Label.CANNOT_ASSESS), seen=first)
    assert second != first
    assert labels(small) == ["not_met", "cannot_assess"]
    assert small.history()[0]["cause"] == "language"
    assert standing(small) == {"Dr. Imani Noor": "cannot_assess"}


def test_two_physicians_do_not_touch_each_others_verdicts(small):
    mine = press(small, Decision(Label.NOT_MET))
    press(small, Decision(Label.MET), name="Dr. Tove Lind")
    press(small, Decision(Label.CANNOT_ASSESS), seen=mine)
    assert standing(small) == {"Dr. Imani Noor": "cannot_assess", "Dr. Tove Lind": "met"}


def test_items_of_one_response_are_apart(small):
    press(small, Decision(Label.NOT_MET))
    press(small, Decision(Label.MET), item=small.item(0, 1))
    assert labels(small) == ["not_met", "met"]


# ---------------------------------------------------------------- what may be said


JUDGE_SAYS = (Label.MET, Label.NOT_MET, None)


@given(
    label=st.sampled_from(list(Label)),
    judge_label=st.sampled_from(JUDGE_SAYS),
    cause=st.none() | st.sampled_from(list(Cause)),
    severity=st.none() | st.sampled_from(list(Severity)),
    right_for_wrong_reason=st.booleans(),
)
def test_what_may_be_said_follows_from_agreement_alone(label, judge_label, cause, severity, right_for_wrong_reason):
    said = Decision(label, cause, severity, right_for_wrong_reason=right_for_wrong_reason)
    blames = cause is not None or severity is not None
    allowed = (not blames or (judge_label is not None and label != judge_label)) and (
        not right_for_wrong_reason or label == judge_label
    )
    if allowed:
        check_decision(said, judge_label)
    else:
        with pytest.raises(OverreadError, match="belong"):
            check_decision(said, judge_label)


@pytest.mark.parametrize(
    ("said", "judge", "reason"),
    [
        (
            Decision(Label.MET, Cause.OTHER),
            world.JUDGE,
            "A cause, a severity and a kind of error belong to a label that differs",
        ),
        (Decision(Label.MET, severity=Severity.NONE), world.JUDGE, "this one agrees"),
        (Decision(Label.NOT_MET, Cause.OTHER), "Nobody", "there is none here"),
        (Decision(Label.NOT_MET, right_for_wrong_reason=True), world.JUDGE, "this one differs"),
        (Decision(Label.MET, right_for_wrong_reason=True), "Nobody", "there is none here"),
        (
            Decision(Label.MET, note="x" * (MAX_NOTE + 1)),
            world.JUDGE,
            "note: expected at most 5,000 characters, got 5,001",
        ),
        (Decision(Label.MET, note="a\x00b"), world.JUDGE, "expected plain text"),
        (Decision(Label.MET, note="half \ud83e"), world.JUDGE, "expected plain text"),
    ],
)
def test_what_contradicts_itself_is_refused_with_a_sentence_and_not_kept(small, said, judge, reason):
    with pytest.raises(OverreadError, match=re.escape(reason)):
        press(small, said, judge=judge)
    assert small.history() == []


def test_a_note_of_the_full_length_in_any_script_is_kept(small):
    note = ("胸痛 \U0001f912 ٣ 'x' $y$ # =1+1 " * MAX_NOTE)[:MAX_NOTE].strip()
    press(small, Decision(Label.MET, note=note))
    assert small.history()[0]["explanation"] == note


def test_each_judge_is_held_against_its_own_verdict(small):
    """Magpie says met on the item; Wren says not met: the same label differs from the one and agrees with the other."""
    with writing(small.engine) as session:
        wren = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        said = Verdict(**small.item(), example_id=1, rater_id=wren, stage=Stage.JUDGE, label=Label.NOT_MET)
        store.add_verdicts(session, [said], actor="set-up", action="x")
    with pytest.raises(OverreadError, match="agrees"):
        press(small, Decision(Label.NOT_MET, Cause.OTHER), judge="Wren")
    press(small, Decision(Label.NOT_MET, Cause.OTHER), judge=world.JUDGE)


# ---------------------------------------------------------------- who, and on what


@pytest.mark.parametrize(
    ("roles", "may"),
    [
        ((Role.REVIEWER,), True),
        ((Role.ADJUDICATOR,), True),
        ((Role.RESEARCHER,), False),
        ((Role.LEAD,), False),
        ((Role.LEAD, Role.REVIEWER), True),
    ],
)
def test_physicians_alone_give_and_undo_verdicts(small, roles, may):
    world.add_researcher(small.engine, "Dr. Role", *roles)
    if may:
        take_back(small, press(small, Decision(Label.MET), name="Dr. Role"), name="Dr. Role")
        assert labels(small) == ["met", None]
        return
    with pytest.raises(NotAllowed, match="Only adjudicators and reviewers can give verdicts"):
        press(small, Decision(Label.MET), name="Dr. Role")
    seen = press(small, Decision(Label.MET))
    with pytest.raises(NotAllowed):
        take_back(small, seen, name="Dr. Role")
    assert labels(small) == ["met"]


def test_a_criterion_of_another_example_is_refused(small):
    foreign = {"response_id": small.responses[0], "criterion_id": small.criteria[1][0]}
    with pytest.raises(NotFound, match=f"Response {small.responses[0]} has no criterion {small.criteria[1][0]}"):
        press(small, Decision(Label.MET), item=foreign)
    assert small.history() == []


@pytest.mark.parametrize("item", [{"response_id": 99, "criterion_id": 1}, {"response_id": 1, "criterion_id": 99}])
def test_an_item_that_is_not_there_is_refused(small, item):
    with pytest.raises(NotFound):
        press(small, Decision(Label.MET), item=item)


def test_an_item_that_no_judge_has_read_can_be_read(sqlite_database_url):
    small = world.made(sqlite_database_url, judged=" -++")
    press(small, Decision(Label.NOT_MET))
    assert small.events()[-1] == ("Dr. Imani Noor", "verdict given")


# ---------------------------------------------------------------- blind


def test_no_open_verdict_is_given_on_what_waits_for_ones_own_blind_read(small):
    """From a page that was opened before the conversation was assigned."""
    earlier = press(small, Decision(Label.MET), name="Dr. Tove Lind")
    assigning.assign(small.engine, assigning.Choice(), actor=Administrator(name="set-up"))
    before = small.history()
    with pytest.raises(NotAllowed, match="waits for your first read"):
        press(small, Decision(Label.NOT_MET))
    assert small.history() == before
    take_back(small, earlier, name="Dr. Tove Lind")  # who has seen the judge's verdict is not asked to read it blind
    assert [row["label"] for row in small.history()] == ["met", None]


# ---------------------------------------------------------------- what it moves

RESTING_ON_BLIND_READS = "compare", "agreement", "judges", "criteria", "anchoring", "triage"
"""Corrected scores and differences, agreement, the judges' record, criterion health, what the reveal changed, levels of care."""


def test_an_open_verdict_moves_the_reference_labels_and_no_number_that_rests_on_blind_reads(sqlite_demo_url, overread):
    def told():
        labels = overread.folder / "labels.csv"
        labels.unlink(missing_ok=True)
        overread.good("export", labels, "--db", sqlite_demo_url)
        numbers = [overread.good(command, "--json", "--db", sqlite_demo_url) for command in RESTING_ON_BLIND_READS]
        return pd.read_csv(labels)["reference_label"].fillna(""), numbers

    labels, numbers = told()
    assert all(numbers)
    with study(sqlite_demo_url) as engine:
        world.add_researcher(engine, "Dr. Noa Berg", Role.REVIEWER)
        with reading(engine) as session:
            viewer = next(person for person in contents.people(session) if person.name == "Dr. Noa Berg")
        read_once = world.rows(
            engine,
            "SELECT response_id, criterion_id, min(label) label FROM verdict WHERE stage = 'first' AND label IN ('met', 'not_met') "
            "AND NOT EXISTS (SELECT 1 FROM verdict a WHERE a.stage = 'adjudicated' AND a.response_id = verdict.response_id "
            "AND a.criterion_id = verdict.criterion_id) GROUP BY response_id, criterion_id HAVING count(*) = 1 ORDER BY response_id, criterion_id LIMIT 12",
        )
        for response, criterion, label in read_once:
            item = {"response_id": response, "criterion_id": criterion, "judge": "", "seen": None}
            opposite = Label.NOT_MET if label == "met" else Label.MET
            overriding.give_verdict(engine, viewer, decision=Decision(opposite), **item)
    labels_since, numbers_since = told()
    assert numbers_since == numbers
    assert (labels != labels_since).sum() >= len(read_once) == 12
