"""The study's own table of families of models."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_family",
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("pattern", sa.String(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("place"),
    )
