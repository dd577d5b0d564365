"""Freeze the study, or open it again as an amendment; every version that was frozen, for all to see."""

import streamlit as st

from evalcore.study import freezing
from evalcore.study.policies import check_can_freeze, reason
from evalcore.study.schema import Viewer
from pages.shared import common, html

SAYS = (
    "A frozen study can be read, shown and exported, and nothing in it can be changed. Every export, the methods and "
    "the bundle carry the last hash of its audit trail and the stated analysis. Still recorded: who is let in, who "
    "came, and who saw or exported what."
)


def show(viewer: Viewer) -> None:
    """The versions, and what a lead may do."""
    st.subheader("Freeze the study", anchor=False)
    found = common.ask(freezing.versions)
    if found:
        st.html(html.items(freezing.sentences(found)))
    st.html(html.quiet(SAYS))
    why_not = reason(check_can_freeze, viewer)
    if why_not:
        st.html(html.notice(why_not))
        return
    if not found or found[-1].reopened_at is not None:
        sure = st.checkbox("From now on nobody can change anything in this study", key="freeze_sure")
        if st.button("Freeze", key="freeze", icon=":material/ac_unit:", disabled=not sure):
            with common.shown_errors():
                freezing.freeze(common.engine(), actor=viewer)
                st.rerun()
        return
    with (
        st.form("amend study", border=False, enter_to_submit=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        name = st.text_input("Name of the amendment", key="amend_name", max_chars=freezing.MAX_NAME)
        because = st.text_input("Reason", key="amend_reason", max_chars=freezing.MAX_REASON)
        pressed = st.form_submit_button("Open again", key="amend_go")
    if pressed:
        with common.shown_errors():
            freezing.amend(common.engine(), name or "", because or "", actor=viewer)
            st.rerun()
