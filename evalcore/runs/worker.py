"""A process works on a run: it asks until nothing is left or something says stop, and ends so that others can go on."""

import asyncio
import gc
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from math import ceil
from pathlib import Path
from threading import Thread
from typing import Any

from evalcore.errors import DatabaseFault, Frozen
from evalcore.runs import acts, queries, store
from evalcore.runs.asking import Asking, Stop
from evalcore.runs.model_client import ModelClient
from evalcore.runs.queries import Progress, RunRow, WorkerRow
from evalcore.runs.spec import key_of, refuse
from evalcore.runs.store import Ended
from evalcore.runs.summary import Figures
from evalcore.settings import started_again
from evalcore.stats.wording import counted
from evalcore.study import snapshot
from evalcore.study.db import DBAPIError, Engine, Session, connected, reading, writing
from evalcore.study.schema import Administrator, Outcome, RunKind, RunState
from evalcore.study.store import index_texts
from evalcore.triage.acts import LevelsRead, read_levels

SELDOM = (20_000, 20, 100)
START_SECONDS = 30.0  # for so long a process may take to begin: it imports what it needs first
_LOOK_SECONDS, _MAX_WORDS = 0.1, 500


@dataclass(frozen=True)
class Worked:
    """What one process did on a run, and how the run stands.

    `reason`: None where nothing was left to ask. `cost`: US dollars of the run so far. `n_left`: open questions, `n_held` of them with other workers (None:
    the database is away). `n_there`: answers not kept, since the item had one; `n_lost`: answers that could not be saved, whose questions are open.
    """

    run_id: int
    state: RunState
    reason: str | None
    outcomes: Counter[Outcome] = field(default_factory=Counter, kw_only=True)
    n_calls: int = field(default=0, kw_only=True)
    prompt_tokens: int = field(default=0, kw_only=True)
    completion_tokens: int = field(default=0, kw_only=True)
    cost: float | None
    n_left: int | None
    n_held: int | None
    n_there: int = 0
    n_lost: int = 0
    levels: LevelsRead | None = None

    @property
    def n_answered(self) -> int:
        """Questions that this worker has an answer to."""
        return self.outcomes[Outcome.ANSWERED]

    @property
    def n_failed(self) -> int:
        """Questions that this worker has ended without one."""
        return self.outcomes.total() - self.n_answered

    def sentences(self) -> list[str]:
        """It in words."""
        kinds = ", ".join(f"{outcome} {n:,}" for outcome, n in self.outcomes.items() if outcome is not Outcome.ANSWERED)
        failed = f"{self.n_failed:,} failed{f' ({kinds})' if kinds else ''}"
        said = [f"Run {self.run_id}: {self.n_answered:,} answered, {failed}."]
        if self.n_there:
            said.append(f"{counted(self.n_there, 'answer')} not kept: another had come first.")
        if self.n_lost:
            again = "asked again when the run is started again"
            said.append(f"{counted(self.n_lost, 'answer')} arrived and could not be saved: {again}.")
        if self.n_held:
            are = "is" if self.n_held == 1 else "are"
            said.append(f"{counted(self.n_held, 'question')} {are} in the hands of other processes.")
        if self.n_left is None or self.n_held is None:
            said.append("The database does not answer; what is left to ask is not known.")
        return said + (self.levels.sentences() if self.levels is not None else [])

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        rest = {one.name: getattr(self, one.name) for one in fields(self)[1:]}
        rest["outcomes"] = {outcome.value: self.outcomes[outcome] for outcome in Outcome}
        rest["levels"] = self.levels.as_dict() if self.levels is not None else None
        return {"run": self.run_id} | rest | {"state": self.state.value}


