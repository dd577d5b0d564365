"""Scores and differences in words: the finding above the plot, the cells of the table."""

import math
from typing import Any

import pandas as pd

from evalcore.rubric.comparison import WinRate
from evalcore.stats.intervals import NO_VALUE, interval_words
from evalcore.stats.wording import decimal, listed
from evalcore.study.analysis import CLAIM_WORDS, PHYSICIANS_WORDS
from evalcore.study.schema import Claim, Physicians

NOTHING = "none"
UNLABELLED = "labelled by every chosen judge on every criterion"
NO_WIDTH = 1e-9
HIGHEST = 1.0
"""No score is higher; an interval ends there."""
CLEAR_BELOW = 0.05


def claim_words(claim: Claim, physicians: Physicians) -> str:
    """What an interval holds for, in a few words.

    >>> claim_words(Claim.NEW_EXAMPLES, Physicians.IN_GENERAL)
    'for new examples like these, physicians in general'
    """
    return f"for {CLAIM_WORDS[claim]}, {PHYSICIANS_WORDS[physicians]}"


def claim_columns(claims: pd.DataFrame) -> dict[str, list[str]]:
    """Corrected scores (`results.Results.claims`) in words, a column for everything that the interval may hold for, beside the models' names."""
    columns: dict[str, list[str]] = {}
    for row in claims.to_dict(orient="records"):
        cell = score_words(row["corrected"], row["corrected_low"], row["corrected_high"]) if row["enough"] else NO_VALUE
        columns.setdefault(_claim_column(row), []).append(cell)
    return {"Model": list(dict.fromkeys(claims["model"])), **columns}


def difference_columns(claims: pd.DataFrame, model: str | None = None) -> dict[str, list[str]]:
    """Corrected differences (`results.Results.difference_claims`, of one model or all) in words, a column for everything that the interval may hold for.

    Beside them stand the pairs, the clearest lead first.
    """
    cells: dict[str, dict[str, str]] = {}
    for row in leader_first(claims, model).to_dict(orient="records"):
        name = _claim_column(row)
        words = difference_words(row["difference"], row["low"], row["high"])
        cells.setdefault(f"{row['model_1']} − {row['model_2']}", {})[name] = words
    names = [_claim_column(row) for row in claims.drop_duplicates("place").to_dict(orient="records")]
    return {"Pair": list(cells)} | {name: [row.get(name, NO_VALUE) for row in cells.values()] for name in names}


def rank_words(ranks: pd.DataFrame) -> str:
    """Which places each model may have, the best first, a sentence.

    >>> table = pd.DataFrame({"model": ["A", "B", "C"], "n_models": 3, "rank_low": [2, 1, 2], "rank_high": [3, 1, 3]})
    >>> rank_words(table)
    'Places of the 3 models after correction, all at once. B: 1; A: 2 to 3; C: 2 to 3.'
    """
    known = ranks.dropna(subset=["rank_low"]).sort_values(["rank_low", "rank_high", "model"])
    places = [
        f"{row['model']}: {_whole(row['rank_low'])}"
        + (f" to {_whole(row['rank_high'])}" if row["rank_high"] > row["rank_low"] else "")
        for row in known.to_dict(orient="records")
    ]
    return f"Places of the {len(known):,} models after correction, all at once. {'; '.join(places)}." if places else ""


def _claim_column(row: dict[Any, Any]) -> str:
    """A heading as narrow as its cells; `CLAIM_COLUMNS` says what it stands for."""
    examples = "New examples" if row["claim"] == Claim.NEW_EXAMPLES else "This benchmark"
    return f"{examples}, {'in general' if row['physicians'] == Physicians.IN_GENERAL else 'these'}"


CLAIM_COLUMNS = (
    "New examples: of the same kind as these. In general: physicians in general, of whom these are a sample. These: the physicians who have read, "
    "each counted by how much of the reading is theirs."
)


def readers_words(n_readers: int, n_effective: float) -> str:
    """How many physicians read, and as how many who read alike they count.

    >>> readers_words(5, 1.68), readers_words(3, 3.0), readers_words(0, math.nan)
    ('5 (as 1.7)', '3', '0')
    """
    as_many = f" (as {n_effective:.1f})" if n_readers and f"{n_effective:.1f}" != f"{n_readers:.1f}" else ""
    return f"{n_readers:,}{as_many}"


