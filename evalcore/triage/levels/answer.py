"""Which level of care an answer states, where it was asked to end with `ACUITY: <letter>` (AcuityBench's qa format)."""

import re
from dataclasses import dataclass

from evalcore.study.schema import Acuity

VERSION = "1"
"""Stored with every verdict; a change of what is read from any text needs a new one."""

NOT_STATED = "no level stated"
DIFFERENT = "two different levels"
BOUNDARY = "a boundary between two levels"
UNKNOWN = "not one of the four levels"
MAX_BEHIND, MAX_WORDS = 200, 200  # characters: read behind a letter for a second one, quoted

_LEVELS = {letter: Acuity(letter) for letter in "ABCD"}
_MARKS = str.maketrans(
    {**dict.fromkeys("*_`~#>\"'“”‘’«»$|\\{}[]<\u00a0", " "), "：": ":", "＝": "=", "—": "–", "−": "–"}
)
"""What is written around a label; one character for one, so that places stay."""
_LABEL = re.compile(
    r"(?<!\w)(?<!visual )acuity(?: {1,4}(?:level|rating|label|category|answer))?(?: {0,4}\([^()]{0,30}\))? {0,4}[:=–-] {0,8}\(? {0,4}(?:level {1,4})?",
    re.IGNORECASE,
)
_TABLE_LABEL = re.compile(r"^[ \t]*acuity(?: {1,4}level)? {0,8}\| {0,8}\(? {0,4}", re.IGNORECASE)
_VALUE = re.compile(
    r"(?P<one>[A-Za-z]|\d{1,2})(?:(?P<gap> {0,4}(?:/|–|-|,|&| or | to | and | ) {0,4})(?P<two>[A-D])(?!\w|[-'’]\w))?(?!\w)"
)
_ENDS = re.compile(r" {0,20}(?:\)|$|[.!;](?:\s|\)|$))")
_GOES_ON = re.compile(r" {0,20}(?:[,:=–(]| -(?: |$))")
_ANOTHER = re.compile(
    r"(?:^|[,/&–(]|\b(?:or|and|to|possibly|maybe|perhaps|be|versus|vs))\.? {0,4}(?:level )?(?P<letter>[A-D])(?!\w|[-'’]\w| [a-z])"
)


@dataclass(frozen=True)
class Stated:
    """What an answer states (None: invalid, never a level), in which of its words, and why there is none."""

    level: Acuity | None
    words: str = ""
    why: str = ""


def stated_level(text: str) -> Stated:
    r"""The level that an answer states: the last line that states one decides.

    A line states an acuity where the word "acuity" (with "level", "rating", "label", "category" or "answer" after it or
    not) is followed by a colon, an equals sign or a dash, and that by a letter or number of its own: at the end of the
    line, before a full stop, a bracket, a dash or a comma. Markdown, quotation marks and table bars around any of it do
    not matter. A letter that begins a sentence or a word is no answer ("acuity: based on ...", "acuity: a doctor should
    ...", "acuity: D-dimer"), and such a line states nothing. Of two lines that state different levels the last wins,
    since a model corrects itself; a last line that states two ("C or D", "ACUITY: C ... ACUITY: D"), a boundary ("C/D")
    or something else ("ACUITY: 3") is invalid, and no earlier line stands in for it.

    >>> stated_level("Chest pain at rest.\n**ACUITY: D**").level
    <Acuity.D: 'D'>
    >>> stated_level("Acuity: based on the fever, a doctor this week.").why
    'no level stated'
    >>> stated_level("ACUITY: C/D").why
    'a boundary between two levels'
    """
    for line in reversed(text.splitlines()):
        if "acuity" not in line.lower():
            continue
        plain = line.translate(_MARKS)
        labels = [found.span() for found in _LABEL.finditer(plain)]
        if not labels and (table := _TABLE_LABEL.match(line.translate({ord("*"): " ", ord("_"): " "}).lstrip("|"))):
            shift = len(line) - len(line.lstrip("|"))
            labels = [(shift, shift + table.end())]
        answers = [answer for begin, end in labels if (answer := _answer(plain, begin, end)) is not None]
        if not answers:
            continue
        begin, end = answers[0][0], answers[-1][1]
        words = line[begin:end].strip()[:MAX_WORDS]
        said = {letter for answer in answers for letter in answer[2]}
        if any(answer[3] for answer in answers):
            return Stated(None, words, BOUNDARY)
        if not said <= set(_LEVELS):
            return Stated(None, words, UNKNOWN)
        return Stated(None, words, DIFFERENT) if len(said) > 1 else Stated(_LEVELS[said.pop()], words)
    return Stated(None, why=NOT_STATED)


def _answer(plain: str, begin: int, end: int) -> tuple[int, int, set[str], bool] | None:
    """What stands behind one label: where its words begin and end, the letters it gives, whether as a boundary."""
    value = _VALUE.match(plain, end)
    if value is None:
        return None
    one, two, gap = value["one"], value["two"], value["gap"]
    if two:
        return begin, value.end(), {one.upper(), two}, gap.strip() in ("/", "–", "-") and one.upper() != two
    rest = value.end()
    tail = plain[rest : rest + MAX_BEHIND]
    until = _LABEL.search(tail)
    ends, goes_on = _ENDS.match(tail), _GOES_ON.match(tail)
    is_last = ends or (until and not tail[: until.start()].strip())
    if not is_last and not (goes_on and (one.isupper() or one.isdigit() or "(" in goes_on[0])):
        return None
    letters = {one.upper()}
    for other in _ANOTHER.finditer(tail[: until.start()] if until else tail):
        letters.add(other["letter"])
        rest = value.end() + other.end()
    return begin, rest, letters, False
