"""A model that answers from a script, without a server; and processes that work on a run and can be killed."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from evalcore.runs.asking import Stop, on_interrupt
from evalcore.runs.model_client import CallFailed
from evalcore.runs.spec import ChatRequest, Reply
from evalcore.runs.worker import work
from evalcore.study.db import open_study
from evalcore.study.schema import Outcome
from tests.processes import context
from tests.run_world import KEY

MET = '{"explanation": "It says so.", "criteria_met": true}'
NOT_MET = '{"explanation": "It does not.", "criteria_met": false}'
UNREADABLE = '{"explanation": "It says so.", "criteria_met": "true"}'
START_SECONDS = 60.0
PRESSED = "pressed"

Says = Callable[[int, ChatRequest], str | Outcome]
"""What comes of call number n, from 1: a text, or what it fails by."""


class Scripted:
    """Asked like `ModelClient`; 100 tokens in and 10 out each time.

    Attributes:
        asked: What was sent, in order.
        most: Questions at once, at most.
        gate: Where one is given, calls wait for it.
    """

    def __init__(self, says: Says | str = MET, *, gate: asyncio.Event | None = None) -> None:
        self.says = says
        self.asked: list[ChatRequest] = []
        self.most = self._now = 0
        self.gate = gate

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def ask(self, request: ChatRequest) -> Reply:
        self.asked.append(request)
        number = len(self.asked)
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(0)
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self._now -= 1
        said = self.says if isinstance(self.says, str) else self.says(number, request)
        if isinstance(said, Outcome):
            failed = CallFailed(said, f"call {number} failed")
            failed.status, failed.raw = 500, "no"
            raise failed
        return Reply(text=said, status=200, prompt_tokens=100, completion_tokens=10, seconds=0.5)


class Working:
    """A process that works on a run; it tells how that ended as `Worked.as_dict` has it."""

    def __init__(self, url: str, run_id: int) -> None:
        made = context()
        self._told, theirs = made.Pipe(duplex=False)
        self.process: Any = made.Process(target=_work, args=(url, run_id, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.process.pid, number)

    def interrupt(self) -> None:
        """Ctrl-C; it has taken notice when this returns."""
        self.signal(signal.SIGINT)
        assert self._told.poll(START_SECONDS)
        assert self._told.recv() == PRESSED

    def ended(self) -> dict[str, Any] | None:
        """Wait for it; None where it was killed."""
        self.process.join(START_SECONDS)
        assert self.process.exitcode is not None, "the process did not end"
        try:
            return json.loads(self._told.recv())
        except EOFError:
            return None


class _Telling(Stop):
    told: Connection

    def press(self) -> None:
        super().press()
        self.told.send(PRESSED)


def _work(url: str, run_id: int, told: Connection) -> None:
    engine, stop = open_study(url), _Telling()
    stop.told = told
    with on_interrupt(stop):
        done = work(engine, run_id, key=KEY, stop=stop)
    engine.dispose()
    told.send(json.dumps(done.as_dict()))


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds: what another process or a server does comes with no event."""
    end = time.monotonic() + START_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.002)
