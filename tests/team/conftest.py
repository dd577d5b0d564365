"""A provider of identities, and the doors of a server before an application that tells what reached it."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from evalcore.settings import Settings
from evalcore.study.db import Engine, open_study
from evalcore.study.schema import Administrator, Role
from evalcore.team import people
from evalcore.team.provider import Provider, provider_of
from evalcore.team.sign_in import SignedInOnly
from evalcore.team.studies import Study
from tests.identity_provider import identity_provider
from tests.world import World

ADMINISTRATOR = Administrator()
PUBLIC = "https://overread.example"
PAGE = {"sec-fetch-mode": "navigate", "sec-fetch-site": "none", "accept": "text/html", "host": "overread.example"}
"""What a browser sends with an address that somebody opens."""


@pytest.fixture(scope="session")
def issuer() -> Iterator[str]:
    """A provider that knows Ana, Bo and Eve."""
    with identity_provider() as running:
        yield running


@dataclass
class Browser:
    """A browser before the doors: keeps cookies, follows nothing by itself."""

    app: Any
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, address: str, **headers: str) -> httpx.Response:
        """Ask for an address as a browser does that somebody types it into; other headers by name, with _ for -."""
        sent = PAGE | {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=PUBLIC) as client:
                return await client.get(address, headers=sent)

        answer = asyncio.run(ask())
        for said in answer.headers.get_list("set-cookie"):
            name, _, value = said.split(";")[0].partition("=")
            if "1970" in said or "Max-Age=0" in said:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    def part(self, address: str, **headers: str) -> httpx.Response:
        """Ask for a part of a page, as a script of ours does."""
        return self.get(address, sec_fetch_mode="cors", sec_fetch_site="same-origin", accept="*/*", **headers)

    def allowed_at_provider(self, subject: str, address: str = "/sign-in?next=/browse") -> str:
        """Go to the provider and sign in there as somebody. Returns the address that it sends the browser back to."""
        there = self.get(address).headers["location"]
        return httpx.post(there, data={"sub": subject}).headers["location"].removeprefix(PUBLIC)

    def sign_in(self, subject: str, address: str = "/sign-in?next=/browse") -> httpx.Response:
        """The whole way. Returns the answer to coming back."""
        return self.get(self.allowed_at_provider(subject, address))

    def socket(self, address: str = "/_stcore/stream", **headers: str) -> dict[str, Any] | None:
        """Open a socket. Returns what reached the application; None where it was refused before it was accepted."""
        sent = [(b"host", b"overread.example"), (b"origin", PUBLIC.encode())]
        sent += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        sent += [(b"cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()).encode())]
        scope = {
            "type": "websocket",
            "path": address,
            "raw_path": address.encode(),
            "query_string": b"",
            "headers": sent,
        }
        told: list[dict[str, Any]] = []

        async def open_() -> None:
            async def receive() -> dict[str, Any]:
                return {"type": "websocket.connect"}

            async def send(message: Any) -> None:
                told.append(message)

            await self.app(scope, receive, send)

        asyncio.run(open_())
        if told[0]["type"] == "websocket.close":
            return None
        reached: dict[str, Any] = json.loads(told[1]["text"])
        return reached


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Tells path and headers of what reached it."""
    reached = {"path": scope["path"], "headers": {name.decode(): value.decode() for name, value in scope["headers"]}}
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": json.dumps(reached)})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(reached).encode()})


@dataclass
class Server:
    """The doors of a server with one study or several."""

    app: SignedInOnly
    provider: Provider
    engine: Engine

    def browser(self) -> Browser:
        return Browser(self.app)

    def invitation(self, name: str) -> str:
        """The path of a link for a person of the first study."""
        return f"/invitation/{people.invite(self.engine, name, actor=ADMINISTRATOR)}"

    def signed_in(self, subject: str, name: str) -> Browser:
        """A browser in which somebody has signed in and come in by an invitation."""
        browser = self.browser()
        browser.sign_in(subject)
        assert browser.get(self.invitation(name)).headers["location"] == "/"
        return browser


MakeServer = Callable[..., Server]


@pytest.fixture
def serve(small: World, issuer: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeServer]:
    """Makes the doors before the study of two examples; settings by name, further studies by theirs."""
    with contextlib.ExitStack() as opened:

        def make(
            *, groups: dict[str, frozenset[Role]] | None = None, others: dict[str, str] | None = None, **said: Any
        ) -> Server:
            named = {"oidc_issuer": issuer, "oidc_client_id": "overread", "oidc_client_secret": "not to be told"}
            provider = provider_of(Settings(public_url=PUBLIC, **named | said))
            assert provider is not None
            listed = {"": Study("", small.location, "", groups or {})}
            if others is not None:
                listed = {"first": Study("first", small.location, "The first", groups or {})}
                listed |= {name: Study(name, location, name.title()) for name, location in others.items()}
            monkeypatch.setattr("evalcore.team.sign_in.studies", lambda: listed)
            engines = {small.location: small.engine}

            def engine_of(study: Study) -> Engine:
                if study.db not in engines:
                    engines[study.db] = open_study(study.db)
                    opened.callback(engines[study.db].dispose)
                return engines[study.db]

            app = SignedInOnly(echo, provider=provider, sign_ins=lambda: small.engine, study_engine=engine_of)
            return Server(app, provider, small.engine)

        yield make


@pytest.fixture
def server(serve: MakeServer) -> Server:
    return serve()
