"""Figures of triage: confusion matrices, directions of errors, groups, boundary cases, harm, the flow of cases."""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, GREY_RAMP, INK, LEVEL_RAMP, MARK, RAMP
from evalcore.figures.frames import NAME_PIXELS, TEXT_PIXELS, framed, on_lines, on_one_line, reach
from evalcore.stats import wording
from evalcore.stats.intervals import interval_words, percent_words
from evalcore.study.schema import Format
from evalcore.triage.case_flow import Outcome, Stages
from evalcore.triage.data import LABELS
from evalcore.triage.words import count_words

LETTERS = "ABCD"
FORMATS = [word.value for word in Format]
N = len(LETTERS)
HALF = 0.46
CELLS_PIXELS, LINE_PIXELS, HIT_PIXELS = 316, 16, 62
CELL_TEXT_PIXELS, SMALL_PIXELS = 15, 12
HEAVY, LIGHT, CHOSEN = 2.5, 1, "rgba(31,127,151,1)"
NAME_CHARACTERS, NAME_LINES = 10, 4  # of a column's head, on a phone too
BLANK = "\u00a0"
_SHARES: dict[str, Any] = {"tickformat": ".0%", "gridcolor": FAINT, "zeroline": False}
_HOVERED: dict[str, Any] = {"hovertemplate": "%{customdata}<extra></extra>"}
_INSIDE: dict[str, Any] = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}


def error_words(gold: float, predicted: float) -> str:
    """Which way an answer is wrong, and how far.

    >>> error_words(4, 1), error_words(2, 3), error_words(2, 2)
    ('under-triage by 3 levels', 'over-triage by 1 level', 'exact')
    """
    steps = int(abs(gold - predicted))
    if not steps:
        return "exact"
    way = "under" if predicted < gold else "over"
    return f"{way}-triage by {steps} level{'s' if steps > 1 else ''}"


def matrix(
    cells: pd.DataFrame, names: Sequence[str], *, counts: str = "cases", chosen: tuple[int, int] | None = None
) -> go.Figure:
    """The confusion matrix of one model in one format: a row a gold level, a column the level that the answers give.

    Each cell is filled from its bottom by its share of the row. Every cell is a point with customdata (gold, predicted,
    n_open, ...), so that a click tells which one it was. `names`: What the four levels are called. `counts`: What n
    counts. `chosen`: Gold and predicted of the cell that is open.
    """
    rows = cells.to_dict(orient="records")
    said = [[row["gold"], row["predicted"], row["n_open"], hover(row, counts)] for row in rows]
    look: dict[str, Any] = {"mode": "markers+text", "marker": {"size": HIT_PIXELS, "symbol": "square", "opacity": 0}}
    look |= {"textposition": "middle center", "textfont": {"size": CELL_TEXT_PIXELS, "color": INK}}
    look |= {key: {"marker": {"opacity": 0}, "textfont": {"color": INK}} for key in ("selected", "unselected")}
    x, y = ([row[name] for row in rows] for name in ("predicted", "gold"))
    told = {"text": [_cell_words(row) for row in rows], "hovertemplate": "%{customdata[3]}<extra></extra>"}
    n_gold = {row["gold"]: row["n_gold"] for row in rows}
    heads = [textwrap.wrap(name, NAME_CHARACTERS, max_lines=NAME_LINES, placeholder="…") for name in names]
    most = max(map(len, heads))  # as many lines each, so that all letters stand on one
    words = ["<br>".join(map(html.escape, [*lines, *[BLANK] * (most - len(lines))])) for lines in heads]
    sizes = [f"{count_words(n_gold.get(level, 0))} {html.escape(counts)}" for level in range(1, N + 1)]
    levels, top = list(range(1, N + 1)), 40 + LINE_PIXELS * most
    xaxis, yaxis = (
        {"tickvals": levels, "ticktext": [f"<b>{letter}</b><br>{of}" for letter, of in zip(LETTERS, below, strict=True)]} | _BARE
        for below in (words, sizes)
    )  # fmt: skip
    xaxis |= {"title_text": "Level of the model's answer", "side": "top", "tickangle": 0, "range": [0.5, N + 0.5]}
    yaxis |= {"title_text": "Level the case needs", "range": [N + 0.5, 0.5], "automargin": True}
    shapes = [shape for row in rows for shape in _cell_shapes(row, chosen)]
    layout: dict[str, Any] = {"xaxis": xaxis, "yaxis": yaxis, "shapes": shapes}
    layout |= {"height": CELLS_PIXELS + top, "margin": {"l": 8, "r": 4, "t": top, "b": 8}, "showlegend": False}
    layout |= {"dragmode": False, "hovermode": "closest", "hoverdistance": HIT_PIXELS, "clickmode": "event+select"}
    cells_of = {"type": "scatter", "x": x, "y": y, "name": "cells", "customdata": said, **look, **told}
    return go.Figure([cells_of], layout)  # all at once: each change of a figure takes a millisecond


