"""What waits for whom and what a task shows: exposures, tasks and readings, and the review material with what was said on it."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from statistics import median
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    String,
    Subquery,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
)
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select as select_rows

from evalcore.errors import NotFound, refuse
from evalcore.study import schema, tables
from evalcore.study.contents import people, rules
from evalcore.study.frames import frame, is_judge, is_read, not_superseded, numbers
from evalcore.study.tables import (
    TABLES,
    AnySelect,
    Assignment,
    Example,
    Exposure,
    Mark,
    Rater,
    Reading,
    Response,
    Task,
    Verdict,
)

RECENT, RECENT_OF_ALL = 20, 60  # readings whose time tells how long the next takes: so many, of so many looked at
FEW = 1_000  # conversations that are asked about by their numbers; where they are more, all are asked about
Target = tuple[schema.Ask, int, int | None]  # what is asked, of an example and its response (None: of the case itself)
MANY = 500  # with more names or numbers than this all are read: a database takes only so many bound values

# ---------------------------------------------------------------- who has seen others' verdicts on what


def has_seen(person_id: int | BindParameter[int], example: Any, *where: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition that somebody has seen others' verdicts on an example (a number or a column), or has been released from reading it blind."""
    mine, number = (col(Exposure.person_id) == person_id, *where), func.coalesce(col(Exposure.example_id), 0)
    reaches = or_(col(Exposure.through).is_(None), col(Exposure.through) >= example)
    return or_(exists().where(*mine, number == example), exists().where(*mine, number == 0, reaches))


def is_exposed(session: Session, person_id: int, example_id: int, *, settling_too: bool = True) -> bool:
    """Whether somebody has seen others' verdicts on an example; without settling: the judge's too, anywhere but where they settle."""
    elsewhere = [] if settling_too else [col(Exposure.what).not_in([schema.Seen.ADJUDICATION, schema.Seen.RELEASED])]
    return bool(session.connection().execute(select(has_seen(person_id, example_id, *elsewhere))).scalar_one())


def exposed_among(
    session: Session, people: Collection[int], examples: Collection[int], what: schema.Seen | None = None
) -> dict[int, set[int]]:
    """Of each of these people the examples, of these, on which they have seen others' verdicts, in this way or (None) in any."""
    columns: list[Any] = [Exposure.person_id, Exposure.example_id, Exposure.through]
    wanted = set(examples)
    seen: dict[int, set[int]] = {person: set() for person in people}
    statement = select(*columns).where(col(Exposure.person_id).in_(list(people)))
    exposures = session.connection().execute(statement if what is None else statement.where(col(Exposure.what) == what))
    for person, example, through in exposures:
        if example is not None:
            seen[person] |= {example} & wanted
        else:
            seen[person] |= {number for number in wanted if through is None or number <= through}
    return seen


def numbers_of(session: Session, names: Collection[str] | None) -> set[int]:
    """The numbers of the examples with these names (of both, where two data sets share one); None: of all."""
    example = TABLES["example"].c
    statement = select(example.id, example.prompt_id)
    if names is not None and len(names) <= MANY:
        statement = statement.where(example.prompt_id.in_(list(names)))
    wanted = None if names is None else set(names)
    return {number for number, name in session.connection().execute(statement) if wanted is None or name in wanted}


# ---------------------------------------------------------------- tasks, and what waits for whom


class Asked(msgspec.Struct, frozen=True):
    """A task with what its assignment says of it."""

    task_id: int
    assignment_id: int
    ask: schema.Ask
    example_id: int
    response_id: int | None
    inclusion_probability: float
    selection: schema.Selection
    n_readers: int
    reserve_minutes: int

    @property
    def chance(self) -> float | None:
        """With which probability it was drawn; None where somebody chose it."""
        return None if self.selection is schema.Selection.VOLUNTEERED else self.inclusion_probability

    @property
    def target(self) -> Target:
        """What is asked, and of what."""
        return self.ask, self.example_id, self.response_id


class Progress(msgspec.Struct, frozen=True):
    """How far a reader is."""

    n_done: int
    n_left: int
    seconds_each: float | None  # median time of an item; None where nobody has finished one
    n_skipped: int = 0


_ASKED: tuple[Any, ...] = (
    col(Task.id), col(Task.assignment_id), col(Assignment.ask), col(Task.example_id), col(Task.response_id),
    col(Task.inclusion_probability), col(Assignment.selection), col(Assignment.n_readers), col(Assignment.reserve_minutes),
)  # fmt: skip


def _asked(row: Sequence[Any]) -> Asked:
    return msgspec.convert(dict(zip(Asked.__struct_fields__, row, strict=True)), Asked)


