"""Processes that are killed at some moment of what they do again and again."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing import get_context
from typing import Any

N_KILLS = 20


def _without_end(act: Callable[..., object], arguments: tuple[Any, ...], ready: Any) -> None:
    """The first time is done whole, so that no kill only hits what a process does at its start."""
    for number in count():
        act(*arguments, number)
        ready.set()


def killed(act: Callable[..., object], *arguments: Any, n: int = N_KILLS, within: float = 0.3) -> Iterator[int]:
    """Kill a process that does `act(*arguments, number)` again and again, so many seconds after the first at most; gives the number of kills."""
    apart, wait = get_context("fork"), random.Random(7)
    for number in range(1, n + 1):
        ready = apart.Event()
        process = apart.Process(target=_without_end, args=(act, arguments, ready))
        process.start()
        assert ready.wait(60)
        time.sleep(wait.uniform(0, within))
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        yield number
