"""Models: scores by the judge, by physicians and corrected, and who is really better. One section at a time."""

import pandas as pd
import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.policies import own_act
from pages.models import groups, more, pairs, scores
from pages.shared import common, html, models_choice, page_cache, routes, theme

SCORES, GROUPS, BETTER, HEAD, MORE = "Scores", "By theme and axis", "Who is better", "Head to head", "More"
TITLE = "What each model scores once physicians have checked the judge"
TITLES = {
    SCORES: TITLE,
    GROUPS: "Where each model is strong and where it is weak",
    BETTER: "Which model is really better, and how sure that is",
    HEAD: "On which conversations two models differ",
    MORE: "What lies behind a score: repeats, length, and what others have published",
}
SECTIONS = tuple(TITLES)
"""In the order of the control. The address holds these words, so a section that changes its name breaks links."""
CORRECTED = (SCORES, GROUPS, BETTER, MORE)
"""Those that show corrected scores, so that it matters what intervals hold for."""
SHOWN = {
    SCORES: scores.show,
    GROUPS: groups.show,
    BETTER: pairs.better,
    HEAD: pairs.head_to_head,
    MORE: more.show,
}


def begin(sentence: str, label: str, line: str) -> None:
    """There is nothing to show yet: why, and the way to change it."""
    st.html(html.heading(TITLE, line))
    st.html(html.notice(sentence))
    st.page_link(routes.STUDY, label=label, icon=":material/database:")
    st.stop()


def line(row: pd.Series, judge: str) -> str:
    """What one looks at: the data set and its judges."""
    models = "one model" if row["n_models"] == 1 else f"{row['n_models']:,} models"
    return f"Data set {row['evaluation']}: {counted(row['n_responses'], 'response')} of {models} to {counted(row['n_examples'], 'example')}, judged by {judge}"


viewer = common.require()
top = st.container()
with theme.figures_fetched(wanted=bool(common.read("models"))):
    known = models_choice.evaluations(viewer)
if known.empty or not known["judges"].map(len).any():
    with top:
        if not common.read("counts")["responses"]:
            begin(
                "No model has answered anything yet. Begin with a file of results.",
                "Import a file",
                "No responses in this study yet",
            )
        elif common.read("judges") and common.blind(viewer):
            begin(
                f"All that is judged here waits for your own {own_act(viewer)}; the numbers are shown once you have submitted it.",
                "Go to Study",
                "Nothing that can be shown to you yet",
            )
        else:
            begin(
                "No judge has labelled the responses yet, and a score needs a label on every criterion. Import a file of a judge's verdicts.",
                "Import a file",
                "No judge in this study yet",
            )
bar = st.container(horizontal=True, vertical_alignment="center", key="models_bar")
with bar:
    section = page_cache.section("models", SECTIONS)
chosen = models_choice.controls(known, claims=section in CORRECTED)
with bar:
    chosen, weights_words = models_choice.weighted(viewer, chosen, weighs=section in CORRECTED)
with top:
    row = known.loc[known["evaluation"].eq(chosen.evaluation)].iloc[0]
    st.html(html.heading(TITLES[section], line(row, chosen.judge)))
if common.blind(viewer):
    st.html(html.quiet(f"Conversations that wait for your own {own_act(viewer)} are left out of all numbers here."))
if weights_words:
    st.html(html.quiet(weights_words))
if models_choice.is_labelled(viewer, chosen):
    if section in CORRECTED:
        found = models_choice.numbers(viewer, chosen)
        means = found.means if found.scores["enough"].any() else ""
        st.html(html.quiet(f"{models_choice.analysis_words(viewer, found)} {found.because} {means}"))
        chosen = models_choice.Chosen(found.spec) if section in {GROUPS, MORE} else chosen
    SHOWN[section](viewer, chosen)
else:
    st.html(html.notice(models_choice.NO_LABELS))
