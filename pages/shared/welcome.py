"""Who is reading: the viewer picks a profile, before any page."""

import streamlit as st

from evalcore.study.acting import begin
from pages.shared import common, html


def show() -> None:
    """The profiles as links; in a study without people, the first one is made here."""
    people = common.read("people")
    st.html(
        html.heading(
            "Who is reading?", "Every verdict carries the name of its reader. The choice is remembered in this browser."
        )
    )
    if people:
        described = (
            (
                person.name,
                " · ".join([", ".join(sorted(person.roles)), *person.specialties]),
                common.reader_link(person.person_id),
            )
            for person in people
        )
        st.html(html.profiles(described))
        st.html(html.foot("A lead adds people on the Study page; overread people --add does the same."))
        return
    with st.form("first person", width=420):
        name = st.text_input("Your name", key="first_name")
        st.html(
            html.foot(
                "Nobody is in this study yet. The first person can do everything; others are added on the Study page."
            )
        )
        if st.form_submit_button("Begin", type="primary"):
            with common.shown_errors():
                begin(common.engine(), name)
                st.rerun()
