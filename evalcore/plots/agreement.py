"""Figures of agreement between raters."""

import html

import pandas as pd
import plotly.graph_objects as go

from evalcore.plots.colours import GREY_RAMP, INK_ON_PAPER, RAMP

CELL_PIXELS, ROW_PIXELS, NAMES_PIXELS, HEAD_PIXELS = 96, 34, 190, 84
TEXT_PIXELS, NAME_PIXELS = 14, 13
MARGIN = {"l": 8, "r": 8, "t": 32, "b": 8}


def pair_matrix(table: pd.DataFrame, raters: list[str], *, ink: str = INK_ON_PAPER) -> go.Figure:
    """One coefficient for each two raters, as the lower half of a matrix; deeper is more agreement, from 0 to 1.

    A pair with few items is grey; interval and numbers of items and examples stand in the hover.

    Args:
        table: rater_1, rater_2, value (its cell is deeper the nearer to 1; NaN: none), shown (the value in words), words (with its interval or
            the reason why there is none), n_items, n_examples, small (few items).
        raters: Names in the order of rows and columns; rater_1 comes before rater_2.
        ink: Colour of words.
    """
    names = [html.escape(name) for name in raters]
    columns, rows = names[:-1], names[1:]
    named = table.assign(
        across=table["rater_1"].map(html.escape),
        down=table["rater_2"].map(html.escape),
        words=table["words"].map(html.escape),
        few=table["small"].astype(bool),
    )
    figure = go.Figure()
    for few, ramp in ((False, RAMP), (True, GREY_RAMP)):
        depth = named.loc[named["few"].eq(few)].pivot(index="down", columns="across", values="value")
        figure.add_heatmap(
            z=depth.reindex(rows, columns=columns).to_numpy(), x=columns, y=rows, zmin=0, zmax=1, colorscale=[list(stop) for stop in ramp],
            showscale=False, xgap=2, ygap=2, hoverinfo="skip",
        )  # fmt: skip
    for is_few, cells in named.groupby("few"):
        figure.add_scatter(
            x=cells["across"],
            y=cells["down"],
            mode="text",
            name="few criteria" if is_few else "agreement",
            text=cells["shown"],
            textfont={"size": TEXT_PIXELS, "color": ink},
            customdata=cells[["words", "n_items", "n_examples"]],
            hovertemplate="%{y} and %{x}: %{customdata[0]}<br>%{customdata[1]:,} criteria of %{customdata[2]:,} conversations<extra></extra>",
        )
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=rows,
        range=[len(rows) - 0.5, -0.5],
        automargin=True,
        tickfont={"size": NAME_PIXELS, "color": ink},
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(
        categoryorder="array",
        categoryarray=columns,
        side="top",
        range=[-0.5, len(columns) - 0.5],
        automargin=True,
        tickfont={"size": NAME_PIXELS, "color": ink},
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        height=HEAD_PIXELS + ROW_PIXELS * len(rows),
        width=NAMES_PIXELS + CELL_PIXELS * len(columns),
        margin=MARGIN,
        showlegend=False,
        dragmode=False,
    )
    return figure