def task(session: Session, task_id: int) -> Asked | None:
    """A task by its number; None where there is none."""
    statement = select(*_ASKED).join(Assignment, col(Assignment.id) == col(Task.assignment_id))
    row = session.connection().execute(statement.where(col(Task.id) == task_id)).first()
    return _asked(row) if row is not None else None


def next_task(session: Session, viewer: schema.Viewer, at: datetime) -> Asked | None:
    """The first task in the random order that has a place for this reader."""
    row = session.connection().execute(_next(), _reader(viewer, at)).first()
    return _asked(row) if row is not None else None


def has_place(session: Session, asked: Asked, viewer: schema.Viewer, at: datetime) -> bool:
    """Whether fewer others than are wanted have read the task or are reading it."""
    taken = select(func.count()).select_from(Reading).where(col(Reading.task_id) == asked.task_id, _taken())
    return int(session.connection().execute(taken, _reader(viewer, at)).scalar_one()) < asked.n_readers


# What waits for a reader is asked on every page and at every press, and SQLAlchemy takes five times as long to build the statement as the
# database to answer it: it is built once, with these parameters.
_PERSON: BindParameter[int] = bindparam("person_id", type_=Integer)
_NAME: BindParameter[str] = bindparam("name", type_=String)
_LANGUAGES: BindParameter[str] = bindparam("languages", type_=String, expanding=True)
_AT: BindParameter[datetime] = bindparam("at", type_=TABLES["reading"].c.reserved_until.type)


def _reader(viewer: schema.Viewer, at: datetime | None = None) -> dict[str, Any]:
    return {"person_id": viewer.person_id, "name": viewer.name, "languages": languages_of(viewer), "at": at}


@cache
def _next() -> AnySelect:
    return _open_to(*_ASKED).where(_handed_out()).order_by(col(Task.assignment_id), col(Task.place)).limit(1)


@cache
def _n_waiting() -> AnySelect:
    return _open_to(func.count()).where(_handed_out())


def _handed_out() -> ColumnElement[bool]:
    """Nobody has paused the assignment. What is paused waits all the same: its readers stay blind to it."""
    return col(Assignment.paused_at).is_(None)


def open_tasks(session: Session, viewer: schema.Viewer, assignment_id: int, at: datetime) -> set[int]:
    """The tasks of an assignment that have a place for a reader now, whether it is paused or not."""
    mine = _open_to(col(Task.id)).where(col(Task.assignment_id) == assignment_id)
    return set(session.connection().execute(mine, _reader(viewer, at)).scalars())


def n_waiting(session: Session, viewer: schema.Viewer, at: datetime) -> int:
    """How many tasks somebody could take now, in all, also of what is paused."""
    return int(session.connection().execute(_open_to(func.count()), _reader(viewer, at)).scalar_one())


def _taken(*, reserved: bool = True) -> ColumnElement[bool]:
    """Somebody else's reading that keeps its place: locked, or reserved still."""
    locked = col(Reading.state) != schema.ReadingState.READING
    kept = or_(locked, col(Reading.freed_at).is_(None) & (col(Reading.reserved_until) > _AT)) if reserved else locked
    return (col(Reading.person_id) != _PERSON) & kept


def _open_to(*columns: Any, reserved: bool = True) -> AnySelect:
    """Tasks that wait for a reader: in a language of theirs, with a place free, on nothing that they have seen verdicts on.

    Not reserved: also those whose places others have reserved and may yet give back.
    """
    other, of_other, reader = aliased(Task), aliased(Assignment), TABLES["assignment_reader"].c
    mine = (
        exists()
        .where(
            col(Reading.person_id) == _PERSON,
            col(Reading.freed_at).is_(None),
            col(Reading.task_id) == col(other.id),
            col(of_other.id) == col(other.assignment_id),
            col(of_other.ask) == col(Assignment.ask),
            col(other.example_id) == col(Task.example_id),
            func.coalesce(col(other.response_id), 0) == func.coalesce(col(Task.response_id), 0),
        )
        .correlate(Task, Assignment)
    )
    of_task = select(func.count()).select_from(Reading).where(col(Reading.task_id) == col(Task.id))
    n_taken = of_task.where(_taken(reserved=reserved)).correlate(Task).scalar_subquery()
    reads_open = exists().where(TABLES["study"].c.reading_mode == schema.ReadingMode.OPEN)
    practised = has_seen(_PERSON, col(Task.example_id), col(Exposure.what) == schema.Seen.PRACTICE)
    return (
        select(*columns)
        .select_from(Task)
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .join(TABLES["assignment_reader"], reader.assignment_id == col(Task.assignment_id))
        .join(Example, col(Example.id) == col(Task.example_id))
        .where(
            reader.person_id == _PERSON,
            col(Assignment.cancelled_at).is_(None),
            or_(col(Example.language).is_(None), col(Example.language).in_(_LANGUAGES)),
            ~mine,
            ~_spoken_on(),
            or_(reads_open & ~practised, ~has_seen(_PERSON, col(Task.example_id))),
            n_taken < col(Assignment.n_readers),
        )
    )


