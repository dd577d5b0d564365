"""Whether this process runs, and whether it can serve: for a proxy or an orchestrator, who need no session and learn nothing of a study."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from evalcore.errors import DatabaseFault, OverreadError
from evalcore.study.db import DBAPIError, Engine, NoneFree, is_usable
from evalcore.team.studies import sign_ins, studies

LEAST_BYTES = 200 * 1024 * 1024
"""Of room on the disk of a SQLite file: an import of a large file takes about as much."""


class Health:
    """Answers /healthz and /readyz, under whatever name of a host; passes on all else."""

    def __init__(self, app: ASGIApp, *, engine_at: Callable[[str], Engine]) -> None:
        self._app = app
        self._engine_at = engine_at

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """200 where all is well; 503 with what is not."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/healthz":
            await JSONResponse({"status": "ok"})(scope, receive, send)
        elif path == "/readyz":
            wrong = await run_in_threadpool(faults, self._engine_at)
            answer = JSONResponse({"status": "not ready" if wrong else "ok", "faults": wrong}, 503 if wrong else 200)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def faults(engine_at: Callable[[str], Engine]) -> list[str]:
    """What keeps the databases of this server from being used, each as `STUDY: what is wrong`."""
    try:
        places = {study.name or "study": study.db for study in studies().values()} | {"sign-ins": sign_ins()}
    except OverreadError as error:
        return [f"studies: {error}"]
    said = ((name, _fault(engine_at, location)) for name, location in places.items())
    return [f"{name}: {fault}" for name, fault in said if fault]


def _fault(engine_at: Callable[[str], Engine], location: str) -> str:
    try:
        engine = engine_at(location)
        if not is_usable(engine):
            return "the tables are of an older version of Overread"
    except NoneFree:
        return "every connection to the database is in use"
    except (DatabaseFault, OverreadError, DBAPIError):
        return "the database cannot be used"
    if engine.dialect.name == "sqlite" and engine.url.database:
        folder = Path(engine.url.database).parent
        if shutil.disk_usage(folder).free < LEAST_BYTES:
            return "the disk is nearly full"
        if not os.access(folder, os.W_OK):
            return "the folder cannot be written"
    return ""
