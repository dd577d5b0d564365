"""Which files were imported, and which large one is being written in parts."""

from typing import Any

from sqlalchemy import delete, insert, update
from sqlmodel import Session

from evalcore.study.schema import PART_IMPORTED, Unfinished
from evalcore.study.store.events import append_event
from evalcore.study.store.written import written
from evalcore.study.tables import TABLES, now


def add_imported_file(session: Session, *, content_hash: str, name: str, format_name: str) -> None:
    """Remember a file's content, so that importing it again adds nothing."""
    row = {"content_hash": content_hash, "name": name, "format": format_name, "created_at": now()}
    session.connection().execute(insert(TABLES["imported_file"]), row)


def begin_parts(session: Session, begun: Unfinished) -> None:
    """Remember what is to be written in parts; in place of the same that was broken off."""
    end_parts(session)
    values = {name: getattr(begun, name) for name in begun.__struct_fields__}
    session.connection().execute(insert(TABLES["unfinished_import"]), {"id": 1, **values})


def note_part(session: Session, *, n_done: int, report: str) -> None:
    """Remember how far the file is in the study, and what came of that."""
    table = TABLES["unfinished_import"]
    session.connection().execute(update(table).values(n_done=n_done, report=report))


def append_part(session: Session, begun: Unfinished, *, n_done: int) -> None:
    """Tell which rows a part wrote; where it wrote none, since all of them were there, nothing is told."""
    detail: dict[str, Any] = {"source_hash": begun.source_hash, "rows": n_done, "of": begun.n_rows}
    if written(session):
        append_event(session, actor=begun.actor, action=PART_IMPORTED, subject=begun.name, detail=detail)


def end_parts(session: Session) -> None:
    """Nothing is written in parts any more."""
    session.connection().execute(delete(TABLES["unfinished_import"]))
