"""The database fails: it is locked, away, or refuses a row. Nothing of what somebody wrote is told, and the next press works."""

import os
import re
import sqlite3
import traceback
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import IntegrityError

from evalcore.errors import DatabaseFault, ReadOnly
from evalcore.export import tables as export_tables
from evalcore.reading import exposing, reviewing
from evalcore.study import contents, db
from evalcore.study.db import connect, open_study, reading, writing
from evalcore.study.schema import Cause, Label, Role
from pages.shared import common
from tests import world
from tests.conftest import plain, run
from tests.page_steps import check, words
from tests.pages.test_adjudicate_page import press as press_key, write

IMANI, TOVE, SOL = "Dr. Imani Noor", "Dr. Tove Lind", "Dr. Sol Adler"
NOTE = "the patient of bed seven"
BUSY = "Not saved: the database is busy. Press again."
UNWRITABLE = "The database is read-only, so nothing can be saved."
AWAY = "The database cannot be reached. Press again."


def _two_wait(url, monkeypatch):
    """Two responses that wait for both readers, where a press waits for a tenth of a second."""
    for module in (db, common):
        monkeypatch.setattr(module, "PRESS_SECONDS", 0.1)
    monkeypatch.setenv("OVERREAD_DB", url)
    made = world.made(url)
    world.add_researcher(made.engine, SOL, Role.ADJUDICATOR)
    world.assigned(made)
    yield made
    common.engine().dispose()
    made.engine.dispose()


@pytest.fixture
def small(database_url, monkeypatch):
    yield from _two_wait(database_url, monkeypatch)


@pytest.fixture
def remote(postgres_database_url, monkeypatch):
    yield from _two_wait(postgres_database_url, monkeypatch)


