"""Which of two models is better in a judge's opinion: paired differences on the same examples, and how often one beats the other."""

import math

import msgspec
import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.rubric.scores import SMALL
from evalcore.stats.arrays import Floats, Truths, quotient
from evalcore.stats.intervals import LEVEL, wilson
from evalcore.stats.pair_tests import (
    adjusted,
    benjamini_hochberg,
    holm,
    percentiles,
    resampled_means,
    sign_flip_chances,
)

N_RESAMPLES = N_FLIPS = 10_000
MIN_EXAMPLES = 2
"""With fewer examples there is no spread to be seen, and no interval."""


def differences(
    scores: pd.DataFrame, *, rng: np.random.Generator, n_resamples: int = N_RESAMPLES, n_flips: int = N_FLIPS
) -> pd.DataFrame:
    """How far apart each pair of models is on the examples that both have a score on (`scores.example_scores`).

        difference   mean of d_i = score of model_1 - score of model_2 on example i
        low, high    percentile interval (95 %) of the mean of d over resampled examples
        p            sign flips, two-sided: T = sum d_i, T* = sum s_i d_i with fair signs s; p = (#{|T*| >= |T|} + 1) / (n_flips + 1)
        p_max_t      the same for the largest |T*| / sqrt(sum d_i^2) over all pairs: the chance of any difference as clear as
                     this where no model differs
        p_holm, p_bh p adjusted for the number of pairs: family-wise (Holm 1979), false discovery rate (Benjamini, Hochberg 1995)

    The same resamples and flips serve all pairs; examples are put in order first. Repeats of an example are one score each, so intervals cluster
    by example. The percentile interval is a little narrow with few examples: below 20 `small` says so.
    The scores are one judge's opinion, and so is their difference: see `judge_only_warning`.

    Returns:
        One row a pair, in the order of the columns of `scores`: model_1, model_2, n_examples (with a score of both), n_left_out (with a score
        of one of them only), difference, low, high, p, p_holm, p_bh, p_max_t (all in (0, 1]), small. Undefined is NaN: everything
        without a shared example, low and high with one example or where d is the same on all of them (its spread was not seen).

    Raises:
        ValueError: An example has two rows, or a model two columns.
    """
    if not scores.index.is_unique or not scores.columns.is_unique:
        msg = "scores: expected one row an example and one column a model, got an example or a model twice"
        raise ValueError(msg)
    table = scores.sort_index().dropna(how="all")
    first, second = np.triu_indices(table.shape[1], k=1)
    values = table.to_numpy(dtype=float)
    gaps = values[:, first] - values[:, second]
    shared = ~np.isnan(gaps)
    n_examples = shared.sum(axis=0)
    either = (~np.isnan(values[:, first]) | ~np.isnan(values[:, second])).sum(axis=0)
    low, high = percentiles(resampled_means(gaps, rng=rng, n_resamples=n_resamples), level=LEVEL)
    unseen = (n_examples < MIN_EXAMPLES) | ~_spreads(gaps)
    p, p_max_t = sign_flip_chances(np.where(shared, gaps, 0.0), rng=rng, n_flips=n_flips)
    p, p_max_t = np.where(n_examples > 0, p, np.nan), np.where(n_examples > 0, p_max_t, np.nan)
    return pd.DataFrame(
        {
            "model_1": table.columns.to_numpy()[first],
            "model_2": table.columns.to_numpy()[second],
            "n_examples": n_examples,
            "n_left_out": either - n_examples,
            "difference": quotient(np.where(shared, gaps, 0.0).sum(axis=0), n_examples),
            "low": np.where(unseen, np.nan, low),
            "high": np.where(unseen, np.nan, high),
            "p": p,
            "p_holm": adjusted(p, holm),
            "p_bh": adjusted(p, benjamini_hochberg),
            "p_max_t": p_max_t,
            "small": n_examples < SMALL,
        }
    )


def _spreads(gaps: Floats) -> Truths:
    """In which columns not all values are the same, rounding apart."""
    known = ~np.isnan(gaps)
    highest = np.where(known, gaps, -np.inf).max(axis=0, initial=-np.inf)
    lowest = np.where(known, gaps, np.inf).min(axis=0, initial=np.inf)
    return np.asarray(highest > lowest + 1e-9)


def judge_only_warning(judge: str) -> str:
    """What a comparison by a judge (or a jury) alone does not say, for the screen and for a paper.

    >>> judge_only_warning("Magpie").split(".")[0]
    'These scores are the opinion of the judge Magpie alone'
    """
    return (
        f"These scores are the opinion of the judge {judge} alone. A difference that is clear here is clear in that opinion, on other examples "
        "of this kind; it is not a significant difference by physicians. For that, use the corrected difference."
    )


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


def win_rate(responses_1: pd.DataFrame, responses_2: pd.DataFrame, *, length_controlled: bool = False) -> WinRate:
    """The win rate of one model over another: all pairs of their responses to the same example, ties dropped, then the mean over examples.

    With the examples' shares w_g, g = 1..G, and their mean m, the interval is Wilson's with the effective number of items

        n_eff = m (1-m) / (s^2/G) (t(n-1) / t(G-1))^2,     s^2 = sum (w_g - m)^2 / (G-1)

    kept between G (each example is one item, as with one pair each) and the number of decided pairs: so three wins out of three are
    not taken for certainty. Both frames are by the same judge (`scores.response_scores`); length-controlled, only pairs count whose lengths
    differ by at most 10 % of their mean.

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
    share, low, high = _interval(wins, np.bincount(examples, minlength=len(names)).astype(float))
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


def _interval(wins: Floats, decided: Floats) -> tuple[float, float, float]:
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
        tail = (1 + LEVEL) / 2
        few = float(stdtrit(max(effective, n_examples) - 1, tail) / stdtrit(n_examples - 1, tail)) ** 2
        effective = min(max(effective * few, n_examples), n_decided)
    low, high = wilson(mean * effective, effective)
    return mean, max(min(float(low), mean), 0.0), min(max(float(high), mean), 1.0)
