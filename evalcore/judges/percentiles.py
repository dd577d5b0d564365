"""Where a judge stands among physicians: its balanced F1 beside each physician's own, over all and by theme."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.judges.pairs import JUDGE, PHYSICIAN, PHYSICIANS
from evalcore.judges.quality import CATEGORY, OVERALL
from evalcore.stats.intervals import LEVEL, NO_VALUE, grouped_shares, interval_words

THEME = "theme"
THEMES = (
    "communication", "complex_responses", "context_seeking", "emergency_referrals", "global_health", "health_data_tasks", "hedging",
)  # fmt: skip
"""HealthBench's themes: the name of each of its categories begins with one."""
NO_THEME = "no theme"
MIN_PAIRS = 50
"""Physicians with more pairs than this are kept."""
MIN_PHYSICIANS = 10
"""Fewest of these for a percentile: among three it is one of four numbers."""
QUANTILES = {"lowest": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "highest": 1.0}
_DIGITS = 12  # a mean of the same numbers may differ in the last one, and is a tie all the same


def theme_of_categories(items: pd.DataFrame) -> dict[str, str]:
    """The theme of each category: the one that its name begins with, else that of most of its items, else `NO_THEME`.

    Args:
        items: Of `RubricData`.
    """
    counts = items.groupby(["cluster", "theme"], observed=True).size().rename("n").reset_index()
    counts = counts.astype({"cluster": object, "theme": object}).sort_values(["n", "theme"], ascending=[False, True])
    most = dict(zip(counts["cluster"][::-1], counts["theme"][::-1], strict=True))
    names = items["cluster"].dropna().unique()
    return {
        str(name): next((theme for theme in THEMES if str(name).startswith(f"{theme}_")), most.get(name, NO_THEME))
        for name in names
    }


def standings(table: pd.DataFrame, themes: Mapping[str, str]) -> pd.DataFrame:
    """The values that are compared: of each rater the pooled balanced F1, and by theme its mean over the theme's categories, weighted by pairs.

    Args:
        table: As `judge_quality.balanced_f1` gives it.
        themes: The theme of each category (`theme_of_categories`).

    Returns:
        One row a rater and group: rater_kind, rater, grouping (`overall` or `theme`), group, n_pairs, balanced_f1 (NaN where undefined). A category whose
        F1 is undefined for a rater is left out of that rater's mean and of n_pairs.
    """
    columns = ["rater_kind", "rater", "grouping", "group", "n_pairs", "balanced_f1"]
    pooled = table.loc[table["grouping"].eq(OVERALL), columns]
    of_category = table.loc[table["grouping"].eq(CATEGORY)]
    defined = of_category["balanced_f1"].notna()
    weight = of_category["n_pairs"].where(defined, 0)
    summed = (
        of_category.assign(
            group=of_category["group"].map(themes),
            n_pairs=weight,
            weighted=(of_category["balanced_f1"] * weight).where(defined, 0.0),
        )
        .groupby(["rater_kind", "rater", "group"], sort=False)[["n_pairs", "weighted"]]
        .sum()
        .reset_index()
    )
    summed["balanced_f1"] = summed["weighted"] / summed["n_pairs"].where(summed["n_pairs"] > 0)
    by_theme = summed.assign(grouping=THEME).sort_values("group", kind="stable")[columns]
    return pd.concat([pooled, by_theme], ignore_index=True)


def kept_physicians(values: pd.DataFrame, *, min_pairs: int = MIN_PAIRS) -> pd.DataFrame:
    """The physicians whose own values are compared with: those with more than `min_pairs` pairs and a defined value.

    Args:
        values: As `standings` gives them.
        min_pairs: 0 or more.
    """
    is_kept = values["rater_kind"].eq(PHYSICIAN) & values["n_pairs"].gt(min_pairs) & values["balanced_f1"].notna()
    return values.loc[is_kept]


