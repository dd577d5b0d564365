"""Start, stop and retry runs, hand questions to workers, write what came of them. NotFound: no such run."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import exists, func, insert, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, InterfaceError, InternalError, OperationalError
from sqlmodel import Session

from evalcore.errors import DatabaseFault, NotFound, refuse
from evalcore.runs.item_queries import evaluation, not_answered, open_questions, parts
from evalcore.runs.prompts import CONFIDENCE_MEANING, Judged
from evalcore.runs.queries import CHUNK, RunRow, clock, this_host, workers
from evalcore.runs.spec import LAST_ONE, WAS_STOPPED, Call, Question, RunSpec
from evalcore.study.schema import ANSWERS_SAVED, Outcome, RaterKind, RunKind, RunState, Stage, Verdict, repeat_version
from evalcore.study.store import Bulk, append_event, ensure_rater, first_name, written
from evalcore.study.tables import STORED, TABLES, now
from evalcore.triage.store import set_confidence_meaning

CONFLICT = IntegrityError  # another process was first in the very moment, or a rule of the database is broken
NOT_TAKEN = (DatabaseFault, OperationalError, InternalError, InterfaceError)
"""The database is locked, full or away: the same again may go well."""
MAX_REASON = 2_000
_COLUMNS = ("run_id", "example_id", "response_id", "criterion_id", "format", "sample_index", "repeat")
_RUN, _WORKER, _QUESTION = (TABLES[name] for name in ("run", "run_worker", "run_question"))


def start_run(
    session: Session, spec: RunSpec, *, actor: str, concurrency: int, max_cost: float | None, max_failures: int
) -> int:
    """The run of this fingerprint, made or opened again, with questions for all that has no answer yet. Returns its number.

    Questions that have failed stay as they are (`retry_questions`). Two processes that start it at once make its questions once.
    """
    named = {"kind": spec.kind.value, "name": spec.model.name, "fingerprint": spec.fingerprint, "spec": "{}"}
    row = named | {"state": RunState.OPEN.value, "concurrency": concurrency, "started_by": actor, "created_at": now()}
    connection = session.connection()
    connection.execute(_upsert(session, "run").values(row).on_conflict_do_nothing())
    same = select(_RUN.c.id).where(_RUN.c.fingerprint == spec.fingerprint).with_for_update(key_share=True)
    run_id = int(connection.execute(same).scalar_one())  # its row is held until the transaction ends
    counted = select(func.count()).select_from(_QUESTION).where(_QUESTION.c.run_id == run_id)
    n_before, n_new = int(connection.execute(counted).scalar_one()), 0
    for part in parts(spec):  # a row for each item without an answer, by the database itself: there may be a million
        missing = open_questions(run_id, spec, part)
        if spec.limit is not None:
            missing = missing.limit(max(spec.limit - n_before - n_new, 0))
        added = insert(_QUESTION).from_select(_COLUMNS, missing, include_defaults=False)
        n_new += connection.execute(added, execution_options={"preserve_rowcount": True}).rowcount
    _close_answered(session, run_id, spec)
    is_open = exists().where(_QUESTION.c.run_id == run_id, _QUESTION.c.outcome.is_(None))
    left = bool(connection.execute(select(is_open)).scalar_one())
    bounds = {"max_cost": max_cost, "max_failures": max_failures, "concurrency": concurrency, "started_by": actor}
    stands = {"state": (RunState.OPEN if left else RunState.DONE).value, "ended_at": None if left else now()}
    said = msgspec.json.encode(spec).decode()  # prices and time limits may be others than before
    _update_run(session, run_id, spec=said, reason=None, **stands, **bounds)
    asked = {"kind": spec.kind.value, "model": spec.model.name, "api_model": spec.model.api_model}
    about = {"prompt_version": spec.prompt_version, "dataset": spec.dataset, "new_questions": n_new}
    _tell(session, "run started", run_id, actor, asked | about | {"max_cost": max_cost})
    return run_id


def _upsert(session: Session, name: str) -> Any:
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    return dialect.insert(TABLES[name])


def _update_run(session: Session, run_id: int, **values: Any) -> None:
    session.connection().execute(update(_RUN).where(_RUN.c.id == run_id).values(**values))


def _tell(session: Session, action: str, run_id: int, actor: str, detail: Mapping[str, Any]) -> None:
    append_event(session, actor=actor, action=action, subject=f"run {run_id}", detail={"run": run_id} | dict(detail))


def _close_answered(session: Session, run_id: int, spec: RunSpec) -> None:
    for part in parts(spec):
        closed = update(_QUESTION).where(*not_answered(run_id, spec, part, is_there=True))
        session.connection().execute(closed.values(outcome=Outcome.ANSWERED.value, worker_id=None))


def stop_run(session: Session, run_id: int, *, actor: str, reason: str) -> None:
    """Stop an open run, and tell its workers to finish what is in flight. Another run stays as it is."""
    state, _ = _held(session, run_id)
    alive = (_WORKER.c.run_id == run_id, _WORKER.c.ended_at.is_(None))
    session.connection().execute(update(_WORKER).where(*alive).values(stop_asked=True))
    if state == RunState.OPEN:
        _close_run(session, run_id, actor=actor, reason=reason)


def _close_run(session: Session, run_id: int, *, actor: str, reason: str) -> None:
    """The run is stopped, whoever says so; a judge's words are not told to the trail."""
    _update_run(session, run_id, state=RunState.STOPPED.value, reason=reason[:MAX_REASON], ended_at=now())
    _tell(session, "run stopped", run_id, actor, {"reason": reason.partition(LAST_ONE)[0][:MAX_REASON]})


