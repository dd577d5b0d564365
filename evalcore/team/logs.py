"""What a server tells of itself, and never a text of a study: its log, one JSON object a line, and to a proxy whether it runs and can serve."""

import json
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any, TextIO
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evalcore.errors import DatabaseFault, OverreadError
from evalcore.study.db import REQUEST, DBAPIError, Engine, NoneFree, is_usable
from evalcore.team.studies import sign_ins, studies

SAID = ("act", "person_id", "seconds", "method", "path", "status")
"""What a line may have beside its time, level, logger, words and request; nothing else that a record carries is written."""
LEAST_BYTES = 200 * 1024 * 1024
"""Of room on the disk of a SQLite file: an import of a large file takes about as much."""
_ID = re.compile(rb"[A-Za-z0-9-]{8,64}")
_QUIET = ("/healthz", "/readyz", "/static/", "/_stcore/health")
_log = logging.getLogger("evalcore.requests")


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. An exception is told by its kind and place: its words may quote a row."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request := REQUEST.get(""):
            line["request"] = request
        line |= {name: record.__dict__[name] for name in SAID if name in record.__dict__}
        if record.exc_info and record.exc_info[0] is not None:
            places = [f"{at.filename}:{at.lineno}" for at in extract_tb(record.exc_info[2])]
            line["error"] = f"{record.exc_info[0].__name__} at {places[-1] if places else ''}"
        return json.dumps(line, ensure_ascii=False)


def begin(to: TextIO = sys.stdout) -> None:
    """Write what the program says as JSON lines, acts and requests among it."""
    handler = logging.StreamHandler(to)
    handler.setFormatter(JsonLines())
    ours = logging.getLogger("evalcore")
    ours.handlers[:], ours.propagate = [handler], False
    ours.setLevel(logging.INFO)


class RequestLog:
    """Numbers each request, by the proxy's number where it sends one, and writes it down; parts of Streamlit itself are left out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, and write the line once it is answered."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        request = said.decode() if _ID.fullmatch(said) else uuid4().hex
        token, begun, status = REQUEST.set(request), time.monotonic(), [0]

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request.encode())]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            path = scope["path"]  # the query is left out: it may hold what somebody searched for
            if not any(quiet in path for quiet in _QUIET):
                kind = scope.get("method", "SOCKET")
                path = re.sub(r"(/invitation/|/media/|/upload_file/).*", r"\1…", path)  # without its token
                told = {"method": kind, "path": path, "status": status[0]}
                _log.info("request", extra=told | {"seconds": round(time.monotonic() - begun, 3)})
            REQUEST.reset(token)


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
