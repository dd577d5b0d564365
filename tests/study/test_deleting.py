"""A study is deleted for good: its name typed, nobody else at it, nothing left of it, and a certificate."""

import json
import os
import shutil
import sqlite3
import time

import pytest

from evalcore.errors import NotAllowed, OverreadError
from evalcore.study import deleting, freezing
from evalcore.study.audit import trail
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Administrator
from tests import world
from tests.commands import Run

LEAD = Administrator(name="Ana Ruiz")


@pytest.fixture
def made(database_url):
    study = world.made(database_url)
    yield study
    study.engine.dispose()


def test_nothing_is_left_and_the_certificate_says_what_was_there(made, tmp_path):
    name, kept = deleting.name_of(made.engine), tmp_path / "certificate.json"
    freezing.freeze(made.engine, actor=LEAD)  # also of a frozen study: data protection comes first
    with reading(made.engine) as session:
        n_events, head = trail.trail_head(session)
    path = None if made.engine.dialect.name == "postgresql" else tmp_path / name
    if path:
        for beside in (f"{name}.before-migration-7", f".{name}.import-0123456789abcdef"):
            (tmp_path / beside).write_text("x")
        (tmp_path / f"{name}x").write_text("another's")
    upload, of_today = tmp_path / "overread-upload-1", tmp_path / "overread-upload-2"
    for file, age in ((upload, 86_500), (of_today, 86_300)):
        file.write_text("x")
        os.utime(file, (time.time() - age,) * 2)
    assert deleting.uploads(tmp_path) == [upload]
    of_today.unlink()
    told = deleting.delete(made.engine, name, kept, actor=LEAD, also=[upload])
    assert json.loads(kept.read_text()) == told
    assert told["deleted"]
    assert told["trail"] == {"events": n_events, "last_hash": head}
    assert {table: told["rows"][table] for table in ("example", "response", "criterion", "verdict", "person")} == {
        "example": 2, "response": 2, "criterion": 4, "verdict": 4, "person": 3,
    }  # fmt: skip
    assert told["by"] == LEAD.signature
    assert not upload.exists()
    assert "Imani" not in kept.read_text()
    if path:
        assert {file.name for file in tmp_path.iterdir()} == {"certificate.json", f"{name}x"}
        assert str(path) in told["files"]
    else:
        assert world.rows(made.engine, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
        assert world.rows(made.engine, "SELECT proname FROM pg_proc WHERE proname LIKE 'refuse_change%'") == []
        assert {"verdict", "audit_event", "alembic_version"} <= set(told["tables"])
        open_study(made.location).dispose()  # the database may hold another study now


def test_another_name_another_role_or_somebody_at_it_deletes_nothing(made, tmp_path):
    name, kept = deleting.name_of(made.engine), tmp_path / "certificate.json"
    with pytest.raises(OverreadError, match="as the study is called, got 'other'"):
        deleting.delete(made.engine, "other", kept, actor=LEAD)
    with pytest.raises(NotAllowed, match="Only leads can delete"):
        deleting.delete(made.engine, name, kept, actor=made.viewer())
    other = open_study(made.location)
    with other.connect() as connection:
        connection.exec_driver_sql("SELECT 1 FROM study").all()
        with pytest.raises(OverreadError, match="Stop the server and every command on it"):
            deleting.delete(made.engine, name, kept, actor=LEAD)
    other.dispose()
    kept.write_text("mine")
    with pytest.raises(OverreadError, match="cannot be written: File exists"):
        deleting.delete(made.engine, name, kept, actor=LEAD)
    assert kept.read_text() == "mine"
    assert world.count(made.engine, "verdict") == 4


@pytest.fixture
def run(tmp_path, sqlite_template, monkeypatch):
    monkeypatch.setattr(deleting, "uploads", list)  # those of this machine are not the test's
    shutil.copyfile(sqlite_template, tmp_path / "study.db")
    world.made(str(tmp_path / "study.db")).engine.dispose()
    return Run(tmp_path)


def test_a_command_freezes_amends_and_deletes(run, tmp_path):
    assert "Frozen as version 1" in run("freeze", "--db", run.db).stdout
    refused = run("guideline", __file__, "--db", run.db)
    assert refused.returncode == 1
    assert "so nothing is changed any more" in refused.stderr
    assert "Opened again" in run("amend", "A", "--reason", "more readers", "--db", run.db).stdout
    assert json.loads(run("versions", "--json", "--db", run.db).stdout)[0]["amendment"] == "A"
    wrong = run("delete-study", "--yes-delete", "other.db", "--db", run.db)
    assert wrong.returncode == 1
    assert "Nothing was deleted" in wrong.stderr
    assert (tmp_path / "study.db").exists()
    done = run("delete-study", "--yes-delete", "study.db", "--certificate", str(tmp_path / "c.json"), "--db", run.db)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "study.db").exists()
    assert json.loads((tmp_path / "c.json").read_text())["study"] == "study.db"
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect(f"file:{tmp_path / 'study.db'}?mode=ro", uri=True)
