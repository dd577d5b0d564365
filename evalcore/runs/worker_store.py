"""Workers of runs: each takes questions by writing its number on them, says that it lives, and gives back what it has not asked."""

from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, update
from sqlmodel import Session

from evalcore.runs.store import close_run
from evalcore.runs.worker_tables import clock, this_host, workers
from evalcore.study.run_words import WAS_STOPPED, Question, RunState
from evalcore.study.tables import TABLES, now


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
        state, reason: Of the run.
        n_left: Questions that are open, those that others hold among them.
        n_held: Questions that other workers hold.
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
        session: The writing transaction.
        run_id: Of the run.
        worker_id: Of the worker.
        actor: Who acts.
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
