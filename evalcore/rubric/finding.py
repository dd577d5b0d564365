"""Scores and differences in words: the finding above the plot, the tables below it."""

import math
from typing import Any

import numpy as np
import pandas as pd

from evalcore.rubric.judge_only import WinRate
from evalcore.rubric.length_adjusted import NAME as LENGTH_ADJUSTED
from evalcore.stats.intervals import NO_VALUE, interval_words
from evalcore.stats.wording import chance_words, counted, decimal, listed
from evalcore.study.schema import Claim, Physicians

NOTHING = "none"
UNLABELLED = "labelled by every chosen judge on every criterion"
NO_WIDTH = 1e-9
HIGHEST = 1.0  # no score is higher; an interval ends there
CLEAR_BELOW = 0.05


def best_first(scores: pd.DataFrame) -> pd.DataFrame:
    """`corrected_scores` of one data set in the order of the screens: by the corrected score where every model has one, else by the judge's."""
    best = "corrected" if scores["enough"].all() else "judge_only"
    return scores.sort_values(best, ascending=False, ignore_index=True)


def score_columns(scores: pd.DataFrame) -> dict[str, Any]:
    """`corrected_scores` of one data set, a row a model."""
    enough = scores["enough"].astype(bool)

    def cells(kind: str) -> pd.Series:
        ends = zip(*(scores[kind + end] for end in ("", "_low", "_high")), strict=True)
        words = worth_words if kind == "worth" else score_words
        return pd.Series([words(*row) for row in ends], index=scores.index)

    adjusted = {}
    if scores["length_loss"].notna().any():
        adjusted = {LENGTH_ADJUSTED: [_adjusted_words(row) for row in scores.to_dict(orient="records")]}
    needs = "needs " + scores["n_needed"].map("{:,}".format) + " more criteria"
    readers = map(readers_words, scores["n_readers"], scores["n_effective_readers"])
    return {
        "Model": scores["model"],
        "Judge only": cells("judge_only"),
        "Physicians only": cells("physicians_only"),
        "Corrected": cells("corrected").where(enough, needs.where(scores["n_items"].gt(0), NO_VALUE)),
        **adjusted,
        "Criteria read": scores["n_read"],
        "Reads": [f"{n:,} by {words}" for n, words in zip(scores["n_reads"], readers, strict=True)],
        "Reads saved by judge": cells("worth").where(enough, NO_VALUE),
        "Examples": scores["n_examples"],
        "Left out": scores["n_left_out"],
    }


def _adjusted_words(row: dict[Any, Any]) -> str:
    """The length-adjusted score, corrected where enough is read, else by the judge only, and which of them it is."""
    kind, of = ("corrected", "corrected") if row["enough"] else ("judge_only", "judge only")
    score, *ends = (float(np.clip(row[f"{kind}_adjusted{end}"], 0, HIGHEST)) for end in ("", "_low", "_high"))
    return NO_VALUE if math.isnan(score) else f"{score_words(score, *ends)}, {of}"


def pair_columns(pairs: pd.DataFrame) -> dict[str, Any]:
    """Differences of pairs of models, corrected or in the judge's opinion, with the p and intervals that they have."""
    columns: dict[str, Any] = {"Pair": pairs["model_1"] + " − " + pairs["model_2"], "Difference": _differences(pairs)}
    if "sim_low" in pairs and len(pairs) > 1:
        ends = zip(pairs["sim_low"], pairs["sim_high"], strict=True)
        columns["All pairs at once"] = [f"[{', '.join(decimal(end, 3, signed=True) for end in row)}]" for row in ends]
    for name, words in {"p": "p", "p_holm": "p, Holm", "p_max_t": "p, max-T"}.items():
        if name in pairs:
            columns[words] = pairs[name].map(chance_words)
    counts = {"n_examples": "Examples", "n_left_out": "Left out"}
    return columns | {words: pairs[name] for name, words in counts.items() if name in pairs}


def _differences(pairs: pd.DataFrame) -> list[str]:
    return list(map(difference_words, pairs["difference"], pairs["low"], pairs["high"]))


def worst_columns(worst: pd.DataFrame) -> dict[str, Any]:
    """`judge_only.worst_at_k` of one evaluation."""
    return {
        "Model": worst["model"],
        "k": worst["k"],
        "Worst of k": list(map(score_words, worst["score"], worst["low"], worst["high"])),
        "Examples": worst["n_examples"],
        "Left out (fewer answers)": worst["n_left_out"],
    }


def length_columns(slopes: pd.DataFrame) -> dict[str, Any]:
    """`judge_only.length_slopes` of one evaluation."""
    ends = (slopes[f"slope{end}"] for end in ("", "_low", "_high"))
    return {
        "Model": slopes["model"],
        "Mean length (characters)": slopes["mean_chars"].map("{:,.0f}".format),
        "Score per 1,000 characters": list(map(difference_words, *ends)),
        "Correlation": [decimal(value, signed=True) for value in slopes["correlation"]],
        "Responses": slopes["n_responses"],
        "Left out": slopes["n_left_out"],
    }


