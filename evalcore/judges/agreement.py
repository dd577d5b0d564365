"""Agreement between raters, over all of them and by pair: labels, coefficients and words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from evalcore.judges.record import OVERALL
from evalcore.rubric.data import RubricData, first_reads
from evalcore.stats.agreement_sums import Coefficient, Labels, Without, jackknife, values, without_raters
from evalcore.stats.arrays import Floats, Numbers, Truths, quotient
from evalcore.stats.intervals import LEVEL, NO_VALUE, percent_words
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import Label, Selection

TAGS = ("theme", "axis", "category", "cluster")
GROUPINGS = (OVERALL, *TAGS)
CATEGORIES = [Label.NOT_MET.value, Label.MET.value]
CHOSEN_BY_READERS = (Selection.VOLUNTEERED, Selection.ADJUDICATION)
MIN_ITEMS = 20  # with fewer a pair is shown in grey
MIN_EXAMPLES = 5  # with fewer there is no interval: their spread says too little of the spread of all
MIN_RATERS = 3  # effective ones, for an interval for raters in general
# with two categories every weighted or ordinal coefficient equals its plain one
_PLAIN = ("AGREEMENT", "KAPPA", "FLEISS_KAPPA", "ALPHA_NOMINAL", "AC1")
OF_TWO_CATEGORIES = tuple(Coefficient[name] for name in _PLAIN)
SHOWN = (Coefficient.AGREEMENT, Coefficient.AC1, Coefficient.ALPHA_NOMINAL)
NO_ERROR = 1e-12
NO_PAIR = "no item has the labels of two raters"
ONE_CATEGORY = "all labels are of one category"
TOO_FEW = f"fewer than {MIN_EXAMPLES} conversations"
RESTS_ON_ONE = "not defined without one of the conversations"
NO_SPREAD = "every conversation gives the same value"
TOO_FEW_RATERS = f"fewer than {MIN_RATERS} effective raters"
RESTS_ON_A_RATER = "not defined without one of the raters"
PAIR_COLUMNS = [
    "coefficient", "value", "low", "high", "se", "reason", "bound_low", "bound_high", "n_items", "n_labels", "n_examples", "n_raters",
    "n_cannot_assess",
]  # fmt: skip
COLUMNS = [*PAIR_COLUMNS, "general_low", "general_high", "general_se", "general_reason", "n_effective_raters"]
THESE, GENERAL = "", "general_"  # prefixes of the columns with the interval for these raters, and for raters in general


def labels_of(rubric_data: RubricData, *, judges: Sequence[str] = ()) -> pd.DataFrame:
    """Physicians' blind first reads but of items that somebody chose to read, and judges' labels of the same items; raters are judges, then physicians."""
    reads = first_reads(rubric_data.reads)
    reads = reads.loc[~reads["selection"].isin(CHOSEN_BY_READERS)]
    rows = np.unique(reads["row"].to_numpy(dtype=np.int64))
    physicians = reads["rater"].astype("str")
    physicians = physicians.mask(physicians.isin(list(judges)), physicians + " (physician)")
    parts = [pd.DataFrame({"row": reads["row"], "rater": physicians, "met": reads["met"]})]
    parts += [
        pd.DataFrame({"row": rows, "rater": judge, "met": rubric_data.judged[judge].to_numpy()[rows]}).dropna()
        for judge in judges
    ]
    types = {"row": "int64", "rater": "str", "met": "float64"}
    labels = pd.concat([part.astype(types) for part in parts], ignore_index=True)
    items = rubric_data.items.iloc[labels["row"].to_numpy()]
    codes = labels["met"].fillna(-1).to_numpy().astype(np.int64)
    return pd.DataFrame(
        {
            "unit": labels["row"],
            "example_id": items["example_id"].to_numpy(),
            "rater": pd.Categorical(labels["rater"], categories=[*judges, *sorted(set(physicians))]),
            "value": pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(CATEGORIES, ordered=True)),
            **{name: items[name].array for name in TAGS},
        }
    )


def agreement(
    labels: pd.DataFrame, *, by: Sequence[str] = (OVERALL,), coefficients: Sequence[Coefficient] | None = None
) -> pd.DataFrame:
    """Agreement of all raters together, overall and by group, with 95 % intervals for these raters and for raters in general, from the jackknife.

    With theta_g the coefficient without example g, of G examples that have an item with two labels or more,
    v_G = (G-1)/G sum_g (theta_g - theta)^2; v_K likewise without each of the K raters, v_GK without each rater's labels on each example:

        these raters        theta +- t(G-1) sqrt(v_G)
        raters in general   theta +- t(min(G, R) - 1) sqrt(max(v_G, v_G + v_K - v_GK)),   R = 1 / sum q^2 effective raters, q: share of the labels

    The second is the two-way variance of Cameron, Gelbach and Miller (2011) and needs R of at least three. Both are cut off at 1.

    `labels` has one row a label: unit (the item), example_id, rater (one label an item), value (missing: cannot assess; its categories are all that
    could be given), and the columns that `by` names, the same for all labels of an item. `coefficients`: by default all that differ.

    Returns:
        One row a group and coefficient: grouping, group, and `COLUMNS`: value (at most 1; 0: as much as by chance; agreement in [0, 1]), low, high and se
        (these raters), reason (why value or interval is NaN), the same with general_ (raters in general), bound_low and bound_high (of percent agreement,
        whatever each cannot assess had been), n_items with two labels or more, and what there is on these.
    """
    whole = coded(labels)
    tables = []
    for grouping in dict.fromkeys(by):
        if grouping == OVERALL:
            groups, of_label = [OVERALL], np.zeros(len(labels), dtype=np.int64)
        elif grouping in labels:
            column = labels[grouping].astype("category")
            groups = [str(group) for group in column.cat.categories]
            of_label = np.asarray(column.cat.codes, dtype=np.int64)
        else:
            msg = f"by: expected {OVERALL} or a column of the labels ({', '.join(labels.columns)}), got {grouping!r}"
            raise ValueError(msg)
        kept = of_label >= 0
        number, units = pd.factorize(whole.unit[kept])
        group = np.zeros(len(units), dtype=np.int64)
        group[number] = of_label[kept]
        part = replace(_of_rows(whole, kept), unit=number.astype(np.int64), group=group, n_groups=len(groups))
        part = replace(part, example=whole.example[units])
        table = _estimates(part, coefficients, in_general=True)
        used = table if grouping == OVERALL else table.loc[np.isin(table["group"], part.group)]
        tables.append(used.assign(grouping=grouping, group=np.array(groups, dtype=object)[used["group"]]))
    return pd.concat(tables, ignore_index=True)[["grouping", "group", *COLUMNS]]


def pair_agreement(labels: pd.DataFrame, *, coefficients: Sequence[Coefficient] | None = None) -> pd.DataFrame:
    """Agreement of each two raters on the items that both have labelled, a row a pair and coefficient: rater_1, rater_2, and `PAIR_COLUMNS`."""
    raters = np.array(labels["rater"].astype("category").cat.categories, dtype=object)
    part, raters_of = _pairs(coded(labels))
    table = _estimates(part, coefficients)
    first, second = raters_of[table["group"]].T
    return table.assign(rater_1=raters[first], rater_2=raters[second])[["rater_1", "rater_2", *PAIR_COLUMNS]]


def _of_rows(labels: Labels, kept: Truths) -> Labels:
    return replace(labels, unit=labels.unit[kept], rater=labels.rater[kept], value=labels.value[kept])


def coded(labels: pd.DataFrame) -> Labels:
    """The frame as numbers, all in one group; value -1 for cannot assess."""
    value, rater = (labels[name].astype("category").cat for name in ("value", "rater"))
    unit, units = pd.factorize(labels["unit"])
    if labels.duplicated(["unit", "rater"]).any():
        msg = "labels: expected one row a rater and item, got a rater with two labels on an item"
        raise ValueError(msg)
    example = np.zeros(len(units), dtype=np.int64)
    example[unit] = pd.factorize(labels["example_id"])[0]
    unit, rater_codes, codes = (np.asarray(part, dtype=np.int64) for part in (unit, rater.codes, value.codes))
    one_group, n_categories = np.zeros(len(units), dtype=np.int64), max(2, len(value.categories))
    return Labels(unit, rater_codes, codes, one_group, example, 1, n_categories)


def _pairs(labels: Labels) -> tuple[Labels, Numbers]:
    n_raters = int(labels.rater.max(initial=0)) + 1
    order = np.argsort(labels.unit * n_raters + labels.rater, kind="stable")
    unit, rater, value = labels.unit[order], labels.rater[order], labels.value[order]
    most = int(np.bincount(unit, minlength=1).max(initial=0))
    ahead = [np.flatnonzero(unit[:-lag] == unit[lag:]) for lag in range(1, most)]
    none = np.zeros(0, dtype=np.int64)
    first = np.concatenate([*ahead, none])
    second = np.concatenate([*(rows + lag for lag, rows in enumerate(ahead, start=1)), none])
    keys, pair = np.unique(rater[first] * n_raters + rater[second], return_inverse=True)
    units, zero = np.arange(len(first)), np.zeros(len(first), dtype=np.int64)
    n_categories, example = labels.n_categories, labels.example[unit[first]]
    of_unit, of_rater = np.concatenate((units, units)), np.concatenate((zero, zero + 1))
    said = np.concatenate((value[first], value[second]))
    both = Labels(of_unit, of_rater, said, pair.astype(np.int64), example, len(keys), n_categories)
    return both, np.stack([keys // n_raters, keys % n_raters], axis=1)


def _estimates(labels: Labels, coefficients: Sequence[Coefficient] | None, *, in_general: bool = False) -> pd.DataFrame:
    kept = labels.value >= 0
    if not in_general:
        kept &= np.bincount(labels.unit[kept], minlength=len(labels.group))[labels.unit] > 1
    answered = _of_rows(labels, kept)
    sums = jackknife(answered)
    n_examples = sums.n_examples
    undecided = labels.unit[labels.value < 0]
    undecided = undecided[np.bincount(labels.unit, minlength=len(labels.group))[undecided] > 1]
    counts: dict[str, Any] = {
        "n_items": np.rint(sums.whole.n_items).astype(np.int64),
        "n_labels": sums.n_labels,
        "n_examples": n_examples,
        **_raters(answered),
        "n_cannot_assess": np.bincount(labels.group[undecided], minlength=answered.n_groups),
    }
    few = n_examples < MIN_EXAMPLES
    bounds = _bounds(labels)
    without = [without_raters(answered, sums.whole, by_example=both) for both in (False, True)] if in_general else []
    freedom = np.maximum(np.minimum(n_examples, counts["n_effective_raters"]) - 1, 1)
    every = OF_TWO_CATEGORIES if answered.n_categories == len(CATEGORIES) else tuple(Coefficient)
    tables = []
    for place, coefficient in enumerate(map(Coefficient, coefficients or every)):
        value = values(coefficient, sums.whole)
        is_share = coefficient is Coefficient.AGREEMENT
        variance = np.where(few, np.nan, _variance(coefficient, sums.examples, value, n_examples))
        reason = _why_not(
            (counts["n_items"] == 0, NO_PAIR), (np.isnan(value), ONE_CATEGORY), (few, TOO_FEW),
            (np.isnan(variance), RESTS_ON_ONE), (variance < NO_ERROR**2, NO_SPREAD),
        )  # fmt: skip
        se = np.where(reason == "", np.sqrt(variance), np.nan)
        columns = {"value": value, "reason": reason}
        columns |= _interval(value, se, np.maximum(n_examples - 1, 1), is_share=is_share)
        if without:
            without_rater, without_cell = without
            by_rater = _variance(coefficient, without_rater, value, counts["n_raters"])
            by_both = _variance(coefficient, without_cell, value, np.bincount(without_cell.group, minlength=len(value)))
            both = np.maximum(variance, variance + by_rater - by_both)
            general = np.where(reason == "", _why_not(
                (counts["n_effective_raters"] < MIN_RATERS - NO_ERROR, TOO_FEW_RATERS), (np.isnan(both), RESTS_ON_A_RATER)
            ), reason)  # fmt: skip
            wide = _interval(value, np.where(general == "", np.sqrt(both), np.nan), freedom, is_share=is_share)
            columns |= {f"{GENERAL}{name}": column for name, column in wide.items()} | {f"{GENERAL}reason": general}
        low, high = bounds if is_share else (np.full(len(value), np.nan),) * 2
        keys = {"group": np.arange(len(value)), "place": place, "coefficient": coefficient.value}
        tables.append(pd.DataFrame({**keys, **columns, "bound_low": low, "bound_high": high, **counts}))
    return pd.concat(tables).sort_values(["group", "place"], ignore_index=True)


def _interval(value: Floats, se: Floats, freedom: Floats | Numbers, *, is_share: bool) -> dict[str, Floats]:
    half = stdtrit(freedom, (1 + LEVEL) / 2) * se
    low = np.maximum(value - half, 0.0 if is_share else -np.inf)
    return {"low": low, "high": np.minimum(value + half, 1.0), "se": se}


def _variance(coefficient: Coefficient, part: Without, value: Floats, n_parts: Numbers) -> Floats:
    """The jackknife's, of each group: (n-1)/n sum (theta_p - theta)^2; NaN where a coefficient needs every part."""
    away = values(coefficient, part.sums) - value[part.group]
    squares = np.bincount(part.group, weights=away**2, minlength=len(value))
    return np.asarray(squares * (n_parts - 1) / np.maximum(n_parts, 1))


