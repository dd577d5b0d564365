"""Steps for tests of the commands of runs: a file of models, Ctrl-C at a moment, and all that a study and its folder hold."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evalcore.runs.asking import Stop
from tests.commands import Run
from tests.run_steps import until
from tests.run_world import Study

MAGPIE = {"api_model": '"magpie-1"', "price_in": "1.0", "price_out": "4.0", "timeout_seconds": "60"}
"""One US dollar for a million tokens in, 4 out."""


def on_study(overread: Run, small: Study, *words: str) -> Callable[..., str]:
    """Runs `overread` with these words first, on this study: `run` must end well, `run.bad` with a sentence, `run.ended` may end in any way."""

    def run(*arguments, how=overread.good, **environment):
        return how(*words, *arguments, "--db", small.url, **environment)

    run.bad = lambda *arguments, **environment: run(*arguments, how=overread.bad, **environment)
    run.ended = lambda *arguments, **environment: run(*arguments, how=overread, **environment)
    return run


def models_file(folder: Path, base_url: str, *names: str, file: str = "models.toml", **said: str | None) -> Path:
    """A file that knows these models, all alike; what is said is TOML, None leaves it out."""
    told = {key: value for key, value in (MAGPIE | said).items() if value is not None}
    lines = [f'base_url = "{base_url}"', *(f"{key} = {value}" for key, value in told.items())]
    tables = ["\n".join([f'[models."{name}"]', *lines]) for name in names or ("Magpie",)]
    path = folder / file
    path.write_text("\n\n".join(tables) + "\n", "utf-8")
    return path


@contextmanager
def pressing(monkeypatch, *moments: Callable[[], bool]) -> Iterator[None]:
    """Within the block Ctrl-C is pressed when the first of these holds, again when the second does, and so on; each after the one before was heard."""
    heard, press = threading.Semaphore(0), Stop.press

    def pressed(stop: Stop) -> None:
        press(stop)
        heard.release()

    def press_all() -> None:
        for holds in moments:
            until(holds)
            os.kill(os.getpid(), signal.SIGINT)
            assert heard.acquire(timeout=20)

    monkeypatch.setattr(Stop, "press", pressed)
    thread = threading.Thread(target=press_all)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
    assert not thread.is_alive()


def everything(small: Study) -> dict[str, list[str]]:
    """Every row of every table of a study."""
    if "sqlite" in small.url:
        names = small.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'search_text%'")
    else:
        names = small.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {name: sorted(map(str, small.rows(f'SELECT * FROM "{name}"'))) for (name,) in names}
