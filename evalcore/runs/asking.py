"""One worker's loop: take questions, ask many at once, save what comes, stop where a rule says so."""

import asyncio
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from evalcore.runs import queries, worker_store
from evalcore.runs import text_queries as runs_text_queries
from evalcore.runs.answer_store import Answer, Saving
from evalcore.runs.calling import Client, call
from evalcore.runs.database_thread import DatabaseGone, DatabaseThread
from evalcore.runs.describing import Asked, Asker
from evalcore.runs.figures import Figures
from evalcore.runs.keeping import Keeping
from evalcore.runs.prompts import Judged
from evalcore.runs.queries import Progress, RunRow
from evalcore.runs.stopping import Stop
from evalcore.stats.wording import counted
from evalcore.study.run_words import LAST_ONE, WAS_STOPPED, Call, Outcome

MOST_UNSAVED = 1_000
"""With so many answers unsaved, nothing more is asked."""
BEAT_SECONDS, TELL_SECONDS = 2.0, 0.25
STALE_SECONDS = 15.0
"""Who has not said for so long that it lives asks nothing before it has: its machine may have slept, and others may have taken its questions over."""
SUM_SHARE = 20
"""How the run stands is added up for at most one part in so many of the time."""
MAX_CALLS = 3
"""Calls of one question whose replies cannot be read, in all."""
LEAST_LOT, MOST_LOT = 20, 500

_log = logging.getLogger(__name__)


