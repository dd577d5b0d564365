"""Judges: a judge's record, how it stands to physicians, and what its labels are worth. One section at a time."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.judges import agreement, criteria, quality, record, versions
from pages.shared import common, html, judges_choice, page_cache, routes

RECORD, PHYSICIANS, CRITERIA = "Record", "Against physicians", "Criteria"
BETWEEN, VERSIONS = "Between physicians", "Versions and families"
TITLES = {
    RECORD: record.TITLE,
    PHYSICIANS: "Judges against physicians",
    CRITERIA: "Criteria: judge against physicians",
    BETWEEN: "Agreement between physicians",
    VERSIONS: "Judge versions and model families",
}
SECTIONS = tuple(TITLES)  # the address holds these words, so a section that changes its name breaks links
NO_JUDGE = "No judge has labelled anything yet. Begin with a file of results."
NO_CRITERION = "This judge has labelled no criterion: choose another one above."


def first_choice(judges: list[str], section: str) -> int:
    """The place of the judge that is shown first: the one with most labels among those that physicians have read beside."""
    before = st.session_state.get("judges_judge", judges_choice.left("judges_judge"))
    if before in judges:
        return judges.index(before)
    if section == RECORD:
        return next((n for n, judge in enumerate(judges) if record.is_read(viewer, judge)), 0)
    read = judges_choice.computed(judges_choice.read_beside, viewer)
    return next((n for n, judge in enumerate(judges) if judge in read), 0)


def show(section: str, judges: list[str], row: DeltaGenerator) -> None:
    """The chosen section with its heading and controls; the others are not computed."""
    if section == BETWEEN:
        _headed(section, judges_choice.computed(judges_choice.between, viewer))
        agreement.show(viewer, row)
        return
    if not judges:
        _headed(section, "No judge in this study yet")
        st.html(html.notice(NO_JUDGE))
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
        return
    judge = row.selectbox(
        "Judge",
        judges,
        index=first_choice(judges, section),
        key="judges_judge",
        bind="query-params",
        persist_state="session",  # where one looks at physicians alone it is not drawn
        width=320,
    )
    others = (criteria.ahead,) if section == CRITERIA else ()
    page_cache.ahead(viewer, *(partial(ahead, viewer, judge) for ahead in (*others, versions.ahead)))
    if section == RECORD:
        record.show(viewer, judge, judges, top, row)
        return
    if judge not in judges_choice.computed(judges_choice.names, viewer):
        _headed(section, f"Judge {judge}")
        st.html(html.notice(NO_CRITERION))
        return
    _headed(section, judges_choice.computed(judges_choice.beside, viewer, judge))
    shown = {PHYSICIANS: quality.show, CRITERIA: criteria.show, VERSIONS: versions.show}
    shown[section](viewer, judge, row)


def _headed(section: str, line: str) -> None:
    with top:
        st.html(html.heading(TITLES[section], line))
        if common.blind(viewer):
            st.html(html.quiet(record.LEFT_OUT))


viewer = common.require()
top = st.container()
chosen = page_cache.section("judges", SECTIONS)
show(chosen, common.read("judges"), st.container(horizontal=True, vertical_alignment="top", key="judges_row"))
