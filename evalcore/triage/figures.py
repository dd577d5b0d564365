"""A figure of triage: the confusion matrix of one model in one format.

Levels are 1 (A, home) to 4 (D, emergency now). A level has its step of one ramp, from pale to deep, and what was sent too low stands in a
heavy border.
"""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, INK_ON_PAPER, LEVEL_RAMP
from evalcore.figures.frames import inked
from evalcore.figures.shares import counted, interval, number, percent

LETTERS = "ABCD"
N = len(LETTERS)
HALF = 0.46
"""Half the side of a cell; cells stand 1 apart."""
MATRIX_PIXELS, HIT_PIXELS = 388, 62
TEXT_PIXELS, SMALL_PIXELS = 15, 12
HEAVY, LIGHT, CHOSEN = 2.5, 1, "rgba(31,127,151,1)"
NAME_CHARACTERS, BLANK = 16, "\u00a0"


def error_words(gold: float, predicted: float) -> str:
    """Which way an answer is wrong, and how far.

    >>> error_words(4, 1), error_words(2, 3), error_words(2, 2)
    ('under-triage by 3 levels', 'over-triage by 1 level', 'exact')
    """
    steps = int(abs(gold - predicted))
    if not steps:
        return "exact"
    way = "under" if predicted < gold else "over"
    return f"{way}-triage by {steps} level{'s' if steps > 1 else ''}"


def matrix(
    cells: pd.DataFrame,
    names: Sequence[str],
    *,
    counts: str = "cases",
    chosen: tuple[int, int] | None = None,
    ink: str = INK_ON_PAPER,
) -> go.Figure:
    """The confusion matrix of one model in one format: a row a gold level, a column the level that the answers give.

    Each cell is filled from its bottom by its share of the row, in its column's step of the ramp, and says share and count. Every cell
    is a point with customdata (gold, predicted, n_open, ...), so that a click tells which one it was.

    Args:
        cells: gold, predicted (1..4), n, n_gold (counts), share (of the row; NaN: a dash), low, high, n_open (how many open with the cell); a row a
            cell.
        names: What the four levels are called, A first, e.g. "home".
        counts: What n counts, for the hover.
        chosen: Gold and predicted of the cell that is open: it is marked.
        ink: Colour of words.
    """
    rows = cells.to_dict(orient="records")
    figure = go.Figure(layout={"shapes": [shape for row in rows for shape in _cell_shapes(row, chosen, ink)]})
    figure.add_scatter(
        x=[row["predicted"] for row in rows],
        y=[row["gold"] for row in rows],
        mode="markers+text",
        name="cells",
        marker={"size": HIT_PIXELS, "symbol": "square", "opacity": 0},
        text=[_cell_words(row) for row in rows],
        textposition="middle center",
        textfont={"size": TEXT_PIXELS, "color": ink},
        selected={"marker": {"opacity": 0}, "textfont": {"color": ink}},
        unselected={"marker": {"opacity": 0}, "textfont": {"color": ink}},
        customdata=[[row["gold"], row["predicted"], row["n_open"], hover(row, counts)] for row in rows],
        hovertemplate="%{customdata[3]}<extra></extra>",
    )
    n_gold = {row["gold"]: row["n_gold"] for row in rows}
    words = [_on_lines(name) for name in names]
    figure.update_xaxes(
        title="Level of the model's answer",
        side="top",
        tickvals=list(range(1, N + 1)),
        ticktext=[f"<b>{letter}</b><br>{name}" for letter, name in zip(LETTERS, words, strict=True)],
        tickangle=0,
        range=[0.5, N + 0.5],
        **_BARE,
    )
    figure.update_yaxes(
        title="Level the case needs",
        tickvals=list(range(1, N + 1)),
        ticktext=[
            f"<b>{letter}</b><br>{number(n_gold.get(level, 0))} {html.escape(counts)}"
            for level, letter in enumerate(LETTERS, start=1)
        ],
        range=[N + 0.5, 0.5],
        automargin=True,
        **_BARE,
    )
    figure.update_layout(
        height=MATRIX_PIXELS,
        margin={"l": 8, "r": 4, "t": 72, "b": 8},
        showlegend=False,
        dragmode=False,
        hovermode="closest",
        hoverdistance=HIT_PIXELS,
        clickmode="event+select",
    )
    return inked(figure, ink)


_BARE: dict[str, Any] = {
    "showgrid": False, "zeroline": False, "fixedrange": True, "tickfont_size": SMALL_PIXELS, "title_font_size": SMALL_PIXELS, "title_standoff": 6,
}  # fmt: skip


def _cell_shapes(row: Mapping[Any, Any], chosen: tuple[int, int] | None, ink: str) -> list[dict[str, Any]]:
    """How full a cell is, its border, and the mark of the cell that is open; all shapes are handed over at once, since each added alone costs 4 ms."""
    x, y = row["predicted"], row["gold"]
    under = x < y
    shapes = []
    if row["share"] > 0:  # not where it is NaN
        top = y + HALF - 2 * HALF * min(row["share"], 1.0)
        filled = {"x0": x - HALF, "x1": x + HALF, "y0": y + HALF, "y1": top, "fillcolor": LEVEL_RAMP[int(x) - 1]}
        shapes.append({"type": "rect", "line": {"width": 0}, "layer": "below"} | filled)
    shapes.append(_border(x, y, HALF, ink if under else FAINT, HEAVY if under else LIGHT))
    if chosen == (int(y), int(x)):
        shapes.append(_border(x, y, HALF - 0.06, CHOSEN, 3))
    return shapes


def _border(x: float, y: float, half: float, colour: str, width: float) -> dict[str, Any]:
    corners = {"x0": x - half, "x1": x + half, "y0": y - half, "y1": y + half}
    return {"type": "rect", "line": {"color": colour, "width": width}, "layer": "below"} | corners


def _on_lines(name: str) -> str:
    """A level's name below its letter, escaped, on two lines where it is long."""
    lines = textwrap.wrap(name, NAME_CHARACTERS, max_lines=2, placeholder="…")
    return "<br>".join(map(html.escape, [*lines, *[BLANK] * (2 - len(lines))]))  # so that all letters stand on one line


def _cell_words(row: Mapping[Any, Any]) -> str:
    share = row["share"]
    if math.isnan(share):
        return "–"
    strong = f"<b>{percent(share)}</b>" if row["n"] else percent(share)
    if math.isnan(row["n"]):
        return strong
    return f"{strong}<br><span style='font-size:{SMALL_PIXELS}px'>{number(row['n'])}/{number(row['n_gold'])}</span>"


def hover(row: Mapping[Any, Any], counts: str) -> str:
    """A cell in words: which way the answer is wrong, its share and interval.

    Args:
        row: gold, predicted, n, n_gold, share, low, high.
        counts: What n counts.
    """
    gold, predicted = int(row["gold"]), int(row["predicted"])
    head = f"Needs {LETTERS[gold - 1]}, answer gives {LETTERS[predicted - 1]}: {error_words(gold, predicted)}"
    if math.isnan(row["share"]):
        return f"{head}<br>no {html.escape(counts)} with gold {LETTERS[gold - 1]}"
    of = "" if math.isnan(row["n"]) else f" {html.escape(counts)}"
    return f"{head}<br>{counted(row['n'], row['n_gold'], row['share'])}{of} {interval(row['low'], row['high'])}"
