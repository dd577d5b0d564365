"""Processes of their own, for tests of what happens at one moment."""

import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from typing import Any

from evalcore.errors import OverreadError

__all__ = ["Start", "at_once", "context"]

# What such tests import. Each process would take two seconds of a processor to import it anew.
IMPORTED = [
    "hypothesis.strategies", "pytest", "evalcore.export.tables", "tests.adjudicating_steps", "tests.invented", "tests.run_steps",
]  # fmt: skip
START_SECONDS, ACT_SECONDS = 60, 90

Start = Callable[[], object]
"""An act calls it when it is ready: it returns when all others are ready too."""


def context() -> ForkServerContext:
    """Where their processes, queues and barriers come from: copies of one process that has imported everything and done nothing."""
    made = get_context("forkserver")
    made.set_forkserver_preload(IMPORTED)
    return made


def at_once(*calls: tuple[Any, ...], here: Callable[[Start], object] | None = None) -> list[Any]:
    """What comes of acts at one moment, in the order of the calls: what each returns, or the OverreadError that refuses it.

    Args:
        calls: Each is (act, *arguments), and gets a process of its own, in which `act(start, *arguments)` runs.
        here: An act in this process, at the same moment.

    Raises:
        AssertionError: An act failed by another error; it is shown.
    """
    apart = context()
    start, said = apart.Barrier(len(calls) + (here is not None)), apart.Queue()
    processes = [
        apart.Process(target=_act, args=(start, said, place, *call), daemon=True) for place, call in enumerate(calls)
    ]
    for process in processes:
        process.start()
    if here is not None:
        here(partial(start.wait, START_SECONDS))
    answers = [said.get(timeout=ACT_SECONDS) for _ in processes]
    for process in processes:
        process.join(30)
    failed = [what for _, what, is_failure in answers if is_failure]
    assert not failed, "\n".join(failed)
    came = {place: what for place, what, _ in answers}
    return [came[place] for place in range(len(calls))]


def _act(start: Any, said: Any, place: int, act: Callable[..., object], *arguments: object) -> None:
    try:
        said.put((place, act(partial(start.wait, START_SECONDS), *arguments), False))
    except OverreadError as refusal:
        said.put((place, refusal, False))
    except Exception:  # noqa: BLE001 - whatever it is, the test shows it
        said.put((place, traceback.format_exc(), True))
