"""Who said what of which item, and the trail that proves it: all append-only but the raters."""

import hashlib
import json
from datetime import datetime

from sqlalchemy import CheckConstraint, Column, Index, Integer, LargeBinary, UniqueConstraint, func
from sqlmodel import Field, SQLModel

from evalcore.study.schema import (
    Acuity,
    CannotReason,
    Cause,
    ConflictCause,
    ErrorKind,
    Label,
    NotBlind,
    RaterKind,
    Selection,
    Severity,
    Source,
    Stage,
)
from evalcore.study.tables.columns import moment, moment_or_none, text_column, word


class Rater(SQLModel, table=True):
    """A judge with its prompt version, or a physician; `person_id` where the physician reads here."""

    __table_args__ = (UniqueConstraint("kind", "name", "prompt_version"),)

    id: int | None = Field(default=None, primary_key=True)
    kind: str = word(RaterKind)
    name: str
    prompt_version: str = ""
    person_id: int | None = Field(default=None, foreign_key="person.id")


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
        CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
    )

    id: int | None = Field(default=None, primary_key=True)
    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    rater_id: int = Field(foreign_key="rater.id")
    stage: str = word(Stage)
    label: str | None = word(Label, Acuity, nullable=True)
    confidence: float | None = None
    explanation: str | None = text_column(nullable=True)
    cause: str | None = word(Cause, nullable=True)
    severity: str | None = word(Severity, nullable=True)
    right_for_wrong_reason: bool = False
    selection: str | None = word(Selection, nullable=True)
    inclusion_probability: float | None = None
    blinded: bool | None = None
    created_at: datetime = moment()
    supersedes: int | None = Field(default=None, foreign_key="verdict.id")
    reason: str | None = word(CannotReason, nullable=True)
    error_kind: str | None = word(ErrorKind, nullable=True)
    conflict_cause: str | None = word(ConflictCause, nullable=True)
    guideline_version: int | None = Field(default=None, foreign_key="guideline.version")
    not_blind: str | None = word(NotBlind, nullable=True)
    source: str | None = word(Source, nullable=True)
    source_hash: str | None = None
    recorded_at: datetime | None = moment_or_none()
    row_hash: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))


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
