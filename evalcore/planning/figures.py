"""Figures of the Plan part of the Study page."""

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER
from evalcore.figures.frames import inked

ALIKE, IMPORTANT = "#4482c4", "#a8741f"  # 3:1 and more on paper and on slate
DESIGNS = {"uniform": ("equal chances", ALIKE, "dash"), "importance": ("by importance", IMPORTANT, "solid")}
CURVE_PIXELS = 300
WIDEST = 8
"""The curve is drawn up to so many times the width that is wanted: the first few responses would press the rest flat."""
FEW_UNITS, ROOM = 10, 1.12


def narrowing(
    table: pd.DataFrame, *, within: float, units: str, axis: str, tick_format: str, ink: str = INK_ON_PAPER
) -> go.Figure:
    """How the interval narrows with what is read, one line a design, and how narrow it is wanted.

    `table` is that of `sample_size.curve`; `units` are what is drawn, in words, `axis` is what the width is of.
    """
    figure = go.Figure()
    for design, (name, colour, dash) in DESIGNS.items():
        rows = table.loc[table["design"].eq(design)]
        figure.add_scatter(
            x=rows["n_units"],
            y=rows["half_width"],
            mode="lines",
            name=name,
            line={"color": colour, "width": 2.5, "dash": dash},
            hovertemplate="%{x:,} " + units + ", " + name + ": ±%{y:" + tick_format + "}<extra></extra>",
        )
    figure.add_hline(
        y=within,
        line={"color": GREY, "width": 1, "dash": "dot"},
        annotation_text="wanted",
        annotation_position="top right",
    )
    whole = {"dtick": 1} if table["n_units"].max() <= FEW_UNITS else {}
    figure.update_xaxes(title=f"Further {units} read", gridcolor=FAINT, rangemode="tozero", tickformat=",", **whole)
    top = min(max([within, *table["half_width"]]) * ROOM, WIDEST * within)
    figure.update_yaxes(title=axis, gridcolor=FAINT, range=[0, top], tickformat=tick_format, automargin=True)
    figure.update_layout(
        height=CURVE_PIXELS,
        margin={"l": 8, "r": 8, "t": 32, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
    )
    return inked(figure, ink)
