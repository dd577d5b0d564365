"""Tests of pairs: resampled examples and sign flips that all pairs share, as matrices; p adjusted for their number; a difference against a margin."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtr, stdtrit

from evalcore.stats.arrays import Floats, quotient
from evalcore.stats.intervals import LEVEL, ROUNDING
from evalcore.stats.wording import chance_words, decimal

BLOCK = 500  # resamples at a time: with 5,000 examples a block is 10 MB

Weights = npt.NDArray[np.float32]


def resample_weights(n: int, n_resamples: int, *, rng: np.random.Generator, block: int = BLOCK) -> Iterator[Weights]:
    """How often each of n examples is drawn in each resample of size n: blocks of at most `block` resamples, a row each, that adds up to n."""
    for start in range(0, n_resamples if n else 0, block):
        weights = np.empty((min(block, n_resamples - start), n), dtype=np.float32)
        for row in weights:  # one at a time stays in the processor's cache: twice as quick as the block in one call
            row[:] = np.bincount(rng.integers(0, n, size=n), minlength=n)
        yield weights


def sign_flips(n: int, n_flips: int, *, rng: np.random.Generator, block: int = BLOCK) -> Iterator[Weights]:
    """A fair sign (+1 or -1) for each of n examples, anew in each flip: blocks of at most `block` flips, a row each."""
    for start in range(0, n_flips if n else 0, block):
        rows = min(block, n_flips - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes((rows * n + 7) // 8), dtype=np.uint8), count=rows * n)
        yield bits.reshape(rows, n).astype(np.float32) * 2 - 1


def resampled_means(values: npt.ArrayLike, *, rng: np.random.Generator, n_resamples: int) -> Floats:
    """The mean of each column (a row an example, NaN: not in it) in each resample of the rows, a row each; all columns share the resamples."""
    table = np.asarray(values, dtype=float)
    entered = ~np.isnan(table)
    sizes = entered.astype(float)
    sums = np.where(entered, table, 0.0)
    whole = sizes.sum(axis=0)
    centre = np.nan_to_num(quotient(sums.sum(axis=0), whole))
    # Single precision is enough for what is left after the mean is taken out.
    spread = (sums - sizes * centre).astype(np.float32)
    # Complete tables need one product instead of hundreds.
    column, _ = pd.factorize(np.array([each.tobytes() for each in sizes.T], dtype=object))
    distinct = sizes.astype(np.float32)[:, np.unique(column, return_index=True)[1]]
    complete = bool(entered.all())
    means = np.full((n_resamples, table.shape[1]), np.nan)
    start = 0
    for weights in resample_weights(len(table), n_resamples, rng=rng):
        part = means[start : start + len(weights)]
        if complete:
            np.divide(weights @ spread, len(table), out=part)
        else:
            drawn = (weights @ distinct)[:, column]
            np.divide(weights @ spread, drawn, out=part, where=drawn > 0)
        start += len(weights)
    means += centre
    return means


def pair_percentiles(
    scores: Floats, *, rng: np.random.Generator, n_resamples: int, level: float
) -> tuple[Floats, Floats]:
    """The percentile interval of the mean difference of every two columns (a row an example, NaN: not in it), all on the same resamples."""
    if scores.shape[1] < 2 or np.isnan(scores).any():  # noqa: PLR2004 - no pair
        return percentiles(resampled_means(differences(scores), rng=rng, n_resamples=n_resamples), level=level)
    means = resampled_means(scores, rng=rng, n_resamples=n_resamples)  # the mean of a difference is that of the means
    of = [percentiles(means[:, [n]] - means[:, n + 1 :], level=level) for n in range(means.shape[1] - 1)]
    low, high = (np.concatenate(bounds) for bounds in zip(*of, strict=True))
    return low, high


def differences(columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The first less the second of every two columns, by place."""
    first, second = np.triu_indices(columns.shape[1], k=1)
    return np.asarray(columns[:, first] - columns[:, second])


def percentiles(means: Floats, *, level: float) -> tuple[Floats, Floats]:
    """Lower and upper bound of the percentile interval of each column; resamples without a mean (NaN) are left out, NaN where all are."""
    tail = (1 - level) / 2
    missing = np.isnan(means)
    if not missing.any() and means.size:
        low, high = np.quantile(means, [tail, 1 - tail], axis=0)
        return low, high
    low, high = np.full((2, means.shape[1]), np.nan)
    known = ~missing.all(axis=0)
    if known.any():
        low[known], high[known] = np.nanquantile(means[:, known], [tail, 1 - tail], axis=0)
    return low, high


