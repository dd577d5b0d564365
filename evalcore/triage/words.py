"""Triage in words: the findings above the figures, the cells of the tables, and why a value is missing.

How often a model is exact is never said without how often it is too high and too low.
"""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words, share_words, signed_points
from evalcore.stats.wording import counted, decimal
from evalcore.study.schema import Format
from evalcore.triage.data import LABELS
from evalcore.triage.rates import Measure

Row = Mapping[Any, Any]
Rates = Mapping[tuple[str, str], Mapping[str, Row]]
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
}
_ROUNDING, _WEIGHTED = 1e-6, 0.005
"""A share this far from its count is said to be weighted."""


def level_letter(level: float) -> str:
    """A level as screens say it.

    >>> level_letter(4.0), level_letter(1.5), level_letter(float("nan"))
    ('D', 'A/B', '–')
    """
    return LABELS.get(level, NO_VALUE)


def rate_words(row: Row) -> str:
    """A rate with its count and interval, an estimate without a count; where it has none, why.

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
    is_weighted = abs(row["value"] * row["n"] - row["k"]) > _WEIGHTED * row["n"]
    weighted = "weighted; " if is_weighted else ""
    return f"{percent_words(row['value'])} ({weighted}{count_words(row['k'])}/{count_words(row['n'])})"


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
    """How often exact, with both directions of the errors and their intervals; of the rates of one model and format."""
    exact = rates[Measure.EXACT]
    if math.isnan(exact["value"]):
        return f"{NO_VALUE} ({exact['reason']})"
    return (
        f"exact {_share(exact)}, too high {rate_words(rates[Measure.OVER])}, too low {rate_words(rates[Measure.UNDER])}"
    )


def by_model(rates: pd.DataFrame) -> dict[tuple[str, str], dict[str, Row]]:
    """Rates by model and format, then by measure."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rates.to_dict(orient="records"):
        found.setdefault((str(row["model"]), str(row["format"])), {})[str(row["measure"])] = row
    return found


def findings(
    rates: pd.DataFrame, flips: pd.DataFrame | None = None, *, about: str | None = None, by_physicians: bool = False
) -> list[str]:
    """What stands out, as sentences: the emergencies that are missed, who errs which way, and what the format changes.

    The first sentence is of all models, whichever is looked at: where one of them misses an emergency, none is said to
    miss none. `flips`: `cases.flip_counts`, or nothing is said of the formats. `about`: Directions and formats are told
    of this model alone.
    """
    of = by_model(rates)
    mine = {key: rows for key, rows in of.items() if about in (None, key[0])}
    if all(math.isnan(rows[Measure.EXACT]["value"]) for rows in mine.values()):
        if by_physicians:
            return ["No physician here has read a drawn response to a clear case yet."]
        if mine and all(math.isnan(rows[Measure.EXACT]["n"]) for rows in mine.values()):
            return ["Too little was read of every model for a corrected share."]
        return ["No case has both a clear gold and a prediction yet, so there is nothing to hold the answers against."]
    whose = [of, *([mine] if about else [])]
    sentences = list(dict.fromkeys(emergencies(rows, by_physicians=by_physicians) for rows in whose))
    sentences += [sentence for word in Format for sentence in directions(mine, word, about)]
    if flips is None:
        return sentences
    return sentences + widest_flip(flips if about is None else flips.loc[flips["model"].astype(str).eq(about)])


def widest_flip(flips: pd.DataFrame) -> list[str]:
    """What the format does to the model whose under-triage it changes most."""
    both = flips.loc[flips["n"].gt(0)]
    if len(both):
        return [flip_sentence(both.iloc[int(both["difference"].abs().to_numpy().argmax())].to_dict())]
    none = "No case with a clear gold has an answer of one model in both formats, so these cannot be compared."
    return [none] if len(flips) else []


