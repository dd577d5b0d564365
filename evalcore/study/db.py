"""Engine, transactions, migrations: how the study's database is opened.

SQLite by default, PostgreSQL by URL, one behaviour on both. A writing transaction takes SQLite's write lock at its start
(`BEGIN IMMEDIATE`), so that two writers wait for each other instead of failing in the middle.
"""

import json
import logging
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stamina
from sqlalchemy import Connection, Engine, RowMapping, create_engine, event, inspect, make_url, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, TimeoutError as NoneFree
from sqlmodel import Session

from evalcore.errors import DatabaseFault, Frozen, OverreadError, ReadOnly, refuse
from evalcore.settings import settings
from evalcore.study.audit import triggers
from evalcore.study.corrections import showing

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = [
    "AMENDED", "PATIENT_SECONDS", "PRESS_SECONDS", "STUDY_FROZEN", "WRITERS_LOCK", "DBAPIError", "Engine",
    "NoneFree", "RowMapping", "Session", "before_each_commit", "check_revision", "connect", "connected", "fault_of",
    "hold_writers", "import_lock", "importing", "importing_file", "is_up_to_date", "is_usable", "keep", "migrate",
    "open_study", "reading", "reading_apart", "reading_together", "together", "trail_file", "unkept", "writing",
]  # fmt: skip
"""With the types of SQLAlchemy that acts and pages pass on: outside of `study` and of files of queries and stores nothing else imports it."""

TRAIL_HEAD = "trail_head"
"""Under this name a session's info has when the newest event that it wrote was, and its hash."""
ACTS, PERSON, BEGUN = "acts", "person_id", "begun"
"""Likewise the acts that it wrote, whose they are, and since when; told to the log `ACTS_LOG` once they are kept."""
ACTS_LOG = "evalcore.acts"
STUDY_FROZEN, AMENDED = "study frozen", "study amended"
"""The acts of the trail that freeze a study and open it again (`freezing`)."""
_FREEZING = text("SELECT id, action, actor, subject, detail FROM audit_event WHERE action IN (:frozen, :amended)")
REQUEST: ContextVar[str] = ContextVar("request")
"""The request, or the run of a page, in whose course something is done."""
_log, _acts = logging.getLogger(__name__), logging.getLogger(ACTS_LOG)
PRESS_SECONDS, PATIENT_SECONDS = 10, 30
"""How long a person who pressed waits for others' writing, and how long a command, a run or an import does."""
BUSY, AWAY, READ_ONLY, FULL = "is busy", "cannot be reached", "is read-only", "has no room left"
_SQLITE_FAULTS = {
    sqlite3.SQLITE_BUSY: BUSY, sqlite3.SQLITE_LOCKED: BUSY, sqlite3.SQLITE_CANTOPEN: AWAY, sqlite3.SQLITE_IOERR: AWAY,
    sqlite3.SQLITE_READONLY: READ_ONLY, sqlite3.SQLITE_FULL: FULL,
}  # fmt: skip
_POSTGRES_FAULTS = {
    "55P03": BUSY, "40001": BUSY, "40P01": BUSY, "53300": BUSY, "25006": READ_ONLY, "53100": FULL,
    "57P01": AWAY, "57P02": AWAY, "57P03": AWAY,
}  # fmt: skip
"""By SQLSTATE: no lock, no serial order, deadlock, too many connections; a standby; the disk; shut down, crashed, starting."""
DRIVERS = ("sqlite", "postgresql+psycopg")
_POSTGRES_LIMITS = {"connect_timeout": 5, "tcp_user_timeout": 15_000}
"""In seconds and milliseconds: how long a server that does not answer is waited for."""
_KEPT, _MOST_BEYOND = 15, 15
"""Connections that are kept open, and how many more there may be: a room of physicians opens Review in the same second. Three processes, as while one takes
over from another, leave some of the hundred that PostgreSQL has; more at once would only wait for the same interpreter.
"""
_CACHE_KB = 1 << 14
"""What one connection to SQLite keeps of the file. Pages have many, which never give it back; four times as much makes no import faster."""
_WAIT, _PATIENT, _IS_READ_ONLY = "wait_seconds", "patient", "is_read_only"
_EARLIER = re.compile(r"00\d\d|\d|1[01]")  # revisions of checkouts before version 0.1.0, whose tables begin at 12
_MIGRATION_LOCK, _IMPORT_LOCK = 0x6F766572, 0x696D706F  # any constants: "over", "impo"


