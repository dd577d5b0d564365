"""Assigned reading: rules of the study, guideline, assignments, tasks, readings, drafts; verdicts on acuity and with more to say."""

from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

CRITERION_LABELS = ("met", "not_met", "cannot_assess")
ACUITY = ("A", "A/B", "B", "B/C", "C", "C/D", "D", "remove")
WORDS = {
    "label": (*CRITERION_LABELS, *ACUITY),
    "reason": ("context_missing", "outside_specialty", "language", "criterion_unclear", "needs_examination"),
    "cause": (
        "judge_misread_answer",
        "judge_misread_criterion",
        "medical_disagreement",
        "criterion_ambiguous",
        "criterion_wrong",
        "context_missing",
        "language",
        "other",
    ),
    "error_kind": ("omission", "commission"),
    "conflict_cause": (
        "reader_slipped",
        "criterion_ambiguous",
        "context_missing",
        "clinical_disagreement",
        "criterion_wrong",
    ),
    "severity": ("none", "mild", "moderate", "severe"),
    "selection": ("random", "importance", "volunteered", "adjudication"),
    "stage": ("judge", "first", "revised", "open", "adjudicated"),
    "ask": ("rubric", "response_acuity", "gold_acuity"),
    "state": ("reading", "revealed", "done"),
    "reading_mode": ("blind", "open"),
}
FORMER = (
    "id", "example_id", "response_id", "criterion_id", "rater_id", "stage", "label", "confidence", "explanation", "cause", "severity",
    "right_for_wrong_reason", "selection", "inclusion_probability", "blinded", "created_at", "supersedes",
)  # fmt: skip
ADDED = ("reason", "error_kind", "conflict_cause")
# When a row is already there: what REPLACE would delete.
PRESENT = (
    "id = NEW.id",
    "supersedes = NEW.supersedes",
    "response_id = NEW.response_id AND criterion_id = NEW.criterion_id AND rater_id = NEW.rater_id "
    "AND stage = NEW.stage AND coalesce(supersedes, 0) = coalesce(NEW.supersedes, 0)",
    "criterion_id IS NULL AND NEW.criterion_id IS NULL AND example_id = NEW.example_id "
    "AND coalesce(response_id, 0) = coalesce(NEW.response_id, 0) AND rater_id = NEW.rater_id "
    "AND stage = NEW.stage AND coalesce(supersedes, 0) = coalesce(NEW.supersedes, 0)",
)


def one_of(column: str) -> sa.CheckConstraint:
    """The words of a column as they were at this revision."""
    return sa.CheckConstraint(" OR ".join(f"{column} = '{word}'" for word in WORDS[column]), name=f"ck_{column}")


def moment(name: str, *, nullable: bool = False) -> sa.Column[datetime]:
    """A column with a time."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def upgrade() -> None:
    """Create and change."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "guideline",
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        moment("created_at"),
        sa.PrimaryKeyConstraint("version"),
    )
    widen_study()
    if sqlite:
        rebuild_verdict_sqlite()
    else:
        widen_verdict_postgresql()
    op.create_index(
        "ix_verdict_acuity",
        "verdict",
        ["example_id", sa.text("coalesce(response_id, 0)"), "rater_id", "stage", sa.text("coalesce(supersedes, 0)")],
        unique=True,
        sqlite_where=sa.text("criterion_id IS NULL"),
        postgresql_where=sa.text("criterion_id IS NULL"),
    )
    create_reading_tables()


def widen_study() -> None:
    """The rules of a study; one row, made anew on SQLite, which adds no constraint to a table that is there."""
    with op.batch_alter_table("study") as study:
        study.add_column(sa.Column("reading_mode", sa.String(), nullable=False, server_default="blind"))
        study.add_column(sa.Column("judge", sa.String(), nullable=True))
        study.add_column(sa.Column("check_share", sa.Float(), nullable=False, server_default="0"))
        study.add_column(sa.Column("both_against_judge", sa.Boolean(), nullable=False, server_default=sa.false()))
        study.create_check_constraint("ck_reading_mode", one_of("reading_mode").sqltext)
        study.create_check_constraint("ck_check_share", "check_share BETWEEN 0 AND 1")


def widen_verdict_postgresql() -> None:
    """A verdict on acuity has no criterion, and one on a case itself no response."""
    for column in ("response_id", "criterion_id"):
        op.alter_column("verdict", column, nullable=True)
    for column in ADDED:
        op.add_column("verdict", sa.Column(column, sa.String(), nullable=True))
    op.add_column("verdict", sa.Column("guideline_version", sa.Integer(), nullable=True))
    op.create_foreign_key(None, "verdict", "guideline", ["guideline_version"], ["version"])
    op.drop_constraint("ck_label", "verdict")
    for column in ("label", *ADDED):
        op.create_check_constraint(f"ck_{column}", "verdict", one_of(column).sqltext)


