"""What an import leaves for afterwards: the full-text index, and in which language a conversation is.

Both cost more than everything else that an import writes. The texts wait in `search_pending` and are taken up when the import has
ended, or at the latest when somebody searches. Nothing is lost in between: what waits is in the database.
"""

import json
from collections.abc import Collection

from sqlalchemy import Engine, delete, select, text
from sqlmodel import Session

from evalcore.study.db import reading, writing
from evalcore.study.languages import language_of
from evalcore.study.store.bulk import Bulk
from evalcore.study.tables import TABLES

BATCH = 500


def index_texts(engine: Engine) -> int:
    """Index the texts that wait, in short transactions, so that nobody who saves a verdict waits long. Returns how many it was.

    Two processes may do this at once: each text enters once.
    """
    pending = TABLES["search_pending"]
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
            _tell_languages(bulk, {row.example_id for row in rows if row.is_example})
            session.connection().execute(delete(pending).where(pending.c.id.in_([row.id for row in rows])))
            n_indexed += len(rows)
    if n_indexed:
        with writing(engine) as session:
            refresh_statistics(session)
    return n_indexed


def refresh_statistics(session: Session) -> None:
    """Let the database look at what has come: PostgreSQL plans with the sizes it last saw, which after an import are none."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("ANALYZE"))


def _tell_languages(bulk: Bulk, example_ids: Collection[int]) -> None:
    told = []
    for number, messages in bulk.conversations(example_ids):
        asked = " ".join(message["content"] for message in json.loads(messages) if message["role"] == "user")
        told.append({"id": number, "language": language_of(asked)})
    bulk.update("example", told)
