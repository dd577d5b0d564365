"""What a jury says of one item, from what its members say: the label that most give, how many of them give it, and why there may be none."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec
import numpy as np

from evalcore.stats.majority import MIN_VOTERS, most
from evalcore.stats.wording import listed
from evalcore.study.schema import Acuity, Label
from evalcore.triage.data import LETTERS
from evalcore.triage.level_jury import most_frequent

MIN_VOTES = 2
"""A single vote has no share."""
_VOTES: dict[str, tuple[Acuity, ...]] = {
    **{letter: (letter,) for letter in LETTERS},
    Acuity.A_B: (Acuity.A, Acuity.B),
    Acuity.B_C: (Acuity.B, Acuity.C),
    Acuity.C_D: (Acuity.C, Acuity.D),
}
"""For which letters a level is a vote: one between two is half a vote for each."""
_WORDS = {Label.MET: "met", Label.NOT_MET: "not met"}


class Why(StrEnum):
    """What became of an item."""

    DECIDED = "decided"
    SPLIT = "split"
    """As many members say met as say not met."""
    TOO_FEW = "too_few"
    """Fewer members than wanted gave a label; one that could not assess, or found no level, has none."""


class Said(msgspec.Struct, frozen=True, gc=False):
    """What a jury says of one item.

    Attributes:
        label, confidence, explanation: None unless it is decided; the confidence is the share of the votes that are for the label, in (0, 1],
            and None with two votes alone, whose majority is always sure.
    """

    why: Why
    label: Label | Acuity | None = None
    confidence: float | None = None
    explanation: str | None = None


def on_criterion(labels: Mapping[str, str], *, least: int) -> Said:
    """What most members say of a criterion; an even split is undecided.

    Args:
        labels: By member its label, as far as it gave one.
        least: So many members have to say met or not met, 2 or more.

    >>> found = on_criterion({"Magpie": "met", "Wren": "met", "Rook": "not_met"}, least=3)
    >>> found.label.value, round(found.confidence, 2), found.explanation
    ('met', 0.67, '2 of 3 say met: Magpie and Wren; not met: Rook.')
    """
    votes = {member: Label(label) for member, label in labels.items() if label in _WORDS}
    if len(votes) < max(least, MIN_VOTES):
        return Said(Why.TOO_FEW)
    label, share = most(sum(label is Label.MET for label in votes.values()), len(votes))
    if np.isnan(label):
        return Said(Why.SPLIT)
    chosen, other = (Label.MET, Label.NOT_MET) if label else (Label.NOT_MET, Label.MET)
    by_label = [(_WORDS[label], [member for member in votes if votes[member] is label]) for label in (chosen, other)]
    abstained = [member for member in labels if member not in votes]
    explanation = _words(str(round(float(share) * len(votes))), len(votes), by_label, abstained, "could not assess it")
    return Said(Why.DECIDED, chosen, _confidence(float(share), len(votes)), explanation)


def on_level(labels: Mapping[str, str], *, least: int) -> Said:
    """What most members say of a response's level: the most frequent letter, of equals the more severe. A level between two is half a vote for each.

    Args:
        labels: By member its label, as far as it gave one.
        least: So many members have to give a level, 2 or more.

    >>> on_level({"Magpie": "D", "Wren": "C/D", "Rook": "cannot_assess"}, least=2).explanation
    '1.5 of 2 say D: Magpie; C/D: Wren. Rook found no level.'
    >>> on_level({"Magpie": "A", "Wren": "D"}, least=2).explanation
    '1 of 2 say D: Wren; A: Magpie. Of equals the more severe counts.'
    """
    votes = {member: label for member, label in labels.items() if label in _VOTES}
    if len(votes) < max(least, MIN_VOTES):
        return Said(Why.TOO_FEW)
    halves = np.array(
        [[sum(2 // len(_VOTES[label]) for label in votes.values() if letter in _VOTES[label]) for letter in LETTERS]]
    )
    level, n_halves = (int(found[0]) for found in most_frequent(halves))
    chosen = list(LETTERS)[level - 1]
    order = sorted(set(votes.values()), key=lambda label: (label != chosen, chosen not in _VOTES[label], label))
    by_label = [(label, [member for member in votes if votes[member] == label]) for label in order]
    if chosen not in order:
        by_label.insert(0, (chosen, []))
    abstained = [member for member in labels if member not in votes]
    explanation = _words(f"{n_halves / 2:g}", len(votes), by_label, abstained, "found no level")
    if (halves == n_halves).sum() > 1:
        explanation += " Of equals the more severe counts."
    return Said(Why.DECIDED, chosen, _confidence(n_halves / 2 / len(votes), len(votes)), explanation)


def _confidence(share: float, n_votes: int) -> float | None:
    return share if n_votes >= MIN_VOTERS else None


def _words(n_for: str, n: int, by_label: list[tuple[str, list[str]]], abstained: list[str], how: str) -> str:
    """Who says what, the label that counts first."""
    parts = [
        f"{label}: {listed(members)}" if members else label
        for label, members in by_label
        if members or label == by_label[0][0]
    ]
    end = f" {listed(abstained)} {how}." if abstained else ""
    return f"{n_for} of {n} say {'; '.join(parts)}.{end}"
