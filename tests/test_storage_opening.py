"""Opening a study: migrations, copies, and what cannot be opened."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import SQLModel

from evalcore import db, store
from evalcore.auditing import verify
from evalcore.db import connect, migrate, open_study, reading, writing
from evalcore.errors import OverreadError
from tests import world
from tests.conftest import postgres_database
from tests.processes import at_once

SEARCH = (
    "search_text",
    "ix_search_text",
)  # the full-text index: not in `tables`, since its kind depends on the database


HEAD = "0012"


@pytest.fixture
def sqlite_database_url(tmp_path: Path) -> str:
    """Where no file is yet: here the migrations themselves are the matter."""
    return f"sqlite:///{tmp_path / 'overread.db'}"


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """A database without any table."""
    with postgres_database(postgres_url) as url:
        yield url


def not_of_search(_thing, name, _kind, _reflected, _compared):
    return name is None or not name.startswith(SEARCH)


@pytest.mark.filterwarnings(
    "ignore:Skipped unsupported reflection of expression-based index ix_(verdict|run_question|exposure)_"
)
@pytest.mark.filterwarnings(
    "ignore:autogenerate skipping metadata-specified expression-based index 'ix_(verdict|run_question|exposure)_"
)
def test_the_migrations_give_the_tables_of_the_code(database_url):
    engine = open_study(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": not_of_search, "compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, SQLModel.metadata) == []
    engine.dispose()


def test_the_migrations_give_the_check_constraints_of_the_code(database_url):
    """compare_metadata does not look at these."""
    engine = open_study(database_url)
    for table in SQLModel.metadata.sorted_tables:
        declared = {c.name for c in table.constraints if str(c.name).startswith("ck_")}
        assert {c["name"] for c in inspect(engine).get_check_constraints(table.name)} == declared, table.name
    engine.dispose()


def test_the_words_that_the_database_takes_are_those_of_the_code(sqlite_database_url):
    """A word that joins an enum needs a migration."""
    engine = open_study(sqlite_database_url)
    for table in SQLModel.metadata.sorted_tables:
        declared = {str(c.name): str(c.sqltext) for c in table.constraints if str(c.name).startswith("ck_")}
        found = {c["name"]: c["sqltext"] for c in inspect(engine).get_check_constraints(table.name)}
        assert found == declared
    engine.dispose()


def test_a_study_that_is_up_to_date_is_opened_as_it_is_and_without_a_copy(sqlite_database_url, tmp_path):
    open_study(sqlite_database_url).dispose()
    before = {path.name for path in tmp_path.iterdir()}
    engine = connect(sqlite_database_url)
    assert migrate(engine) is None
    engine.dispose()
    assert {path.name for path in tmp_path.iterdir()} <= before | {"overread.db-wal", "overread.db-shm"}


@pytest.fixture
def with_two_revisions(tmp_path, monkeypatch):
    """A copy of the migrations with one more, that adds a column, so that today's studies are old ones."""
    folder = tmp_path / "code"
    shutil.copytree(Path(db.__file__).parent / "migrations", folder / "migrations")
    later = folder / "migrations" / "versions" / "9000_added.py"
    later.write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision, branch_labels, depends_on = '9000', '{HEAD}', None, None\n\n"
        "def upgrade():\n    op.add_column('person', sa.Column('added', sa.String()))\n"
        "    if op.get_bind().execute(sa.text(\"SELECT count(*) FROM person WHERE name = 'breaks'\")).scalar_one():\n"
        "        op.execute('SELECT no_such_column FROM person')\n"
    )
    monkeypatch.setattr(db, "files", lambda _package: folder)
    monkeypatch.setattr(db, "_scripts", db._scripts.__wrapped__)  # read anew
    return folder


