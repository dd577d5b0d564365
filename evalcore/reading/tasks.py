"""What is to be read, what waits for whom, and how far each reader is."""

from collections.abc import Collection
from datetime import datetime
from statistics import median
from typing import Any

import msgspec
import pandas as pd
from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col
from sqlmodel import select as select_rows

from evalcore.reading.exposures import has_seen, is_released
from evalcore.study.contents import rules
from evalcore.study.frames import frame, is_read, numbers
from evalcore.study.schema import (
    Ask,
    CannotReason,
    RaterKind,
    ReadingMode,
    ReadingState,
    Role,
    Selection,
    Stage,
    Viewer,
)
from evalcore.study.tables import (
    TABLES,
    Assignment,
    AssignmentReader,
    Example,
    Mark,
    Rater,
    Reading,
    Study,
    Task,
    Verdict,
)

DEFAULT_LANGUAGE = "en"
"""What somebody reads whose profile names no language."""
RECENT, RECENT_OF_ALL = (
    20,
    60,
)  # readings whose time tells how long the next takes: so many, of so many that are looked at

FEW = 1_000
"""Conversations that are asked about by their numbers; where they are more, all are asked about."""


class Asked(msgspec.Struct, frozen=True):
    """A task with what its assignment says of it."""

    task_id: int
    assignment_id: int
    ask: Ask
    example_id: int
    response_id: int | None
    place: int
    inclusion_probability: float
    selection: Selection
    n_readers: int
    reserve_minutes: int

    @property
    def chance(self) -> float | None:
        """With which probability it was drawn; None where somebody chose it."""
        return None if self.selection is Selection.VOLUNTEERED else self.inclusion_probability


class Draft(msgspec.Struct, frozen=True):
    """The newest mark of a reader on one item."""

    label: str | None
    reason: CannotReason | None
    note: str | None


class Progress(msgspec.Struct, frozen=True):
    """How far a reader is.

    Attributes:
        n_left: Items that wait, the one in hand too.
        seconds_each: Median time of an item; None where nobody has finished one.
    """

    n_done: int
    n_left: int
    seconds_each: float | None


_ASKED: tuple[Any, ...] = (
    col(Task.id).label("task_id"),
    col(Task.assignment_id),
    col(Assignment.ask),
    col(Task.example_id),
    col(Task.response_id),
    col(Task.place),
    col(Task.inclusion_probability),
    col(Assignment.selection),
    col(Assignment.n_readers),
    col(Assignment.reserve_minutes),
)


def _asked(rows: Any) -> Asked | None:
    row = rows.mappings().first()
    return msgspec.convert(dict(row), Asked) if row is not None else None


def task(session: Session, task_id: int) -> Asked | None:
    """One task; None where there is none of this number."""
    statement: Any = select(*_ASKED).join(Assignment, col(Assignment.id) == col(Task.assignment_id))
    return _asked(session.connection().execute(statement.where(col(Task.id) == task_id)))


def next_task(session: Session, viewer: Viewer, at: datetime) -> Asked | None:
    """The first task in the random order that has a place for this reader."""
    statement = _open_to(viewer, at, *_ASKED).order_by(col(Task.assignment_id), col(Task.place)).limit(1)
    return _asked(session.connection().execute(statement))


def has_place(session: Session, asked: Asked, viewer: Viewer, at: datetime) -> bool:
    """Whether fewer others than are wanted have read the task or are reading it."""
    taken = select(func.count()).select_from(Reading).where(col(Reading.task_id) == asked.task_id, _taken(viewer, at))
    return int(session.connection().execute(taken).scalar_one()) < asked.n_readers


def _taken(viewer: Viewer, at: datetime | None) -> ColumnElement[bool]:
    """Somebody else's reading that keeps its place: locked, or (at a time) reserved still."""
    locked = col(Reading.state) != ReadingState.READING
    kept = locked if at is None else or_(locked, col(Reading.reserved_until) > at)
    return (col(Reading.person_id) != viewer.person_id) & kept


def _open_to(viewer: Viewer, at: datetime | None, *columns: Any) -> Select[Any]:
    """Tasks that wait for this reader: in a language of theirs, with a place free, on nothing that they have seen verdicts on.

    At no time: also those whose places others have reserved and may yet give back.
    """
    other, of_other = aliased(Task), aliased(Assignment)
    mine = (
        exists()
        .where(
            col(Reading.person_id) == viewer.person_id,
            col(Reading.task_id) == col(other.id),
            col(of_other.id) == col(other.assignment_id),
            col(of_other.ask) == col(Assignment.ask),
            col(other.example_id) == col(Task.example_id),
            func.coalesce(col(other.response_id), 0) == func.coalesce(col(Task.response_id), 0),
        )
        .correlate(Task, Assignment)
    )
    n_taken = (
        select(func.count())
        .select_from(Reading)
        .where(col(Reading.task_id) == col(Task.id), _taken(viewer, at))
        .correlate(Task)
        .scalar_subquery()
    )
    languages = viewer.languages or (DEFAULT_LANGUAGE,)
    reads_open = exists().where(col(Study.reading_mode) == ReadingMode.OPEN)
    return (
        select(*columns)
        .select_from(Task)
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .join(AssignmentReader, col(AssignmentReader.assignment_id) == col(Task.assignment_id))
        .join(Example, col(Example.id) == col(Task.example_id))
        .where(
            col(AssignmentReader.person_id) == viewer.person_id,
            or_(col(Example.language).is_(None), col(Example.language).in_(languages)),
            ~mine,
            ~_spoken_on(viewer),
            or_(reads_open, ~has_seen(viewer.person_id, col(Task.example_id))),
            n_taken < col(Assignment.n_readers),
        )
    )


