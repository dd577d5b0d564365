"""A copy of a study while it is in use, a study from a copy, and a study in another database; each whole or not at all.

Of SQLite the copy is the study's file; of PostgreSQL a zip file with the rows of each table as COPY writes them, which needs none of the server's tools.
"""

import hashlib
import json
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from sqlalchemy import Connection, Engine, Table, create_engine, func, insert, inspect, select
from sqlmodel import Session, SQLModel

from evalcore.errors import OverreadError, refuse
from evalcore.study import browse, db, store
from evalcore.study.audit.chain import ChainReport, verify
from evalcore.study.db import DBAPIError, connected, is_up_to_date, migrations, open_study, reading, upgrade
from evalcore.study.tables import TABLES

MANIFEST, FORMAT = "overread.json", "overread backup 1"
_BLOCK = 1 << 20
_SQLITE_MAGIC = b"SQLite format 3\x00"


def backup(engine: Engine, path: Path) -> ChainReport:
    """Copy a study to a new file, as it is at one moment, and prove the copy. Returns how far its audit trail holds."""
    with _unfinished(path) as copy:
        if engine.dialect.name == "postgresql":
            return _dump(engine, copy)
        with closing(sqlite3.connect(engine.url.database or "")) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        return proved(copy)


def restore(path: Path, location: str) -> ChainReport:
    """Make a study from a copy, where there is none yet. Returns how far its audit trail holds."""
    if not path.is_file():
        refuse(f"{path}: expected the file of a backup, got none")
    with path.open("rb") as file:
        is_sqlite = file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    with connected(location) as engine:
        if is_sqlite != (engine.dialect.name == "sqlite"):
            found, wanted = ("SQLite", "PostgreSQL") if is_sqlite else ("PostgreSQL", "SQLite")
            expected = f"expected a backup of a study in {wanted}, as --db names"
            refuse(f"{path}: {expected}, got one in {found} or something else")
        if not is_sqlite:
            return _load(engine, path)
    with _unfinished(Path(engine.url.database or "")) as copy:
        with (
            closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            try:
                source.backup(target)
            except sqlite3.DatabaseError as error:
                refuse(f"{path}: the file is damaged: {error}. Nothing was restored.")
        try:
            open_study(str(copy)).dispose()  # brings an older one up to date
        except OverreadError as error:
            refuse(str(error).replace(str(copy), str(path)))
        for earlier in copy.parent.glob(f"{copy.name}.before-migration-*"):
            earlier.unlink()  # the backup itself is what was before
        return proved(copy)


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    if path.exists():
        refuse(f"{path} is there already. Nothing was overwritten; choose another name.")
    copy = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        copy.touch(mode=0o600)
        yield copy
        with copy.open("rb") as file:
            os.fsync(file.fileno())
        copy.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except (OSError, sqlite3.Error) as error:
        refuse(f"{path}: cannot be written: {error}")
    finally:
        for name in (copy.name, f"{copy.name}-wal", f"{copy.name}-shm", f"{copy.name}-journal"):
            copy.with_name(name).unlink(missing_ok=True)


def proved(copy: Path) -> ChainReport:
    """Read every page and every row of a SQLite file, which stays as it is."""
    try:
        with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as file:
            found = file.execute("PRAGMA integrity_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        refuse(f"{copy}: the file is damaged: {found}")
    engine = create_engine(f"sqlite:///file:{copy}?mode=ro&immutable=1&uri=true", hide_parameters=True)
    try:
        with Session(engine) as session:
            return verify(session)
    finally:
        engine.dispose()


def _tables(connection: Connection) -> dict[str, list[str]]:
    """The columns of every table but that of the migrations; each table after those that it refers to."""
    columns: dict[str, list[str]] = {table.name: [] for table in SQLModel.metadata.sorted_tables}
    statement = (
        "SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name) "
        "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position"
    )
    for table, column in connection.exec_driver_sql(statement):
        columns.setdefault(table, []).append(column)
    return {table: names for table, names in columns.items() if names and table != "alembic_version"}


def _copying(connection: Connection, table: str, columns: list[str], direction: str) -> Any:
    driver: Any = connection.connection.driver_connection
    names = ", ".join(f'"{column}"' for column in columns)
    return driver.cursor().copy(f"COPY {table} ({names}) {direction}")


def _dump(engine: Engine, copy: Path) -> ChainReport:
    tables: dict[str, dict[str, Any]] = {}
    with (
        reading(engine, every_row=True) as session,
        zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
    ):
        connection = session.connection()
        revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
        for table, columns in _tables(connection).items():
            digest = hashlib.sha256()
            with (
                packed.open(table, "w", force_zip64=True) as member,
                _copying(connection, table, columns, "TO STDOUT") as rows,
            ):
                for block in rows:
                    member.write(block)
                    digest.update(block)
            tables[table] = {"columns": columns, "sha256": digest.hexdigest()}
        report = verify(session)
        manifest = {"format": FORMAT, "revision": revision, "audit_hash": report.last_hash, "tables": tables}
        packed.writestr(MANIFEST, json.dumps(manifest, indent=1))
    checked(copy)
    return report


def checked(path: Path) -> dict[str, Any]:
    """What the manifest says; every member is read and compared with it. No backup, or a damaged one, is an `OverreadError`."""
    try:
        with zipfile.ZipFile(path) as packed:
            manifest: dict[str, Any] = json.loads(packed.read(MANIFEST))
            for table, copied in manifest["tables"].items():
                with packed.open(table) as member:
                    digest = hashlib.file_digest(member, "sha256")  # type: ignore[arg-type]  # it has readinto
                if digest.hexdigest() != copied["sha256"]:
                    refuse(f"{path}: the rows of {table} are not those that were copied. Nothing was restored.")
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        msg = f"{path}: expected the backup of a study, got something else or a damaged file ({error}). Nothing was restored."
        raise OverreadError(msg) from error
    return manifest


def _load(engine: Engine, path: Path) -> ChainReport:
    manifest = checked(path)
    db.check_revision(str(path), manifest["revision"])
    with engine.begin() as connection, zipfile.ZipFile(path) as packed:
        _check_is_empty(connection, "--db")
        command.upgrade(migrations(connection), manifest["revision"])
        for table, copied in manifest["tables"].items():
            with packed.open(table) as member, _copying(connection, table, copied["columns"], "FROM STDIN") as rows:
                while block := member.read(_BLOCK):
                    rows.write(block)
            set_sequence(connection, table)
        upgrade(connection)
        with Session(connection) as session:
            return verify(session)


def set_sequence(connection: Connection, table: str) -> None:
    """Have PostgreSQL number the next row after the last one that was copied."""
    for column in inspect(connection).get_pk_constraint(table)["constrained_columns"]:
        owner = connection.exec_driver_sql("SELECT pg_get_serial_sequence(%s, %s)", (table, column)).scalar()
        if owner:
            last = f"SELECT coalesce(max({column}), 0) + 1 FROM {table}"  # noqa: S608 - names of our own tables
            connection.exec_driver_sql(f"SELECT setval('{owner}', ({last}), false)")


BATCH, PART = 5_000, 500
EXAMPLE, RESPONSE = (TABLES[name].c for name in ("example", "response"))
SEARCH = frozenset({"search_entry", "search_pending"})


def copy_study(source: str, target: str) -> ChainReport:
    """Make a study in a database that holds none, from another. Returns how far the copy's audit trail holds."""
    with connected(target) as into:
        with into.connect() as connection:
            _check_is_empty(connection, "--to")
        with (
            _current(source) as origin,
            reading(origin, every_row=True) as session,
            into.execution_options(immediate=True).begin() as connection,
        ):
            command.upgrade(migrations(connection), "head")
            for table in SQLModel.metadata.sorted_tables:  # each after those that it refers to
                if table.name not in SEARCH:
                    _copy(session.connection(), connection, table)
            with Session(connection) as copied:
                bulk = store.Bulk(copied)
                for part in _parts(copied, EXAMPLE.id):
                    bulk.await_index(browse.conversation_texts(copied, part), are_examples=True)
                for part in _parts(copied, RESPONSE.id):
                    bulk.await_index(browse.response_texts(copied, RESPONSE.id.in_(part)))
                bulk.await_index(browse.case_texts(copied))
            upgrade(connection)
        store.index_texts(into)
        with reading(into) as session:
            return verify(session)


@contextmanager
def _current(source: str) -> Iterator[Engine]:
    """The study that is copied, which stays as it is: tables of an older version are not brought up to date on the way."""
    with connected(source) as engine:
        path = Path(engine.url.database or "")
        if engine.dialect.name == "sqlite" and not path.is_file():
            refuse(f"--from: expected a study, got no file {path}")
        try:
            is_current = is_up_to_date(engine)
        except DBAPIError as error:
            refuse(f"--from: {path.name} cannot be opened as a study: {' '.join(str(error.orig).split())}")
        if not is_current:
            shown = path if engine.dialect.name == "sqlite" else engine.url.render_as_string()
            refuse(
                f"--from: expected a study with the tables of this version, got another version or something else in {shown}. "
                f"Bring it up to date first: overread --db {shown} migrate. Nothing was copied."
            )
        yield engine


def _check_is_empty(connection: Connection, option: str) -> None:
    if inspect(connection).get_table_names():
        refuse(f"{option}: expected a database without tables, got a study or something else. Nothing was overwritten.")


def _copy(source: Connection, target: Connection, table: Table) -> None:
    rows = source.execution_options(yield_per=BATCH).execute(select(table).order_by(*table.primary_key.columns))
    for part in rows.partitions():
        target.execute(insert(table), [row._asdict() for row in part])
    n_of = select(func.count()).select_from(table)
    n_rows, n_copied = (connection.execute(n_of).scalar_one() for connection in (source, target))
    if n_copied != n_rows:
        refuse(f"{table.name}: expected {n_rows:,} rows in the copy, got {n_copied:,}. Nothing was copied.")
    if target.dialect.name == "postgresql":
        set_sequence(target, table.name)


def _parts(session: Session, number: Any) -> Iterator[list[int]]:
    numbers = list(session.connection().execute(select(number).order_by(number)).scalars())
    return (numbers[start : start + PART] for start in range(0, len(numbers), PART))
