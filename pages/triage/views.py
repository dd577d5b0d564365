"""Which view answers which question: a section of the Triage page. Each line opens its view with the study's own figures."""

from contextlib import suppress

import streamlit as st
from streamlit.errors import StreamlitAPIException

from evalcore.calibration import SEED
from evalcore.calibration.routing import WANTED, chosen
from evalcore.triage.rates import ambiguous, confusion, rates
from evalcore.triage.words import DecisionLine, View, decision_lines
from pages.calibration import confidence
from pages.shared import html, routes, triage_html
from pages.shared.triage_choice import Here, Read

SECTION = "triage_show"
OPENS = {
    View.QA: ("Matrices", "qa beside conversation"),
    View.CONVERSATION: ("Matrices", "qa beside conversation"),
    View.RATES: ("Matrices", "all models' rates"),
    View.FLIPS: ("Flips", "cases whose answer changes"),
    View.UNCERTAINTY: ("Ambiguous", "sure where physicians are not"),
}
"""Section of this page and what stands there, by view."""
ELSEWHERE = {
    View.CALIBRATION: ("Models' confidence", "models' confidence"),
    View.ROUTING: ("Routing", "what would go to a human"),
}
"""Section of the Calibration page and what stands there, by view."""
FOOT = (
    "The questions are those of the decision matrix of an article that sketches an evaluator of triage; the figures are this study's, of the judges "
    "and the gold chosen above. "
    f"Where a threshold is chosen, it is chosen on one half of the cases and shown on the other (seed {SEED})."
)


def lines(read: Read, source: str) -> list[DecisionLine]:
    """The questions with the study's figures, those of confidence as on the Calibration page."""
    words = {"model": str, "format": str}
    return decision_lines(
        rates(confusion(read.found)),
        ambiguous=ambiguous(read.found).astype(words),
        routing=chosen(confidence.own(read, source), WANTED).astype(words),
    )


def show(here: Here) -> None:
    """The questions, their figures, and the way to each view."""
    for place, line in enumerate(here.computed(lines, confidence.source(here, asked=False))):
        st.html(triage_html.view(line.question, line.answer, line.figures))
        with st.container(horizontal=True, vertical_alignment="center", key=f"triage_view_{place}"):
            for section, what in dict.fromkeys(OPENS[view] for view in line.views if view in OPENS):
                st.button(
                    f"{section}: {what}",
                    key=f"triage_view_{place}_{section}",
                    icon=":material/arrow_forward:",
                    on_click=st.session_state.__setitem__,
                    args=(SECTION, section),
                )
            for section, what in (ELSEWHERE[view] for view in line.views if view in ELSEWHERE):
                with suppress(StreamlitAPIException):  # a study without that page
                    st.page_link(
                        routes.CALIBRATION,
                        label=f"Calibration: {what}",
                        icon=":material/tune:",
                        query_params={"calibration_show": section},
                    )
    st.html(html.foot(FOOT))
