"""Runs as they stand, what a run would ask, and the texts that questions are made from."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from sqlalchemy import Float, case, cast, distinct, exists, func, select
from sqlmodel import Session

from evalcore.errors import NotFound
from evalcore.runs.statements import WorkerRow, clock, has_answer, items, not_answered, parts, workers
from evalcore.study.frames import frame
from evalcore.study.run_words import CUT_OFF, Outcome, Question, RunKind, RunSpec, RunState
from evalcore.study.schema import CASES, Format, Message
from evalcore.study.tables import TABLES

LATELY_SECONDS = 30.0
FAILURES = tuple(outcome for outcome in Outcome if outcome is not Outcome.ANSWERED)


class RunRow(NamedTuple):
    """A run as its row has it."""

    run_id: int
    kind: RunKind
    spec: RunSpec
    state: RunState
    reason: str | None
    max_cost: float | None
    max_failures: int
    concurrency: int
    started_by: str
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        outcomes: Questions by what came of them; those that are still open are not in it.
        n_calls: Asked in all: an unreadable reply is asked for again.
        prompt_tokens, completion_tokens: Of all calls whose server counts them.
        cost: US dollars of all calls whose cost is known; None where none is.
        n_without_cost: Calls that brought a reply and whose cost is not known.
        rate: Questions that ended in the last half minute, by the second.
        n_workers: Processes that work on it now.
    """

    run_id: int
    state: RunState
    reason: str | None
    n_questions: int
    outcomes: dict[Outcome, int]
    n_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    n_without_cost: int
    max_cost: float | None
    rate: float
    n_workers: int

    @property
    def n_asked(self) -> int:
        """Questions that have ended, one way or another."""
        return sum(self.outcomes.values())

    @property
    def n_answered(self) -> int:
        """Questions with an answer."""
        return self.outcomes.get(Outcome.ANSWERED, 0)

    @property
    def n_failed(self) -> int:
        """Questions that have ended without one."""
        return self.n_asked - self.n_answered

    @property
    def n_open(self) -> int:
        """Questions that are still to be asked, those in flight among them."""
        return self.n_questions - self.n_asked

    @property
    def seconds_left(self) -> float | None:
        """At the rate of the last half minute; None where nothing has ended in it."""
        return self.n_open / self.rate if self.rate > 0 else None


def run(session: Session, run_id: int) -> RunRow:
    """One run.

    Raises:
        NotFound: There is none of this number.
    """
    found = rows(session, run_ids=[run_id])
    if not found:
        msg = f"run: expected the number of a run, got {run_id}"
        raise NotFound(msg)
    return found[0]


def rows(
    session: Session,
    *,
    run_ids: Collection[int] | None = None,
    name: str | None = None,
    fingerprint: str | None = None,
) -> list[RunRow]:
    """Runs, newest first: of these numbers, of a model or judge of this name, or that ask just this (`RunSpec.fingerprint`)."""
    table = TABLES["run"].c
    statement = select(
        table.id, table.kind, table.spec, table.state, table.reason, table.max_cost, table.max_failures, table.concurrency, table.started_by, table.created_at,
        table.ended_at,
    ).order_by(table.id.desc())  # fmt: skip
    if run_ids is not None:
        statement = statement.where(table.id.in_(list(run_ids)))
    if name is not None:
        statement = statement.where(table.name == name)
    if fingerprint is not None:
        statement = statement.where(table.fingerprint == fingerprint)
    return [
        RunRow(number, RunKind(kind), msgspec.json.decode(spec, type=RunSpec), RunState(state), *rest)
        for number, kind, spec, state, *rest in session.connection().execute(statement)
    ]


def progress(session: Session, run_id: int) -> Progress:
    """How far a run is; of a million questions it takes a second.

    Raises:
        NotFound: There is no such run.
    """
    found = run(session, run_id)
    alive = [worker for worker in workers(session, run_id) if worker.lives]
    totals = calls(session, run_id)
    return Progress(
        run_id=run_id,
        state=found.state,
        reason=found.reason,
        n_questions=n_questions(session, run_id),
        outcomes=outcomes(session, run_id),
        n_calls=totals.n_calls,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        cost=totals.cost,
        n_without_cost=totals.n_without_cost,
        max_cost=found.max_cost,
        rate=_rate(session, run_id, alive),
        n_workers=len(alive),
    )


def n_questions(session: Session, run_id: int) -> int:
    """All questions of a run."""
    question = TABLES["run_question"].c
    counted = select(func.count()).where(question.run_id == run_id)
    return int(session.connection().execute(counted).scalar_one())


def n_held(session: Session, run_id: int) -> int:
    """Open questions of a run that workers hold."""
    question = TABLES["run_question"].c
    held = select(func.count(question.worker_id)).where(question.run_id == run_id, question.outcome.is_(None))
    return int(session.connection().execute(held).scalar_one())


