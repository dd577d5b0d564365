"""What somebody wants to know; what physicians are expected to say of each of its items, how far off, and what the error of a score is made of."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from evalcore.rubric.data import RubricData, coefficients, first_reads, is_drawn, votes
from evalcore.rubric.drawings import Drawable, Goal, drawable, unit_sizes
from evalcore.stats import estimator
from evalcore.stats.arrays import Floats, Numbers, Truths, quotient
from evalcore.stats.estimator import effective_readers
from evalcore.stats.intervals import LEVEL, share_interval
from evalcore.study.schema import Claim, Physicians

N_MODELS = {Goal.SCORE: 1, Goal.DIFFERENCE: 2, Goal.JUDGE_ERROR: 0}
ASSUMED_ACCURACY, ASSUMED_CORRELATION = 0.8, 0.2
"""Of a judge of which nothing has been read; of the errors on two criteria of one response, of which nothing has been read."""
ASSUMED_WEIGHT, ASSUMED_UNITS = 10, 2
"""The assumption counts as so many reads (for the correlation: responses), the widths that follow from it as so many units: few reads promise nothing."""
TIE = 0.5
MIN_READS = 20  # with fewer reads than that nothing is fitted
PILOT_READS = 200  # from that many reads on a pilot is no longer called one
ROUNDING = 1e-9
COLUMNS = ["option", "n_reads", "n_units", "n_readers", "effective_readers", "standard_error"]
EXAMPLES, UNITS, READERS, REST = "examples", "units", "readers", "rest"
NOW, MORE_RESPONSES, MORE_READERS, SECOND_READS = "now", "more_responses", "more_readers", "second_reads"


@dataclass(frozen=True)
class Target:
    """What somebody wants to know, and how exactly; of a judge's errors always for all that it has labelled, and those who have read.

    With a `power` in (.5, 1) `within` is a difference to be found with it, or a margin of non-inferiority to be shown with it where models are alike.
    """

    goal: Goal
    within: float  # half the width that the 95 % interval may have, in (0, 0.5]; .03 is 3 % of labels
    models: tuple[str, ...]  # one for a score, two for a difference (first minus second), none for a judge's errors
    judges: tuple[str, ...]  # whose labels the corrected score is built on; for a judge's errors that one
    evaluation: str | None = None  # that the responses were made for; None only for a judge's errors: all
    claim: Claim = Claim.BENCHMARK
    physicians: Physicians = Physicians.THESE
    power: float | None = None

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval that this takes: with a power, within z/(z + z_power), z at 97.5 %."""
        return self.within if self.power is None else self.within / detectable(1.0, self.power)


@dataclass(frozen=True)
class Population(Drawable):
    """The items that a number is about; `item_weights`: by how much each moves it when it is met (a judge's errors: is wrong), signed."""

    item_weights: Floats

    @property
    def items(self) -> pd.DataFrame:
        """One row an item."""
        return self.rubric_data.items

    @property
    def n_units(self) -> int:
        """How many could be drawn."""
        return int(self.unit.max(initial=-1)) + 1

    def where(self, kept: Truths) -> "Population":
        """These items alone; the units are numbered anew, the weights stay."""
        unit = np.asarray(pd.factorize(self.unit[kept], sort=True)[0], dtype=np.int64)
        parts = (self.weights[kept], unit, self.disagreement[kept], self.item_weights[kept])
        return Population(self.rubric_data.where(kept), *parts)


def detectable(half_width: float, power: float) -> float:
    """The least true difference that an interval of so half a width finds with this probability, or margin of non-inferiority: h (z + z_power)/z."""
    z = float(ndtri((1 + LEVEL) / 2))
    return half_width * (z + float(ndtri(power))) / z


def population(rubric_data: RubricData, target: Target) -> Population:
    """The items that a target is about, as `drawable` finds them, and by how much each moves the number."""
    about = drawable(rubric_data, target.goal, models=target.models, judges=target.judges, evaluation=target.evaluation)
    items = about.rubric_data.items
    is_error = target.goal is Goal.JUDGE_ERROR
    weights = np.full(len(items), 1 / max(len(items), 1)) if is_error else coefficients(items).to_numpy(dtype=float)
    if target.goal is Goal.DIFFERENCE:
        weights = np.where(items["model"].eq(target.models[1]), -weights, weights)
    return Population(about.rubric_data.by(target.judges), about.weights, about.unit, about.disagreement, weights)