def connect(location: str, *, wait_seconds: float = PATIENT_SECONDS) -> Engine:
    """An engine on a database URL or the path of a SQLite file; nothing is created yet. `wait_seconds`: for others' writing, before it is a fault."""
    try:
        of_file = f"sqlite:///{Path(location).expanduser().resolve()}"
        of_server = re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", location)
        url = make_url(of_server if "://" in location else of_file)
    except (ArgumentError, ValueError) as error:  # the URL itself is not shown: it may hold a password
        msg = "--db: expected postgresql://NAME:PASSWORD@HOST:PORT/DATABASE or the path of a SQLite file, got no database URL"
        raise OverreadError(msg) from error
    if url.drivername not in DRIVERS:
        refuse(f"--db: expected postgresql:// or the path of a SQLite file, got {url.drivername}://")
    is_postgres = url.drivername != "sqlite"
    limits = {key: value for key, value in _POSTGRES_LIMITS.items() if is_postgres and key not in url.query}
    # What is in memory is one connection's own: it has no pool of several.
    several = {"pool_size": _KEPT, "max_overflow": _MOST_BEYOND, "pool_timeout": wait_seconds}
    pool: dict[str, Any] = several if is_postgres or url.database else {}
    pool |= {"pool_pre_ping": is_postgres, "execution_options": {_WAIT: wait_seconds}}
    engine = create_engine(url, hide_parameters=True, connect_args=limits, **pool)
    event.listen(engine, "handle_error", _hide_values)
    if is_postgres:
        event.listen(engine, "connect", partial(_prepare_postgres, wait_seconds=wait_seconds))
        event.listen(engine, "begin", _begin_postgres)
    else:
        event.listen(engine, "do_connect", _open_file)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextmanager
def connected(location: str) -> Iterator[Engine]:
    """`connect`, until the block ends."""
    engine = connect(location)
    try:
        yield engine
    finally:
        engine.dispose()


def _hide_values(context: ExceptionContext) -> None:
    """PostgreSQL tells in its detail the row that breaks a rule, with what somebody wrote: no log and no page may show that."""
    error, shown = context.original_exception, context.sqlalchemy_exception
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    if primary and shown is not None:
        shown.args = (str(shown.args[0]).replace(str(error), primary), *shown.args[1:])
        error.args = (primary,)


def _prepare_postgres(connection: Any, _record: Any, *, wait_seconds: float) -> None:
    connection.execute(f"SET lock_timeout = {round(wait_seconds * 1000)}")
    connection.commit()


def _begin_postgres(connection: Connection) -> None:
    if connection.get_execution_options().get(_PATIENT, False):
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {PATIENT_SECONDS * 1000}")
    showing.begin(connection)


def _open_file(_dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
    """A study's new file is its owner's alone; SQLite makes the files beside it (-wal, -shm) likewise.

    On media that cannot be written it can make none. There the file is taken as it lies, unless writing that is not in it yet lies beside it.
    """
    path = Path(str(arguments[0]))
    if str(path) in {".", ":memory:"} or str(path).startswith("file:"):
        return
    if path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        beside = path.with_name(f"{path.name}-wal")
        is_whole = not os.access(path.parent, os.W_OK) and not (beside.exists() and beside.stat().st_size)
        arguments[0] = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_whole else ''}"
        options["uri"] = record.info[_IS_READ_ONLY] = True
        return
    with suppress(OSError):  # it is there; or SQLite says itself why it cannot be made
        path.touch(mode=0o600, exist_ok=False)


def _prepare_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say, see _begin_sqlite
    # Without recursive_triggers an INSERT OR REPLACE deletes a row past the append-only triggers.
    connection.execute(f"PRAGMA busy_timeout = {PATIENT_SECONDS * 1000}")
    if not record.info.get(_IS_READ_ONLY):
        _write_ahead(connection)
    # 4,000 pages, 16 MB: a commit of a middling import does not wait for the copy into the file; what a large one leaves beside it goes
    cache, log = f"cache_size = -{_CACHE_KB}", ("wal_autocheckpoint = 4000", f"journal_size_limit = {1 << 26}")
    for pragma in ("foreign_keys = ON", "recursive_triggers = ON", cache, *log):
        connection.execute(f"PRAGMA {pragma}")


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