def emergencies(of: Rates, *, by_physicians: bool = False) -> str:
    """Which model misses most emergencies; or how many may be missed where none was."""
    every = {key: rows[Measure.MISSED_EMERGENCIES] for key, rows in of.items()}
    missed = {key: row for key, row in every.items() if not math.isnan(row["value"])}
    estimated = all(math.isnan(rows[Measure.EXACT]["k"]) for rows in of.values())
    if not missed:
        corrected = "Of no model enough answers to emergencies were read, so nothing can be said of missed ones after correction."
        of_what = "responses that physicians read is to" if by_physicians else "cases that were answered is"
        none = f"None of the {of_what} an emergency, so nothing can be said of missed ones."
        return corrected if estimated else none
    (model, asked), worst = max(missed.items(), key=lambda item: (item[1]["value"], item[1]["n"]))
    share = f"{percent_words(worst['value'])} {interval_words(worst['low'], worst['high'])}"
    if estimated:
        lacking = f"; in {len(of) - len(missed)} of {len(of)} pairs of a model and a format too little was read to say"
        return f"In {asked} {model} sends {share} of emergencies to a lower level after correction{lacking if len(missed) < len(of) else ''}."
    k, n, home = worst["k"], worst["n"], of[model, asked][Measure.SENT_HOME]["k"]
    if k:
        at_home, level = (f", {home:,} of them home" if home else ""), "to a lower level"
        who = f"{model} sends {k:,} of {counted(n, 'emergency', 'emergencies')}"
        if by_physicians:
            at_home = f", {count_words(home)} of them as home care" if home else ""
            who = f"physicians read {count_words(k)} of {counted(round(n), 'response')} of {model} to emergencies"
            level = "as asking for less than that"
        return f"In {asked} {who} {level} ({share}){at_home}."
    most = percent_words(max(row["high"] for row in missed.values()))
    excluded = f"that cannot exclude up to {most}{' in each model and format' if len(missed) > 1 else ''}"
    sizes = [row["n"] for row in missed.values()]
    is_one = len({name for name, _ in missed}) == 1
    if by_physicians:
        whose = f" of {model}" if is_one else ""
        return f"Physicians read none of {counted(round(sum(sizes)), 'response')}{whose} to emergencies as asking for less than that; {excluded}."
    several = f"{min(sizes):,} to {max(sizes):,} emergencies"
    of_how_many = several if min(sizes) < max(sizes) else counted(max(sizes), "emergency", "emergencies")
    if is_one:
        where = f", in {asked}," if len({word for _, word in missed}) == 1 and len(of) > 1 else ""
        return f"{model}{where} sends none of {of_how_many} to a lower level; {excluded}."
    who = "" if len(missed) == len(of) else " with an answer to one"  # nobody more than those who were given one
    return f"No model{who} sends any of {of_how_many} to a lower level; {excluded}."


def directions(of: Rates, word: Format, about: str | None = None) -> list[str]:
    """Which way models err in one format: told where the intervals of both shares lie apart, the widest gap first."""
    mine = {key[0]: rows for key, rows in of.items() if key[1] == word and not math.isnan(rows[Measure.EXACT]["value"])}
    shown = []
    for model, rows in mine.items():
        over, under = rows[Measure.OVER], rows[Measure.UNDER]
        ways = ("over-triages", "under-triages")
        for way, other, more, less in ((*ways, over, under), (*ways[::-1], under, over)):
            if more["low"] > less["high"]:
                sentence = f"In {word} {model} {way} more often than it {other}: {exact_words(rows)}."
                shown.append((abs(over["value"] - under["value"]), sentence))
    if shown or not mine:
        return [sentence for _, sentence in sorted(shown, key=lambda one: -one[0])]
    if about is None and len(mine) > 1:
        return [f"In {word} no model's errors show a direction: the intervals of too high and too low meet."]
    model, rows = next(iter(mine.items()))
    return [f"In {word} {model}'s errors show no direction: {exact_words(rows)}."]


def flip_sentence(row: Row) -> str:
    """What the format does to one model's answers."""
    n_both = counted(row["n_both"], "case")
    sentence = f"The format never changes {row['model']}'s answer ({n_both} in both)."
    if row["n_flipped"]:
        ways = {"n_lower": "lower in conversation", "n_higher": "higher"}
        how = " and ".join(f"{row[name]:,} {words}" for name, words in ways.items() if row[name])
        cross = "crosses" if row["n_crossing"] == 1 else "cross"
        across = f"; {row['n_crossing']:,} {cross} the line to an emergency" if row["n_crossing"] else ""
        share = f"{row['n_flipped']:,} of {n_both} ({percent_words(row['flipped'])})"
        sentence = f"The format changes {row['model']}'s answer on {share}{': ' if how else ''}{how}{across}."
    if math.isnan(row["difference"]):
        return f"{sentence} Under-triage cannot be compared: {row['reason']}."
    return (
        f"{sentence} On the same {counted(row['n'], 'case')} with a clear gold it is too low on {row['under_qa']:,} "
        f"in qa and on {row['under_conversation']:,} in conversation, a difference of "
        f"{signed_points(row['difference'])} [{signed_points(row['low'])}, {signed_points(row['high'])}] percentage "
        "points."
    )


def sure_words(ambiguous: pd.DataFrame) -> str:
    """Whose samples agree most often where physicians do not, from `rates.ambiguous`; empty where nothing says so."""
    known = ambiguous.loc[ambiguous["sure"].notna()]
    if known.empty:
        return ""
    row = known.iloc[int(known["sure"].to_numpy().argmax())]
    sure = share_words(row["n_sure"], row["n_several"], row["sure"])
    return f"in {row['format']} all samples of {row['model']} agree on {sure} of those it answers, the highest share found."


def elsewhere_words(n: int) -> str:
    """Responses that belong to neither format, for the screen.

    >>> elsewhere_words(1)
    '1 response to these cases belongs to neither format, qa or conversation: it counts nowhere here.'
    """
    neither = "belongs to neither format, qa or conversation: it counts"
    neither = neither if n == 1 else "belong to neither format, qa or conversation: they count"
    return f"{counted(n, 'response')} to these cases {neither} nowhere here."
