"""Triage in words: the findings above the figures, the cells of the tables, and why a value is missing; for the pages and the command line.

How often a model is exact is never said without how often it is too high and too low.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import Format
from evalcore.triage.data import LEVELS
from evalcore.triage.rates import Measure
from evalcore.triage.settings import METRICS

Row = Mapping[Any, Any]
NAMES: Mapping[str, str] = METRICS | {
    "constituent": "One of the two letters",
    "upper_share": "The more severe letter, of these",
    "outside_high": "Above both letters",
    "outside_low": "Below both letters",
}
"""Every measure by name, as heads of tables."""
MEANINGS: Mapping[str, str] = {
    "exact": "The answer is the level that the case needs. Exact, too high and too low add up to all cases.",
    "over": "The answer lies above the level that the case needs, of all cases.",
    "under": "The answer lies below the level that the case needs, of all cases.",
    "within_one": "The answer is at most one level off, either way.",
    "over_possible": "Too high, of the cases where that is possible: those that need A, B or C.",
    "under_possible": "Too low, of the cases where that is possible: those that need B, C or D.",
    "missed_emergencies": "Cases that need D and were sent to any lower level, of the emergencies.",
    "severe_over": "Two levels or more too high, of all cases.",
    "severe_under": "Two levels or more too low, of all cases.",
    "sent_home": "Cases that need D and were answered A, of the emergencies.",
    "macro_f1": "Mean over the levels of the harmonic mean of precision and recall.",
    "kappa": "Agreement with the gold beyond chance; every error weighs the same.",
    "kappa_linear": "Agreement beyond chance; an error weighs its levels.",
    "kappa_quadratic": "Agreement beyond chance; an error weighs the square of its levels.",
    "mean_signed": "Levels too high (above 0) or too low (below 0) on average; errors of both directions cancel out.",
    "expected_harm": "Levels too low and too high, each with its weight, a case.",
    "constituent": "The answer is one of the two letters that the case lies between; either is right.",
    "upper_share": "Of the answers with one of the two letters, the more severe one.",
    "outside_high": "The answer lies above both letters.",
    "outside_low": "The answer lies below both letters.",
}
_ROUNDING = 1e-6
WEIGHTED = 0.005
"""A share this far from its count is said to be weighted."""
_LETTERS = {level: word.value for word, level in LEVELS.items() if not math.isnan(level)}


def level_letter(level: float) -> str:
    """A level as screens say it.

    >>> level_letter(4.0), level_letter(1.5), level_letter(float("nan"))
    ('D', 'A/B', '–')
    """
    return _LETTERS.get(level, NO_VALUE)


def rate_words(row: Row) -> str:
    """A rate with its count and interval; where it has none, why.

    >>> rate_words({"k": 4, "n": 12, "value": 4 / 12, "low": 0.138, "high": 0.609, "reason": ""})
    '33 % (4/12) [14 %, 61 %]'
    >>> nan = float("nan")
    >>> rate_words({"k": 0, "n": 0, "value": nan, "low": nan, "high": nan, "reason": "no case is an emergency"})
    '– (no case is an emergency)'
    """
    if math.isnan(row["value"]):
        return f"{NO_VALUE} ({row['reason']})"
    return f"{_share(row)} {interval_words(row['low'], row['high'])}"


def short_reason(reason: str) -> str:
    """How much is lacking, without which cases: for a cell.

    >>> short_reason("27 more responses to be read, 7 of them to as many other cases")
    '27 more to read'
    >>> short_reason("no case is an emergency")
    'no case is an emergency'
    """
    number, _, rest = reason.partition(" more response")
    return f"{number} more to read" if rest else reason


def count_words(k: float) -> str:
    """A count: whole, but for the halves that a read between two levels gives each of them.

    >>> count_words(1200.0), count_words(2.5), count_words(7 / 3), count_words(float("nan"))
    ('1,200', '2.5', '2.3', '–')
    """
    if math.isnan(k):
        return NO_VALUE
    return f"{k:,.0f}" if abs(k - round(k)) < _ROUNDING else f"{k:,.1f}"


def _share(row: Row) -> str:
    if math.isnan(row["k"]):  # an estimate
        return percent_words(row["value"])
    of = f"{count_words(row['k'])}/{count_words(row['n'])}"
    is_weighted = abs(row["value"] * row["n"] - row["k"]) > WEIGHTED * row["n"]
    return f"{percent_words(row['value'])} ({'weighted; ' if is_weighted else ''}{of})"


def score_words(row: Row, name: str) -> str:
    """A score of `triage.summary`, or harm, with its interval; where it has none, why.

    >>> score_words({"kappa": 0.6569, "kappa_low": 0.6049, "kappa_high": 0.7036, "kappa_reason": ""}, "kappa")
    '0.66 [0.60, 0.70]'
    >>> nan = float("nan")
    >>> score_words({"kappa": 1.0, "kappa_low": nan, "kappa_high": nan, "kappa_reason": "fewer than 5 cases"}, "kappa")
    '1.00 (fewer than 5 cases)'
    """
    value, low, high, reason = (row[f"{name}{end}"] for end in ("", "_low", "_high", "_reason"))
    return number_words(value, low, high, reason)


def number_words(value: float, low: float, high: float, reason: str = "") -> str:
    """A number with its interval; where it has none, why.

    >>> number_words(0.101, 0.05, 0.15), number_words(-0.184, -0.24, -0.13)
    ('0.10 [0.05, 0.15]', '−0.18 [−0.24, −0.13]')
    """
    said = decimal(value)
    if math.isnan(low):
        return f"{said} ({reason})" if reason else said
    return f"{said} [{decimal(low)}, {decimal(high)}]"


def exact_words(rates: Mapping[str, Row]) -> str:
    """How often exact, with both directions of the errors and their intervals.

    Args:
        rates: Rows of `triage.rates` of one model and format, by measure.
    """
    exact, over, under = (rates[name] for name in (Measure.EXACT, Measure.OVER, Measure.UNDER))
    if math.isnan(exact["value"]):
        return f"{NO_VALUE} ({exact['reason']})"
    high, low = (f"{_share(row)} {interval_words(row['low'], row['high'])}" for row in (over, under))
    return f"exact {_share(exact)}, too high {high}, too low {low}"


def by_model(rates: pd.DataFrame) -> dict[tuple[str, str], dict[str, Row]]:
    """Rates by model and format, then by measure."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rates.to_dict(orient="records"):
        found.setdefault((str(row["model"]), str(row["format"])), {})[str(row["measure"])] = row
    return found


