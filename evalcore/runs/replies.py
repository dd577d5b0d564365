"""Reading a judge's reply: exactly one flat JSON object, of exactly the fields asked for. Whatever else comes is no verdict: JudgeReplyInvalid says why."""

import json
import math
import re
from collections.abc import Collection
from typing import Any, NoReturn

import msgspec

from evalcore.errors import JudgeReplyInvalid
from evalcore.runs.spec import storable
from evalcore.study.schema import Acuity, Label

EXPLANATION, MET, LEVEL, CONFIDENCE = "explanation", "criteria_met", "level", "confidence"
NO_LEVEL = "none"
MAX_QUOTE = 120  # characters of what came, in a message

_LEVELS: dict[str, Acuity | Label] = {letter: Acuity(letter) for letter in "ABCD"} | {NO_LEVEL: Label.CANNOT_ASSESS}
_BRACKETS = re.compile(r"[\[\]]")
_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"


class Judged(msgspec.Struct, frozen=True, gc=False):
    """What a judge says: met or not, or a level (cannot assess where none is recommended); the confidence, in [0, 1], is that this is right.

    The explanation is "" where it gave none; what no database holds (NUL, half of a surrogate pair) is U+FFFD in it.
    """

    label: Label | Acuity
    explanation: str
    confidence: float | None = None


def read_verdict(text: str, *, of_levels: bool, with_confidence: bool) -> Judged:
    """A reply of the judge of criteria, or of levels of care; its explanation may be empty."""
    answer = LEVEL if of_levels else MET
    reply = one_object(text, (EXPLANATION, answer, CONFIDENCE) if with_confidence else (EXPLANATION, answer))
    value, words = reply[answer], reply[EXPLANATION]
    stated: Any = reply.get(CONFIDENCE)
    label: Label | Acuity
    if of_levels:
        if not isinstance(value, str) or value not in _LEVELS:
            _refuse(LEVEL, value, '"A", "B", "C", "D" or "none"')
        label = _LEVELS[value]
    else:
        if not isinstance(value, bool):
            _refuse(MET, value, "true or false")
        label = Label.MET if value else Label.NOT_MET
    if not isinstance(words, str):
        _refuse(EXPLANATION, words, "a string")
    if with_confidence and (isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 <= stated <= 1):
        _refuse(CONFIDENCE, stated, "a number from 0 to 1")
    confidence = math.fabs(stated) if with_confidence else None  # -0.0 is 0
    return Judged(label, storable(words).strip(), confidence)


def one_object(text: str, fields: Collection[str]) -> dict[str, Any]:
    """The one JSON object of a reply, which has exactly these fields and nothing nested in it.

    From the first brace of the reply to its last there must be this object and nothing else, so that two objects are none, whether they are equal or not.
    Around it may stand a code fence or text without braces; a square bracket that is open where it begins, or closed behind it, makes it part of an array,
    which is none either. A thought of the model at the start of the reply, from `<think>` to the first `</think>`, is left out.
    """
    answer = text
    if text.lstrip().startswith(_THOUGHT):
        _, ended, rest = text.partition(_THOUGHT_ENDS)
        answer = rest if ended else text
    begin, end = answer.find("{"), answer.rfind("}") + 1
    if begin < 0 or end <= begin:
        _invalid(f"Expected a JSON object, got {shortened(text)}")
    if _leaves_open(answer[:begin], "[") or _leaves_open(answer[end:][::-1], "]"):
        _invalid(f"expected one JSON object, got an array: {shortened(answer)}")
    try:
        reply = json.loads(
            answer[begin:end],
            object_pairs_hook=_once,
            parse_constant=lambda word: _invalid(f"Expected JSON, got {word}"),
        )
    except (ValueError, RecursionError) as error:  # RecursionError: nested deeper than the parser goes
        why = str(error).partition(":")[0] if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        _invalid(f"Expected one JSON object ({why}), got {shortened(answer[begin:end])}")
    if set(reply) != set(fields):
        _invalid(f"expected {', '.join(fields)}, got the fields {shortened(', '.join(map(str, reply)))}")
    for name, value in reply.items():
        if isinstance(value, (dict, list)):
            _refuse(name, value, "a plain value")
    return dict(reply)


def shortened(value: object) -> str:
    """What came, as JSON has it, at most `MAX_QUOTE` characters of it."""
    some = value[: MAX_QUOTE + 1] if isinstance(value, str) else value
    words = json.dumps(some, ensure_ascii=True, default=str)
    return words if len(words) <= MAX_QUOTE else words[:MAX_QUOTE] + " …"


def _leaves_open(text: str, opening: str) -> bool:
    """Whether a square bracket is opened in it and not closed again; the text after an object is read backwards, where `]` opens."""
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth = depth + 1 if bracket == opening else max(depth - 1, 0)
    return depth > 0


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            _invalid(f"Expected the field {shortened(name)} once, got it twice")
        fields[name] = value
    return fields


def _refuse(field: str, value: object, expected: str) -> NoReturn:
    _invalid(f"{field}: expected {expected}, got {shortened(value)}")


def _invalid(sentence: str) -> NoReturn:
    raise JudgeReplyInvalid(sentence) from None
