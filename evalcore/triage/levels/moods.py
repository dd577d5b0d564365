"""What its sentence makes of a phrase of care: told, not needed, or neither; and what a condition reaches.

A mood is read from the words before the verb, nearest first, within its own clause. Three sorts of words open a
condition: those whose main clause holds only with it (if, when, in case), those that only set a part aside ("unless you
faint", "until you see a doctor"), and the words of a heading or a list ("When to seek emergency care:").
"""

import re
from enum import StrEnum
from typing import NamedTuple

from evalcore.triage.levels.phrases import one_of

REACH = 160  # characters looked at before a verb


class Mood(StrEnum):
    """What a phrase of care does in its sentence."""

    TOLD = "told"
    """The patient is told to: an order, "you should", "I recommend"."""
    OFFERED = "offered"
    """The patient may: "you could", "consider"."""
    DENIED = "denied"
    """It is not needed, or should not be done."""
    POSSIBLE = "possible"
    """It may come to be needed: "you may need"."""
    CONDITIONAL = "conditional"
    PRESUMED = "presumed"
    """It is taken for granted that it comes, or has come: "until the ambulance arrives", "before you go"."""
    REPORTED = "reported"
    """Somebody did it, said it, or asks it; or it is said of people in general."""
    ALTERNATIVE = "alternative"
    """One of two different levels offered in one breath."""


def _right_before(section: str, more: str = "") -> re.Pattern[str]:
    return re.compile(rf"(?:^| ){one_of(section)}{more} $")


_SKIP = re.compile(rf"{one_of('skip')}{one_of('adverb')} $")
_THROUGH = _right_before("through")
_NOT_JUST = re.compile(r"(?:\b(?:do|does|should|must) )?\bnot (?:just|only|simply|merely) $")
_LIGHT_NOT = re.compile(
    r"\bnot (?:hesitate|be afraid|be shy|feel (?:bad|embarrassed|silly) about|be embarrassed)(?: to)? $"
)
_MUST = _right_before("must", "(?: not)?")
_TOLD_TO = _right_before("told_to", " to")
_OFFERED_TO = _right_before("offered_to", " ?to")
_POSSIBLE_TO = _right_before("possible_to", " to")
_MODAL_OFFER = re.compile(
    r"(?:^| )(?:could|might|may|can)(?: also| always| certainly| safely| simply| still| either)? $"
)
_OF_OTHERS = re.compile(rf"\b{one_of('of_others')} $")
_I_WOULD = re.compile(
    rf"(?:^| )(?:i|we|i personally)(?: personally| definitely| strongly| still| certainly)? would{one_of('i_would')}* $"
)
_THAT_YOU = _right_before("that_you", rf"(?: that)? {one_of('you')}")
_SUBJECT = re.compile(rf"{one_of('subject')}{one_of('you')} $")
_NO_NEED = re.compile(rf"(?:^| ){one_of('no_need')} ?$")
UNLIKELY = re.compile(
    rf"\b{one_of('unlikely')}\b(?: ,(?: [a-z0-9'-]+){{1,12}} ,)?(?: (?!(?:and|but|so(?! far| much| long)|because)\b)[a-z0-9'-]+){{0,24}} $"
)
_PAST_ADVICE = _right_before("past_advice", rf"(?: {one_of('you')})?(?: to| (?:that )?(?:{one_of('you')} )?should)")
_DONE = re.compile(r"\b(?:did|was|(?:you|he|she|they) were)\b(?: [a-z]+){0,4} to $")
"""What somebody did right, or was advised, is no order: "you did the right thing to call 911"."""
_LAST_THING = re.compile(r"\blast (?:thing|place|step) (?:that )?(?:you|anyone|anybody|he|she|they|i)\b[^,;:]* $")
_THOUGHT = re.compile(rf"\b{one_of('may_think')}(?: (?!(?:and|but|so|then)\b)[a-z'-]+){{0,4}} $")
_SET_IN = re.compile(r"(?<!if )(?<!or )(?<!why )(?<!whether )\b(?P<kept>not|never) ,(?: (?!but\b)[a-z0-9'-]+){1,8} , ")
"""Words set in behind a negation: "you do not, in my view, need to"."""
_GENERIC = re.compile(rf"(?:^| ){one_of('generic')}\b(?: (?!you\b|i\b|your\b)[a-z0-9'&/-]+){{0,7}} $")
_GENERIC_NOT_AFTER = re.compile(rf"\b(?:like|for|than|of|as|with|in|to|by) {one_of('generic_not_after')}\b")
_UNOWNED = re.compile(
    rf"^(?:{one_of('before_symptom')})*{one_of('symptom')}\b(?: (?!:)[a-z0-9',-]+)* (?:should|must|needs? to|ought to|has to|have to) $"
)
_OWNED = re.compile(r"\b(?:you|your|yours|he|she|it|this|these|his|her|my|we|i)\b")
"""Of a symptom that is nobody's ("blood in the stool should be checked") it is said what is to be done in general."""
_ASKED = re.compile(rf"\b{one_of('asked')}(?: [a-z]+){{0,6}} $")
_ADVISERS = re.compile(one_of("advisers"))
_FREE_TO = re.compile(r"\bnot (?:[a-z]+ ){0,2}to $")
_NOT_ADVISED = re.compile(r"\bnot (?:[a-z]+ ){0,2}(?:recommend|suggest|advise|important|necessary)")
_EARLIER_NOT = re.compile(one_of("earlier_not"))
_EARLIER_OFFER = re.compile(r"\b(?:you|one|we) (?:could|might|may|can)\b(?! not)|\bconsider\b")
_EARLIER_POSSIBLE = re.compile(one_of("earlier_possible"))
_TOLD_STORY = re.compile(r"(?:^| )(?:he|she|they|people|who|doctors|i|we|it)(?: [a-z]+){1,6} (?:and|or|then) $")
_EARLIER_TOLD = re.compile(r"\b(?:should|must|need|needs|have|has|would|recommend|suggest|advise)\b")
_JOINS = frozenset((",", ":", ";", "-", "&", "/", "and", "or", "then", "so", "but", "is", "nor"))


