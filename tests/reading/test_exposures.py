"""Who has seen others' verdicts on what: recorded once, never changed, and their reads are not blind."""

import pytest
from hypothesis import given, strategies as st
from sqlalchemy import create_engine

from evalcore.errors import AlreadyChanged, NotAllowed, OverreadError
from evalcore.export import methods, tables as export_tables
from evalcore.reading import assigning, exposing, queries, reviewing, store as reading_store
from evalcore.reading.assigning import Choice
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.study import store
from evalcore.study.audit import chain
from evalcore.study.db import reading, writing
from evalcore.study.schema import ReadingMode, Role, Rules, Seen
from tests import world
from tests.assigning_steps import assign_responses
from tests.storage_steps import refused


def expose(study, name, what, examples):
    """Write that somebody sees verdicts; how many rows that took."""
    with writing(study.engine) as session:
        return reading_store.add_exposures(session, study.viewer(name).person_id, what, examples)


def is_exposed(study, name, example_id):
    with reading(study.engine) as session:
        return queries.is_exposed(session, study.viewer(name).person_id, example_id)


def test_an_exposure_is_written_the_first_time_and_never_changed(small):
    assert [expose(small, "Dr. Imani Noor", Seen.CONVERSATION, [1]) for _ in range(2)] == [1, 0]
    assert expose(small, "Dr. Imani Noor", Seen.EXPORT, [1, 2]) == 2
    assert is_exposed(small, "Dr. Imani Noor", 1)
    assert not is_exposed(small, "Dr. Tove Lind", 1)
    for statement in ("UPDATE exposure SET person_id = 2", "DELETE FROM exposure WHERE id = 1"):
        assert "exposure is append-only" in refused(small.engine, statement)


def test_a_row_for_everything_reaches_what_was_there_then(small):
    assert [expose(small, "Dr. Imani Noor", Seen.EXPORT, None) for _ in range(2)] == [1, 0]
    assert [is_exposed(small, "Dr. Imani Noor", number) for number in (1, 2, 3)] == [True, True, False]
    expose(small, "Dr. Imani Noor", Seen.RELEASED, None)
    assert is_exposed(small, "Dr. Imani Noor", 3)  # who is released stays so when more is imported


@pytest.mark.parametrize("columns", ["*", "id + 100, person_id, example_id, through, what, at"])
def test_replace_of_an_exposure_is_refused_on_a_bare_sqlite_connection(sqlite_database_url, columns):
    small = world.made(sqlite_database_url)
    expose(small, "Dr. Imani Noor", Seen.CONVERSATION, [1])
    small.engine.dispose()
    bare = create_engine(sqlite_database_url)
    assert "exposure is append-only" in refused(bare, f"INSERT OR REPLACE INTO exposure SELECT {columns} FROM exposure")
    bare.dispose()


NOOR, LIND = "Dr. Imani Noor", "Dr. Tove Lind"


def opened(study, name, example_id):
    return exposing.open_conversation(study.engine, study.viewer(name), example_id)


def blind(study, name):
    with reading(study.engine) as session:
        return queries.blind_examples(session, study.viewer(name))


def set_rules(study, **rules):
    with writing(study.engine) as session:
        store.set_rules(session, Rules(**rules), actor="Ana Ruiz")


def taken(study, name):
    """The example of the next item of a reader, and what is on the desk."""
    desk = reviewing.take(study.engine, study.viewer(name))
    return (desk.asked.example_id if desk else None), desk


def stored(study):
    """Of every first and open read: by whom, on which example, whether it is blind, and why not."""
    return world.rows(
        study.engine,
        "SELECT DISTINCT r.name, v.example_id, v.blinded, v.not_blind FROM verdict v JOIN rater r ON r.id = v.rater_id "
        "WHERE v.stage IN ('first', 'open') ORDER BY 1, 2",
    )


# ---------------------------------------------------------------- the attacks


def test_who_has_opened_verdicts_is_not_assigned_the_conversation(small):
    opened(small, NOOR, 1)
    report = assigning.assign(small.engine, Choice(seed=1), actor=small.viewer("Ana Ruiz"))
    assert report.exposed == ((NOOR, 1),)
    assert report.n_too_few == 1
    assert f"{NOOR} has seen others' verdicts on 1 of 2 items, and is left out there" in report.sentences()
    assert blind(small, NOOR) == {2}
    assert blind(small, LIND) == {1, 2}
    world.submitted(small, NOOR, "++")
    assert taken(small, NOOR)[0] is None


