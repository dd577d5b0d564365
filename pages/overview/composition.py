"""What the study is made of and what physicians have read of it: a section of the Overview."""

import pandas as pd
import streamlit as st

from evalcore.rubric import composition
from evalcore.rubric.benchmark import has_themes, weighting, weighting_sentence
from evalcore.rubric.composition import GROUPINGS, UNITS, Grouping, parts, sizes, spreads
from evalcore.rubric.figures import groups_read
from evalcore.settings import settings
from evalcore.stats.wording import listed
from pages.shared import common, html

OPTIONS = {
    Grouping.THEME: "Theme",
    Grouping.CATEGORY: "Category",
    Grouping.LANGUAGE: "Language",
    Grouping.TURNS: "Turns",
    Grouping.LENGTH: "Length",
    Grouping.AXIS: "Axis",
    Grouping.SIGN: "Sign",
    Grouping.POINTS: "Points",
    Grouping.MODEL: "Model",
    Grouping.RESPONSE_LENGTH: "Length of responses",
}
HEADER_PIXELS, ROW_PIXELS = 38, 35
Made = tuple[dict[Grouping, pd.DataFrame], str, str]


@st.cache_data(max_entries=8, show_spinner=False)
def _made(location: str, data_version: common.Version, hidden: frozenset[int]) -> Made:  # noqa: ARG001 - the version is the key
    found, subsets = common.read("composition"), common.read("subset_sizes")
    tables = {grouping: parts(grouping, **found, hidden=hidden) for grouping in GROUPINGS}
    about = composition.spread_sentence(spreads(**found), sizes(**found, subsets=subsets))
    examples = found["examples"]
    return tables, about, weighting_sentence(weighting(examples)) if has_themes(examples) else ""


def made(hidden: frozenset[int]) -> Made:
    """The groups of the study by each grouping, how large its texts are, and what weights would do; kept until anything changes."""
    return _made(settings().db, common.version(), hidden)


def table_of(table: pd.DataFrame, grouping: Grouping) -> None:
    """The same numbers as cells."""
    rows = table.to_dict(orient="records")
    cells = {
        OPTIONS[grouping]: table["group"],
        UNITS[grouping].capitalize(): [composition.here_words(row) for row in rows],
    }
    if table["published_share"].notna().any():
        cells["Full benchmark"] = [composition.benchmark_words(row) for row in rows]
    cells["Read"] = [composition.read_words(row) for row in rows]
    cells["Of all reads"] = [composition.of_reads_words(row) for row in rows]
    st.dataframe(
        cells,
        key="composition_table",
        hide_index=True,
        height=HEADER_PIXELS + ROW_PIXELS * max(len(rows), 1),
        alt=f"{UNITS[grouping].capitalize()} by {composition.NAMES[grouping]}, beside the full benchmark, and what was read of them",
    )


def also(tables: dict[Grouping, pd.DataFrame], shown: Grouping) -> str:
    """By what else there is an imbalance."""
    others = [
        OPTIONS[grouping].lower()
        for grouping, table in tables.items()
        if grouping != shown and composition.findings(grouping, table)
    ]
    too = " also" if composition.findings(shown, tables[shown]) else ""
    return f"There is{too} an imbalance by {listed(others)}." if others else ""


def show(hidden: frozenset[int]) -> None:
    """One grouping at a time: what stands out in words, the figure, the table.

    Args:
        hidden: Conversations of which nothing is told of what was read.
    """
    tables, about, weights = made(hidden)
    st.html(html.quiet(about))
    grouping = (
        st.segmented_control(
            "By",
            list(OPTIONS),
            default=Grouping.THEME,
            key="made_of",
            bind="query-params",
            required=True,
            format_func=OPTIONS.__getitem__,
        )
        or Grouping.THEME
    )
    table = tables[grouping]
    found = composition.findings(grouping, table)
    st.html(html.finding(" ".join(found) or f"No clear imbalance by {composition.NAMES[grouping]}."))
    figure = groups_read(
        table.assign(marks=[composition.marks(row) for row in table.to_dict(orient="records")]),
        what=OPTIONS[grouping],
        unit=UNITS[grouping],
    )
    st.plotly_chart(
        figure,
        config={"displayModeBar": False},
        key=f"composition_{grouping}",
        alt=f"{UNITS[grouping].capitalize()} by {composition.NAMES[grouping]}, read and not read, beside the full benchmark",
    )
    table_of(table, grouping)
    for line in (also(tables, grouping), weights if grouping == Grouping.THEME else ""):
        if line:
            st.html(html.quiet(line))


FOOT = (
    "The full benchmark's shares are its published counts (HealthBench, arXiv 2505.08775). Of all reads: the group's share of the responses (of criteria: "
    "items) that physicians have read, beside its share of all that could be read. Intervals are Wilson's, with the criteria and responses of one conversation "
    "counted as the cluster that they are; they hold together for all groups of a table (95 %, Bonferroni). More and fewer are said only where such an "
    "interval shows it. A conversation or criterion counts as read when a physician has given a verdict on at least one response to it. For languages, "
    "categories, points and lengths there is no published count."
)
