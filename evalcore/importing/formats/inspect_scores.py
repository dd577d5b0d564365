"""What a score of an inspect_ai log says: verdicts on criteria, a level of care, or nothing that is read here."""

import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.records import CriterionRef, GivenVerdict
from evalcore.importing.formats.wire import decode, shown
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Acuity, Criterion, Label, RaterKind, Stage
from evalcore.triage.data import LETTERS

T = TypeVar("T")

JUDGE_KEYS = ("judge", "judge_model", "grader", "grader_model")
"""Where the metadata of a score may name who gave it."""
LONGEST_NAME = 200
NULL = msgspec.Raw(b"null")
_NO_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.)*+"|-?Infinity|NaN', re.DOTALL)
_ITEM_KEYS = {"criterion", "criteria_met"}
_MARK = "C"
"""What inspect_ai writes for a correct answer: as a score's value it is a level only beside other levels."""


class Says(StrEnum):
    """What a score holds."""

    VERDICTS = "verdicts on criteria"
    LEVEL = "a level of care"
    NOTHING = "neither a list of criteria nor a level of care"
    SEVERAL = "more than one list of criteria"
    ONLY_MARK = "only C, which is inspect_ai's mark for a correct answer"


class Score(msgspec.Struct):
    """One score of a sample, its parts undecoded until they are wanted."""

    value: msgspec.Raw = NULL
    answer: msgspec.Raw = NULL
    explanation: str | None = None
    metadata: msgspec.Raw = NULL


class _Item(msgspec.Struct):
    criterion: Annotated[str, msgspec.Meta(min_length=1)]
    criteria_met: bool | None
    points: float | None = None
    tags: list[str] | None = None
    explanation: str | None = None


class Judged(msgspec.Struct, frozen=True, gc=False):
    """The verdicts of one score.

    Attributes:
        verdicts: Those that are true or false.
    """

    score: str
    judge: str
    rubric: tuple[Criterion, ...]
    verdicts: tuple[GivenVerdict, ...]


class Levelled(msgspec.Struct, frozen=True, gc=False):
    """The level of one score. judge: None where nobody is named."""

    score: str
    judge: str | None
    level: Acuity
    explanation: str | None


def says(score: Score, *, value_is_level: bool) -> Says:
    """What a score holds.

    Args:
        value_is_level: Whether the values of all scores of this name are levels.
    """
    if n_lists := len(_lists(score)):
        return Says.VERDICTS if n_lists == 1 else Says.SEVERAL
    if letter(score.answer) is not None or (value_is_level and letter(score.value) is not None):
        return Says.LEVEL
    return Says.ONLY_MARK if text_in(score.value) == _MARK and text_in(score.answer) is None else Says.NOTHING


def are_levels(values: set[str | None]) -> bool:
    """Whether the values that one score has in a log are levels. C alone is inspect_ai's mark for a correct answer.

    >>> are_levels({"A", "C"}), are_levels({"C"}), are_levels({"C", "I"}), are_levels({"A", None})
    (True, False, False, False)
    """
    return values <= set(LETTERS) and not values <= {_MARK}


def letter(raw: msgspec.Raw) -> Acuity | None:
    """A level where the value is its letter, A to D."""
    found = text_in(raw)
    return Acuity(found) if found in LETTERS else None


def text_in(raw: msgspec.Raw) -> str | None:
    """A JSON value that is a text; None where it is something else."""
    return decoded(raw, str) if begins(raw) == b'"' else None


def judge_of(score: Score, said: str | None, grader: str | None) -> str | None:
    """Whose score it is: as the caller says, else as its metadata names it, else the log's grader; None where nobody does."""
    metadata = _metadata(score)
    named = next((text for key in JUDGE_KEYS if key in metadata and (text := text_in(metadata[key]))), None)
    return said or (without_provider(named) if named else None) or grader


def without_provider(name: str) -> str:
    """A model's name as inspect_ai writes it, without the provider before the first slash.

    >>> without_provider("openai/gpt-x"), without_provider("openrouter/lab/m"), without_provider("m")
    ('gpt-x', 'lab/m', 'm')
    """
    return name.partition("/")[2] or name


