"""The figure of models' spread on ambiguous cases beside the panel's."""

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import TEXT_PIXELS, framed, on_lines, reach

PANELS = (
    ("distance", "Distance, unbiased"),
    ("entropy_model", "Entropy (bits)"),
)
"""Measures from left to right, with the words of their axes."""
SYMBOLS = {"qa": "circle", "conversation": "diamond"}
ROW_PIXELS, FRAME_PIXELS = 34, 96


def spread(
    table: pd.DataFrame, formats: Mapping[str, str], colours: Mapping[str, str], *, ink: str = INK_ON_PAPER
) -> go.Figure:
    """Dots with intervals, a row a model and format: the distance to the panel, and the entropies of both beside the floor (a tick).

    Args:
        table: Rows of `metrics.case_spread.summary` of the measures of `PANELS` and of entropy_panel: model, format, measure, n_cases, value (NaN: no
            dot), low, high, floor; models from top to bottom as they first occur.
        formats: Words by format, in the order from top to bottom within a model.
        colours: By model; others are grey.
        ink: Colour of words.
    """
    keys = [
        (model, word)
        for model in dict.fromkeys(table["model"].astype(str))
        for word in formats
        if (table["model"].astype(str).eq(model) & table["format"].astype(str).eq(word)).any()
    ]
    figure = make_subplots(cols=len(PANELS), shared_yaxes=True, horizontal_spacing=0.04)
    for column, (measure, title) in enumerate(PANELS, start=1):
        mine = {(str(row["model"]), str(row["format"])): row for row in _of(table, measure)}
        panel = {(str(row["model"]), str(row["format"])): row for row in _of(table, "entropy_panel")}
        for place, key in enumerate(keys):
            if key not in mine:
                continue
            row, colour = mine[key], colours.get(key[0], MARK)
            one = pd.DataFrame([row])
            figure.add_scatter(
                x=one["value"],
                y=[place],
                mode="markers",
                showlegend=False,
                marker={"size": 11, "symbol": SYMBOLS.get(key[1], "circle"), "color": colour},
                error_x=reach(one, "value", "low", "high", colour),
                customdata=[(_name(key, formats), row["low"], row["high"], row["n_cases"])],
                hovertemplate="%{customdata[0]}: %{x:.2f} [%{customdata[1]:.2f}, %{customdata[2]:.2f}], %{customdata[3]:,} cases<extra></extra>",
                row=1,
                col=column,
            )
            _tick(figure, row["floor"], place, column, "a model that draws from the panel", ink)
            if measure == "entropy_model" and key in panel:
                votes = panel[key]
                figure.add_scatter(
                    x=[votes["value"]],
                    y=[place],
                    mode="markers",
                    showlegend=False,
                    marker={"size": 10, "symbol": "square-open", "color": ink, "line": {"color": ink, "width": 2}},
                    customdata=[(votes["low"], votes["high"])],
                    hovertemplate="the panel's votes: %{x:.2f} [%{customdata[0]:.2f}, %{customdata[1]:.2f}]<extra></extra>",
                    row=1,
                    col=column,
                )
        figure.update_xaxes(
            title=title, rangemode="normal" if measure == "distance" else "tozero", nticks=5, showgrid=True, gridcolor=FAINT, zeroline=False, row=1, col=column
        )  # fmt: skip
        if measure == "distance":
            figure.add_vline(x=0, line={"color": GREY, "width": 1}, row=1, col=column)
    _legend(figure, formats, ink)
    figure.update_annotations(font_size=TEXT_PIXELS)
    return framed(
        figure, [on_lines(", ".join((model, formats[word]))) for model, word in keys], row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink
    )  # fmt: skip


def _of(table: pd.DataFrame, measure: str) -> list[dict[Any, Any]]:
    return table.loc[table["measure"].eq(measure)].to_dict(orient="records")


def _name(key: tuple[str, str], formats: Mapping[str, str]) -> str:
    return html.escape(f"{key[0]}, {formats[key[1]]}")


def _tick(figure: go.Figure, x: float, place: int, column: int, words: str, ink: str) -> None:
    figure.add_scatter(
        x=[x], y=[place], mode="markers", showlegend=False, marker={"size": 18, "symbol": "line-ns-open", "color": ink, "line": {"color": ink, "width": 2}},
        hovertemplate=words + ": %{x:.2f}<extra></extra>", row=1, col=column,
    )  # fmt: skip


def _legend(figure: go.Figure, formats: Mapping[str, str], ink: str) -> None:
    marks: list[tuple[str, dict[str, Any]]] = [
        (words, {"symbol": SYMBOLS.get(word, "circle"), "color": MARK}) for word, words in formats.items()
    ]
    marks.append(
        ("by chance: a model that draws from the panel", {"symbol": "line-ns-open", "color": ink, "line": {"width": 2}})
    )
    marks.append(("the panel's votes", {"symbol": "square-open", "color": ink, "line": {"width": 2}}))
    for words, marker in marks:
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=html.escape(words), marker={"size": 11, **marker}, row=1, col=1
        )
