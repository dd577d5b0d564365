"""The list of pages and the page set-up; nothing else."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from evalcore.study.policies import allows, check_can_adjudicate, check_can_read, check_can_see_audit
from evalcore.study.schema import Viewer
from pages.shared import common, html, page_cache, routes, tour

SIDEBAR_PIXELS = 230
ICON = str(Path(__file__).parent / "pages" / "shared" / "icon.svg")

st.set_page_config(page_title="Overread", page_icon=ICON, layout="wide", initial_sidebar_state=SIDEBAR_PIXELS)
st.logo(ICON, size="large")
st.html(html.STYLE)


def listed(name: str, title: str, icon: str, rule: Callable[[Viewer], None] | None = None) -> st.Page:
    """A page at the address of its name; the start page is at the address of the dashboard itself.

    One that is not for the viewer's role is left out of the navigation; at its address its own guard says why.
    """
    is_listed = rule is None or (viewer is not None and allows(rule, viewer))
    return st.Page(
        routes.script(name),
        title=title,
        icon=f":material/{icon}:",
        url_path="start" if name == routes.START else name,
        default=name == routes.START,
        visibility="visible" if is_listed else "hidden",
    )


def to_start() -> None:
    """Whoever types the start page's name as its address comes to it."""
    st.switch_page(routes.OVERVIEW, query_params=st.query_params)


with common.guarded():
    viewer = common.viewer()
    page = st.navigation(
        {
            "Read": [
                listed("review", "Review", "rate_review", check_can_read),
                listed("my_reads", "My reads", "checklist", check_can_read),
                listed("browse", "Browse", "menu_book"),
                listed("adjudicate", "Adjudicate", "balance", check_can_adjudicate),
            ],
            "Results": [
                listed("models", "Models", "leaderboard"),
                listed("judges", "Judges", "gavel"),
                listed("triage", "Triage", "emergency"),
                listed("calibration", "Calibration", "speed"),
            ],
            "Study": [
                listed("overview", "Overview", "home"),
                listed("study", "Study", "database"),
                listed("export", "Export", "download"),
                listed("audit", "Audit", "history", check_can_see_audit),
                listed(routes.HELP_NAME, "Help", "help"),
                st.Page(to_start, url_path=routes.START, visibility="hidden"),
            ],
        },
        position="hidden" if viewer is None else "sidebar",
        expanded=True,  # whoever has every role sees every page
    )
    if viewer is None and page.url_path == routes.HELP_NAME:
        st.page_link(routes.OVERVIEW, label="Start page", icon=":material/arrow_back:")
        page.run()  # nothing of a study stands there
    elif viewer is None:
        tour.welcome()
        st.page_link(routes.HELP, label="Help", icon=":material/help:")
    else:
        common.came(viewer)
        page_cache.read_ahead(viewer)
        common.sidebar(viewer)
        common.tell_unfinished()
        common.tell_frozen()
        page.run()
