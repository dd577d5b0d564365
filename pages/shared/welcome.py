"""Who is reading: the viewer picks a profile, before any page."""

import streamlit as st

from evalcore.study.acting import begin
from evalcore.team.provider import provider
from pages.shared import common, html, tour


def show() -> None:
    """The profiles as links; in a study without people, the first one is made here. Where people sign in, nobody picks."""
    if provider() is not None:
        common.ask_who()
        return
    people = common.read("people")
    st.html(html.finding(tour.WHAT))
    if common.is_demo():
        st.html(html.notice(tour.FICTIONAL))
    purpose = "Every verdict carries its reader's name. This browser remembers the choice."
    st.html(html.heading("Sign in as", purpose))
    if people:
        words = [" · ".join([", ".join(sorted(person.roles)), *person.specialties]) for person in people]
        links = [common.reader_link(person.person_id) for person in people]
        st.html(html.profiles(zip((person.name for person in people), words, links, strict=True)))
        st.html(tour.roles())
        st.html(html.foot("Not listed? Ask a lead to add you."))
        return
    with st.form("first person", width=420):
        name = st.text_input("Your name", key="first_name")
        first = "Nobody is in this study yet. The first person can do everything; others are added on the Study page."
        st.html(html.foot(first))
        if st.form_submit_button("Begin", type="primary"):
            with common.shown_errors():
                begin(common.engine(), name)
                st.rerun()
