"""Figures of the Overview page."""

import html

import pandas as pd
import plotly.graph_objects as go

READ, UNREAD = "#2f7f95", "rgba(128,136,144,0.35)"  # strong enough on paper and on slate
HIDDEN = "rgba(128,136,144,0.15)"
PUBLISHED = "#a8741f"  # 3:1 and more on both
ROW_PIXELS, FRAME_PIXELS, MARK_PIXELS = 26, 96, 14
SEGMENTS = (
    ("n_read", "read by a physician", READ),
    ("n_unread", "not read yet", UNREAD),
    ("n_hidden", "waits for your own read", HIDDEN),
)


def groups_read(table: pd.DataFrame, *, what: str, unit: str) -> go.Figure:
    """Bars by group: what a physician has read, then what nobody has; a diamond where the full benchmark's share would end the bar.

    At the end of a bar stands in words what an interval shows to be more or fewer.

    Args:
        table: label, n, n_read, n_unread, n_hidden, n_whole and published_share as `composition.parts` gives them,
            and marks (words, or empty).
        what: What the groups are, for the axis.
        unit: What is counted, e.g. conversations.
    """
    figure = go.Figure()
    labels = table["label"].map(html.escape)  # Plotly would draw tags and links
    for column, name, colour in SEGMENTS:
        if column == "n_hidden" and not table[column].any():
            continue
        figure.add_bar(
            y=labels,
            x=table[column],
            name=name,
            orientation="h",
            marker={"color": colour, "pattern": {"shape": "/" if column == "n_hidden" else "", "fgcolor": UNREAD}},
            customdata=table["n"],
            hovertemplate="%{y}: %{x:,} of %{customdata:,}<extra>%{fullData.name}</extra>",
        )
    table = table.assign(expected=table["published_share"] * table["n_whole"])
    expected = table.loc[table["expected"].gt(0)]
    if len(expected):
        figure.add_scatter(
            y=labels[expected.index],
            x=expected["expected"],
            name="as in the full benchmark",
            mode="markers",
            marker={
                "symbol": "diamond-tall",
                "size": MARK_PIXELS,
                "color": PUBLISHED,
                "line": {"width": 1.5, "color": "#ffffff"},  # the rim is what is seen on a bar
            },
            customdata=expected["published_share"],
            hovertemplate="%{y}: %{x:,.0f} with the benchmark's share, %{customdata:.0%}<extra></extra>",
        )
    marked = table.loc[table["marks"].ne("")]
    if len(marked):
        figure.add_scatter(
            y=labels[marked.index],
            x=marked[["n", "expected"]].max(axis=1),
            mode="text",
            text="\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}" + marked["marks"].map(html.escape),
            textposition="middle right",
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    figure.update_layout(
        barmode="stack",
        bargap=0.35,
        height=FRAME_PIXELS + ROW_PIXELS * max(len(table), 3),
        margin={"l": 8, "r": 150 if len(marked) else 8, "t": 28, "b": 40},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        xaxis={"title": unit.capitalize(), "tickformat": ",d", "rangemode": "tozero"},
        yaxis={
            "autorange": "reversed",
            "title": what,
            "automargin": True,
            "categoryorder": "array",
            "categoryarray": list(labels),
        },
        dragmode=False,
    )
    return figure
