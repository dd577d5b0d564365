"""What comes of a call: a whole completion, or an error that says why there is none and whether another try may bring one."""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import NoReturn

from evalcore.errors import OverreadError
from evalcore.runs import chat_replies
from evalcore.runs.chat_replies import Completion, Hider, NoCompletion
from evalcore.study.run_words import Outcome

MAX_REPLY = 4_000_000
"""Bytes of a reply that are read: the longest answers have a tenth."""
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
    """No answer came of a question.

    Attributes:
        outcome: UNREACHABLE, UNREADABLE (whole replies, none of them a chat completion), REFUSED or REJECTED.
        sentence: Why. It holds no key.
        status: Of the last HTTP reply; None where there was none.
        raw: What the last reply held, without the key, at most `MAX_RAW` characters; None where nothing came.
        attempts: How many times it was sent.
        seconds: From the first try to the end of the last.
        prompt_tokens, completion_tokens: Of a refusal, where the server counts them.
    """

    def __init__(
        self, outcome: Outcome, sentence: str, *, status: int | None = None, raw: str | None = None,
        prompt_tokens: int | None = None, completion_tokens: int | None = None, wait: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(outcome, sentence)
        self.outcome, self.sentence, self.wait = outcome, sentence, wait
        self.status, self.raw = status, raw
        self.prompt_tokens, self.completion_tokens = prompt_tokens, completion_tokens
        self.attempts, self.seconds = 1, 0.0

    def __str__(self) -> str:
        return self.sentence

    def take_down(self, received: Received, hider: Hider) -> None:
        """Keep what was received, and no key in any word."""
        self.sentence = hider.sentence(self.sentence)
        self.args = (self.outcome, self.sentence)
        self.status, self.raw = received.status, hider.kept(bytes(received.body))


class TryAgain(CallFailed):
    """No whole reply: another try may bring one, after `wait` seconds where the server says so."""


class NoSchema(CallFailed):
    """The server does not take the JSON schema."""


def completion_of(received: Received, *, may_drop_schema: bool) -> Completion:
    """The completion that was received.

    Raises:
        NoSchema: The server does not take the JSON schema, and it may be left out.
        TryAgain: No whole reply.
        CallFailed: What another try would not change.
    """
    if received.broke:
        raise TryAgain(Outcome.UNREACHABLE, received.broke)
    if received.status is None or not _OK <= received.status < _NOT_OK:
        _raise_status(received, may_drop_schema=may_drop_schema)
    if received.is_long:
        msg = f"a reply of more than {MAX_REPLY:,} bytes came"
        raise CallFailed(Outcome.UNREADABLE, msg)
    try:
        completion = chat_replies.read(bytes(received.body))
    except NoCompletion as error:
        raise TryAgain(Outcome.UNREADABLE, str(error)) from None
    if completion.refusal is not None:
        raise CallFailed(
            Outcome.REFUSED,
            completion.refusal,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
        )
    return completion


def _raise_status(received: Received, *, may_drop_schema: bool) -> NoReturn:
    status, body = received.status or 0, bytes(received.body)
    said = chat_replies.error_message(body)
    sentence = f"the server answered {_words(status)}{f': {said}' if said else ''}"
    if status in _AGAIN or status >= _SERVER_ERROR:
        wait = chat_replies.retry_after(received.retry_after, datetime.now(UTC))
        raise TryAgain(Outcome.UNREACHABLE, sentence, wait=wait)
    if may_drop_schema and status in _SCHEMA_NOT_TAKEN and chat_replies.names_schema(body):
        raise NoSchema(Outcome.REJECTED, sentence)
    raise CallFailed(Outcome.REFUSED if chat_replies.is_filtered(body) else Outcome.REJECTED, sentence)


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
