"""What it adds to an estimate's variance that other physicians would have said something else: other ones of these, or other ones at all."""

from dataclasses import dataclass

import numpy as np

from evalcore.stats.survey import (
    MIN_DISAGREEMENT,
    Fit,
    Floats,
    Numbers,
    Population,
    Sample,
    Truths,
    benchmark_parts,
    deviations,
)

MOST_BETWEEN_READERS = 0.5
"""The variance of two reads that are as far apart as can be: (1 - 0)^2 / 2."""


@dataclass(frozen=True)
class BenchmarkVariance:
    """V_A in its parts.

    Attributes:
        draw: That other items might have been drawn (`survey.benchmark_parts`).
        readers: That another of these physicians might have got an item.
        any_reader: That another physician might have got it, of all physicians.
        most: All of it without (1 - pi): draw + readers is at most that.
        alike: What `between_physicians` would be on average if all physicians were equally strict.
        freedom: Degrees of freedom of draw + readers.
    """

    draw: float
    readers: float
    any_reader: float
    most: float
    alike: float
    freedom: float

    @property
    def variance(self) -> float:
        """V_A."""
        return self.draw + self.readers


def benchmark_variance(population: Population, sample: Sample, fit: Fit) -> BenchmarkVariance:
    """V_A: the variance about what these physicians would say of every item, each counted by how much of the reading is theirs.

        V_A = k/(k-1) sum_j (1 - pi_j) (sum of z in j)^2  +  s^2 sum_c b_c^2 (1/r_c - 1/K),      b = a / root pi

    The second part is that of who got an item: it does not fall to 0 as pi rises to 1. r_c physicians have read item c, of K effective ones. s^2 is
    a label's variance over physicians, from units j that two and more have read: with D_jk = sum over their items c of b_c (y_ck - mean y_c) / root(r_c - 1)
    for each physician k, s^2 = sum_jk D_jk^2 / sum b_c^2. Criteria that one physician reads together so count as alike as they are. Of n such units
    three are taken to be read otherwise, s^2 >= 3 x .5/n (rule of three).

    Both parts together are at most k/(k-1) sum_j (sum of z in j)^2, as if nothing were known of s^2: so it is where nothing was read twice. That is too
    wide by what the judges err, sum a^2 (mean y - m)^2.

    Physicians who are equally strict still differ in `between_physicians`, since each has other items. Of a unit that r of K have read its square counts
    f = K/(K-1) (1/r - 1/K) there, 1 where r is 1 and 0 where all have read it, and what its readers differ by counts whole:

        alike = sum_j f_j k/(k-1) (sum of z in j)^2  +  (1 - f_j) s^2 sum over its items of b^2 / (pi r)

    References:
        Särndal, Swensson and Wretman 1992, ch. 9 (two phases: items are drawn, then a reader for each); Satterthwaite 1946.
    """
    deviation = fit.factors * deviations(population, sample, fit)
    k = sample.n_units
    draw = float(benchmark_parts(sample, deviation).sum())
    squares = np.bincount(sample.units, deviation, minlength=k) ** 2 * (k / (k - 1) if k > 1 else np.nan)
    most = float(squares.sum())
    roots = fit.factors * population.moves[sample.rows] / np.sqrt(sample.probabilities)
    n_own, is_settled = _own_reads(sample)
    per_reader = np.where(is_settled, 0.0, 1 / n_own.clip(min=1))
    effective = effective_readers(reading_loads(sample.probabilities, sample.places, sample.readers))
    whole = float(roots**2 @ per_reader)
    of_these = float(roots**2 @ (per_reader - 1 / max(effective, 1.0)).clip(min=0))
    noise, freedom_of_noise = _between_readers(sample, roots, n_own)
    room, freedom = max(0.0, most - draw), float(k - fit.n_columns)
    readers, any_reader = (min(room, noise * part) if part > ROUNDING * whole else 0.0 for part in (of_these, whole))
    if 0 < readers < room:
        freedom = freedom_of_sum(draw, freedom, readers, freedom_of_noise)
    apart = _counted_between(sample, effective)
    differing = np.bincount(sample.units, roots**2 * per_reader / sample.probabilities, minlength=k)
    alike = float(apart @ squares) + (noise * float((1 - apart) @ differing) if noise < np.inf else 0.0)
    return BenchmarkVariance(draw, readers, any_reader, most, alike, freedom)


def _counted_between(sample: Sample, effective: float) -> Floats:
    """The f of `benchmark_variance`, by unit, in [0, 1]: r is the mean number of reads of its items."""
    n_reads = np.bincount(sample.units[sample.places], minlength=sample.n_units)
    n_items = np.bincount(sample.units, minlength=sample.n_units)
    per_read, others = n_items / n_reads.clip(min=1), max(effective - 1, ROUNDING)
    return np.asarray(((per_read * effective - 1) / others).clip(0, 1))


ROUNDING = 1e-9


def _own_reads(sample: Sample) -> tuple[Numbers, Truths]:
    """By item how many physicians have said something of it, and whether an adjudicated label stands for that."""
    if sample.own is None:
        return np.bincount(sample.places, minlength=len(sample.rows)), np.zeros(len(sample.rows), dtype=bool)
    n_own = np.bincount(sample.places, ~np.isnan(sample.own), minlength=len(sample.rows)).astype(np.int64)
    return n_own, np.bincount(sample.places, sample.own != sample.said, minlength=len(sample.rows)) > 0


