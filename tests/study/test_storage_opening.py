"""Opening a study: migrations, copies, and what cannot be opened."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, inspect, select, text
from sqlalchemy.exc import StatementError
from sqlmodel import SQLModel

from evalcore.errors import OverreadError
from evalcore.study import db, store
from evalcore.study.db import connect, migrate, migrations, open_study, writing
from evalcore.study.schema import RaterKind
from evalcore.study.tables import Rater
from tests import world
from tests.conftest import postgres_database
from tests.processes import at_once
from tests.storage_steps import open_at_once

SEARCH = (
    "search_text",
    "ix_search_text",
)  # the full-text index: not in `tables`, since its kind depends on the database


HEAD = "12"


@pytest.fixture
def sqlite_database_url(tmp_path: Path) -> str:
    """Where no file is yet: here the migrations themselves are the matter."""
    return f"sqlite:///{tmp_path / 'overread.db'}"


@pytest.fixture
def postgres_database_url(postgres_url: str) -> Iterator[str]:
    """A database without any table."""
    with postgres_database(postgres_url) as url:
        yield url


@pytest.fixture
def of_revision_12(tmp_path: Path) -> str:
    """A study without any row, as the first version made it."""
    path = tmp_path / "overread.db"
    with closing(sqlite3.connect(path)) as study:
        study.executescript(Path(__file__).with_name("tables_12.sql").read_text())
    return str(path)


def not_of_search(_thing, name, _kind, _reflected, _compared):
    return name is None or not name.startswith(SEARCH)


@pytest.mark.filterwarnings(
    "ignore:Skipped unsupported reflection of expression-based index ix_(verdict|run_question|exposure)_"
)
@pytest.mark.filterwarnings(
    "ignore:autogenerate skipping metadata-specified expression-based index 'ix_(verdict|run_question|exposure)_"
)
def test_migrations_give_a_study_of_before_the_tables_of_the_code(of_revision_12):
    """A new study has them from the code itself: whether a migration is missing shows in one that is there."""
    engine = open_study(of_revision_12)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": not_of_search, "compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, SQLModel.metadata) == []
    engine.dispose()


def test_migrations_give_a_study_of_before_the_check_constraints_of_the_code(of_revision_12):
    """compare_metadata does not look at these."""
    engine = open_study(of_revision_12)
    for table in SQLModel.metadata.sorted_tables:
        declared = {c.name: str(c.sqltext) for c in table.constraints if isinstance(c, CheckConstraint)}
        assert {c["name"]: c["sqltext"] for c in inspect(engine).get_check_constraints(table.name)} == declared, (
            table.name
        )
    engine.dispose()


def test_a_word_of_no_vocabulary_is_not_written_and_a_new_one_needs_no_migration(database_url):
    engine = open_study(database_url)
    with (
        pytest.raises(StatementError, match="expected one of judge, reviewer, got 'oracle'"),
        writing(engine) as session,
    ):
        session.add(Rater(kind="oracle", name="x"))
    with writing(engine) as session:
        session.add(Rater(kind=RaterKind.JUDGE, name="x"))
    with engine.connect() as connection:
        assert connection.execute(select(Rater.kind)).scalars().all() == ["judge"]
        assert connection.execute(select(Rater.id).where(Rater.kind == "oracle")).all() == []
    engine.dispose()


def test_a_study_that_is_up_to_date_is_opened_as_it_is_and_without_a_copy(sqlite_database_url, tmp_path):
    open_study(sqlite_database_url).dispose()
    before = {path.name for path in tmp_path.iterdir()}
    engine = connect(sqlite_database_url)
    assert migrate(engine) is None
    engine.dispose()
    assert {path.name for path in tmp_path.iterdir()} <= before | {"overread.db-wal", "overread.db-shm"}


def test_a_migration_is_known_by_the_number_in_the_name_of_its_file():
    """So that a start asks for the number of a study's tables without Alembic."""
    numbers = [script.revision for script in ScriptDirectory.from_config(migrations()).walk_revisions()]
    assert list(db._revisions()) == numbers[::-1]


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
    monkeypatch.setattr(db, "_revisions", db._revisions.__wrapped__)  # read anew
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


@pytest.mark.parametrize("revision", ["0012", "1", "9", "11"])
def test_a_study_of_a_checkout_before_the_first_version_is_left_alone_and_the_way_out_is_told(
    revision, database_url, tmp_path
):
    engine = open_study(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    engine.dispose()
    with pytest.raises(
        OverreadError, match=r"before version 0\.1\.0.*`overread export`.*import those files.*Nothing was changed"
    ):
        open_study(database_url)
    assert not list(tmp_path.glob("*.before-migration-*"))


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
        ("mysql://me@host/db", "expected postgresql:// or the path of a SQLite file, got mysql://"),
        (
            "postgresql+psycopg2://me@host/db",
            r"--db: expected postgresql:// or the path of a SQLite file, got postgresql\+psycopg2://",
        ),
        ("https://host/study", r"--db: expected postgresql:// or the path of a SQLite file, got https://"),
        (
            "postgresql://me:secret@host:port/db",
            r"--db: expected postgresql://NAME:PASSWORD@HOST:PORT/DATABASE or the path of a SQLite file, got no database URL",
        ),
        (
            "://",
            r"--db: expected postgresql://NAME:PASSWORD@HOST:PORT/DATABASE or the path of a SQLite file, got no database URL",
        ),
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