class Basis(StrEnum):
    """Where the expectations come from."""

    DRAWN = "drawn"
    """Blind reads of these items that were drawn with a known probability."""
    NOT_DRAWN = "not_drawn"
    """Blind reads of these items, some of which nobody drew."""
    OTHERS = "others"
    """Blind reads of other models' responses with the same judges."""
    ASSUMED = "assumed"
    """Nothing, or too little, has been read: a judge that is right on 80 %."""


@dataclass(frozen=True)
class Pilot:
    """What is expected of the items of a population."""

    basis: Basis
    n_reads: int  # items read that it comes from
    expected: Floats  # what physicians are expected to say of each item, in [0, 1]; or the share of a judge's errors
    spread: Floats  # how far a physician's label will be from that: a standard deviation, one an item
    correlation: float  # of the deviations of two items of one unit, in [0, 1]
    share_wrong: float  # the judge's errors as they were read, in [0, 1]; NaN for scores, and where nothing was read
    calibration: float = 1.0
    """Mean square of what whole units moved the number by, over what spread and correlation let expect, above 0; 1 where these were not read."""


def measured(rubric_data: RubricData, target: Target, about: Population) -> Pilot:
    """What the reads of a study say of the items `about` a target; where they are too few, those of other models; else what is assumed."""
    basis, source = Basis.DRAWN, about
    rated = votes(about.rubric_data.reads)
    if len(rated) < MIN_READS:
        basis, rated = Basis.NOT_DRAWN, votes(about.rubric_data.reads, drawn=False)
    if len(rated) < MIN_READS and target.goal is not Goal.JUDGE_ERROR:
        source = population(rubric_data, Target(Goal.JUDGE_ERROR, target.within, (), target.judges))
        points = source.items["points"]
        source = source.where((points.notna() & points.ne(0)).to_numpy())
        basis, rated = Basis.OTHERS, votes(source.rubric_data.reads, drawn=False)
    if len(rated) < MIN_READS:
        basis, rated = Basis.ASSUMED, rated.iloc[:0]
    if basis is not Basis.DRAWN:  # each stands for itself alone
        rated = rated.assign(inclusion_probability=1.0)
    return (_of_errors if target.goal is Goal.JUDGE_ERROR else _of_scores)(about, source, rated, basis)


def _of_scores(about: Population, source: Population, rated: pd.DataFrame, basis: Basis) -> Pilot:
    rows = rated["row"].to_numpy(dtype=np.int64)
    weight = 1 / rated["inclusion_probability"].to_numpy(dtype=float)
    wrong = 1 - ASSUMED_ACCURACY
    expected = wrong + (ASSUMED_ACCURACY - wrong) * about.rubric_data.judged.to_numpy(dtype=float).mean(axis=1)
    error = np.empty(len(rows))
    if len(rows):
        rating = rated["vote"].to_numpy(dtype=float)
        predicted, leverage = fitted(source, rows, rating, 1 / weight, by_model=source is about)
        error = (rating - predicted[rows]) / (1 - leverage).clip(min=0.1)
        places = np.arange(len(about.items))
        if source is not about:
            places = pd.Index(source.items["item_id"]).get_indexer(pd.Index(about.items["item_id"]))
        expected = np.clip(predicted[places], 0.0, 1.0)
    # where the judges, or the times that one was asked, do not all say the same
    split = (source.disagreement > 0)[rows]
    assumed = math.sqrt(ASSUMED_ACCURACY * wrong)
    of_class = [_spread(error[split == side], weight[split == side], assumed) for side in (False, True)]
    spread = np.take(of_class, (about.disagreement > 0).astype(int))
    direction = np.sign(about.item_weights if source is about else source.items["points"].to_numpy(dtype=float))
    errors = direction[rows] * source.weights[rows] * error
    sizes = source.weights[rows] * np.take(of_class, split.astype(int))
    correlation = _correlation(errors, sizes, source.unit[rows])
    calibration = 1.0
    if basis is Basis.DRAWN:
        calibration = _calibration(errors, sizes, source.unit[rows], weight, correlation)
    return Pilot(basis, len(rows), expected, spread, correlation, math.nan, calibration)


