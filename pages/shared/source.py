"""Texts formatted, as a browser would show them, or their source letter for letter: the reader's choice, which their browser keeps."""

import streamlit as st

from pages.shared import cookies

COOKIE = "overread_source"


def formatted() -> bool:
    """The switch beside a text. Returns whether its Markdown is drawn, as it is unless somebody wants the source."""
    st.session_state.setdefault("source_text", cookies.kept(COOKIE))
    is_source = st.toggle("Source", key="source_text", persist_state="session")
    cookies.keep(COOKIE, yes=is_source)
    return not is_source
