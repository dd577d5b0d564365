"""Several judges of one answer's level as one: what most of them say, and how many of them say it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.study.schema import PARSER, Format
from evalcore.triage.data import NO_LEVEL, TriageData
from evalcore.triage.panels import N_LEVELS

JURY = "majority of the judges"
"""What several judges as one are called where one judge is chosen."""
MIN_JUDGES = 2


def votes(levels: pd.DataFrame) -> pd.DataFrame:
    """What most judges say of each response.

    A judge that has not looked, or found no level, does not vote. A letter is one vote, a level between two half a vote for each of its letters. The
    most frequent letter counts, of equals the more severe.

    Args:
        levels: One row a response, one column a judge, as `TriageData.levels`: a level, `NO_LEVEL`, or NaN where this judge has not looked.

    Returns:
        The same rows: level (1..4; `NO_LEVEL` where judges looked and none gave a level; NaN where none has looked), n_votes (judges that gave a level),
        share (of these votes that are for that letter, in (0, 1]; NaN without votes). A single vote has the share 1: where the share stands for a
        confidence, at least two votes are needed.

    >>> levels = pd.DataFrame({"Magpie": [4.0, 1.0, 0.0], "Wren": [4.0, 3.0, np.nan], "Rook": [3.0, 0.0, np.nan]})
    >>> votes(levels)["level"].tolist(), votes(levels)["n_votes"].tolist(), votes(levels)["share"].round(2).tolist()
    ([4.0, 3.0, 0.0], [3, 2, 0], [0.67, 0.5, nan])
    """
    halves = np.zeros((len(levels), N_LEVELS), dtype=np.int16)
    looked = np.zeros(len(levels), dtype=bool)
    rows = np.arange(len(levels))
    for judge in levels:
        said = levels[judge].to_numpy()
        looked |= ~np.isnan(said)
        told = rows[said > NO_LEVEL]
        for letter in (np.floor(said[told]), np.ceil(said[told])):
            halves[told, letter.astype(np.int64) - 1] += 1
    n_votes = halves.sum(axis=1, dtype=np.int64) // 2
    frequent, n_for = most_frequent(halves)
    level = np.where(n_votes > 0, frequent, np.where(looked, NO_LEVEL, np.nan))
    share = np.divide(n_for / 2, n_votes, out=np.full(len(levels), np.nan), where=n_votes > 0)
    return pd.DataFrame({"level": level, "n_votes": n_votes, "share": share}, index=levels.index)


def most_frequent(halves: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The most frequent level of each row, of equals the more severe, and its votes: the one rule for the majority of levels.

    Args:
        halves: One row an item, one column a letter, in halves of votes.
    """
    place = N_LEVELS - 1 - np.argmax(halves[:, ::-1], axis=1)
    return place + 1.0, halves[np.arange(len(halves)), place]


def members(judges: Iterable[str]) -> list[str]:
    """Those whose majority can be asked for; none where there are fewer than two. The parser reads what an answer states: it is no judge.

    >>> members(["parser", "Magpie", "Wren"]), members(["parser", "Magpie"])
    (['Magpie', 'Wren'], [])

    Args:
        judges: Who has looked at responses of a format. Where one of them is called as the majority is, there is no majority beside it.
    """
    names = list(judges)
    voting = [name for name in names if name != PARSER]
    return voting if len(voting) >= MIN_JUDGES and JURY not in names else []


def with_jury(triage_data: TriageData) -> TriageData:
    """The same with what most judges say as one more judge, the jury `JURY`, of the formats that have `members`; as it was where none has any."""
    column = np.full(len(triage_data.samples), np.nan, dtype=np.float32)
    for word in Format:
        if judges := members(triage_data.voters(word)):
            mine = triage_data.samples["format"].eq(word).to_numpy()
            column[mine] = votes(triage_data.levels.loc[mine, judges])["level"]
    if np.isnan(column).all():
        return triage_data
    return replace(triage_data, levels=triage_data.levels.assign(**{JURY: column}), juries=triage_data.juries | {JURY})
