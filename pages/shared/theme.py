"""What figures need of the page: the viewer's theme, which they cannot read from the style sheet, and the code that draws them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from evalcore.figures.colours import INK_ON_PAPER, INK_ON_SLATE
from evalcore.figures.frames import blank

FETCHED = "figures_fetched"


def ink() -> str:
    """The colour of words in figures, in the viewer's theme."""
    return INK_ON_SLATE if st.context.theme.type == "dark" else INK_ON_PAPER


def figure(drawn: go.Figure, *, key: str, alt: str, **more: Any) -> Any:
    """A figure without Plotly's tool bar; `alt` is for those who do not see it. What was selected in it, where `more` asks for that."""
    return st.plotly_chart(drawn, config={"displayModeBar": False}, key=key, alt=alt, **more)


@contextmanager
def figures_fetched(*, wanted: bool) -> Iterator[None]:
    """While the study is read, have the browser prepare what draws figures, which takes as long; once a session, and only if `wanted`."""
    place = st.empty()
    if wanted and FETCHED not in st.session_state:
        place.plotly_chart(blank(), config={"displayModeBar": False}, key=f"{FETCHED}_blank")
        st.session_state[FETCHED] = True
    yield
    place.empty()
