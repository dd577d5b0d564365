"""Pairs of labels on one item, a rater's beside a physician's: what quality against physicians is counted from."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.rubric.data import DRAWN, RubricData, first_reads
from evalcore.stats.majority import MIN_JUDGES, jury_names, majority
from evalcore.study.schema import Selection

JUDGE, PHYSICIAN, PHYSICIANS = "judge", "physician", "physicians"
"""Kinds of raters: a judge or a jury; one physician; all physicians together."""
TOGETHER = "all physicians"
COUNTS = ("n_both", "n_rater_only", "n_other_only", "n_neither")
"""Of the pairs on an item: met by both, by the rater alone, by the other alone, by neither."""

Numbers = npt.NDArray[np.integer[Any]]


class Reads(StrEnum):
    """Which blind first reads enter."""

    DRAWN = "drawn"
    """Of items that were drawn with a known probability p, weighted by 1/p: they stand for the items that were not read."""
    ALL = "all"
    """Every one, each counted once: they stand for themselves."""


def usual_reads(reads: pd.DataFrame) -> Reads:
    """The drawn ones, where there are any.

    Args:
        reads: Any with selection and inclusion_probability.
    """
    return Reads.DRAWN if _is_drawn(reads).any() else Reads.ALL


def is_choice(reads: pd.DataFrame) -> bool:
    """Whether the drawn reads, weighted, are anything else than all of them, each once; False where none was drawn.

    Args:
        reads: Any with selection and inclusion_probability.
    """
    drawn = weighted_reads(reads, Reads.DRAWN)
    return bool(len(drawn)) and (len(drawn) < len(reads) or bool(drawn["weight"].ne(1).any()))


def counted_reads(reads: pd.DataFrame, which: Reads | None = None) -> pd.DataFrame:
    """The blind first reads that enter and could assess, weighted (`weighted_reads`).

    Args:
        reads: Of `RubricData`.
        which: None: the drawn ones, where there are any.
    """
    return weighted_reads(assessed(reads), which)


def weighted_reads(reads: pd.DataFrame, which: Reads | None = None) -> pd.DataFrame:
    """Those of these reads that enter, with weight: 1 / inclusion probability; 1 where that is the same for all, and where all reads enter.

    Args:
        reads: Any with selection and inclusion_probability.
        which: None: the drawn ones, where there are any.
    """
    is_drawn = _is_drawn(reads)
    if (which or usual_reads(reads)) is Reads.ALL:
        return reads.assign(weight=1.0)
    drawn = reads.loc[is_drawn]
    probability = drawn["inclusion_probability"].astype(float)
    return drawn.assign(weight=1.0 if _is_constant(probability) else 1 / probability)


def _is_constant(column: pd.Series) -> bool:
    return not len(column) or bool(column.eq(column.iloc[0]).all())


def _is_drawn(reads: pd.DataFrame) -> pd.Series:
    return reads["selection"].isin(DRAWN) & reads["inclusion_probability"].notna()


def assessed(reads: pd.DataFrame) -> pd.DataFrame:
    """The blind first reads that could assess."""
    known = first_reads(reads)
    return known.loc[known["met"].notna()]


def judge_pairs(rubric_data: RubricData, *, jury: bool = True, reads: Reads | None = None) -> pd.DataFrame:
    """Each judge's label beside each physician's blind first read of the same item.

    A read that could not assess makes no pair, and neither does an item without the judge's label.

    Args:
        rubric_data: What everybody says.
        jury: From two judges on, their majority and their mean enter as two judges more (`juries.jury_names`); juries of the study
            have no vote in them. The majority
            has no label where it is not decided. The mean counts every judge's pairs on the items that all have labelled: it
            is a judge drawn by lot.
        reads: Which enter; None: the drawn ones, where there are any.

    Returns:
        One row a judge and item with a pair: rater_kind, rater (both categorical), row (of `rubric_data.items`), how many of
        the pairs are n_both, n_rater_only, n_other_only, n_neither (whole numbers), and weight (of each of them; `counted_reads`).
    """
    n_met, n_reads, weight = _reads_by_item(rubric_data, counted_reads(rubric_data.reads, reads))
    rows = np.flatnonzero(n_reads)
    m, k = n_met[rows], n_reads[rows]
    judged = rubric_data.judged.iloc[rows]
    votes = {judge: (judged[judge].to_numpy(dtype=float), 1) for judge in rubric_data.judges}
    if jury and len(rubric_data.voters) >= MIN_JUDGES:
        voted = judged[rubric_data.voters]
        by_majority, by_mean = jury_names(rubric_data.voters)
        votes[by_majority] = (majority(voted).to_numpy(), 1)
        votes[by_mean] = (voted.sum(axis=1, skipna=False).to_numpy(dtype=float), len(rubric_data.voters))
    found, codes, counts = [], [], []
    for code, (vote, n_judges) in enumerate(votes.values()):
        known = np.flatnonzero(~np.isnan(vote))
        v = vote[known].astype(np.int64)
        met, other = m[known], (k - m)[known]
        found.append(rows[known])
        codes.append(np.full(len(known), code))
        counts.append(np.column_stack([v * met, v * other, (n_judges - v) * met, (n_judges - v) * other]))
    none = np.empty(0, dtype=np.int64)
    return _frame(
        JUDGE, list(votes), np.concatenate([none, *codes]), np.concatenate([none, *found]),
        np.concatenate([none.reshape(0, len(COUNTS)), *counts]), weight,
    )  # fmt: skip


def physician_pairs(rubric_data: RubricData, *, reads: Reads | None = None) -> pd.DataFrame:
    """Each physician's blind first read beside each other physician's of the same item, as `judge_pairs`.

    Returns:
        One row a read that has another beside it, with the columns of `judge_pairs`; each two reads of an item make a pair
        both ways.
    """
    known = counted_reads(rubric_data.reads, reads)
    n_met, n_reads, weight = _reads_by_item(rubric_data, known)
    rows, said = known["row"].to_numpy(dtype=np.int64), known["met"].to_numpy(dtype=np.int64)
    raters = known["rater"].astype("category")
    met, other = n_met[rows] - said, n_reads[rows] - n_met[rows] - (1 - said)
    counts = np.column_stack([said * met, said * other, (1 - said) * met, (1 - said) * other])
    kept = np.flatnonzero(met + other)
    names = [str(name) for name in raters.cat.categories]
    return _frame(PHYSICIAN, names, raters.cat.codes.to_numpy(dtype=np.int64)[kept], rows[kept], counts[kept], weight)


def together(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of all physicians as those of one rater, `TOGETHER`.

    Args:
        pairs: As `physician_pairs` gives them.
    """
    rater = pd.Categorical.from_codes(np.zeros(len(pairs), dtype=np.int64), pd.Index([TOGETHER]))
    return pairs.assign(rater_kind=pd.Categorical([PHYSICIANS] * len(pairs), [PHYSICIANS]), rater=rater)