def languages_of(viewer: schema.Viewer) -> tuple[str, ...]:
    """The languages that somebody reads: English where the profile names none."""
    return viewer.languages or ("en",)


def _spoken_on() -> ColumnElement[bool]:
    """The reader has answered the same question on the item already, or has seen others' verdicts on it: such a read is not blind.

    Who read the rubric blind is still asked for the acuity: of that no verdict was shown. Who overrode a judge of their own accord, or
    settled a conflict, had everything on the response before them.
    """
    given = is_read(Verdict) & col(Verdict.rater_id).in_(_raters())
    drawn = func.coalesce(col(Verdict.selection), "").in_([schema.Selection.RANDOM, schema.Selection.IMPORTANCE])
    saw_all = (col(Verdict.stage) == schema.Stage.ADJUDICATED) | ((col(Verdict.stage) == schema.Stage.OPEN) & ~drawn)
    of_criterion, asks_criteria = col(Verdict.criterion_id).is_not(None), col(Assignment.ask) == schema.Ask.RUBRIC
    same_ask = and_(of_criterion, asks_criteria) | and_(~of_criterion, ~asks_criteria)
    on_response = exists().where(given, saw_all | same_ask, col(Verdict.response_id) == col(Task.response_id))
    on_case = exists().where(
        given, col(Task.response_id).is_(None), col(Verdict.response_id).is_(None), col(Verdict.example_id) == col(Task.example_id)
    )  # fmt: skip
    return on_response.correlate(Task, Assignment) | on_case.correlate(Task)


def _raters() -> AnySelect:
    mine = or_(col(Rater.person_id) == _PERSON, col(Rater.name) == _NAME)
    return select(col(Rater.id)).where(col(Rater.kind) == schema.RaterKind.REVIEWER, mine)


def raters_of(session: Session, viewer: schema.Viewer) -> list[int]:
    """The numbers under which somebody's verdicts stand, those too that were imported under the name."""
    return list(session.connection().execute(_raters(), _reader(viewer)).scalars())


def progress(session: Session, viewer: schema.Viewer, at: datetime) -> Progress:
    """How far a reader is, and how long an item takes: them, else anybody on what does not wait for this reader."""
    connection, table = session.connection(), TABLES["reading"]
    mine, locked = table.c.person_id == viewer.person_id, table.c.state != schema.ReadingState.READING
    in_hand = select(func.count()).select_from(table).where(mine, ~locked, table.c.freed_at.is_(None), ~is_skipped())
    n_waiting = connection.execute(_n_waiting(), _reader(viewer, at)).scalar_one()
    n_left = connection.execute(in_hand).scalar_one() + n_waiting
    newest = select(table.c.seconds, col(Task.example_id)).join(Task, col(Task.id) == table.c.task_id)
    newest = newest.where(locked).order_by(table.c.locked_at.desc())
    seconds = [time for time, _ in connection.execute(newest.where(mine).limit(RECENT))]
    if not seconds:  # how long others took on what waits for this reader would tell how hard they found it
        others = connection.execute(newest.limit(RECENT_OF_ALL)).all()
        waiting_too = blind_examples(session, viewer, among={example_id for _, example_id in others})
        seconds = [time for time, example_id in others if example_id not in waiting_too][:RECENT]
    return Progress(n_locked(session, viewer), n_left, median(seconds) if seconds else None, n_skipped(session, viewer))


def n_locked(session: Session, viewer: schema.Viewer) -> int:
    """How many items this person has read and locked."""
    mine = select(func.count()).select_from(Reading).where(col(Reading.person_id) == viewer.person_id)
    return int(session.connection().execute(mine.where(col(Reading.state) != schema.ReadingState.READING)).scalar_one())


@cache  # of every mark; to build it takes longer than to ask the database
def is_skipped() -> ColumnElement[bool]:
    """The condition that a reading was skipped and not returned since. It stays in its reader's hands, as what is not read: nothing of it is shown."""
    line, later = TABLES["response_note"].c, tables.alias("response_note", "later").c
    reading = TABLES["reading"]
    on_thread = later.task_id == line.task_id, later.person_id == line.person_id
    is_later = later.id > line.id, later.kind == schema.NoteKind.RETURN
    returned = exists().where(*on_thread, *is_later).correlate(line.id.table)
    of_reading = line.task_id == reading.c.task_id, line.person_id == reading.c.person_id
    return exists().where(*of_reading, line.kind == schema.NoteKind.SKIP, ~returned).correlate(reading)


