"""Groups: a section of the Triage page. Where answers go wrong: by source, level, panel and language."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.study.languages import LANGUAGES
from evalcore.triage.figures import by_group as figure
from evalcore.triage.rates import FEW, TriageGrouping, by_group
from evalcore.triage.words import rate_words
from pages.shared import html, tables, theme, triage_choice
from pages.shared.triage_choice import FORMATS, Here, Read

GROUPINGS = {
    "Source": TriageGrouping.SOURCE,
    "Level": TriageGrouping.GOLD,
    "Panel": TriageGrouping.STRENGTH,
    "Language": TriageGrouping.LANGUAGE,
}
DRAWN, IN_TABLE = ("under", "over"), {
    "under": "Under-triage",
    "exact": "Exact",
    "over": "Over-triage",
    "missed_emergencies": "Missed emergencies",
}  # fmt: skip
FOOT = (
    "Counted are cases with a clear gold and a level. By level, under-triage of A and over-triage of D are impossible, so their shares are 0 by what "
    "they are. Panel: "
    "how many votes stand together (unanimous, 4-1, 3-2), direct where the source's own label is the gold: a clear gold may hide a split panel. "
    "Groups of fewer than "
    f"{FEW} cases are grey: their intervals say little. Intervals are 95 % (Wilson), each group by itself; among many groups some stand out by chance."
)


def grouped(read: Read, grouping: str) -> pd.DataFrame:
    """The rates of every model by one grouping."""
    found = by_group(read.triage_data, read.found, grouping)
    return found.loc[found["measure"].astype(str).isin(list(IN_TABLE))].reset_index(drop=True)


def show(here: Here) -> None:
    """One model's errors by one grouping, both formats side by side."""
    viewer, chosen = here.viewer, here.chosen
    with here.row:
        model = triage_choice.one_of("Model", here.known.models, "triage_model", width=200)
        name = st.segmented_control(
            "By", list(GROUPINGS), default=triage_choice.left("triage_by", "Source"), required=True, key="triage_by", bind="query-params"
        )  # fmt: skip
    grouping = GROUPINGS[name or "Source"]
    found = triage_choice.computed(grouped, viewer, chosen, grouping.value)
    mine = found.loc[found["model"].astype(str).eq(model)]
    if mine["value"].notna().sum() == 0:
        st.html(html.notice(f"{model} has no answer with a level on a case with a clear gold."))
        return
    words = {str(group): _word(str(group), grouping) for group in mine["group"].unique()}
    for sentence in spread(mine, words):
        st.html(html.finding(sentence))
    st.plotly_chart(
        figure(mine, FORMATS, words, ink=theme.ink()),
        config={"displayModeBar": False},
        key="triage_groups",
        alt=f"Under-triage and over-triage of {model} by {str(name).lower()}",
    )
    rows = mine.assign(words=[rate_words(row) for row in mine.to_dict(orient="records")])
    columns: dict[str, Any] = {str(name): [], "Format": [], "Cases": [], **{title: [] for title in IN_TABLE.values()}}
    for (group, word), part in rows.groupby(["group", "format"], observed=True, sort=False):
        by_measure = dict(zip(part["measure"].astype(str), part["words"], strict=True))
        columns[str(name)].append(words[str(group)])
        columns["Format"].append(FORMATS[str(word)])
        columns["Cases"].append(int(part["n_group"].iloc[0]))
        for measure, title in IN_TABLE.items():
            columns[title].append(by_measure.get(measure, ""))
    tables.show(columns, key="triage_groups_table", alt="Rates by group and format")
    st.html(html.foot(FOOT))


def spread(mine: pd.DataFrame, words: dict[str, str]) -> list[str]:
    """From where to where under-triage runs over groups with enough cases, a sentence a format; whether it may be chance is told by their intervals."""
    under = mine.loc[mine["measure"].astype(str).eq("under") & mine["value"].notna() & ~mine["is_small"]]
    said = []
    for word, rows in under.groupby(under["format"].astype(str), sort=False):
        ordered = rows.sort_values("value", kind="stable").to_dict(orient="records")
        least, most = (f"{words[str(row['group'])]}, {rate_words(row)}" for row in (ordered[0], ordered[-1]))
        meet = ordered[-1]["low"] <= ordered[0]["high"]
        chance = " Their intervals meet, so this may be chance." if meet else ""
        head = f"In {FORMATS[str(word)]} under-triage"
        said.append(f"{head}: {most}." if len(ordered) == 1 else f"{head} runs from {least}, to {most}.{chance}")
    return said or [f"Every group has fewer than {FEW} cases: read the intervals, not the shares."]


def _word(group: str, grouping: TriageGrouping) -> str:
    return LANGUAGES.get(group, group) if grouping is TriageGrouping.LANGUAGE else group
