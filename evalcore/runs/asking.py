"""One worker's loop: take questions, ask many at once, save what comes, stop where a rule says so."""

import asyncio
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from evalcore.errors import JudgeReplyInvalid, RunRefused
from evalcore.runs import queries, store
from evalcore.runs.database_thread import DatabaseGone, DatabaseThread
from evalcore.runs.describing import Asked, Asker
from evalcore.runs.figures import Figures
from evalcore.runs.model_client import CallFailed
from evalcore.runs.prompts import Judged
from evalcore.runs.queries import Progress, RunRow
from evalcore.runs.stopping import Stop
from evalcore.runs.store import Answer, Saving, save_answers
from evalcore.stats.wording import counted
from evalcore.study.run_words import (
    CUT_OFF,
    LAST_ONE,
    MAX_RAW,
    WAS_STOPPED,
    Call,
    ChatRequest,
    ModelSettings,
    Outcome,
    Reply,
)
from evalcore.study.store import is_storable


class Client(Protocol):
    """Who is asked, e.g. `model_client.ModelClient`."""

    async def ask(self, request: ChatRequest) -> Reply:
        """The reply; raises `CallFailed`."""


class Called(NamedTuple):
    """What came of a call.

    Attributes:
        answer: A judge's verdict or a model's answer; None where none came.
        may_be_asked_again: A whole reply came that cannot be read: another may be readable.
    """

    call: Call
    answer: Judged | str | None = None
    may_be_asked_again: bool = False


async def call(client: Client, asker: Asker, asked: Asked, model: ModelSettings) -> Called:
    """Ask once."""
    number = asked.question.question_id
    try:
        request = asker.request(asked)
    except RunRefused as error:  # these texts cannot be asked about; those of other questions can
        refused = Call(question_id=number, outcome=Outcome.REJECTED, error=storable(str(error)), attempts=0)
        return Called(refused)
    try:
        reply = await client.ask(request)
    except CallFailed as failed:
        return Called(_failed(number, failed, model))
    try:
        answer = asker.read(asked, reply.text)
    except JudgeReplyInvalid as invalid:
        cut = " (the reply was cut off at its longest)" if reply.finish == "length" else ""
        return Called(_replied(number, reply, model, error=f"{invalid}{cut}"), may_be_asked_again=True)
    done = _replied(number, reply, model)
    if isinstance(answer, str) and reply.finish == "length":
        done = msgspec.structs.replace(done, error=CUT_OFF)
    return Called(done, answer)


def _failed(number: int, failed: CallFailed, model: ModelSettings) -> Call:
    return Call(
        question_id=number,
        outcome=failed.outcome,
        status=failed.status,
        error=storable(failed.sentence),
        reply=None if failed.raw is None else storable(failed.raw),
        prompt_tokens=failed.prompt_tokens,
        completion_tokens=failed.completion_tokens,
        cost=model.cost(failed.prompt_tokens, failed.completion_tokens),
        attempts=failed.attempts,
        seconds=failed.seconds,
    )


def _replied(number: int, reply: Reply, model: ModelSettings, *, error: str | None = None) -> Call:
    return Call(
        question_id=number,
        outcome=Outcome.ANSWERED if error is None else Outcome.UNREADABLE,
        status=reply.status,
        error=None if error is None else storable(error),
        reply=None if error is None else storable(reply.text),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost=model.cost(reply.prompt_tokens, reply.completion_tokens),
        attempts=reply.attempts,
        seconds=reply.seconds,
    )


def storable(text: str) -> str:
    r"""What a text column of both databases can hold of what came from a server, at most `MAX_RAW` characters.

    >>> storable("half \ud83d and \x00")
    'half ? and �'
    """
    if not is_storable(text):
        text = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    return text[:MAX_RAW]


SAVE_SECONDS, SAVE_ANSWERS, MOST_SAVED = 0.25, 200, 500
"""Answers are saved when the oldest has waited so long, or when there are so many; at most so many in one transaction."""
LAST_SECONDS = 5.0
"""For so long the database is tried at the end."""


class Keeping:
    """Answers on their way from the event loop into the database.

    It is made with whom to tell: that something was saved (`changed`), that the database takes nothing any more and why (`broken`), and that
    an answer cannot be written (`faulty`).

    Attributes:
        n_lost: Answers that could not be saved.
        n_there: Answers that were not kept, since the item had one by then.
    """

    def __init__(
        self,
        database: DatabaseThread,
        saving: Saving,
        *,
        changed: Callable[[], None],
        broken: Callable[[str], None],
        faulty: Callable[[Exception], None],
    ) -> None:
        self.n_lost = 0
        self.n_there = 0
        self._database, self._saving = database, saving
        self._changed, self._broken, self._faulty = changed, broken, faulty
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
            self._being_saved = asyncio.get_running_loop().create_task(self._save_beside(self._taken_in_hand()))

    def _taken_in_hand(self) -> list[Answer]:
        self._in_hand, self._arrived = self._arrived[:MOST_SAVED], self._arrived[MOST_SAVED:]
        return [*self._in_hand]

    async def _save_beside(self, batch: list[Answer]) -> None:
        try:
            await self._save(batch)
        except DatabaseGone as error:
            self._is_database_gone = True  # what is still in hand is tried once more at the end
            self._broken(str(error))
        finally:
            self._being_saved = None
            self._changed()

    async def _save(self, batch: list[Answer], *, seconds: float | None = None) -> None:
        """Save answers; where one of them cannot be written, all but that one.

        Raises:
            DatabaseGone: Those that are still in hand were not saved.
        """
        try:
            saved = await self._database.write(
                partial(save_answers, saving=self._saving, answers=batch), seconds=seconds
            )
        except DatabaseGone:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours in one answer shall not take the others along
            if len(batch) > 1:
                for part in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
                    await self._save(part, seconds=seconds)
                return
            self.n_lost += 1
            self._faulty(error)
        else:
            self.n_there += saved.n_there
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
                await self._save(self._taken_in_hand(), seconds=LAST_SECONDS)
            except DatabaseGone as error:
                self.n_lost += len(self._in_hand)
                self._broken(str(error))


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
        questions, was_dead = store.take(session, self._saving.run_id, self._saving.worker_id, most)
        return self._asker.prepared(questions, queries.texts(session, questions)), was_dead, at

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

    def _beat(self, session: Session) -> tuple[store.Orders, tuple[int, Counter[Outcome], queries.Calls] | None, float]:
        """Say that this worker lives; and add up how the run stands: others work on it as well, and what failed may be asked again."""
        run_id, worker_id = self._saving.run_id, self._saving.worker_id
        at = time.time()
        orders, begun = store.say_alive(session, run_id, worker_id), time.monotonic()
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
