"""Engine, transactions, migrations: how the study's database is opened.

SQLite by default, PostgreSQL by URL, one behaviour on both. A writing transaction takes SQLite's write lock at its start
(`BEGIN IMMEDIATE`), so that two writers wait for each other instead of failing in the middle.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import stamina
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.settings import database_url, settings

__all__ = ["Engine", "connect", "migrate", "open_study", "reading", "writing"]

TRAIL_HEAD = "trail_head"
"""Under this name a session's info has when the newest event that it wrote was, and its hash."""
_log = logging.getLogger(__name__)
BUSY_TIMEOUT_MS = 30_000
DRIVERS = ("sqlite", "postgresql+psycopg")
_MIGRATION_LOCK = 0x6F766572  # any constant: "over"


def connect(location: str) -> Engine:
    """An engine on a database URL or the path of a SQLite file; nothing is created or migrated yet.

    Raises:
        OverreadError: It is no URL, or one of another kind of database.
    """
    try:
        url = make_url(database_url(location))
    except (ArgumentError, ValueError) as error:  # the URL itself is not shown: it may hold a password
        msg = "--db: no database URL came, expected postgresql://NAME:PASSWORD@HOST:PORT/DATABASE or the path of a SQLite file"
        raise OverreadError(msg) from error
    if url.drivername not in DRIVERS:
        msg = f"--db: {url.drivername}:// came, expected postgresql:// or the path of a SQLite file"
        raise OverreadError(msg)
    engine = create_engine(url, pool_pre_ping=url.drivername != "sqlite")
    if engine.dialect.name == "sqlite":
        event.listen(engine, "do_connect", _make_private)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(_dialect: Any, _record: Any, arguments: tuple[Any, ...], _options: Any) -> None:
    """A study's new file is its owner's alone. SQLite makes the files beside it (-wal, -shm) as it finds the file itself."""
    path = str(arguments[0])
    if path not in ("", ":memory:") and not path.startswith("file:"):
        with suppress(OSError):  # it is there; or SQLite says itself why it cannot be made
            Path(path).touch(mode=0o600, exist_ok=False)


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say, see _begin_sqlite
    # Without recursive_triggers an INSERT OR REPLACE deletes a row past the append-only triggers.
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _write_ahead(connection)
    for pragma in (
        "foreign_keys = ON",
        "recursive_triggers = ON",
        "cache_size = -65536",
        "wal_autocheckpoint = 4000",  # 16 MB: a commit of a middling import does not wait for the copy into the file
    ):
        connection.execute(f"PRAGMA {pragma}")


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


@stamina.retry(on=_is_busy, attempts=None, timeout=BUSY_TIMEOUT_MS / 1000, wait_initial=0.01, wait_max=0.2)
def _write_ahead(connection: sqlite3.Connection) -> None:
    """The one statement for which SQLite does not wait: of processes that open a new file at once, one gets through."""
    connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """A session for reads, all of the study as it was at the first of them; nothing done in it is kept."""
    whole = (
        {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
    )  # SQLite reads so by itself
    with Session(engine.execution_options(**whole)) as session:
        yield session


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """One transaction: kept whole when the block ends, undone whole when it raises."""
    with Session(engine.execution_options(immediate=True), expire_on_commit=False) as session, session.begin():
        yield session
    kept = settings().trail
    if kept is not None and TRAIL_HEAD in session.info:
        try:
            with kept.open("a", encoding="utf-8") as lines:
                lines.write(session.info[TRAIL_HEAD] + "\n")
        except OSError as error:  # the act is saved; not to be told so would have it done twice
            _log.warning("The last hash of the trail could not be kept in %s: %s", kept, error.strerror or error)


def open_study(location: str) -> Engine:
    """Connect and bring the tables up to date; a SQLite file that needs it is copied first.

    Raises:
        OverreadError: The database cannot be reached, is no database, holds something else, or was written by a newer Overread.
    """
    engine = connect(location)
    try:
        migrate(engine)
    except OverreadError:
        engine.dispose()
        raise
    except DBAPIError as error:
        engine.dispose()
        reason = " ".join(str(error.orig).split())  # PostgreSQL explains on several lines
        msg = f"{_shown(engine)} cannot be opened as a study: {reason}"
        raise OverreadError(msg) from error
    return engine


def _shown(engine: Engine) -> str:
    return engine.url.database or "" if engine.dialect.name == "sqlite" else engine.url.render_as_string()


def migrate(engine: Engine) -> Path | None:
    """Run the Alembic migrations that are missing. Returns the copy made of an older SQLite file, if one was.

    Raises:
        OverreadError: The database holds something else, or was written by a newer Overread.
    """
    config = migrations()
    newest = ScriptDirectory.from_config(config).get_current_head()
    with engine.connect() as connection:
        if _revision(connection) == newest:
            return None
    with engine.execution_options(immediate=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        present = _revision(connection)  # again, under the lock: another process may have been first
        if present == newest:
            return None
        _check_is_ours(engine, connection, ScriptDirectory.from_config(config), present)
        copy = _copy_sqlite(engine, present) if present is not None else None
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return copy


def migrations(connection: Connection | None = None) -> Config:
    """Alembic's settings, for a connection that is to be migrated."""
    config = Config()
    config.set_main_option("script_location", str(files("evalcore") / "migrations"))
    config.attributes["connection"] = connection
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _check_is_ours(engine: Engine, connection: Connection, scripts: ScriptDirectory, present: str | None) -> None:
    if present is None and inspect(connection).get_table_names():
        msg = f"{_shown(engine)} is a database of something else: it has tables, and none of them is a study's. Nothing was changed."
        raise OverreadError(msg)
    try:
        scripts.get_revision(present or "base")
    except CommandError as error:
        msg = f"{_shown(engine)} was written by a newer version of Overread ({error}). Update Overread to open it."
        raise OverreadError(msg) from error


def _copy_sqlite(engine: Engine, revision: str) -> Path | None:
    if engine.dialect.name != "sqlite" or not engine.url.database or engine.url.database == ":memory:":
        return None
    path = Path(engine.url.database)
    copy = path.with_name(f"{path.name}.before-migration-{revision}")
    copy.touch(mode=0o600)
    copy.chmod(0o600)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy
