"""Runs are started, stopped and retried; workers take questions; what came of them is written."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table, exists, func, insert, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlmodel import Session

from evalcore.errors import NotFound
from evalcore.runs.statements import (
    clock,
    evaluation,
    has_answer,
    not_answered,
    open_questions,
    parts,
    this_host,
    workers,
)
from evalcore.study.run_words import (
    ANSWERS_SAVED,
    LAST_ONE,
    RUN_RETRIED,
    RUN_STARTED,
    RUN_STOPPED,
    WAS_STOPPED,
    Call,
    Outcome,
    Question,
    RunKind,
    RunSpec,
    RunState,
    repeat_version,
)
from evalcore.study.schema import Acuity, ConfidenceMeaning, Label, RaterKind, Stage, Verdict
from evalcore.study.store import Bulk, append_event, ensure_rater, written
from evalcore.study.tables import TABLES, now
from evalcore.triage.store import set_confidence_meaning

MAX_REASON = 2_000
_COLUMNS = ("run_id", "example_id", "response_id", "criterion_id", "format", "sample_index", "repeat")


def start_run(
    session: Session, spec: RunSpec, *, actor: str, concurrency: int, max_cost: float | None, max_failures: int
) -> int:
    """The run of this fingerprint, made at the first call and opened again at later ones; with questions for all that has no answer yet.

    Questions that have failed stay as they are (`retry_questions`). Questions whose answer has come in another way, e.g. with a file, are
    closed. With nothing left to ask the run is done. Two processes that start it at once make its questions once.

    Returns:
        Its number.
    """
    run_id = _ensure_run(session, spec, actor, concurrency)
    runs, question = TABLES["run"], TABLES["run_question"]
    n_new = _add_questions(session, run_id, spec)
    _close_answered(session, run_id, spec)
    is_open = exists().where(question.c.run_id == run_id, question.c.outcome.is_(None))
    left = bool(session.connection().execute(select(is_open)).scalar_one())
    changed = {
        "spec": msgspec.json.encode(spec).decode(),  # prices and time limits may be others than before
        "state": (RunState.OPEN if left else RunState.DONE).value,
        "reason": None,
        "max_cost": max_cost,
        "max_failures": max_failures,
        "concurrency": concurrency,
        "started_by": actor,
        "ended_at": None if left else now(),
    }
    session.connection().execute(update(runs).where(runs.c.id == run_id).values(**changed))
    detail = {
        "run": run_id,
        "kind": spec.kind.value,
        "model": spec.model.name,
        "api_model": spec.model.api_model,
        "prompt_version": spec.prompt_version,
        "dataset": spec.dataset,
        "new_questions": n_new,
        "max_cost": max_cost,
    }
    append_event(session, actor=actor, action=RUN_STARTED, subject=f"run {run_id}", detail=detail)
    return run_id


def _ensure_run(session: Session, spec: RunSpec, actor: str, concurrency: int) -> int:
    """The number of the run, whose row is held until the transaction ends."""
    runs = TABLES["run"]
    row = {
        "kind": spec.kind.value,
        "name": spec.model.name,
        "fingerprint": spec.fingerprint,
        "spec": "{}",
        "state": RunState.OPEN.value,
        "concurrency": concurrency,
        "started_by": actor,
        "created_at": now(),
    }
    _insert_new(session, "run", row)
    named = select(runs.c.id).where(runs.c.fingerprint == spec.fingerprint).with_for_update(key_share=True)
    return int(session.connection().execute(named).scalar_one())


def _insert_new(session: Session, name: str, row: dict[str, Any]) -> None:
    """Insert a row, unless one like it is there."""
    table = TABLES[name]
    made = sqlite_insert(table) if session.get_bind().dialect.name == "sqlite" else postgresql_insert(table)
    session.connection().execute(made.values(row).on_conflict_do_nothing())


def _add_questions(session: Session, run_id: int, spec: RunSpec) -> int:
    """A row for each item without an answer that has none yet, by the database itself: there may be a million."""
    question = TABLES["run_question"]
    connection, n_new = session.connection(), 0
    counted = select(func.count()).select_from(question).where(question.c.run_id == run_id)
    n_before = int(connection.execute(counted).scalar_one())
    for part in parts(spec):
        missing = open_questions(run_id, spec, part)
        if spec.limit is not None:
            missing = missing.limit(max(spec.limit - n_before - n_new, 0))
        added = insert(question).from_select(_COLUMNS, missing, include_defaults=False)
        n_new += connection.execute(added, execution_options={"preserve_rowcount": True}).rowcount
    return n_new


def _close_answered(session: Session, run_id: int, spec: RunSpec) -> None:
    question = TABLES["run_question"]
    for part in parts(spec):
        closed = update(question).where(*not_answered(run_id, part), has_answer(spec, part))
        session.connection().execute(closed.values(outcome=Outcome.ANSWERED.value, worker_id=None))


def stop_run(session: Session, run_id: int, *, actor: str, reason: str) -> None:
    """The run is stopped, and its workers are told to finish what is in flight. A run that is not open stays as it is.

    Raises:
        NotFound: There is no such run.
    """
    workers = TABLES["run_worker"]
    state = _state(session, run_id)
    told = update(workers).where(workers.c.run_id == run_id, workers.c.ended_at.is_(None)).values(stop_asked=True)
    session.connection().execute(told)
    if state == RunState.OPEN:
        close_run(session, run_id, actor=actor, reason=reason)


def close_run(session: Session, run_id: int, *, actor: str, reason: str) -> None:
    """The run is stopped, whoever says so."""
    runs = TABLES["run"]
    values = {"state": RunState.STOPPED.value, "reason": reason[:MAX_REASON], "ended_at": now()}
    session.connection().execute(update(runs).where(runs.c.id == run_id).values(**values))
    detail = {"run": run_id, "reason": reason.partition(LAST_ONE)[0][:MAX_REASON]}
    append_event(session, actor=actor, action=RUN_STOPPED, subject=f"run {run_id}", detail=detail)


def retry_questions(session: Session, run_id: int, *, actor: str, outcomes: Collection[Outcome]) -> int:
    """Questions that have ended so are free again, and the run is open. What is known of their calls stays. Returns how many it is.

    Questions whose answer has come in another way since are closed first, as by `start_run`.

    Raises:
        NotFound: There is no such run.
    """
    runs, question = TABLES["run"], TABLES["run_question"]
    _state(session, run_id)
    spec = session.connection().execute(select(runs.c.spec).where(runs.c.id == run_id)).scalar_one()
    _close_answered(session, run_id, msgspec.json.decode(spec, type=RunSpec))
    words = [outcome.value for outcome in outcomes if outcome is not Outcome.ANSWERED]
    again = update(question).where(question.c.run_id == run_id, question.c.outcome.in_(words))
    n_again = session.connection().execute(again.values(outcome=None, worker_id=None)).rowcount
    if n_again:
        reopened = {"state": RunState.OPEN.value, "reason": None, "ended_at": None, "started_by": actor}
        session.connection().execute(update(runs).where(runs.c.id == run_id).values(**reopened))
        detail = {"run": run_id, "questions": n_again, "outcomes": sorted(words)}
        append_event(session, actor=actor, action=RUN_RETRIED, subject=f"run {run_id}", detail=detail)
    return int(n_again)


def _state(session: Session, run_id: int) -> str:
    runs = TABLES["run"]
    held = select(runs.c.state).where(runs.c.id == run_id).with_for_update(key_share=True)
    state = session.connection().execute(held).scalar()
    if state is None:
        msg = f"run: expected the number of a run, got {run_id}"
        raise NotFound(msg)
    return str(state)


class Orders(NamedTuple):
    """What a worker is told when it says that it lives.

    Attributes:
        stop: It shall finish what is in flight and end.
        was_dead: It was taken for dead, and what it held is free.
        n_others: Other workers of the run that live.
        max_cost: Of the run, by its latest start.
    """

    stop: bool
    was_dead: bool
    n_others: int
    max_cost: float | None


class Taken(NamedTuple):
    """What a worker has taken, and whether it was taken for dead before, so that what it held is not its own any more."""

    questions: list[Question]
    was_dead: bool


class Ended(NamedTuple):
    """How a run stands when one of its workers has ended.

    Attributes:
        n_left: Questions that are open, those that others hold among them.
    """

    state: RunState
    reason: str | None
    n_left: int
    n_held: int


def _questions() -> Any:
    return TABLES["run_question"]


def add_worker(session: Session, run_id: int, *, pid: int) -> int:
    """A process begins to work on a run; what dead ones held is free again. Returns its number."""
    _free_of_the_dead(session, run_id)
    table, at = TABLES["run_worker"], clock(session)
    row = {"run_id": run_id, "host": this_host(), "pid": pid, "started_at": at, "seen_at": at, "stop_asked": False}
    made = session.connection().execute(insert(table).values(row).returning(table.c.id))
    return int(made.scalar_one())


def say_alive(session: Session, run_id: int, worker_id: int) -> Orders:
    """The worker lives; one that was taken for dead, because its machine slept, is back."""
    runs, connection = TABLES["run"], session.connection()
    stop_asked, was_dead = _revived(session, worker_id)
    state, max_cost = connection.execute(select(runs.c.state, runs.c.max_cost).where(runs.c.id == run_id)).one()
    others = [row for row in workers(session, run_id) if row.lives and row.worker_id != worker_id]
    return Orders(stop_asked or state == RunState.STOPPED, was_dead, len(others), max_cost)


def _revived(session: Session, worker_id: int) -> tuple[bool, bool]:
    """Write that a worker lives; returns whether it is asked to stop, and whether it was taken for dead."""
    table, connection = TABLES["run_worker"], session.connection()
    mine = table.c.id == worker_id
    before = connection.execute(select(table.c.stop_asked, table.c.ended_at).where(mine).with_for_update()).one()
    connection.execute(update(table).where(mine).values(seen_at=clock(session), ended_at=None))
    return bool(before.stop_asked), before.ended_at is not None


def take(session: Session, run_id: int, worker_id: int, most: int) -> Taken:
    """Questions that nobody holds, now held by this worker; in their order, at most so many. Where there are none: what dead workers held."""
    _, was_dead = _revived(session, worker_id)  # first: who holds anything has not ended
    questions = _taken(session, run_id, worker_id, most)
    if not questions and _free_of_the_dead(session, run_id):
        questions = _taken(session, run_id, worker_id, most)
    return Taken(questions, was_dead)


def _taken(session: Session, run_id: int, worker_id: int, most: int) -> list[Question]:
    question = _questions()
    free = (
        select(question.c.id)
        .where(question.c.run_id == run_id, question.c.outcome.is_(None), question.c.worker_id.is_(None))
        .order_by(question.c.id)
        .limit(most)
        .with_for_update(skip_locked=True)
        .cte("free")
    )
    wanted = ("id", "example_id", "response_id", "criterion_id", "format", "sample_index", "repeat")
    taken = (
        update(question)
        .where(question.c.id.in_(select(free.c.id)))
        .values(worker_id=worker_id)
        .returning(*(question.c[name] for name in wanted))
    )
    found = [Question(*row) for row in session.connection().execute(taken)]
    return sorted(found, key=lambda asked: asked.question_id)


def _free_of_the_dead(session: Session, run_id: int) -> int:
    """Dead workers of a run have ended, and what those held that have ended is free again. Returns how many questions it was."""
    table = TABLES["run_worker"]
    dead = [row.worker_id for row in workers(session, run_id) if not row.lives]
    if dead:
        session.connection().execute(update(table).where(table.c.id.in_(dead)).values(ended_at=now()))
    # by one statement, so that a worker that has begun in the meantime is not taken for one that has ended
    return _free(session, run_id, select(table.c.id).where(table.c.run_id == run_id, table.c.ended_at.is_not(None)))


def end_worker(
    session: Session, run_id: int, worker_id: int, *, actor: str, reason: str | None, for_all: bool
) -> Ended:
    """The worker ends: what it still held is free again.

    Args:
        reason: Why it ends, one sentence; None where nothing was left to take.
        for_all: The reason stops the run; otherwise the run is stopped only where nobody else works on it.
    """
    runs, table, question = (TABLES[name] for name in ("run", "run_worker", "run_question"))
    connection = session.connection()
    held = select(runs.c.state).where(runs.c.id == run_id).with_for_update(key_share=True)
    state = RunState(connection.execute(held).scalar_one())
    _free(session, run_id, [worker_id])
    connection.execute(update(table).where(table.c.id == worker_id).values(ended_at=now()))
    still_open = (question.c.run_id == run_id, question.c.outcome.is_(None))
    counts = select(func.count(), func.count(question.c.worker_id)).where(*still_open)
    n_left, n_held = connection.execute(counts).one()
    if n_left == 0:
        done = {"state": RunState.DONE.value, "reason": None, "ended_at": now()}
        connection.execute(update(runs).where(runs.c.id == run_id).values(**done))
    elif (
        reason not in {None, WAS_STOPPED} and state is RunState.OPEN
    ):  # who stopped it has closed it; open now, it was started again
        others = any(row.lives and row.worker_id != worker_id for row in workers(session, run_id))
        if for_all or not others:
            close_run(session, run_id, actor=actor, reason=reason)
    now_is = connection.execute(select(runs.c.state, runs.c.reason).where(runs.c.id == run_id)).one()
    return Ended(RunState(now_is.state), now_is.reason, int(n_left), int(n_held))


def _free(session: Session, run_id: int, worker_ids: Any) -> int:
    question = _questions()
    held = (question.c.run_id == run_id, question.c.outcome.is_(None), question.c.worker_id.in_(worker_ids))
    return int(session.connection().execute(update(question).where(*held).values(worker_id=None)).rowcount)


_CHUNK = 500  # rows in one statement


def flag_suspects(session: Session, reasons: Mapping[int, Sequence[str]]) -> None:
    """Write down why some responses are suspect, in the caller's transaction, whose audit event tells of it.

    What was said of such a response before is replaced, so that to say the same again changes nothing. Two processes may flag the same responses at once.

    Args:
        reasons: By response, sentences of `prompts.suspects`, one or more.
    """
    rows, connection = _table(), session.connection()
    numbers = sorted(reasons)  # in one order everywhere, so that two who write do not wait for each other in a ring
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    for start in range(0, len(numbers), _CHUNK):
        part = numbers[start : start + _CHUNK]
        added = insert(rows).values(
            [{"response_id": one, "reasons": json.dumps(list(reasons[one]), ensure_ascii=False)} for one in part]
        )
        said = added.excluded.reasons
        connection.execute(
            added.on_conflict_do_update(
                index_elements=["response_id"], set_={"reasons": said}, where=rows.c.reasons != said
            )
        )


def _table() -> Table:
    return TABLES["suspect_response"]


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What came of one question.

    Attributes:
        calls: Each call, in order.
        outcome: Of the last call; None: it was broken off before the question was through, which stays open.
        text: A model's answer; None of a judge.
        label, explanation, confidence: A judge's verdict; None of a model.
        suspects: Sentences on words in the response that speak to the judge.
    """

    question: Question
    calls: tuple[Call, ...]
    outcome: Outcome | None
    text: str | None = None
    label: Label | Acuity | None = None
    explanation: str | None = None
    confidence: float | None = None
    suspects: tuple[str, ...] = ()


