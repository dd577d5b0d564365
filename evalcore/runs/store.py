"""Runs are started, stopped and retried: the run's row, its questions, and the events that tell of it."""

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import exists, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlmodel import Session

from evalcore.errors import NotFound
from evalcore.runs.asked_tables import has_answer, not_answered, open_questions, parts
from evalcore.study.run_words import LAST_ONE, RUN_RETRIED, RUN_STARTED, RUN_STOPPED, Outcome, RunSpec, RunState
from evalcore.study.store.events import append_event
from evalcore.study.tables import TABLES, now

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
        msg = f"run: {run_id} came, and there is no run of this number"
        raise NotFound(msg)
    return str(state)
