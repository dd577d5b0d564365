"""Around every page: glossary and reader under the navigation, a sidebar that makes room, light paper."""

from pathlib import Path

import streamlit as st

from evalcore.study.schema import Viewer
from pages.shared import common, glossary

_JS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_listen = st.components.v2.component("overread_frame", js=_JS)


def show(person: Viewer) -> None:
    """Under the navigation, on every page."""
    with st.sidebar:
        glossary.show()
        common.sidebar_foot(person)
        _listen(key="frame")
