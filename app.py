"""The list of pages and the page set-up; nothing else."""

from pathlib import Path

import streamlit as st

from pages import _common, _text, _welcome

SIDEBAR_PIXELS = 230
ICON = str(Path(__file__).parent / "pages" / "_icon.svg")

st.set_page_config(page_title="Overread", page_icon=ICON, layout="wide", initial_sidebar_state=SIDEBAR_PIXELS)
st.logo(ICON, size="large")
st.html(_text.STYLE)
viewer = _common.viewer()
page = st.navigation(
    {
        "Read": [st.Page("pages/browse.py", title="Browse", icon=":material/menu_book:")],
        "Study": [
            st.Page("pages/overview.py", title="Overview", icon=":material/home:", default=True),
            st.Page("pages/study.py", title="Study", icon=":material/database:"),
            st.Page("pages/export.py", title="Export", icon=":material/download:"),
            st.Page("pages/audit.py", title="Audit", icon=":material/history:"),
        ],
    },
    position="hidden" if viewer is None else "sidebar",
)
if viewer is None:
    _welcome.show()
else:
    _common.sidebar_foot(viewer)
    page.run()
