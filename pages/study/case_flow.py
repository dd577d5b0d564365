"""What became of every case of triage: the flow from its source to its level, and what was made of each label. A tab of the Study page."""

import pandas as pd
import streamlit as st

from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.policies import own_act
from evalcore.study.schema import Viewer
from evalcore.triage import case_flow as flows
from evalcore.triage import setting_queries
from evalcore.triage.data import described
from evalcore.triage.figures import case_flow
from evalcore.triage.settings import rule_words
from pages.shared import common, html, tables, theme
from pages.study import triage

ALT = "The flow of cases from their sources, by what they are used for, to their level of care; the table below has the same numbers"
COUNTS = {
    "n_direct": "By its label",
    "n_consensus": "By a panel",
    "n_ambiguous": "Ambiguous",
    "n_excluded": "Left out",
}


def show(viewer: Viewer, hidden: frozenset[int]) -> None:
    """The flow of the study's cases, the table of labels, and what label maps and settings make of them."""
    found = common.triage_data(viewer)
    with reading(common.engine()) as session:
        rule = setting_queries.load(session).rule
    if found.cases.empty:
        st.html(
            html.notice(
                "No case of triage can be shown yet. Import a file of cases; what its labels stand for can be said below first."
            )
        )
    else:
        flow = flows.case_flow(described(found, rule), rule)
        drawn(flow, key="study_flow")
        if hidden:
            st.html(html.quiet(f"Cases that wait for your own {own_act(viewer)} are left out of all numbers here."))
        labels(flow)
        ways(flow)
        st.html(
            html.foot(
                f"A panel of two votes or more decides: its median vote is the level. Ambiguous: {rule_words(rule)}; such a case has no level. Of cases "
                "without a panel the file's own level counts, or what the label map of the source makes of its label. What a file says against its votes is "
                "named when it is imported."
            )
        )
    published(found.published)
    triage.show(viewer)


def drawn(flow: pd.DataFrame, *, key: str) -> None:
    """The flow in words and as a figure."""
    st.html(html.finding(flows.sentence(flow)))
    folded = flows.folded(flow)
    figure = case_flow(flows.links(folded), flows.stages(folded), ink=theme.ink())
    st.plotly_chart(figure, key=key, config={"displayModeBar": False}, alt=ALT)


def labels(flow: pd.DataFrame, *, key: str = "study_labels") -> None:
    """What was made of each label, source by source."""
    table = flows.mapping(flow)
    columns = {
        "Source": table["source"],
        "Label of the source": table["original_label"].replace("", "none"),
        "Stands for": table["meaning"].replace("", "–"),
        "Cases": table["n"],
        **{words: table[name] for name, words in COUNTS.items()},
    }
    tables.show(
        columns,
        key=key,
        alt="What was made of each label of each source, and how many cases have it",
        optional=["Ambiguous", "Left out"],
        names=["Source"],
    )


def ways(flow: pd.DataFrame) -> None:
    """Why cases are used as they are, or left out."""
    table = flow.groupby(["outcome", "why"], sort=False)["n"].sum().reset_index()
    rank = {word.value: place for place, word in enumerate(flows.Outcome)}
    table = table.assign(rank=table["outcome"].map(rank)).sort_values(["rank", "n"], ascending=[True, False])
    with st.expander("Why cases are used as they are, or left out", icon=":material/rule:"):
        tables.show(
            {"Used as": table["outcome"], "Because": table["why"], "Cases": table["n"]},
            key="study_ways",
            alt="Why cases are used as they are, or left out",
        )


def published(matrices: pd.DataFrame) -> None:
    """Published matrices have no cases: they are named, so that nobody misses them above."""
    if len(matrices):
        n = len(matrices[["model", "format"]].drop_duplicates())
        which = counted(n, "published confusion matrix", "published confusion matrices")
        st.html(html.quiet(f"Beside these: {which}, of counts alone, with no cases behind them."))
