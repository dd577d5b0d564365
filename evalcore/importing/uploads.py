"""Large uploads are written to the disk as they come: Streamlit would hold the whole file in memory for as long as its tab is open.

Streamlit gets a sentence in place of the content, under the file's own name, so that its own checks and its widget work as ever; a page that imports asks
`path_of` for the file itself.
"""

import os
import tempfile
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOAD = "/_stcore/upload_file/"
MOST_BYTES = 1 << 30
"""As Streamlit's own limit, which .streamlit/config.toml sets."""
LITTLE_BYTES = 4 << 20
"""What is no larger is passed on as it is: a plan, a table of labels."""
_OF_FORM = 10_000  # what a browser writes around the file
STANDS_FOR = b"This file is on the disk of the server. Only Import takes files of more than 4 MB."

_PREFIX = "overread-upload-"  # then the number of the process

_kept: dict[str, dict[str, Path]] = defaultdict(dict)
"""By Streamlit's session, the files on the disk by Streamlit's number of each."""
_lock = threading.Lock()


def path_of(file_id: str) -> Path | None:
    """Where an upload is; None: it was small, and its content is what the widget holds."""
    with _lock:
        return next((files[file_id] for files in _kept.values() if file_id in files), None)


def forget(session_id: str, file_id: str | None = None) -> None:
    """Remove an upload, or all of a session of Streamlit's."""
    with _lock:
        files = _kept.pop(session_id, {}) if file_id is None else _kept.get(session_id, {})
        gone = list(files.values()) if file_id is None else [path for path in [files.pop(file_id, None)] if path]
    for path in gone:
        path.unlink(missing_ok=True)


def forget_of_the_dead() -> None:
    """Remove what a server that was killed has left: of processes that are no more."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        if number.isdigit() and not _is_alive(int(number)):
            with suppress(OSError):  # another user's, or gone meanwhile
                path.unlink()


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where the question would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True
    return True


class ToDisk:
    """Before Streamlit: a file that is large goes to the disk, and a sentence goes on in its place."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but the content of a large file."""
        numbers = scope["path"].removeprefix(UPLOAD).split("/") if scope["type"] == "http" else []
        if len(numbers) != 2 or not scope["path"].startswith(UPLOAD):  # noqa: PLR2004 - session and file
            await self._app(scope, receive, send)
        elif scope["method"] == "PUT":
            await self._put(scope, receive, send, *numbers)
        else:
            if scope["method"] == "DELETE":
                await run_in_threadpool(forget, *numbers)
            await self._app(scope, receive, send)

    async def _put(self, scope: Scope, receive: Receive, send: Send, session_id: str, file_id: str) -> None:
        first, is_more = [], True
        n_bytes = 0
        while is_more and n_bytes <= LITTLE_BYTES:
            message = await receive()
            if message["type"] != "http.request":
                return
            first.append(message.get("body", b""))
            n_bytes, is_more = n_bytes + len(first[-1]), message.get("more_body", False)
        if n_bytes <= LITTLE_BYTES:
            await self._app(scope, _again(first), send)
            return
        number, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}-")
        path, was_taken = Path(name), False
        try:
            with os.fdopen(number, "wb") as file:
                part = _Part(scope, file)
                for block in first:
                    await run_in_threadpool(part.write, block)
                while is_more and n_bytes <= MOST_BYTES + _OF_FORM:
                    message = await receive()
                    if message["type"] != "http.request":
                        return
                    block, is_more = message.get("body", b""), message.get("more_body", False)
                    n_bytes += len(block)
                    await run_in_threadpool(part.write, block)
            if is_more or part.n_bytes > MOST_BYTES:
                await PlainTextResponse("The file is larger than 1 GB.", 413)(scope, receive, send)
                return
            if part.n_parts != 1:
                await PlainTextResponse("Expected one file.", 400)(scope, receive, send)
                return
            forget(session_id, file_id)  # the same once more
            with _lock:
                _kept[session_id][file_id] = path

            async def noted(message: Message) -> None:
                nonlocal was_taken
                if message["type"] == "http.response.start":
                    was_taken = message["status"] == 204  # noqa: PLR2004 - as Streamlit says that it has it
                await send(message)

            body = part.standing_for()
            headers = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
            changed = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
            await self._app(changed, _again([body]), noted)
        except (MultipartParseError, OSError):
            await PlainTextResponse("The file could not be kept on the server: it may have no room left.", 507)(
                scope, receive, send
            )
        finally:
            if not was_taken:
                forget(session_id, file_id)
                await run_in_threadpool(path.unlink, missing_ok=True)


class _Part:
    """The one file of a form, written down as it comes."""

    def __init__(self, scope: Scope, file: BinaryIO) -> None:
        _, options = parse_options_header(Headers(scope=scope).get("content-type", ""))
        self._boundary = options.get(b"boundary", b"")
        self._head = bytearray()
        self._file = file
        self.n_parts = self.n_bytes = 0
        told = {"on_part_data": self._held, "on_part_begin": self._begin}
        told |= {"on_header_field": self._named, "on_header_value": self._valued, "on_header_end": self._ended}
        self._parser = MultipartParser(self._boundary, told)  # type: ignore[arg-type]

    def _begin(self) -> None:
        self.n_parts += 1

    def _held(self, data: bytes, start: int, end: int) -> None:
        self.n_bytes += self._file.write(data[start:end])

    def _named(self, data: bytes, start: int, end: int) -> None:
        self._head += data[start:end]

    def _valued(self, data: bytes, start: int, end: int) -> None:
        self._head += (b": " if not self._head.rpartition(b"\n")[2].count(b": ") else b"") + data[start:end]

    def _ended(self) -> None:
        self._head += b"\r\n"

    def write(self, block: bytes) -> None:
        self._parser.write(block)

    def standing_for(self) -> bytes:
        """A form with a file of the same name, with a sentence in place of its content."""
        edge = b"--" + self._boundary
        return b"\r\n".join([edge, bytes(self._head), STANDS_FOR, edge + b"--", b""])


def _again(blocks: list[bytes]) -> Receive:
    """Gives a body that was read already, then waits as an open connection does."""
    left = list(blocks)

    async def receive() -> Message:
        if not left:
            return {"type": "http.disconnect"}
        block = left.pop(0)
        return {"type": "http.request", "body": block, "more_body": bool(left)}

    return receive
