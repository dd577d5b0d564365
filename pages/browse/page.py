"""Find a conversation; read it beside every model's answer and every verdict; override the judge."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.errors import NotAllowed
from evalcore.reading.read_queries import Opened
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import listed as listed_words
from evalcore.study.acting import prepare_search
from evalcore.study.browse import CONFLICTING, Filters
from evalcore.study.contents import holdings
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import allows, check_can_import, check_can_open, check_can_read, own_act, reason
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, TASK_TAGS, Format, Viewer, tag
from evalcore.triage.cases import Miss, chosen_cases
from evalcore.triage.data import Kind, TriageData
from pages.browse import broken, case
from pages.shared import (
    common,
    filters as shared_filters,
    html,
    kept_choices,
    page_cache,
    routes,
    rubric,
    suspects,
    tables,
)
from pages.shared.html import response_names

SCORED_MODELS = 6
MAX_SHOWN = MOST_NAMED = 3
LIST_HEIGHT = 600
SELDOM = 0.1
"""A model with fewer scores in a list than this share of the most is left out of it: its column would be as good as empty."""
BOX_WIDTH, THEME_WIDTH, SCORE_WIDTH = 34, 132, 60
LAST = {"Physicians": 160, "Criteria": 60, "Turns": 52, "Language": 76}
LEAST_WORDS = 340
"""Widths in pixels. The conversation has what is left beside the sidebar on a screen of 1280, of the last columns at least beside the first."""
FORMATS = {
    Format.QA.evaluation: "asked for a level of care",
    Format.CONVERSATION.evaluation: "told the patient, no level asked for",
}
KEYS = (*shared_filters.SELECTS, "q", "differ", "points")
ALL_POINTS = (MIN_POINTS, MAX_POINTS)
NOTHING = {"q": "", "differ": False, "points": ALL_POINTS}
"""What a field holds that asks for nothing, where it is not None."""
PROVISIONAL = (
    "This conversation is known only from a result on it: import its examples file to see its theme and whole rubric."
)
COUNTED = ("n_overridden", "n_conflicting", "n_read", "n_level_readers")
OPENED = "You see others' verdicts here: this conversation is no longer one of your blind reads."


def _listing(listed: pd.DataFrame, judge: str) -> None:
    n_scores = listed.filter(regex="^score ").count()
    scored = n_scores.index[n_scores.gt(0) & n_scores.ge(SELDOM * n_scores.max())]
    scores = {column: column.removeprefix("score ") for column in scored[:SCORED_MODELS]}
    theme = "Theme" if listed["source"].isna().all() else "Theme or source"
    # of cases alone none has a theme, and pandas takes that for numbers
    themes = listed["theme"].map(shared_filters.plain, na_action="ignore").astype(object)
    columns: dict[str, Any] = {
        theme: themes.fillna(listed["source"]).fillna(NO_VALUE),
        "Conversation": listed["first_words"],
        **{column: listed[column] for column in scores},
        "Physicians": [_marks(row) for row in listed[[*COUNTED]].itertuples()],
        "Criteria": listed["n_criteria"].where(listed["source"].isna()).astype("Int64"),
        "Turns": listed["n_turns"],
        "Language": listed["language"].map(LANGUAGES).fillna(NO_VALUE),
    }
    if columns["Criteria"].isna().all():  # cases alone
        del columns["Criteria"]
    for name in ("Physicians", "Language"):
        if set(columns[name]) == {NO_VALUE}:
            del columns[name]
    widths = {theme: THEME_WIDTH} | {column: max(SCORE_WIDTH, tables.width([name])) for column, name in scores.items()}
    widths |= {name: width for name, width in LAST.items() if name in columns}
    # where not all columns fit, the table scrolls sideways to Criteria, Turns and Language
    room = tables.ROOM_PIXELS - BOX_WIDTH
    left = room - sum(widths.values())
    if left < LEAST_WORDS:
        left = room - sum(width for name, width in widths.items() if name == "Physicians" or name not in LAST)
    widths["Conversation"] = max(left, LEAST_WORDS)
    config: dict[str, Any] = {
        column: st.column_config.NumberColumn(
            scores.get(column), width=width, format="%.2f" if column in scores else None
        )
        if pd.api.types.is_numeric_dtype(columns[column])
        else st.column_config.TextColumn(width=width)
        for column, width in widths.items()
    }
    alt, numbers = "Conversations that fit the filters", listed.index.tolist()
    look: dict[str, Any] = {"tallest": LIST_HEIGHT, "column_config": config, "placeholder": ""}
    place = tables.choose(columns, key="list", alt=alt, opened=lambda place: _address(numbers[place]), **look)
    if place is not None:
        _open(numbers[place])
    points = "points of met criteria over the positive points; an empty cell has no score."
    of_judge = f"Scores are by the judge {judge}: {points}"
    others = [str(name).removeprefix("score ") for name, n in n_scores.items() if n and name not in scores]
    left_out = ""
    if others:
        named = listed_words(others) if len(others) <= MOST_NAMED else f"{len(others)} further models"
        left_out = f" Not in this list: scores of {named}."
    blind = "Opening it shows its verdicts, and takes it out of your blind reads. "
    words = (blind if allows(check_can_read, viewer) else "") + (of_judge + left_out if judge and scores else "")
    st.html(html.foot(f"Click a row to open it. {words}"))


def _marks(row: Any) -> str:
    marks = ((row.n_overridden, "overridden"), (row.n_conflicting, "in conflict"))
    if any(count for count, _ in marks):
        return " · ".join(f"{int(count)} {word}" for count, word in marks if count)
    if row.n_read:
        return "read, none overridden"
    return f"read by {int(row.n_level_readers)}" if row.n_level_readers else NO_VALUE


def _address(example_id: int | None) -> None:
    if example_id is None:
        st.query_params.pop("example", None)
    else:
        st.query_params["example"] = str(example_id)


def _open(example_id: int | None) -> None:
    _address(example_id)
    st.rerun()


def _steps(listed: pd.DataFrame, example_id: int) -> None:
    order = list(listed.index)
    place = order.index(example_id) if example_id in order else None
    before = order[place - 1] if place else None
    after = order[place + 1] if place is not None and place + 1 < len(order) else None
    if st.button("List", icon=":material/arrow_back:", key="back"):
        _open(None)
    if st.button("Previous", disabled=before is None, key="previous", shortcut="Left"):
        _open(before)
    if st.button("Next", disabled=after is None, key="next", shortcut="Right"):
        _open(after)
    words = f"{place + 1:,} of {len(order):,}" if place is not None else "outside the filters"
    st.html(f'<span class="or-stamp">{html.escaped(words)}</span>', width="content")


def _detail(
    viewer: Viewer, row: DeltaGenerator, listed: pd.DataFrame, filters: Filters, judge: str, example_id: int
) -> None:
    try:
        opened = rubric.opened(viewer, example_id)
    except NotAllowed as refusal:  # it was assigned to the viewer this very moment
        st.html(html.notice(str(refusal), kind="error"))
        return
    if opened is None:
        st.html(html.notice(f"This study has no conversation {example_id}. The link may belong to another study."))
        return
    with row:
        _steps(listed, example_id)
        chosen, as_markdown = _choose(opened, filters)
        if not allows(check_can_import, viewer):
            chosen = chosen.assign(finish_reason=None, made_on=None)
    example = opened.example
    example["is_answered"] = not opened.responses.empty
    of_task = [tag(tuple(json.loads(example["tags"])), kind) for kind in TASK_TAGS]
    tags = [example["theme"], example["category"], LANGUAGES.get(example["language"] or ""), *opened.subsets, *of_task]
    st.html(html.chips([*(shared_filters.plain(name) for name in tags if name), example["prompt_id"]]))
    if allows(check_can_read, viewer):
        st.html(html.quiet(OPENED))
    if example["provisional"]:
        st.html(html.notice(PROVISIONAL))
    broken.told(viewer, example_id)
    panel: Callable[[list[int]], None]
    if opened.is_case:
        panel = partial(case.panel, viewer, example_id)
        if not opened.responses.empty and opened.responses["text"].eq("").all():
            st.html(html.quiet("Of the answers to this case only the levels are known, not the texts."))
    else:
        matching = common.read("matching", filters, example_id)
        only = matching if matching and st.toggle("Only criteria that fit the filters", key="only") else None
        panel = partial(rubric.panel, viewer, example_id, judge=judge, only=only)
    _laid_out(example, chosen, judge, panel, as_markdown=as_markdown)


def _laid_out(
    example: dict[str, Any], chosen: pd.DataFrame, judge: str, panel: Callable[[list[int]], None], *, as_markdown: bool
) -> None:
    shown = [int(number) for number in chosen["response_id"]]
    if len(shown) > 1:
        st.html(html.conversation(example["messages"], as_markdown=as_markdown))
        for (_, response), column in zip(chosen.iterrows(), st.columns(len(shown), gap="medium"), strict=True):
            with column:
                _response(response, judge, as_markdown=as_markdown)
        st.html('<hr class="or-rule">')
        with st.container(key="rubric_wide"):
            panel(shown)
        return
    left, right = st.columns([58, 42], gap="large")
    with left, st.container(key="reading"):
        st.html(html.conversation(example["messages"], as_markdown=as_markdown))
        for _, response in chosen.iterrows():
            _response(response, judge, as_markdown=as_markdown)
        if not shown and not example["is_answered"]:
            unanswered = "No model has answered this conversation yet: import a results file on the Study page."
            st.html(html.notice(unanswered))
    with right, st.container(key="rubric"):
        panel(shown)


def _choose(opened: Opened, filters: Filters) -> tuple[pd.DataFrame, bool]:
    """Which responses are shown, one to three, and whether Markdown is drawn. Those of which only the level is known have nothing to show."""
    responses = opened.responses.assign(name=response_names(opened.responses)).set_index("name", drop=False)
    responses = responses.loc[responses["text"].ne("") | (not opened.is_case)]
    names = list(responses.index)
    fits = responses["model"].eq(filters.model or "") | (filters.model is None)
    if filters.format is not None:
        fits &= responses["evaluation"].eq(Format(filters.format).evaluation)
    preferred = list(responses.index[fits])[:1]
    kept = [name for name in st.session_state.get("shown", []) if name in names]
    st.session_state["shown"] = kept or preferred
    shown = st.multiselect(
        "Responses side by side", names, key="shown", max_selections=MAX_SHOWN, bind="query-params",
        placeholder="Choose one to three responses", label_visibility="collapsed", width=330,
    )  # fmt: skip
    return responses.loc[shown or preferred], kept_choices.formatted()


def _response(row: pd.Series, judge: str, *, as_markdown: bool) -> None:
    words = FORMATS.get(row["evaluation"]) or _score_words(row["response_id"], judge)
    ended = {"made on": row["made_on"], "ended by": row["finish_reason"]}
    words = " · ".join([words, *(f"{how} {told}" for how, told in ended.items() if isinstance(told, str))])
    st.html(html.response(row["name"], words, row["text"], as_markdown=as_markdown))
    if isinstance(row["sent_messages"], str):
        with st.expander("This model was sent another prompt than the conversation above", icon=":material/warning:"):
            st.html(html.conversation(json.loads(row["sent_messages"]), as_markdown=as_markdown))
    suspects.show(int(row["response_id"]))
    broken.mark(viewer, int(row["response_id"]))


def _score_words(response_id: int, judge: str) -> str:
    scores = common.ask(common.judge_scores)
    scored = scores.loc[scores["response_id"].eq(response_id) & scores["judge"].eq(judge)]
    if scored.empty:
        return "no score yet"
    first = scored.iloc[0]
    if pd.isna(first["score"]):
        return f"no score by {judge}: a verdict is missing, or no criterion has positive points"
    told = f"{first['score']:.2f} ({first['achieved'] or 0:.0f} of {first['possible']:.0f} points)".replace("-", "−")
    return f"score by {judge}: {told}"


@dataclass(frozen=True)
class Chosen:
    """What the bar asks for; `kind` of `filters.KINDS` and `miss` of `filters.MISSES` are of cases."""

    filters: Filters
    kind: str | None = None
    miss: str | None = None

    def cases(self, viewer: Viewer) -> frozenset[int] | None:
        """The cases that fit kind and miss; None where neither is asked for."""
        if self.kind is None and self.miss is None:
            return None
        return page_cache.computed(_cases, viewer, lambda: page_cache.triage_data(viewer), self)

    def words(self) -> list[str]:
        """What is asked for, as short words."""
        kind = [f"{self.kind} cases"] if self.kind else []
        miss = [f"a model answers {shared_filters.MISSES[self.miss]}"] if self.miss else []
        return [*shared_filters.words(self.filters), *kind, *miss]


def _cases(triage_data: TriageData, chosen: Chosen) -> frozenset[int]:
    filters = chosen.filters
    return chosen_cases(
        triage_data,
        kind=Kind(chosen.kind) if chosen.kind else None,
        miss=Miss(chosen.miss) if chosen.miss else None,
        judge=filters.judge,
        model=filters.model,
        asked=filters.format,
    )


def _bar(*, hidden: frozenset[int], folded: bool = False) -> Chosen:
    """The filters; folded into one button while a conversation is open. Every one is drawn also then: one that is not drawn would leave the address."""
    fields = shared_filters.Fields(hidden)
    on = sum(map(_is_on, KEYS))
    if folded:
        with st.popover(f"Filters ({on} on)" if on else "Filters", icon=":material/tune:", key="filters_folded"):
            rest = _more(fields)
            first: dict[str, Any] = {"search": fields.search(), **fields.choose("theme", "reads")}
            of_panels = fields.of_cases("kind", "miss")
    else:
        with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
            first = {"search": fields.search(), **fields.choose("theme", "reads")}
            with st.popover("More filters", icon=":material/tune:", width=160, key="filters_more"):
                rest = _more(fields)
                of_panels = fields.of_cases("kind", "miss")
            st.button("Clear", icon=":material/close:", type="tertiary", key="clear", disabled=not on, on_click=_clear)
    return Chosen(Filters(**{**rest, **first}), **of_panels)


def _more(fields: shared_filters.Fields) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    columns = (("dataset", "category", "axis"), ("subset", "language", "sign"), ("model", "judge", "label"))
    for names, column in zip(columns, st.columns(3), strict=True):
        with column:
            chosen |= fields.choose(*names)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        kept: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
        points = st.slider("Points", MIN_POINTS, MAX_POINTS, ALL_POINTS, key="points", **kept)
        chosen["judges_differ"] = fields.judges_differ()
    points_of = shared_filters.points_of(chosen.pop("sign"), *points)
    return {**chosen, **points_of, **fields.of_tasks(), **fields.of_cases("source", "format", "level")}


def _clear() -> None:
    """Ask for nothing. An address is kept by its fields: Streamlit takes nothing out of it but by them."""
    for key in filter(_is_on, KEYS):
        st.session_state[key] = NOTHING.get(key)


def _is_on(key: str) -> bool:
    if key in st.session_state:
        return bool(st.session_state[key] != NOTHING.get(key))
    return key in st.query_params


def _listed(filters: Filters, judge: str, only: frozenset[int] | None) -> pd.DataFrame:
    """What fits. Conflicts alone need no walk over all reads: the list counts them, but for those on levels of care, which take two readers."""
    rest = replace(filters, reads=None)
    if filters.reads == CONFLICTING and not rest.on_items() and not rest.on_responses():
        listed = common.listed(rest, judge, hidden, only)
        if listed["n_level_readers"].le(1).all():
            return listed.loc[listed["n_conflicting"].gt(0)]
    return common.listed(filters, judge, hidden, only)


def _content(asked: Chosen) -> None:
    """The list, or the conversation that is open."""
    filters = asked.filters
    if filters.search or filters.language:
        prepare_search(common.engine())
    judge = filters.judge or (judges[0] if judges else "")
    listed, on = _listed(filters, judge, asked.cases(viewer)), asked.words()
    if chosen_example is not None and (why_not := reason(check_can_open, viewer, chosen_example, hidden)):
        st.html(html.notice(why_not))
        with st.container(horizontal=True):
            st.page_link(routes.REVIEW, label="Review", icon=":material/rate_review:")
            if st.button("List", icon=":material/arrow_back:", key="back"):
                _open(None)
        return
    if chosen_example is not None:
        _detail(viewer, row, listed, filters, judge, chosen_example)
        return
    if on:
        st.html(html.chips([f"{len(listed):,} fit", *on]))
    if hidden:
        wait = "One conversation waits" if len(hidden) == 1 else f"{len(hidden):,} conversations wait"
        why = "they are shown here once you have submitted it, so that no verdict influences yours."
        st.html(html.quiet(f"{wait} for your {own_act(viewer)}; {why}"))
    if not listed.empty:
        _listing(listed, judge)
    elif on:
        st.html(html.notice("No conversation fits these filters. Clear one of them."))
    else:
        common.offer_import(viewer)


viewer = common.require()
judges = common.read("judges")
hidden = common.blind(viewer)
chosen_example = common.row_number(st.query_params.get("example", ""))
is_open = chosen_example is not None
if not is_open:
    counts = common.read("counts", hidden)
    line = f"{holdings(counts)}, {counts['judge_verdicts']:,} judges' and {counts['physician_verdicts']:,} physicians' verdicts"
    st.html(html.heading("Conversations and verdicts", line if counts["examples"] else common.EMPTY))
row = st.container(horizontal=is_open, vertical_alignment="center", key="choose" if is_open else "find")
bar, content = row.container(width="content" if is_open else "stretch"), st.container()
if any(_is_on(key) or key in st.query_params for key in KEYS):  # before the fields are drawn
    with bar:
        asked = _bar(hidden=hidden, folded=is_open)
    with content:
        _content(asked)
else:  # first what is read: the fields are many
    with content:
        _content(Chosen(Filters()))
    with bar:
        asked = _bar(hidden=hidden, folded=is_open)
    if asked != Chosen(Filters()):
        st.rerun()
