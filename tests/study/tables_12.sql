-- A study's tables in SQLite at revision 12, without its triggers: what later migrations begin with.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE analysis (
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    stated_by VARCHAR NOT NULL,
    stated_at DATETIME NOT NULL,
    n_reads_before INTEGER NOT NULL,
    PRIMARY KEY (version)
);
CREATE TABLE assignment (
    id INTEGER NOT NULL,
    ask VARCHAR NOT NULL,
    n_readers INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    reserve_minutes INTEGER NOT NULL,
    selection VARCHAR NOT NULL,
    chosen_by VARCHAR NOT NULL,
    n_population INTEGER NOT NULL,
    created_by VARCHAR NOT NULL,
    created_at DATETIME NOT NULL, judge VARCHAR, practice TEXT, paused_at DATETIME, cancelled_at DATETIME, cancelled_because TEXT,
    PRIMARY KEY (id),
    CONSTRAINT ck_counts CHECK (n_readers > 0 AND reserve_minutes > 0)
);
CREATE TABLE audit_event (
    id INTEGER NOT NULL,
    at DATETIME NOT NULL,
    actor VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    detail VARCHAR NOT NULL,
    previous_hash VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (previous_hash),
    UNIQUE (hash)
);
CREATE INDEX ix_audit_event_action ON audit_event (action);
CREATE TABLE example (
    id INTEGER NOT NULL,
    dataset VARCHAR NOT NULL,
    prompt_id VARCHAR NOT NULL,
    messages TEXT NOT NULL,
    n_turns INTEGER NOT NULL,
    first_words VARCHAR NOT NULL,
    language VARCHAR,
    theme VARCHAR,
    category VARCHAR,
    tags VARCHAR NOT NULL,
    ideal_completions TEXT,
    canary VARCHAR,
    provisional BOOLEAN NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (dataset, prompt_id)
);
CREATE INDEX ix_example_theme ON example (theme);
CREATE TABLE guideline (
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    created_by VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (version)
);
CREATE TABLE imported_file (
    id INTEGER NOT NULL,
    content_hash VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (content_hash)
);
CREATE TABLE judge_confidence (
    judge VARCHAR NOT NULL,
    meaning VARCHAR NOT NULL,
    PRIMARY KEY (judge)
);
CREATE TABLE label_mapping (
    source VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    meaning VARCHAR NOT NULL,
    PRIMARY KEY (source, label)
);
CREATE TABLE model (
    id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name)
);
CREATE TABLE model_family (
    place INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,
    family VARCHAR NOT NULL,
    PRIMARY KEY (place)
);
CREATE TABLE person (
    id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    roles VARCHAR NOT NULL,
    specialties VARCHAR NOT NULL,
    languages VARCHAR NOT NULL,
    created_at DATETIME NOT NULL, active BOOLEAN DEFAULT 1 NOT NULL, group_roles VARCHAR DEFAULT '[]' NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name)
);
CREATE TABLE published_matrix (
    id INTEGER NOT NULL,
    model VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    gold VARCHAR NOT NULL,
    a INTEGER NOT NULL,
    b INTEGER NOT NULL,
    c INTEGER NOT NULL,
    d INTEGER NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT ck_counts CHECK (a >= 0 AND b >= 0 AND c >= 0 AND d >= 0),
    UNIQUE (model, format, gold)
);
CREATE TABLE row_hash (
    id INTEGER NOT NULL,
    table_name VARCHAR NOT NULL,
    row_id INTEGER NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX ix_row_hash_row ON row_hash (table_name, row_id);
CREATE TABLE run (
    id INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    spec TEXT NOT NULL,
    state VARCHAR NOT NULL,
    reason TEXT,
    max_cost FLOAT,
    max_failures INTEGER DEFAULT '25' NOT NULL,
    concurrency INTEGER NOT NULL,
    started_by VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    ended_at DATETIME,
    PRIMARY KEY (id),
    UNIQUE (fingerprint)
);
CREATE TABLE study (
    id INTEGER NOT NULL,
    "key" VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    reading_mode VARCHAR DEFAULT 'blind' NOT NULL,
    judge VARCHAR,
    check_share FLOAT DEFAULT '0' NOT NULL,
    control_share FLOAT DEFAULT '0' NOT NULL,
    both_against_judge BOOLEAN DEFAULT 0 NOT NULL,
    blind BOOLEAN DEFAULT 0 NOT NULL,
    leads_read BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT ck_check_share CHECK (check_share BETWEEN 0 AND 1)
);
CREATE TABLE triage_choice (
    id INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE unfinished_import (
    id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    source_hash VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    started_at DATETIME NOT NULL,
    asked TEXT NOT NULL,
    n_rows INTEGER NOT NULL,
    n_done INTEGER NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE acuity_case (
    example_id INTEGER NOT NULL,
    source VARCHAR NOT NULL,
    source_id VARCHAR NOT NULL,
    original_label VARCHAR,
    mapped_label VARCHAR,
    gold VARCHAR,
    method VARCHAR NOT NULL,
    is_edge_case BOOLEAN NOT NULL,
    uncertainty FLOAT,
    notes TEXT,
    PRIMARY KEY (example_id),
    CONSTRAINT ck_uncertainty CHECK (uncertainty BETWEEN 0 AND 1),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE TABLE assignment_reader (
    assignment_id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    PRIMARY KEY (assignment_id, person_id),
    FOREIGN KEY(assignment_id) REFERENCES assignment (id),
    FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE TABLE criterion (
    id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    points INTEGER,
    axis VARCHAR,
    level VARCHAR,
    cluster VARCHAR,
    tags VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT ck_points CHECK (points BETWEEN -1000 AND 1000 AND points <> 0),
    UNIQUE (example_id, position),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE TABLE example_subset (
    example_id INTEGER NOT NULL,
    subset VARCHAR NOT NULL,
    PRIMARY KEY (example_id, subset),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE TABLE exposure (
    id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    example_id INTEGER,
    through INTEGER,
    what VARCHAR NOT NULL,
    at DATETIME NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(person_id) REFERENCES person (id),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE UNIQUE INDEX ix_exposure_first ON exposure (person_id, coalesce(example_id, 0), what, coalesce(through, 0));
CREATE TABLE panel_vote (
    example_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    rater VARCHAR,
    vote VARCHAR NOT NULL,
    PRIMARY KEY (example_id, place),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE TABLE rater (
    id INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    prompt_version VARCHAR NOT NULL,
    person_id INTEGER,
    PRIMARY KEY (id),
    UNIQUE (kind, name, prompt_version),
    FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE TABLE response (
    id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    model_id INTEGER NOT NULL,
    dataset VARCHAR NOT NULL,
    sample_index INTEGER NOT NULL,
    text TEXT NOT NULL,
    completion_id VARCHAR,
    sent_messages TEXT,
    n_criteria INTEGER, finish_reason VARCHAR, made_on VARCHAR,
    PRIMARY KEY (id),
    UNIQUE (example_id, model_id, dataset, sample_index),
    FOREIGN KEY(example_id) REFERENCES example (id),
    FOREIGN KEY(model_id) REFERENCES model (id)
);
CREATE TABLE run_worker (
    id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    host VARCHAR NOT NULL,
    pid INTEGER NOT NULL,
    started_at DATETIME NOT NULL,
    seen_at DATETIME NOT NULL,
    ended_at DATETIME,
    stop_asked BOOLEAN NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES run (id)
);
CREATE INDEX ix_run_worker_run_id ON run_worker (run_id);
CREATE TABLE search_entry (
    id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE TABLE search_pending (
    id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    is_example BOOLEAN NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(example_id) REFERENCES example (id)
);
CREATE TABLE run_question (
    id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    response_id INTEGER,
    criterion_id INTEGER,
    format VARCHAR NOT NULL,
    sample_index INTEGER NOT NULL,
    repeat INTEGER NOT NULL,
    outcome VARCHAR,
    worker_id INTEGER,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES run (id),
    FOREIGN KEY(example_id) REFERENCES example (id),
    FOREIGN KEY(response_id) REFERENCES response (id),
    FOREIGN KEY(criterion_id) REFERENCES criterion (id),
    FOREIGN KEY(worker_id) REFERENCES run_worker (id)
);
CREATE UNIQUE INDEX ix_run_question_item ON run_question (run_id, example_id, coalesce(response_id, 0), coalesce(criterion_id, 0), format, sample_index, repeat);
CREATE INDEX ix_run_question_open ON run_question (run_id, id) WHERE outcome IS NULL;
CREATE TABLE suspect_response (
    id INTEGER NOT NULL,
    response_id INTEGER NOT NULL,
    reasons TEXT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (response_id),
    FOREIGN KEY(response_id) REFERENCES response (id)
);
CREATE TABLE task (
    id INTEGER NOT NULL,
    assignment_id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    response_id INTEGER,
    place INTEGER NOT NULL,
    inclusion_probability FLOAT NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT ck_inclusion CHECK (inclusion_probability > 0 AND inclusion_probability <= 1),
    UNIQUE (assignment_id, place),
    FOREIGN KEY(assignment_id) REFERENCES assignment (id),
    FOREIGN KEY(example_id) REFERENCES example (id),
    FOREIGN KEY(response_id) REFERENCES response (id)
);
CREATE INDEX ix_task_item ON task (example_id, response_id);
CREATE TABLE verdict (
    id INTEGER NOT NULL,
    example_id INTEGER NOT NULL,
    response_id INTEGER,
    criterion_id INTEGER,
    rater_id INTEGER NOT NULL,
    stage VARCHAR NOT NULL,
    label VARCHAR,
    confidence FLOAT,
    explanation TEXT,
    cause VARCHAR,
    severity VARCHAR,
    right_for_wrong_reason BOOLEAN NOT NULL,
    selection VARCHAR,
    inclusion_probability FLOAT,
    blinded BOOLEAN,
    created_at DATETIME NOT NULL,
    supersedes INTEGER,
    reason VARCHAR,
    error_kind VARCHAR,
    conflict_cause VARCHAR,
    guideline_version INTEGER,
    not_blind VARCHAR,
    source VARCHAR,
    source_hash VARCHAR,
    recorded_at DATETIME,
    row_hash BLOB,
    PRIMARY KEY (id),
    CONSTRAINT ck_confidence CHECK (confidence BETWEEN 0 AND 1),
    CONSTRAINT ck_inclusion CHECK (inclusion_probability > 0 AND inclusion_probability <= 1),
    FOREIGN KEY(example_id) REFERENCES example (id),
    FOREIGN KEY(response_id) REFERENCES response (id),
    FOREIGN KEY(criterion_id) REFERENCES criterion (id),
    FOREIGN KEY(rater_id) REFERENCES rater (id),
    FOREIGN KEY(supersedes) REFERENCES verdict (id),
    FOREIGN KEY(guideline_version) REFERENCES guideline (version)
);
CREATE UNIQUE INDEX ix_verdict_acuity ON verdict (example_id, coalesce(response_id, 0), rater_id, stage, coalesce(supersedes, 0)) WHERE criterion_id IS NULL;
CREATE UNIQUE INDEX ix_verdict_item ON verdict (response_id, criterion_id, rater_id, stage, coalesce(supersedes, 0));
CREATE INDEX ix_verdict_read ON verdict (response_id) WHERE stage != 'judge';
CREATE UNIQUE INDEX ix_verdict_supersedes ON verdict (supersedes) WHERE supersedes IS NOT NULL;
CREATE TABLE reading (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    task_id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    state VARCHAR NOT NULL,
    blinded BOOLEAN NOT NULL,
    opened_at DATETIME NOT NULL,
    last_at DATETIME NOT NULL,
    reserved_until DATETIME NOT NULL,
    locked_at DATETIME,
    done_at DATETIME,
    seconds FLOAT NOT NULL,
    place INTEGER NOT NULL,
    judge VARCHAR,
    guideline_version INTEGER,
    control_seed INTEGER,
    control_share FLOAT,
    knows_model BOOLEAN DEFAULT 0 NOT NULL, freed_at DATETIME,
    UNIQUE (task_id, person_id),
    FOREIGN KEY(task_id) REFERENCES task (id),
    FOREIGN KEY(person_id) REFERENCES person (id),
    FOREIGN KEY(guideline_version) REFERENCES guideline (version)
);
CREATE INDEX ix_reading_person ON reading (person_id, state);
CREATE TABLE run_call (
    id INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    question_id INTEGER NOT NULL,
    outcome VARCHAR NOT NULL,
    status INTEGER,
    error TEXT,
    reply TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cost FLOAT,
    attempts INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    at DATETIME NOT NULL,
    worker_id INTEGER,
    PRIMARY KEY (id),
    FOREIGN KEY(run_id) REFERENCES run (id),
    FOREIGN KEY(question_id) REFERENCES run_question (id)
);
CREATE UNIQUE INDEX ix_run_call_answered ON run_call (question_id) WHERE outcome = 'answered';
CREATE INDEX ix_run_call_run ON run_call (run_id, outcome);
CREATE TABLE mark (
    id INTEGER NOT NULL,
    reading_id INTEGER NOT NULL,
    criterion_id INTEGER,
    label VARCHAR,
    reason VARCHAR,
    note TEXT,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(reading_id) REFERENCES reading (id),
    FOREIGN KEY(criterion_id) REFERENCES criterion (id)
);
CREATE INDEX ix_mark_reading ON mark (reading_id);
CREATE VIRTUAL TABLE search_text USING fts5(body, content='', tokenize="unicode61 categories 'L* M* N* Co'");
CREATE TABLE identity (
    id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    issuer VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    created_at DATETIME NOT NULL, unbound_at DATETIME,
    PRIMARY KEY (id),
    UNIQUE (issuer, subject),
    FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE TABLE invitation (
    id INTEGER NOT NULL,
    token_hash VARCHAR NOT NULL,
    person_id INTEGER NOT NULL,
    created_by VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    used_at DATETIME,
    PRIMARY KEY (id),
    UNIQUE (token_hash),
    FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE TABLE sign_in (
    id INTEGER NOT NULL,
    token_hash VARCHAR NOT NULL,
    issuer VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    groups VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    seen_at DATETIME NOT NULL,
    ended_at DATETIME,
    PRIMARY KEY (id),
    UNIQUE (token_hash)
);
CREATE TABLE import_under_way (
    id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    started_at DATETIME NOT NULL,
    seen_at DATETIME NOT NULL,
    megabytes FLOAT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE response_note (
    id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    person_id INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    text TEXT NOT NULL,
    written_by VARCHAR NOT NULL,
    at DATETIME NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(task_id) REFERENCES task (id),
    FOREIGN KEY(person_id) REFERENCES person (id)
);
CREATE INDEX ix_response_note_thread ON response_note (task_id, person_id);
CREATE TABLE file_import (
    id INTEGER NOT NULL,
    "key" VARCHAR NOT NULL,
    source_hash VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    format VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    at DATETIME NOT NULL,
    keeps_rows BOOLEAN NOT NULL,
    withdrawn_at DATETIME,
    withdrawn_by VARCHAR,
    reason TEXT,
    PRIMARY KEY (id),
    UNIQUE ("key")
);
CREATE TABLE brought_rows (
    id INTEGER NOT NULL,
    import_id INTEGER NOT NULL,
    table_name VARCHAR NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    is_known BOOLEAN NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(import_id) REFERENCES file_import (id)
);
CREATE INDEX ix_brought_rows_import ON brought_rows (import_id);
CREATE TABLE hidden_row (
    table_name VARCHAR NOT NULL,
    row_id INTEGER NOT NULL,
    as_id INTEGER,
    is_broken BOOLEAN NOT NULL,
    PRIMARY KEY (table_name, row_id)
);
CREATE TABLE broken_response (
    response_id INTEGER NOT NULL,
    reason VARCHAR,
    marked_by VARCHAR NOT NULL,
    at DATETIME NOT NULL,
    PRIMARY KEY (response_id),
    FOREIGN KEY(response_id) REFERENCES response (id)
);
CREATE TABLE other_name (
    id INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    was VARCHAR NOT NULL,
    now VARCHAR,
    PRIMARY KEY (id),
    UNIQUE (kind, was)
);
CREATE TABLE same_as (
    table_name VARCHAR NOT NULL,
    row_id INTEGER NOT NULL,
    as_id INTEGER NOT NULL,
    PRIMARY KEY (table_name, row_id)
);
CREATE TABLE column_mapping (
    name VARCHAR NOT NULL,
    text TEXT NOT NULL,
    kept_by VARCHAR NOT NULL,
    kept_at DATETIME NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE access_key (
    id INTEGER NOT NULL,
    key_hash VARCHAR NOT NULL,
    person_id INTEGER NOT NULL,
    purpose VARCHAR NOT NULL,
    created_by VARCHAR NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    revoked_at DATETIME,
    PRIMARY KEY (id),
    UNIQUE (key_hash),
    FOREIGN KEY(person_id) REFERENCES person (id)
);
INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 8388608);
INSERT INTO alembic_version VALUES ('12');
