"""Models: scores by the judge, by physicians and corrected, and who is really better. One section at a time."""

import pandas as pd
import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.policies import own_act
from pages import (
    _common,
    _kept,
    _models_groups,
    _models_more,
    _models_pairs,
    _models_parts,
    _models_scores,
    _text,
    _theme,
)

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
    SCORES: _models_scores.show,
    GROUPS: _models_groups.show,
    BETTER: _models_pairs.better,
    HEAD: _models_pairs.head_to_head,
    MORE: _models_more.show,
}


def begin(sentence: str, label: str, line: str) -> None:
    """There is nothing to show yet: why, and the way to change it."""
    st.html(_text.heading(TITLE, line))
    st.html(_text.notice(sentence))
    st.page_link("pages/study.py", label=label, icon=":material/database:")
    st.stop()


def line(row: pd.Series, judge: str) -> str:
    """What one looks at: the data set and its judges."""
    models = "one model" if row["n_models"] == 1 else f"{row['n_models']:,} models"
    return f"Data set {row['evaluation']}: {counted(row['n_responses'], 'response')} of {models} to {counted(row['n_examples'], 'example')}, judged by {judge}"


viewer = _common.require()
top = st.container()
with _theme.figures_fetched(wanted=bool(_common.read("models"))):
    known = _models_parts.evaluations(viewer)
if known.empty or not known["judges"].map(len).any():
    with top:
        if not _common.read("counts")["responses"]:
            begin(
                "No model has answered anything yet. Begin with a file of results.",
                "Import a file",
                "No responses in this study yet",
            )
        elif _common.read("judges") and _common.blind(viewer):
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
    section = _kept.section("models", SECTIONS)
chosen = _models_parts.controls(known, claims=section in CORRECTED)
with bar:
    chosen, weights_words = _models_parts.weighted(viewer, chosen, weighs=section in CORRECTED)
with top:
    row = known.loc[known["evaluation"].eq(chosen.evaluation)].iloc[0]
    st.html(_text.heading(TITLES[section], line(row, chosen.judge)))
if _common.blind(viewer):
    st.html(_text.quiet(f"Conversations that wait for your own {own_act(viewer)} are left out of all numbers here."))
if weights_words:
    st.html(_text.quiet(weights_words))
if _models_parts.is_labelled(viewer, chosen):
    if section in CORRECTED:
        found = _models_parts.numbers(viewer, chosen)
        means = found.means if found.scores["enough"].any() else ""
        st.html(_text.quiet(f"{_models_parts.analysis_words(viewer, found)} {found.because} {means}"))
        chosen = _models_parts.Chosen(found.spec) if section in {GROUPS, MORE} else chosen
    SHOWN[section](viewer, chosen)
else:
    st.html(_text.notice(_models_parts.NO_LABELS))
