"""What was imported with which file, and what was withdrawn, marked as broken, renamed or merged."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    imports = op.create_table(
        "file_import",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String, nullable=False, unique=True),
        sa.Column("source_hash", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("format", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("keeps_rows", sa.Boolean, nullable=False),
        sa.Column("withdrawn_at", TIME, nullable=True),
        sa.Column("withdrawn_by", sa.String, nullable=True),
        sa.Column("reason", sa.Text, nullable=True),
    )
    op.create_table(
        "brought_rows",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("import_id", sa.Integer, sa.ForeignKey("file_import.id"), nullable=False),
        sa.Column("table_name", sa.String, nullable=False),
        sa.Column("first_id", sa.Integer, nullable=False),
        sa.Column("last_id", sa.Integer, nullable=False),
        sa.Column("is_known", sa.Boolean, nullable=False),
    )
    op.create_index("ix_brought_rows_import", "brought_rows", ["import_id"])
    op.create_table(
        "hidden_row",
        sa.Column("table_name", sa.String, primary_key=True),
        sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("as_id", sa.Integer, nullable=True),
        sa.Column("is_broken", sa.Boolean, nullable=False),
    )
    op.create_table(
        "broken_response",
        sa.Column("response_id", sa.Integer, sa.ForeignKey("response.id"), primary_key=True),
        sa.Column("reason", sa.String, nullable=True),
        sa.Column("marked_by", sa.String, nullable=False),
        sa.Column("at", TIME, nullable=False),
    )
    op.create_table(
        "other_name",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("was", sa.String, nullable=False),
        sa.Column("now", sa.String, nullable=True),
        sa.UniqueConstraint("kind", "was"),
    )
    op.create_table(
        "same_as",
        sa.Column("table_name", sa.String, primary_key=True),
        sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("as_id", sa.Integer, nullable=False),
    )
    events = sa.table(
        "audit_event",
        *(sa.column(name) for name in ("id", "actor", "action", "subject", "detail")),
        sa.column("at", TIME),
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
