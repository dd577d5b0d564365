"""Runs: many questions to a model at once, each answer saved as it comes, stopped and started again at any moment.

A run is a row, found again by the fingerprint of what it asks; its questions are rows as well. Any number of processes work on it at once:
each takes questions in small lots by writing its number on them, and says every two seconds that it lives. What a dead one held is free again.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalcore.runs.acts import Planned, failures, plan, retry, start, stop
    from evalcore.runs.asking import Stop
    from evalcore.runs.prompts import spec_for
    from evalcore.runs.worker import Worked, work

__all__ = ["Planned", "Stop", "Worked", "failures", "plan", "retry", "spec_for", "start", "stop", "work"]
_ELSEWHERE = {"Stop": "asking", "spec_for": "prompts", "Worked": "worker", "work": "worker"}


def __getattr__(name: str) -> Any:
    """What runs are made of, once it is asked for: who only reads what a run said loads no client for HTTP."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'acts')}"), name)
