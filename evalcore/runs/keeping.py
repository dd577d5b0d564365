"""What has arrived and waits to be saved: in small transactions while a run goes on, and whatever is left at the end."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from evalcore.runs.answer_store import Answer, Saving, save_answers
from evalcore.runs.database_thread import DatabaseGone, DatabaseThread
from evalcore.study.run_words import Outcome

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