def retry_questions(session: Session, run_id: int, *, actor: str, outcomes: Collection[Outcome]) -> int:
    """Questions that ended so, and have no answer by now, are free again, and the run is open. Their calls stay known. Returns how many it is."""
    _, spec = _held(session, run_id)
    _close_answered(session, run_id, msgspec.json.decode(spec, type=RunSpec))
    words = [outcome.value for outcome in outcomes if outcome is not Outcome.ANSWERED]
    again = update(_QUESTION).where(_QUESTION.c.run_id == run_id, _QUESTION.c.outcome.in_(words))
    n_again = int(session.connection().execute(again.values(outcome=None, worker_id=None)).rowcount)
    if n_again:
        _update_run(session, run_id, state=RunState.OPEN.value, reason=None, ended_at=None, started_by=actor)
        _tell(session, "run retried", run_id, actor, {"questions": n_again, "outcomes": sorted(words)})
    return n_again


def _held(session: Session, run_id: int) -> tuple[str, str]:
    held = select(_RUN.c.state, _RUN.c.spec).where(_RUN.c.id == run_id).with_for_update(key_share=True)
    row = session.connection().execute(held).first()
    if row is None:
        refuse(f"run: expected the number of a run, got {run_id}", NotFound)
    return row.state, row.spec


class Orders(NamedTuple):
    """What a worker is told when it says that it lives; `was_dead`: it was taken for dead, and what it held is free."""

    stop: bool
    was_dead: bool
    n_others: int
    max_cost: float | None


class Ended(NamedTuple):
    """How a run stands when one of its workers has ended: questions that are open, and how many of them others hold."""

    state: RunState
    reason: str | None
    n_left: int
    n_held: int


def add_worker(session: Session, run_id: int, *, pid: int) -> int:
    """A process begins to work on a run; what dead ones held is free again. Returns its number."""
    _free_of_the_dead(session, run_id)
    at = clock(session)
    row = {"run_id": run_id, "host": this_host(), "pid": pid, "started_at": at, "seen_at": at, "stop_asked": False}
    return int(session.connection().execute(insert(_WORKER).values(row).returning(_WORKER.c.id)).scalar_one())


