"""What a score of an inspect_ai log says: verdicts on criteria, a level of care, or nothing that is read here."""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.values import decode, printable, refuse, shown, storable
from evalcore.importing.records import CriterionRef, GivenVerdict, Name, judged, row_refs
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Acuity, Criterion
from evalcore.triage.data import LETTERS

T = TypeVar("T")

JUDGE_KEYS = ("judge", "judge_model", "grader", "grader_model")  # where the metadata of a score may name who gave it
NULL = msgspec.Raw(b"null")
_NO_NUMBER = re.compile(rb'"(?:[^"\\]++|\\.)*+"|-?Infinity|NaN', re.DOTALL)
_ITEM_KEYS = {"criterion", "criteria_met"}
_MARK = "C"  # what inspect_ai writes for a correct answer: as a score's value it is a level only beside other levels


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
    criterion: Name
    criteria_met: bool | None
    points: float | None = None
    tags: list[str] | None = None
    explanation: str | None = None


class Judged(msgspec.Struct, frozen=True, gc=False):
    """The verdicts of one score.

    `verdicts`: those that are true or false; `criteria` says on what.
    """

    score: str
    judge: str
    rubric: tuple[Criterion, ...]
    criteria: tuple[CriterionRef, ...]
    verdicts: tuple[GivenVerdict, ...]


class Levelled(msgspec.Struct, frozen=True, gc=False):
    """The level of one score. judge: None where nobody is named."""

    score: str
    judge: str | None
    level: Acuity
    explanation: str | None


def says(score: Score, *, value_is_level: bool) -> Says:
    """What a score holds.

    `value_is_level`: whether the values of all scores of this name are levels.
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
    text = text_in(raw)
    return Acuity(text) if text in LETTERS else None


def text_in(raw: msgspec.Raw) -> str | None:
    """A JSON value that is a text; None where it is something else."""
    return decoded(raw, str) if begins(raw) == b'"' else None


def judge_of(score: Score, told: str | None, grader: str | None) -> str | None:
    """Whose score it is: as the caller says, else as its metadata names it, else the log's grader; None where nobody does."""
    metadata = _metadata(score)
    named = next((text for key in JUDGE_KEYS if key in metadata and (text := text_in(metadata[key]))), None)
    return told or (without_provider(named) if named else None) or grader


def without_provider(name: str) -> str:
    """A model's name as inspect_ai writes it, without the provider before the first slash.

    >>> without_provider("openai/gpt-x"), without_provider("openrouter/lab/m"), without_provider("m")
    ('gpt-x', 'lab/m', 'm')
    """
    return name.partition("/")[2] or name


def verdicts_of(name: str, score: Score, judge: str) -> Judged:
    """The verdicts of a score that holds a list of criteria; a list of another shape is a fault, with its place."""
    ((key, raw),) = _lists(score).items()
    place = f"scores.{name}.metadata.{key}"
    try:
        items = decoded(raw, list[_Item])
    except RowFault as error:
        msg = f"{place}{error}"
        raise RowFault(msg) from error
    judge = printable(judge, f"scores.{name}.metadata: judge", is_needed=True)
    rubric, criteria, verdicts = [], [], []
    for index, (item, ref) in enumerate(zip(items, row_refs(len(items)), strict=True)):
        where = f"{place}[{index}]"
        tags = tuple(storable(tag, f"{where}.tags") for tag in item.tags or ())
        rubric.append(Criterion(storable(item.criterion, f"{where}.criterion"), _points(item, where), tags))
        if item.criteria_met is not None:
            explanation = storable(item.explanation or "", f"{where}.explanation")
            verdicts.append(judged(judge, explanation, is_met=item.criteria_met))
            criteria.append(ref)
    return Judged(name, judge, tuple(rubric), tuple(criteria), tuple(verdicts))


def _points(item: _Item, place: str) -> int | None:
    points: Any = item.points
    if points is None:
        return None
    if not math.isfinite(points) or points != int(points) or not MIN_POINTS <= points <= MAX_POINTS or points == 0:
        refuse(f"{place}.points", f"a whole number {MIN_POINTS}..{MAX_POINTS} without 0", shown(points))
    return int(points)


def level_of(name: str, score: Score, judge: str | None) -> Levelled:
    """The level of a score that holds one: its answer, else its value."""
    level = letter(score.answer) or letter(score.value)
    if level is None:
        refuse(f"scores.{name}", "a letter A to D as answer or value", "no level")
    if judge is not None:
        printable(judge, f"scores.{name}.metadata: judge", is_needed=True)
    return Levelled(name, judge, level, storable(score.explanation or "", f"scores.{name}.explanation") or None)


def _lists(score: Score) -> dict[str, msgspec.Raw]:
    """The lists in a score's metadata whose every item has a criterion and says whether it is met, by their names."""
    return {key: raw for key, raw in _metadata(score).items() if begins(raw) == b"[" and _is_list(raw)}


def _is_list(raw: msgspec.Raw) -> bool:
    try:
        items = decoded(raw, list[dict[str, msgspec.Raw]])
    except RowFault:  # of something else than objects
        return False
    return bool(items) and all(item.keys() >= _ITEM_KEYS for item in items)


def _metadata(score: Score) -> Mapping[str, msgspec.Raw]:
    return decoded(score.metadata, dict[str, msgspec.Raw]) if begins(score.metadata) == b"{" else {}


def begins(raw: msgspec.Raw) -> bytes:
    """The first byte of a JSON value, which tells its kind."""
    return bytes(memoryview(raw)[:1])


def decoded(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """A value of a known shape, else a fault. NaN and Infinity, which inspect_ai writes and JSON does not have, are read as null."""
    data = bytes(raw)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        plain = _NO_NUMBER.sub(lambda found: found[0] if found[0].startswith(b'"') else b"null", data)
    try:
        return msgspec.json.decode(plain, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode(plain, kind)  # says what is wrong
