"""The audit trail: every act leaves one event, and whoever changes the trail afterwards is found out."""

import json
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import text

from evalcore.errors import AlreadyChanged, ImportFailed, NotAllowed, OverreadError
from evalcore.export import tables as export_tables
from evalcore.importing import import_file
from evalcore.reading import overriding
from evalcore.reading.reviewing import Decision
from evalcore.study import store
from evalcore.study.audit import trail
from evalcore.study.audit.chain import verify
from evalcore.study.db import connect, open_study, reading, writing
from evalcore.study.schema import Administrator, Label, RaterKind
from evalcore.study.tables import AuditEvent
from tests import world
from tests.processes import at_once

N_EVENTS = 12
COLUMNS = ("at", "actor", "action", "subject", "detail", "previous_hash", "hash")


@pytest.fixture
def small(database_url):
    made = world.made(database_url)
    yield made
    made.engine.dispose()


def report_on(engine):
    with reading(engine) as session:
        return verify(session)


# ---------------------------------------------------------------- the chain


def test_an_empty_trail_holds(database_url):
    engine = open_study(database_url)
    report = report_on(engine)
    assert (report.n_events, report.last_hash, report.broken_event) == (0, "0" * 64, None)
    engine.dispose()


def test_a_trail_that_nobody_touched_holds_and_names_its_last_hash(small):
    with small.engine.connect() as connection:
        hashes = list(connection.execute(text("SELECT hash FROM audit_event ORDER BY id")).scalars())
    report = report_on(small.engine)
    assert (report.n_events, report.last_hash) == (len(hashes), hashes[-1])
    rows = "4 verdicts and 13 rows that they rest on"
    assert report.sentence == f"The audit trail holds: {len(hashes)} events, {rows}. Last hash {hashes[-1]}."


def test_each_event_carries_the_hash_of_the_one_before_it(small):
    with small.engine.connect() as connection:
        chain = connection.execute(text("SELECT previous_hash, hash FROM audit_event ORDER BY id")).all()
    assert [previous for previous, _ in chain] == ["0" * 64, *(own for _, own in chain[:-1])]


@pytest.fixture(scope="module")
def long_trail(tmp_path_factory):
    """A SQLite study with N_EVENTS events, to be copied."""
    path = tmp_path_factory.mktemp("trail") / "trail.db"
    engine = open_study(str(path))
    with writing(engine) as session:
        for number in range(1, N_EVENTS + 1):
            store.append_event(session, actor="Dr. Imani Noor", action="verdict given", subject=f"response {number}")
    engine.dispose()
    return path


def as_bytes(engine):
    columns = ", ".join(f"hex({column})" for column in COLUMNS)
    with engine.connect() as connection:
        return connection.execute(text(f"SELECT id, {columns} FROM audit_event ORDER BY id")).all()


def tampered_copy(long_trail, folder: Path, *statements: str, **values):
    engine = open_study(str(world.copy_of(long_trail, folder / "copy.db")))
    before = as_bytes(engine)
    world.tampered(engine, *statements, **values)
    assert as_bytes(engine) != before
    report = report_on(engine)
    engine.dispose()
    return report


numbers = st.integers(1, N_EVENTS)
on_copies = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@on_copies
@given(number=numbers, column=st.sampled_from(COLUMNS), data=st.data())
def test_an_event_that_was_changed_is_named(long_trail, tmp_path, number, column, data):
    values = {
        "at": st.sampled_from(["2020-01-01 00:00:00.000000", "yesterday", ""]),
        "previous_hash": st.just("f" * 64),
        "hash": st.just("e" * 64),
    }
    value = data.draw(values.get(column, st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=20)))
    report = tampered_copy(
        long_trail,
        tmp_path,
        f"UPDATE audit_event SET {column} = :value || '.' WHERE id = :number",
        number=number,
        value=value,
    )
    assert report.broken_event == number
    assert report.sentence.startswith(f"The audit trail is broken at event {number}: ")


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", ["X'00ff'", "CAST(X'ff41' AS TEXT)", "7"])
def test_an_event_that_cannot_even_be_read_any_more_is_named(long_trail, tmp_path, column, value):
    report = tampered_copy(long_trail, tmp_path, f"UPDATE audit_event SET {column} = {value} WHERE id = 5")
    assert report.broken_event == 5


