"""A process works on a run: it begins, asks until nothing is left or something says stop, and ends so that others can go on."""

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from evalcore.errors import DatabaseFault, RunRefused
from evalcore.runs import planning, queries, store
from evalcore.runs.asking import Asking
from evalcore.runs.describing import prompt_version
from evalcore.runs.figures import Figures
from evalcore.runs.model_client import ModelClient
from evalcore.runs.prompts import CONFIDENCE_MEANING
from evalcore.runs.queries import Progress, RunRow
from evalcore.runs.statements import workers as living
from evalcore.runs.stopping import Stop
from evalcore.runs.store import Ended, Saving
from evalcore.stats.wording import counted
from evalcore.study.db import reading, writing
from evalcore.study.run_words import Outcome, RunKind, RunState
from evalcore.study.schema import Administrator
from evalcore.study.store import index_texts
from evalcore.triage.acts import LevelsRead, read_levels

SELDOM = (20_000, 20, 100)


@dataclass(frozen=True)
class Worked:
    """What one process did on a run, and how the run stands.

    Attributes:
        reason: Why this worker, or the run, stopped; None where nothing was left to ask.
        outcomes: Questions that this worker has ended, by what came of them.
        cost: US dollars of the run so far, as far as it is known; None where nothing is.
        n_left: Questions that are open; None where the database does not answer any more.
        n_held: Of these, how many other workers hold.
        n_there: Answers that were not kept, since the item had one by then.
        n_lost: Answers that arrived and could not be saved; their questions are open.
        levels: What the judges that ship read in the answers of a run of triage.
    """

    run_id: int
    state: RunState
    reason: str | None
    outcomes: Counter[Outcome]
    n_calls: int
    prompt_tokens: int
    completion_tokens: int
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
        failed = ", ".join(
            f"{outcome} {n:,}" for outcome, n in self.outcomes.items() if outcome is not Outcome.ANSWERED
        )
        said = [
            f"Run {self.run_id}: {self.n_answered:,} answered, {self.n_failed:,} failed{f' ({failed})' if failed else ''}."
        ]
        if self.n_there:
            said.append(f"{self.n_there:,} answers were not kept: their items had one by then.")
        if self.n_lost:
            said.append(
                f"{self.n_lost:,} answers arrived and could not be saved; they are asked again when the run is started again."
            )
        if self.n_held:
            said.append(
                f"{counted(self.n_held, 'question')} {'is' if self.n_held == 1 else 'are'} in the hands of other processes."
            )
        if self.n_left is None or self.n_held is None:
            said.append("The database does not answer; what is left to ask is not known.")
        return said + (self.levels.sentences() if self.levels is not None else [])

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "run": self.run_id,
            "state": self.state.value,
            "reason": self.reason,
            "outcomes": {outcome.value: self.outcomes[outcome] for outcome in Outcome},
            "n_calls": self.n_calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": self.cost,
            "n_left": self.n_left,
            "n_held": self.n_held,
            "n_there": self.n_there,
            "n_lost": self.n_lost,
            "levels": self.levels.as_dict() if self.levels is not None else None,
        }


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

    Args:
        run_id: Of a run that was started.
        key: Is sent to the server, and kept nowhere.
        stop: How this worker is told to stop.
        progress: Is told several times a second how far the run is, from the event loop: it shall return at once.
        client: Who is asked, made and not yet entered; None: the server of the run's model.
        most: Questions that it takes at most, as a part of what others take; None: as many as there are.

    Raises:
        NotFound: There is no such run.
        RunRefused: The run was asked with prompts that this version of Overread does not have, or the key cannot be sent.
    """
    with reading(engine) as session:
        found = queries.run(session, run_id)
        left_alone = _left_alone(session, found) if found.state is not RunState.OPEN else None
        if left_alone is None:
            _check_prompt(found)
    if left_alone is not None:  # whoever ended it may have been killed before it had read the levels
        is_done = found.state is RunState.DONE and most is None
        return replace(left_alone, levels=finish(engine, found, stop=stop)) if is_done else left_alone
    spec = found.spec
    asked = client or ModelClient(spec.model, concurrency=found.concurrency, key=key)
    with writing(engine) as session:
        worker_id = store.add_worker(session, run_id, pid=os.getpid())
    saving = Saving(run_id, worker_id, spec, found.started_by, CONFIDENCE_MEANING if spec.with_confidence else None)

    async def ask() -> Asking:
        async with asked as opened:
            asking = Asking(
                engine, saving, client=opened, found=found, figures=figures, stop=stop, progress=progress, most=most
            )  # fmt: skip
            await asking.run()
        return asking

    try:
        with reading(engine) as session:
            figures = _figures(session, found)  # not before: of two who begin at once one knows of the other
        with _seldom_collected():
            asking = asyncio.run(ask())
    except BaseException:  # Ctrl-C where nobody has said what it means, and faults of ours: others can go on at once
        _end(engine, saving, "broken off", for_all=False)
        raise
    ended = _end(engine, saving, asking.reason, for_all=asking.for_all)
    is_whole = most is None  # else whoever shares out the questions does what follows, at the end
    levels = finish(engine, found, stop=stop) if is_whole and not asking.is_urgent and ended is not None else None
    return Worked(
        run_id=run_id,
        state=ended.state if ended is not None else RunState.OPEN,
        reason=(ended.reason if ended is not None else None) or asking.reason,
        outcomes=figures.ended,
        n_calls=figures.n_calls,
        prompt_tokens=figures.prompt_tokens,
        completion_tokens=figures.completion_tokens,
        cost=figures.cost,
        n_left=ended.n_left if ended is not None else None,
        n_held=ended.n_held if ended is not None else None,
        n_there=asking.kept.n_there,
        n_lost=asking.kept.n_lost,
        levels=levels,
    )


class _BrokenOff(Exception):
    """Somebody said now, and does not wait for what follows either."""


def finish(engine: Engine, found: RunRow, *, stop: Stop) -> LevelsRead | None:
    """What follows when nobody asks any more: levels of triage are read, and texts enter the index; again changes nothing.

    Returns:
        The levels; None where the run is of no triage, or where `stop` said now: then nothing of it is written, and the same again does it.
    """

    def look(_n_read: int, _most: int | None) -> None:
        if stop.is_urgent:
            raise _BrokenOff

    levels = None
    if found.spec.kind is RunKind.TRIAGE:
        try:
            levels = read_levels(
                engine, actor=Administrator(name=found.started_by), progress=look
            )  # the run goes on for them
        except _BrokenOff:
            return None
    index_texts(engine)
    return levels


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Within the block garbage is looked for more seldom: with thousands of calls a second that takes a third of the time."""
    usual = gc.get_threshold()
    gc.freeze()  # garbage too, which is let go of with the rest: to look for it first would take longer than a short run
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _left_alone(session: Session, found: RunRow) -> Worked:
    """Of a run that is done or stopped."""
    at = queries.progress(session, found.run_id)
    return Worked(
        run_id=found.run_id,
        state=found.state,
        reason=found.reason,
        outcomes=Counter(),
        n_calls=0,
        prompt_tokens=0,
        completion_tokens=0,
        cost=at.cost,
        n_left=at.n_open,
        n_held=0,
    )


