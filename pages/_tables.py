"""Tables of numbers: as wide as what they hold and as high as their rows, whole numbers with separators, no column that says nothing."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.metrics.intervals import NO_VALUE

HEADER_PIXELS, ROW_PIXELS, TALLEST = 38, 35, 14
PIXELS = dict.fromkeys(" .,:;'|/()[]ijlft", 4.1) | dict.fromkeys("%mwMW@", 12.0) | dict.fromkeys("0123456789", 7.0)
"""The width of a character of a table's font; of others `LETTER_PIXELS`."""
LETTER_PIXELS, FRAME_PIXELS, WIDEST, NAME_WIDEST = 7.2, 17, 400, 200
NOTHING = ("", NO_VALUE, 0)


def height(n_rows: int, tallest: int = TALLEST) -> int:
    """The height in pixels; a table with more than `tallest` rows ends amid a row, so that one sees that it goes on."""
    rest = ROW_PIXELS // 2 if n_rows > tallest else 0
    return HEADER_PIXELS + ROW_PIXELS * min(n_rows, tallest) + rest


def frame(columns: Mapping[str, Any], optional: Collection[str] = ()) -> pd.DataFrame:
    """The columns as a table.

    Args:
        columns: As the table shows them.
        optional: Of these, the columns that are left out where they hold nothing but zeros, dashes or empty words.
    """
    made = pd.DataFrame({name: list(column) for name, column in columns.items()})
    return made.drop(columns=[name for name in optional if made[name].isin(NOTHING).all()])


def formats(table: pd.DataFrame, names: Collection[str] = ()) -> dict[str, Any]:
    """How columns are drawn: whole numbers with separators, as the viewer's language writes them; words in a column as wide as the longest.

    Left alone, Streamlit takes the width from the first rows, and cuts off what is longer below.

    Args:
        table: As `frame` gives it.
        names: Its columns of names of judges, models or people: what follows must be seen, however long they are.
    """
    return {
        str(name): st.column_config.NumberColumn(format="localized")
        if pd.api.types.is_integer_dtype(table[name])
        else st.column_config.TextColumn(
            width=_width([str(name), *table[name].astype(str)], NAME_WIDEST if name in names else WIDEST)
        )
        for name in table
    }


def _width(words: Iterable[str], widest: int) -> int:
    longest = max(sum(PIXELS.get(letter, LETTER_PIXELS) for letter in word) for word in words)
    return min(math.ceil(FRAME_PIXELS + longest), widest)


def show(
    columns: Mapping[str, Any],
    *,
    key: str,
    alt: str,
    optional: Collection[str] = (),
    names: Collection[str] = (),
) -> None:
    """A table that is only read.

    Args:
        columns: As it shows them.
        key: Of the element.
        alt: What it holds, for those who do not see it.
        optional: As for `frame`.
        names: As for `formats`.
    """
    made = frame(columns, optional)
    st.dataframe(
        made,
        key=key,
        hide_index=True,
        width="content",
        height=height(len(made)),
        column_config=formats(made, names),
        alt=alt,
    )