def say_alive(session: Session, run_id: int, worker_id: int) -> Orders:
    """The worker lives; one that was taken for dead, because its machine slept, is back."""
    stop_asked, was_dead = _revived(session, worker_id)
    stands = select(_RUN.c.state, _RUN.c.max_cost).where(_RUN.c.id == run_id)
    state, max_cost = session.connection().execute(stands).one()
    others = [row for row in workers(session, run_id) if row.lives and row.worker_id != worker_id]
    return Orders(stop_asked or state == RunState.STOPPED, was_dead, len(others), max_cost)


def _revived(session: Session, worker_id: int) -> tuple[bool, bool]:
    connection, mine = session.connection(), _WORKER.c.id == worker_id
    before = connection.execute(select(_WORKER.c.stop_asked, _WORKER.c.ended_at).where(mine).with_for_update()).one()
    connection.execute(update(_WORKER).where(mine).values(seen_at=clock(session), ended_at=None))
    return bool(before.stop_asked), before.ended_at is not None


def take(session: Session, run_id: int, worker_id: int, most: int) -> tuple[list[Question], bool]:
    """Questions that nobody holds, else those of dead workers, now held by this one; and whether it was taken for dead before, and so has lost its own."""
    _, was_dead = _revived(session, worker_id)  # first: who holds anything has not ended
    questions = _taken(session, run_id, worker_id, most)
    if not questions and _free_of_the_dead(session, run_id):
        questions = _taken(session, run_id, worker_id, most)
    return questions, was_dead


def _taken(session: Session, run_id: int, worker_id: int, most: int) -> list[Question]:
    free = (
        select(_QUESTION.c.id)
        .where(_QUESTION.c.run_id == run_id, _QUESTION.c.outcome.is_(None), _QUESTION.c.worker_id.is_(None))
        .order_by(_QUESTION.c.id)
        .limit(most)
        .with_for_update(skip_locked=True)
        .cte("free")
    )
    taken = (
        update(_QUESTION)
        .where(_QUESTION.c.id.in_(select(free.c.id)))
        .values(worker_id=worker_id)
        .returning(_QUESTION.c.id, *(_QUESTION.c[name] for name in _COLUMNS[1:]))
    )
    questions = [Question(*row) for row in session.connection().execute(taken)]
    return sorted(questions, key=lambda asked: asked.question_id)


def _free_of_the_dead(session: Session, run_id: int) -> int:
    dead = [row.worker_id for row in workers(session, run_id) if not row.lives]
    if dead:
        session.connection().execute(update(_WORKER).where(_WORKER.c.id.in_(dead)).values(ended_at=now()))
    # by one statement, so that a worker that has begun in the meantime is not taken for one that has ended
    ended = select(_WORKER.c.id).where(_WORKER.c.run_id == run_id, _WORKER.c.ended_at.is_not(None))
    return _free(session, run_id, ended)


def end_worker(
    session: Session, run_id: int, worker_id: int, *, actor: str, reason: str | None, for_all: bool
) -> Ended:
    """The worker ends, and what it held is free again. `reason`: why, in a sentence; it stops the run where it is `for_all`, or nobody else works on it."""
    connection = session.connection()
    state, _ = _held(session, run_id)
    _free(session, run_id, [worker_id])
    connection.execute(update(_WORKER).where(_WORKER.c.id == worker_id).values(ended_at=now()))
    still_open = (_QUESTION.c.run_id == run_id, _QUESTION.c.outcome.is_(None))
    counted = select(func.count(), func.count(_QUESTION.c.worker_id)).where(*still_open)
    n_left, n_held = connection.execute(counted).one()
    if n_left == 0:
        _update_run(session, run_id, state=RunState.DONE.value, reason=None, ended_at=now())
    elif reason not in {None, WAS_STOPPED} and state == RunState.OPEN:
        # who stopped it has closed it; open now, it was started again
        others = any(row.lives and row.worker_id != worker_id for row in workers(session, run_id))
        if for_all or not others:
            _close_run(session, run_id, actor=actor, reason=reason or "")
    now_is = connection.execute(select(_RUN.c.state, _RUN.c.reason).where(_RUN.c.id == run_id)).one()
    return Ended(RunState(now_is.state), now_is.reason, int(n_left), int(n_held))


