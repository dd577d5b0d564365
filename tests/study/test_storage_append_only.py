"""Verdicts and audit events are only ever added, whichever way the database is asked to change them, also by SQLite with its own defaults."""

import pytest
from sqlalchemy import create_engine, text

from evalcore.study.db import open_study
from tests import world
from tests.storage_steps import refused, rows

APPEND_ONLY = ("verdict", "audit_event")


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET {column} = 'x'",
        "UPDATE {table} SET {column} = 'x' WHERE id = 1",
        "DELETE FROM {table}",
        "DELETE FROM {table} WHERE id = 1",
        "INSERT INTO {table} SELECT * FROM {table} WHERE id = 1 ON CONFLICT (id) DO UPDATE SET {column} = 'x'",
    ],
)
def test_a_row_can_be_neither_changed_nor_removed(small, table, statement):
    before = rows(small.engine, table)
    column = {"verdict": "explanation", "audit_event": "actor"}[table]
    said = refused(small.engine, statement.format(table=table, column=column))
    assert f"{table} is append-only" in said
    assert rows(small.engine, table) == before != []


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize(
    "statement", ["INSERT OR REPLACE INTO {t} SELECT * FROM {t}", "REPLACE INTO {t} SELECT * FROM {t}"]
)
def test_replace_is_refused_on_sqlite(sqlite_database_url, table, statement):
    small = world.made(sqlite_database_url)
    before = rows(small.engine, table)
    assert f"{table} is append-only" in refused(small.engine, statement.format(t=table))
    assert rows(small.engine, table) == before != []


def test_update_or_replace_past_another_unique_column_is_refused_on_sqlite(sqlite_database_url):
    small = world.made(sqlite_database_url)
    said = refused(
        small.engine,
        "INSERT OR REPLACE INTO audit_event (at, actor, action, subject, detail, previous_hash, hash) "
        "SELECT at, 'somebody else', action, subject, detail, previous_hash, 'x' FROM audit_event WHERE id = 1",
    )
    assert "audit_event is append-only" in said


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE verdict",
        "TRUNCATE audit_event",
        "TRUNCATE rater CASCADE",
        "TRUNCATE example CASCADE",
        "MERGE INTO verdict v USING (SELECT 1 AS id) s ON v.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_truncate_and_merge_are_refused_on_postgresql(postgres_database_url, statement):
    small = world.made(postgres_database_url)
    before = [rows(small.engine, table) for table in APPEND_ONLY]
    assert "is append-only" in refused(small.engine, statement)
    assert [rows(small.engine, table) for table in APPEND_ONLY] == before
    small.engine.dispose()


def test_what_has_verdicts_cannot_be_removed_from_under_them(small):
    for table in ("example", "response", "criterion", "rater"):
        assert "foreign key" in refused(small.engine, f"DELETE FROM {table} WHERE id = 1").lower()


def test_other_tables_may_change(small):
    with small.engine.begin() as connection:
        connection.execute(text("UPDATE person SET languages = '[\"sw\"]' WHERE id = 1"))
        connection.execute(text("DELETE FROM person WHERE id = 2"))
    assert [row.languages for row in rows(small.engine, "person")] == ['["sw"]', "[]"]


# ---------------------------------------------------------------- SQLite's settings


def test_foreign_keys_and_recursive_triggers_are_on_in_every_sqlite_connection(sqlite_database_url):
    engine = open_study(sqlite_database_url)
    with engine.connect() as one, engine.connect() as two:
        for connection in (one, two):
            for pragma in ("foreign_keys", "recursive_triggers"):
                assert connection.execute(text(f"PRAGMA {pragma}")).scalar_one() == 1
            assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_replace_is_refused_on_a_bare_sqlite_connection_too(sqlite_database_url, table):
    """Whoever opens the file with SQLite's own defaults has no recursive triggers."""
    small = world.made(sqlite_database_url)
    before = rows(small.engine, table)
    small.engine.dispose()
    bare = create_engine(sqlite_database_url)
    assert f"{table} is append-only" in refused(bare, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    assert rows(bare, table) == before != []
    bare.dispose()


def test_replace_by_the_item_or_by_what_is_superseded_is_refused_on_a_bare_sqlite_connection(sqlite_database_url):
    world.made(sqlite_database_url).engine.dispose()
    bare = create_engine(sqlite_database_url)
    columns = (
        "example_id, response_id, criterion_id, rater_id, stage, label, right_for_wrong_reason, created_at, supersedes"
    )
    one = f"INSERT OR REPLACE INTO verdict ({columns}) SELECT {columns} FROM verdict WHERE id = 1"
    assert "verdict is append-only" in refused(bare, one)
    bare.dispose()
