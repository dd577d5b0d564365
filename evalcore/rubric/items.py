"""What every statistic begins from: which items enter a score, with which weight, and what physicians say of them."""

import pandas as pd

from evalcore.rubric.data import DRAWN, READ_COLUMNS, RubricData, is_scored
from evalcore.study.schema import Stage

__all__ = [
    "DRAWN", "READ_COLUMNS", "RubricData", "coefficients", "first_reads", "is_drawn", "is_scored", "settlements", "votes",
]  # fmt: skip


def coefficients(items: pd.DataFrame, weights: pd.Series | None = None) -> pd.Series:
    """By how much each item moves its model's mean score when it is met: a = w points / (W P), as signed shares.

    P is the sum of the response's positive points, w the weight of its example, W the sum of the weights of all scored responses of
    the model in the evaluation; without weights w is 1 and W the number of responses. The score of a model is then the sum over
    its items of a times met (met in [0, 1]); the positive a of a model add up to 1.

    Args:
        items: Of `RubricData`; only items that `is_scored`, else the coefficients are wrong.
        weights: By example_id, 0 or more.
    """
    possible = items["points"].clip(lower=0).groupby(items["response_id"], sort=False).transform("sum")
    weight = pd.Series(1.0, index=items.index) if weights is None else items["example_id"].map(weights)
    once = weight.where(~items["response_id"].duplicated(), 0.0)
    whole = once.groupby([items["model"], items["evaluation"]], sort=False, observed=True).transform("sum")
    return items["points"] * weight / (possible * whole)


def first_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """The blind first reads, as they were locked: what every statistic of physicians begins from, of criteria and of levels of care."""
    return reads.loc[reads["stage"].eq(Stage.FIRST) & ~reads["blinded"].isin([False])]


def settlements(reads: pd.DataFrame) -> pd.DataFrame:
    """The adjudications that may take the place of first reads: those made without the judge in view. The others are shown, and enter no estimate."""
    return reads.loc[reads["stage"].eq(Stage.ADJUDICATED) & ~reads["blinded"].isin([False])]


def is_drawn(reads: pd.DataFrame) -> pd.Series:
    """Which reads are of items that were drawn with a known probability: others cannot stand for what was not read."""
    return reads["selection"].isin(DRAWN) & reads["inclusion_probability"].notna()


def votes(reads: pd.DataFrame, *, drawn: bool = True, settled: bool = False) -> pd.DataFrame:
    """What physicians say of each item that they have read blind, as one number.

    Args:
        reads: Of `RubricData`.
        drawn: Only reads of items that were drawn with a known probability; others cannot stand for what was not read.
        settled: An adjudicated label takes the place of the readers' votes (`settlements`).

    Returns:
        One row an item with at least one read that could assess it, sorted by row: row, vote in [0, 1] (mean of the readers' votes), n_reads,
        n_cannot_assess, inclusion_probability, unit.
    """
    counted = first_reads(reads)
    if drawn:
        counted = counted.loc[is_drawn(counted)]
    table = (
        counted.assign(unknown=counted["met"].isna())
        .groupby("row")
        .agg(
            vote=("met", "mean"),
            n_reads=("met", "count"),
            n_cannot_assess=("unknown", "sum"),
            inclusion_probability=("inclusion_probability", "max"),
            unit=("unit", "first"),
        )
    )
    if settled:
        final = settlements(reads).loc[lambda told: told["met"].notna()].drop_duplicates("row", keep="last")
        table["vote"] = final.set_index("row")["met"].reindex(table.index).fillna(table["vote"])
    return table.loc[table["vote"].notna()].reset_index()
