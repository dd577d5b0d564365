"""Controls whose choice is kept in the address, for the pages of results."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.shared import page_cache


def one_of(
    page: str,
    label: str,
    options: Sequence[Any],
    key: str,
    *,
    width: int,
    usual: int = 0,
    words: Callable[[Any], str] = str,
) -> Any:
    """One of several.

    Args:
        key: Of the control, and in the address.
        width: In pixels.
        usual: Place of the option that it begins with; after the browser's way back from a case, the one that was chosen before.
    """
    return st.selectbox(
        label,
        options,
        index=page_cache.first(page, key, options, usual),
        key=key,
        bind="query-params",
        persist_state="session",
        format_func=words,
        width=width,
    )
