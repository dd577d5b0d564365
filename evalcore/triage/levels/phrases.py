"""The words the rules go by: who gives care, what is done to get it, and how soon. American and British.

The files of `words/` hold one alternative a line, as a regular expression over plain words. A file has sections,
`[name]` on a line of its own. `{name}` in a line stands for any alternative of that section, of whichever file; `[ ]`
is a space at the start or end of a line; a line that begins with `#` is a remark.
"""

import re
from enum import IntEnum, StrEnum
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_SECTION = re.compile(r"\[([a-z_]+)\]")
_NAME = re.compile(r"\{([a-z_]+)\}")


@cache
def _sections() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(files("evalcore.triage.levels").joinpath("words").iterdir(), key=lambda file: file.name):
        lines: list[str] = []
        for line in file.read_text(encoding="utf-8").splitlines():
            if head := _SECTION.fullmatch(line):
                lines = found.setdefault(head[1], [])
                if lines:
                    msg = f"{file.name}: section [{head[1]}] is there twice"
                    raise ValueError(msg)
            elif line and not line.startswith("#"):
                lines.append(line)
    return found


@cache
def one_of(name: str) -> str:
    """A pattern that fits any alternative of a section."""
    alternatives = (_NAME.sub(lambda inner: one_of(inner[1]), line) for line in _sections()[name])
    return f"(?:{'|'.join(alternatives)})"


def words_of(name: str) -> tuple[str, ...]:
    """The lines of a section that holds plain words."""
    return tuple(_sections()[name])


class Care(StrEnum):
    """Who gives the care that a text speaks of."""

    EMERGENCY = "emergency"
    URGENT = "urgent"
    """Urgent care, walk-in clinic, out-of-hours doctor, NHS 111."""
    DOCTOR = "doctor"
    MEDICAL = "medical"
    """Somebody who is not named: "medical attention", "get it checked"."""


TARGET = re.compile(rf"(?<![\w&-]){one_of('target')}(?![\w-])")
"""Who gives care: groups by the names of `Care`."""
TEST = re.compile(rf"\b{one_of('test')}\b")
GENERIC_DOCTOR = re.compile(
    r"^(?:any|some|doctor|physician|gp|general pract|pcp|primary|family|health|medical|clinician|provider|appointment|nurse)"
)
"""Doctors of whom not to need one is to need none; not to need a specialist says nothing of that."""

_ACTIONS = dict(line.split(", ") for line in words_of("actions"))
GERUNDS = {gerund: base for base, gerund in _ACTIONS.items()} | {"traveling": "travel", "dialling": "dial"}
_BE_SEEN = rf"(?:be|get|have|being|getting|having|been|got|was|were){one_of('whom')}?{one_of('how_checked')}? {one_of('first_check')}"
_FORMS = {
    "seen": _BE_SEEN,
    "taken": r"be (?:taken|brought|driven|transported|sent)",
    "need": r"(?:needs?|requires?|warrants?|deserves?|merits?|calls for|justif(?:y|ies)|belongs? (?:in|at))",
    "advise": r"(?:recommend|suggest|advise)(?= (?!that|you))",
    "base": f"(?:{'|'.join(sorted(_ACTIONS, key=lambda base: (-len(base), base)))})",
    "gerund": f"(?:{'|'.join(sorted(GERUNDS))})",
    "past": one_of("past"),
}
VERB = re.compile(
    rf"(?<![\w'-])(?:{'|'.join(f'(?P<{form}>{pattern})' for form, pattern in _FORMS.items())})(?: (?:to|with|from|at|into))?(?![\w'-])"
)
"""What is done to get care: groups by form."""
GOING = frozenset(words_of("going"))
"""Verbs that lead somewhere: only with "to", "in", "at", ..."""
TOWARD = re.compile(r"(?:^| )(?:to|into|in|at|for|straight|directly|by|over|back|up with)(?: |$)")
BLOCKED = re.compile(rf"(?:^| ){one_of('blocked')}(?: |$)")
"""Words that part a verb from what comes behind them."""
NEED_APPOINTMENT = frozenset(("make", "keep", "set", "plan", "aim", "push", "start"))
"""Verbs that are about care only where they are about an appointment."""
GOT = re.compile(
    r"\b(?:care|help|attention|appointment|check|evaluation|advice|visit|tests?|x-ray|scan|mri|ultrasound|count)"
)
APPOINTED = re.compile(r"\b(?:appointment|visit|check-?up|consult(?:ation)?|your way|call|slot)\b")
LOOKS = re.compile(
    r" (?:to )?(?:take a look|look|check|examine|evaluate|see|review|assess|listen|listen to|test|swab|weigh in)\b"
)