@on_copies
@given(number=st.integers(1, N_EVENTS - 1))
def test_where_an_event_was_removed_the_next_one_is_named(long_trail, tmp_path, number):
    report = tampered_copy(long_trail, tmp_path, "DELETE FROM audit_event WHERE id = :number", number=number)
    assert report.broken_event == number + 1
    assert "removed or put in" in report.why


@on_copies
@given(first=numbers, second=numbers)
def test_where_two_events_changed_places_the_earlier_place_is_named(long_trail, tmp_path, first, second):
    if first == second:
        return
    swap = (
        "UPDATE audit_event SET id = -1 WHERE id = :first",
        "UPDATE audit_event SET id = :first WHERE id = :second",
        "UPDATE audit_event SET id = :second WHERE id = -1",
    )
    report = tampered_copy(long_trail, tmp_path, *swap, first=first, second=second)
    assert report.broken_event == min(first, second)


@on_copies
@given(after=st.integers(0, N_EVENTS - 1))
def test_an_event_that_was_put_in_without_the_right_link_is_named(long_trail, tmp_path, after):
    report = tampered_copy(long_trail, tmp_path, *MAKE_ROOM, PUT_IN, after=after, **forged("a" * 64))
    assert report.broken_event == after + 1


@on_copies
@given(after=st.integers(1, N_EVENTS - 1))
def test_where_an_event_was_put_in_with_the_right_link_the_next_one_is_named(long_trail, tmp_path, after):
    """Its own hash is right, and the next event is made to follow it; but that event's hash says what it followed before."""
    engine = open_study(str(long_trail))
    with engine.connect() as connection:
        link = connection.execute(text("SELECT hash FROM audit_event WHERE id = :n"), {"n": after}).scalar_one()
    engine.dispose()
    relink = "UPDATE audit_event SET previous_hash = :own WHERE id = :after + 2"
    report = tampered_copy(long_trail, tmp_path, *MAKE_ROOM, relink, PUT_IN, after=after, **forged(link))
    assert report.broken_event == after + 2


MAKE_ROOM = ("UPDATE audit_event SET id = -id - 1 WHERE id > :after", "UPDATE audit_event SET id = -id WHERE id < 0")
PUT_IN = (
    "INSERT INTO audit_event (id, at, actor, action, subject, detail, previous_hash, hash) "
    "VALUES (:after + 1, '2026-11-20 10:00:00.000000', 'Dr. Nobody', 'x', 'y', '{}', :link, :own)"
)


def forged(link):
    at = datetime(2026, 11, 20, 10, tzinfo=UTC)
    event = AuditEvent(at=at, actor="Dr. Nobody", action="x", subject="y", detail="{}", previous_hash=link, hash="")
    return {"link": link, "own": event.expected_hash()}


def test_events_taken_off_the_end_show_in_the_last_hash(long_trail, tmp_path):
    engine = open_study(str(world.copy_of(long_trail, tmp_path / "whole.db")))
    whole = report_on(engine)
    engine.dispose()
    shorter = tampered_copy(long_trail, tmp_path, "DELETE FROM audit_event WHERE id > 10")
    assert shorter.broken_event is None
    assert (shorter.n_events, whole.n_events) == (10, N_EVENTS)
    assert shorter.last_hash != whole.last_hash


def test_a_change_is_found_on_postgresql_too(postgres_database_url):
    small = world.made(postgres_database_url)
    world.tampered(small.engine, "UPDATE audit_event SET detail = '{}' WHERE id = 2")
    assert report_on(small.engine).broken_event == 2
    small.engine.dispose()


@pytest.mark.slow_on_postgresql
def test_the_event_is_named_also_far_into_a_long_trail(database_url):
    engine = open_study(database_url)
    with writing(engine) as session:
        for number in range(2_100):
            store.append_event(session, actor="x", action="y", subject=str(number))
    assert report_on(engine).n_events == 2_100
    world.tampered(engine, "UPDATE audit_event SET subject = 'z' WHERE id = 2057")
    assert report_on(engine).broken_event == 2057
    engine.dispose()


