"""What the study says so far of judges and of models, small: each has a page of its own."""

import pandas as pd
import streamlit as st

from evalcore.figures.colours import colour_of
from evalcore.judges.figures import beside_physicians
from evalcore.judges.quality import same_labels
from evalcore.judges.record import ALL
from evalcore.rubric import finding
from evalcore.rubric.figures import corrected_forest
from evalcore.study.schema import Viewer
from pages.judges import record
from pages.shared import common, glossary, html, judges_choice, models_choice, routes, theme

HELD = (
    "Judges: each blind first read beside the judge's label. Physicians: each pair of blind first reads of one criterion. "
    "Both intervals are 95 %, count a conversation as one cluster, and hold for these physicians."
)


def judges(viewer: Viewer) -> None:
    """Each judge beside physicians, and physicians beside one another."""
    found = [record.measured(viewer, judge)[0] for judge in common.read("judges")]
    read = [table.loc[table["grouping"].eq(ALL) & table["n"].gt(0)] for table in found]
    records = pd.concat(read, ignore_index=True) if read else pd.DataFrame()
    if records.empty:
        return
    helps = glossary.helps("judge", "blind first read", "agreement")
    st.subheader("Judges beside physicians", anchor=False, help=helps)
    figure = beside_physicians(records, judges_choice.computed(same_labels, viewer))
    alt = "How often each judge, and another physician, agrees with a physician's blind first read, with 95 % intervals"
    theme.figure(figure, key="overview_judges", alt=alt)
    st.html(html.quiet(HELD))


def models(viewer: Viewer) -> None:
    """Each model's corrected score, by the analysis that the study states, else by the usual choices."""
    chosen = models_choice.usual(viewer)
    if chosen is None or not (numbers := models_choice.numbers(viewer, chosen)).scores["n_items"].any():
        return
    st.subheader("Corrected scores of the models", anchor=False, help=glossary.helps("corrected score", "claim, reach"))
    st.html(html.finding(numbers.finding))
    figure = corrected_forest(finding.best_first(numbers.scores), colour_of(common.read("models")))
    theme.figure(figure, key="overview_models", alt="Corrected score of each model with its 95 % interval")
    st.html(html.quiet(f"Judge {', '.join(chosen.judges)}, data set {chosen.evaluation}, {numbers.where}."))
    st.page_link(routes.MODELS, label="All scores and comparisons", icon=":material/leaderboard:")