def _why_not(*cases: tuple[Truths, str]) -> Any:
    return np.select([holds for holds, _ in cases], [why for _, why in cases], "").astype(object)


def _bounds(labels: Labels) -> tuple[Floats, Floats]:
    """An item's sum of squares is largest with all open labels in the fullest category, and smallest where each goes to the emptiest."""
    n_units, n_categories = len(labels.group), labels.n_categories
    assessed = labels.value >= 0
    flat = np.bincount(labels.unit[assessed] * n_categories + labels.value[assessed], minlength=n_units * n_categories)
    low = flat.reshape(n_units, n_categories).astype(float)
    n_open = np.bincount(labels.unit[~assessed], minlength=n_units)
    n = low.sum(axis=1) + n_open
    high, rows = low.copy(), np.arange(n_units)
    high[rows, high.argmax(axis=1)] += n_open
    for step in range(int(n_open.max(initial=0))):
        still = rows[n_open > step]
        low[still, low[still].argmin(axis=1)] += 1
    is_pairable = n > 1
    n_items = np.bincount(labels.group, weights=is_pairable, minlength=labels.n_groups)

    def mean(counts: Floats) -> Floats:
        of_unit = (counts * (counts - 1)).sum(axis=1) / np.maximum(n * (n - 1), 1)
        total = np.bincount(labels.group, weights=np.where(is_pairable, of_unit, 0), minlength=labels.n_groups)
        return quotient(total, n_items)

    return mean(low), mean(high)


