"""What somebody wants to know, and the items that it is about."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.metrics.opinions import coefficients
from evalcore.opinions import Opinions
from evalcore.recipes import Drawable, Floats, Goal, drawable

__all__ = ["Goal", "Population", "Target", "population"]


N_MODELS = {Goal.SCORE: 1, Goal.DIFFERENCE: 2, Goal.JUDGE_ERROR: 0}


@dataclass(frozen=True)
class Target:
    """What somebody wants to know, and how exactly.

    Attributes:
        goal: What.
        within: Half the width that the 95 % interval may have, in (0, 0.5]; .03 is 3 points of a score of 100, 3 % of labels.
        models: One for a score, two for a difference (the first minus the second), none for a judge's errors.
        judges: Whose labels the corrected score is built on; for a judge's errors that one.
        evaluation: The data set that the responses were made for; None only for a judge's errors: all.
    """

    goal: Goal
    within: float
    models: tuple[str, ...]
    judges: tuple[str, ...]
    evaluation: str | None = None


@dataclass(frozen=True)
class Population(Drawable):
    """The items that a number is about, with the judges of the target alone.

    Attributes:
        moves: By how much each item moves the number when it is met (a judge's errors: when it is wrong), signed.
    """

    moves: Floats

    @property
    def items(self) -> pd.DataFrame:
        """One row an item."""
        return self.opinions.items

    @property
    def n_units(self) -> int:
        """How many could be drawn."""
        return int(self.unit.max()) + 1 if len(self.unit) else 0

    def where(self, kept: npt.NDArray[np.bool_]) -> "Population":
        """These items alone; the units are numbered anew, the weights stay."""
        unit = np.asarray(pd.factorize(self.unit[kept], sort=True)[0], dtype=np.int64)
        found = self.opinions.where(kept)
        return Population(found, self.weights[kept], unit, self.disagreement[kept], self.moves[kept])


def population(opinions: Opinions, target: Target) -> Population:
    """The items that a target is about: for scores all criteria of the responses that can be scored and have every judge's label.

    For a difference only examples that both models have answered; for a judge's errors all items that it has labelled.

    Args:
        opinions: Of the whole study.
        target: Its models, judges and evaluation are of the study.
    """
    about = drawable(opinions, target.goal, models=target.models, judges=target.judges, evaluation=target.evaluation)
    items = about.opinions.items
    is_error = target.goal is Goal.JUDGE_ERROR
    moves = np.full(len(items), 1 / max(len(items), 1)) if is_error else coefficients(items).to_numpy(dtype=float)
    if target.goal is Goal.DIFFERENCE:
        moves = np.where(items["model"].eq(target.models[1]), -moves, moves)
    return Population(about.opinions.by(target.judges), about.weights, about.unit, about.disagreement, moves)
