"""A random share of the criteria of a read gets a second look without the judge's verdict: the control of what seeing it changes."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("study", sa.Column("control_share", sa.Float(), nullable=False, server_default="0"))
    op.add_column("reading", sa.Column("control_seed", sa.Integer(), nullable=True))
    op.add_column("reading", sa.Column("control_share", sa.Float(), nullable=True))
