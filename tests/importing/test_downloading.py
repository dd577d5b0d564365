"""Downloads from a real server on this machine that misbehaves as told."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from threading import Thread

import pytest
import stamina

from evalcore.errors import OverreadError
from evalcore.importing.downloading import PARTS, TRIES, download

NAME = PARTS["hard"]
CONTENT = bytes(range(256)) * 2_000  # 512,000 bytes


@dataclass
class Server:
    """What the server has and how it misbehaves.

    Attributes:
        url: Its address.
        content: The file.
        break_after: How many bytes the next answers to GET hold before the connection is dropped, one number an answer.
        statuses: With which status the next requests are refused.
        ranges: Whether it honours Range.
        said_size: The size that it says; None is the real one, -1 is none at all.
        asked: Every request: method and Range.
    """

    url: str = ""
    content: bytes = CONTENT
    break_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    said_size: int | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_given):
            pass

        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, *, body):
            wanted = self.headers.get("Range")
            told.asked.append((self.command, wanted))
            if told.statuses:
                self.send_response(told.statuses.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = int(re.search(r"\d+", wanted)[0]) if wanted and told.ranges else 0
            content = told.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(told.content) - 1}/{len(told.content)}")
            size = len(content) if told.said_size is None or body else told.said_size
            if told.said_size != -1:
                self.send_header("Content-Length", str(size))
            self.end_headers()
            if body:
                upto = told.break_after.pop(0) if told.break_after else len(content)
                self.wfile.write(content[:upto])

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    told.url = f"http://127.0.0.1:{listening.server_port}/files"
    yield told
    listening.shutdown()
    listening.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=TRIES):
        yield


def gets(server):
    return [wanted for method, wanted in server.asked if method == "GET"]


def test_a_file_arrives_whole_with_progress(server, tmp_path):
    told = []
    path = download(
        "hard", base_url=server.url + "/", folder=tmp_path / "new folder", progress=lambda *seen: told.append(seen)
    )
    assert path == tmp_path / "new folder" / NAME
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert all(one[0] <= other[0] for one, other in pairwise(told))
    assert [kept.name for kept in path.parent.iterdir()] == [NAME]


def test_a_file_that_is_there_whole_is_not_fetched_again(server, tmp_path):
    (tmp_path / NAME).write_bytes(CONTENT)
    download("hard", base_url=server.url, folder=tmp_path)
    assert [method for method, _ in server.asked] == ["HEAD"]


def test_a_file_of_another_size_is_fetched_again(server, tmp_path):
    (tmp_path / NAME).write_bytes(CONTENT[:-1])
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT


def test_a_connection_that_drops_is_taken_up_where_it_broke_off(server, tmp_path):
    server.break_after = [100_000, 200_000]
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT
    assert gets(server) == [None, "bytes=100000-", "bytes=300000-"]


def test_a_part_of_an_earlier_run_is_taken_up(server, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:12_345])
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT
    assert gets(server) == ["bytes=12345-"]


def test_a_part_that_is_whole_already_is_only_renamed(server, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT)
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT
    assert gets(server) == []


def test_a_part_that_is_too_long_is_begun_again(server, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT + b"more")
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT
    assert gets(server) == [None]


def test_a_server_without_ranges_sends_it_from_the_beginning(server, tmp_path):
    server.ranges = False
    server.break_after = [100_000]
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT
    assert gets(server) == [None, "bytes=100000-"]


def test_a_server_that_says_no_size_sends_it_from_the_beginning(server, tmp_path):
    server.said_size = -1
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:12_345])
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT
    assert gets(server) == [None]


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_server_that_is_busy_is_asked_again(server, tmp_path, status):
    server.statuses = [status, status]
    assert download("hard", base_url=server.url, folder=tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (403, 1), (503, TRIES)])
def test_a_server_that_refuses_is_named_with_its_answer(server, tmp_path, status, asked):
    server.statuses = [status] * 20
    with pytest.raises(OverreadError, match=rf"{NAME}: the server answered {status} "):
        download("hard", base_url=server.url, folder=tmp_path)
    assert len(server.asked) == asked
    assert not (tmp_path / NAME).exists()


def test_a_file_of_another_size_than_the_server_said_is_refused(server, tmp_path):
    server.said_size = len(CONTENT) + 1
    with pytest.raises(OverreadError, match=r"expected 512,001|416|512,000 bytes came"):
        download("hard", base_url=server.url, folder=tmp_path)
    assert not (tmp_path / NAME).exists()


def test_a_connection_that_always_drops_is_given_up_and_what_arrived_is_kept(server, tmp_path):
    server.break_after = [1_000] * 20
    with pytest.raises(OverreadError, match=rf"tried {TRIES} times; what arrived is kept"):
        download("hard", base_url=server.url, folder=tmp_path)
    assert (tmp_path / f"{NAME}.part").read_bytes() == CONTENT[: 1_000 * TRIES]


def test_a_server_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OverreadError, match=rf"http://127.0.0.1:1/{NAME}: .* \(tried {TRIES} times"):
        download("hard", base_url="http://127.0.0.1:1", folder=tmp_path)


@pytest.mark.parametrize("url", ["healthbench", "ftp://example.org", "http://exa mple.org:port"])
def test_an_address_that_is_none_is_named_and_not_tried_again(tmp_path, url):
    with pytest.raises(OverreadError, match=re.escape(url)) as failed:
        download("hard", base_url=url, folder=tmp_path)
    assert "tried" not in str(failed.value)


def test_a_folder_that_cannot_be_made_is_named(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OverreadError, match=r"cannot be written: (File exists|Not a directory)"):
        download("hard", base_url=server.url, folder=tmp_path / "file")


def test_an_unknown_part_names_the_known_ones(tmp_path):
    with pytest.raises(OverreadError, match="part: expected one of eval, hard, consensus, meta, got 'half'"):
        download("half", base_url="http://127.0.0.1:1", folder=tmp_path)