@stamina.retry(on=_is_busy, attempts=None, timeout=PATIENT_SECONDS, wait_initial=0.01, wait_max=0.2)
def _write_ahead(connection: sqlite3.Connection) -> None:
    """The one statement for which SQLite does not wait: of processes that open a new file at once, one gets through."""
    connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    seconds = PATIENT_SECONDS if options.get(_PATIENT, False) else options[_WAIT]
    if connection.info.get(_WAIT) != seconds:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
        connection.info[_WAIT] = seconds
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("immediate", False) else "BEGIN")
    showing.begin(connection)


def fault_of(error: Exception) -> str | None:
    """What is the matter with the database, as a verb and its object; None where the error is the statement's or somebody else's."""
    if isinstance(error, NoneFree):
        return BUSY
    if not isinstance(error, DBAPIError):
        return None
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE_FAULTS.get(getattr(error.orig, "sqlite_errorcode", 0) & 0xFF)
    state = getattr(error.orig, "sqlstate", None)
    if error.connection_invalidated or (isinstance(error, OperationalError) and state is None):
        return AWAY
    return _POSTGRES_FAULTS.get(state or "")


def _as_fault(error: Exception, engine: Engine, *, saving: bool = False, ended: bool = False) -> DatabaseFault | None:
    fault, seconds = fault_of(error), engine.get_execution_options().get(_WAIT)
    if fault is None:
        return None
    again = "press again" if seconds == PRESS_SECONDS else "try again"
    if fault == READ_ONLY:
        sentence = "The database is read-only, so nothing can be saved."
    elif ended and fault == AWAY:  # the server may have kept it, or not
        sentence = (
            f"The connection to the database broke while this was saved. Check whether it was saved before you {again}."
        )
    else:
        sentence = f"{'Not saved: the' if saving else 'The'} database {fault}. {again.capitalize()}."
    kind = ReadOnly if fault == READ_ONLY else DatabaseFault
    return kind(sentence, " ".join(str(getattr(error, "orig", None) or error).split()))


def before_each_commit(engine: Engine, act: Callable[[], None]) -> None:
    """Have something done, in the same thread, whenever what was written is about to be kept."""
    event.listen(engine, "commit", lambda _: act())


