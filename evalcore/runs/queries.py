"""Runs as they stand, live workers, the texts that are asked about, and responses that speak to their judge."""

import json
import os
import socket
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
from sqlalchemy import case, distinct, exists, func, select
from sqlmodel import Session

from evalcore.errors import NotFound, refuse
from evalcore.judges.splits import SPLIT_WHAT, MadeWith
from evalcore.runs.spec import CUT_OFF, Question, RunSpec
from evalcore.study.audit import trail
from evalcore.study.frames import frame
from evalcore.study.schema import CASES, LABELS_EXPORTED, Format, Message, Outcome, RunKind, RunState, Stage
from evalcore.study.tables import TABLES, now

LATELY_SECONDS = 30.0
UNSEEN_SECONDS = 30.0  # a worker that has not said for so long that it lives is dead
FAILURES = tuple(outcome for outcome in Outcome if outcome is not Outcome.ANSWERED)
CHUNK = 500  # bound variables in one statement
_FIRST_NAMESPACE = "pid:[4026531836]"
_CALL, _QUESTION, _FLAGGED = (TABLES[name].c for name in ("run_call", "run_question", "suspect_response"))
_EXAMPLE, _MODEL, _RESPONSE, _VERDICT = (TABLES[name].c for name in ("example", "model", "response", "verdict"))


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


class Calls(NamedTuple):
    """What the calls of a run took, as far as servers count it; without cost are calls that brought a reply and whose cost is not known."""

    n_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    n_with_cost: int
    n_without_cost: int


@dataclass(frozen=True)
class Progress:
    """How far a run is. `outcomes`: of ended questions; `rate`: of the last half minute, a second."""

    run_id: int
    state: RunState
    reason: str | None
    n_questions: int
    outcomes: dict[Outcome, int]
    calls: Calls
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
    """One run."""
    found = rows(session, run_ids=[run_id])
    if not found:
        refuse(f"run: expected the number of a run, got {run_id}", NotFound)
    return found[0]


def rows(
    session: Session, *, run_ids: Collection[int] | None = None, name: str | None = None, fingerprint: str | None = None
) -> list[RunRow]:
    """Runs, newest first: of these numbers, of a model or judge of this name, or of this `RunSpec.fingerprint`."""
    table = TABLES["run"].c
    statement = select(table.id, *(table[column] for column in RunRow._fields[1:])).order_by(table.id.desc())
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


def splits_written(session: Session) -> list[dict[str, Any]]:
    """What the trail says of each split into sets that was taken out, the newest first: seed, shares, files."""
    return trail.details(session, LABELS_EXPORTED, f"{SPLIT_WHAT} as jsonl")


def stated(session: Session, judge: str) -> dict[str, list[MadeWith]]:
    """Of each prompt version that a judge was asked with in a run, the sets that it is said to be made with; a version whose runs say nothing has none."""
    found: dict[str, list[MadeWith]] = {}
    for row in rows(session, name=judge):
        if row.kind is RunKind.JUDGE:
            sets = found.setdefault(row.spec.prompt_version, [])
            sets += [one for one in row.spec.made_with if one not in sets]
    return found


def progress(session: Session, run_id: int) -> Progress:
    """How far a run is; of a million questions it takes a second."""
    row = run(session, run_id)
    alive = [worker for worker in workers(session, run_id) if worker.lives]
    rate = 0.0
    if alive:  # over the last half minute, or since the first of the present workers began
        at = clock(session)
        since = max(at - timedelta(seconds=LATELY_SECONDS), min(worker.started_at for worker in alive))
        lately = select(func.count(distinct(_CALL.question_id))).where(_CALL.run_id == run_id, _CALL.at > since)
        seconds = (at - since).total_seconds()
        rate = _number(session, lately) / seconds if seconds > 0 else 0.0
    stands = counts(session, run_id)
    took = calls(session, run_id)
    outcomes = dict(stands.outcomes)
    stands_at = (row.state, row.reason, stands.n_questions, outcomes, took)
    return Progress(run_id, *stands_at, row.max_cost, rate, n_workers=len(alive))


class Counts(NamedTuple):
    """Questions of a run: all, those that have ended by what came of them, and open ones that workers hold."""

    n_questions: int
    outcomes: Counter[Outcome]
    n_held: int


def counts(session: Session, run_id: int) -> Counts:
    """How many questions a run has."""
    grouped = select(_QUESTION.outcome, func.count(), func.count(_QUESTION.worker_id)).where(_QUESTION.run_id == run_id)
    found = session.connection().execute(grouped.group_by(_QUESTION.outcome)).all()
    outcomes = Counter({Outcome(word): int(n) for word, n, _ in found if word is not None})
    n_held = sum(int(n) for word, _, n in found if word is None)
    return Counts(sum(int(n) for _, n, _ in found), outcomes, n_held)


