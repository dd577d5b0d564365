"""The viewer's theme, for what cannot read it from the style sheet: words inside figures."""

import streamlit as st

from evalcore.plots.colours import INK_ON_PAPER, INK_ON_SLATE


def ink() -> str:
    """The colour of words in figures, in the viewer's theme."""
    return INK_ON_SLATE if st.context.theme.type == "dark" else INK_ON_PAPER