def left_out(rubric_data: RubricData, judge: str) -> tuple[int, int]:
    """Blind first reads that make no pair with this judge: those that could not assess, and those of items that it has not labelled."""
    reads = first_reads(rubric_data.reads)
    rows = reads["row"].to_numpy(dtype=np.int64)
    assessed = reads["met"].notna().to_numpy()
    labelled = rubric_data.judged[judge].notna().to_numpy()[rows]
    return int((~assessed).sum()), int((assessed & ~labelled).sum())


def reads_words(every: pd.DataFrame, which: Reads | None = None) -> str:
    """Which reads are shown, how many there are, how they came to be made, and what that means, in words.

    Args:
        every: As `assessed` gives them; any with selection and inclusion_probability.
        which: Of them enter.
    """
    shown = weighted_reads(every, which)
    if every.empty:
        return "Blind first reads: none."
    how = [
        f"{n:,} {words}"
        for selection, words in _SELECTIONS.items()
        if (n := int(shown["selection"].astype(object).eq(selection).sum()))
    ]
    unknown = len(shown) - int(shown["selection"].isin(list(_SELECTIONS)).sum())
    how += [f"{unknown:,} of which no drawing is known"] if unknown else []
    is_all = which is Reads.ALL or not _is_drawn(every).any()
    if not is_all:
        left = len(every) - len(shown)
        rest = f" {left:,} of all {len(every):,} blind first reads were not drawn and stay out." if left else ""
        is_weighted = bool(shown["weight"].ne(1).any())
        counts = (
            "one over the probability with which its item was drawn"
            if is_weighted
            else "one, since all had one probability"
        )
        return f"Shown: drawn reads, {', '.join(how)}; each counts by {counts}.{rest}"
    said = f"Shown: all blind first reads, {', '.join(how)}; each counts once."
    if not _is_drawn(every).any():
        return f"{said} No read was drawn with a known probability, so these numbers hold for these reads alone."
    if shown["selection"].eq(Selection.RANDOM).all() and _is_constant(every["inclusion_probability"]):
        return said
    return f"{said} Not all had equal chances of being read: where what looked wrong was sought out, a judge looks worse than it is."


_SELECTIONS = {
    Selection.RANDOM: "drawn at random",
    Selection.IMPORTANCE: "drawn by importance",
    Selection.VOLUNTEERED: "volunteered",
    Selection.ADJUDICATION: "chosen for adjudication",
}


def _reads_by_item(rubric_data: RubricData, reads: pd.DataFrame) -> tuple[Numbers, Numbers, npt.NDArray[np.float64]]:
    """Of each item, the reads that say met, the reads, and the weight of each (1 where there is none)."""
    rows, n_items = reads["row"].to_numpy(dtype=np.int64), len(rubric_data.items)
    n_met = np.bincount(rows, weights=reads["met"].to_numpy(dtype=float), minlength=n_items)
    weight = np.ones(n_items)
    weight[rows] = reads["weight"].to_numpy(dtype=float)
    return n_met.astype(np.int64), np.bincount(rows, minlength=n_items), weight


def _frame(
    kind: str, raters: Sequence[str], codes: Numbers, rows: Numbers, counts: Numbers, weight: npt.NDArray[np.float64]
) -> pd.DataFrame:
    kinds = pd.Categorical.from_codes(np.zeros(len(rows), dtype=np.int64), pd.Index([kind]))
    names = pd.Categorical.from_codes(codes, pd.Index(list(raters), dtype=object))
    columns = dict(zip(COUNTS, counts.T, strict=True))
    return pd.DataFrame({"rater_kind": kinds, "rater": names, "row": rows, **columns, "weight": weight[rows]})
