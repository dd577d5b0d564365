"""Several judges as one: their majority, and their mean."""

import math
from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.stats.arrays import Floats, Numbers

MIN_JUDGES = 2
MIN_VOTERS = 3  # fewest votes whose majority is a confidence: two that agree are always sure, and two that do not have no majority


class Decisions(msgspec.Struct, frozen=True):
    """Items that any judge has labelled: n_decided + n_tied (all labelled it, half met) + n_open (a label is missing); n_unanimous of those decided."""

    n_judges: int
    n_items: int
    n_decided: int
    n_unanimous: int
    n_tied: int
    n_open: int


def most(n_met: npt.ArrayLike, n_votes: npt.ArrayLike) -> tuple[Floats, Floats]:
    """What more than half of n_votes (met or not met) on an item say: 1.0 met, 0.0 not met, NaN where evenly split; and the share that says so, in (0.5, 1]."""
    met, n = np.asarray(n_met, dtype=float), np.asarray(n_votes, dtype=float)
    label = np.select([2 * met > n, 2 * met < n], [1.0, 0.0], math.nan)
    share = np.where(np.isnan(label), math.nan, np.maximum(met, n - met) / np.maximum(n, 1))
    return label, share


def majority(judged: pd.DataFrame) -> pd.Series:
    """What more than half of all judges say of each item: 1.0, 0.0, or NaN, so that a missing label could not change what is decided."""
    n_met, n_not_met, n_judges = _votes(judged)
    label, _ = most(n_met, n_met + n_not_met)
    decided = 2 * np.maximum(n_met, n_not_met) > n_judges
    return pd.Series(np.where(decided, label, math.nan), index=judged.index, dtype=float)


def decisions(judged: pd.DataFrame) -> Decisions:
    """How often the judges have a majority, and why not, by what they say as for `majority`."""
    n_met, n_not_met, n_judges = _votes(judged)
    n_labels, larger = n_met + n_not_met, np.maximum(n_met, n_not_met)
    decided = 2 * larger > n_judges
    tied = ~decided & (n_labels == n_judges) & (n_labels > 0)
    return Decisions(
        n_judges=n_judges,
        n_items=int((n_labels > 0).sum()),
        n_decided=int(decided.sum()),
        n_unanimous=int((decided & (larger == n_judges)).sum()),
        n_tied=int(tied.sum()),
        n_open=int(((n_labels > 0) & ~decided & ~tied).sum()),
    )


def _votes(judged: pd.DataFrame) -> tuple[Numbers, Numbers, int]:
    labels = judged.to_numpy(dtype=np.float32)
    return (labels == 1).sum(axis=1), (labels == 0).sum(axis=1), labels.shape[1]


def jury_names(judges: Iterable[str]) -> tuple[str, str]:
    """What the majority and the mean of these judges are called beside them; neither is the name of one of them."""
    names = set(judges)
    majority_name, mean_name = f"majority of {len(names)} judges", f"mean of {len(names)} judges"
    while names & {majority_name, mean_name}:
        majority_name, mean_name = f"{majority_name} (jury)", f"{mean_name} (jury)"
    return majority_name, mean_name


def words(jury: Decisions) -> str:
    """A jury's decisions in words, for the screen."""
    tied, has = "is" if jury.n_tied == 1 else "are", "has" if jury.n_open == 1 else "have"
    return (
        f"Of {jury.n_items:,} criteria that any of the {jury.n_judges} judges labelled, {jury.n_decided:,} have a majority "
        f"({jury.n_unanimous:,} unanimous), {jury.n_tied:,} {tied} tied, and {jury.n_open:,} {has} too few labels."
    )
