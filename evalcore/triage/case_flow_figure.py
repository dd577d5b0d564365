"""The flow of cases: from their sources, by what they are used for, to the level that they stand at in the end."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, LEVEL_RAMP, MARK
from evalcore.figures.frames import TEXT_PIXELS, inked, on_one_line

NODE_PIXELS, FRAME_PIXELS, LEAST_PIXELS = 44, 40, 300
"""Of a node with its words; around all nodes; and the least that the nodes have."""
COLUMNS = (0.0, 0.5, 1.0)
"""Where the three columns stand."""
WIDTH, GAP, MARGIN = 0.01, 0.045, 0.22
"""Half the width of a node; the gap between two nodes, and the room for words on either side, as shares of the whole."""
LEAST_HEIGHT = 0.004
LONGEST = (18, 40, 26)
"""Characters of a name in each column; what is longer is cut off."""
BEND = np.linspace(0.0, 1.0, 24)
SMOOTH = BEND * BEND * (3 - 2 * BEND)
RIBBON, OUT = "rgba(128,136,144,0.16)", "rgba(128,136,144,0.08)"
ENDS: Mapping[str, str] = {
    "A": LEVEL_RAMP[0], "A/B": LEVEL_RAMP[0], "B": LEVEL_RAMP[1], "B/C": LEVEL_RAMP[1], "C": LEVEL_RAMP[2], "C/D": LEVEL_RAMP[2],
    "D": LEVEL_RAMP[3],
}  # fmt: skip
"""The colour of a level, a boundary in that of its lower one; what has no level is grey."""
OUTCOMES = {
    "direct": "direct: by the source's label",
    "consensus": "consensus: by a panel",
    "ambiguous": "ambiguous: looked at apart",
    "excluded": "excluded",
}


Stages = tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int]]


def case_flow(links: pd.DataFrame, stages: Stages, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Three columns of nodes, each as high as its cases are many, joined by ribbons.

    Args:
        links: stage (0: from a source to an outcome; 1: from an outcome to an end), start, end, n (cases).
        stages: The nodes of each column from top to bottom, each with its cases; all columns hold the same cases.
    """
    figure = go.Figure()
    most = max(map(len, stages))
    free = 1 - GAP * max(most - 1, 0)
    total = max(sum(stages[0].values()), 1)
    places = [_places(sizes, free / total) for sizes in stages]
    leaving = [dict.fromkeys(names, 0.0) for names in stages]
    arriving = [dict.fromkeys(names, 0.0) for names in stages]
    for link in _in_order(links, stages).to_dict(orient="records"):
        column, start, end, height = int(link["stage"]), str(link["start"]), str(link["end"]), link["n"] / total * free
        top = places[column][start] + leaving[column][start]
        bottom = places[column + 1][end] + arriving[column + 1][end]
        leaving[column][start] += height
        arriving[column + 1][end] += height
        _ribbon(figure, column, top, bottom, height, out="excluded" in (start, end))
        figure.add_scatter(
            x=[(COLUMNS[column] + COLUMNS[column + 1]) / 2],
            y=[(top + bottom + height) / 2],
            mode="markers",
            marker={"size": 14, "color": "rgba(0,0,0,0)"},
            hovertemplate=f"{on_one_line(start)} to {on_one_line(end)}: {link['n']:,} {'case' if link['n'] == 1 else 'cases'}<extra></extra>",
            showlegend=False,
        )
    for column, sizes in enumerate(stages):
        for name, n in sizes.items():
            _node(figure, column, name, places[column][name], max(n / total * free, LEAST_HEIGHT), n)
    figure.update_xaxes(visible=False, range=[-MARGIN, 1 + MARGIN], fixedrange=True)
    figure.update_yaxes(visible=False, range=[1.02, -0.02], fixedrange=True)
    figure.update_layout(
        height=FRAME_PIXELS + max(LEAST_PIXELS, NODE_PIXELS * most),
        margin={"l": 4, "r": 4, "t": 8, "b": 8},
        dragmode=False,
        showlegend=False,
    )
    return inked(figure, ink)


def _places(sizes: Mapping[str, int], scale: float) -> dict[str, float]:
    """Where each node of a column begins; a column is centred."""
    heights = [size * scale for size in sizes.values()]
    place = (1 - sum(heights) - GAP * (len(heights) - 1)) / 2
    places = {}
    for name, height in zip(sizes, heights, strict=True):
        places[name] = place
        place += height + GAP
    return places


def _in_order(links: pd.DataFrame, stages: Stages) -> pd.DataFrame:
    """From top to bottom on both sides, so that ribbons cross as little as they can."""
    rank = [{name: place for place, name in enumerate(names)} for names in stages]
    start = [rank[stage][name] for stage, name in zip(links["stage"], links["start"], strict=True)]
    end = [rank[stage + 1][name] for stage, name in zip(links["stage"], links["end"], strict=True)]
    order = np.lexsort((end, start, links["stage"]))
    return links.iloc[order]


def _ribbon(figure: go.Figure, column: int, top: float, bottom: float, height: float, *, out: bool) -> None:
    left, right = COLUMNS[column] + WIDTH, COLUMNS[column + 1] - WIDTH
    across, down = left + (right - left) * BEND, top + (bottom - top) * SMOOTH
    figure.add_scatter(
        x=[*across, *across[::-1]],
        y=[*down, *(down + height)[::-1]],
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=OUT if out else RIBBON,
        hoverinfo="skip",
        showlegend=False,
    )


def _node(figure: go.Figure, column: int, name: str, place: float, height: float, n: int) -> None:
    at, is_last = COLUMNS[column], column == len(COLUMNS) - 1
    colour = ENDS.get(name, GREY) if is_last else MARK if column == 1 else GREY
    figure.add_shape(
        type="rect", x0=at - WIDTH, x1=at + WIDTH, y0=place, y1=place + height, line={"width": 1, "color": FAINT}, fillcolor=colour
    )  # fmt: skip
    words = OUTCOMES.get(name, name) if column == 1 else name
    figure.add_annotation(
        x=at,
        y=place + height / 2 if column != 1 else place,
        xanchor="right" if column == 0 else "left" if is_last else "center",
        yanchor="middle" if column != 1 else "bottom",
        xshift=-14 if column == 0 else 14 if is_last else 0,
        text=f"{on_one_line(words, LONGEST[column])} <b>{n:,}</b>",
        showarrow=False,
        font={"size": TEXT_PIXELS},
    )
