"""How likely each response was drawn: by one drawing, from a size that depends on the response alone, and by all drawings together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.data import RubricData, is_scored
from evalcore.stats.arrays import Floats, Numbers, quotient

# for `doubt`: a bolder ratio (.5 to .05) is worse than drawing all alike wherever the judges are wrong together
SPLIT, AGREED = 0.5, 0.3
UNKNOWN = (SPLIT + AGREED) / 2  # where fewer than two have said anything: as far as on the average of the two
MIN_VOTES = 2


class Goal(StrEnum):
    """What is to be known."""

    SCORE = "score"  # a model's corrected score
    DIFFERENCE = "difference"  # of two models' corrected scores
    JUDGE_ERROR = "judge-error"  # the share of a judge's labels that physicians do not share


@dataclass(frozen=True)
class Drawable:
    """The items that a number is about, as they are drawn."""

    rubric_data: RubricData  # these items alone
    # how far each moves the number, as a share of the response's points, without its sign (a judge's errors: 1): by the response alone, so that a size
    # made of it can be made again when responses have been added
    weights: Floats
    unit: Numbers  # what is drawn together, numbered 0, 1, ...: the response; for a difference both models' responses to an example
    disagreement: Floats  # of all judges and their repeats on each item, in [0, 1]; NaN with fewer than two labels


def drawable(
    rubric_data: RubricData, goal: Goal, *, models: Sequence[str], judges: Sequence[str], evaluation: str | None
) -> Drawable:
    """The items that a number is about: of responses that can be scored and have every judge's label; for a judge's errors all that it has labelled."""
    items = rubric_data.items
    kept = np.ones(len(items), dtype=bool)
    if evaluation is not None:
        kept &= items["evaluation"].eq(evaluation).to_numpy()
    if models:
        kept &= items["model"].isin(models).to_numpy()
    chosen = rubric_data.where(kept)
    labelled = chosen.judged[list(judges)].notna().all(axis=1)
    together = ["response_id"]
    if goal is Goal.JUDGE_ERROR:
        chosen = chosen.where(labelled)
        ones = np.ones(len(chosen.items))
        return Drawable(chosen, ones, _codes(chosen.items, together), disagreement(chosen.votes))
    lacking = chosen.items.loc[~labelled, "response_id"].unique()
    chosen = chosen.where(is_scored(chosen.items) & ~chosen.items["response_id"].isin(lacking))
    if goal is Goal.DIFFERENCE:  # examples that each of the models has answered
        items, together = chosen.items, ["example_id", "sample_index"]
        answered = [items.loc[items["model"].eq(model), "example_id"] for model in models]
        chosen = chosen.where(np.all([items["example_id"].isin(ids) for ids in answered], axis=0))
    points, codes = chosen.items["points"].to_numpy(dtype=float), _codes(chosen.items, ["response_id"])
    weights = np.abs(points) / np.bincount(codes, weights=points.clip(min=0), minlength=1)[codes]
    return Drawable(chosen, weights, _codes(chosen.items, together), disagreement(chosen.votes))


def _codes(items: pd.DataFrame, names: list[str]) -> Numbers:
    return np.asarray(items.groupby(names, sort=True, observed=True).ngroup(), dtype=np.int64)


def disagreement(votes: pd.DataFrame) -> Floats:
    """Twice the share of the smaller side of those who labelled each item (`RubricData.votes`), in [0, 1]; NaN with fewer than two labels."""
    n, n_met = np.zeros(len(votes)), np.zeros(len(votes))
    for name in votes:  # column by column: the whole as one matrix of numbers would need several times the memory
        labels = votes[name].to_numpy()
        n += ~np.isnan(labels)
        n_met += np.nan_to_num(labels)
    return quotient(2 * np.minimum(n_met, n - n_met), np.where(n >= MIN_VOTES, n, 0))


def doubt(disagreements: Floats) -> Floats:
    """How far a physician is expected to be from the judges on each item: .3 where they agree, up to .5 where they are split, .4 where nobody knows."""
    return np.where(np.isnan(disagreements), UNKNOWN, AGREED + (SPLIT - AGREED) * disagreements)


def unit_sizes(weights: Floats, unit: Numbers, *, correlation: float = 0.0) -> Floats:
    """The size of each unit of items that are drawn together: what its inclusion probability should be proportional to.

    The variance is V_A = sum_j (1/pi_j - 1) E[E_j^2], E_j = sum of a e over the items of unit j. At a given number of units it is least where

        pi_j ~ sqrt(E[E_j^2]) = sqrt((1 - r) sum w^2 + r (sum w)^2),   w = |a| x the expected size of e,

    r in [0, 1] the correlation of a e between items of one unit: without it that is not the sum, since errors of one response partly cancel.
    w is one an item, 0 or more; units are numbered 0, 1, ... without a gap.
    """
    squares, sums = np.bincount(unit, weights=weights**2), np.bincount(unit, weights=weights)
    return np.sqrt((1 - correlation) * squares + correlation * sums**2)


def drawing_sizes(items: Drawable, correlation: float) -> Floats:
    """What the probabilities of a drawing by importance are proportional to, one a unit: see `unit_sizes`."""
    return unit_sizes(items.weights * doubt(items.disagreement), items.unit, correlation=correlation)


def clipped(sizes: Floats, scale: float, floor: float) -> Floats:
    """`scale` x size, at least the floor, at most 1."""
    return np.clip(scale * sizes, floor, 1.0)


def by_recipe(rubric_data: RubricData, recipe: Mapping[str, Any]) -> pd.Series:
    """The probability in (0, 1] that a drawing gave each response that it could have taken, drawn or not, by response_id (of a pair, that of the pair).

    Judges that came later do not count. A recipe is what `planning` stores with an assignment; empty where a judge of it is no longer in the study.
    """
    if not {*recipe["judges"]} <= {*rubric_data.judges}:
        return pd.Series(dtype=float)
    if (voters := recipe.get("voters")) is not None:  # drawings of early versions did not store them
        silent = frozenset(rubric_data.judges) - frozenset(voters)
        again = [name for name in rubric_data.repeats if name in voters]
        rubric_data = replace(rubric_data, repeats=rubric_data.repeats[again], juries=silent)
    named = {name: recipe[name] for name in ("models", "judges", "evaluation")}
    population = drawable(rubric_data, Goal(recipe["goal"]), **named)
    if population.rubric_data.items.empty:
        return pd.Series(dtype=float)
    of_units = clipped(drawing_sizes(population, recipe["correlation"]), recipe["scale"], recipe["floor"])
    by_item = pd.Series(of_units[population.unit], index=population.rubric_data.items["response_id"].to_numpy())
    return by_item.loc[~by_item.index.duplicated()]


@dataclass(frozen=True)
class Drawing:
    """One drawing of responses, as far as it is read."""

    drawn: pd.Series  # probability of each response that was drawn, by response_id
    share: float  # probability of one that was not drawn
    fits: Numbers | None  # responses that could have been drawn; None: any
    items: pd.Series | None = None  # probability of items where each had its own, by item_id
    others: pd.Series | None = None  # probability of responses that were not drawn, where each had its own

    def could_take(self, response_ids: pd.Series) -> pd.Series:
        """Which responses had a chance."""
        return response_ids.notna() if self.fits is None else response_ids.isin(self.fits)

    def probability(self, reads: pd.DataFrame) -> pd.Series:
        """Of each read item, to be drawn here."""
        share = pd.Series(self.share, index=reads.index).where(self.could_take(reads["response_id"]), 0.0)
        own = reads["response_id"].map(self.drawn)
        if self.others is not None:
            own = own.fillna(reads["response_id"].map(self.others))
        return (own if self.items is None else reads["item_id"].map(self.items).fillna(own)).fillna(share)


def over_all(drawings: Sequence[Drawing], reads: pd.DataFrame, is_drawn: pd.Series) -> pd.Series:
    """The probability that a read item was drawn by any drawing: 1 - product of (1 - p) over the drawings.

    Items drawn one time after another each keep the probability of their own drawing; added up over two, such probabilities count the whole twice. Of a
    drawing that is not read to its end the share that is read counts, since readers go through it in random order. Exact for random drawings, and for those
    drawn by importance here (`by_recipe`); what a plan from a file did not name, or an import did not bring, is given the mean probability. By the index
    of `reads`; missing where a read was not drawn.
    """
    missed = pd.Series(1.0, index=reads.index)
    for drawing in drawings:
        missed *= 1 - drawing.probability(reads)
    return (1 - missed).where(is_drawn & missed.lt(1)).clip(upper=1.0)


def reachable(drawings: Sequence[Drawing], response_ids: pd.Series) -> pd.Series:
    """Which responses any drawing could have taken: reads stand for these, and for no others."""
    reached = pd.Series(data=False, index=response_ids.index)
    for drawing in drawings:
        reached |= drawing.could_take(response_ids)
    return reached
