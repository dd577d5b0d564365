"""A large upload goes to the disk as it comes, and is gone once its tab has ended."""

import asyncio
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import streamlit
from hypothesis import given, strategies as st
from starlette.requests import Request
from starlette.responses import Response

from evalcore import serving
from evalcore.importing import uploads

ROOT = Path(__file__).parents[2]
LARGE = uploads.LITTLE_BYTES + 1


class Streamlit:
    """Takes an upload as Streamlit does, and remembers what it held in memory."""

    def __init__(self, status: int = 204) -> None:
        self.status, self.name, self.kind, self.content = status, "", "", b""

    async def __call__(self, scope, receive, send) -> None:
        if scope["method"] == "PUT":
            async with Request(scope, receive).form() as form:
                (file,) = form.values()
                self.name, self.kind, self.content = file.filename, file.content_type, await file.read()
        await Response(status_code=self.status)(scope, receive, send)


def form(content: bytes, *, name: str = "results.jsonl", boundary: bytes = b"xYz") -> bytes:
    head = f'Content-Disposition: form-data; name="f"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
    return b"--" + boundary + b"\r\n" + head.encode() + content + b"\r\n--" + boundary + b"--\r\n"


def put(
    app, body: bytes, *, block: int = 1 << 20, path: str = "/_stcore/upload_file/tab/1", method: str = "PUT", ends=True
) -> int:
    """Send a body in blocks. Returns the status of the answer; 0 where there was none."""
    headers = [(b"content-type", b"multipart/form-data; boundary=xYz"), (b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
    sent = [
        {"type": "http.request", "body": body[at : at + block], "more_body": at + block < len(body)}
        for at in range(0, len(body), block)
    ]
    sent = sent if ends else sent[:-1]
    told = [0]

    async def receive():
        return sent.pop(0) if sent else {"type": "http.disconnect"}

    async def send(message) -> None:
        told[0] = message.get("status", told[0])

    asyncio.run(uploads.ToDisk(app)(scope, receive, send))
    return told[0]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where uploads lie; empty again after each test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    for session_id in ("tab", "other"):
        uploads.forget(session_id)
    assert list(tmp_path.iterdir()) == []


def test_the_limit_is_streamlits_own():
    said = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert said["server"]["maxUploadSize"] << 20 == uploads.MOST_BYTES


def test_a_large_file_is_on_the_disk_readable_by_its_owner_alone_and_only_a_sentence_is_in_memory():
    content = bytes(range(256)) * (LARGE // 256 + 1)
    app = Streamlit()
    assert put(app, form(content, name="Größe.csv")) == 204
    path = uploads.path_of("1")
    assert path is not None
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert (app.name, app.kind, app.content) == ("Größe.csv", "text/plain", uploads.STANDS_FOR)


def test_a_small_file_goes_on_as_it_is():
    app = Streamlit()
    assert put(app, form(b"a,b\r\n1,2\r\n")) == 204
    assert app.content == b"a,b\r\n1,2\r\n"
    assert uploads.path_of("1") is None


@given(content=st.binary(max_size=300), block=st.integers(1, 90))
def test_every_byte_arrives_however_the_body_is_cut(content, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uploads, "LITTLE_BYTES", 20)
        assert put(Streamlit(), form(content), block=block) == 204
    path = uploads.path_of("1")
    assert path is not None
    assert path.read_bytes() == content


def test_what_streamlit_refuses_is_broken_off_or_is_too_large_leaves_nothing_on_the_disk(monkeypatch, folder):
    body = form(b"x" * LARGE)
    assert put(Streamlit(status=403), body) == 403
    assert put(Streamlit(), body, ends=False) == 0
    assert put(Streamlit(), b"no form" * LARGE) == 507
    monkeypatch.setattr(uploads, "MOST_BYTES", LARGE - 1)
    monkeypatch.setattr(uploads, "_OF_FORM", 0)
    assert put(Streamlit(), body) == 413
    assert list(folder.iterdir()) == []


def test_an_upload_goes_when_it_is_taken_out_of_the_widget_or_its_tab_ends():
    body = form(b"x" * LARGE)
    for session_id, file_id in (("tab", "1"), ("tab", "2"), ("other", "3")):
        put(Streamlit(), body, path=f"/_stcore/upload_file/{session_id}/{file_id}")
    put(Streamlit(), b"", path="/_stcore/upload_file/tab/1", method="DELETE")
    assert [uploads.path_of(number) is None for number in "123"] == [True, False, False]
    serving._forget_uploads()
    manager = streamlit.runtime.memory_uploaded_file_manager.MemoryUploadedFileManager("/x")
    manager.remove_session_files("tab")
    assert [uploads.path_of(number) is None for number in "123"] == [True, True, False]


def test_what_a_killed_server_has_left_is_removed_and_what_a_live_one_holds_is_not(folder):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left, held, other = (
        folder / name for name in (f"overread-upload-{ended.pid}-a", f"overread-upload-{os.getpid()}-b", "notes.txt")
    )
    for path in (left, held, other):
        path.write_text("x")
    uploads.forget_of_the_dead()
    assert sorted(folder.iterdir()) == sorted([held, other])
    held.unlink()
    other.unlink()