# ---------------------------------------------------------------- writers at once


def test_on_postgresql_others_act_while_the_hashes_of_a_large_act_are_written(postgres_database_url, monkeypatch):
    small = world.made(postgres_database_url)
    written = import_module("evalcore.study.store")
    hashed, other, n = written.add_to_ledger, connect(postgres_database_url, wait_seconds=1.0), []

    def add_to_ledger(connection, table, rows, digest):
        n.append(table)
        if len(n) == 2:  # the first table's hashes are written
            with writing(other) as session:
                store.set_guideline(session, "# Beside", actor="Ana Ruiz")
        hashed(connection, table, rows, digest)

    monkeypatch.setattr(written, "add_to_ledger", add_to_ledger)
    with writing(small.engine) as session:
        store.Bulk(session).insert("model", [{"name": "Elm-1"}, {"name": "Elm-2"}])
        store.ensure_rater(session, RaterKind.JUDGE, "A new judge")
        store.append_event(session, actor="Ana Ruiz", action="x", subject="y")
    assert n == ["model", "rater", "guideline"]
    assert world.rows(small.engine, "SELECT action FROM audit_event ORDER BY id DESC LIMIT 2") == [
        ("x",),
        ("guideline changed",),
    ]
    last = "SELECT table_name FROM row_hash ORDER BY id DESC LIMIT 4"
    assert [table for (table,) in world.rows(small.engine, last)] == ["rater", "guideline", "model", "model"]
    assert report_on(small.engine).holds
    other.dispose()
    small.engine.dispose()


@pytest.mark.parametrize("words", ['O\'Brien said 100 % %s \\ "so" $1', "سؤال\n行\t\u2028😀", "", "'; SELECT 1; --"])
def test_whatever_an_event_says_its_hash_is_the_same_on_both_databases(database_url, words):
    engine = open_study(database_url)
    for _ in range(2):  # the first of a trail, and one behind it
        with writing(engine) as session:
            store.append_event(session, actor=words, action="y", subject=words, detail={words: words})
    assert report_on(engine).holds
    with reading(engine) as session:
        for event in trail.of_action(session, "y"):
            assert (event.subject, json.loads(event.detail)) == (words, {words: words})
            assert event.hash == event.expected_hash()
    engine.dispose()


N_WRITERS, N_EACH = 4, 10


def append_many(start, location, writer):
    """In a process of its own: append events, one transaction each."""
    engine = open_study(location)
    start()
    for number in range(N_EACH):
        with writing(engine) as session:
            store.append_event(session, actor=f"writer {writer}", action="wrote", subject=str(number))
    engine.dispose()


def test_writers_at_once_leave_one_chain_without_a_fork(database_url):
    engine = open_study(database_url)
    assert at_once(*((append_many, database_url, n) for n in range(N_WRITERS))) == [None] * N_WRITERS
    report = report_on(engine)
    assert (report.broken_event, report.n_events) == (None, N_WRITERS * N_EACH)
    engine.dispose()


# ---------------------------------------------------------------- acts


def import_of_a_file(small, folder):
    path = folder / "more.csv"
    path.write_text(
        "example_id,model,criterion_position,rater,label,dataset\nprompt-0,Alder-2,1,Dr. Elsewhere,not_met,invented\n"
    )
    import_file(small.engine, path, actor=Administrator(name="Ana Ruiz"), dataset="invented")


def in_one(act):
    def done(small, _folder):
        with writing(small.engine) as session:
            act(small, session)

    return done


