"""Figures of calibration: reliability, routing, and spread beside the panel's. Series without a colour are grey."""

import html
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evalcore.figures.colours import FAINT, GREY, INK, MARK, MODEL_SYMBOLS
from evalcore.figures.frames import TEXT_PIXELS, framed, on_lines, on_one_line, reach

PANEL_PIXELS, ALONE_PIXELS, GAP_PIXELS = 390, 330, 58
NAMES_PIXELS, TITLE_PIXELS, FOOT_PIXELS, LEGEND_PIXELS = 74, 34, 58, 34
STEP, MOST_STEPS = 0.011, 6
"""How far models that stand at the same confidence are moved apart, and how many at most."""
PANELS = {"distance": "Distance, unbiased", "entropy_model": "Entropy (bits)"}
_SAID = ["name", "mean_confidence", "low", "high", "n", "n_clusters", "lowest", "highest"]
_RELIABLE = (
    "%{customdata[0]}<br>confidence %{customdata[1]:.2f} (%{customdata[6]:.2f} to %{customdata[7]:.2f})<br>"
    "%{y:.0%} [%{customdata[2]:.0%}, %{customdata[3]:.0%}], n = %{customdata[4]:,}<extra></extra>"
)
_SENT = "sent to a human %{x:.0%}<extra></extra>"
_ROUTED = "%{customdata[0]}, %{customdata[1]}<br>caught %{y:.0%} (%{customdata[2]}/%{customdata[3]}), " + _SENT
_CHOSEN = "%{customdata[0]}, as chosen<br>caught %{y:.0%} [%{customdata[1]:.0%}, %{customdata[2]:.0%}], " + _SENT
FORMAT_SYMBOLS = {"qa": "circle", "conversation": "diamond"}
ROW_PIXELS, FRAME_PIXELS = 34, 96


