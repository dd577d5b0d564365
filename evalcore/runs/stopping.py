"""How a worker is told to stop: from another thread, from a signal, once or twice."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Tells a worker to stop: `finish` lets what is in flight arrive, `now` does not wait for it. Safe in threads and in handlers of signals."""

    def __init__(self) -> None:
        self.is_asked = False
        self.is_urgent = False
        self._wake: Callable[[], object] | None = None

    def finish(self) -> None:
        """Ask nothing more; what is in flight is waited for and saved."""
        self.is_asked = True
        self._tell()

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

    def _tell(self) -> None:
        if self._wake is not None:
            self._wake()


@contextmanager
def on_interrupt(stop: Stop, *, told: Callable[[Stop], None] | None = None) -> Iterator[None]:
    """Within the block Ctrl-C (and SIGTERM, as a cluster or a container sends it) presses `stop` instead of raising; in the main thread only.

    Args:
        told: Is called after each press, e.g. to say that a second one does not wait.
    """

    def pressed(_number: int, _frame: FrameType | None) -> None:
        stop.press()
        if told is not None:
            told(stop)

    before = {number: signal.signal(number, pressed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
