"""Figures of the Plan part of the Study page."""

import pandas as pd
import plotly.graph_objects as go

from evalcore.plots.colours import FAINT, GREY, INK_ON_PAPER
from evalcore.plots.frames import NAME_PIXELS, inked

ALIKE, IMPORTANT = "#4482c4", "#a8741f"  # 3:1 and more on paper and on slate
DESIGNS = {"uniform": ("equal chances", ALIKE, "dash"), "importance": ("by importance", IMPORTANT, "solid")}
ESTIMATORS = {"physicians_only": "Physicians alone", "corrected": "Corrected"}
CURVE_PIXELS, ROW_PIXELS, FRAME_PIXELS = 300, 34, 90
WIDEST = 8
"""The curve is drawn up to so many times the width that is wanted: the first few responses would press the rest flat."""
FEW_UNITS, ROOM = 10, 1.12


def narrowing(
    table: pd.DataFrame, *, within: float, units: str, axis: str, tick_format: str, ink: str = INK_ON_PAPER
) -> go.Figure:
    """How the interval narrows with what is read, one line a design, and how narrow it is wanted.

    Args:
        table: As `sample_size.curve` gives it: design, n_units, half_width.
        within: Half the width that is wanted.
        units: What is drawn, in words for the axis.
        axis: What the width is of.
        tick_format: Of the widths.
        ink: Colour of words.
    """
    figure = go.Figure()
    for design, (name, colour, dash) in DESIGNS.items():
        rows = table.loc[table["design"].eq(design)]
        figure.add_scatter(
            x=rows["n_units"],
            y=rows["half_width"],
            mode="lines",
            name=name,
            line={"color": colour, "width": 2.5, "dash": dash},
            hovertemplate="%{x:,} " + units + ", " + name + ": ±%{y:" + tick_format + "}<extra></extra>",
        )
    figure.add_hline(
        y=within,
        line={"color": GREY, "width": 1, "dash": "dot"},
        annotation_text="wanted",
        annotation_position="top right",
    )
    whole = {"dtick": 1} if table["n_units"].max() <= FEW_UNITS else {}
    figure.update_xaxes(title=f"Further {units} read", gridcolor=FAINT, rangemode="tozero", tickformat=",", **whole)
    top = min(max([within, *table["half_width"]]) * ROOM, WIDEST * within)
    figure.update_yaxes(title=axis, gridcolor=FAINT, range=[0, top], tickformat=tick_format, automargin=True)
    return _framed(figure, CURVE_PIXELS, ink)


def tried_out(table: pd.DataFrame, *, axis: str, tick_format: str, ink: str = INK_ON_PAPER) -> go.Figure:
    """How far drawings were from the truth: the typical error as a bar about it, the mean interval as a line.

    Args:
        table: As `retrospect.Retrospect.table`.
        axis: What the errors are of.
        tick_format: Of the errors.
        ink: Colour of words.
    """
    figure = go.Figure()
    names = []
    for row in table.to_dict(orient="records"):
        words, colour, _ = DESIGNS[row["design"]]
        name = f"{ESTIMATORS[row['estimator']]}, {words}"
        names.append(name)
        hover = (
            f"{name}: typical error %{{customdata[0]:{tick_format}}}, 95 % interval ±%{{customdata[1]:{tick_format}}}, "
            "which held the truth in %{customdata[2]:,} of %{customdata[3]:,} drawings<extra></extra>"
        )
        said = [[row["error"], row["half_width"], row["n_covered"], row["n_draws"]]] * 2
        for size, width in ((row["half_width"], 2), (row["error"], 9)):
            figure.add_scatter(
                x=[-size, size], y=[name, name], mode="lines", line={"color": colour, "width": width}, customdata=said, hovertemplate=hover
            )  # fmt: skip
    figure.add_vline(x=0, line={"color": GREY, "width": 1})
    figure.update_xaxes(title=axis, gridcolor=FAINT, zeroline=False, tickformat=tick_format)
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=names,
        range=[len(names) - 0.5, -0.5],
        automargin=True,
        tickfont_size=NAME_PIXELS,
    )
    return _framed(figure, FRAME_PIXELS + ROW_PIXELS * len(names), ink).update_layout(showlegend=False)


def _framed(figure: go.Figure, height: int, ink: str) -> go.Figure:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 32, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
    )
    return inked(figure, ink)
