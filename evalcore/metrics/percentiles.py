"""Where a judge stands among physicians: its balanced F1 beside each physician's own, over all and by theme."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalcore.metrics.intervals import NO_VALUE
from evalcore.metrics.judge_quality import CATEGORY, OVERALL
from evalcore.metrics.pairs import JUDGE, PHYSICIAN, PHYSICIANS

THEME = "theme"
THEMES = (
    "communication", "complex_responses", "context_seeking", "emergency_referrals", "global_health", "health_data_tasks", "hedging",
)  # fmt: skip
"""HealthBench's themes: the name of each of its categories begins with one."""
NO_THEME = "no theme"
MIN_PAIRS = 50
"""Physicians with more pairs than this are kept."""
QUANTILES = {"lowest": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "highest": 1.0}
_DIGITS = 12  # a mean of the same numbers may differ in the last one, and is a tie all the same


def theme_of_categories(items: pd.DataFrame) -> dict[str, str]:
    """The theme of each category: the one that its name begins with, else that of most of its items, else `NO_THEME`.

    Args:
        items: Of `Opinions`.
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
        undefined), lowest, q25, median, q75, highest (of the kept physicians' values, in [0, 1]; NaN without one), percentile in [0, 100] (NaN
        without a kept physician, or where the judge's value is undefined).
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
                "percentile": _percentile(float(judge["balanced_f1"]), own),
            }
        )
    return pd.DataFrame(rows, columns=PERCENTILE_COLUMNS)


PERCENTILE_COLUMNS = [
    "judge", "grouping", "group", "n_pairs", "balanced_f1", "n_physicians", "n_physicians_left_out", *QUANTILES, "percentile",
]  # fmt: skip


def _percentile(value: float, own: npt.NDArray[np.float64]) -> float:
    if not len(own) or math.isnan(value):
        return math.nan
    rounded, others = round(value, _DIGITS), own.round(_DIGITS)
    below, ties = int((others < rounded).sum()), int((others == rounded).sum())
    return 100 * (below + ties / 2) / len(own)


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
    return f"{value:.2f}" if math.isnan(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


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
    if rank["n_physicians"]:
        said.append(f"physicians among themselves reach {rank['median']:.2f} (median of {rank['n_physicians']})")
        if is_known:
            said.append(_place(rank["percentile"]))
    elif among:
        said.append(
            f"physicians among themselves reach {value_words(among[0])}, all together"
            if not math.isnan(among[0]["balanced_f1"])
            else f"that of physicians among themselves is {value_words(among[0])}"
        )
        said.append(f"no physician has more than {min_pairs:,} pairs, so there is no percentile")
    else:
        said.append("no two physicians have read the same criterion, so there is nothing to hold this against")
    return "; ".join(said) + "."


def _place(percentile: float) -> str:
    place = f"at the {ordinal(percentile)} percentile of physicians"
    if percentile in (0, 100):
        place = f"{'below' if percentile == 0 else 'above'} all of them, {place}"
    return f"it stands {place}"
