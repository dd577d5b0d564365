"""Matrices: a section of the Triage page. One model's answers by gold, qa and conversation side by side; every cell opens its cases."""

import pandas as pd
import streamlit as st

from evalcore.triage import figures
from evalcore.triage.bases import PUBLISHED, Basis, Weights
from evalcore.triage.data import Kind
from evalcore.triage.settings import TriageSettings
from pages.shared import html, routes, theme, triage_choice
from pages.shared.triage_choice import FORMATS, Chosen, Gold, Here
from pages.triage import cell, counts, models, rates
from pages.triage.counts import Counted

SAY_NOTHING = {"displayModeBar": False}
HOW = {
    Basis.JUDGE: (
        "Levels of answers: {judges}. A case's answer is the most frequent level of its samples, of equals the more severe; a sample in which no "
        "level was found is no level and is counted apart."
    ),
    Basis.PHYSICIANS: (
        "Levels of answers: by physicians of this study, from blind first reads of responses that were drawn; a response is counted, not a case, "
        "and a read between two levels counts half to each. Shares are weighted by the probability of the draw, each case once; counts are of what was "
        "read. What was read with the judge in view, or by choice, opens with its cell and enters no share."
    ),
    Basis.CORRECTED: (
        "Levels of answers: {judges} on all responses, put right by what physicians read on some; these are estimates, so there are no counts. A cell "
        "opens the cases that the judge puts there. Each estimate is kept between 0 and 100 %, so those of a row, or of exact, over and under, need not "
        "add up."
    ),
}
"""Where the levels come from, by who gives them."""
BY_JUDGE = (
    "Levels are as the judge or the parser reads them. How often these are wrong stands under Who read the level; "
    "levels of answers by physicians, or corrected, rest on what physicians have read."
)
INTERVALS = {
    Basis.JUDGE: "Intervals are 95 %: a case enters each number once, so they are Wilson's, and of kappa and macro F1 by leaving out one case at a time.",
    Basis.PHYSICIANS: (
        "Intervals are 95 %, clustered by case, since several responses to one case may have been read: Wilson's on the effective number, and of kappa and "
        "macro F1 by leaving out one case at a time. Physicians only, beside corrected rates, has the intervals of these (t), so it differs a little from here."
    ),
    Basis.CORRECTED: "Intervals are 95 %, clustered by case; judge only is Wilson's, a case once, and leaves out how often the judge is wrong.",
}
"""How intervals were made, by who gives the levels."""


def show(here: Here) -> None:
    """The chosen model in both formats, the cases of one cell, and all models."""
    viewer, chosen = here.viewer, here.chosen
    with here.row:
        model = triage_choice.one_of("Model", counts.model_names(here.known), "triage_matrix_of", width=170)
        basis, held, why = counts.basis_control(viewer, chosen, here.known)
    counted = counts.of(viewer, chosen, basis, held)
    first, *others = counted.findings(model) or [""]
    if first:
        st.html(html.finding(first))
        st.html(html.items(others))
    if counted.caution:
        st.html(html.notice(counted.caution, kind="warning"))
        st.page_link(routes.STUDY, label="Assign reads on Study", icon=":material/database:")
    if counted.is_known:
        if basis is Basis.JUDGE:
            st.html(html.quiet(BY_JUDGE))
        if words := counts.held_words(basis, held):
            st.html(html.quiet(f"{words} {why}".rstrip()))
        _side_by_side(counted, model, here.settings)
        cell.show(viewer, chosen, counted, model)
    if basis is Basis.CORRECTED:
        rates.corrected(counted, model, here.settings)
    else:
        weights = Weights(here.settings.under_weight, here.settings.over_weight)
        rates.show(counted, model, here.settings, counts.harm(viewer, chosen, basis, held, weights))
    if chosen.gold is Gold.PHYSICIANS:
        counts.show_transitions(viewer, chosen)
    if counted.is_known:
        models.safer(viewer, chosen, basis, held)
        st.subheader("All models", anchor=False)
        models.show(counted)
    models.left_out(here, basis)
    st.html(html.foot(foot(chosen, basis)))


def _side_by_side(counted: Counted, model: str, chosen_settings: TriageSettings) -> None:
    """The two matrices. A click on a cell opens its cases; of a published matrix there are none."""
    names = list(chosen_settings.level_names.values())
    is_open = cell.is_open()
    opens = not model.endswith(PUBLISHED)
    words = [word for word in FORMATS if word in chosen_settings.formats]
    for column, word in zip(st.columns(2, gap="medium"), words, strict=False):
        cells = counted.cells_of(model, word)
        with column:
            st.html(html.quiet(_heading(counted, cells, word)))
            if not len(cells):
                st.html(
                    html.notice(
                        f"{model} has no answers in the format {FORMATS[word]} that anybody has read a level from."
                    )
                )
                continue
            key = f"triage_matrix_{word}"
            mark = is_open[1:] if opens and is_open and is_open[0] == word else None
            figure = figures.matrix(cells, names, counts=counted.counts, chosen=mark, ink=theme.ink())
            alt = (
                f"Confusion matrix of {FORMATS[word]}: a row a level that cases need, a column the level of the answers"
            )
            if opens:
                st.plotly_chart(
                    figure, config=SAY_NOTHING, key=key, on_select=lambda word=word, key=key: cell.click(word, key), selection_mode="points", alt=alt
                )  # fmt: skip
            else:
                st.plotly_chart(figure, config=SAY_NOTHING, key=f"{key}_published", alt=alt)


def _heading(counted: Counted, cells: pd.DataFrame, word: str) -> str:
    whose = counted.read_by.get(word, "")
    n = cells.drop_duplicates("gold")["n_gold"].sum() if len(cells) else 0
    many = f": {n:,.0f} {counted.counts} with a clear gold" if n else ""
    return f"{FORMATS[word].capitalize()}{', ' + whose if whose else ''}{many}"


def foot(chosen: Chosen, basis: Basis) -> str:
    """How the numbers were made."""
    how = HOW[basis].format(judges=chosen.judge_words)
    sums = "" if basis is Basis.CORRECTED else "Exact, over and under add up to 1. "
    return (
        f"{how} Gold: {chosen.gold}. Counted are {Kind.CLEAR} cases, whose gold is one letter; boundary and ambiguous cases have sections of their "
        "own. Over-triage: the answer asks for more care than the gold; under-triage: for less. "
        f"{sums}Severe: two levels or more. {INTERVALS[basis]} AcuityBench, arXiv 2605.11398. These numbers are deterministic."
    )
