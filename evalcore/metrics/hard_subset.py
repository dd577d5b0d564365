"""The Hard subset of one's own models: the examples that they find hardest, as HealthBench chose its own."""

import math
from dataclasses import dataclass

import pandas as pd

SHARE = 0.2
"""HealthBench Hard is 1,000 of 5,000 examples."""


@dataclass(frozen=True)
class HardSubset:
    """The hardest examples, and what became of the others.

    Attributes:
        mean_scores: Of the chosen examples over the models that have a score on them; index example_id, the hardest first.
        n_nobody: Examples left out because no model is above 0 on them: too hard to tell models apart, or a fault in the rubric.
        n_easier: Examples that some model is above 0 on, with a higher mean score than those chosen.
        n_unscored: Examples that no model has a score on.
    """

    mean_scores: "pd.Series[float]"
    n_nobody: int
    n_easier: int
    n_unscored: int

    @property
    def example_ids(self) -> list[int]:
        """The chosen examples, the hardest first."""
        return [int(number) for number in self.mean_scores.index]


def hard_subset(scores: pd.DataFrame, n: int | None = None) -> HardSubset:
    """The n examples with the lowest mean score of those that at least one model is above 0 on.

    An example that few models have a score on is compared by those few. Examples with equal means come by number.

    Args:
        scores: As `comparison.example_scores` gives them, of the models that are to define what is hard.
        n: How many examples are wanted; where fewer are left, all of them. None: a fifth of those with a score, as in HealthBench.

    Raises:
        ValueError: n is below 1.

    Source: arXiv 2505.08775, HealthBench Hard.

    >>> drawn = pd.DataFrame({"Alder": [0.2, 0.9, -0.1], "Birch": [-0.4, 0.5, 0.0]}, index=[1, 2, 3])
    >>> hard_subset(drawn, 1).example_ids, hard_subset(drawn, 1).n_nobody
    ([1], 1)
    """
    if n is not None and n < 1:
        msg = f"n: {n} came, expected 1 example or more"
        raise ValueError(msg)
    known = scores.dropna(how="all")
    candidates = known.loc[known.gt(0).any(axis=1)].sort_index()
    # Rounded, so that the order of the models does not decide between equal means.
    means = candidates.mean(axis=1).round(12).sort_values(kind="stable")
    chosen = means.head(math.ceil(SHARE * len(known)) if n is None else n)
    return HardSubset(
        chosen.rename("mean_score"), len(known) - len(means), len(means) - len(chosen), len(scores) - len(known)
    )
