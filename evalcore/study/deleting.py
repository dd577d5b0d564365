"""Delete a study for good, and certify what was deleted. Nothing brings it back but a copy that was made before."""

import os
import sqlite3
import tempfile
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, inspect, text
from sqlmodel import SQLModel

from evalcore.errors import OverreadError, refuse
from evalcore.study.acting import allow
from evalcore.study.audit import trail, triggers
from evalcore.study.db import reading
from evalcore.study.policies import check_can_delete
from evalcore.study.schema import Viewer
from evalcore.study.tables import now

BESIDE = ["{0}-wal", "{0}-shm", "{0}-journal", "{0}.before-migration-*"]
BESIDE += [".{0}.importing", ".{0}.import-*", ".{0}.*.unfinished*"]
"""What lies beside the file of a study, by its name: SQLite's own, copies from before a migration, and what an import or a backup was at."""
LEFT = timedelta(days=1)
STILL_HELD = (
    "Copies made before with `overread backup`, `overread copy` or `cp`, and the backups and snapshots of the machine or of PostgreSQL (WAL archives too): "
    "delete them there, or wait until they expire.",
    "Exports, bundles and reports that people took out.",
    "The file of trail hashes (OVERREAD_TRAIL) and the server's log, which hold hashes, times, acts and numbers of people, and no text.",
    "Sessions of who signed in, where the server keeps them in another database; and what the sign-in provider knows.",
    "Blocks of the disk that the file system has not used again: overwrite or encrypt the disk where that matters.",
)


def name_of(engine: Engine) -> str:
    """What has to be typed: the name of the file, or of the database in PostgreSQL."""
    return Path(engine.url.database or "").name


def uploads(folder: Path | None = None) -> list[Path]:
    """Uploads that a server which was killed left in the folder of temporary files: older than a day, since one that runs removes its own with their tab."""
    old = (now() - LEFT).timestamp()
    found = (folder or Path(tempfile.gettempdir())).glob("overread-upload-*")
    return [path for path in found if path.stat().st_uid == os.getuid() and path.stat().st_mtime < old]


def counts(engine: Engine) -> dict[str, int]:
    """Rows of each table that has any."""
    with engine.connect() as connection:
        found = {name: _count(connection, name) for name in _own_tables(connection)}
    return {name: n for name, n in found.items() if n}


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())  # noqa: S608 - names of our own tables


def _own_tables(connection: Connection) -> list[str]:
    ours = {*SQLModel.metadata.tables, "search_text", "alembic_version"}
    return sorted(ours & set(inspect(connection).get_table_names()))


def delete(engine: Engine, name: str, certificate: Path, *, actor: Viewer, also: Iterable[Path] = ()) -> dict[str, Any]:
    """Delete a study with all that lies beside it, by a lead, while nobody else has it open. Returns the certificate, which is written to a new file.

    `name`: as `name_of` gives it, typed by whoever deletes. `also`: further files that go with it.
    """
    if name != name_of(engine):
        refuse(f"name: expected {name_of(engine)!r}, as the study is called, got {name!r}. Nothing was deleted.")
    with reading(engine) as session:
        known = allow(session, actor, check_can_delete)
        n_events, head = trail.trail_head(session)
    told: dict[str, Any] = {
        "study": name,
        "database": engine.url.render_as_string(),
        "overread": version("overread"),
        "deleted": False,
        "at": now().isoformat(timespec="seconds"),
        "by": known.signature,
        "rows": counts(engine),
        "trail": {"events": n_events, "last_hash": head},
        "files": [],
        "tables": [],
        "still_held": list(STILL_HELD),
    }
    _write(certificate, told, mode="xb")  # a certificate that cannot be written is found out before
    try:
        if engine.dialect.name == "sqlite":
            told["files"] = _delete_file(engine)
        else:
            told["tables"] = _drop_tables(engine)
    except BaseException:
        certificate.unlink()
        raise
    from evalcore.study import snapshot  # noqa: PLC0415 - to ask what would be deleted needs no Arrow

    told["files"] += map(str, snapshot.remove(engine))
    for path in also:
        path.unlink(missing_ok=True)
        told["files"].append(str(path))
    told["deleted"] = True
    _write(certificate, told, mode="wb")
    return told


def _write(path: Path, told: dict[str, Any], *, mode: str) -> None:
    try:
        with path.open(mode) as file:
            file.write(orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        refuse(f"{path}: the certificate cannot be written: {error.strerror or error}. Choose a new file.")


def _delete_file(engine: Engine) -> list[str]:
    path = Path(engine.url.database or "")
    beside = {found for pattern in BESIDE for found in path.parent.glob(pattern.format(path.name))}
    engine.dispose()
    try:  # SQLite leaves WAL only where no other process has the file open
        with closing(sqlite3.connect(path, timeout=2)) as file:
            mode = file.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            is_free = mode == "delete"
    except sqlite3.OperationalError:
        is_free = False
    if not is_free:
        msg = f"{path.name} is open in another process. Stop the server and every command on it, then delete. Nothing was deleted."
        raise OverreadError(msg)
    gone = [path, *sorted(beside)]
    for one in gone:
        one.unlink(missing_ok=True)
    return list(map(str, gone))


def _drop_tables(engine: Engine) -> list[str]:
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    engine.dispose()
    with engine.begin() as connection:
        if n := connection.exec_driver_sql(others).scalar_one():
            msg = f"{name_of(engine)} has {n} other connections. Stop the server and every command on it, then delete. Nothing was deleted."
            raise OverreadError(msg)
        tables = _own_tables(connection)
        connection.exec_driver_sql(f"DROP TABLE {', '.join(tables)} CASCADE")
        functions = {made.split("EXECUTE FUNCTION ")[1].split("(")[0] for made in triggers.texts("postgresql").values()}
        connection.exec_driver_sql(f"DROP FUNCTION {', '.join(f'{name}()' for name in sorted(functions))}")
        connection.exec_driver_sql("DROP SEQUENCE IF EXISTS row_hash_number")
    return tables