def outcomes(session: Session, run_id: int) -> dict[Outcome, int]:
    """Questions of a run by what came of them."""
    question = TABLES["run_question"].c
    counted = select(question.outcome, func.count()).where(question.run_id == run_id, question.outcome.is_not(None))
    grouped = counted.group_by(question.outcome)
    return {Outcome(word): int(n) for word, n in session.connection().execute(grouped)}


class Calls(NamedTuple):
    """What the calls of a run took.

    Attributes:
        n_without_cost: Calls that brought a reply and whose cost is not known.
    """

    n_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    n_with_cost: int
    n_without_cost: int


def calls(session: Session, run_id: int, *, besides: int | None = None) -> Calls:
    """What the calls of a run took so far; `besides`: without those of this worker."""
    call = TABLES["run_call"].c
    unknown = case((call.cost.is_(None) & call.outcome.not_in([Outcome.REJECTED, Outcome.UNREACHABLE]), 1), else_=0)
    summed = select(
        func.count(),
        func.coalesce(func.sum(call.prompt_tokens), 0),
        func.coalesce(func.sum(call.completion_tokens), 0),
        func.sum(call.cost),
        func.count(call.cost),
        func.coalesce(func.sum(unknown), 0),
    ).where(call.run_id == run_id)
    if besides is not None:
        summed = summed.where(func.coalesce(call.worker_id, 0) != besides)
    n_calls, prompt, completion, cost, n_with, n_without = session.connection().execute(summed).one()
    return Calls(int(n_calls), int(prompt), int(completion), cost, int(n_with), int(n_without))


def _rate(session: Session, run_id: int, alive: Collection[WorkerRow]) -> float:
    """Questions a second over the last half minute, or since the first of the present workers began."""
    if not alive:
        return 0.0
    call = TABLES["run_call"].c
    at = clock(session)
    since = max(at - timedelta(seconds=LATELY_SECONDS), min(worker.started_at for worker in alive))
    lately = select(func.count(func.distinct(call.question_id))).where(call.run_id == run_id, call.at > since)
    seconds = (at - since).total_seconds()
    return int(session.connection().execute(lately).scalar_one()) / seconds if seconds > 0 else 0.0


def failures(
    session: Session, run_id: int, *, most: int = 1_000, skipped: int = 0, outcomes: Collection[Outcome] = FAILURES
) -> pd.DataFrame:
    """Questions that have ended without an answer, or in one of some ways, with their last call, by number.

    Returns:
        One row a question: question_id, example_id, prompt_id, response_id, model (whose response was judged), criterion_id, position, criterion,
        format, sample_index, repeat, outcome, status, error, reply (raw), attempts (of the last call), n_calls, n_tries (in all; 0: never sent), at.
    """
    question, call, response, model, example, criterion = (
        TABLES[name] for name in ("run_question", "run_call", "response", "model", "example", "criterion")
    )
    last = (
        select(
            call.c.question_id,
            func.max(call.c.id).label("id"),
            func.count().label("n_calls"),
            func.sum(call.c.attempts).label("n_tries"),
        )
        .where(call.c.run_id == run_id, call.c.outcome.in_([word.value for word in FAILURES]))
        .group_by(call.c.question_id)
        .subquery()
    )
    statement = (
        select(
            question.c.id.label("question_id"), question.c.example_id, example.c.prompt_id, question.c.response_id, model.c.name.label("model"),
            question.c.criterion_id, criterion.c.position, criterion.c.text.label("criterion"), question.c.format, question.c.sample_index,
            question.c.repeat, question.c.outcome, call.c.status, call.c.error, call.c.reply, call.c.attempts, last.c.n_calls, last.c.n_tries, call.c.at,
        )
        .select_from(last)
        .join(question, question.c.id == last.c.question_id)
        .join(call, call.c.id == last.c.id)
        .join(example, example.c.id == question.c.example_id)
        .outerjoin(response, response.c.id == question.c.response_id)
        .outerjoin(model, model.c.id == response.c.model_id)
        .outerjoin(criterion, criterion.c.id == question.c.criterion_id)
        .where(question.c.outcome.in_([word.value for word in outcomes if word in FAILURES]))
        .order_by(question.c.id)
        .limit(most)
        .offset(skipped)
    )  # fmt: skip
    return frame(session, statement)


