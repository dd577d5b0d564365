"""What stands around every page: under the navigation the glossary and who reads; a sidebar that makes room; and paper, which is light."""

from pathlib import Path

import streamlit as st

from evalcore.study.schema import Viewer
from pages.shared import common, glossary

_JS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_listen = st.components.v2.component("overread_frame", js=_JS)


def show(person: Viewer) -> None:
    """Under the navigation, on every page."""
    glossary.show()
    common.sidebar_foot(person)
    with st.sidebar:
        _listen(key="frame")
