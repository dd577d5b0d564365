"""What the browser of a reader keeps for a year: yes or no, and so whether texts are formatted."""

import streamlit as st

SOURCE = "overread_source"
_JS = """
export default ({ data }) => {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${data.name}=${data.yes ? 1 : 0}; path=/; max-age=31536000; samesite=lax${secure}`;
};
"""
_component = st.components.v2.component("overread_cookie", js=_JS)


def kept(name: str) -> bool:
    """What the browser had kept when the session began."""
    return bool(st.context.cookies.get(name) == "1")


def keep(name: str, *, yes: bool) -> None:
    """Have the browser keep it."""
    _component(key=f"keep_{name}", data={"name": name, "yes": yes})


def formatted() -> bool:
    """The switch beside a text: its source letter for letter, or formatted as a browser would show it. Returns whether it is formatted."""
    st.session_state.setdefault("source_text", kept(SOURCE))
    is_source = st.toggle("Source", key="source_text", persist_state="session")
    keep(SOURCE, yes=is_source)
    return not is_source