def unkept(engine: Engine) -> None:
    """Neither wait for the disk nor check foreign keys: this SQLite file is a copy that is removed, and nothing of it has to survive."""

    def never_wait(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", never_wait)


@contextmanager
def reading(engine: Engine, *, every_row: bool = False, with_broken: bool = False) -> Iterator[Session]:
    """A session for reads, all of the study as it was at the first of them; nothing done in it is kept.

    `every_row`: hidden ones too (`showing`); `with_broken`: also responses that are marked as broken.
    """
    is_postgres = engine.dialect.name == "postgresql"  # SQLite reads so by itself
    whole: dict[str, Any] = {"isolation_level": "REPEATABLE READ"} if is_postgres else {}
    if not every_row:
        whole[showing.SHOWS] = showing.WITHDRAWN if with_broken else showing.HIDDEN
    reads = _together.get()
    if reads is not None and (every_row or with_broken or reads.engine is not engine):
        reads.end()  # one connection at a time
        reads = None
    session = reads.session if reads is not None else None
    if session is None:
        session = Session(engine.execution_options(**whole))
    if reads is not None:
        reads.session = session
    try:
        yield session
    except (DBAPIError, NoneFree) as error:
        if reads is not None:
            reads.end()
        if fault := _as_fault(error, engine):
            raise fault from error
        raise
    finally:
        if reads is None or reads.session is not session:
            session.close()


class _Together:
    """What is read of an engine, in one session until it is ended."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.session: Session | None = None

    def end(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            session.close()


_together: ContextVar[_Together | None] = ContextVar("_together", default=None)


@contextmanager
def reading_together() -> Iterator[None]:
    """What this thread reads of a study (`together`) within the block is read in one transaction, until it writes, and then in another one.

    To begin and to end one costs as much as several questions, and another connection.
    """
    if _together.get() is not None:
        yield
        return
    made = _Together()
    token = _together.set(made)
    try:
        yield
    finally:
        _together.reset(token)
        made.end()


@contextmanager
def reading_apart() -> Iterator[None]:
    """Within the block each reading is a transaction of its own again: of what takes long, and holds a connection for something else."""
    if (reads := _together.get()) is not None:
        reads.end()
    token = _together.set(None)
    try:
        yield
    finally:
        _together.reset(token)


def together(engine: Engine) -> Engine:
    """This is the study whose reads go together, where none is yet."""
    reads = _together.get()
    if reads is not None and reads.engine is None:
        reads.engine = engine
    return engine


def importing_file(engine: Engine) -> Path:
    """Beside a study on SQLite, what is there while somebody imports; who writes touches it, so that the import lets them have their turn."""
    study = Path(engine.url.database or "")
    return study.with_name(f".{study.name}.importing")


importing: ContextVar[bool] = ContextVar("importing", default=False)
"""Whether it is the import itself that writes: it lets others have their turn, and not itself."""


@contextmanager
def writing(
    engine: Engine, *, patient: bool = False, though_frozen: bool = False, with_broken: bool = False
) -> Iterator[Session]:
    """One transaction: kept whole when the block ends, undone whole when it raises. `patient`: wait for others' writing as long as a command does.

    `Frozen`: the study is frozen. Not asked where `though_frozen`: of who comes in, and of who sees or takes out what (`freezing`).
    `with_broken`: it reads responses that are marked as broken, too.
    """
    if (reads := _together.get()) is not None:
        reads.end()
    if engine.dialect.name == "sqlite" and engine.url.database and not importing.get():
        with suppress(OSError):  # nobody imports
            os.utime(importing_file(engine), ns=(time.time_ns(),) * 2)
    ended = False
    shows = showing.WITHDRAWN if with_broken else showing.HIDDEN
    bound = engine.execution_options(immediate=True, **{_PATIENT: patient, showing.SHOWS: shows})
    try:
        with Session(bound, expire_on_commit=False) as session:
            session.info[BEGUN] = time.monotonic()
            if not though_frozen:
                _check_is_open(session)
            yield session
            ended = True
            keep(session)
    except (DBAPIError, NoneFree) as error:
        if fault := _as_fault(error, engine, saving=True, ended=ended):
            raise fault from error
        raise


WRITERS_LOCK = 0x66726F7A  # any constant: "froz"


def _check_is_open(session: Session) -> None:
    """On PostgreSQL whoever freezes waits for those who write, and they for it; on SQLite the write lock does that."""
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": WRITERS_LOCK})
    told = connection.execute(_FREEZING, {"frozen": STUDY_FROZEN, "amended": AMENDED}).all()
    newest = max(told, key=lambda row: row.id, default=None)  # sorted there, PostgreSQL might walk the whole trail
    if newest is not None and newest.action == STUDY_FROZEN:
        msg = (
            f"This study was frozen by {newest.actor} on {json.loads(newest.detail)['day']} as {newest.subject}, so nothing is changed any more. "
            "To change something, a lead opens it again as an amendment, with a name and a reason (Study, Analysis; overread amend)."
        )
        raise Frozen(msg)


def hold_writers(session: Session) -> None:
    """Wait until nobody else writes, and have all others wait until this transaction ends."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITERS_LOCK})


@contextmanager
def import_lock(engine: Engine) -> Iterator[bool]:
    """Hold the lock of imports of a study in PostgreSQL, which ends with the process; gives whether nobody else has it."""
    of_study, key = "(:lock, hashtext(current_schema()))", {"lock": _IMPORT_LOCK}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        is_ours = bool(connection.execute(text(f"SELECT pg_try_advisory_lock{of_study}"), key).scalar_one())
        try:
            yield is_ours
        finally:
            if is_ours:
                with suppress(DBAPIError):  # the server is away, and the lock with it
                    connection.execute(text(f"SELECT pg_advisory_unlock{of_study}"), key)


def trail_file(session: Session) -> Path | None:
    """Where the last hashes of this study's trail are kept: OVERREAD_TRAIL, or a file of its own in it where that is a folder."""
    kept = settings().trail
    if kept is None or not kept.is_dir():
        return kept
    key = session.connection().exec_driver_sql("SELECT key FROM study").scalar()  # two databases may be called the same
    return kept / f"{Path(session.get_bind().engine.url.database or 'study').stem}-{str(key)[:8]}.trail"


def keep(session: Session) -> None:
    """End a writing transaction: what was done in it is kept. What the session does next is another one."""
    head = session.info.pop(TRAIL_HEAD, None)
    kept = None if head is None else trail_file(session)
    session.commit()
    for act in session.info.pop(ACTS, ()):
        seconds = round(time.monotonic() - session.info[BEGUN], 3)
        _acts.info("act", extra={"act": act, "person_id": session.info.get(PERSON), "seconds": seconds})
    if kept is not None and head is not None:
        try:
            with kept.open("a", encoding="utf-8") as lines:
                lines.write(head + "\n")
        except OSError as error:  # the act is saved; not to be told so would have it done twice
            _log.warning("The last hash of the trail could not be kept in %s: %s", kept, error.strerror or error)


def open_study(location: str, *, wait_seconds: float = PATIENT_SECONDS) -> Engine:
    """Connect and bring the tables up to date; a SQLite file that needs it is copied first."""
    engine = connect(location, wait_seconds=wait_seconds)
    try:
        migrate(engine)
    except OverreadError:
        engine.dispose()
        raise
    except DBAPIError as error:
        engine.dispose()
        reason = " ".join(str(error.orig).split())  # PostgreSQL explains on several lines
        refuse(f"{_shown(engine)} cannot be opened as a study: {reason}")
    return engine


def _shown(engine: Engine) -> str:
    return engine.url.database or "" if engine.dialect.name == "sqlite" else engine.url.render_as_string()


@cache
def _revisions() -> tuple[str, ...]:
    """Of each migration its number, oldest first, by the names of their files: Alembic takes a tenth of a second to load, and is wanted by few starts."""
    names = (path.name for path in (files("evalcore.study") / "migrations" / "versions").iterdir())
    return tuple(name[:4].lstrip("0") for name in sorted(names) if name.endswith(".py"))


def _is_newer(revision: str) -> bool:
    return revision not in _revisions() and not _EARLIER.fullmatch(revision)


def is_up_to_date(engine: Engine) -> bool:
    """Whether the tables are those of this version."""
    with engine.connect() as connection:
        return _revision(connection) == _revisions()[-1]


def is_usable(engine: Engine) -> bool:
    """Whether this process may go on: with tables of its own version, or of a newer one, to which migrations only add. It would not start with those."""
    with engine.connect() as connection:
        present = _revision(connection)
    return present == _revisions()[-1] or (present is not None and _is_newer(present))


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def migrate(engine: Engine) -> Path | None:
    """Run the Alembic migrations that are missing, as `open_study` does. Returns the copy made of an older SQLite file, if one was."""
    if is_up_to_date(engine):
        return None
    with engine.execution_options(immediate=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        # again, under the lock: another process may have been first
        present = _revision(connection)
        if present == _revisions()[-1]:
            return None
        if present is None and inspect(connection).get_table_names():
            msg = f"{_shown(engine)} is a database of something else: it has tables, and none of them is a study's. Nothing was changed."
            raise OverreadError(msg)
        if present is not None:
            check_revision(_shown(engine), present)
        _check_may_migrate(engine, connection)
        copy = _copy_sqlite(engine, present) if present is not None else None
        upgrade(connection)
    return copy


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, and make every trigger as it is now."""
    from alembic import command  # noqa: PLC0415 - see `_revisions`

    command.upgrade(migrations(connection), "head")
    triggers.renew(connection)


def migrations(connection: Connection | None = None) -> "Config":
    """Alembic's settings, for a connection that is to be migrated."""
    from alembic.config import Config  # noqa: PLC0415 - see `_revisions`

    config = Config()
    config.set_main_option("script_location", str(files("evalcore.study") / "migrations"))
    config.attributes["connection"] = connection
    return config


def check_revision(study: str, revision: str) -> None:
    """Whether migrations lead from these tables of a study, or of a backup of one, to those of this version."""
    if _EARLIER.fullmatch(revision):
        refuse(
            f"{study} was written by Overread before version 0.1.0, which this one cannot open. Take it out with the checkout that wrote "
            "it (`overread export`), and import those files into a new study. Nothing was changed."
        )
    if _is_newer(revision):
        refuse(
            f"{study} was written by a newer version of Overread (its tables: {revision}). Update Overread to open it."
        )


def _check_may_migrate(engine: Engine, connection: Connection) -> None:
    """A server's own role may not change tables: their owner does, before it starts."""
    if engine.dialect.name == "postgresql":
        may = "SELECT has_schema_privilege(current_user, current_schema(), 'CREATE')"
        if not connection.exec_driver_sql(may).scalar_one():
            refuse(
                f"The tables of {_shown(engine)} are not yet those of this version of Overread, and this role may not change them. "
                "Run `overread migrate --app-role ROLE` as their owner, then start again. Nothing was changed."
            )


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