def rebuild_verdict_sqlite() -> None:
    """The same on SQLite, which can only copy the rows into a new table. Dropping the old one drops its triggers and indexes."""
    create_verdict("verdict_new")
    columns = ", ".join(FORMER)
    op.execute(f"INSERT INTO verdict_new ({columns}) SELECT {columns} FROM verdict ORDER BY id")  # noqa: S608 - our own words
    op.drop_table("verdict")
    op.rename_table("verdict_new", "verdict")
    op.create_index(
        "ix_verdict_item",
        "verdict",
        ["response_id", "criterion_id", "rater_id", "stage", sa.text("coalesce(supersedes, 0)")],
        unique=True,
    )
    op.create_index("ix_verdict_read", "verdict", ["response_id"], sqlite_where=sa.text("stage != 'judge'"))
    op.create_index(
        "ix_verdict_supersedes",
        "verdict",
        ["supersedes"],
        unique=True,
        sqlite_where=sa.text("supersedes IS NOT NULL"),
    )
    for act in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER verdict_no_{act.lower()} BEFORE {act} ON verdict "
            f"BEGIN SELECT RAISE(ABORT, 'verdict is append-only: {act} refused'); END"
        )
    present = " OR ".join(f"EXISTS (SELECT 1 FROM verdict WHERE {there})" for there in PRESENT)  # noqa: S608 - our own words
    op.execute(
        f"CREATE TRIGGER verdict_no_replace BEFORE INSERT ON verdict WHEN {present} "
        "BEGIN SELECT RAISE(ABORT, 'verdict is append-only: this row is there already'); END"
    )


def create_verdict(name: str) -> None:
    """The table of verdicts at this revision."""
    op.create_table(
        name,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("response_id", sa.Integer(), nullable=True),
        sa.Column("criterion_id", sa.Integer(), nullable=True),
        sa.Column("rater_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("explanation", sa.Text(), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("severity", sa.String(), nullable=True),
        sa.Column("right_for_wrong_reason", sa.Boolean(), nullable=False),
        sa.Column("selection", sa.String(), nullable=True),
        sa.Column("inclusion_probability", sa.Float(), nullable=True),
        sa.Column("blinded", sa.Boolean(), nullable=True),
        moment("created_at"),
        sa.Column("supersedes", sa.Integer(), nullable=True),
        *(sa.Column(column, sa.String(), nullable=True) for column in ADDED),
        sa.Column("guideline_version", sa.Integer(), nullable=True),
        *(one_of(column) for column in ("label", "cause", "severity", "selection", "stage", *ADDED)),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        sa.ForeignKeyConstraint(["criterion_id"], ["criterion.id"]),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"]),
        sa.ForeignKeyConstraint(["rater_id"], ["rater.id"]),
        sa.ForeignKeyConstraint(["response_id"], ["response.id"]),
        sa.ForeignKeyConstraint(["supersedes"], [f"{name}.id"]),
        sa.ForeignKeyConstraint(["guideline_version"], ["guideline.version"]),
        sa.PrimaryKeyConstraint("id"),
    )


def create_reading_tables() -> None:
    """What is to be read, by whom, how far each reader is."""
    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("ask", sa.String(), nullable=False),
        sa.Column("n_readers", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("reserve_minutes", sa.Integer(), nullable=False),
        sa.Column("selection", sa.String(), nullable=False),
        sa.Column("chosen_by", sa.String(), nullable=False),
        sa.Column("n_population", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        moment("created_at"),
        one_of("ask"),
        one_of("selection"),
        sa.CheckConstraint("n_readers > 0 AND reserve_minutes > 0", name="ck_counts"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "assignment_reader",
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("assignment_id", "person_id"),
    )
    op.create_table(
        "task",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("response_id", sa.Integer(), nullable=True),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("inclusion_probability", sa.Float(), nullable=False),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"]),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"]),
        sa.ForeignKeyConstraint(["response_id"], ["response.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("assignment_id", "place"),
    )
    op.create_index("ix_task_item", "task", ["example_id", "response_id"])
    op.create_table(
        "reading",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("blinded", sa.Boolean(), nullable=False),
        moment("opened_at"),
        moment("last_at"),
        moment("reserved_until"),
        moment("locked_at", nullable=True),
        moment("done_at", nullable=True),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("judge", sa.String(), nullable=True),
        sa.Column("guideline_version", sa.Integer(), nullable=True),
        one_of("state"),
        sa.ForeignKeyConstraint(["task_id"], ["task.id"]),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.ForeignKeyConstraint(["guideline_version"], ["guideline.version"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("task_id", "person_id"),
        sqlite_autoincrement=True,  # a number is never used again: a tab may still show an item that was given back
    )
    op.create_index("ix_reading_person", "reading", ["person_id", "state"])
    op.create_table(
        "mark",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("reading_id", sa.Integer(), nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=True),
        sa.Column("label", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        moment("created_at"),
        one_of("label"),
        one_of("reason"),
        sa.ForeignKeyConstraint(["reading_id"], ["reading.id"]),
        sa.ForeignKeyConstraint(["criterion_id"], ["criterion.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_mark_reading", "mark", ["reading_id"])
