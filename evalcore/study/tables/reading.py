"""Assigned reading: what is to be read, by whom, how far each reader is, their drafts, and who saw verdicts on what."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, false, func
from sqlmodel import Field, SQLModel, col

from evalcore.study.schema import Acuity, Ask, CannotReason, Label, ReadingState, Seen, Selection
from evalcore.study.tables.columns import moment, moment_or_none, text_column, word


class Assignment(SQLModel, table=True):
    """Items that were chosen to be read together.

    Attributes:
        n_readers: How many readers an item gets.
        seed: Of the drawing and of the order.
        reserve_minutes: For how long an item that somebody has opened is kept for them.
        chosen_by: JSON of the filters or the plan.
        n_population: How many items the drawing was made from.
    """

    __table_args__ = (CheckConstraint("n_readers > 0 AND reserve_minutes > 0", name="ck_counts"),)

    id: int | None = Field(default=None, primary_key=True)
    ask: str = word(Ask)
    n_readers: int
    seed: int
    reserve_minutes: int
    selection: str = word(Selection)
    chosen_by: str
    n_population: int
    created_by: str
    created_at: datetime = moment()


class AssignmentReader(SQLModel, table=True):
    """Who may take the items of an assignment."""

    __tablename__ = "assignment_reader"

    assignment_id: int = Field(foreign_key="assignment.id", primary_key=True)
    person_id: int = Field(foreign_key="person.id", primary_key=True)


class Task(SQLModel, table=True):
    """One response, or one case, that is to be read; `place` is its place in the random order, from 1."""

    __table_args__ = (
        UniqueConstraint("assignment_id", "place"),
        CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="ck_inclusion"),
        Index("ix_task_item", "example_id", "response_id"),
    )

    id: int | None = Field(default=None, primary_key=True)
    assignment_id: int = Field(foreign_key="assignment.id")
    example_id: int = Field(foreign_key="example.id")
    response_id: int | None = Field(default=None, foreign_key="response.id")
    place: int
    inclusion_probability: float


class Reading(SQLModel, table=True):
    """One reader at one task.

    Attributes:
        blinded: The judge's verdicts are hidden until the first read is locked.
        reserved_until: Until then nobody else gets this reader's place; every mark moves it on.
        last_at: When the reader last did anything here.
        seconds: Time spent, of each pause two minutes at most.
        place: The item in hand, from 0: where a reader goes on after a lost connection.
        judge: Whose verdicts were shown, once it is locked; None where no judge has labelled the item.
        guideline_version: The newest when it was opened.
        control_seed, control_share: Of the drawing of the criteria that get a second look without the judge's verdict (`reviewing.control_keys`),
            made when it was locked; None where none was made.
        knows_model: The reader says that they know which model this is.
    """

    __table_args__ = (
        UniqueConstraint("task_id", "person_id"),
        Index("ix_reading_person", "person_id", "state"),
        {
            "sqlite_autoincrement": True
        },  # a number is never used again: a tab may still show an item that was given back
    )

    id: int | None = Field(default=None, primary_key=True)
    task_id: int = Field(foreign_key="task.id")
    person_id: int = Field(foreign_key="person.id")
    state: str = word(ReadingState, default=ReadingState.READING)
    blinded: bool = True
    opened_at: datetime = moment()
    last_at: datetime = moment()
    reserved_until: datetime = moment()
    locked_at: datetime | None = moment_or_none()
    done_at: datetime | None = moment_or_none()
    seconds: float = 0.0
    place: int = 0
    judge: str | None = None
    guideline_version: int | None = Field(default=None, foreign_key="guideline.version")
    control_seed: int | None = None
    control_share: float | None = None
    knows_model: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class Mark(SQLModel, table=True):
    """A draft: what a reader said about an item before submitting. The newest of an item counts; undoing takes the newest away."""

    __table_args__ = (Index("ix_mark_reading", "reading_id"),)

    id: int | None = Field(default=None, primary_key=True)
    reading_id: int = Field(foreign_key="reading.id")
    criterion_id: int | None = Field(default=None, foreign_key="criterion.id")
    label: str | None = word(Label, Acuity, nullable=True)
    reason: str | None = word(CannotReason, nullable=True)
    note: str | None = text_column(nullable=True)
    created_at: datetime = moment()


class Exposure(SQLModel, table=True):
    """Somebody saw others' verdicts on an example for the first time in this way; append-only.

    Attributes:
        example_id: None: on all examples.
        through: Of all examples, only those up to this number, which were there then; None: later ones too.
    """

    id: int | None = Field(default=None, primary_key=True)
    person_id: int = Field(foreign_key="person.id")
    example_id: int | None = Field(default=None, foreign_key="example.id")
    through: int | None = None
    what: str = word(Seen)
    at: datetime = moment()


Index(
    "ix_exposure_first",
    col(Exposure.person_id),
    func.coalesce(col(Exposure.example_id), 0),
    col(Exposure.what),
    func.coalesce(col(Exposure.through), 0),
    unique=True,
)