def _spoken_on(viewer: Viewer) -> ColumnElement[bool]:
    """The reader has answered the same question on the item already, or has seen others' verdicts on it: such a read is not blind.

    Who read the rubric blind is still asked for the acuity: of that no verdict was shown. Who overrode a judge of their own accord, or
    settled a conflict, had everything on the response before them.
    """
    given = is_read(Verdict) & col(Verdict.rater_id).in_(_raters_of(viewer))
    drawn = func.coalesce(col(Verdict.selection), "").in_([Selection.RANDOM, Selection.IMPORTANCE])
    saw_all = (col(Verdict.stage) == Stage.ADJUDICATED) | ((col(Verdict.stage) == Stage.OPEN) & ~drawn)
    of_criterion, asks_criteria = col(Verdict.criterion_id).is_not(None), col(Assignment.ask) == Ask.RUBRIC
    same_ask = and_(of_criterion, asks_criteria) | and_(~of_criterion, ~asks_criteria)
    on_response = exists().where(given, saw_all | same_ask, col(Verdict.response_id) == col(Task.response_id))
    on_case = exists().where(
        given, col(Task.response_id).is_(None), col(Verdict.response_id).is_(None), col(Verdict.example_id) == col(Task.example_id)
    )  # fmt: skip
    return on_response.correlate(Task, Assignment) | on_case.correlate(Task)


def _raters_of(viewer: Viewer) -> Select[Any]:
    mine = or_(col(Rater.person_id) == viewer.person_id, col(Rater.name) == viewer.name)
    return select(col(Rater.id)).where(col(Rater.kind) == RaterKind.REVIEWER, mine)


def raters_of(session: Session, viewer: Viewer) -> list[int]:
    """The numbers under which somebody's verdicts stand, those too that were imported under the name."""
    return list(session.connection().execute(_raters_of(viewer)).scalars())


def rater_of(session: Session, person_id: int) -> int:
    """The number under which somebody's verdicts stand; 0 where none has been given."""
    named = select(col(Rater.id)).where(col(Rater.kind) == RaterKind.REVIEWER, col(Rater.person_id) == person_id)
    return session.connection().execute(named).scalar() or 0


def unfinished(session: Session, person_id: int) -> list[Reading]:
    """This reader's readings that wait for marks or decisions, the one last touched first."""
    mine = select_rows(Reading).where(Reading.person_id == person_id, Reading.state != ReadingState.DONE.value)
    return list(session.exec(mine.order_by(col(Reading.last_at).desc())))


def reading(session: Session, reading_id: int, *, lock: bool = False) -> Reading | None:
    """One reading; locked until the transaction ends, on PostgreSQL, where a second press must wait for the first.

    Locked, it is as the other press left it, also where this session had read it before.
    """
    statement = select_rows(Reading).where(Reading.id == reading_id)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    return session.exec(statement).first()


def drafts(session: Session, reading_id: int) -> dict[int | None, Draft]:
    """The newest mark on each item of a reading, by criterion_id."""
    mark = TABLES["mark"]
    statement = (
        select(mark.c.criterion_id, mark.c.label, mark.c.reason, mark.c.note)
        .where(mark.c.reading_id == reading_id)
        .order_by(mark.c.id)
    )
    rows = session.connection().execute(statement)
    return {row.criterion_id: Draft(row.label, row.reason and CannotReason(row.reason), row.note) for row in rows}


def last_mark(session: Session, reading_id: int) -> Mark | None:
    """The newest mark of a reading: what undoing takes away."""
    of_reading = select_rows(Mark).where(Mark.reading_id == reading_id)
    return session.exec(of_reading.order_by(col(Mark.id).desc()).limit(1)).first()


def n_locked(session: Session, viewer: Viewer) -> int:
    """How many items this person has read and locked."""
    mine = select(func.count()).select_from(Reading).where(col(Reading.person_id) == viewer.person_id)
    return int(session.connection().execute(mine.where(col(Reading.state) != ReadingState.READING)).scalar_one())


def n_assignments(session: Session) -> int:
    """How many assignments there are."""
    return int(session.connection().execute(select(func.count()).select_from(Assignment)).scalar_one())