def score_words(score: float, low: float, high: float) -> str:
    """A mean score with its interval, as figures draw it too: at most 1, and below 0 where undesirable things outweigh (HealthBench reports such a mean as 0).

    An interval without width is not said: it holds for a score that nothing was sampled for, and would look like certainty.

    >>> score_words(0.5432, 0.5211, 0.5649), score_words(0.5, 0.5, 0.5), score_words(math.nan, math.nan, math.nan)
    ('0.543 [0.521, 0.565]', '0.500', '–')
    >>> score_words(-0.02, -0.1, 0.05), score_words(0.98, 0.95, 1.01)
    ('−0.020 [−0.100, 0.050]', '0.980 [0.950, 1.000]')
    """
    if math.isnan(score):
        return NO_VALUE
    shown, *bounds = (_number(min(value, HIGHEST)) for value in (score, low, high))
    interval = "" if math.isnan(low) or math.isclose(low, high, abs_tol=NO_WIDTH) else f" [{', '.join(bounds)}]"
    return shown + interval


def difference_words(difference: float, low: float, high: float) -> str:
    """A difference with its interval and its sign.

    >>> difference_words(0.059, 0.021, 0.097), difference_words(-0.01, -0.04, 0.02)
    ('+0.059 [+0.021, +0.097]', '−0.010 [−0.040, +0.020]')
    """
    if math.isnan(difference):
        return NO_VALUE
    bounds = "" if math.isnan(low) else f" [{signed(low)}, {signed(high)}]"
    return signed(difference) + bounds


def chance_words(p: float) -> str:
    """A p value, never with more digits than it deserves.

    >>> chance_words(0.0002), chance_words(0.0314), chance_words(0.42), chance_words(math.nan)
    ('< 0.001', '0.031', '0.42', '–')
    """
    if math.isnan(p):
        return NO_VALUE
    if p < SMALLEST_SAID:
        return f"< {SMALLEST_SAID}"
    return f"{p:.3f}" if p < TWO_DIGITS_FROM else f"{p:.2f}"


SMALLEST_SAID, TWO_DIGITS_FROM = 0.001, 0.1


def worth_words(worth: float, low: float, high: float) -> str:
    """How many reads the judge saved.

    >>> worth_words(412.4, 150.2, 680.0), worth_words(-12.0, -80.0, 51.0), worth_words(30.0, -20.0, 90.0)
    ('412 [150, 680]', 'none [−80, 51]', '30 [−20, 90]')
    >>> worth_words(-0.2, -0.4, -0.0), worth_words(0.4, -0.3, 2.2)
    ('none', 'none [0, 2]')
    """
    if math.isnan(worth):
        return NO_VALUE
    bounds = "" if math.isnan(low) or round(low) == round(high) == 0 else f" [{_whole(low)}, {_whole(high)}]"
    return (_whole(worth) if round(worth) > 0 else NOTHING) + bounds


def finding(scores: pd.DataFrame, differences: pd.DataFrame, where: str) -> str:
    """What the corrected scores say, in a sentence: who is ahead, whether the best two can be told apart, or how much must still be read.

    The scores are `corrected_scores` of one data set; the differences are one row a pair of models, either way round: model_1, model_2, difference (of
    the first minus the second), low, high, p_holm. `where` is what the intervals of both hold for (`claim_words`).
    """
    known = scores.loc[scores["enough"].astype(bool) & scores["corrected"].notna()]
    best = known.sort_values("corrected", ascending=False, kind="stable")
    lacking = scores.drop(known.index)
    if best.empty:
        return _too_little(scores)
    first = best.iloc[0]
    if len(best) == 1:
        words = score_words(first["corrected"], first["corrected_low"], first["corrected_high"])
        return _joined(f"{first['model']} scores {words} after correction ({where}).", lacking)
    second = best.iloc[1]
    difference, low, high, p_holm = _between(differences, first["model"], second["model"])
    if low > 0:
        words = f"{_number(difference)} [{_number(low)}, {_number(high)}]"
        chance = f"; with as many pairs as here that may be chance (p {chance_words(p_holm)} by Holm)"
        ahead = f"{first['model']} is ahead of {second['model']} by {words} after correction ({where})"
        return _joined(f"{ahead}{chance if p_holm >= CLEAR_BELOW else ''}.", lacking)
    words = difference_words(difference, low, high)
    models = f"{first['model']} and {second['model']}"
    if words == NO_VALUE:
        return _joined(
            f"{models} have too few examples in common to be told apart after correction ({where}).", lacking
        )
    apart = f"{models} cannot be told apart yet after correction ({where}): the difference is {words}."
    return _joined(apart, lacking)