_BARE: dict[str, Any] = {
    "showgrid": False, "zeroline": False, "fixedrange": True, "tickfont_size": SMALL_PIXELS, "title_font_size": SMALL_PIXELS, "title_standoff": 6,
}  # fmt: skip


def _cell_shapes(row: Mapping[Any, Any], chosen: tuple[int, int] | None) -> list[dict[str, Any]]:
    """How full a cell is, its border, and the mark of the open one; at once: each shape added alone costs 4 ms."""
    x, y = row["predicted"], row["gold"]
    under = x < y
    shapes = []
    if row["share"] > 0:  # not where it is NaN
        top = y + HALF - 2 * HALF * min(row["share"], 1.0)
        filled = {"x0": x - HALF, "x1": x + HALF, "y0": y + HALF, "y1": top, "fillcolor": LEVEL_RAMP[int(x) - 1]}
        shapes.append({"type": "rect", "line": {"width": 0}, "layer": "below"} | filled)
    borders = [(HALF, INK if under else FAINT, HEAVY if under else LIGHT)]
    if chosen == (int(y), int(x)):
        borders.append((HALF - 0.06, CHOSEN, 3))
    for half, colour, width in borders:
        corners = {"x0": x - half, "x1": x + half, "y0": y - half, "y1": y + half}
        shapes.append({"type": "rect", "line": {"color": colour, "width": width}, "layer": "below"} | corners)
    return shapes


def _cell_words(row: Mapping[Any, Any]) -> str:
    share = row["share"]
    if math.isnan(share):
        return "–"
    strong = f"<b>{percent_words(share)}</b>" if row["n"] else percent_words(share)
    if math.isnan(row["n"]):
        return strong
    return f"{strong}<br><span style='font-size:{SMALL_PIXELS}px'>{count_words(row['n'])}/{count_words(row['n_gold'])}</span>"


def hover(row: Mapping[Any, Any], counts: str) -> str:
    """A cell in words: which way the answer is wrong, its share and interval."""
    gold, predicted = int(row["gold"]), int(row["predicted"])
    head = f"Needs {LETTERS[gold - 1]}, answer gives {LETTERS[predicted - 1]}: {error_words(gold, predicted)}"
    if math.isnan(row["share"]):
        return f"{head}<br>no {html.escape(counts)} with gold {LETTERS[gold - 1]}"
    of = "" if math.isnan(row["n"]) else f" {html.escape(counts)}"
    return f"{head}<br>{counted(row['n'], row['n_gold'], row['share'])}{of} {interval_words(row['low'], row['high'])}"


SMALL_LINE, STEP = 5, N + 1
"""Models beside one another in the overview before the next line begins; from one small matrix to the next."""
SMALL_CELL, SMALL_WIDE, SMALL_NAMES = 17, 34, 110
LEAST_SHOWN = 0.06
SHARE_OF = {
    "cases": "Share of cases with a clear gold and a level",
    "responses": "Share of responses to cases with a clear gold, drawn and read",
}
DIRECTIONS = (
    ("under", "under-triage: sent lower than needed", LEVEL_RAMP[0], HEAVY),
    ("exact", "exact", LEVEL_RAMP[1], 0),
    ("over", "over-triage: sent higher than needed", LEVEL_RAMP[3], 0),
)
"""What a bar is made of, from left to right: measure, words, colour, width of its border."""