def _between_readers(sample: Sample, roots: Floats, n_own: Numbers) -> tuple[float, float]:
    """s^2 of `benchmark_variance`, and its degrees of freedom; infinite where nothing was read twice."""
    own = sample.said if sample.own is None else sample.own
    twice = ~np.isnan(own) & (n_own[sample.places] > 1)
    base = float((roots[n_own > 1] ** 2).sum())
    if base == 0:
        return np.inf, np.inf
    places, readers, said = sample.places[twice], sample.readers[twice], own[twice]
    means = np.bincount(places, said, minlength=len(n_own)) / n_own.clip(min=1)
    apart = roots[places] * (said - means[places]) / np.sqrt(n_own[places] - 1)
    cells, cell = np.unique(sample.units[places] * sample.n_readers + readers, return_inverse=True)
    squares = np.bincount(cell, apart) ** 2
    by_unit = np.bincount(np.unique(cells // sample.n_readers, return_inverse=True)[1], squares) / base
    found, least = float(by_unit.sum()), MIN_DISAGREEMENT * MOST_BETWEEN_READERS / len(by_unit)
    return max(found, least), 2 * found**2 / float((by_unit**2).sum()) if found > least else 2 * MIN_DISAGREEMENT


def between_physicians(population: Population, sample: Sample, fit: Fit) -> tuple[float, float]:
    """How far the physicians are apart in what each adds to the estimate, as a variance of their sum, and its degrees of freedom.

        D_k = sum of a e/pi over what physician k read (of an item that several have read, an equal part), q_k = their share of the reading
        (K-1)/K sum (d_k - mean d)^2,  d_k = D_k / (1 - q_k)      df = 1 / sum q^2 - 1, at least 1

    With equal shares and items of their own that is var(t_k)/K of the totals t_k = K D_k, with K-1 degrees of freedom. The division by 1 - q_k makes good
    that one who reads most of the items draws the fit to himself (the jackknife over physicians, to first order). Items must have been given to
    physicians at random.

    Returns:
        NaN and NaN with fewer than two physicians.
    """
    if sample.n_readers < 2:  # noqa: PLR2004
        return np.nan, np.nan
    apart, loads = by_physician(population, sample, fit)
    return spread(apart), freedom(loads)


def with_strictness(
    base: float, base_freedom: float, between: tuple[float, float], alike: float
) -> tuple[float, float]:
    """A variance for physicians in general, and its degrees of freedom (Satterthwaite): that some are stricter than others is added.

    Args:
        base: The variance if all physicians were equally strict.
        base_freedom: Its degrees of freedom.
        between: `between_physicians`.
        alike: What that is on average if all are equally strict: what it has above that is strictness; chance may leave nothing.

    >>> with_strictness(1.0, 100, (3.0, 2), 1.0)
    (3.0, 2.0)
    >>> with_strictness(1.0, 100, (0.5, 2), 1.0)[0]
    1.0
    """
    apart, degrees = between
    if np.isnan(apart):
        return np.nan, np.nan
    variance = base + max(0.0, apart - alike)
    seen_between = min(apart, variance)
    return variance, freedom_of_sum(seen_between, degrees, variance - seen_between, base_freedom)


def by_physician(population: Population, sample: Sample, fit: Fit) -> tuple[Floats, Floats]:
    """Of each physician d_k and q_k, as `between_physicians` says."""
    each = 1 / (sample.probabilities * np.bincount(sample.places, minlength=len(sample.rows)).clip(min=1))
    residuals = fit.factors[sample.places] * (sample.said - fit.predicted[sample.rows][sample.places])
    weighted = (each * population.moves[sample.rows])[sample.places] * residuals
    loads = reading_loads(sample.probabilities, sample.places, sample.readers)
    return np.bincount(sample.readers, weighted, minlength=sample.n_readers) / (1 - loads).clip(min=1e-6), loads


def spread(apart: Floats) -> float:
    """The variance of a sum of which each physician has a part: (K-1)/K sum (d_k - mean d)^2."""
    return (len(apart) - 1) / len(apart) * float(((apart - apart.mean()) ** 2).sum())


def effective_readers(loads: Floats) -> float:
    """As many readers with equal loads say as much of physicians as these do: 1 / sum q^2, q the shares of the reading (Kish 1965).

    >>> (
    ...     round(effective_readers(np.array([12, 1, 1, 1, 1])), 1),
    ...     effective_readers(np.array([5, 5, 5])),
    ...     effective_readers(np.zeros(0)),
    ... )
    (1.7, 3.0, 0.0)

    Args:
        loads: How much each physician has read, 0 or more, in any unit.

    Returns:
        From 1 to the number of physicians; 0 where nothing was read.
    """
    return float(loads.sum() ** 2 / (loads**2).sum()) if loads.any() else 0.0


def reading_loads(probabilities: Floats, places: Numbers, readers: Numbers) -> Floats:
    """q, by physician: the share of the reading that is theirs. An item counts 1/pi, shared among those who have read it; they add up to 1.

    Args:
        probabilities: By item read, pi.
        places: By read, its item.
        readers: By read, the number of the physician.
    """
    n_reads = np.bincount(places, minlength=len(probabilities)).clip(min=1)
    loads = np.bincount(readers, (1 / (probabilities * n_reads))[places])
    return np.asarray(loads / loads.sum() if loads.any() else loads, dtype=np.float64)


def freedom(loads: Floats) -> float:
    """Degrees of freedom of that: one fewer than the effective readers, K - 1 where all read alike; at least 1."""
    return max(1.0, effective_readers(loads) - 1)


def freedom_of_sum(first: float, first_degrees: float, second: float, second_degrees: float) -> float:
    """Degrees of freedom of the sum of two variances (Welch and Satterthwaite): (V + W)^2 / (V^2/df_V + W^2/df_W).

    >>> freedom_of_sum(1.0, 3, 0.0, 99), freedom_of_sum(1.0, 10, 1.0, 10)
    (3.0, 20.0)
    """
    return (
        (first + second) ** 2 / (first**2 / first_degrees + second**2 / second_degrees)
        if first + second
        else first_degrees
    )
