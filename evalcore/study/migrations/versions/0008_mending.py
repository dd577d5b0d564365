"""What was imported with which file, and what was withdrawn, marked as broken, renamed or merged."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from evalcore.study.migrations.words import KINDS, index, numbered, table

revision = "8"
down_revision = "7"


def upgrade() -> None:
    imports = numbered(
        "file_import",
        "key unique, source_hash, name, format, actor, at time, keeps_rows bool, withdrawn_at time null, "
        "withdrawn_by null, reason text null",
    )
    numbered("brought_rows", "import_id int of file_import.id, table_name, first_id int, last_id int, is_known bool")
    index("ix_brought_rows_import", "brought_rows", "import_id")
    table("hidden_row", "table_name key, row_id int key, as_id int null, is_broken bool")
    table("broken_response", "response_id int of response.id key, reason null, marked_by, at time")
    numbered("other_name", "kind, was, now null", sa.UniqueConstraint("kind", "was"))
    table("same_as", "table_name key, row_id int key, as_id int")
    events = sa.table(
        "audit_event",
        *(sa.column(name) for name in ("id", "actor", "action", "subject", "detail")),
        sa.column("at", KINDS["time"]),
    )
    told = sa.select(events).where(events.c.action.in_(["file imported", "import stopped"])).order_by(events.c.id)
    older: dict[str, dict[str, Any]] = {}
    for event in op.get_bind().execute(told):
        detail = json.loads(event.detail)
        if source_hash := detail.get("source_hash"):
            named = {"key": f"older {source_hash}", "source_hash": source_hash, "name": event.subject}
            by = {"format": detail.get("format", ""), "actor": event.actor, "at": event.at, "keeps_rows": False}
            older.setdefault(source_hash, named | by)
    if older:
        op.bulk_insert(imports, list(older.values()))
