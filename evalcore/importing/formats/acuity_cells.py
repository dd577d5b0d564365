"""What the tables of triage have in common: cells of text, whatever kind of file they come from, and what they may hold."""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from evalcore.errors import RowFault
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import decode, shown
from evalcore.study.schema import Acuity, Format
from evalcore.triage.data import LETTERS
from evalcore.triage.label_maps import level_named

Word = TypeVar("Word", bound=StrEnum)

Cells = Mapping[str, str]
"""Column to cell; an empty cell is no value."""

LEVEL_WORDS = "A, B, C, D (or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY)"
VOTE_WORDS = f"{LEVEL_WORDS}, A|B, B|C, C|D, Remove"
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")
_WHOLE = re.compile(r"([0-9]{1,18})(\.0+)?")
_VOTE = re.compile(r"anon_label_([1-9][0-9]{0,3})(_rater)?")
LONGEST_NAME = 200
LARGEST = 2**31 - 1
"""Of a whole number: PostgreSQL holds no larger one in such a column."""
LAST_SAMPLE = 9_999
"""Of the repeats of one model on one case. A larger number is no repeat (a seed, say), and the statistics keep room for every repeat before it."""


class Vote(NamedTuple):
    """One physician's vote on a case; `place` counts from 1."""

    place: int
    rater: str | None
    vote: Acuity


def cells_of(line: bytes, known: Collection[str]) -> dict[str, str]:
    """The values of a JSON object as the cells of a table.

    Args:
        known: Columns that must hold a text, a number or a truth value; `anon_label_...` too.

    Raises:
        RowFault: It is no such object.
    """
    found = decode(line, dict[str, Any])
    return {column: cell(column, value, known) for column, value in found.items()}


def cell(column: str, value: Any, known: Collection[str]) -> str:
    """A value as the text of a cell: a whole number without ".0", nothing for None and NaN.

    >>> cell("a", 12.0, ()), cell("a", True, ()), cell("a", float("nan"), ()), cell("a", None, ())
    ('12', 'true', '', '')

    Raises:
        RowFault: A list, an object or bytes came in a column that is known.
    """
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | dict | bytes) and (column in known or is_vote(column)):
        msg = f"{column}: expected text or a number, got {shown(value)}"
        raise RowFault(msg)
    return str(value)


def is_vote(column: str) -> bool:
    """Whether this is the column of a vote, or of who voted."""
    return _VOTE.fullmatch(column) is not None


def words(cells: Cells, column: str) -> str | None:
    """A text as it came; None where there is nothing but blanks.

    Raises:
        RowFault: It holds what no database can hold.
    """
    found = cells.get(column, "")
    if not found or found.isspace():
        return None
    if "\x00" in found:
        msg = f"{column}: expected text that a database can hold, got the character NUL"
        raise RowFault(msg)
    return found


def name(cells: Cells, column: str) -> str | None:
    """A name on one line, without blanks around it.

    Raises:
        RowFault: It is too long, or holds something that cannot be printed.
    """
    found = cells.get(column, "").strip()
    if len(found) > LONGEST_NAME or not found.isprintable():
        msg = f"{column}: expected a name of at most {LONGEST_NAME} printable characters, got {shown(found)}"
        raise RowFault(msg)
    return found or None


def needed(cells: Cells, column: str, expected: str = "a value") -> str:
    """A name that must be there.

    Raises:
        RowFault: It is not.
    """
    found = name(cells, column)
    if found is None:
        msg = f"{column}: expected {expected}, got nothing"
        raise RowFault(msg)
    return found


def model(cells: Cells, options: Options) -> str:
    """Who answered: as the row says, else as was said of the file.

    Raises:
        RowFault: Neither says it.
    """
    return name(cells, "model") or options.model or needed(cells, "model", "who answered, here or as --model")


@lru_cache(maxsize=1024)
def _level(text: str) -> Acuity | None:
    return Acuity.REMOVE if text.casefold() == Acuity.REMOVE else level_named(text)


def level(cells: Cells, column: str) -> Acuity | None:
    """A level from A to D.

    Raises:
        RowFault: Something else came.
    """
    return _one_of(cells, column, LETTERS, LEVEL_WORDS)


