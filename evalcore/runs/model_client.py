"""Ask a model over HTTP, in the OpenAI format: the only file that speaks to one."""

import asyncio
import ipaddress
import json
import logging
import math
import random
import time
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote
from urllib.request import getproxies, proxy_bypass

import httpx
import msgspec
import orjson
import stamina
from httpx_aiohttp import AiohttpTransport

from evalcore.errors import OverreadError, RunRefused
from evalcore.runs.spec import MAX_RAW, ChatRequest, ModelSettings, Reply, is_address, refuse, storable
from evalcore.study.schema import Outcome

HIDDEN = "[key]"  # what stands where a server has echoed the key
SHORTEST_KEY = 6  # fewer characters are a placeholder (EMPTY, none), and may be a word of an answer
_MAX_SENTENCE = 300
_MAX_TOKENS = 2**31 - 1
_FILTERED = ("content_filter", "content_policy_violation")
MAX_REPLY = 4_000_000  # bytes of a reply that are read: the longest answers have a tenth
_AGAIN = frozenset({408, 409, 429})
_OK, _NOT_OK, _SERVER_ERROR = 200, 300, 500
_SCHEMA_NOT_TAKEN = (400, 422)


class Received:
    """What came of one try; `broke` says why it is not whole."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.retry_after: str | None = None
        self.body = bytearray()
        self.is_long = False
        self.broke = ""


class CallFailed(OverreadError):
    """No answer came of a question. `raw`: the last reply without the key; `wait`: seconds after which the server says that another try may bring one."""

    status: int | None = None
    raw: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    seconds: float = 0.0

    def __init__(self, outcome: Outcome, sentence: str, *, wait: float | None = None) -> None:
        super().__init__(outcome, sentence)
        self.outcome, self.sentence, self.wait = outcome, sentence, wait

    def __str__(self) -> str:
        return self.sentence


class TryAgain(CallFailed):
    """No whole reply: another try may bring one."""


class NoSchema(CallFailed):
    """The server does not take the JSON schema."""


def completion_of(received: Received, *, may_drop_schema: bool) -> Reply:
    """The reply that was received. NoSchema: the server does not take the schema; TryAgain: no whole reply; CallFailed: for good."""
    if received.broke:
        raise TryAgain(Outcome.UNREACHABLE, received.broke)
    status, body = received.status or 0, bytes(received.body)
    if not _OK <= status < _NOT_OK:
        words = error_message(body)
        phrase = next((f" {known.phrase}" for known in HTTPStatus if known == status), "")
        sentence = f"the server answered {status}{phrase}{f': {words}' if words else ''}"
        if status in _AGAIN or status >= _SERVER_ERROR:
            wait = retry_after(received.retry_after, datetime.now(UTC))
            raise TryAgain(Outcome.UNREACHABLE, sentence, wait=wait)
        if may_drop_schema and status in _SCHEMA_NOT_TAKEN and (b"response_format" in body or b"json_schema" in body):
            raise NoSchema(Outcome.REJECTED, sentence)
        raise CallFailed(Outcome.REFUSED if is_filtered(body) else Outcome.REJECTED, sentence)
    if received.is_long:
        msg = f"expected a reply of at most {MAX_REPLY:,} bytes, got more"
        raise CallFailed(Outcome.UNREADABLE, msg)
    return read(body, status)


def read(body: bytes, status: int = _OK) -> Reply:
    """The reply that a body holds. TryAgain: it is not whole JSON, or has no choice with a text or a refusal; CallFailed: it is a refusal."""
    try:
        whole = orjson.loads(body)
    except orjson.JSONDecodeError:
        came = "an empty body" if not body.strip() else f"a body of {len(body):,} bytes that is not JSON"
        msg = f"expected a chat completion, got {came}"
        raise TryAgain(Outcome.UNREADABLE, msg) from None
    choices = whole.get("choices") if isinstance(whole, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        words = error_message(body) if isinstance(whole, dict) and whole.get("error") else ""
        msg = f"expected a chat completion{f': {words}' if words else ''}, got JSON without choices"
        raise TryAgain(Outcome.UNREADABLE, msg)
    message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, dict):
        msg = "expected a chat completion, got a choice without a message"
        raise TryAgain(Outcome.UNREADABLE, msg)
    usage = whole.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    tokens: dict[str, Any] = {
        name: counts[name] if type(counts.get(name)) is int and 0 <= counts[name] <= _MAX_TOKENS else None
        for name in ("prompt_tokens", "completion_tokens")
    }
    text, declined, refusal = message.get("content"), message.get("refusal"), None
    if isinstance(declined, str) and declined.strip():
        refusal = f"the model refused: {one_line(declined)}"
    elif finish == "content_filter":
        refusal = "the server's content filter held the answer back"
    if refusal is not None:
        failed = CallFailed(Outcome.REFUSED, refusal)
        failed.prompt_tokens, failed.completion_tokens = tokens.values()
        raise failed
    if not isinstance(text, str):
        kinds = {type(None): "null", dict: "an object", list: "a list", bool: "true or false"}
        kind = kinds.get(type(text), "a number")
        msg = f"expected text, got a message whose content is {kind} (it ended with {str(finish)!r})"
        raise TryAgain(Outcome.UNREADABLE, msg)
    return Reply(storable(text), status, finish=storable(finish) if isinstance(finish, str) else None, **tokens)


def error_message(body: bytes) -> str:
    """A server's words on an error, on one line: `error.message`, `message` or `detail` of the JSON, else the text."""
    whole = _json_object(body)
    error = whole.get("error")
    parts = (error.get("message") if isinstance(error, dict) else error, whole.get("message"), whole.get("detail"))
    words = next((part for part in parts if part), None)
    if words is None:
        return one_line(body[:MAX_RAW].decode("utf-8", "replace"))
    return one_line(words if isinstance(words, str) else json.dumps(words, ensure_ascii=False))


