"""The tables. Rows are checked before they come here (importers, pages); constraints of the database are the last wall.

`verdict`, `row_hash`, `guideline`, `analysis`, `exposure` and `audit_event` are append-only: triggers in the database refuse UPDATE, DELETE
and REPLACE (see migrations).
"""

import hashlib
import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    func,
)
from sqlalchemy.engine import Dialect
from sqlmodel import Field, SQLModel

from evalcore.schema import (
    MAX_POINTS,
    MIN_POINTS,
    Acuity,
    CannotReason,
    Cause,
    ConflictCause,
    ErrorKind,
    Label,
    NotBlind,
    RaterKind,
    ReadingMode,
    Selection,
    Severity,
    Source,
    Stage,
)


class UtcDateTime(TypeDecorator[datetime]):
    """Times are stored in UTC and come back with their zone; SQLite itself forgets it."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """To UTC; a time without a zone is a mistake of ours."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = f"time without a zone: {value!r}"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """In UTC again: SQLite gives no zone back, PostgreSQL that of its session."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def now() -> datetime:
    """The present time in UTC."""
    return datetime.now(tz=UTC)


def one_of(column: str, *words: type[StrEnum]) -> CheckConstraint:
    """A column holds one of these words, or nothing."""
    # not IN: SQLite makes a list of the words anew for every row, which costs more than the rest of the insert
    either = " OR ".join(f"{column} = '{word.value}'" for kind in words for word in kind)
    return CheckConstraint(either, name=f"ck_{column}")


def moment() -> Any:
    """A time, the present one by default."""
    return Field(default_factory=now, sa_column=Column(UtcDateTime(), nullable=False))


def moment_or_none() -> Any:
    """A time, or none yet."""
    return Field(default=None, sa_column=Column(UtcDateTime(), nullable=True))


def text_column(*, nullable: bool = False) -> Any:
    """Text of any length."""
    return Field(default=None, sa_column=Column(Text, nullable=nullable))


class Study(SQLModel, table=True):
    """One row: what this database is.

    Attributes:
        key: Random and secret. Its start names the cookie with the browser's choice of person, so that two studies on one machine
            do not share it; the whole keys the hashes that stand for names in meta-evaluation rows.
        reading_mode, judge, check_share, both_against_judge, control_share, blind, leads_read: `schema.Rules`.
    """

    __table_args__ = (
        one_of("reading_mode", ReadingMode),
        CheckConstraint("check_share BETWEEN 0 AND 1", name="ck_check_share"),
    )

    id: int = Field(default=1, primary_key=True)
    key: str
    created_at: datetime = moment()
    reading_mode: str = Field(default=ReadingMode.BLIND, sa_column_kwargs={"server_default": ReadingMode.BLIND})
    judge: str | None = None
    check_share: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    control_share: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    both_against_judge: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    blind: bool = Field(default=False, sa_column_kwargs={"server_default": false()})
    leads_read: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class Person(SQLModel, table=True):
    """Somebody who uses this study. Lists are JSON arrays."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    roles: str
    specialties: str = "[]"
    languages: str = "[]"
    created_at: datetime = moment()


class Rater(SQLModel, table=True):
    """A judge with its prompt version, or a physician; `person_id` where the physician reads here."""

    __table_args__ = (UniqueConstraint("kind", "name", "prompt_version"), one_of("kind", RaterKind))

    id: int | None = Field(default=None, primary_key=True)
    kind: str
    name: str
    prompt_version: str = ""
    person_id: int | None = Field(default=None, foreign_key="person.id")


class Example(SQLModel, table=True):
    """A conversation with its tags. `messages` and `tags` are JSON; `provisional`: known only from results on it."""

    __table_args__ = (UniqueConstraint("dataset", "prompt_id"), Index("ix_example_theme", "theme"))

    id: int | None = Field(default=None, primary_key=True)
    dataset: str
    prompt_id: str
    messages: str = text_column()
    n_turns: int
    first_words: str
    language: str | None = None
    theme: str | None = None
    category: str | None = None
    tags: str = "[]"
    ideal_completions: str | None = text_column(nullable=True)
    canary: str | None = None
    provisional: bool = False


class ExampleSubset(SQLModel, table=True):
    """Membership of an example in a part of its data set: oss_eval, hard, consensus."""

    __tablename__ = "example_subset"

    example_id: int = Field(foreign_key="example.id", primary_key=True)
    subset: str = Field(primary_key=True)


class Criterion(SQLModel, table=True):
    """One line of a rubric; `position` counts from 1."""

    __table_args__ = (
        UniqueConstraint("example_id", "position"),
        CheckConstraint(f"points BETWEEN {MIN_POINTS} AND {MAX_POINTS} AND points <> 0", name="ck_points"),
    )

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    position: int
    text: str = text_column()
    points: int | None = None
    axis: str | None = None
    level: str | None = None
    cluster: str | None = None
    tags: str = "[]"


class Model(SQLModel, table=True):
    """A language model that answers."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)


