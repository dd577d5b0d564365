"""Figures of reading."""

import html

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT
from evalcore.figures.forest import with_words
from evalcore.figures.frames import framed, on_lines

READ, LEFT = "#2f7f95", "rgba(128,136,144,0.35)"  # strong enough on paper and on slate
ROW_PIXELS, FRAME_PIXELS = 32, 96


def progress(table: pd.DataFrame) -> go.Figure:
    """A bar a row of `pace.progress`, from top to bottom: reads that are locked, and those that are left, with the pace in words beside it."""
    figure = go.Figure()
    for column, name, colour in (("n_done", "read", READ), ("n_left", "still to read", LEFT)):
        hover = "%{customdata}: %{x:,}<extra>%{fullData.name}</extra>"
        figure.add_bar(
            x=table[column],
            y=list(range(len(table))),
            name=name,
            orientation="h",
            marker={"color": colour},
            customdata=table["label"].map(html.escape),
            hovertemplate=hover,
        )
    framed(
        figure,
        [on_lines(label) for label in table["label"]],
        row_pixels=ROW_PIXELS,
        frame_pixels=FRAME_PIXELS,
        least_rows=1,
    )
    figure.update_xaxes(
        title="Reads", tickformat=",d", rangemode="tozero", gridcolor=FAINT, showgrid=True, zeroline=False
    )
    figure.update_layout(barmode="stack", bargap=0.4, legend_traceorder="normal")
    return with_words(figure, list(table["words"]))
