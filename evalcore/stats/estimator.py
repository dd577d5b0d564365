"""The corrected estimator: judges on all items, raters on those that were drawn; what other raters would have said; what the judges were worth."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from evalcore.stats.arrays import Floats, Numbers, Truths
from evalcore.stats.intervals import LEVEL

MIN_ON_A_SIDE = 10  # read items on either side, for a column of the regression
MIN_OF_A_SIGN = 2  # a single item says nothing of the spread of its sign
MIN_DISAGREEMENT = 3.0  # votes that, at least, are taken not to be as predicted (rule of three)
MOST_BETWEEN_READERS = 0.5  # the variance of two reads that are as far apart as can be: (1 - 0)^2 / 2
ROUNDING = 1e-9
Value = float | Floats
OPEN = 1e-6  # the least that is left of an item, or of a physician, outside of its own part in the fit


@dataclass(frozen=True)
class Population:
    """All items of one model in one evaluation."""

    item_weights: Floats  # a, by item: signed; the positive ones add up to 1
    undesirable: Truths  # by item, whether its points are negative
    labels: Floats  # what each judge says, an item a row and a judge a column, in [0, 1]
    example: Numbers  # by item, the number of its example, 0 to N-1

    @cached_property
    def n_examples(self) -> int:
        """The number of examples, N."""
        return int(self.example.max()) + 1 if len(self.example) else 0

    @cached_property
    def shares(self) -> Floats:
        """By example, its part of the mean: 1/N where all examples have one response and one weight; adds up to 1."""
        sums = np.bincount(self.example, self.item_weights.clip(min=0), minlength=self.n_examples)
        return np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True)
class Sample:
    """What was read of a population."""

    rows: Numbers  # the items read, each once: rows of the population
    votes: Floats  # y of these, in [0, 1]
    probabilities: Floats  # pi of these, in (0, 1]
    units: Numbers  # of these the number of what was drawn together, 0 to k-1
    places: Numbers  # by read, its item: a place in `rows`. Items that two have read have two reads
    readers: Numbers  # by read, the number of the physician, 0 to K-1
    said: Floats  # by read, the vote; where an adjudicated label takes its place, that label
    own: Floats | None = None  # by read, what that physician said, NaN for "cannot assess"; None: what `said` has

    @cached_property
    def n_units(self) -> int:
        """The number of units drawn, k."""
        return int(self.units.max()) + 1 if len(self.units) else 0

    @cached_property
    def n_readers(self) -> int:
        """The number of physicians, K."""
        return int(self.readers.max()) + 1 if len(self.readers) else 0

    @cached_property
    def loads(self) -> Floats:
        """Of each physician the share of the reading that is theirs (`reading_loads`)."""
        return reading_loads(self.probabilities, self.places, self.readers)

    @cached_property
    def votes_by_read(self) -> Floats:
        """By read, what that physician said; NaN for "cannot assess"."""
        return self.said if self.own is None else self.own

    @cached_property
    def n_own(self) -> Numbers:
        """By item read, how many said what they think of it."""
        said = ~np.isnan(self.votes_by_read)
        return np.bincount(self.places, said, minlength=len(self.rows)).astype(np.int64)

    @cached_property
    def per_reader(self) -> Floats:
        """By item read, 1 / r_c of `benchmark_variance`; 0 where an adjudicated label takes the place of the reads."""
        is_settled = np.bincount(self.places, self.votes_by_read != self.said, minlength=len(self.rows)) > 0
        return np.where(is_settled, 0.0, 1 / self.n_own.clip(min=1))

    @cached_property
    def twice(self) -> "Twice":
        """The reads of items that several have read."""
        own, n_own = self.votes_by_read, self.n_own
        twice = ~np.isnan(own) & (n_own[self.places] > 1)
        places, readers, votes = self.places[twice], self.readers[twice], own[twice]
        means = np.bincount(places, votes, minlength=len(n_own)) / n_own.clip(min=1)
        cells, cell = np.unique(self.units[places] * self.n_readers + readers, return_inverse=True)
        unit = np.unique(cells // self.n_readers, return_inverse=True)[1]
        return Twice(places, votes - means[places], np.sqrt(n_own[places] - 1), cell, unit)


class Twice(NamedTuple):
    """Reads of items that several have read, as `benchmark_variance` sums them."""

    places: Numbers
    apart: Floats  # from the mean vote of the item
    roots: Floats  # root(r_c - 1)
    cell: Numbers  # by read the number of its unit and physician
    unit: Numbers  # by cell the number of its unit


@dataclass(frozen=True)
class Fit:
    """An estimate of the value S."""

    value: float
    predicted: Floats  # m, by item of the population
    columns: Floats  # x, an item read a row
    coefficient_weights: Floats  # (sum_s w x x')^-1 w x, by item read and column: how far the coefficients follow it
    factors: Floats  # g, by item read: its residual counts g times in the variance

    @cached_property
    def leverage(self) -> Floats:
        """h, by item read, in [0, 1]: how far its prediction follows its own vote."""
        return np.asarray((self.columns * self.coefficient_weights).sum(axis=1))

    @property
    def n_columns(self) -> int:
        """p, the numbers that were fitted."""
        return round(float(self.leverage.sum()))


def by_judges(population: Population) -> Fit:
    """What the judges say, S = sum a f, f the mean of their labels, with all their errors."""
    labels = population.labels
    mean = labels.mean(axis=1, dtype=np.float64) if labels.shape[1] else np.full(len(labels), np.nan)
    nothing = np.empty((0, 0))
    return Fit(float((population.item_weights * mean).sum()), mean, nothing, nothing, np.empty(0))


def by_physicians(population: Population, sample: Sample) -> Fit:
    """What physicians say, without any judge: the mean vote by sign of points (Hajek).

        S = sum_h A_h r_h,  A_h = sum over all items of the sign a,  r_h = (sum a y/pi) / (sum a/pi) over the read ones of the sign

    That is a regression on the sign with weights |a|/pi; its residuals count g = A_h / (sum a/pi) times.
    The value is NaN where a sign has items and fewer than two of them are read (or not the only one).
    """
    sides = np.column_stack([~population.undesirable, population.undesirable])
    weights = population.item_weights[sample.rows] / sample.probabilities
    whole, seen = population.item_weights @ sides, weights @ sides[sample.rows]
    signs = population.undesirable[sample.rows], population.undesirable
    n_read, n_of = (np.bincount(of, minlength=2) for of in signs)
    few = n_read < n_of.clip(max=MIN_OF_A_SIGN)
    ratios = np.divide(whole, seen, out=np.zeros(2), where=seen != 0)
    ratios[(whole != 0) & (few | (seen == 0))] = np.nan
    factors = ratios[population.undesirable[sample.rows].astype(np.int64)]
    fit = _fitted(population, sample, sides.astype(np.float64), np.abs(weights), factors)
    return replace(fit, value=np.nan) if np.isnan(ratios).any() else fit


def corrected(population: Population, sample: Sample) -> Fit:
    """The judges' labels, corrected by physicians' votes on the items read (GREG, the same as PPI++).

        S = sum_all a m + sum_s a (y - m)/pi,   m = x'b,   b = (sum_s x x'/pi)^-1 sum_s x y/pi
        x = (1, each judge's label, sign, sign x label),   leverage h = (1/pi) x' (sum_s x x'/pi)^-1 x

    A column counts only with 10 read items on either side (of the sign by a label: in each of the four cells): one judge's column
    of nothing but "met" falls away. Columns that say the same, as two judges of one mind, share their coefficient.
    """
    sign = population.undesirable.astype(np.float64)
    below = population.undesirable[sample.rows]
    columns = [np.ones(len(sign))]
    if has_sign := _both_sides(below):
        columns.append(sign)
    for label in population.labels.T:
        met = label[sample.rows] > 0.5  # noqa: PLR2004 - a jury's label may lie between
        if _both_sides(met):
            columns.append(label)
            if has_sign and _both_sides(met[below]) and _both_sides(met[~below]):
                columns.append(sign * label)
    weights = 1 / sample.probabilities
    return _fitted(population, sample, np.column_stack(columns), weights, np.ones(len(weights)))


def _both_sides(truths: Truths) -> bool:
    return MIN_ON_A_SIDE <= int(truths.sum()) <= len(truths) - MIN_ON_A_SIDE


def _fitted(population: Population, sample: Sample, columns: Floats, weights: Floats, factors: Floats) -> Fit:
    x = columns[sample.rows]
    weights = weights / weights.sum() if weights.any() else weights
    coefficient_weights = (x * weights[:, None]) @ np.linalg.pinv((x.T * weights) @ x, rcond=1e-9, hermitian=True)
    predicted = columns @ (coefficient_weights.T @ sample.votes)
    return Fit(total(population, sample, predicted), predicted, x, coefficient_weights, factors)


def total(population: Population, sample: Sample, predicted: Floats) -> float:
    """The sum over all items a m, and over the items read a (y - m)/pi: right on average over draws, whatever m is."""
    left = (sample.votes - predicted[sample.rows]) / sample.probabilities
    return float((population.item_weights * predicted).sum() + (population.item_weights[sample.rows] * left).sum())


def deviations(population: Population, sample: Sample, fit: Fit) -> Floats:
    """By item read, z = a e / ((1 - h) pi): what it adds to the estimate, as if it had had no part in the fit."""
    residuals = sample.votes - fit.predicted[sample.rows]
    return population.item_weights[sample.rows] * residuals / ((1 - fit.leverage).clip(min=OPEN) * sample.probabilities)


def benchmark_parts(sample: Sample, deviation: Floats) -> Floats:
    """The part of V_A that comes of the draw, by unit; its sum is 0 where everything was read, and NaN with fewer than two units.

    V_A = k/(k-1) sum over the units j of (1 - pi_j) (sum of z in j)^2        (Poisson draw; a unit is an item, or a whole response)
    """
    k = sample.n_units
    missed = np.zeros(k)
    missed[sample.units] = 1 - sample.probabilities
    return missed * np.bincount(sample.units, deviation, minlength=k) ** 2 * (k / (k - 1) if k > 1 else np.nan)


def unseen_variance(population: Population, sample: Sample) -> float:
    """The least that V_A is taken to be: three votes that are not as predicted (rule of three), 3 x mean of (1 - pi) (a/pi)^2; 0 where all was read."""
    if not len(sample.rows):
        return np.nan
    single = (1 - sample.probabilities) * (population.item_weights[sample.rows] / sample.probabilities) ** 2
    return MIN_DISAGREEMENT * float(single.mean())


def influences(population: Population, sample: Sample | None, fit: Fit) -> Floats:
    """psi, by example: its mean over the examples is the estimate, and its variance over them, divided by N, is V_B.

        psi_i = S + N (sum of a m in i + sum of z in i - S share_i), moved so that the mean is S

    With one response and one weight an example, that is the example's own corrected score. Weights and repeats make the score a
    ratio, which the last term allows for (linearisation).
    """
    n = population.n_examples
    adds = population.item_weights * fit.predicted
    totals = np.asarray(np.bincount(population.example, adds, minlength=n), dtype=np.float64)
    if sample is not None:
        left = fit.factors * deviations(population, sample, fit)
        totals = totals + np.bincount(population.example[sample.rows], left, minlength=n)
    return np.asarray(n * (totals - fit.value * population.shares) - totals.sum() + 2 * fit.value)


@dataclass(frozen=True)
class BenchmarkVariance:
    """V_A in its parts, of one estimate, or of several as arrays."""

    draw: Value  # that other items might have been drawn (`benchmark_parts`)
    readers: Value  # that another of these physicians might have got an item
    any_reader: Value  # that another physician might have got it, of all physicians
    most: Value  # all of it without (1 - pi): draw + readers is at most that
    alike: Value  # what `between_physicians` would be on average if all physicians were equally strict
    freedom: Value  # degrees of freedom of draw + readers

    @property
    def variance(self) -> Any:
        """V_A."""
        return self.draw + self.readers


def benchmark_variance(population: Population, sample: Sample, fit: Fit) -> BenchmarkVariance:
    """V_A: the variance about what these physicians would say of every item, each counted by how much of the reading is theirs.

        V_A = k/(k-1) sum_j (1 - pi_j) (sum of z in j)^2  +  s^2 sum_c b_c^2 (1/r_c - 1/K),      b = a / root pi

    The second part is that of who got an item: it does not fall to 0 as pi rises to 1. r_c physicians have read item c, of K effective ones. s^2 is
    a label's variance over physicians, from units j that two and more have read: with D_jk = sum over their items c of b_c (y_ck - mean y_c) / root(r_c - 1)
    for each physician k, s^2 = sum_jk D_jk^2 / sum b_c^2. Criteria that one physician reads together so count as alike as they are. Of n such units
    three are taken to be read otherwise, s^2 >= 3 x .5/n (rule of three). Both parts together are at most k/(k-1) sum_j (sum of z in j)^2: so it is where
    nothing was read twice.

    Physicians who are equally strict still differ in `between_physicians`, since each has other items. Of a unit that r of K have read its square counts
    f = K/(K-1) (1/r - 1/K) there, 1 where r is 1 and 0 where all have read it, and what its readers differ by counts whole:

        alike = sum_j f_j k/(k-1) (sum of z in j)^2  +  (1 - f_j) s^2 sum over its items of b^2 / (pi r)

    Särndal, Swensson and Wretman 1992, ch. 9 (two phases: items are drawn, then a reader for each); Satterthwaite 1946.
    """
    deviation = fit.factors * deviations(population, sample, fit)
    k = sample.n_units
    draw = float(benchmark_parts(sample, deviation).sum())
    squares = np.bincount(sample.units, deviation, minlength=k) ** 2 * (k / (k - 1) if k > 1 else np.nan)
    most = float(squares.sum())
    roots = fit.factors * population.item_weights[sample.rows] / np.sqrt(sample.probabilities)
    per_reader, effective = sample.per_reader, effective_readers(sample.loads)
    whole = float(roots**2 @ per_reader)
    of_these = float(roots**2 @ (per_reader - 1 / max(effective, 1.0)).clip(min=0))
    noise, freedom_of_noise = _between_readers(sample, roots)
    room, freedom = max(0.0, most - draw), float(k - fit.n_columns)
    readers, any_reader = (min(room, noise * part) if part > ROUNDING * whole else 0.0 for part in (of_these, whole))
    if 0 < readers < room:
        freedom = freedom_of_sum(draw, freedom, readers, freedom_of_noise)
    n_reads = np.bincount(sample.units[sample.places], minlength=k)
    per_read = np.bincount(sample.units, minlength=k) / n_reads.clip(min=1)  # 1/r, r the mean reads of its items
    apart = ((per_read * effective - 1) / max(effective - 1, ROUNDING)).clip(0, 1)
    differing = np.bincount(sample.units, roots**2 * per_reader / sample.probabilities, minlength=k)
    alike = float(apart @ squares) + (noise * float((1 - apart) @ differing) if noise < np.inf else 0.0)
    return BenchmarkVariance(draw, readers, any_reader, most, alike, freedom)


def _between_readers(sample: Sample, roots: Floats) -> tuple[float, float]:
    """s^2 of `benchmark_variance`, and its degrees of freedom; infinite where nothing was read twice."""
    base = float((roots[sample.n_own > 1] ** 2).sum())
    if base == 0:
        return np.inf, np.inf
    twice = sample.twice
    squares = np.bincount(twice.cell, roots[twice.places] * twice.apart / twice.roots) ** 2
    by_unit = np.bincount(twice.unit, squares) / base
    variance, least = float(by_unit.sum()), MIN_DISAGREEMENT * MOST_BETWEEN_READERS / len(by_unit)
    if variance <= least:
        return least, 2 * MIN_DISAGREEMENT
    return variance, 2 * variance**2 / float((by_unit**2).sum())


def between_physicians(population: Population, sample: Sample, fit: Fit) -> tuple[float, float]:
    """How far the physicians are apart in what each adds to the estimate, as a variance of their sum, and its degrees of freedom; NaN with fewer than two.

        D_k = sum of a e/pi over what physician k read (of an item that several have read, an equal part), q_k = their share of the reading
        (K-1)/K sum (d_k - mean d)^2,  d_k = D_k / (1 - q_k)      df = 1 / sum q^2 - 1, at least 1

    With equal shares and items of their own that is var(t_k)/K of the totals t_k = K D_k. The division by 1 - q_k makes good that one who reads most
    of the items draws the fit to himself (the jackknife over physicians, to first order). Items must have been given to physicians at random.
    """
    if sample.n_readers < 2:  # noqa: PLR2004
        return np.nan, np.nan
    return spread(*by_physician(population, sample, fit))


def by_physician(population: Population, sample: Sample, fit: Fit) -> tuple[Floats, Floats]:
    """Of each physician d_k and q_k, as `between_physicians` says."""
    each = 1 / (sample.probabilities * np.bincount(sample.places, minlength=len(sample.rows)).clip(min=1))
    residuals = fit.factors[sample.places] * (sample.said - fit.predicted[sample.rows][sample.places])
    weighted = (each * population.item_weights[sample.rows])[sample.places] * residuals
    loads = sample.loads
    return np.bincount(sample.readers, weighted, minlength=sample.n_readers) / (1 - loads).clip(min=OPEN), loads


def spread(apart: Floats, loads: Floats, among: Truths | None = None) -> tuple[Any, Any]:
    """Variance and degrees of freedom of a sum of which each physician has the part d_k, by `between_physicians`; of several sums, a row each.

    `among`: which physicians are of the sum (None: all); of the others the part is 0.
    """
    counts = np.ones(apart.shape, dtype=bool) if among is None else among
    k = counts.sum(axis=-1)
    mean = np.asarray(apart.sum(axis=-1) / k)[..., None]
    variance = (k - 1) / k * (counts * (apart - mean) ** 2).sum(axis=-1)
    return variance, np.maximum(1.0, effective_readers(loads) - 1)


def with_strictness(base: Value, base_freedom: Value, between: tuple[Value, Value], alike: Value) -> tuple[Any, Any]:
    """A variance for physicians in general: to `base`, if all were equally strict, it adds what `between` has above `alike`; and its freedom."""
    apart, degrees = between
    variance = base + np.maximum(0.0, apart - alike)
    seen_between = np.minimum(apart, variance)
    return variance, freedom_of_sum(seen_between, degrees, variance - seen_between, base_freedom)


def effective_readers(loads: Floats) -> Any:
    """As many readers with equal loads say as much of physicians as these do (0 or more each, in any unit): 1 / sum q^2, q their shares (Kish 1965)."""
    whole = np.asarray(loads.sum(axis=-1), dtype=np.float64)
    return np.divide(whole**2, (loads**2).sum(axis=-1), out=np.zeros_like(whole), where=whole > 0)[()]


def reading_loads(probabilities: Floats, places: Numbers, readers: Numbers) -> Floats:
    """q, by physician: the share of the reading that is theirs; they add up to 1. An item counts 1/pi, shared among those who have read it."""
    n_reads = np.bincount(places, minlength=len(probabilities)).clip(min=1)
    loads = np.bincount(readers, (1 / (probabilities * n_reads))[places])
    return np.asarray(loads / loads.sum() if loads.any() else loads, dtype=np.float64)


def freedom_of_sum(first: Value, first_degrees: Value, second: Value, second_degrees: Value) -> Any:
    """Degrees of freedom of the sum of two variances (Welch and Satterthwaite): (V + W)^2 / (V^2/df_V + W^2/df_W)."""
    whole = np.asarray(first + second)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_both = whole**2 / (np.square(first) / first_degrees + np.square(second) / second_degrees)
    return np.where(whole == 0, first_degrees, of_both)[()]


def further_reads(population: Population, sample: Sample, *, alone: Fit, helped: Fit) -> tuple[float, float, float]:
    """The number of further items physicians would have had to read for an estimate as sharp without the judge as with it.

        R     = V_A of physicians alone / V_A corrected                                  1: the judge was of no use
        worth = (D + E) / (V_A/R + D/M) - n       n items read of M;  about n (R - 1) where few of them are read
        V_A   = D (1/n - 1/M) + E/n               of physicians alone: of the draw, and of the readers (`benchmark_variance`)

    Of the draw V_A falls with reading as 1/n - 1/M does, so that no judge is worth more than the M - n items that nobody has read. It is about the
    benchmark's own score by these physicians: new examples and other physicians add the same to both variances. Below 0: the estimate was sharper
    without the judge. The interval is that of log R, t over the examples read: each item moves R by its own part of either variance and by what it
    moves the coefficients (linearised). In drawn studies it covers 85 % to 95 %.
    Worth and its bounds are in [-n, M - n]; 0 where everything was read, NaN where a variance is.
    """
    without, by_item_without, added_without, of_readers = _sharpness(population, sample, alone)
    with_judge, by_item_with, added_with, _ = _sharpness(population, sample, helped)
    if np.isnan(without + with_judge):
        return np.nan, np.nan, np.nan
    groups, example = np.unique(population.example[sample.rows], return_inverse=True)
    n, whole, n_groups = len(sample.rows), len(population.item_weights), len(groups)
    if without == 0 or with_judge == 0 or n == whole:
        return 0.0, 0.0, 0.0
    by_example = np.bincount(example, by_item_without - by_item_with)
    variance = n_groups / (n_groups - 1) * float((by_example**2).sum()) if n_groups > 1 else np.nan
    variance += added_without + added_with
    half = float(stdtrit(max(n_groups - 1, 1), (1 + LEVEL) / 2)) * np.sqrt(variance)
    middle = np.log(without / with_judge)
    by_draw, by_reader = (without - of_readers) / (1 / n - 1 / whole), of_readers * n
    low, worth, high = (
        min((by_draw + by_reader) / (without * np.exp(-ratio) + by_draw / whole), whole) - n
        for ratio in (middle - half, middle, middle + half)
    )
    return float(worth), float(low), float(high)


def _sharpness(population: Population, sample: Sample, fit: Fit) -> tuple[float, Floats, float, float]:
    """V_A; by item read, by how much it moves log V_A; what unseen votes add to the variance of that; and the readers' part of V_A."""
    # alike for both, so that a scale common to all a/pi makes no judge worth something
    fit = replace(fit, factors=np.ones(len(fit.factors)))
    deviation = deviations(population, sample, fit)
    parts = benchmark_variance(population, sample, fit)
    least = unseen_variance(population, sample)
    variance = max(parts.variance, least)
    if not variance > 0:
        return variance, np.zeros(len(deviation)), 0.0, 0.0
    k = sample.n_units
    missed = np.ones(len(deviation)) if parts.variance >= parts.most else 1 - sample.probabilities
    totals = np.bincount(sample.units, deviation, minlength=k)[sample.units]
    open_side = (1 - fit.leverage).clip(min=OPEN)
    missing = missed * totals * population.item_weights[sample.rows]
    slope = -2 * ((missing / (open_side * sample.probabilities)) @ fit.columns)
    residuals = (sample.votes - fit.predicted[sample.rows]) / open_side
    moved = missed * totals * deviation * (k / (k - 1)) + residuals * (fit.coefficient_weights @ slope)
    return variance, moved / variance, 0.0 if parts.variance >= least else 1 / MIN_DISAGREEMENT, float(parts.readers)
