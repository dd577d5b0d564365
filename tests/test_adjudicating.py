"""Adjudicate: what waits for whom, settle once and with a reason, correct; nobody is named."""

import re

import msgspec
import pytest

from evalcore import adjudication, deciding, overriding, reviewing, store
from evalcore.adjudication import Settling
from evalcore.db import reading, writing
from evalcore.deciding import Decision
from evalcore.desks import MAX_NOTE
from evalcore.errors import NotAllowed, NotFound, OverreadError
from evalcore.metrics.conflicts import Reason, needing
from evalcore.queries import conflicts, study
from evalcore.schema import (
    Acuity,
    Ask,
    Cause,
    ConflictCause,
    Label,
    RaterKind,
    Role,
    Rules,
    Selection,
    Severity,
    Stage,
    Verdict,
)
from tests import world
from tests.adjudicating_steps import (
    IMANI,
    RUNE,
    SOL,
    TOVE,
    WHY,
    item,
    key_of,
    opened,
    reading_of,
    settle,
    settlements,
    small,
    waiting,
)

__all__ = ["small"]  # a fixture


# ---------------------------------------------------------------- what waits


def test_what_waits_is_told_with_its_reasons_and_without_names(small):
    (case,) = waiting(small).waiting
    assert (case.key, case.n_items, case.points) == (key_of(small), 2, 4)
    assert case.reasons == (Reason.CONFLICT, Reason.CANNOT_ASSESS)
    assert case.first_words.startswith("I have had a sore throat")


def test_nothing_waits_before_the_second_reader_has_submitted(database_url):
    made = world.made(database_url, points=((7, -4, 3),), judged="+-+")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made)
    world.submitted(made, IMANI, "++?")
    assert waiting(made).waiting == ()
    desk = reviewing.take(made.engine, made.viewer(TOVE), at=world.after())
    world.answer(made, made.viewer(TOVE), desk, "+-+")
    assert waiting(made).waiting == ()
    reviewing.submit(made.engine, made.viewer(TOVE), desk.reading.id or 0, at=world.after())
    assert len(waiting(made).waiting) == 1
    made.engine.dispose()


@pytest.mark.parametrize("both", [False, True])
def test_nothing_waits_where_nobody_has_read(both, database_url):
    made = world.made(database_url)
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    with writing(made.engine) as session:
        store.set_rules(session, Rules(check_share=1, both_against_judge=both), actor="Ana Ruiz")
    for is_assigned in (False, True):
        if is_assigned:
            world.assigned(made)
        queue = waiting(made)
        assert (queue.waiting, queue.n_own, queue.n_items) == ((), 0, 0)
        assert adjudication.settled(made.engine, made.viewer(SOL)).empty
        assert adjudication.at_fault(made.engine, made.viewer(SOL)).empty
    made.engine.dispose()


def test_only_adjudicators_settle(small):
    for act in (
        lambda viewer: adjudication.cases(small.engine, viewer),
        lambda viewer: adjudication.settled(small.engine, viewer),
        lambda viewer: adjudication.at_fault(small.engine, viewer),
        lambda viewer: adjudication.open_case(small.engine, viewer, key_of(small)),
        lambda viewer: adjudication.look(small.engine, viewer, key_of(small), small.criteria[0][1]),
        lambda viewer: adjudication.settle(small.engine, viewer, key_of(small), []),
    ):
        with pytest.raises(NotAllowed, match="Adjudicating takes the role adjudicator"):
            act(small.viewer("Ana Ruiz"))


def test_whoever_has_read_a_response_does_not_settle_it_and_is_told_that_it_waits(small):
    """Also where the read was taken back: it has been seen."""
    said = overriding.Reading(Label.MET)
    seen = overriding.give_verdict(
        small.engine, small.viewer(SOL), **small.item(), reading=said, judge=world.JUDGE, seen=None
    )
    overriding.undo(small.engine, small.viewer(SOL), **small.item(), seen=seen)
    queue = waiting(small)
    assert (queue.waiting, queue.n_own) == ((), 1)
    with pytest.raises(NotAllowed, match="You have read this response yourself"):
        opened(small)
    question = opened(small, RUNE).questions[0]
    with pytest.raises(NotAllowed, match="You have read this response yourself"):
        settle(small, item(question))
    assert settlements(small) == []


