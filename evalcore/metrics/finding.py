"""Scores and differences in words: the finding above the plot, the cells of the table."""

import math

import pandas as pd

from evalcore.metrics.intervals import NO_VALUE, interval_words
from evalcore.metrics.win_rate import WinRate
from evalcore.metrics.wording import listed

NOTHING = "nothing"
UNLABELLED = "labelled by every chosen judge on every criterion"
NO_WIDTH = 1e-9
CLEAR_BELOW = 0.05


def score_words(score: float, low: float, high: float) -> str:
    """A score with its interval as screens say it: clipped to [0, 1]; the raw mean where clipping would hide it.

    An interval without width is not said: it holds for a score that nothing was sampled for, and would look like certainty.

    >>> score_words(0.5432, 0.5211, 0.5649), score_words(0.5, 0.5, 0.5), score_words(math.nan, math.nan, math.nan)
    ('0.543 [0.521, 0.565]', '0.500', '–')
    >>> score_words(-0.02, -0.1, 0.05)
    '0.000, raw −0.020 [−0.100, 0.050]'
    """
    if math.isnan(score):
        return NO_VALUE
    values = (score, low, high)
    shown, *bounds = (_number(value) if score < 0 else f"{min(max(value, 0.0), 1.0):.3f}" for value in values)
    interval = "" if math.isnan(low) or math.isclose(low, high, abs_tol=NO_WIDTH) else f" [{', '.join(bounds)}]"
    return ("0.000, raw " if score < 0 else "") + shown + interval


def difference_words(difference: float, low: float, high: float) -> str:
    """A difference with its interval and its sign.

    >>> difference_words(0.059, 0.021, 0.097), difference_words(-0.01, -0.04, 0.02)
    ('+0.059 [+0.021, +0.097]', '−0.010 [−0.040, +0.020]')
    """
    if math.isnan(difference):
        return NO_VALUE
    bounds = "" if math.isnan(low) else f" [{_signed(low)}, {_signed(high)}]"
    return _signed(difference) + bounds


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
    """How many further reads the judge was worth.

    >>> worth_words(412.4, 150.2, 680.0), worth_words(-12.0, -80.0, 51.0), worth_words(30.0, -20.0, 90.0)
    ('412 [150, 680]', 'nothing [−80, 51]', '30 [−20, 90]')
    """
    if math.isnan(worth):
        return NO_VALUE
    bounds = "" if math.isnan(low) else f" [{_whole(low)}, {_whole(high)}]"
    return (_whole(worth) if round(worth) > 0 else NOTHING) + bounds


def finding(scores: pd.DataFrame, differences: pd.DataFrame, where: str) -> str:
    """What the corrected scores say, in a sentence: who is ahead, whether the best two can be told apart, or how much must still be read.

    Args:
        scores: As `corrected.corrected_scores` gives them, of one data set: model, corrected, corrected_low, corrected_high, enough,
            n_needed, n_read, n_items (0: no response that every chosen judge has labelled).
        differences: One row a pair of models, either way round: model_1, model_2, difference (of the first minus the second), low, high,
            p_holm.
        where: What it holds for, e.g. "on this benchmark".
    """
    known = scores.loc[scores["enough"].astype(bool) & scores["corrected"].notna()]
    best = known.sort_values("corrected", ascending=False, kind="stable")
    lacking = scores.drop(known.index)
    if best.empty:
        return _too_little(scores)
    first = best.iloc[0]
    if len(best) == 1:
        words = score_words(first["corrected"], first["corrected_low"], first["corrected_high"])
        return _joined(f"{first['model']} scores {words} {where}, after correction.", lacking)
    second = best.iloc[1]
    difference, low, high, p_holm = _between(differences, first["model"], second["model"])
    if low > 0:
        words = f"{_number(difference)} [{_number(low)}, {_number(high)}]"
        ahead = f"{first['model']} is ahead of {second['model']} by {words} {where}, after correction"
        chance = f"; with as many pairs as here that may be chance (p {chance_words(p_holm)} by Holm)"
        return _joined(f"{ahead}{chance if p_holm >= CLEAR_BELOW else ''}.", lacking)
    words = difference_words(difference, low, high)
    apart = f"{first['model']} and {second['model']} cannot be told apart yet {where}, after correction: the difference is {words}."
    return _joined(apart, lacking)


def unreached_words(scores: pd.DataFrame) -> str:
    """Which models have responses that no drawing could have taken, and what that means for their scores; empty where none has.

    Args:
        scores: As `corrected.corrected_scores` gives them, of one data set.
    """
    beyond = scores.loc[scores["n_unreached"].gt(0)]
    if beyond.empty:
        return ""
    said = [f"{row.n_unreached:,} of {row.n_responses:,} responses of {row.model}" for row in beyond.itertuples()]
    return (
        f"Nothing was read from a part that reads could not reach: {', '.join(said)} fit no drawing. Scores of physicians and corrected scores "
        "hold for such responses only as far as the judge errs on them as it does on the others."
    )


def _between(differences: pd.DataFrame, first: str, second: str) -> tuple[float, float, float, float]:
    """Difference, low and high of the first minus the second, and its p."""
    for row in differences.to_dict(orient="records"):
        if (row["model_1"], row["model_2"]) == (first, second):
            return row["difference"], row["low"], row["high"], row["p_holm"]
        if (row["model_1"], row["model_2"]) == (second, first):
            return -row["difference"], -row["high"], -row["low"], row["p_holm"]
    return math.nan, math.nan, math.nan, math.nan


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
    return f"{value:.3f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _whole(value: float) -> str:
    return f"{value:,.0f}".replace("-", "−")


def leader_first(differences: pd.DataFrame, model: str | None = None) -> pd.DataFrame:
    """The pairs turned so that the first is ahead, the clearest lead first; or so that one model comes first, and only its pairs.

    Args:
        differences: model_1, model_2, difference, low, high, and further columns that do not depend on the direction.
        model: Only pairs with it.
    """
    known = differences
    if model is not None:
        known = differences.loc[differences["model_1"].eq(model) | differences["model_2"].eq(model)]
    turned = known["difference"].lt(0) if model is None else known["model_2"].eq(model)
    table = known.assign(
        model_1=known["model_1"].where(~turned, known["model_2"]),
        model_2=known["model_2"].where(~turned, known["model_1"]),
        difference=known["difference"].where(~turned, -known["difference"]),
        low=known["low"].where(~turned, -known["high"]),
        high=known["high"].where(~turned, -known["low"]),
    )
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


def correlation_words(value: float) -> str:
    """A correlation, with two digits.

    >>> correlation_words(-0.213), correlation_words(math.nan)
    ('−0.21', '–')
    """
    return NO_VALUE if math.isnan(value) else f"{value:+.2f}".replace("-", "−")
