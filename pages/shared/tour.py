"""The first screen: who reads, what Overread is, what each role does; and a tour for each role, on Overview."""

from typing import Any

import streamlit as st

from evalcore.study.acting import begin
from evalcore.study.schema import Role, Viewer
from evalcore.team.provider import provider
from pages.shared import common, html, kept_choices, routes

WHAT = (
    "In Overread, physicians check how language models, the judges, grade answers to health questions. "
    "They read blind first; the judge's verdict is shown after they lock."
)
FICTIONAL = "This is the demo study: everything in it is invented."
NEXT = {
    Role.REVIEWER: "reads responses blind, then keeps or revises each label beside the judge's",
    Role.ADJUDICATOR: "settles what readers differ on, without their names",
    Role.RESEARCHER: "compares models and judges, and exports labels and methods",
    Role.LEAD: "imports files, adds people and assigns reading",
}

STEPS = {
    Role.LEAD: (
        ("study", "Study takes your files: conversations with their rubrics, answers, and judges' verdicts."),
        ("study", "Add people in Study, each with roles and the languages that they read."),
        (
            "study",
            "State the analysis, then assign reading: which responses are read, and by whom, is drawn at random.",
        ),
        ("overview", "Overview shows how far the reading is, its pace, and the results so far."),
        ("audit", "Audit lists every act of the study, and shows whether anything was changed afterwards."),
    ),
    Role.REVIEWER: (
        (
            "review",
            "Review gives you one response at a time. Answer each criterion: 1 met, 2 not met, 3 cannot assess.",
        ),
        (
            "review",
            "Every mark is saved at once. Until you press Submit and lock, you see no judge and no other reader.",
        ),
        ("review", "Enter shows where the judge differs. Keep your label or revise it: both stay on record."),
        ("my_reads", "My reads lists all that you have read; you can change your mind there."),
    ),
    Role.ADJUDICATOR: (
        (
            "adjudicate",
            "Adjudicate lists the responses on which readers differ, without their names, the gravest first.",
        ),
        ("adjudicate", "Choose the label, say why the readers differed, and settle. It becomes the reference label."),
    ),
    Role.RESEARCHER: (
        ("models", "Models shows each model's score by the judge, by physicians, and corrected, with 95 % intervals."),
        ("judges", "Judges shows how often each judge agrees with physicians, and on which criteria it does not."),
        ("triage", "Triage shows which answers send patients to too little care, or to too much."),
        ("export", "Export gives labels with a codebook, the methods, and all numbers of a paper as one file."),
    ),
}


def roles() -> str:
    """What each role does, a line each."""
    return html.items(f"{'An' if role.startswith('a') else 'A'} {role} {does}." for role, does in NEXT.items())


def welcome() -> None:
    """Before any page: the profiles as links, or the form for the first person; where people sign in, nobody picks."""
    if provider() is not None:
        common.ask_who()
        return
    people = common.read("people")
    st.html(html.finding(WHAT))
    if common.is_demo():
        st.html(html.notice(FICTIONAL))
    purpose = "Every verdict carries its reader's name. This browser remembers the choice."
    st.html(html.heading("Sign in as", purpose))
    if people:
        words = [" · ".join([", ".join(sorted(person.roles)), *person.specialties]) for person in people]
        links = [common.reader_link(person.person_id) for person in people]
        st.html(html.profiles(zip((person.name for person in people), words, links, strict=True)))
        st.html(roles())
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


def show(viewer: Viewer) -> None:
    """The panel of this person's tour until it is left, which the browser keeps; then the button to begin it again."""
    known, cookie = [role for role in STEPS if role in viewer.roles], f"overread_tour_{viewer.person_id}"
    st.session_state.setdefault("tour_left", kept_choices.kept(cookie))
    kept_choices.keep(cookie, yes=st.session_state["tour_left"])
    if not known:
        return
    if st.session_state["tour_left"]:
        st.button("Take the tour", key="tour_again", icon=":material/tour:", type="tertiary", on_click=_go, args=(0,))
        return
    with st.container(border=True, key="tour"):
        role = known[0]
        if len(known) > 1:
            begins: dict[str, Any] = {"on_change": _go, "args": (0,)}
            role = (
                st.segmented_control("Tour for a", known, default=role, required=True, key="tour_role", **begins)
                or role
            )
        steps = STEPS[role]
        place = st.session_state.get("tour_step", 0) % len(steps)
        (page, words), is_last = steps[place], place + 1 == len(steps)
        st.html(html.quiet(f"Tour, step {place + 1} of {len(steps)}") + html.finding(words))
        with st.container(horizontal=True, vertical_alignment="center"):
            if not is_last:
                st.button("Next", key="tour_next", on_click=_go, args=(place + 1,))
            leave = "Finish" if is_last else "Leave"
            st.button(leave, key="tour_leave", on_click=_go, args=(0,), kwargs={"left": True})
            st.page_link(routes.script(page), label=f"Open {routes.title(page)}", icon=":material/arrow_forward:")


def _go(step: int, *, left: bool = False) -> None:
    st.session_state.update(tour_step=step, tour_left=left)
