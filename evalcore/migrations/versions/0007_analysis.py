"""What the study analyses: versions of its statement, append-only."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "analysis",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("stated_by", sa.String(), nullable=False),
        sa.Column("stated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("n_reads_before", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("version"),
    )
    if op.get_bind().dialect.name != "sqlite":
        op.execute(
            "CREATE TRIGGER analysis_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON analysis "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )
        return
    for act in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER analysis_no_{act.lower()} BEFORE {act} ON analysis "
            f"BEGIN SELECT RAISE(ABORT, 'analysis is append-only: {act} refused'); END"
        )
    op.execute(
        "CREATE TRIGGER analysis_no_replace BEFORE INSERT ON analysis "
        "WHEN EXISTS (SELECT 1 FROM analysis WHERE version = NEW.version) "
        "BEGIN SELECT RAISE(ABORT, 'analysis is append-only: this row is there already'); END"
    )
