"""Figures of the Judges page."""

import html
from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, GREY_RAMP, INK_ON_PAPER, MARK, RAMP
from evalcore.figures.frames import NAME_PIXELS, TEXT_PIXELS, framed, inked, on_lines, on_one_line, reach

BLUE, OCHRE = "#4482c4", "#a8741f"  # the judge's blue, and one as strong: 3:1 and more on paper and on slate
LINE = "rgba(128,136,144,0.6)"
ROW_PIXELS, FRAME_PIXELS = 30, 104
SIDES = (
    ("toward", "Toward the judge", "Took its label (share of reads that differed)", BLUE, "circle"),
    ("away", "Away from the judge", "Left its label (share of reads that agreed)", OCHRE, "diamond-open"),
)


def shift(table: pd.DataFrame, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals by kind of criterion: left the share that moved toward the judge, right the share that moved away.

    `table` holds rows of `anchoring.anchoring` of one judge, from top to bottom; a kind without a read on one side has its row and no dot there.
    """
    figure = make_subplots(
        cols=2, shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=[side[1] for side in SIDES]
    )
    for column, (movement, name, axis, colour, symbol) in enumerate(SIDES, start=1):
        rows = table.loc[table["movement"].eq(movement)]
        known = rows.loc[rows["share"].notna()]
        names = known["group"].map(on_lines)  # Plotly would draw tags and links
        for group, low, high in zip(names, known["low"], known["high"], strict=True):
            figure.add_scatter(
                x=[low, high], y=[group, group], mode="lines", line={"color": colour, "width": 2}, hoverinfo="skip", row=1, col=column
            )  # fmt: skip
        figure.add_scatter(
            x=known["share"],
            y=names,
            name=name,
            mode="markers",
            marker={"color": colour, "size": 10, "symbol": symbol, "line": {"color": colour, "width": 2}},
            customdata=known[["n_moved", "n", "low", "high"]],
            hovertemplate="%{y}: %{x:.0%} (%{customdata[0]}/%{customdata[1]}) [%{customdata[2]:.0%}, %{customdata[3]:.0%}]<extra></extra>",
            row=1,
            col=column,
        )
        figure.update_xaxes(title=axis, range=[-0.02, 1.02], tickformat=".0%", gridcolor=LINE, row=1, col=column)
    groups = [on_lines(group) for group in table["group"].drop_duplicates()]
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=groups,
        range=[len(groups) - 0.5, -0.5],
        automargin=True,
        tickfont_size=NAME_PIXELS,
    )
    figure.update_annotations(font_size=TEXT_PIXELS)
    figure.update_layout(
        height=FRAME_PIXELS + ROW_PIXELS * len(groups),
        margin={"l": 8, "r": 8, "t": 32, "b": 40},
        showlegend=False,
        dragmode=False,
    )
    return inked(figure, ink)


SERIES = (("judge", BLUE, "circle", -0.14), ("physicians", MARK, "diamond-open", 0.14))
"""The two marks of a row: whose, colour, symbol, place within it."""
CRITERION_ROW_PIXELS, CRITERION_FRAME_PIXELS = 34, 96


def health(table: pd.DataFrame, judge: str, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals by group: the share that the judge finds met and that physicians find met, of the same items.

    Args:
        table: words (of the group), alarms (in words; empty without one), and of `criterion_health` judge, physicians with their intervals, n;
            from top to bottom; a group without an item that both have labelled has its row and no dot.
        judge: What the judge's dots are called.
        ink: Colour of words.
    """
    figure = go.Figure()
    known = table["judge"].notna()
    rows = table.loc[known].assign(words=table.loc[known, "words"].map(html.escape))
    places = [place for place, is_known in enumerate(known) if is_known]
    for side, colour, symbol, shift in SERIES:
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
    return framed(figure, named, row_pixels=CRITERION_ROW_PIXELS, frame_pixels=CRITERION_FRAME_PIXELS, ink=ink)


F1 = "Balanced F1 (0 to 1)"
QUALITY_ROW_PIXELS, QUALITY_FRAME_PIXELS = 34, 92


def by_category(table: pd.DataFrame, judge: str, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals, a row a category: a judge against physicians and physicians against one another.

    Args:
        table: category, and for judge and physicians each KIND (NaN: no dot), KIND_low, KIND_high, KIND_pairs, from top to bottom.
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
        judge: words (of the row), balanced_f1 (NaN: no dot), n_pairs, from top to bottom.
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
    return framed(
        figure,
        [on_lines(word) for word in words],
        row_pixels=QUALITY_ROW_PIXELS,
        frame_pixels=QUALITY_FRAME_PIXELS,
        ink=ink,
    )


DIRECTIONS = (
    ("to_not_met", "n_to_not_met", "n_met_before", "Met, now not met", "Share of what was met", OCHRE, "diamond-open"),
    ("to_met", "n_to_met", "n_not_met_before", "Not met, now met", "Share of what was not met", BLUE, "circle"),
)


def flips(table: pd.DataFrame, *, ink: str = INK_ON_PAPER) -> go.Figure:
    """Dots with intervals by group: left the share of met labels that became not met, right the other way.

    `table` holds words (of the group), n_not_met_before, and the columns of `drift.flips`, from top to bottom.
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
        table: words (of the row), and the columns of `drift.score_drift`, from top to bottom.
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

    `table` holds the columns of `self_preference.by_label`, words, and is_together (all strata combined), from top to bottom.
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
    return framed(
        figure,
        rows,
        row_pixels=CRITERION_ROW_PIXELS,
        frame_pixels=CRITERION_FRAME_PIXELS,
        ink=ink,
        least_rows=least_rows,
    )


AGREEMENT_ROW_PIXELS, HEAD_PIXELS = 34, 76
NAMED_PIXELS, NUMBERED_PIXELS, CHARACTER_PIXELS = 140, 52, 7.5
"""Width of a cell under a name, and under a number; and of a character of a name."""
HEAD_CHARACTERS, MOST_NAMED = 20, 6
"""Columns are headed by names where all are this short and this few; else raters are numbered, and columns headed by numbers."""
AGREEMENT_TEXT_PIXELS = 14
LEFT_TO_RIGHT = "\u200e"  # keeps a number behind a name that is written from right to left
MARGIN = {"l": 8, "r": 8, "t": 32, "b": 8}


def pair_matrix(table: pd.DataFrame, raters: list[str], *, ink: str = INK_ON_PAPER) -> go.Figure:
    """One coefficient for each two raters, as the lower half of a matrix; deeper is more agreement, from 0 to 1.

    Args:
        table: rater_1, rater_2, value (NaN: none), shown (the value in words), words (with its interval or the reason why there is none),
            n_items, n_examples, small (few items: grey).
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
            textfont={"size": AGREEMENT_TEXT_PIXELS, "color": ink},
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
        height=HEAD_PIXELS + AGREEMENT_ROW_PIXELS * len(down),
        width=round(CHARACTER_PIXELS * longest) + (NAMED_PIXELS if is_named else NUMBERED_PIXELS) * n_columns,
        margin=MARGIN,
        showlegend=False,
        dragmode=False,
    )
    return inked(figure, ink)
