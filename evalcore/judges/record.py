"""The record of a judge: how often it is right, by kind of criterion; which blind first reads enter such a statistic, and with which weights."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.judges import confusion
from evalcore.rubric.data import first_reads, is_drawn
from evalcore.stats.arrays import Numbers, codes_of
from evalcore.stats.intervals import NO_VALUE, rate_words, signed_points
from evalcore.study.schema import Label, Selection

OVERALL, CATEGORY = "overall", "category"
KIND, SIGN, ALL = "kind", "sign", "all"  # axis and sign together, the sign alone, everything
ALL_CRITERIA = "all criteria"
DESIRABLE, UNDESIRABLE, NO_POINTS = "desirable", "undesirable", "no points known"
UNSCORED = "unscored"  # NO_POINTS before a noun
SIGNS = (DESIRABLE, UNDESIRABLE, NO_POINTS)
NO_AXIS = "no axis"
ANSWERS = (Label.MET, Label.NOT_MET)
MIN_KIND_READS = 20  # with fewer, the record of a wider kind is shown
MIN_READS = 5  # with fewer no share is said
COLUMNS = [
    "judge", "grouping", "kind", "n", "n_right", "share", "low", "high", "n_examples", "weighted", "n_cannot_assess", "n_without_label",
]  # fmt: skip
_ENTERING = ["judge", "label", "judge_label", "example_id", "axis", "points", "selection", "inclusion_probability"]
"""What of a read enters a record: a narrow table is filtered and copied in a third of the time."""
_SELECTIONS = {
    Selection.RANDOM: "drawn at random",
    Selection.IMPORTANCE: "drawn by importance",
    Selection.VOLUNTEERED: "volunteered",
    Selection.ADJUDICATION: "chosen for adjudication",
}


class Reads(StrEnum):
    """Which blind first reads enter."""

    DRAWN = "drawn"  # of items drawn with a known probability p, weighted by 1/p: they stand for what was not read
    ALL = "all"  # every one, each counted once: they stand for themselves


def usual_reads(reads: pd.DataFrame) -> Reads:
    """The drawn ones, where there are any."""
    return Reads.DRAWN if is_drawn(reads).any() else Reads.ALL


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
    """Those of these reads that enter (None: `usual_reads`), with weight: 1 / inclusion probability; 1 where that is the same for all, and for all reads."""
    if (which or usual_reads(reads)) is Reads.ALL:
        return reads.assign(weight=1.0)
    drawn = reads.loc[is_drawn(reads)]
    probability = drawn["inclusion_probability"].astype(float)
    return drawn.assign(weight=1.0 if probability.nunique() < 2 else 1 / probability)  # noqa: PLR2004 - one value


def reads_words(every: pd.DataFrame, which: Reads | None = None) -> str:
    """Which of these reads are shown, how many there are, how they came to be made, and what that means."""
    if every.empty:
        return "Blind first reads: none."
    shown, any_drawn = weighted_reads(every, which), is_drawn(every).any()
    counts = shown["selection"].astype(object).value_counts()
    how = [f"{counts[selection]:,} {words}" for selection, words in _SELECTIONS.items() if selection in counts]
    unknown = len(shown) - int(shown["selection"].isin(list(_SELECTIONS)).sum())
    how += [f"{unknown:,} of which no drawing is known"] if unknown else []
    if which is not Reads.ALL and any_drawn:
        left = len(every) - len(shown)
        rest = f" {left:,} of all {len(every):,} blind first reads were not drawn and stay out." if left else ""
        weight = "one over the probability with which its item was drawn"
        if shown["weight"].eq(1).all():
            weight = "one, since all had one probability"
        return f"Shown: drawn reads, {', '.join(how)}; each counts by {weight}.{rest}"
    all_reads = f"Shown: all blind first reads, {', '.join(how)}; each counts once."
    if not any_drawn:
        return f"{all_reads} No read was drawn with a known probability, so these numbers hold for these reads alone."
    if shown["selection"].eq(Selection.RANDOM).all() and len(set(every["inclusion_probability"])) == 1:
        return all_reads
    return f"{all_reads} Not all had equal chances of being read: where what looked wrong was sought out, a judge looks worse than it is."


def sign_codes(points: pd.Series) -> npt.NDArray[np.int64]:
    """What criteria's points say of what they name, as places in `SIGNS`."""
    values = points.to_numpy(dtype=float)
    return np.select([values > 0, values < 0], [0, 1], 2).astype(np.int64)


def item_groups(items: pd.DataFrame, grouping: str) -> tuple[Numbers, list[Any]]:
    """The group of each item as a number, -1 where it has none, and the groups' names: `overall`, `sign` (of points), `category` (the cluster), or a column."""
    if grouping == OVERALL:
        return np.zeros(len(items), dtype=np.int64), [OVERALL]
    if grouping == SIGN:
        return sign_codes(items["points"]), list(SIGNS)
    return codes_of(items["cluster" if grouping == CATEGORY else grouping])


def with_kinds(reads: pd.DataFrame) -> pd.DataFrame:
    """The reads with the columns sign, kind ("context awareness, undesirable"), and axis in words."""
    signs = pd.Series(np.array(SIGNS, dtype=object)[sign_codes(reads["points"])], index=reads.index, dtype="str")
    axes = reads["axis"].str.replace("_", " ").fillna(NO_AXIS)
    return reads.assign(axis=axes, sign=signs, kind=axes + ", " + signs)


