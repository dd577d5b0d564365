"""Bytes and cells to typed values, and what is wrong with one in one sentence: `field: expected ..., got ...`."""

import math
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec
import orjson

from evalcore.errors import RowFault
from evalcore.importing.context import MAX_SHOWN, Cells, shown
from evalcore.study import schema

T = TypeVar("T")
Word = TypeVar("Word", bound=StrEnum)

MAX_ENTRIES = 1_000_000
LETTERS = (schema.Acuity.A, schema.Acuity.B, schema.Acuity.C, schema.Acuity.D)
ROLES = ("system", "developer", "user", "assistant")
LEVEL_WORDS = "A, B, C, D (or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY)"
VOTE_WORDS = f"{LEVEL_WORDS}, A|B, B|C, C|D, Remove"
LONGEST_NAME = 200
LARGEST = 2**31 - 1  # of a whole number: PostgreSQL holds no larger one in such a column
LAST_SAMPLE = 9_999  # a larger number is no repeat (a seed, say), and the statistics keep room for every one before it
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
_LOOKED_INTO = 1 << 24  # bytes of a document; as Python's own values a larger one would fill the memory
_BEFORE = 10
WORDS_OF_WHY: dict[str, type[StrEnum]] = {  # what goes by a vocabulary beside label, rater and stage
    "cause": schema.Cause,
    "severity": schema.Severity,
    "error_kind": schema.ErrorKind,
    "reason": schema.CannotReason,
    "conflict_cause": schema.ConflictCause,
    "selection": schema.Selection,
}
_WORDS: dict[str, type[StrEnum]] = {
    "label": schema.Label,
    "rater_kind": schema.RaterKind,
    "stage": schema.Stage,
    **WORDS_OF_WHY,
}
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")
_WHOLE = re.compile(r"([0-9]{1,18})(\.0+)?")
_VOTE = re.compile(r"anon_label_([1-9][0-9]{0,3})(_rater)?")


def refuse(place: str, expected: str, got: object) -> NoReturn:
    """Say what is wrong with a value, as every format says it."""
    refuse_row(f"{place}: expected {expected}, got {got}")


def refuse_row(sentence: str) -> NoReturn:
    """Say what is wrong with a row."""
    raise RowFault(sentence)


def shown_apart(came: str, expected: str) -> tuple[str, str]:
    """Two texts that differ, each short enough for a message, from shortly before the place where they do."""
    differ = (place for place, pair in enumerate(zip(came, expected, strict=False)) if pair[0] != pair[1])
    same = next(differ, min(len(came), len(expected)))
    start = same - _BEFORE if same >= MAX_SHOWN - _BEFORE else 0
    one, other = (("…" if start else "") + text[start:] for text in (came, expected))
    return shown(one), shown(other)


def decode(line: bytes | msgspec.Raw, kind: type[T]) -> T:
    """One JSON value of a known shape; RowFault: it is no JSON, no UTF-8, of another shape, or holds text that no database can hold."""
    data = bytes(line)
    try:
        if not data.isascii():
            data.decode()  # a part that is skipped is not looked at below
        row = msgspec.json.decode(data, type=kind)
    except UnicodeDecodeError as error:
        raise RowFault(not_utf8(error)) from error
    except msgspec.ValidationError as error:
        raise _wrong_value(str(error).replace(" | null", " or nothing"), data) from error
    except msgspec.DecodeError as error:
        fault: Exception = error
        if len(data) <= _LOOKED_INTO:  # orjson names line, column and halves of surrogate pairs
            try:
                orjson.loads(data)
            except orjson.JSONDecodeError as found:
                fault = found
        refuse_row(f"not valid JSON: {fault}, got {shown(data[:MAX_SHOWN].decode(errors='replace'))}")
    except RecursionError:
        refuse_row("nested too deeply: expected a flat object, got more than a thousand levels")
    if b"\\u0000" in data and _NUL.search(data):
        refuse("text", "text that a database can hold", "the character NUL (\\u0000)")
    return row


