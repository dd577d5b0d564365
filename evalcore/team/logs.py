"""What a server writes down of its work, one JSON object a line: which request, which act, whose, how long; never a text of a study."""

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evalcore.study.db import REQUEST

SAID = ("act", "person_id", "seconds", "method", "path", "status")
"""What a line may have beside its time, level, logger, words and request; nothing else that a record carries is written."""
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
            trace, place = record.exc_info[2], ""
            while trace is not None:
                place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
            line["error"] = f"{record.exc_info[0].__name__} at {place}"
        return json.dumps(line, ensure_ascii=False)


def begin(to: TextIO = sys.stdout) -> None:
    """Write what the program says as JSON lines, acts and requests among it."""
    handler = logging.StreamHandler(to)
    handler.setFormatter(JsonLines())
    ours = logging.getLogger("evalcore")
    ours.handlers, ours.propagate = [handler], False
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
                told = {"method": kind, "path": _without_token(path), "status": status[0]}
                _log.info("request", extra=told | {"seconds": round(time.monotonic() - begun, 3)})
            REQUEST.reset(token)


def _without_token(path: str) -> str:
    """An address without what only its reader should have: an invitation's token, the name of a file."""
    return re.sub(r"(/invitation/|/media/|/upload_file/).*", r"\1…", path)
