"""Acts of one kind are counted without reading the whole trail."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_audit_event_action", "audit_event", ["action"])