def overview(cells: pd.DataFrame, *, counts: str = "cases") -> go.Figure:
    """Small matrices of all models, formats below one another; below the stair is under-triage."""
    models = list(dict.fromkeys(str(model) for model in cells["model"]))
    corners = {
        (model, name): (n % SMALL_LINE * STEP, n // SMALL_LINE * (len(FORMATS) * STEP + 1) + place * STEP)
        for n, model in enumerate(models)
        for place, name in enumerate(FORMATS)
    }
    width = STEP * min(len(models), SMALL_LINE)
    height = max((top for _, top in corners.values()), default=0) + N
    depth: list[list[float | None]] = [[None] * width for _ in range(height)]
    words_of = [[""] * width for _ in depth]
    rows = cells.loc[cells["share"].notna()].to_dict(orient="records")
    for row in rows:
        left, top = corners[str(row["model"]), str(row["format"])]
        down, across = top + int(row["gold"]) - 1, left + int(row["predicted"]) - 1
        depth[down][across] = row["share"]
        words_of[down][across] = f"{html.escape(str(row['model']))}, {row['format']}<br>{hover(row, counts)}"
    known = {(str(row["model"]), str(row["format"])) for row in rows}
    words: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for (model, name), (left, top) in corners.items():
        if name == FORMATS[0]:
            above = {"x": left - 0.5, "y": top - 0.6, "xanchor": "left", "yanchor": "bottom"}
            words.append(above | {"text": f"<b>{on_one_line(model, 22)}</b>", "font": {"size": NAME_PIXELS}})
        if (model, name) in known:
            shapes.append({"type": "path", "path": _stair(left - 0.5, top - 0.5), "line": {"color": INK, "width": 2}})
        else:
            missing = {"text": f"no {name}", "font": {"size": SMALL_PIXELS}}
            words.append({"x": left + 1.5, "y": top + 1.5} | missing)
    figure = go.Figure(layout={"shapes": shapes, "annotations": [{"showarrow": False} | said for said in words]})
    figure.add_heatmap(
        z=depth, zmin=0, zmax=1, colorscale=[list(stop) for stop in RAMP], showscale=False, xgap=1, ygap=1, customdata=words_of, hoverongaps=False,
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(visible=False, range=[-0.8, width - 0.7], fixedrange=True)
    labelled = [(top + 1.5, name) for (_, name), (left, top) in corners.items() if not left]
    figure.update_yaxes(tickvals=[place for place, _ in labelled], ticktext=[words for _, words in labelled])
    figure.update_yaxes(range=[len(depth) - 0.3, -1.7], automargin=True, showgrid=False, zeroline=False)
    figure.update_yaxes(fixedrange=True, tickfont_size=NAME_PIXELS)
    height, width = round(16 + SMALL_CELL * (len(depth) + 1.4)), SMALL_NAMES + SMALL_WIDE * width
    figure.update_layout(height=height, width=width, margin={"l": 8, "r": 8, "t": 8, "b": 8})
    return figure.update_layout(dragmode=False, showlegend=False)


def _stair(left: float, top: float) -> str:
    points = [(left, top + 1)]
    for level in range(1, N):
        points += [(left + level, top + level), (left + level, top + level + 1)]
    points.append((left, top + N))
    return "M " + " L ".join(f"{x},{y}" for x, y in points) + " Z"


def directions(rates: pd.DataFrame, *, counts: str = "cases") -> go.Figure:
    """Under-triage, exact and over-triage of each model and format as one bar that fills the row."""
    models = list(dict.fromkeys(str(model) for model in rates["model"]))
    rows = rates.to_dict(orient="records")
    known = {(str(row["model"]), str(row["format"]), str(row["measure"])): row for row in rows}
    bars = [(model, word) for model in models for word in FORMATS if (model, word, "exact") in known]
    parts = []
    for measure, words, colour, border in DIRECTIONS:
        rows = [known[*bar, measure] for bar in bars]
        hovers = [
            f"{html.escape(model)}, {word}<br>{words}: "
            f"{counted(row.get('k', math.nan), row.get('n', math.nan), row['value'])} "
            f"{interval_words(row['low'], row['high'])}"
            for (model, word), row in zip(bars, rows, strict=True)
        ]
        parts.append(([row["value"] for row in rows], words, colour, border, hovers))
    named = [f"{on_one_line(model, 44)}, {word}" for model, word in bars]
    return _stacked(parts, named, SHARE_OF.get(counts, SHARE_OF["cases"]), text_pixels=NAME_PIXELS, frame=88)


def _stacked(
    parts: Sequence[tuple[list[float], str, str, float, list[str]]], named: Sequence[str], title: str, *, text_pixels: int, frame: int
) -> go.Figure:  # fmt: skip
    """Bars that fill their rows; of each part its shares, words, colour, border width and hover words."""
    figure = go.Figure()
    for shares, name, colour, border, hovers in parts:
        look = {"orientation": "h", "width": 0.66, "marker": {"color": colour, "line": {"color": INK, "width": border}}}
        words = ["" if math.isnan(share) or share < LEAST_SHOWN else percent_words(share) for share in shares]
        said = {"text": words, "textfont": {"size": text_pixels, "color": INK}, "customdata": hovers}
        figure.add_bar(x=shares, y=list(range(len(shares))), name=name, **look, **said, **_INSIDE, **_HOVERED)
    figure.update_xaxes(title=title, range=[-0.005, 1.005], **_SHARES)
    framed(figure, named, row_pixels=34, frame_pixels=frame)
    return figure.update_layout(barmode="stack", legend_traceorder="normal")


_READER_CELL, _READERS_HEAD, _READER_TEXT = 44, 84, 14


def readers(cells: pd.DataFrame, one: str, other: str) -> go.Figure:
    """`reads.pair_cells`: the levels of one in rows, of the other in columns; deeper: a larger share; grey: none."""
    levels = sorted(set(cells["one"]) | set(cells["other"]))
    places = {level: place for place, level in enumerate(levels)}
    names = {level: LABELS.get(level, "none") for level in levels}
    rows = cells.to_dict(orient="records")
    hovers = []
    for row in rows:
        share = f", {percent_words(row['n'] / row['n_one'])} of the row" if row["n_one"] else ""
        levels_given = f"{html.escape(one)}: {names[row['one']]}, {html.escape(other)}: {names[row['other']]}"
        hovers.append(f"{levels_given}<br>{row['n']:,} responses{share}")
    figure = go.Figure()
    for is_none, ramp in ((False, RAMP), (True, GREY_RAMP)):
        depth: list[list[float | None]] = [[None] * len(levels) for _ in levels]
        for row in rows:
            if (min(row["one"], row["other"]) < 1) == is_none and row["n_one"]:
                depth[places[row["one"]]][places[row["other"]]] = row["n"] / row["n_one"]
        figure.add_heatmap(
            z=depth, zmin=0, zmax=1, colorscale=[list(stop) for stop in ramp], showscale=False, xgap=2, ygap=2, hoverinfo="skip"
        )  # fmt: skip
    x, y = ([places[row[name]] for row in rows] for name in ("other", "one"))
    words = [f"<b>{row['n']:,}</b>" if row["n"] else "0" for row in rows]
    font = {"size": _READER_TEXT, "color": INK}
    figure.add_scatter(x=x, y=y, mode="text", text=words, textfont=font, customdata=hovers, **_HOVERED)
    bare: dict[str, Any] = {
        "tickvals": list(range(len(levels))), "ticktext": list(names.values()), "showgrid": False, "zeroline": False, "title_font_size": SMALL_PIXELS,
        "title_standoff": 6, "tickfont_size": _READER_TEXT, "fixedrange": True,
    }  # fmt: skip
    figure.update_xaxes(title=on_one_line(other), side="top", range=[-0.5, len(levels) - 0.5], **bare)
    figure.update_yaxes(title=on_one_line(one), range=[len(levels) - 0.5, -0.5], automargin=True, **bare)
    figure.update_layout(height=_READERS_HEAD + _READER_CELL * len(levels), margin={"l": 8, "r": 8, "t": 60, "b": 8})
    figure.update_layout(showlegend=False, dragmode=False)
    return figure


SIDES = (
    ("under", "under-triage", "triangle-down", LEVEL_RAMP[0], 2.5, 0.15),
    ("over", "over-triage", "triangle-up", LEVEL_RAMP[3], 1.0, -0.15),
)
_GROUP_PIXELS, _GROUPS_PIXELS, _GROUPS_LEGEND = 40, 128, 40


def by_group(table: pd.DataFrame, words: Mapping[str, str]) -> go.Figure:
    """Under-triage and over-triage by group, a column a format; grey where few cases stand behind them."""
    groups = list(dict.fromkeys(str(group) for group in table["group"]))
    places = {group: place for place, group in enumerate(groups)}
    figure = make_subplots(cols=len(FORMATS), shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=FORMATS)
    for column, word in enumerate(FORMATS, start=1):
        for measure, name, symbol, fill, border, shift in SIDES:
            here = table["format"].astype(str).eq(word) & table["measure"].astype(str).eq(measure)
            for few in (False, True):
                rows = table.loc[here & table["value"].notna() & table["is_small"].eq(few)]
                y, hovers = [places[str(group)] + shift for group in rows["group"]], []
                for row in rows.to_dict(orient="records"):
                    head = html.escape(words.get(str(row["group"]), str(row["group"])))
                    share = f"{counted(row['k'], row['n'], row['value'])} {interval_words(row['low'], row['high'])}"
                    hovers.append(f"{head}, {name}: {share}{', few cases' if few else ''}")
                colour = GREY if few else INK
                edge = {"color": colour, "width": border}
                mark = {"color": "rgba(0,0,0,0)" if few else fill, "size": 11, "symbol": symbol, "line": edge}
                look = {"mode": "markers", "marker": mark, "legendgroup": name, "showlegend": column == 1 and not few}
                whiskers = reach(rows, "value", "low", "high", colour) | {"thickness": 1.5}
                look |= {"error_x": whiskers, "customdata": hovers, "row": 1, "col": column} | _HOVERED
                figure.add_scatter(x=rows["value"], y=y, name=name, **look)
        of_group = {"title": "Share of the group's cases", "range": [-0.02, 1.02], "showgrid": True}
        figure.update_xaxes(row=1, col=column, **of_group, **_SHARES)
    figure.update_annotations(font_size=TEXT_PIXELS)
    named = [on_lines(words.get(group, group)) for group in groups]
    framed(figure, named, row_pixels=_GROUP_PIXELS, frame_pixels=_GROUPS_PIXELS)
    above = _GROUPS_LEGEND / (_GROUPS_PIXELS + _GROUP_PIXELS * len(groups))
    return figure.update_layout(legend_y=1 + above, margin_t=64)


def boundary_answers(table: pd.DataFrame, parts: Sequence[tuple[str, str]]) -> go.Figure:
    """A bar a model and format; `table` has for each part its share (NaN: no bar), PART_k and n."""
    drawn = []
    rows = table.to_dict(orient="records")
    models = [f"{html.escape(str(row['model']))}, {row['format']}" for row in rows]
    for place, (name, words) in enumerate(parts):
        said = [f"{words}: {counted(row[f'{name}_k'], row['n'], row[name])}" for row in rows]
        hovers = [f"{model}<br>{share}" for model, share in zip(models, said, strict=True)]
        drawn.append(([row[name] for row in rows], words, LEVEL_RAMP[place], 0 if place else HEAVY, hovers))
    named = [f"{on_lines(str(row['model']))}, {row['format']}" for row in rows]
    title = "Share of boundary cases with a level"
    return _stacked(drawn, named, title, text_pixels=TEXT_PIXELS, frame=92)


MARKS = (("qa", "circle", -0.16), ("conversation", "diamond", 0.16))
_HARM_PIXELS, _HARMS_PIXELS, _ORDER_ROW = 44, 92, 30
_HEAD_PIXELS, _LEGEND_PIXELS, _BELOW_PIXELS = 30, 50, 84
"""Of the figure of orders: above the lines, from them to the legend, and below them in all."""
MOST_LINES, TICKS = 12, (0.25, 0.5, 1, 2, 5, 10, 20)
"""With more places where the order changes than this they are not drawn: the table has them."""


def harm(table: pd.DataFrame, colours: Mapping[str, str], *, counts: str = "cases") -> go.Figure:
    """A row a model: its expected harm in each format, with intervals. Models without a colour are grey."""
    models = list(dict.fromkeys(str(model) for model in table["model"]))
    places = {model: place for place, model in enumerate(models)}
    figure = go.Figure()
    for word, symbol, shift in MARKS:
        rows = table.loc[table["format"].astype(str).eq(word) & table["harm"].notna()]
        for place in range(len(rows)):  # a trace each: an interval has the colour of its model
            one = rows.iloc[[place]]
            row = one.iloc[0].to_dict()
            colour = colours.get(str(row["model"]), MARK)
            bounds = "" if math.isnan(row["low"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
            head = f"{html.escape(str(row['model']))}, {word}: {row['harm']:.2f}{bounds}"
            ways = f"{row['of_under']:.2f} by under-triage, {row['of_over']:.2f} by over-triage"
            said = [f"{head}<br>{ways}, {count_words(row['n'])} {html.escape(counts)}"]
            y = [places[str(row["model"])] + shift]
            mark = {"color": [colour], "size": 12, "symbol": symbol, "line": {"color": colour, "width": 1}}
            whiskers = reach(one, "harm", "low", "high", colour)
            look = {"mode": "markers", "name": word, "showlegend": False, "marker": mark, "error_x": whiskers}
            figure.add_scatter(x=one["harm"], y=y, customdata=said, **look, **_HOVERED)
        mark = {"color": MARK, "size": 12, "symbol": symbol}
        figure.add_scatter(x=[None], y=[None], mode="markers", name=word, marker=mark)
    figure.update_xaxes(title="Expected harm of an answer (weighted levels; less is better)", rangemode="tozero")
    figure.update_xaxes(showgrid=True, gridcolor=FAINT, zeroline=False, tickformat=".2f")
    return framed(figure, [on_lines(model) for model in models], row_pixels=_HARM_PIXELS, frame_pixels=_HARMS_PIXELS)


def orders(
    table: pd.DataFrame,
    changes: pd.DataFrame,
    colours: Mapping[str, str],
    dashes: Mapping[str, str],
    *,
    now: float | None = None,
) -> go.Figure:
    """The models' places over the ratio of the weights; dotted where two change places; `now`: the chosen one."""
    present = [word for word in FORMATS if table["format"].astype(str).eq(word).any()]
    look: dict[str, Any] = {"shared_yaxes": True, "horizontal_spacing": 0.04}
    figure = make_subplots(cols=max(len(present), 1), subplot_titles=present, **look)
    named: set[str] = set()
    for column, word in enumerate(present, start=1):
        mine = table.loc[table["format"].astype(str).eq(word) & table["place"].notna()]
        for model, rows in mine.groupby(mine["model"].astype(str), sort=True):
            name = str(model)
            line = {"color": colours.get(name, MARK), "dash": dashes.get(name, "solid"), "width": 3, "shape": "hvh"}
            look = {"mode": "lines", "name": on_one_line(name), "legendgroup": name, "showlegend": name not in named}
            said = [(html.escape(name), value) for value in rows["harm"].tolist()]
            told = "%{customdata[0]}: place %{y} at ratio %{x:.2f}, harm %{customdata[1]:.2f}<extra></extra>"
            look |= {"line": line, "customdata": said, "hovertemplate": told, "row": 1, "col": column}
            figure.add_scatter(x=rows["ratio"].to_numpy(), y=rows["place"].to_numpy(), **look)
            named.add(name)
        at = changes.loc[changes["format"].astype(str).eq(word), "ratio"]
        low, high = table["ratio"].min(), table["ratio"].max()
        inside = [ratio for ratio in at if low <= ratio <= high]
        for ratio in inside if len(inside) <= MOST_LINES else []:
            figure.add_vline(x=ratio, line={"color": GREY, "width": 1, "dash": "dot"}, row=1, col=column)
        if now is not None and low <= now <= high:
            figure.add_vline(x=now, line={"color": INK, "width": 1.5}, row=1, col=column)
        figure.update_xaxes(title="Weight of under-triage over that of over-triage", type="log", row=1, col=column)
        figure.update_xaxes(tickvals=list(TICKS), showgrid=True, gridcolor=FAINT, row=1, col=column)
    n = int(table["place"].max()) if table["place"].notna().any() else 1
    figure.update_yaxes(range=[n + 0.5, 0.5], dtick=1, gridcolor=FAINT, zeroline=False, tickfont_size=NAME_PIXELS)
    figure.update_yaxes(title="Place (1: least harm)", row=1, col=1)
    figure.update_annotations(font_size=TEXT_PIXELS)
    plotted = _ORDER_ROW * (max(n, 3) + 1)
    margin = {"l": 8, "r": 8, "t": _HEAD_PIXELS, "b": _BELOW_PIXELS}
    figure.update_layout(height=_HEAD_PIXELS + plotted + _BELOW_PIXELS, margin=margin, dragmode=False)
    return figure.update_layout(legend={"orientation": "h", "y": -_LEGEND_PIXELS / plotted, "yanchor": "top", "x": 0})


_NODE_PIXELS, _LEAST_PIXELS, _GAP, _OF_CASES = 44, 340, 24, 0.8
"""Height a node, and at least; between nodes; the share of the height that is left to cases."""
LONGEST = (18, 40, 26)
RIBBON, OUT = "rgba(128,136,144,0.16)", "rgba(128,136,144,0.08)"
ENDS = {label: LEVEL_RAMP[int(level) - 1] for level, label in LABELS.items()}
"""The colour of a level, a boundary in that of its lower one; what has no level is grey."""
OUTCOMES: Mapping[str, str] = {
    Outcome.DIRECT: "direct: by the source's label",
    Outcome.CONSENSUS: "consensus: by a panel",
    Outcome.AMBIGUOUS: "ambiguous: looked at apart",
}


def case_flow(links: pd.DataFrame, stages: Stages) -> go.Figure:
    """Three columns of nodes, each as high as its cases are many, from `case_flow.links` and `case_flow.stages`."""
    nodes = [(column, name) for column, sizes in enumerate(stages) for name in sizes]
    places = {node: place for place, node in enumerate(nodes)}
    y = []
    for sizes in stages:
        gap = (1 - _OF_CASES) / max(len(sizes), 1)
        above = np.cumsum([0, *(n / max(sum(sizes.values()), 1) * _OF_CASES + gap for n in sizes.values())])
        y += list((above[:-1] + above[1:]) / 2)
    shown = [on_one_line(OUTCOMES.get(name, name) if column == 1 else name, LONGEST[column]) for column, name in nodes]
    words = [f"{name} <b>{stages[column][key]:,}</b>" for name, (column, key) in zip(shown, nodes, strict=True)]
    colours = [ENDS.get(name, GREY) if column == len(stages) - 1 else MARK for column, name in nodes]
    rows = links.to_dict(orient="records")
    figure = go.Figure(
        go.Sankey(
            arrangement="fixed",
            textfont={"size": TEXT_PIXELS, "color": INK, "shadow": "none"},
            node={"label": words, "x": [(0.001, 0.5, 0.999)[column] for column, _ in nodes], "y": y, "color": colours}
            | {"pad": _GAP, "thickness": 12, "line": {"width": 0}, "hoverinfo": "skip"},
            link={
                "source": [places[row["stage"], row["start"]] for row in rows],
                "target": [places[row["stage"] + 1, row["end"]] for row in rows],
                "value": [row["n"] for row in rows],
                "color": [OUT if "excluded" in (row["start"], row["end"]) else RIBBON for row in rows],
                "customdata": [wording.counted(row["n"], "case") for row in rows],
                "hovertemplate": "%{source.label} to %{target.label}: %{customdata}<extra></extra>",
            },
        )
    )
    height = max(_LEAST_PIXELS, 40 + _NODE_PIXELS * max(map(len, stages)))
    return figure.update_layout(height=height, margin={"l": 4, "r": 4, "t": 16, "b": 16})


def counted(k: float, n: float, share: float) -> str:
    """A share with its counts; without them where it is an estimate.

    >>> counted(92, 148, 92 / 148), counted(2.5, 8, 2.5 / 8), counted(math.nan, math.nan, 0.62)
    ('62 % (92/148)', '31 % (2.5/8)', '62 %')
    """
    of = "" if math.isnan(k) or math.isnan(n) else f" ({count_words(k)}/{count_words(n)})"
    return f"{percent_words(share)}{of}"
