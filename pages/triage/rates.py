"""The rates of the chosen model as tables: each with its denominator, or by judge only, physicians only and corrected."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words
from evalcore.triage.corrected import BOUNDS, CORRECTED, JUDGE, PHYSICIANS
from evalcore.triage.rates import SCORES
from evalcore.triage.settings import METRICS, TriageSettings
from evalcore.triage.words import MEANINGS, NAMES, number_words, rate_words, score_words, short_reason
from pages.shared import html, tables
from pages.shared.triage_choice import FORMATS
from pages.triage.counts import Counted

KINDS = {JUDGE: "Judge only", PHYSICIANS: "Physicians only", CORRECTED: "Corrected"}


def show(counted: Counted, model: str, chosen_settings: TriageSettings, harm: pd.DataFrame) -> None:
    """Every rate of the chosen model with its denominator, both formats side by side.

    Args:
        harm: Expected harm at the weights of the settings, by the same basis.
    """
    wanted = [name for name in chosen_settings.metrics if name in METRICS]
    columns: dict[str, list[str]] = {"Measure": [METRICS[name] for name in wanted]}
    present = [word for word in FORMATS if len(counted.cells_of(model, word))]
    for word in present:
        rates, scores = counted.rates_of(model, word), counted.summary_of(model, word)
        costs = harm.loc[harm["model"].eq(model) & harm["format"].eq(word)].to_dict(orient="records")
        columns[FORMATS[word].capitalize()] = [_value(name, rates, scores, costs) for name in wanted]
        columns[f"Of ({FORMATS[word]})"] = [_of(rates[name]) if name in rates else "" for name in wanted]
    kept = [
        place for place, _ in enumerate(wanted) if any(columns[FORMATS[word].capitalize()][place] for word in present)
    ]
    tables.show(
        {name: [column[place] for place in kept] for name, column in columns.items()},
        key="triage_rates",
        alt="Rates of the chosen model in both formats",
    )
    with st.expander("What the measures say", type="compact", key="triage_measures"):
        weights = f" Weights here: {chosen_settings.under_weight:g} too low, {chosen_settings.over_weight:g} too high."
        more = {"expected_harm": weights}
        st.html(html.items(f"{METRICS[name]}: {MEANINGS[name]}{more.get(name, '')}" for name in wanted))


def corrected(counted: Counted, model: str, chosen_settings: TriageSettings) -> None:
    """Rates of the chosen model by the judge alone, by physicians alone, and corrected: a table a format of which enough was read."""
    mine = counted.rates["model"].eq(model) & counted.rates["measure"].isin(chosen_settings.metrics)
    for word, of_format in ((word, counted.rates.loc[mine & counted.rates["format"].eq(word)]) for word in FORMATS):
        if of_format.empty:
            continue
        rows = of_format.to_dict(orient="records")
        if of_format[CORRECTED].isna().all():
            lacking = next((row["reason"] for row in rows if row["reason"]), "")
            st.html(html.quiet(f"In {FORMATS[word]} too little was read of {model} to correct its rates: {lacking}."))
            continue
        tables.show(
            {
                f"Measure, in {FORMATS[word]}": [NAMES[row["measure"]] for row in rows],
                **{words: [_share(row, kind) for row in rows] for kind, words in KINDS.items()},
                "Of": [_of(row) for row in rows],
                "Responses read": [f"{row['n_read']:,} by {row['n_readers']:,}" for row in rows],
                "No level found": [row["n_no_level"] for row in rows],
                "Without a text": [row["n_unreached"] for row in rows],
            },
            optional=("No level found", "Without a text"),
            key=f"triage_corrected_{word}",
            alt=f"Rates of the chosen model in {FORMATS[word]} by the judge only, by physicians only, and corrected",
        )


def _share(row: Mapping[Any, Any], kind: str) -> str:
    value, low, high = (min(max(row[f"{kind}{bound}"], 0.0), 1.0) for bound in BOUNDS)
    if not math.isnan(value):
        return f"{percent_words(value)} {interval_words(low, high)}"
    return f"{NO_VALUE} ({short_reason(row['reason'])})" if kind == CORRECTED and row["reason"] else NO_VALUE


def _of(rate: Mapping[Any, Any]) -> str:
    """The denominator, in words."""
    return str(rate["denominator"]).removeprefix("of ")


def _value(
    name: str,
    rates: Mapping[str, Mapping[Any, Any]],
    scores: Mapping[Any, Any],
    costs: Sequence[Mapping[Any, Any]],
) -> str:
    """A measure in words; "" where it is not made from these counts, a dash and the reason where it has no value."""
    if name == "expected_harm" and costs:
        return number_words(costs[0]["harm"], costs[0]["low"], costs[0]["high"], costs[0]["reason"])
    if name in rates:
        return rate_words(rates[name])
    if name in SCORES and name in scores:
        return score_words(scores, name)
    return ""
