"""The numbers of a figure as a table: what is drawn, and what a pointer on a mark is told, a row a mark."""

import html
import math
import re
from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

HALF = 0.5
_FIELD = re.compile(r"%\{(x|y|z|customdata|fullData\.name)(?:\[(\d+)\])?(?::([^}]*))?\}")


def numbers(figure: go.Figure) -> pd.DataFrame:
    """A row a mark of a figure, in the order in which they are drawn.

    Returns:
        series (the trace's name), across and up (the marks' places, or the names that stand there; none where the axis is not drawn), with across_is and
        up_is (the axes' titles), the ends of their intervals (_low, _high), value (of a cell), words (beside a mark), and told (what a pointer is told of
        it). Columns that hold nothing are left out.
    """
    rows = [row for trace in figure.data if trace.hoverinfo != "skip" or trace.text for row in _rows(figure, trace)]
    return pd.DataFrame(rows).replace({"": None}).dropna(axis="columns", how="all")


def _rows(figure: go.Figure, trace: Any) -> list[dict[str, Any]]:
    axes = {
        "across": figure.layout[f"xaxis{(trace.xaxis or 'x')[1:]}"],
        "up": figure.layout[f"yaxis{(trace.yaxis or 'y')[1:]}"],
    }
    series = _plain(trace.name or "")
    rows = []
    for mark in _cells(trace) if trace.type == "heatmap" else _marks(trace):
        said = mark.pop("said")
        named = {side: _named(mark[side], axis) for side, axis in axes.items()}
        fields = {"x": named["across"], "y": named["up"], "z": mark.get("value"), "fullData.name": series}
        told = {"told": _plain(_told(trace.hovertemplate, fields, said))}
        shown = {side: named[side] for side, axis in axes.items() if axis.visible is not False}
        titles = {f"{side}_is": _plain(axes[side].title.text) for side in shown}
        ends = {name: value for name, value in mark.items() if name not in axes}
        rows.append({"series": series} | titles | shown | ends | told)
    return rows


def _cells(trace: Any) -> list[dict[str, Any]]:
    down = range(len(trace.z)) if trace.y is None else trace.y
    along = range(len(trace.z[0]) if len(trace.z) else 0) if trace.x is None else trace.x
    return [
        {"across": x, "up": y, "value": z, "said": None if trace.customdata is None else trace.customdata[row][column]}
        for row, (y, line) in enumerate(zip(down, trace.z, strict=True))
        for column, (x, z) in enumerate(zip(along, line, strict=True))
        if z is not None and not math.isnan(z)
    ]


def _marks(trace: Any) -> list[dict[str, Any]]:
    x, y = (() if place is None else list(place) for place in (trace.x, trace.y))
    columns: dict[str, Any] = {"across": x, "up": y}
    columns["words"] = (
        [_plain(trace.text)] * len(x)
        if trace.text is None or isinstance(trace.text, str)
        else list(map(_plain, trace.text))
    )
    columns["said"] = [None] * len(x) if trace.customdata is None else list(trace.customdata)
    for side, at, bars in (("across", x, trace.error_x), ("up", y, trace.error_y)):
        if bars.array is not None:
            down = bars.array if bars.arrayminus is None else bars.arrayminus
            places = np.asarray(at, dtype=float)
            columns |= {f"{side}_low": places - np.asarray(down), f"{side}_high": places + np.asarray(bars.array)}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return [row for row in rows if row["across"] is not None]


def _told(template: str | None, fields: Mapping[str, Any], said: Any) -> str:
    """The words of a pointer, as Plotly writes them."""

    def written(field: re.Match[str]) -> str:
        name, place, form = field.groups()
        value = fields.get(name) if name != "customdata" else said if place is None else said[int(place)]
        if isinstance(value, Number):
            return format(value, form or "")
        return (
            html.escape(str(value)) if name in fields else str(value)
        )  # what a figure says by itself is escaped already

    return _FIELD.sub(written, re.sub(r"<extra>.*", "", template or ""))


def _named(place: Any, axis: Any) -> Any:
    """What stands at a place of an axis, or nearest to it; the place itself where the axis has no names."""
    if axis.ticktext is None or axis.tickvals is None or isinstance(place, str) or not len(axis.tickvals):
        return _plain(place)
    nearest = min(range(len(axis.tickvals)), key=lambda n: abs(axis.tickvals[n] - place))
    is_there = abs(axis.tickvals[nearest] - place) < HALF
    return _plain(axis.ticktext[nearest]) if is_there else place


def _plain(cell: Any) -> Any:
    """Words as they are read: without tags, escapes and breaks. Numbers stay."""
    if not isinstance(cell, str):
        return cell
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split())
