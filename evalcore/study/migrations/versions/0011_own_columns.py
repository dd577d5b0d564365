"""Mappings of columns, by name; how a response ended, and when it was made."""

import sqlalchemy as sa
from alembic import op

revision = "11"
down_revision = "10"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "column_mapping",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("kept_by", sa.String, nullable=False),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.add_column("response", sa.Column("finish_reason", sa.String, nullable=True))
    op.add_column("response", sa.Column("made_on", sa.String, nullable=True))
