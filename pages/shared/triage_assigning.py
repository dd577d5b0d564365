"""Putting a response of a list before physicians: the button, and what it says."""

import streamlit as st

from evalcore.reading.assigning import READERS_EACH, assign_responses
from evalcore.study.policies import check_can_assign, reason
from evalcore.study.schema import Role, Viewer
from pages.shared import common

ASSIGNED = "Physicians have it to read already. What they read enters the matrices by physicians; it was chosen, so it enters no estimate."


def button(viewer: Viewer, item: tuple[int, int], *, is_assigned: bool, key: str) -> None:
    """Assign the response; disabled with the reason where it is assigned, or the viewer may not.

    Args:
        is_assigned: Physicians have it to read already.
    """
    why = ASSIGNED if is_assigned else reason(check_can_assign, viewer)
    pressed = st.button(
        "Assigned" if is_assigned else "Assign for review",
        icon=":material/check:" if is_assigned else ":material/assignment_ind:",
        disabled=bool(why),
        help=why or None,
        key=key,
    )
    if pressed:
        reviewers = sum(Role.REVIEWER in person.roles for person in common.read("people"))
        with common.shown_errors():
            assign_responses(common.engine(), [item[1]], actor=viewer, n_readers=min(READERS_EACH, max(reviewers, 1)))
            st.rerun()
