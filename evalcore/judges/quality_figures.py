"""Figures of judges against physicians: balanced F1 by category, and a judge among physicians."""

import html

import pandas as pd
import plotly.graph_objects as go

from evalcore.figures.colours import FAINT, GREY, INK_ON_PAPER, MARK
from evalcore.figures.frames import framed, on_lines, on_one_line, reach
from evalcore.judges.figures import BLUE

F1 = "Balanced F1 (0 to 1)"
SERIES = (("judge", BLUE, "circle", -0.14), ("physicians", MARK, "diamond-open", 0.14))
"""The two marks of a category: whose, colour, symbol, place within its row."""
ROW_PIXELS, FRAME_PIXELS = 34, 92


def by_category(table: pd.DataFrame, judge: str, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals: a judge against physicians and physicians against one another, a row a category.

    A value that is not defined has no dot, and one without an interval has a dot alone.

    Args:
        table: category, and for judge and physicians each KIND, KIND_low, KIND_high, KIND_pairs, in the order from top to bottom.
        judge: What the judge's dots are called.
        ink: Colour of words.
    """
    figure = go.Figure()
    for kind, colour, symbol, shift in SERIES:
        known = table[kind].notna()
        rows = table.loc[known]
        figure.add_scatter(
            x=rows[kind],
            y=[place + shift for place, is_known in enumerate(known) if is_known],
            mode="markers",
            name=on_one_line(judge) if kind == "judge" else "physicians, against one another",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"color": colour, "width": 2}},
            error_x=reach(rows, kind, f"{kind}_low", f"{kind}_high", colour),
            customdata=_cells(rows, "category", [f"{kind}_pairs", f"{kind}_low", f"{kind}_high"]),
            hovertemplate="%{customdata[0]}: %{x:.2f} [%{customdata[2]:.2f}, %{customdata[3]:.2f}], %{customdata[1]:,} pairs<extra></extra>",
        )
    return _framed(figure, table["category"], ink)


def among_physicians(judge: pd.DataFrame, physicians: pd.DataFrame, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Where a judge stands: its balanced F1 as a dot among ticks, one a physician; a row over all and one a theme.

    Args:
        judge: words (of the row), balanced_f1 (NaN: no dot), n_pairs, in the order from top to bottom.
        physicians: words, name (what the hover may say), balanced_f1, n_pairs.
        ink: Colour of words.
    """
    figure = go.Figure()
    places = {words: place for place, words in enumerate(judge["words"])}
    known = judge.loc[judge["balanced_f1"].notna()]
    for rows, name, marker in (
        (physicians.assign(name=physicians["name"]), "physicians", {"color": GREY, "size": 16, "symbol": "line-ns-open", "line": {"width": 2}}),
        (known.assign(name="the judge"), "the judge", {"color": BLUE, "size": 12, "symbol": "circle"}),
    ):  # fmt: skip
        figure.add_scatter(
            x=rows["balanced_f1"],
            y=rows["words"].map(places),
            mode="markers",
            name=name,
            marker=marker,
            customdata=_cells(rows, "name", ["n_pairs"]),
            hovertemplate="%{customdata[0]}: %{x:.2f}, %{customdata[1]:,} pairs<extra></extra>",
        )
    return _framed(figure, judge["words"], ink)


def _cells(rows: pd.DataFrame, words: str, numbers: list[str]) -> pd.DataFrame:
    """For the hover; Plotly would draw tags and links."""
    return rows[[words, *numbers]].assign(**{words: rows[words].map(html.escape)})


def _framed(figure: go.Figure, words: pd.Series, ink: str) -> go.Figure:
    figure.update_xaxes(title=F1, range=[-0.02, 1.02], tickformat=".1f", gridcolor=FAINT, zeroline=False)
    return framed(figure, [on_lines(word) for word in words], row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS, ink=ink)