def test_a_conversation_that_waits_for_the_viewers_own_first_read_is_left_out(database_url):
    """Two responses to one conversation: the first is read and in conflict, the second waits for the adjudicator's own read."""
    made = world.made(database_url, points=((7,),), judged="+", models=("Alder-2", "Briar-1"))
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    with writing(made.engine) as session:
        for name, label in ((IMANI, Label.MET), (TOVE, Label.NOT_MET)):
            rater = store.ensure_rater(session, RaterKind.REVIEWER, name)
            read = Verdict(
                example_id=1, response_id=made.responses[0], criterion_id=made.criteria[0][0], rater_id=rater, stage=Stage.FIRST,
                label=label, selection=Selection.RANDOM, blinded=True,
            )  # fmt: skip
            store.add_verdicts(session, [read], actor=name, action="x")
    assert len(waiting(made).waiting) == 1
    question = opened(made).questions[0]
    world.assigned(made, readers=(SOL,), n_readers=1)
    queue = waiting(made)
    assert (queue.waiting, queue.n_own) == ((), 0)
    for act in (lambda: opened(made), lambda: settle(made, item(question))):
        with pytest.raises(NotAllowed, match="waits for your first read"):
            act()
    assert settlements(made) == []
    made.engine.dispose()


def test_the_studys_rules_are_followed(small):
    """The unanimous first criterion, 7 points: the readers say met as the judge does, so only the check can send it on."""
    with writing(small.engine) as session:
        store.set_rules(session, Rules(check_share=1, both_against_judge=True), actor="Ana Ruiz")
    assert [question.reasons for question in opened(small).questions] == [
        (Reason.CHECK,),
        (Reason.CONFLICT,),
        (Reason.CONFLICT, Reason.CANNOT_ASSESS),
    ]


def test_both_against_the_judge_that_the_study_shows(database_url):
    """Wren has the most verdicts and says not met; Magpie says met. Both readers say not met."""
    made = world.made(database_url, points=((7, 2),), judged="+ ")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    with writing(made.engine) as session:
        wren = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        for criterion in made.criteria[0]:
            judged = Verdict(
                example_id=1, response_id=made.responses[0], criterion_id=criterion, rater_id=wren, stage=Stage.JUDGE, label=Label.NOT_MET
            )  # fmt: skip
            store.add_verdicts(session, [judged], actor="x", action="x")
    world.assigned(made)
    for name in (IMANI, TOVE):
        world.submitted(made, name, "--")
    for judge, expected in ((None, 0), ("Wren", 0), (world.JUDGE, 1), ("Nobody", 0)):
        with writing(made.engine) as session:
            store.set_rules(session, Rules(judge=judge, both_against_judge=True), actor="Ana Ruiz")
        assert len(waiting(made).waiting) == expected, judge
    made.engine.dispose()


# ---------------------------------------------------------------- what is seen


def everything(value):
    """Every text and number in what an act returned."""
    return msgspec.json.encode(
        value, enc_hook=lambda thing: vars(thing) if hasattr(thing, "__dict__") else str(thing)
    ).decode()


def test_a_case_names_neither_reader_nor_model_nor_judge(small):
    shown = everything(opened(small)) + everything(waiting(small))
    for hidden in (IMANI, TOVE, "Alder-2", world.JUDGE, "It does.", "rater_id"):
        assert hidden not in shown
    assert "sore throat" in shown
    assert "Drink water" in shown


def test_readers_are_numbered_at_random_and_the_same_each_time(database_url):
    """Over twenty responses Reader 1 is now the one, now the other; within a response always the same."""
    made = world.made(database_url, points=tuple((5, 3) for _ in range(20)), judged=" " * 40)
    for name in (SOL, RUNE):
        world.add_researcher(made.engine, name, Role.ADJUDICATOR)
    world.assigned(made)
    for _ in range(20):
        world.submitted(made, IMANI, "++")
        world.submitted(made, TOVE, "--")

    def first(name):
        found = []
        for case in waiting(made, name).waiting:
            labels = [
                [reader.said[0].label for reader in question.readers]
                for question in opened(made, name, case.key).questions
            ]
            assert labels[0] == labels[1]
            found.append((case.key, labels[0][0]))
        return sorted(found)

    once, again, other = first(SOL), first(SOL), first(RUNE)
    assert once == again
    # of 20 fair draws all alike: 2 in a million; the same for both adjudicators: 1 in a million
    assert {label for _, label in once} == {"met", "not_met"}
    assert once != other
    made.engine.dispose()


