"""Whoever changes the study past the program, with the database in hands, is found out by `overread audit verify`."""

import json
import re
from contextlib import contextmanager

import pytest
from hypothesis import given, strategies as st
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.pool import NullPool
from sqlmodel import Session
from typer.testing import CliRunner

from evalcore.__main__ import app
from evalcore.errors import OverreadError
from evalcore.importing import import_file
from evalcore.settings import settings
from evalcore.study import store
from evalcore.study.acting import opened
from evalcore.study.audit import trail, triggers
from evalcore.study.audit.chain import verify
from evalcore.study.audit.row_hashes import Digest, hashed_columns, ledger_row, row_hash, runs_told
from evalcore.study.db import connect, open_study, reading, trail_file, writing
from evalcore.study.schema import Administrator
from tests import world
from tests.storage_steps import refused


@pytest.fixture
def read(database_url):
    """A study in which a physician has read one response."""
    small = world.made(database_url)
    with writing(small.engine) as session:
        store.set_guideline(session, "Read with care.", actor="Ana Ruiz")
    world.assigned(small)
    world.submitted(small, "Dr. Imani Noor", "+-")
    yield small
    small.engine.dispose()


def report_on(engine, **asked):
    with reading(engine) as session:
        return verify(session, **asked)


@contextmanager
def unguarded(engine):
    """A transaction in which no trigger fires and no foreign key holds, and after which all triggers stand again as they stood."""
    bare = create_engine(engine.url, poolclass=NullPool)  # SQLite's own defaults
    with Session(bare) as session, session.begin():
        connection = session.connection()
        if engine.dialect.name == "postgresql":
            named = (
                "SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal"
            )
            kept = connection.execute(text(named)).all()
            off = [f"ALTER TABLE {table} DISABLE TRIGGER {name}" for name, table in kept]
            on = [f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}" for name, table in kept]
            off.append("SET LOCAL session_replication_role = replica")  # for the keys
        else:
            connection.exec_driver_sql("BEGIN")
            kept = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).all()
            off, on = [f"DROP TRIGGER {name}" for name, _ in kept], [made for _, made in kept]
        for statement in off:
            connection.exec_driver_sql(statement)
        yield session
        for statement in on:
            connection.exec_driver_sql(statement)


def test_a_study_that_was_read_holds(read):
    report = report_on(read.engine)
    assert (report.faults, report.holds, report.n_verdicts) == ((), True, 6)


ATTACKS = {
    "UPDATE verdict SET label = 'not_met' WHERE id = 1": r"Verdict 1 was changed after it was written\.",
    "UPDATE verdict SET label = NULL": r"Verdict 1 was changed after it was written \(6 were in all\)\.",
    "UPDATE verdict SET blinded = NULL WHERE id = 5": r"Verdict 5 was changed",
    "UPDATE verdict SET confidence = 0.5 WHERE id = 2": r"Verdict 2 was changed",
    "UPDATE verdict SET created_at = '2020-01-01 00:00:00' WHERE id = 6": r"Verdict 6 was changed",
    "UPDATE verdict SET row_hash = NULL WHERE id = 2": r"Verdict 2 was changed",
    "UPDATE verdict SET id = 99 WHERE id = 2": r"Verdict 2 is gone\. Verdict 99 is named by no event\.",
    "DELETE FROM verdict WHERE id = 6": r"Verdict 6 is gone\.",
    "DELETE FROM verdict": r"Verdict 1 is gone \(6 are in all\)\.",
    (
        "INSERT INTO verdict (id, example_id, response_id, criterion_id, rater_id, stage, right_for_wrong_reason, created_at, row_hash) "
        "SELECT 7, example_id, response_id, criterion_id, rater_id, 'open', right_for_wrong_reason, created_at, row_hash FROM verdict WHERE id = 5"
    ): r"Verdict 7 is named by no event\. Verdict 7 was changed",
    "UPDATE criterion SET points = 9 WHERE id = 1": r"Criterion 1 was changed after it was written\.",
    "UPDATE criterion SET text = 'Says hello.' WHERE id = 4": r"Criterion 4 was changed",
    "UPDATE response SET text = 'Ignore it.' WHERE id = 2": r"Response 2 was changed",
    "UPDATE example SET messages = '[]' WHERE id = 2": r"Example 2 was changed",
    "UPDATE guideline SET text = 'Read.' WHERE version = 1": r"Guideline 1 was changed",
    "UPDATE rater SET name = 'Dr. Tove Lind' WHERE name = 'Dr. Imani Noor'": r"Rater 2 was changed",
    "UPDATE person SET name = 'Dr. X' WHERE id = 1": r"Person 1 was changed",
    "UPDATE task SET inclusion_probability = 0.5 WHERE id = 1": r"Assigned item 1 was changed",
    "DELETE FROM guideline": r"Guideline 1 is gone\.",
    (
        "INSERT INTO criterion (id, example_id, position, text, points, tags) VALUES (5, 2, 3, 'Is kind.', 5, '[]')"
    ): r"Criterion 5 was put in past the program",
    "UPDATE row_hash SET row_id = 9 WHERE id = 3": r"Event \d tells of other content",
    "DELETE FROM row_hash WHERE id = 5": r"Kept hash 5 is gone",
    "DELETE FROM audit_event WHERE id > 4": r"Verdict 5 is named by no event \(2 are in all\)",
    "DELETE FROM audit_event": r"It is empty, and the study is not\.",
}


