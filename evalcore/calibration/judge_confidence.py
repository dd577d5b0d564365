"""Judges' confidences on criteria against physicians' blind reads, and how far several judges agree as one more confidence, as items for `calibration`."""

import numpy as np
import pandas as pd

from evalcore.rubric.data import Opinions
from evalcore.rubric.items import votes
from evalcore.stats.majority import MIN_VOTERS, jury_names, most

TOO_FEW_VOTES = "Fewer than three votes: two that agree would always be sure."
TIED = "The judges are evenly split, so there is no majority."


def criterion_items(beside: pd.DataFrame, *, drawn: bool = False) -> pd.DataFrame:
    """One row a judge and item that physicians have read: how sure the judge is that its label is right, and how right it is.

    Args:
        beside: `confidence_meaning.as_right(queries.confidences.beside_reads(...), checked)`: confidence is the probability that the judge's
            own label is right.
        drawn: Only reads of items that were drawn with a known probability, weighted by its inverse.

    Returns:
        The same rows with right (share of the physicians' blind first reads that say what the judge says, in [0, 1]), cluster (the
        example), group (the judge) and weight (1, or 1 / inclusion probability).
    """
    kept = beside.loc[beside["is_drawn"] & beside["inclusion_probability"].notna()] if drawn else beside
    return kept.assign(
        right=_said_the_same(kept["label"], kept["reference_drawn" if drawn else "reference"]),
        cluster=kept["example_id"],
        group=kept["judge"],
        weight=1 / kept["inclusion_probability"] if drawn else 1.0,
    ).reset_index(drop=True)


def _said_the_same(label: pd.Series, share_met: pd.Series) -> pd.Series:
    """The share of physicians that say what the label says; NaN without a label."""
    return share_met.where(label.eq(1), 1 - share_met).where(label.notna())


def majority(labels: pd.DataFrame) -> pd.DataFrame:
    """What most of several judges, or of one judge asked again and again, say of each item, and how many of them: a confidence that nobody states.

    Args:
        labels: One row an item, one column a judge or a repeat: 1 met, 0 not met, NaN where there is no label.

    Returns:
        The same rows: n_votes, label (1 or 0, what most say), confidence (the share that says so, in (0.5, 1]), refused ("" or why there is
        neither: NaN with fewer than three votes, since two that agree are always sure, and where the votes are evenly split).
    """
    given = labels.notna().to_numpy()
    n = given.sum(axis=1)
    label, share = most(np.where(given, labels.to_numpy(dtype=float), 0.0).sum(axis=1), n)
    refused = np.select([n < MIN_VOTERS, np.isnan(label)], [TOO_FEW_VOTES, TIED], "")
    is_known = refused == ""
    return pd.DataFrame(
        {
            "n_votes": n,
            "label": np.where(is_known, label, np.nan),
            "confidence": np.where(is_known, share, np.nan),
            "refused": refused,
        },
        index=labels.index,
    )


def majority_items(opinions: Opinions, *, drawn: bool = False) -> pd.DataFrame:
    """One row an item that physicians have read and a judge has labelled: what most of the judges say of it, and the share of them that does.

    The same for each judge that was asked several times: what it says most often, and the share of its answers that say so.

    Args:
        opinions: What everybody says. Juries have no vote.
        drawn: Only reads of items that were drawn with a known probability, weighted by its inverse.

    Returns:
        For `calibration`, beside `criterion_items`: group ("majority of 3 judges", "Magpie, asked 3 times"),
        cluster (the example), item_id, label, confidence, refused (as
        `majority`), right (share of the physicians' blind first reads that say the same, in [0, 1]), weight. No row
        where no item has three votes; others are told as refused.
    """
    parts = [_majority_items(opinions, None, drawn=drawn)]
    for judge in opinions.voters:
        again = opinions.asked_again(judge)
        if len(again.judges) >= MIN_VOTERS:
            parts.append(_majority_items(again, f"{judge}, asked {len(again.judges)} times", drawn=drawn))
    kept = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(kept, ignore_index=True)


def _majority_items(opinions: Opinions, name: str | None, *, drawn: bool) -> pd.DataFrame:
    read = votes(opinions.reads, drawn=drawn)
    rows = read["row"].to_numpy(dtype=np.int64)
    said = majority(opinions.judged[opinions.voters].iloc[rows]).reset_index(drop=True)
    items = opinions.items.iloc[rows]
    table = said.assign(
        item_id=items["item_id"].to_numpy(),
        cluster=items["example_id"].to_numpy(),
        group=jury_names(opinions.voters)[0] if name is None else name,
        right=_said_the_same(said["label"], read["vote"]),
        weight=1 / read["inclusion_probability"].to_numpy(dtype=float) if drawn else 1.0,
    )
    kept = table.loc[table["n_votes"].gt(0)]
    return kept.reset_index(drop=True) if kept["n_votes"].ge(MIN_VOTERS).any() else kept.iloc[:0]
