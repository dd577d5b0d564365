"""Who saw verdicts on what, append-only; why a read is not blind; a study in which readers see no verdict before their own."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

WHAT = ("conversation", "adjudication", "export", "preview", "bundle", "released")
WHY = ("open", "exposed", "role")


def upgrade() -> None:
    op.add_column("study", sa.Column("blind", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("study", sa.Column("leads_read", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("reading", sa.Column("knows_model", sa.Boolean(), nullable=False, server_default=sa.false()))
    why = " OR ".join(f"not_blind = '{word}'" for word in WHY)
    op.execute(f"ALTER TABLE verdict ADD COLUMN not_blind VARCHAR CONSTRAINT ck_not_blind CHECK ({why})")
    op.create_table(
        "exposure",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=True),
        sa.Column("through", sa.Integer(), nullable=True),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"]),
        sa.CheckConstraint(" OR ".join(f"what = '{word}'" for word in WHAT), name="ck_what"),
    )
    op.create_index(
        "ix_exposure_first",
        "exposure",
        ["person_id", sa.text("coalesce(example_id, 0)"), "what", sa.text("coalesce(through, 0)")],
        unique=True,
    )
    if op.get_bind().dialect.name != "sqlite":
        op.execute(
            "CREATE TRIGGER exposure_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON exposure "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )
        return
    for act in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER exposure_no_{act.lower()} BEFORE {act} ON exposure "
            f"BEGIN SELECT RAISE(ABORT, 'exposure is append-only: {act} refused'); END"
        )
    # by its number, and by what is unique: REPLACE would delete the older row without asking the DELETE trigger
    same = (
        "person_id = NEW.person_id AND coalesce(example_id, 0) = coalesce(NEW.example_id, 0) "
        "AND what = NEW.what AND coalesce(through, 0) = coalesce(NEW.through, 0)"
    )
    op.execute(
        f"CREATE TRIGGER exposure_no_replace BEFORE INSERT ON exposure WHEN EXISTS (SELECT 1 FROM exposure WHERE id = NEW.id OR {same}) "  # noqa: S608
        "BEGIN SELECT RAISE(ABORT, 'exposure is append-only: this row is there already'); END"
    )
