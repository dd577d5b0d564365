"""The corrected score: judges on all criteria, physicians on those that were drawn, and an interval that holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from evalcore.rubric.enough import MIN_EFFECTIVE, MIN_PHYSICIANS, lacking
from evalcore.rubric.items import Opinions
from evalcore.rubric.surveyed import Surveyed, surveyed
from evalcore.stats import survey
from evalcore.stats.intervals import LEVEL
from evalcore.stats.judge_worth import further_reads
from evalcore.stats.over_physicians import benchmark_variance, between_physicians, with_strictness
from evalcore.study.schema import Claim as Claim  # noqa: PLC0414 - imported from here
from evalcore.study.schema import Physicians as Physicians  # noqa: PLC0414

JUDGE, PHYSICIANS, CORRECTED = "judge_only", "physicians_only", "corrected"
KINDS = (JUDGE, PHYSICIANS, CORRECTED)
ANYTIME = ("corrected_any_low", "corrected_any_high")
WORTH = ("worth", "worth_low", "worth_high")
COLUMNS = [
    "model", "evaluation", "n_examples", "n_responses", "n_items", "n_left_out", "n_unreached", "n_read", "n_reads", "n_readers", "n_effective_readers",
    "n_cannot_assess", "n_units",
    *(kind + suffix for kind in KINDS for suffix in ("", "_low", "_high", "_se")), *ANYTIME, *WORTH, "enough", "n_needed", "needed",
]  # fmt: skip
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


class DefaultClaim(msgspec.Struct, frozen=True):
    """What intervals are to hold for where nobody has chosen.

    Attributes:
        claim: Always new examples.
        physicians: In general where enough have read, else those who have.
        why: A sentence for the screen.
    """

    claim: Claim
    physicians: Physicians
    why: str


def default_claim(known: Sequence[Surveyed]) -> DefaultClaim:
    """The widest claim that the reads can carry: new examples, and physicians in general from 3 effective readers of every model that has enough."""
    return widest_claim([about.counts["n_effective_readers"] for about in known if estimated(about).is_enough])


def widest_claim(n_effective: Sequence[float]) -> DefaultClaim:
    """The same, of the effective readers of each model (or of what else has an interval) of which enough is read.

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
    """What the interval of a corrected score means.

    Args:
        claim: What it is to hold for.
        physicians: Whose judgement it is to hold for.
        value: What it is the interval of.
        item: What is read.
        of: What further ones are drawn of.

    >>> claim_sentence(Claim.BENCHMARK, Physicians.THESE)  # doctest: +ELLIPSIS
    'The interval says where the score would lie if these physicians read every criterion of this benchmark, each counted by ... fixed beforehand.'
    """
    said = _CLAIMS[claim, physicians].format(item=item, of=of)
    return f"The interval says where the {value} would lie {said}. It assumes that the number of reads was fixed beforehand."