class Saved(NamedTuple):
    """What a transaction has written.

    Attributes:
        n_there: Answers that were not kept, since the item has one by now: it came with a file, from another run, or from a worker that
            took the question over.
    """

    n_answers: int
    n_there: int


class Saving(NamedTuple):
    """Whose answers are written.

    Attributes:
        meaning: What a judge's confidence is the probability of, where it states one.
    """

    run_id: int
    worker_id: int
    spec: RunSpec
    actor: str
    meaning: ConfidenceMeaning | None = None


def save_answers(session: Session, saving: Saving, answers: Sequence[Answer]) -> Saved:
    """Write answers, at most some hundreds at once.

    A question that has an outcome by now, or is another worker's, is left alone; the calls that it cost are told in the event.

    Raises:
        IntegrityError: Another process was first in the very moment; nothing is written, and the same again goes well.
    """
    at, bulk = now(), Bulk(session)
    ended = [answer for answer in answers if answer.outcome is not None]
    ours = _end_questions(session, saving.worker_id, ended)
    kept = [answer for answer in ended if answer.question.question_id in ours]
    good = [answer for answer in kept if answer.outcome is Outcome.ANSWERED]
    is_judged = saving.spec.kind is RunKind.JUDGE
    new = _new_verdicts(session, saving, good) if is_judged else _new_responses(session, saving, good)
    if is_judged:
        _write_verdicts(session, bulk, saving, new, at)
        # also where the judge's reply could not be read: other judges have read the response, or will
        flag_suspects(session, {one.question.response_id or 0: one.suspects for one in kept if one.suspects})
    else:
        _write_responses(bulk, saving.spec, new)
    broken_off = [answer for answer in answers if answer.outcome is None]
    _write_calls(bulk, saving, [*kept, *broken_off], at)
    lost = [answer for answer in ended if answer.question.question_id not in ours]
    n_there = len(good) - len(new) + sum(answer.outcome is Outcome.ANSWERED for answer in lost)
    detail = {
        "run": saving.run_id,
        "answers": len(new),
        "failures": len(kept) - len(good),
        "calls": sum(len(answer.calls) for answer in (*kept, *broken_off)),
        "cost": _cost((*kept, *broken_off)),
    }
    if n_there or lost:
        detail |= {
            "not_kept": n_there,
            "calls_of_others": sum(len(answer.calls) for answer in lost),
            "cost_of_others": _cost(lost),
        }
    append_event(session, actor=saving.actor, action=ANSWERS_SAVED, subject=f"run {saving.run_id}", detail=detail)
    return Saved(len(new), n_there)


