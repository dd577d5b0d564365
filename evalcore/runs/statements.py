"""Statements on runs: which items have an answer, and which workers live."""

import os
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Integer, Select, cast, exists, func, literal_column, null, select
from sqlmodel import Session

from evalcore.study.run_words import Outcome, RunKind, RunSpec, repeat_version
from evalcore.study.schema import CASES, Format, RaterKind, Stage
from evalcore.study.tables import TABLES, now

_NOTHING: Any = cast(null(), Integer)


class Part(NamedTuple):
    """Items of a run that differ in nothing but what they are about."""

    format: str = ""
    sample_index: int = 0
    repeat: int = 0


class Items(NamedTuple):
    """The items of a part.

    Attributes:
        statement: Their example_id, response_id and criterion_id, in the order in which they are asked.
        is_there: The condition that an item has an answer.
        mixed: A number by which the items stand in an order that has nothing to do with what they are.
    """

    statement: Select[Any]
    is_there: ColumnElement[bool]
    key: tuple[Any, Any, Any]
    mixed: ColumnElement[int]


def table(name: str) -> Any:
    """The columns of a table."""
    return TABLES[name].c


def parts(spec: RunSpec) -> Iterator[Part]:
    """The parts of a run in the order in which they are asked: of an interrupted run every item has its first sample before any has its second."""
    if spec.kind is RunKind.JUDGE:
        yield from (Part(repeat=repeat) for repeat in range(spec.n_repeats))
    else:
        formats = spec.formats if spec.kind is RunKind.TRIAGE else ("",)
        yield from (Part(word, sample) for sample in range(spec.n_samples) for word in formats)


def evaluation(spec: RunSpec, asked: str) -> str:
    """What the answers of a run are made for, as `Response.dataset` holds it."""
    return Format(asked).evaluation if spec.kind is RunKind.TRIAGE else spec.dataset


def items(spec: RunSpec, part: Part) -> Items:
    """The items of one part of a run.

    Asked are: each example of the data set (respond); each case (triage); each criterion of each response to an example of the data set, or each
    response with a text to a case in the format conversation (judge). An answer is there where the model has a response of this sample, or
    the judge of this repeat has a verdict on the item; one that came with a file counts as well.
    """
    if spec.kind is not RunKind.JUDGE:
        return _answers(spec, part)
    return _levels(spec, part) if spec.dataset == CASES else _criteria(spec, part)


def open_questions(run_id: int, spec: RunSpec, part: Part) -> Select[Any]:
    """The items of a part that have no answer and are no question of the run yet: the columns of `run_question`, from run_id to repeat."""
    found, question = items(spec, part), table("run_question")
    example_id, response_id, criterion_id = found.key
    is_asked = exists().where(
        question.run_id == run_id,
        question.example_id == example_id,
        _or_0(question.response_id) == _or_0(response_id),
        _or_0(question.criterion_id) == _or_0(criterion_id),
        question.format == part.format,
        question.sample_index == part.sample_index,
        question.repeat == part.repeat,
    )
    constant = (_number(part.sample_index), _number(part.repeat))
    columns = found.statement.with_only_columns(
        _number(run_id), example_id, response_id, criterion_id, literal_column(f"'{part.format}'"), *constant
    )
    return columns.where(~found.is_there, ~is_asked)


def not_answered(run_id: int, part: Part) -> tuple[ColumnElement[bool], ...]:
    """The conditions of a run's questions of this part that are open or have failed."""
    question = table("run_question")
    return (
        question.run_id == run_id,
        question.format == part.format,
        question.sample_index == part.sample_index,
        question.repeat == part.repeat,
        func.coalesce(question.outcome, literal_column("''")) != Outcome.ANSWERED.value,
    )


def has_answer(spec: RunSpec, part: Part) -> ColumnElement[bool]:
    """The condition that a question of this part (a row of `run_question`) has an answer."""
    question = table("run_question")
    if spec.kind is RunKind.JUDGE:
        return _has_verdict(spec, part, question.example_id, question.response_id, question.criterion_id)
    return _has_response(spec, part, question.example_id)


def _answers(spec: RunSpec, part: Part) -> Items:
    example, known = table("example"), table("acuity_case")
    found = select(example.id).where(example.dataset == spec.dataset).order_by(example.id)
    if spec.kind is RunKind.TRIAGE:
        found = found.where(exists().where(known.example_id == example.id))
    key = (example.id, _NOTHING, _NOTHING)
    return Items(found.with_only_columns(*key), _has_response(spec, part, example.id), key, _mixed(example.id))


def _criteria(spec: RunSpec, part: Part) -> Items:
    example, response, criterion = table("example"), table("response"), table("criterion")
    found = (
        _of_models(spec, select(response.id))
        .join(TABLES["example"], example.id == response.example_id)
        .join(TABLES["criterion"], criterion.example_id == response.example_id)
        .where(example.dataset == spec.dataset)
        .order_by(response.id, criterion.position)
    )
    key = (response.example_id, response.id, criterion.id)
    there = _has_verdict(spec, part, *key)
    return Items(found.with_only_columns(*key), there, key, _mixed(response.id, criterion.id))