def work(
    engine: Engine,
    run_id: int,
    *,
    key: str | None,
    stop: Stop,
    progress: Callable[[Progress], None] | None = None,
    client: ModelClient | None = None,
    most: int | None = None,
) -> Worked:
    """Ask what a run has to ask, until nothing is left that is free.

    It ends as well after the run's `max_failures` in a row, at its `max_cost`, when somebody has stopped the run, when `stop` says so, when the
    database takes nothing for a minute, and by a fault of ours; what has arrived is saved each time. It does not wait for questions that other workers
    hold. A run that is done or stopped is left as it is: `start` opens it. At the end of a run of triage the judges that ship read the levels.

    The `key` is kept nowhere. `progress` is told several times a second how far the run is, from the event loop: it shall return at once. `client`: not yet
    entered. `most`: questions to take at most, as a part of what others take.
    """
    with reading(engine) as session:
        row = queries.run(session, run_id)
        at = queries.progress(session, run_id) if row.state is not RunState.OPEN else None
    if at is not None:  # left as it is; but whoever ended it may have been killed before it had read the levels
        is_done = row.state is RunState.DONE and most is None
        levels = finish(engine, row, stop=stop) if is_done else None
        return Worked(run_id, row.state, row.reason, at.calls.cost, at.n_open, 0, levels=levels)
    acts.check_prompt(row.spec, of=f"run {run_id}: ")
    asked = client or ModelClient(row.spec.model, concurrency=row.concurrency, key=key)
    with writing(engine) as session:
        worker_id = store.add_worker(session, run_id, pid=os.getpid())

    async def ask() -> Asking:
        async with asked as opened:
            how: dict[str, Any] = {"figures": figures, "stop": stop, "progress": progress, "most": most}
            asking = Asking(engine, row, worker_id, client=opened, **how)
            await asking.run()
        return asking

    try:
        with reading(engine) as session:  # not before: of two who begin at once one knows of the other
            each, stands = acts.expected(session, row.spec), queries.counts(session, run_id)
            calls, n_workers = queries.calls(session, run_id), len(alive(session, run_id))
        cost_each = row.spec.model.cost(ceil(each.prompt_tokens or 0.0), ceil(each.completion_tokens or 0.0))
        figures = Figures(run_id, stands.n_questions, stands.outcomes, calls, row.max_cost, cost_each, n_workers)
        with _seldom_collected():
            asking = asyncio.run(ask())
    except BaseException:  # Ctrl-C where nobody has said what it means, and faults of ours: others can go on at once
        _end(engine, row, worker_id, "broken off", for_all=False)
        raise
    ended = _end(engine, row, worker_id, asking.reason, for_all=asking.for_all)
    is_whole = most is None  # else whoever shares out the questions does what follows, at the end
    return Worked(
        run_id=run_id,
        state=ended.state if ended is not None else RunState.OPEN,
        reason=(ended.reason if ended is not None else None) or asking.reason,
        outcomes=figures.ended,
        n_calls=figures.mine.n_calls,
        prompt_tokens=figures.mine.prompt_tokens,
        completion_tokens=figures.mine.completion_tokens,
        cost=figures.progress().calls.cost,
        n_left=ended.n_left if ended is not None else None,
        n_held=ended.n_held if ended is not None else None,
        n_there=asking.kept.n_there,
        n_lost=asking.kept.n_lost,
        levels=finish(engine, row, stop=stop) if is_whole and not asking.is_urgent and ended is not None else None,
    )


class _BrokenOff(Exception):
    """Somebody said now, and does not wait for what follows either."""


def finish(engine: Engine, row: RunRow, *, stop: Stop) -> LevelsRead | None:
    """What follows when nobody asks any more: levels of triage are read (None: none to read, or `stop` said now), and texts enter the index."""

    def look(_n_read: int, _most: int | None) -> None:
        if stop.is_urgent:
            raise _BrokenOff

    levels = None
    if row.spec.kind is RunKind.TRIAGE:
        try:  # the run goes on for who started it
            levels = read_levels(engine, actor=Administrator(name=row.started_by), progress=look)
        except _BrokenOff:
            return None
    index_texts(engine)
    snapshot.extend(engine)
    return levels


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Collect garbage more seldom within the block: at thousands of calls a second it takes a third of the time."""
    usual = gc.get_threshold()
    gc.freeze()  # garbage too, which is let go of with the rest: to look for it first would take longer than a short run
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _end(engine: Engine, row: RunRow, worker_id: int, reason: str | None, *, for_all: bool) -> Ended | None:
    """Give back what the worker holds; None where the database takes not even that: then others see that it is dead."""
    why: dict[str, Any] = {"actor": row.started_by, "reason": reason, "for_all": for_all}
    try:
        with writing(engine) as session:
            return store.end_worker(session, row.run_id, worker_id, **why)
    except (DatabaseFault, DBAPIError, Frozen):
        return None


def start_worker(engine_location: str, run_id: int) -> int:
    """Start a process that works on a run that is open, wait until it does, and return its number. RunRefused: it cannot, or has ended.

    It outlives the browser and the server that started it. It takes the study and the key from its environment, since everybody sees arguments, and prints
    to a temporary file that only this account can read.
    """
    with connected(engine_location) as engine:
        with reading(engine) as session:
            row = queries.run(session, run_id)
        if row.state is not RunState.OPEN:
            refuse(f"run {run_id} is {row.state}: start it first")
        key_of(row.spec.model)
        process, log = _started(engine_location, run_id)
        end = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < end:
            with reading(engine) as session:
                here = (queries.this_host(), process.pid)
                if any((worker.host, worker.pid) == here for worker in alive(session, run_id)):
                    break
            time.sleep(_LOOK_SECONDS)
    if process.returncode:
        words = " ".join(log.read_text("utf-8", "replace").split())[-_MAX_WORDS:]
        refuse(f"run {run_id}: the process that was started has ended: {words or 'it said nothing'} (see {log})")
    return process.pid


def alive(session: Session, run_id: int) -> list[WorkerRow]:
    """The processes that work on a run now, on whatever machine, oldest first."""
    return [worker for worker in queries.workers(session, run_id) if worker.lives]


def _started(location: str, run_id: int) -> tuple[subprocess.Popen[Any], Path]:
    handle, name = tempfile.mkstemp(prefix=f"overread-run-{run_id}-", suffix=".log")
    command, environment = started_again("-m", "evalcore", "runs", "--work", str(run_id))
    environment["OVERREAD_DB"] = location
    with os.fdopen(handle, "wb") as log:
        files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        # in a session of its own neither the terminal's Ctrl-C nor its end reaches it
        process = subprocess.Popen(command, env=environment, start_new_session=True, **files)  # noqa: S603 - our own program
    Thread(target=process.wait, daemon=True, name=f"run-{run_id}").start()  # when it ends it leaves no entry behind
    return process, Path(name)