def test_what_was_changed_past_the_triggers_is_named(read):
    for attack, expected in ATTACKS.items():
        with unguarded(read.engine) as session:
            step = session.begin_nested()
            session.execute(text(attack))
            report = verify(session)
            step.rollback()
        assert report.broken_event is None
        assert not report.holds
        assert re.search(expected, report.sentence), (attack, report.sentence)
    assert report_on(read.engine).holds


def test_every_column_of_a_verdict_is_covered(database_url):
    """Also those that later versions add."""
    engine = open_study(database_url)
    columns = {column["name"] for column in inspect(engine).get_columns("verdict")}
    engine.dispose()
    assert set(hashed_columns("verdict")) == columns - {"id", "row_hash"}


plain = st.none() | st.integers(-(2**31), 2**31) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))


@given(row=st.dictionaries(st.sampled_from(hashed_columns("verdict")), plain), data=st.data())
def test_a_hash_changes_with_every_value_and_with_no_empty_column(row, data):
    names, more = sorted(row), sorted([*row, "added_later"])
    assert row_hash(names, [row[name] for name in names]) == row_hash(more, [row.get(name) for name in more])
    if names:
        column, value = data.draw(st.sampled_from(names)), data.draw(plain)
        changed = row | {column: value}
        is_same = repr(changed[column]) == repr(row[column])
        hashes = [row_hash(names, [given[name] for name in names]) for given in (row, changed)]
        assert (hashes[0] == hashes[1]) == is_same


def test_bytes_changed_in_the_file_are_found(sqlite_database_url, tmp_path):
    small = world.made(sqlite_database_url)
    with small.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    small.engine.dispose()
    path = tmp_path / "overread.db"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"metIt does.", b"metIt didn\xff", 1))
    engine = open_study(sqlite_database_url)
    assert path.read_bytes() != content
    assert re.search(r"Verdict \d was changed after it was written\.", report_on(engine).sentence)
    engine.dispose()


# ---------------------------------------------------------------- the guards


WITHOUT_GUARDS = {
    "sqlite": {
        "DROP TRIGGER verdict_no_update": r"The trigger verdict_no_update is missing\.",
        "CREATE TRIGGER mine AFTER INSERT ON person BEGIN SELECT 1; END": r"The trigger mine is none of the program's\.",
    },
    "postgresql": {
        "DROP TRIGGER verdict_append_only ON verdict": r"The trigger verdict_append_only is missing\.",
        "ALTER TABLE verdict DISABLE TRIGGER verdict_append_only": r"verdict_append_only is switched off\.",
        "ALTER TABLE verdict DISABLE TRIGGER ALL": r"verdict_append_only is switched off\.",
        (
            "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
        ): r"The trigger analysis_append_only was changed \(\d of \d+ in all\)",
        "SET session_replication_role = replica": r"No trigger fires: session_replication_role is replica\.",
    },
}


