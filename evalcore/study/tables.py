"""Every table. Rows are checked before they come here (importers, pages); constraints of the database, and its triggers, are the last wall."""

import hashlib
import json
import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import declared_attr
from sqlalchemy.sql.selectable import NamedFromClause
from sqlalchemy.types import TypeEngine
from sqlmodel import Field, SQLModel

from evalcore.study import schema
from evalcore.study.schema import STREAK, Outcome, RunKind, RunState

TABLES = SQLModel.metadata.tables
"""The tables. Where something was withdrawn, marked as broken or renamed, a SELECT from them reads what is left of it (`showing`)."""


@cache
def alias(table: str, name: str) -> NamedFromClause[Any]:
    """A table under another name, for a statement that needs it twice: SQLAlchemy copies all of its columns for each one made."""
    return TABLES[table].alias(name)


# ---------------------------------------------------------------- kinds of columns


class UtcDateTime(sa.TypeDecorator[datetime]):
    """Times are stored in UTC and come back with their zone; SQLite itself forgets it."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """To UTC; a time without a zone is a mistake of ours."""
        if value is not None and value.tzinfo is None:
            msg = f"time without a zone: {value!r}"
            raise ValueError(msg)
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """In UTC again: SQLite gives no zone back, PostgreSQL that of its session."""
        if value is None or value.tzinfo is None:
            return value and value.replace(tzinfo=UTC)
        return value.astimezone(UTC)


class Word(sa.TypeDecorator[str]):
    """A word of a vocabulary, checked when it is written: the database itself takes any, so that a new word needs no migration."""

    impl = sa.String
    cache_ok = True

    def __init__(self, *kinds: type[StrEnum]) -> None:
        super().__init__()
        self.kinds = kinds
        self.words = tuple(str(word) for kind in kinds for word in kind)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """As text; any other word is a mistake of ours."""
        if value is not None and value not in self.words:
            msg = f"expected one of {', '.join(self.words)}, got {value!r}"
            raise ValueError(msg)
        return None if value is None else str(value)

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:  # noqa: ARG002 - SQLAlchemy's signature
        """What is compared with is not written: any text."""
        return sa.String()


def now() -> datetime:
    """The present time in UTC."""
    return datetime.now(tz=UTC)


def word(
    *kinds: type[StrEnum], nullable: bool = False, default: StrEnum | None = None, server_default: StrEnum | None = None
) -> Any:
    """A word of one of these vocabularies."""
    column: sa.Column[str | None] = sa.Column(Word(*kinds), nullable=nullable, server_default=server_default)
    return Field(default=default, sa_column=column) if nullable or default is not None else Field(sa_column=column)


def moment(*, nullable: bool = False) -> Any:
    """A time, the present one by default; or none yet."""
    default: dict[str, Any] = {"default": None} if nullable else {"default_factory": now}
    return Field(sa_column=sa.Column(UtcDateTime(), nullable=nullable), **default)


def text_column(*, nullable: bool = False) -> Any:
    """Text of any length."""
    return Field(default=None, sa_column=sa.Column(sa.Text, nullable=nullable))


def index(name: str, *columns: str, unique: bool = False, where: str | None = None) -> sa.Index:
    """An index over columns, or SQL of them; `where`: over some rows; the migration says it of PostgreSQL, which takes time to load."""
    condition = None if where is None else sa.text(where)
    parts = [sa.text(column) if "(" in column else column for column in columns]
    return sa.Index(name, *parts, unique=unique, sqlite_where=condition)


_RESPONSE, _CRITERION, _REPLACES = (f"coalesce({name}, 0)" for name in ("response_id", "criterion_id", "supersedes"))
"""In a unique index nothing is a value as well."""
_OF_LEVEL = ("example_id", _RESPONSE, "rater_id", "stage", _REPLACES)
_OF_QUESTION = ("run_id", "example_id", _RESPONSE, _CRITERION, "format", "sample_index", "repeat")


AnySelect = sa.Select[*tuple[Any, ...]]
"""A query of whatever columns."""


class Row(SQLModel):
    """A row of a table, which is called as its class is: `RunCall` is of run_call."""

    model_config = {"defer_build": True}  # pydantic checks no row: its validators are built where one is asked for

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805 - SQLAlchemy calls it with the class
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class Numbered(Row):
    """A row that the database gives a number."""

    id: int | None = Field(default=None, primary_key=True)


# ---------------------------------------------------------------- the study, its rules and people


class Study(Row, table=True):
    """One row: what this database is. Its secret key names the cookie with the browser's choice of person, and keys the hashes that stand for names."""

    __table_args__ = (sa.CheckConstraint("check_share BETWEEN 0 AND 1", name="ck_check_share"),)

    id: int = Field(default=1, primary_key=True)
    key: str
    created_at: datetime = moment()
    reading_mode: str = word(
        schema.ReadingMode, default=schema.ReadingMode.BLIND, server_default=schema.ReadingMode.BLIND
    )
    judge: str | None = None
    check_share: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    control_share: float = Field(default=0.0, sa_column_kwargs={"server_default": "0"})
    both_against_judge: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    blind: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    leads_read: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})


