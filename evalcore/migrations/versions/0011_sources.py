"""How a verdict came here, with which file, and when it was written. Rows that are here already stay as they are: their hashes hold."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

SOURCES = ("session", "import", "run")


def upgrade() -> None:
    either = " OR ".join(f"source = '{word}'" for word in SOURCES)
    op.execute(f"ALTER TABLE verdict ADD COLUMN source VARCHAR CONSTRAINT ck_source CHECK ({either})")
    op.add_column("verdict", sa.Column("source_hash", sa.String(), nullable=True))
    op.add_column("verdict", sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=True))
