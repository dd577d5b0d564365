"""What somebody wants to know, and the items that it is about."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtri

from evalcore.rubric.data import RubricData, coefficients
from evalcore.rubric.drawings import Drawable, Goal, drawable
from evalcore.stats.arrays import Floats, Truths
from evalcore.stats.intervals import LEVEL
from evalcore.study.schema import Claim, Physicians

N_MODELS = {Goal.SCORE: 1, Goal.DIFFERENCE: 2, Goal.JUDGE_ERROR: 0}


@dataclass(frozen=True)
class Target:
    """What somebody wants to know, and how exactly.

    Attributes:
        within: Half the width that the 95 % interval may have, in (0, 0.5]; .03 is 3 points of a score of 100, 3 % of labels.
        models: One for a score, two for a difference (the first minus the second), none for a judge's errors.
        judges: Whose labels the corrected score is built on; for a judge's errors that one.
        evaluation: The data set that the responses were made for; None only for a judge's errors: all.
        claim, physicians: What the interval is to hold for; of a judge's errors always all that it has labelled, and those who have read.
        power: In (.5, 1) where `within` is a difference that is to be found with this probability, or the margin of a non-inferiority that is to be
            shown with it where the models are truly alike; None where it is half a width.
    """

    goal: Goal
    within: float
    models: tuple[str, ...]
    judges: tuple[str, ...]
    evaluation: str | None = None
    claim: Claim = Claim.BENCHMARK
    physicians: Physicians = Physicians.THESE
    power: float | None = None

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval that this takes: with a power, within z/(z + z_power), z the quantile at 97.5 %.

        >>> round(Target(Goal.DIFFERENCE, 0.03, ("Alder", "Birch"), ("Magpie",), power=0.8).half_width, 4)
        0.021
        """
        return self.within if self.power is None else self.within / detectable(1.0, self.power)


@dataclass(frozen=True)
class Population(Drawable):
    """The items that a number is about, with the judges of the target alone.

    `item_weights`: by how much each moves the number when it is met (a judge's errors: when it is wrong), signed.
    """

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
    """The least true difference that an interval of so half a width leaves 0 out of with this probability: h (z + z_power)/z.

    The same is the least margin within which it shows non-inferiority with this probability where the models are truly alike.

    >>> round(detectable(0.05, 0.8), 4)
    0.0715
    """
    z = float(ndtri((1 + LEVEL) / 2))
    return half_width * (z + float(ndtri(power))) / z


def population(rubric_data: RubricData, target: Target) -> Population:
    """The items that a target is about: for scores all criteria of the responses that can be scored and have every judge's label.

    For a difference only examples that both models have answered; for a judge's errors all items that it has labelled.
    """
    about = drawable(rubric_data, target.goal, models=target.models, judges=target.judges, evaluation=target.evaluation)
    items = about.rubric_data.items
    is_error = target.goal is Goal.JUDGE_ERROR
    weights = np.full(len(items), 1 / max(len(items), 1)) if is_error else coefficients(items).to_numpy(dtype=float)
    if target.goal is Goal.DIFFERENCE:
        weights = np.where(items["model"].eq(target.models[1]), -weights, weights)
    return Population(about.rubric_data.by(target.judges), about.weights, about.unit, about.disagreement, weights)
