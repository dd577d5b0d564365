"""Triage: do models send patients to the right level of care, and which way do they err. One section at a time."""

import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.policies import own_act
from pages.shared import common, html, page_cache, theme, triage_choice
from pages.shared.triage_choice import About, Chosen, Here
from pages.triage import cases, harm, matrices, readers, views

MATRICES, HARM, READERS = "Matrices", "Harm", "Level readers"
TITLE = "Levels of care: answers against the gold"
SHOWN = {
    MATRICES: (TITLE, matrices.show),
    "Dangerous misses": ("Dangerous misses: less care than the patient needed", cases.show_misses),
    "Groups": ("Under- and over-triage by group of cases", cases.show_groups),
    "Boundary": ("Boundary cases: either of two levels is right", cases.show_boundary),
    "Ambiguous": ("Ambiguous cases: physicians do not agree", cases.show_ambiguous),
    "Flips": ("Flips: the format changes the answer", cases.show_flips),
    HARM: ("Expected harm of the errors", harm.show),
    READERS: ("Level readers: who reads the level from an answer", readers.show),
    "Guide": ("Guide to these views", views.show),
}
"""In the order of the control. The address holds these words, so a section that changes its name breaks links."""
PUBLISHED_TOO = {MATRICES, HARM}


def line(known: About, chosen: Chosen) -> str:
    """What one looks at."""
    n_cases = "one case" if known.n_cases == 1 else f"{known.n_cases:,} cases"
    models = "one model" if len(known.models) == 1 else f"{len(known.models):,} models"
    published = counted(known.n_published, "published matrix", "published matrices")
    published = f", {published} without cases" if known.n_published else ""
    if not known.n_samples:
        return f"{n_cases.capitalize()}, no answers yet{published}"
    return f"{n_cases.capitalize()}, {counted(known.n_samples, 'answer')} of {models}; levels of {chosen.judge_words}{published}"


viewer = common.require()
top = st.container()
with theme.figures_fetched(wanted=bool(common.read("models"))):
    known = triage_choice.about(viewer)
if not known.n_cases and not known.n_published:
    title = "No cases in this study yet"
    sentence = (
        "Begin with a file of cases (their levels of care, or a panel's votes), then a file of predictions. A "
        "published confusion matrix can be imported alone."
    )
    if common.blind(viewer) and common.read("counts")["examples"]:
        title = "Nothing that can be shown to you yet"
        sentence = (
            f"All cases here wait for your own {own_act(viewer)}; the numbers are shown once you have submitted it."
        )
    with top:
        st.html(html.heading(TITLE, title))
        triage_choice.nothing(sentence, "Import a file")
    st.stop()
section = page_cache.section("triage", tuple(SHOWN))
title, show = SHOWN[section]
with st.container(horizontal=True, vertical_alignment="bottom", key="triage_controls"):
    row = st.container(horizontal=True, vertical_alignment="bottom", width="content", key="triage_own")
    with st.container(horizontal=True, vertical_alignment="bottom", width="content", key="triage_shared"):
        chosen = triage_choice.controls(known, gold=section != READERS and bool(known.n_cases))
with top:
    st.html(html.heading(title, line(known, chosen)))
if common.blind(viewer):
    st.html(html.quiet(f"Cases that wait for your own {own_act(viewer)} are left out of all numbers here."))
if known.judges or (known.n_published and section in PUBLISHED_TOO):
    show(Here(viewer, chosen, known, triage_choice.chosen_settings(), row))
elif not known.n_cases:
    sentence = "Published matrices have counts and no cases: Matrices and Harm show them. Import cases and predictions for the rest."
    triage_choice.nothing(sentence, "Import a file")
elif not known.n_samples:
    triage_choice.no_answers(known)
else:
    unread = f"{counted(known.n_samples, 'answer')} here, and nobody has read a level from them yet."
    how = "The rules read them without a network: press the button, or run overread acuity-rules."
    st.html(html.notice(f"{unread} {how}"))
    readers.offer(viewer)
triage_choice.leave()