def _cost(answers: Iterable[Answer]) -> float | None:
    """US dollars of all calls whose cost is known; None where none is."""
    known = [call.cost for answer in answers for call in answer.calls if call.cost is not None]
    return sum(known) if known else None


def _end_questions(session: Session, worker_id: int, ended: Sequence[Answer]) -> set[int]:
    """Write the outcomes, a statement each. Returns the numbers of the questions that were still this worker's, or nobody's."""
    question = TABLES["run_question"]
    by_outcome: defaultdict[Outcome, list[int]] = defaultdict(list)
    for answer in ended:
        if answer.outcome is not None:
            by_outcome[answer.outcome].append(answer.question.question_id)
    ours: set[int] = set()
    for outcome, numbers in by_outcome.items():
        mine = (question.c.worker_id == worker_id) | question.c.worker_id.is_(None)
        still_open = update(question).where(question.c.id.in_(sorted(numbers)), question.c.outcome.is_(None), mine)
        written = still_open.values(outcome=outcome.value).returning(question.c.id)
        ours.update(session.connection().execute(written).scalars())
    return ours


def _new_verdicts(session: Session, saving: Saving, good: Sequence[Answer]) -> list[tuple[Answer, int]]:
    """The answers on items on which the judge has no verdict yet, each with its rater."""
    raters = {
        repeat: ensure_rater(
            session,
            RaterKind.JUDGE,
            saving.spec.model.name,
            prompt_version=repeat_version(saving.spec.prompt_version, repeat),
        )
        for repeat in sorted({answer.question.repeat for answer in good})
    }
    if not raters:
        return []
    verdict = TABLES["verdict"].c
    numbers = sorted({answer.question.response_id or 0 for answer in good})
    said = select(verdict.response_id, verdict.criterion_id, verdict.rater_id).where(
        verdict.response_id.in_(numbers),
        verdict.rater_id.in_(list(raters.values())),
        verdict.stage == Stage.JUDGE.value,
    )
    there = {tuple(row) for row in session.connection().execute(said)}
    found = []
    for answer in good:
        asked, rater_id = answer.question, raters[answer.question.repeat]
        if (asked.response_id, asked.criterion_id, rater_id) not in there:
            found.append((answer, rater_id))
    return found