def fitted(
    source: Population, rows: Numbers, rating: Floats, probabilities: Floats, *, by_model: bool
) -> tuple[Floats, Floats]:
    """What the corrected score's own regression expects of every item, and the leverage of each of `rows`; each model by itself where enough is read."""
    models = pd.factorize(source.items["model"])[0]
    n_read = np.bincount(models[rows], minlength=models.max(initial=0) + 1)
    groups = models if by_model and n_read.min() >= MIN_READS else np.zeros(len(models), dtype=np.int64)
    whole = estimator_population(source)
    predicted, leverage = np.empty(len(groups)), np.empty(len(rows))
    for group in np.unique(groups):
        kept, inside = groups == group, groups[rows] == group
        columns = (whole.item_weights, whole.undesirable, whole.labels, whole.example)
        part = estimator.Population(*(column[kept] for column in columns))
        places, votes_of, n = (np.cumsum(kept) - 1)[rows[inside]], rating[inside], np.count_nonzero(inside)
        units = pd.factorize(source.unit[rows[inside]])[0]
        alone = np.zeros(n, dtype=np.int64)  # as if one physician had read them all
        read = estimator.Sample(places, votes_of, probabilities[inside], units, np.arange(n), alone, votes_of)
        fit = estimator.corrected(part, read)
        predicted[kept], leverage[inside] = fit.predicted, fit.leverage
    return predicted, leverage


def estimator_population(about: Population) -> estimator.Population:
    """The items as `estimator` takes them."""
    undesirable = about.items["points"].to_numpy(dtype=float) < 0
    example = pd.factorize(about.items["example_id"])[0]
    labels = about.rubric_data.judged.to_numpy(dtype=float)
    return estimator.Population(about.item_weights, undesirable, labels, example)


def _of_errors(about: Population, source: Population, rated: pd.DataFrame, basis: Basis) -> Pilot:
    n = len(about.items)
    wrong = 1 - ASSUMED_ACCURACY
    if rated.empty:
        share, spread, correlation = math.nan, math.sqrt(wrong * ASSUMED_ACCURACY), ASSUMED_CORRELATION
        return Pilot(basis, 0, np.full(n, wrong), np.full(n, spread), correlation, share)
    rows = rated["row"].to_numpy(dtype=np.int64)
    weight = 1 / rated["inclusion_probability"].to_numpy(dtype=float)
    error = np.abs(rated["vote"].to_numpy(dtype=float) - source.rubric_data.judged.iloc[rows, 0].to_numpy(dtype=float))
    share = float(np.average(error, weights=weight))
    n_reads = len(rows)
    expected = (ASSUMED_WEIGHT * wrong + n_reads * share) / (ASSUMED_WEIGHT + n_reads)
    examples = source.items["example_id"].to_numpy()[rows]
    effect = share_interval(error >= TIE, examples).design_effect
    sizes = np.bincount(pd.factorize(examples)[0])
    alike = float((sizes**2).sum() / sizes.sum()) - 1  # further items of the example, as an item meets them
    as_read = min(max((effect - 1) / alike, 0.0), 1.0) if alike > 0 else ASSUMED_CORRELATION
    n_several = np.count_nonzero(sizes > 1)
    correlation = (ASSUMED_WEIGHT * ASSUMED_CORRELATION + n_several * as_read) / (ASSUMED_WEIGHT + n_several)
    spread = math.sqrt(expected * (1 - expected))
    return Pilot(basis, n_reads, np.full(n, expected), np.full(n, spread), correlation, share)


