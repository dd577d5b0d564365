"""A score from judges' labels on every item and physicians' votes on those that were drawn: estimates and their variances.

The score of a model is a total over its items, S = sum a y: y is what physicians say of an item (1 met, 0 not met), and a by how
much the item moves the score, known and negative for undesirable criteria. Every estimate here has one form,

    S = sum over all items a m  +  sum over the read ones a e / pi

with a prediction m of y, known for all items, the residual e of the items read, and the probability pi that an item was drawn.

References:
    Särndal, Swensson and Wretman 1992 (regression estimator); Angelopoulos, Duchi and Zrnic 2023 (the same as PPI++).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

MIN_ON_A_SIDE = 10
"""A column of the regression needs so many read items on either side."""
MIN_OF_A_SIGN = 2
"""Items read: a single one says nothing of the spread of its sign."""
MIN_DISAGREEMENT = 3.0
"""Of the votes read so many, at least, are taken not to be as predicted."""


@dataclass(frozen=True)
class Population:
    """All items of one model in one evaluation.

    Attributes:
        moves: a, by item: signed; the positive ones add up to 1.
        undesirable: By item, whether its points are negative.
        labels: What each judge says, an item a row and a judge a column, in [0, 1].
        example: By item, the number of its example, 0 to N-1.
    """

    moves: Floats
    undesirable: Truths
    labels: Floats
    example: Numbers

    @cached_property
    def n_examples(self) -> int:
        """The N of the formulas."""
        return int(self.example.max()) + 1 if len(self.example) else 0

    @cached_property
    def shares(self) -> Floats:
        """By example, its part of the mean: 1/N where all examples have one response and one weight; adds up to 1."""
        sums = np.bincount(self.example, self.moves.clip(min=0), minlength=self.n_examples)
        return np.asarray(sums, dtype=np.float64)


@dataclass(frozen=True)
class Sample:
    """What was read of a population.

    Attributes:
        rows: The items read, each once: rows of the population.
        votes: y of these, in [0, 1].
        probabilities: pi of these, in (0, 1].
        units: Of these the number of what was drawn together, 0 to k-1.
        places: By read, its item: a place in `rows`. Items that two have read have two reads.
        readers: By read, the number of the physician, 0 to K-1.
        said: By read, the vote; where an adjudicated label takes its place, that label.
        own: By read, what that physician said, NaN for "cannot assess"; None: what `said` has.
    """

    rows: Numbers
    votes: Floats
    probabilities: Floats
    units: Numbers
    places: Numbers
    readers: Numbers
    said: Floats
    own: Floats | None = None

    @property
    def n_units(self) -> int:
        """The k of the formulas."""
        return int(self.units.max()) + 1 if len(self.units) else 0

    @property
    def n_readers(self) -> int:
        """The K of the formulas."""
        return int(self.readers.max()) + 1 if len(self.readers) else 0


@dataclass(frozen=True)
class Fit:
    """An estimate.

    Attributes:
        value: S.
        predicted: m, by item of the population.
        columns: x, an item read a row.
        pull: By item read and column, how far the coefficients follow the item's residual: (sum_s w x x')^-1 w x.
        factors: g, by item read: its residual counts g times in the variance.
    """

    value: float
    predicted: Floats
    columns: Floats
    pull: Floats
    factors: Floats

    @property
    def leverage(self) -> Floats:
        """h, by item read, in [0, 1]: how far its prediction follows its own vote."""
        return np.asarray((self.columns * self.pull).sum(axis=1))

    @property
    def n_columns(self) -> int:
        """p, the numbers that were fitted."""
        return round(float(self.leverage.sum()))


# ---------------------------------------------------------------- estimates


def by_judges(population: Population) -> Fit:
    """What the judges say, S = sum a f, f the mean of their labels: nothing is read, and judges' errors are all in it."""
    said = population.labels.mean(axis=1) if population.labels.shape[1] else np.full(len(population.moves), np.nan)
    nothing = np.empty((0, 0))
    return Fit(float((population.moves * said).sum()), said, nothing, nothing, np.empty(0))


def by_physicians(population: Population, sample: Sample) -> Fit:
    """What physicians say, without any judge: the mean vote by sign of points (Hajek).

        S = sum_h A_h r_h,  A_h = sum over all items of the sign a,  r_h = (sum a y/pi) / (sum a/pi) over the read ones of the sign

    That is the form above with m = r_h, a regression on the sign with weights |a|/pi; its residuals count g = A_h / (sum a/pi)
    times. A scale common to all pi changes nothing.

    Returns:
        The value is NaN where a sign has items and fewer than two of them are read (or not the only one).
    """
    sides = np.column_stack([~population.undesirable, population.undesirable])
    weights = population.moves[sample.rows] / sample.probabilities
    whole, seen = population.moves @ sides, weights @ sides[sample.rows]
    few = sides[sample.rows].sum(axis=0) < sides.sum(axis=0).clip(max=MIN_OF_A_SIGN)
    ratios = np.divide(whole, seen, out=np.zeros(2), where=seen != 0)
    ratios[(whole != 0) & (few | (seen == 0))] = np.nan
    factors = ratios[population.undesirable[sample.rows].astype(np.int64)]
    found = _fitted(population, sample, sides.astype(np.float64), np.abs(weights), factors)
    return replace(found, value=np.nan) if np.isnan(ratios).any() else found