def not_utf8(error: UnicodeDecodeError) -> str:
    """Where the first byte stands that is not UTF-8."""
    return f"byte {error.start + 1}: expected UTF-8, got {error.object[error.start : error.start + 4].hex(' ')}"


def _wrong_value(message: str, line: bytes) -> RowFault:
    found = _PATH.search(message)
    expected = _PATH.sub("", message)
    path = found["path"] if found else ""
    field = path.lstrip(".") or "the row"
    if expected.startswith("Object missing required field"):
        name = expected.split("`")[1]
        return RowFault(f"{f'{field}.' if path else ''}{name}: expected a value, got nothing")
    if expected.startswith("Invalid enum value") and field in _WORDS:
        expected = "expected " + ", ".join(_WORDS[field])
    expected = re.sub(r", got .*$", "", expected)
    expected = _TYPE.sub(lambda name: _TYPES[name[0]], expected[:1].lower() + expected[1:])
    got = "another value"
    if len(line) <= _LOOKED_INTO:
        with suppress(KeyError, IndexError, ValueError, TypeError):  # what stands behind the wrong value may be no JSON
            value = orjson.loads(line)
            for key, index in _STEP.findall(path):
                value = value[key] if key else value[int(index)]
            got = shown(value)
    return RowFault(f"{field}: {expected.replace('`', '')}, got {got}")


def check_entries(document: bytes | bytearray, *keys: str) -> None:
    """A RowFault where the list below these keys has, or may have, more than `MAX_ENTRIES`: an entry of three bytes takes sixty in memory."""
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
    except msgspec.ValidationError:
        came = f"more than {MAX_ENTRIES:,} entries" if n_entries > MAX_ENTRIES else "something else"
        refuse(".".join(keys), f"a list of at most {MAX_ENTRIES:,} objects", came)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # the reader itself says what is wrong


def check_messages(messages: list[schema.Message], *, field: str, is_asked: bool = False) -> None:
    """Roles are known and the user has a turn: all that can be asked of what was sent to a model; with `is_asked` it is the last."""
    for index, message in enumerate(messages):
        if message.role not in ROLES:
            refuse(f"{field}[{index}].role", f"one of {', '.join(ROLES)}", repr(message.role))
    if all(message.role != "user" for message in messages):
        refuse(field, "at least one turn of the user's", "none")
    if is_asked and messages[-1].role != "user":
        refuse(f"{field}[{len(messages) - 1}].role", "the user's turn last", repr(messages[-1].role))


class Vote(NamedTuple):
    """One physician's vote on a case; `place` counts from 1."""

    place: int
    rater: str | None
    vote: schema.Acuity


def cells_of(line: bytes, known: Collection[str]) -> dict[str, str]:
    """The values of a JSON object as the cells of a table; `known`: columns that must hold a text, a number or a truth value, as votes must."""
    return {column: cell(column, value, known) for column, value in decode(line, dict[str, Any]).items()}


def cell(column: str, value: Any, known: Collection[str]) -> str:
    """A value as the text of a cell: a whole number without ".0", nothing for None and NaN."""
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, dict, bytes)) and (column in known or is_vote(column)):
        refuse(column, "text or a number", shown(value))
    if isinstance(value, (list, dict)):
        return msgspec.json.encode(value).decode()
    return str(value)


def is_vote(column: str) -> bool:
    """Whether this is the column of a vote, or of who voted."""
    return _VOTE.fullmatch(column) is not None


def words(cells: Cells, column: str) -> str | None:
    """A text as it came; None where there is nothing but blanks."""
    text = cells.get(column, "")
    return storable(text, column) if text and not text.isspace() else None


def storable(text: str, place: str) -> str:
    """The text, which a database can hold."""
    if "\x00" in text:
        refuse(place, "text that a database can hold", "the character NUL")
    return text


