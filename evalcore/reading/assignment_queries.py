"""What could be assigned: responses and cases that fit, and those that are assigned already."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd
from sqlalchemy import exists, func, literal, or_, select
from sqlmodel import Session, col

from evalcore.errors import NotFound, refuse
from evalcore.reading.queries import is_skipped, n_waiting
from evalcore.study import contents, tables
from evalcore.study.browse import Filters, examples, item_pairs, response_conditions
from evalcore.study.frames import frame, numbers
from evalcore.study.schema import Ask, ReadingState, Selection
from evalcore.study.tables import TABLES, AnySelect, alias

Item = tuple[int, int | None]  # example_id, and response_id or None for the case itself
_CHUNK = 500  # bound variables in one statement


@dataclass(frozen=True)
class Planned:
    """One line of a plan: an item with the probability, in (0, 1], that it had of being drawn.

    `dataset`: of the example, or what the response was made for: acuity_qa and acuity_conversation tell two answers to one case apart. `line`: 0: in no file.
    """

    prompt_id: str
    model: str | None
    sample_index: int
    probability: float
    dataset: str | None = None
    line: int = field(default=0, compare=False)

    @property
    def place(self) -> str:
        """Where a fault is, in words."""
        return f"plan line {self.line}" if self.line else "plan"


def responses(session: Session, filters: Filters, *, with_rubric: bool) -> list[Item]:
    """Responses with a text that fit, oldest first; filters on items have to hold on one criterion of the response.

    `with_rubric`: only responses to conversations that have criteria.
    """
    response = TABLES["response"].c
    fitting = [int(number) for number in examples(session, filters)["example_id"]]
    of_example = response.example_id.in_(fitting)
    statement = _responses(with_rubric=with_rubric).where(of_example, *response_conditions(filters))
    if filters.on_items():
        statement = statement.where(response.id.in_(item_pairs(filters).with_only_columns(col(tables.Response.id))))
    rows = session.connection().execute(statement.order_by(response.example_id, response.id))
    return [(row[0], row[1]) for row in rows]


def _responses(*, with_rubric: bool) -> AnySelect:
    response = TABLES["response"].c
    statement = select(response.example_id, response.id).where(response.text != "")
    has_rubric = exists().where(col(tables.Criterion.example_id) == response.example_id)
    return statement.where(has_rubric) if with_rubric else statement


def datasets_answered_for(session: Session, evaluation: str) -> list[str]:
    """The data sets of the examples whose responses were made for an evaluation: healthbench for healthbench_hard."""
    example, response = TABLES["example"].c, TABLES["response"].c
    of_example = select(example.dataset).join(TABLES["response"], response.example_id == example.id)
    statement = of_example.where(response.dataset == evaluation).distinct().order_by(example.dataset)
    return [*session.connection().execute(statement).scalars()]


def planned(session: Session, plan: Iterable[Planned], *, ask: Ask) -> list[tuple[Item, float]]:
    """The items that a plan names, with their probabilities: cases where these are asked about, else responses."""
    lines = list(plan)
    named = _named(session, {line.prompt_id for line in lines}, of_cases=ask is Ask.GOLD_ACUITY)
    rubrics = having_rubric(session) if ask is Ask.RUBRIC else frozenset()
    without = {row.item for of_name in named.values() for row in of_name if not row.has_text}
    lines_of: dict[Item, Planned] = {}
    for line in lines:
        fitting = {row.item for row in named.get(line.prompt_id, ()) if row.fits(line)}
        model = "" if line.model is None else f" by model {line.model!r}"
        which = f"{line.place}: prompt_id {line.prompt_id!r}{model}"
        if len(fitting) != 1:
            msg = f"{which}: expected one item of the study (model, sample_index and dataset tell which), got {len(fitting)}"
            raise NotFound(msg)
        item = fitting.pop()
        if item in lines_of:
            refuse(f"expected each item once, got {which}, which {lines_of[item].place} names already")
        if ask is Ask.RUBRIC and item[0] not in rubrics:
            refuse(f"expected a response with a rubric to read, got {which}, which has no criteria", NotFound)
        if item in without:
            refuse(f"expected a response with a text to read, got {which}, of which only the level is known", NotFound)
        lines_of[item] = line
    return [(item, line.probability) for item, line in lines_of.items()]


class _Named(NamedTuple):
    example_id: int
    dataset: str
    response_id: int | None
    sample_index: int | None
    model: str | None
    has_text: bool
    evaluation: str | None

    @property
    def item(self) -> Item:
        return self.example_id, self.response_id

    def fits(self, line: Planned) -> bool:
        """Whether a line of the plan means this; of a case, model and repeat say nothing."""
        of_dataset = line.dataset in (None, self.dataset, self.evaluation)
        of_response = self.sample_index == line.sample_index and line.model in (None, self.model)
        return of_dataset and (self.response_id is None or of_response)


def _named(session: Session, prompt_ids: set[str], *, of_cases: bool) -> dict[str, list[_Named]]:
    example, response = TABLES["example"].c, TABLES["response"].c
    columns: list[Any] = [example.prompt_id, example.id, example.dataset]
    if of_cases:
        statement = select(*columns, literal(None), literal(None), literal(None), literal(1), literal(None))
    else:
        columns += [response.id, response.sample_index, col(tables.Model.name), response.text != "", response.dataset]
        statement = select(*columns).join(TABLES["response"], response.example_id == example.id)
        statement = statement.join(tables.Model, col(tables.Model.id) == response.model_id)
    named: dict[str, list[_Named]] = {}
    for part in _parts(sorted(prompt_ids)):
        for prompt_id, *row in session.connection().execute(statement.where(example.prompt_id.in_(part))):
            named.setdefault(prompt_id, []).append(_Named(*row))
    return named


def having_rubric(session: Session) -> frozenset[int]:
    """The examples that have criteria."""
    return numbers(session, select(TABLES["criterion"].c.example_id).distinct())


def _parts(values: list[Any]) -> Iterator[list[Any]]:
    return (values[start : start + _CHUNK] for start in range(0, len(values), _CHUNK))


def chosen(session: Session, response_ids: Iterable[int]) -> dict[int, int]:
    """The example of each of these responses that has a text to read, by response_id."""
    response = TABLES["response"].c
    examples_by_response: dict[int, int] = {}
    for part in _parts(list(response_ids)):
        statement = select(response.id, response.example_id).where(response.id.in_(part), response.text != "")
        examples_by_response.update((row[0], row[1]) for row in session.connection().execute(statement))
    return examples_by_response


def alike(session: Session, response_ids: Collection[int], *, with_rubric: bool) -> list[Item]:
    """Responses with a text to the same evaluations as these, oldest first; only those to conversations that have criteria, where that is asked."""
    response, same = TABLES["response"].c, alias("response", "same").c
    evaluations = {
        name
        for part in _parts(sorted(response_ids))
        for name in session.connection().execute(select(same.dataset).where(same.id.in_(part)).distinct()).scalars()
    }
    statement = _responses(with_rubric=with_rubric).where(response.dataset.in_(evaluations))
    return [(row[0], row[1]) for row in session.connection().execute(statement.order_by(response.id))]


def assigned(session: Session, ask: Ask, *, drawn: bool = False) -> set[Item]:
    """Items that are assigned already for the same question, of what was cancelled those that were read.

    `drawn`: only those that were drawn, since what somebody chose may be drawn yet.
    """
    task = TABLES["task"].c
    of_task = col(tables.Assignment.id) == task.assignment_id
    statement = select(task.example_id, task.response_id).join(tables.Assignment, of_task)
    reading = TABLES["reading"].c
    was_read = exists().where(reading.task_id == task.id, reading.state != ReadingState.READING)
    statement = statement.where(col(tables.Assignment.ask) == ask)
    statement = statement.where(or_(col(tables.Assignment.cancelled_at).is_(None), was_read))
    if drawn:
        statement = statement.where(col(tables.Assignment.selection) != Selection.VOLUNTEERED)
    return {(row[0], row[1]) for row in session.connection().execute(statement)}


def languages(session: Session, example_ids: Collection[int]) -> dict[int, str | None]:
    """Language by example; None where it is not known."""
    example = TABLES["example"].c
    rows = session.connection().execute(select(example.id, example.language).where(example.id.in_(list(example_ids))))
    return {row[0]: row[1] for row in rows}


def assignments(session: Session) -> pd.DataFrame:
    """One row an assignment, newest first.

    Returns:
        assignment_id, ask, n_readers, seed, selection, chosen_by, n_population, created_by, created_at, paused_at, cancelled_at, n_tasks, n_wanted (reads; of
        what is cancelled those that were made), n_reads (locked), n_open (being read), n_skipped, readers (names, joined by commas).
    """
    assignment, task, reading, person = (TABLES[name].c for name in ("assignment", "task", "reading", "person"))
    made = ("ask", "n_readers", "seed", "selection", "chosen_by", "n_population", "created_by", "created_at")
    names = (*made, "paused_at", "cancelled_at")
    n_readings, is_open = func.count(reading.id), reading.state == ReadingState.READING
    statement = (
        select(
            assignment.id.label("assignment_id"),
            *(assignment[name] for name in names),
            func.count(task.id.distinct()).label("n_tasks"),
            n_readings.filter(~is_open).label("n_reads"),
            n_readings.filter(is_open, reading.freed_at.is_(None), ~is_skipped()).label("n_open"),
            n_readings.filter(is_skipped()).label("n_skipped"),
        )
        .join(TABLES["task"], task.assignment_id == assignment.id)
        .outerjoin(TABLES["reading"], reading.task_id == task.id)
        .group_by(assignment.id, *(assignment[name] for name in names))
        .order_by(assignment.id.desc())
    )
    table = frame(session, statement)
    wanted = (table["n_tasks"] * table["n_readers"]).where(table["cancelled_at"].isna(), table["n_reads"])
    readers = (
        select(col(tables.AssignmentReader.assignment_id), person.name)
        .join(TABLES["person"], person.id == col(tables.AssignmentReader.person_id))
        .order_by(person.name)
    )
    named = frame(session, readers).groupby("assignment_id")["name"].agg(", ".join)
    return table.assign(n_wanted=wanted, readers=table["assignment_id"].map(named).fillna(""))


def locked_reads(session: Session, hidden: Collection[int] = ()) -> pd.DataFrame:
    """One row a locked read of what is assigned, without those of hidden conversations: assignment_id, reader, locked_at."""
    task, reading, person = (TABLES[name].c for name in ("task", "reading", "person"))
    statement = (
        select(task.assignment_id, person.name.label("reader"), reading.locked_at)
        .join(TABLES["task"], task.id == reading.task_id)
        .join(TABLES["person"], person.id == reading.person_id)
        .where(reading.state != ReadingState.READING)
    )
    return frame(session, statement if not hidden else statement.where(task.example_id.not_in(list(hidden))))


def n_reads(session: Session, assignment_id: int) -> tuple[int, int]:
    """How many items an assignment has, and how many reads of them are locked."""
    task, reading = TABLES["task"].c, TABLES["reading"].c
    mine = select(task.id).where(task.assignment_id == assignment_id)
    locked = select(func.count()).where(reading.task_id.in_(mine), reading.state != ReadingState.READING)
    connection = session.connection()
    n_tasks = connection.execute(select(func.count()).select_from(mine.subquery())).scalar_one()
    return int(n_tasks), int(connection.execute(locked).scalar_one())


def n_with_place(session: Session, assignment_id: int, at: datetime) -> int:
    """Items of an assignment that fewer than are wanted have read or are reading."""
    task, reading = TABLES["task"].c, TABLES["reading"].c
    kept = or_(reading.state != ReadingState.READING, reading.freed_at.is_(None) & (reading.reserved_until > at))
    n_taken = select(func.count()).where(reading.task_id == task.id, kept).correlate(TABLES["task"]).scalar_subquery()
    statement = select(func.count()).select_from(TABLES["task"]).join(tables.Assignment)
    statement = statement.where(task.assignment_id == assignment_id, n_taken < col(tables.Assignment.n_readers))
    return int(session.connection().execute(statement).scalar_one())


def items(session: Session, assignment_id: int) -> list[Item]:
    """The items of an assignment, in the order of reading."""
    task = TABLES["task"].c
    of_assignment = select(task.example_id, task.response_id).where(task.assignment_id == assignment_id)
    return [(row[0], row[1]) for row in session.connection().execute(of_assignment.order_by(task.place))]


def queue(session: Session, assignment_id: int) -> list[tuple[int, int, int | None, float]]:
    """Place, example, response and probability of each item of an assignment, in the order of reading."""
    task = TABLES["task"].c
    columns = (task.place, task.example_id, task.response_id, task.inclusion_probability)
    statement = select(*columns).where(task.assignment_id == assignment_id)
    rows = session.connection().execute(statement.order_by(task.place))
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def is_begun(session: Session, assignment_id: int) -> bool:
    """Whether anybody has taken an item of an assignment."""
    task, reading = TABLES["task"].c, TABLES["reading"].c
    begun = exists().where(reading.task_id == task.id, task.assignment_id == assignment_id)
    return bool(session.connection().execute(select(begun)).scalar_one())


def n_drawn(session: Session, assignment_id: int) -> int:
    """How many items an assignment and those that extend it, or it with what it extends, have."""
    statement = select(col(tables.Assignment.id), col(tables.Assignment.chosen_by))
    first = {row[0]: json.loads(row[1]).get("extends", row[0]) for row in session.connection().execute(statement)}
    family = [number for number, root in first.items() if root == first[assignment_id]]
    task = TABLES["task"].c
    n_tasks = select(func.count()).select_from(TABLES["task"]).where(task.assignment_id.in_(family))
    return int(session.connection().execute(n_tasks).scalar_one())


def readers_of(session: Session, assignment_id: int) -> frozenset[int]:
    """Who may take the items of an assignment: numbers of people."""
    reader = TABLES["assignment_reader"].c
    return numbers(session, select(reader.person_id).where(reader.assignment_id == assignment_id))


def of_reader(session: Session, person_id: int) -> list[int]:
    """The assignments that go on and have somebody among their readers, oldest first."""
    reader = TABLES["assignment_reader"].c
    going_on = select(reader.assignment_id).join(tables.Assignment)
    going_on = going_on.where(reader.person_id == person_id, col(tables.Assignment.cancelled_at).is_(None))
    return sorted(session.connection().execute(going_on).scalars())


def readers(session: Session, at: datetime) -> pd.DataFrame:
    """One row a reader of what is assigned, by name.

    Returns:
        reader, n_reads (locked), n_open (begun), n_skipped, n_waiting (that they could take now, also of what is paused; readers share what waits).
    """
    reading, person, reader = (TABLES[name].c for name in ("reading", "person", "assignment_reader"))
    is_open, n_readings = reading.state == ReadingState.READING, func.count(reading.id)
    statement = (
        select(
            person.id.label("person_id"),
            person.name.label("reader"),
            n_readings.filter(~is_open).label("n_reads"),
            n_readings.filter(is_open, reading.freed_at.is_(None), ~is_skipped()).label("n_open"),
            n_readings.filter(is_skipped()).label("n_skipped"),
        )
        .select_from(TABLES["person"])
        .outerjoin(TABLES["reading"], reading.person_id == person.id)
        .where(or_(reading.id.is_not(None), person.id.in_(select(reader.person_id))))
        .group_by(person.id, person.name)
        .order_by(person.name)
    )
    table = frame(session, statement)
    active = {viewer.person_id: viewer for viewer in contents.people(session)}
    waiting = [n_waiting(session, active[number], at) if number in active else 0 for number in table["person_id"]]
    return table.drop(columns="person_id").assign(n_waiting=waiting)