ANYTIME = "Anytime-valid"


def claim_columns(claims: pd.DataFrame, scores: pd.DataFrame) -> dict[str, Any]:
    """Corrected scores (`results.Results.claims`) in the order of `scores`, a column a claim; the last has the interval for looks at any time, by `scores`."""

    def cells(rows: pd.DataFrame, interval: str) -> list[str]:
        ends = zip(rows["corrected"], rows[f"{interval}_low"], rows[f"{interval}_high"], rows["enough"], strict=True)
        return [score_words(*row) if enough else NO_VALUE for *row, enough in ends]

    words = claims.assign(subject=claims["model"], words=cells(claims, "corrected"))
    often = cells(scores, "corrected_any")
    return {"Model": scores["model"], **_by_claim(words, scores["model"]), ANYTIME: often}


def difference_columns(claims: pd.DataFrame, model: str | None = None) -> dict[str, Any]:
    """Corrected differences (`results.Results.difference_claims`, of one model or all) likewise beside the pairs, the clearest lead first."""
    rows = leader_first(claims, model)
    cells = rows.assign(subject=rows["model_1"] + " − " + rows["model_2"], words=_differences(rows))
    pairs = cells["subject"].drop_duplicates()
    return {"Pair": pairs, **_by_claim(cells.sort_values("place", kind="stable"), pairs)}


def _by_claim(cells: pd.DataFrame, subjects: pd.Series) -> dict[str, Any]:
    columns = {}
    for (claim, physicians), mine in cells.groupby(["claim", "physicians"], sort=False):
        examples = "New examples" if claim == Claim.NEW_EXAMPLES else "This benchmark"
        whose = "in general" if physicians == Physicians.IN_GENERAL else "these"
        words = mine.set_index("subject")["words"]
        columns[f"{examples}, {whose}"] = words.reindex(subjects).fillna(NO_VALUE)
    return columns


CLAIM_COLUMNS = (
    "New examples: of the same kind as these. In general: physicians in general, of whom these are a sample. These: the physicians who have read, "
    "each counted by how much of the reading is theirs."
)


def claim_notes(where: str) -> str:
    """What the headings of `claim_columns` stand for; `where` is what the interval for looks at any time holds for."""
    return (
        f"{CLAIM_COLUMNS} {ANYTIME}: {where}, an interval that stays valid if you look at it while reading goes on, and stop when it "
        "suits you."
    )


def rank_words(ranks: pd.DataFrame) -> str:
    """Which places each model may have, the best first, a sentence; empty where none is known."""
    known = ranks.dropna(subset=["rank_low"]).sort_values(["rank_low", "rank_high", "model"])
    places = []
    for row in known.to_dict(orient="records"):
        to = f" to {row['rank_high']:.0f}" if row["rank_high"] > row["rank_low"] else ""
        places.append(f"{row['model']}: {row['rank_low']:.0f}{to}")
    return f"Places of the {len(known):,} models after correction, all at once. {'; '.join(places)}." if places else ""


def readers_words(n_readers: int, n_effective: float) -> str:
    """How many physicians read, and as how many who read alike they count."""
    as_many = f" (as {n_effective:.1f})" if n_readers and f"{n_effective:.1f}" != f"{n_readers:.1f}" else ""
    return f"{n_readers:,}{as_many}"


def score_words(score: float, low: float, high: float) -> str:
    """A mean score, at most 1, with its interval; one without width is not said, since nothing was sampled and it would look like certainty."""
    if math.isnan(score):
        return NO_VALUE
    shown, *bounds = (decimal(min(value, HIGHEST), 3) for value in (score, low, high))
    interval = "" if math.isnan(low) or math.isclose(low, high, abs_tol=NO_WIDTH) else f" [{', '.join(bounds)}]"
    return shown + interval


def difference_words(difference: float, low: float, high: float) -> str:
    """A difference with its interval and its sign."""
    if math.isnan(difference):
        return NO_VALUE
    shown, *bounds = (decimal(value, 3, signed=True) for value in (difference, low, high))
    return shown if math.isnan(low) else f"{shown} [{', '.join(bounds)}]"


def worth_words(worth: float, low: float, high: float) -> str:
    """How many reads the judge saved."""
    if math.isnan(worth):
        return NO_VALUE
    bounds = "" if math.isnan(low) or round(low) == round(high) == 0 else f" [{decimal(low, 0)}, {decimal(high, 0)}]"
    return (decimal(worth, 0) if round(worth) > 0 else NOTHING) + bounds