def _write_verdicts(
    session: Session, bulk: Bulk, saving: Saving, new: Sequence[tuple[Answer, int]], at: datetime
) -> None:
    """Verdicts, and the explanations for the index."""
    bulk.verdicts(
        [
            Verdict(
                example_id=answer.question.example_id,
                response_id=answer.question.response_id,
                criterion_id=answer.question.criterion_id,
                rater_id=rater_id,
                stage=Stage.JUDGE,
                label=answer.label,
                confidence=answer.confidence,
                explanation=answer.explanation,
                created_at=at,
            )
            for answer, rater_id in new
        ]
    )
    if saving.meaning is not None and any(answer.confidence is not None for answer, _ in new):
        set_confidence_meaning(session, saving.spec.model.name, saving.meaning, actor=saving.actor)
    _await_index(bulk, [(answer.question.example_id, answer.explanation) for answer, _ in new if answer.explanation])


def _new_responses(session: Session, saving: Saving, good: Sequence[Answer]) -> list[tuple[Answer, int]]:
    """The answers at places where the model has no response yet, each with its model."""
    if not good:
        return []
    response = TABLES["response"].c
    place = (response.example_id, response.dataset, response.sample_index)
    model_id = _model(session, saving.spec.model.name)
    wanted = [_place(saving.spec, answer.question) for answer in good]
    there: set[tuple[Any, ...]] = set()
    for start in range(0, len(wanted), _CHUNK):
        taken = select(*place).where(tuple_(*place).in_(wanted[start : start + _CHUNK]), response.model_id == model_id)
        there |= {tuple(row) for row in session.connection().execute(taken)}
    return [(answer, model_id) for answer, where in zip(good, wanted, strict=True) if where not in there]


