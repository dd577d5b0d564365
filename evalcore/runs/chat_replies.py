"""What a server's reply to a chat request says: the text of a whole completion, or why there is none. Nothing here speaks HTTP."""

import json
import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import msgspec
import orjson

from evalcore.study.run_words import MAX_RAW

HIDDEN = "[key]"
"""What stands where a server has echoed the key."""
SHORTEST_KEY = 6
"""Fewer characters are a placeholder (EMPTY, none), and may be a word of an answer."""
_MAX_SENTENCE = 300
_MAX_TOKENS = 2**31 - 1
_FILTERED = ("content_filter", "content_policy_violation")


class NoCompletion(ValueError):
    """A body that is no whole chat completion: the sentence says what came."""


class Completion(msgspec.Struct, frozen=True, gc=False):
    """A whole chat completion.

    Attributes:
        text: What the model said; "" where it declined without a word.
        refusal: Why it is no answer, one sentence; None where it is one.
        finish: Why it ended, as the server says.
        prompt_tokens, completion_tokens: As the server counts; None where it does not say, or no count.
    """

    text: str
    refusal: str | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


def read(body: bytes) -> Completion:
    """The completion that a body holds.

    Raises:
        NoCompletion: The body is not whole JSON, or has no choice with a text or a refusal.
    """
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        came = "an empty body" if not body.strip() else f"a body of {len(body):,} bytes that is no JSON"
        msg = f"{came} came, expected a chat completion"
        raise NoCompletion(msg) from None
    choices = said.get("choices") if isinstance(said, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        told = error_message(body) if isinstance(said, dict) and said.get("error") else ""
        msg = f"JSON without choices came, expected a chat completion{f': {told}' if told else ''}"
        raise NoCompletion(msg)
    choice = choices[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        msg = "a choice without a message came, expected a chat completion"
        raise NoCompletion(msg)
    finish = choice.get("finish_reason")
    text, refusal = message.get("content"), _refusal(message, finish)
    if not isinstance(text, str) and refusal is None:
        msg = f"a message whose content is {_kind(text)} came, expected text (it ended with {str(finish)!r})"
        raise NoCompletion(msg)
    usage = said.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Completion(
        text=storable(text) if isinstance(text, str) else "",
        refusal=refusal,
        finish=storable(finish) if isinstance(finish, str) else None,
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


def _refusal(message: dict[str, Any], finish: object) -> str | None:
    declined = message.get("refusal")
    if isinstance(declined, str) and declined.strip():
        return f"the model refused: {one_line(declined)}"
    return "the server's content filter held the answer back" if finish == "content_filter" else None


def _count(said: object) -> int | None:
    is_count = isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= _MAX_TOKENS
    return said if is_count else None  # type: ignore[return-value]


def _kind(value: object) -> str:
    return {type(None): "null", dict: "an object", list: "a list", bool: "true or false"}.get(type(value), "a number")


def error_message(body: bytes) -> str:
    """What a server says of an error, on one line: `error.message`, `message` or `detail` of the JSON, else the text."""
    said = _json(body)
    if isinstance(said, dict):
        error = said.get("error")
        parts = (error.get("message") if isinstance(error, dict) else error, said.get("message"), said.get("detail"))
        found = next((part for part in parts if part), None)
        if found is not None:
            return one_line(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))
    return one_line(body[:MAX_RAW].decode("utf-8", "replace"))


def names_schema(body: bytes) -> bool:
    """Whether an error says that the JSON schema is what it does not take."""
    return b"response_format" in body or b"json_schema" in body


def is_filtered(body: bytes) -> bool:
    """Whether an error says that a content filter held the question back, which some servers tell as a 400."""
    said = _json(body)
    error = said.get("error") if isinstance(said, dict) else None
    return isinstance(error, dict) and error.get("code") in _FILTERED


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from now that a Retry-After header asks to wait, 0 or more: seconds or an HTTP date; None where it says neither.

    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> retry_after("2.5", noon), retry_after("Thu, 01 Jan 2026 12:01:00 GMT", noon), retry_after("soon", noon)
    (2.5, 60.0, None)
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def one_line(text: str) -> str:
    """A text with one blank for all that separates its words."""
    return " ".join(text.split())


def storable(text: str) -> str:
    """The text with a replacement character for each NUL, which PostgreSQL does not take."""
    return text.replace("\x00", "\ufffd")


class Hider:
    """Takes a key out of texts: as it is, and as JSON or an address writes it. A key of a few characters is a placeholder, and stays.

    >>> Hider("sk-12345678").hide("Incorrect key: sk-12345678"), Hider("EMPTY").hide("EMPTY"), Hider(None).hide("none")
    ('Incorrect key: [key]', 'EMPTY', 'none')
    """

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
