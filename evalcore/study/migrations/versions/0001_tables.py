"""All tables of the first version, and the full-text index."""

import sqlalchemy as sa
from alembic import op

from evalcore.study.migrations.words import columns, index, numbered, table

revision = "1"
down_revision = None


def upgrade() -> None:  # noqa: PLR0915 - every table once
    """The tables, each after those that it refers to."""
    table("analysis", "version int key, text text, stated_by, stated_at time, n_reads_before int")
    numbered(
        "assignment",
        "ask, n_readers int, seed int, reserve_minutes int, selection, chosen_by, n_population int, created_by, "
        "created_at time",
        sa.CheckConstraint("n_readers > 0 AND reserve_minutes > 0", name="ck_counts"),
    )
    numbered("audit_event", "at time, actor, action, subject, detail, previous_hash unique, hash unique")
    index("ix_audit_event_action", "audit_event", "action")
    numbered(
        "example",
        "dataset, prompt_id, messages text, n_turns int, first_words, language null, theme null, category null, "
        "tags, ideal_completions text null, canary null, provisional bool",
        sa.UniqueConstraint("dataset", "prompt_id"),
    )
    index("ix_example_theme", "example", "theme")
    table("guideline", "version int key, text text, created_by, created_at time")
    numbered("imported_file", "content_hash unique, name, format, created_at time")
    table("judge_confidence", "judge key, meaning")
    table("label_mapping", "source key, label key, meaning")
    numbered("model", "name unique")
    table("model_family", "place int key, pattern, family")
    numbered("person", "name unique, roles, specialties, languages, created_at time")
    numbered(
        "published_matrix",
        "model, format, gold, a int, b int, c int, d int",
        sa.CheckConstraint("a >= 0 AND b >= 0 AND c >= 0 AND d >= 0", name="ck_counts"),
        sa.UniqueConstraint("model", "format", "gold"),
    )
    op.create_table(
        "row_hash",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        *columns("table_name, row_id int, hash bytes"),
    )
    index("ix_row_hash_row", "row_hash", "table_name, row_id")
    numbered(
        "run",
        "kind, name, fingerprint unique, spec text, state, reason text null, max_cost float null, "
        "max_failures int = 25, concurrency int, started_by, created_at time, ended_at time null",
    )
    numbered(
        "study",
        "key, created_at time, reading_mode = blind, judge null, check_share float = 0, control_share float = 0, "
        "both_against_judge bool = false, blind bool = false, leads_read bool = false",
        sa.CheckConstraint("check_share BETWEEN 0 AND 1", name="ck_check_share"),
    )
    numbered("triage_choice", "text text")
    numbered(
        "unfinished_import",
        "name, source_hash, actor, started_at time, asked text, n_rows int, n_done int, report text",
    )
    table(
        "acuity_case",
        "example_id int of example.id key, source, source_id, original_label null, mapped_label null, gold null, "
        "method, is_edge_case bool, uncertainty float null, notes text null",
        sa.CheckConstraint("uncertainty BETWEEN 0 AND 1", name="ck_uncertainty"),
    )
    table("assignment_reader", "assignment_id int of assignment.id key, person_id int of person.id key")
    numbered(
        "criterion",
        "example_id int of example.id, position int, text text, points int null, axis null, level null, "
        "cluster null, tags",
        sa.CheckConstraint("points BETWEEN -10 AND 10 AND points <> 0", name="ck_points"),
        sa.UniqueConstraint("example_id", "position"),
    )
    table("example_subset", "example_id int of example.id key, subset key")
    numbered(
        "exposure", "person_id int of person.id, example_id int of example.id null, through int null, what, at time"
    )
    index(
        "ix_exposure_first", "exposure", "person_id, coalesce(example_id, 0), what, coalesce(through, 0)", unique=True
    )
    table("panel_vote", "example_id int of example.id key, place int key, rater null, vote")
    numbered(
        "rater",
        "kind, name, prompt_version, person_id int of person.id null",
        sa.UniqueConstraint("kind", "name", "prompt_version"),
    )
    numbered(
        "response",
        "example_id int of example.id, model_id int of model.id, dataset, sample_index int, text text, "
        "completion_id null, sent_messages text null, n_criteria int null",
        sa.UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),
    )
    numbered(
        "run_worker",
        "run_id int of run.id, host, pid int, started_at time, seen_at time, ended_at time null, stop_asked bool",
    )
    index("ix_run_worker_run_id", "run_worker", "run_id")
    numbered("search_entry", "example_id int of example.id")
    numbered("search_pending", "example_id int of example.id, body text, is_example bool")
    numbered(
        "run_question",
        "run_id int of run.id, example_id int of example.id, response_id int of response.id null, "
        "criterion_id int of criterion.id null, format, sample_index int, repeat int, outcome null, "
        "worker_id int of run_worker.id null",
    )
    index(
        "ix_run_question_item",
        "run_question",
        "run_id, example_id, coalesce(response_id, 0), coalesce(criterion_id, 0), format, sample_index, repeat",
        unique=True,
    )
    index("ix_run_question_open", "run_question", "run_id, id", where="outcome IS NULL")
    numbered("suspect_response", "response_id int of response.id, reasons text", sa.UniqueConstraint("response_id"))
    numbered(
        "task",
        "assignment_id int of assignment.id, example_id int of example.id, response_id int of response.id null, "
        "place int, inclusion_probability float",
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        sa.UniqueConstraint("assignment_id", "place"),
    )
    index("ix_task_item", "task", "example_id, response_id")
    numbered(
        "verdict",
        "example_id int of example.id, response_id int of response.id null, criterion_id int of criterion.id null, "
        "rater_id int of rater.id, stage, label null, confidence float null, explanation text null, cause null, "
        "severity null, right_for_wrong_reason bool, selection null, inclusion_probability float null, "
        "blinded bool null, created_at time, supersedes int of verdict.id null, reason null, error_kind null, "
        "conflict_cause null, guideline_version int of guideline.version null, not_blind null, source null, "
        "source_hash null, recorded_at time null, row_hash bytes null",
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
    )
    index(
        "ix_verdict_acuity",
        "verdict",
        "example_id, coalesce(response_id, 0), rater_id, stage, coalesce(supersedes, 0)",
        unique=True,
        where="criterion_id IS NULL",
    )
    index(
        "ix_verdict_item", "verdict", "response_id, criterion_id, rater_id, stage, coalesce(supersedes, 0)", unique=True
    )
    index("ix_verdict_read", "verdict", "response_id", where="stage != 'judge'")
    index("ix_verdict_supersedes", "verdict", "supersedes", unique=True, where="supersedes IS NOT NULL")
    numbered(
        "reading",
        "task_id int of task.id, person_id int of person.id, state, blinded bool, opened_at time, last_at time, "
        "reserved_until time, locked_at time null, done_at time null, seconds float, place int, judge null, "
        "guideline_version int of guideline.version null, control_seed int null, control_share float null, "
        "knows_model bool = false",
        sa.UniqueConstraint("task_id", "person_id"),
        sqlite_autoincrement=True,
    )
    index("ix_reading_person", "reading", "person_id, state")
    numbered(
        "run_call",
        "run_id int of run.id, question_id int of run_question.id, outcome, status int null, error text null, "
        "reply text null, prompt_tokens int null, completion_tokens int null, cost float null, attempts int, "
        "seconds float, at time, worker_id int null",
    )
    index("ix_run_call_answered", "run_call", "question_id", unique=True, where="outcome = 'answered'")
    index("ix_run_call_run", "run_call", "run_id, outcome")
    numbered(
        "mark",
        "reading_id int of reading.id, criterion_id int of criterion.id null, label null, reason null, "
        "note text null, created_at time",
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