class Person(Numbered, table=True):
    """Somebody who uses this study. Lists are JSON arrays."""

    name: str = Field(unique=True)
    roles: str
    specialties: str = "[]"
    languages: str = "[]"
    created_at: datetime = moment()
    active: bool = Field(default=True, sa_column_kwargs={"server_default": sa.true()})
    group_roles: str = Field(default="[]", sa_column_kwargs={"server_default": "[]"})


class Identity(Numbered, table=True):
    """Who signs in as which person: what a provider calls somebody, and nobody else. `unbound_at`: nobody's since then, until an invitation binds it."""

    __table_args__ = (sa.UniqueConstraint("issuer", "subject"),)

    person_id: int = Field(foreign_key="person.id")
    issuer: str
    subject: str
    created_at: datetime = moment()
    unbound_at: datetime | None = moment(nullable=True)


class Invitation(Numbered, table=True):
    """A link with which somebody comes in as a person of the study, once; only a hash of its token is kept."""

    token_hash: str = Field(unique=True)
    person_id: int = Field(foreign_key="person.id")
    created_by: str
    created_at: datetime = moment()
    expires_at: datetime = moment()
    used_at: datetime | None = moment(nullable=True)


class AccessKey(Numbered, table=True):
    """With what a program reads the study over HTTP as a person of it, until it expires or is revoked; only a hash of it is kept."""

    key_hash: str = Field(unique=True)
    person_id: int = Field(foreign_key="person.id")
    purpose: str
    created_by: str
    created_at: datetime = moment()
    expires_at: datetime = moment()
    revoked_at: datetime | None = moment(nullable=True)


class SignIn(Numbered, table=True):
    """Somebody's session in a browser, from sign-in to its end; only a hash of the cookie's token is kept. Groups are a JSON array."""

    token_hash: str = Field(unique=True)
    issuer: str
    subject: str
    name: str
    groups: str = "[]"
    created_at: datetime = moment()
    seen_at: datetime = moment()
    ended_at: datetime | None = moment(nullable=True)


class Guideline(Row, table=True):
    """One version of what readers are told, in Markdown; append-only by its use: each verdict names its version."""

    version: int | None = Field(default=None, primary_key=True)
    text: str = text_column()
    created_by: str
    created_at: datetime = moment()


class AnalysisVersion(Row, table=True):
    """One statement of what is analysed (`analysis.StatedAnalysis`); append-only, the newest is in force."""

    __tablename__ = "analysis"  # type: ignore[override]

    version: int | None = Field(default=None, primary_key=True)
    text: str = text_column()
    stated_by: str
    stated_at: datetime = moment()
    n_reads_before: int


class ModelFamily(Row, table=True):
    """One row of the study's own table of families: the first pattern, by place, that fits a model's or judge's name."""

    place: int = Field(primary_key=True)
    pattern: str
    family: str


