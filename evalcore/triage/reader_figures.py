"""Figures of those who read the level out of an answer: one reader's levels by another's."""

import html
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import GREY_RAMP, INK_ON_PAPER, RAMP
from evalcore.figures.frames import inked, on_one_line
from evalcore.figures.shares import percent

CELL_PIXELS, HEAD_PIXELS, TEXT_PIXELS, SMALL_PIXELS = 44, 84, 14, 12
LETTERS = "ABCD"


def level_name(level: float) -> str:
    """A level as its letter, a boundary as two; 0: none was found.

    >>> level_name(4.0), level_name(1.5), level_name(0.0)
    ('D', 'A/B', 'none')
    """
    if level < 1:
        return "none"
    low, high = math.floor(level), math.ceil(level)
    return LETTERS[low - 1] if low == high else f"{LETTERS[low - 1]}/{LETTERS[high - 1]}"


def readers(cells: pd.DataFrame, one: str, other: str, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """How many responses the one gave each level (rows) and the other gave each (columns); deeper is a larger share of the row.

    "none" is no level: its row and column are grey.

    Args:
        cells: one, other (levels; 0: no level found), n, n_one (of the row).
        one: Who the rows belong to.
        other: Who the columns belong to.
        ink: Colour of words.
    """
    levels = sorted(set(cells["one"]) | set(cells["other"]))
    places = {level: place for place, level in enumerate(levels)}
    names = [level_name(level) for level in levels]
    rows = cells.to_dict(orient="records")
    figure = go.Figure()
    for is_none, ramp in ((False, RAMP), (True, GREY_RAMP)):
        depth: list[list[float | None]] = [[None] * len(levels) for _ in levels]
        for row in rows:
            if (min(row["one"], row["other"]) < 1) == is_none and row["n_one"]:
                depth[places[row["one"]]][places[row["other"]]] = row["n"] / row["n_one"]
        figure.add_heatmap(
            z=depth, zmin=0, zmax=1, colorscale=[list(stop) for stop in ramp], showscale=False, xgap=2, ygap=2, hoverinfo="skip"
        )  # fmt: skip
    figure.add_scatter(
        x=[places[row["other"]] for row in rows],
        y=[places[row["one"]] for row in rows],
        mode="text",
        text=[f"<b>{row['n']:,}</b>" if row["n"] else "0" for row in rows],
        textfont={"size": TEXT_PIXELS, "color": ink},
        customdata=[_hover(row, one, other) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )
    bare: dict[str, Any] = {
        "tickvals": list(range(len(levels))), "ticktext": names, "showgrid": False, "zeroline": False, "title_font_size": SMALL_PIXELS,
        "title_standoff": 6, "tickfont_size": TEXT_PIXELS, "fixedrange": True,
    }  # fmt: skip
    figure.update_xaxes(title=on_one_line(other), side="top", range=[-0.5, len(levels) - 0.5], **bare)
    figure.update_yaxes(title=on_one_line(one), range=[len(levels) - 0.5, -0.5], automargin=True, **bare)
    figure.update_layout(
        height=HEAD_PIXELS + CELL_PIXELS * len(levels),
        margin={"l": 8, "r": 8, "t": 60, "b": 8},
        showlegend=False,
        dragmode=False,
    )
    return inked(figure, ink)


def _hover(row: Mapping[Any, Any], one: str, other: str) -> str:
    share = f", {percent(row['n'] / row['n_one'])} of the row" if row["n_one"] else ""
    return f"{html.escape(one)}: {level_name(row['one'])}, {html.escape(other)}: {level_name(row['other'])}<br>{row['n']:,} responses{share}"
