"""What the pages of results keep: numbers until the study changes, and choices for the browser's way back from a conversation."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import streamlit as st

from evalcore.settings import settings
from evalcore.study.schema import Viewer
from pages.shared import common


@st.cache_data(max_entries=256, show_spinner=False)
def _computed(key: Hashable, arguments: tuple[Any, ...], _make: Callable[..., Any], _of: Callable[[], Any]) -> Any:  # noqa: ARG001 - the key
    return _make(_of(), *arguments)


def computed(
    make: Callable[..., Any], viewer: Viewer, of: Callable[[], Any], *arguments: Any, about: Hashable = None
) -> Any:
    """What `make(of(), *arguments)` gives; made anew as soon as anything in the study has changed.

    Args:
        make: A function of a module; its name is part of the key, and so are the arguments, and what is hidden from the viewer.
        of: Gives what the numbers are of.
        about: What else tells the things that `of` gives apart; part of the key.
    """
    name = f"{make.__module__}.{make.__qualname__}"
    key = (settings().db, common.version(), common.blind(viewer), name, about)
    return _computed(key, arguments, make, of)


@st.cache_resource(max_entries=18, show_spinner=False)
def _shared(key: Hashable, _make: Callable[[], Any]) -> Any:  # noqa: ARG001 - the key
    return _make()


def shared(make: Callable[[], Any], viewer: Viewer, about: Hashable, *, version: common.Version | None = None) -> Any:
    """What `make()` gives, not copied: it is shared by everybody who looks, so never change it.

    Args:
        about: What it is, and of what; part of the key.
        version: Of what it is made from; None: of all of the study.
    """
    return _shared((settings().db, version or common.version(), common.blind(viewer), about), make)


def leave(page: str, keys: Sequence[str], **more: Any) -> None:
    """Keep what is chosen, for the browser's way back: Streamlit empties this page's address before it goes to another page."""
    kept = {key: st.session_state[key] for key in keys if key in st.session_state}
    st.session_state[f"{page}_left"] = kept | more


def left(page: str, key: str, usual: Any = None) -> Any:
    """What was chosen before, after the browser's way back from a conversation; else what is usual."""
    return st.session_state.get(f"{page}_left", {}).get(key, usual) if "example" in st.query_params else usual


def first(page: str, key: str, options: Sequence[Any], usual: int = 0) -> int:
    """Which option a control begins with: the usual one; after the browser's way back, the one that was chosen before."""
    before = left(page, key)
    return list(options).index(before) if before in options else usual


def section(page: str, sections: Sequence[str]) -> str:
    """The section of a page that is chosen, by the control in the row that is open; the address holds its words."""
    key = f"{page}_show"
    chosen = st.segmented_control(
        "Show",
        sections,
        default=sections[first(page, key, sections)],
        key=key,
        bind="query-params",
        persist_state="session",
        required=True,
        label_visibility="collapsed",
    )
    return str(chosen or sections[0])


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
    """A choice of one of several, kept in the address under the key.

    Args:
        usual: Place of the option that it begins with; after the browser's way back from a case, the one that was chosen before.
    """
    return st.selectbox(
        label,
        options,
        index=first(page, key, options, usual),
        key=key,
        bind="query-params",
        persist_state="session",
        format_func=words,
        width=width,
    )
