"""Harm: a section of the Triage page. What errors cost when one too low weighs more than one too high."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.figures.colours import colour_of, dash_of
from evalcore.stats.wording import counted, decimal
from evalcore.triage import bases, figures, harm
from evalcore.triage.bases import Basis, Ranked, with_cases
from evalcore.triage.harm import Weights, harm_sentences
from evalcore.triage.words import count_words, number_words, short_reason
from pages.shared import common, html, routes, tables, theme, triage_choice
from pages.shared.triage_choice import Here
from pages.triage import counts

STEPS, COUNTS = "every level counts", "every error counts once"
HIGHEST = 20.0
RATIOS = tuple(float(ratio) for ratio in np.geomspace(0.25, 20, 89))
NOTHING_COSTS = "Both weights are 0, so no error costs anything. Give at least one of them a weight."
HOW = {
    Basis.JUDGE: (
        "Expected harm is the mean over cases with a clear gold and a level. Intervals are 95 % (t over cases, each "
        "of which enters once), each model by itself; the table of differences takes two models on the same cases. "
        "Published matrices are of other cases and stand apart: they have no place."
    ),
    Basis.PHYSICIANS: (
        "Expected harm is the mean over the responses to cases with a clear gold that were drawn and read blind by "
        "physicians here. Intervals are 95 % (t, clustered by case, since several responses to one case may have been "
        "read), weighted by the probability of the draw, each model by itself. Of each model other responses were "
        "read, so the models have no order here."
    ),
    Basis.CORRECTED: (
        "Expected harm is the mean over cases with a clear gold of what the corrected levels of their responses cost: "
        "the judge on all of them, put right by what physicians read on some. Intervals are 95 %, clustered by case, "
        "each model by itself."
    ),
}
FOOT = (
    "A level too low costs the one weight, a level too high the other; or every error once, however wide. Holm's p "
    "allows for the number of pairs of a format. A dotted line is where two models change places, the solid one is "
    "the ratio chosen above. The default weights are the study's settings; what is changed here changes nothing there."
)


def show(here: Here) -> None:
    """Expected harm by model with weights set here, and the models' order over their ratio."""
    with here.row:
        by = counts.basis_control(here)
        under = _weight("A level too low weighs", here.settings.weights.under, "triage_under")
        over = _weight("A level too high weighs", here.settings.weights.over, "triage_over")
        how = triage_choice.one_of("Count", [STEPS, COUNTS], "triage_steps", width=220)
    weights = Weights(under, over, how == STEPS)
    table = triage_choice.in_order(by.computed(bases.harm, weights))
    ranked: Ranked = by.computed(bases.ranked, weights)
    if not under and not over:
        st.html(html.notice(NOTHING_COSTS, kind="warning"))
    rows = ranked.harm if len(ranked.harm) else with_cases(table)
    for sentence in harm_sentences(rows, weights, ranked.differences, ranked=bool(len(ranked.harm))):
        st.html(html.finding(sentence))
    if table["harm"].isna().all():
        lacking = "No case has both a clear gold and a level, so there is no harm to expect."
        if by.basis is Basis.PHYSICIANS:
            lacking = counts.NOT_READ
        elif by.basis is Basis.CORRECTED and len(table):
            lacking = counts.nearest_words(table)
        st.html(html.notice(lacking, kind="warning"))
        st.page_link(routes.STUDY, label="Assign reads on Study", icon=":material/database:")
    if words := by.words("expected harm"):
        st.html(html.quiet(words))
    if table.empty:
        return
    responses = "responses" if by.basis is Basis.PHYSICIANS else "cases"
    if table["harm"].notna().any():
        figure = figures.harm(table, colour_of(common.read("models")), counts=responses)
        theme.figure(figure, key="triage_harm", alt="Expected harm of each model in each format, with 95 % intervals")
    _table(table, by.basis, responses)
    _differences(ranked.differences)
    if ranked.harm["harm"].notna().sum() > 1:
        _orders(ranked, under / over if over else None, weights)
    st.html(html.foot(f"{HOW[by.basis]} {FOOT}"))


def _weight(label: str, usual: float, key: str) -> float:
    most = max(HIGHEST, usual)
    return st.slider(
        label, 0.0, most, float(usual), 0.5, format="%g", key=key, bind="query-params", persist_state="session", width=190
    )  # fmt: skip


def _table(table: pd.DataFrame, basis: Basis, responses: str) -> None:
    rows = table.to_dict(orient="records")
    harms = [number_words(row["harm"], row["low"], row["high"], short_reason(row["reason"])) for row in rows]
    more: dict[str, Any] = {}
    if basis is Basis.CORRECTED:
        more = {"Read": table["n_read"], "Physicians": table["n_readers"]}
    else:
        for way, name in (("low", "under"), ("high", "over")):
            wrong = zip(table[f"n_{name}"].map(count_words), table[f"steps_{name}"].map(count_words), strict=True)
            more[f"Too {way} (levels)"] = [f"{n} ({steps})" for n, steps in wrong]
    columns: dict[str, Any] = {"Model": table["model"], "Format": table["format"]}
    columns |= {"Expected harm": harms, "By under-triage": table["of_under"].map(decimal)}
    columns |= {"By over-triage": table["of_over"].map(decimal), responses.capitalize(): table["n"], **more}
    tables.show(columns, key="triage_harm_table", alt="Expected harm of each model in each format", names=("Model",))


def _differences(table: pd.DataFrame) -> None:
    known = table.loc[table["difference"].notna()]
    if known.empty:
        if len(table):
            st.html(html.quiet(f"Which models differ cannot be said yet: {table['reason'].iloc[0]}."))
        return
    st.subheader("Two models on the same cases", anchor=False)
    said = [number_words(*row) for row in known[["difference", "low", "high", "reason"]].itertuples(index=False)]
    alt = "Differences of two models' expected harm on the cases that both answered"
    values = {"Expected harm, first minus second": said}
    counts.show_pairs(known, {}, values, key="triage_harm_differences", alt=alt)


def _orders(ranked: Ranked, now: float | None, weights: Weights) -> None:
    models, table, changes = common.read("models"), triage_choice.in_order(ranked.harm), ranked.changes
    st.subheader("The order as measured, over the ratio of the weights", anchor=False)
    sizes = {word: int(n) for word, n in zip(table["format"], table["n"], strict=True)}
    same = ", ".join(f"{counted(n, 'case')} in {word}" for word, n in sizes.items())
    chance = "Neighbours may differ by chance alone; the table above says who differs."
    st.html(html.quiet(f"On the cases that all of them answered: {same}. {chance}"))
    orders = harm.orders(table, RATIOS, steps=weights.steps)
    figure = figures.orders(orders, changes, colour_of(models), dash_of(models), now=now or None)
    alt = "Places of the models by expected harm as measured on the same cases, over the ratio of the weights"
    theme.figure(figure, key="triage_orders", alt=alt)
    if changes.empty:
        st.html(html.quiet("No two models change places, whatever the weights."))
        return
    columns: dict[str, Any] = {"Format": changes["format"].astype(str)}
    columns |= {"Under-triage weighs so many times over-triage": changes["ratio"].map("{:.2f}".format)}
    columns |= {"Below, less harm by": changes["less_below"].astype(str)}
    columns |= {"Above, less harm by": changes["less_above"].astype(str)}
    tables.show(columns, key="triage_changes", alt="Ratios of the weights at which two models change places")