def finding(scores: pd.DataFrame, differences: pd.DataFrame, where: str) -> str:
    """Who is ahead, whether the best two can be told apart, or how much must still be read, a sentence; `where` is what the intervals of both hold for."""
    known = scores.loc[scores["enough"].astype(bool) & scores["corrected"].notna()]
    best = known.sort_values("corrected", ascending=False, kind="stable")
    if best.empty:
        unlabelled = scores["n_items"].eq(0)
        needed = scores.loc[~unlabelled, "n_needed"]
        start = "Too little has been read to correct the judge yet."
        if scores["n_read"].eq(0).all():
            start = (
                "No physician has read anything yet that was drawn at random, "
                "so all scores here are the judge's opinion."
            )
        if needed.empty:
            return start
        low, high = math.ceil(needed.min()), math.ceil(needed.max())
        many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        start = f"{start} About {many} more criteria of each model's responses must be read."
        return _joined(start, scores.loc[unlabelled])
    first, after = best.iloc[0], f"after correction ({where})"
    if len(best) == 1:
        words = score_words(first["corrected"], first["corrected_low"], first["corrected_high"])
        sentence = f"{first['model']} scores {words} {after}."
    else:
        second = best["model"].iloc[1]
        models = f"{first['model']} and {second}"
        pair = pair_row(differences, first["model"], second)
        if pair is None or math.isnan(pair["difference"]):
            sentence = f"{models} have too few examples in common to be told apart {after}."
        elif pair["low"] > 0:
            difference, low, high = (decimal(pair[end], 3) for end in ("difference", "low", "high"))
            chance = f"; with as many pairs as here that may be chance (p {chance_words(pair['p_holm'])} by Holm)"
            ahead = f"{first['model']} is ahead of {second} by {difference} [{low}, {high}] {after}"
            sentence = f"{ahead}{chance if pair['p_holm'] >= CLEAR_BELOW else ''}."
        else:
            words = difference_words(pair["difference"], pair["low"], pair["high"])
            sentence = f"{models} cannot be told apart yet {after}: the difference is {words}."
    return _joined(sentence, scores.drop(known.index))


def unreached_words(scores: pd.DataFrame) -> str:
    """Which models have responses that no drawing could have taken, and what that means; empty where none has."""
    beyond = scores.loc[scores["n_unreached"].gt(0)]
    if beyond.empty:
        return ""
    parts = [f"{row.n_unreached:,} of {row.n_responses:,} responses of {row.model}" for row in beyond.itertuples()]
    return (
        f"No drawing could reach {listed(parts)}. Physicians' and corrected scores hold for these only as far as the judge errs on them as it does "
        "on the others."
    )


def pair_row(differences: pd.DataFrame, first: str, second: str) -> dict[Any, Any] | None:
    """The row of a pair, the first minus the second; None where there is none."""
    rows = leader_first(differences, first)
    rows = rows.loc[rows["model_2"].eq(second)]
    return None if rows.empty else rows.iloc[0].to_dict()


def _joined(sentence: str, lacking: pd.DataFrame) -> str:
    unlabelled = lacking["n_items"].eq(0)
    if not unlabelled.all():
        sentence = f"{sentence} Too little has been read of {listed(lacking.loc[~unlabelled, 'model'])}."
    if unlabelled.any():
        sentence = f"{sentence} No response of {listed(lacking.loc[unlabelled, 'model'], 'or')} is {UNLABELLED}."
    return sentence


def leader_first(differences: pd.DataFrame, model: str | None = None) -> pd.DataFrame:
    """The pairs turned so that the first is ahead, the clearest lead first; or so that one model comes first, and only its pairs."""
    rows = differences
    if model is not None:
        rows = differences.loc[differences["model_1"].eq(model) | differences["model_2"].eq(model)]
    is_turned = rows["difference"].lt(0) if model is None else rows["model_2"].eq(model)
    ends = [pair for pair in (("low", "high"), ("sim_low", "sim_high")) if pair[0] in rows]
    opposite = {"difference": -rows["difference"], "model_1": rows["model_2"], "model_2": rows["model_1"]}
    opposite |= {low: -rows[high] for low, high in ends} | {high: -rows[low] for low, high in ends}
    table = rows.assign(**{name: rows[name].where(~is_turned, column) for name, column in opposite.items()})
    return table.sort_values("difference", ascending=False, ignore_index=True, kind="stable")


def win_sentence(wins: WinRate, first: str, second: str, judge: str) -> str:
    """How often one model beats the other."""
    if not wins.n_examples:
        return f"In {judge}'s opinion {first} and {second} score the same on every conversation."
    ties = "one pair of responses scores" if wins.n_ties == 1 else f"{wins.n_ties:,} pairs of responses score"
    return (
        f"In {judge}'s opinion {first} scores higher than {second} on {100 * wins.share:.0f} % {interval_words(wins.low, wins.high)} of the "
        f"{counted(wins.n_examples, 'conversation')} with a winner; {ties} the same."
    )


def alike_sentence(alike: WinRate) -> str:
    """The same where both responses are about as long."""
    left = f"{alike.n_unlike:,} pairs are left out because their lengths differ"
    if alike.n_unlike == 1:
        left = "one pair is left out because its lengths differ"
    if not alike.n_examples:
        return f"No pair of responses of like length is decided; {left}."
    return f"Of responses of like length: on {100 * alike.share:.0f} % {interval_words(alike.low, alike.high)} of {alike.n_examples:,}; {left}."