class _Squares:
    """Squares side by side, axes from `start` to 1, a dotted diagonal; a series has one mark and colour throughout."""

    def __init__(
        self,
        panels: Mapping[str, str],
        start: float,
        x_title: str,
        series: Iterable[str],
        colours: Mapping[str, str],
        dashes: Mapping[str, str],
    ) -> None:
        n = len(panels)
        gap = GAP_PIXELS / (n * PANEL_PIXELS + (n - 1) * GAP_PIXELS) if n > 1 else 0.0
        titles = [html.escape(title) for title in panels.values()]
        self.figure = make_subplots(cols=n, horizontal_spacing=gap, subplot_titles=titles)
        span = [start - 0.03 * (1 - start), 1 + 0.03 * (1 - start)]
        ticks = {"tickformat": ".0%", "gridcolor": FAINT, "zeroline": False, "range": span, "nticks": 6}
        self.figure.update_xaxes(title=html.escape(x_title), showgrid=True, **ticks)
        self.figure.update_yaxes(**ticks)
        line = {"color": GREY, "width": 1, "dash": "dot"}
        for column in range(1, n + 1):
            self.figure.add_scatter(
                x=[start, 1], y=[start, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False, row=1, col=column
            )  # fmt: skip
        self.n, self.names, self.colours, self.dashes = n, sorted(set(series)), colours, dashes
        models = sorted(colours) or self.names
        self.symbols = {model: MODEL_SYMBOLS[place % len(MODEL_SYMBOLS)] for place, model in enumerate(models)}

    def marker(self, name: str, size: int, **more: Any) -> dict[str, Any]:
        return {"size": size, "symbol": self.symbols.get(name, "circle"), "color": self.colours.get(name, MARK), **more}

    def line(self, name: str, column: int, *, size: int, width: float, legend: bool, **more: Any) -> None:
        """The points of a series, joined; the legend names it once."""
        known = any(trace.legendgroup == name for trace in self.figure.data)
        line = {"color": self.colours.get(name, MARK), "dash": self.dashes.get(name, "solid"), "width": width}
        look = {"mode": "lines+markers", "line": line, "marker": self.marker(name, size)}
        named = {"name": on_one_line(name), "legendgroup": name, "legendrank": self.names.index(name) + 1}
        self.figure.add_scatter(**look, **named, showlegend=legend and not known, row=1, col=column, **more)

    def note(self, x: float, y: float, words: str, column: int, **anchors: str) -> None:
        self.figure.add_annotation(x=x, y=y, text=html.escape(words), showarrow=False, row=1, col=column, **anchors)

    def sized(self, y_title: str, *, legend: bool) -> go.Figure:
        """Squares stay squares, however wide the page is."""
        self.figure.update_yaxes(title=html.escape(y_title), row=1, col=1)
        self.figure.update_annotations(font_size=TEXT_PIXELS)
        foot = FOOT_PIXELS + (LEGEND_PIXELS if legend else 0)
        side = PANEL_PIXELS if self.n > 1 else ALONE_PIXELS
        self.figure.update_layout(
            width=NAMES_PIXELS + self.n * side + (self.n - 1) * GAP_PIXELS + 12,
            height=TITLE_PIXELS + side + foot,
            margin={"l": NAMES_PIXELS, "r": 12, "t": TITLE_PIXELS, "b": foot, "autoexpand": False},
            legend={"orientation": "h", "y": -FOOT_PIXELS / side, "yanchor": "top", "x": 0},
            dragmode=False,
            hovermode="closest",
        )
        return self.figure


def reliability(
    table: pd.DataFrame,
    panels: Mapping[str, str],
    colours: Mapping[str, str],
    dashes: Mapping[str, str],
    *,
    x_title: str,
    y_title: str,
) -> go.Figure:
    """`reliability.reliability` with panel and series: how often labels are right over how sure, a square a panel."""
    start = max(0.0, math.floor(10 * min(table["lowest"].min(), table["low"].min())) / 10) if len(table) else 0.0
    squares = _Squares(panels, start, x_title, table["series"].astype(str), colours, dashes)
    names, inset = squares.names, 0.03 * (1 - start)
    for column, panel in enumerate(panels, start=1):
        mine = table.loc[table["panel"].eq(panel)]
        for series, rows in mine.groupby(mine["series"].astype(str), sort=True):
            name = str(series)
            place = names.index(name) % MOST_STEPS - (min(len(names), MOST_STEPS) - 1) / 2
            at: dict[str, Any] = {"x": rows["mean_confidence"] + STEP * place * (1 - start), "y": rows["share_right"]}
            at["error_y"] = reach(rows, "share_right", "low", "high", colours.get(name, MARK))
            if len(names) == 1:
                at["error_x"] = reach(rows, "mean_confidence", "lowest", "highest", FAINT)
            said = rows.assign(name=html.escape(name))[_SAID]
            told = {"customdata": said, "hovertemplate": _RELIABLE}
            squares.line(name, column, size=10, width=1.5, legend=len(names) > 1, **at, **told)
        if mine.empty:
            squares.note((1 + start) / 2, (1 + start) / 2, "nothing to draw", column)
        squares.note(start + inset, 1.0, "under-confident", column, xanchor="left", yanchor="top")
        squares.note(1.0 - inset, start, "over-confident", column, xanchor="right", yanchor="bottom")
    return squares.sized(y_title, legend=len(names) > 1)


def routing(
    curves: pd.DataFrame,
    chosen: pd.DataFrame,
    panels: Mapping[str, str],
    colours: Mapping[str, str],
    dashes: Mapping[str, str],
) -> go.Figure:
    """Dangerous misses caught over cases that go to a human, by format; `chosen` has one large mark each."""
    title = "Sent to a human (share of the clear cases)"
    squares = _Squares(panels, 0.0, title, curves["model"].astype(str), colours, dashes)
    for column, panel in enumerate(panels, start=1):
        caught = (table.loc[table["caught"].notna()] for table in (curves, chosen))
        mine, marks = (table.loc[table["format"].astype(str).eq(panel)] for table in caught)
        for model, rows in mine.groupby(mine["model"].astype(str), sort=True):
            which = ["every case" if math.isinf(at) else f"cases below {100 * at:.3g} %" for at in rows["threshold"]]
            said = rows.assign(name=html.escape(str(model)), which=which)[["name", "which", "k_caught", "n_caught"]]
            at: Any = {"x": rows["routed"], "y": rows["caught"], "customdata": said, "hovertemplate": _ROUTED}
            squares.line(str(model), column, size=6, width=2, legend=True, **at)
        for model, rows in marks.groupby(marks["model"].astype(str), sort=False):
            said = rows.assign(name=html.escape(str(model)))[["name", "low_caught", "high_caught"]]
            at: Any = {"x": rows["routed"], "y": rows["caught"], "customdata": said, "hovertemplate": _CHOSEN}
            at["error_y"] = reach(rows, "caught", "low_caught", "high_caught", colours.get(str(model), MARK))
            mark = squares.marker(str(model), 15, line={"color": INK, "width": 2})
            squares.figure.add_scatter(mode="markers", showlegend=False, marker=mark, row=1, col=column, **at)
        if mine.empty:
            squares.note(0.5, 0.5, "no dangerous miss to catch", column)
        squares.note(0.97, 0.0, "dotted: cases drawn at random", column, xanchor="right", yanchor="bottom")
    return squares.sized("Dangerous misses caught (share)", legend=True)


def spread(table: pd.DataFrame, colours: Mapping[str, str]) -> go.Figure:
    """`case_spread.summary`: the distance to the panel, and both entropies beside the floor (a tick)."""
    table = table.astype({"model": str, "format": str})
    occurring = set(zip(table["model"], table["format"], strict=True))
    keys = [
        (model, word)
        for model in dict.fromkeys(table["model"])
        for word in FORMAT_SYMBOLS
        if (model, word) in occurring
    ]
    tick = {"size": 18, "symbol": "line-ns-open", "color": INK, "line": {"color": INK, "width": 2}}
    votes = {"size": 10, "symbol": "square-open", "color": INK, "line": {"color": INK, "width": 2}}
    figure = make_subplots(cols=len(PANELS), shared_yaxes=True, horizontal_spacing=0.04)

    def dot(
        row: pd.DataFrame, column: int, value: str, place: int, marker: dict[str, Any], hover: str, **more: Any
    ) -> None:
        figure.add_scatter(
            x=row[value], y=[place], mode="markers", showlegend=False, marker=marker, row=1, col=column,
            customdata=row[["name", "low", "high", "n_cases"]], hovertemplate=f"{hover}<extra></extra>", **more,
        )  # fmt: skip

    for column, (measure, title) in enumerate(PANELS.items(), start=1):
        for place, (model, word) in enumerate(keys):
            mine = table.loc[table["model"].eq(model) & table["format"].eq(word)]
            row, panel = (mine.loc[mine["measure"].eq(name)] for name in (measure, "entropy_panel"))
            if row.empty:
                continue
            colour, name = colours.get(model, MARK), html.escape(f"{model}, {word}")
            row, panel = row.assign(name=name), panel.assign(name=name)
            marker = {"size": 11, "symbol": FORMAT_SYMBOLS[word], "color": colour}
            hover = "%{customdata[0]}: %{x:.2f} [%{customdata[1]:.2f}, %{customdata[2]:.2f}], %{customdata[3]:,} cases"
            dot(row, column, "value", place, marker, hover, error_x=reach(row, "value", "low", "high", colour))
            dot(row, column, "floor", place, tick, "a model that draws from the panel: %{x:.2f}")
            if measure == "entropy_model" and len(panel):
                hover = "the panel's votes: %{x:.2f} [%{customdata[1]:.2f}, %{customdata[2]:.2f}]"
                dot(panel, column, "value", place, votes, hover)
        figure.update_xaxes(
            title=title, rangemode="normal" if measure == "distance" else "tozero", nticks=5, showgrid=True, gridcolor=FAINT, zeroline=False, row=1, col=column
        )  # fmt: skip
        if measure == "distance":
            figure.add_vline(x=0, line={"color": GREY, "width": 1}, row=1, col=column)
    marks: dict[str, Any] = {word: {"symbol": symbol, "color": MARK} for word, symbol in FORMAT_SYMBOLS.items()}
    marks |= {"by chance: a model that draws from the panel": tick, "the panel's votes": votes}
    for words, marker in marks.items():
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=html.escape(words), marker=marker | {"size": 11}, row=1, col=1
        )
    figure.update_annotations(font_size=TEXT_PIXELS)
    rows = [on_lines(f"{model}, {word}") for model, word in keys]
    return framed(figure, rows, row_pixels=ROW_PIXELS, frame_pixels=FRAME_PIXELS)
