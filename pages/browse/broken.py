"""Responses of a conversation that are no answers: marked by a lead or researcher, and told to everybody."""

import streamlit as st

from evalcore.study.corrections import mending
from evalcore.study.policies import allows, check_can_mend
from evalcore.study.schema import Broken, Viewer
from pages.shared import common, html

WORDS = dict(zip(Broken, ("empty", "cut off", "in the wrong language", "no answer for another reason"), strict=True))
HELP = "It leaves every number and is counted as broken. What was said of it is kept."


def mark(viewer: Viewer, response_id: int) -> None:
    """A way to mark the response, for who may."""
    if not allows(check_can_mend, viewer):
        return
    icon, key = ":material/heart_broken:", f"broken_{response_id}"
    with st.popover("Mark as broken", icon=icon, key=key, help=HELP, type="tertiary"):
        why = st.radio("This response is", list(Broken), format_func=WORDS.__getitem__, key=f"broken_why_{response_id}")
        if why is not None and st.button("Mark", key=f"mark_broken_{response_id}"):
            with common.shown_errors():
                mending.mark_broken(common.engine(), response_id, why, actor=viewer)
                st.rerun()


def told(viewer: Viewer, example_id: int) -> None:
    """Those of a conversation that are marked, and a way back."""
    marked = common.read("broken")
    for row in marked[marked["example_id"].eq(example_id)].itertuples():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            which = f"{row.model}, sample {row.sample_index}"
            st.html(
                html.quiet(
                    f"The response of {which} is marked as broken ({WORDS[Broken(row.reason)]}): it is in no number."
                ),
                width="content",
            )
            if allows(check_can_mend, viewer) and st.button(
                "Count it again", key=f"unmark_{row.response_id}", type="tertiary"
            ):
                with common.shown_errors():
                    mending.mark_broken(common.engine(), int(row.response_id), None, actor=viewer)
                    st.rerun()
