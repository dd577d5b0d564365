"""What an interval is to hold for: the claims in words, how much must be read for them, and the variance of an estimate by each."""

from collections.abc import Mapping, Sequence
from math import ceil

import msgspec
import numpy as np
from scipy.special import ndtri, stdtrit

from evalcore.stats import estimator
from evalcore.stats.arrays import Floats
from evalcore.stats.estimator import Fit, Population, Sample, benchmark_variance, between_physicians, with_strictness
from evalcore.stats.intervals import LEVEL
from evalcore.stats.wording import counted
from evalcore.study.schema import Claim, Physicians

MIN_READ = 30
"""Items read: with 33 a 95 % interval still covers 94 % and more."""
MIN_EXAMPLES_READ = 10
MIN_FREEDOM = 10
"""Units drawn, over the numbers that are fitted."""
MIN_PHYSICIANS = 3
"""To say something of physicians in general: of two the spread is a guess."""
MIN_EFFECTIVE = 2.75
"""Effective readers that count as three: three who share the reading by chance never share it quite alike, and 3 : 2 : 2 still counts."""
TUNED_TO = 300
"""Units read, items or whole responses, at which the interval for looks at any time is narrowest beside the ordinary one."""

_BY_LOAD = "each counted by how much of the reading so far is theirs"
_OF_SAMPLE = "physicians in general, of whom these are a sample"
_CLAIMS: Mapping[tuple[Claim, Physicians], str] = {
    (Claim.BENCHMARK, Physicians.THESE): f"if these physicians read every {{item}} of this benchmark, {_BY_LOAD}",
    (Claim.BENCHMARK, Physicians.IN_GENERAL): f"if {_OF_SAMPLE}, read every {{item}} of this benchmark",
    (
        Claim.NEW_EXAMPLES,
        Physicians.THESE,
    ): f"on ever more {{of}} of the same kind, read by these physicians, {_BY_LOAD}",
    (Claim.NEW_EXAMPLES, Physicians.IN_GENERAL): f"on ever more {{of}} of the same kind, read by {_OF_SAMPLE}",
}


def further_readers(n_readers: int, effective: float) -> tuple[int, str]:
    """How many physicians more are needed, at least, to say something of physicians in general, and by whom in words; 0 and nothing where enough have read.

    Where one has read nearly everything, the others say little: effective readers count (`estimator.effective_readers`).

    >>> further_readers(2, 2.0), further_readers(3, 2.9)
    ((1, 'by 1 more physician'), (0, ''))
    >>> further_readers(5, 1.68)[1]
    'by those who have read less: so far 5 physicians say as much as 1.7 who read alike'
    """
    lacking = max(0, MIN_PHYSICIANS - n_readers, ceil(MIN_EFFECTIVE - effective))
    if not lacking:
        return 0, ""
    if n_readers < MIN_PHYSICIANS:
        return lacking, f"by {counted(MIN_PHYSICIANS - n_readers, 'more physician')}"
    return (
        lacking,
        f"by those who have read less: so far {n_readers} physicians say as much as {effective:.1f} who read alike",
    )


class DefaultClaim(msgspec.Struct, frozen=True):
    """What intervals are to hold for where nobody has chosen, and why, a sentence: new examples, and physicians in general where enough have read."""

    claim: Claim
    physicians: Physicians
    why: str


def widest_claim(n_effective: Sequence[float]) -> DefaultClaim:
    """The widest claim that the reads can carry, by the effective readers of each model (or of what else has an interval) of which enough is read.

    >>> widest_claim([4.2, 1.68]).why
    'Fewer than 3 effective readers (1.7): the interval holds for these physicians only.'
    >>> widest_claim([4.2, 2.9]).physicians.value
    'in_general'
    """
    if not n_effective:
        return DefaultClaim(Claim.NEW_EXAMPLES, Physicians.THESE, "Too little has been read for a corrected score.")
    fewest = min(n_effective)
    if fewest < MIN_EFFECTIVE:
        why = f"Fewer than {MIN_PHYSICIANS} effective readers ({fewest:.1f}): the interval holds for these physicians only."
        return DefaultClaim(Claim.NEW_EXAMPLES, Physicians.THESE, why)
    why = f"{fewest:.1f} effective readers: the interval holds for physicians in general."
    return DefaultClaim(Claim.NEW_EXAMPLES, Physicians.IN_GENERAL, why)


JUDGE_ONLY_CAUTION = "Judge-only is the judge's opinion: its interval leaves out how often the judge is wrong."


def claim_sentence(
    claim: Claim, physicians: Physicians, *, value: str = "score", item: str = "criterion", of: str = "examples"
) -> str:
    """What the interval of a corrected score (or of another `value`) means; `item` is what is read, `of` what further ones are drawn of.

    >>> claim_sentence(Claim.BENCHMARK, Physicians.THESE)  # doctest: +ELLIPSIS
    'The interval says where the score would lie if these physicians read every criterion of this benchmark, each counted by ... fixed beforehand.'
    """
    condition = _CLAIMS[claim, physicians].format(item=item, of=of)
    return f"The interval says where the {value} would lie {condition}. It assumes that the number of reads was fixed beforehand."