def has_skipped(session: Session, reading_id: int) -> bool:
    """Whether its reader has skipped this reading."""
    return bool(session.connection().execute(_this_skipped(), {"reading_id": reading_id}).scalar_one())


@cache
def _this_skipped() -> AnySelect:
    return select(exists().where(col(Reading.id) == bindparam("reading_id"), is_skipped()))


def n_skipped(session: Session, viewer: schema.Viewer) -> int:
    """How many items this person has skipped, and no lead has returned."""
    mine = select(func.count()).select_from(Reading).where(col(Reading.person_id) == viewer.person_id, is_skipped())
    return int(session.connection().execute(mine).scalar_one())


def is_asked(session: Session, person_id: int, assignment_id: int) -> bool:
    """Whether somebody is a reader of an assignment that goes on."""
    reader = TABLES["assignment_reader"].c
    mine = exists().where(reader.assignment_id == assignment_id, reader.person_id == person_id)
    goes_on = exists().where(col(Assignment.id) == assignment_id, col(Assignment.cancelled_at).is_(None))
    return bool(session.connection().execute(select(and_(mine, goes_on))).scalar_one())


def guideline_known(session: Session, viewer: schema.Viewer) -> int | None:
    """The newest version of the guideline under which this person has locked a read; None where under none."""
    newest = select(func.max(col(Reading.guideline_version))).where(col(Reading.person_id) == viewer.person_id)
    return session.connection().execute(newest.where(col(Reading.state) != schema.ReadingState.READING)).scalar_one()


def n_assignments(session: Session) -> int:
    """How many assignments there are."""
    return int(session.connection().execute(select(func.count()).select_from(Assignment)).scalar_one())


def blind_examples(session: Session, viewer: schema.Viewer, *, among: Collection[int] | None = None) -> frozenset[int]:
    """Conversations on which this person may yet give a blind first read, or is at one: nothing of others' verdicts on them may be shown.

    In a study that is set to blind: for a reader who has not been released, everything that they have not read.
    """
    reader = _reader(viewer)

    def of(statement: AnySelect, column: Any) -> frozenset[int]:
        if among is None:
            return numbers(session, statement, reader)
        few = statement.where(column.in_(among)) if len(among) <= FEW else statement
        return numbers(session, few, reader) & frozenset(among)

    in_hand, waiting, is_there, unread = _blind()
    blind = of(in_hand, col(Task.example_id))
    chosen = rules(session)
    if chosen.mode is schema.ReadingMode.OPEN:
        return blind
    blind |= of(waiting, col(Task.example_id))
    is_named, is_released = session.connection().execute(is_there, reader).one()
    if not chosen.blind or is_released or not (is_named or schema.Role.REVIEWER in viewer.roles):
        return blind
    return blind | of(unread, col(Example.id))


def awaited_examples(session: Session) -> frozenset[int]:
    """Conversations on which anybody has a blind first read in hand, or waiting for them: of those who read everything blind, what is assigned alone."""
    in_hand, waiting, *_ = _blind()
    is_open = rules(session).mode is schema.ReadingMode.OPEN
    wanted = [in_hand] if is_open else [in_hand, waiting]
    readers = [_reader(person) for person in people(session)]
    return frozenset().union(*(numbers(session, statement, reader) for reader in readers for statement in wanted))


@cache
def _blind() -> tuple[AnySelect, AnySelect, AnySelect, AnySelect]:
    """What a reader has in hand, what waits for them, whether they are a reader and whether released, and what they have not read."""
    in_hand: AnySelect = (
        select(col(Task.example_id))
        .join(Reading, col(Reading.task_id) == col(Task.id))
        .where(
            col(Reading.person_id) == _PERSON,
            col(Reading.state) != schema.ReadingState.DONE,
            col(Reading.freed_at).is_(None),
            col(Reading.blinded).is_(True),
        )
    )
    named = exists().where(TABLES["assignment_reader"].c.person_id == _PERSON)
    released = exists().where(
        col(Exposure.person_id) == _PERSON,
        col(Exposure.what) == schema.Seen.RELEASED,
        col(Exposure.example_id).is_(None),
    )
    read = select(col(Verdict.example_id)).where(is_read(Verdict), col(Verdict.rater_id).in_(_raters()))
    unread: AnySelect = select(col(Example.id)).where(col(Example.id).not_in(read))
    is_there: AnySelect = select(named, released)
    return in_hand, _open_to(col(Task.example_id), reserved=False), is_there, unread


