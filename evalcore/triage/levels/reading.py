"""The phrases of care of a whole response: its sentences one by one, and what their headings, lists and questions make of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evalcore.triage.levels.mentions import Mention, level_of, mentions_in
from evalcore.triage.levels.moods import Mood
from evalcore.triage.levels.phrases import Care
from evalcore.triage.levels.plain import HEADING_WORDS, Block, Sentence, blocks_of
from evalcore.triage.levels.scopes import has_condition, is_conditional_head, opens_with_condition
from evalcore.triage.levels.times import Soon, times_in
from evalcore.triage.levels.word_lists import one_of

_LABEL = re.compile(r"^(?P<label>[^:]{2,90}) : (?=\S)")
_NOT_HEAD = re.compile(
    r"\b(?:do not(?: need to)?|not need to|avoid|never|no need to|not necessary to|you can skip|not needed|unnecessary) :?$"
)
_SYMPTOM = re.compile(rf"^{one_of('before_symptom')}*{one_of('symptom')}\b")
_THEREUPON = re.compile(rf"^{one_of('thereupon')}\b")
_BRACKET = 4  # characters from a phrase to the first word in the brackets behind it
_SERIOUS = re.compile(one_of("serious"))


@dataclass(frozen=True)
class Found:
    """A phrase of care with its place in the response."""

    mention: Mention
    begin: int
    end: int


@dataclass
class _Head:
    """What a heading, or a line that ends with a colon, makes of what stands under it."""

    mood: Mood | None = None
    soon: Soon | None = None
    depth: int = -1
    has_list: bool = False


def read(text: str) -> tuple[list[Found], bool]:
    """The phrases of care in order, and whether something serious is spoken of that no phrase settles."""
    found: list[Found] = []
    is_serious = False
    blocks = list(blocks_of(text))
    heads: list[_Head] = []
    for place, block in enumerate(blocks):
        heads = _standing(heads, block)
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        mood, soon = _inherited(heads)
        opens = _opens(block)
        over_symptoms = opens and following is not None and _lists_symptoms(following)
        under = Mood.CONDITIONAL if over_symptoms else mood
        was_conditional = False
        brackets = _conditions_in_brackets(block)
        for number, sentence in enumerate(block.sentences):
            if (
                not over_symptoms
                and mood is not Mood.CONDITIONAL
                and (label := _LABEL.match(sentence.text)) is not None
            ):
                under = Mood.CONDITIONAL if _is_conditional_label(label["label"], is_first=number == 0) else mood
            mentions = [] if sentence.is_question else list(_mentions(sentence, under, soon))
            mentions = _bracketed(mentions, sentence, brackets.get(id(sentence), []))
            is_serious = is_serious or (
                under is None and not has_condition(sentence.text) and bool(_SERIOUS.search(sentence.text))
            )
            if (
                not mentions
                and found
                and not was_conditional
                and under is None
                and (times := times_in(sentence.text))
                and _THEREUPON.match(sentence.text)
            ):
                _thereupon(found, times[0].soon)
            was_conditional = has_condition(sentence.text)
            found += [Found(mention, *sentence.span(mention.begin, mention.end)) for mention in mentions]
        if opens:
            heads = _with_head(heads, _opened(block))
    return sorted(found, key=lambda one: (one.begin, one.end)), is_serious


def _standing(heads: list[_Head], block: Block) -> list[_Head]:
    """The heads that still stand over a block."""
    if block.kind == "heading":
        return []
    if block.kind == "item":
        kept = [head for head in heads if head.depth < block.depth or head.depth < 0]
        for head in kept:
            head.has_list = True
        return kept
    return [head for head in heads if not head.has_list and head.depth < 0]


def _with_head(heads: list[_Head], head: _Head) -> list[_Head]:
    """With one head more; of paragraphs that end with a colon, one after the other, one head is made, so that there are never many."""
    if not heads or head.depth >= 0 or heads[-1].depth >= 0:
        return [*heads, head]
    last = heads[-1]
    mood = last.mood if last.mood is Mood.CONDITIONAL else head.mood or last.mood
    return [*heads[:-1], _Head(mood, head.soon if head.soon is not None else last.soon)]


def _inherited(heads: list[_Head]) -> tuple[Mood | None, Soon | None]:
    moods = [head.mood for head in heads if head.mood is not None]
    times = [head.soon for head in heads if head.soon is not None]
    mood = Mood.CONDITIONAL if Mood.CONDITIONAL in moods else moods[-1] if moods else None
    return mood, times[-1] if times else None


def _opens(block: Block) -> bool:
    return block.kind == "heading" or block.ends_open


def _opened(block: Block) -> _Head:
    last = block.sentences[-1].text
    depth = block.depth if block.kind == "item" else -1
    times = times_in(last) if len(last.split()) <= HEADING_WORDS else []
    mood = Mood.CONDITIONAL if is_conditional_head(last) else Mood.DENIED if _NOT_HEAD.search(last) else None
    return _Head(mood, times[0].soon if times else None, depth)


def _is_conditional_label(label: str, *, is_first: bool) -> bool:
    """Whether a label makes the rest of its paragraph conditional: "warning signs: ..." does, "if it bleeds: ..." only where it comes first."""
    if len(label.split()) > HEADING_WORDS or not is_conditional_head(label):
        return False
    return is_first or not re.match(r"(?:if|when(?:ever)?|should|in case|once) (?!to )", label)


def _lists_symptoms(block: Block) -> bool:
    """Whether a list of symptoms follows: the line above it then says what to do if one of them comes."""
    return (
        block.kind == "item"
        and bool(_SYMPTOM.match(block.sentences[0].text))
        and not mentions_in(block.sentences[0].text)
    )


def _mentions(sentence: Sentence, under: Mood | None, soon: Soon | None) -> Iterator[Mention]:
    outer = sentence.outer
    conditional = under is Mood.CONDITIONAL or (outer is not None and has_condition(outer.text))
    for mention in mentions_in(sentence.text):
        found = mention
        if sentence.is_quoted(mention.begin) and not all(sentence.quoted):
            found = replace(found, mood=Mood.REPORTED)
        elif conditional and (mention.care is not None or under is Mood.CONDITIONAL):
            found = replace(found, mood=Mood.CONDITIONAL)
        elif under is Mood.DENIED and mention.mood in (Mood.TOLD, Mood.OFFERED):
            found = replace(found, mood=Mood.DENIED, is_partial=soon is not None)
        if found.care is not None and found.soon is None and soon is not None:
            found = replace(found, soon=soon)
        yield found


def _conditions_in_brackets(block: Block) -> dict[int, list[int]]:
    """Where brackets begin that hold only a condition, by the `id` of the sentence they stand in."""
    found: dict[int, list[int]] = {}
    for inner in block.sentences:
        if inner.outer is not None and opens_with_condition(inner.text) and not mentions_in(inner.text):
            found.setdefault(id(inner.outer), []).append(inner.spans[0][0])
    return found


def _bracketed(mentions: list[Mention], sentence: Sentence, begins: list[int]) -> list[Mention]:
    """Brackets right behind a phrase are its condition where they hold one: "go to the ER (if you can not breathe)"."""
    return [
        replace(mention, mood=Mood.CONDITIONAL)
        if any(0 < begin - sentence.span(mention.begin, mention.end)[1] <= _BRACKET for begin in begins)
        else mention
        for mention in mentions
    ]


def _thereupon(found: list[Found], soon: Soon) -> None:
    """Where "ideally within the next two weeks." says when of the sentence before it."""
    last = found[-1].mention
    is_open = last.soon is None and last.care not in (None, Care.EMERGENCY) and last.mood in (Mood.TOLD, Mood.OFFERED)
    if is_open and level_of(last.care, soon) is not last.level:
        found[-1] = replace(found[-1], mention=replace(last, soon=soon))