def sign_flip_chances(scores: Floats, *, rng: np.random.Generator, n_flips: int) -> tuple[Floats, Floats]:
    """Two-sided p in (0, 1] of the mean difference of every two columns being nought, on the examples (rows) that both have: alone, and against the largest.

    With T = sum d_i and T* = sum s_i d_i for fair signs s, p = (#{|T*| >= |T|} + 1) / (n_flips + 1). Under flips sum d_i^2 stays as it is, so dividing by its
    root makes pairs comparable for the largest, and changes no p.
    """
    gaps = np.nan_to_num(differences(scores))
    n_examples, n_pairs = gaps.shape
    root = np.sqrt((gaps**2).sum(axis=0))
    per_root = np.divide(1, root, out=np.zeros(n_pairs), where=root > 0)
    # Sums that are equal on paper differ by rounding in single precision; equal counts as reached.
    reached = ((np.abs(gaps.sum(axis=0)) - 1e-6 * np.abs(gaps).sum(axis=0)) * per_root).astype(np.float32)
    is_whole = n_pairs > 0 and not np.isnan(scores).any()  # then the sum of a difference is the difference of sums
    columns = (scores - scores.mean(axis=1, keepdims=True) if is_whole else gaps * per_root).astype(np.float32)
    alone, over_all = np.ones(n_pairs), np.ones(n_pairs)
    for signs in sign_flips(n_examples, n_flips, rng=rng):
        sums = signs @ columns
        flipped = np.abs(differences(sums) * per_root if is_whole else sums)
        alone += (flipped >= reached).sum(axis=0)
        over_all += (flipped.max(axis=1, keepdims=True, initial=0) >= reached).sum(axis=0)
    return alone / (n_flips + 1), over_all / (n_flips + 1)


def holm(p: Floats) -> Floats:
    """Holm's adjusted p (1979); statsmodels' `multipletests` gives the same, and stops the whole process for a collection of garbage."""
    order = np.argsort(p, kind="stable")
    adjusted_p = np.empty(len(p))
    adjusted_p[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return adjusted_p


def benjamini_hochberg(p: Floats) -> Floats:
    """The adjusted p of Benjamini and Hochberg (1995), as `scipy.stats.false_discovery_control` gives it, whose module takes a second to load."""
    order = np.argsort(-p, kind="stable")
    adjusted_p = np.empty(len(p))
    adjusted_p[order] = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1)).clip(max=1)
    return adjusted_p


def adjusted(p: Floats, adjust: Callable[[Floats], Floats]) -> Floats:
    """The p of all pairs that have one, adjusted for their number; NaN stays."""
    known = ~np.isnan(p)
    table = np.full(len(p), np.nan)
    if known.any():
        table[known] = adjust(p[known])
    return table


class Verdict(msgspec.Struct, frozen=True):
    """What a difference says against a margin. Bounds are in the units of the difference: first model less second."""

    margin: float  # how much worse still counts as not worse; above 0
    is_higher_better: bool
    level: float  # of the two-sided interval whose worse end is the bound (0.95: that is one-sided 0.975)
    difference: float
    bound: float = math.nan  # how bad the first model may be
    low: float = math.nan  # the interval of equivalence, of 2 level - 1 (0.95: 90 %, as two one-sided tests ask)
    high: float = math.nan
    p_non_inferior: float = math.nan  # one-sided, of "worse by the margin or more"
    p_equivalent: float = math.nan  # the greater of two one-sided p, of "apart by the margin or more"
    non_inferior: bool = False  # whether it is shown; False does not mean that the opposite is
    equivalent: bool = False  # likewise
    inferior: bool = False  # whether even the better end of the two-sided interval is worse than the margin allows

    @property
    def is_known(self) -> bool:
        """Whether there was a difference with an error to hold against the margin."""
        return not math.isnan(self.bound)