class Soon(IntEnum):
    """How soon, later first."""

    WEEKS = 1
    """More than three days: "this week", "within a month", "at your next visit", "soon"."""
    DAYS = 2
    """Up to three days: "within 24 to 48 hours", "tomorrow", "as soon as possible", "urgently"."""
    TODAY = 3
    """"Today", "tonight", "same day", within so many hours."""
    NOW = 4


class When(NamedTuple):
    """A time in a sentence: its place, and how soon it is."""

    begin: int
    end: int
    soon: Soon


_FIGURES = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12,
    "couple": 2, "few": 4, "several": 5, "so": 1,
}  # fmt: skip
_HOURS = {"minute": 1 / 60, "hour": 1, "h": 1, "day": 24, "week": 168, "month": 720, "year": 8760}
_TODAY_HOURS, _DAYS_HOURS = 23, 72

_NUMBER = one_of("number")
_UNIT = r"(?:minutes?|hours?|h|days?|weeks?|months?|years?)"
_ABOUT = r"(?: about| around| approximately| roughly| the)*(?: next| coming| following| first)?(?: about| around)?"
_OR_MORE = rf"(?: (?:or|to) (?P<three>{_NUMBER}|so)(?: (?P<unit_3>{_UNIT}))?)?"
_AMOUNT = re.compile(
    rf"\b{one_of('amount')}{_ABOUT} (?P<one>{_NUMBER})(?: ?(?:-|to|or) ?(?P<two>{_NUMBER}|so))?(?:-| )(?P<unit>{_UNIT}){_OR_MORE}"
    r"\b(?! (?:after|of (?:birth|onset|starting|surgery)|ago|later)\b)"
)
_SPAN = re.compile(r"\b(?P<one>\d{1,3})-(?P<two>\d{1,3})(?: |-)(?P<unit>hours?|h|days?|weeks?|months?)\b")
_WHEN = re.compile(
    "|".join(rf"(?P<{soon.name}>(?<!\w){one_of(soon.name.lower())}(?![\w-]))" for soon in reversed(Soon))
)
_LASTED = re.compile(r"(?:\bpast|\blast|\bthan|\bsince|\bafter|\bevery|\bthese|\bthose|\bno) $")


def times_in(text: str) -> list[When]:
    """When something is to be done, in order; not how long it has lasted or is to go on ("for two weeks")."""
    said = (one for pattern in (_AMOUNT, _SPAN) for one in pattern.finditer(text))
    found = [When(one.start(), one.end(), _amount(one)) for one in said]
    found += [When(said.start(), said.end(), Soon[said.lastgroup or "NOW"]) for said in _WHEN.finditer(text)]
    found = [when for when in found if not _LASTED.search(text[max(0, when.begin - 24) : when.begin])]
    found.sort(key=lambda when: (when.begin, -when.end))
    kept: list[When] = []
    for when in found:
        if not kept or when.begin >= kept[-1].end:
            kept.append(when)
    return kept


def _amount(said: re.Match[str]) -> Soon:
    groups = said.groupdict()
    hours = _hours(groups["two"] or groups["one"], groups["unit"])
    if groups.get("three"):
        hours = max(hours, _hours(groups["three"], groups.get("unit_3") or groups["unit"]))
    if hours < 1:
        return Soon.NOW
    if hours <= _TODAY_HOURS:
        return Soon.TODAY
    return Soon.DAYS if hours <= _DAYS_HOURS else Soon.WEEKS


def _hours(number: str, unit: str) -> float:
    n = int(number) if number.isdigit() else max(_FIGURES.get(word, 0) for word in number.split(" "))
    return n * _HOURS[unit.rstrip("s")]