def listed(session: Session) -> pd.DataFrame:
    """Every run, newest first.

    Returns:
        One row a run: run_id, kind, name, dataset, prompt_version, state, reason, n_questions, n_answered, n_failed, n_open, cost (US dollars;
        missing where unknown), max_cost, n_workers (that live), started_by, created_at, ended_at.
    """
    question, call = TABLES["run_question"].c, TABLES["run_call"].c
    counted = select(question.run_id, question.outcome, func.count().label("n")).group_by(
        question.run_id, question.outcome
    )
    by_run: dict[int, dict[str | None, int]] = {}
    for run_id, outcome, n in session.connection().execute(counted):
        by_run.setdefault(run_id, {})[outcome] = n
    costs = dict(
        tuple(row)
        for row in session.connection().execute(select(call.run_id, func.sum(call.cost)).group_by(call.run_id))
    )
    alive = [worker.worker_id for worker in workers(session) if worker.lives]
    table = TABLES["run_worker"].c
    at_work = select(table.run_id, func.count()).where(table.id.in_(alive)).group_by(table.run_id)
    n_workers = dict(tuple(row) for row in session.connection().execute(at_work))
    return pd.DataFrame(
        [
            _line(found, by_run.get(found.run_id, {}))
            | {"cost": costs.get(found.run_id), "max_cost": found.max_cost, "n_workers": n_workers.get(found.run_id, 0)}
            | {"started_by": found.started_by, "created_at": found.created_at, "ended_at": found.ended_at}
            for found in rows(session)
        ],
        columns=list(LIST_COLUMNS),
    ).astype({"cost": float, "max_cost": float})


LIST_COLUMNS = (
    "run_id", "kind", "name", "dataset", "prompt_version", "state", "reason", "n_questions", "n_answered", "n_failed", "n_open", "cost",
    "max_cost", "n_workers", "started_by", "created_at", "ended_at",
)  # fmt: skip


def _line(found: RunRow, counts: dict[str | None, int]) -> dict[str, Any]:
    n_all, n_answered, n_open = sum(counts.values()), counts.get(Outcome.ANSWERED.value, 0), counts.get(None, 0)
    return {
        "run_id": found.run_id,
        "kind": found.kind.value,
        "name": found.spec.model.name,
        "dataset": found.spec.dataset,
        "prompt_version": found.spec.prompt_version,
        "state": found.state.value,
        "reason": found.reason,
        "n_questions": n_all,
        "n_answered": n_answered,
        "n_failed": n_all - n_answered - n_open,
        "n_open": n_open,
    }


class Counted(NamedTuple):
    """Items of a run: all, and those that have an answer."""

    n_all: int
    n_there: int


class Taken(NamedTuple):
    """What a question took on average, all its calls together.

    Attributes:
        n_questions: So many questions the averages are of.
        prompt_tokens, completion_tokens: None where no server has counted them.
    """

    n_questions: int
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float


def counted(session: Session, spec: RunSpec) -> Counted:
    """All items of a run, and those that have an answer."""
    n_all = n_there = 0
    for part in parts(spec):
        found = items(spec, part)
        there = func.coalesce(func.sum(case((found.is_there, 1), else_=0)), 0)
        summed = found.statement.order_by(None).with_only_columns(func.count(), there)
        every, with_answer = session.connection().execute(summed).one()
        n_all, n_there = n_all + int(every), n_there + int(with_answer)
    return Counted(n_all, n_there)


class Left(NamedTuple):
    """Questions of a run whose items have no answer: still to be asked, and failed."""

    n_open: int
    n_failed: int


def left(session: Session, run_id: int, spec: RunSpec) -> Left:
    """What is left of a run that was started; questions whose answer has come in another way since are not."""
    outcome = TABLES["run_question"].c.outcome
    n_open = n_failed = 0
    for part in parts(spec):
        summed = select(func.count(), func.count(outcome)).where(
            *not_answered(run_id, part), ~has_answer(spec, part)
        )  # fmt: skip
        every, ended = session.connection().execute(summed).one()
        n_open, n_failed = n_open + int(every) - int(ended), n_failed + int(ended)
    return Left(n_open, n_failed)


def drawn(session: Session, spec: RunSpec, most: int) -> list[Question]:
    """Some items without an answer, in an order that has nothing to do with what they are; their numbers are 0."""
    found: list[Question] = []
    for part in parts(spec):
        asked = items(spec, part)
        some = asked.statement.where(~asked.is_there).order_by(None).order_by(asked.mixed, *asked.key[:2]).limit(most)
        rows = session.connection().execute(some)
        found.extend(Question(0, row[0], row[1], row[2], part.format, part.sample_index, part.repeat) for row in rows)
        if len(found) >= most:
            break
    return found[:most]


