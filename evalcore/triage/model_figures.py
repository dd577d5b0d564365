"""Figures of triage for all models at once: small confusion matrices, and the direction of their errors."""

import html
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, INK_ON_PAPER, LEVEL_RAMP, RAMP
from evalcore.figures.frames import NAME_PIXELS, framed, inked, on_one_line
from evalcore.figures.shares import counted, interval, percent
from evalcore.triage.figures import HEAVY, SMALL_PIXELS, N, hover

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
        ink: Colour of words.
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
        ink: Colour of words.
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
