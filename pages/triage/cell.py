"""The cases of one cell of a confusion matrix: how a cell is called, how a click opens it, and what it opens."""

import streamlit as st

from evalcore.study.schema import Viewer
from evalcore.triage.bases import PUBLISHED, Basis
from evalcore.triage.figures import LETTERS
from pages.shared import html, triage_cases, triage_choice
from pages.shared.triage_choice import FORMATS, Chosen
from pages.triage import counts
from pages.triage.counts import Counted

CELL, CLICKED = "triage_cell", "triage_clicked"


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


def is_open() -> tuple[str, int, int] | None:
    """Format, gold and prediction of the cell that is open; by the address until the control has been drawn once."""
    before = st.query_params.get(CELL, triage_choice.left(CELL))
    return cell_of(st.session_state.get(CELL, before))


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


def show(viewer: Viewer, chosen: Chosen, counted: Counted, model: str) -> None:
    """The cases of one cell: chosen by a click above or in the list, the most dangerous first."""
    if model.endswith(PUBLISHED):
        st.html(html.quiet("This matrix was published without its cases, so its cells do not open."))
        return
    cells = counted.cells.loc[counted.cells["model"].astype(str).eq(model) & counted.cells["n_open"].gt(0)]
    cells = cells.assign(steps=cells["gold"] - cells["predicted"]).sort_values(
        ["steps", "gold", "format"], ascending=[False, False, True], kind="stable"
    )
    names = [cell_name(str(row["format"]), row["gold"], row["predicted"]) for row in cells.to_dict(orient="records")]
    before = triage_choice.left(CELL)
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
        st.html(html.quiet("A heavy border marks under-triage: the answer asks for less care than the case needs."))
        return
    word, gold, predicted = opened
    rows = counts.rows_of_cell(viewer, chosen, counted.basis, model, word, gold, predicted)
    st.html(html.finding(f"{model}, {FORMATS[word]}: {_how_many(len(rows), counted.basis, gold, predicted)}"))
    triage_cases.listing(viewer, chosen, rows, key="triage_cases")


def _how_many(n: int, basis: Basis, gold: int, predicted: int) -> str:
    """What the cell opens, in words."""
    needs, gives = LETTERS[gold - 1], LETTERS[predicted - 1]
    if basis is Basis.PHYSICIANS:
        what = "one response to a case that needs" if n == 1 else f"{n:,} responses to cases that need"
        return f"{what} {needs}, read as {gives} by physicians, those chosen for reading and those read with the judge in view among them."
    what = f"one case that needs {needs} and is" if n == 1 else f"{n:,} cases that need {needs} and are"
    estimated = (
        " The corrected shares are estimates: these are the cases as the judge reads them."
        if basis is Basis.CORRECTED
        else ""
    )
    return f"{what} answered {gives}.{estimated}"