def findings(
    rates: pd.DataFrame,
    flips: pd.DataFrame | None = None,
    *,
    about: str | None = None,
    by_physicians: bool = False,
) -> list[str]:
    """What stands out, as sentences: the emergencies that are missed, who errs which way, and what the format changes.

    The first sentence is of all models, whichever is looked at: where one of them misses an emergency, none is said to miss none. A direction is told where
    the intervals of too high and too low lie apart, which is stricter than an interval of their difference that excludes 0.

    Args:
        rates: As `triage.rates` gives them, of all models; of `triage_bases.corrected` too, which are estimates without counts.
        flips: As `triage_formats.flip_counts` gives them; without them nothing is said of the formats.
        about: The model that is looked at: directions and formats are told of it alone, and its own missed emergencies after those of all. None: all.
        by_physicians: The rates are those of `triage_physicians`, which count responses.
    """
    of = by_model(rates)
    mine = {key: rows for key, rows in of.items() if about in (None, key[0])}
    if all(math.isnan(rows[Measure.EXACT]["value"]) for rows in mine.values()):
        if by_physicians:
            return ["No physician here has read a drawn response to a clear case yet."]
        if mine and all(math.isnan(rows[Measure.EXACT]["n"]) for rows in mine.values()):
            return ["Too little was read of every model for a corrected share."]
        return ["No case has both a clear gold and a prediction yet, so there is nothing to hold the answers against."]
    estimated = math.isnan(next(iter(mine.values()))[Measure.EXACT]["k"])
    told = _emergencies_estimated if estimated else _emergencies_read if by_physicians else _emergencies
    said = list(dict.fromkeys([told(of), *([told(mine)] if about else [])]))
    said += [sentence for word in Format for sentence in _direction(mine, word, about)]
    if flips is not None and about is not None:
        flips = flips.loc[flips["model"].astype(str).eq(about)]
    return said + ([_formats(flips)] if flips is not None and len(flips) else [])