class Asking:
    """One worker at work. Made and used in one event loop.

    Attributes:
        reason: Why it stopped; None where nothing was left to take.
        for_all: The reason stops the whole run, not this worker alone.
        kept: What has arrived.
    """

    def __init__(
        self,
        engine: Engine,
        saving: Saving,
        *,
        client: Client,
        found: RunRow,
        figures: Figures,
        stop: Stop,
        progress: Callable[[Progress], None] | None,
        most: int | None = None,
    ) -> None:
        self.reason: str | None = None
        self.for_all = False
        self.is_urgent = False
        self.figures = figures
        self._saving, self._client, self._stop, self._progress = saving, client, stop, progress
        self._asker = Asker(saving.spec)
        self._concurrency, self._max_failures = found.concurrency, found.max_failures
        self._lot = min(max(2 * found.concurrency, LEAST_LOT), MOST_LOT)
        self._to_take = math.inf if most is None else most
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._database = DatabaseThread(engine, changed=self._changed.set)
        self.kept = Keeping(
            self._database, saving, changed=self._changed.set, broken=self._end_by_database, faulty=self._end_by_fault
        )
        self._stock: deque[Asked] = deque()
        self._flying: set[asyncio.Task[None]] = set()
        self._n_landed = 0
        self._is_exhausted = False
        self._looked_at = 0
        self._is_ending = False
        self._sum_again_at = 0.0
        self._seen_at = time.time()
        self._fetching: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Ask until nothing is left that is free, or until a rule or somebody says stop; then everything that has arrived is saved."""
        beside = [asyncio.create_task(self._say_alive()), asyncio.create_task(self._tell())]
        for task in beside:
            task.add_done_callback(self._end_if_faulty)
        try:
            with self._stop.wakes(lambda: self._loop.call_soon_threadsafe(self._changed.set)):
                await self._until_done()
        except asyncio.CancelledError:  # Ctrl-C where nobody has said what it means
            self._end("broken off")
            self.is_urgent = True
            raise
        finally:
            for task in beside:
                task.cancel()
            await self._wind_up()

    async def _until_done(self) -> None:
        while True:
            self._changed.clear()
            if self._stop.is_asked:
                self._end("stopped by hand")
            if self._stop.is_urgent:
                self.is_urgent = True
                return
            self._fetch_if_short()
            self._begin()
            self.kept.save_if_due()
            if self._is_over():
                return
            await self._changed.wait()

    def _is_over(self) -> bool:
        if self._flying or self._is_ending:
            return not self._flying
        is_exhausted = self._to_take <= 0 or (self._is_exhausted and self._looked_at == self._n_landed)
        return not self._fetching and not self._stock and is_exhausted

    def _end(self, reason: str, *, for_all: bool = False) -> None:
        """Ask nothing more; the first reason counts."""
        self._is_ending = True
        if self.reason is None:
            self.reason, self.for_all = reason, for_all
            self._changed.set()

    # ------------------------------------------------------------ asking

    def _begin(self) -> None:
        """Send off what may be sent."""
        while self._stock and len(self._flying) < self._concurrency and not self._is_ending and not self._must_wait():
            if not self.figures.affords(len(self._flying) + 1):
                shared = self.figures.n_workers > 1 and not self.figures.is_added_up
                if not self._flying and not shared:  # else those in flight, or the others, may turn out cheaper
                    self._end(self.figures.no_more_words(), for_all=True)
                return
            task = self._loop.create_task(self._ask(self._stock.popleft()))
            self._flying.add(task)
            task.add_done_callback(self._landed)

    def _must_wait(self) -> bool:
        """For the database, or for a sign of life; by the wall clock, which goes on while a machine sleeps."""
        is_stale = time.time() - self._seen_at > STALE_SECONDS
        return self._database.is_troubled or is_stale or self.kept.n_unsaved >= MOST_UNSAVED

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._flying.discard(task)
        self._n_landed += 1
        self._changed.set()
        self._end_if_faulty(task)

    def _end_if_faulty(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end_by_fault(error)

    def _end_by_fault(self, error: BaseException) -> None:
        _log.error(
            "a fault in Overread stopped run %s",
            self._saving.run_id,
            exc_info=None if isinstance(error, DBAPIError) else error,
        )
        said = (
            error.orig if isinstance(error, DBAPIError) else error
        )  # SQLAlchemy's own words show what was to be written
        self._end(f"a fault in Overread: {type(error).__name__}: {' '.join(str(said).split())[:300]}", for_all=True)

    def _end_by_database(self, why: str) -> None:
        self._end(f"the database does not take what arrives: {why}", for_all=True)

    async def _ask(self, asked: Asked) -> None:
        """One question, with all its calls. Whatever breaks it off, what its calls took is kept, and it stays open."""
        calls: list[Call] = []
        answer: Judged | str | None = None
        outcome: Outcome | None = None
        try:
            while outcome is None and not (calls and self._stops_between()):
                called = await call(self._client, self._asker, asked, self._saving.spec.model)
                calls.append(called.call)
                self.figures.count_call(called.call)
                if not called.may_be_asked_again or len(calls) == MAX_CALLS:
                    answer, outcome = called.answer, called.call.outcome
        finally:
            if calls:
                self._arrive(asked, tuple(calls), outcome, answer)
        if outcome is None:
            self._stock.appendleft(asked)

    def _stops_between(self) -> bool:
        """Whether a question whose reply could not be read is not asked again for now."""
        return self._is_ending or not self.figures.affords(len(self._flying))

    def _arrive(
        self, asked: Asked, calls: tuple[Call, ...], outcome: Outcome | None, answer: Judged | str | None
    ) -> None:
        if isinstance(answer, Judged):
            said = {"label": answer.label, "explanation": answer.explanation or None, "confidence": answer.confidence}
        else:
            said = {"text": answer}
        self.kept.add(Answer(asked.question, calls, outcome, suspects=asked.suspects, **said))  # type: ignore[arg-type]
        if outcome is None:
            return
        self.figures.count_end(outcome)
        if self.figures.streak >= self._max_failures:
            self._end(
                f"{counted(self._max_failures, 'question')} in a row failed{LAST_ONE}{calls[-1].error}", for_all=True
            )

    # ------------------------------------------------------------ taking

    def _fetch_if_short(self) -> None:
        if self._is_ending or self._fetching is not None or self._to_take <= 0 or len(self._stock) > self._lot // 2:
            return
        is_last_look = not self._stock and not self._flying and self._looked_at != self._n_landed
        if not self._is_exhausted or is_last_look:
            self._fetching = self._loop.create_task(self._fetch())

    async def _fetch(self) -> None:
        """Take a lot; where nothing is free, what dead workers held."""
        self._looked_at = self._n_landed
        try:
            lot, was_dead, at = await self._database.write(self._take)
        except DatabaseGone as error:
            self._end_by_database(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours ends the run with a sentence; what is in flight is saved first
            self._end_by_fault(error)
        else:
            self._is_seen(at, was_dead=was_dead)
            self._stock.extend(lot)
            self._to_take -= len(lot)
            self._is_exhausted = not lot
        finally:
            self._fetching = None
            self._changed.set()

    def _take(self, session: Session) -> tuple[list[Asked], bool, float]:
        at = time.time()  # now, not when the loop comes to hear of it: the machine may sleep in between
        most = int(min(self._lot, self._to_take))
        questions, was_dead = worker_store.take(session, self._saving.run_id, self._saving.worker_id, most)
        return self._asker.prepared(questions, runs_text_queries.texts(session, questions)), was_dead, at

    # ------------------------------------------------------------ beside

    async def _say_alive(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                orders, stands, at = await self._database.write(self._beat, seconds=0)
            except DatabaseGone:
                continue  # savings and takings say so
            self._is_seen(at, was_dead=orders.was_dead)
            self.figures.n_workers, self.figures.max_cost = orders.n_others + 1, orders.max_cost
            if stands is not None:
                self.figures.add_up(*stands, unsaved=self.kept.unsaved_outcomes())
            if orders.stop:
                self._end(WAS_STOPPED)
            self._is_exhausted = False  # another worker may have died
            self._changed.set()

    def _is_seen(self, at: float, *, was_dead: bool) -> None:
        if was_dead:  # what it held is in other hands
            self._to_take += len(self._stock)
            self._stock.clear()
        self._seen_at = max(self._seen_at, at)

    def _beat(
        self, session: Session
    ) -> tuple[worker_store.Orders, tuple[int, Counter[Outcome], queries.Calls] | None, float]:
        """Say that this worker lives; and add up how the run stands: others work on it as well, and what failed may be asked again."""
        run_id, worker_id = self._saving.run_id, self._saving.worker_id
        at = time.time()
        orders, begun = worker_store.say_alive(session, run_id, worker_id), time.monotonic()
        is_fewer = (
            orders.n_others + 1 < self.figures.n_workers
        )  # what is left is shared anew, without what they have spent
        if begun < self._sum_again_at and not is_fewer:
            return orders, None, at
        outcomes = Counter(queries.outcomes(session, run_id))
        stands = queries.n_questions(session, run_id), outcomes, queries.calls(session, run_id, besides=worker_id)
        self._sum_again_at = time.monotonic() + SUM_SHARE * (time.monotonic() - begun)
        return orders, stands, at

    async def _tell(self) -> None:
        while self._progress is not None:
            self._progress(self.figures.progress())
            await asyncio.sleep(TELL_SECONDS)

    async def _wind_up(self) -> None:
        """Nothing in flight is left, and what has arrived is saved, or counted as lost."""
        self._is_ending = True
        broken_off = [*self._flying, *filter(None, [self._fetching])]
        for task in broken_off:
            task.cancel()
        await asyncio.gather(*broken_off, return_exceptions=True)
        await self.kept.save_the_rest()
        self._database.close()
        if self._progress is not None:
            self._progress(self.figures.progress())