class Response(SQLModel, table=True):
    """One model's answer to one example.

    Attributes:
        dataset: The evaluation it was made for, e.g. healthbench_hard.
        sample_index: 0, 1, ... for repeats.
        sent_messages: JSON of what was sent to the model, where it is not the example's conversation.
        n_criteria: How many criteria a judge is asked on it; with fewer verdicts there is no score.
    """

    __table_args__ = (UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),)

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    model_id: int = Field(foreign_key="model.id")
    dataset: str
    sample_index: int = 0
    text: str = text_column()
    completion_id: str | None = None
    sent_messages: str | None = text_column(nullable=True)
    n_criteria: int | None = None


class Verdict(SQLModel, table=True):
    """One rater's label on one item, append-only.

    The first verdict of a rater on an item and stage is unique, and so is the one that supersedes a given verdict:
    two tabs that press at once leave one verdict, and the second is told.

    Attributes:
        created_at: When it was given: of an imported one what its file says.
        source, source_hash: How it came here (`schema.Source`), and the SHA-256 of the file that brought it. None: from before this was kept.
        recorded_at: When this program wrote it, by its own clock.
    """

    __table_args__ = (
        one_of("stage", Stage),
        one_of("label", Label, Acuity),
        one_of("reason", CannotReason),
        one_of("cause", Cause),
        one_of("error_kind", ErrorKind),
        one_of("conflict_cause", ConflictCause),
        one_of("severity", Severity),
        one_of("selection", Selection),
        one_of("not_blind", NotBlind),
        one_of("source", Source),
        CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
    )

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    rater_id: int = Field(foreign_key="rater.id")
    stage: str
    label: str | None = None
    confidence: float | None = None
    explanation: str | None = text_column(nullable=True)
    cause: str | None = None
    severity: str | None = None
    right_for_wrong_reason: bool = False
    selection: str | None = None
    inclusion_probability: float | None = None
    blinded: bool | None = None
    created_at: datetime = moment()
    supersedes: int | None = Field(default=None, foreign_key="verdict.id")
    reason: str | None = None
    error_kind: str | None = None
    conflict_cause: str | None = None
    guideline_version: int | None = Field(default=None, foreign_key="guideline.version")
    not_blind: str | None = None
    source: str | None = None
    source_hash: str | None = None
    recorded_at: datetime | None = moment_or_none()
    row_hash: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))


class Guideline(SQLModel, table=True):
    """One version of what readers are told, in Markdown; append-only by its use: each verdict names its version."""

    version: int | None = Field(default=None, primary_key=True)
    text: str = text_column()
    created_by: str
    created_at: datetime = moment()


class AnalysisVersion(SQLModel, table=True):
    """One statement of what is analysed; append-only, the newest is in force.

    Attributes:
        text: JSON of `analysis.Analysis`.
        n_reads_before: Physicians' blind first reads of items that existed when it was stated.
    """

    __tablename__ = "analysis"

    version: int | None = Field(default=None, primary_key=True)
    text: str = text_column()
    stated_by: str
    stated_at: datetime = moment()
    n_reads_before: int


