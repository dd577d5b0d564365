"""Harm: a section of the Triage page. What errors cost when one too low weighs more than one too high."""

import math

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.metrics import harm
from evalcore.metrics.harm_words import harm_sentences
from evalcore.metrics.intervals import NO_VALUE
from evalcore.metrics.triage_bases import Basis
from evalcore.metrics.triage_words import number_words
from evalcore.plots import triage_harm as figures
from evalcore.plots.colours import colour_of, dash_of
from pages import _tables, _text, _theme, _triage_counts, _triage_parts
from pages._triage_parts import FORMATS, Here

STEPS, COUNTS = "every level counts", "every error counts once"
HIGHEST = 20.0
RATIOS = tuple(float(ratio) for ratio in np.geomspace(0.25, 20, 89))
FOOT = (
    "Expected harm is the mean over cases with a clear gold: a level too low costs the one weight, a level too high the other; or every error once, "
    "however wide. Intervals "
    "are 95 % (t over cases), each model by itself: where they overlap two models may still differ, since they answered the same cases. The order "
    "over the ratio of the weights holds whatever their size; a dotted line is where two models change places, the solid one is the ratio chosen "
    "above. The default weights are the study's settings; what "
    "is changed here changes nothing there."
)


def show(here: Here) -> None:
    """Expected harm by model with weights set here, and the models' order over their ratio."""
    viewer, chosen = here.viewer, here.chosen
    with here.row:
        basis = _triage_counts.basis_control(here.known, (Basis.JUDGE, Basis.PHYSICIANS))
        under = _weight("A level too low weighs", here.settings.under_weight, "triage_under")
        over = _weight("A level too high weighs", here.settings.over_weight, "triage_over")
        how = _triage_parts.one_of("Count", [STEPS, COUNTS], "triage_steps", width=220)
    counted = _triage_counts.of(viewer, chosen, basis)
    if counted.caution:
        st.html(_text.notice(counted.caution, kind="warning"))
    if counted.cells.empty:
        return
    table = harm.expected_harm(counted.cells, under, over, steps=how == STEPS)
    table = _triage_parts.in_order(table)
    changes = harm.changes(counted.cells, steps=how == STEPS)
    for sentence in harm_sentences(table, changes, under, over):
        st.html(_text.finding(sentence))
    models = _triage_parts.colours()
    colours, dashes = colour_of(models), dash_of(models)
    st.plotly_chart(
        figures.harm(table, colours, FORMATS, ink=_theme.ink()),
        config={"displayModeBar": False},
        key="triage_harm",
        alt="Expected harm of each model in each format, with 95 % intervals",
    )
    rows = table.to_dict(orient="records")
    _tables.show(
        {
            "Model": table["model"],
            "Format": table["format"].map(FORMATS),
            "Expected harm": [number_words(row["harm"], row["low"], row["high"], row["reason"]) for row in rows],
            "By under-triage": [_number(row["of_under"]) for row in rows],
            "By over-triage": [_number(row["of_over"]) for row in rows],
            "Cases": [_whole(row["n"]) for row in rows],
            "Too low (levels)": [f"{_whole(row['n_under'])} ({_whole(row['steps_under'])})" for row in rows],
            "Too high (levels)": [f"{_whole(row['n_over'])} ({_whole(row['steps_over'])})" for row in rows],
        },
        key="triage_harm_table",
        alt="Expected harm of each model in each format",
        names=("Model",),
    )
    st.subheader("The models' order, whatever the weights", anchor=False)
    ratio = under / over if over else None
    st.plotly_chart(
        figures.orders(
            harm.orders(counted.cells, RATIOS, steps=how == STEPS), changes, colours, dashes, FORMATS, now=ratio or None, ink=_theme.ink()
        ),
        config={"displayModeBar": False},
        key="triage_orders",
        alt="Places of the models by expected harm, over the ratio of the weights",
    )  # fmt: skip
    _changes(changes)
    st.html(_text.foot(FOOT))


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


def _whole(value: float) -> str:
    return NO_VALUE if math.isnan(value) else f"{value:,.0f}"
