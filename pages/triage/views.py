"""Guide to these views: a section of the Triage page. Each line opens its view with the study's own figures."""

from contextlib import suppress

import streamlit as st
from streamlit.errors import StreamlitAPIException

from evalcore.calibration import SEED
from evalcore.calibration.routing import WANTED, chosen, routing_finding
from evalcore.study.schema import Format
from evalcore.triage.bases import WHOSE, Basis, judged_differences, safety_sentences
from evalcore.triage.cases import flip_counts
from evalcore.triage.rates import ambiguous, confusion, rates
from evalcore.triage.words import by_model, directions, emergencies, sure_words, widest_flip
from pages.calibration import confidence
from pages.shared import html, routes, triage_html
from pages.shared.triage_choice import Here, Read

SECTION = "triage_show"
BESIDE = ("Matrices", "qa beside conversation")
SURE = ("Ambiguous", "sure where physicians are not")
QUESTIONS = (
    (
        "Will patients act on its advice about urgency?",
        "A high-risk triage product needs both formats and the uncertainty view: a model can be safe when it is asked "
        "for a level and send emergencies home in conversation.",
        (("Flips", "cases whose answer changes"), BESIDE, SURE),
    ),
    (
        "Will it only inform, with little at stake?",
        "A low-risk information bot can be judged by the qa view, with the direction of its errors.",
        (BESIDE,),
    ),
    (
        "Which of these models?",
        "Choosing a model needs under-triage and whether its confidence is borne out, never the exact share alone.",
        (("Matrices", "all models' rates"), ("Models' confidence", "models' confidence")),
    ),
    (
        "What about cases that physicians do not agree on?",
        "Ambiguous cases have no right answer: the routing view says which would go to a human, and what that costs.",
        (SURE, ("Routing", "what would go to a human")),
    ),
)
"""Which views each needs and why, this page's first: the section, and what stands there."""
ELSEWHERE = ("Models' confidence", "Routing")
"""Sections of the Calibration page."""
FOOT = (
    "The questions are those of the decision matrix of an article that sketches an evaluator of triage; the figures "
    "are this study's, of the judges and the gold chosen above. Where a threshold is chosen, it is chosen on one "
    f"half of the cases and shown on the other (seed {SEED})."
)


NOTHING = "There is no answer with a level here that would say something of this."


def figures(read: Read, source: str) -> tuple[list[str], ...]:
    """The study's figures by question, as the views that each leads to say them."""
    of = by_model(rates(confusion(read.found)).astype({"model": str, "format": str}))
    sure = sure_words(ambiguous(read.found))
    acting = [*([emergencies(of)] if of else []), *widest_flip(flip_counts(read.found))]
    acting += [f"Of ambiguous cases: {sure}"] if sure else []
    choosing = safety_sentences(judged_differences(read.found), WHOSE[Basis.JUDGE])
    return acting, directions(of, Format.QA), choosing, [routing_finding(chosen(confidence.own(read, source)), WANTED)]


def show(here: Here) -> None:
    """The questions, their figures, and the way to each view."""
    said = here.computed(figures, confidence.source(here, asked=False))
    for place, ((question, answer, views), lines) in enumerate(zip(QUESTIONS, said, strict=True)):
        st.html(triage_html.view(question, answer, lines or [NOTHING]))
        with st.container(horizontal=True, vertical_alignment="center", key=f"triage_view_{place}"):
            for section, what in views:
                if section not in ELSEWHERE:
                    key, icon = f"triage_view_{place}_{section}", ":material/arrow_forward:"
                    go = st.session_state.__setitem__
                    st.button(f"{section}: {what}", key=key, icon=icon, on_click=go, args=(SECTION, section))
                    continue
                label, query = f"Calibration: {what}", {"calibration_show": section}
                with suppress(StreamlitAPIException):  # a study without that page
                    st.page_link(routes.CALIBRATION, label=label, icon=":material/tune:", query_params=query)
    st.html(html.foot(FOOT))
