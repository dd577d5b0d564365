"""The client of models against bytes that no server of a framework would send."""

import asyncio
import gzip
import pickle
import re

import msgspec
import pytest
from hypothesis import given, strategies as st

from evalcore.runs.model_client import MAX_REPLY, CallFailed
from evalcore.runs.spec import MAX_RAW, Reply
from evalcore.study.schema import Outcome
from tests.judge_server import Judge, Told
from tests.model_asking import KEY, QUICK, SCHEMA, client, ended, question


def told_bytes(sent: bytes, *, schema: dict | None = None, **options: object) -> Reply | CallFailed:
    """What comes of a question to a server that sends these bytes and hangs up."""

    async def ask() -> Reply | CallFailed:
        async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.search(rb"(?i)content-length: (\d+)", head)[1]))
            writer.write(sent)
            writer.close()

        server = await asyncio.start_server(tell, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            async with client(Judge(url, Told()), **options) as asking:
                return await ended(asking, question(schema=schema))

    return asyncio.run(ask())


def http(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 999999 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 11\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 " + KEY.encode() + b"\x00\xff\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    ],
)
def test_bytes_that_are_no_http_are_a_broken_connection(sent):
    failed = told_bytes(sent)
    assert isinstance(failed, CallFailed)
    assert failed.outcome in (Outcome.UNREACHABLE, Outcome.UNREADABLE)
    assert failed.attempts == QUICK.attempts
    assert KEY not in failed.sentence


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"HTTP/1.1 200 OK\r\n" + rest + b"\r\n\r\n{}"))
def test_any_bytes_end_in_a_failure(sent):
    failed = told_bytes(sent, patience=msgspec.structs.replace(QUICK, attempts=1))
    assert isinstance(failed, CallFailed)
    assert "\x00" not in failed.sentence + (failed.raw or "")


def test_a_small_packet_of_a_large_reply_is_read_no_further_than_the_bound():
    packed = gzip.compress(b"x" * (MAX_REPLY * 10))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    failed = told_bytes(head + packed)
    assert (failed.outcome, failed.attempts) == (Outcome.UNREADABLE, 1)
    assert len(failed.raw) == MAX_RAW


def test_a_packed_reply_is_unpacked():
    body = b'{"choices": [{"message": {"content": "Drink."}}]}'
    reply = told_bytes(http("200 OK", gzip.compress(body), "Content-Encoding: gzip"))
    assert (reply.text, reply.finish, reply.prompt_tokens) == ("Drink.", None, None)


@pytest.mark.parametrize("status", ["400 Bad Request", "422 Unprocessable Entity"])
def test_an_error_that_names_the_schema_and_stays_without_it_is_a_rejection(status):
    failed = told_bytes(http(status, b'{"detail": "response_format: extra fields not permitted"}'), schema=SCHEMA)
    assert (failed.outcome, failed.attempts) == (Outcome.REJECTED, 2)
    assert failed.sentence.endswith(": response_format: extra fields not permitted")


def test_a_question_that_a_content_filter_held_back_is_a_refusal():
    failed = told_bytes(
        http("400 Bad Request", b'{"error": {"code": "content_filter", "message": "The prompt was filtered."}}')
    )
    assert (failed.outcome, failed.attempts) == (Outcome.REFUSED, 1)


def test_a_failure_can_be_handed_to_another_process():
    failed = told_bytes(http("400 Bad Request", b"No."))
    there = pickle.loads(pickle.dumps(failed))
    assert (there.outcome, there.sentence, there.raw, there.attempts) == (Outcome.REJECTED, failed.sentence, "No.", 1)
