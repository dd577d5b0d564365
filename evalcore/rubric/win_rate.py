"""How often one model's response to an example scores above another's, in one judge's opinion."""

import math

import msgspec
import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.stats.intervals import LEVEL, wilson
from evalcore.stats.resampling import Floats

LENGTH_TOLERANCE = 0.1
"""Lengths that differ by at most this share of their mean count as alike (arXiv 2505.08775)."""

TIE = 1e-9
"""Scores closer than this are equal: the difference is rounding (a jury's labels are means)."""


class WinRate(msgspec.Struct, frozen=True):
    """How often the first model's responses beat the second's.

    Attributes:
        share: Mean over examples of the share of decided pairs that the first wins, in [0, 1]; NaN without a decided pair.
        low, high: Bounds of the interval, clustered by example; NaN without a decided pair.
        n_examples: With at least one decided pair.
        n_pairs: Pairs with a score of both that count, n_ties among them.
        n_ties: Pairs with equal scores, which decide nothing.
        n_wins: Pairs that the first wins.
        n_unscored: Pairs left out because one of them has no score.
        n_unlike: Pairs left out because their lengths differ, or one is not known; 0 where length is not controlled.
    """

    share: float
    low: float
    high: float
    n_examples: int
    n_pairs: int
    n_ties: int
    n_wins: int
    n_unscored: int
    n_unlike: int


def win_rate(
    responses_1: pd.DataFrame, responses_2: pd.DataFrame, *, length_controlled: bool = False, level: float = LEVEL
) -> WinRate:
    """The win rate of one model over another: all pairs of their responses to the same example, ties dropped, then the mean over examples.

    With the examples' shares w_g, g = 1..G, and their mean m, the interval is Wilson's with the effective number of items

        n_eff = m (1-m) / (s^2/G) (t(n-1) / t(G-1))^2,     s^2 = sum (w_g - m)^2 / (G-1)

    kept between G (each example is one item, as with one pair each) and the number of decided pairs: so three wins out of three are
    not taken for certainty.

    Args:
        responses_1: Of one model, as `comparison.response_scores` gives them.
        responses_2: Of the other, by the same judge.
        length_controlled: Only pairs whose lengths differ by at most 10 % of their mean.
        level: Of confidence, in (0, 1).

    Source: arXiv 2505.08775 for the pairs and the tolerance; Wilson 1927, Korn and Graubard 1998 for the interval.
    """
    columns = ["evaluation", "example_id", "score", "n_chars"]
    pairs = responses_1[columns].astype({"evaluation": object}).merge(
        responses_2[columns].astype({"evaluation": object}), on=columns[:2], suffixes=("_1", "_2")
    )  # fmt: skip
    scored = pairs["score_1"].notna() & pairs["score_2"].notna()
    alike = _alike(pairs) if length_controlled else pd.Series(data=True, index=pairs.index)
    counted = pairs.loc[scored & alike]
    gap = counted["score_1"].to_numpy(dtype=float) - counted["score_2"].to_numpy(dtype=float)
    decided = np.abs(gap) > TIE
    examples, names = pd.factorize(counted["example_id"].to_numpy()[decided])
    wins = np.bincount(examples, gap[decided] > 0, len(names)).astype(float)
    share, low, high = _interval(wins, np.bincount(examples, minlength=len(names)).astype(float), level=level)
    return WinRate(
        share,
        low,
        high,
        n_examples=len(names),
        n_pairs=len(counted),
        n_ties=int((~decided).sum()),
        n_wins=int(wins.sum()),
        n_unscored=int((~scored).sum()),
        n_unlike=int((scored & ~alike).sum()),
    )


def _alike(pairs: pd.DataFrame) -> pd.Series:
    """Whether the two lengths differ by at most a tenth of their mean; a length that is not known is like none."""
    one, other = pairs["n_chars_1"].astype(float), pairs["n_chars_2"].astype(float)
    return (one - other).abs().le(LENGTH_TOLERANCE * (one + other) / 2)


def _interval(wins: Floats, decided: Floats, *, level: float) -> tuple[float, float, float]:
    """Mean over examples of wins / decided, with its interval."""
    n_examples, n_decided = len(wins), float(decided.sum())
    if not n_examples:
        return math.nan, math.nan, math.nan
    shares = wins / decided
    mean = float(shares.mean())
    effective = float(n_examples)
    if n_examples > 1:
        variance = float(shares.var(ddof=1)) / n_examples
        if 0 < mean < 1:
            effective = min(mean * (1 - mean) / variance, n_decided) if variance > 0 else n_decided
        tail = (1 + level) / 2
        few = float(stdtrit(max(effective, n_examples) - 1, tail) / stdtrit(n_examples - 1, tail)) ** 2
        effective = min(max(effective * few, n_examples), n_decided)
    low, high = wilson(mean * effective, effective, level=level)
    return mean, max(min(float(low), mean), 0.0), min(max(float(high), mean), 1.0)