# ---------------------------------------------------------------- readings and their drafts


class Draft(msgspec.Struct, frozen=True):
    """The newest mark of a reader on one item."""

    label: str | None
    reason: schema.CannotReason | None
    note: str | None


def readings(
    session: Session, person_id: int, reading_id: int | None = None, *, lock: bool = False
) -> list[tuple[Reading, Asked]]:
    """Somebody's reading of this number, or those that wait for marks or decisions, the one last touched first, without skipped ones; each with its task.

    Locked until the transaction ends, on PostgreSQL, where a second press must wait for the first. Locked, it is as the other press left it,
    also where this session had read it before.
    """
    statement = _readings(is_one=reading_id is not None, lock=lock)
    rows = session.execute(statement, {"person_id": person_id, "reading_id": reading_id})
    return [(row[0], _asked(row[1:])) for row in rows]


@cache
def _readings(*, is_one: bool, lock: bool) -> AnySelect:
    unfinished = and_(col(Reading.state) != schema.ReadingState.DONE, col(Reading.freed_at).is_(None), ~is_skipped())
    which = col(Reading.id) == bindparam("reading_id") if is_one else unfinished
    statement: AnySelect = select(Reading, *_ASKED).join(Task, col(Task.id) == col(Reading.task_id))
    statement = statement.join(Assignment, col(Assignment.id) == col(Task.assignment_id))
    statement = statement.where(col(Reading.person_id) == _PERSON, which).order_by(col(Reading.last_at).desc())
    return statement.with_for_update(of=Reading).execution_options(populate_existing=True) if lock else statement


def freed(session: Session, person_id: int, task_id: int) -> Reading | None:
    """What somebody had begun of a task, and was taken out of their hands; None where nothing was."""
    mine = select_rows(Reading).where(Reading.person_id == person_id, Reading.task_id == task_id)
    return session.exec(mine.where(col(Reading.freed_at).is_not(None))).first()


def taken_back(session: Session, viewer: schema.Viewer) -> list[tuple[int, str | None]]:
    """What was taken out of a reader's hands since they last locked a read, by assignment: how many, and why it was cancelled (None: it was handed over)."""
    last = select(func.max(col(Reading.locked_at))).where(col(Reading.person_id) == viewer.person_id)
    locked_at = session.connection().execute(last).scalar()
    since = () if locked_at is None else (col(Reading.freed_at) > locked_at,)
    columns: tuple[Any, ...] = (func.count(), col(Assignment.cancelled_because))
    statement = (
        select(*columns)
        .select_from(Reading)
        .join(Task, col(Task.id) == col(Reading.task_id))
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .where(col(Reading.person_id) == viewer.person_id, col(Reading.freed_at).is_not(None), *since)
        .group_by(col(Assignment.id), col(Assignment.cancelled_because))
        .order_by(col(Assignment.id))
    )
    return [(row[0], row[1]) for row in session.connection().execute(statement)]


def hold_readings(session: Session, example_id: int, response_id: int | None) -> None:
    """Hold whoever reads or amends this response or case until the transaction ends; on SQLite the write lock does that already."""
    of_response = col(Task.response_id).is_(None) if response_id is None else col(Task.response_id) == response_id
    readings = select(col(Reading.id)).join(Task, col(Task.id) == col(Reading.task_id))
    readings = readings.where(col(Task.example_id) == example_id, of_response).order_by(col(Reading.id))
    session.connection().execute(readings.with_for_update(of=Reading)).all()


def drafts(session: Session, reading_id: int) -> dict[int | None, Draft]:
    """The newest mark on each item of a reading, by criterion_id."""
    mark = TABLES["mark"].c
    marks = select(mark.criterion_id, mark.label, mark.reason, mark.note).where(mark.reading_id == reading_id)
    rows = session.connection().execute(marks.order_by(mark.id))
    return {
        row.criterion_id: Draft(row.label, row.reason and schema.CannotReason(row.reason), row.note) for row in rows
    }


def has_marks(session: Session, task_id: int, person_id: int) -> bool:
    """Whether somebody has marked anything of a task."""
    mine = col(Reading.id) == col(Mark.reading_id), col(Reading.task_id) == task_id, col(Reading.person_id) == person_id
    return bool(session.connection().execute(select(exists().where(*mine))).scalar_one())


def marks(session: Session, reading_id: int) -> list[Mark]:
    """Every mark of a reading, the oldest first."""
    return list(session.exec(select_rows(Mark).where(Mark.reading_id == reading_id).order_by(col(Mark.id))))


