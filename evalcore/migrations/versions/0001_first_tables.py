"""The first tables, the append-only triggers and the full-text index."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("verdict", "audit_event")


def upgrade() -> None:
    """Create everything."""
    create_tables()
    if op.get_bind().dialect.name == "sqlite":
        refuse_changes_sqlite()
        # contentless: the index holds words, the texts stay in their own tables
        op.execute(
            "CREATE VIRTUAL TABLE search_text USING fts5(body, content='', tokenize=\"unicode61 categories 'L* M* N* Co'\")"
        )
        op.execute("INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 8388608)")  # fewer pieces to merge
    else:
        refuse_changes_postgresql()
        op.execute(
            "CREATE TABLE search_text (rowid integer PRIMARY KEY REFERENCES search_entry(id), body tsvector NOT NULL)"
        )
        op.execute("CREATE INDEX ix_search_text ON search_text USING gin(body)")


# When a row is already there: what REPLACE would delete.
PRESENT = {
    "verdict": (
        "id = NEW.id",
        "supersedes = NEW.supersedes",
        "response_id = NEW.response_id AND criterion_id = NEW.criterion_id AND rater_id = NEW.rater_id "
        "AND stage = NEW.stage AND coalesce(supersedes, 0) = coalesce(NEW.supersedes, 0)",
    ),
    "audit_event": ("id = NEW.id", "previous_hash = NEW.previous_hash", "hash = NEW.hash"),
}


def refuse_changes_sqlite() -> None:
    """UPDATE and DELETE abort, and so does an INSERT that meets a row that is there.

    REPLACE deletes that row without asking the DELETE trigger, unless the connection says PRAGMA recursive_triggers: ours do, a bare
    SQLite shell does not.
    """
    for table in APPEND_ONLY:
        for act in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{act.lower()} BEFORE {act} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only: {act} refused'); END"
            )
        present = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {there})" for there in PRESENT[table])  # noqa: S608 - our own words
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {present} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only: this row is there already'); END"
        )


def refuse_changes_postgresql() -> None:
    """UPDATE, DELETE and TRUNCATE raise."""
    op.execute(
        "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP; END $$"
    )
    for table in APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )


def create_tables() -> None:
    """The tables of `evalcore.tables` as they were at this revision."""
    op.create_table(
        "audit_event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hash"),
        sa.UniqueConstraint("previous_hash"),
    )
    op.create_table(
        "example",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset", sa.String(), nullable=False),
        sa.Column("prompt_id", sa.String(), nullable=False),
        sa.Column("messages", sa.Text(), nullable=False),
        sa.Column("n_turns", sa.Integer(), nullable=False),
        sa.Column("first_words", sa.String(), nullable=False),
        sa.Column("language", sa.String(), nullable=True),
        sa.Column("theme", sa.String(), nullable=True),
        sa.Column("category", sa.String(), nullable=True),
        sa.Column("tags", sa.String(), nullable=False),
        sa.Column("ideal_completions", sa.Text(), nullable=True),
        sa.Column("canary", sa.String(), nullable=True),
        sa.Column("provisional", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("dataset", "prompt_id"),
    )
    op.create_index("ix_example_theme", "example", ["theme"], unique=False)
    op.create_table(
        "imported_file",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("content_hash"),
    )
    op.create_table(
        "model",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "person",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("roles", sa.String(), nullable=False),
        sa.Column("specialties", sa.String(), nullable=False),
        sa.Column("languages", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "criterion",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=True),
        sa.Column("axis", sa.String(), nullable=True),
        sa.Column("level", sa.String(), nullable=True),
        sa.Column("cluster", sa.String(), nullable=True),
        sa.Column("tags", sa.String(), nullable=False),
        sa.CheckConstraint("points BETWEEN -10 AND 10 AND points <> 0", name="ck_points"),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("example_id", "position"),
    )
    op.create_table(
        "example_subset",
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("subset", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
        ),
        sa.PrimaryKeyConstraint("example_id", "subset"),
    )
    op.create_table(
        "rater",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prompt_version", sa.String(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("kind = 'judge' OR kind = 'reviewer'", name="ck_kind"),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kind", "name", "prompt_version"),
    )
    op.create_table(
        "response",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("dataset", sa.String(), nullable=False),
        sa.Column("sample_index", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("completion_id", sa.String(), nullable=True),
        sa.Column("sent_messages", sa.Text(), nullable=True),
        sa.Column("n_criteria", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["model.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),
    )
    op.create_table(
        "search_pending",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("is_example", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "search_entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("response_id", sa.Integer(), nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
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
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("supersedes", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "cause = 'judge_misread_answer' OR cause = 'judge_misread_criterion' OR cause = 'medical_disagreement'"
            " OR cause = 'criterion_ambiguous' OR cause = 'criterion_wrong' OR cause = 'context_missing' OR cause = 'language' OR cause = 'other'",
            name="ck_cause",
        ),
        sa.CheckConstraint("label = 'met' OR label = 'not_met' OR label = 'cannot_assess'", name="ck_label"),
        sa.CheckConstraint(
            "selection = 'random' OR selection = 'importance' OR selection = 'volunteered' OR selection = 'adjudication'",
            name="ck_selection",
        ),
        sa.CheckConstraint(
            "severity = 'none' OR severity = 'mild' OR severity = 'moderate' OR severity = 'severe'", name="ck_severity"
        ),
        sa.CheckConstraint(
            "stage = 'judge' OR stage = 'first' OR stage = 'revised' OR stage = 'open' OR stage = 'adjudicated'",
            name="ck_stage",
        ),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.ForeignKeyConstraint(
            ["example_id"],
            ["example.id"],
        ),
        sa.ForeignKeyConstraint(
            ["rater_id"],
            ["rater.id"],
        ),
        sa.ForeignKeyConstraint(
            ["response_id"],
            ["response.id"],
        ),
        sa.ForeignKeyConstraint(
            ["supersedes"],
            ["verdict.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_verdict_item",
        "verdict",
        ["response_id", "criterion_id", "rater_id", "stage", sa.text("coalesce(supersedes, 0)")],
        unique=True,
    )
    op.create_index(
        "ix_verdict_read",
        "verdict",
        ["response_id"],
        unique=False,
        sqlite_where=sa.text("stage != 'judge'"),
        postgresql_where=sa.text("stage != 'judge'"),
    )
    op.create_index(
        "ix_verdict_supersedes",
        "verdict",
        ["supersedes"],
        unique=True,
        sqlite_where=sa.text("supersedes IS NOT NULL"),
        postgresql_where=sa.text("supersedes IS NOT NULL"),
    )
