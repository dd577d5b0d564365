"""What everybody says of every criterion of every response, as three frames that fit in memory: the input of the statistics.

A table of one row a verdict says each name a million times. Here an item (one criterion of one response) is one row, a
judge is one column, and physicians' reads, which are few, stay one row a read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.schema import Selection, Stage

ITEM_COLUMNS = (
    "item_id", "response_id", "criterion_id", "example_id", "position", "points", "model", "evaluation", "sample_index",
    "n_expected", "axis", "level", "cluster", "theme", "category", "language", "n_chars",
)  # fmt: skip
READ_COLUMNS = (
    "row", "item_id", "example_id", "response_id", "rater", "met", "stage", "blinded", "selection", "inclusion_probability", "unit",
)  # fmt: skip
DRAWN = (Selection.RANDOM, Selection.IMPORTANCE)
"""Selections whose probability is known, so that they can stand for what was not read."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Opinions:
    """The items of a study, what each judge says of them, and what physicians say of some.

    Attributes:
        items: One row an item, sorted by response and position, numbered from 0: item_id, response_id, criterion_id, example_id,
            position (of the criterion in its rubric, from 1), points (-10..10, NaN where unknown), model, evaluation (the data set it
            was made for), sample_index (0, 1, ... for repeats), n_expected (criteria that a judge is asked on the response), axis,
            level, cluster, theme, category, language (missing where untagged), n_chars (of the response). Names are categorical.
        judged: The same rows, one column a judge: 1 met, 0 not met, NaN where this judge gave no label or could not assess.
        reads: One row a physician's standing verdict a stage: row (of `items`), item_id, example_id, response_id, rater, met (1, 0, NaN where they
            could not assess), stage, blinded, selection, inclusion_probability (in (0, 1], over all drawings; NaN where not
            drawn), unit (number of what was drawn together: the response or the item).
    """

    items: pd.DataFrame
    judged: pd.DataFrame
    reads: pd.DataFrame

    @property
    def judges(self) -> list[str]:
        """Names of the judges, those with most labels first."""
        return list(self.judged.columns)

    def where(self, kept: Any) -> "Opinions":
        """These items alone, numbered anew, with what was said of them.

        Args:
            kept: Truth values, one an item.
        """
        mask = np.asarray(kept, dtype=bool)
        if mask.all():
            return self
        numbers = np.cumsum(mask) - 1
        rows = self.reads["row"].to_numpy()
        reads = self.reads.loc[mask[rows]].reset_index(drop=True)
        return Opinions(
            self.items.loc[mask].reset_index(drop=True),
            self.judged.loc[mask].reset_index(drop=True),
            reads.assign(row=numbers[reads["row"].to_numpy()]),
        )

    def without(self, example_ids: frozenset[int]) -> "Opinions":
        """Without these examples."""
        return self.where(~self.items["example_id"].isin(list(example_ids))) if example_ids else self

    def by(self, judges: Sequence[str]) -> "Opinions":
        """With these judges alone."""
        return replace(self, judged=self.judged[list(judges)])


def is_scored(items: pd.DataFrame) -> pd.Series:
    """Which items enter a score: their response has points on every criterion, all criteria that are asked, and positive points among them."""
    response = items.groupby("response_id", sort=False)
    known = items["points"].notna().groupby(items["response_id"], sort=False).transform("all")
    whole = response["item_id"].transform("size").ge(items["n_expected"])
    possible = items["points"].clip(lower=0).groupby(items["response_id"], sort=False).transform("sum")
    return known & whole & possible.gt(0)


def coefficients(items: pd.DataFrame, weights: pd.Series | None = None) -> pd.Series:
    """By how much each item moves its model's mean score when it is met: a = w points / (W P), as signed shares.

    P is the sum of the response's positive points, w the weight of its example, W the sum of the weights of all scored responses of
    the model in the evaluation; without weights w is 1 and W the number of responses. The score of a model is then the sum over
    its items of a times met (met in [0, 1]); the positive a of a model add up to 1.

    Args:
        items: Of `Opinions`; only items that `is_scored`, else the coefficients are wrong.
        weights: By example_id, 0 or more.
    """
    possible = items["points"].clip(lower=0).groupby(items["response_id"], sort=False).transform("sum")
    weight = pd.Series(1.0, index=items.index) if weights is None else items["example_id"].map(weights)
    once = weight.where(~items["response_id"].duplicated(), 0.0)
    whole = once.groupby([items["model"], items["evaluation"]], sort=False, observed=True).transform("sum")
    return items["points"] * weight / (possible * whole)


def first_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """The blind first reads, as they were locked: what every statistic of physicians begins from."""
    return reads.loc[reads["stage"].eq(Stage.FIRST) & ~reads["blinded"].isin([False])]


def votes(reads: pd.DataFrame, *, drawn: bool = True, settled: bool = False) -> pd.DataFrame:
    """What physicians say of each item that they have read blind, as one number.

    Args:
        reads: Of `Opinions`.
        drawn: Only reads of items that were drawn with a known probability; others cannot stand for what was not read.
        settled: An adjudicated label takes the place of the readers' votes.

    Returns:
        One row an item with at least one read that could assess it, sorted by row: row, vote in [0, 1] (mean of the readers' votes), n_reads,
        n_cannot_assess, inclusion_probability, unit.
    """
    counted = first_reads(reads)
    if drawn:
        counted = counted.loc[counted["selection"].isin(DRAWN) & counted["inclusion_probability"].notna()]
    table = counted.groupby("row").agg(
        vote=("met", "mean"),
        n_reads=("met", "count"),
        n_cannot_assess=("met", lambda met: met.isna().sum()),
        inclusion_probability=("inclusion_probability", "max"),
        unit=("unit", "first"),
    )
    if settled:
        final = reads.loc[reads["stage"].eq(Stage.ADJUDICATED) & reads["met"].notna()].drop_duplicates(
            "row", keep="last"
        )
        table["vote"] = final.set_index("row")["met"].reindex(table.index).fillna(table["vote"])
    return table.loc[table["vote"].notna()].reset_index()
