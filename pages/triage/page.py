"""Triage: do models send patients to the right level of care, and which way do they err. One section at a time."""

import streamlit as st

from evalcore.study.policies import own_act
from evalcore.study.schema import Viewer
from pages.shared import common, html, page_cache, routes, theme, triage_choice
from pages.shared.triage_choice import About, Chosen, Here
from pages.triage import apart, flips, groups, harm, matrices, misses, readers, views

MATRICES, MISSES, GROUPS, BOUNDARY = "Matrices", "Dangerous misses", "Groups", "Boundary"
AMBIGUOUS, FLIPS, HARM, READERS, VIEWS = "Ambiguous", "Flips", "Harm", "Who read the level", "Which view"
TITLE = "Whether models send patients to the right level of care, and which way they err"
TITLES = {
    MATRICES: TITLE,
    MISSES: "Where a model asked for less care than the patient needed",
    GROUPS: "On which cases models send patients too low or too high",
    BOUNDARY: "What models answer where two levels are both right",
    AMBIGUOUS: "How sure models are where physicians do not agree",
    FLIPS: "Where the way of asking changes the answer",
    HARM: "What the errors cost when one too low weighs more",
    READERS: "Who says which level an answer gives, and how far that holds",
    VIEWS: "Which view answers which question",
}
SECTIONS = tuple(TITLES)
"""In the order of the control. The address holds these words, so a section that changes its name breaks links."""
PUBLISHED_TOO = {MATRICES, HARM}
"""Sections that show published matrices, which have no cases."""


def nothing() -> None:
    """There is nothing to show yet: why, and the way to change it."""
    if common.blind(viewer) and common.read("counts")["examples"]:
        line, sentence = (
            "Nothing that can be shown to you yet",
            f"All cases here wait for your own {own_act(viewer)}; the numbers are shown once you have submitted it.",
        )
    else:
        line, sentence = (
            "No cases in this study yet",
            "Begin with a file of cases (their levels of care, or a panel's votes), then a file of predictions. A published confusion matrix can be "
            "imported alone.",
        )
    st.html(html.heading(TITLE, line))
    st.html(html.notice(sentence))
    st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")


def line(known: About, chosen: Chosen) -> str:
    """What one looks at."""
    cases = "one case" if known.n_cases == 1 else f"{known.n_cases:,} cases"
    models = "one model" if len(known.models) == 1 else f"{len(known.models):,} models"
    published = (
        f", {known.n_published:,} published {'matrix' if known.n_published == 1 else 'matrices'} without cases"
        if known.n_published
        else ""
    )
    if not known.n_samples:
        return f"{cases.capitalize()}, no answers yet{published}"
    return f"{cases.capitalize()}, {known.n_samples:,} answers of {models}; levels of {chosen.judge_words}{published}"


def lacking(viewer: Viewer, section: str, known: About) -> bool:
    """Whether the section has nothing to count yet; then why, and what to do, is on the page."""
    if known.judges or (known.n_published and section in PUBLISHED_TOO):
        return False
    if not known.n_cases:
        st.html(
            html.notice(
                "Published matrices have counts and no cases: Matrices and Harm show them. Import cases and predictions for the rest."
            )
        )
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
    elif not known.n_samples:
        st.html(
            html.notice(
                f"The study holds {known.n_cases:,} cases and no model's answers to them. Import a file of predictions next."
            )
        )
        st.page_link(routes.STUDY, label="Import predictions", icon=":material/database:")
    else:
        st.html(
            html.notice(
                f"{known.n_samples:,} answers are here, and nobody has read a level from them yet. The rules read them without a network: press the "
                "button, or run overread acuity-rules."
            )
        )
        readers.offer(viewer)
    return True


SHOWN = {
    MATRICES: matrices.show,
    MISSES: misses.show,
    GROUPS: groups.show,
    BOUNDARY: apart.show_boundary,
    AMBIGUOUS: apart.show_ambiguous,
    FLIPS: flips.show,
    HARM: harm.show,
    READERS: readers.show,
    VIEWS: views.show,
}
"""The section that is chosen; the others are not computed."""


viewer = common.require()
top = st.container()
with theme.figures_fetched(wanted=bool(common.read("models"))):
    known = triage_choice.about(viewer)
if not known.n_cases and not known.n_published:
    with top:
        nothing()
    st.stop()
section = page_cache.section("triage", SECTIONS)
with st.container(horizontal=True, vertical_alignment="bottom", key="triage_controls"):
    row = st.container(horizontal=True, vertical_alignment="bottom", width="content", key="triage_own")
    with st.container(horizontal=True, vertical_alignment="bottom", width="content", key="triage_shared"):
        chosen = triage_choice.controls(known, gold=section != READERS and bool(known.n_cases))
with top:
    st.html(html.heading(TITLES[section], line(known, chosen)))
if common.blind(viewer):
    st.html(html.quiet(f"Cases that wait for your own {own_act(viewer)} are left out of all numbers here."))
if not lacking(viewer, section, known):
    SHOWN[section](Here(viewer, chosen, known, triage_choice.chosen_settings(), row))
triage_choice.leave()