def against_margin(difference: float, se: float, df: float, margin: float, *, higher_is_better: bool = True) -> Verdict:
    """A difference of two models held against a margin: non-inferiority and equivalence.

    With gain g = difference where more is better, else -difference, standard error s and T of t(df), which may be infinite:

        non-inferior    P(T >= (g + margin)/s) < (1 - level)/2       the interval of `level` ends above -margin
        equivalent      that, and P(T <= (g - margin)/s), both < 1 - LEVEL      the interval of 2 level - 1 lies within ±margin

    Nothing is shown without a difference, error or degrees of freedom. With an error of 0 p is 0 or 1, and a difference of exactly the margin shows nothing.
    A margin that is no number above 0 is a ValueError (Schuirmann 1987, two one-sided tests; Piaggio et al. 2012, CONSORT).
    >>> held = against_margin(-0.01, 0.015, 40, 0.05)
    >>> held.non_inferior, round(held.bound, 4), round(held.p_non_inferior, 4)
    (True, -0.0403, 0.0055)
    """
    if not 0 < margin < math.inf:
        msg = f"margin: expected a number above 0, got {margin}"
        raise ValueError(msg)
    sign = 1.0 if higher_is_better else -1.0
    gain = sign * difference
    if math.isnan(gain) or math.isnan(se) or not df > 0:
        return Verdict(margin, higher_is_better, LEVEL, difference)
    p_worse = _above(gain + margin, se, df)
    p_apart = max(p_worse, _above(margin - gain, se, df))
    half, narrow = (float(stdtrit(df, tail)) * se for tail in ((1 + LEVEL) / 2, LEVEL))
    return Verdict(
        margin=margin,
        is_higher_better=higher_is_better,
        level=LEVEL,
        difference=difference,
        bound=sign * (gain - half),
        low=difference - narrow,
        high=difference + narrow,
        p_non_inferior=p_worse,
        p_equivalent=p_apart,
        non_inferior=p_worse < (1 - LEVEL) / 2,
        equivalent=p_apart < 1 - LEVEL,
        inferior=_above(-gain - margin, se, df) < (1 - LEVEL) / 2,
    )


def _above(distance: float, se: float, df: float) -> float:
    """P(T >= distance / se)."""
    if se < ROUNDING:  # what rounding leaves of a distance is none
        return 0.0 if distance > ROUNDING else 1.0
    return float(stdtr(df, -distance / se))


def margin_words(held: Verdict, first: str, second: str, value: str, *, as_percent: bool = False) -> str:
    """What is shown against the margin, of `value`, e.g. "corrected score" or "under-triage rate"; rates are said in percentage points."""

    def size(value: float) -> str:
        return f"{decimal(100 * value, 1).removesuffix('.0')} percentage points" if as_percent else f"{value:.3f}"

    def signed(value: float) -> str:
        return decimal(100 * value, 1, signed=True) if as_percent else decimal(value, 3, signed=True)

    margin = size(held.margin)
    if not held.is_known:
        return f"Too little is known to hold {first} against {second} by the margin of {margin}."
    sign = 1 if held.is_higher_better else -1
    worst, how = sign * held.bound, f"one-sided {100 * (1 + held.level) / 2:.4g} % bound"
    lower, higher = ("lower", "higher") if held.is_higher_better else ("higher", "lower")
    if held.inferior:
        least = size(sign * (held.bound - 2 * held.difference))
        return f"{first} is inferior to {second}: its {value} is {lower} by at least {least} ({how}), more than the margin of {margin}."
    apart = f"may be {lower} by up to {size(-worst)}" if worst < 0 else f"is {higher} by at least {size(worst)}"
    bound = f"its {value} {apart} ({how})"
    p = f"p {chance_words(held.p_non_inferior)}"
    if held.non_inferior:
        within = f", less than the margin of {margin}" if worst < 0 else f"; the margin is {margin}"
        verdict = f"{first} is non-inferior to {second}: {bound}{within} ({p})."
    else:
        needed = f"{p}; below {(1 - held.level) / 2:.3g} would show it"
        verdict = (
            f"It is not shown that {first} is non-inferior to {second}: {bound}, and the margin is {margin} ({needed})."
        )
    if not held.equivalent:
        return verdict
    also = "also " if held.non_inferior else ""
    interval = f"[{signed(held.low)}, {signed(held.high)}] lies within ±{margin}"
    share = f"{100 * (2 * held.level - 1):.4g} %"
    return f"{verdict} It is {also}equivalent: the {share} interval of the difference {interval}."
