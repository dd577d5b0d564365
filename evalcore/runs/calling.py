"""One call of one question: what is sent, and what came of it, in the words that are written down."""

from typing import NamedTuple, Protocol

import msgspec

from evalcore.errors import JudgeReplyInvalid, RunRefused
from evalcore.runs.describing import Asked, Asker
from evalcore.runs.model_client import CallFailed
from evalcore.runs.prompts import Judged
from evalcore.study.run_words import CUT_OFF, MAX_RAW, Call, ChatRequest, ModelSettings, Outcome, Reply
from evalcore.study.store import is_storable


class Client(Protocol):
    """Who is asked, e.g. `model_client.ModelClient`."""

    async def ask(self, request: ChatRequest) -> Reply:
        """The reply; raises `CallFailed`."""


class Called(NamedTuple):
    """What came of a call.

    Attributes:
        answer: A judge's verdict or a model's answer; None where none came.
        may_be_asked_again: A whole reply came that cannot be read: another may be readable.
    """

    call: Call
    answer: Judged | str | None = None
    may_be_asked_again: bool = False


async def call(client: Client, asker: Asker, asked: Asked, model: ModelSettings) -> Called:
    """Ask once."""
    number = asked.question.question_id
    try:
        request = asker.request(asked)
    except RunRefused as error:  # these texts cannot be asked about; those of other questions can
        refused = Call(question_id=number, outcome=Outcome.REJECTED, error=storable(str(error)), attempts=0)
        return Called(refused)
    try:
        reply = await client.ask(request)
    except CallFailed as failed:
        return Called(_failed(number, failed, model))
    try:
        answer = asker.read(asked, reply.text)
    except JudgeReplyInvalid as invalid:
        cut = " (the reply was cut off at its longest)" if reply.finish == "length" else ""
        return Called(_replied(number, reply, model, error=f"{invalid}{cut}"), may_be_asked_again=True)
    done = _replied(number, reply, model)
    if isinstance(answer, str) and reply.finish == "length":
        done = msgspec.structs.replace(done, error=CUT_OFF)
    return Called(done, answer)


def _failed(number: int, failed: CallFailed, model: ModelSettings) -> Call:
    return Call(
        question_id=number,
        outcome=failed.outcome,
        status=failed.status,
        error=storable(failed.sentence),
        reply=None if failed.raw is None else storable(failed.raw),
        prompt_tokens=failed.prompt_tokens,
        completion_tokens=failed.completion_tokens,
        cost=model.cost(failed.prompt_tokens, failed.completion_tokens),
        attempts=failed.attempts,
        seconds=failed.seconds,
    )


def _replied(number: int, reply: Reply, model: ModelSettings, *, error: str | None = None) -> Call:
    return Call(
        question_id=number,
        outcome=Outcome.ANSWERED if error is None else Outcome.UNREADABLE,
        status=reply.status,
        error=None if error is None else storable(error),
        reply=None if error is None else storable(reply.text),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cost=model.cost(reply.prompt_tokens, reply.completion_tokens),
        attempts=reply.attempts,
        seconds=reply.seconds,
    )


def storable(text: str) -> str:
    r"""What a text column of both databases can hold of what came from a server, at most `MAX_RAW` characters.

    >>> storable("half \ud83d and \x00")
    'half ? and �'
    """
    if not is_storable(text):
        text = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    return text[:MAX_RAW]