def _place(spec: RunSpec, asked: Question) -> tuple[int, str, int]:
    return asked.example_id, evaluation(spec, asked.format), asked.sample_index


def _write_responses(bulk: Bulk, spec: RunSpec, new: Sequence[tuple[Answer, int]]) -> None:
    """Responses, and their texts for the index."""
    rows = []
    for answer, model_id in new:
        example_id, made_for, sample_index = _place(spec, answer.question)
        rows.append({
            "example_id": example_id, "model_id": model_id, "dataset": made_for, "sample_index": sample_index, "text": answer.text or "",
        })  # fmt: skip
    bulk.insert_only("response", rows)
    _await_index(bulk, [(answer.question.example_id, answer.text) for answer, _ in new if answer.text])


def _model(session: Session, name: str) -> int:
    """The number of the model of this name, made at the first call."""
    model = TABLES["model"]
    named = select(model.c.id).where(model.c.name == name)
    found = session.connection().execute(named).scalar()
    if found is None:
        found = session.connection().execute(insert(model).values(name=name).returning(model.c.id)).scalar_one()
        written(session).content("model", [found])
    return int(found)


def _write_calls(bulk: Bulk, saving: Saving, answers: Sequence[Answer], at: datetime) -> None:
    bulk.insert_only(
        "run_call",
        [
            {
                "run_id": saving.run_id,
                "worker_id": saving.worker_id,
                "question_id": call.question_id,
                "outcome": call.outcome.value,
                "status": call.status,
                "error": call.error,
                "reply": call.reply,
                "prompt_tokens": call.prompt_tokens,
                "completion_tokens": call.completion_tokens,
                "cost": call.cost,
                "attempts": call.attempts,
                "seconds": call.seconds,
                "at": at,
            }
            for answer in answers
            for call in answer.calls
        ],
    )


def _await_index(bulk: Bulk, texts: Iterable[tuple[int, str | None]]) -> None:
    by_example: defaultdict[int, list[str]] = defaultdict(list)
    for example_id, text in texts:
        if text:
            by_example[example_id].append(text)
    bulk.await_index(by_example.items())