def judged(name: str, score: Score, judge: str) -> Judged:
    """The verdicts of a score that holds a list of criteria.

    Raises:
        RowFault: The list is of another shape; with the place.
    """
    ((key, raw),) = _lists(score).items()
    place = f"scores.{name}.metadata.{key}"
    rubric, verdicts = [], []
    for index, item in enumerate(_items(place, raw)):
        rubric.append(_criterion(f"{place}[{index}]", item))
        if item.criteria_met is None:
            continue
        verdicts.append(
            GivenVerdict(
                criterion=_refer_to(index),
                rater=checked_name(judge, f"scores.{name}.metadata: judge"),
                rater_kind=RaterKind.JUDGE,
                stage=Stage.JUDGE,
                label=Label.MET if item.criteria_met else Label.NOT_MET,
                explanation=storable(item.explanation, f"{place}[{index}].explanation"),
            )
        )
    return Judged(name, judge, tuple(rubric), tuple(verdicts))


def levelled(name: str, score: Score, judge: str | None) -> Levelled:
    """The level of a score that holds one: its answer, else its value."""
    level = letter(score.answer) or letter(score.value)
    if level is None:
        msg = f"scores.{name}: expected a letter A to D as answer or value, got no level"
        raise RowFault(msg)
    checked = None if judge is None else checked_name(judge, f"scores.{name}.metadata: judge")
    return Levelled(name, checked, level, storable(score.explanation, f"scores.{name}.explanation") or None)


def _lists(score: Score) -> dict[str, msgspec.Raw]:
    """The lists in a score's metadata whose every item has a criterion and says whether it is met, by their names."""
    return {key: raw for key, raw in _metadata(score).items() if begins(raw) == b"[" and _is_list(raw)}


def _is_list(raw: msgspec.Raw) -> bool:
    try:
        items = decoded(raw, list[dict[str, msgspec.Raw]])
    except RowFault:  # of something else than objects
        return False
    return bool(items) and all(item.keys() >= _ITEM_KEYS for item in items)


def _items(place: str, raw: msgspec.Raw) -> Sequence[_Item]:
    try:
        return decoded(raw, list[_Item])
    except RowFault as fault:
        msg = f"{place}{fault}"
        raise RowFault(msg) from fault


def _metadata(score: Score) -> Mapping[str, msgspec.Raw]:
    return decoded(score.metadata, dict[str, msgspec.Raw]) if begins(score.metadata) == b"{" else {}


def _criterion(place: str, item: _Item) -> Criterion:
    points: Any = item.points
    if points is not None:
        if not math.isfinite(points) or points != int(points) or not MIN_POINTS <= points <= MAX_POINTS or points == 0:
            msg = f"{place}.points: expected a whole number {MIN_POINTS}..{MAX_POINTS} without 0, got {shown(points)}"
            raise RowFault(msg)
        points = int(points)
    tags = tuple(storable(tag, f"{place}.tags") or "" for tag in item.tags or ())
    return Criterion(storable(item.criterion, f"{place}.criterion") or "", points, tags)


def storable(text: str | None, place: str) -> str | None:
    """The text.

    Raises:
        RowFault: It holds the character NUL.
    """
    if text is not None and "\x00" in text:
        msg = f"{place}: expected text that a database can hold, got the character NUL"
        raise RowFault(msg)
    return text


def checked_name(name: str, place: str) -> str:
    """A name on one line.

    Raises:
        RowFault: It is empty, too long, or holds something that cannot be printed.
    """
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        msg = f"{place}: expected a name of at most {LONGEST_NAME} printable characters, got {shown(name)}"
        raise RowFault(msg)
    return name


def begins(raw: msgspec.Raw) -> bytes:
    """The first byte of a JSON value, which tells its kind."""
    return bytes(memoryview(raw)[:1])


def decoded(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """A value of a known shape. NaN and Infinity, which inspect_ai writes and JSON does not have, are read as null.

    Raises:
        RowFault: It is of another shape, or no JSON.
    """
    data = bytes(raw)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        plain = _NO_NUMBER.sub(lambda found: found[0] if found[0].startswith(b'"') else b"null", data)
    try:
        return msgspec.json.decode(plain, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode(plain, kind)  # says what is wrong


@cache
def _refer_to(index: int) -> CriterionRef:
    return CriterionRef(row=index)