def last_read(session: Session, person_id: int) -> int | None:
    """The reading that somebody locked last, where nobody's verdict was shown on it and no answer was given since: a slip on it can still be told."""
    mine = col(Reading.person_id) == person_id
    newest = select(col(Reading.id), col(Reading.state), col(Reading.judge), col(Reading.blinded))
    newest = newest.where(mine, col(Reading.locked_at).is_not(None)).order_by(col(Reading.locked_at).desc()).limit(1)
    row = session.connection().execute(newest).first()
    if row is None or row.state != schema.ReadingState.DONE or row.judge is not None or not row.blinded:
        return None
    return None if has_gone_on(session, person_id, row.id) else int(row.id)


def has_gone_on(session: Session, person_id: int, reading_id: int) -> bool:
    """Whether a reader has answered or locked something else since this reading was locked."""
    this, other = TABLES["reading"].c, tables.alias("reading", "other").c
    locked_at = select(this.locked_at).where(this.id == reading_id).scalar_subquery()
    mine = other.person_id == person_id, other.id != reading_id
    marked = exists().where(*mine, col(Mark.reading_id) == other.id, col(Mark.created_at) > locked_at)
    locked = exists().where(*mine, other.locked_at > locked_at)
    return bool(session.connection().execute(select(or_(marked, locked))).scalar_one())


