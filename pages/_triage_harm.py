"""Harm: a section of the Triage page. What errors cost when one too low weighs more than one too high."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.metrics import harm
from evalcore.metrics.harm_words import harm_sentences
from evalcore.metrics.intervals import NO_VALUE
from evalcore.metrics.triage_bases import Basis, Weights
from evalcore.metrics.triage_words import count_words, number_words
from evalcore.plots import triage_harm as figures
from evalcore.plots.colours import colour_of, dash_of
from pages import _tables, _text, _theme, _triage_counts, _triage_parts
from pages._triage_parts import FORMATS, Here, Read

STEPS, COUNTS = "every level counts", "every error counts once"
HIGHEST = 20.0
RATIOS = tuple(float(ratio) for ratio in np.geomspace(0.25, 20, 89))
NOTHING_COSTS = "Both weights are 0, so no error costs anything. Give at least one of them a weight."
HOW = {
    Basis.JUDGE: (
        "Expected harm is the mean over cases with a clear gold and a level. Intervals are 95 % (t over cases, each of which enters once), each model by "
        "itself; the table of differences takes two models on the same cases."
    ),
    Basis.PHYSICIANS: (
        "Expected harm is the mean over the responses to cases with a clear gold that were drawn and read blind by physicians here. Intervals are 95 % (t, "
        "clustered by case, since several responses to one case may have been read), each model by itself."
    ),
    Basis.CORRECTED: (
        "Expected harm is the mean over cases with a clear gold of what the corrected levels of their responses cost: the judge on all of them, put right by "
        "what physicians read on some. Intervals are 95 %, clustered by case, each model by itself."
    ),
}
FOOT = (
    "A level too low costs the one weight, a level too high the other; or every error once, however wide. The order over the ratio of the weights holds "
    "whatever their size; a dotted line is where two models change places, the solid one is the ratio chosen above. The default weights are the study's "
    "settings; what is changed here changes nothing there."
)


def differences(read: Read, weights: Weights) -> pd.DataFrame:
    """Differences of two models' harm on the cases that both answered."""
    found = harm.harm_differences(read.found, weights.under, weights.over, steps=weights.steps)
    return found.astype({"format": str, "model_1": str, "model_2": str})


def show(here: Here) -> None:
    """Expected harm by model with weights set here, and the models' order over their ratio."""
    viewer, chosen = here.viewer, here.chosen
    with here.row:
        basis, held = _triage_counts.basis_control(here.known)
        under = _weight("A level too low weighs", here.settings.under_weight, "triage_under")
        over = _weight("A level too high weighs", here.settings.over_weight, "triage_over")
        how = _triage_parts.one_of("Count", [STEPS, COUNTS], "triage_steps", width=220)
    weights = Weights(under, over, how == STEPS)
    table = _triage_counts.harm(viewer, chosen, basis, held, weights)
    changes = harm.changes(table, steps=weights.steps)
    if not under and not over:
        st.html(_text.notice(NOTHING_COSTS, kind="warning"))
    for sentence in harm_sentences(table, changes, under, over):
        st.html(_text.finding(sentence))
    if table["harm"].isna().all():
        st.html(_text.notice(_nothing(table, basis), kind="warning"))
        st.page_link("pages/study.py", label="Assign reads on Study", icon=":material/database:")
    if words := _triage_counts.held_words(basis, held, value="expected harm"):
        st.html(_text.quiet(words))
    if table.empty:
        return
    _figures(table, changes, under / over if over else None, basis, weights)
    if table["harm"].notna().sum() > 1:
        _changes(changes)
    if basis is Basis.JUDGE:
        _differences(_triage_parts.computed(differences, viewer, chosen, weights))
    st.html(_text.foot(f"{HOW[basis]} {FOOT}"))


def _nothing(table: pd.DataFrame, basis: Basis) -> str:
    """Why no model has an expected harm."""
    if basis is Basis.PHYSICIANS:
        return _triage_counts.NOT_READ
    if basis is Basis.CORRECTED and len(table):
        row = table.iloc[int(table["n_needed"].to_numpy().argmin())]
        return f"Nothing can be corrected yet: {row['model']} in {FORMATS[row['format']]} needs {row['reason']}, and is the nearest to it."
    return "No case has both a clear gold and a level, so there is no harm to expect."


