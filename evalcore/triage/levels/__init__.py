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
from dataclasses import dataclass

from evalcore.study.languages import language_of
from evalcore.study.schema import Acuity
from evalcore.triage.levels.phrases import words_of
from evalcore.triage.levels.reading import MAX_QUOTES, decided, read

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
