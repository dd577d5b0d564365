"""The phrases of care in a sentence: by whom, how soon, and whether the patient is told to, need not, or may."""

import re
from dataclasses import dataclass, replace

from evalcore.study.schema import Acuity
from evalcore.triage.levels import phrases
from evalcore.triage.levels.moods import HOME, NOT_WITHOUT, Mood, conditional_parts, mood_of
from evalcore.triage.levels.phrases import Care, Soon, When, one_of, times_in


@dataclass(frozen=True)
class Mention:
    """A phrase of care in a sentence."""

    begin: int
    """Its place in the sentence, in the end in the response: from the verb to the words that say who, and when."""
    end: int
    care: Care | None
    """Who is to give it; None: care at home."""
    soon: Soon | None
    mood: Mood
    is_outright: bool = False
    """Of care at home: it says that home is the place."""
    is_partial: bool = False
    """Denied, but only of a specialist or a test, or only so soon."""

    @property
    def level(self) -> Acuity:
        """What it asks for: see the list in the package's docstring."""
        return level_of(self.care, self.soon)


def level_of(care: Care | None, soon: Soon | None) -> Acuity:
    """The level that a kind of care, so soon, stands for."""
    if care is None:
        return Acuity.A
    if care is Care.EMERGENCY:
        return Acuity.D
    if care is Care.URGENT:
        return Acuity.B if soon is Soon.WEEKS else Acuity.C
    if care is Care.MEDICAL and soon is Soon.NOW:
        return Acuity.D
    return Acuity.C if soon is not None and soon >= Soon.DAYS else Acuity.B


def clause_before(text: str, at: int) -> str:
    """The words of a clause before a place."""
    begin = 0
    for mark in (" ; ", " : ", " - ", " but ", " because ", " / "):
        found = text.rfind(mark, max(0, at - 160), at)
        if found >= 0:
            begin = max(begin, found + len(mark))
    return text[begin:at]


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


def _home_care(text: str) -> list[Mention]:
    found = [(said, _home_mood(text, said), True) for said in _OUTRIGHT.finditer(text)]
    found += [
        (said, Mood.DENIED if said.groupdict().get("not") else Mood.TOLD, True)
        for said in (*_ENOUGH.finditer(text), *_NOTHING.finditer(text))
    ]
    for said in _MEASURE.finditer(text):
        if not any(home.start() <= said.start() < home.end() for home, _, _ in found):
            found.append((said, mood_of(clause_before(text, said.start()), form="base"), False))
    homes = sorted((said.start(), said.end(), mood, is_outright) for said, mood, is_outright in found)
    return [Mention(begin, end, None, None, mood, is_outright) for begin, end, mood, is_outright in homes]


def _home_mood(text: str, said: re.Match[str]) -> Mood:
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


_AFTER = re.compile(rf" {one_of('after')} ")
_EITHER = re.compile(r"^(?:(?!or\b|if\b|but\b)[a-z0-9'-]+ ){0,8}(?:, )?(?:/|or)(?: [a-z]+){0,4}$")
_BOTH = re.compile(r"[, ]*(?:or|and|/) ")
_OR = re.compile(r"[, ]*(?:or|/) ")
_FEW = 2  # words
_ADVISED = {Mood.TOLD, Mood.OFFERED, Mood.ALTERNATIVE}


def _timed(text: str, found: list[Mention]) -> list[Mention]:
    times = times_in(text)
    done: list[Mention] = []
    for place, mention in enumerate(found):
        if mention.care is None:
            done.append(mention)
            continue
        others = [other for other in found[place + 1 :] if other.begin >= mention.end]
        stop = others[0].begin if others else len(text)
        if (mark := _AFTER.search(text + " ", mention.end)) and mark.start() < stop:
            stop = mark.start()
        start = max((other.end for other in done if other.end <= mention.begin), default=0)
        when = _nearest(times, mention, start, stop, text)
        end = max(mention.end, when.end) if when and when.end <= mention.end + 60 else mention.end
        begin = min(mention.begin, when.begin) if when and when.begin >= mention.begin - 60 else mention.begin
        done.append(replace(mention, begin=begin, end=end, soon=when.soon if when else None))
    for place in range(len(done) - 2, -1, -1):
        one, other = done[place], done[place + 1]
        between = text[one.end : found[place + 1].begin + 1] + " "
        if one.care and other.care and one.soon is None and _BOTH.match(between):
            done[place] = replace(one, soon=other.soon)
    for place in range(1, len(done)):
        one, other = done[place - 1], done[place]
        if one.care and other.care and other.soon is None and _OR.match(text[one.end : other.begin + 1] + " "):
            done[place] = replace(other, soon=one.soon)
    return done


