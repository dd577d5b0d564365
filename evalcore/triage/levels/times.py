"""How soon: the words of a sentence that say when, as one of four spans of time.

What counts as a time is when something is to be done. How long something has lasted or is to go on ("for two weeks", "in the past 24 hours") is not.
"""

import re
from enum import IntEnum
from typing import NamedTuple

from evalcore.triage.levels.word_lists import one_of


class Soon(IntEnum):
    """How soon, later first."""

    WEEKS = 1
    """More than three days: "this week", "within a month", "at your next visit", "soon"."""
    DAYS = 2
    """Up to three days: "within 24 to 48 hours", "tomorrow", "as soon as possible", "urgently"."""
    TODAY = 3
    """"Today", "tonight", "same day", within so many hours."""
    NOW = 4
    """"Immediately", "right away", "now"."""


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
    """The times of a sentence, in order."""
    found = [
        When(said.start(), said.end(), _amount(said)) for pattern in (_AMOUNT, _SPAN) for said in pattern.finditer(text)
    ]
    found += [When(said.start(), said.end(), Soon[said.lastgroup or "NOW"]) for said in _WHEN.finditer(text)]
    found = [when for when in found if not _LASTED.search(text[max(0, when.begin - 24) : when.begin])]
    found.sort(key=lambda when: (when.begin, -when.end))
    kept: list[When] = []
    for when in found:
        if not kept or when.begin >= kept[-1].end:
            kept.append(when)
    return kept


def _amount(said: re.Match[str]) -> Soon:
    """A stated number of hours, days, weeks: the longest that it allows."""
    groups = said.groupdict()
    unit = groups["unit"].rstrip("s")
    hours = _figure(groups["two"] or groups["one"]) * _HOURS[unit]
    if groups.get("three"):
        last = (groups.get("unit_3") or groups["unit"]).rstrip("s")
        hours = max(hours, _figure(groups["three"]) * _HOURS[last])
    if hours < 1:
        return Soon.NOW
    if hours <= _TODAY_HOURS:
        return Soon.TODAY
    return Soon.DAYS if hours <= _DAYS_HOURS else Soon.WEEKS


def _figure(said: str) -> int:
    return int(said) if said.isdigit() else max(_FIGURES.get(word, 0) for word in said.split(" "))