def _spread(error: Floats, weight: Floats, assumed: float) -> float:
    squares = float(np.average(error**2, weights=weight)) * len(error) if len(error) else 0.0
    return math.sqrt((ASSUMED_WEIGHT * assumed**2 + squares) / (ASSUMED_WEIGHT + len(error)))


def _calibration(errors: Floats, sizes: Floats, unit: Numbers, weight: Floats, correlation: float) -> float:
    """Over the units read: sum of w (sum of errors)^2 over sum of w v, as if `ASSUMED_UNITS` more had been as expected: errors may cancel in a unit."""
    codes = pd.factorize(unit)[0]
    if not len(codes):
        return 1.0
    each = np.bincount(codes, weights=weight) / np.bincount(codes)
    seen = float(each @ np.bincount(codes, weights=errors) ** 2)
    expected = float(each @ unit_sizes(sizes, codes, correlation=correlation) ** 2)
    ratio = seen / expected if expected else 1.0
    return (ASSUMED_UNITS + len(each) * ratio) / (ASSUMED_UNITS + len(each))


def _correlation(errors: Floats, sizes: Floats, unit: Numbers) -> float:
    codes = pd.factorize(unit)[0]
    several = np.bincount(codes) > 1 if len(codes) else np.empty(0, dtype=bool)
    n_several = np.count_nonzero(several)
    if not n_several:
        return ASSUMED_CORRELATION
    pairs = np.bincount(codes, weights=errors) ** 2 - np.bincount(codes, weights=errors**2)
    most = unit_sizes(sizes, codes, correlation=1.0) ** 2 - unit_sizes(sizes, codes) ** 2
    share = min(max(float(pairs[several].sum() / most[several].sum()), 0.0), 1.0)
    return (ASSUMED_WEIGHT * ASSUMED_CORRELATION + n_several * share) / (ASSUMED_WEIGHT + n_several)


class Moments(NamedTuple):
    """Variances of x = unit + reader + rest, unbiased, so by chance below 0; NaN without two readers of a unit (n_double), or two readers: then in the rest."""

    of_units: float
    of_readers: float
    of_rest: float
    n_double: int


def moments(x: Floats, unit: Numbers, reader: Numbers, weight: Floats) -> Moments:
    """Variance components by the method of moments, from pairs of reads (Searle, Casella and McCulloch 1992, chapter 5).

    Half the mean squared difference of two reads is, of two reads

        of one unit                                     A = readers + rest
        of one reader on two units                      B = units + rest
        of two readers on two units                     C = units + readers + rest

    so that readers = C - B, units = C - A, rest = A + B - C. Each unit counts 1/pi, so that those drawn by importance stand for all.
    All arguments are by read; `unit` and `reader` are numbered from 0, and a reader reads a unit once.
    """
    n_double = int((np.bincount(unit) > 1).sum()) if len(unit) else 0
    all_of, all_pairs = _differences(x, weight, np.zeros(len(x), dtype=np.int64))
    in_reader, reader_pairs = _differences(x, weight, reader)
    in_unit, unit_pairs = _differences(x, weight, unit)
    apart_pairs = all_pairs.sum() - reader_pairs.sum() - unit_pairs.sum()
    apart = math.nan
    if apart_pairs > ROUNDING * all_pairs.sum():
        apart = float((all_of.sum() - in_reader.sum() - in_unit.sum()) / apart_pairs)
    within_reader = _within(in_reader, reader_pairs, reader, weight)
    within_unit = _within(in_unit, unit_pairs, unit, weight)
    of_readers = apart - within_reader
    if n_double and not math.isnan(apart):
        return Moments(apart - within_unit, of_readers, within_unit + within_reader - apart, n_double)
    return Moments(math.nan, of_readers, within_reader, n_double)


def _differences(x: Floats, weight: Floats, group: Numbers) -> tuple[Floats, Floats]:
    of = weight * x, weight * x**2, weight, weight**2
    sums, squares, of_weights, of_squares = (np.bincount(group, values) for values in of)
    return (of_weights * squares - sums**2) / 2, (of_weights**2 - of_squares) / 2


