"""Figures of agreement between raters."""

import html

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import GREY_RAMP, INK_ON_PAPER, RAMP
from evalcore.figures.frames import NAME_PIXELS, inked, on_one_line

ROW_PIXELS, HEAD_PIXELS = 34, 76
NAMED_PIXELS, NUMBERED_PIXELS, CHARACTER_PIXELS = 140, 52, 7.5
"""Width of a cell under a name, and under a number; and of a character of a name."""
HEAD_CHARACTERS, MOST_NAMED = 20, 6
"""Columns are headed by names where all are this short and this few; else raters are numbered, and columns headed by numbers."""
TEXT_PIXELS = 14
LEFT_TO_RIGHT = "\u200e"  # keeps a number behind a name that is written from right to left
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
    places = {name: place for place, name in enumerate(raters)}
    is_named = len(raters) <= MOST_NAMED and max(map(len, raters)) <= HEAD_CHARACTERS
    heads = [html.escape(name) if is_named else str(n) for n, name in enumerate(raters, start=1)]
    rows = [
        on_one_line(name) if is_named else f"{on_one_line(name)}{LEFT_TO_RIGHT}  {n}"
        for n, name in enumerate(raters, start=1)
    ]
    first_row, n_columns = int(is_named), len(raters) - 1
    named = table.assign(
        across=table["rater_1"].map(places),
        down=table["rater_2"].map(places),
        pair=table["rater_2"].map(html.escape) + " and " + table["rater_1"].map(html.escape),
        words=table["words"].map(html.escape),
        few=table["small"].astype(bool),
    )
    figure = go.Figure()
    down, across = list(range(first_row, len(raters))), list(range(n_columns))
    for few, ramp in ((False, RAMP), (True, GREY_RAMP)):
        depth = named.loc[named["few"].eq(few)].pivot(index="down", columns="across", values="value")
        figure.add_heatmap(
            z=depth.reindex(down, columns=across).to_numpy(), x=across, y=down, zmin=0, zmax=1, colorscale=[list(stop) for stop in ramp],
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
            customdata=cells[["words", "n_items", "n_examples", "pair"]],
            hovertemplate="%{customdata[3]}: %{customdata[0]}<br>%{customdata[1]:,} criteria of %{customdata[2]:,} conversations<extra></extra>",
        )
    figure.update_yaxes(
        tickvals=down,
        ticktext=rows[first_row:],
        range=[len(raters) - 0.5, first_row - 0.5],
        automargin=True,
        tickfont_size=NAME_PIXELS,
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(
        tickvals=across,
        ticktext=heads[:n_columns],
        tickangle=0,
        side="top",
        range=[-0.5, n_columns - 0.5],
        automargin=True,
        tickfont_size=NAME_PIXELS,
        showgrid=False,
        zeroline=False,
    )
    longest = max(len(html.unescape(row)) for row in rows)
    figure.update_layout(
        height=HEAD_PIXELS + ROW_PIXELS * len(down),
        width=round(CHARACTER_PIXELS * longest) + (NAMED_PIXELS if is_named else NUMBERED_PIXELS) * n_columns,
        margin=MARGIN,
        showlegend=False,
        dragmode=False,
    )
    return inked(figure, ink)
