"""Figures of calibration: reliability, routing, and spread beside the panel's."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import TEXT_PIXELS, framed, inked, on_lines, on_one_line, reach

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x")
"""The mark of each model, in the order of their names: colour is never alone."""
PANEL_PIXELS, ALONE_PIXELS, GAP_PIXELS, NAMES_PIXELS, TITLE_PIXELS, FOOT_PIXELS, LEGEND_PIXELS = (
    390,
    330,
    58,
    74,
    34,
    58,
    34,
)
"""Side of a square, and of one that stands alone beside a table; what is around it."""


def symbols_of(models: Sequence[str]) -> dict[str, str]:
    """The mark of each model; of all models of the study, so that a model has one mark throughout."""
    return {model: SYMBOLS[n % len(SYMBOLS)] for n, model in enumerate(sorted(set(models)))}


def square(figure: go.Figure, start: float, column: int, x_title: str) -> None:
    """The axes of one square, both in shares, from `start` to 1."""
    span = [start - 0.03 * (1 - start), 1 + 0.03 * (1 - start)]
    ticks = {"tickformat": ".0%", "gridcolor": FAINT, "zeroline": False, "range": span, "nticks": 6}
    figure.update_xaxes(title=html.escape(x_title), showgrid=True, **ticks, row=1, col=column)
    figure.update_yaxes(**ticks, row=1, col=column)


def gap(n_panels: int) -> float:
    """Between squares, as a share of the width that Plotly wants."""
    return GAP_PIXELS / (n_panels * PANEL_PIXELS + (n_panels - 1) * GAP_PIXELS) if n_panels > 1 else 0.0


def sized(figure: go.Figure, n_panels: int, *, legend: bool, ink: str = INK_ON_PAPER) -> go.Figure:
    """Squares stay squares, however wide the page is."""
    foot = FOOT_PIXELS + (LEGEND_PIXELS if legend else 0)
    side = PANEL_PIXELS if n_panels > 1 else ALONE_PIXELS
    figure.update_layout(
        width=NAMES_PIXELS + n_panels * side + (n_panels - 1) * GAP_PIXELS + 12,
        height=TITLE_PIXELS + side + foot,
        margin={"l": NAMES_PIXELS, "r": 12, "t": TITLE_PIXELS, "b": foot, "autoexpand": False},
        legend={"orientation": "h", "y": -FOOT_PIXELS / side, "yanchor": "top", "x": 0},
        dragmode=False,
        hovermode="closest",
    )
    return inked(figure, ink)


def whisker(value: float, low: float, high: float, colour: str) -> dict[str, object]:
    """One interval as Plotly draws it; none where there is none."""
    return {"array": [high - value], "arrayminus": [value - low], "color": colour, "thickness": 2, "width": 0}


STEP, MOST_STEPS = 0.011, 6
"""How far models that stand at the same confidence are moved apart, and how many at most."""


def reliability(
    table: pd.DataFrame,
    panels: Mapping[str, str],
    colours: Mapping[str, str],
    dashes: Mapping[str, str],
    *,
    x_title: str,
    y_title: str,
    sides: tuple[str, str] = ("under-confident", "over-confident"),
    ink: str = INK_ON_PAPER,
) -> go.Figure:
    """How often labels are right over how sure they were stated: squares side by side with the line on which confidence is borne out.

    Args:
        table: panel, series, lowest, highest, mean_confidence, share_right with low and high (all in 0..1), n, n_clusters; by confidence.
        panels: Titles of the squares, in their order; one without rows says so.
        colours: By series; others are grey.
        dashes: The line of each series.
        x_title: What the confidence is, with its unit.
        y_title: What is right, with its unit.
        sides: Words above and below the line.
        ink: Colour of words.
    """
    figure = make_subplots(
        cols=len(panels), horizontal_spacing=gap(len(panels)), subplot_titles=[html.escape(title) for title in panels.values()]
    )  # fmt: skip
    start = max(0.0, math.floor(10 * min(table["lowest"].min(), table["low"].min())) / 10) if len(table) else 0.0
    names = sorted(set(table["series"].astype(str)))
    symbols = symbols_of(list(colours) or names)
    named: set[str] = set()
    for column, panel in enumerate(panels, start=1):
        figure.add_scatter(
            x=[start, 1], y=[start, 1], mode="lines", line={"color": GREY, "width": 1, "dash": "dot"}, hoverinfo="skip", showlegend=False, row=1, col=column
        )  # fmt: skip
        mine = table.loc[table["panel"].eq(panel)]
        for series, rows in mine.groupby(mine["series"].astype(str), sort=True):
            place = names.index(str(series)) % MOST_STEPS - (min(len(names), MOST_STEPS) - 1) / 2
            colour = colours.get(str(series), MARK)
            figure.add_scatter(
                x=rows["mean_confidence"] + STEP * place * (1 - start),
                y=rows["share_right"],
                mode="lines+markers",
                name=on_one_line(str(series)),
                legendgroup=str(series),
                legendrank=names.index(str(series)) + 1,
                showlegend=len(names) > 1 and series not in named,
                line={"color": colour, "dash": dashes.get(str(series), "solid"), "width": 1.5},
                marker={"size": 10, "symbol": symbols.get(str(series), "circle"), "color": colour},
                error_y=reach(rows, "share_right", "low", "high", colour),
                error_x=reach(rows, "mean_confidence", "lowest", "highest", FAINT) if len(names) == 1 else None,
                customdata=rows.assign(name=html.escape(str(series)))[
                    ["name", "mean_confidence", "low", "high", "n", "n_clusters", "lowest", "highest"]
                ],
                hovertemplate="%{customdata[0]}<br>confidence %{customdata[1]:.2f} (%{customdata[6]:.2f} to %{customdata[7]:.2f})<br>"
                "%{y:.0%} [%{customdata[2]:.0%}, %{customdata[3]:.0%}], n = %{customdata[4]:,}<extra></extra>",
                row=1,
                col=column,
            )
            named.add(str(series))
        if mine.empty:
            figure.add_annotation(
                x=(1 + start) / 2, y=(1 + start) / 2, text="nothing to draw", showarrow=False, row=1, col=column
            )
        _sides(figure, sides, start, column)
        square(figure, start, column, x_title)
    figure.update_yaxes(title=html.escape(y_title), row=1, col=1)
    figure.update_annotations(font_size=TEXT_PIXELS)
    return sized(figure, len(panels), legend=len(names) > 1, ink=ink)


def _sides(figure: go.Figure, sides: tuple[str, str], start: float, column: int) -> None:
    """What it means to lie above or below the line."""
    width = 1 - start
    for (x, y), anchor, words in (((start, 1.0), "left", sides[0]), ((1.0, start), "right", sides[1])):
        down = "top" if anchor == "left" else "bottom"
        figure.add_annotation(
            x=x + (0.03 if anchor == "left" else -0.03) * width, y=y, xanchor=anchor, yanchor=down, text=html.escape(words), showarrow=False, row=1, col=column
        )  # fmt: skip


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


PANELS = (
    ("distance", "Distance, unbiased"),
    ("entropy_model", "Entropy (bits)"),
)
"""Measures from left to right, with the words of their axes."""
FORMAT_SYMBOLS = {"qa": "circle", "conversation": "diamond"}
ROW_PIXELS, FRAME_PIXELS = 34, 96


def spread(
    table: pd.DataFrame, formats: Mapping[str, str], colours: Mapping[str, str], *, ink: str = INK_ON_PAPER
) -> go.Figure:
    """Dots with intervals, a row a model and format: the distance to the panel, and the entropies of both beside the floor (a tick).

    Args:
        table: Rows of `case_spread.summary` of the measures of `PANELS` and of entropy_panel; models from top to bottom as they first occur.
        formats: Words by format, in the order from top to bottom within a model.
        colours: By model; others are grey.
        ink: Colour of words.
    """
    keys = [
        (model, word)
        for model in dict.fromkeys(table["model"].astype(str))
        for word in formats
        if (table["model"].astype(str).eq(model) & table["format"].astype(str).eq(word)).any()
    ]
    figure = make_subplots(cols=len(PANELS), shared_yaxes=True, horizontal_spacing=0.04)
    for column, (measure, title) in enumerate(PANELS, start=1):
        mine = {(str(row["model"]), str(row["format"])): row for row in _of(table, measure)}
        panel = {(str(row["model"]), str(row["format"])): row for row in _of(table, "entropy_panel")}
        for place, key in enumerate(keys):
            if key not in mine:
                continue
            row, colour = mine[key], colours.get(key[0], MARK)
            one = pd.DataFrame([row])
            figure.add_scatter(
                x=one["value"],
                y=[place],
                mode="markers",
                showlegend=False,
                marker={"size": 11, "symbol": FORMAT_SYMBOLS.get(key[1], "circle"), "color": colour},
                error_x=reach(one, "value", "low", "high", colour),
                customdata=[(_name(key, formats), row["low"], row["high"], row["n_cases"])],
                hovertemplate="%{customdata[0]}: %{x:.2f} [%{customdata[1]:.2f}, %{customdata[2]:.2f}], %{customdata[3]:,} cases<extra></extra>",
                row=1,
                col=column,
            )
            _tick(figure, row["floor"], place, column, "a model that draws from the panel", ink)
            if measure == "entropy_model" and key in panel:
                votes = panel[key]
                figure.add_scatter(
                    x=[votes["value"]],
                    y=[place],
                    mode="markers",
                    showlegend=False,
                    marker={"size": 10, "symbol": "square-open", "color": ink, "line": {"color": ink, "width": 2}},
                    customdata=[(votes["low"], votes["high"])],
                    hovertemplate="the panel's votes: %{x:.2f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]<extra></extra>",
                    row=1,
                    col=column,
                )
        figure.update_xaxes(
            title=title, rangemode="normal" if measure == "distance" else "tozero", nticks=5, showgrid=True, gridcolor=FAINT, zeroline=False, row=1, col=column
        )  # fmt: skip
        if measure == "distance":
            figure.add_vline(x=0, line={"color": GREY, "width": 1}, row=1, col=column)
    _legend(figure, formats, ink)
    figure.update_annotations(font_size=TEXT_PIXELS)
    return framed(
        figure, [on_lines(", ".join((model, formats[word]))) for model, word in keys], row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink
    )  # fmt: skip


def _of(table: pd.DataFrame, measure: str) -> list[dict[Any, Any]]:
    return table.loc[table["measure"].eq(measure)].to_dict(orient="records")


def _name(key: tuple[str, str], formats: Mapping[str, str]) -> str:
    return html.escape(f"{key[0]}, {formats[key[1]]}")


def _tick(figure: go.Figure, x: float, place: int, column: int, words: str, ink: str) -> None:
    figure.add_scatter(
        x=[x], y=[place], mode="markers", showlegend=False, marker={"size": 18, "symbol": "line-ns-open", "color": ink, "line": {"color": ink, "width": 2}},
        hovertemplate=words + ": %{x:.2f}<extra></extra>", row=1, col=column,
    )  # fmt: skip


def _legend(figure: go.Figure, formats: Mapping[str, str], ink: str) -> None:
    marks: list[tuple[str, dict[str, Any]]] = [
        (words, {"symbol": FORMAT_SYMBOLS.get(word, "circle"), "color": MARK}) for word, words in formats.items()
    ]
    marks.append(
        ("by chance: a model that draws from the panel", {"symbol": "line-ns-open", "color": ink, "line": {"width": 2}})
    )
    marks.append(("the panel's votes", {"symbol": "square-open", "color": ink, "line": {"width": 2}}))
    for words, marker in marks:
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=html.escape(words), marker={"size": 11, **marker}, row=1, col=1
        )
