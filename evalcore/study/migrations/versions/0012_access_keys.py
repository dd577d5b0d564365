"""Keys with which a program reads the study over HTTP."""

import sqlalchemy as sa
from alembic import op

revision = "12"
down_revision = "11"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "access_key",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key_hash", sa.String, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("person.id"), nullable=False),
        sa.Column("purpose", sa.String, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.UniqueConstraint("key_hash"),
    )
