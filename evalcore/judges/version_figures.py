"""Figures of versions and families of judges: labels that flip, scores before and after, and the own family beside others."""

import html
from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, INK_ON_PAPER, MARK
from evalcore.figures.frames import TEXT_PIXELS, framed, on_lines, reach
from evalcore.judges.criterion_figures import FRAME_PIXELS, ROW_PIXELS
from evalcore.judges.figures import BLUE, OCHRE

DIRECTIONS = (
    ("to_not_met", "n_to_not_met", "n_met_before", "Met, now not met", "Share of what was met", OCHRE, "diamond-open"),
    ("to_met", "n_to_met", "n_not_met_before", "Not met, now met", "Share of what was not met", BLUE, "circle"),
)


def flips(table: pd.DataFrame, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals by group: left the share of met labels that became not met, right the other way.

    Args:
        table: words (of the group), n_not_met_before, and the columns of `drift.flips`, in the order from top to bottom.
        ink: Colour of words.
    """
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=[way[3] for way in DIRECTIONS]
    )
    for column, (name, hits, total, _, axis, colour, symbol) in enumerate(DIRECTIONS, start=1):
        known = table[name].notna()
        rows = table.loc[known].assign(words=table.loc[known, "words"].map(html.escape))
        figure.add_scatter(
            x=rows[name],
            y=[place for place, is_known in enumerate(known) if is_known],
            mode="markers",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"color": colour, "width": 2}},
            error_x=reach(rows, name, f"{name}_low", f"{name}_high", colour),
            customdata=rows[["words", hits, total, f"{name}_low", f"{name}_high"]],
            hovertemplate="%{customdata[0]}: %{x:.0%} (%{customdata[1]:,}/%{customdata[2]:,}) "
            "[%{customdata[3]:.0%}, %{customdata[4]:.0%}]<extra></extra>",
            row=1,
            col=column,
        )
        figure.update_xaxes(
            title=axis, range=[-0.02, 1.02], tickformat=".0%", gridcolor=FAINT, zeroline=False, row=1, col=column
        )
    figure.update_annotations(font_size=TEXT_PIXELS)
    _rows(figure, table["words"], ink)
    return figure.update_layout(showlegend=False, margin={"l": 8, "r": 8, "t": 36, "b": 40})


def score_drift(table: pd.DataFrame, colours: Mapping[str, str], *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Each model's mean score by the earlier judge (open) and by the later one (filled), joined by a line.

    Args:
        table: words (of the row), and the columns of `drift.score_drift`, in the order from top to bottom.
        colours: Of each model; others are grey.
        ink: Colour of words.
    """
    figure = go.Figure()
    known = table["score_before"].notna()
    rows = table.loc[known].assign(words=table.loc[known, "words"].map(html.escape))
    places = [place for place, is_known in enumerate(known) if is_known]
    of_row = [colours.get(model, MARK) for model in rows["model"]]
    for place, colour, before, after in zip(places, of_row, rows["score_before"], rows["score_after"], strict=True):
        figure.add_scatter(
            x=[before, after], y=[place, place], mode="lines", line={"color": colour, "width": 2}, hoverinfo="skip", showlegend=False
        )  # fmt: skip
    for column, name, symbol in (
        ("score_before", "earlier judge", "circle-open"),
        ("score_after", "later judge", "circle"),
    ):
        figure.add_scatter(
            x=rows[column],
            y=places,
            mode="markers",
            name=name,
            marker={"color": of_row, "size": 11, "symbol": symbol, "line": {"color": of_row, "width": 2}},
            customdata=rows[["words", "difference", "low", "high"]],
            hovertemplate="%{customdata[0]}: %{x:.3f}, difference %{customdata[1]:+.3f} "
            "[%{customdata[2]:+.3f}, %{customdata[3]:+.3f}]<extra></extra>",
        )
    figure.update_xaxes(
        title="Mean score (at most 1, not clipped at 0)", tickformat=".3f", gridcolor=FAINT, zeroline=False
    )
    return _rows(figure, table["words"], ink)


def own_family(table: pd.DataFrame, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """How much more often the judge's label is in the favour of its own family's responses, by what physicians say; the combined dot is filled.

    Args:
        table: As `self_preference.by_label` gives it, with words and is_together (all strata combined), in the order from top to bottom.
        ink: Colour of words.
    """
    figure = go.Figure()
    places = np.arange(len(table))
    for is_combined, colour, symbol in ((True, BLUE, "circle"), (False, MARK, "circle-open")):
        mine = table["is_together"].eq(is_combined).to_numpy()
        rows = 100 * table.loc[mine, ["difference", "low", "high"]]
        figure.add_scatter(
            x=rows["difference"],
            y=places[mine],
            mode="markers",
            marker={"color": colour, "size": 11, "symbol": symbol, "line": {"color": colour, "width": 2}},
            error_x=reach(rows, "difference", "low", "high", colour),
            customdata=table.loc[mine, ["words", "n_own", "n_other"]],
            hovertemplate="%{customdata[0]}: %{x:+.0f} points, %{customdata[1]:,} own reads and %{customdata[2]:,} others<extra></extra>",
            showlegend=False,
        )
    figure.add_vline(x=0, line={"color": MARK, "width": 1})
    figure.update_xaxes(
        title="Own family less others (percentage points; right of 0: in its own favour)",
        tickformat=".0f",
        gridcolor=FAINT,
        zeroline=False,
    )
    return _rows(figure, table["words"], ink, least_rows=3)


def _rows(figure: go.Figure, names: pd.Series, ink: str, *, least_rows: int = 2) -> go.Figure:
    rows = [on_lines(name) for name in names]
    return framed(figure, rows, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink, least_rows=least_rows)
