"""Yes or no, as the browser keeps it for a year."""

import streamlit as st

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
