"""The numbers of a figure as a table: what is drawn, and what a pointer on a mark is told, a row a mark."""

import html
import re
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

HALF = 0.5


def numbers(figure: go.Figure) -> pd.DataFrame:
    """A row a mark of a figure, in the order in which they are drawn.

    Returns:
        series (the trace's name), across and up (the marks' places, or the names that stand there), with across_is and up_is (the axes' titles), the ends
        of their intervals (_low, _high), value (of a cell), words (beside a mark), and the columns that `meta` names of what a pointer is told. Columns
        that hold nothing are left out.
    """
    rows = [
        row
        for trace in figure.data
        if trace.hoverinfo != "skip" or trace.text is not None
        for row in _rows(figure, trace)
    ]
    table = pd.DataFrame(rows)
    return table.loc[:, table.notna().any() & ~table.eq("").all()]


def _rows(figure: go.Figure, trace: Any) -> list[dict[str, Any]]:
    if trace.type == "heatmap":
        cells = [
            (x, y, z) for y, line in zip(trace.y, trace.z, strict=True) for x, z in zip(trace.x, line, strict=True)
        ]
        marks = [{"across": x, "up": y, "value": z} for x, y, z in cells if not pd.isna(z)]
    else:
        marks = [{"across": x, "up": y} for x, y in zip(trace.x, trace.y, strict=True)]
        columns = {"words": _each(trace.text, len(marks)), **_told(trace)}
        for side, place, bars in (("across", "x", trace.error_x), ("up", "y", trace.error_y)):
            if bars is not None and bars.array is not None:
                down = bars.array if bars.arrayminus is None else bars.arrayminus
                at = np.asarray(trace[place], dtype=float)
                columns |= {f"{side}_low": at - np.asarray(down), f"{side}_high": at + np.asarray(bars.array)}
        for number, mark in enumerate(marks):
            mark |= {name: _plain(cells[number]) for name, cells in columns.items()}
    axes = {
        "across": figure.layout[f"xaxis{(trace.xaxis or 'x')[1:]}"],
        "up": figure.layout[f"yaxis{(trace.yaxis or 'y')[1:]}"],
    }
    named = {f"{side}_is": _plain(axis.title.text or "") for side, axis in axes.items()}
    return [
        {"series": _plain(trace.name or "")}
        | mark
        | {side: _named(mark[side], axis) for side, axis in axes.items()}
        | named
        for mark in marks
        if mark["across"] is not None
    ]


def _each(text: Any, n: int) -> list[Any]:
    return [text] * n if text is None or isinstance(text, str) else list(text)


def _told(trace: Any) -> dict[str, Any]:
    if trace.meta is None or trace.customdata is None:
        return {}
    return {name: [told[place] for told in trace.customdata] for place, name in enumerate(trace.meta)}


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
