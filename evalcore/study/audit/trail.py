"""The audit trail, and what it vouches for row by row, as the database holds it now: read in a stream, in little memory."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session, col, select as select_rows

from evalcore.study.audit.row_hashes import CONTENT, LEDGER, VERDICT, hashed_columns, number_column, row_hash, stored
from evalcore.study.frames import trail_length
from evalcore.study.tables import TABLES, AuditEvent

BATCH = 2_000
_FIRES = {"A": "", "D": " (switched off)"}
_UNREADABLE = (DBAPIError, ValueError, TypeError)
_EVENT = TABLES["audit_event"].c


def trail_head(session: Session) -> tuple[int, str]:
    """How many events the audit trail has, and the hash of the newest; an empty one before the first event."""
    newest = session.connection().execute(select(_EVENT.hash).order_by(_EVENT.id.desc()).limit(1)).scalar()
    return trail_length(session), newest or ""


def last_actor(session: Session, action: str, subject: str) -> str | None:
    """Who did this last to this; None where nobody has."""
    statement = select(_EVENT.actor).where(_EVENT.action == action, _EVENT.subject == subject)
    return session.connection().execute(statement.order_by(_EVENT.id.desc()).limit(1)).scalar()


def details(session: Session, action: str, subject: str) -> list[dict[str, Any]]:
    """What the events of one act on one subject say, the newest first."""
    statement = select(_EVENT.detail).where(_EVENT.action == action, _EVENT.subject == subject)
    found = session.connection().execute(statement.order_by(_EVENT.id.desc())).scalars()
    return [json.loads(detail) for detail in found]


def of_action(session: Session, *actions: str) -> list[AuditEvent]:
    """The events of these acts, oldest first."""
    chosen = select_rows(AuditEvent).where(col(AuditEvent.action).in_(actions))
    # few; sorted there, PostgreSQL might walk the whole trail
    return sorted(session.exec(chosen), key=lambda event: event.id or 0)


def events(session: Session) -> Iterator[tuple[int, AuditEvent | None]]:
    """Every event with its number, in order; None for one that somebody has changed so that it cannot be read."""
    numbers = list(session.connection().execute(select(_EVENT.id).order_by(_EVENT.id)).scalars())
    for start in range(0, len(numbers), 1000):
        yield from _readable(session, numbers[start : start + 1000])


def _readable(session: Session, numbers: list[int]) -> Iterator[tuple[int, AuditEvent | None]]:
    number = col(AuditEvent.id)
    chosen = select_rows(AuditEvent).where(number.between(numbers[0], numbers[-1])).order_by(number)
    try:
        rows = session.exec(chosen).all()
    except _UNREADABLE:
        if len(numbers) == 1:
            yield numbers[0], None
            return
        for half in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
            yield from _readable(session, half)
    else:
        yield from zip(numbers, rows, strict=True)


class Row(NamedTuple):
    """A row of which the trail keeps a hash: the one that was kept (None: none), and that of what stands there (None: it cannot even be read)."""

    number: int
    kept: bytes | None
    found: bytes | None


def verdicts(session: Session) -> Iterator[Row]:
    """Every verdict, by number."""
    names = hashed_columns(VERDICT)
    statement = f"SELECT id, row_hash, {', '.join(names)} FROM verdict"  # noqa: S608 - names of our own tables
    return _hashed(session, VERDICT, statement, "id", names)


def content(session: Session, table: str) -> Iterator[Row]:
    """Every row of a table that verdicts rest on, by number, with the newest hash that an act left of it."""
    names, number = hashed_columns(table), number_column(table).name
    newest = (
        f"SELECT hash FROM row_hash WHERE table_name = '{table}' AND row_id = kept.{number} ORDER BY id DESC LIMIT 1"  # noqa: S608 - the same
    )
    statement = f"SELECT {number}, ({newest}), {', '.join(names)} FROM {table} kept"  # noqa: S608 - the same
    return _hashed(session, table, statement, number, names)


def ledger(session: Session) -> Iterator[tuple[int, str, int, bytes]]:
    """Every kept hash, by number: its number, the table, the row, the hash."""
    for row in _rows(session, LEDGER, "SELECT id, table_name, row_id, hash FROM row_hash", "id"):
        yield (row[0], str(row[1]), row[2] or 0, bytes(row[3] or b"")) if len(row) > 1 else (row[0], "", 0, b"")


def gone(session: Session, table: str) -> list[int]:
    """Numbers of rows that an act wrote and that are not there any more."""
    number = number_column(table).name
    statement = (
        f"SELECT DISTINCT row_id FROM row_hash WHERE table_name = '{table}' "  # noqa: S608 - names of our own tables
        f"AND NOT EXISTS (SELECT 1 FROM {table} kept WHERE kept.{number} = row_id) ORDER BY row_id"
    )
    return [int(row[0]) for row in session.connection().exec_driver_sql(statement)]


def is_empty(session: Session) -> bool:
    """Whether the study holds nothing that an event would tell of."""
    first = (f"SELECT 1 FROM {table} LIMIT 1" for table in (VERDICT, *CONTENT))  # noqa: S608 - names of our own tables
    return not any(session.connection().exec_driver_sql(statement).first() for statement in first)


def _hashed(session: Session, table: str, statement: str, number: str, names: tuple[str, ...]) -> Iterator[Row]:
    plain = session.get_bind().dialect.name == "sqlite"
    for row in _rows(session, table, statement, number):
        kept = found = None
        if len(row) > 1:
            kept = row[1].encode() if isinstance(row[1], str) else row[1] and bytes(row[1])
            values = row[2:] if plain else [stored(table, *cell) for cell in zip(names, row[2:], strict=True)]
            try:
                found = row_hash(names, values)
            except (TypeError, ValueError):  # bytes where text was
                found = None
        yield Row(row[0], kept, found)


def _rows(session: Session, table: str, statement: str, number: str) -> Iterator[Any]:
    """Rows by number; of one that cannot be read, since its bytes were changed, the number alone."""
    last: int | None = None

    def run(query: str) -> Any:
        return session.connection().exec_driver_sql(query, execution_options={"yield_per": BATCH})

    def after() -> str:
        return f"{'' if last is None else f' WHERE {number} > {last}'} ORDER BY {number}"

    while True:
        try:
            for row in run(statement + after()):
                yield row
                last = row[0]
        except _UNREADABLE:
            ahead = run(f"SELECT {number} FROM {table}{after()} LIMIT {BATCH + 1}").scalars().all()  # noqa: S608 - names of our own tables
            if not ahead:
                raise
        else:
            return
        for last in ahead:  # up to and with the one that cannot be read
            try:
                row = run(f"{statement} WHERE {number} = {last}").one()
            except _UNREADABLE:
                yield (last,)
                break
            yield row


def triggers(session: Session) -> dict[str, str]:
    """The text of every trigger by its name, on PostgreSQL with its function's; one that does not fire for everybody says so."""
    connection = session.connection()
    if session.get_bind().dialect.name == "sqlite":
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return {row[0]: row[1] for row in rows}
    statement = (
        "SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true), prosrc, tgenabled::text FROM pg_trigger "
        "JOIN pg_proc ON pg_proc.oid = tgfoid JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    )
    return {
        name: f"{text}: {source.strip()}{_FIRES.get(state, ' (not for everybody)')}"
        for name, text, source, state in connection.exec_driver_sql(statement)
    }


def are_asleep(session: Session) -> bool:
    """Whether PostgreSQL is told, for this database or role, that no trigger fires."""
    if session.get_bind().dialect.name == "sqlite":
        return False
    return bool(session.connection().exec_driver_sql("SHOW session_replication_role").scalar_one() == "replica")
