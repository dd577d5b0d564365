"""The flow diagram of a study as an SVG of our own: it needs no browser to be made, and every count is text."""

from collections.abc import Mapping
from html import escape
from textwrap import wrap
from typing import Any

import pandas as pd

INK, GROUND = "#23262a", "#ffffff"
_LEFT_X, _RIGHT_X, _BOX, _SIDE = 16, 448, 392, 396
_LINE, _PAD, _GAP = 19, 11, 26
_CHARS, _SIDE_CHARS = 50, 48
_UNITS = (("n_examples", "example"), ("n_responses", "response"), ("n_items", "item"), ("n_reads", "read"))


def flow_svg(flow: pd.DataFrame) -> str:
    """Boxes from top to bottom, what leaves and what is a part beside them.

    Returns:
        A whole SVG document, every word in it escaped. `INK` and `GROUND` stand in it once each, so that a page may put its own in their place.
    """
    stages = flow.loc[flow["kind"].eq("stage")].to_dict(orient="records")
    parts: list[str] = []
    top = 12
    for number, stage in enumerate(stages):
        lower = stages[number + 1]["place"] if number + 1 < len(stages) else float("inf")
        beside = flow.loc[flow["place"].gt(stage["place"]) & flow["place"].lt(lower)]
        own = [*wrap(str(stage["what"]), _CHARS), ", ".join(_counts(stage))]
        sides = [_side(row) for row in beside.to_dict(orient="records") if any(_numbers(row))]
        height = len(own) * _LINE + 2 * _PAD
        side_height = sum(len(side) * _LINE + _PAD for side in sides) + _PAD if sides else 0
        parts.append(_box(_LEFT_X, top, _BOX, height, own, bold=True))
        if sides:
            at = top + height / 2
            parts.append(_line(_LEFT_X + _BOX, at, _RIGHT_X, at))
            parts.append(_frame(_RIGHT_X, top, _SIDE, side_height))
            below = top + _PAD
            for side in sides:
                parts.append(_words(_RIGHT_X + 12, below, side))
                below += len(side) * _LINE + _PAD
        bottom = top + max(height, side_height)
        if number + 1 < len(stages):
            middle = _LEFT_X + _BOX / 2
            parts.append(_line(middle, top + height, middle, bottom + _GAP, arrow=True))
        top = bottom + _GAP
    width, whole = _RIGHT_X + _SIDE + 16, top - _GAP + 12
    back = f'<rect width="{width}" height="{whole}" fill="{GROUND}"/>'
    title = "Flow of the study: examples, responses and items at each step, and what leaves"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}" role="img" '
        f'aria-label="{title}" color="{INK}" font-family="system-ui, sans-serif" font-size="13.5">'
        f"<title>{title}</title>{back}{''.join(parts)}</svg>\n"
    )


def _side(row: Mapping[Any, Any]) -> list[str]:
    what, said = str(row["what"]), ", ".join(_counts(row, zero=False))
    return wrap(
        f"Left: {said}: {what}" if row["kind"] == "left" else f"{what[:1].upper()}{what[1:]}: {said}", _SIDE_CHARS
    )


def _numbers(row: Mapping[Any, Any]) -> list[int]:
    return [int(row[name]) for name, _ in _UNITS if not pd.isna(row[name])]


def _counts(row: Mapping[Any, Any], *, zero: bool = True) -> list[str]:
    """The counts of a row that it has; without zeros, where asked."""
    known = [(int(row[name]), word) for name, word in _UNITS if not pd.isna(row[name])]
    return [f"{n:,} {word}" if n == 1 else f"{n:,} {word}s" for n, word in known if zero or n]


def _box(left: float, top: float, width: float, height: float, lines: list[str], *, bold: bool) -> str:
    return _frame(left, top, width, height) + _words(left + 12, top + _PAD, lines, bold=bold)


def _frame(left: float, top: float, width: float, height: float) -> str:
    return f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="4" fill="none" stroke="currentColor" stroke-opacity="0.55"/>'


def _words(left: float, top: float, lines: list[str], *, bold: bool = False) -> str:
    made = []
    for number, line in enumerate(lines):
        weight = ' font-weight="600"' if bold and number < len(lines) - 1 else ""
        at = top + number * _LINE + 13.5
        made.append(f'<text x="{left:g}" y="{at:g}" fill="currentColor"{weight}>{escape(line)}</text>')
    return "".join(made)


def _line(x1: float, y1: float, x2: float, y2: float, *, arrow: bool = False) -> str:
    line = f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="currentColor" stroke-opacity="0.55"/>'
    head = f'<path d="M{x2 - 4:g} {y2 - 7:g} L{x2:g} {y2:g} L{x2 + 4:g} {y2 - 7:g}" fill="none" stroke="currentColor" stroke-opacity="0.8"/>'
    return line + (head if arrow else "")
