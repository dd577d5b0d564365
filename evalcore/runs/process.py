"""A worker as a process of its own: it outlives the browser and the server that started it, and is found again by its row."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread

from sqlmodel import Session

import evalcore
from evalcore.errors import RunRefused
from evalcore.runs import queries
from evalcore.runs.known_models import key_of
from evalcore.runs.statements import WorkerRow, this_host, workers
from evalcore.study.db import connect, reading
from evalcore.study.run_words import RunState

START_SECONDS = 30.0
"""For so long a process may take to begin: it imports what it needs first."""
_LOOK_SECONDS = 0.1
_MAX_WORDS = 500


def start_worker(engine_location: str, run_id: int) -> int:
    """Start a process that works on a run that is open, and wait until it does, or has ended.

    What it prints goes to a file in the system's temporary folder that only the present account can read. It is told by its environment which
    study it is: arguments are seen by everybody on the machine, and a URL may hold a password. The key it takes from there, too.

    Args:
        engine_location: Database URL, or path of a SQLite file, as `db.connect` takes it.
        run_id: Of a run that was started (`runs.start`).

    Returns:
        The process's number.

    Raises:
        NotFound: There is no such run.
        RunRefused: It is not open, the variable with the key is not set here, or the process ended with an error; its last words are in the sentence.
    """
    engine = connect(engine_location)
    try:
        with reading(engine) as session:
            found = queries.run(session, run_id)
        if found.state is not RunState.OPEN:
            msg = f"run {run_id} is {found.state}: start it first"
            raise RunRefused(msg)
        key_of(found.spec.model)
        process, log = _started(engine_location, run_id)
        end = time.monotonic() + START_SECONDS
        while process.poll() is None and time.monotonic() < end:
            with reading(engine) as session:
                if any((row.host, row.pid) == (this_host(), process.pid) for row in alive(session, run_id)):
                    break
            time.sleep(_LOOK_SECONDS)
    finally:
        engine.dispose()
    if process.returncode:
        words = " ".join(log.read_text("utf-8", "replace").split())[-_MAX_WORDS:]
        msg = f"run {run_id}: the process that was started has ended: {words or 'it said nothing'} (see {log})"
        raise RunRefused(msg)
    return process.pid


def alive(session: Session, run_id: int) -> list[WorkerRow]:
    """The processes that work on a run now, on whatever machine, oldest first."""
    return [row for row in workers(session, run_id) if row.lives]


def _started(location: str, run_id: int) -> tuple[subprocess.Popen[bytes], Path]:
    handle, name = tempfile.mkstemp(prefix=f"overread-run-{run_id}-", suffix=".log")
    command = [
        sys.executable,
        "-P",
        "-m",
        "evalcore",
        "runs",
        "--work",
        str(run_id),
    ]  # -P: no file of the present folder is taken for ours
    environment = os.environ | {"OVERREAD_DB": location}
    checkout = Path(evalcore.__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").exists():  # the program runs as it lies there, and may not be installed
        path = [str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(path)
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # neither the terminal's Ctrl-C nor its end reaches it
        )
    Thread(target=process.wait, daemon=True, name=f"run-{run_id}").start()  # when it ends it leaves no entry behind
    return process, Path(name)