def test_a_file_of_an_older_version_is_copied_and_then_migrated(sqlite_database_url, tmp_path, request):
    old = world.made(sqlite_database_url)
    n_events = world.count(old.engine, "audit_event")
    old.engine.dispose()
    request.getfixturevalue("with_two_revisions")
    engine = open_study(sqlite_database_url)
    assert "added" in {column["name"] for column in inspect(engine).get_columns("person")}
    assert world.count(engine, "audit_event") == n_events
    engine.dispose()
    with closing(sqlite3.connect(tmp_path / f"overread.db.before-migration-{HEAD}")) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
        assert copy.execute("SELECT count(*) FROM audit_event").fetchall() == [(n_events,)]
        assert (tmp_path / f"overread.db.before-migration-{HEAD}").stat().st_mode & 0o777 == 0o600
        assert "added" not in {column[1] for column in copy.execute("PRAGMA table_info(person)")}


def test_a_migration_that_fails_leaves_the_study_as_it_was(database_url, request):
    old = world.made(database_url)
    world.add_researcher(old.engine, "breaks", world.Role.LEAD)
    old.engine.dispose()
    request.getfixturevalue("with_two_revisions")
    with pytest.raises(OverreadError, match=r"cannot be opened as a study: .*no_such_column"):
        open_study(database_url)
    engine = connect(database_url)
    assert "added" not in {column["name"] for column in inspect(engine).get_columns("person")}
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == HEAD
    engine.dispose()


@pytest.fixture
def first_revision(database_url, monkeypatch):
    """A study as the first version wrote it, with a verdict and the one that supersedes it."""
    upgrade = command.upgrade
    with monkeypatch.context() as only_first:
        only_first.setattr(ScriptDirectory, "get_current_head", lambda _scripts: "0001")
        only_first.setattr(db.command, "upgrade", lambda config, _head: upgrade(config, "0001"))
        engine = open_study(database_url)
    at = "'2026-03-01 10:00:00'"
    with engine.begin() as connection:
        for insert in (
            f"study (id, key, created_at) VALUES (1, 'k', {at})",
            "example (id, dataset, prompt_id, messages, n_turns, first_words, tags, provisional) VALUES (1, 'd', 'p', '[]', 1, '', '[]', false)",
            "criterion (id, example_id, position, text, points, tags) VALUES (1, 1, 1, 't', 5, '[]')",
            "model (id, name) VALUES (1, 'm')",
            "response (id, example_id, model_id, dataset, sample_index, text) VALUES (1, 1, 1, 'd', 0, 'r')",
            "rater (id, kind, name, prompt_version) VALUES (1, 'reviewer', 'Dr. A', '')",
            *(
                "verdict (id, example_id, response_id, criterion_id, rater_id, stage, label, right_for_wrong_reason, created_at, supersedes)"
                f" VALUES ({number}, 1, 1, 1, 1, 'open', '{label}', false, {at}, {earlier})"
                for number, label, earlier in ((1, "met", "NULL"), (2, "not_met", 1), (3, "met", 2))
            ),
        ):
            connection.execute(text(f"INSERT INTO {insert}"))
        before = connection.execute(text("SELECT * FROM verdict ORDER BY id")).mappings().all()
    engine.dispose()
    return [dict(row) for row in before]


def test_verdicts_of_the_first_version_are_kept_and_stay_append_only(database_url, first_revision):
    engine = open_study(database_url)
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(text("SELECT * FROM verdict ORDER BY id")).mappings()]
    added = {
        "reason",
        "error_kind",
        "conflict_cause",
        "guideline_version",
        "not_blind",
        "row_hash",
        "source",
        "source_hash",
        "recorded_at",
    }
    assert [{name: value for name, value in row.items() if name not in added} for row in rows] == first_revision
    assert all(row[name] is None for row in rows for name in added - {"row_hash"})
    with reading(engine) as session:
        report = verify(session)
    assert (report.faults, report.n_events, report.n_verdicts) == (
        (),
        1,
        3,
    )  # the event says that nothing vouched for them before
    for change in ("UPDATE verdict SET label = 'met'", "DELETE FROM verdict WHERE id = 3"):
        with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
            connection.execute(text(change))
    with pytest.raises(DBAPIError), engine.begin() as connection:  # superseded twice
        connection.execute(
            text(
                "INSERT INTO verdict (example_id, response_id, criterion_id, rater_id, stage, right_for_wrong_reason, created_at, supersedes)"
                " VALUES (1, 1, 1, 1, 'open', false, '2026-03-02 10:00:00', 2)"
            )
        )
    engine.dispose()


def test_a_study_of_a_newer_version_is_left_alone_and_named(database_url, tmp_path):
    engine = open_study(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(OverreadError, match=r"was written by a newer version of Overread .*9999.* Update Overread"):
        open_study(database_url)
    assert not list(tmp_path.glob("*.before-migration-*"))


def test_a_database_of_something_else_is_left_alone(database_url):
    engine = connect(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE holiday_photos (id integer)"))
    with pytest.raises(OverreadError, match="is a database of something else"):
        open_study(database_url)
    assert inspect(engine).get_table_names() == ["holiday_photos"]
    engine.dispose()


def test_an_empty_file_becomes_a_study(tmp_path):
    (tmp_path / "new.db").touch()
    engine = open_study(str(tmp_path / "new.db"))
    assert "verdict" in inspect(engine).get_table_names()
    engine.dispose()


def test_a_new_study_is_its_owners_alone_with_the_files_beside_it(tmp_path, request):
    request.addfinalizer(partial(os.umask, os.umask(0o022)))
    engine = open_study(str(tmp_path / "overread.db"))
    with writing(engine) as session:
        store.ensure_study(session)
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    engine.dispose()
    assert modes == dict.fromkeys(("overread.db", "overread.db-wal", "overread.db-shm"), 0o600)


def test_a_file_that_is_no_database_is_refused_and_stays_as_it_is(tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear colleague, " * 1000)
    before = letter.read_bytes()
    with pytest.raises(OverreadError, match=r"letter\.txt cannot be opened as a study: file is not a database"):
        open_study(str(letter))
    assert letter.read_bytes() == before


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OverreadError, match=r"nowhere/study\.db cannot be opened as a study: unable to open"):
        open_study(str(tmp_path / "nowhere" / "study.db"))
    with pytest.raises(OverreadError, match="cannot be opened as a study: unable to open"):
        open_study(str(tmp_path))


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("mysql://me@host/db", "mysql:// came, expected postgresql:// or the path of a SQLite file"),
        ("postgresql+psycopg2://me@host/db", "postgresql\\+psycopg2:// came, expected postgresql://"),
        ("https://host/study", "https:// came, expected postgresql://"),
        ("postgresql://me:secret@host:port/db", "no database URL came, expected postgresql://NAME"),
        ("://", "no database URL came"),
    ],
)
def test_a_url_of_another_kind_is_refused_without_showing_its_password(location, said):
    with pytest.raises(OverreadError, match=said) as refusal:
        open_study(location)
    assert "secret" not in str(refusal.value)


def test_a_server_that_does_not_answer_is_one_sentence_without_the_password(tmp_path):
    with pytest.raises(OverreadError, match="cannot be opened as a study") as refusal:
        open_study(f"postgresql://me:secret@/study?host={tmp_path}")
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_path_with_spaces_and_signs_is_a_path(tmp_path):
    path = tmp_path / "a study #1 50% & co ünï.db"
    open_study(str(path)).dispose()
    assert path.exists()


def open_at_once(start, location):
    """In a process of its own: wait for the other one, then open."""
    start()
    engine = open_study(location)
    with writing(engine) as session:
        key = store.ensure_study(session).key
    engine.dispose()
    return key


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database_url(request, tmp_path):
    """A database with nothing in it, which nobody has opened yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'new.db'}"
        return
    with postgres_database(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.mark.parametrize("_again", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_processes_that_open_a_new_database_at_once_all_get_the_same_study(new_database_url, _again):
    answers = at_once(*[(open_at_once, new_database_url)] * 3)
    engine = open_study(new_database_url)
    with writing(engine) as session:
        key = store.ensure_study(session).key
    engine.dispose()
    assert answers == [key] * 3
