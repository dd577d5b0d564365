"""Judges' confidences on criteria against physicians' blind reads, and judges' votes where nobody states a confidence, as items for `calibration`."""

import numpy as np
import pandas as pd

from evalcore.metrics.calibration import vote_share
from evalcore.metrics.opinions import votes
from evalcore.opinions import Opinions

VOTES_OF_JUDGES = "Votes of {n} judges"


def criterion_items(beside: pd.DataFrame, *, drawn: bool = False) -> pd.DataFrame:
    """One row a judge and item that physicians have read: how sure the judge is that its label is right, and how right it is.

    Args:
        beside: `confidence_meaning.as_right(queries.confidences.beside_reads(...), checked)`: confidence is the probability that the judge's
            own label is right.
        drawn: Only items that were drawn with a known probability, weighted by its inverse.

    Returns:
        The same rows with right (share of the physicians' blind first reads that say what the judge says, in [0, 1]), cluster (the
        example), group (the judge) and weight (1, or 1 / inclusion probability).
    """
    kept = beside.loc[beside["is_drawn"] & beside["inclusion_probability"].notna()] if drawn else beside
    reference = kept["reference"]
    return kept.assign(
        right=reference.where(kept["label"].eq(1), 1 - reference),
        cluster=kept["example_id"],
        group=kept["judge"],
        weight=1 / kept["inclusion_probability"] if drawn else 1.0,
    ).reset_index(drop=True)


def vote_items(opinions: Opinions, *, drawn: bool = False) -> pd.DataFrame:
    """One row an item that physicians have read and two judges or more have labelled: the share of the judges that call it met.

    Args:
        opinions: What everybody says.
        drawn: Only items that were drawn with a known probability, weighted by its inverse.

    Returns:
        For `calibration`, in the sense of P(met): confidence (share of the judges that say met, in [0, 1]), right (share of the
        physicians' blind first reads that do), cluster (the example), group ("Votes of 3 judges"), n_votes, weight, item_id.
    """
    read = votes(opinions.reads, drawn=drawn)
    rows = read["row"].to_numpy(dtype=np.int64)
    said = vote_share(opinions.judged.iloc[rows])
    probability = read["inclusion_probability"].to_numpy(dtype=float)
    items = opinions.items.iloc[rows]
    table = pd.DataFrame(
        {
            "item_id": items["item_id"].to_numpy(),
            "cluster": items["example_id"].to_numpy(),
            "group": VOTES_OF_JUDGES.format(n=len(opinions.judges)),
            "confidence": said["share_met"].to_numpy(),
            "n_votes": said["n_votes"].to_numpy(),
            "right": read["vote"].to_numpy(dtype=float),
            "weight": 1 / probability if drawn else 1.0,
        }
    )
    return table.loc[table["confidence"].notna()].reset_index(drop=True)
