"""What the audit trail vouches for, row by row, as the database holds it now: read in a stream, in little memory."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from evalcore.study import triggers as guards
from evalcore.study.row_hashes import CONTENT, LEDGER, VERDICT, hashed_columns, number_column, row_hash, stored

BATCH = 2_000
_UNREADABLE = (DBAPIError, ValueError, TypeError)


class Row(NamedTuple):
    """A row of which the trail keeps a hash.

    Attributes:
        kept: The hash that was kept of it; None: none was.
        found: The hash of what stands there now; None: it cannot even be read.
    """

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
    statement = "SELECT id, table_name, row_id, hash FROM row_hash"
    for row in _rows(session, LEDGER, statement, "id"):
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
    connection = session.connection()
    first = (f"SELECT 1 FROM {table} LIMIT 1" for table in (VERDICT, *CONTENT))  # noqa: S608 - names of our own tables
    return not any(connection.exec_driver_sql(statement).first() for statement in first)


def _hashed(session: Session, table: str, statement: str, number: str, names: tuple[str, ...]) -> Iterator[Row]:
    plain = session.get_bind().dialect.name == "sqlite"
    for row in _rows(session, table, statement, number):
        found = None
        if len(row) > 1:
            values = row[2:] if plain else [stored(table, *cell) for cell in zip(names, row[2:], strict=True)]
            try:
                found = row_hash(names, values)
            except (TypeError, ValueError):  # bytes where text was
                found = None
        kept = row[1] if len(row) > 1 else None
        yield Row(row[0], kept if kept is None else _bytes(kept), found)


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _rows(session: Session, table: str, statement: str, number: str) -> Iterator[Any]:
    """Rows by number; of one that cannot be read, since its bytes were changed, the number alone."""
    connection = session.connection()
    last: int | None = None

    def after(limit: str = "") -> str:
        condition = "" if last is None else f" WHERE {number} > {last}"
        return f"{condition} ORDER BY {number}{limit}"

    def found(query: str) -> Any:
        return connection.exec_driver_sql(query, execution_options={"yield_per": BATCH})

    while True:
        try:
            for row in found(statement + after()):
                yield row
                last = row[0]
        except _UNREADABLE:
            last = yield from _one_by_one(statement, number, table, after, found)
        else:
            return


def _one_by_one(
    statement: str, number: str, table: str, after: Callable[..., str], found: Callable[[str], Any]
) -> Generator[Any, None, int]:
    """The rows up to and with the first that cannot be read, of which the number comes. Returns it."""
    numbers = found(f"SELECT {number} FROM {table}{after(f' LIMIT {BATCH + 1}')}").scalars().all()  # noqa: S608 - names of our own tables
    for one in numbers:
        try:
            row = found(f"{statement} WHERE {number} = {one}").one()
        except _UNREADABLE:
            yield (one,)
            return int(one)
        yield row
    return int(numbers[-1])


# ---------------------------------------------------------------- the guards


def triggers(session: Session) -> dict[str, str]:
    """The text of every trigger by its name, on PostgreSQL with its function's; one that is switched off says so."""
    connection = session.connection()
    if session.get_bind().dialect.name == "sqlite":
        statement = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        return {row[0]: row[1] for row in connection.exec_driver_sql(statement)}
    statement = (
        "SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true), prosrc, tgenabled::text FROM pg_trigger "
        "JOIN pg_proc ON pg_proc.oid = tgfoid JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    )
    return {
        name: f"{text}: {source.strip()}{'' if state in 'OA' else ' (switched off)'}"
        for name, text, source, state in connection.exec_driver_sql(statement)
    }


def are_asleep(session: Session) -> bool:
    """Whether PostgreSQL is told, for this database or role, that no trigger fires."""
    if session.get_bind().dialect.name == "sqlite":
        return False
    role = session.connection().exec_driver_sql("SHOW session_replication_role").scalar_one()
    return str(role) == "replica"


def expected_triggers(session: Session) -> dict[str, str]:
    """The text of every trigger that has to stand."""
    return guards.texts(session.get_bind().dialect.name)
