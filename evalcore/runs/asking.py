"""One worker's loop: take questions, ask many at once, save what comes, stop where a rule says so."""

import asyncio
import logging
import math
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from evalcore.errors import DatabaseFault, JudgeReplyInvalid, OverreadError, RunRefused
from evalcore.runs import queries, spec, store
from evalcore.runs.model_client import CallFailed, ModelClient
from evalcore.runs.prompts import Asked, Asker, Judged
from evalcore.runs.queries import Calls, Counts, Progress, RunRow
from evalcore.runs.store import Answer, save_answers
from evalcore.runs.summary import Figures
from evalcore.stats.wording import counted
from evalcore.study.db import DBAPIError, Engine, Session, writing
from evalcore.study.schema import Outcome

PATIENCE_SECONDS = 60.0  # for so long a database that does not take what is written is tried again
_FIRST_PAUSE, _LONGEST_PAUSE, _MOST_FIRST = 0.2, 5.0, 3
SAVE_SECONDS, SAVE_ANSWERS = 0.25, 200  # answers are saved when the oldest has waited so long, or there are so many
MOST_SAVED = 500  # in one transaction
LAST_SECONDS = 5.0  # for so long the database is tried at the end
MOST_UNSAVED = 1_000  # with so many answers unsaved, nothing more is asked
BEAT_SECONDS, TELL_SECONDS = 2.0, 0.25
STALE_SECONDS = 15.0  # who has been silent for so long asks nothing before it has spoken: others may hold its questions
SUM_SHARE = 20  # how the run stands is added up for at most one part in so many of the time
MAX_CALLS = 3  # calls of one question whose replies cannot be read, in all
LEAST_LOT, MOST_LOT = 20, 500

TAKEN_OVER = ("status", "prompt_tokens", "completion_tokens", "attempts", "seconds")

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


async def call(
    client: ModelClient, asker: Asker, asked: Asked, model: spec.ModelSettings
) -> tuple[spec.Call, Judged | str | None, bool]:
    """Ask once: the call, its answer, and whether it may be asked again, since a whole reply came that cannot be read."""
    number = asked.question.question_id

    def told(came: spec.Reply | CallFailed, outcome: Outcome, error: str | None, raw: str | None = None) -> spec.Call:
        return spec.Call(
            question_id=number,
            outcome=outcome,
            error=None if error is None else spec.storable(error)[: spec.MAX_RAW],
            reply=None if raw is None else spec.storable(raw)[: spec.MAX_RAW],
            cost=model.cost(came.prompt_tokens, came.completion_tokens),
            **{name: getattr(came, name) for name in TAKEN_OVER},
        )

    try:
        request = asker.request(asked)
    except RunRefused as error:  # these texts cannot be asked about; those of other questions can
        sentence = spec.storable(str(error))[: spec.MAX_RAW]
        return spec.Call(question_id=number, outcome=Outcome.REJECTED, error=sentence, attempts=0), None, False
    try:
        reply = await client.ask(request)
    except CallFailed as failed:
        return told(failed, failed.outcome, failed.sentence, failed.raw), None, False
    is_cut = reply.finish == "length"
    try:
        answer = asker.read(asked, reply.text)
    except JudgeReplyInvalid as invalid:
        sentence = f"{invalid}{' (the reply was cut off at its longest)' if is_cut else ''}"
        return told(reply, Outcome.UNREADABLE, sentence, reply.text), None, True
    cut_off = spec.CUT_OFF if is_cut and isinstance(answer, str) else None
    return told(reply, Outcome.ANSWERED, cut_off), answer, False


class Stop:
    """Tells a worker to stop: `finish` lets what is in flight arrive, `now` does not wait for it. Safe in threads and in handlers of signals."""

    def __init__(self) -> None:
        self.is_asked = self.is_urgent = False
        self._wake: Callable[[], object] | None = None

    def finish(self) -> None:
        """Ask nothing more; what is in flight is waited for and saved."""
        self.is_asked = True
        if self._wake is not None:
            self._wake()

    def now(self) -> None:
        """Break off what is in flight; what has arrived is saved."""
        self.is_urgent = True
        self.finish()

    def press(self) -> None:
        """Ctrl-C: the first time `finish`, the second time `now`."""
        if self.is_asked:
            self.now()
        else:
            self.finish()

    @contextmanager
    def wakes(self, wake: Callable[[], object]) -> Iterator[None]:
        """Within the block `wake` is called whenever somebody asks to stop."""
        self._wake = wake
        try:
            yield
        finally:
            self._wake = None


