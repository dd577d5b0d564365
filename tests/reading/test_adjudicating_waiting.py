"""What waits for which adjudicator: by the study's rules, and nothing that they have read or are to read themselves."""

import pytest

from evalcore.errors import NotAllowed
from evalcore.reading import adjudication, overriding, read_queries, reviewing
from evalcore.reading.conflicts import Reason, needing
from evalcore.reading.reviewing import Decision
from evalcore.study import contents, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Cause, Label, RaterKind, Role, Rules, Selection, Severity, Stage, Verdict
from tests import world
from tests.adjudicating_steps import (
    IMANI,
    RUNE,
    SOL,
    TOVE,
    item,
    key_of,
    opened,
    reading_of,
    settle,
    settlements,
    waiting,
)

# ---------------------------------------------------------------- what waits


def test_what_waits_is_told_with_its_reasons_and_without_names(conflicting):
    (case,) = waiting(conflicting).waiting
    assert (case.key, case.n_items, case.points) == (key_of(conflicting), 2, 4)
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
    world.lock(made.engine, made.viewer(TOVE), desk.reading.id or 0, at=world.after())
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


def test_conversations_in_languages_that_one_does_not_read_are_counted_and_not_offered(sqlite_database_url):
    made = world.made(sqlite_database_url, languages={1: "hi"}, judged="    ")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR, languages=("en", "es"))
    world.add_researcher(made.engine, RUNE, Role.ADJUDICATOR, languages=("en", "hi"))
    for example in (0, 1):
        for name, label in (("One", Label.MET), ("Two", Label.NOT_MET)):
            world.said(made, label, name=name, example=example)
    queue, of_both = waiting(made), waiting(made, RUNE)
    assert ([case.language for case in queue.waiting], queue.n_foreign) == (["en"], {"hi": 1})
    assert ([case.language for case in of_both.waiting], of_both.n_foreign) == (["en", "hi"], {})  # 7 points, then 5
    made.engine.dispose()


def test_only_adjudicators_settle(conflicting):
    for act in (
        lambda viewer: adjudication.cases(conflicting.engine, viewer),
        lambda viewer: adjudication.settled(conflicting.engine, viewer),
        lambda viewer: adjudication.at_fault(conflicting.engine, viewer),
        lambda viewer: adjudication.open_case(conflicting.engine, viewer, key_of(conflicting)),
        lambda viewer: adjudication.look(conflicting.engine, viewer, key_of(conflicting), conflicting.criteria[0][1]),
        lambda viewer: adjudication.settle(conflicting.engine, viewer, key_of(conflicting), []),
    ):
        with pytest.raises(NotAllowed, match="Only adjudicators can adjudicate"):
            act(conflicting.viewer("Ana Ruiz"))


def test_whoever_has_read_a_response_does_not_settle_it_and_is_told_that_it_waits(conflicting):
    """Also where the read was taken back: it has been seen."""
    with writing(conflicting.engine) as session:
        read = Verdict(
            example_id=1, rater_id=store.ensure_rater(session, RaterKind.REVIEWER, SOL), stage=Stage.OPEN, label=Label.MET,
            selection=Selection.VOLUNTEERED, blinded=False, **conflicting.item(),
        )  # fmt: skip
        (seen,) = store.add_verdicts(session, [read], actor=SOL, action="verdict given")
    overriding.undo(conflicting.engine, conflicting.viewer(SOL), **conflicting.item(), seen=seen)
    queue = waiting(conflicting)
    assert (queue.waiting, queue.n_own) == ((), 1)
    with pytest.raises(NotAllowed, match="You have read this response yourself"):
        opened(conflicting)
    question = opened(conflicting, RUNE).questions[0]
    with pytest.raises(NotAllowed, match="You have read this response yourself"):
        settle(conflicting, item(question))
    assert settlements(conflicting) == []


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
    world.add_researcher(made.engine, "Dr. Ada Kern", Role.ADJUDICATOR)
    question = opened(made, "Dr. Ada Kern").questions[0]
    assert len(waiting(made).waiting) == 1
    world.assigned(made, readers=(SOL,), n_readers=1)
    queue = waiting(made)
    assert (queue.waiting, queue.n_own) == ((), 0)
    for act in (lambda: opened(made), lambda: settle(made, item(question))):
        with pytest.raises(NotAllowed, match="waits for your first read"):
            act()
    assert settlements(made) == []
    made.engine.dispose()


def test_the_studys_rules_are_followed(conflicting):
    """The unanimous first criterion, 7 points: the readers say met as the judge does, so only the check can send it on."""
    with writing(conflicting.engine) as session:
        store.set_rules(session, Rules(check_share=1, both_against_judge=True), actor="Ana Ruiz")
    assert [question.reasons for question in opened(conflicting).questions] == [
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


# ---------------------------------------------------------------- settle


def test_severe_harm_claimed_after_the_reveal_is_told_once_the_judge_was_looked_at(conflicting):
    """The second criterion: the judge says not met, Dr. Noor met."""
    judged = Decision(Label.MET, Cause.MISREAD_ANSWER, Severity.SEVERE, note="It would kill.")
    reader = conflicting.viewer(IMANI)
    reviewing.revise(
        conflicting.engine, reader, reading_of(conflicting, IMANI), conflicting.criteria[0][1], judged, seen=None
    )
    shown = opened(conflicting)
    assert waiting(conflicting).waiting[0].reasons == (Reason.CONFLICT, Reason.CANNOT_ASSESS)
    assert shown.questions[0].reasons == (Reason.CONFLICT,)
    assert {verdict.stage for reader in shown.questions[0].readers for verdict in reader.said} == {Stage.FIRST}
    adjudication.look(conflicting.engine, conflicting.viewer(SOL), key_of(conflicting), conflicting.criteria[0][1])
    question, other = opened(conflicting).questions
    assert question.reasons == (Reason.SEVERE_HARM, Reason.CONFLICT)
    said = [reader.said for reader in question.readers if len(reader.said) == 2]
    assert [(verdict.stage, verdict.severity, verdict.explanation) for verdict in said[0]] == [
        (Stage.FIRST, None, None),
        (Stage.REVISED, "severe", "It would kill."),
    ]
    assert other == shown.questions[1]


# ---------------------------------------------------------------- quick enough


def test_the_same_rows_as_the_long_way_round(conflicting):
    """The rows of one case are those of the whole study that belong to it, with and without the judge."""
    for with_judge in (False, True):
        with reading(conflicting.engine) as session:
            whole = read_queries.reads(session, judge=None, with_judge=with_judge)
            part = read_queries.reads(session, judge=None, with_judge=with_judge, on=key_of(conflicting))
            rules = contents.rules(session)
        assert len(whole) == len(part) == 6
        assert needing(whole, rules, seed="x") == needing(part, rules, seed="x") != []
        assert all(read.judge_label is not None for read in whole) == with_judge
        assert [read.n_wanted for read in whole] == [2] * 6