def taken_before(session: Session, spec: RunSpec) -> Taken | None:
    """What questions of runs with this model and prompt took; None before the first answer."""
    numbers = [
        row.run_id
        for row in rows(session, name=spec.model.name)
        if (row.kind, row.spec.prompt_version) == (spec.kind, spec.prompt_version)
    ]
    call = TABLES["run_call"].c
    replied = (Outcome.ANSWERED, Outcome.UNREADABLE, Outcome.REFUSED)
    summed = select(
        func.count(distinct(call.question_id)),
        func.count(call.prompt_tokens),
        func.count(call.completion_tokens),
        func.count(),
        func.avg(cast(call.prompt_tokens, Float)),
        func.avg(cast(call.completion_tokens, Float)),
        func.avg(call.seconds),
    ).where(call.run_id.in_(numbers), call.outcome.in_([word.value for word in replied]))
    n, n_prompt, n_completion, n_calls, prompt, completion, seconds = session.connection().execute(summed).one()
    if not n:
        return None
    each = n_calls / n
    return Taken(
        n_questions=int(n),
        prompt_tokens=float(prompt) * each if n_prompt else None,
        completion_tokens=float(completion) * each if n_completion else None,
        seconds=float(seconds) * each,
    )


def datasets(session: Session) -> list[str]:
    """The data sets of which there are examples."""
    example = TABLES["example"].c
    found = select(example.dataset).distinct().order_by(example.dataset)
    return [str(name) for name in session.connection().execute(found).scalars()]


def models_of(session: Session, dataset: str) -> list[str]:
    """The models whose responses to examples of a data set can be judged; of cases: those with a text in the format conversation."""
    example, response, model = (TABLES[name].c for name in ("example", "response", "model"))
    to_judge = exists().where(
        response.model_id == model.id, response.example_id == example.id, example.dataset == dataset
    )
    if dataset == CASES:
        to_judge = to_judge.where(response.dataset == Format.CONVERSATION.evaluation, response.text != "")
    found = select(model.name).where(to_judge).order_by(model.name)
    return [str(name) for name in session.connection().execute(found).scalars()]


def confidence_meaning(session: Session, judge: str) -> str | None:
    """What the study says that this judge's confidence is the probability of."""
    meaning = TABLES["judge_confidence"].c
    found = session.connection().execute(select(meaning.meaning).where(meaning.judge == judge)).scalar()
    return None if found is None else str(found)


class Subject(NamedTuple):
    """What a run asks about.

    Attributes:
        n_responses: That are judged; 0 where answers are asked for.
    """

    n_examples: int
    n_responses: int
    n_models: int


def subject(session: Session, run_id: int) -> Subject:
    """What the questions of a run are about; of a million it takes a second, so keep it: it changes only with their number."""
    question, response = (TABLES[name].c for name in ("run_question", "response"))
    counted = select(func.count(distinct(question.example_id)), func.count(distinct(question.response_id)))
    n_examples, n_responses = session.connection().execute(counted.where(question.run_id == run_id)).one()
    judged = select(question.response_id).where(question.run_id == run_id)
    by = select(func.count(distinct(response.model_id))).where(response.id.in_(judged))
    n_models = session.connection().execute(by).scalar_one() if n_responses else 0
    return Subject(int(n_examples), int(n_responses), int(n_models))


CHUNK = 500  # bound variables in one statement


class Texts(NamedTuple):
    """What some questions are about, by the numbers of the rows."""

    conversations: dict[int, tuple[Message, ...]]
    responses: dict[int, str]
    criteria: dict[int, tuple[str, int | None]]


def texts(session: Session, questions: Iterable[Question]) -> Texts:
    """The texts of some questions; each is read once, however many questions are about it."""
    asked = list(questions)
    examples = _of(session, "example", {one.example_id for one in asked}, ("messages",))
    responses = _of(session, "response", {one.response_id for one in asked if one.response_id is not None}, ("text",))
    criteria = _of(
        session, "criterion", {one.criterion_id for one in asked if one.criterion_id is not None}, ("text", "points")
    )
    return Texts(
        {number: msgspec.json.decode(messages, type=tuple[Message, ...]) for number, messages in examples},
        {number: text or "" for number, text in responses},
        {number: (text, points) for number, text, points in criteria},
    )


def _of(session: Session, name: str, numbers: Collection[int], columns: tuple[str, ...]) -> Iterable[Any]:
    table, ordered = TABLES[name].c, sorted(numbers)
    for start in range(0, len(ordered), CHUNK):
        part = table.id.in_(ordered[start : start + CHUNK])
        yield from session.connection().execute(select(table.id, *(table[column] for column in columns)).where(part))


def n_cut_off(session: Session, run_id: int) -> int:
    """How many answers of a run the server cut off at max_tokens, or at its own limit; of a judge's run none."""
    call = TABLES["run_call"].c
    counted = select(func.count()).where(
        call.run_id == run_id, call.outcome == Outcome.ANSWERED.value, call.error == CUT_OFF
    )  # fmt: skip
    return int(session.connection().execute(counted).scalar_one())