def _missed(of: Mapping[tuple[str, str], Mapping[str, Row]]) -> dict[tuple[str, str], Row]:
    """Missed emergencies of each model and format that has emergencies, most often missed first."""
    every = {key: rows[Measure.MISSED_EMERGENCIES] for key, rows in of.items()}
    known = {key: row for key, row in every.items() if not math.isnan(row["value"])}
    return dict(sorted(known.items(), key=lambda item: (item[1]["value"], item[1]["n"]), reverse=True))


def _who(missed: Mapping[tuple[str, str], Row], of: Mapping[tuple[str, str], Any]) -> str:
    """Of whom it is said that no emergency is missed: nobody more than those who were given one."""
    models = {model for model, _ in missed}
    if len(models) == 1:
        words = {word for _, word in missed}
        return f"{next(iter(models))}{f', in {next(iter(words))},' if len(words) == 1 and len(of) > 1 else ''}"
    return "" if len(missed) == len(of) else " with an answer to one"


def _emergencies_read(of: Mapping[tuple[str, str], Mapping[str, Row]]) -> str:
    missed = _missed(of)
    if not missed:
        return "None of the responses that physicians read is to an emergency, so nothing can be said of missed ones."
    (model, asked), worst = next(iter(missed.items()))
    if not worst["k"]:
        n = sum(row["n"] for row in missed.values())
        whose = f" of {model}" if len({name for name, _ in missed}) == 1 else ""
        most = max(row["high"] for row in missed.values())
        excluded = _not_excluded(most, len(missed))
        return f"Physicians read none of {counted(round(n), 'response')}{whose} to emergencies as asking for less than that; {excluded}."
    home = of[model, asked][Measure.SENT_HOME]["k"]
    share = f"{percent_words(worst['value'])} {interval_words(worst['low'], worst['high'])}"
    at_home = f", {count_words(home)} of them as home care" if home else ""
    return (
        f"In {asked} physicians read {count_words(worst['k'])} of {counted(round(worst['n']), 'response')} of {model} to emergencies as asking for less"
        f" than that ({share}){at_home}."
    )


def _emergencies(of: Mapping[tuple[str, str], Mapping[str, Row]]) -> str:
    missed = _missed(of)
    if not missed:
        return "None of the cases that were answered is an emergency, so nothing can be said of missed ones."
    (model, asked), worst = next(iter(missed.items()))
    if not worst["k"]:
        least, most = min(row["n"] for row in missed.values()), max(row["n"] for row in missed.values())
        n = f"{least:,} to {most:,} emergencies" if least < most else counted(most, "emergency", "emergencies")
        who = _who(missed, of)
        one = len({name for name, _ in missed}) == 1
        excluded = _not_excluded(max(row["high"] for row in missed.values()), len(missed))
        head = f"{who} sends none of {n}" if one else f"No model{who} sends any of {n}"
        return f"{head} to a lower level; {excluded}."
    home = of[model, asked][Measure.SENT_HOME]["k"]
    share = f"{percent_words(worst['value'])} {interval_words(worst['low'], worst['high'])}"
    at_home = f", {home:,} of them home" if home else ""
    return f"In {asked} {model} sends {worst['k']:,} of {counted(worst['n'], 'emergency', 'emergencies')} to a lower level ({share}){at_home}."


def _emergencies_estimated(of: Mapping[tuple[str, str], Mapping[str, Row]]) -> str:
    missed = _missed(of)
    if not missed:
        return "Of no model enough answers to emergencies were read, so nothing can be said of missed ones after correction."
    (model, asked), worst = next(iter(missed.items()))
    share = f"{percent_words(worst['value'])} {interval_words(worst['low'], worst['high'])}"
    lacking = (
        f"; in {len(of) - len(missed)} of {len(of)} pairs of a model and a format too little was read to say"
        if len(missed) < len(of)
        else ""
    )
    return f"In {asked} {model} sends {share} of emergencies to a lower level after correction{lacking}."


def _not_excluded(high: float, n: int) -> str:
    """What none of a few leaves open: the upper bound, of several the widest."""
    return f"that cannot exclude up to {percent_words(high)}{' in each model and format' if n > 1 else ''}"


