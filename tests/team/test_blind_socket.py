"""The blind walk over the socket: what a server that people sign in to sends, byte by byte, to somebody who is to read blind."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests import leaks
from tests.blind_walks import ADDRESSES, BRIEF, Visit, allowed, can_go
from tests.browser.server import AppServer, free_port, running_app
from tests.identity_provider import identity_provider
from tests.leaks import BLIND, EVERY_ROLE, OPEN_EYES, REVIEWER, SECRETS, Hand

ACCOUNTS = {REVIEWER: "ana", EVERY_ROLE: "bo", OPEN_EYES: "lena"}
PAGE = {"sec-fetch-mode": "navigate", "sec-fetch-site": "none", "accept": "text/html"}
SHORT = (
    Visit("overview"),
    Visit("browse", {"example": "1"}),
    Visit("browse", {"example": "1", "shown": leaks.SEEN_MODEL}),
    Visit("judges"),
    Visit("my_reads", {"read": "1"}),
    Visit("review"),
)
FINISHED_SECONDS, LATE_SECONDS = 60.0, 0.3


@dataclass(frozen=True)
class Study:
    """A server with a study in which everything secret is a word of its own; the walkers have something in hand, and are signed in."""

    server: AppServer
    hands: dict[str, Hand]
    cookies: dict[str, str]


def signed_in(url: str, link: str, subject: str) -> str:
    """Come in by an invitation, as a browser does. Returns the cookie of the session."""
    kept: dict[str, str] = {}

    def get(address: str) -> httpx.Response:
        cookie = "; ".join(f"{name}={value}" for name, value in kept.items())
        answer = httpx.get(address, headers=PAGE | {"cookie": cookie}, timeout=30)
        for said in answer.headers.get_list("set-cookie"):
            name, _, value = said.split(";")[0].partition("=")
            kept[name] = value
        return answer

    sign_in = get(url + get(link).headers["location"]).headers["location"]
    back = httpx.post(sign_in, data={"sub": subject}, timeout=30).headers["location"]
    assert get(url + get(back).headers["location"].removeprefix(url)).headers["location"] == "/"
    return f"__Host-overread={kept['__Host-overread']}"


pytestmark = pytest.mark.slow  # a server that answers a browser, page by page


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder, port = tmp_path_factory.mktemp("socket"), free_port()
    engine = leaks.make(str(folder / "overread.db"), tmp_path_factory.mktemp("files"))
    hands = {name: leaks.take_in_hand(engine, name) for name in leaks.WALKERS}
    engine.dispose()
    url = f"http://127.0.0.1:{port}"
    with identity_provider() as issuer:
        said = {"PUBLIC_URL": url, "OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": "overread", "OIDC_CLIENT_SECRET": "x"}
        environment = {f"OVERREAD_{name}": value for name, value in said.items()}
        with running_app(folder, environment=environment, port=port) as server:
            cookies = {name: signed_in(url, invited(folder, environment, name), ACCOUNTS[name]) for name in ACCOUNTS}
            yield Study(server, hands, cookies)


def invited(folder: Path, environment: dict[str, str], name: str) -> str:
    command = [sys.executable, "-m", "evalcore", "team", "invite", name]
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def sent(study: Study, name: str, visit: Visit) -> bytes:
    """All that comes over a new socket from asking for a page until it is drawn, and a moment longer."""
    url, came = study.server.url, []
    asked = BackMsg()
    asked.rerun_script.page_name, asked.rerun_script.query_string = visit.page, urlencode(visit.query)
    asked.rerun_script.context_info.timezone, asked.rerun_script.context_info.url = "UTC", f"{url}/{visit.page}"
    address = f"{url.replace('http', 'ws', 1)}/_stcore/stream"
    cookie = {"Cookie": study.cookies[name]} if name else {}
    async with connect(
        address,
        origin=url,  # type: ignore[arg-type]
        subprotocols=["streamlit"],  # type: ignore[list-item]
        additional_headers=cookie,
        max_size=None,
        proxy=None,
    ) as socket:
        await socket.send(asked.SerializeToString())
        is_drawn = False
        while True:
            try:
                came.append(
                    await asyncio.wait_for(socket.recv(decode=False), LATE_SECONDS if is_drawn else FINISHED_SECONDS)
                )
            except TimeoutError:
                assert is_drawn, f"{visit} was not drawn"
                return b"\n".join(came)
            message = ForwardMsg.FromString(came[-1])
            if message.WhichOneof("type") == "script_finished":
                is_drawn = message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN


def walked(study: Study, name: str, visits: tuple[Visit, ...]) -> dict[str, set[str]]:
    """Secrets by the visit that brought them, but for what may stand there."""
    found = {}
    for visit in visits:
        if not visit.chosen and not visit.pressed and can_go(visit, name, "in hand"):
            words = leaks.found((*SECRETS, *BLIND), asyncio.run(sent(study, name, visit)))
            found[str(visit)] = words - allowed(visit, name, study.hands.get(name), locked=False)
    return {where: words for where, words in found.items() if words}


def test_a_signed_in_reader_is_sent_no_secret_and_who_waits_for_nothing_is_sent_them(study: Study):
    assert walked(study, REVIEWER, SHORT) == {}
    opened = walked(study, OPEN_EYES, SHORT[:3])
    assert {leaks.MODEL, leaks.EXPLANATIONS[1], leaks.READER} <= set().union(*opened.values())


def test_without_a_session_nothing_is_sent_at_all(study: Study):
    with pytest.raises(InvalidStatus, match="403"):
        asyncio.run(sent(study, "", SHORT[0]))


@pytest.mark.parametrize("name", leaks.WALKERS)
def test_the_whole_walk_over_the_socket_brings_no_secret(name: str, study: Study):
    visits = (*BRIEF, *ADDRESSES)
    assert walked(study, name, visits) == {}
    assert leaks.found((*SECRETS, *BLIND), study.server.log.read_bytes()) == set()
