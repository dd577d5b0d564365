"""Two who settle or amend at one moment, or one after the other without knowing: nobody writes over anybody, and the second is told."""

import time

import pytest
from sqlalchemy import text

from evalcore.errors import AlreadyChanged
from evalcore.reading import adjudication, queries, reviewing
from evalcore.reading.reviewing import Decision
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Label, RaterKind, Stage, Verdict
from tests import world
from tests.adjudicating_steps import IMANI, RUNE, SOL, item, key_of, opened, reading_of, settle, settlements, waiting
from tests.processes import at_once
from tests.run_steps import until


def looked(small):
    """The first question, once the judge was looked at: what readers amend is shown from then on."""
    criterion = opened(small).questions[0].criterion_id
    adjudication.look(small.engine, small.viewer(SOL), key_of(small), criterion)
    return opened(small).questions[0]


def test_what_somebody_else_has_settled_meanwhile_stands(conflicting):
    asked = opened(conflicting).questions[0]
    late = opened(conflicting, RUNE).questions[0]
    settle(conflicting, item(asked))
    with pytest.raises(AlreadyChanged, match="Somebody else has settled this item meanwhile"):
        settle(conflicting, item(late, Label.NOT_MET), name=RUNE)
    assert [row["rater"] for row in settlements(conflicting)] == [SOL]
    assert late.criterion_id not in [question.criterion_id for question in opened(conflicting, RUNE).questions]


def test_a_second_tab_is_told(conflicting):
    asked = opened(conflicting).questions[0]
    settle(conflicting, item(asked))
    with pytest.raises(AlreadyChanged, match="in another tab"):
        settle(conflicting, item(asked, Label.NOT_MET))
    assert [row["label"] for row in settlements(conflicting)] == ["met"]


def test_a_read_that_was_amended_since_is_looked_at_first(conflicting):
    asked = looked(conflicting)
    decision = Decision(Label.NOT_MET)
    reviewing.revise(
        conflicting.engine,
        conflicting.viewer(IMANI),
        reading_of(conflicting, IMANI),
        conflicting.criteria[0][1],
        decision,
        seen=None,
    )
    with pytest.raises(AlreadyChanged, match="A reader has changed a verdict here"):
        settle(conflicting, item(asked))
    assert settlements(conflicting) == []
    settle(conflicting, item(opened(conflicting).questions[0]))
    assert len(settlements(conflicting)) == 1


def test_a_revision_that_is_not_shown_yet_keeps_nobody_from_settling(conflicting):
    """That there is one tells that the judge differs from that reader's first read."""
    before = opened(conflicting)
    decision = Decision(Label.NOT_MET, note="The judge is right.")
    number = reading_of(conflicting, IMANI)
    reviewing.revise(
        conflicting.engine, conflicting.viewer(IMANI), number, conflicting.criteria[0][1], decision, seen=None
    )
    assert opened(conflicting) == before
    settle(conflicting, item(before.questions[0]))
    assert settlements(conflicting)[0]["blinded"]


def test_a_read_that_is_amended_later_leaves_the_item_settled(conflicting):
    settle(conflicting, *(item(question) for question in (looked(conflicting), opened(conflicting).questions[1])))
    decision = Decision(Label.NOT_MET)
    reviewing.revise(
        conflicting.engine,
        conflicting.viewer(IMANI),
        reading_of(conflicting, IMANI),
        conflicting.criteria[0][1],
        decision,
        seen=None,
    )
    assert waiting(conflicting).waiting == ()
    assert len(settlements(conflicting)) == 2
    assert {reader.said[-1].stage for reader in opened(conflicting).questions[0].readers} == {
        Stage.FIRST,
        Stage.REVISED,
    }


def settle_at_once(start, location, key, name, settling):
    """In a process of its own: wait for the other one, then settle."""
    act_at_once(start, location, lambda small: adjudication.settle(small.engine, small.viewer(name), key, [settling]))
    return "kept"


