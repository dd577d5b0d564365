"""The mappings of a study, by name: written and read."""

from sqlalchemy import delete, insert, select
from sqlmodel import Session

from evalcore.study.store import append_event
from evalcore.study.tables import TABLES, now


def mappings(session: Session) -> dict[str, str]:
    """The YAML of each mapping, by its name."""
    rows = TABLES["column_mapping"].c
    found = session.connection().execute(select(rows.name, rows.text).order_by(rows.name))
    return {row.name: row.text for row in found}


def set_mapping(session: Session, name: str, text: str, *, actor: str) -> bool:
    """Keep a mapping under a name, in place of the one that had it. Returns whether anything changed."""
    if mappings(session).get(name) == text:
        return False
    rows, connection = TABLES["column_mapping"], session.connection()
    connection.execute(delete(rows).where(rows.c.name == name))
    connection.execute(insert(rows), [{"name": name, "text": text, "kept_by": actor, "kept_at": now()}])
    append_event(session, actor=actor, action="mapping kept", subject=f"mapping {name}", detail={"text": text})
    return True
