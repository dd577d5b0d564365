"""The one thread of a worker that speaks to the database: the event loop never waits for it, and a process never waits for its own lock."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, InternalError, OperationalError
from sqlmodel import Session

from evalcore.errors import DatabaseFault, OverreadError
from evalcore.study.db import writing

PATIENCE_SECONDS = 60.0
"""For so long a database that does not take what is written is tried again."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_MOST_FIRST = 3
_T = TypeVar("_T")


class DatabaseGone(OverreadError):
    """The database has not taken what was to be written, for as long as it was tried."""


class DatabaseThread:
    """Transactions, one after the other.

    Attributes:
        is_troubled: The last transaction was not taken, and is being tried again.
    """

    def __init__(self, engine: Engine, *, changed: Callable[[], None]) -> None:
        self.is_troubled = False
        self._engine = engine
        self._changed = changed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="run-database")

    async def write(self, act: Callable[[Session], _T], *, seconds: float | None = None) -> _T:
        """One transaction; tried again for some seconds where the database is locked, full or away, and twice where another process was first.

        Raises:
            DatabaseGone: It was not taken.
            IntegrityError: It breaks a rule of the database, each time.
            Exception: What the act itself raised.
        """
        until, pause = time.monotonic() + (PATIENCE_SECONDS if seconds is None else seconds), _FIRST_PAUSE
        loop, n_first = asyncio.get_running_loop(), 0
        while True:
            try:
                done = await loop.run_in_executor(self._thread, self._transaction, act)
            except IntegrityError:  # another process was first; what breaks a rule each time is the caller's to part
                n_first += 1
                if n_first == _MOST_FIRST:
                    raise
            except (DatabaseFault, OperationalError, InternalError, InterfaceError) as error:
                self._set(troubled=True)
                if time.monotonic() + pause > until:
                    raise DatabaseGone(_reason(error)) from error
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


def _reason(error: DatabaseFault | DBAPIError) -> str:
    """The driver's own words on one line."""
    return (error.reason if isinstance(error, DatabaseFault) else " ".join(str(error.orig).split()))[:300]
