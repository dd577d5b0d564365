"""Judge drift: two judges, or two versions of one, on the same items."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from evalcore.judges.record import ALL_CRITERIA, CATEGORY, OVERALL, SIGN, item_groups, rate_cells
from evalcore.rubric.data import RubricData
from evalcore.rubric.finding import difference_words
from evalcore.rubric.scores import response_scores
from evalcore.stats.arrays import Floats, Numbers, Truths, codes_of
from evalcore.stats.intervals import LEVEL, clustered_means, grouped_shares
from evalcore.stats.pair_tests import adjusted, holm
from evalcore.stats.wording import chance_words, decimal

AXIS = "axis"
GROUPINGS = (OVERALL, CATEGORY, AXIS, SIGN, "theme")
DEFAULT_GROUPINGS = GROUPINGS[:-1]
CLUSTERED, EXACT = "clustered", "exact"  # McNemar's with examples as clusters; from the examples' signs
MIN_CLUSTERS = 20  # with fewer examples that lean either way, the test is exact
NO_FLIPS = "No label differs, so there is nothing to test."
NO_ITEMS = "The two judges have no item in common."
ALL_MODELS = "all models"
N_SAID = 9


def flips(rubric_data: RubricData, before: str, after: str, *, by: Sequence[str] = DEFAULT_GROUPINGS) -> pd.DataFrame:
    """On how many items two judges, an earlier and a later one, differ, in which direction, and whether the directions balance.

        d_g = b_g - c_g    flips to met less flips to not met of example g
        z   = sum d_g / sqrt(sum d_g^2), p = 2 Phi(-|z|)            criteria of one example flip together
        p   = P(|sum s_g d_g| >= |sum d_g|), s_g fair signs         exact, with fewer than 20 examples of d_g other than 0; where no
                                                                    example has more than one flip it is McNemar's exact test (1947)

    McNemar's test that takes items as independent rejects 21-23 % instead of 5 % on clustered data, and is not offered. `by` are some of `GROUPINGS`.

    Returns:
        One row a grouping and group with an item that either has labelled: n (items that both labelled), n_before_only and n_after_only (left out), and for
        each of flips (of n), to_not_met (of n_met_before), to_met (of the rest) n_FLIPS and the share with FLIPS_low, FLIPS_high (clustered by example);
        z (positive: the later judge says met more often), test, p in (0, 1], p_holm (of the grouping), and reason (why z and p are NaN).
    """
    items = rubric_data.items
    said = np.zeros(len(items), dtype=np.int64)
    for name in (before, after):
        label = rubric_data.judged[name].to_numpy()
        said = 3 * said + np.where(np.isnan(label), 0, 1 + (label == 1))
    example, _ = codes_of(items["example_id"])
    parts = []
    for grouping in dict.fromkeys(by):
        group, names = item_groups(items, grouping)
        table = _flips(said, example, group, len(names)).assign(grouping=grouping, group=names)
        table = table[["grouping", "group", *table.columns[:-2]]]
        parts.append(table.loc[table["n"] + table["n_before_only"] + table["n_after_only"] > 0])
    return pd.concat(parts, ignore_index=True)


def _flips(said: Numbers, example: Numbers, group: Numbers, n_groups: int) -> pd.DataFrame:
    """`said`: 3 x the earlier + the later judge's label; 0 none, 1 not met, 2 met."""
    width = int(example.max(initial=0)) + 1
    inside: Any = slice(None) if (group >= 0).all() else group >= 0
    counts = np.bincount(((group * width + example) * N_SAID + said)[inside], minlength=n_groups * width * N_SAID)
    by_example = counts.reshape(n_groups, width, 3, 3)
    before_only, after_only = by_example[:, :, 1:, 0].sum((1, 2)), by_example[:, :, 0, 1:].sum((1, 2))
    place, cluster = np.divmod(np.arange(n_groups * width), width)
    changes = ((2, 2), (1, 2), (2, 1), (1, 1))
    kept, to_met, to_not_met, unmet = (by_example[:, :, old, new].ravel() for old, new in changes)
    sides = {
        "flips": (to_met + to_not_met, kept + unmet + to_met + to_not_met),
        "to_not_met": (to_not_met, kept + to_not_met),
        "to_met": (to_met, unmet + to_met),
    }
    shares = {}
    for name, (hits, n) in sides.items():
        of = n > 0
        share = grouped_shares(hits[of], cluster[of], place[of], n_groups, sizes=n[of])
        shares[name] = share.astype({"n": np.int64})
    columns = {
        "n": shares["flips"]["n"],
        "n_examples": shares["flips"]["n_clusters"],
        "n_before_only": before_only,
        "n_after_only": after_only,
        "n_met_before": shares["to_not_met"]["n"],
        "n_met_after": by_example[:, :, 1:, 2].sum((1, 2)),
    }
    table = pd.DataFrame(columns)
    for name, share in shares.items():
        table[f"n_{name}"] = share["n_hits"].astype(int)
        table[[name, f"{name}_low", f"{name}_high"]] = share[["share", "low", "high"]]
    flipped = sides["flips"][0] > 0
    return pd.concat([table, _mcnemar((to_met - to_not_met)[flipped], place[flipped], n_groups, table)], axis=1)


