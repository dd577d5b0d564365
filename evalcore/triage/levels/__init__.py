"""A judge that goes by rules: which level of care a response in English recommends, by the words that say so.

It needs no network and no model, gives the same answer every time, and quotes what it decided by. It abstains rather
than guess.

The main course is what the patient is told to do, whatever happens: an order ("call 911"), a "should" or "need to", a
recommendation ("I'd get this checked"). Phrases of care that do not count:

- under a condition ("if it gets worse, go to the ER", "ER for any chest pain", what stands under "When to seek help:");
- denied ("no need for the ER", "rather than going to A&E"); these can contradict a recommendation; - reported or past
("you went to the ER"), asked ("have you seen a doctor?"), said of people in general, quoted, or struck out; - only
possible ("you may need surgery"), or taken for granted ("until the ambulance arrives").

What is recommended gives the level:

- D: emergency department, ambulance, hospital; medical care by nobody named, "immediately"; - C: urgent care, walk-in
clinic, NHS 111 (B where it can wait more than three days); doctor, clinic, appointment or medical care within three
days ("today",
  "48 hours", "as soon as possible", "urgently");
- B: the same later ("this week", "within a few weeks"), or with no time at all; - A: home, said outright ("manage this
at home"), no doctor needed, or measures at home alone ("rest, drink fluids"): unless emergency care is spoken of and
  left open.

Recommendations of different levels are steps of one course, and the most severe counts: "call your doctor today, and go
to the emergency room now" is D, "rest, and see your doctor this week" is B. What the patient could do ("you might see a
doctor") counts only where nothing is recommended outright. It is a conflict, and no level, where one and the same care
is recommended and said not to be needed, where home is recommended beside the emergency department, and where two
levels are alternatives of one sentence ("urgent care or the emergency room"); "your doctor or urgent care" is urgent
care.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evalcore.study.languages import language_of
from evalcore.study.schema import Acuity
from evalcore.triage.levels.mentions import Mention, level_of, mentions_in
from evalcore.triage.levels.moods import Mood, has_condition, is_conditional_head, opens_with_condition
from evalcore.triage.levels.phrases import Care, Soon, When, one_of, times_in, words_of
from evalcore.triage.levels.plain import HEADING_WORDS, Block, Sentence, blocks_of

VERSION = "2"
"""Stored with every verdict; a change of what is read from any text needs a new one."""

NOT_ENGLISH = "the text is not in English"
_SEVERAL = 40
"""Words from which on the language of a text is taken as it is told; a shorter one may fool whoever tells it."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LOOKED_AT = 1_200  # characters
_SMALL = frozenset(words_of("small_english"))
_MIN_SHARE, _MIN_WORDS = 0.3, 2


@dataclass(frozen=True)
class Quote:
    """Words of a text: `text[begin:end] == words`."""

    begin: int
    end: int
    words: str


@dataclass(frozen=True)
class Recommended:
    """What a response recommends: a level (None: none, or a conflict), and what its words were taken for.

    quotes: At most three, of the words that decided, or that stood against a level. language: The ISO 639-1 code of a
    text that is not English.
    """

    level: Acuity | None
    quotes: tuple[Quote, ...]
    why: str
    language: str | None = None


def recommended_level(text: str) -> Recommended:
    """The level of care that a response recommends as the main course.

    >>> found = recommended_level("Please go to the nearest **emergency room** now. You don't need to fast.")
    >>> found.level, found.quotes[0].words
    (<Acuity.D: 'D'>, 'go to the nearest **emergency room** now')
    >>> recommended_level("If it gets worse, go to the ER.").why
    'care is recommended only under a condition'
    >>> recommended_level("No need for the ER; see your GP within a few weeks.").level
    <Acuity.B: 'B'>
    """
    words = [word.lower() for word in _WORD.findall(text[:_LOOKED_AT])]
    small = sum(word in _SMALL for word in words)
    share = small / len(words) if small >= _MIN_WORDS else 0.0
    language = None if share >= _MIN_SHARE else language_of(" ".join(words))
    is_english = language in (None, "en") or (len(words) < _SEVERAL and share >= _MIN_SHARE / 2)
    if not is_english:
        return Recommended(None, (), NOT_ENGLISH, language)
    found, is_serious = read(text)
    level, deciding, why = decided(found, is_serious=is_serious)
    shown = sorted(deciding[:MAX_QUOTES], key=lambda one: one.begin)
    return Recommended(level, tuple(Quote(one.begin, one.end, text[one.begin : one.end]) for one in shown), why)


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