class ImportedFile(SQLModel, table=True):
    """A file that was imported: the same content with the same meaning adds nothing again."""

    __tablename__ = "imported_file"

    id: int | None = Field(default=None, primary_key=True)
    content_hash: str = Field(unique=True)
    name: str
    format: str
    created_at: datetime = moment()


class UnfinishedImport(SQLModel, table=True):
    """The import that is being written in parts, or was broken off between two of them; one at a time, and none where all are whole.

    Attributes:
        asked: What the file was to be imported as, as JSON.
        n_rows, n_done: Rows of the file, and those of them that are in the study.
        report: What came of the rows that are in the study, as JSON.
    """

    __tablename__ = "unfinished_import"

    id: int = Field(default=1, primary_key=True)
    name: str
    source_hash: str
    actor: str
    started_at: datetime = moment()
    asked: str = text_column()
    n_rows: int
    n_done: int = 0
    report: str = text_column()


class ModelFamily(SQLModel, table=True):
    """One row of the study's own table of families: the first pattern, by place, that fits a model's or judge's name."""

    __tablename__ = "model_family"

    place: int = Field(primary_key=True)
    pattern: str
    family: str


class SearchEntry(SQLModel, table=True):
    """What a row of the full-text index belongs to; its text lives in the index alone."""

    __tablename__ = "search_entry"

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")


class SearchPending(SQLModel, table=True):
    """Text that waits to enter the full-text index; `store.index_texts` moves it there.

    Attributes:
        is_example: It is the example's own text, so the example's language is to be told as well.
    """

    __tablename__ = "search_pending"

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    body: str = text_column()
    is_example: bool = False


class AuditEvent(SQLModel, table=True):
    """Who did what, when, on which item; append-only, each with the hash of the one before it."""

    __tablename__ = "audit_event"

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = moment()
    actor: str
    action: str = Field(index=True)
    subject: str
    detail: str = "{}"
    previous_hash: str = Field(unique=True)
    hash: str = Field(unique=True)

    def expected_hash(self) -> str:
        """SHA-256 over this event and the hash of the one before it."""
        parts = [self.previous_hash, self.at.isoformat(), self.actor, self.action, self.subject, self.detail]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


class RowHash(SQLModel, table=True):
    """The hash of a row that verdicts rest on, as an act left it (`row_hashes`); append-only, the newest of a row counts."""

    __tablename__ = "row_hash"
    __table_args__ = (Index("ix_row_hash_row", "table_name", "row_id"),)

    id: int | None = Field(default=None, sa_column=Column(Integer, primary_key=True, autoincrement=False))
    table_name: str
    row_id: int
    hash: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


_verdict = SQLModel.metadata.tables["verdict"].c
Index(
    "ix_verdict_item",
    _verdict.response_id,
    _verdict.criterion_id,
    _verdict.rater_id,
    _verdict.stage,
    func.coalesce(_verdict.supersedes, 0),
    unique=True,
)
Index(
    "ix_verdict_acuity",
    _verdict.example_id,
    func.coalesce(_verdict.response_id, 0),
    _verdict.rater_id,
    _verdict.stage,
    func.coalesce(_verdict.supersedes, 0),
    unique=True,
    sqlite_where=_verdict.criterion_id.is_(None),
    postgresql_where=_verdict.criterion_id.is_(None),
)
Index(
    "ix_verdict_supersedes",
    _verdict.supersedes,
    unique=True,
    sqlite_where=_verdict.supersedes.is_not(None),
    postgresql_where=_verdict.supersedes.is_not(None),
)
Index(
    "ix_verdict_read",
    _verdict.response_id,
    sqlite_where=_verdict.stage != Stage.JUDGE.value,
    postgresql_where=_verdict.stage != Stage.JUDGE.value,
)