def judge_record(reads: pd.DataFrame, which: Reads | None = None) -> pd.DataFrame:
    """How many blind first reads each judge's label agrees with, by kind of criterion, by sign, and in all: the accuracy of `confusion.rates`.

    A criterion that two physicians have read counts twice, each read by the weight of its item. `COLUMNS`, one row a judge and kind that has reads, the
    widest first: n (answered reads of items that the judge labelled), share in [0, 1] (weighted) with low and high, clustered by example (NaN where n is 0).
    """
    counted = with_kinds(weighted_reads(reads[_ENTERING], which)).assign(**{ALL: ALL_CRITERIA})
    weighted = bool(counted["weight"].ne(1).any())
    tables = [pd.DataFrame(columns=COLUMNS)]
    for judge, of_judge in counted.groupby("judge", sort=True):
        answered, labelled = (of_judge[name].isin(ANSWERS).to_numpy() for name in ("label", "judge_label"))
        kept = np.flatnonzero(answered & labelled)
        met, judged = (of_judge[name].eq(Label.MET).to_numpy()[kept] for name in ("label", "judge_label"))
        counts = np.column_stack([judged & met, judged & ~met, ~judged & met, ~judged & ~met]).astype(np.int64)
        examples, weights = pd.factorize(of_judge["example_id"])[0][kept], of_judge["weight"].to_numpy()[kept]
        for grouping in (ALL, SIGN, KIND):
            group, kinds = pd.factorize(of_judge[grouping].to_numpy(dtype=object), sort=True)
            of_kinds = (counts, weights, examples, group[kept], len(kinds))
            accuracy = confusion.rates(*of_kinds, [confusion.ACCURACY])[confusion.ACCURACY]
            table = accuracy.rename(columns={"n_hits": "n_right", "n_clusters": "n_examples"}).assign(
                judge=judge,
                grouping=grouping,
                kind=kinds,
                n=accuracy["n"].astype(np.int64),
                weighted=weighted,
                n_cannot_assess=np.bincount(group[~answered], minlength=len(kinds)),
                n_without_label=np.bincount(group[answered & ~labelled], minlength=len(kinds)),
            )
            tables.append(table[COLUMNS])
    return pd.concat(tables[1:] or tables, ignore_index=True)


def record_for(records: pd.DataFrame, axis: str | None, points: float | None) -> dict[Any, Any]:
    """The row of one judge's record to show beside a criterion: of its kind, its sign, or everything, the first with 20 reads or more."""
    by_kind = {(row["grouping"], row["kind"]): row for row in records.to_dict(orient="records")}
    sign = NO_POINTS if points is None or math.isnan(points) else UNDESIRABLE if points < 0 else DESIRABLE
    kind = f"{axis.replace('_', ' ') if isinstance(axis, str) else NO_AXIS}, {sign}"
    wanted = ((KIND, kind), (SIGN, sign), (ALL, ALL_CRITERIA))
    candidates = [by_kind.get(key, {"grouping": key[0], "kind": key[1], "n": 0, "n_right": 0}) for key in wanted]
    if candidates[-1]["n"] < MIN_READS:  # too few even of everything: that of the kind says how few
        return candidates[0]
    return next((row for row in candidates if row["n"] >= MIN_KIND_READS), candidates[-1])


def sentence(row: Mapping[Any, Any]) -> str:
    """A row of a record in words, for the screen."""
    named = row["kind"].replace(NO_POINTS, UNSCORED)
    criteria = {KIND: "such criteria", SIGN: f"{named} criteria", ALL: ALL_CRITERIA}[row["grouping"]]
    if row["n"] < MIN_READS:
        return f"Too few blind reads yet to say how often this judge matches physicians on {criteria} ({row['n']})."
    (words,) = rate_cells(pd.DataFrame([row]), "share", "n_right", "n")
    return f"On {criteria} this judge matched physicians' blind reads in {words}."


def finding(records: pd.DataFrame) -> str:
    """How often a judge is right, in a sentence: in all, and by sign of the points where both have been read."""
    kinds = records["kind"].replace(NO_POINTS, UNSCORED)
    rows = records.assign(words=rate_cells(records, "share", "n_right", "n"), kind=kinds)
    whole = rows.loc[rows["grouping"].eq(ALL)].iloc[0]
    of_all = f"{whole['judge']} matched physicians' blind reads in {whole['words']}"
    signs = rows.loc[rows["grouping"].eq(SIGN) & rows["n"].gt(0)]
    if len(signs) < len((DESIRABLE, UNDESIRABLE)):
        return f"{of_all}."
    return f"{of_all}: {', '.join(signs['words'] + ' on ' + signs['kind'] + ' criteria')}."


def rate_cells(rows: pd.DataFrame, rate: str, n_hits: str, n: str, *, none: str = "") -> list[str]:
    """A share with counts and its interval (RATE_low, RATE_high; of `share`: low, high), a row a cell; a dash and `none` where nothing was counted."""
    low, high = ("low", "high") if rate == "share" else (f"{rate}_low", f"{rate}_high")
    return [
        rate_words(row[rate], row[low], row[high], n_hits=row[n_hits], n=row[n], weighted=row.get("weighted", False))
        if row[n]
        else f"{NO_VALUE} {none}".rstrip()
        for row in rows.to_dict(orient="records")
    ]


def points_words(difference: float, low: float, high: float) -> str:
    """A difference in percentage points with its interval."""
    if math.isnan(difference):
        return NO_VALUE
    ends = ", no interval" if math.isnan(low) else f" [{signed_points(low)}, {signed_points(high)}]"
    return signed_points(difference) + ends
