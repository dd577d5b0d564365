"""How many further reads a judge was worth: what it would have cost to do without it."""

from dataclasses import replace

import numpy as np
from scipy.special import stdtrit

from evalcore.stats.over_physicians import benchmark_variance
from evalcore.stats.survey import MIN_DISAGREEMENT, Fit, Floats, Population, Sample, deviations, unseen_variance


def further_reads(
    population: Population, sample: Sample, *, alone: Fit, helped: Fit, level: float = 0.95
) -> tuple[float, float, float]:
    """So many further items physicians would have had to read for an estimate as sharp without the judge as with it.

        R     = V_A of physicians alone / V_A corrected                                  1: the judge was of no use
        worth = (D + E) / (V_A/R + D/M) - n       n items read of M;  about n (R - 1) where few of them are read
        V_A   = D (1/n - 1/M) + E/n               of physicians alone: of the draw, and of the readers (`over_physicians.benchmark_variance`)

    Of the draw V_A falls with reading as 1/n - 1/M does, so that no judge is worth more than the M - n items that nobody has read. It says how
    sharp the benchmark's own score is, by these physicians; new examples and other physicians add the same to both variances, which no judge
    can make good. Below 0: the estimate was sharper without the judge.

    The interval is that of log R, t over the examples read: each item moves R by its own part of either variance and by what it moves
    the coefficients (linearised). Where a judge is so good that its variance is that of votes not seen (`unseen_variance`), they count
    as that many. In drawn studies it covers 85 % to 95 %, and a judge of noise is worth more than 0 by it in 1 % of them.

    Args:
        population: The items.
        sample: What was read of them.
        alone: Estimate by physicians only.
        helped: The corrected one.
        level: Of confidence, in (0, 1).

    Returns:
        Worth and the bounds of its interval, each in [-n, M - n]; 0 where everything was read, NaN where a variance is.
    """
    without, by_item_without, added_without, of_readers = _sharpness(population, sample, alone)
    with_judge, by_item_with, added_with, _ = _sharpness(population, sample, helped)
    if np.isnan(without + with_judge):
        return np.nan, np.nan, np.nan
    groups, example = np.unique(population.example[sample.rows], return_inverse=True)
    n, whole, n_groups = len(sample.rows), len(population.moves), len(groups)
    if without == 0 or with_judge == 0 or n == whole:
        return 0.0, 0.0, 0.0
    by_example = np.bincount(example, by_item_without - by_item_with)
    variance = n_groups / (n_groups - 1) * float((by_example**2).sum()) if n_groups > 1 else np.nan
    variance += added_without + added_with
    half = float(stdtrit(max(n_groups - 1, 1), (1 + level) / 2)) * np.sqrt(variance)
    middle = np.log(without / with_judge)
    by_draw, by_reader = (without - of_readers) / (1 / n - 1 / whole), of_readers * n
    low, worth, high = (
        min((by_draw + by_reader) / (without * np.exp(-ratio) + by_draw / whole), whole) - n
        for ratio in (middle - half, middle, middle + half)
    )
    return float(worth), float(low), float(high)


def _sharpness(population: Population, sample: Sample, fit: Fit) -> tuple[float, Floats, float, float]:
    """V_A; by item read, by how much it moves log V_A; what unseen votes add to the variance of that; and the readers' part of V_A."""
    fit = replace(
        fit, factors=np.ones(len(fit.factors))
    )  # alike for both, so that a scale common to all a/pi makes no judge worth something
    deviation = deviations(population, sample, fit)
    found = benchmark_variance(population, sample, fit)
    least = unseen_variance(population, sample)
    variance = max(found.variance, least)
    if not variance > 0:
        return variance, np.zeros(len(deviation)), 0.0, 0.0
    missed = np.ones(len(deviation)) if found.variance >= found.most else 1 - sample.probabilities
    k, probabilities = sample.n_units, sample.probabilities
    totals = np.bincount(sample.units, deviation, minlength=k)
    open_side = (1 - fit.leverage).clip(min=1e-6)
    slope = -2 * (
        (missed * totals[sample.units] * population.moves[sample.rows] / (open_side * probabilities)) @ fit.columns
    )
    residuals = (sample.votes - fit.predicted[sample.rows]) / open_side
    own = missed * totals[sample.units] * deviation * (k / (k - 1))
    moved = own + residuals * (fit.pull @ slope)
    return variance, moved / variance, 0.0 if found.variance >= least else 1 / MIN_DISAGREEMENT, found.readers