def _raters(labels: Labels) -> dict[str, Any]:
    """Raters with a label on an item that has two or more, and how many they amount to, by group: 1 / sum q^2 of their shares q of the labels."""
    n_of_unit = np.bincount(labels.unit, minlength=len(labels.group))
    counted = n_of_unit[labels.unit] > 1
    width = int(labels.rater.max(initial=0)) + 1
    keys, loads = np.unique(labels.group[labels.unit[counted]] * width + labels.rater[counted], return_counts=True)
    group, load = keys // width, loads.astype(float)
    total, squares = (np.bincount(group, weights=part, minlength=labels.n_groups) for part in (load, load**2))
    effective = np.divide(total**2, squares, out=np.zeros(labels.n_groups), where=squares > 0)
    return {"n_raters": np.bincount(group, minlength=labels.n_groups), "n_effective_raters": effective}


NAMES: dict[Coefficient, str] = {
    Coefficient.AGREEMENT: "Percent agreement",
    Coefficient.KAPPA: "Cohen's kappa",
    Coefficient.KAPPA_LINEAR: "Cohen's kappa, linear",
    Coefficient.KAPPA_QUADRATIC: "Cohen's kappa, quadratic",
    Coefficient.FLEISS_KAPPA: "Fleiss' kappa",
    Coefficient.ALPHA_NOMINAL: "Krippendorff's alpha",
    Coefficient.ALPHA_ORDINAL: "Krippendorff's alpha, ordinal",
    Coefficient.ALPHA_INTERVAL: "Krippendorff's alpha, interval",
    Coefficient.AC1: "Gwet's AC1",
    Coefficient.AC2_LINEAR: "Gwet's AC2, linear",
    Coefficient.AC2_QUADRATIC: "Gwet's AC2, quadratic",
}
HEADS = NAMES | {Coefficient.AGREEMENT: "Agreement", Coefficient.ALPHA_NOMINAL: "Krippendorff"}  # of narrow columns


