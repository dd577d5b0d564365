"""What figures of calibration have in common: squares side by side whose axes are shares, the mark of each model, and intervals."""

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, INK_ON_PAPER
from evalcore.figures.frames import inked

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x")
"""The mark of each model, in the order of their names: colour is never alone."""
PANEL_PIXELS, ALONE_PIXELS, GAP_PIXELS, NAMES_PIXELS, TITLE_PIXELS, FOOT_PIXELS, LEGEND_PIXELS = (
    390,
    330,
    58,
    74,
    34,
    58,
    34,
)
"""Side of a square, and of one that stands alone beside a table; what is around it."""


def symbols_of(models: Sequence[str]) -> dict[str, str]:
    """The mark of each model.

    Args:
        models: All models of the study, so that a model has one mark throughout.
    """
    return {model: SYMBOLS[n % len(SYMBOLS)] for n, model in enumerate(sorted(set(models)))}


def square(figure: go.Figure, start: float, column: int, x_title: str) -> None:
    """The axes of one square, both in shares, from `start` to 1."""
    span = [start - 0.03 * (1 - start), 1 + 0.03 * (1 - start)]
    ticks = {"tickformat": ".0%", "gridcolor": FAINT, "zeroline": False, "range": span, "nticks": 6}
    figure.update_xaxes(title=html.escape(x_title), showgrid=True, **ticks, row=1, col=column)
    figure.update_yaxes(**ticks, row=1, col=column)


def gap(n_panels: int) -> float:
    """Between squares, as a share of the width that Plotly wants."""
    return GAP_PIXELS / (n_panels * PANEL_PIXELS + (n_panels - 1) * GAP_PIXELS) if n_panels > 1 else 0.0


def sized(figure: go.Figure, n_panels: int, *, legend: bool, ink: str = INK_ON_PAPER) -> go.Figure:
    """Squares stay squares, however wide the page is."""
    foot = FOOT_PIXELS + (LEGEND_PIXELS if legend else 0)
    side = PANEL_PIXELS if n_panels > 1 else ALONE_PIXELS
    figure.update_layout(
        width=NAMES_PIXELS + n_panels * side + (n_panels - 1) * GAP_PIXELS + 12,
        height=TITLE_PIXELS + side + foot,
        margin={"l": NAMES_PIXELS, "r": 12, "t": TITLE_PIXELS, "b": foot, "autoexpand": False},
        legend={"orientation": "h", "y": -FOOT_PIXELS / side, "yanchor": "top", "x": 0},
        dragmode=False,
        hovermode="closest",
    )
    return inked(figure, ink)


def whisker(value: float, low: float, high: float, colour: str) -> dict[str, object]:
    """One interval as Plotly draws it; none where there is none."""
    return {"array": [high - value], "arrayminus": [value - low], "color": colour, "thickness": 2, "width": 0}