def _levels(spec: RunSpec, part: Part) -> Items:
    response, known = table("response"), table("acuity_case")
    found = (
        _of_models(spec, select(response.id))
        .where(
            response.dataset == Format.CONVERSATION.evaluation,
            response.text != "",
            exists().where(known.example_id == response.example_id),
        )
        .order_by(response.id)
    )
    key = (response.example_id, response.id, _NOTHING)
    there = _has_verdict(spec, part, response.example_id, response.id, None)
    return Items(found.with_only_columns(*key), there, key, _mixed(response.id))


def _of_models(spec: RunSpec, statement: Select[Any]) -> Select[Any]:
    if not spec.of_models:
        return statement
    model = table("model")
    chosen = select(model.id).where(model.name.in_(spec.of_models))
    return statement.where(table("response").model_id.in_(chosen))


def _has_response(spec: RunSpec, part: Part, example_id: Any) -> ColumnElement[bool]:
    response, model = TABLES["response"].alias("given").c, table("model")
    named = select(model.id).where(model.name == spec.model.name).scalar_subquery()
    return exists().where(
        response.example_id == example_id,
        response.model_id == named,
        response.dataset == evaluation(spec, part.format),
        response.sample_index == part.sample_index,
    )


def _has_verdict(
    spec: RunSpec, part: Part, example_id: Any, response_id: Any, criterion_id: Any
) -> ColumnElement[bool]:
    verdict = TABLES["verdict"].alias("given").c
    named = rater_named(spec, part.repeat).scalar_subquery()
    said = (verdict.rater_id == named, verdict.stage == Stage.JUDGE.value)
    if spec.dataset == CASES:  # as the index on such verdicts has it
        of_response = _or_0(verdict.response_id) == response_id
        return exists().where(verdict.example_id == example_id, of_response, verdict.criterion_id.is_(None), *said)
    return exists().where(verdict.response_id == response_id, verdict.criterion_id == criterion_id, *said)


def rater_named(spec: RunSpec, repeat: int) -> Select[Any]:
    """The number of the rater that gives a judge's repeat; no row before its first verdict."""
    rater = table("rater")
    return select(rater.id).where(
        rater.kind == RaterKind.JUDGE.value,
        rater.name == spec.model.name,
        rater.prompt_version == repeat_version(spec.prompt_version, repeat),
    )


def _or_0(column: Any) -> Any:
    """As the indexes have it: with the number itself, since SQLite finds none by a bound variable."""
    return func.coalesce(column, literal_column("0"))


def _number(value: int) -> Any:
    return literal_column(str(int(value)))


def _mixed(*columns: Any) -> ColumnElement[int]:
    """Products of small numbers: below 2**31 in PostgreSQL's arithmetic."""
    total = sum((column % 20_011 * factor for column, factor in zip(columns, (7_919, 10_477), strict=False)), 0)
    mixed: ColumnElement[int] = total % 19_997
    return mixed


UNSEEN_SECONDS = 30.0
"""A worker that has not said for so long that it lives is dead."""
_FIRST_NAMESPACE = "pid:[4026531836]"


class WorkerRow(NamedTuple):
    """A worker that has not ended, whether it lives, and whether it was told to end."""

    worker_id: int
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    lives: bool
    stop_asked: bool


def this_host() -> str:
    """The name of this machine; with the number of the container's own space of processes, where it has one: a pid says nothing outside it."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = _FIRST_NAMESPACE
    return socket.gethostname() + ("" if space == _FIRST_NAMESPACE else f" {space}")


def is_gone(host: str, pid: int) -> bool:
    """Whether the process is known to have ended; of another machine's nothing is known."""
    if host != this_host():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:  # one that has ended and that nobody has asked about yet still has its number
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def clock(session: Session) -> datetime:
    """The time by which workers are seen: the database server's, since their machines' clocks may differ; SQLite's are all on one machine."""
    if session.get_bind().dialect.name == "postgresql":
        told: datetime = session.connection().execute(select(func.clock_timestamp())).scalar_one()
        return told
    return now()


def workers(session: Session, run_id: int | None = None) -> list[WorkerRow]:
    """The workers of a run, or of all, that have not ended, oldest first; the dead among them are marked."""
    table = TABLES["run_worker"].c
    wanted = (table.id, table.host, table.pid, table.started_at, table.seen_at, table.stop_asked)
    found = select(*wanted).where(table.ended_at.is_(None))
    if run_id is not None:
        found = found.where(table.run_id == run_id)
    unseen = clock(session) - timedelta(seconds=UNSEEN_SECONDS)
    return [
        WorkerRow(number, host, pid, started_at, seen_at, seen_at > unseen and not is_gone(host, pid), stop_asked)
        for number, host, pid, started_at, seen_at, stop_asked in session.connection().execute(found.order_by(table.id))
    ]