class ImportedFile(Numbered, table=True):
    """A file that was imported: the same content with the same meaning adds nothing again."""

    content_hash: str = Field(unique=True)
    name: str
    format: str
    created_at: datetime = moment()


class ColumnMapping(Row, table=True):
    """Which column of a file is which field, as YAML (`importing.mapping`), by a name."""

    name: str = Field(primary_key=True)
    text: str = text_column()
    kept_by: str
    kept_at: datetime = moment()


class FileImport(Numbered, table=True):
    """An import that added something, by what was imported as what (`key`); withdrawn where it has a time for that."""

    key: str = Field(unique=True)
    source_hash: str
    name: str
    format: str
    actor: str
    at: datetime = moment()
    keeps_rows: bool = True
    withdrawn_at: datetime | None = moment(nullable=True)
    withdrawn_by: str | None = None
    reason: str | None = text_column(nullable=True)


class BroughtRows(Numbered, table=True):
    """Rows, by their numbers, that came with an import; a part of a data set as `example_subset:NAME`. `is_known`: the study had them already."""

    __table_args__ = (index("ix_brought_rows_import", "import_id"),)

    import_id: int = Field(foreign_key="file_import.id")
    table_name: str
    first_id: int
    last_id: int
    is_known: bool


class HiddenRow(Row, table=True):
    """A row that no screen, number or export sees (`mending.hide`); `is_broken`: only since it is a response that is marked so.

    `as_id`: of a verdict, the shown one that it took the place of; of a response that had to make room, its sample index.
    """

    table_name: str = Field(primary_key=True)
    row_id: int = Field(primary_key=True)
    as_id: int | None = None
    is_broken: bool = False


class BrokenResponse(Row, table=True):
    """A response that is no answer, and why; without a reason it is one again."""

    response_id: int = Field(foreign_key="response.id", primary_key=True)
    reason: str | None = word(schema.Broken, nullable=True)
    marked_by: str
    at: datetime = moment()


class OtherName(Numbered, table=True):
    """What was called one name is called another now: of a model, a judge, or a data set with its parts (`evaluation`). None: by its first name again."""

    __table_args__ = (sa.UniqueConstraint("kind", "was"),)

    kind: str
    was: str
    now: str | None = None


class SameAs(Row, table=True):
    """A model or a rater that is another one by now, since both names mean the same."""

    table_name: str = Field(primary_key=True)
    row_id: int = Field(primary_key=True)
    as_id: int


class UnfinishedImport(Row, table=True):
    """The import that is being written in parts, or was broken off; at most one. `n_rows`, `n_done`: of the file, and those of them that are in the study."""

    id: int = Field(default=1, primary_key=True)
    name: str
    source_hash: str
    actor: str
    started_at: datetime = moment()
    asked: str = text_column()
    n_rows: int
    n_done: int = 0
    report: str = text_column()

    @property
    def sentence(self) -> str:
        """What to know of it before figures are read or taken away."""
        return (
            f"{self.name} is not imported whole yet: {self.n_done:,} of its {self.n_rows:,} rows are in the study, so figures are of a part. "
            "Wait until it is. If the import was broken off, start Overread again, or import the file again: that finishes it."
        )


class ImportUnderWay(Row, table=True):
    """The import that somebody is at just now; at most one. `seen_at`: when it last said how far it is; a while later it has died."""

    id: int = Field(default=1, primary_key=True)
    name: str
    actor: str
    started_at: datetime = moment()
    seen_at: datetime = moment()
    megabytes: float = 0.0

    @property
    def sentence(self) -> str:
        """Who is at it, since when, and how far, where that is told."""
        far = f": {self.megabytes:,.1f} MB of it are read" if self.megabytes else ""
        return f"{self.actor} has been importing {self.name} since {self.started_at:%H:%M} UTC{far}."


# ---------------------------------------------------------------- what is read


class Example(Numbered, table=True):
    """A conversation with its tags. `messages` and `tags` are JSON; `provisional`: known only from results on it."""

    __table_args__ = (sa.UniqueConstraint("dataset", "prompt_id"), index("ix_example_theme", "theme"))

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


