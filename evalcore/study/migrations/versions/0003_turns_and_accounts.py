"""Who is importing just now; accounts that are nobody's any more; roles that groups of the provider gave."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "import_under_way",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("megabytes", sa.Float, nullable=False),
    )
    op.add_column("identity", sa.Column("unbound_at", TIME, nullable=True))
    op.add_column("person", sa.Column("group_roles", sa.String, nullable=False, server_default="[]"))
