"""The phrases of care of a whole response, as headings, lists and questions rule them; and the level they give."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evalcore.study.schema import Acuity
from evalcore.triage.levels.mentions import Mention, level_of, mentions_in
from evalcore.triage.levels.moods import Mood, has_condition, is_conditional_head, opens_with_condition
from evalcore.triage.levels.phrases import Care, Soon, When, one_of, times_in
from evalcore.triage.levels.plain import HEADING_WORDS, Block, Sentence, blocks_of

_LABEL = re.compile(r"^(?P<label>[^:]{2,90}) : (?=\S)")
_NOT_HEAD = re.compile(
    r"\b(?:do not(?: need to)?|not need to|avoid|never|no need to|not necessary to|you can skip|not needed|unnecessary) :?$"
)
_SYMPTOM = re.compile(rf"^{one_of('before_symptom')}*{one_of('symptom')}\b")
_THEREUPON = re.compile(rf"^{one_of('thereupon')}\b")
_CONDITION_FIRST = re.compile(r"(?:if|when(?:ever)?|should|in case|once) (?!to )")
_BRACKET = 4  # characters from a phrase to the first word in the brackets behind it
_SERIOUS = re.compile(one_of("serious"))


@dataclass
class _Head:
    """What a heading, or a line that ends with a colon, makes of what stands under it."""

    mood: Mood | None = None
    soon: Soon | None = None
    depth: int = -1
    has_list: bool = False


def read(text: str) -> tuple[list[Mention], bool]:
    """The phrases of care in order, and whether something serious is spoken of that no phrase settles."""
    found: list[Mention] = []
    is_serious = False
    blocks = list(blocks_of(text))
    heads: list[_Head] = []
    for place, block in enumerate(blocks):
        heads = _standing(heads, block)
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        moods = [head.mood for head in heads if head.mood is not None]
        times = [head.soon for head in heads if head.soon is not None]
        mood = Mood.CONDITIONAL if Mood.CONDITIONAL in moods else moods[-1] if moods else None
        soon = times[-1] if times else None
        over_symptoms = False
        if block.opens and following is not None and following.kind == "item":  # what to do if one of them comes
            first = following.sentences[0].text
            over_symptoms = bool(_SYMPTOM.match(first)) and not mentions_in(first)
        under = Mood.CONDITIONAL if over_symptoms else mood
        was_conditional = False
        brackets = _conditions_in_brackets(block)
        for number, sentence in enumerate(block.sentences):
            label = _LABEL.match(sentence.text)
            if label and not over_symptoms and mood is not Mood.CONDITIONAL:
                words = label["label"]  # "warning signs: ..." is one, "if it bleeds: ..." only where it comes first
                is_one = len(words.split()) <= HEADING_WORDS and is_conditional_head(words)
                is_one = is_one and (number == 0 or not _CONDITION_FIRST.match(words))
                under = Mood.CONDITIONAL if is_one else mood
            mentions = [] if sentence.is_question else _mentions(sentence, under, soon, brackets.get(id(sentence), []))
            is_conditional = has_condition(sentence.text)
            is_serious = is_serious or (under is None and not is_conditional and bool(_SERIOUS.search(sentence.text)))
            if not mentions and found and not was_conditional and under is None and _THEREUPON.match(sentence.text):
                _thereupon(found, times_in(sentence.text))
            was_conditional = is_conditional
            found += mentions
        if block.opens:
            heads = _opened(heads, block)
    return sorted(found, key=lambda one: (one.begin, one.end)), is_serious


def _standing(heads: list[_Head], block: Block) -> list[_Head]:
    if block.kind == "heading":
        return []
    if block.kind == "item":
        kept = [head for head in heads if head.depth < block.depth or head.depth < 0]
        for head in kept:
            head.has_list = True
        return kept
    return [head for head in heads if not head.has_list and head.depth < 0]


def _opened(heads: list[_Head], block: Block) -> list[_Head]:
    """With one head more; paragraphs that end with a colon, one after the other, make one head."""
    words = block.sentences[-1].text
    depth = block.depth if block.kind == "item" else -1
    times = times_in(words) if len(words.split()) <= HEADING_WORDS else []
    mood = Mood.CONDITIONAL if is_conditional_head(words) else Mood.DENIED if _NOT_HEAD.search(words) else None
    soon = times[0].soon if times else None
    if not heads or depth >= 0 or heads[-1].depth >= 0:
        return [*heads, _Head(mood, soon, depth)]
    last = heads[-1]
    mood = last.mood if last.mood is Mood.CONDITIONAL else mood or last.mood
    return [*heads[:-1], _Head(mood, last.soon if soon is None else soon)]


def _mentions(sentence: Sentence, under: Mood | None, soon: Soon | None, brackets: list[int]) -> list[Mention]:
    """The phrases of a sentence under its head; brackets right behind one may be its condition: "the ER (if ...)"."""
    outer, found = sentence.outer, []
    conditional = under is Mood.CONDITIONAL or (outer is not None and has_condition(outer.text))
    for mention in mentions_in(sentence.text):
        begin, end = sentence.span(mention.begin, mention.end)
        mood, is_partial = mention.mood, mention.is_partial
        if any(0 < bracket - end <= _BRACKET for bracket in brackets):
            mood = Mood.CONDITIONAL
        elif sentence.is_quoted(mention.begin) and not all(sentence.quoted):
            mood = Mood.REPORTED
        elif conditional and (mention.care is not None or under is Mood.CONDITIONAL):
            mood = Mood.CONDITIONAL
        elif under is Mood.DENIED and mood in (Mood.TOLD, Mood.OFFERED):
            mood, is_partial = Mood.DENIED, soon is not None
        when = soon if mention.care is not None and mention.soon is None else mention.soon
        found.append(replace(mention, begin=begin, end=end, mood=mood, soon=when, is_partial=is_partial))
    return found


def _conditions_in_brackets(block: Block) -> dict[int, list[int]]:
    """Where brackets begin that hold only a condition, by the `id` of the sentence they stand in."""
    found: dict[int, list[int]] = {}
    for inner in block.sentences:
        if inner.outer is not None and opens_with_condition(inner.text) and not mentions_in(inner.text):
            found.setdefault(id(inner.outer), []).append(inner.spans[0][0])
    return found


def _thereupon(found: list[Mention], times: list[When]) -> None:
    last = found[-1]
    is_open = last.soon is None and last.care not in (None, Care.EMERGENCY) and last.mood in (Mood.TOLD, Mood.OFFERED)
    if times and is_open and level_of(last.care, times[0].soon) is not last.level:
        found[-1] = replace(last, soon=times[0].soon)


NONE_FOUND = "no level of care is recommended"
ONLY_CONDITIONAL = "care is recommended only under a condition"
ONLY_DENIED = "it is only said what is not needed"
ONLY_POSSIBLE = "care is only spoken of, not recommended"
UNSETTLED = "only care at home is told, beside an emergency that is neither recommended against nor ruled out"
CONFLICT_DENIED = "conflicting advice: the same care is recommended and said not to be needed"
CONFLICT_HOME = "conflicting advice: care at home and emergency care now"
CONFLICT_EITHER = "conflicting advice: two different levels are offered as alternatives"
TOLD = {
    Acuity.A: "care at home is the main course",
    Acuity.B: "a doctor, without hurry, is the main course",
    Acuity.C: "a doctor within days is the main course",
    Acuity.D: "emergency care now is the main course",
}
MAX_QUOTES = 3
_LEFT_OPEN = (Mood.PRESUMED, Mood.POSSIBLE, Mood.REPORTED)
"""An emergency that is spoken of so is neither recommended nor ruled out."""


def decided(found: Sequence[Mention], *, is_serious: bool) -> tuple[Acuity | None, list[Mention], str]:
    """The level, the phrases that decided, and why."""
    care = [one for one in found if one.care is not None]
    home = [one for one in found if one.care is None]
    told = _with(care, Mood.TOLD)
    offered = _with(care, Mood.OFFERED)
    denied = _with(care, Mood.DENIED)
    either = _with(care, Mood.ALTERNATIVE)
    outright = [one for one in _with(home, Mood.TOLD, Mood.OFFERED) if one.is_outright]
    needless = [one for one in denied if one.care in (Care.DOCTOR, Care.MEDICAL) and not one.is_partial]
    level = max((one.level for one in told), default=None)
    if either and (level is None or level <= max(one.level for one in either)):
        return None, either, CONFLICT_EITHER
    if level is None and offered and not (outright and max(one.level for one in offered) is Acuity.B):
        told, level = offered, max(one.level for one in offered)
    if level is not None:
        deciding = [one for one in told if one.level is level]
        kinds = {one.care for one in deciding}
        same = [one for one in denied if one.care in kinds]
        against = [one for one in same if one.care is not Care.URGENT and not one.is_partial]
        against += [one for one in needless if one not in against]
        against += [one for one in same if one.care is Care.URGENT]
        if against:
            return None, [*deciding[:1], *against], CONFLICT_DENIED
        if level is Acuity.D and outright:
            return None, [*deciding[:1], *outright], CONFLICT_HOME
        return level, deciding, TOLD[level]
    return _at_home(found, home, outright or needless, is_serious=is_serious)


def _at_home(
    found: Sequence[Mention], home: list[Mention], outright: list[Mention], *, is_serious: bool
) -> tuple[Acuity | None, list[Mention], str]:
    spoken = [one for one in _with(found, *_LEFT_OPEN) if one.care is Care.EMERGENCY]
    if outright and spoken:
        return None, [*outright[:1], *spoken], UNSETTLED
    if outright:
        return Acuity.A, outright, TOLD[Acuity.A]
    measures = _with(home, Mood.TOLD, Mood.OFFERED)
    if measures and (is_serious or spoken or any(one.level >= Acuity.C for one in _with(found, Mood.POSSIBLE))):
        return None, [*measures[:1], *spoken], UNSETTLED
    if measures:
        return Acuity.A, measures, TOLD[Acuity.A]
    for mood, why in (
        (Mood.CONDITIONAL, ONLY_CONDITIONAL),
        (Mood.PRESUMED, ONLY_POSSIBLE),
        (Mood.DENIED, ONLY_DENIED),
        (Mood.POSSIBLE, ONLY_POSSIBLE),
    ):
        if _with(found, mood):
            return None, _with(found, mood), why
    return None, [], NONE_FOUND


def _with(found: Iterable[Mention], *moods: Mood) -> list[Mention]:
    return [one for one in found if one.mood in moods]
