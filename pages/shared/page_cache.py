"""What the pages of results keep: numbers until the study changes, and choices for the browser's way back from a conversation."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from evalcore.study.schema import Viewer
from pages.shared import common

_Made = TypeVar("_Made")
KEPT: Mapping[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""A control whose choice is kept in the address, and while another page is open."""


@st.cache_data(max_entries=256, show_spinner=False)
def _computed(key: Hashable, arguments: tuple[Any, ...], _make: Callable[..., _Made], _of: Callable[[], Any]) -> _Made:  # noqa: ARG001 - the key
    return _make(_of(), *arguments)


def computed(
    make: Callable[..., _Made], viewer: Viewer, of: Callable[[], Any], *arguments: Any, about: Hashable = None
) -> _Made:
    """What `make(of(), *arguments)` gives, until anything in the study changes.

    The key is the name of `make`, a function of a module; the arguments; what is hidden from the viewer; and `about`, what else tells what `of` gives apart.
    """
    name = f"{make.__module__}.{make.__qualname__}"
    key = (common.location(), common.version(), common.blind(viewer), name, about)
    return _computed(key, arguments, make, of)


@st.cache_resource(max_entries=18, show_spinner=False)
def _shared(key: Hashable, _make: Callable[[], _Made]) -> _Made:  # noqa: ARG001 - the key
    return _make()


def shared(
    make: Callable[[], _Made], viewer: Viewer, about: Hashable, *, version: common.Version | None = None
) -> _Made:
    """What `make()` gives, by what it is (`about`), not copied: it is shared by everybody who looks, so never change it. `version`: of what it is made from."""
    return _shared((common.location(), version or common.version(), common.blind(viewer), about), make)


def leave(page: str, keys: Sequence[str], **more: Any) -> None:
    """Keep what is chosen, for the browser's way back: Streamlit empties this page's address before it goes to another page."""
    kept = {key: st.session_state[key] for key in keys if key in st.session_state}
    st.session_state[f"{page}_left"] = kept | more


def left(page: str, key: str, usual: Any = None) -> Any:
    """What was chosen before, after the browser's way back from a conversation; else what is usual."""
    return st.session_state.get(f"{page}_left", {}).get(key, usual) if "example" in st.query_params else usual


def section(page: str, sections: Sequence[str]) -> str:
    """The section of a page that is chosen, by the control in the row that is open; the address holds its words."""
    key = f"{page}_show"
    before = left(page, key)
    usual = before if before in sections else sections[0]
    chosen = st.segmented_control(
        "Show", sections, default=usual, key=key, required=True, label_visibility="collapsed", **KEPT
    )
    return str(chosen or sections[0])


def one_of(page: str, label: str, options: Sequence[Any], key: str, usual: Any = None, **more: Any) -> Any:
    """A choice of one of several, kept in the address under the key; it begins as usual, or as before where the browser came back from a conversation."""
    place = next((options.index(one) for one in (left(page, key, usual), usual) if one in options), 0)
    return st.selectbox(label, options, place, key=key, **KEPT, **more)
