"""A new version without a pause: migrations only add, so a process of the older version goes on with the newer tables."""

import ast
import threading
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from evalcore.errors import OverreadError
from evalcore.reading import reviewing
from evalcore.study.audit import triggers
from evalcore.study.audit.chain import verify
from evalcore.study.db import connect, is_up_to_date, is_usable, migrations, open_study, reading, writing
from evalcore.study.store import append_event
from tests import world

VERSIONS = Path(__file__).parents[2] / "evalcore" / "study" / "migrations" / "versions"
ADDS = {"add_column", "create_table", "create_index"}

NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{present}"


def upgrade() -> None:
    op.create_table("novelty", sa.Column("id", sa.Integer, primary_key=True), sa.Column("verdict_id", sa.Integer, sa.ForeignKey("verdict.id")))
    op.add_column("mark", sa.Column("pressure", sa.Float, nullable=True))
    op.add_column("person", sa.Column("colour", sa.String, nullable=False, server_default="none"))
    op.add_column("verdict", sa.Column("mood", sa.String, nullable=True))
    op.create_index("ix_mark_pressure", "mark", ["pressure"])
"""


def stops_older_processes(migration: str) -> list[str]:
    """The calls of a migration after which an older process may not go on."""
    found = []
    for call in (node for node in ast.walk(ast.parse(migration)) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        if name.startswith("op.") and name.removeprefix("op.") not in ADDS:
            found.append(name)
        if name == "op.add_column":
            options = {option.arg: ast.unparse(option.value) for option in call.args[1].keywords}  # type: ignore[attr-defined]
            if options.get("nullable") != "True" and "server_default" not in options:
                found.append(ast.unparse(call))
    return found


def test_migrations_only_add():
    later = sorted(VERSIONS.glob("0*.py"))[1:]  # before the first there was nothing
    for migration in (NEXT, *(path.read_text() for path in later)):
        assert stops_older_processes(migration) == []
    assert stops_older_processes("op.drop_column('mark', 'note')") == ["op.drop_column"]
    wanted = "op.add_column('mark', sa.Column('pressure', sa.Float, nullable=False))"
    assert stops_older_processes(wanted) == [wanted]


@pytest.fixture
def newer(tmp_path):
    """Migrates as the next version will: with the migrations that there are, and one more."""
    folder = tmp_path / "newer"
    (folder / "versions").mkdir(parents=True)
    for path in (*VERSIONS.glob("0*.py"), VERSIONS.parent / "env.py", VERSIONS.parent / "script.py.mako"):
        target = folder / "versions" if path.parent == VERSIONS else folder
        (target / path.name).write_text(path.read_text())
    present = sorted(path.stem for path in VERSIONS.glob("0*.py"))[-1].split("_")[0].lstrip("0")
    (folder / "versions" / "9999_next.py").write_text(NEXT.format(present=present))

    def migrate(location: str) -> None:
        engine = connect(location)
        with engine.execution_options(immediate=True).begin() as connection:
            config = migrations(connection)
            config.set_main_option("script_location", str(folder))
            command.upgrade(config, "head")
            triggers.renew(connection)
        engine.dispose()

    return migrate


def test_a_process_that_runs_reads_and_writes_on_while_the_tables_become_newer(small, newer):
    """Acts go on, one after another, before, during and after the migration; then the response in hand is read and locked, and everything holds."""
    world.assigned(small)
    reader = small.viewer()
    desk = reviewing.take(small.engine, reader, at=world.START)
    stop, written, failed = threading.Event(), [], []

    def press() -> None:
        while not stop.is_set():
            try:
                with writing(small.engine) as session:
                    append_event(session, actor="Ana", action="guideline changed", subject=str(len(written)))
                written.append(len(written))
            except Exception as error:  # noqa: BLE001 - whatever it is
                failed.append(error)
                return

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        while len(written) < 5:
            assert not failed
        newer(small.location)
        after = len(written)
        while len(written) < after + 5:
            assert not failed
    finally:
        stop.set()
        pressing.join()
    assert failed == []
    assert desk is not None
    number = world.answer(small, reader, desk, "+" * len(desk.keys), at=world.START)
    assert world.lock(small.engine, reader, number, at=world.START)
    with reading(small.engine) as session:
        assert verify(session).holds
        n_told = session.connection().execute(
            text("SELECT count(*) FROM audit_event WHERE action = 'guideline changed'")
        )
        assert n_told.scalar_one() >= len(written)
    assert not is_up_to_date(small.engine)
    assert is_usable(small.engine)
    with pytest.raises(OverreadError, match="was written by a newer version of Overread"):
        open_study(small.location)
