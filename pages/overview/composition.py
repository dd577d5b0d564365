"""What the study is made of, beside the full benchmark, and what was read of it."""

from typing import Any

import streamlit as st

from evalcore.rubric.composition import Grouping, findings, part_columns, summary
from evalcore.rubric.figures import groups_read
from evalcore.stats.wording import listed
from evalcore.study.schema import Viewer
from pages.shared import common, html, page_cache, tables, theme

FOOT = (
    "An item is one criterion of one response. "
    "The full benchmark's shares are its published counts (HealthBench, arXiv 2505.08775). Of all reads: the group's share of the responses (of "
    "criteria: items) that physicians have read, beside its share of all that could be read. Intervals are Wilson's, with the criteria and responses "
    "of one conversation counted as the cluster that they are; they hold together for all groups of a table (95 %, Bonferroni). More and fewer are "
    "said only where such an interval shows it. A conversation or criterion counts as read when a physician has given a verdict on at least one "
    "response to it. For languages, categories, points and lengths there is no published count."
)


def show(viewer: Viewer, hidden: frozenset[int]) -> None:
    """The groups by what is chosen: in a sentence, as a figure and as a table."""
    frames, sizes_of = (lambda: common.read("composition")), common.read("subset_sizes")
    by, sizes, weights = page_cache.computed(summary, viewer, frames, sizes_of, hidden)
    st.html(html.quiet(sizes))
    kept = {"bind": "query-params", "persist_state": "page"}  # also while the fold is closed
    look: dict[str, Any] = {"key": "made_of", "format_func": lambda option: option.label, **kept}
    chosen = st.segmented_control("By", list(Grouping), default=Grouping.THEME, required=True, **look)
    grouping: Grouping = chosen or Grouping.THEME
    table, what = by[grouping], f"{grouping.unit.capitalize()} by {grouping.words}"
    imbalances = {name: findings(name, of) for name, of in by.items()}
    st.html(html.finding(" ".join(imbalances[grouping]) or f"No clear imbalance by {grouping.words}."))
    figure = groups_read(table, what=grouping.label, unit=grouping.unit)
    alt = f"{what}, read and not read, beside the full benchmark"
    theme.figure(figure, key=f"composition_{grouping}", alt=alt)
    alt = f"{what}, beside the full benchmark, and what was read of them"
    tables.show(part_columns(grouping, table), key="composition_table", names=(grouping.label,), alt=alt)
    too = " also" if imbalances[grouping] else ""
    if others := [name.label.lower() for name, words in imbalances.items() if words and name != grouping]:
        st.html(html.quiet(f"There is{too} an imbalance by {listed(others)}."))
    if weights and grouping == Grouping.THEME:
        st.html(html.quiet(weights))
    st.html(html.foot(FOOT))
