"""The client of models keeps no key, and is not led astray by addresses and proxies."""

import asyncio
import logging
import traceback

import msgspec
import pytest

from evalcore.errors import RunRefused
from evalcore.runs.model_client import CallFailed
from evalcore.runs.spec import Reply
from evalcore.study.schema import Outcome
from tests.judge_server import Fault, Faults
from tests.model_asking import KEY, QUICK, asked, client, ended, question

# --- Keys


@pytest.mark.parametrize("fault", sorted(Fault))
def test_no_key_is_in_anything_that_is_kept_or_logged(healthy_judge, fault, caplog):
    healthy_judge.told.faults, healthy_judge.told.retry_after = Faults.alone(fault), 0
    with caplog.at_level(logging.DEBUG):
        (came,) = asked(healthy_judge, question(), patience=msgspec.structs.replace(QUICK, attempts=2))
    left = [repr(came), str(came), caplog.text, *(str(record.__dict__) for record in caplog.records)]
    if isinstance(came, CallFailed):
        left += [str(came.raw), came.sentence, str(vars(came)), "".join(traceback.format_exception(came))]
        chained = came
        while chained is not None:
            left += [repr(chained), str(getattr(chained, "__dict__", ""))]
            chained = chained.__context__ or chained.__cause__
    assert not [text for text in left if KEY in text]


def test_a_key_that_the_server_echoes_is_hidden(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.UNAUTHORIZED)
    (failed,) = asked(healthy_judge, question())
    said = "Incorrect API key provided: [key]. You can find your key in the settings."
    assert failed.sentence == f"the server answered 401 Unauthorized: {said}"
    assert said in failed.raw


def test_a_key_in_an_answer_is_hidden(healthy_judge):
    key = "criteria_met"  # whatever the model says, it says this
    (reply,) = asked(healthy_judge, question(), key=key)
    assert key not in reply.text
    assert '"[key]"' in reply.text


def test_the_client_does_not_show_its_key(healthy_judge):
    assert KEY not in repr(client(healthy_judge))


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\nb", "sk-a\r\nX-Header: 1", "ключ", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(healthy_judge, key):
    with pytest.raises(RunRefused, match="copy it again") as refused:
        client(healthy_judge, key=key)
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1:1", "ftp://h/v1", "http://u:p@h/v1", "http://h/v1?key=1", "http://[h/v1", "http://h:99999999/v1"],
)
def test_an_address_that_is_none_is_refused(healthy_judge, address):
    with pytest.raises(RunRefused, match="the base URL is no address"):
        client(healthy_judge, base_url=address)


# --- Proxies


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_does_not_catch_this_machine(healthy_judge, monkeypatch, variable):
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    (reply,) = asked(healthy_judge, question())
    assert isinstance(reply, Reply)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # httpx-aiohttp hands a user name over as aiohttp once took it
def test_a_proxy_is_asked_for_another_machine(healthy_judge, monkeypatch):
    lines = []

    async def through() -> Reply | CallFailed:
        async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            lines.append(await reader.readline())
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        async with server:
            monkeypatch.setenv("http_proxy", f"http://user:pass@127.0.0.1:{server.sockets[0].getsockname()[1]}")
            monkeypatch.delenv("no_proxy", raising=False)
            async with client(healthy_judge, base_url="http://model.invalid/v1") as asking:
                return await ended(asking, question())

    came = asyncio.run(through())
    assert lines == [b"POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n"]
    assert (came.outcome, came.sentence) == (Outcome.REJECTED, "the server answered 404 Not Found")


def test_a_proxy_that_speaks_no_http_is_refused(healthy_judge, monkeypatch):
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(RunRefused, match="the proxy that the environment names is none for HTTP"):
        client(healthy_judge, base_url="http://model.invalid/v1")