def _mcnemar(d: Numbers, of_group: Numbers, n_groups: int, table: pd.DataFrame) -> pd.DataFrame:
    total, squares = (np.bincount(of_group, sums, n_groups) for sums in (d, d**2))
    # 0 where every example's flips balance
    z = np.divide(total, np.sqrt(squares), out=np.zeros(n_groups), where=squares > 0)
    leaning = np.bincount(of_group[d != 0], minlength=n_groups)
    is_exact = leaning < MIN_CLUSTERS
    p = 2 * ndtr(-np.abs(z))
    for group in np.flatnonzero(is_exact):
        p[group] = _sign_flip_chance(d[(of_group == group) & (d != 0)])
    none = table["n_flips"].to_numpy() == 0
    columns = {
        "z": np.where(none, np.nan, z),
        "test": np.where(is_exact, EXACT, CLUSTERED),
        "p": np.where(none, np.nan, p),
        "p_holm": adjusted(np.where(none, np.nan, p), holm),
        "reason": np.select([table["n"].to_numpy() == 0, none], [NO_ITEMS, NO_FLIPS], ""),
    }
    return pd.DataFrame(columns)


def _sign_flip_chance(d: Numbers) -> float:
    """P(|sum s_g d_g| >= |sum d_g|) for fair independent signs s, by convolution; 1 where no example leans."""
    chance = np.ones(1)
    for size in np.abs(d):
        step = np.zeros(2 * size + 1)
        step[[0, -1]] = 0.5
        chance = np.convolve(chance, step)
    sums = np.arange(len(chance)) - (len(chance) - 1) // 2
    return float(min(1.0, chance[np.abs(sums) >= abs(int(d.sum()))].sum()))


def score_drift(rubric_data: RubricData, before: str, after: str) -> pd.DataFrame:
    """Each model's mean score by either judge on the same responses, and the mean of the difference, with the interval of `clustered_means`.

    Returns:
        One row a model and evaluation, and where several have responses a last one for all models (`ALL_MODELS`): n_responses (that both judges labelled
        whole and that have a score), n_left_out, score_before and score_after (not clipped, at most 1), difference (positive: the later judge scores
        higher) with low, high (clustered by example; NaN with fewer than two examples).
    """
    responses, later = (response_scores(rubric_data, judge) for judge in (before, after))
    scores = [table["score"].to_numpy() for table in (responses, later)]
    whole = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    names = ("model", "evaluation", "example_id")
    (model, models), (evaluation, evaluations), (example, _) = (codes_of(responses[name]) for name in names)
    group, pairs = model * len(evaluations) + evaluation, pd.MultiIndex.from_product([models, evaluations])
    of_model = _differences(scores, whole, group, example, pairs)
    of_model = of_model.loc[of_model["n_responses"] + of_model["n_left_out"] > 0]
    every = pd.MultiIndex.from_product([[ALL_MODELS], evaluations])
    together = _differences(scores, whole, evaluation, example, every)
    several = of_model.loc[of_model["n_responses"].gt(0), "evaluation"].value_counts()
    together = together.loc[together["evaluation"].isin(several.index[several > 1])]
    return pd.concat([of_model, together], ignore_index=True)