def _harm_words(row: Mapping[Any, Any]) -> str:
    """In short: what has to be read for it stands whole above, of whom least is lacking."""
    lacking = row.get("n_needed", 0)
    reason = f"{lacking:,} more to read" if lacking else row["reason"]
    return number_words(row["harm"], row["low"], row["high"], reason)


def _figures(table: pd.DataFrame, changes: pd.DataFrame, now: float | None, basis: Basis, weights: Weights) -> None:
    models = _triage_parts.colours()
    colours, dashes = colour_of(models), dash_of(models)
    counts = "responses" if basis is Basis.PHYSICIANS else "cases"
    if table["harm"].notna().any():
        st.plotly_chart(
            figures.harm(table, colours, FORMATS, counts=counts, ink=_theme.ink()),
            config={"displayModeBar": False},
            key="triage_harm",
            alt="Expected harm of each model in each format, with 95 % intervals",
        )
    rows = table.to_dict(orient="records")
    too = {
        "Too low (levels)": [f"{count_words(row['n_under'])} ({count_words(row['steps_under'])})" for row in rows],
        "Too high (levels)": [f"{count_words(row['n_over'])} ({count_words(row['steps_over'])})" for row in rows],
    }
    read = {"Read": table["n_read"], "Physicians": table["n_readers"]} if basis is Basis.CORRECTED else {}
    _tables.show(
        {
            "Model": table["model"],
            "Format": table["format"].map(FORMATS),
            "Expected harm": [_harm_words(row) for row in rows],
            "By under-triage": [_number(row["of_under"]) for row in rows],
            "By over-triage": [_number(row["of_over"]) for row in rows],
            counts.capitalize(): table["n"],
            **(read if basis is Basis.CORRECTED else too),
        },
        key="triage_harm_table",
        alt="Expected harm of each model in each format",
        names=("Model",),
    )
    if table["harm"].notna().sum() > 1:
        st.subheader("The models' order, whatever the weights", anchor=False)
        st.plotly_chart(
            figures.orders(
                harm.orders(table, RATIOS, steps=weights.steps), changes, colours, dashes, FORMATS, now=now or None, ink=_theme.ink()
            ),
            config={"displayModeBar": False},
            key="triage_orders",
            alt="Places of the models by expected harm, over the ratio of the weights",
        )  # fmt: skip


def _differences(table: pd.DataFrame) -> None:
    if table.empty:
        return
    st.subheader("Two models on the same cases", anchor=False)
    rows = table.to_dict(orient="records")
    _tables.show(
        {
            "Format": table["format"].map(FORMATS),
            "Model": table["model_1"],
            "Less that of": table["model_2"],
            "Difference of expected harm": [
                number_words(row["difference"], row["low"], row["high"], row["reason"]) for row in rows
            ],
            "Cases of both": table["n"],
        },
        key="triage_harm_differences",
        alt="Differences of two models' expected harm on the cases that both answered",
        names=("Model", "Less that of"),
    )


def _weight(label: str, usual: float, key: str) -> float:
    return st.slider(
        label,
        0.0,
        max(HIGHEST, usual),
        float(usual),
        0.5,
        format="%g",
        key=key,
        bind="query-params",
        persist_state="session",
        width=190,
    )


def _changes(changes: pd.DataFrame) -> None:
    if changes.empty:
        st.html(_text.quiet("No two models change places, whatever the weights."))
        return
    _tables.show(
        {
            "Format": changes["format"].astype(str).map(FORMATS),
            "Under-triage weighs so many times over-triage": [f"{ratio:.2f}" for ratio in changes["ratio"]],
            "Below, less harm by": changes["less_below"].astype(str),
            "Above, less harm by": changes["less_above"].astype(str),
        },
        key="triage_changes",
        alt="Ratios of the weights at which two models change places",
    )


def _number(value: float) -> str:
    return NO_VALUE if math.isnan(value) else f"{value:.2f}"