@pytest.mark.parametrize(
    ("kind", "attack"), [(kind, attack) for kind, found in WITHOUT_GUARDS.items() for attack in found]
)
def test_a_trigger_that_does_not_stand_as_it_was_made_is_named(request, kind, attack):
    url = request.getfixturevalue({"sqlite": "sqlite_database_url", "postgresql": "postgres_database_url"}[kind])
    engine = connect(url)
    with Session(engine) as session:
        session.connection().exec_driver_sql(attack)
        report = verify(session)
        session.rollback()
    assert re.search(WITHOUT_GUARDS[kind][attack], report.sentence), report.sentence
    engine.dispose()


def test_the_triggers_are_those_that_verify_expects(database_url):
    engine = open_study(database_url)
    with reading(engine) as session:
        assert trail.triggers(session) == triggers.texts(engine.dialect.name)
    engine.dispose()


REFUSED = {
    "UPDATE criterion SET text = 'x' WHERE id = 1": "criterion was read: UPDATE refused",
    "UPDATE criterion SET points = 9 WHERE id = 1": "criterion was read: UPDATE refused",
    "UPDATE response SET text = 'x' WHERE id = 1": "response was read: UPDATE refused",
    "UPDATE guideline SET text = 'x'": "guideline is append-only: UPDATE refused",
    "DELETE FROM guideline": "guideline is append-only: DELETE refused",
    "UPDATE task SET inclusion_probability = 0.1": "task was read: UPDATE refused",
    "UPDATE reading SET blinded = false WHERE locked_at IS NOT NULL": "reading was read: UPDATE refused",
    "DELETE FROM reading": "reading was read: DELETE refused",
    "UPDATE row_hash SET row_id = 2": "row_hash is append-only: UPDATE refused",
    "DELETE FROM row_hash": "row_hash is append-only: DELETE refused",
}


def test_what_was_read_cannot_be_changed(read):
    for statement, expected in REFUSED.items():
        assert expected in refused(read.engine, statement)


def test_what_nobody_has_read_may_be_completed(read):
    with read.engine.begin() as connection:
        connection.execute(text("UPDATE criterion SET points = 9 WHERE id = 3"))
        connection.execute(text("UPDATE criterion SET position = 5, tags = '[]' WHERE id = 1"))


# ---------------------------------------------------------------- a hash that was kept elsewhere


def rewritten(engine):
    """Change a verdict and make everything fit again: its hash, its act's digest, and the chain."""
    with unguarded(engine) as connection:
        connection.execute(text("UPDATE verdict SET label = 'not_met' WHERE id = 1"))
    with reading(engine) as session:
        found = {row.number: row.found for row in trail.verdicts(session)}
        kept = {number: ledger_row(*rest) for number, *rest in trail.ledger(session)}
        events = [event for _, event in trail.events(session)]
    last = store.FIRST_PREVIOUS_HASH
    with unguarded(engine) as connection:
        connection.execute(text("UPDATE verdict SET row_hash = :new WHERE id = 1"), {"new": found[1]})
        for event in events:
            told = json.loads(event.detail)
            for table, wrote in told.get("wrote", {}).items():
                digest = Digest()
                for first, end in runs_told(wrote["rows"]):
                    for number in range(first, end + 1):
                        digest.add(number, (found if table == "verdict" else kept)[number])
                wrote["sha256"] = digest.hex()
            event.detail, event.previous_hash = json.dumps(told, ensure_ascii=False), last
            last = event.hash = event.expected_hash()
            values = {"n": event.id, "detail": event.detail, "before": event.previous_hash, "own": last}
            change = "UPDATE audit_event SET detail = :detail, previous_hash = :before, hash = :own WHERE id = :n"
            connection.execute(text(change), values)


def heads(engine):
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT hash FROM audit_event ORDER BY id")).scalars())


def test_a_trail_that_was_written_anew_holds_but_for_a_hash_that_was_kept(read):
    kept = heads(read.engine)[-1]
    assert report_on(read.engine, expected=kept).holds
    rewritten(read.engine)
    assert report_on(read.engine).holds
    assert f"No event has the hash {kept} (--expect)" in report_on(read.engine, expected=kept).sentence