def _check_prompt(found: RunRow) -> None:
    known = prompt_version(found.spec)
    if found.spec.prompt_version != known:
        msg = f"run {found.run_id} asks with the prompt {found.spec.prompt_version!r}, and this version of Overread has {known!r}; start a new run"
        raise RunRefused(msg)


def _figures(session: Session, found: RunRow) -> Figures:
    model = found.spec.model
    each = planning.expected(session, found.spec)
    return Figures(
        run_id=found.run_id,
        n_questions=queries.n_questions(session, found.run_id),
        outcomes=Counter(queries.outcomes(session, found.run_id)),
        calls=queries.calls(session, found.run_id),
        n_workers=sum(worker.lives for worker in living(session, found.run_id)),
        max_cost=found.max_cost,
        cost_each=model.cost(ceil(each.prompt_tokens), ceil(each.completion_tokens)),
    )


def _end(engine: Engine, saving: Saving, reason: str | None, *, for_all: bool) -> Ended | None:
    """The worker gives back what it holds; None where the database does not take even that: then others see that it is dead."""
    try:
        with writing(engine) as session:
            return store.end_worker(
                session, saving.run_id, saving.worker_id, actor=saving.actor, reason=reason, for_all=for_all
            )
    except (DatabaseFault, DBAPIError):
        return None