def anytime_factor(n_units: int) -> float:
    """By how much an interval is wider that holds at all looks at once, however often one looks and whenever one stops.

        sqrt( 2 (n rho^2 + 1) / (n rho^2) log( sqrt(n rho^2 + 1) / alpha ) ) / z(1 - alpha/2),     rho^2 = (-2 log alpha + log(1 - 2 log alpha)) / n*

    An asymptotic confidence sequence: it holds as far as the estimate is nearly normal from the first look on (here: from when enough is read). As
    the ordinary interval it allows for an error that is estimated with few degrees of freedom by t in place of z. rho is fixed beforehand, by n*.
    What does not shrink with reading (the examples, the physicians) is in every look alike; the formula is then wider than it need be.

    n is the number of units read so far (with none the factor is infinite), n* that at which it is to be narrowest, fixed before reading (`TUNED_TO`).

    References:
        Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Annals of Statistics 52 (theorem 2.2 and its tuning).

    >>> round(anytime_factor(300), 2), round(anytime_factor(30), 2), round(anytime_factor(1200), 2)
    (1.55, 1.97, 1.6)
    """
    if not n_units:
        return np.inf
    alpha = 1 - LEVEL
    seen = n_units * (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / TUNED_TO
    return float(np.sqrt(2 * (seen + 1) / seen * np.log(np.sqrt(seen + 1) / alpha)) / ndtri(1 - alpha / 2))


class Estimate(msgspec.Struct, frozen=True):
    """One kind of score of one model.

    Attributes:
        fit: How it was made.
        variance: Of the estimate; NaN where it cannot be told.
        unseen: Part of it for votes not seen (`estimator.unseen_variance`).
        freedom: Degrees of freedom of its interval.
        psi: Influence of each example (`estimator.influences`).
        narrower: Variance and degrees of freedom of each narrower claim: the interval is at least as wide as by any of them.
    """

    fit: Fit
    variance: float
    unseen: float
    freedom: float
    psi: Floats
    narrower: tuple[tuple[float, float], ...] = ()

    def columns(self, kind: str, level: float) -> dict[str, float]:
        """The columns of `corrected_scores`."""
        half, error, _ = widest([(self.variance, self.freedom), *self.narrower], level)
        value = self.fit.value
        return {kind: value, f"{kind}_low": value - half, f"{kind}_high": value + half, f"{kind}_se": error}


def widest(widths: Sequence[tuple[float, float]], level: float) -> tuple[float, float, float]:
    """Half the width of the widest interval, with the standard error and the degrees of freedom that it is of; NaN where one is not known.

    `widths` has the variance and degrees of freedom of the claim, and of the narrower ones that it must not fall below.
    """
    halves = [
        (float(stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance)), float(np.sqrt(variance)), freedom)
        for variance, freedom in widths
    ]
    return max(halves) if not np.isnan(halves).any() else (np.nan, np.nan, np.nan)


def of_reads(population: Population, sample: Sample, fit: Fit, claim: Claim, physicians: Physicians) -> Estimate:
    """An estimate from what was read, with its variance by the table of `corrected_scores`."""
    these = benchmark_variance(population, sample, fit)
    unseen = max(0.0, estimator.unseen_variance(population, sample) - these.variance)
    psi = estimator.influences(population, sample, fit)
    n = len(psi)
    new_examples = float(psi.var(ddof=1)) / n
    benchmark = these.variance + unseen, these.freedom
    examples = new_examples + unseen, min(these.freedom, n - 1)
    (variance, freedom), narrower = benchmark, list[tuple[float, float]]()
    if claim is Claim.NEW_EXAMPLES:
        (variance, freedom), narrower = examples, [benchmark]
    if physicians is Physicians.IN_GENERAL:
        between = between_physicians(population, sample, fit)
        of_benchmark = with_strictness(these.draw + these.any_reader + unseen, these.freedom, between, these.alike)
        (variance, freedom), narrower = of_benchmark, [benchmark]
        if claim is Claim.NEW_EXAMPLES:
            narrower = [benchmark, examples, of_benchmark]
            variance, freedom = with_strictness(*examples, between, these.alike)
    return Estimate(fit, variance, unseen, freedom, psi, tuple(narrower))


def no_estimate(population: Population) -> Estimate:
    """An estimate without a value."""
    none = np.empty(0)
    fit = Fit(np.nan, none, none.reshape(0, 0), none.reshape(0, 0), none)
    return Estimate(fit, np.nan, np.nan, 0, np.full(population.n_examples, np.nan))