def test_the_judge_is_shown_on_demand_once_and_item_by_item(small):
    asked, other = opened(small).questions
    assert (asked.has_looked, asked.judge, asked.judged) == (False, None, None)
    n_events = len(small.events())
    for _ in range(2):
        adjudication.look(small.engine, small.viewer(SOL), key_of(small), asked.criterion_id)
    assert small.events()[n_events:] == [(SOL, "judge shown")]
    asked, other = opened(small).questions
    assert (asked.judge, asked.judged.label, asked.judged.explanation) == (world.JUDGE, "not_met", "It does.")
    assert (other.has_looked, other.judge, other.judged) == (False, None, None)
    assert not any(question.has_looked for question in opened(small, RUNE).questions)


def test_a_settlement_says_whether_the_judge_was_looked_at(small):
    asked, other = opened(small).questions
    adjudication.look(small.engine, small.viewer(SOL), key_of(small), asked.criterion_id)
    settle(small, item(asked), item(other))
    assert {row["criterion_id"]: row["blinded"] for row in settlements(small)} == {
        asked.criterion_id: False,
        other.criterion_id: True,
    }


def test_nobody_looks_where_nothing_is_in_question(small):
    with pytest.raises(NotFound, match="not in question"):
        adjudication.look(small.engine, small.viewer(SOL), key_of(small), small.criteria[0][0])


@pytest.mark.parametrize("key", [(1, 999), (999, None), (999, 1)])
def test_a_response_that_is_not_there_is_named(small, key):
    with pytest.raises(NotFound, match=r"This study has no (response 999|example 999|response 1)\."):
        opened(small, key=key)


# ---------------------------------------------------------------- settle


def test_a_settlement_is_a_verdict_with_its_reason_and_leaves_the_queue(small):
    with writing(small.engine) as session:
        version = store.set_guideline(session, "Met means said.", actor="Ana Ruiz")
    asked, other = opened(small).questions
    (number,) = settle(small, item(asked, Label.NOT_MET, ConflictCause.READER_SLIPPED, "  Nothing in it says so. "))
    (row,) = settlements(small)
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
    assert small.events()[-1] == (SOL, "conflict settled")
    (case,) = waiting(small).waiting
    assert case.n_items == 1
    settle(small, item(opened(small).questions[1]))
    assert waiting(small).waiting == waiting(small, RUNE).waiting == ()
    found = adjudication.settled(small.engine, small.viewer(SOL))
    assert found[["example_id", "response_id", "n_items"]].to_numpy().tolist() == [[1, small.responses[0], 2]]
    assert other.settled is None


def test_an_adjudicator_corrects_their_own_settlement_and_the_history_keeps_both(small):
    asked, _ = opened(small).questions
    first = settle(small, item(asked))
    again = opened(small).questions[0]
    assert (again.settled.label, again.settled.explanation) == ("met", "It says so in its last line.")
    second = settle(small, item(again, Label.NOT_MET, rationale="On a second look it does not."))
    assert [row["label"] for row in settlements(small)] == ["met", "not_met"]
    assert small.events()[-1] == (SOL, "settlement corrected")
    assert opened(small).questions[0].settled.verdict_id == second[0] != first[0]


def test_several_items_are_settled_all_or_none(small):
    asked, other = opened(small).questions
    with pytest.raises(OverreadError, match="rationale"):
        settle(small, item(asked), item(other, rationale=" "))
    assert settlements(small) == []


@pytest.mark.parametrize(
    ("label", "cause", "rationale", "sentence"),
    [
        (Label.MET, None, "Why.", "Say why the readers differed"),
        (Label.MET, WHY, "  \n", "Write the rationale"),
        (Label.MET, WHY, "x" * (MAX_NOTE + 1), "rationale: 5,001 characters came, expected at most 5,000"),
        (Label.MET, WHY, "a\x00b", "plain text"),
        (Acuity.B, WHY, "Why.", "expected one of met, not_met, cannot_assess"),
    ],
)
def test_a_settlement_with_something_missing_is_refused_and_not_kept(small, label, cause, rationale, sentence):
    with pytest.raises(OverreadError, match=sentence):
        settle(small, item(opened(small).questions[0], label, cause, rationale))
    assert settlements(small) == []


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