def test_who_has_exported_every_label_is_assigned_nothing(small):
    take_out(small, NOOR, "labels")
    with pytest.raises(OverreadError, match="Nobody is left to read blind"):
        world.assigned(small, readers=(NOOR,), n_readers=1)
    assert assigning.assign(small.engine, Choice(seed=1), actor=small.viewer("Ana Ruiz")).exposed == ((NOOR, 2),)
    assert taken(small, NOOR)[0] is None


def take_out(study, name, what, **part):
    chosen = export_tables.Part(blind=blind(study, name), **part)
    table = export_tables.table(study.engine, what, chosen)
    named = set(table["example_id"])
    export_tables.record(
        study.engine,
        actor=study.viewer(name),
        what=what,
        file_format="csv",
        n_rows=len(table),
        part=chosen,
        named=named,
    )


def test_an_export_is_one_row_for_everything_and_leaves_out_what_waits(small):
    for _ in range(2):
        take_out(small, LIND, "labels")
    assert world.rows(small.engine, "SELECT person_id, example_id, through, what FROM exposure") == [
        (2, None, 2, "export")
    ]
    world.assigned(small, readers=(NOOR,), n_readers=1, n_items=1)
    (waits,) = blind(small, NOOR)
    take_out(small, NOOR, "scores")
    assert [is_exposed(small, NOOR, number) for number in (1, 2)] == [waits != 1, waits != 2]
    assert blind(small, NOOR) == {waits}


def test_a_sibling_response_of_an_opened_conversation_is_left_out(database_url):
    study = world.made(database_url, models=("Alder-2", "Birch-1"))
    first, sibling = study.responses[:2]
    to = {"readers": (NOOR,), "n_readers": 1, "ask": "rubric", "actor": study.viewer("Ana Ruiz"), "alone": True}
    assign_responses(study.engine, [first], **to)
    world.submitted(study, NOOR, "+-")  # agrees with the judge throughout: the conversation opens
    opened(study, NOOR, 1)
    with pytest.raises(OverreadError, match="Nobody is left to read blind"):
        assign_responses(study.engine, [sibling], **to)
    study.engine.dispose()


def test_rules_set_to_open_and_back_leave_no_blind_read(small):
    world.assigned(small)
    set_rules(small, mode=ReadingMode.OPEN)
    opened(small, NOOR, 1)
    set_rules(small)
    assert blind(small, NOOR) == {2}
    assert taken(small, NOOR)[0] == 2


def test_a_tab_left_open_shows_nothing_once_the_conversation_waits(small):
    world.assigned(small)
    number, desk = taken(small, NOOR)
    with pytest.raises(NotAllowed, match="waits for your first read"):
        opened(small, NOOR, number)
    assert not is_exposed(small, NOOR, number)
    expose(small, NOOR, Seen.EXPORT, [number])  # as by a download that began before the assignment
    world.answer(small, small.viewer(NOOR), desk, "++")
    world.lock(small.engine, small.viewer(NOOR), desk.reading.id)
    assert stored(small) == [(NOOR, number, False, "exposed")]
    with reading(small.engine) as session:
        assert blind_reads(session).empty
    told = methods.paragraph(methods.facts(small.engine))
    assert (
        "A further 2 first reads were not blind and enter no estimate: 2 by readers who had seen others' verdicts"
        in told
    )
    assert "Every first read was blind" not in told


def test_a_lead_reads_only_where_the_study_says_so_and_never_blind(small):
    world.add_researcher(small.engine, "Dr. Both", Role.LEAD, Role.REVIEWER)
    with pytest.raises(OverreadError, match=r"expected people who are neither lead nor researcher, got Dr\. Both\."):
        world.assigned(small, readers=("Dr. Both",), n_readers=1)
    assert assigning.assign(small.engine, Choice(n_items=1, seed=1), actor=small.viewer("Ana Ruiz")).leading == (
        "Dr. Both",
    )
    set_rules(small, leads_read=True)
    world.assigned(small, readers=("Dr. Both",), n_readers=1)
    world.submitted(small, "Dr. Both", "+-")
    assert [row[2:] for row in stored(small)] == [(False, "role")]