def is_filtered(body: bytes) -> bool:
    """Whether an error says that a content filter held the question back, which some servers tell as a 400."""
    error = _json_object(body).get("error")
    return isinstance(error, dict) and error.get("code") in _FILTERED


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        whole = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return whole if isinstance(whole, dict) else {}


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from now that a Retry-After header asks to wait, 0 or more: seconds or an HTTP date; None where it says neither."""
    try:
        seconds = float(value or "")
    except ValueError:
        try:
            moment = parsedate_to_datetime(value or "")
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def one_line(text: str) -> str:
    """A text with one blank for all that separates its words."""
    return " ".join(text.split())


class Hider:
    """Takes a key out of texts: as it is, and as JSON or an address writes it. A key of a few characters is a placeholder, and stays."""

    def __init__(self, key: str | None) -> None:
        self._key = key if key and len(key) >= SHORTEST_KEY else ""
        escaped = json.dumps(self._key)[1:-1]
        forms = {self._key, escaped, escaped.replace("/", "\\/"), quote(self._key), quote(self._key, safe="")}
        self._forms = sorted(forms - {""}, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text with `[key]` wherever the key stands."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def sentence(self, text: str) -> str:
        """A text as one sentence: on one line, without the key, and only then cut to 300 characters, so that no part of a key is left."""
        line = self.hide(one_line(storable(text)))
        return line if len(line) <= _MAX_SENTENCE else line[: _MAX_SENTENCE - 3] + "..."

    def kept(self, body: bytes) -> str | None:
        """A body as it is kept beside a failure: at most `MAX_RAW` characters without the key; None where nothing came.

        The end of the body may be the beginning of a key, where the connection broke: that is hidden, too.
        """
        text = self.hide(storable(body.decode("utf-8", "replace")))
        for length in range(len(self._key) - 1, SHORTEST_KEY // 2 - 1, -1):
            if text.endswith(self._key[:length]):
                text = text[:-length] + HIDDEN
        return text[:MAX_RAW] or None


KEEP_ALIVE_SECONDS = 4.0  # many servers end an idle connection after 5 seconds, and a question sent then is lost
CONNECT_SECONDS = 20.0
_NO_TIME = 1e-9

# stamina logs each retry; without a handler Python would print that over a progress bar. Who sets up logging still gets it.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How one question is asked again: tries in all, the seconds between them (doubled up to the most), and up to how many random ones more."""

    attempts: int = 6
    seconds: float = 300.0
    wait_initial: float = 0.5
    wait_max: float = 30.0
    wait_jitter: float = 1.0


