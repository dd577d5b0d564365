"""Calibration: is stated confidence borne out, and are models sure where physicians are not. One section at a time."""

import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.policies import own_act
from evalcore.study.schema import Format
from evalcore.triage.data import Kind
from pages.calibration import confidence, judges, models
from pages.shared import common, html, page_cache, routes, theme, triage_choice
from pages.shared.triage_choice import About, Chosen, Here

JUDGES, MODELS, AMBIGUOUS, ROUTING = "Judges' confidence", "Models' confidence", "Ambiguous cases", "Routing"
TITLE = "Confidence of judges against physicians"
TITLES = {
    JUDGES: TITLE,
    MODELS: "Confidence of models against the gold",
    AMBIGUOUS: "Spread of models where physicians do not agree",
    ROUTING: "Routing to a human by the model's confidence",
}
SECTIONS = tuple(TITLES)
"""In the order of the control. The address holds these words, so a section that changes its name breaks links."""
SHOWN = {JUDGES: judges.show, MODELS: models.show, AMBIGUOUS: models.show_ambiguous, ROUTING: models.show_routing}


def line(section: str, known: About, chosen: Chosen) -> str:
    """What one looks at."""
    if section == JUDGES:
        return "What judges say of their own labels, beside physicians' blind reads of the same items"
    if not known.n_samples:
        return f"{counted(known.n_cases, 'case')}, no answers yet" if known.n_cases else "No cases of triage yet"
    kind = Kind.AMBIGUOUS if section == AMBIGUOUS else Kind.CLEAR
    who = "one model" if len(known.models) == 1 else f"{len(known.models):,} models"
    return f"{counted(known.n_kinds[kind], f'{kind} case')}, answers of {who}; levels of {chosen.judge_words}"


viewer = common.require()
top = st.container()
with theme.figures_fetched(wanted=bool(common.read("models"))):
    known = triage_choice.about(viewer)
if not known.n_cases and not common.read("judges") and not common.blind(viewer):
    with top:
        st.html(html.heading(TITLE, "No judge and no cases in this study yet"))
        triage_choice.nothing(
            "Begin with a judge's verdicts that come with a confidence, or with cases of triage and what models answered to them.",
            "Import a file",
        )
    st.stop()
section = page_cache.section("calibration", SECTIONS)
chosen = Chosen(())
with st.container(horizontal=True, vertical_alignment="bottom", key="calibration_controls"):
    row = st.container(horizontal=True, vertical_alignment="bottom", width="content", key="calibration_own_row")
    if section != JUDGES and any(known.judges.get(word.value) for word in Format):
        with st.container(horizontal=True, vertical_alignment="bottom", width="content", key="calibration_shared"):
            chosen = triage_choice.controls(known, gold=True)
with top:
    st.html(html.heading(TITLES[section], line(section, known, chosen)))
if common.blind(viewer):
    st.html(html.quiet(f"What waits for your own {own_act(viewer)} is left out of all numbers here."))
if section == JUDGES or known.judges:
    SHOWN[section](Here(viewer, chosen, known, triage_choice.chosen_settings(), row))
elif not triage_choice.waits(viewer):
    if not known.n_cases:
        sentence = "This study has no cases of triage. Begin with a file of cases, then a file of predictions."
        triage_choice.nothing(sentence, "Import a file")
    elif not known.n_samples:
        triage_choice.no_answers(known)
    else:
        sentence = f"{counted(known.n_samples, 'answer')} here, and nobody has read a level from them yet. The Triage page has a button for it."
        triage_choice.nothing(sentence, "Read the levels on Triage", routes.TRIAGE, "emergency")
confidence.leave()
