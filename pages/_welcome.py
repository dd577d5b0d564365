"""Who is reading: the viewer picks a profile, before any page."""

import streamlit as st

from evalcore.study.acting import begin
from pages import _common, _text


def show() -> None:
    """The profiles as links; in a study without people, the first one is made here."""
    people = _common.read("people")
    st.html(
        _text.heading(
            "Who is reading?", "Every verdict carries the name of its reader. The choice is remembered in this browser."
        )
    )
    if people:
        described = (
            (
                person.name,
                " · ".join([", ".join(sorted(person.roles)), *person.specialties]),
                _common.reader_link(person.person_id),
            )
            for person in people
        )
        st.html(_text.profiles(described))
        st.html(_text.foot("A lead adds people on the Study page; overread people --add does the same."))
        return
    with st.form("first person", width=420):
        name = st.text_input("Your name", key="first_name")
        st.html(
            _text.foot(
                "Nobody is in this study yet. The first person can do everything; others are added on the Study page."
            )
        )
        if st.form_submit_button("Begin", type="primary"):
            with _common.shown_errors():
                begin(_common.engine(), name)
                st.rerun()
