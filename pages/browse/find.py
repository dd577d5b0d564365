"""The filters of Browse: kept in the address, so that a link opens the same view."""

from dataclasses import dataclass, replace

import streamlit as st

from evalcore.settings import settings
from evalcore.study.browse import Filters
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Viewer
from evalcore.triage.cases import Miss, chosen_cases
from evalcore.triage.data import Kind
from pages.shared import common
from pages.shared import filters as shared_filters

KEYS = (
    "q", "theme", "reads", "dataset", "subset", "category", "language", "axis", "model", "judge", "label", "sign", "differ", "points",
    "source", "format", "level", "kind", "miss",
)  # fmt: skip
CACHED_CHOICES = 50
ALL_POINTS = (MIN_POINTS, MAX_POINTS)
NOTHING = {"q": "", "differ": False, "points": ALL_POINTS}
"""What a field holds that asks for nothing, where it is not None."""


@dataclass(frozen=True)
class Chosen:
    """What the bar of Browse asks for.

    Attributes:
        kind: Of a case, by its panel: a key of `_filters.KINDS`.
        miss: Which way a model answers a case wrongly: a key of `_filters.MISSES`.
    """

    filters: Filters
    kind: str | None = None
    miss: str | None = None

    def cases(self, viewer: Viewer) -> frozenset[int] | None:
        """The cases that fit kind and miss; None where neither is asked for."""
        if self.kind is None and self.miss is None:
            return None
        hidden = common.blind(viewer)
        return _cases(settings().db, common.judged_version(), common.version(), hidden, self, viewer)

    def words(self) -> list[str]:
        """What is asked for, as short words."""
        of_cases = {
            "kind": self.kind and f"{self.kind} cases",
            "miss": self.miss and f"a model answers {shared_filters.MISSES[self.miss]}",
        }
        return [*shared_filters.words(self.filters), *(word for word in of_cases.values() if word)]


@st.cache_data(max_entries=CACHED_CHOICES, show_spinner=False)
def _cases(
    location: str,  # noqa: ARG001 - with the versions and what is hidden it is the key
    judged_version: common.Version,  # noqa: ARG001
    data_version: common.Version,  # noqa: ARG001
    hidden: frozenset[int],  # noqa: ARG001
    chosen: Chosen,
    _viewer: Viewer,
) -> frozenset[int]:
    asked = chosen.filters
    return chosen_cases(
        common.triage_data(_viewer),
        kind=Kind(chosen.kind) if chosen.kind else None,
        miss=Miss(chosen.miss) if chosen.miss else None,
        judge=asked.judge,
        model=asked.model,
        asked=asked.format,
    )


def bar(*, hidden: frozenset[int], folded: bool = False) -> Chosen:
    """Search, theme, what physicians did, and the rest behind a button; folded into one button while a conversation is open.

    Folded or not, every filter is drawn: one that is not drawn would leave the address.

    Args:
        hidden: Conversations that wait for the viewer's first read: their models are not named.
    """
    fields = shared_filters.Fields(hidden)
    on = sum(map(_is_on, KEYS))
    if folded:
        with st.popover(f"Filters ({on} on)" if on else "Filters", icon=":material/tune:", key="filters_folded"):
            found = _first(fields, _more(fields))
            more = _of_panels(fields)
    else:
        with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
            found = _first(fields, Filters())
            with st.popover("More filters", icon=":material/tune:", width=160, key="filters_more"):
                rest, more = _more(fields), _of_panels(fields)
            found = replace(rest, search=found.search, theme=found.theme, reads=found.reads)
            st.button("Clear", icon=":material/close:", type="tertiary", key="clear", disabled=not on, on_click=_clear)
    return replace(more, filters=found)


def _first(fields: shared_filters.Fields, rest: Filters) -> Filters:
    return replace(rest, search=fields.search(), theme=fields.theme(), reads=fields.reads("Physicians"))


def _more(fields: shared_filters.Fields) -> Filters:
    left, middle, right = st.columns(3)
    with left:
        dataset, category, axis = fields.dataset(), fields.category(), fields.axis()
    with middle:
        subset, language, sign = fields.subset(), fields.language(), fields.sign()
    with right:
        model, judge, label = fields.model(), fields.judge(), fields.label()
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        points = st.slider(
            "Points", MIN_POINTS, MAX_POINTS, ALL_POINTS, key="points", bind="query-params", persist_state="session"
        )
        differ = fields.judges_differ()
    points_from, points_to = shared_filters.points_of(sign, *points)
    return replace(
        fields.of_cases(),
        dataset=dataset,
        subset=subset,
        category=category,
        language=language,
        axis=axis,
        model=model,
        judge=judge,
        label=label,
        judges_differ=differ,
        points_from=points_from,
        points_to=points_to,
    )


def _of_panels(fields: shared_filters.Fields) -> Chosen:
    """What the statistics of triage tell of a case; nothing is drawn where the study has none."""
    if not fields.has_cases():
        return Chosen(Filters())
    with st.container(horizontal=True, vertical_alignment="bottom"):
        return Chosen(Filters(), fields.kind(), fields.miss())


def _clear() -> None:
    """Ask for nothing. An address is kept by its fields: Streamlit takes nothing out of it but by them."""
    for key in filter(_is_on, KEYS):
        st.session_state[key] = NOTHING.get(key)


def _is_on(key: str) -> bool:
    """Whether a field asks for anything; before it was ever drawn its address says so."""
    if key in st.session_state:
        return bool(st.session_state[key] != NOTHING.get(key))
    return key in st.query_params