class ModelClient:
    """Asks one model; at most `concurrency` questions are on their way at a time. RunRefused: the key or the address cannot be sent.

    It hands its requests to the transport itself: httpx.AsyncClient doubles the work of a question (redirects, cookies, and circular garbage). A proxy
    that the environment names is used, but never for an address of this machine.
    """

    def __init__(
        self, settings: ModelSettings, *, concurrency: int, key: str | None, patience: Patience | None = None
    ) -> None:
        if key and not (key.isascii() and key.isprintable() and " " not in key):
            refuse("the key holds a blank, a line break or another character that no key has; copy it again")
        self.settings = settings
        self._hider = Hider(key)
        self._patience = patience or Patience()
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._url = _address(settings)
        self._takes_schema = settings.structured is not False
        self._proxy = _proxy(self._url)
        self._headers = httpx.Headers({
            "Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "gzip, deflate", "User-Agent": "overread",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        })  # fmt: skip
        self._limits = {"timeout": {"connect": CONNECT_SECONDS, "read": settings.timeout_seconds}}
        self._transport: AiohttpTransport | None = None

    async def __aenter__(self) -> Self:
        n = self._concurrency
        limits = httpx.Limits(max_connections=n, max_keepalive_connections=n, keepalive_expiry=KEEP_ALIVE_SECONDS)
        self._transport = AiohttpTransport(limits=limits, proxy=self._proxy)
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._transport is not None:
            await self._transport.aclose()
            self._transport = None

    async def ask(self, request: ChatRequest) -> Reply:
        """The model's reply; CallFailed: no answer came, and nothing else is raised.

        Asked again, within the bounds of `Patience`: after transport errors, a reply that takes longer than `settings.timeout_seconds`, 408, 409,
        429 and 5xx (Retry-After obeyed), and bodies that are no whole chat completion. Not asked again: refusals, any other 4xx, redirects, and
        bodies of more than `MAX_REPLY` bytes. A 400 or 422 that names the JSON schema is asked again without it, and so from then on, where it may be.
        """
        asked = _Asked(with_schema=self._takes_schema and request.schema is not None)
        try:
            try:
                return await self._tried(request, asked)
            except TryAgain as error:
                first = error
            return await self._tried_again(first, request, asked)
        except CallFailed as failed:
            failed.attempts, failed.seconds = asked.tries, asked.seconds
            raise

    async def _tried_again(self, first: TryAgain, request: ChatRequest, asked: "_Asked") -> Reply:
        """The tries after the first, which is told to stamina as its first: most questions need none, and its books cost a third of a try."""
        patience = self._patience
        told: list[TryAgain] = [first]

        def wait(error: Exception) -> bool | float:
            if not isinstance(error, TryAgain) or error.wait is None:
                return isinstance(error, TryAgain)
            seconds = error.wait + random.uniform(0, patience.wait_jitter)  # noqa: S311 - no secret
            return seconds if asked.seconds + seconds <= patience.seconds else False

        waits = {name: getattr(patience, name) for name in ("attempts", "wait_initial", "wait_max", "wait_jitter")}
        left = max(patience.seconds - asked.seconds, _NO_TIME)
        async for attempt in stamina.retry_context(on=wait, timeout=left, **waits):
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
            reply = completion_of(received, may_drop_schema=asked.with_schema and self.settings.structured is None)
        except CallFailed as error:  # what was received is kept, and no key in any word
            error.sentence = self._hider.sentence(error.sentence)
            error.args = (error.outcome, error.sentence)
            error.status, error.raw = received.status, self._hider.kept(bytes(received.body))
            raise
        said = {"text": self._hider.hide(reply.text), "finish": reply.finish and self._hider.hide(reply.finish)}
        return msgspec.structs.replace(reply, attempts=asked.tries, seconds=asked.seconds, **said)

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
        request = httpx.Request("POST", self._url, headers=self._headers, content=body, extensions=self._limits)
        async with self._slots:
            try:
                async with asyncio.timeout(self.settings.timeout_seconds):
                    response = await transport.handle_async_request(request)
                    received.status, received.retry_after = response.status_code, response.headers.get("Retry-After")
                    async with aclosing(response):
                        async for part in response.aiter_bytes():
                            received.body += part
                            received.is_long = len(received.body) > MAX_REPLY
                            if received.is_long:
                                break
            except TimeoutError:
                received.broke = f"no whole reply came within {self.settings.timeout_seconds:g} seconds"
            except httpx.ProxyError:  # its words may name the proxy with its password
                received.broke = "the proxy did not let the question through"
            except Exception as error:  # noqa: BLE001 - whatever a library raises of one reply, the question has failed and the run goes on
                cause = error.__cause__ or error  # of httpx-aiohttp, which calls every broken connection a timeout
                received.broke = f"the connection failed: {one_line(str(cause)) or type(cause).__name__}"
        return received


class _Asked:
    def __init__(self, *, with_schema: bool) -> None:
        self.with_schema, self.was_not_taken = with_schema, False
        self.tries, self._started = 0, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started


def _address(settings: ModelSettings) -> httpx.URL:
    if is_address(settings.base_url):
        with suppress(httpx.InvalidURL):
            return httpx.URL(f"{settings.base_url.rstrip('/')}/chat/completions")
    msg = f"{settings.name}: the base URL is no address such as http://127.0.0.1:8000/v1, without user name, password and query"
    raise RunRefused(msg)


def _proxy(url: httpx.URL) -> httpx.Proxy | None:
    known = getproxies()
    address, is_here = known.get(url.scheme) or known.get("all"), url.host.split(".")[-1] == "localhost"
    with suppress(ValueError):
        is_here = ipaddress.ip_address(url.host).is_loopback
    if not address or is_here or proxy_bypass(url.host):
        return None
    try:
        proxy = httpx.Proxy(address)
    except (httpx.InvalidURL, ValueError):
        proxy = None
    if proxy is None or proxy.url.scheme not in ("http", "https"):
        none = "the proxy that the environment names is none for HTTP"
        refuse(f"{none}; NO_PROXY lists the hosts that are reached without one")
    return proxy
