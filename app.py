"""The list of pages and the page set-up; nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import streamlit as st

from evalcore.study.policies import can_adjudicate, can_read, can_see_audit
from evalcore.study.schema import Viewer
from pages import _ahead, _common, _text, _welcome

SIDEBAR_PIXELS = 230
ICON = str(Path(__file__).parent / "pages" / "_icon.svg")

st.set_page_config(page_title="Overread", page_icon=ICON, layout="wide", initial_sidebar_state=SIDEBAR_PIXELS)
st.logo(ICON, size="large")
st.html(_text.STYLE)


def shown(viewer: Viewer | None, rule: Callable[[Viewer], bool]) -> Literal["visible", "hidden"]:
    """A page that is not for the viewer's role is left out of the navigation; its own guard says why to whoever opens its address."""
    return "visible" if viewer is not None and rule(viewer) else "hidden"


with _common.guarded():
    viewer = _common.viewer()
    page = st.navigation(
        {
            "Read": [
                st.Page(
                    "pages/review.py", title="Review", icon=":material/rate_review:", visibility=shown(viewer, can_read)
                ),
                st.Page(
                    "pages/my_reads.py",
                    title="My reads",
                    icon=":material/checklist:",
                    visibility=shown(viewer, can_read),
                ),
                st.Page("pages/browse.py", title="Browse", icon=":material/menu_book:"),
                st.Page(
                    "pages/adjudicate.py",
                    title="Adjudicate",
                    icon=":material/balance:",
                    visibility=shown(viewer, can_adjudicate),
                ),
            ],
            "Results": [
                st.Page("pages/models.py", title="Models", icon=":material/leaderboard:"),
                st.Page("pages/judges.py", title="Judges", icon=":material/gavel:"),
                st.Page("pages/triage.py", title="Triage", icon=":material/emergency:"),
                st.Page("pages/calibration.py", title="Calibration", icon=":material/speed:"),
            ],
            "Study": [
                st.Page("pages/overview.py", title="Overview", icon=":material/home:", default=True),
                st.Page("pages/study.py", title="Study", icon=":material/database:"),
                st.Page("pages/export.py", title="Export", icon=":material/download:"),
                st.Page(
                    "pages/audit.py", title="Audit", icon=":material/history:", visibility=shown(viewer, can_see_audit)
                ),
            ],
        },
        position="hidden" if viewer is None else "sidebar",
    )
    if viewer is None:
        _welcome.show()
    else:
        _common.came(viewer)
        _ahead.begin(viewer)
        _common.sidebar_foot(viewer)
        _common.tell_unfinished()
        page.run()