def slips_by_reader(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """How many answers of locked first reads were slips, by reader, of conversations that are not hidden from who looks.

    Returns:
        reader, n_answers (that stand, and were given here), n_slips (of them: the reader had locked another answer first); by name.
    """
    verdict, rater = tables.alias("verdict", "given"), TABLES["rater"]
    given_here = is_read(verdict.c), verdict.c.stage == schema.Stage.FIRST, verdict.c.source == schema.Source.SESSION
    statement = (
        select(
            rater.c.name.label("reader"),
            func.count().label("n_answers"),
            func.count(verdict.c.supersedes).label("n_slips"),
        )
        .join(rater, rater.c.id == verdict.c.rater_id)
        .where(*given_here, verdict.c.label.is_not(None), not_superseded(verdict))
        .group_by(rater.c.name)
        .order_by(rater.c.name)
    )
    return frame(session, statement.where(verdict.c.example_id.not_in(list(hidden))) if hidden else statement)


# ---------------------------------------------------------------- the review material, and what was said on it


class Item(msgspec.Struct, frozen=True):
    """A criterion as a reader meets it."""

    criterion_id: int
    position: int
    text: str
    points: int | None
    axis: str | None
    cluster: str | None


class Material(msgspec.Struct, frozen=True):
    """What a reader has before them: the conversation, the response without its model, the criteria.

    `messages`: what was sent to the model, as {role, content}, without instructions that are not the example's own. No response: the case itself is read.
    """

    messages: list[dict[str, str]]
    response: str | None
    items: tuple[Item, ...]


def material(session: Session, target: Target) -> Material:
    """The texts of a task or a case, the criteria only where they are asked about.

    Instructions to the model that are not the conversation's own are left out: they may name it to a blind reader.
    """
    ask, example_id, response_id = target
    example = session.get(Example, example_id)
    response = session.get(Response, response_id) if response_id is not None else None
    if example is None or (response_id is not None and (response is None or response.example_id != example_id)):
        refuse(f"This study has no {subject(example_id, response_id)}. The link may belong to another study.", NotFound)
    own = json.loads(example.messages)
    sent = json.loads(response.sent_messages) if response is not None and response.sent_messages else own
    criterion = TABLES["criterion"].c
    names = ("position", "text", "points", "axis", "cluster")
    rubric = select(criterion.id, *(criterion[name] for name in names)).where(criterion.example_id == example_id)
    rows = session.connection().execute(rubric.order_by(criterion.position)) if ask is schema.Ask.RUBRIC else ()
    return Material(
        messages=[turn for turn in sent if turn["role"] in ("user", "assistant") or turn in own],
        response=response.text if response is not None else None,
        items=tuple(Item(*row) for row in rows),
    )


def subject(example_id: int, response_id: int | None) -> str:
    """A response or case as the audit trail names it."""
    return f"example {example_id}" if response_id is None else f"response {response_id}"


def has_item(session: Session, asked: Asked, criterion_id: int | None) -> bool:
    """Whether a task asks about this criterion, or, without one, about the whole."""
    if asked.ask is not schema.Ask.RUBRIC:
        return criterion_id is None
    criterion = TABLES["criterion"].c
    named = select(criterion.id).where(criterion.id == criterion_id, criterion.example_id == asked.example_id)
    return session.connection().execute(named).scalar() is not None


class Given(msgspec.Struct, frozen=True):
    """A verdict on one item; who gave it is not told."""

    verdict_id: int
    criterion_id: int | None
    stage: schema.Stage
    label: str | None
    explanation: str | None
    cause: schema.Cause | None
    severity: schema.Severity | None
    error_kind: schema.ErrorKind | None
    right_for_wrong_reason: bool
    reason: schema.CannotReason | None
    conflict_cause: schema.ConflictCause | None
    blinded: bool | None


_VERDICT = TABLES["verdict"].c
_GIVEN = _VERDICT.id.label("verdict_id"), *(_VERDICT[name] for name in Given.__struct_fields__[1:])


def _given(row: Mapping[Any, Any]) -> Given:
    return msgspec.convert({name: row[name] for name in Given.__struct_fields__}, Given)


def _on_item(*, is_rubric: bool, is_case: bool) -> list[ColumnElement[bool]]:
    """On an example and its response, or on the case itself: of its criteria, or of the whole. To be asked with example_id and response_id."""
    whole = _VERDICT.criterion_id.is_not(None) if is_rubric else _VERDICT.criterion_id.is_(None)
    response = _VERDICT.response_id.is_(None) if is_case else _VERDICT.response_id == bindparam("response_id")
    return [_VERDICT.example_id == bindparam("example_id"), response, whole]


def given(session: Session, *conditions: ColumnElement[bool]) -> list[tuple[int, Given]]:
    """Verdicts under some conditions, each behind who gave it, oldest first."""
    statement = select(*_GIVEN, _VERDICT.rater_id).where(*conditions).order_by(_VERDICT.id)
    return [(row["rater_id"], _given(row)) for row in session.connection().execute(statement).mappings()]


def _stands() -> ColumnElement[bool]:
    """Nothing has replaced the verdict; for statements on few verdicts, since each is looked up."""
    verdict, newer = TABLES["verdict"], tables.alias("verdict", "newer")
    return ~exists(select(newer.c.id).where(newer.c.supersedes == verdict.c.id)).correlate(verdict)


def settled_judge(session: Session, assignment_id: int) -> str | None:
    """Whom the readers of an assignment are shown; asked for only then, since what a blind reader has in hand names no judge."""
    judge = select(col(Assignment.judge)).where(col(Assignment.id) == assignment_id)
    return session.connection().execute(judge).scalar()


def judge_of(session: Session, assignment_id: int, ask: schema.Ask, judge: str | None) -> str | None:
    """Whom an assignment's readers are to be shown: the study's choice, else who has given the most verdicts on its items, by name; None: nobody has yet."""
    verdict, rater, task = TABLES["verdict"].c, TABLES["rater"].c, TABLES["task"].c
    of_case = and_(verdict.response_id.is_(None), verdict.example_id == task.example_id)
    judges = (
        select(rater.name)
        .join(TABLES["verdict"], verdict.rater_id == rater.id)
        .join(TABLES["task"], of_case if ask is schema.Ask.GOLD_ACUITY else verdict.response_id == task.response_id)
        .where(
            task.assignment_id == assignment_id,
            is_judge(),
            verdict.label.is_not(None),
            verdict.criterion_id.is_not(None) if ask is schema.Ask.RUBRIC else verdict.criterion_id.is_(None),
        )
        .group_by(rater.id, rater.name)
        .order_by(*_chosen_first(judge))
        .limit(1)
    )
    return session.connection().execute(judges).scalar()


def judge_on(
    session: Session, target: Target, judge: str | None, *, alone: bool = False
) -> tuple[str | None, dict[int | None, Given]]:
    """The judge to be shown and its verdicts on a task or case, by criterion_id: this one, else who has the most verdicts on this, by name.

    `alone`: this one, else none.
    """
    ask, example_id, response_id = target
    judges, verdicts = _judge_on(is_rubric=ask is schema.Ask.RUBRIC, is_case=response_id is None, alone=alone)
    which = {"example_id": example_id, "response_id": response_id}
    row = session.connection().execute(judges, {**which, "judge": judge or ""}).first()
    if row is None:
        return None, {}
    shown = session.connection().execute(verdicts, {**which, "rater_id": row.id}).mappings()
    return row.name, {each["criterion_id"]: _given(each) for each in shown}


@cache
def _judge_on(*, is_rubric: bool, is_case: bool, alone: bool) -> tuple[AnySelect, AnySelect]:
    """Who is to be shown, of the judges or of the one that is named `judge`; and the standing verdicts of that one."""
    rater, judge = TABLES["rater"].c, bindparam("judge", type_=String())
    on_item = [_VERDICT.label.is_not(None), *_on_item(is_rubric=is_rubric, is_case=is_case)]
    judges = (
        select(rater.id, rater.name)
        .join(TABLES["verdict"], _VERDICT.rater_id == rater.id)
        .where(is_judge(), *on_item, *([rater.name == judge] if alone else []))
        .group_by(rater.id, rater.name)
        .order_by(*_chosen_first(judge))
        .limit(1)
    )
    verdicts = select(*_GIVEN).where(*on_item, _VERDICT.rater_id == bindparam("rater_id"), _stands())
    return judges, verdicts.order_by(_VERDICT.id)


def shown_judges(responses: AnySelect, judge: str | None) -> Subquery:
    """The judge that is shown on each of some responses' criteria, as `judge_on` chooses: response_id, rater_id, judge."""
    verdict, rater = tables.alias("verdict", "given").c, TABLES["rater"].c
    place = func.row_number().over(partition_by=verdict.response_id, order_by=_chosen_first(judge))
    ranked = (
        select(verdict.response_id, verdict.rater_id, rater.name.label("judge"), place.label("place"))
        .join(TABLES["rater"], rater.id == verdict.rater_id)
        .where(
            is_judge(),
            verdict.label.is_not(None),
            verdict.criterion_id.is_not(None),
            verdict.response_id.in_(responses),
        )
        .group_by(verdict.response_id, verdict.rater_id, rater.name)
        .subquery("ranked")
    )
    return select(ranked.c.response_id, ranked.c.rater_id, ranked.c.judge).where(ranked.c.place == 1).subquery("shown")


def _chosen_first(judge: str | BindParameter[str] | None) -> tuple[Any, ...]:
    """The study's choice, then who has given the most verdicts, then by name, then the newest prompt; for statements grouped by rater."""
    rater = TABLES["rater"].c
    return (
        (rater.name == ("" if judge is None else judge)).desc(),
        func.count().desc(),
        rater.name,
        func.max(rater.id).desc(),
    )


class Said(NamedTuple):
    """What one reader has said on a task, by criterion_id.

    Attributes:
        first: The read that was submitted: at its stage the oldest verdicts that were not volunteered; of a slip the later answer, which was meant.
        standing: The newest verdicts of another stage.
        slipped: The label that stood before in the first read, where the reader told a slip.
    """

    first: dict[int | None, Given]
    standing: dict[int | None, Given]
    slipped: dict[int | None, str]


def said_by(session: Session, asked: Asked, person_id: int, first: schema.Stage, standing: schema.Stage) -> Said:
    """What a reader has said on a task, at these two stages.

    An open read may have been changed since where conversations are browsed; what was submitted stays what was submitted.
    """
    ask, example_id, response_id = asked.target
    statement = _of_reader(is_rubric=ask is schema.Ask.RUBRIC, is_case=response_id is None)
    which = {"example_id": example_id, "response_id": response_id, "person_id": person_id}
    rows = {row["verdict_id"]: row for row in session.connection().execute(statement, which).mappings()}
    replaced = {row["supersedes"] for row in rows.values()}
    slips = {
        row["supersedes"]: rows[row["supersedes"]]["label"]
        for row in rows.values()
        if row["supersedes"] in rows and (row["stage"], row["source"]) == (schema.Stage.FIRST, schema.Source.SESSION)
    }
    said = Said({}, {}, {})
    for number, row in rows.items():
        given, key = _given(row), row["criterion_id"]
        # else what was assigned looks as what somebody did of their own accord
        volunteered = schema.Selection.VOLUNTEERED
        is_volunteered = asked.selection is not volunteered and row["selection"] == volunteered
        if row["stage"] == first and not is_volunteered and number not in slips and key not in said.first:
            said.first[key] = given
            if row["supersedes"] in slips and row["source"] == schema.Source.SESSION:
                said.slipped[key] = slips[row["supersedes"]]
        if row["stage"] == standing and number not in replaced:
            said.standing[key] = given
    return said


@cache
def _of_reader(*, is_rubric: bool, is_case: bool) -> AnySelect:
    verdict, rater = TABLES["verdict"].c, TABLES["rater"].c
    mine = rater.kind == schema.RaterKind.REVIEWER, rater.person_id == _PERSON
    further = verdict.supersedes, verdict.selection, verdict.source
    said = select(*_GIVEN, *further).join(TABLES["rater"], rater.id == verdict.rater_id)
    of_reader = said.where(is_read(verdict), *mine)
    return of_reader.where(*_on_item(is_rubric=is_rubric, is_case=is_case)).order_by(verdict.id)
