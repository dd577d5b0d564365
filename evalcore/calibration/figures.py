"""The reliability diagram: how often labels are right over how sure they were stated."""

import html
import math
from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.calibration.squares import gap, sized, square, symbols_of
from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import TEXT_PIXELS, on_one_line, reach

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
