"""All tables of the first version, and the full-text index."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
RESPONSE, CRITERION, REPLACES = (f"coalesce({name}, 0)" for name in ("response_id", "criterion_id", "supersedes"))


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


def columns(kind: Any, *names: str, **more: Any) -> list[sa.Column[Any]]:
    """Several alike."""
    return [column(name, kind, **more) for name in names]


def refers(*names: str, **more: Any) -> list[sa.Column[Any]]:
    """Numbers of rows of other tables: `person_id` of person."""
    return [column(name, sa.Integer, refers=f"{name.removesuffix('_id')}.id", **more) for name in names]


def numbered(name: str, *parts: Any, **more: Any) -> None:
    """A table whose rows have a number."""
    op.create_table(name, column("id", sa.Integer, key=True), *parts, **more)


def index(name: str, table: str, *parts: str, unique: bool = False, where: str | None = None) -> None:
    """An index over columns, or SQL of them; `where`: over some rows."""
    condition = None if where is None else sa.text(where)
    columns = [sa.text(part) if "(" in part else part for part in parts]
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


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
    numbered(
        "assignment",
        column("ask", sa.String),
        *columns(sa.Integer, "n_readers", "seed", "reserve_minutes"),
        *columns(sa.String, "selection", "chosen_by"),
        column("n_population", sa.Integer),
        column("created_by", sa.String),
        column("created_at", TIME),
        sa.CheckConstraint("n_readers > 0 AND reserve_minutes > 0", name="ck_counts"),
    )
    numbered(
        "audit_event",
        column("at", TIME),
        *columns(sa.String, "actor", "action", "subject", "detail"),
        column("previous_hash", sa.String, unique=True),
        column("hash", sa.String, unique=True),
    )
    index("ix_audit_event_action", "audit_event", "action")
    numbered(
        "example",
        *columns(sa.String, "dataset", "prompt_id"),
        column("messages", sa.Text),
        column("n_turns", sa.Integer),
        column("first_words", sa.String),
        *columns(sa.String, "language", "theme", "category", nullable=True),
        column("tags", sa.String),
        column("ideal_completions", sa.Text, nullable=True),
        column("canary", sa.String, nullable=True),
        column("provisional", sa.Boolean),
        sa.UniqueConstraint("dataset", "prompt_id"),
    )
    index("ix_example_theme", "example", "theme")
    op.create_table(
        "guideline",
        column("version", sa.Integer, key=True),
        column("text", sa.Text),
        column("created_by", sa.String),
        column("created_at", TIME),
    )
    numbered(
        "imported_file",
        column("content_hash", sa.String, unique=True),
        *columns(sa.String, "name", "format"),
        column("created_at", TIME),
    )
    op.create_table("judge_confidence", column("judge", sa.String, key=True), column("meaning", sa.String))
    op.create_table(
        "label_mapping",
        column("source", sa.String, key=True),
        column("label", sa.String, key=True),
        column("meaning", sa.String),
    )
    numbered("model", column("name", sa.String, unique=True))
    op.create_table("model_family", column("place", sa.Integer, key=True), *columns(sa.String, "pattern", "family"))
    numbered(
        "person",
        column("name", sa.String, unique=True),
        *columns(sa.String, "roles", "specialties", "languages"),
        column("created_at", TIME),
    )
    numbered(
        "published_matrix",
        *columns(sa.String, "model", "format", "gold"),
        *columns(sa.Integer, "a", "b", "c", "d"),
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
    index("ix_row_hash_row", "row_hash", "table_name", "row_id")
    numbered(
        "run",
        *columns(sa.String, "kind", "name"),
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
    numbered(
        "study",
        column("key", sa.String),
        column("created_at", TIME),
        column("reading_mode", sa.String, default="blind"),
        column("judge", sa.String, nullable=True),
        *columns(sa.Float, "check_share", "control_share", default="0"),
        *columns(sa.Boolean, "both_against_judge", "blind", "leads_read", default=sa.false()),
        sa.CheckConstraint("check_share BETWEEN 0 AND 1", name="ck_check_share"),
    )
    numbered("triage_choice", column("text", sa.Text))
    numbered(
        "unfinished_import",
        *columns(sa.String, "name", "source_hash", "actor"),
        column("started_at", TIME),
        column("asked", sa.Text),
        *columns(sa.Integer, "n_rows", "n_done"),
        column("report", sa.Text),
    )
    op.create_table(
        "acuity_case",
        column("example_id", sa.Integer, refers="example.id", key=True),
        *columns(sa.String, "source", "source_id"),
        *columns(sa.String, "original_label", "mapped_label", "gold", nullable=True),
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
    numbered(
        "criterion",
        *refers("example_id"),
        column("position", sa.Integer),
        column("text", sa.Text),
        column("points", sa.Integer, nullable=True),
        *columns(sa.String, "axis", "level", "cluster", nullable=True),
        column("tags", sa.String),
        sa.CheckConstraint("points BETWEEN -10 AND 10 AND points <> 0", name="ck_points"),
        sa.UniqueConstraint("example_id", "position"),
    )
    op.create_table(
        "example_subset",
        column("example_id", sa.Integer, refers="example.id", key=True),
        column("subset", sa.String, key=True),
    )
    numbered(
        "exposure",
        *refers("person_id"),
        *refers("example_id", nullable=True),
        column("through", sa.Integer, nullable=True),
        column("what", sa.String),
        column("at", TIME),
    )
    index(
        "ix_exposure_first",
        "exposure",
        "person_id",
        "coalesce(example_id, 0)",
        "what",
        "coalesce(through, 0)",
        unique=True,
    )
    op.create_table(
        "panel_vote",
        column("example_id", sa.Integer, refers="example.id", key=True),
        column("place", sa.Integer, key=True),
        column("rater", sa.String, nullable=True),
        column("vote", sa.String),
    )
    numbered(
        "rater",
        *columns(sa.String, "kind", "name", "prompt_version"),
        *refers("person_id", nullable=True),
        sa.UniqueConstraint("kind", "name", "prompt_version"),
    )
    numbered(
        "response",
        *refers("example_id", "model_id"),
        column("dataset", sa.String),
        column("sample_index", sa.Integer),
        column("text", sa.Text),
        column("completion_id", sa.String, nullable=True),
        column("sent_messages", sa.Text, nullable=True),
        column("n_criteria", sa.Integer, nullable=True),
        sa.UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),
    )
    numbered(
        "run_worker",
        *refers("run_id"),
        column("host", sa.String),
        column("pid", sa.Integer),
        *columns(TIME, "started_at", "seen_at"),
        column("ended_at", TIME, nullable=True),
        column("stop_asked", sa.Boolean),
    )
    index("ix_run_worker_run_id", "run_worker", "run_id")
    numbered("search_entry", *refers("example_id"))
    numbered("search_pending", *refers("example_id"), column("body", sa.Text), column("is_example", sa.Boolean))
    numbered(
        "run_question",
        *refers("run_id", "example_id"),
        *refers("response_id", "criterion_id", nullable=True),
        column("format", sa.String),
        *columns(sa.Integer, "sample_index", "repeat"),
        column("outcome", sa.String, nullable=True),
        column("worker_id", sa.Integer, refers="run_worker.id", nullable=True),
    )
    index(
        "ix_run_question_item",
        "run_question",
        "run_id",
        "example_id",
        RESPONSE,
        CRITERION,
        "format",
        "sample_index",
        "repeat",
        unique=True,
    )
    index("ix_run_question_open", "run_question", "run_id", "id", where="outcome IS NULL")
    numbered("suspect_response", *refers("response_id"), column("reasons", sa.Text), sa.UniqueConstraint("response_id"))
    numbered(
        "task",
        *refers("assignment_id", "example_id"),
        *refers("response_id", nullable=True),
        column("place", sa.Integer),
        column("inclusion_probability", sa.Float),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        sa.UniqueConstraint("assignment_id", "place"),
    )
    index("ix_task_item", "task", "example_id", "response_id")
    numbered(
        "verdict",
        *refers("example_id"),
        *refers("response_id", "criterion_id", nullable=True),
        *refers("rater_id"),
        column("stage", sa.String),
        column("label", sa.String, nullable=True),
        column("confidence", sa.Float, nullable=True),
        column("explanation", sa.Text, nullable=True),
        *columns(sa.String, "cause", "severity", nullable=True),
        column("right_for_wrong_reason", sa.Boolean),
        column("selection", sa.String, nullable=True),
        column("inclusion_probability", sa.Float, nullable=True),
        column("blinded", sa.Boolean, nullable=True),
        column("created_at", TIME),
        column("supersedes", sa.Integer, refers="verdict.id", nullable=True),
        *columns(sa.String, "reason", "error_kind", "conflict_cause", nullable=True),
        column("guideline_version", sa.Integer, refers="guideline.version", nullable=True),
        *columns(sa.String, "not_blind", "source", "source_hash", nullable=True),
        column("recorded_at", TIME, nullable=True),
        column("row_hash", sa.LargeBinary, nullable=True),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
    )
    index(
        "ix_verdict_acuity",
        "verdict",
        "example_id",
        RESPONSE,
        "rater_id",
        "stage",
        REPLACES,
        unique=True,
        where="criterion_id IS NULL",
    )
    index("ix_verdict_item", "verdict", "response_id", "criterion_id", "rater_id", "stage", REPLACES, unique=True)
    index("ix_verdict_read", "verdict", "response_id", where="stage != 'judge'")
    index("ix_verdict_supersedes", "verdict", "supersedes", unique=True, where="supersedes IS NOT NULL")
    numbered(
        "reading",
        *refers("task_id", "person_id"),
        column("state", sa.String),
        column("blinded", sa.Boolean),
        *columns(TIME, "opened_at", "last_at", "reserved_until"),
        *columns(TIME, "locked_at", "done_at", nullable=True),
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
    index("ix_reading_person", "reading", "person_id", "state")
    numbered(
        "run_call",
        *refers("run_id"),
        column("question_id", sa.Integer, refers="run_question.id"),
        column("outcome", sa.String),
        column("status", sa.Integer, nullable=True),
        *columns(sa.Text, "error", "reply", nullable=True),
        *columns(sa.Integer, "prompt_tokens", "completion_tokens", nullable=True),
        column("cost", sa.Float, nullable=True),
        column("attempts", sa.Integer),
        column("seconds", sa.Float),
        column("at", TIME),
        column("worker_id", sa.Integer, nullable=True),
    )
    index("ix_run_call_answered", "run_call", "question_id", unique=True, where="outcome = 'answered'")
    index("ix_run_call_run", "run_call", "run_id", "outcome")
    numbered(
        "mark",
        *refers("reading_id"),
        *refers("criterion_id", nullable=True),
        *columns(sa.String, "label", "reason", nullable=True),
        column("note", sa.Text, nullable=True),
        column("created_at", TIME),
    )
    index("ix_mark_reading", "mark", "reading_id")
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