def _within(squares: Floats, pairs: Floats, group: Numbers, weight: Floats) -> float:
    """Half the mean squared difference within groups, each by its weight: pairs alone would leave it to the largest."""
    of_group = np.bincount(group, weight)
    kept = of_group > 0
    return float(quotient((squares[kept] / of_group[kept]).sum(), (pairs[kept] / of_group[kept]).sum()))


@dataclass(frozen=True)
class Components:
    """The variances that the error of a corrected score is made of, in squares of the score; none is below 0.

    With N examples, n of U units (responses) read, K readers with loads q, r reads a unit:

        V = of_examples / N                                   for new examples
          + of_units (1/n - 1/U)                              the judge is off by more on one response than on another
          + of_readers sum q^2                                for physicians in general: one is stricter than another
          + of_rest / (n r)                                   the same physician is not always as strict; for these physicians (1/r - 1/K)/n
    """

    of_examples: float
    of_units: float  # of the difference of physicians from what the judge lets expect; NaN where no unit has two readers: it is in the rest
    of_readers: float  # NaN where fewer than two have read
    of_rest: float
    clipped: tuple[str, ...]  # names of those that came out below 0 and were set to 0
    n_examples: int  # N
    n_all: float  # U
    n_units: int  # n
    n_reads: int  # of units
    loads: tuple[int, ...]  # the same by physician
    n_double: int  # units with two reads or more
    n_items: float  # criteria a unit, on average

    @property
    def is_known(self) -> bool:
        """Whether enough was read to tell anything."""
        return not math.isnan(self.of_rest)

    @property
    def share_of_rest(self) -> float:
        """Of the spread of single reads of units, the part that is the reader's and not the unit's, in [0, 1]; NaN where nobody can tell."""
        whole = self.of_units + self.of_rest
        return self.of_rest / whole if whole else 0.0

    def sources(self) -> dict[str, float]:
        """The parts of V for new examples and physicians in general, by name; an unknown part is NaN."""
        of_units = self.of_units * max(0.0, 1 / self.n_units - 1 / self.n_all)
        of_physicians = self.of_readers / effective_readers(np.asarray(self.loads, dtype=float))
        parts = {EXAMPLES: self.of_examples / self.n_examples, UNITS: of_units, READERS: of_physicians}
        return parts | {REST: self.of_rest / self.n_reads}

    def variance(
        self, claim: Claim, physicians: Physicians, *, n_units: float, n_reads: float, loads: list[float]
    ) -> float:
        """V as above, for a reading of n units, above 0 and at most U, with n r reads and so many by physician."""
        of_units = 0.0 if math.isnan(self.of_units) else self.of_units
        total = self.of_examples / self.n_examples if claim is Claim.NEW_EXAMPLES else 0.0
        total += of_units * max(0.0, 1 / n_units - 1 / self.n_all)
        if physicians is Physicians.IN_GENERAL:
            effective = float(effective_readers(np.asarray(loads, dtype=float)))
            return total + self.of_readers / effective + self.of_rest / n_reads
        if len(loads) > 1:
            left = 1 / n_reads if math.isnan(self.of_units) else max(0.0, 1 / n_reads - 1 / (n_units * len(loads)))
            return total + self.of_rest * left
        return total + (self.of_rest * max(0.0, 1 / n_units - 1 / self.n_all) if math.isnan(self.of_units) else 0.0)


