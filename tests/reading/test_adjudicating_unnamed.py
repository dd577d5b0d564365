"""What an adjudicator sees: no names, readers in random order, the judge on demand alone."""

import msgspec
import pytest

from evalcore.errors import NotAllowed, NotFound
from evalcore.reading import adjudication, overriding, reviewing, store as reading_store
from evalcore.reading.conflicts import Reason
from evalcore.reading.reviewing import Decision
from evalcore.study import store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Cause, ErrorKind, Label, Role, Rules, Seen, Severity
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


def everything(value):
    """Every text and number in what an act returned."""
    return msgspec.json.encode(
        value, enc_hook=lambda thing: vars(thing) if hasattr(thing, "__dict__") else str(thing)
    ).decode()


def test_a_case_names_neither_reader_nor_model_nor_judge(conflicting):
    shown = everything(opened(conflicting)) + everything(waiting(conflicting))
    for hidden in (IMANI, TOVE, "Alder-2", world.JUDGE, "It does.", "rater_id"):
        assert hidden not in shown
    assert "sore throat" in shown
    assert "Drink water" in shown


@pytest.mark.slow
def test_readers_are_numbered_at_random_and_the_same_each_time(sqlite_database_url):
    """Over twenty responses Reader 1 is now the one, now the other; within a response always the same."""
    made = world.made(sqlite_database_url, points=tuple((5, 3) for _ in range(20)), judged=" " * 40)
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


def test_the_judge_is_shown_on_demand_once_and_item_by_item(conflicting):
    asked, other = opened(conflicting).questions
    assert (asked.has_looked, asked.judge, asked.judged) == (False, None, None)
    n_events = len(conflicting.events())
    for _ in range(2):
        adjudication.look(conflicting.engine, conflicting.viewer(SOL), key_of(conflicting), asked.criterion_id)
    assert conflicting.events()[n_events:] == [(SOL, "judge shown")]
    asked, other = opened(conflicting).questions
    assert (asked.judge, asked.judged.label, asked.judged.explanation) == (world.JUDGE, "not_met", "It does.")
    assert (other.has_looked, other.judge, other.judged) == (False, None, None)
    assert not any(question.has_looked for question in opened(conflicting, RUNE).questions)


def test_a_settlement_says_whether_the_judge_was_looked_at(conflicting):
    asked, other = opened(conflicting).questions
    adjudication.look(conflicting.engine, conflicting.viewer(SOL), key_of(conflicting), asked.criterion_id)
    settle(conflicting, item(asked), item(other))
    assert {row["criterion_id"]: row["blinded"] for row in settlements(conflicting)} == {
        asked.criterion_id: False,
        other.criterion_id: True,
    }


@pytest.mark.parametrize(("share", "is_blinded"), [(0.0, False), (0.001, True)])
def test_an_item_that_only_its_judge_brings_here_is_not_settled_blind_unless_others_like_it_are_drawn(
    share, is_blinded, database_url
):
    """Both readers say not met on 7 points and the judge met: with no checks drawn, that the item is here tells its label."""
    made = world.made(database_url, points=((7,),), judged="+")
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    with writing(made.engine) as session:
        store.set_rules(session, Rules(both_against_judge=True, check_share=share), actor="Ana Ruiz")
    world.assigned(made)
    for name in (IMANI, TOVE):
        world.submitted(made, name, "-")
    assert waiting(made).waiting[0].reasons == (Reason.CHECK,)
    (question,) = opened(made).questions
    assert question.reasons == (Reason.CHECK,)
    settle(made, item(question, Label.NOT_MET, None))
    settle(made, item(opened(made).questions[0], Label.MET, None))
    assert [row["blinded"] for row in settlements(made)] == [is_blinded, is_blinded]
    made.engine.dispose()


def test_what_readers_say_of_the_judge_is_told_once_it_was_looked_at(conflicting):
    """Cause, severity, kind of error, the revised stage and a note with the judge in view: each tells what the judge said."""
    before, shown = opened(conflicting), waiting(conflicting)
    decision = Decision(Label.MET, Cause.MISREAD_ANSWER, Severity.SEVERE, ErrorKind.OMISSION, note="Magpie misread it.")
    number, criterion = reading_of(conflicting, IMANI), conflicting.criteria[0][1]
    reviewing.revise(conflicting.engine, conflicting.viewer(IMANI), number, criterion, decision, seen=None)
    assert (opened(conflicting), waiting(conflicting)) == (before, shown)
    world.add_researcher(conflicting.engine, "Dr. Open Reader", Role.REVIEWER)
    said = reviewing.Decision(
        Label.MET, cause=Cause.MISREAD_ANSWER, severity=Severity.SEVERE, note="Magpie misread it."
    )
    overriding.give_verdict(
        conflicting.engine,
        conflicting.viewer("Dr. Open Reader"),
        **conflicting.item(criterion=1),
        decision=said,
        judge=world.JUDGE,
        seen=None,
    )
    hidden = ("misread", "severe", "omission", "revised")
    assert not any(word in everything(opened(conflicting)) for word in hidden)
    adjudication.look(conflicting.engine, conflicting.viewer(SOL), key_of(conflicting), criterion)
    assert all(word in everything(opened(conflicting).questions[0]) for word in hidden)


def test_what_waits_for_an_adjudicator_is_hidden_from_them_elsewhere_until_it_is_settled(conflicting):
    def hidden(name):
        with reading(conflicting.engine) as session:
            return adjudication.hidden_examples(session, conflicting.viewer(name))

    assert (hidden(SOL), hidden(RUNE), hidden("Ana Ruiz")) == ({1}, {1}, set())
    with pytest.raises(NotAllowed, match="waits for your first read or settlement"):
        overriding.give_verdict(
            conflicting.engine, conflicting.viewer(SOL), **conflicting.item(), decision=reviewing.Decision(Label.MET), judge=world.JUDGE, seen=None
        )  # fmt: skip
    settle(conflicting, *(item(question) for question in opened(conflicting).questions))
    assert (hidden(SOL), hidden(RUNE)) == (set(), set())


@pytest.mark.parametrize(
    ("what", "is_blinded"), [(Seen.CONVERSATION, False), (Seen.EXPORT, False), (Seen.ADJUDICATION, True)]
)
def test_who_saw_verdicts_before_they_conflicted_does_not_settle_blind(what, is_blinded, conflicting):
    with writing(conflicting.engine) as session:
        reading_store.add_exposures(
            session, conflicting.viewer(SOL).person_id, what, None if what is Seen.EXPORT else [1]
        )
    settle(conflicting, item(opened(conflicting).questions[0]))
    assert settlements(conflicting)[0]["blinded"] is is_blinded


def test_nobody_looks_where_nothing_is_in_question(conflicting):
    with pytest.raises(NotFound, match="not in question"):
        adjudication.look(conflicting.engine, conflicting.viewer(SOL), key_of(conflicting), conflicting.criteria[0][0])


@pytest.mark.parametrize("key", [(1, 999), (999, None), (999, 1)])
def test_a_response_that_is_not_there_is_named(conflicting, key):
    with pytest.raises(NotFound, match=r"This study has no (response 999|example 999|response 1)\."):
        opened(conflicting, key=key)
