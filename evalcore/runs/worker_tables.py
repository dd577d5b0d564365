"""Which workers of runs live: so that what a dead one held is free again, and so that the pages can say who works."""

import os
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import func, select
from sqlmodel import Session

from evalcore.study.tables import TABLES, now

UNSEEN_SECONDS = 30.0
"""A worker that has not said for so long that it lives is dead."""
_FIRST_NAMESPACE = "pid:[4026531836]"


class WorkerRow(NamedTuple):
    """A worker that has not ended, whether it lives, and whether it was told to end."""

    worker_id: int
    host: str
    pid: int
    started_at: datetime
    seen_at: datetime
    lives: bool
    stop_asked: bool


def this_host() -> str:
    """The name of this machine; with the number of the container's own space of processes, where it has one: a pid says nothing outside it."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = _FIRST_NAMESPACE
    return socket.gethostname() + ("" if space == _FIRST_NAMESPACE else f" {space}")


def is_gone(host: str, pid: int) -> bool:
    """Whether the process is known to have ended; of another machine's nothing is known."""
    if host != this_host():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    try:  # one that has ended and that nobody has asked about yet still has its number
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def clock(session: Session) -> datetime:
    """The time by which workers are seen: the database server's, since their machines' clocks may differ; SQLite's are all on one machine."""
    if session.get_bind().dialect.name == "postgresql":
        told: datetime = session.connection().execute(select(func.clock_timestamp())).scalar_one()
        return told
    return now()


def workers(session: Session, run_id: int | None = None) -> list[WorkerRow]:
    """The workers of a run, or of all, that have not ended, oldest first; the dead among them are marked."""
    table = TABLES["run_worker"].c
    wanted = (table.id, table.host, table.pid, table.started_at, table.seen_at, table.stop_asked)
    found = select(*wanted).where(table.ended_at.is_(None))
    if run_id is not None:
        found = found.where(table.run_id == run_id)
    unseen = clock(session) - timedelta(seconds=UNSEEN_SECONDS)
    return [
        WorkerRow(number, host, pid, started_at, seen_at, seen_at > unseen and not is_gone(host, pid), stop_asked)
        for number, host, pid, started_at, seen_at, stop_asked in session.connection().execute(found.order_by(table.id))
    ]