class ExampleSubset(Row, table=True):
    """Membership of an example in a part of its data set: oss_eval, hard, consensus."""

    example_id: int = Field(foreign_key="example.id", primary_key=True)
    subset: str = Field(primary_key=True)


class Criterion(Numbered, table=True):
    """One line of a rubric; `position` counts from 1."""

    __table_args__ = (
        sa.UniqueConstraint("example_id", "position"),
        sa.CheckConstraint(
            f"points BETWEEN {-schema.MOST_POINTS} AND {schema.MOST_POINTS} AND points <> 0", name="ck_points"
        ),
    )

    example_id: int = Field(foreign_key="example.id")
    position: int
    text: str = text_column()
    points: int | None = None
    axis: str | None = None
    level: str | None = None
    cluster: str | None = None
    tags: str = "[]"


class Model(Numbered, table=True):
    """A language model that answers."""

    name: str = Field(unique=True)


class Response(Numbered, table=True):
    """One model's answer to one example, made for an evaluation (`dataset`). `sent_messages`: what was sent, where it is not the example's conversation.

    `n_criteria`: how many criteria a judge is asked on it; with fewer verdicts there is no score. `finish_reason`, and the day `made_on`: as a file says.
    """

    __table_args__ = (sa.UniqueConstraint("example_id", "model_id", "dataset", "sample_index"),)

    example_id: int = Field(foreign_key="example.id")
    model_id: int = Field(foreign_key="model.id")
    dataset: str
    sample_index: int = 0
    text: str = text_column()
    completion_id: str | None = None
    sent_messages: str | None = text_column(nullable=True)
    n_criteria: int | None = None
    finish_reason: str | None = None
    made_on: str | None = None


class SearchEntry(Numbered, table=True):
    """What a row of the full-text index belongs to; its text lives in the index alone."""

    example_id: int = Field(foreign_key="example.id")


class SearchPending(Numbered, table=True):
    """Text that waits to enter the full-text index (`store.index_texts`); of an example's own text the language is to be told as well."""

    example_id: int = Field(foreign_key="example.id")
    body: str = text_column()
    is_example: bool = False


# ---------------------------------------------------------------- cases of triage


class AcuityCase(Row, table=True):
    """An example whose patient needs some level of care. `mapped_label`: what the source's label map made of its own; `gold`: as the file gives it."""

    __table_args__ = (sa.CheckConstraint("uncertainty BETWEEN 0 AND 1", name="ck_uncertainty"),)

    example_id: int = Field(foreign_key="example.id", primary_key=True)
    source: str
    source_id: str
    original_label: str | None = None
    mapped_label: str | None = None
    gold: str | None = word(schema.Acuity, nullable=True)
    method: str = word(schema.MappingMethod)
    is_edge_case: bool = False
    uncertainty: float | None = None
    notes: str | None = text_column(nullable=True)


class PanelVote(Row, table=True):
    """One physician's vote on a case, before and outside this study; `place` counts from 1."""

    example_id: int = Field(foreign_key="example.id", primary_key=True)
    place: int = Field(primary_key=True)
    rater: str | None = None
    vote: str = word(schema.Acuity)


class PublishedMatrix(Numbered, table=True):
    """One row of a finished confusion matrix: of cases with this gold, how many were given each level. There are no cases behind it."""

    __table_args__ = (
        sa.UniqueConstraint("model", "format", "gold"),
        sa.CheckConstraint("a >= 0 AND b >= 0 AND c >= 0 AND d >= 0", name="ck_counts"),
    )

    model: str
    format: str = word(schema.Format)
    gold: str = word(schema.Acuity)
    a: int
    b: int
    c: int
    d: int


class LabelMapping(Row, table=True):
    """What a label of a source stands for: a level or boundary, "panel" (physicians have to decide), or "information X" (never the gold)."""

    source: str = Field(primary_key=True)
    label: str = Field(primary_key=True)
    meaning: str