def _differences(
    scores: list[Floats], whole: Truths, group: Numbers, example: Numbers, names: pd.MultiIndex
) -> pd.DataFrame:
    before, after, apart = (
        clustered_means(group[whole], example[whole], values[whole], n_cells=len(names))
        for values in (scores[0], scores[1], scores[1] - scores[0])
    )
    is_same = apart["low"].isna() & apart["n_clusters"].gt(1)  # on every example: the interval has no width
    columns = {
        "n_responses": apart["n_values"],
        "n_left_out": np.bincount(group[~whole], minlength=len(names)),
        "n_examples": apart["n_clusters"],
        "score_before": before["mean"],
        "score_after": after["mean"],
        "difference": apart["mean"],
        **{end: apart[end].mask(is_same, apart["mean"]) for end in ("low", "high")},
    }
    model, evaluation = (names.get_level_values(place).to_numpy(dtype=object) for place in range(2))
    return pd.DataFrame({"model": model, "evaluation": evaluation, **columns})


def finding(flipped: pd.DataFrame, before: str, after: str) -> str:
    """How two judges differ, in a sentence, from the overall row of `flips`."""
    overall = flipped.loc[flipped["grouping"].eq(OVERALL) & flipped["n"].gt(0)]
    if overall.empty:
        return f"{before} and {after} have labelled no item in common."
    (share,), row = rate_cells(overall, "flips", "n_flips", "n"), overall.iloc[0]
    sentence = f"{after} gives another label than {before} on {share} of the items that both labelled"
    if not row["n_flips"]:
        return sentence + "."
    chance = chance_words(row["p"])
    p = f"p {chance}" if chance.startswith("<") else f"p = {chance}"
    if row["p"] >= 1 - LEVEL:
        return f"{sentence}; neither says met more often beyond chance ({p})."
    return f"{sentence}, and says met {'more' if row['z'] > 0 else 'less'} often ({p})."


def flips_columns(table: pd.DataFrame) -> dict[str, Any]:
    """Rows of `flips` as a table."""
    table = table.assign(n_not_met_before=table["n"] - table["n_met_before"])
    tested = zip(table["reason"], table["p_holm"], table["test"], strict=True)
    return {
        "Criteria": table["group"].replace({OVERALL: ALL_CRITERIA}).astype(str).str.replace("_", " "),
        "Flipped": rate_cells(table, "flips", "n_flips", "n"),
        "Met, now not met": rate_cells(table, "to_not_met", "n_to_not_met", "n_met_before"),
        "Not met, now met": rate_cells(table, "to_met", "n_to_met", "n_not_met_before"),
        "p (Holm)": [reason or f"{chance_words(p)} ({test})" for reason, p, test in tested],
        "Conversations": table["n_examples"],
    }


def score_names(scores: pd.DataFrame) -> pd.Series:
    """What each row of `score_drift` is called: the model, with the evaluation where there are several."""
    several = len(set(scores["evaluation"])) > 1
    return scores["model"] + (" · " + scores["evaluation"] if several else "")


def scores_columns(scores: pd.DataFrame) -> dict[str, Any]:
    """Rows of `score_drift` as a table."""
    return {
        "Model": score_names(scores),
        "Earlier judge": [decimal(value, 3) for value in scores["score_before"]],
        "Later judge": [decimal(value, 3) for value in scores["score_after"]],
        "Difference": list(map(difference_words, scores["difference"], scores["low"], scores["high"])),
        "Responses": scores["n_responses"],
        "Left out": scores["n_left_out"],
        "Conversations": scores["n_examples"],
    }
