"""Figures of the Judges page."""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import INK_ON_PAPER
from evalcore.figures.frames import NAME_PIXELS, TEXT_PIXELS, inked, on_lines

BLUE, OCHRE = "#4482c4", "#a8741f"  # the judge's blue, and one as strong: 3:1 and more on paper and on slate
LINE = "rgba(128,136,144,0.6)"
ROW_PIXELS, FRAME_PIXELS = 30, 104
SIDES = (
    ("toward", "Toward the judge", "Took its label (share of reads that differed)", BLUE, "circle"),
    ("away", "Away from the judge", "Left its label (share of reads that agreed)", OCHRE, "diamond-open"),
)


def shift(table: pd.DataFrame, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals by kind of criterion: left the share that moved toward the judge, right the share that moved away.

    A kind without a read on one side has its row and no dot there.

    Args:
        table: Rows of `metrics.anchoring.anchoring` of one judge, in the order from top to bottom.
        ink: Colour of words.
    """
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=[side[1] for side in SIDES]
    )
    for column, (movement, name, axis, colour, symbol) in enumerate(SIDES, start=1):
        rows = table.loc[table["movement"].eq(movement)]
        known = rows.loc[rows["share"].notna()]
        names = known["group"].map(on_lines)  # Plotly would draw tags and links
        for group, low, high in zip(names, known["low"], known["high"], strict=True):
            figure.add_scatter(
                x=[low, high], y=[group, group], mode="lines", line={"color": colour, "width": 2}, hoverinfo="skip", row=1, col=column
            )  # fmt: skip
        figure.add_scatter(
            x=known["share"],
            y=names,
            name=name,
            mode="markers",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"color": colour, "width": 2}},
            customdata=known[["n_moved", "n", "low", "high"]],
            hovertemplate="%{y}: %{x:.0%} (%{customdata[0]}/%{customdata[1]}) [%{customdata[2]:.0%}, %{customdata[3]:.0%}]<extra></extra>",
            row=1,
            col=column,
        )
        figure.update_xaxes(title=axis, range=[-0.02, 1.02], tickformat=".0%", gridcolor=LINE, row=1, col=column)
    groups = [on_lines(group) for group in table["group"].drop_duplicates()]
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=groups,
        range=[len(groups) - 0.5, -0.5],
        automargin=True,
        tickfont_size=NAME_PIXELS,
    )
    figure.update_annotations(font_size=TEXT_PIXELS)
    figure.update_layout(
        height=FRAME_PIXELS + ROW_PIXELS * len(groups),
        margin={"l": 8, "r": 8, "t": 32, "b": 40},
        showlegend=False,
        dragmode=False,
    )
    return inked(figure, ink)