def percentiles(values: pd.DataFrame, *, min_pairs: int = MIN_PAIRS) -> pd.DataFrame:
    """The share of physicians whom each judge is above, ties counting half, beside the physicians' own distribution.

    Args:
        values: As `standings` gives them.
        min_pairs: Physicians with more pairs than this in the group are kept.

    Returns:
        One row a judge and group: judge, grouping, group, n_pairs, balanced_f1, n_physicians (kept), n_physicians_left_out (too few pairs, or
        undefined), lowest, q25, median, q75, highest (of the kept physicians' values, in [0, 1]; NaN without one), percentile in [0, 100] with its
        95 % interval percentile_low to percentile_high: Wilson's of the share of physicians below, for other physicians like these. It takes the
        judge's value and each physician's as known. All three are NaN with fewer than `MIN_PHYSICIANS` kept, or where the judge's value is undefined.
    """
    physicians = values.loc[values["rater_kind"].eq(PHYSICIAN)]
    kept = kept_physicians(values, min_pairs=min_pairs)
    rows = []
    for judge in values.loc[values["rater_kind"].eq(JUDGE)].to_dict(orient="records"):
        here = kept["grouping"].eq(judge["grouping"]) & kept["group"].eq(judge["group"])
        all_here = physicians["grouping"].eq(judge["grouping"]) & physicians["group"].eq(judge["group"])
        own = np.sort(kept.loc[here, "balanced_f1"].to_numpy(dtype=float))
        rows.append(
            {
                "judge": judge["rater"],
                **{name: judge[name] for name in ("grouping", "group", "n_pairs", "balanced_f1")},
                "n_physicians": len(own),
                "n_physicians_left_out": int(all_here.sum()) - len(own),
                **{name: float(np.quantile(own, q)) if len(own) else math.nan for name, q in QUANTILES.items()},
                **_percentile(float(judge["balanced_f1"]), own),
            }
        )
    return pd.DataFrame(rows, columns=PERCENTILE_COLUMNS)


PERCENTILE_COLUMNS = [
    "judge", "grouping", "group", "n_pairs", "balanced_f1", "n_physicians", "n_physicians_left_out", *QUANTILES, "percentile",
    "percentile_low", "percentile_high",
]  # fmt: skip


def _percentile(value: float, own: npt.NDArray[np.float64]) -> dict[str, float]:
    if len(own) < MIN_PHYSICIANS or math.isnan(value):
        return dict.fromkeys(("percentile", "percentile_low", "percentile_high"), math.nan)
    rounded, others = round(value, _DIGITS), own.round(_DIGITS)
    below = np.where(others < rounded, 1.0, np.where(others == rounded, 0.5, 0.0))
    n = len(below)
    found = grouped_shares(below, np.arange(n), np.zeros(n, dtype=np.int64), 1, level=LEVEL).iloc[0]
    return {
        "percentile": 100 * float(found["share"]),
        "percentile_low": 100 * float(found["low"]),
        "percentile_high": 100 * float(found["high"]),
    }


def percentile_words(row: Mapping[Any, Any]) -> str:
    """A percentile with its interval; a dash where there is none.

    >>> percentile_words({"percentile": 61.2, "percentile_low": 40.4, "percentile_high": 78.6})
    '61st [40, 79]'
    """
    value = row["percentile"]
    return (
        NO_VALUE
        if math.isnan(value)
        else f"{ordinal(value)} [{row['percentile_low']:.0f}, {row['percentile_high']:.0f}]"
    )


def ordinal(number: float) -> str:
    """A percentile as it is spoken.

    >>> ordinal(40.0), ordinal(61.2), ordinal(12.4), ordinal(math.nan)
    ('40th', '61st', '12th', '–')
    """
    if math.isnan(number):
        return NO_VALUE
    whole = round(number)
    is_teen = whole % 100 in (11, 12, 13)
    return f"{whole}{'th' if is_teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(whole % 10, 'th')}"


def value_words(row: Mapping[Any, Any]) -> str:
    """A balanced F1 with its interval, or why there is none.

    >>> value_words({"balanced_f1": 0.7123, "low": 0.66, "high": 0.7612, "undefined": ""})
    '0.71 [0.66, 0.76]'
    >>> value_words(
    ...     {"balanced_f1": math.nan, "low": math.nan, "high": math.nan, "undefined": "physicians never say met"}
    ... )
    'undefined: physicians never say met'
    """
    value, low, high = row["balanced_f1"], row["low"], row["high"]
    if math.isnan(value):
        return f"undefined: {row['undefined']}"
    return f"{value:.2f}, no interval" if math.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def undefined_words(table: pd.DataFrame) -> list[str]:
    """Of how many groups there is no balanced F1, a sentence a rater with the reasons and how often each holds.

    Args:
        table: As `judge_quality.balanced_f1` gives it.
    """
    said = []
    for rater, rows in table.loc[table["balanced_f1"].isna()].groupby("rater", sort=False, observed=True):
        counts = rows["undefined"].value_counts()
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in counts.items())
        n_all = int(table["rater"].eq(rater).sum())
        said.append(f"{rater}: no balanced F1 for {len(rows):,} of {n_all:,} groups of criteria: {reasons}.")
    return said