def corrected_scores(
    opinions: Opinions,
    *,
    judges: Sequence[str] | None = None,
    claim: Claim = Claim.BENCHMARK,
    physicians: Physicians = Physicians.THESE,
    settled: bool = False,
    weights: pd.Series | None = None,
    known: Sequence[Surveyed] | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Each model's score by judges only, by physicians only, and by judges corrected by physicians, with intervals.

    The formulas are in `survey` and `over_physicians`. The variance of an estimate with p fitted numbers from k units drawn (items, or whole responses),
    N examples and K physicians, and the quantile of its interval:

        this benchmark, these physicians       V_A                            t(k - p)
        new examples, these physicians         V_B                            t(min(k - p, N - 1))
        this benchmark, physicians             V_G + V_S                      t of both, k - p and K - 1 (Satterthwaite)
        new examples, physicians               V_B + V_S                      t of both, N - 1 and K - 1

    V_A and V_G (with any physicians in the place of these) are `over_physicians.benchmark_variance`. V_S, at least 0, is that some physicians are stricter
    than others: what `over_physicians.between_physicians` has above what it would have if all were equally strict. K counts effective readers.

    An interval for new examples is at least as wide as that for this benchmark, and one for physicians in general as that for these physicians: chance
    may let few physicians look more alike than their reads can be. Where nearly all votes are as predicted, each is widened by
    what V_A lacks to that of three votes that are not. Measured coverage of the 95 % interval: `tests/benchmarks/coverage.py`.

    Judge-only is the judge's opinion, and no physician is in it. On this benchmark every item has its label, so there is nothing to sample:
    the interval has width 0 and says nothing of the judge's errors. For new examples it is over examples, t(N - 1). With several judges it
    is that of their jury: the mean of their labels.

    Responses count that `is_scored` and on which every chosen judge labelled every item. Of physicians' reads those count that were made
    blind of a drawn item; reads that could not assess are counted and not used, as if the item had not been drawn: the probabilities are scaled
    so that the read items stand for all (sum of 1/pi = number of items). That also holds while a drawing is only partly read.

    Args:
        opinions: The study, or a part of it.
        judges: Whose labels are used; None: all. Without any there is neither a judge-only nor a corrected score.
        claim: What the interval is to hold for.
        physicians: Whose judgement it is to hold for.
        settled: An adjudicated label takes the place of the readers' votes.
        weights: By example_id, 0 or more, e.g. to weight to a benchmark's themes; examples without one are left out. None: all alike.
        known: What `surveyed` gave for the same opinions, judges and weights, where it is at hand.
        level: Of confidence, in (0, 1).

    Returns:
        One row a model and evaluation: model, evaluation, n_examples, n_responses, n_items, n_left_out (responses without a score, a weight,
        or a label of every chosen judge on every item), n_unreached (of those that count: which no drawing could have taken, so that
        the reads do not stand for them; 0 where nothing is read), n_read (items), n_reads, n_readers, n_effective_readers (1 / sum q^2, q
        their shares of the reading: `over_physicians`), n_cannot_assess (reads), n_units (k); for each
        KIND of judge_only, physicians_only and corrected: KIND (raw: below 0 where undesirable things outweigh, at most about 1), KIND_low,
        KIND_high, KIND_se (of this interval: of the narrower claim, where that is wider), NaN where there is none; corrected_any_low and
        corrected_any_high (the interval that holds at all looks at once: `anytime_factor`); worth with worth_low and worth_high (further items
        that physicians would have had to read to do without the judge, by `further_reads`); enough (whether physicians-only and corrected are
        said at all), n_needed (further items to be read until they can be, 0 where enough) and needed (the same in words, empty where enough).

        Enough is 30 items read, from 10 examples, 2 of either sign that occurs, k - p at least 10, and for physicians in general 3 effective readers.

    Raises:
        ValueError: A judge is not in the study.
    """
    rows = []
    for about in surveyed(opinions, judges=judges, settled=settled, weights=weights) if known is None else known:
        found = estimated(about, claim=claim, physicians=physicians)
        row: dict[str, Any] = {"model": about.model, "evaluation": about.evaluation, **about.counts}
        for kind, estimate in found.of_kind.items():
            row |= estimate.columns(kind, level)
        wider = (row["corrected_high"] - row["corrected"]) * anytime_factor(about.sample.n_units, level=level)
        row |= dict(zip(ANYTIME, (row["corrected"] - wider, row["corrected"] + wider), strict=True))
        worth = (np.nan, np.nan, np.nan)
        if found.is_enough and about.judges:
            if (WORTH, level) not in about.kept:
                about.kept[WORTH, level] = further_reads(
                    about.population, about.sample, alone=about.alone, helped=about.helped, level=level
                )
            worth = about.kept[WORTH, level]
        row |= dict(zip(WORTH, worth, strict=True))
        rows.append(row | {"enough": found.is_enough, "n_needed": found.n_needed, "needed": found.needed})
    return pd.DataFrame(rows, columns=COLUMNS)


def anytime_factor(n_units: int, *, tuned_to: int = TUNED_TO, level: float = LEVEL) -> float:
    """By how much an interval is wider that holds at all looks at once, however often one looks and whenever one stops.

        sqrt( 2 (n rho^2 + 1) / (n rho^2) log( sqrt(n rho^2 + 1) / alpha ) ) / z(1 - alpha/2),     rho^2 = (-2 log alpha + log(1 - 2 log alpha)) / n*

    An asymptotic confidence sequence: it holds as far as the estimate is nearly normal from the first look on (here: from when enough is read). As
    the ordinary interval it allows for an error that is estimated with few degrees of freedom by t in place of z. rho is fixed beforehand, by n*.
    What does not shrink with reading (the examples, the physicians) is in every look alike; the formula is then wider than it need be.

    Args:
        n_units: Units read so far (n); with none it is infinite.
        tuned_to: Units read at which it is to be narrowest (n*), fixed before reading.
        level: Of confidence, in (0, 1).

    References:
        Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Annals of Statistics 52 (theorem 2.2 and its tuning).

    >>> round(anytime_factor(300), 2), round(anytime_factor(30), 2), round(anytime_factor(1200), 2)
    (1.55, 1.97, 1.6)
    """
    if not n_units:
        return np.inf
    alpha = 1 - level
    seen = n_units * (-2 * np.log(alpha) + np.log(1 - 2 * np.log(alpha))) / tuned_to
    return float(np.sqrt(2 * (seen + 1) / seen * np.log(np.sqrt(seen + 1) / alpha)) / ndtri(1 - alpha / 2))


class Estimate(msgspec.Struct, frozen=True):
    """One kind of score of one model.

    Attributes:
        fit: How it was made.
        variance: Of the estimate; NaN where it cannot be told.
        unseen: Part of it for votes not seen (`survey.unseen_variance`).
        freedom: Degrees of freedom of its interval.
        psi: Influence of each example (`survey.influences`).
        narrower: Variance and degrees of freedom of each narrower claim: the interval is at least as wide as by any of them.
    """

    fit: survey.Fit
    variance: float
    unseen: float
    freedom: float
    psi: survey.Floats
    narrower: tuple[tuple[float, float], ...] = ()

    def columns(self, kind: str, level: float) -> dict[str, float]:
        """The columns of `corrected_scores`."""
        half, error, _ = widest([(self.variance, self.freedom), *self.narrower], level)
        value = self.fit.value
        return {kind: value, f"{kind}_low": value - half, f"{kind}_high": value + half, f"{kind}_se": error}


def widest(widths: Sequence[tuple[float, float]], level: float) -> tuple[float, float, float]:
    """Half the width of the widest interval, with the standard error and the degrees of freedom that it is of; NaN where one is not known.

    Args:
        widths: Variance and degrees of freedom of the claim, and of the narrower ones that it must not fall below.
        level: Of confidence.
    """
    found = [
        (float(stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance)), float(np.sqrt(variance)), freedom)
        for variance, freedom in widths
    ]
    return max(found) if not np.isnan(found).any() else (np.nan, np.nan, np.nan)


class Estimates(msgspec.Struct, frozen=True):
    """The scores of one model.

    Attributes:
        of_kind: One of each of `KINDS`; without value where there is no judge, or too little was read.
        n_needed: Further items to be read, at least, until physicians-only and corrected scores are said; 0 where they are.
        needed: The same in words; empty where nothing lacks.
    """

    of_kind: dict[str, Estimate]
    n_needed: int
    needed: str

    @property
    def is_enough(self) -> bool:
        """Whether physicians-only and corrected scores are said."""
        return self.n_needed == 0


def estimated(
    about: Surveyed, *, claim: Claim = Claim.NEW_EXAMPLES, physicians: Physicians = Physicians.THESE
) -> Estimates:
    """The scores of one model, as `corrected_scores` says; made once for each claim."""
    if (claim, physicians) not in about.kept:
        about.kept[claim, physicians] = _estimated(about, claim, physicians)
    made: Estimates = about.kept[claim, physicians]
    return made


def _estimated(about: Surveyed, claim: Claim, physicians: Physicians) -> Estimates:
    population, sample = about.population, about.sample
    found = {JUDGE: _of_judge(population, claim), PHYSICIANS: nothing(population), CORRECTED: nothing(population)}
    fits = {}
    if len(sample.rows):
        fits = {PHYSICIANS: about.alone, CORRECTED: about.helped}
    n_columns = max((fit.n_columns for fit in fits.values()), default=1)
    n_needed, needed = lacking(about, n_columns=n_columns, in_general=physicians is Physicians.IN_GENERAL)
    for kind, fit in fits.items():
        if not n_needed and (kind == PHYSICIANS or about.judges):
            found[kind] = of_reads(population, sample, fit, claim, physicians)
    return Estimates(found, n_needed, needed)


def _of_judge(population: survey.Population, claim: Claim) -> Estimate:
    if not population.n_examples:
        return nothing(population)
    fit = survey.by_judges(population)
    psi = survey.influences(population, None, fit)
    if claim is Claim.BENCHMARK:
        return Estimate(fit, 0.0 if not np.isnan(fit.value) else np.nan, 0.0, np.inf, psi)
    n = len(psi)
    return Estimate(fit, float(psi.var(ddof=1)) / n if n > 1 else np.nan, 0.0, n - 1, psi)


def of_reads(
    population: survey.Population, sample: survey.Sample, fit: survey.Fit, claim: Claim, physicians: Physicians
) -> Estimate:
    """An estimate from what was read, with its variance by the table of `corrected_scores`."""
    these = benchmark_variance(population, sample, fit)
    unseen = max(0.0, survey.unseen_variance(population, sample) - these.variance)
    psi = survey.influences(population, sample, fit)
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


def nothing(population: survey.Population) -> Estimate:
    """An estimate without a value."""
    none = np.empty(0)
    fit = survey.Fit(np.nan, none, none.reshape(0, 0), none.reshape(0, 0), none)
    return Estimate(fit, np.nan, np.nan, 0, np.full(population.n_examples, np.nan))
