"""An assignment may be cancelled or paused, and what somebody has begun may be taken out of their hands."""

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "8"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("paused_at", "cancelled_at"):
        op.add_column("assignment", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column("assignment", sa.Column("cancelled_because", sa.Text, nullable=True))
    op.add_column("reading", sa.Column("freed_at", sa.DateTime(timezone=True), nullable=True))
