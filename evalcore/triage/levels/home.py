"""Care at home: said outright ("you can manage this at home"), or only as measures ("rest, drink plenty of fluids")."""

import re
from typing import NamedTuple

from evalcore.triage.levels.moods import Mood, mood_of
from evalcore.triage.levels.word_lists import one_of

_OUTRIGHT = re.compile(rf"(?<![\w'-]){one_of('outright')}(?![\w'-])")
_IS = r"(?:is|are|should be|will be|would be|seems?|looks?)"
_ENOUGH = re.compile(
    rf"(?<![\w'-]){one_of('enough')}(?: alone)? {_IS}(?: (?P<not>not|never))?{one_of('rather')}* {one_of('sufficient')}\b"
)
_MEASURE = re.compile(rf"(?<![\w'-]){one_of('measure')}(?![\w'-])")
_NOTHING = re.compile(one_of("nothing"))
_GOING_IS = re.compile(
    rf"^(?: for now| for a few days| first)? (?:is|are|would be|should be) (?:[a-z]+ )?{one_of('sufficient')}\b"
)
_STAYED = re.compile(
    r"\b(?:can|could|may|should|will|are|is|to|must) (?:also |usually |safely |generally |probably |likely )*$"
)


class Home(NamedTuple):
    """A phrase of care at home: its place, its mood, whether it says outright that home is the place."""

    begin: int
    end: int
    mood: Mood
    is_outright: bool


def home_care(text: str) -> list[Home]:
    """The phrases of care at home in a sentence, in order."""
    found = [Home(said.start(), said.end(), _mood(text, said), is_outright=True) for said in _OUTRIGHT.finditer(text)]
    for said in (*_ENOUGH.finditer(text), *_NOTHING.finditer(text)):
        mood = Mood.DENIED if said.groupdict().get("not") else Mood.TOLD
        found.append(Home(said.start(), said.end(), mood, is_outright=True))
    for said in _MEASURE.finditer(text):
        if not any(home.begin <= said.start() < home.end for home in found):
            mood = mood_of(clause_before(text, said.start()), form="base")
            found.append(Home(said.start(), said.end(), mood, is_outright=False))
    return sorted(found)


def _mood(text: str, said: re.Match[str]) -> Mood:
    before = clause_before(text, said.start())
    if said.lastgroup == "managed":
        if re.search(r"\bnot (?:[a-z]+ ){0,2}$", before):
            return Mood.DENIED
        return Mood.OFFERED if _STAYED.search(before) else Mood.REPORTED
    if said.lastgroup == "going":
        after = text[said.end() : said.end() + 60]
        if re.match(r" (?:is|are|would be|should be) (?:not|never)\b", after):
            return Mood.DENIED
        if _GOING_IS.match(after):
            return Mood.TOLD
        return mood_of(before, form="gerund")
    return mood_of(before, form="base")


def clause_before(text: str, at: int) -> str:
    """The words of a clause before a place."""
    begin = 0
    for mark in (" ; ", " : ", " - ", " but ", " because ", " / "):
        found = text.rfind(mark, max(0, at - 160), at)
        if found >= 0:
            begin = max(begin, found + len(mark))
    return text[begin:at]
