"""The filters of Browse. Each is kept in the address, so that a link opens the same view."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from evalcore.languages import LANGUAGES
from evalcore.queries.browse import CONFLICTING, OVERRIDDEN, READ, READ_STATES, UNREAD, Filters
from evalcore.schema import MAX_POINTS, MIN_POINTS
from pages import _common

READS = {
    OVERRIDDEN: "differ from the judge",
    CONFLICTING: "differ from each other",
    READ: "have read",
    UNREAD: "have not read",
}
LABELS = {"met": "met", "not_met": "not met", "cannot_assess": "cannot assess"}
SIGNS = {"undesirable": "undesirable (negative)", "desirable": "desirable (positive)"}
KEYS = (
    "q", "theme", "reads", "dataset", "subset", "category", "language", "axis", "model", "judge", "label", "sign", "differ", "points",
)  # fmt: skip
ALL_POINTS = (MIN_POINTS, MAX_POINTS)


def plain(word: str) -> str:
    """A tag as words."""
    return word.replace("_", " ")


def _select(key: str, label: str, options: Sequence[str], shown: Callable[[str], str] = plain) -> str | None:
    return st.selectbox(
        label,
        options,
        index=None,
        key=key,
        format_func=shown,
        placeholder="Any",
        bind="query-params",
        persist_state="session",
    )


def bar(*, hidden: frozenset[int], folded: bool = False) -> Filters:
    """Search, theme, what physicians did, and the rest behind a button; folded into one button while a conversation is open.

    Folded or not, every filter is drawn: one that is not drawn would leave the address.

    Args:
        hidden: Conversations that wait for the viewer's first read: their models are not named.
        folded: As one button.
    """
    choices = _common.read("choices")
    on = sum(key in st.query_params for key in KEYS)
    if folded:
        with st.popover(f"Filters ({on} on)" if on else "Filters", icon=":material/tune:", key="filters_folded"):
            found = _first(choices, _more(choices, hidden))
    else:
        with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
            found = _first(choices, Filters())
            with st.popover("More filters", icon=":material/tune:", width=160, key="filters_more"):
                rest = _more(choices, hidden)
            found = replace(rest, search=found.search, theme=found.theme, reads=found.reads)
            if st.button("Clear", icon=":material/close:", type="tertiary", key="clear", disabled=not on):
                _clear()
    return found


def _first(choices: dict[str, list[str]], rest: Filters) -> Filters:
    search = st.text_input(
        "Search", key="q", placeholder="Conversations, answers, criteria, explanations", bind="query-params",
        persist_state="session", width=340,
    )  # fmt: skip
    theme = _select("theme", "Theme", choices["theme"])
    reads = _select("reads", "Physicians", READ_STATES, lambda state: READS[state])
    return replace(rest, search=search or "", theme=theme, reads=reads)


def _more(choices: dict[str, list[str]], hidden: frozenset[int]) -> Filters:
    left, right = st.columns(2)
    with left:
        dataset = _select("dataset", "Data set", choices["dataset"])
        category = _select("category", "Category", choices["category"])
        axis = _select("axis", "Axis of the criterion", choices["axis"])
        judge = _select("judge", "Judge", _common.read("judges"), str)
        sign = _select("sign", "Criterion", list(SIGNS), lambda word: SIGNS[word])
    with right:
        subset = _select("subset", "Subset", choices["subset"], str)
        language = _select("language", "Language", choices["language"], lambda code: LANGUAGES.get(code, code))
        model = _select("model", "Model", _common.read("models", hidden), str)
        label = _select("label", "The judge says", ["met", "not_met"], lambda word: LABELS[word])
        differ = st.toggle("Judges disagree", key="differ", bind="query-params", persist_state="session")
    low, high = st.slider(
        "Points", MIN_POINTS, MAX_POINTS, ALL_POINTS, key="points", bind="query-params", persist_state="session"
    )
    if sign == "undesirable":
        high = min(high, -1)
    elif sign == "desirable":
        low = max(low, 1)
    return Filters(
        dataset=dataset,
        subset=subset,
        category=category,
        language=language,
        axis=axis,
        model=model,
        judge=judge,
        label=label,
        judges_differ=differ,
        points_from=None if low == MIN_POINTS else low,
        points_to=None if high == MAX_POINTS else high,
    )


def _clear() -> None:
    for key in KEYS:
        st.query_params.pop(key, None)
        st.session_state.pop(key, None)
    st.rerun()


def words(filters: Filters) -> list[str]:
    """The filters that are on, as short words."""
    named = {
        "search": filters.search and f"“{filters.search}”",
        "theme": filters.theme and plain(filters.theme),
        "reads": filters.reads and f"physicians {READS[filters.reads]}",
        "dataset": filters.dataset,
        "subset": filters.subset,
        "category": filters.category and plain(filters.category),
        "language": filters.language and LANGUAGES.get(filters.language, filters.language),
        "axis": filters.axis and plain(filters.axis),
        "model": filters.model,
        "judge": filters.judge,
        "label": filters.label and f"judge says {LABELS[filters.label]}",
        "differ": filters.judges_differ and "judges disagree",
        "points": _points_words(filters),
    }
    return [str(word) for word in named.values() if word]


def _points_words(filters: Filters) -> str:
    if filters.points_from is None and filters.points_to is None:
        return ""
    low = MIN_POINTS if filters.points_from is None else filters.points_from
    high = MAX_POINTS if filters.points_to is None else filters.points_to
    return f"points {low} to {high}"