class TriageChoice(Row, table=True):
    """One row: the study's settings of triage, as YAML."""

    id: int = Field(default=1, primary_key=True)
    text: str = text_column()


class JudgeConfidence(Row, table=True):
    """What the confidence of a judge's verdicts means, as whoever imported them said."""

    judge: str = Field(primary_key=True)
    meaning: str = word(schema.ConfidenceMeaning)


# ---------------------------------------------------------------- who said what of which item, and the trail


class Rater(Numbered, table=True):
    """A judge with its prompt version, or a physician; `person_id` where the physician reads here."""

    __table_args__ = (sa.UniqueConstraint("kind", "name", "prompt_version"),)

    kind: str = word(schema.RaterKind)
    name: str
    prompt_version: str = ""
    person_id: int | None = Field(default=None, foreign_key="person.id")


class Verdict(Numbered, table=True):
    """One rater's label on one item (`schema.Verdict`), append-only.

    The first verdict of a rater on an item and stage is unique, and so is the one that supersedes a given verdict: of two tabs that press at once the second
    is told. `created_at`: of an imported one as its file says; `recorded_at`: by this program's clock. `source_hash`: SHA-256 of its file.
    """

    __table_args__ = (
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="ck_confidence"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        index("ix_verdict_item", "response_id", "criterion_id", "rater_id", "stage", _REPLACES, unique=True),
        index("ix_verdict_acuity", *_OF_LEVEL, unique=True, where="criterion_id IS NULL"),
        index("ix_verdict_supersedes", "supersedes", unique=True, where="supersedes IS NOT NULL"),
        index("ix_verdict_read", "response_id", where="stage != 'judge'"),
    )

    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    rater_id: int = Field(foreign_key="rater.id")
    stage: str = word(schema.Stage)
    label: str | None = word(schema.Label, schema.Acuity, nullable=True)
    confidence: float | None = None
    explanation: str | None = text_column(nullable=True)
    cause: str | None = word(schema.Cause, nullable=True)
    severity: str | None = word(schema.Severity, nullable=True)
    right_for_wrong_reason: bool = False
    selection: str | None = word(schema.Selection, nullable=True)
    inclusion_probability: float | None = None
    blinded: bool | None = None
    created_at: datetime = moment()
    supersedes: int | None = Field(default=None, foreign_key="verdict.id")
    reason: str | None = word(schema.CannotReason, nullable=True)
    error_kind: str | None = word(schema.ErrorKind, nullable=True)
    conflict_cause: str | None = word(schema.ConflictCause, nullable=True)
    guideline_version: int | None = Field(default=None, foreign_key="guideline.version")
    not_blind: str | None = word(schema.NotBlind, nullable=True)
    source: str | None = word(schema.Source, nullable=True)
    source_hash: str | None = None
    recorded_at: datetime | None = moment(nullable=True)
    row_hash: bytes | None = Field(default=None, sa_column=sa.Column(sa.LargeBinary, nullable=True))


class AuditEvent(Numbered, table=True):
    """Who did what, when, on which item; append-only, each with the hash of the one before it."""

    at: datetime = moment()
    actor: str
    action: str = Field(index=True)
    subject: str
    detail: str = "{}"
    previous_hash: str = Field(unique=True)
    hash: str = Field(unique=True)

    def expected_hash(self) -> str:
        """SHA-256 over this event and the hash of the one before it."""
        return hashlib.sha256(json.dumps(self.hashed_parts(), ensure_ascii=False).encode()).hexdigest()

    def hashed_parts(self) -> list[str]:
        """What the hash is of, that of the event before first."""
        return [self.previous_hash, self.at.isoformat(), self.actor, self.action, self.subject, self.detail]


class RowHash(Row, table=True):
    """The hash of a row that verdicts rest on, as an act left it (`row_hashes`); append-only, the newest of a row counts."""

    __table_args__ = (index("ix_row_hash_row", "table_name", "row_id"),)

    id: int | None = Field(default=None, sa_column=sa.Column(sa.Integer, primary_key=True, autoincrement=False))
    table_name: str
    row_id: int
    hash: bytes = Field(sa_column=sa.Column(sa.LargeBinary, nullable=False))


