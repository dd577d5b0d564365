"""What readers are told, beside what they read: opened and closed by one key."""

import streamlit as st

from pages.shared import html
from pages.shared.keys import Press


def button() -> None:
    """Opens what readers are told in the place of the list, and closes it."""
    if st.button("Guideline", key="guideline", shortcut=Press.GUIDELINE.key):
        st.session_state["guideline_open"] = not st.session_state.get("guideline_open", False)


def shown(guideline: str | None) -> bool:
    """Draw the guideline where it is open. Returns whether it is."""
    if not guideline or not st.session_state.get("guideline_open"):
        return False
    st.html(f'<div class="or-guideline" tabindex="0">{html.formatted(guideline)}</div>')
    return True