def unreached_words(scores: pd.DataFrame) -> str:
    """Which models have responses that no drawing could have taken, and what that means for their scores; empty where none has."""
    beyond = scores.loc[scores["n_unreached"].gt(0)]
    if beyond.empty:
        return ""
    parts = [f"{row.n_unreached:,} of {row.n_responses:,} responses of {row.model}" for row in beyond.itertuples()]
    return (
        f"Nothing was read from a part that reads could not reach: {', '.join(parts)} fit no drawing. Scores of physicians and corrected scores "
        "hold for such responses only as far as the judge errs on them as it does on the others."
    )


def _between(differences: pd.DataFrame, first: str, second: str) -> tuple[float, float, float, float]:
    """Difference, low and high of the first minus the second, and its p."""
    for row in differences.to_dict(orient="records"):
        if {row["model_1"], row["model_2"]} == {first, second}:
            pair = row if row["model_1"] == first else reverse(row)
            return pair["difference"], pair["low"], pair["high"], pair["p_holm"]
    return math.nan, math.nan, math.nan, math.nan


def reverse(row: dict[Any, Any]) -> dict[Any, Any]:
    """The row of a pair the other way round."""
    names = {"model_1": row["model_2"], "model_2": row["model_1"]}
    return row | names | {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}


def _too_little(scores: pd.DataFrame) -> str:
    unlabelled = scores["n_items"].eq(0)
    needed = scores.loc[~unlabelled, "n_needed"]
    if scores["n_read"].eq(0).all():
        start = (
            "No physician has read anything yet that was drawn at random, so all scores here are the judge's opinion."
        )
    else:
        start = "Too little has been read to correct the judge yet."
    if needed.empty:
        return start
    low, high = math.ceil(needed.min()), math.ceil(needed.max())
    many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    start = f"{start} About {many} more criteria of each model's responses must be read."
    return _joined(start, scores.loc[unlabelled])


def _joined(sentence: str, lacking: pd.DataFrame) -> str:
    unlabelled = lacking["n_items"].eq(0)
    if not unlabelled.all():
        sentence = f"{sentence} Too little has been read of {listed(lacking.loc[~unlabelled, 'model'])}."
    if unlabelled.any():
        sentence = f"{sentence} No response of {listed(lacking.loc[unlabelled, 'model'], 'or')} is {UNLABELLED}."
    return sentence


def _number(value: float) -> str:
    return decimal(value, 3)


def signed(value: float) -> str:
    """A number of points of score with its sign."""
    return decimal(value, 3, signed=True)


def _whole(value: float) -> str:
    return decimal(value, 0)


def leader_first(differences: pd.DataFrame, model: str | None = None) -> pd.DataFrame:
    """The pairs turned so that the first is ahead, the clearest lead first; or so that one model comes first, and only its pairs.

    The columns are model_1, model_2, difference, low, high, sim_low and sim_high where they are, and further ones that do not depend on the direction.
    """
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
    """How often one model beats the other, in the judge's opinion.

    >>> wins = WinRate(0.62, 0.54, 0.7, n_examples=148, n_pairs=150, n_ties=2, n_wins=92, n_unscored=0, n_unlike=0)
    >>> win_sentence(wins, "Alder", "Briar", "Magpie")
    "In Magpie's opinion Alder beats Briar on 62 % [54 %, 70 %] of the 148 conversations that are decided; 2 pairs of responses score the same."
    """
    if not wins.n_examples:
        return f"In {judge}'s opinion {first} and {second} score the same on every conversation."
    ties = "one pair of responses scores" if wins.n_ties == 1 else f"{wins.n_ties:,} pairs of responses score"
    return (
        f"In {judge}'s opinion {first} beats {second} on {100 * wins.share:.0f} % {interval_words(wins.low, wins.high)} of the "
        f"{wins.n_examples:,} conversations that are decided; {ties} the same."
    )


def alike_sentence(alike: WinRate) -> str:
    """The same where both responses are about as long.

    >>> alike = WinRate(0.58, 0.4, 0.74, n_examples=31, n_pairs=33, n_ties=2, n_wins=18, n_unscored=0, n_unlike=117)
    >>> alike_sentence(alike)
    'Of responses of like length: on 58 % [40 %, 74 %] of 31; 117 pairs are left out because their lengths differ.'
    """
    left = (
        "one pair is left out because its lengths differ"
        if alike.n_unlike == 1
        else f"{alike.n_unlike:,} pairs are left out because their lengths differ"
    )
    if not alike.n_examples:
        return f"No pair of responses of like length is decided; {left}."
    return f"Of responses of like length: on {100 * alike.share:.0f} % {interval_words(alike.low, alike.high)} of {alike.n_examples:,}; {left}."