def value_words(coefficient: str, value: float) -> str:
    """A coefficient as screens say it."""
    return percent_words(value) if coefficient == Coefficient.AGREEMENT else decimal(value)


def coefficient_words(coefficient: str, value: float, low: float, high: float) -> str:
    """A coefficient with its interval, where it has one."""
    shown, *ends = (value_words(coefficient, number) for number in (value, low, high))
    return shown if math.isnan(low) else f"{shown} [{', '.join(ends)}]"


def bounds_words(coefficient: str, low: float, high: float) -> str:
    """Between which values percent agreement lies, whatever those who could not assess had said."""
    return NO_VALUE if math.isnan(low) else f"{value_words(coefficient, low)} to {value_words(coefficient, high)}"


def cells(table: pd.DataFrame, prefix: str = THESE) -> list[str]:
    """Each value with its interval for whom the prefix says; a dash where there is no value."""
    columns = (table[name] for name in ("coefficient", "value", f"{prefix}low", f"{prefix}high"))
    return [coefficient_words(*row) for row in zip(*columns, strict=True)]


def columns(table: pd.DataFrame, keys: Mapping[str, str], *, prefix: str = THESE) -> dict[str, Any]:
    """A row a group or pair (by the columns `keys`, with their headers), a column a coefficient with its interval."""
    by = ["grouping", *keys] if "grouping" in table else list(keys)
    counts = table.drop_duplicates(by).set_index(by)
    wide = table.assign(words=cells(table, prefix)).pivot(index=by, columns="coefficient", values="words")
    wide = wide.reindex(counts.index)
    shown = {"n_items": "Criteria", "n_examples": "Conversations", "n_cannot_assess": "Cannot assess"}
    return {
        **{title: counts.index.get_level_values(column) for column, title in keys.items()},
        **{HEADS[Coefficient(name)]: wide[name] for name in dict.fromkeys(table["coefficient"])},
        **{title: counts[column] for column, title in shown.items()},
    }


