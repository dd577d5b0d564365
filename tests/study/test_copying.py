"""A study from SQLite to PostgreSQL and back: the same rows, the same trail, the same exports, the same search."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from evalcore.errors import OverreadError
from evalcore.export import tables as export_tables
from evalcore.study import browse, db
from evalcore.study.audit.triggers import grant
from evalcore.study.backups import copy_study
from evalcore.study.db import connect, open_study, reading
from evalcore.study.tables import TABLES
from tests import world
from tests.conftest import plain, postgres_database, run

WHAT = ("labels", "verdicts", "scores", "criteria", "acuity", "cases")
WORDS = ("chest pain", "fever", "guideline", "胸痛")


@pytest.fixture
def empty_postgres(postgres_url):
    with postgres_database(postgres_url) as url:
        yield url


def told(location: str) -> dict[str, str]:
    engine = connect(location)
    try:
        exported = {what: export_tables.table(engine, what).to_csv() for what in WHAT}
        with reading(engine) as session:
            found = {
                word: sorted(browse.examples(session, browse.Filters(search=word))["example_id"]) for word in WORDS
            }
        return exported | {"found": str(found)}
    finally:
        engine.dispose()


@pytest.mark.slow
def test_a_study_is_the_same_in_postgresql_and_back_in_sqlite(demo_file, empty_postgres, tmp_path):
    there, back = copy_study(str(demo_file), empty_postgres), copy_study(empty_postgres, str(tmp_path / "back.db"))
    assert there.holds
    assert (there.sentence, there.last_hash) == (back.sentence, back.last_hash)
    assert told(str(demo_file)) == told(empty_postgres) == told(str(tmp_path / "back.db"))
    engines = connect(empty_postgres), connect(str(demo_file))
    for table in set(TABLES) - {"search_entry", "search_pending"}:
        assert len({world.count(engine, table) for engine in engines}) == 1, table
    for engine in engines:
        engine.dispose()


def test_the_copy_goes_on_by_itself(demo_file, empty_postgres):
    """Numbers follow on, the guards stand, and a new act is in the trail."""
    copy_study(str(demo_file), empty_postgres)
    engine = open_study(empty_postgres)
    n_before = world.count(engine, "audit_event")
    world.add_researcher(engine, "Dr. New", world.Role.REVIEWER)
    assert world.count(engine, "audit_event") == n_before + 1
    with pytest.raises(Exception, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql("UPDATE verdict SET label = 'met'")
    engine.dispose()


def test_nothing_is_overwritten(demo_file, sqlite_database_url):
    made = world.made(sqlite_database_url)
    before = made.events()
    with pytest.raises(OverreadError, match="Nothing was overwritten"):
        copy_study(str(demo_file), sqlite_database_url)
    assert made.events() == before
    made.engine.dispose()


def test_a_copy_that_is_broken_off_leaves_nothing(demo_file, tmp_path, monkeypatch):
    target = tmp_path / "copy.db"

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalcore.study.backups.upgrade", broken)
    with pytest.raises(KeyboardInterrupt):
        copy_study(str(demo_file), str(target))
    monkeypatch.undo()
    assert copy_study(str(demo_file), str(target)).holds


# ---------------------------------------------------------------- the role of a running server


@pytest.fixture
def as_app(empty_postgres):
    """A study in PostgreSQL, and its URL as a role that owns nothing."""
    open_study(empty_postgres).dispose()
    url = make_url(empty_postgres)
    role = f"app_{url.database}"
    run(plain(url), f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    yield empty_postgres, url.set(username=role, password="x").render_as_string(hide_password=False), role
    run(plain(url), f"DROP OWNED BY {role}", f"DROP ROLE {role}")


FORBIDDEN = (
    "UPDATE verdict SET label = 'met'",
    "DELETE FROM audit_event",
    "TRUNCATE verdict",
    "DELETE FROM row_hash",
    "ALTER TABLE verdict DISABLE TRIGGER USER",
    "DROP TRIGGER verdict_append_only ON verdict",
    "CREATE TRIGGER mine BEFORE INSERT ON verdict FOR EACH ROW EXECUTE FUNCTION refuse_change()",
    "CREATE TABLE mine (id int)",
    "SET session_replication_role = replica",
    "UPDATE alembic_version SET version_num = '9'",
)


def test_a_servers_role_works_and_cannot_touch_what_was_said(as_app):
    owner_url, app_url, role = as_app
    owner = connect(owner_url)
    grant(owner, role)
    owner.dispose()
    made = world.made(app_url)
    world.assigned(made)
    world.submitted(made, "Dr. Imani Noor", "+-")
    assert world.count(made.engine, "verdict") > 0
    for statement in FORBIDDEN:
        with (
            pytest.raises(Exception, match=r"permission denied|must be owner|append-only"),
            made.engine.begin() as connection,
        ):
            connection.exec_driver_sql(statement)
    made.engine.dispose()


def test_a_server_whose_role_may_not_change_tables_says_what_to_do(as_app, monkeypatch):
    owner_url, app_url, role = as_app
    owner = connect(owner_url)
    grant(owner, role)
    owner.dispose()
    monkeypatch.setattr(db, "_revisions", lambda: ("12", "13"))
    with pytest.raises(OverreadError, match="overread migrate --app-role ROLE"):
        open_study(app_url)


@pytest.mark.parametrize("role", ["nobody_here", "postgres"])
def test_rights_are_given_to_a_role_without_its_own(role, as_app):
    owner = connect(as_app[0])
    with pytest.raises(OverreadError, match="expected a role of PostgreSQL without rights of its own"):
        grant(owner, role)
    owner.dispose()


def test_sqlite_has_no_roles(sqlite_database_url):
    engine = connect(sqlite_database_url)
    with pytest.raises(OverreadError, match="got SQLite"):
        grant(engine, "x")
    engine.dispose()


def test_an_older_study_is_not_brought_up_to_date_by_being_copied(sqlite_database_url, tmp_path):
    path = Path(make_url(sqlite_database_url).database or "")
    with closing(sqlite3.connect(path)) as study:
        study.execute("UPDATE alembic_version SET version_num = '2'")
        study.commit()
    before = path.read_bytes()
    with pytest.raises(
        OverreadError, match=r"expected a study with the tables of this version.* --db .*overread\.db migrate"
    ):
        copy_study(str(path), str(tmp_path / "copy.db"))
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.glob("*migration*")] == []
    assert not (tmp_path / "copy.db").exists() or not copied_tables(tmp_path / "copy.db")


def copied_tables(path: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as study:
        return study.execute("SELECT name FROM sqlite_master").fetchall()


def test_a_source_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(OverreadError, match=r"got no file .*none\.db"):
        copy_study(str(tmp_path / "none.db"), str(tmp_path / "copy.db"))
    assert not (tmp_path / "none.db").exists()


@pytest.mark.slow
def test_the_benchmark_of_copies_runs_and_finds_the_same_exports():
    script = Path(__file__).parents[1] / "benchmarks" / "copy_speed.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, "--verdicts", "400"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "400 verdicts there and back" in done.stdout
    assert done.stdout.count("floor") == 2
