"""States of runs and of their questions, and the raters that repeats of a judge are."""

from enum import StrEnum

from evalcore.study.schema import REPEAT

STREAK = 25
"""Failures in a row that stop a run, where nobody has said otherwise."""
ANSWERS_SAVED = "answers saved"
"""The act of a run in the audit trail that brings verdicts or responses."""


class RunKind(StrEnum):
    """What a run asks for."""

    RESPOND = "respond"
    """A model's answers to the examples of a data set."""
    TRIAGE = "triage"
    """A model's answers to cases of triage, in one format or both."""
    JUDGE = "judge"
    """A judge's verdict on each criterion of each response, or on the level of care that a response to a case recommends."""


class RunState(StrEnum):
    """How far a run is. Whether anybody works on it now is told by its workers, not by this."""

    OPEN = "open"
    """Questions are left to ask."""
    STOPPED = "stopped"
    """Somebody, or a rule (too many failures in a row, the cost reached), has stopped it; it can be started again."""
    DONE = "done"
    """Every question is answered or has failed."""


class Outcome(StrEnum):
    """What came of one call."""

    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    """A reply came, and it cannot be read as what was asked for."""
    REFUSED = "refused"
    """The model declined to answer."""
    REJECTED = "rejected"
    """The server says that the question itself is wrong (400 and its like): asking again is of no use."""
    UNREACHABLE = "unreachable"
    """No whole reply after all tries: transport errors, 408, 409, 429, 5xx."""


def repeat_version(prompt_version: str, repeat: int) -> str:
    """The prompt_version of the rater that gives a judge's repeat: each repeat is a rater of its own, the first is the judge itself.

    >>> repeat_version("judge@1a2b3c4d", 0), repeat_version("judge@1a2b3c4d", 1)
    ('judge@1a2b3c4d', 'judge@1a2b3c4d#2')
    """
    return prompt_version if repeat == 0 else f"{prompt_version}{REPEAT}{repeat + 1}"


def version_and_repeat(version: str) -> tuple[str, int]:
    """The judge's own prompt_version, and which repeat a rater is: `repeat_version` backwards.

    >>> version_and_repeat("judge@1a2b3c4d"), version_and_repeat("judge@1a2b3c4d#2")
    (('judge@1a2b3c4d', 0), ('judge@1a2b3c4d', 1))
    """
    own, sign, number = version.rpartition(REPEAT)
    return (own, int(number) - 1) if sign and number.isdecimal() else (version, 0)
