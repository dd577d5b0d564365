"""Triage: do models send patients to the right level of care, and which way do they err. One section at a time."""

import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.policies import own_act
from pages.shared import common, html, page_cache, theme, triage_choice
from pages.shared.triage_choice import About, Chosen, Here
from pages.triage import cases, harm, matrices, readers, views

MATRICES, HARM, READERS = "Matrices", "Harm", "Who read the level"
TITLE = "Whether models send patients to the right level of care, and which way they err"
SHOWN = {
    MATRICES: (TITLE, matrices.show),
    "Dangerous misses": ("Where a model asked for less care than the patient needed", cases.show_misses),
    "Groups": ("On which cases models send patients too low or too high", cases.show_groups),
    "Boundary": ("What models answer where two levels are both right", cases.show_boundary),
    "Ambiguous": ("How sure models are where physicians do not agree", cases.show_ambiguous),
    "Flips": ("Where the way of asking changes the answer", cases.show_flips),
    HARM: ("What the errors cost when one too low weighs more", harm.show),
    READERS: ("Who says which level an answer gives, and how far that holds", readers.show),
    "Which view": ("Which view answers which question", views.show),
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
    return f"{n_cases.capitalize()}, {known.n_samples:,} answers of {models}; levels of {chosen.judge_words}{published}"


viewer = common.require()
top = st.container()
with theme.figures_fetched(wanted=bool(common.read("models"))):
    known = triage_choice.about(viewer)
if not known.n_cases and not known.n_published:
    title = "No cases in this study yet"
    sentence = (
        "Begin with a file of cases (their levels of care, or a panel's votes), then a file of predictions. A published confusion matrix can be "
        "imported alone."
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
    unread = f"{known.n_samples:,} answers are here, and nobody has read a level from them yet."
    how = "The rules read them without a network: press the button, or run overread acuity-rules."
    st.html(html.notice(f"{unread} {how}"))
    readers.offer(viewer)
triage_choice.leave()