def _nearest(times: list[When], mention: Mention, start: int, stop: int, text: str) -> When | None:
    within = [when for when in times if mention.begin <= when.begin < mention.end]
    if within:
        return max(within, key=lambda when: when.soon)
    behind = [when for when in times if mention.end <= when.begin < stop]
    if behind:
        return behind[0]
    before = [when for when in times if start <= when.begin and when.end <= mention.begin]
    for when in reversed(before):  # it opens the clause ("tomorrow, call ..."), or stands right before
        lead, gap = text[start : when.begin].split(), text[when.end : mention.begin].split()
        if ";" not in gap and (len(lead) <= _FEW or len(gap) <= _FEW):
            return when
    return None


def _alternatives(text: str, found: list[Mention]) -> list[Mention]:
    """Two levels in one breath ("urgent care or the ER") are no decision; "a doctor or urgent care" is urgent care."""
    changed = list(found)
    for place in range(len(found) - 1):
        one, other = changed[place], changed[place + 1]
        is_offered = one.care is not None and other.care is not None and {one.mood, other.mood} <= _ADVISED
        if not is_offered or one.level is other.level or not _EITHER.match(text[one.end : other.begin].strip()):
            continue
        if one.soon is None and one.level < other.level < Acuity.D:
            changed[place] = replace(one, soon=Soon.DAYS)
        elif other.soon is None and other.level < one.level < Acuity.D:
            changed[place + 1] = replace(other, soon=Soon.DAYS)
        else:
            changed[place] = replace(one, mood=Mood.ALTERNATIVE)
            changed[place + 1] = replace(other, mood=Mood.ALTERNATIVE)
    return changed


_DENIED_NOUN = re.compile(rf"{one_of('denied_noun')}(?: {one_of('before_noun')})* $")
_PREDICATE = re.compile(
    rf"^{one_of('behind_target')}* (?P<be>{one_of('predicate_be')})(?P<not>(?: [a-z]+)? (?:not|never|unlikely to be))?"
    rf"{one_of('predicate_how')}* (?P<what>{one_of('predicate')})\b"
)
_CONTRAST = re.compile(r"\b(?:not|rather than|instead of|skip|avoid)(?: (?:an?|the|your|any|to))* $")
_LABELLED = re.compile(rf"{one_of('labelled')} (?:(?:an?|the|your|to be|is|:|-) )*(?:[a-z]+ )?$")
_EMERGENCY_IS = re.compile(
    rf"\b{one_of('the_case')}(?P<be>{one_of('is_said')}{{1,9}}) (?:emergency|emergencies|emergency situation|911 situation|999 situation)"
    rf"(?! {one_of('emergency_of')})"
)
_TREAT_AS = re.compile(
    r"(?<![\w'-])treat (?:this|it|these symptoms|that|your symptoms) as (?:an? )?(?:[a-z]+ )?emergency\b"
)
_EXAMINES = re.compile(
    rf"^ (?P<modal>should|must|needs? to|ought to|has to|can|could|may|might|will) (?:also |ideally |really |definitely )?{one_of('examines')}\b"
)
_NOT_ADVISED = re.compile(r"\bnot (?:[a-z]+ )?(?:recommend|advise|suggest)")
_DOUBTED = re.compile(r"\b(?:not (?:think|believe)|doubt|unlikely(?: that)?) $")
_IF_NEEDED = re.compile(
    rf"^{one_of('behind_target')}*(?: ,)?(?: only| but only)? (?:if|when|as|where) (?:needed|necessary|required)\b"
)
_SAID = re.compile(
    rf"^{one_of('behind_target')}* , (?!as )(?:[a-z]+ ){{1,4}}(?:said|says|told (?:you|me|us|him|her)|wrote|writes|insists?|claims?)\b"
)
_TAKEN_BACK = re.compile(rf"^{one_of('behind_target')}* , (?:but|although|though) {one_of('taken_back')}(?= [,;]|$)")
_WHEN = re.compile(
    rf"^{one_of('behind_target')}* [:-] (?:{one_of('amount')} {one_of('number')}|{one_of('now')}|{one_of('today')}|{one_of('days')}|{one_of('weeks')})(?![\w-])"
)
"""A line of a summary: "doctor: within two weeks"."""
_GOES_ON = ((_IF_NEEDED, Mood.CONDITIONAL), (_SAID, Mood.REPORTED), (_TAKEN_BACK, Mood.DENIED))
"""What a sentence that goes on makes of a phrase: "... if needed", "..., she said", "..., but I would not"."""
_NEAR_NOUN = 90  # characters looked at before a phrase
_BEHIND = 140  # and behind it
_MAYBE = frozenset(("may", "might", "could", "can", "would", "potentially", "possibly", "potential", "possible"))


