"""Asking the judge server through the client of models, for its tests."""

import asyncio

from evalcore.runs.model_client import MAX_REPLY, CallFailed, ModelClient, Patience
from evalcore.runs.spec import ChatRequest, ModelSettings, Reply
from evalcore.study.schema import Message
from tests.judge_server import Judge, Told

KEY = "sk-test-8f2e77c1d04b"
QUICK = Patience(attempts=3, seconds=20, wait_initial=0.005, wait_max=0.01, wait_jitter=0.005)
SCHEMA = {
    "type": "object",
    "properties": {"explanation": {"type": "string"}, "criteria_met": {"type": "boolean"}},
    "required": ["explanation", "criteria_met"],
    "additionalProperties": False,
}


def question(text: str = "Is it met?", *, schema: dict | None = SCHEMA) -> ChatRequest:
    return ChatRequest((Message("system", 'Reply with "criteria_met".'), Message("user", text)), schema, "verdict")


def reset(running: Judge, **told: object) -> None:
    fresh = Told(
        **{"stall_seconds": 0.02, "trickle_seconds": 0.05, "huge_bytes": MAX_REPLY + 1_000_000, "keep": True} | told
    )
    for field in running.told.__dataclass_fields__:
        setattr(running.told, field, getattr(fresh, field))


def client(
    judge: Judge, *, key: str | None = KEY, patience: Patience = QUICK, concurrency: int = 10, **options: object
) -> ModelClient:
    model = ModelSettings(**{"name": "judge", "base_url": judge.base_url, "api_model": "judge-1"} | options)
    return ModelClient(model, concurrency=concurrency, key=key, patience=patience)


async def ended(asking: ModelClient, request: ChatRequest) -> Reply | CallFailed:
    try:
        return await asking.ask(request)
    except CallFailed as failed:
        return failed


def asked(judge: Judge, *requests: ChatRequest, **options: object) -> list[Reply | CallFailed]:
    """What came of each question, all asked at once."""

    async def ask() -> list[Reply | CallFailed]:
        async with client(judge, **options) as asking:
            return await asyncio.gather(*(ended(asking, request) for request in requests))

    return asyncio.run(ask())
