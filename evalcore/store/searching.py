"""The full-text index follows the rows.

An import leaves its texts in `search_pending`, since words cost more than everything else that it writes; they are indexed when it
has ended, or at the latest when somebody searches. Nothing is lost in between: what waits is in the database.
"""

from sqlalchemy import Engine, delete, select
from sqlmodel import SQLModel

from evalcore.db import reading, writing
from evalcore.store.bulk import Bulk

BATCH = 500


def bring_search_up_to_date(engine: Engine) -> int:
    """Index what waits, in short transactions, so that nobody who saves a verdict waits long. Returns how many texts it was.

    Two processes may do this at once: each text enters once.
    """
    pending = SQLModel.metadata.tables["search_pending"]
    waiting = select(pending).order_by(pending.c.id).limit(BATCH)
    n_indexed = 0
    while True:
        with reading(engine) as session:
            if session.connection().execute(select(pending.c.id).limit(1)).first() is None:
                return n_indexed
        with writing(engine) as session:
            rows = session.connection().execute(waiting.with_for_update(skip_locked=True)).all()
            if not rows:  # another process has them in hand
                return n_indexed
            Bulk(session).index((row.example_id, [row.body]) for row in rows)
            session.connection().execute(delete(pending).where(pending.c.id.in_([row.id for row in rows])))
            n_indexed += len(rows)
