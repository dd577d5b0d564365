"""Figures of the Overview page."""

import html

import pandas as pd
import plotly.graph_objects as go

READ, UNREAD = "#2f7f95", "rgba(128,136,144,0.35)"  # strong enough on paper and on slate
ROW_PIXELS, FRAME_PIXELS = 26, 96


def shares_read(table: pd.DataFrame, what: str) -> go.Figure:
    """Bars by group: conversations that a physician has read, then those that nobody has; the label says read of all.

    Args:
        table: label, n_examples, n_read, n_unread, as `metrics.composition` gives them.
        what: What the groups are, for the axis.
    """
    figure = go.Figure()
    hover = "%{y}: %{x:,} of %{customdata:,}<extra>%{fullData.name}</extra>"
    for column, name, colour in (("n_read", "read by a physician", READ), ("n_unread", "not read yet", UNREAD)):
        figure.add_bar(
            y=table["label"].map(html.escape),  # Plotly would draw tags and links
            x=table[column],
            name=name,
            orientation="h",
            marker_color=colour,
            customdata=table["n_examples"],
            hovertemplate=hover,
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=FRAME_PIXELS + ROW_PIXELS * max(len(table), 3),
        margin={"l": 8, "r": 8, "t": 28, "b": 40},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={"title": "Conversations", "tickformat": ",d", "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "title": what, "automargin": True},
        dragmode=False,
    )
    return figure
