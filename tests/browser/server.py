"""A running Overread for the browser tests: its own folder, database and port."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_SECONDS = 60
STOP_SECONDS = 10


@dataclass(frozen=True)
class AppServer:
    """Where it listens, and the folder with its database and log."""

    url: str
    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "overread.db"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"


@contextmanager
def running_app(
    folder: Path, *options: str, environment: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[AppServer]:
    """Start `overread serve` in `folder`, on a free port unless told, wait until it is healthy, and stop it.

    A folder without a database gets the demo study, as anybody's does.

    Raises:
        AssertionError: It did not start, or its log holds a traceback at the end.
    """
    port = port or free_port()
    server = AppServer(f"http://127.0.0.1:{port}", folder)
    clean = {name: value for name, value in os.environ.items() if name != "OVERREAD_DB"}
    serve = ("-m", "evalcore", "serve", "--port", str(port), "--no-browser", *options)
    with served(server, *serve, environment=clean | dict(environment or {})):
        yield server
    assert "Traceback" not in server.log.read_text(), server.log.read_text()


@contextmanager
def served(server: AppServer, *arguments: str, environment: Mapping[str, str]) -> Iterator[None]:
    """Run Python with these arguments in the server's folder, wait until it answers there, and stop it.

    Raises:
        AssertionError: It did not start.
    """
    with server.log.open("a") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=server.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until_healthy(server, process)
        yield
    finally:
        stop(process)


def free_port() -> int:
    """A port that nothing listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def wait_until_healthy(server: AppServer, process: subprocess.Popen[bytes]) -> None:
    """Ask for its health until it answers, it ends, or time is up."""
    last_moment = time.monotonic() + START_SECONDS
    while time.monotonic() < last_moment and process.poll() is None:
        try:
            if httpx.get(f"{server.url}/healthz", timeout=1, trust_env=False).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    msg = f"{server.url} was not healthy after {START_SECONDS} s or ended early:\n{server.log.read_text()}"
    raise AssertionError(msg)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End its whole process group, gently at first."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, sent)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue
