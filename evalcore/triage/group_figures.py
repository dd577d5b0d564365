"""Figures of triage by group of cases: which way answers are wrong, group by group."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, LEVEL_RAMP
from evalcore.figures.frames import TEXT_PIXELS, counted, framed, interval, on_lines, reach

SIDES = (
    ("under", "under-triage", "triangle-down", LEVEL_RAMP[0], 2.5, 0.15),
    ("over", "over-triage", "triangle-up", LEVEL_RAMP[3], 1.0, -0.15),
)
"""Measure, words, mark, its colour, the width of its border, its place within the row."""
ROW_PIXELS, FRAME_PIXELS, LEGEND_PIXELS = 40, 128, 40


def by_group(
    table: pd.DataFrame, formats: Mapping[str, str], words: Mapping[str, str], *, ink: str = INK_ON_PAPER
) -> go.Figure:
    """Marks with intervals by group, a column a format: the shares of under-triage and of over-triage; grey where few cases stand behind them.

    Args:
        table: format, group, measure (under, over; others are not drawn), k, n, value (NaN: no mark), low, high, is_small; groups from top to bottom in the
            order in which they first occur.
        formats: Words by format, from left to right.
    """
    groups = list(dict.fromkeys(str(group) for group in table["group"]))
    places = {group: place for place, group in enumerate(groups)}
    figure = make_subplots(
        cols=max(len(formats), 1), shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=[html.escape(name) for name in formats.values()]
    )  # fmt: skip
    for column, word in enumerate(formats, start=1):
        for measure, name, symbol, fill, border, shift in SIDES:
            mine = (
                table["format"].astype(str).eq(word) & table["measure"].astype(str).eq(measure) & table["value"].notna()
            )
            for few in (False, True):
                rows = table.loc[mine & table["is_small"].eq(few)]
                colour = GREY if few else ink
                figure.add_scatter(
                    x=rows["value"],
                    y=[places[str(group)] + shift for group in rows["group"]],
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    showlegend=column == 1 and not few,
                    marker={"color": fill if not few else "rgba(0,0,0,0)", "size": 11, "symbol": symbol, "line": {"color": colour, "width": border}},
                    error_x=reach(rows, "value", "low", "high", colour) | {"thickness": 1.5},
                    customdata=[_hover(row, name, words) for row in rows.to_dict(orient="records")],
                    hovertemplate="%{customdata}<extra></extra>",
                    row=1,
                    col=column,
                )  # fmt: skip
        figure.update_xaxes(
            title="Share of the group's cases", range=[-0.02, 1.02], tickformat=".0%", gridcolor=FAINT, showgrid=True, zeroline=False, row=1, col=column
        )  # fmt: skip
    figure.update_annotations(font_size=TEXT_PIXELS)
    named = [on_lines(words.get(group, group)) for group in groups]
    framed(figure, named, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink)
    return figure.update_layout(legend_y=1 + LEGEND_PIXELS / (FRAME_PIXELS + ROW_PIXELS * len(groups)), margin_t=64)


def _hover(row: Mapping[Any, Any], name: str, words: Mapping[str, str]) -> str:
    share = counted(row["k"], row["n"], row["value"])
    few = ", few cases" if row["is_small"] else ""
    return f"{html.escape(words.get(str(row['group']), str(row['group'])))}, {name}: {share} {interval(row['low'], row['high'])}{few}"


def apart(
    table: pd.DataFrame, formats: Mapping[str, str], parts: Sequence[tuple[str, str]], *, ink: str = INK_ON_PAPER
) -> go.Figure:
    """How the answers to boundary cases spread: below both letters, the milder letter, the more severe one, above both; a bar a model and format.

    Args:
        table: model, format, and for each part its share (NaN: no bar), PART_k and n; in the order from top to bottom.
        parts: Column and words of each part, from left to right; the first stands in a heavy border.
    """
    figure = go.Figure()
    rows = table.to_dict(orient="records")
    for place, (name, words) in enumerate(parts):
        figure.add_bar(
            x=[row[name] for row in rows],
            y=list(range(len(rows))),
            orientation="h",
            name=words,
            width=0.66,
            marker={"color": LEVEL_RAMP[place], "line": {"color": ink, "width": 0 if place else 2.5}},
            text=["" if math.isnan(row[name]) or row[name] < 0.06 else f"{100 * row[name]:.0f} %" for row in rows],  # noqa: PLR2004
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"size": TEXT_PIXELS, "color": ink},
            customdata=[
                f"{html.escape(str(row['model']))}, {html.escape(formats[str(row['format'])])}<br>{words}: "
                f"{counted(row[f'{name}_k'], row['n'], row[name])}"
                for row in rows
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(
        title="Share of boundary cases with a level", range=[-0.005, 1.005], tickformat=".0%", gridcolor=FAINT, zeroline=False
    )  # fmt: skip
    named = [f"{on_lines(str(row['model']))}, {html.escape(formats[str(row['format'])])}" for row in rows]
    framed(figure, named, row_pixels=34, frame_pixels=92, ink=ink)
    return figure.update_layout(barmode="stack", legend_traceorder="normal")
