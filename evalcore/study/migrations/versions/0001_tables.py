"""All tables of the first version, and the full-text index."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def column(
    name: str,
    kind: Any,
    *,
    refers: str | None = None,
    key: bool = False,
    nullable: bool = False,
    default: Any = None,
    **more: Any,
) -> sa.Column[Any]:
    """A column that holds something in every row, unless said otherwise."""
    refers_to = [sa.ForeignKey(refers)] if refers else []
    return sa.Column(name, kind, *refers_to, primary_key=key, nullable=nullable, server_default=default, **more)


def where(condition: str) -> dict[str, Any]:
    """An index over some rows."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:  # noqa: PLR0915 - every table once
    """The tables, each after those that it refers to."""
    op.create_table(
        "analysis",
        column("version", sa.Integer, key=True),
        column("text", sa.Text),
        column("stated_by", sa.String),
        column("stated_at", TIME),
        column("n_reads_before", sa.Integer),
    )
    op.create_table(
        "assignment",
        column("id", sa.Integer, key=True),
        column("ask", sa.String),
        column("n_readers", sa.Integer),
        column("seed", sa.Integer),
        column("reserve_minutes", sa.Integer),
        column("selection", sa.String),
        column("chosen_by", sa.String),
        column("n_population", sa.Integer),
        column("created_by", sa.String),
        column("created_at", TIME),
        sa.CheckConstraint("n_readers > 0 AND reserve_minutes > 0", name="ck_counts"),
    )
    op.create_table(
        "audit_event",
        column("id", sa.Integer, key=True),
        column("at", TIME),
        column("actor", sa.String),
        column("action", sa.String),
        column("subject", sa.String),
        column("detail", sa.String),
        column("previous_hash", sa.String, unique=True),
        column("hash", sa.String, unique=True),
    )
    op.create_index("ix_audit_event_action", "audit_event", ["action"])
    op.create_table(
        "example",
        column("id", sa.Integer, key=True),
        column("dataset", sa.String),
        column("prompt_id", sa.String),
        column("messages", sa.Text),
        column("n_turns", sa.Integer),
        column("first_words", sa.String),
        column("language", sa.String, nullable=True),
        column("theme", sa.String, nullable=True),
        column("category", sa.String, nullable=True),
        column("tags", sa.String),
        column("ideal_completions", sa.Text, nullable=True),
        column("canary", sa.String, nullable=True),
        column("provisional", sa.Boolean),
        sa.UniqueConstraint("dataset", "prompt_id"),
    )
    op.create_index("ix_example_theme", "example", ["theme"])
    op.create_table(
        "guideline",
        column("version", sa.Integer, key=True),
        column("text", sa.Text),
        column("created_by", sa.String),
        column("created_at", TIME),
    )
    op.create_table(
        "imported_file",
        column("id", sa.Integer, key=True),
        column("content_hash", sa.String, unique=True),
        column("name", sa.String),
        column("format", sa.String),
        column("created_at", TIME),
    )
    op.create_table("judge_confidence", column("judge", sa.String, key=True), column("meaning", sa.String))
    op.create_table(
        "label_mapping",
        column("source", sa.String, key=True),
        column("label", sa.String, key=True),
        column("meaning", sa.String),
    )
    op.create_table("model", column("id", sa.Integer, key=True), column("name", sa.String, unique=True))
    op.create_table(
        "model_family", column("place", sa.Integer, key=True), column("pattern", sa.String), column("family", sa.String)
    )
    op.create_table(
        "person",
        column("id", sa.Integer, key=True),
        column("name", sa.String, unique=True),
        column("roles", sa.String),
        column("specialties", sa.String),
        column("languages", sa.String),
        column("created_at", TIME),
    )
    op.create_table(
        "published_matrix",
        column("id", sa.Integer, key=True),
        column("model", sa.String),
        column("format", sa.String),
        column("gold", sa.String),
        column("a", sa.Integer),
        column("b", sa.Integer),
        column("c", sa.Integer),
        column("d", sa.Integer),
        sa.CheckConstraint("a >= 0 AND b >= 0 AND c >= 0 AND d >= 0", name="ck_counts"),
        sa.UniqueConstraint("model", "format", "gold"),
    )
    op.create_table(
        "row_hash",
        column("id", sa.Integer, key=True, autoincrement=False),
        column("table_name", sa.String),
        column("row_id", sa.Integer),
        column("hash", sa.LargeBinary),
    )
    op.create_index("ix_row_hash_row", "row_hash", ["table_name", "row_id"])
    op.create_table(
        "run",
        column("id", sa.Integer, key=True),
        column("kind", sa.String),
        column("name", sa.String),
        column("fingerprint", sa.String, unique=True),
        column("spec", sa.Text),
        column("state", sa.String),
        column("reason", sa.Text, nullable=True),
        column("max_cost", sa.Float, nullable=True),
        column("max_failures", sa.Integer, default="25"),
        column("concurrency", sa.Integer),
        column("started_by", sa.String),
        column("created_at", TIME),
        column("ended_at", TIME, nullable=True),
    )
    op.create_table(
        "study",
        column("id", sa.Integer, key=True),
        column("key", sa.String),
        column("created_at", TIME),
        column("reading_mode", sa.String, default="blind"),
        column("judge", sa.String, nullable=True),
        column("check_share", sa.Float, default="0"),
        column("control_share", sa.Float, default="0"),
        column("both_against_judge", sa.Boolean, default=sa.false()),
        column("blind", sa.Boolean, default=sa.false()),
        column("leads_read", sa.Boolean, default=sa.false()),
        sa.CheckConstraint("check_share BETWEEN 0 AND 1", name="ck_check_share"),
    )
    op.create_table("triage_choice", column("id", sa.Integer, key=True), column("text", sa.Text))
    op.create_table(
        "unfinished_import",
        column("id", sa.Integer, key=True),
        column("name", sa.String),
        column("source_hash", sa.String),
        column("actor", sa.String),
        column("started_at", TIME),
        column("asked", sa.Text),
        column("n_rows", sa.Integer),
        column("n_done", sa.Integer),
        column("report", sa.Text),
    )
    op.create_table(
        "acuity_case",
        column("example_id", sa.Integer, refers="example.id", key=True),
        column("source", sa.String),
        column("source_id", sa.String),
        column("original_label", sa.String, nullable=True),
        column("mapped_label", sa.String, nullable=True),
        column("gold", sa.String, nullable=True),
        column("method", sa.String),
        column("is_edge_case", sa.Boolean),
        column("uncertainty", sa.Float, nullable=True),
        column("notes", sa.Text, nullable=True),
        sa.CheckConstraint("uncertainty BETWEEN 0 AND 1", name="ck_uncertainty"),
    )
    op.create_table(
        "assignment_reader",
        column("assignment_id", sa.Integer, refers="assignment.id", key=True),
        column("person_id", sa.Integer, refers="person.id", key=True),
    )
    op.create_table(
        "criterion",
        column("id", sa.Integer, key=True),
        column("example_id", sa.Integer, refers="example.id"),
        column("position", sa.Integer),
        column("text", sa.Text),
        column("points", sa.Integer, nullable=True),
        column("axis", sa.String, nullable=True),
        column("level", sa.String, nullable=True),
        column("cluster", sa.String, nullable=True),
        column("tags", sa.String),
        sa.CheckConstraint("points BETWEEN -10 AND 10 AND points <> 0", name="ck_points"),
        sa.UniqueConstraint("example_id", "position"),
    )
    op.create_table(
        "example_subset",
        column("example_id", sa.Integer, refers="example.id", key=True),
        column("subset", sa.String, key=True),
    )
    op.create_table(
        "exposure",
        column("id", sa.Integer, key=True),
        column("person_id", sa.Integer, refers="person.id"),
        column("example_id", sa.Integer, refers="example.id", nullable=True),
        column("through", sa.Integer, nullable=True),
        column("what", sa.String),
        column("at", TIME),
    )
    op.create_index(
        "ix_exposure_first",
        "exposure",
        ["person_id", sa.text("coalesce(example_id, 0)"), "what", sa.text("coalesce(through, 0)")],
        unique=True,
    )
    op.create_table(
        "panel_vote",
        column("example_id", sa.Integer, refers="example.id", key=True),
        column("place", sa.Integer, key=True),
        column("rater", sa.String, nullable=True),
        column("vote", sa.String),
    )
    op.create_table(
        "rater",
        column("id", sa.Integer, key=True),
        column("kind", sa.String),
        column("name", sa.String),
        column("prompt_version", sa.String),
        column("person_id", sa.Integer, refers="person.id", nullable=True),
        sa.UniqueConstraint("kind", "name", "prompt_version"),
    )
    op.create_table(
        "response",
        column("id", sa.Integer, key=True),
        column("example_id", sa.Integer, refers="example.id"),
        column("model_id", sa.Integer, refers="model.id"),
        column("dataset", sa.String),
        column("sample_index", sa.Integer),
        column("text", sa.Text),
        column("completion_id", sa.String, nullable=True),
        column("sent_messages", sa.Text, nullable=True),
        column("n_criteria", sa.Integer, nullable=True),
        sa.UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),
    )
    op.create_table(
        "run_worker",
        column("id", sa.Integer, key=True),
        column("run_id", sa.Integer, refers="run.id"),
        column("host", sa.String),
        column("pid", sa.Integer),
        column("started_at", TIME),
        column("seen_at", TIME),
        column("ended_at", TIME, nullable=True),
        column("stop_asked", sa.Boolean),
    )
    op.create_index("ix_run_worker_run_id", "run_worker", ["run_id"])
    op.create_table(
        "search_entry", column("id", sa.Integer, key=True), column("example_id", sa.Integer, refers="example.id")
    )
    op.create_table(
        "search_pending",
        column("id", sa.Integer, key=True),
        column("example_id", sa.Integer, refers="example.id"),
        column("body", sa.Text),
        column("is_example", sa.Boolean),
    )
    op.create_table(
        "run_question",
        column("id", sa.Integer, key=True),
        column("run_id", sa.Integer, refers="run.id"),
        column("example_id", sa.Integer, refers="example.id"),
        column("response_id", sa.Integer, refers="response.id", nullable=True),
        column("criterion_id", sa.Integer, refers="criterion.id", nullable=True),
        column("format", sa.String),
        column("sample_index", sa.Integer),
        column("repeat", sa.Integer),
        column("outcome", sa.String, nullable=True),
        column("worker_id", sa.Integer, refers="run_worker.id", nullable=True),
    )
    op.create_index(
        "ix_run_question_item",
        "run_question",
        [
            "run_id",
            "example_id",
            sa.text("coalesce(response_id, 0)"),
            sa.text("coalesce(criterion_id, 0)"),
            "format",
            "sample_index",
            "repeat",
        ],
        unique=True,
    )
    op.create_index("ix_run_question_open", "run_question", ["run_id", "id"], **where("outcome IS NULL"))
    op.create_table(
        "suspect_response",
        column("id", sa.Integer, key=True),
        column("response_id", sa.Integer, refers="response.id"),
        column("reasons", sa.Text),
        sa.UniqueConstraint("response_id"),
    )
    op.create_table(
        "task",
        column("id", sa.Integer, key=True),
        column("assignment_id", sa.Integer, refers="assignment.id"),
        column("example_id", sa.Integer, refers="example.id"),
        column("response_id", sa.Integer, refers="response.id", nullable=True),
        column("place", sa.Integer),
        column("inclusion_probability", sa.Float),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        sa.UniqueConstraint("assignment_id", "place"),
    )
    op.create_index("ix_task_item", "task", ["example_id", "response_id"])
    op.create_table(
        "verdict",
        column("id", sa.Integer, key=True),
        column("example_id", sa.Integer, refers="example.id"),
        column("response_id", sa.Integer, refers="response.id", nullable=True),
        column("criterion_id", sa.Integer, refers="criterion.id", nullable=True),
        column("rater_id", sa.Integer, refers="rater.id"),
        column("stage", sa.String),
        column("label", sa.String, nullable=True),
        column("confidence", sa.Float, nullable=True),
        column("explanation", sa.Text, nullable=True),
        column("cause", sa.String, nullable=True),
        column("severity", sa.String, nullable=True),
        column("right_for_wrong_reason", sa.Boolean),
        column("selection", sa.String, nullable=True),
        column("inclusion_probability", sa.Float, nullable=True),
        column("blinded", sa.Boolean, nullable=True),
        column("created_at", TIME),
        column("supersedes", sa.Integer, refers="verdict.id", nullable=True),
        column("reason", sa.String, nullable=True),
        column("error_kind", sa.String, nullable=True),
        column("conflict_cause", sa.String, nullable=True),
        column("guideline_version", sa.Integer, refers="guideline.version", nullable=True),
        column("not_blind", sa.String, nullable=True),
        column("source", sa.String, nullable=True),
        column("source_hash", sa.String, nullable=True),
        column("recorded_at", TIME, nullable=True),
        column("row_hash", sa.LargeBinary, nullable=True),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
    )
    op.create_index(
        "ix_verdict_acuity",
        "verdict",
        ["example_id", sa.text("coalesce(response_id, 0)"), "rater_id", "stage", sa.text("coalesce(supersedes, 0)")],
        unique=True,
        **where("criterion_id IS NULL"),
    )
    op.create_index(
        "ix_verdict_item",
        "verdict",
        ["response_id", "criterion_id", "rater_id", "stage", sa.text("coalesce(supersedes, 0)")],
        unique=True,
    )
    op.create_index("ix_verdict_read", "verdict", ["response_id"], **where("stage != 'judge'"))
    op.create_index("ix_verdict_supersedes", "verdict", ["supersedes"], unique=True, **where("supersedes IS NOT NULL"))
    op.create_table(
        "reading",
        column("id", sa.Integer, key=True),
        column("task_id", sa.Integer, refers="task.id"),
        column("person_id", sa.Integer, refers="person.id"),
        column("state", sa.String),
        column("blinded", sa.Boolean),
        column("opened_at", TIME),
        column("last_at", TIME),
        column("reserved_until", TIME),
        column("locked_at", TIME, nullable=True),
        column("done_at", TIME, nullable=True),
        column("seconds", sa.Float),
        column("place", sa.Integer),
        column("judge", sa.String, nullable=True),
        column("guideline_version", sa.Integer, refers="guideline.version", nullable=True),
        column("control_seed", sa.Integer, nullable=True),
        column("control_share", sa.Float, nullable=True),
        column("knows_model", sa.Boolean, default=sa.false()),
        sa.UniqueConstraint("task_id", "person_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reading_person", "reading", ["person_id", "state"])
    op.create_table(
        "run_call",
        column("id", sa.Integer, key=True),
        column("run_id", sa.Integer, refers="run.id"),
        column("question_id", sa.Integer, refers="run_question.id"),
        column("outcome", sa.String),
        column("status", sa.Integer, nullable=True),
        column("error", sa.Text, nullable=True),
        column("reply", sa.Text, nullable=True),
        column("prompt_tokens", sa.Integer, nullable=True),
        column("completion_tokens", sa.Integer, nullable=True),
        column("cost", sa.Float, nullable=True),
        column("attempts", sa.Integer),
        column("seconds", sa.Float),
        column("at", TIME),
        column("worker_id", sa.Integer, nullable=True),
    )
    op.create_index("ix_run_call_answered", "run_call", ["question_id"], unique=True, **where("outcome = 'answered'"))
    op.create_index("ix_run_call_run", "run_call", ["run_id", "outcome"])
    op.create_table(
        "mark",
        column("id", sa.Integer, key=True),
        column("reading_id", sa.Integer, refers="reading.id"),
        column("criterion_id", sa.Integer, refers="criterion.id", nullable=True),
        column("label", sa.String, nullable=True),
        column("reason", sa.String, nullable=True),
        column("note", sa.Text, nullable=True),
        column("created_at", TIME),
    )
    op.create_index("ix_mark_reading", "mark", ["reading_id"])
    if op.get_bind().dialect.name == "sqlite":
        # contentless: the index holds words, the texts stay in their own tables
        op.execute(
            "CREATE VIRTUAL TABLE search_text USING fts5(body, content='', tokenize=\"unicode61 categories 'L* M* N* Co'\")"
        )
        op.execute("INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 8388608)")  # fewer pieces to merge
        return
    op.execute(
        "CREATE TABLE search_text (rowid integer PRIMARY KEY REFERENCES search_entry(id), body tsvector NOT NULL)"
    )
    op.execute("CREATE INDEX ix_search_text ON search_text USING gin(body)")
    # acts take the numbers of kept hashes side by side
    op.execute("CREATE SEQUENCE row_hash_number AS integer OWNED BY row_hash.id")