def mood_of(before: str, *, form: str) -> Mood:
    """The mood of a verb by its clause `before` it; `form`: base, gerund, past, need or advise ("I recommend")."""
    before = _SET_IN.sub(r"\g<kept> ", before[-REACH:])
    if (mood := _whatever_form(before)) is not None or form == "past":
        return mood or Mood.REPORTED
    if form in ("need", "advise"):
        return indicative(before, form)
    before = _skipped(_NOT_JUST.sub("", before))
    if _LIGHT_NOT.search(before):
        return Mood.POSSIBLE
    while through := _THROUGH.search(before):
        form = "base"
        before = _skipped(before[: through.start()] + (" " if through.start() else ""))
    if _PAST_ADVICE.search(before):
        return Mood.REPORTED
    return gerund(before) if form == "gerund" else _base(before)


def _whatever_form(before: str) -> Mood | None:
    """The mood that the words before a verb settle, whatever its form; None: they do not."""
    is_general = _UNOWNED.search(before) and not _OWNED.search(before)
    is_general = is_general or (_GENERIC.search(before) and not _GENERIC_NOT_AFTER.search(before))
    if is_general or _ASKED.search(before) or _THOUGHT.search(before):
        return Mood.REPORTED
    if _LAST_THING.search(before):
        return Mood.DENIED
    return Mood.POSSIBLE if NOT_WITHOUT.search(before) else None


def _skipped(before: str) -> str:
    while found := _SKIP.search(before):
        before = before[: found.start()]
    return before


def _base(before: str) -> Mood:
    if _NO_NEED.search(before):
        return Mood.POSSIBLE if before.endswith("can not ") else Mood.DENIED
    last = before.strip().rpartition(" ")[2]
    if last == "to":
        return _infinitive(before)
    if _I_WOULD.search(before) or _MUST.search(before):
        return Mood.DENIED if _MUST.search(before) and UNLIKELY.search(before) else Mood.TOLD
    if offer := _MODAL_OFFER.search(before):
        return Mood.POSSIBLE if _OF_OTHERS.search(before[: offer.start() + 1]) else Mood.OFFERED
    if _THAT_YOU.search(before):
        return Mood.DENIED if _NOT_ADVISED.search(before) else Mood.TOLD
    return _continued(before, last)


def _infinitive(before: str) -> Mood:
    if _DONE.search(before):
        return Mood.REPORTED
    if _POSSIBLE_TO.search(before):
        return Mood.POSSIBLE
    if _OFFERED_TO.search(before):
        return Mood.DENIED if _FREE_TO.search(before) else Mood.OFFERED
    if _TOLD_TO.search(before) or _MUST.search(before):
        return Mood.DENIED if UNLIKELY.search(before) else Mood.TOLD
    return Mood.REPORTED


def _continued(before: str, last: str) -> Mood:
    """An order, or a verb after "and", "or" or a comma: as the verbs before it in the clause, else an order."""
    if before.endswith("let us ") or not before.strip():
        return Mood.TOLD
    if _SUBJECT.search(before) or last not in _JOINS:
        return Mood.REPORTED
    if last in ("or", "nor") and _EARLIER_NOT.search(before):
        return Mood.DENIED
    if last in ("or", "and") and _EARLIER_POSSIBLE.search(before):
        return Mood.POSSIBLE
    if last in ("or", "and") and not before.endswith(", and ") and _EARLIER_OFFER.search(before):
        return Mood.OFFERED
    return Mood.REPORTED if _TOLD_STORY.search(before) and not _EARLIER_TOLD.search(before) else Mood.TOLD


