"""By theme and axis: a section of the Models page."""

import pandas as pd
import streamlit as st

from evalcore.languages import LANGUAGES
from evalcore.metrics import parts
from evalcore.metrics.comparison import SMALL
from evalcore.metrics.finding import score_words
from evalcore.metrics.group_scores import group_scores
from evalcore.opinions import Opinions
from evalcore.plots.models import heat_map
from evalcore.schema import Viewer
from pages import _filters, _models_parts, _text, _theme
from pages._models_parts import Chosen

GROUPINGS = {"theme": "theme", "axis": "axis", "category": "category", "cluster": "cluster", "language": "language"}
OF_CRITERIA = ("axis", "cluster")
HEADER_PIXELS, ROW_PIXELS, MAX_TABLE = 38, 35, 560


def grouped(opinions: Opinions, chosen: Chosen, grouping: str) -> pd.DataFrame:
    """The scores by the judge in each group of one kind, those with most examples first."""
    found = group_scores(*parts.jury(opinions, chosen.judges), by=(grouping,))
    found = found.loc[found["grouping"].eq(grouping)]
    most = found.groupby("group")["n_examples"].transform("max")
    return found.assign(most=most).sort_values(
        ["most", "group", "model"], ascending=[False, True, True], ignore_index=True
    )


def show(viewer: Viewer, chosen: Chosen) -> None:
    """A heat map of groups by models, and its table."""
    grouping = (
        st.segmented_control(
            "By",
            list(GROUPINGS),
            default="theme",
            key="models_by",
            bind="query-params",
            persist_state="session",
            required=True,
            format_func=GROUPINGS.__getitem__,
        )
        or "theme"
    )
    table = _models_parts.computed(grouped, viewer, chosen, grouping)
    if table.empty:
        st.html(
            _text.notice(
                f"Nothing here is tagged with a {grouping}: the tags come with the file of examples. Import it on the Study page."
            )
        )
        st.page_link("pages/study.py", label="Import a file", icon=":material/database:")
        return
    if not table["n_responses"].any():
        st.html(_text.notice(_models_parts.NO_LABELS))
        return
    table["group"] = [
        LANGUAGES.get(group, group) if grouping == "language" else _filters.plain(group) for group in table["group"]
    ]
    st.html(
        _text.quiet(
            f"Each cell is {chosen.judge}'s opinion, not corrected by physicians. Intervals are in the table, and where the pointer rests."
        )
    )
    st.plotly_chart(
        heat_map(table, ink=_theme.ink()),
        config={"displayModeBar": False},
        key=f"models_heat_{grouping}",
        alt=f"Score of each model by {grouping}",
    )
    wide(table, grouping)
    st.html(_text.foot(foot(table, grouping, chosen)))


def wide(table: pd.DataFrame, grouping: str) -> None:
    """The same numbers with their intervals, a row a group."""
    words = [score_words(row["score"], row["low"], row["high"]) for row in table.to_dict(orient="records")]
    cells = (
        table.assign(words=words)
        .pivot(index="group", columns="model", values="words")
        .reindex(table["group"].drop_duplicates())
    )
    most = table.drop_duplicates("group").set_index("group")["n_examples"]
    scores = {f"score {model}": cells[model].fillna("–").to_numpy() for model in cells.columns}
    st.dataframe(
        {grouping.capitalize(): cells.index, "Examples": most.reindex(cells.index).to_numpy(), **scores},
        key="models_groups",
        hide_index=True,
        height=min(MAX_TABLE, HEADER_PIXELS + ROW_PIXELS * len(cells)),
        column_config={name: st.column_config.TextColumn(name.removeprefix("score ")) for name in scores},
        alt=f"Scores with intervals by {grouping}",
    )


def foot(table: pd.DataFrame, grouping: str, chosen: Chosen) -> str:
    """How the scores were made."""
    rule = (
        "the points of met criteria of that tag over the positive points of that tag; an example without positive points there is left out, not 0"
        if grouping in OF_CRITERIA
        else "the mean of the whole scores of the examples that carry the tag"
    )
    return (
        f"A group's score is {rule} (HealthBench). Only the mean is clipped to 0 to 1. Intervals are 95 %, clustered by example. Grey: fewer "
        f"than {SMALL} examples, of which an interval promises too much. Left out for want of a score: {table['n_undefined'].sum():,} "
        f"of all responses, counted once a group. Judge: {_models_parts.versions(chosen.judges)}. Criteria: {chosen.criteria}."
    )
