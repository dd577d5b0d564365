"""Acts of one kind are counted without reading the whole trail; what each worker of a run spent; how many failures in a row stop a run."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_audit_event_action", "audit_event", ["action"])
    op.add_column("run", sa.Column("max_failures", sa.Integer(), nullable=False, server_default="25"))
    op.add_column("run_call", sa.Column("worker_id", sa.Integer(), nullable=True))