def vote(cells: Cells, column: str) -> Acuity | None:
    """A level, a boundary, or Remove.

    Raises:
        RowFault: Something else came.
    """
    return _one_of(cells, column, Acuity, VOTE_WORDS)


def gold(cells: Cells) -> tuple[Acuity | None, bool]:
    """The level that a case needs as the file gives it (None where it gives none), and whether the file removes the case in its place.

    Raises:
        RowFault: Something else came.
    """
    said = vote(cells, "normalized_label")
    return (None, True) if said is Acuity.REMOVE else (said, False)


def _one_of(cells: Cells, column: str, allowed: Iterable[Acuity], expected: str) -> Acuity | None:
    text = cells.get(column, "").strip()
    if not text:
        return None
    found = _level(text)
    if found is None or found not in allowed:
        msg = f"{column}: expected {expected}, got {shown(text)}"
        raise RowFault(msg)
    return found


def votes(cells: Cells) -> tuple[Vote, ...]:
    """The votes of a panel by place: anon_label_1, anon_label_2, ..., each with its rater where that is said; places without a vote are left out.

    Raises:
        RowFault: A vote is none.
    """
    places = sorted(int(found[1]) for column in cells if (found := _VOTE.fullmatch(column)) and not found[2])
    given = ((place, vote(cells, f"anon_label_{place}")) for place in places)
    return tuple(
        Vote(place, name(cells, f"anon_label_{place}_rater"), said) for place, said in given if said is not None
    )


def asked(cells: Cells) -> Format:
    """The format.

    Raises:
        RowFault: None, or an unknown one.
    """
    text = cells.get("format", "").strip().lower()
    try:
        return Format(text)
    except ValueError:
        msg = f"format: expected {' or '.join(Format)}, got {shown(text) if text else 'nothing'}"
        raise RowFault(msg) from None


def word(cells: Cells, column: str, known: type[Word]) -> Word | None:
    """One of some known words, in upper or lower case; None where nothing came.

    Raises:
        RowFault: Another word came.
    """
    text = cells.get(column, "").strip().lower()
    if not text:
        return None
    try:
        return known(text)
    except ValueError:
        msg = f"{column}: expected {', '.join(known)}, got {shown(text)}"
        raise RowFault(msg) from None


def sample_index(cells: Cells) -> int:
    """Which of a model's repeats; 0 where nothing is said.

    Raises:
        RowFault: It is none.
    """
    return whole(cells, "sample_index", highest=LAST_SAMPLE) or 0


def whole(cells: Cells, column: str, *, highest: int = LARGEST) -> int | None:
    """A whole number from 0 to `highest`.

    Raises:
        RowFault: Something else came.
    """
    text = cells.get(column, "").strip()
    if not text:
        return None
    found = _WHOLE.fullmatch(text)
    if found is None or int(found[1]) > highest:
        msg = f"{column}: expected a whole number from 0 to {highest}, got {shown(text)}"
        raise RowFault(msg)
    return int(found[1])


def amount(cells: Cells, column: str, *, high: float, expected: str) -> float | None:
    """A number from 0 to `high`; None where nothing came, or "nan".

    Raises:
        RowFault: Something else came.
    """
    text = cells.get(column, "").strip()
    if not text or text.lower() == "nan":
        return None
    try:
        found = math.nan if "_" in text else float(text)  # Python takes 0_1 for 1
    except ValueError:
        found = math.nan
    if not 0 <= found <= high:
        msg = f"{column}: expected {expected}, got {shown(text)}"
        raise RowFault(msg)
    return found


def share(cells: Cells, column: str) -> float | None:
    """A number from 0 to 1.

    Raises:
        RowFault: Something else came.
    """
    return amount(cells, column, high=1.0, expected="a number from 0 to 1")


def truth(cells: Cells, column: str) -> bool | None:
    """True, false, or nothing.

    Raises:
        RowFault: Something else came.
    """
    text = cells.get(column, "").strip().lower()
    if text and text not in _TRUE + _FALSE:
        msg = f"{column}: expected true or false, got {shown(text)}"
        raise RowFault(msg)
    return text in _TRUE if text else None