@contextmanager
def held(url):
    """Somebody else writes."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(make_url(url).database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    with psycopg.connect(plain(make_url(url))) as other:
        tables = other.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        other.execute(f"LOCK TABLE {', '.join(name for (name,) in tables)} IN EXCLUSIVE MODE")
        yield
        other.rollback()


@contextmanager
def gone(url):
    """The server lets nobody in."""
    server, name = plain(make_url(url).set(database="postgres")), make_url(url).database
    run(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    cut(url)
    yield
    run(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def cut(url):
    """Every connection breaks, as when the server is started anew."""
    server, name = plain(make_url(url).set(database="postgres")), make_url(url).database
    run(server, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")


def press(app, key):
    next(button for button in app.button if button.key.startswith(f"{key}_")).click()
    assert not app.run().exception
    return words(app)


def note(app, said):
    next(field for field in app.text_input if field.key.startswith("note_")).set_value(said)
    return check(app.run())


def marks(small):
    return world.rows(small.engine, "SELECT label, note FROM mark ORDER BY id")


# ---------------------------------------------------------------- what is told


def test_neither_error_nor_log_tells_what_was_to_be_written(database_url):
    engine = open_study(database_url)
    with pytest.raises(IntegrityError) as refused, writing(engine) as session:
        session.connection().execute(text("INSERT INTO person (name) VALUES (:name)"), {"name": NOTE})
    assert "INSERT INTO person" in str(refused.value)
    assert NOTE not in "".join(traceback.format_exception(refused.value))
    engine.dispose()


def test_the_fault_is_told_apart_from_a_refused_statement(small, database_url):
    hurried = connect(database_url, wait_seconds=0.1)
    with held(database_url), pytest.raises(DatabaseFault, match=BUSY) as fault, writing(hurried) as session:
        session.connection().execute(text("DELETE FROM mark"))
    assert "lock" in fault.value.reason
    for patient in (False, True):
        with writing(hurried, patient=patient) as session:
            asked = "PRAGMA busy_timeout" if database_url.startswith("sqlite") else "SHOW lock_timeout"
            found = str(session.connection().execute(text(asked)).scalar_one())
            assert found in (("30000", "30s") if patient else ("100", "100ms"))
    hurried.dispose()


# ---------------------------------------------------------------- locked


def test_a_mark_on_a_locked_database_is_told_and_the_next_press_works(small, database_url, open_page):
    app = open_page(database_url, "review", IMANI)
    check(app)
    before = len(marks(small))
    with held(database_url):
        assert BUSY in press(app, "answer_1")
        assert len(app.button) > 4
    assert len(marks(small)) == before
    assert BUSY not in press(app, "answer_1")
    assert len(marks(small)) == before + 1


def test_a_note_typed_on_a_locked_database_stays_in_its_field(small, database_url, open_page):
    app = open_page(database_url, "review", IMANI)
    check(app)
    with held(database_url):
        for act in (lambda: note(app, NOTE), lambda: press(app, "next"), lambda: press(app, "answer_3")):
            assert BUSY in act()
            assert next(field.value for field in app.text_input if field.key.startswith("note_")) == NOTE
    assert BUSY not in press(app, "answer_1")
    assert (NOTE in [said for _, said in marks(small)], marks(small)[-1]) == (True, ("met", NOTE))


@pytest.mark.slow
def test_a_submission_on_a_locked_database_is_pressed_again(small, database_url, open_page):
    app = open_page(database_url, "review", IMANI)
    press(app, "answer_1")
    press(app, "answer_1")
    with held(database_url):
        assert BUSY in press(app, "submit")
    assert "Show the judge" in press(app, "submit")
    assert BUSY not in words(app)
    with held(database_url):
        assert BUSY in press(app, "go_on")
    assert BUSY not in press(app, "go_on")
    with held(database_url):  # beside the judge
        assert BUSY in press(app, "answer_1")
    press(app, "answer_1")
    press(app, "cause_P")
    with held(database_url):
        assert BUSY in press(app, "severity_7")
        assert "Severe" in words(app)  # still asked
    assert BUSY not in press(app, "severity_7")
    assert world.rows(
        small.engine,
        "SELECT cause, severity FROM verdict WHERE stage <> 'judge' AND cause IS NOT NULL ORDER BY id DESC LIMIT 1",
    ) == [(next(iter(Cause)), "mild")]


@pytest.mark.slow
def test_a_settlement_on_a_locked_database_keeps_its_rationale(small, database_url, open_page):
    for name, labels in ((IMANI, "++"), (TOVE, "--")):
        world.submitted(small, name, labels)
    app = open_page(database_url, "adjudicate", SOL)
    press_key(app, "open_first")
    press_key(app, "settle_met")
    press_key(app, "because_criterion_ambiguous")
    write(app, NOTE)
    with held(database_url):
        assert BUSY in press_key(app, "settle")
        assert app.text_area[0].value == NOTE
    assert BUSY not in press_key(app, "settle")


@pytest.mark.slow
def test_an_own_verdict_on_a_locked_database_is_kept_on_the_screen(small, database_url, open_page):
    viewer = small.viewer(SOL)
    example = 2
    app = open_page(database_url, "browse", SOL, example=str(example))
    check(app)
    group = next(group for group in app.get("button_group") if str(group.key).startswith("label_"))
    with held(database_url):
        group.select(Label.NOT_MET)
        assert BUSY in check(app.run())
    assert viewer.name not in [row["rater"] for row in small.history()]
    app.run()
    check(app)
    assert viewer.name in [row["rater"] for row in small.history()]


# ---------------------------------------------------------------- away


def test_a_page_recovers_from_a_restart_of_the_server_by_itself(remote, postgres_database_url, open_page):
    app = open_page(postgres_database_url, "review", IMANI)
    check(app)
    cut(postgres_database_url)
    assert "Not saved" not in press(app, "answer_1")
    assert marks(remote)[-1] == ("met", None)


def test_a_page_without_its_server_says_so_and_works_when_it_is_back(remote, postgres_database_url, open_page):
    app = open_page(postgres_database_url, "review", IMANI)
    check(app)
    with gone(postgres_database_url):
        assert AWAY in press(app, "answer_1")
        assert AWAY in press_key(app, "try_again")
    remote.engine.dispose()
    assert "Response 1 of" in press_key(app, "try_again")
    press(app, "answer_1")
    assert marks(remote)[-1] == ("met", None)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["browse", "models", "adjudicate", "my_reads", "export"])
def test_every_page_says_so(remote, postgres_database_url, open_page, page):
    app = open_page(postgres_database_url, page, "Ana Ruiz" if page in ("models", "export") else SOL)
    with gone(postgres_database_url):
        app.run()
        assert AWAY in check(app)
    remote.engine.dispose()
    assert AWAY not in press_key(app, "try_again")


def test_an_act_whose_connection_breaks_is_not_saved(remote, postgres_database_url):
    with (
        pytest.raises(DatabaseFault, match="Not saved: the database cannot be reached"),
        writing(remote.engine) as session,
    ):
        session.connection().execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    with reading(remote.engine) as session:  # the next one has a connection of its own
        assert session.connection().execute(text("SELECT 1")).scalar_one() == 1


def test_reads_without_a_server_fail_as_a_fault(remote, postgres_database_url):
    with gone(postgres_database_url), pytest.raises(DatabaseFault, match="cannot be reached"):
        reviewing.take(remote.engine, world.Viewer(1, IMANI, frozenset({Role.REVIEWER})))


# ---------------------------------------------------------------- media that cannot be written


@pytest.fixture
def local(sqlite_database_url, monkeypatch):
    yield from _two_wait(sqlite_database_url, monkeypatch)


@pytest.fixture
def archived(local, sqlite_database_url, monkeypatch, tmp_path):
    """A study on such media, in a folder of its own: the system says so, SQLite itself refuses to write, and nothing may change there."""
    local.engine.dispose()
    common.engine().dispose()
    common.st.cache_resource.clear()
    path = tmp_path / "archive" / "overread.db"
    path.parent.mkdir()
    path.write_bytes(Path(make_url(sqlite_database_url).database).read_bytes())
    may = os.access
    monkeypatch.setattr(db.os, "access", lambda where, how: how != os.W_OK and may(where, how))
    monkeypatch.setenv("OVERREAD_DB", str(path))
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == ["overread.db"]


def test_a_study_on_media_that_cannot_be_written_opens_for_reading(archived, open_page):
    browse = check(open_page(str(archived), "browse", SOL))
    assert "1 response" in browse or "2 responses" in browse
    assert UNWRITABLE in check(open_page(str(archived), "review", IMANI))


def test_labels_can_be_taken_from_a_study_that_cannot_be_written(archived):
    engine = open_study(str(archived))
    with reading(engine) as session:
        actor = contents.people(session)[0]
    assert len(export_tables.table(engine, "verdicts"))
    export_tables.record(engine, actor=actor, what="verdicts", file_format="csv", n_rows=1)
    assert exposing.open_conversation(engine, actor, 1) is not None
    with pytest.raises(ReadOnly, match=re.escape(UNWRITABLE)), writing(engine) as session:
        session.connection().execute(text("DELETE FROM mark"))
    engine.dispose()
