"""A forest plot: a row with a name on the left, a dot with its interval, and the numbers in words on the right."""

import html
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT
from evalcore.figures.frames import TEXT_PIXELS, framed, on_lines, reach

ROW_PIXELS, FRAME_PIXELS = 34, 72
LETTER_PIXELS, GAP_PIXELS = 6.6, 14


def forest(
    table: pd.DataFrame, *, title: str, tick_format: str, limits: tuple[float, float] | None = None
) -> go.Figure:
    """Rows from top to bottom: label, value, low and high (NaN: not drawn), words (the numbers), and colour of the dot.

    `title` and `tick_format` are the axis's, which reaches over `limits`, or as far as the intervals do.
    """
    figure = go.Figure()
    known = table.assign(place=range(len(table))).loc[table["value"].notna()]
    for colour, rows in known.groupby("colour", sort=False):
        look = {"mode": "markers", "marker": {"color": colour, "size": 11}}
        look |= {"error_x": reach(rows, "value", "low", "high", str(colour))}
        said = {
            "customdata": rows[["words"]].map(html.escape),
            "hovertemplate": "%{y}: %{customdata[0]}<extra></extra>",
        }
        figure.add_scatter(x=rows["value"], y=rows["place"], **look, **said)
    names = [on_lines(label) for label in table["label"]]
    framed(figure, names, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, least_rows=1)
    grid = {"gridcolor": FAINT, "showgrid": True, "zeroline": False}
    figure.update_xaxes(title=title, tickformat=tick_format, range=limits, **grid)
    return with_words(figure.update_layout(showlegend=False, margin_t=8), list(table["words"]))


def with_words(figure: go.Figure, words: Sequence[str]) -> go.Figure:
    """The figure with words on the right of its rows, which are at places 0, 1, ...; by their name a phone finds them, and puts them below the marks."""
    look = {"x": 1, "xref": "paper", "xanchor": "left", "xshift": GAP_PIXELS, "align": "left", "showarrow": False}
    look |= {"font": {"size": TEXT_PIXELS}, "name": "beside"}
    beside = [look | {"y": place, "text": html.escape(said)} for place, said in enumerate(words)]
    figure.update_layout(annotations=[*figure.layout.annotations, *beside])  # one by one they take far longer
    return figure.update_layout(margin_r=round(GAP_PIXELS + LETTER_PIXELS * max(map(len, words), default=0)))