def _free(session: Session, run_id: int, worker_ids: Any) -> int:
    held = (_QUESTION.c.run_id == run_id, _QUESTION.c.outcome.is_(None), _QUESTION.c.worker_id.in_(worker_ids))
    return int(session.connection().execute(update(_QUESTION).where(*held).values(worker_id=None)).rowcount)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What came of one question. `outcome`: of the last call; None: broken off, the question stays open. `came`: a judge's verdict or a model's text."""

    question: Question
    calls: tuple[Call, ...]
    outcome: Outcome | None
    came: Judged | str | None = None
    suspects: tuple[str, ...] = ()


def save_answers(session: Session, run: RunRow, worker_id: int, answers: Sequence[Answer]) -> int:
    """Write some hundreds of a worker's answers. Returns how many are not kept, since the item has one by now, of whomever; their calls are told."""
    at, bulk = now(), Bulk(session)
    ended = [answer for answer in answers if answer.outcome is not None]
    ours = _end_questions(session, worker_id, ended)
    kept = [answer for answer in ended if answer.question.question_id in ours]
    good = [answer for answer in kept if answer.outcome is Outcome.ANSWERED]
    if run.kind is RunKind.JUDGE:
        n_new = _save_verdicts(session, bulk, run, good, at) if good else 0
        # also where the judge's reply could not be read: other judges have read the response, or will
        flag_suspects(session, {one.question.response_id or 0: one.suspects for one in kept if one.suspects})
    else:
        n_new = _save_responses(session, bulk, run.spec, good) if good else 0
    written_calls = [*kept, *(answer for answer in answers if answer.outcome is None)]
    whose = {"run_id": run.run_id, "worker_id": worker_id}
    calls = [call for answer in written_calls for call in answer.calls]
    rows = [whose | msgspec.structs.asdict(call) | {"outcome": call.outcome.value, "at": at} for call in calls]
    bulk.insert_only("run_call", rows)
    lost = [answer for answer in ended if answer.question.question_id not in ours]
    n_there = len(good) - n_new + sum(answer.outcome is Outcome.ANSWERED for answer in lost)
    detail = {"answers": n_new, "failures": len(kept) - len(good), "calls": len(calls), "cost": _cost(calls)}
    if n_there or lost:
        calls = [call for answer in lost for call in answer.calls]
        detail |= {"not_kept": n_there, "calls_of_others": len(calls), "cost_of_others": _cost(calls)}
    _tell(session, ANSWERS_SAVED, run.run_id, run.started_by, detail)
    return n_there


def _cost(calls: Iterable[Call]) -> float | None:
    costs = [call.cost for call in calls if call.cost is not None]
    return sum(costs) if costs else None


def _end_questions(session: Session, worker_id: int, ended: Sequence[Answer]) -> set[int]:
    by_outcome: defaultdict[str, list[int]] = defaultdict(list)
    for answer in ended:
        by_outcome[str(answer.outcome)].append(answer.question.question_id)
    ours: set[int] = set()
    mine = (_QUESTION.c.worker_id == worker_id) | _QUESTION.c.worker_id.is_(None)
    for outcome, numbers in by_outcome.items():
        still_open = update(_QUESTION).where(_QUESTION.c.id.in_(sorted(numbers)), _QUESTION.c.outcome.is_(None), mine)
        ended_now = still_open.values(outcome=outcome).returning(_QUESTION.c.id)
        ours.update(session.connection().execute(ended_now).scalars())
    return ours


