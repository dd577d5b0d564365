"""Which files were imported, which large one is being written in parts, and what an import leaves for afterwards.

The full-text index, and in which language a conversation is, cost more than everything else that an import writes. The texts wait in
`search_pending` and are taken up when the import has ended, or at the latest when somebody searches: what waits is in the database.
"""

import json

import msgspec
from sqlalchemy import Engine, delete, insert, select, text, update
from sqlmodel import Session

from evalcore.study.db import reading, writing
from evalcore.study.languages import language_of
from evalcore.study.schema import PART_IMPORTED, Unfinished
from evalcore.study.store.bulk import Bulk
from evalcore.study.store.events import append_event, written
from evalcore.study.tables import TABLES, now

BATCH = 500


def add_imported_file(session: Session, *, content_hash: str, name: str, format_name: str) -> None:
    """Remember a file's content, so that importing it again adds nothing."""
    row = {"content_hash": content_hash, "name": name, "format": format_name, "created_at": now()}
    session.connection().execute(insert(TABLES["imported_file"]), row)


def begin_parts(session: Session, begun: Unfinished) -> None:
    """Remember what is to be written in parts; in place of the same that was broken off."""
    end_parts(session)
    session.connection().execute(insert(TABLES["unfinished_import"]), {"id": 1, **msgspec.structs.asdict(begun)})


def note_part(session: Session, *, n_done: int, report: str) -> None:
    """Remember how far the file is in the study, and what came of that."""
    session.connection().execute(update(TABLES["unfinished_import"]).values(n_done=n_done, report=report))


def append_part(session: Session, begun: Unfinished, *, n_done: int) -> None:
    """Tell which rows a part wrote; where it wrote none, since all of them were there, nothing is told."""
    if written(session):
        detail = {"source_hash": begun.source_hash, "rows": n_done, "of": begun.n_rows}
        append_event(session, actor=begun.actor, action=PART_IMPORTED, subject=begun.name, detail=detail)


def end_parts(session: Session) -> None:
    """Nothing is written in parts any more."""
    session.connection().execute(delete(TABLES["unfinished_import"]))


def index_texts(engine: Engine) -> int:
    """Index the texts that wait, in short transactions, so that nobody who saves a verdict waits long. Returns how many it was.

    Two processes may do this at once: each text enters once.
    """
    pending, example = TABLES["search_pending"], TABLES["example"].c
    waiting = select(pending).order_by(pending.c.id).limit(BATCH)
    n_indexed = 0
    while True:
        with reading(engine) as session:
            if session.connection().execute(select(pending.c.id).limit(1)).first() is None:
                break
        with writing(engine) as session:
            rows = session.connection().execute(waiting.with_for_update(skip_locked=True)).all()
            if not rows:  # another process has them in hand
                break
            bulk = Bulk(session)
            bulk.index((row.example_id, [row.body]) for row in rows)
            conversations = select(example.id, example.messages).where(
                example.id.in_({row.example_id for row in rows if row.is_example})
            )
            languages = [
                {"id": number, "language": _language(messages)}
                for number, messages in session.connection().execute(conversations)
            ]
            bulk.update("example", languages)
            session.connection().execute(delete(pending).where(pending.c.id.in_([row.id for row in rows])))
            n_indexed += len(rows)
    if n_indexed:
        with writing(engine) as session:
            refresh_statistics(session)
    return n_indexed


def _language(messages: str) -> str | None:
    return language_of(" ".join(turn["content"] for turn in json.loads(messages) if turn["role"] == "user"))


def refresh_statistics(session: Session) -> None:
    """Let the database look at what has come: PostgreSQL plans with the sizes it last saw, which after an import are none."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("ANALYZE"))
