"""Triage: do models send patients to the right level of care, and which way do they err. One section at a time."""

import streamlit as st

from evalcore.study.policies import own_act
from evalcore.study.schema import Viewer
from pages import (
    _common,
    _kept,
    _text,
    _theme,
    _triage_apart,
    _triage_flips,
    _triage_groups,
    _triage_harm,
    _triage_matrices,
    _triage_misses,
    _triage_parts,
    _triage_readers,
    _triage_views,
)
from pages._triage_parts import About, Chosen, Here

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
    if _common.blind(viewer) and _common.read("counts")["examples"]:
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
    st.html(_text.heading(TITLE, line))
    st.html(_text.notice(sentence))
    st.page_link("pages/study.py", label="Import a file", icon=":material/database:")


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
            _text.notice(
                "Published matrices have counts and no cases: Matrices and Harm show them. Import cases and predictions for the rest."
            )
        )
        st.page_link("pages/study.py", label="Import a file", icon=":material/database:")
    elif not known.n_samples:
        st.html(
            _text.notice(
                f"The study holds {known.n_cases:,} cases and no model's answers to them. Import a file of predictions next."
            )
        )
        st.page_link("pages/study.py", label="Import predictions", icon=":material/database:")
    else:
        st.html(
            _text.notice(
                f"{known.n_samples:,} answers are here, and nobody has read a level from them yet. The rules read them without a network: press the "
                "button, or run overread acuity-rules."
            )
        )
        _triage_readers.offer(viewer)
    return True


SHOWN = {
    MATRICES: _triage_matrices.show,
    MISSES: _triage_misses.show,
    GROUPS: _triage_groups.show,
    BOUNDARY: _triage_apart.show_boundary,
    AMBIGUOUS: _triage_apart.show_ambiguous,
    FLIPS: _triage_flips.show,
    HARM: _triage_harm.show,
    READERS: _triage_readers.show,
    VIEWS: _triage_views.show,
}
"""The section that is chosen; the others are not computed."""


viewer = _common.require()
top = st.container()
with _theme.figures_fetched(wanted=bool(_common.read("models"))):
    known = _triage_parts.about(viewer)
if not known.n_cases and not known.n_published:
    with top:
        nothing()
    st.stop()
section = _kept.section("triage", SECTIONS)
with st.container(horizontal=True, vertical_alignment="bottom", key="triage_controls"):
    row = st.container(horizontal=True, vertical_alignment="bottom", width="content", key="triage_own")
    with st.container(horizontal=True, vertical_alignment="bottom", width="content", key="triage_shared"):
        chosen = _triage_parts.controls(known, gold=section != READERS and bool(known.n_cases))
with top:
    st.html(_text.heading(TITLES[section], line(known, chosen)))
if _common.blind(viewer):
    st.html(_text.quiet(f"Cases that wait for your own {own_act(viewer)} are left out of all numbers here."))
if not lacking(viewer, section, known):
    SHOWN[section](Here(viewer, chosen, known, _triage_parts.chosen_settings(), row))
_triage_parts.leave()