def test_in_a_blind_study_readers_see_what_they_have_read_or_were_released_from(small):
    set_rules(small, blind=True)
    assert blind(small, NOOR) == {1, 2}
    assert blind(small, "Ana Ruiz") == frozenset()
    with pytest.raises(NotAllowed, match="waits for your first read"):
        opened(small, NOOR, 1)
    world.assigned(small, n_items=1)
    number, _ = taken(small, NOOR)
    world.submitted(small, NOOR, "+-" if number == 1 else "++")
    assert blind(small, NOOR) == {1, 2} - {number}
    with pytest.raises(NotAllowed, match="Only leads can assign reading"):
        exposing.release(small.engine, small.viewer(NOOR), small.viewer(NOOR).person_id)
    for _ in range(2):
        exposing.release(small.engine, small.viewer("Ana Ruiz"), small.viewer(NOOR).person_id)
    assert blind(small, NOOR) == frozenset()
    assert small.events().count(("Ana Ruiz", "reader released")) == 1
    assert blind(small, LIND) == {1, 2}


def test_opening_is_written_once_and_only_where_others_have_spoken(database_url):
    study = world.made(database_url, judged="+-  ")
    for _ in range(2):
        opened(study, NOOR, 1)
        opened(study, NOOR, 2)
    assert world.rows(study.engine, "SELECT person_id, example_id, what FROM exposure") == [(1, 1, "conversation")]
    study.engine.dispose()


ACTS = st.lists(
    st.sampled_from(["open 1", "open 2", "assign", "read", "export", "open rules", "blind rules"]), max_size=9
)


@given(ACTS)
def test_no_read_counts_as_blind_after_its_reader_has_seen_verdicts(acts):
    study = world.made("sqlite://")
    ever_seen = set()
    for act in acts:
        try:
            if act.startswith("open ") and act != "open rules":
                opened(study, NOOR, int(act[-1]))
                ever_seen.add(int(act[-1]))
            elif act == "assign":
                world.assigned(study, n_items=1, readers=(NOOR,), n_readers=1)
            elif act == "export":
                ever_seen |= {1, 2} - blind(study, NOOR)
                take_out(study, NOOR, "labels")
            elif act == "read":
                number, desk = taken(study, NOOR)
                if desk is not None:
                    world.answer(study, study.viewer(NOOR), desk, "+-" if number == 1 else "++")
                    world.lock(study.engine, study.viewer(NOOR), desk.reading.id)
                    is_blind = {row[1]: row[2] for row in stored(study)}[number]
                    assert bool(is_blind) is (number not in ever_seen and bool(desk.reading.blinded))
            else:
                set_rules(study, mode=ReadingMode(act.split()[0]))
        except (NotAllowed, OverreadError, AlreadyChanged):
            continue
    study.engine.dispose()


def test_the_trail_vouches_for_who_saw_verdicts(small):
    opened(small, NOOR, 1)
    take_out(small, LIND, "labels")
    exposing.release(small.engine, small.viewer("Ana Ruiz"), small.viewer(LIND).person_id)
    assert small.events().count((NOOR, "verdicts seen")) == 1
    with reading(small.engine) as session:
        assert chain.verify(session).holds
    is_sqlite = small.engine.dialect.name == "sqlite"
    for act, told in (("UPDATE exposure SET person_id = 3", "was changed"), ("DELETE FROM exposure", "is gone")):
        asleep = (
            f"DROP TRIGGER exposure_no_{act.split()[0].lower()}"
            if is_sqlite
            else "ALTER TABLE exposure DISABLE TRIGGER USER"
        )
        world.tampered(small.engine, asleep, f"{act} WHERE example_id = 1")
        with reading(small.engine) as session:
            assert f"Record of who saw verdicts 1 {told}" in chain.verify(session).sentence


def test_another_person_at_the_same_browser_leaves_an_event(small):
    for name in (NOOR, NOOR, LIND, NOOR):
        exposing.choose_reader(small.engine, small.viewer(name), "Firefox/150.0")
    came = world.rows(small.engine, "SELECT actor, subject, detail FROM audit_event WHERE action = 'reader chosen'")
    assert [row[:2] for row in came] == [(NOOR, "Firefox/150.0"), (LIND, "Firefox/150.0"), (NOOR, "Firefox/150.0")]
    assert NOOR in came[1][2]
