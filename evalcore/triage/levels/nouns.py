"""Phrases of care without a verb of their own: "no need for the ER", "an appointment is enough", "this is an emergency"."""

import re

from evalcore.triage.levels.home import clause_before
from evalcore.triage.levels.mention import Mention
from evalcore.triage.levels.moods import NOT_WITHOUT, Mood, mood_of
from evalcore.triage.levels.phrases import Care
from evalcore.triage.levels.word_lists import one_of

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
_NEAR = 90  # characters looked at before a phrase
_BEHIND = 140  # and behind it
_MAYBE = frozenset(("may", "might", "could", "can", "would", "potentially", "possibly", "potential", "possible"))


def noun_mood(text: str, target: re.Match[str]) -> Mood | None:
    """The mood that a target has from the words before it, whatever its verb: "no need for ...", "recommendation: ..."; None: none."""
    before = clause_before(text, target.start())[-_NEAR:]
    if _DENIED_NOUN.search(before):
        return Mood.POSSIBLE if NOT_WITHOUT.search(before) else Mood.DENIED
    is_labelled = _LABELLED.search(text[max(0, target.start() - _NEAR) : target.start()])
    return Mood.TOLD if is_labelled and not _NOT_ADVISED.search(before) else None


def is_contrast(text: str, target: re.Match[str]) -> bool:
    """Whether a target is only set against another: "the ER, not your GP"."""
    return bool(_CONTRAST.search(clause_before(text, target.start())[-_NEAR:]))


def predicate_mood(text: str, target: re.Match[str]) -> Mood | None:
    """The mood that a target has from what is said of it: "... is not necessary", "a doctor should look at this"; None: none."""
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


def emergency_said(text: str) -> list[Mention]:
    """Where a sentence calls the case itself an emergency, or no emergency: "this is a medical emergency", "treat this as an emergency"."""
    found = []
    for said in (*_EMERGENCY_IS.finditer(text), *_TREAT_AS.finditer(text)):
        before = clause_before(text, said.start())
        mood = (
            mood_of(before, form="base") if said.re is _TREAT_AS else _emergency_mood(before, set(said["be"].split()))
        )
        found.append(Mention(said.start(), said.end(), Care.EMERGENCY, None, mood))
    return found


def _emergency_mood(before: str, words: set[str]) -> Mood:
    if "not" in words or _DOUBTED.search(before):
        return Mood.DENIED
    return Mood.POSSIBLE if words & _MAYBE else Mood.TOLD
