"""A backup is whole or not there, also of a study in use; and a restored study is the one that was backed up."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect
from typer.testing import CliRunner

from evalcore.__main__ import app
from evalcore.errors import OverreadError
from evalcore.study import backups, store
from evalcore.study.audit.chain import verify
from evalcore.study.db import connect, open_study, reading, writing
from tests import world
from tests.conftest import postgres_database
from tests.kills import N_KILLS, killed
from tests.storage_steps import rows


@pytest.fixture
def elsewhere(request, database_url, tmp_path):
    """Where no study is yet, in a database of the same kind."""
    if database_url.startswith("sqlite"):
        yield str(tmp_path / "elsewhere.db")
    else:
        with postgres_database(request.getfixturevalue("postgres_url")) as url:
            yield url


def restored(path, location):
    report = backups.restore(path, location)
    engine = open_study(location)
    with reading(engine) as session:
        assert verify(session) == report
    return engine, report


def test_a_restored_study_is_the_one_that_was_backed_up_and_goes_on(database_url, elsewhere, tmp_path):
    small, path = world.made(database_url), tmp_path / "copy"
    world.said(small, world.Label.MET)
    report = backups.backup(small.engine, path)
    assert report.holds
    engine, after = restored(path, elsewhere)
    assert after == report
    for table in ("verdict", "audit_event", "row_hash", "response", "criterion", "person", "study"):
        assert rows(engine, table) == rows(small.engine, table)
    again = world.World(elsewhere, engine, small.responses, small.criteria)
    world.said(again, world.Label.NOT_MET, name="Dr. Tove Lind")
    with writing(engine) as session:
        store.add_person(session, "Dr. New", roles=["reviewer"], actor="Ana Ruiz")
    with reading(engine) as session:
        assert verify(session).holds
    engine.dispose()
    small.engine.dispose()


def test_a_backup_has_what_is_still_in_the_write_ahead_log(sqlite_database_url, tmp_path):
    small = world.made(sqlite_database_url, is_copy=False)
    assert Path(f"{small.engine.url.database}-wal").stat().st_size > 0
    backups.backup(small.engine, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*) FROM verdict").fetchone() == (4,)
    assert sorted(p.name for p in tmp_path.iterdir() if "copy" in p.name) == ["copy.db"]
    small.engine.dispose()


def test_nothing_is_overwritten(database_url, tmp_path):
    small, path = world.made(database_url), tmp_path / "copy"
    backups.backup(small.engine, path)
    before = path.read_bytes()
    with pytest.raises(OverreadError, match="is there already"):
        backups.backup(small.engine, path)
    location = str(small.engine.url.render_as_string(hide_password=False))
    with pytest.raises(OverreadError, match="Nothing was overwritten"):
        backups.restore(path, location)
    assert path.read_bytes() == before
    assert world.count(small.engine, "verdict") == 4
    small.engine.dispose()


def test_a_damaged_backup_is_refused_and_leaves_nothing(database_url, elsewhere, tmp_path):
    small, path = world.made(database_url), tmp_path / "copy"
    backups.backup(small.engine, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : 2 * len(content) // 3] = b"\x55" * (2 * len(content) // 3 - len(content) // 3)
    path.write_bytes(content)
    with pytest.raises(OverreadError, match="damaged"):
        backups.restore(path, elsewhere)
    path.write_bytes(b"no backup")
    with pytest.raises(OverreadError, match="expected"):
        backups.restore(path, elsewhere)
    assert not Path(elsewhere).exists()
    small.engine.dispose()


@pytest.mark.parametrize(
    ("revision", "said"), [("9", r"before version 0\.1\.0.*`overread export`"), ("99", "a newer version")]
)
def test_a_backup_of_other_tables_is_refused_with_its_name_and_leaves_nothing(
    revision, said, database_url, elsewhere, tmp_path
):
    engine = open_study(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    backups.backup(engine, tmp_path / "copy")
    engine.dispose()
    with pytest.raises(OverreadError, match=rf"/copy was written by .*{said}"):
        backups.restore(tmp_path / "copy", elsewhere)
    engine = connect(elsewhere)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_study_whose_trail_does_not_hold_is_kept_and_told(database_url, tmp_path, monkeypatch):
    small = world.made(database_url)
    world.tampered(small.engine, "DELETE FROM audit_event WHERE id = 3")
    monkeypatch.setenv("OVERREAD_DB", database_url)
    ran = CliRunner().invoke(app, ["backup", str(tmp_path / "copy")])
    assert ran.exit_code == 1
    assert "The audit trail is broken at event 4" in ran.output
    assert (tmp_path / "copy").exists()
    small.engine.dispose()


def _back_up(location, folder, number):
    engine = connect(location)
    backups.backup(engine, folder / f"{os.getpid()}-{number}")
    engine.dispose()


@pytest.mark.slow
def test_twenty_kills_leave_no_half_backup_under_the_right_name(database_url, tmp_path):
    world.made(database_url).engine.dispose()
    folder = tmp_path / "backups"
    folder.mkdir()
    assert len(list(killed(_back_up, database_url, folder))) == N_KILLS
    made = [
        path for path in folder.iterdir() if not path.name.endswith(".unfinished") and not path.name.startswith(".")
    ]
    assert len(made) >= N_KILLS
    for path in made:
        if database_url.startswith("sqlite"):
            assert backups.proved(path).holds
        else:
            assert backups.checked(path)["audit_hash"]
