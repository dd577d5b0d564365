"""Ask a model over HTTP, in the OpenAI format: the only file that speaks to one. Retries and time are bounded; a key is sent and never kept."""

import asyncio
import ipaddress
import logging
import random
import time
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.request import getproxies, proxy_bypass

import httpx
import msgspec
import stamina
from httpx_aiohttp import AiohttpTransport

from evalcore.errors import RunRefused
from evalcore.runs.call_outcomes import MAX_REPLY, CallFailed, NoSchema, Received, TryAgain, completion_of
from evalcore.runs.chat_replies import Hider, one_line
from evalcore.study.run_words import ChatRequest, ModelSettings, Reply, is_address

__all__ = ["CallFailed", "ModelClient", "Patience"]

KEEP_ALIVE_SECONDS = 4.0
"""An idle connection is given up before the server does so: many servers do after 5 seconds, and a question sent then is lost."""
CONNECT_SECONDS = 20.0
_NO_TIME = 1e-9

# stamina logs each retry; without a handler Python would print that over a progress bar. Who sets up logging still gets it.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long one question is asked again.

    Attributes:
        attempts: Tries in all, 1 or more.
        seconds: No try begins later than so long after the first.
        wait_initial, wait_max: Seconds between tries: doubled each time, up to the most.
        wait_jitter: Up to so many random seconds more, so that questions that failed together do not come back together.
    """

    attempts: int = 6
    seconds: float = 300.0
    wait_initial: float = 0.5
    wait_max: float = 30.0
    wait_jitter: float = 1.0


class ModelClient:
    """Asks one model; at most `concurrency` questions are on their way at a time, however many ask.

    It hands its requests to the transport itself: httpx.AsyncClient, which would only hand them on, doubles the work of a question (redirects,
    cookies, and circular garbage). A proxy that the environment names is used, but never for an address of this machine.

    Raises:
        RunRefused: The key or the address cannot be sent.
    """

    def __init__(
        self, settings: ModelSettings, *, concurrency: int, key: str | None, patience: Patience | None = None
    ) -> None:
        self.settings = settings
        self._key = _checked_key(key)
        self._hider = Hider(key)
        self._patience = patience or Patience()
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._url = _address(settings)
        self._takes_schema = settings.structured is not False
        self._proxy = _proxy(self._url)
        self._headers = httpx.Headers({
            "Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip, deflate", "User-Agent": "overread",
            **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
        })  # fmt: skip
        self._limits = {"timeout": {"connect": CONNECT_SECONDS, "read": settings.timeout_seconds}}
        self._transport: AiohttpTransport | None = None

    async def __aenter__(self) -> Self:
        self._transport = AiohttpTransport(
            limits=httpx.Limits(
                max_connections=self._concurrency,
                max_keepalive_connections=self._concurrency,
                keepalive_expiry=KEEP_ALIVE_SECONDS,
            ),
            proxy=self._proxy,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    async def ask(self, request: ChatRequest) -> Reply:
        """The model's reply.

        Asked again, within the bounds of `Patience`: after transport errors, a reply that takes longer than `settings.timeout_seconds`, 408, 409,
        429 and 5xx (Retry-After obeyed), and bodies that are no whole chat completion. Not asked again: refusals, any other 4xx, redirects, and
        bodies of more than `MAX_REPLY` bytes. A 400 or 422 that names the JSON schema is asked again without it where `settings.structured` is None,
        and where that helps the schema is left out from then on.

        Raises:
            CallFailed: No answer came; nothing else is raised, except where the task itself is cancelled.
        """
        asked = _Asked(with_schema=self._takes_schema and request.schema is not None)
        try:
            try:
                return await self._tried(request, asked)
            except TryAgain as error:
                first = error
            return await self._tried_again(first, request, asked)
        except CallFailed as error:
            failed = error
        failed.attempts, failed.seconds = asked.tries, asked.seconds
        raise failed

    async def _tried_again(self, first: TryAgain, request: ChatRequest, asked: "_Asked") -> Reply:
        """The tries after the first, which is told to stamina as its first: most questions need none, and its books cost a third of a try."""
        patience = self._patience
        told: list[TryAgain] = [first]

        def wait(error: Exception) -> bool | float:
            if not isinstance(error, TryAgain) or error.wait is None:
                return isinstance(error, TryAgain)
            seconds = error.wait + random.uniform(0, patience.wait_jitter)  # noqa: S311 - no secret
            return seconds if asked.seconds + seconds <= patience.seconds else False

        async for attempt in stamina.retry_context(
            on=wait,
            attempts=patience.attempts,
            timeout=max(patience.seconds - asked.seconds, _NO_TIME),
            wait_initial=patience.wait_initial,
            wait_max=patience.wait_max,
            wait_jitter=patience.wait_jitter,
        ):
            with attempt:
                if told:
                    raise told.pop()
                return await self._tried(request, asked)
        raise first

    async def _tried(self, request: ChatRequest, asked: "_Asked") -> Reply:
        if asked.with_schema:
            try:
                return await self._once(request, asked)
            except NoSchema:
                asked.with_schema, asked.was_not_taken = False, True
        reply = await self._once(request, asked)
        self._takes_schema = self._takes_schema and not asked.was_not_taken
        return reply

    async def _once(self, request: ChatRequest, asked: "_Asked") -> Reply:
        asked.tries += 1
        received = await self._sent(self._body(request, with_schema=asked.with_schema))
        try:
            completion = completion_of(received, may_drop_schema=asked.with_schema and self.settings.structured is None)
        except CallFailed as error:
            error.take_down(received, self._hider)
            raise
        return Reply(
            text=self._hider.hide(completion.text),
            status=received.status or 0,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            finish=completion.finish and self._hider.hide(completion.finish),
            attempts=asked.tries,
            seconds=asked.seconds,
        )

    def _body(self, request: ChatRequest, *, with_schema: bool) -> bytes:
        settings = self.settings
        body: dict[str, object] = {"model": settings.api_model, "messages": request.messages}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            body["max_tokens"] = settings.max_tokens
        if with_schema:
            schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return msgspec.json.encode(body)

    async def _sent(self, body: bytes) -> Received:
        """One try: what came until the reply was whole, too long, or broken off. Errors of libraries end here: they carry the headers sent."""
        received, transport = Received(), self._transport
        if transport is None:
            msg = "a client is used inside its `async with`"
            raise RuntimeError(msg)
        async with self._slots:
            try:
                async with asyncio.timeout(self.settings.timeout_seconds):
                    await self._receive(transport, body, received)
            except TimeoutError:
                received.broke = f"no whole reply came within {self.settings.timeout_seconds:g} seconds"
            except Exception as error:  # noqa: BLE001 - whatever a library raises of one reply, the question has failed and the run goes on
                received.broke = _how(error)
        return received

    async def _receive(self, transport: AiohttpTransport, body: bytes, received: Received) -> None:
        request = httpx.Request("POST", self._url, headers=self._headers, content=body, extensions=self._limits)
        response = await transport.handle_async_request(request)
        received.status, received.retry_after = response.status_code, response.headers.get("Retry-After")
        try:
            async for part in response.aiter_bytes():
                received.body += part
                if len(received.body) > MAX_REPLY:
                    received.is_long = True
                    break
        finally:
            await response.aclose()


class _Asked:
    """How asking one question goes."""

    def __init__(self, *, with_schema: bool) -> None:
        self.with_schema, self.was_not_taken = with_schema, False
        self.tries, self._started = 0, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started


def _how(error: Exception) -> str:
    """Why there is no whole reply. An error of a proxy may name the proxy with its password, and is not quoted."""
    if isinstance(error, httpx.ProxyError):
        return "the proxy did not let the question through"
    cause = (
        error.__cause__ or error
    )  # httpx-aiohttp calls every broken connection a timeout; its cause says what it was
    return f"the connection failed: {one_line(str(cause)) or type(cause).__name__}"


def _checked_key(key: str | None) -> str | None:
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        msg = "the key holds a blank, a line break or another character that no key has; copy it again"
        raise RunRefused(msg)
    return key or None


def _address(settings: ModelSettings) -> httpx.URL:
    if is_address(settings.base_url):
        with suppress(httpx.InvalidURL):
            return httpx.URL(f"{settings.base_url.rstrip('/')}/chat/completions")
    msg = f"{settings.name}: the base URL is no address such as http://127.0.0.1:8000/v1, without user name, password and query"
    raise RunRefused(msg)


def _proxy(url: httpx.URL) -> httpx.Proxy | None:
    """The proxy that the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) names for this address."""
    known = getproxies()
    address = known.get(url.scheme) or known.get("all")
    if not address or _is_here(url.host) or proxy_bypass(url.host):
        return None
    try:
        proxy = httpx.Proxy(address)
    except (httpx.InvalidURL, ValueError):
        proxy = None
    if proxy is None or proxy.url.scheme not in ("http", "https"):
        msg = "the proxy that the environment names is none for HTTP; NO_PROXY lists the hosts that are reached without one"
        raise RunRefused(msg)
    return proxy


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
