"""Health of criteria: whether judge and physicians mean the same by one, whether physicians agree on it, and whether it can be assessed."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from evalcore.judges.record import CATEGORY, Reads, points_words, weighted_reads
from evalcore.rubric.data import RubricData, first_reads
from evalcore.stats.arrays import Floats, Numbers, codes_of, occurring
from evalcore.stats.intervals import NO_VALUE, AnyNumbers, grouped_shares, interval_words, percent_words, share_words


class Alarm(StrEnum):
    """What may be wrong with a criterion."""

    INVERTED = "inverted"  # physicians say met less often where the judge says met than where it says not met
    LENIENT = "lenient"  # the judge finds more met than physicians do on the same items; it is not inverted
    STRICT = "strict"  # the judge finds less met, likewise
    DISPUTED = "disputed"  # physicians do not agree with one another
    UNASSESSABLE = "unassessable"  # physicians often cannot assess it


# fewest items read and labelled, pairs or reads for an alarm: of ten with no hit Wilson's interval ends at 28 %
MIN_ITEMS = 10
MIN_SIDE = 5  # items on which the judge says met, and not met, before physicians' labels on both are compared
SHIFT = 0.1  # too lenient, too strict: a smaller difference is no alarm, however clear
DISPUTED_SHARE = 0.3  # of pairs of reads that differ; two readers who toss coins differ in half
UNASSESSABLE_SHARE = 0.1  # of reads that could not assess

CRITERION = "criterion"
GROUPINGS: Mapping[str, tuple[str, str]] = {  # the column of the items, and what intervals are clustered by
    CATEGORY: ("cluster", "example_id"),
    "axis": ("axis", "example_id"),
    "theme": ("theme", "example_id"),
    CRITERION: ("criterion_id", "response_id"),  # one criterion belongs to one example
}

ALARM_COLUMNS = tuple(alarm.value for alarm in Alarm)
ALARM_WORDS: Mapping[str, str] = {alarm.value: alarm.value for alarm in Alarm} | {
    Alarm.LENIENT.value: "too lenient",
    Alarm.STRICT.value: "too strict",
}
NO_SPREAD, ROUNDING = 1e-12, 1e-9
NAMED = 3  # groups with an alarm, in the sentence; of more, and of single criteria, the alarms are counted
_SHOWN = (
    "item_id", "criterion_id", "example_id", "response_id", "position", "points", "axis", "cluster", "model", "evaluation", "sample_index",
)  # fmt: skip


def criterion_health(
    rubric_data: RubricData, judge: str, *, by: str = CATEGORY, reads: Reads | None = None
) -> pd.DataFrame:
    """How judge and physicians label each group of criteria, with alarms.

    Physicians speak by their blind first reads, one item by the mean of its reads, with the mean of their weights (`weighted_reads`). Shares
    of judge and physicians are of the same items, those that both have labelled. `by` is one of `GROUPINGS`.

    Returns:
        One row a group, by name: n_items (in all), n_judged and n_met_judged (labelled by the judge), n (items that both labelled), n_clusters, and counts of
        reads and of pairs of reads. For WHAT in judge (share met), physicians (mean of the reads), right (1 - |label - mean|), if_met and if_not_met
        (physicians' share met where the judge says met, not met), disagreement (pairs that differ), cannot_assess (reads): WHAT, WHAT_low, WHAT_high in
        [0, 1], clustered by example (one criterion: by response), NaN where there is nothing; shift = judge - physicians and association = if_met -
        if_not_met in [-1, 1], their bounds NaN of fewer than `MIN_ITEMS` items; weighted; a column an alarm, n_alarms, reasons (a sentence an alarm).
        Intervals of association: Newcombe 1998, Statistics in Medicine 17:873, method 10; of shift 17:2635, method 8, for shares of the same items, with the
        correlation of the sums by cluster.
    """
    column, clustered_by = GROUPINGS[by]
    items = rubric_data.items
    group, names = codes_of(items[column])
    judged = rubric_data.judged[judge].to_numpy(dtype=float)
    counted = weighted_reads(first_reads(rubric_data.reads), reads)
    read, of_read, (n_met, n_answered, n_cannot) = _read_counts(counted)
    n_reads = n_answered + n_cannot
    weight = np.bincount(of_read, counted["weight"].to_numpy(dtype=float), len(read)) / n_reads  # the mean of its reads
    cluster, _ = codes_of(items[clustered_by].iloc[read])
    of_group, judged_read = group[read], judged[read]
    both = np.flatnonzero(~np.isnan(judged_read) & (n_answered > 0))
    rating, label = n_met[both] / n_answered[both], judged_read[both]
    paired, n_groups = np.flatnonzero(n_answered > 1), len(names)

    def share(hits: Floats, of: Any, sizes: Floats | None = None) -> pd.DataFrame:
        return grouped_shares(hits, cluster[of], of_group[of], n_groups, sizes=sizes, weights=weight[of])

    pairs = n_answered[paired] * (n_answered[paired] - 1) / 2
    differing = n_met[paired] * (n_answered[paired] - n_met[paired])
    shares_of = {
        "judge": share(label, both),
        "physicians": share(rating, both),
        "right": share(1 - np.abs(label - rating), both),
        "if_met": share(rating[label == 1], both[label == 1]),
        "if_not_met": share(rating[label == 0], both[label == 0]),
        "disagreement": share(differing, paired, pairs),
        "cannot_assess": share(n_cannot, slice(None), n_reads),
    }
    inside, labelled = group >= 0, ~np.isnan(judged)
    columns: dict[str, Any] = {
        "grouping": by,
        "group": names,
        "n_items": np.bincount(group[inside], minlength=n_groups),
        "n_judged": np.bincount(group[inside & labelled], minlength=n_groups),
        "n_met_judged": np.bincount(group[inside & (judged == 1)], minlength=n_groups),
        "n": shares_of["judge"]["n"],
        "n_clusters": shares_of["judge"]["n_clusters"],
        "n_met_judge": shares_of["judge"]["n_hits"].astype(int),
        "n_reads": shares_of["cannot_assess"]["n"].astype(int),
        "n_cannot_assess": shares_of["cannot_assess"]["n_hits"].astype(int),
        "n_pairs": shares_of["disagreement"]["n"].astype(int),
        "n_disagreeing": shares_of["disagreement"]["n_hits"].astype(int),
    }
    for side, shares in shares_of.items():
        columns |= {side: shares["share"], f"{side}_low": shares["low"], f"{side}_high": shares["high"]}
    table = pd.DataFrame(columns | {"weighted": bool(counted["weight"].ne(1).any())})
    sides = ((label, shares_of["judge"]), (rating, shares_of["physicians"]))
    correlation = _correlation(sides, of_group[both], cluster[both], weight[both])
    independent = np.zeros(n_groups)
    pairs_of = (("shift", "judge", "physicians", correlation), ("association", "if_met", "if_not_met", independent))
    for name, first, second, alike in pairs_of:
        table[[name, f"{name}_low", f"{name}_high"]] = _difference(table, first, second, alike)
    enough = table["n"].ge(MIN_ITEMS)
    two_sided = shares_of["if_met"]["n"].ge(MIN_SIDE) & shares_of["if_not_met"]["n"].ge(MIN_SIDE)
    inverted = enough & two_sided & table["association_high"].lt(0)
    alarms = {
        Alarm.INVERTED: inverted,
        Alarm.LENIENT: enough & ~inverted & table["shift_low"].gt(0) & table["shift"].ge(SHIFT - ROUNDING),
        Alarm.STRICT: enough & ~inverted & table["shift_high"].lt(0) & table["shift"].le(ROUNDING - SHIFT),
        Alarm.DISPUTED: table["n_pairs"].ge(MIN_ITEMS) & table["disagreement_low"].gt(DISPUTED_SHARE),
        Alarm.UNASSESSABLE: table["n_reads"].ge(MIN_ITEMS) & table["cannot_assess_low"].gt(UNASSESSABLE_SHARE),
    }
    table = table.assign(**alarms, n_alarms=sum(alarm.astype(int) for alarm in alarms.values()), reasons="")
    alarmed = table.loc[table["n_alarms"].gt(0)]
    table.loc[alarmed.index, "reasons"] = [" ".join(_reasons(row)) for row in alarmed.to_dict(orient="records")]
    return table


def largest_group(rubric_data: RubricData, judge: str, *, by: str) -> int:
    """How many items of one group judge and physicians have labelled at most; arguments as of `criterion_health`."""
    group, _ = codes_of(rubric_data.items[GROUPINGS[by][0]])
    read, _, (_, n_answered, _) = _read_counts(weighted_reads(first_reads(rubric_data.reads)))
    group, labelled = group[read], rubric_data.judged[judge].notna().to_numpy()[read]
    return int(np.bincount(group[labelled & (n_answered > 0) & (group >= 0)]).max(initial=0))


def _read_counts(reads: pd.DataFrame) -> tuple[Numbers, Numbers, Floats]:
    """The rows of the items that were read, each read's place among them, and by item how many found it met, answered, and could not assess it."""
    of_read, rows = occurring(reads["row"].to_numpy(dtype=np.int64))
    met = reads["met"].to_numpy(dtype=float)
    answered = ~np.isnan(met)
    of_answers = of_read[answered]
    counts = (
        np.bincount(of_answers, met[answered], len(rows)),
        np.bincount(of_answers, minlength=len(rows)),
        np.bincount(of_read[~answered], minlength=len(rows)),
    )
    return rows, of_read, np.array(counts, dtype=float)


def _correlation(
    sides: Sequence[tuple[Floats, pd.DataFrame]], group: AnyNumbers, cluster: AnyNumbers, weight: Floats
) -> Floats:
    inside = group >= 0
    group, cluster, weight = group[inside], cluster[inside], weight[inside]
    away = [weight * (values[inside] - shares["share"].to_numpy()[group]) for values, shares in sides]
    width, n_groups = int(cluster.max(initial=0)) + 1, len(sides[0][1])
    cells, cell = np.unique(group * width + cluster, return_inverse=True)
    of_group = cells // width
    one, other = (np.bincount(cell, part, len(cells)) for part in away)
    both, first, second = (np.bincount(of_group, products, n_groups) for products in (one * other, one**2, other**2))
    scale = np.sqrt(first * second)
    correlation: Floats = np.divide(both, scale, out=np.zeros(n_groups), where=scale > NO_SPREAD)
    return correlation.clip(-1, 1)


def _difference(table: pd.DataFrame, first: str, second: str, correlation: Floats) -> Floats:
    """By row d = p1 - p0 and its ends, with r their correlation: d - sqrt(a^2 - 2 r a b + b^2), a = p1 - l1, b = u0 - p0, and likewise above."""
    (p1, l1, u1), (p0, l0, u0) = (table[[side, f"{side}_low", f"{side}_high"]].to_numpy().T for side in (first, second))

    def half(a: Floats, b: Floats) -> Floats:
        return np.sqrt(np.maximum(a**2 - 2 * correlation * a * b + b**2, 0))

    ends = np.column_stack([p1 - p0, p1 - p0 - half(p1 - l1, u0 - p0), p1 - p0 + half(u1 - p1, p0 - l0)])
    ends[table["n"].lt(MIN_ITEMS).to_numpy(), 1:] = np.nan  # two shares beside one another then say more
    return ends


def _met_words(row: Mapping[Any, Any], side: str) -> str:
    return f"{percent_words(row[side])} {interval_words(row[f'{side}_low'], row[f'{side}_high'])}"


def _reasons(row: Mapping[Any, Any]) -> Iterator[str]:
    if row[Alarm.INVERTED]:
        of_met, of_not_met = _met_words(row, "if_met"), _met_words(row, "if_not_met")
        yield f"Where the judge says met, physicians say met on {of_met}; where it says not met, on {of_not_met}: they go opposite ways."
    if row[Alarm.LENIENT] or row[Alarm.STRICT]:
        points = points_words(row["shift"], row["shift_low"], row["shift_high"])
        both = f"The judge finds {_met_words(row, 'judge')} met, physicians {_met_words(row, 'physicians')}"
        yield f"{both} of the same {row['n']:,} items: a difference of {points} points."
    if row[Alarm.DISPUTED]:
        pairs = share_words(row["n_disagreeing"], row["n_pairs"], row["disagreement"], weighted=row["weighted"])
        yield f"Physicians differ in {pairs} of the pairs of reads, more than {percent_words(DISPUTED_SHARE)}."
    if row[Alarm.UNASSESSABLE]:
        reads = share_words(row["n_cannot_assess"], row["n_reads"], row["cannot_assess"], weighted=row["weighted"])
        yield f"Physicians could not assess it in {reads} of the reads, more than {percent_words(UNASSESSABLE_SHARE)}."


def finding(table: pd.DataFrame) -> str:
    """The alarms of one grouping in a sentence, from `criterion_health`."""
    read = table.loc[table["n_reads"].gt(0)]
    if read.empty:
        return "No physician has read any of these criteria blind yet."
    grouping = str(table["grouping"].iloc[0])
    what = {CATEGORY: ("category", "categories"), CRITERION: ("criterion", "criteria"), "axis": ("axis", "axes")}
    one, many = what.get(grouping, ("theme", "themes"))
    is_one = len(read) == 1
    of = f"{'one ' + one if is_one else f'{len(read):,} {many}'} that physicians have read"
    n_few, few = int(read["n"].lt(MIN_ITEMS).sum()), ""
    if n_few == len(read):
        each = "it" if n_few == 1 else "each"
        few = f" Fewer than {MIN_ITEMS} items of {each} have been read, too few to say how the judge does."
    elif n_few:
        few = f" Of {n_few:,} of them fewer than {MIN_ITEMS} items have been read, too few to say how the judge does."
    alarmed = read.loc[read["n_alarms"].gt(0)]
    if alarmed.empty:
        return f"No alarm {'on' if is_one else 'among'} the {of}.{few}"
    if len(alarmed) <= NAMED and grouping != CRITERION:
        names = alarmed["group"].astype(str).str.replace("_", " ")
        counts = [f"{name} ({words})" for name, words in zip(names, alarm_words(alarmed), strict=True)]
    else:
        counts = [f"{int(read[alarm].sum()):,} {ALARM_WORDS[alarm]}" for alarm in ALARM_COLUMNS if read[alarm].any()]
    subject = f"The {of}" if is_one else f"All {of}" if len(alarmed) == len(read) else f"{len(alarmed):,} of the {of}"
    return f"{subject} {'raises' if len(alarmed) == 1 else 'raise'} an alarm: {', '.join(counts)}.{few}"


def alarm_words(table: pd.DataFrame) -> list[str]:
    """The alarms of each group, joined by commas; empty without one."""
    rows = table.to_dict(orient="records")
    return [", ".join(ALARM_WORDS[alarm] for alarm in ALARM_COLUMNS if row[alarm]) for row in rows]


def columns(table: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """Rows of `criterion_health` as a table, their groups called by these names."""
    rows = table.to_dict(orient="records")
    by = str(table["grouping"].iloc[0])

    def met(side: str) -> list[str]:
        return [_met_words(row, side) if row["n"] else NO_VALUE for row in rows]

    def counted(hits: str, n: str, share: str) -> list[str]:
        words = (share_words(row[hits], row[n], row[share], weighted=row["weighted"]) for row in rows)
        return [shown if row[n] else NO_VALUE for row, shown in zip(rows, words, strict=True)]

    shown = {
        by.capitalize(): names,
        "Alarm": [words or NO_VALUE for words in alarm_words(table)],
        "Judge, met": met("judge"),
        "Physicians, met": met("physicians"),
        "Difference (points)": [points_words(row["shift"], row["shift_low"], row["shift_high"]) for row in rows],
        "Items": table["n"],
        "Reads": table["n_reads"],
        "Readers differ": counted("n_disagreeing", "n_pairs", "disagreement"),
    }
    if table["n_cannot_assess"].any():
        shown["Cannot assess"] = counted("n_cannot_assess", "n_reads", "cannot_assess")
    return shown


def read_items(rubric_data: RubricData, judge: str, by: str, group: str | int) -> pd.DataFrame:
    """The items of one group that physicians have read blind, those first on which the judge differs most; judge_met is NaN without a label."""
    read, _, (n_met, n_answered, n_cannot) = _read_counts(first_reads(rubric_data.reads))
    items = rubric_data.items.iloc[read]
    chosen = items[GROUPINGS[by][0]].eq(group).to_numpy(dtype=bool)
    judged = rubric_data.judged[judge].to_numpy(dtype=float)[read][chosen]
    counts = {"n_met": n_met, "n_not_met": n_answered - n_met, "n_cannot_assess": n_cannot}
    of_rows = {name: n[chosen].astype(int) for name, n in counts.items()}
    table = items.loc[chosen, list(_SHOWN)].assign(judge_met=judged, **of_rows)
    with np.errstate(invalid="ignore"):
        differs = np.abs(judged - n_met[chosen] / n_answered[chosen])
    order = np.lexsort((table["item_id"].to_numpy(), -np.nan_to_num(differs, nan=-1.0)))
    return table.iloc[order].reset_index(drop=True)
