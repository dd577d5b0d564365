"""Routing: what share of the dangerous misses is caught over what share of the cases goes to a human."""

import html
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.calibration.squares import gap, sized, square, symbols_of, whisker
from evalcore.figures.colours import GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import TEXT_PIXELS, on_one_line


def routing(
    curves: pd.DataFrame,
    chosen: pd.DataFrame,
    panels: Mapping[str, str],
    colours: Mapping[str, str],
    dashes: Mapping[str, str],
    *,
    ink: str = INK_ON_PAPER,
) -> go.Figure:
    """What share of the dangerous misses is caught over what share of the cases goes to a human: squares side by side by format.

    Args:
        curves: model, format, threshold (inf: every case), routed, caught (NaN: not drawn), k_caught, n_caught, ascending by threshold.
        chosen: model, format, threshold, routed, caught with low_caught and high_caught: one large mark each.
        panels: Titles by format, in their order.
        colours: By model; others are grey.
        dashes: The line of each model.
        ink: Colour of words.
    """
    figure = make_subplots(
        cols=len(panels), horizontal_spacing=gap(len(panels)), subplot_titles=[html.escape(title) for title in panels.values()]
    )  # fmt: skip
    names = sorted(set(curves["model"].astype(str)))
    symbols = symbols_of(list(colours))
    named: set[str] = set()
    for column, panel in enumerate(panels, start=1):
        figure.add_scatter(
            x=[0, 1], y=[0, 1], mode="lines", line={"color": GREY, "width": 1, "dash": "dot"}, hoverinfo="skip", showlegend=False, row=1, col=column
        )  # fmt: skip
        mine = curves.loc[curves["format"].astype(str).eq(panel) & curves["caught"].notna()]
        for model, rows in mine.groupby(mine["model"].astype(str), sort=True):
            name = str(model)
            line = {"color": colours.get(name, MARK), "dash": dashes.get(name, "solid"), "width": 2}
            rank = names.index(name) + 1
            _curve(figure, name, rows, line, symbols.get(name, "circle"), column, rank=rank, legend=name not in named)
            named.add(name)
        marks = chosen.loc[chosen["format"].astype(str).eq(panel) & chosen["caught"].notna()]
        for row in marks.to_dict(orient="records"):
            name = str(row["model"])
            _chosen(figure, row, colours.get(name, MARK), symbols.get(name, "circle"), column, ink)
        if mine.empty:
            figure.add_annotation(x=0.5, y=0.5, text="no dangerous miss to catch", showarrow=False, row=1, col=column)
        square(figure, 0.0, column, "Sent to a human (share of the clear cases)")
        figure.add_annotation(
            x=0.97, y=0.0, xanchor="right", yanchor="bottom", text="dotted: cases drawn at random", showarrow=False, row=1, col=column
        )  # fmt: skip
    figure.update_yaxes(title="Dangerous misses caught (share)", row=1, col=1)
    figure.update_annotations(font_size=TEXT_PIXELS)
    return sized(figure, len(panels), legend=True, ink=ink)


def _curve(
    figure: go.Figure, name: str, rows: pd.DataFrame, line: Mapping[str, object], symbol: str, column: int, *, rank: int, legend: bool
) -> None:  # fmt: skip
    """What one model's thresholds cost and catch."""
    said = [
        (
            html.escape(name),
            "every case" if math.isinf(row["threshold"]) else f"cases below {100 * row['threshold']:.3g} %",
            int(row["k_caught"]),
            int(row["n_caught"]),
        )
        for row in rows.to_dict(orient="records")
    ]
    figure.add_scatter(
        x=rows["routed"],
        y=rows["caught"],
        mode="lines+markers",
        name=on_one_line(name),
        legendgroup=name,
        legendrank=rank,
        showlegend=legend,
        line=dict(line),
        marker={"size": 6, "symbol": symbol, "color": line["color"]},
        customdata=said,
        hovertemplate="%{customdata[0]}, %{customdata[1]}<br>caught %{y:.0%} (%{customdata[2]}/%{customdata[3]}),"
        " sent to a human %{x:.0%}<extra></extra>",
        row=1,
        col=column,
    )


def _chosen(figure: go.Figure, row: Mapping[Any, Any], colour: str, symbol: str, column: int, ink: str) -> None:
    """Where one model stands at the threshold that is chosen."""
    figure.add_scatter(
        x=[row["routed"]],
        y=[row["caught"]],
        mode="markers",
        showlegend=False,
        marker={"size": 15, "symbol": symbol, "color": colour, "line": {"color": ink, "width": 2}},
        error_y=whisker(row["caught"], row["low_caught"], row["high_caught"], colour),
        customdata=[(html.escape(str(row["model"])), row["low_caught"], row["high_caught"])],
        hovertemplate="%{customdata[0]}, as chosen<br>caught %{y:.0%} [%{customdata[1]:.0%}, %{customdata[2]:.0%}],"
        " sent to a human %{x:.0%}<extra></extra>",
        row=1,
        col=column,
    )
