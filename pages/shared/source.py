"""Texts formatted, as a browser would show them, or their source letter for letter: the reader's choice, which their browser keeps."""

import streamlit as st

COOKIE = "overread_source"
_JS = """
export default ({ data }) => {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `%s=${data ? 1 : 0}; path=/; max-age=31536000; samesite=lax${secure}`;
};
"""
_keep = st.components.v2.component("overread_source", js=_JS % COOKIE)


def formatted() -> bool:
    """The switch beside a text. Returns whether its Markdown is drawn, as it is unless somebody wants the source."""
    st.session_state.setdefault("source_text", st.context.cookies.get(COOKIE) == "1")
    is_source = st.toggle("Source", key="source_text", persist_state="session")
    _keep(key="keep_source", data=is_source)
    return not is_source