def test_nothing_is_settled_where_nothing_is_in_question(small):
    seen = {row["verdict_id"] for row in small.history() if row["criterion_id"] == small.criteria[0][0]}
    with pytest.raises(NotFound, match="not in question"):
        settle(small, Settling(small.criteria[0][0], Label.MET, WHY, "Why.", seen))
    with pytest.raises(NotFound, match="nothing to settle came"):
        settle(small)
    assert settlements(small) == []


def test_acuity_is_settled_with_a_level(database_url):
    """Two levels apart: A and C; the case itself, without a response."""
    made = world.made(database_url, points=((7,),), judged="+")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made, ask=Ask.GOLD_ACUITY)
    for name, level in ((IMANI, Acuity.A), (TOVE, Acuity.C)):
        viewer = made.viewer(name)
        desk = reviewing.take(made.engine, viewer, at=world.after())
        reviewing.mark(made.engine, viewer, desk.reading.id, None, level, at=world.after())
        reviewing.submit(made.engine, viewer, desk.reading.id, at=world.after())
    (case,) = waiting(made).waiting
    assert (case.key, case.reasons, case.points) == ((1, None), (Reason.LEVELS_APART,), None)
    (question,) = opened(made, key=(1, None)).questions
    assert (question.criterion, question.ask, opened(made, key=(1, None)).sheet.response) == (
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


def test_severe_harm_claimed_after_the_reveal_sends_an_item_on(small):
    """The second criterion: the judge says not met, Dr. Noor met."""
    judged = Decision(Label.MET, Cause.MISREAD_ANSWER, Severity.SEVERE, note="It would kill.")
    reader = small.viewer(IMANI)
    deciding.decide(small.engine, reader, reading_of(small, IMANI), small.criteria[0][1], judged, seen=None)
    assert waiting(small).waiting[0].reasons == (Reason.SEVERE_HARM, Reason.CONFLICT, Reason.CANNOT_ASSESS)
    question = opened(small).questions[0]
    said = [reader.said for reader in question.readers if len(reader.said) == 2]
    assert [(verdict.stage, verdict.severity, verdict.explanation) for verdict in said[0]] == [
        (Stage.FIRST, None, None),
        (Stage.REVISED, "severe", "It would kill."),
    ]


# ---------------------------------------------------------------- the list for the authors


def test_criteria_called_at_fault_are_listed_and_exported_without_names(small):
    from evalcore import export

    asked, other = opened(small).questions
    settle(small, item(asked, cause=ConflictCause.CRITERION_AMBIGUOUS, rationale="Soon means two things."))
    found = adjudication.at_fault(small.engine, small.viewer(SOL))
    assert found[["criterion_id", "n_faults", "rationales"]].to_numpy().tolist() == [
        [asked.criterion_id, 1, "Soon means two things."]
    ]
    table = export.table(small.engine, "criteria")
    assert table["criterion_position"].tolist() == [2]
    assert table["n_settled_ambiguous"].tolist() == [1]
    assert table["rationales"].tolist() == ["Soon means two things."]
    assert not re.search("Dr\\.", export.to_csv(table).decode())
    assert len(export.table(small.engine, "criteria", export.Part(blind=frozenset({1})))) == 0
    assert other.criterion_id


# ---------------------------------------------------------------- quick enough


def test_the_same_rows_as_the_long_way_round(small):
    """The rows of one case are those of the whole study that belong to it, with and without the judge."""
    for with_judge in (False, True):
        with reading(small.engine) as session:
            whole = conflicts.reads(session, judge=None, with_judge=with_judge)
            part = conflicts.reads(session, judge=None, with_judge=with_judge, case=key_of(small))
            rules = study.rules(session)
        assert len(whole) == len(part) == 6
        assert needing(whole, rules, seed="x").equals(needing(part, rules, seed="x"))
        assert whole["judge_label"].notna().all() == with_judge
        assert whole["n_wanted"].tolist() == [2] * 6
