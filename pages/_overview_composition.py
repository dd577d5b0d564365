"""What the study is made of and what physicians have read of it: a section of the Overview."""

import pandas as pd
import streamlit as st

from evalcore.metrics import composition_words as words
from evalcore.metrics.composition import GROUPINGS, UNITS, Beside, Grouping, parts, sizes, spreads
from evalcore.metrics.theme_weights import has_themes, weighting, weighting_sentence
from evalcore.plots.overview import groups_read
from evalcore.settings import settings
from pages import _common, _text

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
def _made(location: str, data_version: _common.Version, hidden: frozenset[int]) -> Made:  # noqa: ARG001 - the version is the key
    found, subsets = _common.read("composition"), _common.read("subset_sizes")
    tables = {grouping: parts(grouping, **found, hidden=hidden) for grouping in GROUPINGS}
    about = words.spread_sentence(spreads(**found), sizes(**found, subsets=subsets))
    examples = found["examples"]
    return tables, about, weighting_sentence(weighting(examples)) if has_themes(examples) else ""


def made(hidden: frozenset[int]) -> Made:
    """The groups of the study by each grouping, how large its texts are, and what weights would do; kept until anything changes."""
    return _made(settings().db, _common.version(), hidden)


def table_of(table: pd.DataFrame, grouping: Grouping) -> None:
    """The same numbers as cells."""
    rows, whole = table.to_dict(orient="records"), int(table["n"].sum())
    cells = {
        OPTIONS[grouping]: table["group"],
        UNITS[grouping].capitalize(): [words.here_words(row, whole) for row in rows],
    }
    if table["published_share"].notna().any():
        cells["Full benchmark"] = [words.benchmark_words(row) for row in rows]
        cells["Beside it"] = [words.beside_words(row, Beside.BENCHMARK) for row in rows]
    cells["Read"] = [words.read_words(row) for row in rows]
    cells["Beside the study"] = [words.beside_words(row, Beside.STUDY) for row in rows]
    st.dataframe(
        cells,
        key="composition_table",
        hide_index=True,
        height=HEADER_PIXELS + ROW_PIXELS * max(len(rows), 1),
        alt=f"{UNITS[grouping].capitalize()} by {words.NAMES[grouping]}, beside the full benchmark, and what was read of them",
    )


def also(tables: dict[Grouping, pd.DataFrame], shown: Grouping) -> str:
    """By what else something stands out."""
    others = [
        OPTIONS[grouping].lower()
        for grouping, table in tables.items()
        if grouping != shown and words.findings(grouping, table)
    ]
    return f"Something also stands out by {', '.join(others)}." if others else ""


def show(hidden: frozenset[int]) -> None:
    """One grouping at a time: what stands out in words, the figure, the table.

    Args:
        hidden: Conversations of which nothing is told of what was read.
    """
    tables, about, weights = made(hidden)
    st.html(_text.quiet(about))
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
    found = words.findings(grouping, table)
    st.html(_text.finding(" ".join(found) or f"By {words.NAMES[grouping]} nothing stands out clearly."))
    figure = groups_read(
        table.assign(marks=[words.marks(row) for row in table.to_dict(orient="records")]),
        what=OPTIONS[grouping],
        unit=UNITS[grouping],
    )
    st.plotly_chart(
        figure,
        config={"displayModeBar": False},
        key=f"composition_{grouping}",
        alt=f"{UNITS[grouping].capitalize()} by {words.NAMES[grouping]}, read and not read, beside the full benchmark",
    )
    table_of(table, grouping)
    for line in (also(tables, grouping), weights if grouping == Grouping.THEME else ""):
        if line:
            st.html(_text.quiet(line))


FOOT = (
    "Beside the full benchmark: standardised residuals of a goodness-of-fit test on the published counts (HealthBench, arXiv 2505.08775); "
    "criteria of one conversation count as the cluster that they are. Beside the study: whether physicians have read more or "
    "fewer responses (of criteria: items) of a group than an even draw without replacement would, clustered by conversation. More "
    "and fewer are said beyond two standard deviations and where Holm's test over the groups agrees (5 %); too few to say: fewer than five "
    "expected. A conversation or criterion counts as read when a physician has given a verdict on at least one response to it. "
    "For languages, categories, points and lengths there is no published count to hold the study against."
)
