"""Matrices: a section of the Triage page. One model's answers by gold, qa and conversation side by side; every cell opens its cases."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.metrics.intervals import NO_VALUE, interval_words, percent_words
from evalcore.metrics.panels import Kind
from evalcore.metrics.triage import SCORES
from evalcore.metrics.triage_bases import PUBLISHED, Basis, rate_words
from evalcore.metrics.triage_corrected import BOUNDS, CORRECTED, JUDGE, PHYSICIANS
from evalcore.metrics.triage_words import NAMES, score_words
from evalcore.plots import triage as figures
from evalcore.plots.triage import LETTERS
from evalcore.schema import Viewer
from evalcore.triage_settings import METRICS, TriageSettings
from pages import _tables, _text, _theme, _triage_cases, _triage_counts, _triage_parts
from pages._triage_counts import Counted
from pages._triage_parts import FORMATS, Chosen, Gold, Here

KINDS = {JUDGE: "Judge only", PHYSICIANS: "Physicians only", CORRECTED: "Corrected"}
SAY_NOTHING = {"displayModeBar": False}
CELL, CLICKED = "triage_cell", "triage_clicked"
BARS = ("under", "exact", "over")
IN_TABLE = ("under", "missed_emergencies", "over", "exact")

HOW = {
    Basis.JUDGE: (
        "Levels of answers: {judges}. A case's answer is the most frequent level of its samples, of equals the more severe; a sample in which no "
        "level was found is no level and is counted apart."
    ),
    Basis.PHYSICIANS: (
        "Levels of answers: by physicians of this study, from blind first reads of responses that were drawn; a response is counted, not a case, "
        "and a read between two levels counts half to each. What was read with the judge in view, or by choice, opens with its cell and enters no share."
    ),
    Basis.CORRECTED: (
        "Levels of answers: {judges} on all responses, put right by what physicians read on some; these are estimates, so there are no counts."
    ),
}
"""Where the levels come from, by who gives them."""


def show(here: Here) -> None:
    """The chosen model in both formats, the cases of one cell, and all models."""
    viewer, chosen = here.viewer, here.chosen
    with here.row:
        model = _triage_parts.one_of("Model", _triage_counts.model_names(here.known), "triage_matrix_of", width=170)
        basis = _triage_counts.basis_control(here.known)
    counted = _triage_counts.of(viewer, chosen, basis)
    first, *others = counted.findings(model) or [""]
    if first:
        st.html(_text.finding(first))
        st.html(_text.items(others))
    if counted.caution:
        st.html(_text.notice(counted.caution, kind="warning"))
        st.page_link("pages/study.py", label="Assign reads on Study", icon=":material/database:")
    if counted.is_known:
        _side_by_side(counted, model, here.settings)
        _cell(viewer, chosen, counted, model)
    if basis is Basis.CORRECTED:
        _corrected(counted, model)
    else:
        _rates(counted, model, here.settings)
    if chosen.gold is Gold.PHYSICIANS:
        _triage_counts.show_transitions(viewer, chosen)
    if counted.is_known:
        st.subheader("All models", anchor=False)
        _all(counted)
    _left_out(viewer, chosen)
    st.html(_text.foot(foot(chosen, basis)))


def cell_name(word: str, gold: float, predicted: float) -> str:
    """How the address and the control call a cell.

    >>> cell_name("qa", 4, 1)
    'qa: needs D, answers A'
    """
    return f"{FORMATS[word]}: needs {LETTERS[int(gold) - 1]}, answers {LETTERS[int(predicted) - 1]}"


def cell_of(name: str | None) -> tuple[str, int, int] | None:
    """Format, gold and prediction of a cell by its name."""
    for word in FORMATS:
        for gold in range(1, len(LETTERS) + 1):
            for predicted in range(1, len(LETTERS) + 1):
                if name == cell_name(word, gold, predicted):
                    return word, gold, predicted
    return None


def _side_by_side(counted: Counted, model: str, chosen_settings: TriageSettings) -> None:
    """The two matrices. A click on a cell opens its cases; of a published matrix there are none."""
    names = list(chosen_settings.level_names.values())
    before = st.query_params.get(CELL, _triage_parts.left(CELL))  # until the control below has been drawn once
    is_open = cell_of(st.session_state.get(CELL, before))
    opens = not model.endswith(PUBLISHED)
    for column, word in zip(st.columns(2, gap="medium"), FORMATS, strict=True):
        cells = counted.cells_of(model, word)
        with column:
            st.html(_text.quiet(_heading(counted, cells, word)))
            if not len(cells):
                st.html(
                    _text.notice(
                        f"{model} has no answers in the format {FORMATS[word]} that anybody has read a level from."
                    )
                )
                continue
            key = f"triage_matrix_{word}"
            mark = is_open[1:] if opens and is_open and is_open[0] == word else None
            figure = figures.matrix(cells, names, counts=counted.counts, chosen=mark, ink=_theme.ink())
            alt = (
                f"Confusion matrix of {FORMATS[word]}: a row a level that cases need, a column the level of the answers"
            )
            if opens:
                st.plotly_chart(
                    figure, config=SAY_NOTHING, key=key, on_select=lambda word=word, key=key: _click(word, key), selection_mode="points", alt=alt
                )  # fmt: skip
            else:
                st.plotly_chart(figure, config=SAY_NOTHING, key=f"{key}_published", alt=alt)


def _heading(counted: Counted, cells: pd.DataFrame, word: str) -> str:
    whose = counted.read_by.get(word, "")
    n = cells.drop_duplicates("gold")["n_gold"].sum() if len(cells) else 0
    many = f": {n:,.0f} {counted.counts} with a clear gold" if n else ""
    return f"{FORMATS[word].capitalize()}{', ' + whose if whose else ''}{many}"


def _click(word: str, key: str) -> None:
    """Open the cell that was clicked; a click on the open one, which Plotly tells as nothing selected, closes it."""
    points = [point for point in st.session_state[key].selection.points if point.get("customdata")]
    if points:
        gold, predicted, n = points[0]["customdata"][:3]
        name = cell_name(word, gold, predicted) if n else None
        st.session_state[f"{CLICKED}_{word}"] = name
    else:
        name = st.session_state.get(f"{CLICKED}_{word}")
        name = None if name == st.session_state.get(CELL) else name
    st.session_state[CELL] = name


def _cell(viewer: Viewer, chosen: Chosen, counted: Counted, model: str) -> None:
    """The cases of one cell: chosen by a click above or in the list, the most dangerous first."""
    if model.endswith(PUBLISHED):
        st.html(_text.quiet("This matrix was published without its cases, so its cells do not open."))
        return
    cells = counted.cells.loc[counted.cells["model"].astype(str).eq(model) & counted.cells["share"].gt(0)]
    cells = cells.assign(steps=cells["gold"] - cells["predicted"]).sort_values(
        ["steps", "gold", "format"], ascending=[False, False, True], kind="stable"
    )
    names = [cell_name(str(row["format"]), row["gold"], row["predicted"]) for row in cells.to_dict(orient="records")]
    before = _triage_parts.left(CELL)
    with st.container(horizontal=True, vertical_alignment="center", key="triage_cell_row"):
        name = st.selectbox(
            "Cases of a cell",
            names,
            index=names.index(before) if before in names else None,
            key=CELL,
            bind="query-params",
            placeholder="Click a cell above, or choose one here",
            label_visibility="collapsed",
            width=340,
        )
    opened = cell_of(name)
    if opened is None:
        st.html(_text.quiet("A heavy border marks under-triage: the answer asks for less care than the case needs."))
        return
    word, gold, predicted = opened
    rows = _triage_counts.rows_of_cell(viewer, chosen, counted.basis, model, word, gold, predicted)
    many = "one case that needs {} and is" if len(rows) == 1 else f"{len(rows):,} cases that need {{}} and are"
    said = f"{model}, {FORMATS[word]}: {many.format(LETTERS[gold - 1])} answered {LETTERS[predicted - 1]}."
    estimated = (
        " The corrected shares are estimates: these are the cases as the judge reads them."
        if counted.basis is Basis.CORRECTED
        else ""
    )
    st.html(_text.finding(said + estimated))
    _triage_cases.listing(viewer, chosen, rows, key="triage_cases")


def _rates(counted: Counted, model: str, chosen_settings: TriageSettings) -> None:
    """Every rate of the chosen model with its denominator, both formats side by side."""
    wanted = [name for name in chosen_settings.metrics if name in METRICS]
    columns: dict[str, list[str]] = {"Measure": [METRICS[name] for name in wanted]}
    present = [word for word in FORMATS if len(counted.cells_of(model, word))]
    for word in present:
        rates, scores = counted.rates_of(model, word), counted.summary_of(model, word)
        columns[FORMATS[word].capitalize()] = [_value(name, rates, scores) for name in wanted]
        columns[f"Of ({FORMATS[word]})"] = [_of(rates[name], counted) if name in rates else "" for name in wanted]
    kept = [
        place for place, _ in enumerate(wanted) if any(columns[FORMATS[word].capitalize()][place] for word in present)
    ]
    _tables.show(
        {name: [column[place] for place in kept] for name, column in columns.items()},
        key="triage_rates",
        alt="Rates of the chosen model in both formats",
    )


def _corrected(counted: Counted, model: str) -> None:
    """Rates of the chosen model by the judge alone, by physicians alone, and corrected."""
    rows = counted.rates.loc[counted.rates["model"].eq(model)].to_dict(orient="records")
    _tables.show(
        {
            "Measure": [NAMES[row["measure"]] for row in rows],
            "Format": [FORMATS[row["format"]] for row in rows],
            **{words: [_share(row, kind) for row in rows] for kind, words in KINDS.items()},
            "Cases": [row["n_cases"] for row in rows],
            "Responses": [row["n_responses"] for row in rows],
            "Read": [row["n_read"] for row in rows],
            "Needs": [row["reason"] for row in rows],
        },
        optional=("Needs",),
        key="triage_corrected",
        alt="Rates of the chosen model by the judge only, by physicians only, and corrected",
    )


def _share(row: Mapping[Any, Any], kind: str) -> str:
    value, low, high = (row[f"{kind}{bound}"] for bound in BOUNDS)
    return NO_VALUE if math.isnan(value) else f"{percent_words(value)} {interval_words(low, high)}"


def _of(rate: Mapping[Any, Any], counted: Counted) -> str:
    """The denominator, in words."""
    return str(rate["denominator"]).removeprefix("of ").replace("case", counted.counts.removesuffix("s"))


def _value(name: str, rates: Mapping[str, Mapping[Any, Any]], scores: Mapping[Any, Any]) -> str:
    """A measure in words; "" where it is not made from these counts, a dash and the reason where it has no value."""
    if name in rates:
        return rate_words(rates[name])
    if name in SCORES and name in scores:
        return score_words(scores, name)
    return ""


def _all(counted: Counted) -> None:
    """Directions of every model's errors, small matrices, and the same as a table."""
    if counted.rates.empty:
        st.html(_text.quiet("No model has an answer with a level on a case with a clear gold."))
        return
    st.plotly_chart(
        figures.directions(counted.rates.loc[counted.rates["measure"].isin(BARS)], FORMATS, ink=_theme.ink()),
        config=SAY_NOTHING,
        key="triage_directions",
        alt="Under-triage, exact and over-triage of each model and format",
    )
    st.plotly_chart(
        figures.overview(counted.cells, FORMATS, ink=_theme.ink()),
        config=SAY_NOTHING,
        key="triage_overview",
        width="content",
        alt="Small confusion matrices of all models",
    )
    st.html(
        _text.quiet(
            "A row is the level a case needs, A to D from the top; a column the level of the answers. Inside the heavy line: under-triage. "
            "Choose a model above to open its cells."
        )
    )
    rows = counted.rates.loc[counted.rates["measure"].isin(IN_TABLE)]
    rows = rows.assign(words=[rate_words(row) for row in rows.to_dict(orient="records")])
    wide = rows.assign(measure=rows["measure"].astype(str), model=rows["model"].astype(str), format=rows["format"].astype(str)).pivot(
        index=["model", "format"], columns="measure", values="words"
    )  # fmt: skip
    wide = _triage_parts.in_order(wide.reset_index())
    _tables.show(
        {
            "Model": wide["model"],
            "Format": wide["format"].map(FORMATS),
            **{METRICS[name]: wide[name] for name in IN_TABLE if name in wide},
        },
        key="triage_all",
        alt="Rates of all models",
        names=("Model",),
    )