def amend_at_once(start, location, number, criterion):
    """In a process of its own: wait for the other one, then amend a read that is done."""
    decision = Decision(Label.NOT_MET)
    act_at_once(
        start,
        location,
        lambda small: reviewing.revise(small.engine, small.viewer(IMANI), number, criterion, decision, seen=None),
    )
    return "kept"


def act_at_once(start, location, act):
    small = world.World(location, open_study(location), [], [])
    small.viewer()
    start()
    act(small)
    small.engine.dispose()


def said_at_once(*calls, **here):
    """What each says, after all have started together: whoever was kept comes first."""
    return sorted(map(str, at_once(*calls, **here)), key=lambda words: words != "kept")


def test_of_two_adjudicators_who_settle_at_once_one_is_kept_and_one_is_told(conflicting):
    settling = item(opened(conflicting).questions[0])
    n_events = len(conflicting.events())
    said = said_at_once(
        *((settle_at_once, conflicting.location, key_of(conflicting), name, settling) for name in (SOL, RUNE))
    )
    assert said[0] == "kept"
    assert said[1].startswith("Somebody else has settled this item meanwhile")
    assert len(settlements(conflicting)) == 1
    assert len(conflicting.events()) == n_events + 1


def test_of_two_tabs_of_one_adjudicator_one_is_kept_and_one_is_told(conflicting):
    settling = item(opened(conflicting).questions[0])
    said = said_at_once(*((settle_at_once, conflicting.location, key_of(conflicting), SOL, settling) for _ in range(2)))
    assert said[0] == "kept"
    assert said[1].startswith("You have settled this item in another tab")
    assert len(settlements(conflicting)) == 1


def test_an_adjudicator_who_settles_while_a_reader_amends_has_seen_the_amended_read_or_came_before_it(conflicting):
    settling = item(looked(conflicting))
    number, criterion = reading_of(conflicting, IMANI), conflicting.criteria[0][1]
    said = said_at_once(
        (settle_at_once, conflicting.location, key_of(conflicting), SOL, settling),
        (amend_at_once, conflicting.location, number, criterion),
    )
    acts = [action for _, action in conflicting.events()][-2:]
    (amended,) = [row for row in conflicting.history() if row["stage"] == "revised"]
    if said == ["kept", "kept"]:
        assert acts[0] == "conflict settled"
        assert settlements(conflicting)[0]["verdict_id"] < amended["verdict_id"]
    else:
        assert said[1].startswith("A reader has changed a verdict here")
        assert settlements(conflicting) == []
    assert amended["label"] == "not_met"


def test_an_adjudicator_waits_for_a_reader_who_is_amending(conflicting):
    """The reader's transaction is open when the adjudicator presses: it is waited for, and then seen."""
    question, person = looked(conflicting), conflicting.viewer(IMANI)

    def amend(start):
        with writing(conflicting.engine) as session:
            queries.hold_readings(session, *key_of(conflicting))
            start()
            until_one_waits(conflicting.engine)
            verdict = Verdict(
                example_id=1, response_id=conflicting.responses[0], criterion_id=question.criterion_id, stage=Stage.REVISED, label=Label.NOT_MET,
                rater_id=store.ensure_rater(session, RaterKind.REVIEWER, person.name), blinded=False,
            )  # fmt: skip
            store.add_verdicts(session, [verdict], actor=person.name, action="read amended")

    (told,) = said_at_once((settle_at_once, conflicting.location, key_of(conflicting), SOL, item(question)), here=amend)
    assert told.startswith("A reader has changed a verdict here")
    assert settlements(conflicting) == []


def until_one_waits(engine):
    """Until another session waits for a lock. SQLite does not tell who waits: whoever would not wait has settled within half a second."""
    if engine.dialect.name == "sqlite":
        time.sleep(0.5)
        return
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def one_waits():
        with engine.connect() as connection:
            return connection.execute(waiting).scalar_one() == 1

    until(one_waits)
