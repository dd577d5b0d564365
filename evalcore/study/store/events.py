"""The audit trail: appended to, never changed."""

import json
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, insert, select, text
from sqlmodel import Session

from evalcore.study.db import TRAIL_HEAD
from evalcore.study.store.written import forget_written, written
from evalcore.study.tables import TABLES, AuditEvent, now

FIRST_PREVIOUS_HASH = "0" * 64
WROTE = "wrote"
"""Under this name an event's detail has, by table, the numbers of the rows that its act wrote and their digest."""
_CHAIN_LOCK = 0x61756469  # any constant: "audi"


def _table() -> Table:
    return TABLES["audit_event"]


@cache
def _last_hash() -> Select[Any]:
    return select(_table().c.hash).order_by(_table().c.id.desc()).limit(1)


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
    On SQLite the writing transaction holds the write lock already.

    Args:
        detail: What else is to be known of it.
        tells_rows: False of a lesser event within an act whose own event comes after it and tells of the rows.
    """
    session.flush()  # what the session still holds comes before the event that tells of it
    connection, rows = session.connection(), written(session)
    rows.keep_hashes(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CHAIN_LOCK})
    wrote = rows.told() if tells_rows else {}
    if wrote:
        detail = {**(detail or {}), WROTE: wrote}
        forget_written(session)
    last = connection.execute(_last_hash()).scalar()
    event = AuditEvent(
        at=now(),
        actor=actor,
        action=action,
        subject=subject,
        detail=json.dumps(detail or {}, ensure_ascii=False, default=str),
        previous_hash=last or FIRST_PREVIOUS_HASH,
        hash="",
    )
    event.hash = event.expected_hash()
    connection.execute(insert(_table()), event.model_dump(exclude={"id"}))
    session.info[TRAIL_HEAD] = f"{event.at.isoformat()} {event.hash}"
