"""What drawing would have saved on what was read: the reads so far as a population, from which parts are drawn again and again."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from evalcore.metrics import survey
from evalcore.metrics.inclusion import FLOOR, drawn_systematically, inclusion_probabilities
from evalcore.metrics.intervals import LEVEL
from evalcore.metrics.opinions import votes
from evalcore.metrics.pilot import as_surveyed, sample_of
from evalcore.metrics.sample_size import DESIGNS, IMPORTANCE, drawing_sizes
from evalcore.metrics.targets import Goal, Population, Target, population
from evalcore.opinions import Opinions

PHYSICIANS_ONLY, CORRECTED = "physicians_only", "corrected"
ESTIMATORS = (PHYSICIANS_ONLY, CORRECTED)
MIN_ITEMS = 100
"""With fewer read items it is too early: a part of a handful says nothing of how parts of a study behave."""
N_DRAWS = 300
SHARE_DRAWN = 1 / 3
MIN_UNITS = 8
COLUMNS = [
    "design", "estimator", "n_units", "n_items", "n_draws", "error", "half_width", "coverage", "n_covered", "n_same", "share_saved",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
_Estimator = Callable[[survey.Population, survey.Sample], survey.Fit]


@dataclass(frozen=True)
class Retrospect:
    """What drawing again from what was read shows.

    Attributes:
        n_responses, n_items: That were read, and are drawn from.
        n_units: The same as they are drawn: responses, or for a difference examples.
        n_drawn: Units of each drawing.
        truth: The number that each drawing is to find: what physicians say of all that was read. NaN where it is too early.
        table: One row a design and estimator, none where it is too early: design (uniform, importance); estimator (physicians_only,
            corrected); n_units; n_items (mean of the drawings); n_draws; error (root of the mean square of estimate - truth);
            half_width (mean); coverage in [0, 1] = n_covered / n_draws, how often the 95 % interval held the truth; n_same (responses that
            physicians alone, drawn alike, would have to read for the same error); share_saved = 1 - n_units / n_same, below 0 where it
            costs.
    """

    n_responses: int
    n_items: int
    n_units: int
    n_drawn: int
    truth: float
    table: pd.DataFrame

    @property
    def is_too_early(self) -> bool:
        """Whether too little has been read."""
        return self.table.empty


def retrospect(
    opinions: Opinions,
    target: Target,
    *,
    rng: np.random.Generator,
    n_draws: int = N_DRAWS,
    share_drawn: float = SHARE_DRAWN,
    min_items: int = MIN_ITEMS,
    level: float = LEVEL,
) -> Retrospect:
    """Draw a part of the responses that were read, again and again, and hold what it gives against all of them.

    All blind reads count, drawn or not, since what was read is here all that there is. The number is the target's score (or difference)
    over the items read; of the items read each keeps its weight. Estimates and intervals are those of `survey`: physicians alone by sign
    of points, and the regression that corrects the judges. What it shows holds for the reads so far: a drawing from the whole benchmark
    is smaller in proportion, and gains more.

    Args:
        opinions: Of the whole study, or what may be seen of it.
        target: A score or a difference; for a judge's errors there is nothing to correct, and the table stays empty.
        rng: Chance; the same seed gives the same table.
        n_draws: Of each design.
        share_drawn: Of the responses read, in (0, 1).
        min_items: With fewer the table is empty.
        level: Of confidence.
    """
    about = population(opinions, target)
    read = votes(about.opinions.reads, drawn=False)
    rows = read["row"].to_numpy(dtype=np.int64)
    kept = np.zeros(len(about.items), dtype=bool)
    kept[rows] = True
    part = about.where(kept)
    n_drawn = max(round(part.n_units * share_drawn), MIN_UNITS)
    is_early = len(rows) < min_items or part.n_units < 2 * MIN_UNITS
    n_responses = int(part.items["response_id"].nunique())
    if target.goal is Goal.JUDGE_ERROR or is_early:
        return Retrospect(n_responses, len(rows), part.n_units, 0, math.nan, pd.DataFrame(columns=COLUMNS))
    vote = read["vote"].to_numpy(dtype=float)  # sorted by row, as the items of the part are
    truth = float(part.moves @ vote)
    models, found = _models(part, vote, target), []
    for design in DESIGNS:
        floor = FLOOR if design == IMPORTANCE else 1.0
        probabilities = inclusion_probabilities(drawing_sizes(part, 0.0), n_drawn, floor=floor).of_units
        results = np.array([_drawing(models, probabilities, rng, level) for _ in range(n_draws)])
        found += [_row(design, name, results[:, place], truth, n_drawn) for place, name in enumerate(ESTIMATORS)]
    return Retrospect(
        n_responses, len(rows), part.n_units, n_drawn, truth, _compared(pd.DataFrame(found), part.n_units)
    )


def _drawing(models: "list[_Model]", probabilities: Floats, rng: np.random.Generator, level: float) -> Floats:
    """One drawing: an estimator a row; value, half-width and items read."""
    taken = np.zeros(len(probabilities), dtype=bool)
    taken[drawn_systematically(probabilities, rng=rng)] = True
    samples = [model.sample(taken, probabilities) for model in models]
    n_items = sum(len(sample.rows) for sample in samples)
    return np.array(
        [
            (*_estimate(models, samples, estimator, probabilities, level), n_items)
            for estimator in (survey.by_physicians, survey.corrected)
        ]
    )


@dataclass(frozen=True)
class _Model:
    """What was read of one model.

    Attributes:
        about: Its items.
        votes: Of these.
        unit: Of these, as all models' items are drawn.
        sign: -1 for the model that is taken away.
    """

    about: survey.Population
    votes: Floats
    unit: Numbers
    sign: float

    def sample(self, taken: npt.NDArray[np.bool_], probabilities: Floats) -> survey.Sample:
        rows = np.flatnonzero(taken[self.unit])
        return sample_of(rows, self.votes[rows], probabilities[self.unit[rows]], self.unit)


def _models(part: Population, vote: Floats, target: Target) -> list[_Model]:
    """Each model by itself: one model's correction is never another's."""
    found = []
    for model, sign in zip(target.models, (1.0, -1.0), strict=False):
        kept = part.items["model"].eq(model).to_numpy()
        about = as_surveyed(part.where(kept))
        found.append(_Model(replace(about, moves=about.moves * sign), vote[kept], part.unit[kept], sign))
    return found


def _estimate(
    models: list[_Model], samples: list[survey.Sample], estimator: _Estimator, probabilities: Floats, level: float
) -> tuple[float, float]:
    """The estimate and half the width of its interval, V = k/(k-1) sum_j (1-pi_j) (sum of z in j, over the models)^2."""
    value, least, n_columns, totals = 0.0, 0.0, 0, np.zeros(len(probabilities))
    for model, sample in zip(models, samples, strict=True):
        fit = estimator(model.about, sample)
        z = survey.deviations(model.about, sample, fit)
        totals += model.sign * np.bincount(model.unit[sample.rows], z, minlength=len(totals))
        value += model.sign * fit.value
        least += survey.unseen_variance(model.about, sample)
        n_columns += fit.n_columns
    k = len(np.unique(np.concatenate([model.unit[sample.rows] for model, sample in zip(models, samples, strict=True)])))
    variance = k / (k - 1) * float((1 - probabilities) @ totals**2)
    return value, float(stdtrit(max(k - n_columns, 1), (1 + level) / 2)) * math.sqrt(max(variance, least))


def _row(design: str, estimator: str, results: Floats, truth: float, n_drawn: int) -> dict[str, object]:
    known = ~np.isnan(results[:, 0])  # physicians alone know nothing of a sign that was not drawn
    values, widths, _ = results[known].T
    n_covered = int((np.abs(values - truth) <= widths).sum())
    n_draws = int(known.sum())
    return {
        "design": design,
        "estimator": estimator,
        "n_units": n_drawn,
        "n_items": float(results[:, 2].mean()),
        "n_draws": n_draws,
        "error": math.sqrt(float(((values - truth) ** 2).mean())) if n_draws else math.nan,
        "half_width": float(widths.mean()) if n_draws else math.nan,
        "coverage": n_covered / n_draws if n_draws else math.nan,
        "n_covered": n_covered,
    }


def _compared(table: pd.DataFrame, n_population: int) -> pd.DataFrame:
    """With how many responses physicians alone would need: of N units, error^2 goes with 1/n - 1/N."""
    plain = table["error"].iloc[0]
    ratio = (table["error"] / plain) ** 2
    left = 1 / table["n_units"] - 1 / n_population
    n_same = 1 / (1 / n_population + ratio * left)
    return table.assign(n_same=n_same, share_saved=1 - table["n_units"] / n_same)[COLUMNS]
