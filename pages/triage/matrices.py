"""Matrices: one model's answers by gold, qa and conversation side by side; every cell opens its cases; all models."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words
from evalcore.study.schema import Viewer
from evalcore.triage import bases, figures, words as triage_words
from evalcore.triage.bases import PUBLISHED, WHOSE, Basis, Matrices
from evalcore.triage.cases import flip_counts
from evalcore.triage.corrected import BOUNDS, CORRECTED, JUDGE, PHYSICIANS, Held
from evalcore.triage.data import Kind
from evalcore.triage.figures import LETTERS
from evalcore.triage.harm import Weights
from evalcore.triage.rates import SCORES, accounted
from evalcore.triage.reads import read_counts, response_levels, transitions
from evalcore.triage.settings import METRICS, TriageSettings
from pages.shared import glossary, html, routes, tables, theme, triage_cases, triage_choice
from pages.shared.triage_choice import FORMATS, HEADS, Chosen, Gold, Here, Read
from pages.triage import counts
from pages.triage.counts import By

CELL, CLICKED = "triage_cell", "triage_clicked"
CASES = attrgetter("triage_data")
BARS, IN_TABLE = ("under", "exact", "over"), ("under", "missed_emergencies", "over", "exact")
KINDS = {JUDGE: "Judge only", PHYSICIANS: "Physicians only", CORRECTED: "Corrected"}
WHY = {
    "unsettled": "readers conflict: an adjudicator settles it",
    "cannot_assess": "cannot be assessed",
    "remove": "unsuitable: cannot be triaged",
}
HOW = {
    Basis.JUDGE: (
        "Levels of answers: {judges}. A case's answer is the most frequent level of its samples, of equals the more "
        "severe; a sample in which no level was found is no level and is counted apart."
    ),
    Basis.PHYSICIANS: (
        "Levels of answers: by physicians of this study, from blind first reads of responses that were drawn; a "
        "response is counted, not a case, and a read between two levels counts half to each. Shares are weighted by "
        "the probability of the draw, each case once; counts are of what was read. What was read with the judge in "
        "view, or by choice, opens with its cell and enters no share."
    ),
    Basis.CORRECTED: (
        "Levels of answers: {judges} on all responses, put right by what physicians read on some; these are "
        "estimates, so there are no counts. A cell opens the cases that the judge puts there. Each estimate is kept "
        "between 0 and 100 %, so those of a row, or of exact, over and under, need not add up."
    ),
}
BY_JUDGE = (
    "Levels are as the judge or the parser reads them. How often these are wrong stands under Level readers; "
    "levels of answers by physicians, or corrected, rest on what physicians have read."
)
INTERVALS = {
    Basis.JUDGE: "Intervals are 95 %: a case enters each number once, so they are Wilson's, and of kappa and macro F1 by leaving out one case at a time.",
    Basis.PHYSICIANS: (
        "Intervals are 95 %, clustered by case, since several responses to one case may have been read: Wilson's on "
        "the effective number, and of kappa and macro F1 by leaving out one case at a time. Physicians only, beside "
        "corrected rates, has the intervals of these (t), so it differs a little from here."
    ),
    Basis.CORRECTED: "Intervals are 95 %, clustered by case; judge only is Wilson's, a case once, and leaves out how often the judge is wrong.",
}


def ahead(viewer: Viewer) -> None:
    """What the section computes where nobody has chosen anything, kept until somebody looks."""
    known = triage_choice.about(viewer)
    chosen, settings = triage_choice.usual(known), triage_choice.chosen_settings()
    here = Here(viewer, chosen, known, settings, DeltaGenerator())  # which nothing is drawn in
    by = counts.By(here, Basis.JUDGE, Held(settled=triage_choice.analysis().settled))
    by.computed(bases.matrices)
    here.of_predictions(flip_counts)
    by.computed(bases.harm, Weights(settings.weights.under, settings.weights.over))
    by.computed(bases.safety)
    here.computed(left_out)


def show(here: Here) -> None:
    """The chosen model in both formats, the cases of one cell, and all models."""
    chosen = here.chosen
    model = str(here.model(published=True, width=170))
    with here.row:
        by = counts.basis_control(here)
    basis = by.basis
    matrices: Matrices = by.computed(bases.matrices)
    cells, rates = matrices.cells, matrices.rates
    is_mine = rates["model"].astype(str).eq(model)
    if (
        is_mine.any() and rates["value"].notna().any()
    ):  # of all models with cases the missed emergencies, of this the rest
        together = rates.loc[is_mine] if model.endswith(PUBLISHED) else bases.with_cases(rates)
        flips = here.of_predictions(flip_counts) if basis is Basis.JUDGE else None
        by_physicians = basis is Basis.PHYSICIANS
        first, *others = triage_words.findings(together, flips, about=model, by_physicians=by_physicians)
        st.html(html.finding(first))
        st.html(html.items(others))
    if caution := _caution(basis, matrices):
        st.html(html.notice(caution, kind="warning"))
        st.page_link(routes.STUDY, label="Assign reads on Study", icon=":material/database:")
    is_known = bool(cells["share"].notna().any())
    counted = "responses" if basis is Basis.PHYSICIANS else "cases"
    if is_known:
        if basis is Basis.JUDGE:
            st.html(html.quiet(BY_JUDGE))
        if words := by.words():
            st.html(html.quiet(words))
        _side_by_side(here, basis, cells, model, counted)
        _show_cell(here, basis, cells, model)
    if basis is Basis.CORRECTED:
        _corrected_rates(rates, model, here.settings)
    else:
        weights = Weights(here.settings.weights.under, here.settings.weights.over)
        _of_measures(matrices, model, here.settings, by.computed(bases.harm, weights))
    if chosen.gold is Gold.PHYSICIANS:
        _transitions(replace(here, chosen=replace(chosen, gold=Gold.FILE)))
    if is_known:
        _safer(by)
        st.subheader("All models", anchor=False, help=glossary.helps("over-triage, under-triage", "missed emergency"))
        _all_models(cells, rates, counted)
    with st.expander("Counted and left out", type="compact", key="triage_left_out"):
        if basis is not Basis.JUDGE:
            told = {"key": "triage_reads_accounted", "alt": READ_ALT, "nothing": NOT_READ}
            _left_out(here.computed(read_counts, of=CASES), READ, **told)
        if basis is not Basis.PHYSICIANS:
            _left_out(here.computed(left_out), ACCOUNTED, key="triage_accounted", alt=ALT, nothing=NOT_ANSWERED)
        if here.known.n_elsewhere:
            st.html(html.quiet(triage_words.elsewhere_words(here.known.n_elsewhere)))
    st.html(html.foot(foot(chosen, basis)))


def left_out(read: Read) -> pd.DataFrame:
    """What is counted and what left out, by model and format."""
    return accounted(read.triage_data, read.found)


def _caution(basis: Basis, matrices: Matrices) -> str:
    """What must be said before anything is read off; empty: nothing."""
    if basis is Basis.PHYSICIANS:
        return "" if matrices.cells["n"].any() else counts.NOT_READ
    rates = matrices.rates
    if basis is Basis.JUDGE or rates["value"].notna().any():
        return ""
    exact = rates.loc[rates["measure"].eq("exact") & rates["reason"].ne("")]
    if exact.empty:
        return "Nothing can be corrected yet: no answer to a clear case has a level by these judges."
    return counts.nearest_words(exact)


def foot(chosen: Chosen, basis: Basis) -> str:
    """How the numbers were made."""
    how = HOW[basis].format(judges=chosen.judge_words)
    sums = "" if basis is Basis.CORRECTED else "Exact, over and under add up to 1. "
    return (
        f"{how} Gold: {chosen.gold}. Counted are {Kind.CLEAR} cases, whose gold is one letter; boundary and ambiguous "
        "cases have sections of their own. Over-triage: the answer asks for more care than the gold; under-triage: "
        f"for less. {sums}Severe: two levels or more. {INTERVALS[basis]} AcuityBench, arXiv 2605.11398. These numbers "
        "are deterministic."
    )


def _of(table: pd.DataFrame, model: str, word: str) -> pd.DataFrame:
    if table.empty:
        return table
    return table.loc[table["model"].astype(str).eq(model) & table["format"].astype(str).eq(word)]


def _side_by_side(here: Here, basis: Basis, cells: pd.DataFrame, model: str, counted: str) -> None:
    """The two matrices. A click on a cell opens its cases; of a published matrix there are none."""
    names = msgspec.structs.astuple(here.settings.level_names)
    before = st.query_params.get(CELL, triage_choice.left(CELL))  # until the control has been drawn once
    is_open = CELLS.get(st.session_state.get(CELL, before))
    opens = not model.endswith(PUBLISHED)
    judges = dict(here.chosen.judges)
    words = [word for word in FORMATS if word in here.settings.formats]
    with st.container(key="matrices"):
        columns = st.columns(2, gap="medium")
    for column, word in zip(columns, words, strict=False):
        mine = _of(cells, model, word)
        by = f", read by {judges[word]}" if word in judges else ""
        by += ", corrected" if by and basis is Basis.CORRECTED else ""
        by = ", read by physicians" if basis is Basis.PHYSICIANS else by
        n = mine.drop_duplicates("gold")["n_gold"].sum() if len(mine) else 0
        with column:
            many = f": {n:,.0f} {counted} with a clear gold" if n else ""
            st.html(html.quiet(f"{HEADS[word]}{by}{many}"))
            if mine.empty:
                sentence = f"{model} has no answers in the format {word} that anybody has read a level from."
                st.html(html.notice(sentence))
                continue
            key = f"triage_matrix_{word}"
            mark = is_open[1:] if opens and is_open and is_open[0] == word else None
            clicks: dict[str, Any] = {"key": f"{key}_published"}
            if opens:
                clicks = {"key": key, "on_select": partial(click, word, key), "selection_mode": "points"}
            figure = figures.matrix(mine, names, counts=counted, chosen=mark)
            alt = f"Confusion matrix of {word}: a row a level that cases need, a column the level of the answers"
            theme.figure(figure, alt=alt, **clicks)


def cell_name(word: str, gold: float, predicted: float) -> str:
    """How the address and the control call a cell.

    >>> cell_name("qa", 4, 1)
    'qa: needs D, answers A'
    """
    return f"{word}: needs {LETTERS[int(gold) - 1]}, answers {LETTERS[int(predicted) - 1]}"


CELLS = {
    cell_name(word, gold, predicted): (word, gold, predicted)
    for word in FORMATS
    for gold in range(1, len(LETTERS) + 1)
    for predicted in range(1, len(LETTERS) + 1)
}


def click(word: str, key: str) -> None:
    """Open the cell that was clicked; a click on the open one, which Plotly tells as nothing selected, closes it."""
    points = [point for point in st.session_state[key].selection.points if point.get("customdata")]
    if points:
        gold, predicted, n_open = points[0]["customdata"][:3]
        name = cell_name(word, gold, predicted) if n_open else None
        st.session_state[f"{CLICKED}_{word}"] = name
    else:
        name = st.session_state.get(f"{CLICKED}_{word}")
        name = None if name == st.session_state.get(CELL) else name
    st.session_state[CELL] = name


def _show_cell(here: Here, basis: Basis, cells: pd.DataFrame, model: str) -> None:
    if model.endswith(PUBLISHED):
        st.html(html.quiet("This matrix was published without its cases, so its cells do not open."))
        return
    cells = cells.loc[cells["model"].astype(str).eq(model) & cells["n_open"].gt(0)]
    order: dict[str, Any] = {"by": ["steps", "gold", "format"], "ascending": [False, False, True], "kind": "stable"}
    cells = cells.assign(steps=cells["gold"] - cells["predicted"]).sort_values(**order)
    names = [cell_name(*key) for key in zip(cells["format"], cells["gold"], cells["predicted"], strict=True)]
    before = triage_choice.left(CELL)
    with st.container(horizontal=True, vertical_alignment="center", key="triage_cell_row"):
        place, hint = names.index(before) if before in names else None, "Click a cell above, or choose one here"
        look: dict[str, Any] = {"bind": "query-params", "label_visibility": "collapsed", "width": 340}
        name = st.selectbox("Cases of a cell", names, place, key=CELL, placeholder=hint, **look)
    if name not in CELLS:
        st.html(html.quiet("A heavy border marks under-triage: the answer asks for less care than the case needs."))
        return
    word, gold, predicted = CELLS[name]
    rows = _rows_of_cell(here.read, basis, model, word, gold, predicted)
    n, needs, gives = len(rows), LETTERS[gold - 1], LETTERS[predicted - 1]
    if basis is Basis.PHYSICIANS:
        what = "one response to a case that needs" if n == 1 else f"{n:,} responses to cases that need"
        what = f"{what} {needs}, read as {gives} by physicians, those chosen for reading and those read with the judge in view among them."
    else:
        what = f"one case that needs {needs} and is" if n == 1 else f"{n:,} cases that need {needs} and are"
        what = f"{what} answered {gives}."
    if basis is Basis.CORRECTED:
        what += " The corrected shares are estimates: these are the cases as the judge reads them."
    st.html(html.finding(f"{model}, {word}: {what}"))
    triage_cases.listing(here, rows, key="triage_cases")


def _rows_of_cell(read: Read, basis: Basis, model: str, word: str, gold: int, predicted: int) -> pd.DataFrame:
    """The predictions behind one cell, those first that more samples agree on; by physicians the responses."""
    found = read.found
    mine = found.loc[
        found["kind"].eq(Kind.CLEAR) & found["gold"].eq(gold) & found["model"].eq(model) & found["format"].eq(word)
    ]
    if basis is not Basis.PHYSICIANS:
        return mine.loc[mine["predicted"].eq(predicted)].sort_values("share", ascending=False, kind="stable")
    levels = response_levels(read.triage_data)
    samples = read.triage_data.samples.iloc[levels["sample"].to_numpy()]
    level = levels["level"].to_numpy()
    fits = (np.floor(level) == predicted) | (np.ceil(level) == predicted)
    fits = fits & samples["model"].eq(model).to_numpy() & samples["format"].eq(word).to_numpy()
    kept = levels.loc[fits, ["row", "sample", "level"]].rename(columns={"level": "read_level"})
    rows: pd.DataFrame = kept.merge(mine, on="row").sort_values("sample", kind="stable", ignore_index=True)
    return rows


def _of_measures(matrices: Matrices, model: str, settings: TriageSettings, harm: pd.DataFrame) -> None:
    """Every rate with its denominator, both formats side by side; `harm` at the weights of the settings."""
    wanted = settings.metrics
    columns: dict[str, list[str]] = {"Measure": [METRICS[name] for name in wanted]}
    present = [word for word in FORMATS if len(_of(matrices.cells, model, word))]
    for word in present:
        rates = {str(row["measure"]): row for row in _of(matrices.rates, model, word).to_dict(orient="records")}
        values = {name: triage_words.rate_words(row) for name, row in rates.items()}
        for row in _of(matrices.summary, model, word).to_dict(orient="records"):
            for name in SCORES:
                score = (row[f"{name}{end}"] for end in ("", "_low", "_high", "_reason"))
                values[name] = triage_words.number_words(*score)
        for row in _of(harm, model, word).to_dict(orient="records"):
            values["expected_harm"] = triage_words.number_words(row["harm"], row["low"], row["high"], row["reason"])
        columns[HEADS[word]] = [values.get(name, "") for name in wanted]
        bases = {name: str(row["denominator"]).removeprefix("of ") for name, row in rates.items()}
        columns[f"Of ({word})"] = [bases.get(name, "") for name in wanted]
    table = pd.DataFrame(columns)
    table = table.loc[(table[[HEADS[word] for word in present]] != "").any(axis=1)]
    tables.show(
        {str(name): table[name] for name in table}, key="triage_rates", alt="Rates of the chosen model in both formats"
    )
    with st.expander("Meaning of the measures", type="compact", key="triage_measures"):
        weights = f" Weights here: {settings.weights.under:g} too low, {settings.weights.over:g} too high."
        more = {"expected_harm": weights}
        st.html(html.items(f"{METRICS[name]}: {triage_words.MEANINGS[name]}{more.get(name, '')}" for name in wanted))


def _corrected_rates(rates: pd.DataFrame, model: str, settings: TriageSettings) -> None:
    for word in FORMATS:
        table = _of(rates, model, word)
        table = table.loc[table["measure"].isin(settings.metrics)]
        if table.empty:
            continue
        rows = table.to_dict(orient="records")
        if table[CORRECTED].isna().all():
            lacking = next((row["reason"] for row in rows if row["reason"]), "")
            st.html(html.quiet(f"In {word} too little was read of {model} to correct its rates: {lacking}."))
            continue
        columns: dict[str, Any] = {f"Measure, in {word}": table["measure"].map(METRICS)}
        columns |= {words: [_share(row, kind) for row in rows] for kind, words in KINDS.items()}
        columns |= {"Of": table["denominator"].str.removeprefix("of ")}
        columns |= {"Responses read": [f"{row['n_read']:,} by {row['n_readers']:,}" for row in rows]}
        columns |= {"No level found": table["n_no_level"], "Without a text": table["n_unreached"]}
        alt = f"Rates of the chosen model in {word} by the judge only, by physicians only, and corrected"
        tables.show(columns, optional=("No level found", "Without a text"), key=f"triage_corrected_{word}", alt=alt)


def _share(row: Mapping[Any, Any], kind: str) -> str:
    value, low, high = (min(max(row[f"{kind}{bound}"], 0.0), 1.0) for bound in BOUNDS)
    if not math.isnan(value):
        return f"{percent_words(value)} {interval_words(low, high)}"
    reason = triage_words.short_reason(row["reason"]) if kind == CORRECTED else ""
    return f"{NO_VALUE} ({reason})" if reason else NO_VALUE


def _transitions(here: Here) -> None:
    table = here.computed(transitions, of=CASES)
    st.subheader("Changes of the gold", anchor=False)
    if table.empty:
        sentence = (
            "No physician here has judged what a case itself needs: the gold stands as it came. Assign cases on Study."
        )
        st.html(html.quiet(sentence))
        return
    came, now = (
        table[f"{word}_gold"].map(triage_words.level_letter).where(table[f"{word}_gold"].notna(), table[f"{word}_kind"])
        for word in ("old", "new")
    )
    why = table["why"].replace(WHY)
    columns = {"As it came": came.astype(str), "As read here": now.astype(str).where(why.eq(""), why)}
    columns |= {"Cases": table["n"], "The gold": table["changed"].map({True: "changes", False: "stays"})}
    tables.show(columns, key="triage_transitions", alt="The gold as it came, and as physicians here have read it")


SAFETY = {
    Basis.JUDGE: (
        "The judge's opinion, case by case: intervals are 95 % (Bonett and Price), p is McNemar's, exact. How often "
        "the judge is wrong is not in them; Corrected has it, once enough is read."
    ),
    Basis.PHYSICIANS: "By the responses that physicians read, weighted, case by case; intervals are 95 %, t.",
    Basis.CORRECTED: "The judge's levels put right by what physicians read, case by case; intervals are 95 %, t.",
}


def _safer(by: By) -> None:
    table: pd.DataFrame = by.computed(bases.safety)
    if table.empty:
        return
    st.subheader("Differences on the same cases", anchor=False)
    st.html(html.items(bases.safety_sentences(table, WHOSE[by.basis])))
    if by.basis is Basis.CORRECTED and (margins := bases.margin_sentences(table, triage_choice.analysis())):
        st.html(html.items(margins))
    known = table.loc[table["difference"].notna()]
    if known.empty:
        st.html(html.quiet(f"Too little is read for a difference: {table['reason'].iloc[0]}."))
        return
    rows = known.to_dict(orient="records")
    values = {"First minus second, points": [bases.difference_words(row) for row in rows]}
    if "k_1" in known:
        values["Counts"] = [f"{row['k_1']:,} and {row['k_2']:,}" for row in rows]
    alt = "Differences of under-triage and of missed emergencies between models, on the same cases"
    counts.show_pairs(known, {"Rate": known["measure"].map(METRICS)}, values, key="triage_safety", alt=alt)
    reading = "Below 0 the first model does better. Points are percentage points; p is adjusted (Holm) for the pairs of a format and rate."
    st.html(html.quiet(f"{SAFETY[by.basis]} {reading}"))


def _all_models(cells: pd.DataFrame, rates: pd.DataFrame, counted: str) -> None:
    if rates.empty:
        st.html(html.quiet("No model has an answer with a level on a case with a clear gold."))
        return
    figure = figures.directions(rates.loc[rates["measure"].isin(BARS)], counts=counted)
    theme.figure(figure, key="triage_directions", alt="Under-triage, exact and over-triage of each model and format")
    alt = "Small confusion matrices of all models"
    theme.figure(figures.overview(cells, counts=counted), key="triage_overview", width="content", alt=alt)
    st.html(
        html.quiet(
            "A row is the level a case needs, A to D from the top; a column the level of the answers. Inside the "
            "heavy line: under-triage. Choose a model above to open its cells."
        )
    )
    columns = bases.rates_columns(triage_choice.in_order(rates), IN_TABLE)
    tables.show(columns, key="triage_all", alt="Rates of all models", names=("Model",))


ACCOUNTED = {
    "n_cases": "Cases answered",
    "clear_predicted": "Counted: clear gold and a level",
    "clear_no_level": "Clear, no level found",
    "clear_unread": "Clear, not read yet",
    "n_boundary": "Boundary",
    "n_ambiguous": "Ambiguous",
    "n_unlabelled": "No gold",
    "n_no_response": "Not answered",
    "samples_invalid": "Samples without a level",
    "n_elsewhere": "Responses in neither format",
}
READ = {
    "n_read": "Responses read",
    "n_clear": "Counted: drawn, read blind, a clear gold and a level",
    "n_volunteered": "Chosen, or read with the judge in view",
    "n_unsettled": "Readers conflict",
    "n_cannot_assess": "Cannot be assessed",
    "n_remove": "Unsuitable",
}
ALWAYS = {"n_cases", "clear_predicted", "n_boundary", "n_ambiguous", "n_read", "n_clear"}
"""Columns that stay where they hold nothing but zeros."""
NOT_ANSWERED, NOT_READ = "No case has an answer yet.", "No physician here has read an answer yet."
ALT = "Cases that are counted and left out, by model and format"
READ_ALT = "Responses that physicians have read, and what became of them, by model and format"


def _left_out(table: pd.DataFrame, heads: Mapping[str, str], *, key: str, alt: str, nothing: str) -> None:
    if table.empty:
        st.html(html.quiet(nothing))
        return
    table = triage_choice.in_order(table)
    columns = {head: table[name] for name, head in {"model": "Model", "format": "Format", **heads}.items()}
    optional = [head for name, head in heads.items() if name not in ALWAYS]
    tables.show(columns, key=key, alt=alt, optional=optional, names=("Model",))
