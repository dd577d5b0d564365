"""Tables: as wide as what they hold, as high as their rows, whole numbers with separators, no empty column."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.stats.intervals import NO_VALUE

HEADER_PIXELS, ROW_PIXELS, TALLEST = 38, 35, 16
PIXELS: dict[str, float] = {
    **dict.fromkeys(" .,:;'|/()[]ijlft", 4.1),
    **dict.fromkeys("%mwMW@", 12.0),
    **dict.fromkeys("0123456789", 7.0),
}
LETTER_PIXELS, FRAME_PIXELS, WIDEST = 7.2, 17, 400
NAME_LEAST, NAME_ANYHOW = 100, 200
"""The least width of a column of names, and the one where the table does not fit beside the sidebar anyhow."""
ROOM_PIXELS = 980
WRAPPED_PIXELS = 66
"""The height of a row of several lines: Streamlit breaks words of a cell into lines only above 64 pixels."""
NOTHING = ("", NO_VALUE, 0)
CLICKED: Mapping[str, Any] = {"on_select": "rerun", "selection_mode": ["single-row", "single-cell"]}


def height(n_rows: int, tallest: int = TALLEST, *, row_pixels: int = ROW_PIXELS) -> int:
    """The height in pixels; a table higher than `tallest` rows ends amid a row, so that one sees that it goes on."""
    n_shown = max(tallest * ROW_PIXELS // row_pixels, 1)
    rest = row_pixels // 2 if n_rows > n_shown else 0
    return HEADER_PIXELS + row_pixels * min(n_rows, n_shown) + rest


def frame(columns: Mapping[str, Any], optional: Collection[str] = ()) -> pd.DataFrame:
    """The columns as a table, without those of `optional` that hold nothing but zeros, dashes or empty words."""
    made = pd.DataFrame({name: list(column) for name, column in columns.items()})
    return made.drop(columns=[name for name in optional if made[name].isin(NOTHING).all()])


def formats(table: pd.DataFrame, names: Collection[str] = ()) -> dict[str, Any]:
    """How columns are drawn. `names`: those that have the room which others leave in a window of 1280; longer words take several lines."""
    return {
        name: st.column_config.NumberColumn(format="localized")
        if pd.api.types.is_integer_dtype(table[name])
        else st.column_config.TextColumn(width=width)
        for name, width in _widths(table, names).items()
    }


def row_pixels(table: pd.DataFrame, names: Collection[str] = ()) -> int:
    """The height of a row: higher where a name takes more than a line. What is longer still, a double click shows."""
    widths = _widths(table, names)
    cut_off = (width([name, *table[name].astype(str)]) > widths[name] for name in names if name in widths)
    return WRAPPED_PIXELS if any(cut_off) else ROW_PIXELS


def _widths(table: pd.DataFrame, names: Collection[str]) -> dict[str, int]:
    wide = {
        str(name): width([str(name), *(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in table[name])])
        for name in table
    }
    others = sum(min(width, WIDEST) for name, width in wide.items() if name not in names)
    left = (ROOM_PIXELS - others) // max(sum(name in names for name in wide), 1)
    widest = left if left >= NAME_LEAST else NAME_ANYHOW
    return {name: min(width, widest if name in names else WIDEST) for name, width in wide.items()}


def width(words: Iterable[str]) -> int:
    """Pixels of a column in which the longest of these words stands on one line."""
    return math.ceil(FRAME_PIXELS + max(sum(PIXELS.get(letter, LETTER_PIXELS) for letter in word) for word in words))


def show(
    columns: Mapping[str, Any],
    *,
    key: str,
    alt: str,
    optional: Collection[str] = (),
    names: Collection[str] = (),
    tallest: int = TALLEST,
    config: Mapping[str, Any] | None = None,
    notes: Mapping[str, str] | None = None,
    **how: Any,
) -> Any:
    """A table; `alt` says what it holds, for those who do not see it; `notes` are the tooltips of its columns."""
    table = frame(columns, optional)
    drawn = formats(table, names)
    drawn |= {name: {**drawn[name], "help": note} for name, note in (notes or {}).items()}
    pixels = row_pixels(table, names)
    return st.dataframe(
        table,
        key=key,
        hide_index=True,
        width="content",
        height=height(len(table), tallest, row_pixels=pixels),
        row_height=pixels if pixels != ROW_PIXELS else None,
        column_config={**drawn, **(config or {})},
        alt=alt,
        **how,
    )


def touched(event: Any) -> int | None:
    """The place of the row that a click has touched in a table with `CLICKED`, from 0."""
    return next(iter([*event.selection.rows, *(row for row, _ in event.selection.cells)]), None)


def pick(columns: Mapping[str, Any], **how: Any) -> int | None:
    """As `show`, of which a click picks a row: its place from 0."""
    place = touched(show(columns, **CLICKED, **how))
    n_rows = max(map(len, columns.values()), default=0)
    return None if place is None or place >= n_rows else place


def choose(
    columns: Mapping[str, Any],
    *,
    key: str,
    alt: str,
    opened: Callable[[int], None] | None = None,
    tallest: int = 560,
    **how: Any,
) -> int | None:
    """A table of which a click opens one row. Returns its place, from 0; `opened` is told before the page runs, but not after a restart of the server."""

    def clicked() -> None:
        if opened is not None and (place := touched(st.session_state[key])) is not None:
            opened(place)

    table = pd.DataFrame(columns)
    pixels = min(tallest, HEADER_PIXELS + ROW_PIXELS * max(len(table), 1))
    look: dict[str, Any] = {**CLICKED, "on_select": clicked, "key": key, "alt": alt, "height": pixels}
    return touched(st.dataframe(table, hide_index=True, **look, **how))
