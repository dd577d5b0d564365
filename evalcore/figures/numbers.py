"""The numbers of a figure as a table: what is drawn, and what a pointer on a mark is told, a row a mark."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

HALF = 0.5
SIDES = {"across": "x", "up": "y"}
_FIELD = re.compile(r"%\{(x|y|z|customdata|fullData\.name)(?:\[(\d+)\])?(?::([^}]*))?\}")


def numbers(figure: go.Figure) -> pd.DataFrame:
    """A row a mark of a figure, in the order in which they are drawn.

    Returns:
        series (the trace's name), across and up (the marks' places, or the names that stand there; none where the axis is not drawn), with across_is and
        up_is (the axes' titles), the ends of their intervals (_low, _high), value (of a cell), words (beside a mark), and told (what a pointer is told of
        it). Columns that hold nothing are left out.
    """
    layout = figure.layout.to_plotly_json()  # plain: each look into a figure of Plotly costs as much as a mark
    axes = {name: _Axis.of(axis) for name, axis in layout.items() if name[1:5] == "axis"}
    traces = (trace.to_plotly_json() for trace in figure.data)
    rows = [
        row
        for trace in traces
        if trace.get("hoverinfo") != "skip" or trace.get("text") is not None
        for row in _rows(axes, trace)
    ]
    return pd.DataFrame(rows).replace({"": None}).dropna(axis="columns", how="all")


class _Axis(NamedTuple):
    title: str | None = None
    places: Sequence[Any] = ()
    names: Sequence[str] = ()
    is_shown: bool = True

    @classmethod
    def of(cls, axis: Mapping[str, Any]) -> "_Axis":
        has_names = axis.get("ticktext") is not None and axis.get("tickvals") is not None
        names, places = (list(map(_plain, axis["ticktext"])), list(axis["tickvals"])) if has_names else ([], [])
        return cls(_plain(axis.get("title", {}).get("text")), places, names, axis.get("visible") is not False)

    def named(self, place: Any) -> Any:
        """What stands at a place, or nearest to it; the place itself where the axis has no names."""
        if isinstance(place, str) or not self.places:
            return _plain(place)
        nearest = min(range(len(self.places)), key=lambda n: abs(self.places[n] - place))
        return self.names[nearest] if abs(self.places[nearest] - place) < HALF else place


def _rows(axes_of: Mapping[str, _Axis], trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    if trace["type"] == "sankey":
        flows = zip(*(trace["link"][name] for name in ("source", "target", "value")), strict=True)
        names = list(map(_plain, trace["node"]["label"]))
        return [{"series": names[start], "words": names[end], "value": n} for start, end, n in flows]
    named_axes = {side: f"{name}axis{trace.get(f'{name}axis', name)[1:]}" for side, name in SIDES.items()}
    axes = {side: axes_of.get(name, _Axis()) for side, name in named_axes.items()}
    series, template = _plain(trace.get("name") or ""), trace.get("hovertemplate")
    titles = {f"{side}_is": axis.title for side, axis in axes.items() if axis.is_shown}
    rows = []
    for mark in _cells(trace) if trace["type"] == "heatmap" else _marks(trace):
        said = mark.pop("said")
        named = {side: axis.named(mark[side]) for side, axis in axes.items()}
        fields = {"x": named["across"], "y": named["up"], "z": mark.get("value"), "fullData.name": series}
        told = {"told": _plain(_told(template, fields, said))}
        shown = {side: named[side] for side, axis in axes.items() if axis.is_shown}
        ends = {name: value for name, value in mark.items() if name not in axes}
        rows.append({"series": series} | titles | shown | ends | told)
    return rows


def _cells(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    cells, told = trace["z"], trace.get("customdata")
    down = range(len(cells)) if trace.get("y") is None else trace["y"]
    along = range(len(cells[0]) if len(cells) else 0) if trace.get("x") is None else trace["x"]
    return [
        {"across": x, "up": y, "value": z, "said": None if told is None else told[row][column]}
        for row, (y, line) in enumerate(zip(down, cells, strict=True))
        for column, (x, z) in enumerate(zip(along, line, strict=True))
        if z is not None and not math.isnan(z)
    ]


def _marks(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    x, y = (() if place is None else list(place) for place in map(trace.get, ("x", "y")))
    text, told = trace.get("text"), trace.get("customdata")
    columns: dict[str, Any] = {"across": x, "up": y}
    columns["words"] = [_plain(text)] * len(x) if text is None or isinstance(text, str) else list(map(_plain, text))
    columns["said"] = [None] * len(x) if told is None else list(told)
    for side, at, bars in (("across", x, trace.get("error_x", {})), ("up", y, trace.get("error_y", {}))):
        above, below = bars.get("array"), bars.get("arrayminus")
        if above is not None:
            places = np.asarray(at, dtype=float)
            below = above if below is None else below
            columns |= {f"{side}_low": places - np.asarray(below), f"{side}_high": places + np.asarray(above)}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return [row for row in rows if row["across"] is not None]


def _told(template: str | None, fields: Mapping[str, Any], said: Any) -> str:

    def written(field: re.Match[str]) -> str:
        name, place, form = field.groups()
        value = fields.get(name) if name != "customdata" else said if place is None else said[int(place)]
        if isinstance(value, Number):
            return format(value, form or "")
        # what a figure says by itself is escaped already
        return html.escape(str(value)) if name in fields else str(value)

    return _FIELD.sub(written, re.sub(r"<extra>.*", "", template or ""))


def _plain(cell: Any) -> Any:
    """Words as they are read: without tags, escapes and breaks. Numbers stay."""
    if not isinstance(cell, str):
        return cell
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split())