def progress(session: Session, viewer: Viewer, at: datetime) -> Progress:
    """How far a reader is, and how long an item takes: them, else anybody on what does not wait for this reader."""
    connection, table = session.connection(), TABLES["reading"]
    mine, locked = table.c.person_id == viewer.person_id, table.c.state != ReadingState.READING
    n_done = n_locked(session, viewer)
    in_hand = select(func.count()).select_from(table).where(mine, ~locked)
    waiting = _open_to(viewer, at, func.count())
    n_left = connection.execute(in_hand).scalar_one() + connection.execute(waiting).scalar_one()

    newest = select(table.c.seconds, col(Task.example_id)).join(Task, col(Task.id) == table.c.task_id)
    newest = newest.where(locked).order_by(table.c.locked_at.desc())
    seconds = [time for time, _ in connection.execute(newest.where(mine).limit(RECENT))]
    if not seconds:  # how long others took on what waits for this reader would tell how hard they found it
        others = connection.execute(newest.limit(RECENT_OF_ALL)).all()
        waiting_too = blind_examples(session, viewer, among={example_id for _, example_id in others})
        seconds = [time for time, example_id in others if example_id not in waiting_too][:RECENT]
    return Progress(n_done=n_done, n_left=n_left, seconds_each=median(seconds) if seconds else None)


def blind_examples(session: Session, viewer: Viewer, *, among: Collection[int] | None = None) -> frozenset[int]:
    """Conversations on which this person may yet give a blind first read, or is at one: nothing of others' verdicts on them may be shown.

    In a study that is set to blind: for a reader who has not been released, everything that they have not read.

    Args:
        among: Only these examples are asked about; None: all.
    """

    def of(statement: Select[Any], column: Any) -> frozenset[int]:
        if among is None:
            return numbers(session, statement)
        few = statement.where(column.in_(among)) if len(among) <= FEW else statement
        return numbers(session, few) & frozenset(among)

    in_hand = (
        select(col(Task.example_id))
        .join(Reading, col(Reading.task_id) == col(Task.id))
        .where(
            col(Reading.person_id) == viewer.person_id,
            col(Reading.state) != ReadingState.DONE,
            col(Reading.blinded).is_(True),
        )
    )
    blind = of(in_hand, col(Task.example_id))
    chosen = rules(session)
    if chosen.mode is ReadingMode.OPEN:
        return blind
    blind |= of(_open_to(viewer, None, col(Task.example_id)), col(Task.example_id))
    if not chosen.blind or not _is_reader(session, viewer) or is_released(session, viewer.person_id):
        return blind
    read = select(col(Verdict.example_id)).where(is_read(Verdict), col(Verdict.rater_id).in_(_raters_of(viewer)))
    unread: Select[Any] = select(col(Example.id)).where(col(Example.id).not_in(read))
    return blind | of(unread, col(Example.id))


def _is_reader(session: Session, viewer: Viewer) -> bool:
    chosen = exists().where(col(AssignmentReader.person_id) == viewer.person_id)
    return Role.REVIEWER in viewer.roles or bool(session.connection().execute(select(chosen)).scalar_one())


def is_any_assigned(session: Session) -> bool:
    """Whether anything was ever assigned."""
    return session.connection().execute(select(col(Assignment.id)).limit(1)).first() is not None


def assignments(session: Session) -> pd.DataFrame:
    """One row an assignment, newest first.

    Returns:
        assignment_id, ask, n_readers, seed, selection, chosen_by, n_population, created_by, created_at, n_tasks, n_reads (locked),
        n_open (being read), readers (names, joined by commas).
    """
    per_task = (
        select(
            col(Task.assignment_id).label("assignment_id"),
            func.count(col(Task.id).distinct()).label("n_tasks"),
            func.count(col(Reading.id)).filter(col(Reading.state) != ReadingState.READING).label("n_reads"),
            func.count(col(Reading.id)).filter(col(Reading.state) == ReadingState.READING).label("n_open"),
        )
        .outerjoin(Reading, col(Reading.task_id) == col(Task.id))
        .group_by(col(Task.assignment_id))
        .subquery()
    )
    table = TABLES["assignment"]
    names = ("ask", "n_readers", "seed", "selection", "chosen_by", "n_population", "created_by", "created_at")
    statement = (
        select(
            table.c.id.label("assignment_id"),
            *(table.c[name] for name in names),
            per_task.c.n_tasks,
            per_task.c.n_reads,
            per_task.c.n_open,
        )
        .join(per_task, per_task.c.assignment_id == table.c.id)
        .order_by(table.c.id.desc())
    )
    found = frame(session, statement)
    person = TABLES["person"]
    readers = (
        select(col(AssignmentReader.assignment_id), person.c.name)
        .join(person, person.c.id == col(AssignmentReader.person_id))
        .order_by(person.c.name)
    )
    named = frame(session, readers).groupby("assignment_id")["name"].agg(", ".join)
    return found.assign(readers=found["assignment_id"].map(named))
