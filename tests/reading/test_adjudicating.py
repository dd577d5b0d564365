"""Adjudicate: settle once and with a reason, correct; and the list of criteria at fault."""

import re

import pytest

from evalcore.errors import NotFound, OverreadError
from evalcore.reading import adjudication, reviewing
from evalcore.reading.adjudication import Settling
from evalcore.reading.conflicts import Reason
from evalcore.reading.reviewing import MAX_NOTE
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import Acuity, Ask, ConflictCause, Label, Role
from tests import world
from tests.adjudicating_steps import IMANI, RUNE, SOL, TOVE, WHY, item, opened, settle, settlements, waiting

# ---------------------------------------------------------------- settle


def test_a_settlement_is_a_verdict_with_its_reason_and_leaves_the_queue(conflicting):
    with writing(conflicting.engine) as session:
        version = store.set_guideline(session, "Met means said.", actor="Ana Ruiz")
    asked, other = opened(conflicting).questions
    (number,) = settle(
        conflicting, item(asked, Label.NOT_MET, ConflictCause.READER_SLIPPED, "  Nothing in it says so. ")
    )
    (row,) = settlements(conflicting)
    said = (
        "label",
        "conflict_cause",
        "explanation",
        "selection",
        "blinded",
        "rater",
        "guideline_version",
        "verdict_id",
    )
    assert tuple(row[name] for name in said) == (
        "not_met", "reader_slipped", "Nothing in it says so.", "adjudication", True, SOL, version, number,
    )  # fmt: skip
    assert conflicting.events()[-1] == (SOL, "conflict settled")
    (case,) = waiting(conflicting).waiting
    assert case.n_items == 1
    settle(conflicting, item(opened(conflicting).questions[1]))
    assert waiting(conflicting).waiting == waiting(conflicting, RUNE).waiting == ()
    found = adjudication.settled(conflicting.engine, conflicting.viewer(SOL))
    assert found[["example_id", "response_id", "n_items"]].to_numpy().tolist() == [[1, conflicting.responses[0], 2]]
    assert other.settled is None


def test_an_adjudicator_corrects_their_own_settlement_and_the_history_keeps_both(conflicting):
    asked, _ = opened(conflicting).questions
    first = settle(conflicting, item(asked))
    again = opened(conflicting).questions[0]
    assert (again.settled.label, again.settled.explanation) == ("met", "It says so in its last line.")
    second = settle(conflicting, item(again, Label.NOT_MET, rationale="On a second look it does not."))
    assert [row["label"] for row in settlements(conflicting)] == ["met", "not_met"]
    assert conflicting.events()[-1] == (SOL, "settlement corrected")
    assert opened(conflicting).questions[0].settled.verdict_id == second[0] != first[0]


def test_several_items_are_settled_all_or_none(conflicting):
    asked, other = opened(conflicting).questions
    with pytest.raises(OverreadError, match="rationale"):
        settle(conflicting, item(asked), item(other, rationale=" "))
    assert settlements(conflicting) == []


@pytest.mark.parametrize(
    ("label", "cause", "rationale", "sentence"),
    [
        (Label.MET, None, "Why.", "Say why the readers differed"),
        (Label.MET, WHY, "  \n", "Write the rationale"),
        (Label.MET, WHY, "x" * (MAX_NOTE + 1), r"rationale: expected at most 5,000 characters, got 5,001"),
        (Label.MET, WHY, "a\x00b", "plain text"),
        (Acuity.B, WHY, "Why.", "expected one of met, not_met, cannot_assess"),
    ],
)
def test_a_settlement_with_something_missing_is_refused_and_not_kept(conflicting, label, cause, rationale, sentence):
    with pytest.raises(OverreadError, match=sentence):
        settle(conflicting, item(opened(conflicting).questions[0], label, cause, rationale))
    assert settlements(conflicting) == []


def test_a_cause_may_be_left_out_where_the_readers_did_not_differ(database_url):
    made = world.made(database_url, points=((7, 3),), judged="+-")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made)
    for name in (IMANI, TOVE):
        world.submitted(made, name, "?-")
    (question,) = opened(made).questions
    assert (question.reasons, question.differ) == ((Reason.CANNOT_ASSESS,), False)
    settle(made, item(question, Label.CANNOT_ASSESS, None))
    assert settlements(made)[0]["conflict_cause"] is None
    made.engine.dispose()


def test_nothing_is_settled_where_nothing_is_in_question(conflicting):
    seen = {row["verdict_id"] for row in conflicting.history() if row["criterion_id"] == conflicting.criteria[0][0]}
    with pytest.raises(NotFound, match="not in question"):
        settle(conflicting, Settling(conflicting.criteria[0][0], Label.MET, WHY, "Why.", seen))
    with pytest.raises(
        NotFound, match=r"response 1: expected items of a response or case of this study, got nothing to settle"
    ):
        settle(conflicting)
    assert settlements(conflicting) == []


def test_acuity_is_settled_with_a_level(database_url):
    """Two levels apart: A and C; the case itself, without a response."""
    made = world.made(database_url, points=((7,),), judged="+")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made, ask=Ask.GOLD_ACUITY)
    for name, level in ((IMANI, Acuity.A), (TOVE, Acuity.C)):
        viewer = made.viewer(name)
        desk = reviewing.take(made.engine, viewer, at=world.after())
        reviewing.mark(made.engine, viewer, desk.reading.id, None, level, at=world.after())
        world.lock(made.engine, viewer, desk.reading.id, at=world.after())
    (case,) = waiting(made).waiting
    assert (case.key, case.reasons, case.points) == ((1, None), (Reason.LEVELS_APART,), None)
    (question,) = opened(made, key=(1, None)).questions
    assert (question.criterion, question.ask, opened(made, key=(1, None)).material.response) == (
        None,
        Ask.GOLD_ACUITY,
        None,
    )
    with pytest.raises(OverreadError, match="expected one of A, A/B"):
        settle(made, item(question, Label.MET), key=(1, None))
    settle(made, item(question, Acuity.B), key=(1, None))
    assert waiting(made).waiting == ()
    settled = world.rows(
        made.engine, "SELECT label, response_id, conflict_cause FROM verdict WHERE stage = 'adjudicated'"
    )
    assert settled == [("B", None, WHY)]
    made.engine.dispose()


# ---------------------------------------------------------------- the list for the authors


def test_criteria_called_at_fault_are_listed_and_exported_without_names(conflicting):
    from evalcore.export import tables as export_tables

    asked, other = opened(conflicting).questions
    settle(conflicting, item(asked, cause=ConflictCause.CRITERION_AMBIGUOUS, rationale="Soon means two things."))
    found = adjudication.at_fault(conflicting.engine, conflicting.viewer(SOL))
    assert found[["criterion_id", "n_faults", "rationales"]].to_numpy().tolist() == [
        [asked.criterion_id, 1, "Soon means two things."]
    ]
    table = export_tables.table(conflicting.engine, "criteria")
    assert table["criterion_position"].tolist() == [2]
    assert table["n_settled_ambiguous"].tolist() == [1]
    assert table["rationales"].tolist() == ["Soon means two things."]
    assert not re.search("Dr\\.", export_tables.to_csv(table).decode())
    assert len(export_tables.table(conflicting.engine, "criteria", export_tables.Part(blind=frozenset({1})))) == 0
    assert other.criterion_id