def test_a_trail_that_was_cut_off_with_its_rows_holds_but_for_a_hash_that_was_kept(read):
    *_, earlier, kept = heads(read.engine)
    with unguarded(read.engine) as connection:
        connection.execute(text("DELETE FROM verdict WHERE id > 4"))
        connection.execute(text("DELETE FROM row_hash WHERE table_name = 'rater' AND row_id > 1"))
        connection.execute(text("DELETE FROM rater WHERE id > 1"))
        connection.execute(text(f"DELETE FROM audit_event WHERE hash = '{kept}'"))
    assert report_on(read.engine).holds
    assert report_on(read.engine, expected=earlier).holds
    assert "events were removed from the end" in report_on(read.engine, expected=kept).sentence


@pytest.mark.parametrize("expected", ["", "abc", "g" * 64, "A" * 64, "a" * 63])
def test_what_is_no_hash_is_refused(read, expected):
    with pytest.raises(OverreadError, match="--expect: expected 64 hexadecimal digits"):
        report_on(read.engine, expected=expected)


def test_the_hashes_of_acts_are_kept_in_a_file_and_compared(database_url, tmp_path, monkeypatch):
    kept = tmp_path / "trail.txt"
    monkeypatch.setenv("OVERREAD_TRAIL", str(kept))
    assert settings().trail == kept
    small = world.made(database_url, is_copy=False)
    world.said(small, world.Label.MET)
    assert [line.split()[-1] for line in kept.read_text().splitlines()] == heads(small.engine)[-2:]
    assert report_on(small.engine, kept=kept).holds
    rewritten(small.engine)
    assert f"({kept} line 1)" in report_on(small.engine, kept=kept).sentence
    small.engine.dispose()


def test_studies_of_the_same_file_name_keep_their_hashes_apart_in_a_folder(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("OVERREAD_TRAIL", str(kept))
    made = []
    for name in ("cardio", "skin"):
        (tmp_path / name).mkdir()
        opened(str(tmp_path / name / "study.db")).dispose()
        made.append(world.made(str(tmp_path / name / "study.db"), is_copy=False))
    files = set()
    for small in made:
        with reading(small.engine) as session:
            files.add(path := trail_file(session))
        assert [line.split()[-1] for line in path.read_text().splitlines()] == heads(small.engine)[-1:]
        assert report_on(small.engine, kept=path).holds
        small.engine.dispose()
    assert files == set(kept.iterdir())
    assert len(files) == 2


def test_an_act_is_saved_also_where_its_hash_cannot_be_kept(database_url, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("OVERREAD_TRAIL", str(tmp_path / "nowhere" / "trail.txt"))
    small = world.made(database_url, is_copy=False)
    assert "could not be kept" in caplog.text
    assert report_on(small.engine).holds
    small.engine.dispose()


# ---------------------------------------------------------------- acts that write by the thousand


def test_an_import_and_a_completed_rubric_hold(database_url, tmp_path):
    small = world.made(database_url, is_copy=False)
    path = tmp_path / "more.csv"
    path.write_text(
        "example_id,model,criterion_position,rater,label,dataset\n"
        "prompt-0,Alder-2,1,Dr. Elsewhere,not_met,invented\nprompt-0,Alder-2,2,Dr. Elsewhere,met,invented\n"
    )
    import_file(small.engine, path, actor=Administrator(name="Ana Ruiz"), dataset="invented")
    assert report_on(small.engine).sentence.startswith("The audit trail holds")
    with small.engine.connect() as connection:
        detail = connection.execute(text("SELECT detail FROM audit_event ORDER BY id DESC LIMIT 1")).scalar_one()
    assert json.loads(detail)["wrote"]["verdict"]["rows"] == "5-6"
    small.engine.dispose()


@pytest.mark.slow_on_postgresql
def test_the_demo_study_holds(demo_url):
    engine = open_study(demo_url)
    report = report_on(engine)
    assert (report.broken_event, report.faults) == (None, ())
    assert report.n_verdicts > 1_000
    engine.dispose()


def test_the_command_fails_where_the_trail_has_not_the_expected_hash(sqlite_database_url, monkeypatch):
    small = world.made(sqlite_database_url, is_copy=False)
    monkeypatch.setenv("OVERREAD_DB", sqlite_database_url)
    runner, head = CliRunner(), heads(small.engine)[1]
    small.engine.dispose()
    assert runner.invoke(app, ["audit", "verify", "--expect", head]).exit_code == 0
    missed = runner.invoke(app, ["audit", "verify", "--expect", "a" * 64])
    assert missed.exit_code == 1
    assert "events were removed from the end, or the trail was written anew" in missed.output
