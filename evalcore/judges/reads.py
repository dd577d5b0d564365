"""Which blind first reads enter a statistic of judges, with which weights, and how that is said."""

from enum import StrEnum

import pandas as pd

from evalcore.rubric.data import DRAWN, first_reads
from evalcore.study.schema import Selection


class Reads(StrEnum):
    """Which blind first reads enter."""

    DRAWN = "drawn"
    """Of items that were drawn with a known probability p, weighted by 1/p: they stand for the items that were not read."""
    ALL = "all"
    """Every one, each counted once: they stand for themselves."""


def usual_reads(reads: pd.DataFrame) -> Reads:
    """The drawn ones, where there are any."""
    return Reads.DRAWN if _is_drawn(reads).any() else Reads.ALL


def is_choice(reads: pd.DataFrame) -> bool:
    """Whether the drawn reads, weighted, are anything else than all of them, each once; False where none was drawn."""
    drawn = weighted_reads(reads, Reads.DRAWN)
    return bool(len(drawn)) and (len(drawn) < len(reads) or bool(drawn["weight"].ne(1).any()))


def assessed(reads: pd.DataFrame) -> pd.DataFrame:
    """The blind first reads that could assess."""
    firsts = first_reads(reads)
    return firsts.loc[firsts["met"].notna()]


def counted_reads(reads: pd.DataFrame, which: Reads | None = None) -> pd.DataFrame:
    """The blind first reads of `RubricData` that enter and could assess, weighted (`weighted_reads`)."""
    return weighted_reads(assessed(reads), which)


def weighted_reads(reads: pd.DataFrame, which: Reads | None = None) -> pd.DataFrame:
    """Those of these reads that enter, with weight: 1 / inclusion probability; 1 where that is the same for all, and where all reads enter.

    None: the drawn ones, where there are any.
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


def reads_words(every: pd.DataFrame, which: Reads | None = None) -> str:
    """Which of these reads are shown, how many there are, how they came to be made, and what that means."""
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
    all_reads = f"Shown: all blind first reads, {', '.join(how)}; each counts once."
    if not _is_drawn(every).any():
        return f"{all_reads} No read was drawn with a known probability, so these numbers hold for these reads alone."
    if shown["selection"].eq(Selection.RANDOM).all() and _is_constant(every["inclusion_probability"]):
        return all_reads
    return f"{all_reads} Not all had equal chances of being read: where what looked wrong was sought out, a judge looks worse than it is."


_SELECTIONS = {
    Selection.RANDOM: "drawn at random",
    Selection.IMPORTANCE: "drawn by importance",
    Selection.VOLUNTEERED: "volunteered",
    Selection.ADJUDICATION: "chosen for adjudication",
}