def components(about: Population, target: Target) -> Components:
    """The variance components of a score, or of a difference, from the drawn blind reads of its items; a judge's errors are not taken apart.

    A read of a unit is x = U sum of a e over the items that the physician labelled there, e how far the label is from what the judges' labels let
    expect, as if the item had had no part in the fit. A difference takes each response by itself, the second model's with a minus, so that
    a physician who is strict with both does not count as different.
    """
    first = first_reads(about.rubric_data.reads)
    first = first.loc[is_drawn(first) & first["met"].notna()]
    voted = votes(about.rubric_data.reads)
    if target.goal is Goal.JUDGE_ERROR or len(voted) < MIN_READS:
        return Components(math.nan, math.nan, math.nan, math.nan, (), 0, 0.0, 0, 0, (), 0, math.nan)
    rows, pi = voted["row"].to_numpy(dtype=np.int64), voted["inclusion_probability"].to_numpy(dtype=float)
    pi = np.clip(pi * (1 / pi).sum() / len(about.items), None, 1.0)
    examples = estimator_population(about)
    unit = pd.factorize(voted["unit"])[0]
    predicted, leverage = fitted(about, rows, voted["vote"].to_numpy(dtype=float), pi, by_model=True)
    place = np.searchsorted(rows, first["row"].to_numpy(dtype=np.int64))
    error = (first["met"].to_numpy(dtype=float) - predicted[rows[place]]) / (1 - leverage[place]).clip(min=0.1)
    weighted_error = about.item_weights[rows[place]] * error
    raters, names = pd.factorize(first["rater"], sort=True)
    pairs, read_of = np.unique(unit[place] * len(names) + raters, return_inverse=True)
    of_unit: Floats = np.asarray(1 / pi[np.unique(unit, return_index=True)[1]], dtype=np.float64)
    n_all = float(of_unit.sum())
    x = n_all * np.bincount(read_of, weighted_error)
    units, readers = pairs // len(names), pairs % len(names)
    estimates = moments(x.astype(np.float64), units, readers, of_unit[units])
    totals = np.bincount(examples.example, about.item_weights * predicted, minlength=examples.n_examples)
    n = len(totals)
    between = float((n * totals).var(ddof=1)) if n > 1 else math.nan
    # rather too much than too little
    of_units = max(estimates.of_rest if math.isnan(estimates.of_units) else estimates.of_units, 0.0)
    raw = {UNITS: estimates.of_units, READERS: estimates.of_readers, REST: estimates.of_rest}
    return Components(
        of_examples=between + of_units * n / n_all,
        **{f"of_{name}": value if math.isnan(value) else max(value, 0.0) for name, value in raw.items()},
        clipped=tuple(name for name, value in raw.items() if value < 0),
        n_examples=n,
        n_all=n_all,
        n_units=len(of_unit),
        n_reads=len(pairs),
        loads=tuple(np.bincount(readers, minlength=len(names)).tolist()),
        n_double=estimates.n_double,
        n_items=len(rows) / len(of_unit),
    )


def options(parts: Components, target: Target, *, n_more: float) -> pd.DataFrame:
    """The standard error (NaN: cannot be told) expected after `n_more` further reads of a unit, by what they are spent on; no row where nothing is known.

    more_responses: unread units, by the physicians who have read. more_readers: the same by as many physicians again, who share the new ones. second_reads:
    units read already, by another of the physicians. n_reads are the further ones: fewer than asked for where no more are left.
    """
    if not parts.is_known:
        return pd.DataFrame(columns=COLUMNS)
    loads = [float(load) for load in parts.loads]
    k, whole = len(loads), sum(loads)
    fresh = max(0.0, min(n_more, parts.n_all - parts.n_units))
    again = max(0.0, min(n_more, parts.n_units * k - parts.n_reads))
    same = [load + fresh * load / whole for load in loads]
    twice = [load + again * load / whole for load in loads]
    rows: list[tuple[str, float, float, list[float]]] = [
        (NOW, 0.0, parts.n_units, loads),
        (MORE_RESPONSES, fresh, parts.n_units + fresh, same),
        (MORE_READERS, fresh, parts.n_units + fresh, [*loads, *([fresh / k] * k if fresh else [])]),
        (SECOND_READS, again, parts.n_units, twice),
    ]
    table = []
    for option, n_more_reads, n_units, shares in rows:
        variance, n_reads = math.nan, parts.n_reads + n_more_reads
        if option != SECOND_READS or (k > 1 and not math.isnan(parts.of_units)):
            variance = parts.variance(target.claim, target.physicians, n_units=n_units, n_reads=n_reads, loads=shares)
        readers = (len(shares), effective_readers(np.array(shares)))
        table.append((option, round(n_more_reads), round(n_units), *readers, math.sqrt(variance)))
    return pd.DataFrame(table, columns=COLUMNS)