_NOT_DOING = _right_before("not_doing")
NOT_WITHOUT = re.compile(
    r"\b(?:not|never|nobody|nothing|unlikely|unwise|unsafe)\b[a-z0-9' -]* without(?: (?:an?|the|your|any|first))* $"
)
"""Of "do not wait longer without seeing a doctor" neither half is a denial."""
_NOT_DELAY = re.compile(
    r"(?:^| )(?:not (?:delay|put off|postpone|hold off on|wait on|avoid)(?: on)?|recommend against not) $"
)
_LEADS = re.compile(rf"(?:^| )(?P<said>{one_of('leads_gerund')})(?: you| your)? $")
_STEP_IS = re.compile(rf"\b{one_of('step')}(?: (?:here|now|for you|right now))* $")
_IDEA_OF = re.compile(r"\b(?:worth|suggest|recommend|advise) $")
_NOT_NEAR = re.compile(r"\bnot (?:[a-z]+ ){0,2}$")


def gerund(before: str) -> Mood:
    """The mood of a verb in -ing: "I recommend going", "worth seeing", "rather than calling"."""
    if (is_urged := _NOT_DELAY.search(before)) or _NOT_DOING.search(before):
        return Mood.TOLD if is_urged else Mood.DENIED
    found = _LEADS.search(before)
    if found is None:
        return Mood.REPORTED
    earlier, said = before[: found.start() + 1], found["said"]
    if _NOT_NEAR.search(earlier) or UNLIKELY.search(earlier):
        return Mood.DENIED
    if said in ("consider", "worth", "try"):
        return Mood.REPORTED if re.search(r"\b(?:are|were) $", earlier) else Mood.OFFERED
    if said == "considering" and _IDEA_OF.search(earlier):
        return Mood.OFFERED
    is_told = _STEP_IS.search(earlier) if said == "is" else said not in ("by", "be", "about", "considering")
    return Mood.TOLD if is_told else Mood.REPORTED


_NEVER = re.compile(
    r"\b(?:not|never|no (?:longer|circumstances|case|way|means)|nor|cannot|rarely|seldom|hardly)(?: [a-z]+){0,2} $"
)
_MAYBE = re.compile(rf"\b{one_of('maybe')}(?: [a-z]+)? $")
_I_ADVISE = re.compile(r"\b(?:i|we) would(?: [a-z]+)? $")
_NOT_CASE = re.compile(r"\b(?:did|to|they|doctors|who|i|we) $")


def indicative(before: str, form: str) -> Mood:
    """The mood of "this needs", "you require", "I recommend"."""
    before = _skipped(before)
    if _NEVER.search(before) or UNLIKELY.search(before):
        return Mood.DENIED
    if _MAYBE.search(before):
        return Mood.TOLD if form == "advise" and _I_ADVISE.search(before) else Mood.POSSIBLE
    if form == "advise":
        return Mood.TOLD if _ADVISERS.search(before) else Mood.REPORTED
    return Mood.REPORTED if _NOT_CASE.search(before) else Mood.TOLD


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
    """A part that holds only under a condition; or, `is_presumed`, that only says beside what, before or after what."""

    begin: int
    end: int
    is_presumed: bool = False


def conditional_parts(text: str, places: list[tuple[int, int, str]]) -> list[Scope]:
    """The parts under a condition, or set aside; `places`: begin, end and level of phrases of care."""
    masked = NEUTRAL.sub(lambda said: "_" * len(said[0]), text)
    scopes: list[Scope] = []
    for marker in _HOLDER.finditer(masked):
        at = marker.start()
        if any(scope.begin <= at < scope.end for scope in scopes):
            continue
        part = max((found.end() for found in _BREAK.finditer(masked, 0, at)), default=0)
        later = [place for place in places if place[0] > at]
        opens_anew = bool(later) and masked[:at].endswith((" and ", " or ", " then ", " so "))
        earlier = [] if opens_anew else [place for place in places if part <= place[0] < at and place[2]]
        if earlier and _SOONER.search(masked[max(0, at - 40) : at]):  # "this week, or sooner if it gets worse"
            scopes.append(Scope(at, _part_end(masked, at, [])))
            continue
        _, told_end, level = earlier[-1] if earlier else (at, at, "")
        if earlier and (_NEXT_STEP if level == HOME else _NEXT_ORDER).search(masked[told_end:at]):
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


def _part_end(text: str, at: int, later: list[tuple[int, int, str]]) -> int:
    """Where a condition ends: at the next break; one that opens the sentence reaches over the first phrase of care."""
    begin = later[0][1] if later else at
    if later and (far := _BREAK.search(text, at, later[0][0])) and far[0].strip() == ";":
        begin = at
    breaks = (found.start() for found in _BREAK.finditer(text, begin) if found[0] != " - ")
    return next(breaks, len(text))


def _reached_back(text: str, at: int, earlier: list[tuple[int, int, str]]) -> int:
    """Where a condition behind phrases begins: at the nearest, or those before it of its level or in one breath."""
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
