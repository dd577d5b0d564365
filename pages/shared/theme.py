"""Figures in the page's own ink, with what they can be saved as; the theme, for what no style sheet reaches."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from evalcore.figures.colours import INK, INK_ON_SLATE
from evalcore.figures.frames import blank, inked
from evalcore.figures.numbers import numbers
from evalcore.study.csv_cells import guarded

FETCHED = "figures_fetched"
PERCENT = {f"{n}%": f"{n} %" for n in range(101)}
"""Ticks of shares with the space that stands before the sign in every sentence: Plotly's own format knows none."""
_HTML = """<span>Save</span> <button name="svg" title="Save as SVG">SVG</button> <button name="png" title="Save as PNG">PNG</button>
<button name="csv" title="Save the numbers as CSV">Numbers</button>"""
_CSS = """
:host { display: block; text-align: end; font-size: 0.82rem; color: var(--or-quiet); }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0.1rem 0.25rem; cursor: pointer; text-decoration: underline; }
button:hover { color: var(--or-accent); }
@media (pointer: coarse) { button { min-height: 44px; min-width: 44px; } }
"""
_JS = Path(__file__).with_name("figure.js").read_text(encoding="utf-8")
_save = st.components.v2.component("overread_save", html=_HTML, css=_CSS, js=_JS)


def ink() -> str:
    """The colour of words in a picture, in the viewer's theme. Figures need none: the style sheet gives them theirs."""
    return INK_ON_SLATE if st.context.theme.type == "dark" else INK


def figure(drawn: go.Figure, *, key: str, alt: str, **more: Any) -> Any:
    """A figure, to be saved as SVG, PNG or numbers; `alt` is for those who do not see it. Returns what was selected."""
    for spaced in (drawn.update_xaxes, drawn.update_yaxes):
        spaced(labelalias=PERCENT, selector={"tickformat": ".0%"})
    event = st.plotly_chart(inked(drawn), config={"displayModeBar": False}, key=key, alt=alt, **more)
    cells = numbers(drawn).map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
    csv = cells.to_csv(index=False, lineterminator="\r\n")
    data = {"key": key, "name": key.replace("_", "-"), "alt": alt, "csv": csv}
    _save(key=f"save_{key}", data=data)
    return event


@contextmanager
def figures_fetched(*, wanted: bool) -> Iterator[None]:
    """While the study is read, the browser prepares what draws figures, which takes as long; once a session."""
    place = st.empty()
    if wanted and FETCHED not in st.session_state:
        place.plotly_chart(blank(), config={"displayModeBar": False}, key=f"{FETCHED}_blank")
        st.session_state[FETCHED] = True
    yield
    place.empty()