# ---------------------------------------------------------------- assigned reading


class Assignment(Numbered, table=True):
    """Items that were chosen to be read together, of `n_population`, by the filters or plan in `chosen_by`; what is opened is kept for `reserve_minutes`.

    `judge`: whose verdicts its readers are shown once they have locked; None: no judge had labelled any of it yet. `practice`: as JSON, by person_id the
    responses that somebody practises on first, in their order; None: nobody does. `paused_at`: since then nothing of it is handed out. `cancelled_at`: since
    then nobody is asked for it any more; `cancelled_because` is what its readers are told.
    """

    __table_args__ = (sa.CheckConstraint("n_readers > 0 AND reserve_minutes > 0", name="ck_counts"),)

    ask: str = word(schema.Ask)
    n_readers: int
    seed: int
    reserve_minutes: int
    selection: str = word(schema.Selection)
    chosen_by: str
    n_population: int
    created_by: str
    created_at: datetime = moment()
    judge: str | None = None
    practice: str | None = text_column(nullable=True)
    paused_at: datetime | None = moment(nullable=True)
    cancelled_at: datetime | None = moment(nullable=True)
    cancelled_because: str | None = text_column(nullable=True)


class AssignmentReader(Row, table=True):
    """Who may take the items of an assignment."""

    assignment_id: int = Field(foreign_key="assignment.id", primary_key=True)
    person_id: int = Field(foreign_key="person.id", primary_key=True)


