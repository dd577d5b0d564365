"""What a panel's votes say of a case: spread, gold, strength, and how the votes spread over the levels (AcuityBench, arXiv 2605.11398).

Levels are 1 (A) to 4 (D); boundaries 1.5, 2.5, 3.5 stand for both of their letters. Votes to remove a case are left out.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.study.schema import MappingMethod
from evalcore.triage.data import AmbiguityRule, TriageData

Floats = npt.NDArray[np.float64]
N_LEVELS = 4
BY_DEFAULT = AmbiguityRule()
SHARES = ("h_A", "h_B", "h_C", "h_D")
"""Columns of a case's vote distribution."""


class Kind(StrEnum):
    """What a case can be asked about."""

    CLEAR = "clear"
    """Its gold is one letter."""
    BOUNDARY = "boundary"
    """Its gold lies between two letters, and both are right."""
    AMBIGUOUS = "ambiguous"
    """Physicians do not agree: it has no gold, and no accuracy."""
    UNLABELLED = "unlabelled"
    """Nobody has said which level it needs."""


def described(triage_data: TriageData, rule: AmbiguityRule = BY_DEFAULT) -> TriageData:
    """The same with what follows from the votes, and the gold that counts, in columns of `cases`.

    Adds n_votes (those to remove left out), n_removed, spread (NaN below two votes), strength ("direct", "unanimous", "4-1", ...: how many votes
    stand with the largest group; "" without votes or direct gold), h_A .. h_D (shares of the votes, NaN without votes), gold
    (1..4, boundaries at .5; NaN where there is none) and kind (`Kind`, categorical).

    A panel of two votes or more decides by the rule; else the file's gold stands.
    """
    cases, votes = triage_data.cases, triage_data.votes
    n = len(cases)
    row, vote = votes["row"].to_numpy(), votes["vote"].to_numpy(dtype=float)
    given = ~np.isnan(vote)
    n_votes = np.bincount(row[given], minlength=n)
    shares = distributions(row[given], vote[given], n)
    spread = spreads(row[given], vote[given], n)
    median = medians(row[given], vote[given], n)
    is_panel = n_votes > 1
    file_gold = cases["file_gold"].to_numpy(dtype=float)
    unsure = cases["uncertainty"].to_numpy(dtype=float) > rule.uncertainty
    disagreed = np.where(is_panel, spread > rule.spread, cases["method"].eq(MappingMethod.DISAGREEMENT).to_numpy())
    ambiguous = disagreed | unsure
    gold = np.where(ambiguous, np.nan, np.where(is_panel, median, file_gold))
    between = gold != np.floor(gold)
    kind = np.select([ambiguous, np.isnan(gold), between], [Kind.AMBIGUOUS, Kind.UNLABELLED, Kind.BOUNDARY], Kind.CLEAR)
    strength = np.where(is_panel, _strengths(row[given], vote[given], n), np.where(np.isnan(gold), "", "direct"))
    added: dict[str, Any] = {
        "n_votes": n_votes,
        "n_removed": np.bincount(row[~given], minlength=n),
        "spread": spread,
        "strength": pd.Categorical(strength),
        **{name: shares[:, place] for place, name in enumerate(SHARES)},
        "gold": gold,
        "kind": pd.Categorical(kind, categories=[word.value for word in Kind]),
    }
    return replace(triage_data, cases=cases.assign(**added))


def distributions(row: npt.NDArray[np.int64], vote: Floats, n: int) -> Floats:
    """Shares of the levels among the votes of each case: a letter counts 1, a boundary half to each of its letters.

    Args:
        row: Case of each vote, 0 to n - 1.
        vote: Levels, none missing.

    Returns:
        n x 4; NaN for a case without votes.
    """
    low, high = np.floor(vote).astype(int) - 1, np.ceil(vote).astype(int) - 1
    counted = np.bincount(np.concatenate([row, row]) * N_LEVELS + np.concatenate([low, high]), minlength=n * N_LEVELS)
    counts = counted.reshape(n, N_LEVELS) / 2
    total = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return shares


def spreads(row: npt.NDArray[np.int64], vote: Floats, n: int) -> Floats:
    """Mean distance over all pairs of votes of each case: the smallest squared difference over their letters, 0 to 9; NaN below two votes."""
    order = np.argsort(row, kind="stable")
    row, vote = row[order], vote[order]
    counts = np.bincount(row, minlength=n)
    total = np.zeros(n)
    for step in range(1, int(counts.max(initial=0))):  # pairs that stand `step` apart: panels are small
        one, other = vote[:-step], vote[step:]
        same = row[:-step] == row[step:]
        gap = np.abs(one - other) - (one != np.floor(one)) / 2 - (other != np.floor(other)) / 2
        total += np.bincount(row[:-step][same], np.maximum(gap, 0)[same] ** 2, minlength=n)
    pairs = counts * (counts - 1) / 2
    found: Floats = np.divide(total, pairs, out=np.full(n, np.nan), where=pairs > 0)
    return found


def medians(row: npt.NDArray[np.int64], vote: Floats, n: int) -> Floats:
    """Ordinal median of the votes of each case; NaN without votes.

    Of an even number the midpoint where it is 1.5, 2.5 or 3.5 or both middle votes are one, else the more severe middle vote.
    """
    order = np.lexsort((vote, row))
    vote = vote[order]
    counts = np.bincount(row, minlength=n)
    first = np.cumsum(counts) - counts
    found = np.full(n, np.nan)
    some = counts > 0
    low = vote[(first + (counts - 1) // 2)[some]]
    high = vote[(first + counts // 2)[some]]
    middle = (low + high) / 2
    is_named = (middle * 2 == np.floor(middle * 2)) & ((low == high) | (middle != np.floor(middle)))
    found[some] = np.where(is_named, middle, high)
    return found


def _strengths(row: npt.NDArray[np.int64], vote: Floats, n: int) -> npt.NDArray[np.str_]:
    """How many votes each value got, the most first, as "4-1"; "unanimous" where all are one."""
    values = np.rint(vote * 2).astype(int)
    width = 2 * N_LEVELS + 1
    counts = np.bincount(row * width + values, minlength=n * width).reshape(n, width)
    ordered = -np.sort(-counts, axis=1)
    distinct, which = np.unique(ordered, axis=0, return_inverse=True)
    words = ["unanimous" if (line > 0).sum() == 1 else "-".join(str(k) for k in line if k) for line in distinct]
    return np.array(words, dtype=str)[which.ravel()]
