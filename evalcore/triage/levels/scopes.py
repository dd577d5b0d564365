"""What a condition reaches: "if it gets worse, go to ..." tells nobody to go now.

Three sorts of words open a condition: those whose main clause holds only with it (if, when, in case), those that only set a part aside
("unless you faint", "until you see a doctor"), and the words of a heading or a list ("When to seek emergency care:").
"""

import re
from typing import NamedTuple

from evalcore.triage.levels.word_lists import one_of

NEUTRAL = re.compile(rf"\b{one_of('neutral')}")
"""An "if" or "when" that sets no condition: "if you can", "when they open", "even if"."""
_HOLDER = re.compile(rf"(?<![\w'-]){one_of('holds')}(?![\w'-])")
_OPENS = re.compile(rf"(?:and |or |but )?(?:only |just )?{one_of('holds')}(?![\w'-])")
_SETS_ASIDE = re.compile(rf"(?<![\w'-]){one_of('aside')}(?![\w'-])(?! (?:that|this|then)\b)")
_PRESUMES = frozenset(("until", "before", "after", "while", "by the time", "during", "whether"))
_SOONER = re.compile(rf"{one_of('sooner')}(?: ,)? $")
_BREAK = re.compile(r" ; | - | but | however | otherwise | for now | in the meantime | meanwhile | although | though ")
_AMID = re.compile(r"[a-z0-9'] $")
_NEXT_STEP = re.compile(r" (?:, (?:and|or|then)|;) ")
_NEXT_ORDER = re.compile(r" , and (?:do not|bring|take|keep|try|make sure|avoid) ")
_ONWARD = re.compile(r" , (?:so|should|must|needs?|has to|have to|is|are|therefore|hence|which is why) ")
_HEAD = re.compile(one_of("head"))
_HEAD_NOT = re.compile(rf"^{one_of('head_not')}")

HOME = "home"


class Scope(NamedTuple):
    """A part of a sentence that holds only under a condition; or, `is_presumed`, that only says beside what, before or after what."""

    begin: int
    end: int
    is_presumed: bool = False


def conditional_parts(text: str, places: list[tuple[int, int, str]]) -> list[Scope]:
    """The parts of a sentence that hold only under a condition, or are set aside.

    Args:
        places: Begin, end and level of each phrase of care, in order; "" where nobody is told anything by it, `HOME` of care at home.
    """
    masked = NEUTRAL.sub(lambda said: "_" * len(said[0]), text)
    scopes: list[Scope] = []
    for marker in _HOLDER.finditer(masked):
        at = marker.start()
        if any(scope.begin <= at < scope.end for scope in scopes):
            continue
        part = _part_begin(masked, at)
        later = [place for place in places if place[0] > at]
        opens_anew = bool(later) and masked[:at].endswith((" and ", " or ", " then ", " so "))
        earlier = [] if opens_anew else [place for place in places if part <= place[0] < at and place[2]]
        if earlier and _SOONER.search(masked[max(0, at - 40) : at]):  # "this week, or sooner if it gets worse"
            scopes.append(Scope(at, _part_end(masked, at, [])))
            continue
        if earlier and _is_of_next_step(masked[earlier[-1][1] : at], earlier[-1][2]):
            earlier = []
        elif not earlier and not later:  # set off by a dash: "go to the emergency room - if it gets worse"
            earlier = [place for place in places if masked.rfind(" ; ", 0, at) < place[0] < at and place[2]]
        begin = _reached_back(masked, at, earlier) if earlier else at
        end = _part_end(masked, at, [] if earlier else later)
        is_amid = not earlier and bool(_AMID.search(masked[part:at]))
        if is_amid and (onward := _ONWARD.search(masked, at, end)):  # "it hurts when you walk, so see a doctor"
            end = onward.start()
        scopes.append(Scope(begin, end))
    for marker in _SETS_ASIDE.finditer(masked):
        at = marker.start()
        comma = masked.find(" ,", at)
        end = min(comma if comma >= 0 else len(masked), _part_end(masked, at, []))
        scopes.append(Scope(at, end, is_presumed=marker[0] in _PRESUMES))
    return scopes


def _is_of_next_step(between: str, level: str) -> bool:
    """Whether a condition belongs to what is told after a phrase: "rest, and use a cream if it itches", "go now, and bring a bag in case ..."."""
    return bool((_NEXT_STEP if level == HOME else _NEXT_ORDER).search(between))


def _part_begin(text: str, at: int) -> int:
    """Where the part of the sentence begins that a place stands in."""
    begin = 0
    for found in _BREAK.finditer(text, 0, at):
        begin = found.end()
    return begin


def _part_end(text: str, at: int, later: list[tuple[int, int, str]]) -> int:
    """Where a condition ends: at the next break but a dash; one that opens the sentence reaches at least over the first phrase of care after it."""
    begin = later[0][1] if later else at
    if later and (far := _BREAK.search(text, at, later[0][0])) and far[0].strip() == ";":
        begin = at
    breaks = (found.start() for found in _BREAK.finditer(text, begin) if found[0] != " - ")
    return next(breaks, len(text))


def _reached_back(text: str, at: int, earlier: list[tuple[int, int, str]]) -> int:
    """From which phrase of care on a condition that comes behind holds.

    From the nearest on, and those before it of the same level, or said in one breath with it (no comma between). "Rest, and see a doctor if ..."
    and "rest and see a doctor if ..." leave the rest as it is.
    """
    begin, _, level = earlier[-1]
    is_set_off = text[:at].endswith(", ")
    for before, end, other in reversed(earlier[:-1]):
        is_one_breath = is_set_off or " , " not in f"{text[end:begin]} "
        if other != level and (HOME in (other, level) or not is_one_breath):
            break
        begin, level = before, other
    return begin


def is_conditional_head(text: str) -> bool:
    """Whether a heading, or a line that a list follows, makes what stands under it conditional."""
    return bool(_HEAD.search(text)) and not _HEAD_NOT.search(text)


def opens_with_condition(text: str) -> bool:
    """Whether a sentence begins with a condition: "if you can not breathe", "only in case of fever"."""
    return bool(_OPENS.match(NEUTRAL.sub(lambda said: "_" * len(said[0]), text)))


def has_condition(text: str) -> bool:
    """Whether a sentence holds a condition at all."""
    return bool(_HOLDER.search(NEUTRAL.sub(" ", text)))