ACTS = {
    "a verdict that overrides the judge": (
        lambda small, _: overriding.give_verdict(
            small.engine, small.viewer(), **small.item(), decision=Decision(Label.NOT_MET), judge=world.JUDGE, seen=None
        ),
        ("Dr. Imani Noor", "judge overridden"),
    ),
    "a verdict that agrees": (
        lambda small, _: overriding.give_verdict(
            small.engine, small.viewer(), **small.item(), decision=Decision(Label.MET), judge=world.JUDGE, seen=None
        ),
        ("Dr. Imani Noor", "verdict given"),
    ),
    "a verdict where this judge said nothing": (
        lambda small, _: overriding.give_verdict(
            small.engine, small.viewer(), **small.item(), decision=Decision(Label.MET), judge="Nobody", seen=None
        ),
        ("Dr. Imani Noor", "verdict given"),
    ),
    "a person added": (
        in_one(lambda small, session: store.add_person(session, "Dr. New", roles=["reviewer"], actor="Ana Ruiz")),
        ("Ana Ruiz", "person added"),
    ),
    "a file imported": (import_of_a_file, ("Ana Ruiz", "file imported")),
    "an export": (
        lambda small, _: export_tables.record(
            small.engine, actor=Administrator(name="Ana Ruiz"), what="labels", file_format="csv", n_rows=4
        ),
        ("Ana Ruiz", "labels exported"),
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_act_leaves_one_event_with_its_actor(small, tmp_path, act):
    before = small.events()
    do, expected = ACTS[act]
    do(small, tmp_path)
    assert small.events() == [*before, expected]
    assert report_on(small.engine).broken_event is None


def test_an_undo_leaves_one_event(small):
    seen = overriding.give_verdict(
        small.engine, small.viewer(), **small.item(), decision=Decision(Label.MET), judge=world.JUDGE, seen=None
    )
    before = small.events()
    overriding.undo(small.engine, small.viewer(), **small.item(), seen=seen)
    assert small.events() == [*before, ("Dr. Imani Noor", "verdict undone")]


def bad_import(small, folder):
    path = folder / "bad.csv"
    path.write_text(
        "example_id,model,criterion_position,rater,label,dataset\nprompt-0,Alder-2,1,Dr. E,perhaps,invented\n"
    )
    import_file(small.engine, path, actor=Administrator(name="Ana Ruiz"), dataset="invented")


FAILED_ACTS = {
    "a verdict of somebody who may not": (
        lambda small, _: overriding.give_verdict(
            small.engine, small.viewer("Ana Ruiz"), **small.item(), decision=Decision(Label.MET), judge="x", seen=None
        ),
        NotAllowed,
    ),
    "a verdict on what has changed": (
        lambda small, _: overriding.give_verdict(
            small.engine, small.viewer(), **small.item(), decision=Decision(Label.MET), judge="x", seen=1
        ),
        AlreadyChanged,
    ),
    "an undo of nothing": (
        lambda small, _: overriding.undo(small.engine, small.viewer(), **small.item(), seen=1),
        AlreadyChanged,
    ),
    "a person without a role": (
        in_one(lambda small, session: store.add_person(session, "Dr. New", roles=[], actor="Ana Ruiz")),
        OverreadError,
    ),
    "a file that is refused": (bad_import, ImportFailed),
}


@pytest.mark.parametrize("act", FAILED_ACTS)
def test_an_act_that_fails_leaves_no_event_and_no_row(small, tmp_path, act):
    tables = ("person", "rater", "verdict", "imported_file")
    before = small.events(), [world.count(small.engine, table) for table in tables]
    do, refusal = FAILED_ACTS[act]
    with pytest.raises(refusal):
        do(small, tmp_path)
    assert (small.events(), [world.count(small.engine, table) for table in tables]) == before


def test_a_file_that_adds_nothing_leaves_no_event(small, tmp_path):
    import_of_a_file(small, tmp_path)
    before = small.events()
    import_of_a_file(small, tmp_path)
    assert small.events() == before


def test_a_dry_run_leaves_no_event(small, tmp_path):
    import_of_a_file(small, tmp_path)
    path = tmp_path / "more.csv"
    path.write_text(path.read_text().replace("not_met", "met"))
    before = small.events()
    report = import_file(small.engine, path, actor=Administrator(name="Ana Ruiz"), dataset="invented", dry_run=True)
    assert report.verdicts_superseding == 1
    assert small.events() == before
