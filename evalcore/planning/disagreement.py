"""How much more often items on which judges contradict one another, or one judge contradicts itself, are drawn."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Disagreement:
    """What it does to a drawing by importance that judges disagree.

    Attributes:
        n_items: Items that two judges or more, or one judge several times, have labelled.
        n_disagreed: Of those, items on which they do not all say the same.
        times: How many times as often as an item on which they agree one of these is drawn, on the average: above 0, NaN where there are none of
            either. Their points count as well, so it may be below 1.
    """

    n_items: int
    n_disagreed: int
    times: float


def at_odds(disagreements: Floats, probabilities: Floats | None) -> Disagreement:
    """What it does to a drawing.

    Args:
        disagreements: One an item, as `recipes.disagreement` gives them.
        probabilities: Of each item to be drawn, in (0, 1]; None: nothing can be drawn.
    """
    differ, agree = disagreements > 0, disagreements == 0
    n_differ, n_agree = int(differ.sum()), int(agree.sum())
    times = math.nan
    if probabilities is not None and n_differ and n_agree:
        times = float(probabilities[differ].mean() / probabilities[agree].mean())
    return Disagreement(n_differ + n_agree, n_differ, times)
