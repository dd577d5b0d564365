"""What the reads so far say of those to come: what physicians are expected to say of each item, how far off they will be, how alike in one response."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.planning.targets import Goal, Population, Target, population
from evalcore.rubric.data import RubricData, votes
from evalcore.rubric.recipes import unit_sizes
from evalcore.stats import estimator
from evalcore.stats.intervals import share_interval

ASSUMED_ACCURACY = 0.8
"""Of a judge of which nothing has been read."""
ASSUMED_CORRELATION = 0.2
"""Of the errors on two criteria of one response, of which nothing has been read."""
ASSUMED_WEIGHT = 10
"""The assumption counts as much as so many reads (and, for the correlation, as so many responses), so that a handful of reads that
happen to agree does not promise an exact number."""
ASSUMED_UNITS = 2
"""The widths that follow from it count as much as so many units."""
TIE = 0.5
MIN_READS = 20
"""With fewer reads than that nothing is fitted."""
PILOT_READS = 200
"""From that many reads on a pilot is no longer called one."""

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


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
    """What is expected of the items of a population.

    Attributes:
        basis: Where that comes from.
        n_reads: Items read that it comes from.
        expected: What physicians are expected to say of each item, in [0, 1]; of a judge's errors the share of errors.
        spread: How far a physician's vote will be from that: a standard deviation, one an item.
        correlation: Of the deviations of two items of one unit, in [0, 1].
        share_wrong: The judge's errors as they were read, in [0, 1]; NaN for scores, and where nothing was read.
        calibration: Mean square of what whole units moved the number by, over what spread and correlation let expect of them, above 0; 1 where these items
            were not read.
    """

    basis: Basis
    n_reads: int
    expected: Floats
    spread: Floats
    correlation: float
    share_wrong: float
    calibration: float = 1.0

    @property
    def is_small(self) -> bool:
        """Whether the screen should say that this is a pilot."""
        return self.n_reads < PILOT_READS


def measured(rubric_data: RubricData, target: Target, about: Population) -> Pilot:
    """What the reads of a study say of the items that a target is about; where they are too few, those of other models; else what is assumed.

    Args:
        rubric_data: Of the whole study.
        target: What is to be known.
        about: Its items.
    """
    basis, source = Basis.DRAWN, about
    found = votes(about.rubric_data.reads)
    if len(found) < MIN_READS:
        basis, found = Basis.NOT_DRAWN, _any_votes(about.rubric_data)
    if len(found) < MIN_READS and target.goal is not Goal.JUDGE_ERROR:
        source = population(rubric_data, Target(Goal.JUDGE_ERROR, target.within, (), target.judges))
        points = source.items["points"]
        source = source.where((points.notna() & points.ne(0)).to_numpy())
        basis, found = Basis.OTHERS, _any_votes(source.rubric_data)
    measure = _of_errors if target.goal is Goal.JUDGE_ERROR else _of_scores
    if len(found) >= MIN_READS:
        return measure(about, source, found, basis)
    return measure(about, source, found.iloc[:0], Basis.ASSUMED)


def _any_votes(rubric_data: RubricData) -> pd.DataFrame:
    """Blind votes on all items, drawn or not: each stands for itself alone."""
    return votes(rubric_data.reads, drawn=False).assign(inclusion_probability=1.0)


def _of_scores(about: Population, source: Population, found: pd.DataFrame, basis: Basis) -> Pilot:
    """Votes beside what the corrected score's own regression predicts from the judges' labels and the sign of points."""
    rows = found["row"].to_numpy(dtype=np.int64)
    weight = 1 / found["inclusion_probability"].to_numpy(dtype=float)
    wrong = 1 - ASSUMED_ACCURACY
    expected = wrong + (ASSUMED_ACCURACY - wrong) * about.rubric_data.judged.to_numpy(dtype=float).mean(axis=1)
    error = np.empty(len(rows))
    if len(rows):
        vote = found["vote"].to_numpy(dtype=float)
        predicted, leverage = fitted(source, rows, vote, 1 / weight, by_model=source is about)
        error = (vote - predicted[rows]) / (1 - leverage).clip(min=0.1)
        expected = np.clip(predicted[_places(about, source)], 0.0, 1.0)
    apart = _apart(source)[rows]
    assumed = math.sqrt(ASSUMED_ACCURACY * wrong)
    of_class = [_spread(error[apart == side], weight[apart == side], assumed) for side in (False, True)]
    spread = np.take(of_class, _apart(about).astype(int))
    direction = np.sign(about.moves if source is about else source.items["points"].to_numpy(dtype=float))
    pulls = direction[rows] * source.weights[rows] * error
    sizes = source.weights[rows] * np.take(of_class, apart.astype(int))
    correlation = _correlation(pulls, sizes, source.unit[rows])
    calibration = 1.0
    if basis is Basis.DRAWN:
        calibration = _calibration(pulls, sizes, source.unit[rows], weight, correlation)
    return Pilot(basis, len(rows), expected, spread, correlation, math.nan, calibration)


def fitted(
    source: Population, rows: Numbers, vote: Floats, probabilities: Floats, *, by_model: bool
) -> tuple[Floats, Floats]:
    """What the corrected score's own regression lets expect of every item, and the leverage of each item read.

    Args:
        source: The items.
        rows: Those that were read.
        vote: Of each.
        probabilities: Of each, in (0, 1].
        by_model: Each model by itself, as the scores are, where enough was read of every one: one model's correction is never another's.
    """
    models = pd.factorize(source.items["model"])[0]
    n_read = np.bincount(models[rows], minlength=models.max(initial=0) + 1)
    groups = models if by_model and n_read.min() >= MIN_READS else np.zeros(len(models), dtype=np.int64)
    whole = as_surveyed(source)
    predicted, leverage = np.empty(len(groups)), np.empty(len(rows))
    for group in np.unique(groups):
        kept, inside = groups == group, groups[rows] == group
        about = estimator.Population(
            whole.moves[kept], whole.undesirable[kept], whole.labels[kept], whole.example[kept]
        )
        places = (np.cumsum(kept) - 1)[rows[inside]]
        fit = estimator.corrected(about, sample_of(places, vote[inside], probabilities[inside], source.unit[kept]))
        predicted[kept], leverage[inside] = fit.predicted, fit.leverage
    return predicted, leverage


def as_surveyed(about: Population) -> estimator.Population:
    """The items as `estimator` takes them."""
    undesirable = about.items["points"].to_numpy(dtype=float) < 0
    example = pd.factorize(about.items["example_id"])[0]
    return estimator.Population(about.moves, undesirable, about.rubric_data.judged.to_numpy(dtype=float), example)


def sample_of(rows: Numbers, vote: Floats, probabilities: Floats, unit: Numbers) -> estimator.Sample:
    """What was read, as `estimator` takes it, each item as if one physician had read them all.

    Args:
        rows: Items of the population.
        vote: Of each.
        probabilities: Of each, in (0, 1].
        unit: Of every item of the population.
    """
    units = pd.factorize(unit[rows])[0]
    places = np.arange(len(rows))
    return estimator.Sample(rows, vote, probabilities, units, places, np.zeros(len(rows), dtype=np.int64), vote)


def _places(about: Population, source: Population) -> Numbers:
    """Where the items of one population are in another that holds them all."""
    if about is source:
        return np.arange(len(about.items))
    found: Numbers = pd.Index(source.items["item_id"]).get_indexer(pd.Index(about.items["item_id"]))
    return found


def _of_errors(about: Population, source: Population, found: pd.DataFrame, basis: Basis) -> Pilot:
    """The share of labels that physicians do not share; the correlation from the design effect of its interval."""
    n = len(about.items)
    wrong = 1 - ASSUMED_ACCURACY
    if found.empty:
        share, spread, correlation = math.nan, math.sqrt(wrong * ASSUMED_ACCURACY), ASSUMED_CORRELATION
        return Pilot(basis, 0, np.full(n, wrong), np.full(n, spread), correlation, share)
    rows = found["row"].to_numpy(dtype=np.int64)
    weight = 1 / found["inclusion_probability"].to_numpy(dtype=float)
    error = np.abs(found["vote"].to_numpy(dtype=float) - source.rubric_data.judged.iloc[rows, 0].to_numpy(dtype=float))
    share = float(np.average(error, weights=weight))
    n_reads = len(rows)
    expected = (ASSUMED_WEIGHT * wrong + n_reads * share) / (ASSUMED_WEIGHT + n_reads)
    examples = source.items["example_id"].to_numpy()[rows]
    effect = share_interval(error >= TIE, examples).design_effect
    sizes = np.bincount(pd.factorize(examples)[0])
    alike = float((sizes**2).sum() / sizes.sum()) - 1  # further items of the example, as an item meets them
    found_correlation = min(max((effect - 1) / alike, 0.0), 1.0) if alike > 0 else ASSUMED_CORRELATION
    n_several = np.count_nonzero(sizes > 1)
    correlation = (ASSUMED_WEIGHT * ASSUMED_CORRELATION + n_several * found_correlation) / (ASSUMED_WEIGHT + n_several)
    spread = math.sqrt(expected * (1 - expected))
    return Pilot(basis, n_reads, np.full(n, expected), np.full(n, spread), correlation, share)


def _apart(about: Population) -> npt.NDArray[np.bool_]:
    """Where the judges, or the times that one was asked, do not all say the same."""
    return np.asarray(about.disagreement > 0)


def _spread(error: Floats, weight: Floats, assumed: float) -> float:
    squares = float(np.average(error**2, weights=weight)) * len(error) if len(error) else 0.0
    return math.sqrt((ASSUMED_WEIGHT * assumed**2 + squares) / (ASSUMED_WEIGHT + len(error)))


def _calibration(pulls: Floats, sizes: Floats, unit: Numbers, weight: Floats, correlation: float) -> float:
    """Over the units read: sum of w (sum of pulls)^2 over sum of w v, and as if `ASSUMED_UNITS` more had been as expected.

    Errors that cancel within a unit, which the correlation leaves at 0, and what is assumed of single criteria would else widen what is expected.
    """
    codes = pd.factorize(unit)[0]
    if not len(codes):
        return 1.0
    each = np.bincount(codes, weights=weight) / np.bincount(codes)
    seen = float(each @ np.bincount(codes, weights=pulls) ** 2)
    expected = float(each @ unit_sizes(sizes, codes, correlation=correlation) ** 2)
    ratio = seen / expected if expected else 1.0
    return (ASSUMED_UNITS + len(each) * ratio) / (ASSUMED_UNITS + len(each))


def _correlation(pulls: Floats, sizes: Floats, unit: Numbers) -> float:
    """The correlation of the errors on two items of a unit, as they add up in the score: products of pairs over what they would be at 1."""
    codes = pd.factorize(unit)[0]
    several = np.bincount(codes) > 1 if len(codes) else np.empty(0, dtype=bool)
    n_several = np.count_nonzero(several)
    if not n_several:
        return ASSUMED_CORRELATION
    pairs = np.bincount(codes, weights=pulls) ** 2 - np.bincount(codes, weights=pulls**2)
    most = unit_sizes(sizes, codes, correlation=1.0) ** 2 - unit_sizes(sizes, codes) ** 2
    found = min(max(float(pairs[several].sum() / most[several].sum()), 0.0), 1.0)
    return (ASSUMED_WEIGHT * ASSUMED_CORRELATION + n_several * found) / (ASSUMED_WEIGHT + n_several)
