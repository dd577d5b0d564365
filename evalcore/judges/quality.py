"""Judges and physicians against physicians: balanced F1 as in HealthBench's meta-evaluation, percentiles among physicians, sensitivity, specificity."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalcore.judges import confusion, record
from evalcore.judges.confusion import SENSITIVITY, SPECIFICITY, f1_interval, f1_scores
from evalcore.judges.record import CATEGORY, OVERALL, SIGN
from evalcore.rubric.benchmark import THEMES
from evalcore.rubric.data import RubricData, first_reads
from evalcore.stats.arrays import Floats, Numbers, codes_of, quotient
from evalcore.stats.intervals import NO_VALUE, grouped_shares, interval_words
from evalcore.stats.majority import MIN_JUDGES, jury_names, majority
from evalcore.stats.wording import decimal
from evalcore.study.languages import LANGUAGES

JUDGE, PHYSICIAN, PHYSICIANS = "judge", "physician", "physicians"  # a judge or a jury; one physician; all together
TOGETHER = "all physicians"
COUNTS = ("n_both", "n_rater_only", "n_other_only", "n_neither")  # of the pairs on an item: who of the two says met
AXIS, THEME, LANGUAGE = "axis", "theme", "language"
ERROR_GROUPINGS = (OVERALL, SIGN, AXIS, THEME, LANGUAGE)
UNTAGGED = {AXIS: record.NO_AXIS, THEME: "no theme", LANGUAGE: "language not known"}
COLUMNS = [
    "rater_kind", "rater", "grouping", "group", "n_pairs", "n_items", "n_examples", *COUNTS, "share_met", "share_met_by_others",
    "precision_met", "recall_met", "f1_met", "precision_not_met", "recall_not_met", "f1_not_met", "balanced_f1", "low", "high", "undefined",
]  # fmt: skip
NO_THEME = "no theme"
MIN_PAIRS = 50  # physicians with more than this are kept
MIN_PHYSICIANS = 10  # of these, for a percentile: among three it is one of four numbers
QUANTILES = {"lowest": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "highest": 1.0}
PERCENTILE_COLUMNS = [
    "judge", "grouping", "group", "n_pairs", "balanced_f1", "n_physicians", "n_physicians_left_out", *QUANTILES, "percentile",
    "percentile_low", "percentile_high",
]  # fmt: skip
_DIGITS = 12  # a mean of the same numbers may differ in the last one, and is a tie all the same


def judge_pairs(rubric_data: RubricData, *, jury: bool = True, reads: record.Reads | None = None) -> pd.DataFrame:
    """Each judge's label beside each physician's blind first read of the same item, a row a judge and item: rater, row, `COUNTS` of pairs, weight.

    With `jury`, from two judges on their majority and their mean enter as two judges more (`majority.jury_names`); juries of the study have no
    vote in them. The mean counts every judge's pairs on the items that all have labelled: it is a judge drawn by lot.
    """
    n_met, n_reads, weight = _reads_by_item(rubric_data, record.counted_reads(rubric_data.reads, reads))
    rows = np.flatnonzero(n_reads)
    m, k = n_met[rows], n_reads[rows]
    judged = rubric_data.judged.iloc[rows]
    labels = {judge: (judged[judge].to_numpy(dtype=float), 1) for judge in rubric_data.judges}
    if jury and len(rubric_data.voters) >= MIN_JUDGES:
        voted = judged[rubric_data.voters]
        by_majority, by_mean = jury_names(rubric_data.voters)
        labels[by_majority] = (majority(voted).to_numpy(), 1)
        labels[by_mean] = (voted.sum(axis=1, skipna=False).to_numpy(dtype=float), len(rubric_data.voters))
    # begins with nothing, as a study without a judge has it
    codes, places, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty((0, len(COUNTS)), np.int64)]
    for code, (label, n_judges) in enumerate(labels.values()):
        place = np.flatnonzero(~np.isnan(label))
        v, met, other = label[place].astype(np.int64), m[place], (k - m)[place]
        codes.append(np.full(len(place), code))
        places.append(rows[place])
        counts.append(np.column_stack([v * met, v * other, (n_judges - v) * met, (n_judges - v) * other]))
    joined = np.concatenate(counts)
    return _frame(list(labels), np.concatenate(codes), np.concatenate(places), joined, weight)


def physician_pairs(rubric_data: RubricData, *, reads: record.Reads | None = None) -> pd.DataFrame:
    """Each physician's blind first read beside each other physician's of the same item, as `judge_pairs`, one row a read: each two make a pair both ways."""
    counted = record.counted_reads(rubric_data.reads, reads)
    n_met, n_reads, weight = _reads_by_item(rubric_data, counted)
    rows, label = counted["row"].to_numpy(dtype=np.int64), counted["met"].to_numpy(dtype=np.int64)
    raters, names = codes_of(counted["rater"].astype("category"))
    met, other = n_met[rows] - label, n_reads[rows] - n_met[rows] - (1 - label)
    counts = np.column_stack([label * met, label * other, (1 - label) * met, (1 - label) * other])
    kept = np.flatnonzero(met + other)
    return _frame(list(map(str, names)), raters[kept], rows[kept], counts[kept], weight)


def same_labels(rubric_data: RubricData, *, reads: record.Reads | None = None) -> pd.DataFrame:
    """How often two physicians give one criterion the same label on blind first reads, to stand beside the shares of `record.judge_record`.

    With k reads of an item, m of them met, m(m-1)/2 + (k-m)(k-m-1)/2 of its k(k-1)/2 pairs are the same; items have the weights of `judge_pairs`.

    Returns:
        One row, none without a pair: n (pairs), n_right, share in [0, 1] (weighted) with low and high, clustered by example, and weighted.
    """
    n_met, n_reads, weight = _reads_by_item(rubric_data, record.counted_reads(rubric_data.reads, reads))
    n_other, pairs = n_reads - n_met, n_reads * (n_reads - 1) // 2
    rows = np.flatnonzero(pairs)
    same = (n_met * (n_met - 1) + n_other * (n_other - 1)) // 2
    examples, one_group = pd.factorize(rubric_data.items["example_id"])[0][rows], np.zeros(len(rows), dtype=np.int64)
    share = grouped_shares(same[rows], examples, one_group, 1, sizes=pairs[rows], weights=weight[rows])
    counts = share.rename(columns={"n_hits": "n_right"}).astype({"n": np.int64, "n_right": np.int64})
    weighted = bool((weight[rows] != 1).any())
    return counts.assign(weighted=weighted).loc[counts["n"].gt(0), ["n", "n_right", "share", "low", "high", "weighted"]]


def _reads_by_item(rubric_data: RubricData, reads: pd.DataFrame) -> tuple[Numbers, Numbers, Floats]:
    rows, n_items = reads["row"].to_numpy(dtype=np.int64), len(rubric_data.items)
    n_met = np.bincount(rows, weights=reads["met"].to_numpy(dtype=float), minlength=n_items)
    weight = np.ones(n_items)
    weight[rows] = reads["weight"].to_numpy(dtype=float)
    return n_met.astype(np.int64), np.bincount(rows, minlength=n_items), weight


def _frame(raters: Sequence[str], codes: Numbers, rows: Numbers, counts: Numbers, weight: Floats) -> pd.DataFrame:
    names = pd.Categorical.from_codes(codes, pd.Index(list(raters), dtype=object))
    columns = dict(zip(COUNTS, counts.T, strict=True))
    return pd.DataFrame({"rater": names, "row": rows, **columns, "weight": weight[rows]})


def left_out(rubric_data: RubricData, judge: str) -> tuple[int, int]:
    """Blind first reads that make no pair with this judge: those that could not assess, and those of items that it has not labelled."""
    reads = first_reads(rubric_data.reads)
    could = reads["met"].notna().to_numpy()
    labelled = rubric_data.judged[judge].notna().to_numpy()[reads["row"].to_numpy(dtype=np.int64)]
    return int((~could).sum()), int((could & ~labelled).sum())


def balanced_f1(rubric_data: RubricData, *, jury: bool = True, reads: record.Reads | None = None) -> pd.DataFrame:
    """How well each judge, each physician, and all physicians together say what physicians say: F1 of both classes, and their mean (arXiv 2505.08775, 8).

    A pair is a rater's label and one physician's blind first read of the same item, by the weight of the item (`judge_pairs`, `physician_pairs`). F1,
    precision and recall as in `confusion.f1_scores`; a coin reaches a mean of 0.5 where half is met. A class that the rater or the others never say
    has no F1, and then there is no mean: NaN, and never 0, as scikit-learn says. `reads` says which enter, None: `usual_reads`.

    Returns:
        `COLUMNS`, one row a rater and group with a pair, judges first, then all physicians together, then each physician; counts are not weighted, all
        shares are, in [0, 1]; category is the criterion's cluster; undefined: why there is no balanced F1, empty where there is one.
    """
    among = physician_pairs(rubric_data, reads=reads)
    together = among.assign(rater=pd.Categorical([TOGETHER] * len(among), [TOGETHER]))
    pairs_of = {JUDGE: judge_pairs(rubric_data, jury=jury, reads=reads), PHYSICIANS: together, PHYSICIAN: among}
    examples = pd.factorize(rubric_data.items["example_id"])[0]
    parts = [
        _of_kind(kind, pairs, examples, *record.item_groups(rubric_data.items, grouping)).assign(grouping=grouping)
        for kind, pairs in pairs_of.items()
        for grouping in (OVERALL, CATEGORY)
    ]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _of_kind(kind: str, pairs: pd.DataFrame, examples: Numbers, groups: Numbers, names: Sequence[str]) -> pd.DataFrame:
    rows = pairs["row"].to_numpy()
    kept = np.flatnonzero(groups[rows] >= 0)
    n_groups = max(len(names), 1)
    raters = pairs["rater"].cat.codes.to_numpy(dtype=np.int64)[kept]
    cells, numbers = pd.factorize(raters * n_groups + groups[rows[kept]], sort=True)
    raters, of_group = np.divmod(np.asarray(numbers, dtype=np.int64), n_groups)
    counts = pairs[list(COUNTS)].to_numpy(dtype=float)[kept]
    weighted = counts * pairs["weight"].to_numpy()[kept, None]
    plain = confusion.sums(cells, counts, len(numbers)).astype(np.int64)
    sums = confusion.sums(cells, weighted, len(numbers))
    low, high, n_examples = f1_interval(cells, examples[rows[kept]], weighted, sums)
    return pd.DataFrame(
        {
            "rater_kind": kind,
            "rater": pairs["rater"].cat.categories.to_numpy(dtype=object)[raters],
            "group": np.asarray(names, dtype=object)[of_group],
            "n_pairs": plain.sum(axis=1),
            "n_items": np.bincount(cells, minlength=len(numbers)),
            "n_examples": n_examples,
            **dict(zip(COUNTS, plain.T, strict=True)),
            "share_met": quotient(sums[:, 0] + sums[:, 1], sums.sum(axis=1)),
            "share_met_by_others": quotient(sums[:, 0] + sums[:, 2], sums.sum(axis=1)),
            **f1_scores(sums),
            "low": low,
            "high": high,
            "undefined": _reasons(plain, kind),
        }
    )


def _reasons(sums: Numbers, kind: str) -> list[str]:
    both, rater_only, other_only, neither = sums.T
    rater, others = {
        JUDGE: ("it never says", "physicians never say"),
        PHYSICIAN: ("this physician never says", "the others never say"),
        PHYSICIANS: ("physicians never say", "physicians never say"),
    }[kind]
    never = {
        f"{rater} met": both + rater_only,
        f"{rater} not met": other_only + neither,
        f"{others} met": both + other_only,
        f"{others} not met": rater_only + neither,
    }
    return [", ".join(words for words, counts in never.items() if counts[number] == 0) for number in range(len(sums))]


def error_rates(
    rubric_data: RubricData,
    *,
    by: Sequence[str] = ERROR_GROUPINGS,
    jury: bool = True,
    reads: record.Reads | None = None,
) -> pd.DataFrame:
    """What share of physicians' "met" each judge calls met (sensitivity), and of their "not met" not met (specificity), by the pairs of `judge_pairs`.

    One row a judge, grouping and group with a pair, by name: counts of pairs (not weighted), and the `confusion.rates`; NaN where there is no such pair.
    """
    pairs = judge_pairs(rubric_data, jury=jury, reads=reads)
    raters, names = codes_of(pairs["rater"])
    counts, weights, of_pair = pairs[list(COUNTS)].to_numpy(), pairs["weight"].to_numpy(), pairs["row"].to_numpy()
    examples = pd.factorize(rubric_data.items["example_id"])[0][of_pair]
    parts = []
    for grouping in dict.fromkeys(by):
        codes, values = record.item_groups(rubric_data.items, grouping)
        known = LANGUAGES if grouping == LANGUAGE else {}
        words = [known.get(value, str(value) if known else str(value).replace("_", " ")) for value in values]
        words += [UNTAGGED[grouping]] if grouping in UNTAGGED else []  # code -1 is the last
        places, ordered = pd.factorize(np.array(words, dtype=object), sort=True)
        codes, words = places[codes], list(ordered)
        cells = raters * len(words) + codes[of_pair]
        rates = confusion.rates(counts, weights, examples, cells, len(names) * len(words))
        both = rates[confusion.ACCURACY]
        columns = {
            "judge": np.repeat(np.array(names, dtype=object), len(words)),
            "grouping": grouping,
            "group": np.tile(np.array(words, dtype=object), len(names)),
            "n_pairs": both["n"].astype(np.int64),
            "n_examples": both["n_clusters"],
            "weighted": bool((weights != 1).any()),
        }
        table = pd.DataFrame(columns)
        for label, rate in (("met", SENSITIVITY), ("not_met", SPECIFICITY)):
            table[f"n_{label}"] = rates[rate]["n"].astype(np.int64)
            ends = [f"n_{label}_right", rate, f"{rate}_low", f"{rate}_high"]
            table[ends] = rates[rate][["n_hits", "share", "low", "high"]]
        parts.append(table.loc[table["n_pairs"].gt(0)])
    table = pd.concat(parts, ignore_index=True)
    order = {name: place for place, name in enumerate(names)}
    return table.sort_values("judge", key=lambda column: column.map(order), kind="stable", ignore_index=True)


def theme_of_categories(items: pd.DataFrame) -> dict[str, str]:
    """The theme of each category of the items: the one that its name begins with, else that of most of its items, else `NO_THEME`."""
    counts = items.groupby(["cluster", "theme"], observed=True).size().rename("n").reset_index()
    counts = counts.astype({"cluster": object, "theme": object}).sort_values(["n", "theme"], ascending=[False, True])
    most = dict(zip(counts["cluster"][::-1], counts["theme"][::-1], strict=True))
    themes = {}
    for name in map(str, items["cluster"].dropna().unique()):
        themes[name] = next((theme for theme in THEMES if name.startswith(f"{theme}_")), most.get(name, NO_THEME))
    return themes


def standings(table: pd.DataFrame, themes: Mapping[str, str]) -> pd.DataFrame:
    """The values that are compared: of each rater the pooled `balanced_f1`, and by theme its mean over the theme's categories, weighted by pairs.

    A row a rater and group (`overall` or a theme). A category whose F1 is undefined for a rater enters neither its mean nor n_pairs.
    """
    columns = ["rater_kind", "rater", "grouping", "group", "n_pairs", "balanced_f1"]
    pooled = table.loc[table["grouping"].eq(OVERALL), columns]
    of_category = table.loc[table["grouping"].eq(CATEGORY)]
    weight = of_category["n_pairs"].where(of_category["balanced_f1"].notna(), 0)
    weighted = (of_category["balanced_f1"] * weight).fillna(0.0)
    entering = of_category.assign(group=of_category["group"].map(themes), n_pairs=weight, weighted=weighted)
    summed = entering.groupby(["rater_kind", "rater", "group"], sort=False)[["n_pairs", "weighted"]].sum().reset_index()
    summed["balanced_f1"] = summed["weighted"] / summed["n_pairs"].where(summed["n_pairs"] > 0)
    by_theme = summed.assign(grouping=THEME).sort_values("group", kind="stable")[columns]
    return pd.concat([pooled, by_theme], ignore_index=True)


def kept_physicians(values: pd.DataFrame, *, min_pairs: int = MIN_PAIRS) -> pd.DataFrame:
    """Of the `standings`, those of physicians with more than `min_pairs` pairs and a defined value: whom judges are compared with."""
    has_value = values["n_pairs"].gt(min_pairs) & values["balanced_f1"].notna()
    return values.loc[values["rater_kind"].eq(PHYSICIAN) & has_value]


def percentiles(values: pd.DataFrame, *, min_pairs: int = MIN_PAIRS) -> pd.DataFrame:
    """The share of physicians whom each judge of the `standings` is above, ties counting half, beside the physicians' own distribution.

    `PERCENTILE_COLUMNS`, one row a judge and group: the quantiles are of the `kept_physicians`; percentile in [0, 100] with Wilson's 95 % interval of the
    share below, for other physicians like these. NaN with fewer than `MIN_PHYSICIANS` kept, or where the judge's value is undefined.
    """
    by = ["grouping", "group"]
    n_all = values.loc[values["rater_kind"].eq(PHYSICIAN)].groupby(by).size()
    kept = kept_physicians(values, min_pairs=min_pairs).groupby(by)["balanced_f1"]
    of_group = {key: np.sort(own.to_numpy(dtype=float)) for key, own in kept}
    rows = []
    for judge in values.loc[values["rater_kind"].eq(JUDGE)].to_dict(orient="records"):
        key = (judge["grouping"], judge["group"])
        own = of_group.get(key, np.empty(0))
        row = {"judge": judge["rater"], **judge, "n_physicians": len(own)}
        row["n_physicians_left_out"] = int(n_all.get(key, 0)) - len(own)
        row |= {name: float(np.quantile(own, q)) if len(own) else math.nan for name, q in QUANTILES.items()}
        value = round(float(judge["balanced_f1"]), _DIGITS)
        if len(own) >= MIN_PHYSICIANS and not math.isnan(value):
            others = own.round(_DIGITS)
            below = np.where(others < value, 1.0, np.where(others == value, 0.5, 0.0))
            share = grouped_shares(below, np.arange(len(own)), np.zeros(len(own), dtype=np.int64), 1).iloc[0]
            ends = zip(PERCENTILE_COLUMNS[-3:], ("share", "low", "high"), strict=True)
            row |= {name: 100 * float(share[column]) for name, column in ends}
        rows.append(row)
    return pd.DataFrame(rows, columns=PERCENTILE_COLUMNS)


def percentile_words(row: Mapping[Any, Any]) -> str:
    """A percentile with its interval; a dash where there is none."""
    if math.isnan(row["percentile"]):
        return NO_VALUE
    return f"{ordinal(row['percentile'])} [{row['percentile_low']:.0f}, {row['percentile_high']:.0f}]"


def ordinal(number: float) -> str:
    """A percentile as it is spoken."""
    if math.isnan(number):
        return NO_VALUE
    whole = round(number)
    return f"{whole}{'th' if whole % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(whole % 10, 'th')}"


def value_words(row: Mapping[Any, Any]) -> str:
    """A balanced F1 with its interval, or why there is none."""
    value, low, high = row["balanced_f1"], row["low"], row["high"]
    if math.isnan(value):
        return f"undefined: {row['undefined']}"
    return f"{value:.2f}, no interval" if math.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def undefined_words(table: pd.DataFrame) -> list[str]:
    """Of how many groups there is no balanced F1 and why, a sentence a rater."""
    sentences = []
    for rater, rows in table.loc[table["balanced_f1"].isna()].groupby("rater", sort=False, observed=True):
        counts = rows["undefined"].value_counts()
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in counts.items())
        n_all = int(table["rater"].eq(rater).sum())
        sentences.append(f"{rater}: no balanced F1 for {len(rows):,} of {n_all:,} groups of criteria: {reasons}.")
    return sentences


def side_by_side(table: pd.DataFrame, judge: str) -> pd.DataFrame:
    """A judge and all physicians together, a row a category of `balanced_f1` with a pair of this judge: of each KIND, _low, _high, _pairs and _words."""
    names = {"balanced_f1": "", "low": "_low", "high": "_high", "n_pairs": "_pairs", "words": "_words"}
    by_group = table.assign(words=[value_words(row) for row in table.to_dict(orient="records")]).set_index("group")
    mine = by_group.loc[by_group["rater_kind"].eq(JUDGE) & by_group["rater"].eq(judge)]
    others = by_group.loc[by_group["rater_kind"].eq(PHYSICIANS)].reindex(mine.index)
    others["n_pairs"] = others["n_pairs"].fillna(0).astype(int)
    others["words"] = others["words"].astype(object).where(others["n_pairs"] > 0, "no criterion read by two")
    sides = [
        side[list(names)].rename(columns={name: f"{kind}{end}" for name, end in names.items()})
        for kind, side in ((JUDGE, mine), (PHYSICIANS, others))
    ]
    return pd.concat(sides, axis=1).rename_axis("category").reset_index()


def f1_columns(table: pd.DataFrame, ranks: pd.DataFrame) -> dict[str, Any]:
    """Rows of `balanced_f1` with the percentiles of what is pooled, as a table; what they are of stands there where it is not all criteria."""
    records = table.to_dict(orient="records")
    pooled = ranks.loc[ranks["grouping"].eq(OVERALL)].to_dict(orient="records")
    percentile = {(row["judge"], row["group"]): percentile_words(row) for row in pooled}
    criteria = table["group"].replace({OVERALL: record.ALL_CRITERIA})
    shown: dict[str, Any] = {"Who": table["rater"]}
    if criteria.ne(record.ALL_CRITERIA).any():
        shown["Criteria"] = criteria
    shown["Balanced F1"] = [value_words(row).replace("undefined:", NO_VALUE) for row in records]
    shown["Percentile"] = [percentile.get((row["rater"], row["group"]), NO_VALUE) for row in records]
    for name, label in (("Met", "met"), ("Not met", "not_met")):
        three = ([decimal(row[f"{part}_{label}"]) for part in ("f1", "precision", "recall")] for row in records)
        shown[f"{name}: F1 (precision, recall)"] = [f"{f1} ({precision}, {recall})" for f1, precision, recall in three]
    return shown | {"Pairs": table["n_pairs"], "Conversations": table["n_examples"]}


def error_columns(errors: pd.DataFrame) -> dict[str, Any]:
    """Rows of `error_rates` as a table."""
    shown: dict[str, Any] = {
        "Criteria": errors["group"].replace({OVERALL: record.ALL_CRITERIA}).str.replace("_", " "),
        "Judge": errors["judge"],
    }
    for name, label, words in (("Sensitivity", "met", "met"), ("Specificity", "not_met", "not met")):
        counts, none = (f"n_{label}_right", f"n_{label}"), f"none read as {words}"
        shown[f"{name} ({words} called {words})"] = record.rate_cells(errors, name.lower(), *counts, none=none)
    return shown | {"Conversations": errors["n_examples"]}


def finding(table: pd.DataFrame, ranks: pd.DataFrame, judge: str, *, min_pairs: int = MIN_PAIRS) -> str:
    """What the pooled numbers of `balanced_f1` and `percentiles` say of one judge, in a sentence or two."""
    pooled = table.loc[table["grouping"].eq(OVERALL)]
    mine = pooled.loc[pooled["rater_kind"].eq(JUDGE) & pooled["rater"].eq(judge)].to_dict(orient="records")
    if not mine:
        return f"{judge} has labelled nothing that a physician has read blind."
    is_known, value = not math.isnan(mine[0]["balanced_f1"]), value_words(mine[0])
    own = f"{judge} agrees with physicians at a balanced F1 of {value}"
    parts = [own if is_known else f"The balanced F1 of {judge} is {value}"]
    among = pooled.loc[pooled["rater_kind"].eq(PHYSICIANS)].to_dict(orient="records")
    if not among:
        parts.append("no two physicians have read the same criterion, so there is nothing to hold this against")
        return "; ".join(parts) + "."
    value = value_words(among[0])
    theirs = f"physicians among themselves reach {value}, all together"
    parts.append(f"that of physicians among themselves is {value}" if math.isnan(among[0]["balanced_f1"]) else theirs)
    rank = ranks.loc[ranks["grouping"].eq(OVERALL) & ranks["judge"].eq(judge)].iloc[0]
    n = int(rank["n_physicians"])
    if n < MIN_PHYSICIANS:
        have = f"{n or 'no'} {'physician has' if n == 1 else 'physicians have'}"
        parts.append(f"a percentile needs {MIN_PHYSICIANS} physicians with more than {min_pairs:,} pairs, and {have}")
    elif is_known:
        place = f"at the {ordinal(rank['percentile'])} percentile of {n} physicians"
        ends = {0.0: f"below all {n} physicians", 100.0: f"above all {n} physicians"}
        where = ends.get(float(rank["percentile"]), place)
        likely = interval_words(rank["percentile_low"] / 100, rank["percentile_high"] / 100)
        parts.append(f"it is {where}, with {likely} of physicians like these below it")
    return "; ".join(parts) + "."
