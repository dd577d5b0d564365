"""Figures of harm: what each model's errors cost, and how the models' order hangs on the weights."""

import html
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import NAME_PIXELS, TEXT_PIXELS, framed, inked, number, on_lines, on_one_line, reach

MARKS = (("qa", "circle", -0.16), ("conversation", "diamond", 0.16))
"""Format, its mark, its place within a model's row."""
ROW_PIXELS, FRAME_PIXELS, ORDER_ROW = 44, 92, 30
HEAD_PIXELS, LEGEND_PIXELS, BELOW_PIXELS = 30, 50, 84
"""Of the figure of orders: above the lines, from them to the legend below the axis and its title, and below them in all."""
MOST_LINES, TICKS = 12, (0.25, 0.5, 1, 2, 5, 10, 20)
"""With more places where the order changes than this they are not drawn: the table has them."""


def harm(
    table: pd.DataFrame,
    colours: Mapping[str, str],
    formats: Mapping[str, str],
    *,
    counts: str = "cases",
    ink: str = INK_ON_PAPER,
) -> go.Figure:
    """A row a model: its expected harm in each format, with intervals.

    Args:
        table: model, format, n, harm (NaN: no mark), low, high (NaN: the mark alone), of_under, of_over; models from top to bottom as they first occur.
        colours: By model; others are grey.
    """
    models = list(dict.fromkeys(str(model) for model in table["model"]))
    places = {model: place for place, model in enumerate(models)}
    figure = go.Figure()
    for word, symbol, shift in MARKS:
        if word not in formats:
            continue
        rows = table.loc[table["format"].astype(str).eq(word) & table["harm"].notna()]
        of_row = [colours.get(str(model), MARK) for model in rows["model"]]
        for (_, row), colour in zip(rows.iterrows(), of_row, strict=True):
            one = row.to_frame().T
            figure.add_scatter(
                x=one["harm"], y=[places[str(row["model"])] + shift], mode="markers", marker={"size": 1, "color": colour}, hoverinfo="skip", showlegend=False,
                error_x=reach(one, "harm", "low", "high", colour),
            )  # fmt: skip
        figure.add_scatter(
            x=rows["harm"],
            y=[places[str(model)] + shift for model in rows["model"]],
            mode="markers",
            name=formats[word],
            showlegend=False,
            marker={"color": of_row, "size": 12, "symbol": symbol, "line": {"color": of_row, "width": 1}},
            customdata=[_hover(row, formats[word], counts) for row in rows.to_dict(orient="records")],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=formats[word], marker={"color": MARK, "size": 12, "symbol": symbol}
        )
    figure.update_xaxes(
        title="Expected harm of an answer (weighted levels; less is better)",
        rangemode="tozero",
        showgrid=True,
        gridcolor=FAINT,
        zeroline=False,
        tickformat=".2f",
    )
    return framed(
        figure, [on_lines(model) for model in models], row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink
    )


def _hover(row: Mapping[Any, Any], word: str, counts: str) -> str:
    interval = "" if math.isnan(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    return (
        f"{html.escape(str(row['model']))}, {html.escape(word)}: {row['harm']:.2f}{interval}<br>{row['of_under']:.2f} by under-triage, "
        f"{row['of_over']:.2f} by over-triage, {number(row['n'])} {html.escape(counts)}"
    )


def orders(
    table: pd.DataFrame,
    changes: pd.DataFrame,
    colours: Mapping[str, str],
    dashes: Mapping[str, str],
    formats: Mapping[str, str],
    *,
    now: float | None = None,
    ink: str = INK_ON_PAPER,
) -> go.Figure:
    """The models' places over the ratio of the weights, least harm at the top; dotted where two models change places.

    Args:
        table: format, model, ratio (above 0, sorted), harm, place (1: least harm; NaN: no line).
        colours: By model; others are grey.
        dashes: The line of each model.
        formats: Words by format, from left to right.
        now: The ratio that is chosen: it is marked.
    """
    present = {word: name for word, name in formats.items() if table["format"].astype(str).eq(word).any()}
    figure = make_subplots(
        cols=max(len(present), 1), shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=[html.escape(name) for name in present.values()]
    )  # fmt: skip
    named: set[str] = set()
    for column, word in enumerate(present, start=1):
        mine = table.loc[table["format"].astype(str).eq(word) & table["place"].notna()]
        for model, rows in mine.groupby(mine["model"].astype(str), sort=True):
            name = str(model)
            figure.add_scatter(
                x=rows["ratio"],
                y=rows["place"],
                mode="lines",
                name=on_one_line(name),
                legendgroup=name,
                showlegend=name not in named,
                line={"color": colours.get(name, MARK), "dash": dashes.get(name, "solid"), "width": 3, "shape": "hvh"},
                customdata=rows.assign(words=html.escape(name))[["words", "harm"]],
                hovertemplate="%{customdata[0]}: place %{y} at ratio %{x:.2f}, harm %{customdata[1]:.2f}<extra></extra>",
                row=1,
                col=column,
            )
            named.add(name)
        at = changes.loc[changes["format"].astype(str).eq(word), "ratio"]
        low, high = table["ratio"].min(), table["ratio"].max()
        inside = [ratio for ratio in at if low <= ratio <= high]
        for ratio in inside if len(inside) <= MOST_LINES else []:
            figure.add_vline(x=ratio, line={"color": GREY, "width": 1, "dash": "dot"}, row=1, col=column)
        if now is not None and low <= now <= high:
            figure.add_vline(x=now, line={"color": ink, "width": 1.5}, row=1, col=column)
        figure.update_xaxes(
            title="Weight of under-triage over that of over-triage",
            type="log",
            tickvals=list(TICKS),
            showgrid=True,
            gridcolor=FAINT,
            row=1,
            col=column,
        )
    n = int(table["place"].max()) if table["place"].notna().any() else 1
    figure.update_yaxes(range=[n + 0.5, 0.5], dtick=1, gridcolor=FAINT, zeroline=False, tickfont_size=NAME_PIXELS)
    figure.update_yaxes(title="Place (1: least harm)", row=1, col=1)
    figure.update_annotations(font_size=TEXT_PIXELS)
    plotted = ORDER_ROW * (max(n, 3) + 1)
    figure.update_layout(
        height=HEAD_PIXELS + plotted + BELOW_PIXELS,
        margin={"l": 8, "r": 8, "t": HEAD_PIXELS, "b": BELOW_PIXELS},
        legend={"orientation": "h", "y": -LEGEND_PIXELS / plotted, "yanchor": "top", "x": 0},
        dragmode=False,
    )
    return inked(figure, ink)
