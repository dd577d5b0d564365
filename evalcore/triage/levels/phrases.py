"""The words the rules go by: who gives care, and what is done to get it. American and British."""

import re
from enum import StrEnum

from evalcore.triage.levels.word_lists import one_of, words_of


class Care(StrEnum):
    """Who gives the care that a text speaks of."""

    EMERGENCY = "emergency"
    """Emergency department, ambulance, emergency number, hospital."""
    URGENT = "urgent"
    """Urgent care, walk-in clinic, out-of-hours doctor, NHS 111."""
    DOCTOR = "doctor"
    """A doctor, nurse, dentist or clinic of any kind; an appointment."""
    MEDICAL = "medical"
    """Somebody who is not named: "medical attention", "get it checked"."""


TARGET = re.compile(rf"(?<![\w&-]){one_of('target')}(?![\w-])")
"""Who gives care: groups by the names of `Care`."""
TEST = re.compile(rf"\b{one_of('test')}\b")
GENERIC_DOCTOR = re.compile(
    r"^(?:any|some|doctor|physician|gp|general pract|pcp|primary|family|health|medical|clinician|provider|appointment|nurse)"
)
"""Doctors of whom not to need one is to need none; not to need a specialist says nothing of that."""

_ACTIONS = dict(line.split(", ") for line in words_of("actions"))
GERUNDS = {gerund: base for base, gerund in _ACTIONS.items()} | {"traveling": "travel", "dialling": "dial"}
_BE_SEEN = rf"(?:be|get|have|being|getting|having|been|got|was|were){one_of('whom')}?{one_of('how_checked')}? {one_of('first_check')}"
_FORMS = {
    "seen": _BE_SEEN,
    "taken": r"be (?:taken|brought|driven|transported|sent)",
    "need": r"(?:needs?|requires?|warrants?|deserves?|merits?|calls for|justif(?:y|ies)|belongs? (?:in|at))",
    "advise": r"(?:recommend|suggest|advise)(?= (?!that|you))",
    "base": f"(?:{'|'.join(sorted(_ACTIONS, key=lambda base: (-len(base), base)))})",
    "gerund": f"(?:{'|'.join(sorted(GERUNDS))})",
    "past": one_of("past"),
}
VERB = re.compile(
    rf"(?<![\w'-])(?:{'|'.join(f'(?P<{form}>{pattern})' for form, pattern in _FORMS.items())})(?: (?:to|with|from|at|into))?(?![\w'-])"
)
"""What is done to get care: groups by form."""
GOING = frozenset(words_of("going"))
"""Verbs that lead somewhere: only with "to", "in", "at", ..."""
TOWARD = re.compile(r"(?:^| )(?:to|into|in|at|for|straight|directly|by|over|back|up with)(?: |$)")
BLOCKED = re.compile(rf"(?:^| ){one_of('blocked')}(?: |$)")
"""Words that part a verb from what comes behind them."""
NEED_APPOINTMENT = frozenset(("make", "keep", "set", "plan", "aim", "push", "start"))
"""Verbs that are about care only where they are about an appointment."""
GOT = re.compile(
    r"\b(?:care|help|attention|appointment|check|evaluation|advice|visit|tests?|x-ray|scan|mri|ultrasound|count)"
)
"""What one gets without going to it."""
APPOINTED = re.compile(r"\b(?:appointment|visit|check-?up|consult(?:ation)?|your way|call|slot)\b")
LOOKS = re.compile(
    r" (?:to )?(?:take a look|look|check|examine|evaluate|see|review|assess|listen|listen to|test|swab|weigh in)\b"
)
"""What a doctor does whom one has, or gets, to do it."""