def calls(session: Session, run_id: int, *, besides: int | None = None) -> Calls:
    """What the calls of a run took so far; `besides`: without those of this worker."""
    unknown = case((_CALL.cost.is_(None) & _CALL.outcome.not_in([Outcome.REJECTED, Outcome.UNREACHABLE]), 1), else_=0)
    tokens = (func.coalesce(func.sum(column), 0) for column in (_CALL.prompt_tokens, _CALL.completion_tokens))
    cost = (func.sum(_CALL.cost), func.count(_CALL.cost), func.coalesce(func.sum(unknown), 0))
    summed = select(func.count(), *tokens, *cost).where(_CALL.run_id == run_id)
    if besides is not None:
        summed = summed.where(func.coalesce(_CALL.worker_id, 0) != besides)
    n_calls, prompt, completion, dollars, n_with, n_without = session.connection().execute(summed).one()
    return Calls(int(n_calls), int(prompt), int(completion), dollars, int(n_with), int(n_without))


def failures(
    session: Session, run_id: int, *, most: int = 1_000, skipped: int = 0, outcomes: Collection[Outcome] = FAILURES
) -> pd.DataFrame:
    """Questions that have ended without an answer, or in one of some ways, with their last call, by number.

    Returns:
        One row a question: question_id, example_id, prompt_id, response_id, model (whose response was judged), criterion_id, position, criterion,
        format, sample_index, repeat, outcome, status, error, reply (raw), attempts (of the last call), n_calls, n_tries (in all; 0: never sent), at.
    """
    names = ("run_question", "run_call", "response", "model", "example", "criterion")
    question, call, response, model, example, criterion = map(TABLES.__getitem__, names)
    n_calls, n_tries = func.count().label("n_calls"), func.sum(call.c.attempts).label("n_tries")
    last = (
        select(call.c.question_id, func.max(call.c.id).label("id"), n_calls, n_tries)
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
    """Every run, newest first, with the columns of `LIST_COLUMNS`: cost is missing where it is unknown, n_workers are those that live."""
    connection = session.connection()
    grouped = select(_QUESTION.run_id, _QUESTION.outcome, func.count()).group_by(_QUESTION.run_id, _QUESTION.outcome)
    counts: dict[int, Counter[str | None]] = {}
    for run_id, outcome, n in connection.execute(grouped):
        counts.setdefault(run_id, Counter())[outcome] = int(n)
    summed = select(_CALL.run_id, func.sum(_CALL.cost)).group_by(_CALL.run_id)
    costs = dict(map(tuple, connection.execute(summed)))
    n_workers = Counter(worker.run_id for worker in workers(session) if worker.lives)
    lines = []
    for row in rows(session):
        of_run = counts.get(row.run_id, Counter())
        n_all, n_answered, n_open = of_run.total(), of_run[Outcome.ANSWERED.value], of_run[None]
        lines.append((
            row.run_id, row.kind.value, row.spec.model.name, row.spec.dataset, row.spec.prompt_version, row.state.value, row.reason,
            n_all, n_answered, n_all - n_answered - n_open, n_open, costs.get(row.run_id), row.max_cost, n_workers[row.run_id],
            row.started_by, row.created_at, row.ended_at,
        ))  # fmt: skip
    return pd.DataFrame(lines, columns=list(LIST_COLUMNS)).astype({"cost": float, "max_cost": float})


LIST_COLUMNS = (
    "run_id", "kind", "name", "dataset", "prompt_version", "state", "reason", "n_questions", "n_answered", "n_failed", "n_open", "cost",
    "max_cost", "n_workers", "started_by", "created_at", "ended_at",
)  # fmt: skip


class Subject(NamedTuple):
    """What a run asks about: so many examples, and responses (0 where answers are asked for) of so many models."""

    n_examples: int
    n_responses: int
    n_models: int


def subject(session: Session, run_id: int) -> Subject:
    """What the questions of a run are about. A million take a second: keep it until their number changes."""
    counted = select(func.count(distinct(_QUESTION.example_id)), func.count(distinct(_QUESTION.response_id)))
    n_examples, n_responses = session.connection().execute(counted.where(_QUESTION.run_id == run_id)).one()
    judged = select(_QUESTION.response_id).where(_QUESTION.run_id == run_id)
    by = select(func.count(distinct(_RESPONSE.model_id))).where(_RESPONSE.id.in_(judged))
    return Subject(int(n_examples), int(n_responses), _number(session, by) if n_responses else 0)


def n_cut_off(session: Session, run_id: int) -> int:
    """How many answers of a run the server cut off at max_tokens, or at its own limit; of a judge's run none."""
    of_run = (_CALL.run_id == run_id, _CALL.outcome == Outcome.ANSWERED.value, _CALL.error == CUT_OFF)
    return _number(session, select(func.count()).where(*of_run))


def _number(session: Session, statement: Any) -> int:
    return int(session.connection().execute(statement).scalar_one())


class WorkerRow(NamedTuple):
    """A worker that has not ended, whether it lives, and whether it was told to end."""

    worker_id: int
    run_id: int
    host: str
    pid: int
    started_at: datetime
    stop_asked: bool
    lives: bool


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
        at: datetime = session.connection().execute(select(func.clock_timestamp())).scalar_one()
        return at
    return now()


def workers(session: Session, run_id: int | None = None) -> list[WorkerRow]:
    """The workers of a run, or of all, that have not ended, oldest first; the dead among them are marked."""
    table = TABLES["run_worker"].c
    columns = (table.id, table.run_id, table.host, table.pid, table.started_at, table.stop_asked, table.seen_at)
    statement = select(*columns).where(table.ended_at.is_(None))
    if run_id is not None:
        statement = statement.where(table.run_id == run_id)
    unseen = clock(session) - timedelta(seconds=UNSEEN_SECONDS)
    return [
        WorkerRow(*row[:-1], lives=row.seen_at > unseen and not is_gone(row.host, row.pid))
        for row in session.connection().execute(statement.order_by(table.id))
    ]


def datasets(session: Session) -> list[str]:
    """The data sets of which there are examples."""
    return [*session.connection().execute(select(_EXAMPLE.dataset).distinct().order_by(_EXAMPLE.dataset)).scalars()]


def models_of(session: Session, dataset: str) -> list[str]:
    """The models whose responses to examples of a data set can be judged; of cases: those with a text in the format conversation."""
    of_example = (_RESPONSE.example_id == _EXAMPLE.id, _EXAMPLE.dataset == dataset)
    to_judge = exists().where(_RESPONSE.model_id == _MODEL.id, *of_example)
    if dataset == CASES:
        to_judge = to_judge.where(_RESPONSE.dataset == Format.CONVERSATION.evaluation, _RESPONSE.text != "")
    return [*session.connection().execute(select(_MODEL.name).where(to_judge).order_by(_MODEL.name)).scalars()]


def texts(
    session: Session, asked: Collection[Question]
) -> tuple[dict[int, tuple[Message, ...]], dict[int, str], dict[int, tuple[str, int | None]]]:
    """What some questions are about, by the numbers of the rows, each read once: conversations, responses, criteria with their points."""
    examples = _of(session, "example", {one.example_id for one in asked}, "messages")
    responses = _of(session, "response", {one.response_id for one in asked}, "text")
    criteria = _of(session, "criterion", {one.criterion_id for one in asked}, "text", "points")
    return (
        {number: msgspec.json.decode(messages, type=tuple[Message, ...]) for number, messages in examples},
        {number: text or "" for number, text in responses},
        {number: (text, points) for number, text, points in criteria},
    )


def _of(session: Session, name: str, numbers: Iterable[int | None], *columns: str, key: str = "id") -> Iterator[Any]:
    table, wanted = TABLES[name].c, sorted({number for number in numbers if number is not None})
    for start in range(0, len(wanted), CHUNK):
        part = table[key].in_(wanted[start : start + CHUNK])
        yield from session.connection().execute(select(table[key], *(table[column] for column in columns)).where(part))


# A run searches each response before it asks a judge about it, and keeps what it finds. An import searches none: at 1 to 4 ms a response it
# would take longer than all else that an import does. So a response whose verdicts came by file is searched when it is shown.


def suspects_of(session: Session, response_ids: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Of some responses those that are suspect, with the sentences that say why."""
    found = _of(session, "suspect_response", response_ids, "reasons", key="response_id")
    return {number: tuple(json.loads(reasons)) for number, reasons in found}


def judged_text(session: Session, response_id: int) -> str:
    """The text of a response on which a judge has given a verdict; "" where none has, or where there is no text."""
    is_judged = exists().where(_VERDICT.response_id == _RESPONSE.id, _VERDICT.stage == Stage.JUDGE.value)
    found = session.connection().execute(select(_RESPONSE.text).where(_RESPONSE.id == response_id, is_judged))
    return found.scalar() or ""


def are_suspect(session: Session) -> dict[int, bool]:
    """Whether a response is suspect, of those that a run has searched and a judge has answered on."""
    is_answered = (_QUESTION.id == _CALL.question_id, _CALL.outcome == Outcome.ANSWERED.value)
    connection, of_response = session.connection(), _QUESTION.response_id.is_not(None)
    searched = connection.execute(select(_QUESTION.response_id).distinct().where(*is_answered, of_response)).scalars()
    suspect = connection.execute(select(_FLAGGED.response_id)).scalars()
    return dict.fromkeys(searched, False) | dict.fromkeys(suspect, True)
