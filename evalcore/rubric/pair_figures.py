"""Figures of the Models page that hold models against each other: differences, ranks, head to head."""

import html

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import bordered, named_rows

ROW_PIXELS, FRAME_PIXELS = 30, 92
SOLID, HOLLOW = "circle", "circle-open"
LOWEST = -0.1


def differences(table: pd.DataFrame, *, corrected: bool, ink: str = INK_ON_PAPER) -> go.Figure:
    """A row a pair: by how much the first is ahead of the second, with its interval, against a line at nought.

    Args:
        table: model_1, model_2, difference, low, high (points of score), in the order from top to bottom.
        corrected: After correction by physicians: solid marks; else they are the judge's opinion: hollow.
        ink: Colour of words.
    """
    names = [
        f"{html.escape(first)} − {html.escape(second)}"
        for first, second in zip(table["model_1"], table["model_2"], strict=True)
    ]
    figure = go.Figure(
        go.Scatter(
            x=table["difference"],
            y=names,
            mode="markers",
            marker={"color": MARK, "size": 10, "symbol": SOLID if corrected else HOLLOW, "line": {"color": MARK, "width": 2}},
            error_x={
                "array": table["high"] - table["difference"],
                "arrayminus": table["difference"] - table["low"],
                "color": MARK,
                "thickness": 2.5 if corrected else 1.5,
                "width": 0,
            },
            customdata=table[["low", "high"]],
            hovertemplate="%{y}: %{x:+.3f} [%{customdata[0]:+.3f}, %{customdata[1]:+.3f}]<extra></extra>",
        )
    )  # fmt: skip
    figure.add_vline(x=0, line={"color": GREY, "width": 1})
    named_rows(figure, names, ink=ink)
    figure.update_xaxes(
        title="Difference of the scores, on the same examples",
        tickformat="+.2f",
        gridcolor=FAINT,
        zeroline=False,
        showgrid=True,
        rangemode="tozero",
    )
    return bordered(figure, height=FRAME_PIXELS + ROW_PIXELS * len(names), top=32, legend=False)


def head_to_head(table: pd.DataFrame, first: str, second: str) -> go.Figure:
    """A point an example: the score of one model across, of the other up; on the diagonal they are equal.

    Args:
        table: One row an example with a score of both: example_id, first, second (scores, at most 1), words (of the conversation).
        first: Name of the model across.
        second: Name of the model up.
    """
    low = min(LOWEST, float(table[["first", "second"]].min().min()) - 0.05) if len(table) else LOWEST
    across, up = html.escape(first), html.escape(second)
    figure = go.Figure()
    figure.add_scatter(
        x=[low, 1.05], y=[low, 1.05], mode="lines", line={"color": GREY, "width": 1}, hoverinfo="skip", showlegend=False
    )
    figure.add_trace(
        go.Scatter(  # drawn as SVG however many: where a browser has no WebGL, its points would be missing
            x=table["first"],
            y=table["second"],
            mode="markers",
            marker={"color": MARK, "size": 9, "opacity": 0.65},
            customdata=[
                [number, html.escape(words)] for number, words in zip(table["example_id"], table["words"], strict=True)
            ],
            hovertemplate=f"%{{customdata[1]}}<br>{across} %{{x:.2f}}, {up} %{{y:.2f}}<extra></extra>",
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 0.65}},
        )
    )
    figure.update_xaxes(
        title=f"Score of {across}", range=[low, 1.05], tickformat=".1f", gridcolor=FAINT, zeroline=False, showgrid=True
    )
    figure.update_yaxes(title=f"Score of {up}", range=[low, 1.05], tickformat=".1f", gridcolor=FAINT, zeroline=False)
    figure.update_layout(clickmode="event+select")
    return bordered(figure, height=520, top=32, legend=False)
