"""The ASGI program: POST /v1/chat/completions and GET /v1/models in the OpenAI format, and GET /asked with what it was asked."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.judge_server.faults import UNREADABLE, Fault, Faults
from tests.judge_server.rule import answer_to, key_of, tokens

JSON = "application/json"
_SAID = {
    Fault.TIMED_OUT: (408, "the model took too long"),
    Fault.CONFLICT: (409, "the model is being loaded"),
    Fault.BROKEN: (500, "internal error"),
    Fault.UNAVAILABLE: (503, "overloaded"),
    Fault.BAD_REQUEST: (400, "the messages are longer than the model's context"),
    Fault.TOO_MANY: (429, "rate limit reached"),
    Fault.TOO_MANY_DATE: (429, "rate limit reached"),
    Fault.TOO_MANY_BARE: (429, "rate limit reached"),
}


@dataclass
class Told:
    """How the server behaves, and what it was asked; tests change and read it while it runs.

    Attributes:
        seed: Of the answers and of the faults.
        delay: Seconds before each reply.
        varied: Answers depend on the model's name and on how often the question was asked, too, as those of judges that sample.
        retry_after: Seconds that Retry-After says.
        trickle_seconds, stall_seconds, huge_bytes: Of these faults.
        finish: `finish_reason` of whole replies.
        key: Without it in the Authorization header a question is answered with 401; None: nobody needs one.
        asked: How often each question came (`key_of`).
        ended: Every try, in the order in which they were told: the question and the fault.
        in_flight, most_in_flight: Questions now, and the most at once.
        times: When each try came (`time.monotonic`), by question; only with `keep`.
        bodies: The parsed requests; only with `keep`.
        prompt_tokens, completion_tokens: Of all whole replies.
    """

    seed: object = 0
    faults: Faults = field(default_factory=Faults)
    delay: float = 0.0
    varied: bool = False
    retry_after: float = 1
    trickle_seconds: float = 0.2
    stall_seconds: float = 5.0
    huge_bytes: int = 20_000_000
    finish: str = "stop"
    key: str | None = None
    keep: bool = False
    asked: Counter[str] = field(default_factory=Counter)
    ended: list[tuple[str, Fault | None]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    times: dict[str, list[float]] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def n_asked(self) -> int:
        """How many tries came in all."""
        return self.asked.total()


def judge_app(told: Told) -> ASGIApp:
    """The program. It must run in uvicorn: the faults that break a connection reach for its transport."""

    async def completions(request: Request) -> Response:
        told.in_flight += 1
        told.most_in_flight = max(told.most_in_flight, told.in_flight)
        try:
            return await _completion(told, request)
        finally:
            told.in_flight -= 1

    async def models(_request: Request) -> Response:
        return _json(
            {"object": "list", "data": [{"id": "judge", "object": "model", "created": 0, "owned_by": "tests"}]}
        )

    async def asked(_request: Request) -> Response:
        return _json({"n_asked": told.n_asked, "most_in_flight": told.most_in_flight, "asked": dict(told.asked)})

    program = Starlette(
        routes=[
            Route("/v1/chat/completions", completions, methods=["POST"]),
            Route("/v1/models", models),
            Route("/asked", asked),
        ]
    )

    async def with_transport(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["transport"] = (
                send.__self__.transport
            )  # uvicorn's: below it there is nothing that could break a connection
        await program(scope, receive, send)

    return with_transport


async def _completion(told: Told, request: Request) -> Response:
    body = orjson.loads(await request.body())
    messages = body["messages"]
    key = key_of(messages)
    number = told.asked[key]
    told.asked[key] += 1
    if told.keep:
        told.times.setdefault(key, []).append(time.monotonic())
        told.bodies.append(body)
        told.headers.append(dict(request.headers))
    fault = told.faults.of(key, number, seed=told.seed)
    if told.faults.shares:
        told.ended.append((key, fault))
    if told.delay:
        await asyncio.sleep(told.delay)
    sent_key = request.headers.get("authorization", "").removeprefix("Bearer ")
    if fault is Fault.UNAUTHORIZED or (told.key is not None and sent_key != told.key):
        return _error(401, f"Incorrect API key provided: {sent_key}. You can find your key in the settings.")
    early = _refused(told, fault, body)
    if early is not None:
        return early
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    seed = (told.seed, body.get("model"), number) if told.varied else told.seed
    text = _spoilt(answer_to(key, messages, seed=seed, schema=schema), fault)
    whole = orjson.dumps(_reply(told, body, text, fault, number))
    if fault in _BROKEN_BODIES:
        return await _broken(told, request, fault, whole)
    return Response(whole, media_type=JSON)


def _json(said: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(said), status, headers, JSON)


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return _json({"error": {"message": message, "type": "error", "code": None}}, status, headers)


def _refused(told: Told, fault: Fault | None, body: dict[str, Any]) -> Response | None:
    """The replies that are no completion at all."""
    if fault is Fault.NO_SCHEMA and body.get("response_format"):
        return _error(400, "response_format of type json_schema is not supported by this model")
    if fault is Fault.REDIRECT:
        return Response(status_code=307, headers={"Location": "https://elsewhere.invalid/v1/chat/completions"})
    if fault not in _SAID:
        return None
    status, message = _SAID[fault]
    headers = {}
    if fault is Fault.TOO_MANY:
        headers = {"Retry-After": f"{told.retry_after:g}"}
    if fault is Fault.TOO_MANY_DATE:
        headers = {"Retry-After": formatdate(time.time() + told.retry_after, usegmt=True)}
    return _error(status, message, headers)


def _reply(told: Told, body: dict[str, Any], text: str, fault: Fault | None, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    finish = told.finish
    if fault is Fault.REFUSAL:
        message |= {"content": None, "refusal": "I cannot help with that."}
    if fault is Fault.CONTENT_FILTER:
        message["content"], finish = "", "content_filter"
    if fault is Fault.NULL_CONTENT:
        message["content"] = None
    usage = {
        "prompt_tokens": sum(tokens(m["content"]) + 4 for m in body["messages"]),
        "completion_tokens": tokens(text),
    }
    told.prompt_tokens += usage["prompt_tokens"]
    told.completion_tokens += usage["completion_tokens"]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model"),
        "choices": [] if fault is Fault.NO_CHOICES else [choice],
        "usage": usage | {"total_tokens": sum(usage.values())},
    }


def _spoilt(text: str, fault: Fault | None) -> str:
    """The text with what is wrong about it, or around it; advice without a form cannot be spoilt."""
    if fault is Fault.FENCED:
        return f"```json\n{text}\n```"
    if fault is Fault.TEXT_AROUND:
        return f"Here is my judgement.\n{text}\nI hope that this helps."
    if fault not in UNREADABLE:
        return text
    return _unreadable(text, fault) if text.startswith("{") else text.partition("\n\nACUITY:")[0]


def _unreadable(text: str, fault: Fault) -> str:
    parts = orjson.loads(text)
    label = "criteria_met" if "criteria_met" in parts else next(name for name in parts if name != "explanation")
    if fault is Fault.ARRAY:
        return f"[{text}]"
    if fault is Fault.TWO_OBJECTS:
        other = not parts[label] if isinstance(parts[label], bool) else {"A": "B"}.get(parts[label], "A")
        return text + "\n" + orjson.dumps(parts | {label: other}).decode()
    values = {Fault.WORD_TRUE: "true", Fault.ONE: 1, Fault.NULL: None}
    return orjson.dumps(parts | {label: values[fault]}).decode()


_BROKEN_BODIES = frozenset({
    Fault.DROPPED_BEFORE, Fault.DROPPED_WITHIN, Fault.TRICKLE, Fault.STALLED, Fault.MALFORMED, Fault.TRUNCATED, Fault.PAGE, Fault.HUGE,
})  # fmt: skip


async def _broken(told: Told, request: Request, fault: Fault, whole: bytes) -> Response:
    """The replies whose bytes are wrong, or do not come."""
    half = whole[: len(whole) // 2]
    if fault is Fault.MALFORMED:
        return Response(b"Internal Server Error: " + whole, media_type=JSON)
    if fault is Fault.TRUNCATED:
        return Response(half, media_type=JSON)
    if fault is Fault.PAGE:
        return Response("<!doctype html><title>Sign in</title><p>Your session has ended.</p>", media_type="text/html")
    transport = request.scope["transport"]
    if fault is Fault.DROPPED_BEFORE:
        transport.abort()
        await asyncio.sleep(0)
        return Response()

    async def parts() -> AsyncIterator[bytes]:
        if fault is Fault.TRICKLE:
            n_steps = 20
            size = -(-len(whole) // n_steps)
            for start in range(0, len(whole), size):
                yield whole[start : start + size]
                await asyncio.sleep(told.trickle_seconds / n_steps)
        elif fault is Fault.HUGE:
            yield whole.removesuffix(b"}") + b', "padding": "'
            for _ in range(told.huge_bytes // 65_536):
                if (
                    transport.is_closing()
                ):  # nobody reads any more: uvicorn would take the rest, and let nobody else have a turn
                    return
                yield b"x" * 65_536
            yield b'"}'
        else:
            yield half
            if fault is Fault.STALLED:
                await asyncio.sleep(told.stall_seconds)
            transport.close()

    return StreamingResponse(
        parts(), headers={"Content-Length": str(len(whole))} if fault is not Fault.HUGE else None, media_type=JSON
    )
