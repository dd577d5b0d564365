"""Figures of triage: the confusion matrix of one model, of all, and of those who read the level."""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY_RAMP, INK_ON_PAPER, LEVEL_RAMP, RAMP
from evalcore.figures.frames import NAME_PIXELS, counted, framed, inked, interval, number, on_one_line, percent

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
    """
    gold, predicted = int(row["gold"]), int(row["predicted"])
    head = f"Needs {LETTERS[gold - 1]}, answer gives {LETTERS[predicted - 1]}: {error_words(gold, predicted)}"
    if math.isnan(row["share"]):
        return f"{head}<br>no {html.escape(counts)} with gold {LETTERS[gold - 1]}"
    of = "" if math.isnan(row["n"]) else f" {html.escape(counts)}"
    return f"{head}<br>{counted(row['n'], row['n_gold'], row['share'])}{of} {interval(row['low'], row['high'])}"


ROW_PIXELS, FRAME_PIXELS = 34, 88
SMALL_LINE, STEP = 5, N + 1
"""Models beside one another in the overview before the next line begins; from one small matrix to the next."""
SMALL_CELL, SMALL_WIDE, SMALL_NAMES = 17, 34, 110
LEAST_SHOWN = 0.06
SHARE_OF = {
    "cases": "Share of cases with a clear gold and a level",
    "responses": "Share of responses to cases with a clear gold, drawn and read",
}
DIRECTIONS = (
    ("under", "under-triage: sent lower than needed", LEVEL_RAMP[0], HEAVY),
    ("exact", "exact", LEVEL_RAMP[1], 0),
    ("over", "over-triage: sent higher than needed", LEVEL_RAMP[3], 0),
)
"""What a bar is made of, from left to right: measure, words, colour, width of its border."""


def overview(
    cells: pd.DataFrame, formats: Mapping[str, str], *, counts: str = "cases", ink: str = INK_ON_PAPER
) -> go.Figure:
    """Small matrices of all models: a block a model, formats below one another; deeper is a larger share of the row.

    Cells below the stair (a heavy line) are under-triage.

    Args:
        cells: model, format, gold, predicted, n, n_gold, share, low, high; models in the order in which they first occur.
        formats: Words by format, in the order from top to bottom.
        counts: What n counts, for the hover.
    """
    models = list(dict.fromkeys(str(model) for model in cells["model"]))
    corners = {
        (model, name): (n % SMALL_LINE * STEP, n // SMALL_LINE * (len(formats) * STEP + 1) + place * STEP)
        for n, model in enumerate(models)
        for place, name in enumerate(formats)
    }
    width = STEP * min(len(models), SMALL_LINE)
    depth: list[list[float | None]] = [
        [None] * width for _ in range(max((top for _, top in corners.values()), default=0) + N)
    ]
    words_of = [[""] * width for _ in depth]
    rows = cells.loc[cells["format"].isin(list(formats)) & cells["share"].notna()].to_dict(orient="records")
    for row in rows:
        left, top = corners[str(row["model"]), str(row["format"])]
        down, across = top + int(row["gold"]) - 1, left + int(row["predicted"]) - 1
        depth[down][across] = row["share"]
        head = f"{html.escape(str(row['model']))}, {html.escape(formats[row['format']])}"
        words_of[down][across] = f"{head}<br>{hover(row, counts)}"
    known = {(str(row["model"]), str(row["format"])) for row in rows}
    words: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for (model, name), (left, top) in corners.items():
        if name == next(iter(formats)):
            above = {"x": left - 0.5, "y": top - 0.6, "xanchor": "left", "yanchor": "bottom"}
            words.append(above | {"text": f"<b>{on_one_line(model, 22)}</b>", "font": {"size": NAME_PIXELS}})
        if (model, name) in known:
            shapes.append({"type": "path", "path": _stair(left - 0.5, top - 0.5), "line": {"color": ink, "width": 2}})
        else:
            missing = {"text": f"no {html.escape(formats[name])}", "font": {"size": SMALL_PIXELS}}
            words.append({"x": left + 1.5, "y": top + 1.5} | missing)
    figure = go.Figure(layout={"shapes": shapes, "annotations": [{"showarrow": False} | said for said in words]})
    figure.add_heatmap(
        z=depth, zmin=0, zmax=1, colorscale=[list(stop) for stop in RAMP], showscale=False, xgap=1, ygap=1, customdata=words_of, hoverongaps=False,
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(visible=False, range=[-0.8, width - 0.7], fixedrange=True)
    labelled = [(top + 1.5, html.escape(formats[name])) for (_, name), (left, top) in corners.items() if not left]
    figure.update_yaxes(
        tickvals=[place for place, _ in labelled],
        ticktext=[words for _, words in labelled],
        range=[len(depth) - 0.3, -1.7],
        automargin=True,
        showgrid=False,
        zeroline=False,
        fixedrange=True,
        tickfont_size=NAME_PIXELS,
    )
    figure.update_layout(
        height=round(16 + SMALL_CELL * (len(depth) + 1.4)),
        width=SMALL_NAMES + SMALL_WIDE * width,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        dragmode=False,
        showlegend=False,
    )
    return inked(figure, ink)


def _stair(left: float, top: float) -> str:
    """The outline of all cells of under-triage of a small matrix whose upper left corner is given."""
    points = [(left, top + 1)]
    for level in range(1, N):
        points += [(left + level, top + level), (left + level, top + level + 1)]
    points.append((left, top + N))
    return "M " + " L ".join(f"{x},{y}" for x, y in points) + " Z"


def directions(
    rates: pd.DataFrame, formats: Mapping[str, str], *, counts: str = "cases", ink: str = INK_ON_PAPER
) -> go.Figure:
    """Under-triage, exact and over-triage of each model and format as one bar that fills the row.

    Args:
        rates: model, format, measure (under, exact, over; others are not drawn), value (share of all; NaN: no bar), low, high, and k, n, which are said
            where they are known; models from top to bottom in the order in which they first occur.
        formats: Words by format, in the order from top to bottom within a model.
        counts: What they are shares of.
    """
    models = list(dict.fromkeys(str(model) for model in rates["model"]))
    known = {
        (str(row["model"]), str(row["format"]), str(row["measure"])): row for row in rates.to_dict(orient="records")
    }
    bars = [(model, word) for model in models for word in formats if (model, word, "exact") in known]
    figure = go.Figure()
    for measure, words, colour, border in DIRECTIONS:
        rows = [known[*bar, measure] for bar in bars]
        figure.add_bar(
            x=[row["value"] for row in rows],
            y=list(range(len(bars))),
            orientation="h",
            name=words,
            width=0.66,
            marker={"color": colour, "line": {"color": ink, "width": border}},
            text=[_bar_words(row["value"]) for row in rows],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"size": NAME_PIXELS, "color": ink},
            customdata=[
                f"{html.escape(model)}, {html.escape(formats[word])}<br>{words}: {_rate_words(row)}"
                for (model, word), row in zip(bars, rows, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_xaxes(
        title=SHARE_OF.get(counts, SHARE_OF["cases"]),
        range=[-0.005, 1.005],
        tickformat=".0%",
        gridcolor=FAINT,
        zeroline=False,
    )
    named = [f"{on_one_line(model, 44)}, {html.escape(formats[word])}" for model, word in bars]
    framed(figure, named, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink)
    return figure.update_layout(barmode="stack", legend_traceorder="normal")


def _bar_words(share: float) -> str:
    return "" if math.isnan(share) or share < LEAST_SHOWN else percent(share)


def _rate_words(row: Mapping[Any, Any]) -> str:
    k, n = (row.get(name, math.nan) for name in ("k", "n"))
    return f"{counted(k, n, row['value'])} {interval(row['low'], row['high'])}"


CELL_PIXELS, HEAD_PIXELS, READER_TEXT_PIXELS, READER_SMALL_PIXELS = 44, 84, 14, 12


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
        textfont={"size": READER_TEXT_PIXELS, "color": ink},
        customdata=[_hover(row, one, other) for row in rows],
        hovertemplate="%{customdata}<extra></extra>",
    )
    bare: dict[str, Any] = {
        "tickvals": list(range(len(levels))), "ticktext": names, "showgrid": False, "zeroline": False, "title_font_size": READER_SMALL_PIXELS,
        "title_standoff": 6, "tickfont_size": READER_TEXT_PIXELS, "fixedrange": True,
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