def _noun_mood(text: str, target: re.Match[str]) -> Mood | None:
    before = clause_before(text, target.start())[-_NEAR_NOUN:]
    if _DENIED_NOUN.search(before):
        return Mood.POSSIBLE if NOT_WITHOUT.search(before) else Mood.DENIED
    is_labelled = _LABELLED.search(text[max(0, target.start() - _NEAR_NOUN) : target.start()])
    return Mood.TOLD if is_labelled and not _NOT_ADVISED.search(before) else None


def _predicate_mood(text: str, target: re.Match[str]) -> Mood | None:
    behind = text[target.end() : target.end() + _BEHIND]
    for pattern, mood in _GOES_ON:
        if pattern.match(behind):
            return mood
    if _WHEN.match(behind) and not text[: target.start()].strip():
        return Mood.TOLD
    return _said_of(target, behind)


def _said_of(target: re.Match[str], behind: str) -> Mood | None:
    if target.lastgroup == "doctor" and (said := _EXAMINES.match(behind)):
        return Mood.POSSIBLE if said["modal"] in ("can", "could", "may", "might", "will") else Mood.TOLD
    said = _PREDICATE.match(behind)
    if said is None:
        return None
    if said["what"] in ("unnecessary", "overkill", "excessive", "too much"):
        return None if said["not"] else Mood.DENIED
    if said["not"]:
        return Mood.DENIED
    if said["be"] in ("may be", "might be", "could be"):
        return Mood.POSSIBLE
    return Mood.OFFERED if said["what"] in ("reasonable", "appropriate", "fine", "ok") else Mood.TOLD


def _emergency_said(text: str) -> list[Mention]:
    found = []
    for said in (*_EMERGENCY_IS.finditer(text), *_TREAT_AS.finditer(text)):
        before = clause_before(text, said.start())
        words = set((said.groupdict().get("be") or "").split())
        if said.re is _TREAT_AS:
            mood = mood_of(before, form="base")
        elif "not" in words or _DOUBTED.search(before):
            mood = Mood.DENIED
        else:
            mood = Mood.POSSIBLE if words & _MAYBE else Mood.TOLD
        found.append(Mention(said.start(), said.end(), Care.EMERGENCY, None, mood))
    return found