def side_by_side(table: pd.DataFrame, judge: str) -> pd.DataFrame:
    """A judge and all physicians together, category by category.

    Args:
        table: Rows of `judge_quality.balanced_f1`, by category.
        judge: Of these.

    Returns:
        One row a category with a pair of this judge: category; for judge and physicians each KIND (balanced F1, NaN where undefined), KIND_low, KIND_high,
        KIND_pairs (0 where no two physicians have read the same criterion) and KIND_words; judge_met and others_met (shares of the
        judge's pairs, in [0, 1]).
    """
    names = {"balanced_f1": "", "low": "_low", "high": "_high", "n_pairs": "_pairs", "words": "_words"}
    told = table.assign(words=[value_words(row) for row in table.to_dict(orient="records")]).set_index("group")
    mine = told.loc[told["rater_kind"].eq(JUDGE) & told["rater"].eq(judge)]
    others = told.loc[told["rater_kind"].eq(PHYSICIANS)].reindex(mine.index)
    others["n_pairs"] = others["n_pairs"].fillna(0).astype(int)
    others["words"] = others["words"].astype(object).where(others["n_pairs"] > 0, "no criterion read by two")
    sides = [
        side[list(names)].rename(columns={name: f"{kind}{end}" for name, end in names.items()})
        for kind, side in ((JUDGE, mine), (PHYSICIANS, others))
    ]
    met = mine[["share_met", "share_met_by_others"]].set_axis(["judge_met", "others_met"], axis=1)
    return pd.concat([*sides, met], axis=1).rename_axis("category").reset_index()


def finding(table: pd.DataFrame, ranks: pd.DataFrame, judge: str, *, min_pairs: int = MIN_PAIRS) -> str:
    """What the pooled numbers say of one judge, in a sentence or two.

    Args:
        table: As `judge_quality.balanced_f1` gives it.
        ranks: As `percentiles` gives them.
        judge: Of these.
        min_pairs: As for `percentiles`.
    """
    pooled = table.loc[table["grouping"].eq(OVERALL)]
    mine = pooled.loc[pooled["rater_kind"].eq(JUDGE) & pooled["rater"].eq(judge)].to_dict(orient="records")
    if not mine:
        return f"{judge} has labelled nothing that a physician has read blind."
    is_known = not math.isnan(mine[0]["balanced_f1"])
    said = [
        f"{judge} agrees with physicians at a balanced F1 of {value_words(mine[0])}"
        if is_known
        else f"The balanced F1 of {judge} is {value_words(mine[0])}"
    ]
    rank = ranks.loc[ranks["grouping"].eq(OVERALL) & ranks["judge"].eq(judge)].to_dict(orient="records")[0]
    among = pooled.loc[pooled["rater_kind"].eq(PHYSICIANS)].to_dict(orient="records")
    if among:
        said.append(
            f"physicians among themselves reach {value_words(among[0])}, all together"
            if not math.isnan(among[0]["balanced_f1"])
            else f"that of physicians among themselves is {value_words(among[0])}"
        )
        said.append(_place(rank, min_pairs, is_known=is_known))
    else:
        said.append("no two physicians have read the same criterion, so there is nothing to hold this against")
    return "; ".join(part for part in said if part) + "."


def _place(rank: Mapping[Any, Any], min_pairs: int, *, is_known: bool) -> str:
    """Where it stands, for other physicians like these, or why that is not said."""
    n = rank["n_physicians"]
    if n < MIN_PHYSICIANS:
        have = "physician has" if n == 1 else "physicians have"
        return (
            f"a percentile needs {MIN_PHYSICIANS} physicians with more than {min_pairs:,} pairs, and {n or 'no'} {have}"
        )
    if not is_known:
        return ""
    return (
        f"it stands at the {ordinal(rank['percentile'])} percentile of {n} physicians, "
        f"{interval_words(rank['percentile_low'] / 100, rank['percentile_high'] / 100)} of physicians like these below it"
    )