def printable(text: str, place: str, *, is_needed: bool = False) -> str:
    """A name on one line, or nothing unless it is needed."""
    if len(text) > LONGEST_NAME or not text.isprintable() or (is_needed and not text.strip()):
        refuse(place, f"a name of at most {LONGEST_NAME} printable characters", shown(text))
    return text


def name(cells: Cells, column: str) -> str | None:
    """A name on one line, without blanks around it."""
    return printable(cells.get(column, "").strip(), column) or None


def needed(cells: Cells, column: str, expected: str) -> str:
    """A name that must be there."""
    return name(cells, column) or refuse(column, expected, "nothing")


def model(cells: Cells, of_file: str | None) -> str:
    """Who answered: as the row says, else as was said of the file."""
    return name(cells, "model") or of_file or needed(cells, "model", "who answered, here or as Model")


def level(
    cells: Cells, column: str, *, allowed: Iterable[schema.Acuity] = LETTERS, expected: str = LEVEL_WORDS
) -> schema.Acuity | None:
    """A level from A to D."""
    from evalcore.triage.label_maps import level_named  # noqa: PLC0415 - with pandas, which other files do without

    text = cells.get(column, "").strip()
    if not text:
        return None
    found = schema.Acuity.REMOVE if text.casefold() == schema.Acuity.REMOVE else level_named(text)
    if found is None or found not in allowed:
        refuse(column, expected, shown(text))
    return found


def vote(cells: Cells, column: str) -> schema.Acuity | None:
    """A level, a boundary, or Remove."""
    return level(cells, column, allowed=schema.Acuity, expected=VOTE_WORDS)


def votes(cells: Cells) -> tuple[Vote, ...]:
    """The votes of a panel by place: anon_label_1, anon_label_2, ..., each with its rater where that is said; places without a vote are left out."""
    found = []
    for place in sorted(int(at[1]) for column in cells if (at := _VOTE.fullmatch(column)) and not at[2]):
        if (given := vote(cells, f"anon_label_{place}")) is not None:
            found.append(Vote(place, name(cells, f"anon_label_{place}_rater"), given))
    return tuple(found)


def word(cells: Cells, column: str, known: type[Word], *, between: str = ", ") -> Word | None:
    """One of some known words, in upper or lower case; None where nothing came."""
    text = cells.get(column, "").strip().lower()
    if not text:
        return None
    try:
        return known(text)
    except ValueError:
        refuse(column, between.join(known), shown(text))


def asked(cells: Cells) -> schema.Format:
    """The format of the question."""
    return word(cells, "format", schema.Format, between=" or ") or refuse(
        "format", " or ".join(schema.Format), "nothing"
    )


def sample_index(cells: Cells) -> int:
    """Which of a model's repeats; 0 where nothing is said."""
    return whole(cells, "sample_index", highest=LAST_SAMPLE) or 0


def whole(cells: Cells, column: str, *, highest: int = LARGEST) -> int | None:
    """A whole number from 0 to `highest`."""
    text = cells.get(column, "").strip()
    if not text:
        return None
    found = _WHOLE.fullmatch(text)
    if found is None or int(found[1]) > highest:
        refuse(column, f"a whole number from 0 to {highest}", shown(text))
    return int(found[1])


def amount(cells: Cells, column: str, *, high: int = 1) -> float | None:
    """A number from 0 to `high`; None where nothing came, or "nan"."""
    text = cells.get(column, "").strip()
    if not text or text.lower() == "nan":
        return None
    try:
        number = math.nan if "_" in text else float(text)  # Python takes 0_1 for 1
    except ValueError:
        number = math.nan
    if not 0 <= number <= high:
        refuse(column, f"a number from 0 to {high}", shown(text))
    return number


def truth(cells: Cells, column: str) -> bool | None:
    """True, false, or nothing."""
    text = cells.get(column, "").strip().lower()
    if text and text not in _TRUE + _FALSE:
        refuse(column, "true or false", shown(text))
    return text in _TRUE if text else None
