"""What figures have in common: how names are written, the frame around rows, and the colour of words."""

import html
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import INK

NAME_PIXELS, TEXT_PIXELS, MODEL_PIXELS = 13, 13, 14
LINE_CHARACTERS, LINES, ONE_LINE = 44, 2, 36
CUT = "…"
BLANK_PIXELS = 240
LEGEND = {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0}


def on_lines(name: str) -> str:
    """A row's name, escaped, on two lines where it is long; what is longer than two lines is cut off."""
    lines = textwrap.wrap(name, LINE_CHARACTERS, max_lines=LINES, placeholder=CUT)
    return "<br>".join(html.escape(line) for line in lines)


def on_one_line(name: str, longest: int = ONE_LINE) -> str:
    """A name, escaped, on one line; what is longer is cut off."""
    return html.escape(name if len(name) <= longest else name[: longest - 1].rstrip() + CUT)


def reach(rows: pd.DataFrame, value: str, low: str, high: str, colour: str) -> dict[str, object]:
    """The interval around a row's value, by names of columns, as Plotly draws it; none where there is none."""
    ends = {"array": rows[high] - rows[value], "arrayminus": rows[value] - rows[low]}
    return {**ends, "color": colour, "thickness": 2, "width": 0}


def inked(figure: go.Figure) -> go.Figure:
    """All words of a figure in one colour: Streamlit's own for axes is too pale to be read."""
    words = {"color": INK}
    figure.update_xaxes(tickfont=words, title_font=words)
    figure.update_yaxes(tickfont=words, title_font=words)
    figure.update_annotations(font=words)
    return figure.update_layout(legend_font=words)


def framed(
    figure: go.Figure, rows: Sequence[str], *, row_pixels: int, frame_pixels: int, least_rows: int = 2
) -> go.Figure:
    """A figure of rows (escaped names) from the top, at 0, 1, ..., for at least `least_rows`, with a legend above."""
    ticks: dict[str, Any] = {"tickvals": list(range(len(rows))), "ticktext": list(rows)}
    ticks |= {"range": [len(rows) - 0.5, -0.5], "showgrid": False, "zeroline": False}
    figure.update_yaxes(**ticks, automargin=True, tickfont_size=NAME_PIXELS)
    height, margin = frame_pixels + row_pixels * max(len(rows), least_rows), {"l": 8, "r": 8, "t": 28, "b": 40}
    return figure.update_layout(height=height, margin=margin, legend=LEGEND, dragmode=False)


def named_rows(figure: go.Figure, names: Sequence[str]) -> None:
    """Rows from top to bottom that the marks call by their names, which are escaped."""
    order: dict[str, Any] = {"categoryorder": "array", "categoryarray": list(names), "range": [len(names) - 0.5, -0.5]}
    figure.update_yaxes(**order, automargin=True, showgrid=False, tickfont={"size": MODEL_PIXELS, "color": INK})


def bordered(figure: go.Figure, *, height: int, top: int = 40, legend: bool = True) -> go.Figure:
    """The border around a figure, with Plotly's choice of a legend above, or none; height and top in pixels."""
    figure.update_layout(height=height, margin={"l": 8, "r": 24, "t": top, "b": 44}, legend=LEGEND)
    return figure.update_layout(showlegend=None if legend else False, dragmode=False, hovermode="closest")


def blank() -> go.Figure:
    """A figure that shows nothing: it holds a place while the real one is made."""
    hidden = {"visible": False}
    return go.Figure(layout={"height": BLANK_PIXELS, "xaxis": hidden, "yaxis": hidden})
