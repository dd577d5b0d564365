"""The errors of Overread. Each message says where, what was expected and what came; pages and commands show it as it is."""

import re
from collections.abc import Iterable, Mapping
from typing import NoReturn

import msgspec

_AT = re.compile(r" - at `(key in )?\$(?P<path>[^`]*)`$")
_KINDS = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list", "object": "keys with values",
    "date": "a date", "null": "nothing",
}  # fmt: skip
_KIND = re.compile(rf"`?\b({'|'.join(_KINDS)})\b`?")


class OverreadError(Exception):
    """Anything that went wrong and that a reader can do something about."""


def refuse(sentence: str, kind: type[OverreadError] = OverreadError) -> NoReturn:
    """Raise an OverreadError with this sentence."""
    raise kind(sentence)


class DatabaseFault(Exception):
    """The database itself failed: locked, away, full or read-only; the act may be tried again as it was. `reason`: the driver's words, on one line."""

    def __init__(self, sentence: str, reason: str) -> None:
        self.reason = reason
        super().__init__(sentence)


class ReadOnly(DatabaseFault):
    """The study lies on media that cannot be written, or on a standby server: it can be read, and nothing is kept of that."""


class NotAllowed(OverreadError):
    """A rule of `policies` forbids the act; the message is the sentence that the screen shows."""


class Frozen(NotAllowed):
    """The study is frozen: nothing of it is changed until a lead opens it again."""


class AlreadyChanged(OverreadError):
    """Somebody else was first: the verdict that was to be superseded has been superseded already."""


class NotFound(OverreadError):
    """A name or number that nothing in the study carries."""


class ImportFailed(OverreadError):
    """A file was refused whole: the first 20 faults, one sentence each, of `n_faults` in all."""

    def __init__(self, faults: list[str], n_faults: int | None = None) -> None:
        self.faults = faults
        self.n_faults = max(len(faults), n_faults or 0)
        super().__init__("\n".join(faults))


class RowFault(OverreadError):
    """One row that cannot be read: `field: expected ..., got ...`. The importer adds file and line."""


class JudgeReplyInvalid(OverreadError):
    """A judge's reply that is not what was asked for: the message says what came. It is never a verdict."""


class RunRefused(OverreadError):
    """A run cannot be started or gone on with as asked for."""


def shape_fault(error: msgspec.ValidationError, words: Mapping[str, Iterable[str]]) -> str:
    """Where a value has another shape than its type, and what was expected: `weights.under: expected a number >= 0.0`.

    The known keys or words are by path ("" the whole); a list's stand under the path of the list.
    """
    message = str(error).replace(" | null", "")
    at = _AT.search(message)
    path = (at["path"] if at else "").lstrip(".")
    expected, comma, got = _AT.sub("", message).partition(", got ")
    known = words.get(re.sub(r"\[\d+\]$", "", path))
    if known is not None and not expected.startswith(("Expected", "Object missing")):
        wrong = re.search(r"[`'](.*)[`']$", expected)
        expected, comma, got = f"expected {', '.join(known)}", ", got ", repr(wrong[1]) if wrong else "another"
    elif expected.startswith("Object missing"):
        expected, comma, got = f"expected {expected.split('`')[1]}", ", got ", "nothing"
    place = f"{path}: " if path else ""
    return place + _KIND.sub(lambda kind: _KINDS[kind[1]], expected[:1].lower() + expected[1:] + comma + got)
