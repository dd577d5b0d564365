"""What stands under the navigation: the glossary, who reads, and what closes the sidebar on a narrow screen."""

from pathlib import Path

import streamlit as st

from evalcore.study.schema import Viewer
from pages.shared import common, glossary

_JS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_make_room = st.components.v2.component("overread_sidebar", js=_JS)


def show(person: Viewer) -> None:
    """Under the navigation, on every page."""
    glossary.show()
    common.sidebar_foot(person)
    with st.sidebar:
        _make_room(key="make_room")
