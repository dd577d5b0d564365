"""Models: scores by the judge, by physicians and corrected, and who is really better. One section at a time."""

from functools import partial
from typing import Any

import streamlit as st

from evalcore.stats.wording import counted, listed
from evalcore.study.policies import own_act
from pages.models import pairs, scores
from pages.shared import common, html, models_choice, page_cache, routes, theme

SCORES, GROUPS, BETTER, HEAD, MORE = "Scores", "By theme and axis", "Comparison", "Head to head", "More"
TITLE = "Model scores"
TITLES = {  # the address holds these words, so a section that changes its name breaks links
    SCORES: TITLE,
    GROUPS: "Scores by theme and axis",
    BETTER: "Differences between models",
    HEAD: "Two models, conversation by conversation",
    MORE: "Repeats, length, and published scores",
}
SHOWN = {
    SCORES: scores.show,
    GROUPS: scores.by_group,
    BETTER: pairs.better,
    HEAD: pairs.head_to_head,
    MORE: scores.more,
}


viewer = common.require()
top = st.container()
with theme.figures_fetched(wanted=bool(common.read("models"))):
    known = models_choice.evaluations(viewer)
if known.empty or not known["judges"].map(len).any():
    label, line = "Import a file", "No judge in this study yet"
    sentence = "No judge has labelled the responses yet, and a score needs a label on every criterion. Import a file of a judge's verdicts."
    if not common.read("counts")["responses"]:
        line = "No responses in this study yet"
        sentence = "No model has answered anything yet. Begin with a file of results."
    elif common.read("judges") and common.blind(viewer):
        sentence = f"All that is judged here waits for your own {own_act(viewer)}; the numbers are shown once you have submitted it."
        label, line = "Go to Study", "Nothing that can be shown to you yet"
    with top:
        st.html(html.heading(TITLE, line))
        st.html(html.notice(sentence))
        st.page_link(routes.STUDY, label=label, icon=":material/database:")
        st.stop()
bar = st.container(horizontal=True, vertical_alignment="center", key="models_bar")
with bar:
    section = page_cache.section("models", tuple(TITLES))
is_corrected = section != HEAD  # so that it matters what intervals hold for
chosen = models_choice.controls(known, claims=is_corrected)
with bar:
    chosen, weights_words = models_choice.weighted(viewer, chosen, weighs=is_corrected)
with top:
    row = known.loc[known["evaluation"].eq(chosen.evaluation or "")].iloc[0]
    models = "one model" if row["n_models"] == 1 else f"{row['n_models']:,} models"
    of = f"{counted(row['n_responses'], 'response')} of {models} to {counted(row['n_examples'], 'example')}"
    line = f"Data set {row['evaluation']}: {of}, judged by {listed(chosen.judges)}"
    st.html(html.heading(TITLES[section], line))
broken = common.read("broken")
broken = broken[broken["evaluation"].eq(row["evaluation"])]
if len(broken):
    by_model = ", ".join(f"{name} {n:,}" for name, n in broken["model"].value_counts().items())
    st.html(html.quiet(f"{counted(len(broken), 'more response')} marked as broken, in no number here: {by_model}."))
if common.blind(viewer):
    st.html(html.quiet(f"Conversations that wait for your own {own_act(viewer)} are left out of all numbers here."))
if weights_words:
    st.html(html.quiet(weights_words))
if models_choice.about(viewer, chosen)["is_labelled"]:
    shown, asked = chosen, list[partial[Any]]()
    if is_corrected:
        numbers = models_choice.numbers(viewer, chosen)
        means = numbers.means if numbers.scores["enough"].any() else ""
        st.html(html.quiet(f"{models_choice.analysis_words(viewer, numbers)} {numbers.because} {means}"))
        groupings = scores.GROUPINGS if section == GROUPS else scores.GROUPINGS[:1]
        others: tuple[tuple[Any, ...], ...] = (
            *((scores.grouped, numbers.spec, grouping) for grouping in groupings),
            (pairs.judged_pairs, chosen, models_choice.SEED),
            (scores.further, numbers.spec),
            (scores.missing, numbers.spec, viewer),
        )
        asked = [partial(models_choice.computed, make, viewer, *of) for make, *of in others]
        shown = numbers.spec if section in {GROUPS, MORE} else chosen
    SHOWN[section](viewer, shown)
    if asked:  # once the page is drawn
        page_cache.ahead(viewer, *asked)
else:
    st.html(html.notice(models_choice.NO_LABELS))
