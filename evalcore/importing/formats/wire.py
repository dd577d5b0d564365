"""Bytes to typed rows, and what is wrong with a row in one sentence: `field: expected ..., got ...`."""

import re
from typing import Any, TypeVar

import msgspec
import orjson

from evalcore.errors import RowFault
from evalcore.study.schema import (
    CannotReason,
    Cause,
    ConflictCause,
    ErrorKind,
    Label,
    RaterKind,
    Selection,
    Severity,
    Stage,
)

T = TypeVar("T")

_PATH = re.compile(r" - at `(key in )?\$(?P<path>[^`]*)`$")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_TYPE = re.compile(rf"\b({'|'.join(_TYPES)})\b")
MAX_SHOWN = 80
MAX_ENTRIES = 1_000_000
_LOOKED_INTO = 1 << 24
"""Bytes. In a larger document a wrong value is not looked up for its fault: as Python's own values it would fill the memory."""
_BEFORE = 10
_WORDS = {
    "label": Label,
    "rater_kind": RaterKind,
    "stage": Stage,
    "cause": Cause,
    "severity": Severity,
    "error_kind": ErrorKind,
    "reason": CannotReason,
    "conflict_cause": ConflictCause,
    "selection": Selection,
}


def decode(line: bytes | msgspec.Raw, kind: type[T]) -> T:
    """One JSON value of a known shape.

    Raises:
        RowFault: It is no JSON, no UTF-8, of another shape, or holds text that no database can hold.
    """
    data = bytes(line)
    try:
        if not data.isascii():
            data.decode()  # a part that is skipped is not looked at below
        row = msgspec.json.decode(data, type=kind)
    except UnicodeDecodeError as error:
        raise RowFault(not_utf8(error)) from error
    except msgspec.ValidationError as error:
        raise RowFault(_wrong_value(str(error).replace(" | null", " or nothing"), data)) from error
    except msgspec.DecodeError as error:
        msg = f"not valid JSON: {_json_fault(data, error)}, got {shown(data[:MAX_SHOWN].decode(errors='replace'))}"
        raise RowFault(msg) from error
    except RecursionError as error:
        msg = "nested too deeply: expected a flat object, got more than a thousand levels"
        raise RowFault(msg) from error
    if b"\\u0000" in data and _NUL.search(data):
        msg = "text: expected text that a database can hold, got the character NUL (\\u0000)"
        raise RowFault(msg)
    return row


def check_entries(document: bytes | bytearray, *keys: str) -> None:
    """Whether the list below these keys is short enough to be held: an entry of three bytes takes sixty in memory.

    Raises:
        RowFault: It has more than `MAX_ENTRIES` entries; or it may have, and holds something else than objects.
    """
    if document.count(b",") < MAX_ENTRIES:
        return
    n_entries = 0

    class Entry(msgspec.Struct):
        def __post_init__(self) -> None:
            nonlocal n_entries
            n_entries += 1
            if n_entries > MAX_ENTRIES:
                msg = "too many"
                raise ValueError(msg)

    shape: Any = list[Entry]
    for key in reversed(keys):
        shape = msgspec.defstruct("Above", [(key, shape | None, None)])
    try:
        msgspec.json.decode(document, type=shape)
    except msgspec.ValidationError as error:
        came = f"more than {MAX_ENTRIES:,} entries" if n_entries > MAX_ENTRIES else "something else"
        msg = f"{'.'.join(keys)}: expected a list of at most {MAX_ENTRIES:,} objects, got {came}"
        raise RowFault(msg) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # the reader itself says what is wrong


def _json_fault(data: bytes, error: Exception) -> str:
    """In the words of orjson, which names line, column and halves of surrogate pairs."""
    if len(data) > _LOOKED_INTO:
        return str(error)
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError as found:
        return str(found)
    return str(error)


def shown(value: Any) -> str:
    """What came, short enough for a message."""
    try:
        text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    except TypeError:  # nested more deeply than orjson writes
        text = f"a deeply nested {'list' if isinstance(value, list) else 'object'}"
    if len(text) > MAX_SHOWN:
        text = text[: MAX_SHOWN - 1] + "…"
    return repr(text) if isinstance(value, str) else text


def shown_apart(came: str, expected: str) -> tuple[str, str]:
    """Two texts that differ, each short enough for a message, from shortly before the place where they do.

    >>> shown_apart("rest " * 30 + "today", "rest " * 30 + "now")
    ("'…rest rest today'", "'…rest rest now'")
    >>> shown_apart("Rest" + " now" * 40, "You" + " rest now" * 40)[0][:12]
    "'Rest now no"
    """
    differ = (place for place, pair in enumerate(zip(came, expected, strict=False)) if pair[0] != pair[1])
    same = next(differ, min(len(came), len(expected)))
    start = same - _BEFORE if same >= MAX_SHOWN - _BEFORE else 0
    one, other = (("…" if start else "") + text[start:] for text in (came, expected))
    return shown(one), shown(other)


def not_utf8(error: UnicodeDecodeError) -> str:
    """Where the first byte stands that is not UTF-8."""
    came = error.object[error.start : error.start + 4].hex(" ")
    return f"byte {error.start + 1}: expected UTF-8, got {came}"


def _wrong_value(message: str, line: bytes) -> str:
    """The place and what was expected are named by msgspec; what came is looked up in the row."""
    found = _PATH.search(message)
    expected = _PATH.sub("", message)
    path = found["path"] if found else ""
    field = path.lstrip(".") or "the row"
    if expected.startswith("Object missing required field"):
        name = expected.split("`")[1]
        return f"{field + '.' if path else ''}{name}: expected a value, got nothing"
    if expected.startswith("Invalid enum value") and field in _WORDS:
        expected = "expected " + ", ".join(_WORDS[field])
    expected = re.sub(r", got .*$", "", expected)
    expected = _TYPE.sub(lambda name: _TYPES[name[0]], expected[:1].lower() + expected[1:])
    value, known = _value_at(line, path)
    return f"{field}: {expected.replace('`', '')}, got {shown(value) if known else 'another value'}"


def _value_at(line: bytes, path: str) -> tuple[Any, bool]:
    if len(line) > _LOOKED_INTO:
        return None, False
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:  # what stands behind the wrong value is no JSON either
        return None, False
    for key, index in _STEP.findall(path):
        try:
            value = value[key] if key else value[int(index)]
        except (KeyError, IndexError, ValueError, TypeError):
            return None, False
    return value, True