def leans(rates: Mapping[str, Row]) -> int:
    """Which way one model errs in one format: 1 too high, -1 too low, 0 where the intervals of the two shares meet, so that no direction shows.

    Intervals that lie apart are stricter than one of the difference: its standard error is never more than the sum of theirs.
    """
    over, under = rates[Measure.OVER], rates[Measure.UNDER]
    return int(over["low"] > under["high"]) - int(under["low"] > over["high"])


def _direction(of: Mapping[tuple[str, str], Mapping[str, Row]], word: Format, about: str | None) -> list[str]:
    """Of one format the models whose errors show a direction, the widest gap first; of one that is asked for also that none shows."""
    mine = {key[0]: rows for key, rows in of.items() if key[1] == word and not math.isnan(rows[Measure.EXACT]["value"])}
    if not mine:
        return []
    ways = {model: leans(rows) for model, rows in mine.items()}
    gap = {model: abs(rows[Measure.OVER]["value"] - rows[Measure.UNDER]["value"]) for model, rows in mine.items()}
    shown = sorted((model for model in mine if ways[model]), key=lambda model: -gap[model])
    if shown:
        return [
            f"In {word} {model} leans too {'high' if ways[model] > 0 else 'low'}: {exact_words(mine[model])}."
            for model in shown
        ]
    if about is None and len(mine) > 1:
        return [f"In {word} no model's errors show a direction: the intervals of too high and too low meet."]
    model, rows = next(iter(mine.items()))
    return [f"In {word} {model}'s errors show no direction: {exact_words(rows)}."]


def _formats(flips: pd.DataFrame) -> str:
    known = flips.loc[flips["n"].gt(0)]
    if known.empty:
        return "No case with a clear gold has an answer of one model in both formats, so the formats cannot be held against each other."
    row = known.iloc[int(known["difference"].abs().to_numpy().argmax())]
    return flip_sentence(row.to_dict())


def flip_sentence(row: Row) -> str:
    """What the format does to one model's answers."""
    head = f"The format changes {row['model']}'s answer on {_share_of(row['n_flipped'], row['n_both'], row['flipped'], 'case')}"
    ways = [
        f"{row[name]:,} {words}"
        for name, words in (("n_lower", "lower in conversation"), ("n_higher", "higher"))
        if row[name]
    ]
    across = ""
    if row["n_crossing"]:
        across = f"; {row['n_crossing']:,} {'crosses' if row['n_crossing'] == 1 else 'cross'} the line to an emergency"
    if not row["n_flipped"]:
        head, across = (
            f"The format never changes {row['model']}'s answer ({counted(row['n_both'], 'case')} in both)",
            "",
        )
    said = f"{head}{': ' + ' and '.join(ways) if ways else ''}{across}."
    if math.isnan(row["difference"]):
        return f"{said} Under-triage cannot be compared: {row['reason']}."
    return (
        f"{said} On the same {counted(row['n'], 'case')} with a clear gold it is too low on {row['under_qa']:,} in qa and on {row['under_conversation']:,} in"
        f" conversation, a difference of {points(row['difference'])} [{points(row['low'])}, {points(row['high'])}] percentage points."
    )


def _share_of(k: int, n: int, share: float, one: str) -> str:
    return f"{k:,} of {counted(n, one)} ({percent_words(share)})"


def elsewhere_words(n: int) -> str:
    """Responses that belong to neither format, for the screen.

    >>> elsewhere_words(1)
    '1 response to these cases belongs to neither format, qa or conversation: it counts nowhere here.'
    """
    belong, they = ("belongs", "it counts") if n == 1 else ("belong", "they count")
    return (
        f"{counted(n, 'response')} to these cases {belong} to neither format, qa or conversation: {they} nowhere here."
    )


def points(share: float) -> str:
    """A difference of shares in percentage points, with its sign.

    >>> points(0.1025), points(-0.004), points(-0.18), points(float("nan"))
    ('+10', '0', '−18', '–')
    """
    if math.isnan(share):
        return NO_VALUE
    rounded = round(100 * share)
    return f"{rounded:+d}".replace("-", "−") if rounded else "0"
