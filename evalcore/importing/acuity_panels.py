"""What votes say of cases by the rule, beside what a file says of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from evalcore.importing.formats.acuity_cells import Vote
from evalcore.stats.arrays import Floats
from evalcore.study.schema import Acuity, MappingMethod
from evalcore.triage.data import LEVELS, AmbiguityRule, medians, spreads

LEVEL_AT = {value: label for label, value in LEVELS.items() if label is not Acuity.REMOVE}
"""Which level a number stands for."""


class Said(NamedTuple):
    """What a panel says of a case.

    Attributes:
        n_votes: Those to remove left out.
        spread: NaN below two votes.
        gold: The median vote; None where the panel disagrees, or has fewer than two votes.
        is_ambiguous: It has two votes or more, and they disagree by the rule.
    """

    n_votes: int
    spread: float
    gold: Acuity | None
    is_ambiguous: bool

    @property
    def decides(self) -> bool:
        """Whether the votes count instead of what the file says."""
        return self.n_votes > 1

    @property
    def outcome(self) -> str:
        """In words."""
        return "that the panel disagrees" if self.is_ambiguous else str(self.gold)


class Stated(NamedTuple):
    """What a file says of how a case ended; gold and method None where it says nothing."""

    gold: Acuity | None
    method: MappingMethod | None
    is_removed: bool

    @property
    def outcome(self) -> str | None:
        """In words; None where the file says nothing that votes could contradict."""
        if self.method is MappingMethod.DISAGREEMENT:
            return "that the panel disagrees"
        if self.is_removed or self.method is MappingMethod.REMOVED:
            return "that the case is removed"
        return None if self.gold is None else str(self.gold)


def said_by(panels: Sequence[Sequence[Vote]], rule: AmbiguityRule) -> list[Said]:
    """What each panel says by the rule."""
    row, level = columns(panels)
    given = ~np.isnan(level)
    row, level, n = row[given], level[given], len(panels)
    counts = np.bincount(row, minlength=n)
    apart, middle = spreads(row, level, n), medians(row, level, n)
    said = []
    for n_votes, spread, median in zip(counts, apart, middle, strict=True):
        disagrees = bool(n_votes > 1 and spread > rule.spread)
        gold = LEVEL_AT[float(median)] if n_votes > 1 and not disagrees else None
        said.append(Said(int(n_votes), float(spread), gold, disagrees))
    return said


def columns(panels: Sequence[Sequence[Vote]]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """The votes of all panels, one after the other: whose they are, and their levels (NaN: Remove)."""
    row = np.repeat(np.arange(len(panels)), [len(votes) for votes in panels])
    level = np.array([LEVELS[vote.vote] for votes in panels for vote in votes], dtype=float)
    return row, level


def method_of(said: Said, votes: Sequence[Vote], gold: Acuity | None) -> MappingMethod:
    """How a case came to its gold, where no file says it."""
    if said.decides:
        return MappingMethod.DISAGREEMENT if said.is_ambiguous else MappingMethod.MEDIAN
    if gold is not None:
        return MappingMethod.DIRECT
    return MappingMethod.REMOVED if any(vote.vote is Acuity.REMOVE for vote in votes) else MappingMethod.NONE


def difference(case_id: str, stated: Stated, said: Said, votes: Sequence[Vote]) -> str | None:
    """What a file says of a case and its votes contradict by the rule, in a sentence; None where they agree."""
    if not said.decides or stated.outcome in (None, said.outcome):
        return None
    given = ", ".join(vote.vote for vote in votes)
    return f"{case_id}: the file says {stated.outcome}; its votes {given} say {said.outcome} by the rule, and count"


def frame_of(panels: Sequence[Sequence[Vote]]) -> pd.DataFrame:
    """The votes of all panels as `TriageData.votes` has them."""
    row, level = columns(panels)
    together = [vote for votes in panels for vote in votes]
    return pd.DataFrame(
        {
            "row": row,
            "place": np.array([vote.place for vote in together], dtype=np.int64),
            "rater": pd.Series([vote.rater for vote in together], dtype=object),
            "vote": level,
        }
    )
