"""Figures of criteria: the share met by judge and by physicians."""

import html

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, INK_ON_PAPER, MARK
from evalcore.figures.frames import framed, on_lines, on_one_line, reach
from evalcore.judges.figures import BLUE

SIDES = (("judge", BLUE, "circle", -0.14), ("physicians", MARK, "diamond-open", 0.14))
"""Whose share, its colour, its mark, and its place within the row."""
ROW_PIXELS, FRAME_PIXELS = 34, 96


def health(table: pd.DataFrame, judge: str, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Two dots with intervals a group: the share that the judge finds met and that physicians find met, of the same items.

    A group without an item that both have labelled has its row and no dot.

    Args:
        table: words (of the group), alarms (in words; empty without one), and of `criterion_health` judge, physicians with their intervals, n;
            in the order from top to bottom.
        judge: What the judge's dots are called.
        ink: Colour of words.
    """
    figure = go.Figure()
    known = table["judge"].notna()
    rows = table.loc[known].assign(words=table.loc[known, "words"].map(html.escape))
    places = [place for place, is_known in enumerate(known) if is_known]
    for side, colour, symbol, shift in SIDES:
        figure.add_scatter(
            x=rows[side],
            y=[place + shift for place in places],
            mode="markers",
            name=on_one_line(judge) if side == "judge" else "physicians, blind",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"color": colour, "width": 2}},
            error_x=reach(rows, side, f"{side}_low", f"{side}_high", colour),
            customdata=rows[["words", "n", f"{side}_low", f"{side}_high"]],
            hovertemplate="%{customdata[0]}: %{x:.0%} [%{customdata[2]:.0%}, %{customdata[3]:.0%}] met, %{customdata[1]:,} items<extra></extra>",
        )
    named = [
        on_lines(words) + (f"  <b>{html.escape(alarms)}</b>" if alarms else "")
        for words, alarms in zip(table["words"], table["alarms"], strict=True)
    ]
    figure.update_xaxes(
        title="Met (share of items)", range=[-0.02, 1.02], tickformat=".0%", gridcolor=FAINT, zeroline=False
    )
    return framed(figure, named, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink)
