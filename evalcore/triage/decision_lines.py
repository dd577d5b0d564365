"""Which view answers which question: the lines of a decision matrix, each with this study's own figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd

from evalcore.stats.intervals import interval_words, percent_words, share_words
from evalcore.stats.wording import counted, listed
from evalcore.study.schema import Format
from evalcore.triage.rates import Measure
from evalcore.triage.words import by_model, exact_words, points

Row = Mapping[Any, Any]
Rates = Mapping[tuple[str, str], Mapping[str, Row]]
_DIGITS = 9
MOST_MODELS = 4
"""So many are named in one line."""


class View(StrEnum):
    """A part of a page that answers a question."""

    QA = "qa"
    """Matrices and rates in qa."""
    CONVERSATION = "conversation"
    FLIPS = "flips"
    """Cases whose answer changes with the format."""
    RATES = "rates"
    """All models: exact, too high, too low."""
    UNCERTAINTY = "uncertainty"
    """How models spread over ambiguous cases, beside the panel."""
    CALIBRATION = "calibration"
    """The model's confidence against being right."""
    ROUTING = "routing"
    """At which confidence cases would go to a human."""


@dataclass(frozen=True)
class DecisionLine:
    """One line of the panel.

    Attributes:
        answer: Which views it needs, and why, in a sentence.
        views: Those views, the one to open first before the others.
        figures: What they say in this study, sentence by sentence; at least one, which says what is missing where nothing is known.
    """

    question: str
    answer: str
    views: tuple[View, ...]
    figures: tuple[str, ...]


def decision_lines(
    rates: pd.DataFrame,
    *,
    ambiguous: pd.DataFrame | None = None,
    routing: pd.DataFrame | None = None,
) -> list[DecisionLine]:
    """The four questions of the article's decision matrix, with the figures of a study.

    Args:
        rates: As `triage.rates` gives them; every model in the formats that it answered.
        ambiguous: As `triage_cases.ambiguous` gives them; None: not known.
        routing: model, format, threshold, and k_, n_ and the shares caught and routed at it (`routing.chosen`); None: not known.

    Returns:
        In this order: a product that decides on urgency, a bot that informs, choosing a model, cases that physicians do not agree on. Where a study lacks
        the figures of a line, the line says so.
    """
    of = {key: rows for key, rows in by_model(rates).items() if rows[Measure.EXACT]["n"]}
    return [
        DecisionLine(
            "Will patients act on its advice on how urgent they are?",
            "A high-risk triage product needs both formats and the uncertainty view: a model can be safe when it is asked for a level and send "
            "emergencies home in conversation.",
            (View.FLIPS, View.QA, View.CONVERSATION, View.UNCERTAINTY),
            (*_both_formats(of), *_sureness(ambiguous)),
        ),
        DecisionLine(
            "Will it only inform, with little at stake?",
            "A low-risk information bot can be judged by the qa view, with the direction of its errors.",
            (View.QA,),
            _qa(of),
        ),
        DecisionLine(
            "Which of these models?",
            "Choosing a model needs under-triage and whether its confidence is borne out, never the exact share alone.",
            (View.RATES, View.CALIBRATION),
            (_least_under(of),),
        ),
        DecisionLine(
            "What about cases that physicians do not agree on?",
            "Ambiguous cases have no right answer: the routing view says which would go to a human, and what that costs.",
            (View.ROUTING, View.UNCERTAINTY),
            _routing(routing),
        ),
    ]