MAX_GAP = 10  # words between a verb and what it is about
_NUMBERS = frozenset(("911", "999", "112", "000", "111", "nhs 111"))
_CALLED = frozenset(("call", "dial", "phone", "ring", "text", "contact", "telephone", "alert", "use", "try"))
_ADJACENT = re.compile(
    r"^(?:,|/|or|and|and/or|the|a|an|your|local|nearest|to|at|in|any|nor|even|either|&|for|of|by|with| )*$"
)
_JOINED = re.compile(r"(?:^| )(?:and|or|then|,) $")
_ARTICLE = re.compile(r"(?:^| )(?:an?|the|your|this|that|another|any|no|quick|short|phone) $")
_NEAR_VERB = 12  # characters looked at before a verb
_SEEN = dict.fromkeys(("being", "getting", "having"), "gerund") | dict.fromkeys(("been", "got", "was", "were"), "past")


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
        mood = _noun_mood(text, target)
        if verb is not None and (mood is None or verb.begin > target.start()):
            mood = _verb_mood(text, verb)
            taken.add(verb.begin)
        if verb is None and mood is None and last_end >= 0 and _ADJACENT.match(text[last_end : target.start()]):
            mood = last_mood
        if (predicate := _predicate_mood(text, target)) is not None:
            mood = predicate
        last_end, last_mood = target.end(), mood or Mood.REPORTED
        before = clause_before(text, target.start())[-_NEAR_NOUN:]
        is_partial = mood is Mood.DENIED and bool(_CONTRAST.search(before))  # "the ER, not your GP"
        found.append(Mention(begin, target.end(), care, None, mood or Mood.REPORTED, is_partial=is_partial))
    alone = [verb for verb in verbs if verb.base == "seen" and verb.begin not in taken]  # "get this checked"
    found += [Mention(verb.begin, verb.end, Care.MEDICAL, None, _verb_mood(text, verb)) for verb in alone]
    found += _emergency_said(text)
    found += _home_care(text)
    found.sort(key=lambda mention: (mention.begin, mention.end))
    found = [_judged(text, mention) for mention in _timed(text, found)]
    levels = [HOME if one.care is None else one.level.value for one in found]
    levels = ["" if one.mood is Mood.REPORTED else level for one, level in zip(found, levels, strict=True)]
    scopes = conditional_parts(text, [(one.begin, one.end, level) for one, level in zip(found, levels, strict=True)])
    for place, mention in enumerate(found):
        middle = (mention.begin + mention.end) // 2
        over = [scope for scope in scopes if scope.begin <= middle < scope.end]
        is_presumed = mention.mood is not Mood.DENIED and all(scope.is_presumed for scope in over)
        if over:
            found[place] = replace(mention, mood=Mood.PRESUMED if is_presumed else Mood.CONDITIONAL)
    return _alternatives(text, found)


def _verbs(text: str) -> list[_Verb]:
    verbs = []
    for said in phrases.VERB.finditer(text):
        form = said.lastgroup or ""
        words = said[form]
        if form == "base" and _ARTICLE.search(text[max(0, said.start() - _NEAR_VERB) : said.start()]):
            continue  # "a visit to", "your follow-up": no verb
        base = phrases.GERUNDS.get(words, words)
        if form == "seen":
            base, form = "seen", _SEEN.get(words.partition(" ")[0], "base")
        elif form == "taken":
            base, form = "taken", "base"
        verbs.append(_Verb(said.start(), said.end(), base, form))
    return verbs


def _verb_of(text: str, verbs: list[_Verb], target: re.Match[str], care: Care) -> _Verb | None:
    for verb in reversed(verbs):
        if verb.begin >= target.start():
            continue
        gap = text[verb.end : target.start()]
        is_over = ":" in gap and phrases.TARGET.search(gap)  # "no need to see your GP: A&E is open"
        if is_over or len(gap.split()) > MAX_GAP or phrases.BLOCKED.search(gap):
            return None
        if _takes(text, verb, target, care):
            return verb
        if _JOINED.search(text[: verb.begin][-_NEAR_VERB:]):
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
    # "no need to see a doctor now": not at all, as things are
    is_hurry = mention.soon is not None and not words.endswith(" now")
    targets = [said[0] for said in phrases.TARGET.finditer(words)]
    is_other = mention.care is Care.DOCTOR and bool(targets) and not phrases.GENERIC_DOCTOR.match(targets[-1])
    is_other = is_other or (mention.care is Care.MEDICAL and bool(phrases.TEST.search(words)))
    return replace(mention, is_partial=is_other or is_hurry)
