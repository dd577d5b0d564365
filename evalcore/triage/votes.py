"""What physicians say of responses that were drawn and read blind, as votes over the levels: what estimates are made of."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.items import first_reads, is_drawn, settlements
from evalcore.triage.data import LEVELS, Triaged
from evalcore.triage.panels import distributions

Floats = npt.NDArray[np.float64]
VOTES = ("v_A", "v_B", "v_C", "v_D")
"""Columns of a response's mean vote by level."""


def drawn_votes(triaged: Triaged, *, settled: bool = True) -> pd.DataFrame:
    """What physicians say of each response that was drawn and read blind, as one vote over the four levels.

    A reader's letter is a vote for it, a boundary half a vote for each of its letters; of several readers the mean. Reads of responses that somebody
    chose, reads with the judge in view, and "cannot assess" and "remove" are left out, the latter as if the response had not been drawn.

    Args:
        triaged: The cases.
        settled: A level that was adjudicated without the judge in view takes the place of the readers' votes (`opinions.settlements`).

    Returns:
        One row a response with a vote, by sample: sample, row, v_A .. v_D (add up to 1), n_readers, inclusion_probability in (0, 1].
    """
    counted = drawn_reads(triaged, settled=settled)
    samples, number = np.unique(counted["sample"].to_numpy(dtype=np.int64), return_inverse=True)
    n = len(samples)
    votes = distributions(number, counted["level"].to_numpy(dtype=float), n)
    probability = np.zeros(n)
    np.maximum.at(probability, number, counted["inclusion_probability"].to_numpy(dtype=float))
    return pd.DataFrame(
        {
            "sample": samples,
            "row": triaged.samples["row"].to_numpy()[samples].astype(np.int64),
            **{name: votes[:, place] for place, name in enumerate(VOTES)},
            "n_readers": np.bincount(number, minlength=n),
            "inclusion_probability": probability,
        }
    )


def drawn_reads(triaged: Triaged, *, settled: bool = True) -> pd.DataFrame:
    """The reads that `drawn_votes` is made from, one by one: one row a reader and response.

    Args:
        triaged: The cases.
        settled: As in `drawn_votes`: the settled level takes the place of what each reader of the response said.

    Returns:
        sample, row, rater, level (1..4, boundaries .5), inclusion_probability; by sample.
    """
    reads = triaged.reads.loc[triaged.reads["sample"].ge(0)]
    counted = blind_reads(reads).loc[lambda blind: blind["is_drawn"]]
    counted = counted.assign(level=levels_of(counted["label"]))
    counted = counted.loc[counted["level"].notna()].sort_values(["sample", "verdict_id"], ignore_index=True)
    if settled:
        final = settlements(reads).sort_values("verdict_id").drop_duplicates("sample", keep="last")
        settled_levels = pd.Series(levels_of(final["label"]), index=final["sample"].to_numpy())
        last = counted["sample"].map(settled_levels).to_numpy(dtype=float)
        counted["level"] = np.where(np.isnan(last), counted["level"], last)
    return counted[["sample", "row", "rater", "level", "inclusion_probability"]]


def blind_reads(reads: pd.DataFrame) -> pd.DataFrame:
    """Blind first reads of responses, each reader's newest, with is_drawn: made of what was drawn with a known probability."""
    first = first_reads(reads).sort_values("verdict_id").drop_duplicates(["sample", "rater"], keep="last")
    return first.assign(is_drawn=is_drawn(first))


def levels_of(labels: pd.Series) -> Floats:
    """Labels as levels; NaN for "remove" and "cannot assess"."""
    return np.asarray(labels.map(LEVELS), dtype=np.float64)