@contextmanager
def on_interrupt(stop: Stop) -> Iterator[None]:
    """Within the block Ctrl-C (and SIGTERM, as a cluster or a container sends it) presses `stop` instead of raising; in the main thread only."""
    before = {
        number: signal.signal(number, lambda _number, _frame: stop.press())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class DatabaseGone(OverreadError):
    """The database has not taken what was to be written, for as long as it was tried."""


class DatabaseThread:
    """The one thread of a worker that speaks to the database; it is troubled while a transaction that was not taken is tried again."""

    def __init__(self, engine: Engine, *, changed: Callable[[], None]) -> None:
        self.is_troubled = False
        self._engine, self._changed = engine, changed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-database")

    async def write(self, act: Callable[[Session], _T], *, seconds: float | None = None) -> _T:
        """One transaction; tried again for some seconds where the database is locked, full or away, and twice where another process was first.

        DatabaseGone: it was not taken. `store.CONFLICT`: it breaks a rule of the database, each time.
        """
        until, pause = time.monotonic() + (PATIENCE_SECONDS if seconds is None else seconds), _FIRST_PAUSE
        loop, n_first = asyncio.get_running_loop(), 0
        while True:
            try:
                done = await loop.run_in_executor(self._thread, self._transaction, act)
            except store.CONFLICT:  # another process was first; what breaks a rule each time is the caller's to part
                n_first += 1
                if n_first == _MOST_FIRST:
                    raise
            except store.NOT_TAKEN as error:
                self._set(troubled=True)
                if time.monotonic() + pause > until:
                    words = error.reason if isinstance(error, DatabaseFault) else " ".join(str(error.orig).split())
                    raise DatabaseGone(words[:300]) from error
            else:
                self._set(troubled=False)
                return done
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _transaction(self, act: Callable[[Session], _T]) -> _T:
        with writing(self._engine) as session:
            return act(session)

    def _set(self, *, troubled: bool) -> None:
        if troubled is not self.is_troubled:
            self.is_troubled = troubled
            self._changed()

    def close(self) -> None:
        """Wait for the transaction under way; none begins after it."""
        self._thread.shutdown(wait=True)


class Keeping:
    """Answers on their way into the database; `end` is called with the fault where they cannot be written. n_lost, n_there: as in `Worked`."""

    def __init__(
        self,
        database: DatabaseThread,
        save: Callable[..., int],
        *,
        changed: Callable[[], None],
        end: Callable[..., None],
    ) -> None:
        self.n_lost = self.n_there = 0
        self._database, self._save_answers, self._changed, self._end = database, save, changed, end
        self._arrived: list[Answer] = []
        self._oldest = 0.0
        self._in_hand: list[Answer] = []  # being saved, in order: what is through is taken off its front
        self._is_database_gone = False
        self._being_saved: asyncio.Task[None] | None = None

    def add(self, answer: Answer) -> None:
        """One answer more."""
        if not self._arrived:
            self._oldest = time.monotonic()
            asyncio.get_running_loop().call_later(SAVE_SECONDS, self._changed)
        self._arrived.append(answer)

    @property
    def n_unsaved(self) -> int:
        """Answers that have arrived and are not in the database yet."""
        return len(self._arrived) + len(self._in_hand)

    def unsaved_outcomes(self) -> Counter[Outcome]:
        """What has come of the questions that have ended and are not in the database yet."""
        return Counter(answer.outcome for answer in (*self._arrived, *self._in_hand) if answer.outcome is not None)

    def save_if_due(self) -> None:
        """Begin to save, where enough has arrived or has waited, beside what else goes on."""
        is_due = len(self._arrived) >= SAVE_ANSWERS or time.monotonic() - self._oldest >= SAVE_SECONDS
        if self._arrived and is_due and self._being_saved is None and not self._is_database_gone:
            self._being_saved = asyncio.get_running_loop().create_task(self._save_beside())

    async def _save_beside(self) -> None:
        try:
            await self._save_next()
        except DatabaseGone as error:
            self._is_database_gone = True  # what is still in hand is tried once more at the end
            self._end(error)
        finally:
            self._being_saved = None
            self._changed()

    async def _save_next(self, *, seconds: float | None = None) -> None:
        self._in_hand, self._arrived = self._arrived[:MOST_SAVED], self._arrived[MOST_SAVED:]
        await self._save([*self._in_hand], seconds=seconds)

    async def _save(self, batch: list[Answer], *, seconds: float | None) -> None:
        """Save answers; where one of them cannot be written, all but that one. DatabaseGone: those that are still in hand were not saved."""
        try:
            n_there = await self._database.write(partial(self._save_answers, answers=batch), seconds=seconds)
        except DatabaseGone:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours in one answer shall not take the others along
            if len(batch) > 1:
                for part in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                    await self._save(part, seconds=seconds)
                return
            self.n_lost += 1
            self._end(error)
        else:
            self.n_there += n_there
        del self._in_hand[: len(batch)]

    async def save_the_rest(self) -> None:
        """At the end: what still can be saved is, and what cannot is counted."""
        if self._being_saved is not None:
            if self._database.is_troubled:
                self._being_saved.cancel()
            await asyncio.gather(self._being_saved, return_exceptions=True)
        self._arrived[:0] = self._in_hand  # after a cancellation some of it may have been saved: that is seen now
        while self._arrived:
            try:
                await self._save_next(seconds=LAST_SECONDS)
            except DatabaseGone as error:
                self.n_lost += len(self._in_hand)
                self._end(error)


class Asking:
    """One worker at work, in one event loop; why it stopped (None: nothing was left to take), and whether that stops the whole run."""

    def __init__(
        self,
        engine: Engine,
        run: RunRow,
        worker_id: int,
        *,
        client: ModelClient,
        figures: Figures,
        stop: Stop,
        progress: Callable[[Progress], None] | None,
        most: int | None = None,
    ) -> None:
        self.reason: str | None = None
        self.for_all = self.is_urgent = False
        self.figures = figures
        self._run, self._worker_id, self._client, self._stop, self._progress = run, worker_id, client, stop, progress
        self._asker = Asker(run.spec)
        self._lot = min(max(2 * run.concurrency, LEAST_LOT), MOST_LOT)
        self._to_take = math.inf if most is None else most
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._database = DatabaseThread(engine, changed=self._changed.set)
        save = partial(save_answers, run=run, worker_id=worker_id)
        self.kept = Keeping(self._database, save, changed=self._changed.set, end=self._end_by)
        self._stock: deque[Asked] = deque()
        self._flying: set[asyncio.Task[None]] = set()
        self._n_landed = self._looked_at = 0
        self._is_exhausted = self._is_ending = False
        self._sum_again_at, self._seen_at = 0.0, time.time()
        self._fetching: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Ask until nothing is left that is free, or until a rule or somebody says stop; then everything that has arrived is saved."""
        beside = [asyncio.create_task(self._say_alive()), asyncio.create_task(self._tell())]
        for task in beside:
            task.add_done_callback(self._end_if_faulty)
        try:
            with self._stop.wakes(lambda: self._loop.call_soon_threadsafe(self._changed.set)):
                while not self._is_over():
                    await self._changed.wait()
        except asyncio.CancelledError:  # Ctrl-C where nobody has said what it means
            self._end("broken off")
            self.is_urgent = True
            raise
        finally:
            for task in beside:
                task.cancel()
            await self._wind_up()

    def _is_over(self) -> bool:
        self._changed.clear()
        if self._stop.is_asked:
            self._end("stopped by hand")
        if self._stop.is_urgent:
            self.is_urgent = True
            return True
        is_short = len(self._stock) <= self._lot // 2 and self._to_take > 0 and not self._is_ending
        is_last_look = not self._stock and not self._flying and self._looked_at != self._n_landed
        if is_short and self._fetching is None and (not self._is_exhausted or is_last_look):
            self._fetching = self._loop.create_task(self._fetch())
        self._begin()
        self.kept.save_if_due()
        if self._flying or self._is_ending:
            return not self._flying
        is_exhausted = self._to_take <= 0 or (self._is_exhausted and self._looked_at == self._n_landed)
        return not self._fetching and not self._stock and is_exhausted

    def _end(self, reason: str, *, for_all: bool = False) -> None:
        self._is_ending = True
        if self.reason is None:
            self.reason, self.for_all = reason, for_all
            self._changed.set()

    def _begin(self) -> None:
        while self._stock and len(self._flying) < self._run.concurrency and not self._is_ending:
            # its machine may have slept: by the wall clock, which goes on meanwhile
            is_stale = time.time() - self._seen_at > STALE_SECONDS
            if is_stale or self._database.is_troubled or self.kept.n_unsaved >= MOST_UNSAVED:
                return
            if not self.figures.affords(len(self._flying) + 1):
                shared = self.figures.n_workers > 1 and not self.figures.is_added_up
                if not self._flying and not shared:  # else those in flight, or the others, may turn out cheaper
                    n, most = self.figures.n_workers, self.figures.max_cost
                    one = "the next question" if n == 1 else f"a question for each of {n} processes"
                    self._end(f"{one} would bring the cost above {most:g} US dollars", for_all=True)
                return
            task = self._loop.create_task(self._ask(self._stock.popleft()))
            self._flying.add(task)
            task.add_done_callback(self._landed)

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._flying.discard(task)
        self._n_landed += 1
        self._changed.set()
        self._end_if_faulty(task)

    def _end_if_faulty(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end_by(error)

    def _end_by(self, error: BaseException) -> None:
        if isinstance(error, DatabaseGone):
            self._end(f"the database does not take what arrives: {error}", for_all=True)
            return
        is_sql = isinstance(error, DBAPIError)  # SQLAlchemy's own words show what was to be written
        _log.error("a fault in Overread stopped run %s", self._run.run_id, exc_info=None if is_sql else error)
        words = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())[:300]
        self._end(f"a fault in Overread: {type(error).__name__}: {words}", for_all=True)

    async def _ask(self, asked: Asked) -> None:
        """One question, with all its calls. Whatever breaks it off, what its calls took is kept, and it stays open."""
        calls: list[spec.Call] = []
        answer, outcome, is_through = None, None, False
        try:
            while not is_through and not (calls and (self._is_ending or not self.figures.affords(len(self._flying)))):
                made, answer, may_be_asked_again = await call(self._client, self._asker, asked, self._run.spec.model)
                calls.append(made)
                self.figures.count_call(made)
                is_through = not may_be_asked_again or len(calls) == MAX_CALLS
        finally:
            if calls:
                outcome = calls[-1].outcome if is_through else None
                self.kept.add(Answer(asked.question, tuple(calls), outcome, answer, asked.suspects))
        if outcome is None:
            self._stock.appendleft(asked)
            return
        self.figures.count_end(outcome)
        if self.figures.streak >= self._run.max_failures:
            n_failures = counted(self._run.max_failures, "question")
            self._end(f"{n_failures} in a row failed{spec.LAST_ONE}{calls[-1].error}", for_all=True)

    async def _fetch(self) -> None:
        self._looked_at = self._n_landed
        try:
            lot, was_dead, at = await self._database.write(self._take)
        except Exception as error:  # noqa: BLE001 - a fault of ours ends the run with a sentence; what is in flight is saved first
            self._end_by(error)
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
        questions, was_dead = store.take(session, self._run.run_id, self._worker_id, most)
        return self._asker.prepared(session, questions), was_dead, at

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
                self._end(spec.WAS_STOPPED)
            self._is_exhausted = False  # another worker may have died
            self._changed.set()

    def _is_seen(self, at: float, *, was_dead: bool) -> None:
        if was_dead:  # what it held is in other hands
            self._to_take += len(self._stock)
            self._stock.clear()
        self._seen_at = max(self._seen_at, at)

    def _beat(self, session: Session) -> tuple[store.Orders, tuple[Counts, Calls] | None, float]:
        """Say that this worker lives; and add up how the run stands: others work on it as well, and what failed may be asked again."""
        run_id, worker_id = self._run.run_id, self._worker_id
        at = time.time()
        orders, begun = store.say_alive(session, run_id, worker_id), time.monotonic()
        # where workers are fewer, what is left is shared anew, without what the others have spent
        if begun < self._sum_again_at and orders.n_others + 1 >= self.figures.n_workers:
            return orders, None, at
        stands = queries.counts(session, run_id), queries.calls(session, run_id, besides=worker_id)
        self._sum_again_at = time.monotonic() + SUM_SHARE * (time.monotonic() - begun)
        return orders, stands, at

    async def _tell(self) -> None:
        while self._progress is not None:
            self._progress(self.figures.progress())
            await asyncio.sleep(TELL_SECONDS)

    async def _wind_up(self) -> None:
        self._is_ending = True
        broken_off = [*self._flying, *filter(None, [self._fetching])]
        for task in broken_off:
            task.cancel()
        await asyncio.gather(*broken_off, return_exceptions=True)
        await self.kept.save_the_rest()
        self._database.close()
        if self._progress is not None:
            self._progress(self.figures.progress())
