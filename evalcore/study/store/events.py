"""The audit trail, which is appended to and never changed, and what a transaction has written, so that its event can vouch for it."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, func, insert, select, text
from sqlmodel import Session

from evalcore.study.db import TRAIL_HEAD
from evalcore.study.row_hashes import CONTENT, LEDGER, VERDICT, Digest, hash_of, ledger_row, number_column
from evalcore.study.tables import TABLES, AuditEvent, now

FIRST_PREVIOUS_HASH = "0" * 64
WROTE = "wrote"
"""Under this name an event's detail has, by table, the numbers of the rows that its act wrote and their digest."""
_CHUNK = 500  # bound variables in one statement
_CLAIM_LOCK, _CHAIN_LOCK = 0x636C6169, 0x61756469  # any constants: "clai", "audi"
_EVENT = TABLES["audit_event"]
_LAST_HASH = select(_EVENT.c.hash).order_by(_EVENT.c.id.desc()).limit(1)


class Written:
    """Rows that no event names yet."""

    def __init__(self) -> None:
        self.verdicts = Digest()
        self._content: defaultdict[str, set[int]] = defaultdict(set)
        self._kept = Digest()

    def __bool__(self) -> bool:
        return self.verdicts.n_rows + self._kept.n_rows > 0 or bool(self._content)

    def content(self, table: str, numbers: Iterable[int]) -> None:
        """Rows of a table that verdicts rest on were added or changed; of other tables nothing is kept."""
        if table in CONTENT and (changed := set(numbers)):
            self._content[table] |= changed

    def keep_hashes(self, connection: Connection) -> None:
        """Write the hashes of the content as it is now. It takes as long as the act wrote much, so the lock of the chain comes after it."""
        for table, numbers in sorted(self._content.items()):
            add_to_ledger(connection, table, _rows(connection, table, numbers), self._kept)
        self._content.clear()

    def told(self) -> dict[str, dict[str, str]]:
        """By table, which rows the act wrote and their digest; the hashes of all content are kept."""
        digests = {VERDICT: self.verdicts, LEDGER: self._kept}
        return {table: digest.told() for table, digest in digests.items() if digest.n_rows}


def written(session: Session) -> Written:
    """What this session has written since its last event."""
    rows: Written = session.info.setdefault("written", Written())
    return rows


def forget_written(session: Session) -> None:
    """It is undone, or an event tells it now."""
    session.info.pop("written", None)
    session.info.pop(TRAIL_HEAD, None)


def _rows(connection: Connection, table: str, numbers: Collection[int]) -> Iterator[Any]:
    number = number_column(table)
    columns = [number, *(number.table.c[name] for name in CONTENT[table])]
    wanted = sorted(numbers)
    for start in range(0, len(wanted), _CHUNK):
        chosen = number.in_(wanted[start : start + _CHUNK])
        yield from connection.execute(select(*columns).where(chosen).order_by(number))


def add_to_ledger(connection: Connection, table: str, rows: Iterable[Any], digest: Digest) -> None:
    """Append the hashes of rows that verdicts rest on, as they are now.

    Args:
        connection: Of the writing transaction. On SQLite it holds the write lock, so the next numbers are its own; on PostgreSQL others take
            numbers beside it.
        rows: Their number first, then the columns of `CONTENT`.
    """
    remaining = iter(rows)
    while part := list(islice(remaining, _CHUNK)):
        added = []
        for place, row in zip(_next_places(connection, len(part)), part, strict=True):
            content = hash_of(table, row._mapping)  # noqa: SLF001 - SQLAlchemy's public name
            digest.add(place, ledger_row(table, row[0], content))
            added.append({"id": place, "table_name": table, "row_id": row[0], "hash": content})
        connection.execute(insert(TABLES[LEDGER]), added)


def _next_places(connection: Connection, n: int) -> Sequence[int]:
    if connection.dialect.name == "postgresql":
        taken = text("SELECT nextval('row_hash_number') FROM generate_series(1, :n)")
        return sorted(connection.execute(taken, {"n": n}).scalars())
    last = connection.execute(select(func.coalesce(func.max(TABLES[LEDGER].c.id), 0))).scalar_one()
    return range(last + 1, last + 1 + n)


def wait_for_others(session: Session, lock: int = _CLAIM_LOCK) -> None:
    """Hold whoever claims or settles at the same time until this transaction ends; on SQLite the write lock does that already."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock})


def append_event(
    session: Session,
    *,
    actor: str,
    action: str,
    subject: str,
    detail: dict[str, Any] | None = None,
    tells_rows: bool = True,
) -> None:
    """Append one event, linked to the last one by its hash, with a digest of the rows that the act wrote.

    Call it last in the transaction: on PostgreSQL it holds the chain's lock until the commit, so nothing that takes long comes after it.

    Args:
        detail: What else is to be known of it.
        tells_rows: False of a lesser event within an act whose own event comes after it and tells of the rows.
    """
    session.flush()  # what the session still holds comes before the event that tells of it
    connection, rows = session.connection(), written(session)
    rows.keep_hashes(connection)
    wait_for_others(session, _CHAIN_LOCK)
    wrote = rows.told() if tells_rows else {}
    if wrote:
        detail = {**(detail or {}), WROTE: wrote}
        forget_written(session)
    event = AuditEvent(
        at=now(),
        actor=actor,
        action=action,
        subject=subject,
        detail=json.dumps(detail or {}, ensure_ascii=False, default=str),
        previous_hash=connection.execute(_LAST_HASH).scalar() or FIRST_PREVIOUS_HASH,
        hash="",
    )
    event.hash = event.expected_hash()
    connection.execute(insert(_EVENT), event.model_dump(exclude={"id"}))
    session.info[TRAIL_HEAD] = f"{event.at.isoformat()} {event.hash}"


def is_storable(text: str) -> bool:
    r"""Whether both databases can hold a text: not with the character NUL (PostgreSQL refuses it) or half of a surrogate pair.

    >>> is_storable("fièvre 38 °C"), is_storable("a\x00b"), is_storable("a\ud83d")
    (True, False, False)
    """
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
