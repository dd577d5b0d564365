"""The phrases of care in a sentence: who is to give it, how soon, and whether the patient is told to, need not, may, or none of that."""

import re
from dataclasses import dataclass, replace

from evalcore.triage.levels import phrases
from evalcore.triage.levels.home import clause_before, home_care
from evalcore.triage.levels.joining import alternatives, timed
from evalcore.triage.levels.mention import Mention
from evalcore.triage.levels.moods import Mood, mood_of
from evalcore.triage.levels.nouns import emergency_said, is_contrast, noun_mood, predicate_mood
from evalcore.triage.levels.phrases import Care
from evalcore.triage.levels.scopes import HOME, Scope, conditional_parts

MAX_GAP = 10  # words between a verb and what it is about
_NUMBERS = frozenset(("911", "999", "112", "000", "111", "nhs 111"))
_CALLED = frozenset(("call", "dial", "phone", "ring", "text", "contact", "telephone", "alert", "use", "try"))
_ADJACENT = re.compile(
    r"^(?:,|/|or|and|and/or|the|a|an|your|local|nearest|to|at|in|any|nor|even|either|&|for|of|by|with| )*$"
)


_JOINED = re.compile(r"(?:^| )(?:and|or|then|,) $")
_ARTICLE = re.compile(r"(?:^| )(?:an?|the|your|this|that|another|any|no|quick|short|phone) $")
_NEAR = 12  # characters looked at before a verb
_SEEN = {
    "being": "gerund", "getting": "gerund", "having": "gerund", "been": "past", "got": "past", "was": "past", "were": "past",
}  # fmt: skip


@dataclass(frozen=True)
class _Verb:
    begin: int
    end: int
    base: str
    form: str


def mentions_in(text: str) -> list[Mention]:
    """The phrases of care in a sentence, in order, conditions already told."""
    verbs = _verbs(text)
    found: list[Mention] = []
    taken: set[int] = set()
    last_end, last_mood = -1, Mood.REPORTED
    for target in phrases.TARGET.finditer(text):
        care = Care(target.lastgroup or "")
        verb = _verb_of(text, verbs, target, care)
        begin = verb.begin if verb is not None and verb.begin not in taken else target.start()
        mood = noun_mood(text, target)
        if verb is not None and (mood is None or verb.begin > target.start()):
            mood = _verb_mood(text, verb)
            taken.add(verb.begin)
        if verb is None and mood is None and last_end >= 0 and _ADJACENT.match(text[last_end : target.start()]):
            mood = last_mood
        if (predicate := predicate_mood(text, target)) is not None:
            mood = predicate
        last_end, last_mood = target.end(), mood or Mood.REPORTED
        is_partial = mood is Mood.DENIED and is_contrast(text, target)
        found.append(Mention(begin, target.end(), care, None, mood or Mood.REPORTED, is_partial=is_partial))
    alone = [verb for verb in verbs if verb.base == "seen" and verb.begin not in taken]  # "get this checked"
    found += [Mention(verb.begin, verb.end, Care.MEDICAL, None, _verb_mood(text, verb)) for verb in alone]
    found += emergency_said(text)
    found += [
        Mention(home.begin, home.end, None, None, home.mood, is_outright=home.is_outright) for home in home_care(text)
    ]
    found.sort(key=lambda mention: (mention.begin, mention.end))
    found = timed(text, found)
    return alternatives(text, _conditioned(text, [_judged(text, mention) for mention in found]))


def _verbs(text: str) -> list[_Verb]:
    verbs = []
    for said in phrases.VERB.finditer(text):
        form = said.lastgroup or ""
        words = said[form]
        if form == "base" and _ARTICLE.search(text[max(0, said.start() - _NEAR) : said.start()]):
            continue  # "a visit to", "your follow-up": no verb
        base = phrases.GERUNDS.get(words, words)
        if form == "seen":
            base, form = "seen", _SEEN.get(words.partition(" ")[0], "base")
        elif form == "taken":
            base, form = "taken", "base"
        verbs.append(_Verb(said.start(), said.end(), base, form))
    return verbs


def _verb_of(text: str, verbs: list[_Verb], target: re.Match[str], care: Care) -> _Verb | None:
    """The verb that a target belongs to: the nearest before it that can take it, within its own part of the sentence."""
    for verb in reversed(verbs):
        if verb.begin >= target.start():
            continue
        gap = text[verb.end : target.start()]
        is_over = ":" in gap and phrases.TARGET.search(gap)  # "no need to see your GP: A&E is open"
        if is_over or len(gap.split()) > MAX_GAP or phrases.BLOCKED.search(gap):
            return None
        if _takes(text, verb, target, care):
            return verb
        if _JOINED.search(text[: verb.begin][-_NEAR:]):
            return None
    return None


def _takes(text: str, verb: _Verb, target: re.Match[str], care: Care) -> bool:
    said = text[verb.begin : target.end()]
    gap = text[verb.begin : target.start()]
    looks = care is Care.DOCTOR and phrases.LOOKS.match(text, target.end())
    if target[0] in _NUMBERS:
        return verb.base in _CALLED
    if verb.base == "have":
        return bool(looks)
    if verb.base in phrases.GOING and not phrases.TOWARD.search(gap) and target[0] != "ambulance":
        return verb.base == "get" and bool(looks or phrases.GOT.search(said))
    return verb.base not in phrases.NEED_APPOINTMENT or bool(phrases.APPOINTED.search(said))


def _verb_mood(text: str, verb: _Verb) -> Mood:
    mood = mood_of(clause_before(text, verb.begin), form=verb.form)
    if verb.base in ("drive", "walk", "travel") and mood is Mood.DENIED:
        return Mood.REPORTED  # how to get there, not whether
    if verb.base in ("skip", "stop") and mood is Mood.TOLD:
        return Mood.DENIED
    if verb.base in ("consider", "try") and mood is Mood.TOLD:
        return Mood.OFFERED
    return mood


def _judged(text: str, mention: Mention) -> Mention:
    """A denial that is only of a specialist, or only of care so soon, says little."""
    if mention.mood is not Mood.DENIED or mention.care not in (Care.DOCTOR, Care.MEDICAL) or mention.is_partial:
        return mention
    words = text[mention.begin : mention.end]
    is_hurry = mention.soon is not None and not words.endswith(
        " now"
    )  # "no need to see a doctor now": not at all, as things are
    targets = [said[0] for said in phrases.TARGET.finditer(words)]
    is_other = mention.care is Care.DOCTOR and bool(targets) and not phrases.GENERIC_DOCTOR.match(targets[-1])
    is_other = is_other or (mention.care is Care.MEDICAL and bool(phrases.TEST.search(words)))
    return replace(mention, is_partial=is_other or is_hurry)


def _conditioned(text: str, found: list[Mention]) -> list[Mention]:
    places = [(mention.begin, mention.end, _reached(mention)) for mention in found]
    scopes = conditional_parts(text, places)
    return [
        _under(mention, [scope for scope in scopes if scope.begin <= _middle(mention) < scope.end]) for mention in found
    ]


def _under(mention: Mention, scopes: list[Scope]) -> Mention:
    if not scopes:
        return mention
    is_presumed = mention.mood is not Mood.DENIED and all(scope.is_presumed for scope in scopes)
    return replace(mention, mood=Mood.PRESUMED if is_presumed else Mood.CONDITIONAL)


def _reached(mention: Mention) -> str:
    if mention.mood is Mood.REPORTED:
        return ""
    return HOME if mention.care is None else mention.level.value


def _middle(mention: Mention) -> int:
    return (mention.begin + mention.end) // 2