def _both_formats(of: Rates) -> tuple[str, ...]:
    """The model whose under-triage differs most between the formats."""
    gaps = {
        model: rows[Measure.UNDER]["value"] - of[model, Format.QA][Measure.UNDER]["value"]
        for (model, asked), rows in of.items()
        if asked == Format.CONVERSATION and (model, Format.QA.value) in of
    }
    if not gaps:
        known = listed(sorted({asked for _, asked in of})) if of else ""
        here = (
            f"here there are clear cases with a prediction in {known} alone"
            if known
            else "no clear case has a prediction yet"
        )
        return (f"This needs one model in both formats; {here}.",)
    model = max(gaps, key=lambda name: (round(abs(gaps[name]), _DIGITS), gaps[name]))
    qa, conversation = (_rate(of[model, word][Measure.UNDER]) for word in Format)
    widest = f", the widest gap of {counted(len(gaps), 'model')}" if len(gaps) > 1 else ""
    said = [
        f"{model} under-triages {qa} in qa and {conversation} in conversation{widest} ({points(gaps[model])} percentage points)."
    ]
    missed = of[model, Format.CONVERSATION][Measure.MISSED_EMERGENCIES]
    if missed["n"]:
        said.append(f"In conversation it sends {_rate(missed)} of emergencies to a lower level.")
    return tuple(said)


def _sureness(ambiguous: pd.DataFrame | None) -> tuple[str, ...]:
    """The model and format that is most often of one mind where physicians are not."""
    if ambiguous is None:
        return ()
    known = ambiguous.loc[ambiguous["n_several"].gt(0)]
    if known.empty:
        return (
            "No ambiguous case has two valid samples of a model, so nothing can be said of how sure it is where physicians are not.",
        )
    row = known.iloc[int(known["sure"].to_numpy().argmax())]
    said = share_words(row["n_sure"], row["n_several"], row["sure"])
    return (
        f"Where physicians do not agree, all samples of {row['model']} in {row['format']} say one level on {said} of the cases.",
    )


def _qa(of: Rates) -> tuple[str, ...]:
    mine = {model: rows for (model, asked), rows in of.items() if asked == Format.QA}
    if not mine:
        return ("No clear case has a prediction in qa yet.",)
    models = sorted(mine, key=lambda model: -mine[model][Measure.EXACT]["value"])
    return tuple(f"In qa {model}: {exact_words(mine[model])}." for model in models[:MOST_MODELS])


def _least_under(of: Rates) -> str:
    """How often models under-triage, in conversation where there is any, the least first; which of them differ is another question."""
    for word in (Format.CONVERSATION, Format.QA):
        mine = {model: rows[Measure.UNDER] for (model, asked), rows in of.items() if asked == word}
        if len(mine) == 1:
            ((model, row),) = mine.items()
            return f"{model} under-triages {_rate(row)} in {word}; there is no other model to hold it against."
        if mine:
            models = sorted(mine, key=lambda model: mine[model]["value"])
            rest = f", and {counted(len(mine) - MOST_MODELS, 'more model')}" if len(mine) > MOST_MODELS else ""
            each = "; ".join(f"{model} {_rate(mine[model])}" for model in models[:MOST_MODELS])
            return f"Under-triage in {word}: {each}{rest}. Matrices says which of them differ on the same cases."
    return "No clear case has a prediction yet, so there is no under-triage to tell."


def _routing(routing: pd.DataFrame | None) -> tuple[str, ...]:
    """The model with the most dangerous misses to catch."""
    known = None if routing is None else routing.loc[routing["threshold"].notna() & routing["n_caught"].gt(0)]
    if known is None or known.empty:
        return (
            "There are no dangerous misses to route by yet, or too few to choose a threshold on one half of the cases and show it on the other.",
        )
    row = known.iloc[int(known["n_caught"].to_numpy().argmax())]
    caught = share_words(int(row["k_caught"]), int(row["n_caught"]), row["caught"])
    routed = share_words(int(row["k_routed"]), int(row["n_routed"]), row["routed"])
    where = f"{row['model']} in {row['format']}"
    if row["threshold"] > 1:
        return (
            f"For {where} no confidence tells its dangerous misses from the rest: catching them would send every case to a human.",
        )
    return (
        f"For {where}, sending cases below a confidence of {percent_words(row['threshold'])} to a human catches {caught} of its dangerous misses"
        f" and costs {routed} of the clear cases.",
    )


def _rate(row: Row) -> str:
    return f"{share_words(row['k'], row['n'], row['value'])} {interval_words(row['low'], row['high'])}"
