"""Whose verdicts the readers of an assignment are shown."""

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("assignment", sa.Column("judge", sa.String, nullable=True))
