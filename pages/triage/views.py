"""Which view answers which question: a section of the Triage page. Each line opens its view with the study's own figures."""

import pandas as pd
import streamlit as st
from streamlit.errors import StreamlitAPIException

from evalcore.calibration.routing import WANTED
from evalcore.calibration.sections import SEED, routing_chosen
from evalcore.triage.rates import ambiguous, confusion, rates
from evalcore.triage.words import DecisionLine, View, decision_lines
from pages.shared import calibration_choice, html, routes, triage_choice, triage_html
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
CALIBRATION, CALIBRATION_SECTION = routes.CALIBRATION, "calibration_show"
FOOT = (
    "The questions are those of the decision matrix of an article that sketches an evaluator of triage; the figures are this study's, of the judges "
    "and the gold chosen above. "
    f"Where a threshold is chosen, it is chosen on one half of the cases and shown on the other (seed {SEED})."
)


def lines(read: Read, source: str) -> list[DecisionLine]:
    """The questions with the study's figures, those of confidence as on the Calibration page."""
    own = calibration_choice.own(read, source)
    return decision_lines(
        rates(confusion(read.found)),
        ambiguous=_words(ambiguous(read.found)),
        routing=_words(routing_chosen(own, WANTED)),
    )


def _words(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({name: str for name in ("model", "format") if name in table})


def show(here: Here) -> None:
    """The questions, their figures, and the way to each view."""
    viewer, chosen = here.viewer, here.chosen
    source = calibration_choice.usual_source(viewer, chosen)
    for place, line in enumerate(triage_choice.computed(lines, viewer, chosen, source)):
        st.html(triage_html.view(line.question, line.answer, line.figures))
        with st.container(horizontal=True, vertical_alignment="center", key=f"triage_view_{place}"):
            _ways(line, place)
    st.html(html.foot(FOOT))


def _ways(line: DecisionLine, place: int) -> None:
    sections = dict.fromkeys(OPENS[view] for view in line.views if view in OPENS)
    for section, what in sections:
        st.button(
            f"{section}: {what}",
            key=f"triage_view_{place}_{section}",
            icon=":material/arrow_forward:",
            on_click=_go,
            args=(section,),
        )
    for view in line.views:
        if view in ELSEWHERE:
            section, what = ELSEWHERE[view]
            try:
                st.page_link(
                    CALIBRATION,
                    label=f"Calibration: {what}",
                    icon=":material/tune:",
                    query_params={CALIBRATION_SECTION: section},
                )
            except StreamlitAPIException:  # a study without that page
                continue


def _go(section: str) -> None:
    st.session_state[SECTION] = section