def _left_out(viewer: Viewer, chosen: Chosen) -> None:
    """What the numbers leave out, by model and format."""
    table = _triage_parts.in_order(_triage_parts.computed(_triage_counts.left_out, viewer, chosen))
    if table.empty:
        return
    with st.expander("What is counted, and what is left out", type="compact", key="triage_left_out"):
        _tables.show(
            {
                "Model": table["model"],
                "Format": table["format"].astype(str).map(FORMATS),
                "Cases answered": table["n_cases"],
                "Counted: clear gold and a level": table["clear_predicted"],
                "Clear, no level found": table["clear_no_level"],
                "Clear, not read yet": table["clear_unread"],
                "Boundary": table["n_boundary"],
                "Ambiguous": table["n_ambiguous"],
                "No gold": table["n_unlabelled"],
                "Not answered": table["n_no_response"],
                "Samples without a level": table["samples_invalid"],
            },
            key="triage_accounted",
            alt="Cases that are counted and left out, by model and format",
            optional=(
                "Clear, no level found",
                "Clear, not read yet",
                "No gold",
                "Not answered",
                "Samples without a level",
            ),
            names=("Model",),
        )


def foot(chosen: Chosen, basis: Basis) -> str:
    """How the numbers were made."""
    how = HOW[basis].format(judges=chosen.judge_words)
    return (
        f"{how} Gold: {chosen.gold}. Counted are {Kind.CLEAR} cases, whose gold is one letter; boundary and ambiguous cases have sections of their "
        "own. Over-triage: the answer asks for more care than the gold; under-triage: for less. Exact, over and under add up to 1. Severe: two levels "
        "or more. Intervals are 95 % (Wilson), of kappa and macro F1 by leaving out one case at a time. AcuityBench, arXiv 2605.11398. No chance enters "
        "these numbers."
    )