def pooled_columns(overall: pd.DataFrame, who: str) -> dict[str, Any]:
    """The rows of one group, a row a coefficient: for these raters and for raters in general, with bounds where somebody could not assess."""
    ends = zip(overall["coefficient"], overall["bound_low"], overall["bound_high"], strict=True)
    in_general = overall["general_low"].notna().any()
    shown: dict[str, Any] = {"All together": [NAMES[Coefficient(name)] for name in overall["coefficient"]]}
    if in_general:
        shown[f"For {who} in general"] = cells(overall, GENERAL)
    shown[f"For these {who}"] = cells(overall)
    if overall["n_cannot_assess"].any():
        shown["Bounds, by cannot assess"] = [bounds_words(*row) for row in ends]
    return shown | {"Why no interval": overall["general_reason" if in_general else "reason"]}


def population(table: pd.DataFrame, who: str = "physicians") -> tuple[str, str]:
    """Whom the intervals of a group's rows are for: the prefix of their columns, and the population in words."""
    raw = table.loc[table["coefficient"].eq(Coefficient.AGREEMENT)].iloc[0]
    return (GENERAL, f"{who} in general") if raw["general_reason"] == "" else (THESE, f"these {who}")


def finding(table: pd.DataFrame, who: str = "physicians") -> list[str]:
    """What a group's rows of `agreement` say of these raters, in sentences; `who` names them, in the plural."""
    of = {row["coefficient"]: row for row in table.to_dict(orient="records")}
    raw, beyond = of[Coefficient.AGREEMENT], [of[Coefficient.AC1], of[Coefficient.ALPHA_NOMINAL]]
    if not raw["n_items"]:
        return [f"No criterion has been read by two {who} yet."]
    prefix, whom = population(table, who)
    n = f"{counted(raw['n_items'], 'criterion', 'criteria')} in {counted(raw['n_examples'], 'conversation')}"
    basis = f"{n}, {raw['n_raters']:,} {who}, {raw['n_effective_raters']:.1f} effective"
    sentences = [
        f"Two {who} who label the same criterion agree {_words(prefix, raw)} of the time ({basis}).",
        f"Beyond chance: {_words(prefix, *beyond, named=True)}.",
    ]
    if prefix == GENERAL:
        alone = _words(THESE, raw, *beyond, named=True)
        sentences.append(f"These intervals are for {whom}. For these {who} alone: {alone}.")
    elif raw["general_reason"] == TOO_FEW_RATERS:
        why = f"{who} in general take at least {MIN_RATERS} effective raters"
        sentences.append(f"Intervals are for {whom} only: {why}.")
    if n := raw["n_cannot_assess"]:
        sentences.append(
            f"Where two or more have read, {counted(n, 'label was', 'labels were')} cannot assess: whatever each of them had been, "
            f"percent agreement over all reads is {bounds_words(Coefficient.AGREEMENT, raw['bound_low'], raw['bound_high'])}."
        )
    return sentences


def reasons(table: pd.DataFrame) -> list[str]:
    """Why values or intervals of one group are missing, each reason once with its coefficients."""
    sentences = []
    for column, whom in (("reason", ""), ("general_reason", " (in general)")):
        lacking = table.loc[table[column].ne("") & (table["reason"].eq("") | (column == "reason"))]
        for why, rows in lacking.groupby(column, sort=False):
            sentences.append(f"{', '.join(NAMES[name] for name in rows['coefficient'])}{whom}: {why}.")
    return sentences


def _words(prefix: str, *rows: Mapping[Any, Any], named: bool = False) -> str:
    parts = []
    for row in rows:
        shown = coefficient_words(str(row["coefficient"]), row["value"], row[f"{prefix}low"], row[f"{prefix}high"])
        why = f" ({row[f'{prefix}reason']})" if row[f"{prefix}reason"] else ""
        parts.append((f"{NAMES[row['coefficient']]} " if named else "") + shown + why)
    return ", ".join(parts)