class Task(Numbered, table=True):
    """One response, or one case, that is to be read; `place` is its place in the random order, from 1."""

    __table_args__ = (
        sa.UniqueConstraint("assignment_id", "place"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        index("ix_task_item", "example_id", "response_id"),
    )

    assignment_id: int = Field(foreign_key="assignment.id")
    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    place: int
    inclusion_probability: float


class Reading(Numbered, table=True):
    """One reader at one task.

    Attributes:
        last_at, reserved_until: Until the second nobody else gets this reader's place; every mark moves both on.
        seconds: Time spent, of each pause two minutes at most.
        place: The item in hand, from 0: where a reader goes on after a lost connection.
        judge: Whose verdicts were shown, once it is locked; None where no judge has labelled the item.
        freed_at: Since then it is out of its reader's hands, with its marks; None again once they have taken it anew. What is locked never is.
        control_seed, control_share: Of the drawing of the criteria that get a second look without the judge's verdict (`reviewing.control_keys`),
            made when it was locked; None where none was made.
    """

    __table_args__ = (
        sa.UniqueConstraint("task_id", "person_id"),
        index("ix_reading_person", "person_id", "state"),
        {"sqlite_autoincrement": True},  # no number is used again: a tab may still show an item that was given back
    )

    task_id: int = Field(foreign_key="task.id")
    person_id: int = Field(foreign_key="person.id")
    state: str = word(schema.ReadingState, default=schema.ReadingState.READING)
    blinded: bool = True
    opened_at: datetime = moment()
    last_at: datetime = moment()
    reserved_until: datetime = moment()
    locked_at: datetime | None = moment(nullable=True)
    done_at: datetime | None = moment(nullable=True)
    seconds: float = 0.0
    place: int = 0
    judge: str | None = None
    guideline_version: int | None = Field(default=None, foreign_key="guideline.version")
    control_seed: int | None = None
    control_share: float | None = None
    knows_model: bool = Field(default=False, sa_column_kwargs={"server_default": sa.false()})
    freed_at: datetime | None = moment(nullable=True)


class Mark(Numbered, table=True):
    """A draft: what a reader said about an item before submitting. The newest of an item counts; undoing takes the newest away."""

    __table_args__ = (index("ix_mark_reading", "reading_id"),)

    reading_id: int = Field(foreign_key="reading.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    label: str | None = word(schema.Label, schema.Acuity, nullable=True)
    reason: str | None = word(schema.CannotReason, nullable=True)
    note: str | None = text_column(nullable=True)
    created_at: datetime = moment()


class ResponseNote(Numbered, table=True):
    """A line of the thread between one reader (`person_id`) and the lead on a task; append-only. `written_by`: who acted, as the trail says it."""

    __table_args__ = (index("ix_response_note_thread", "task_id", "person_id"),)

    task_id: int = Field(foreign_key="task.id")
    person_id: int = Field(foreign_key="person.id")
    kind: str = word(schema.NoteKind)
    text: str = text_column()
    written_by: str
    at: datetime = moment()


class Exposure(Numbered, table=True):
    """Somebody saw others' verdicts on an example (None: on all, up to the number `through`) for the first time in this way; append-only."""

    __table_args__ = (
        index("ix_exposure_first", "person_id", "coalesce(example_id, 0)", "what", "coalesce(through, 0)", unique=True),
    )

    person_id: int = Field(foreign_key="person.id")
    example_id: int | None = Field(default=None, foreign_key="example.id")
    through: int | None = None
    what: str = word(schema.Seen)
    at: datetime = moment()


# ---------------------------------------------------------------- runs of models


class Run(Numbered, table=True):
    """One run; the same questions by the same model with the same prompt are the same run. `spec`: `RunSpec` as JSON, which holds no key."""

    kind: str = word(RunKind)
    name: str
    fingerprint: str = Field(unique=True)
    spec: str = text_column()
    state: str = word(RunState, default=RunState.OPEN)
    reason: str | None = text_column(nullable=True)
    max_cost: float | None = None
    max_failures: int = Field(default=STREAK, sa_column_kwargs={"server_default": str(STREAK)})
    concurrency: int
    started_by: str
    created_at: datetime = moment()
    ended_at: datetime | None = moment(nullable=True)


class RunWorker(Numbered, table=True):
    """A process that works on a run, and says so every few seconds; what a dead one held is free again. Where `stop_asked`, it ends what is in flight."""

    run_id: int = Field(foreign_key="run.id", index=True)
    host: str
    pid: int
    started_at: datetime = moment()
    seen_at: datetime = moment()
    ended_at: datetime | None = moment(nullable=True)
    stop_asked: bool = False


class RunQuestion(Numbered, table=True):
    """One question of a run (`spec.Question`): the outcome of its last call (None: to be asked), and who holds it."""

    __table_args__ = (
        index("ix_run_question_item", *_OF_QUESTION, unique=True),
        index("ix_run_question_open", "run_id", "id", where="outcome IS NULL"),
    )

    run_id: int = Field(foreign_key="run.id")
    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    format: str = ""
    sample_index: int = 0
    repeat: int = 0
    outcome: str | None = word(Outcome, nullable=True)
    worker_id: int | None = Field(default=None, foreign_key="run_worker.id")


class RunCall(Numbered, table=True):
    """What came of a question (`spec.Call`), one row a call; at most one of a question's is answered."""

    __table_args__ = (
        index("ix_run_call_run", "run_id", "outcome"),
        index("ix_run_call_answered", "question_id", unique=True, where="outcome = 'answered'"),
    )

    run_id: int = Field(foreign_key="run.id")
    question_id: int = Field(foreign_key="run_question.id")
    outcome: str = word(Outcome)
    status: int | None = None
    error: str | None = text_column(nullable=True)
    reply: str | None = text_column(nullable=True)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    attempts: int = 1
    seconds: float = 0.0
    at: datetime = moment()
    worker_id: int | None = None


class SuspectResponse(Numbered, table=True):
    """A response with text that speaks to the judge: its verdicts are flagged for physicians, with the reasons, a JSON array of sentences."""

    __table_args__ = (sa.UniqueConstraint("response_id"),)

    response_id: int = Field(foreign_key="response.id")
    reasons: str = text_column()


# ---------------------------------------------------------------- every row


_STORED = sa.MetaData()
STORED = {table.name: table.to_metadata(_STORED) for table in SQLModel.metadata.sorted_tables}
"""The same tables by name, with every row and its first name: for what writes, and what must not miss any."""