def corrected(population: Population, sample: Sample) -> Fit:
    """The judges' labels, corrected by physicians' votes on the items read (GREG, the same as PPI++).

        S = sum_all a m + sum_s a (y - m)/pi,   m = x'b,   b = (sum_s x x'/pi)^-1 sum_s x y/pi
        x = (1, each judge's label, sign, sign x label),   leverage h = (1/pi) x' (sum_s x x'/pi)^-1 x

    A column counts only with 10 read items on either side (of the sign by a label: in each of the four cells): one judge's column
    of nothing but "met" falls away. Columns that say the same, as two judges of one mind, share their coefficient.
    """
    weights = 1 / sample.probabilities
    return _fitted(population, sample, _columns(population, sample.rows), weights, np.ones(len(weights)))


def _fitted(population: Population, sample: Sample, columns: Floats, weights: Floats, factors: Floats) -> Fit:
    """The regression of votes on the columns, and the estimate by it."""
    x = columns[sample.rows]
    weights = weights / weights.sum() if weights.any() else weights
    pull = (x * weights[:, None]) @ np.linalg.pinv((x.T * weights) @ x, rcond=1e-9, hermitian=True)
    predicted = columns @ (pull.T @ sample.votes)
    return Fit(total(population, sample, predicted), predicted, x, pull, factors)


def total(population: Population, sample: Sample, predicted: Floats) -> float:
    """The sum over all items a m, and over the items read a (y - m)/pi: right on average over draws, whatever m is."""
    left = (sample.votes - predicted[sample.rows]) / sample.probabilities
    return float((population.moves * predicted).sum() + (population.moves[sample.rows] * left).sum())


def _columns(population: Population, rows: Numbers) -> Floats:
    """The x of every item: those columns that the items read can tell apart."""
    sign = population.undesirable.astype(np.float64)
    below = population.undesirable[rows]
    columns = [np.ones(len(sign))]
    has_sign = _both_sides(below)
    if has_sign:
        columns.append(sign)
    for label in population.labels.T:
        met = label[rows] > 0.5  # noqa: PLR2004 - a jury's label may lie between
        if _both_sides(met):
            columns.append(label)
            if has_sign and _both_sides(met[below]) and _both_sides(met[~below]):
                columns.append(sign * label)
    return np.column_stack(columns)


def _both_sides(truths: Truths) -> bool:
    return MIN_ON_A_SIDE <= int(truths.sum()) <= len(truths) - MIN_ON_A_SIDE


# ---------------------------------------------------------------- variances


def deviations(population: Population, sample: Sample, fit: Fit) -> Floats:
    """By item read, z = a e / ((1 - h) pi): what it adds to the estimate, as if it had had no part in the fit."""
    residuals = sample.votes - fit.predicted[sample.rows]
    return population.moves[sample.rows] * residuals / ((1 - fit.leverage).clip(min=1e-6) * sample.probabilities)


def benchmark_parts(sample: Sample, deviation: Floats) -> Floats:
    """The parts of V_A that come of the draw, by unit drawn: the variance about what those who read them would say of every item of this benchmark.

        V_A = k/(k-1) sum over the units j of (1 - pi_j) (sum of z in j)^2        (Poisson draw; a unit is an item, or a whole response)

    It is 0 where everything was read, and NaN with fewer than two units. What comes of the readers: `over_physicians.benchmark_variance`.
    """
    k = sample.n_units
    missed = np.zeros(k)
    missed[sample.units] = 1 - sample.probabilities
    return missed * np.bincount(sample.units, deviation, minlength=k) ** 2 * (k / (k - 1) if k > 1 else np.nan)


def unseen_variance(population: Population, sample: Sample) -> float:
    """The least that V_A is taken to be: that of three votes that are not as predicted, 3 x mean of (1 - pi) (a/pi)^2.

    Where all of k votes are as predicted V_A would be 0, yet up to 3/k of all may not be (the rule of three). 0 where everything was read.
    """
    if not len(sample.rows):
        return np.nan
    single = (1 - sample.probabilities) * (population.moves[sample.rows] / sample.probabilities) ** 2
    return MIN_DISAGREEMENT * float(single.mean())


def influences(population: Population, sample: Sample | None, fit: Fit) -> Floats:
    """psi, by example: its mean over the examples is the estimate, and its variance over them, divided by N, is V_B.

        psi_i = S + N (sum of a m in i + sum of z in i - S share_i), moved so that the mean is S

    With one response and one weight an example, that is the example's own corrected score. Weights and repeats make the score a
    ratio, which the last term allows for (linearisation).
    """
    n = population.n_examples
    totals = np.asarray(
        np.bincount(population.example, population.moves * fit.predicted, minlength=n), dtype=np.float64
    )
    if sample is not None:
        left = fit.factors * deviations(population, sample, fit)
        totals = totals + np.bincount(population.example[sample.rows], left, minlength=n)
    return np.asarray(n * (totals - fit.value * population.shares) - totals.sum() + 2 * fit.value)