def _save_verdicts(session: Session, bulk: Bulk, run: RunRow, good: Sequence[Answer], at: datetime) -> int:
    name, version = run.spec.model.name, run.spec.prompt_version
    raters = {
        repeat: ensure_rater(session, RaterKind.JUDGE, name, prompt_version=repeat_version(version, repeat))
        for repeat in sorted({answer.question.repeat for answer in good})
    }
    verdict = TABLES["verdict"].c
    numbers = sorted({answer.question.response_id or 0 for answer in good})
    by_judge = (verdict.rater_id.in_(list(raters.values())), verdict.stage == Stage.JUDGE.value)
    given = select(verdict.response_id, verdict.criterion_id, verdict.rater_id)
    rows = session.connection().execute(given.where(verdict.response_id.in_(numbers), *by_judge))
    there = {tuple(row) for row in rows}
    verdicts = []
    for answer in good:
        asked = answer.question
        item = (asked.response_id, asked.criterion_id, raters[asked.repeat])
        if item not in there and isinstance(answer.came, Judged):
            said: dict[str, Any] = dict(zip(("response_id", "criterion_id", "rater_id"), item, strict=True))
            said |= {"label": answer.came.label, "confidence": answer.came.confidence}
            said |= {"explanation": answer.came.explanation or None, "example_id": asked.example_id}
            verdicts.append(Verdict(stage=Stage.JUDGE, created_at=at, **said))
    bulk.verdicts(verdicts)
    if run.spec.with_confidence and any(verdict.confidence is not None for verdict in verdicts):
        set_confidence_meaning(session, name, CONFIDENCE_MEANING, actor=run.started_by)
    _await_index(bulk, ((verdict.example_id, verdict.explanation) for verdict in verdicts))
    return len(verdicts)


def _save_responses(session: Session, bulk: Bulk, spec: RunSpec, good: Sequence[Answer]) -> int:
    model = STORED["model"]
    connection, name = session.connection(), first_name(session, "model", spec.model.name)
    model_id = connection.execute(select(model.c.id).where(model.c.name == name)).scalar()
    if model_id is None:
        model_id = connection.execute(insert(model).values(name=name).returning(model.c.id)).scalar_one()
        written(session).content("model", [model_id])
    wanted = {}
    for answer in good:
        asked = answer.question
        text = answer.came if isinstance(answer.came, str) else ""
        wanted[asked.example_id, evaluation(spec, asked.format), asked.sample_index] = text
    places, there = list(wanted), set[tuple[Any, ...]]()
    for start in range(0, len(places), CHUNK):
        # also one that is hidden: nobody asks for it anew
        for response in (TABLES["response"].c, STORED["response"].c):
            place = (response.example_id, response.dataset, response.sample_index)
            wanted_there = tuple_(*place).in_(places[start : start + CHUNK])
            taken = select(*place).where(wanted_there, response.model_id == model_id)
            there |= {tuple(row) for row in connection.execute(taken)}
    new = {key: text for key, text in wanted.items() if key not in there}
    columns = ("example_id", "dataset", "sample_index", "text")
    rows = [dict(zip(columns, (*key, text), strict=True)) | {"model_id": model_id} for key, text in new.items()]
    bulk.insert_only("response", rows)
    _await_index(bulk, ((example_id, text) for (example_id, _, _), text in new.items()))
    return len(new)


def _await_index(bulk: Bulk, texts: Iterable[tuple[int, str | None]]) -> None:
    by_example: defaultdict[int, list[str]] = defaultdict(list)
    for example_id, text in texts:
        if text:
            by_example[example_id].append(text)
    bulk.await_index(by_example.items())


def flag_suspects(session: Session, reasons: Mapping[int, Sequence[str]]) -> None:
    """Write down why some responses are suspect (by response, sentences of `suspicion.suspects`), in place of what was said of them before."""
    rows = TABLES["suspect_response"]
    numbers = sorted(reasons)  # in one order everywhere, so that two who write do not wait for each other in a ring
    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        said_now = [{"response_id": one, "reasons": json.dumps([*reasons[one]], ensure_ascii=False)} for one in part]
        added = _upsert(session, "suspect_response").values(said_now)
        said = added.excluded.reasons
        changed = {"index_elements": ["response_id"], "set_": {"reasons": said}, "where": rows.c.reasons != said}
        session.connection().execute(added.on_conflict_do_update(**changed))
