"""Find a conversation; read it beside every model's answer and every verdict; override the judge."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.errors import NotAllowed
from evalcore.reading import exposing
from evalcore.reading.one_conversation import Opened
from evalcore.study.acting import prepare_search
from evalcore.study.browse import Filters
from evalcore.study.contents import holdings
from evalcore.study.db import reading
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import allows, check_can_open, check_can_read, own_act, reason
from evalcore.study.schema import Format, Viewer
from pages.browse import case, find
from pages.shared import common, html, routes, rubric, suspects
from pages.shared import filters as shared_filters
from pages.shared.html import response_names

SCORED_MODELS = 6
MAX_SHOWN = 3
LIST_HEIGHT = 600
SCORE_WIDTH = 84
WORDS = {"Physicians": 160, "Language": 76}
THEME_WIDTH, CONVERSATION_WIDTH, WITHOUT_SCORES = 132, 218, 470
NUMBERS = {"Criteria": 60, "Turns": 52}
"""Widths in pixels: with the scores of three models they fit beside the sidebar on a screen of 1280."""
FORMATS = {
    Format.QA.evaluation: "asked for a level of care", Format.CONVERSATION.evaluation: "told the patient, no level asked for"
}  # fmt: skip
"""How a model was asked about a case of triage."""
OPENED = "You see others' verdicts here: this conversation is no longer one of your blind reads."


def listing(listed: pd.DataFrame, judge: str) -> None:
    """The conversations as a table; a click opens one."""
    scores = [column for column in listed.columns if column.startswith("score ") and listed[column].notna().any()]
    scores = scores[:SCORED_MODELS]
    theme = "Theme" if listed["source"].isna().all() else "Theme or source"
    table = pd.DataFrame(
        {
            theme: listed["theme"]
            .map(shared_filters.plain, na_action="ignore")
            .astype(object)  # of cases alone none has a theme, and pandas takes that for numbers
            .fillna(listed["source"])
            .fillna("–"),
            "Conversation": listed["first_words"],
            **{column: listed[column] for column in scores},
            "Physicians": [_marks(row) for row in listed.itertuples()],
            "Criteria": listed["n_criteria"].where(listed["source"].isna()).astype("Int64"),
            "Turns": listed["n_turns"],
            "Language": listed["language"].map(LANGUAGES).fillna("–"),
        }
    )
    if table["Criteria"].isna().all():  # cases alone
        table = table.drop(columns="Criteria")
    bars = {
        column: st.column_config.ProgressColumn(
            column.removeprefix("score "), min_value=0.0, max_value=1.0, format="%.2f", width=SCORE_WIDTH
        )
        for column in scores
    }
    small = {name: st.column_config.NumberColumn(width=width) for name, width in NUMBERS.items()}
    words = {
        name: st.column_config.TextColumn(width=width)
        for name, width in {
            **WORDS, theme: THEME_WIDTH, "Conversation": CONVERSATION_WIDTH if scores else WITHOUT_SCORES,
        }.items()
    }  # fmt: skip
    event = st.dataframe(
        table,
        key="list",
        hide_index=True,
        height=min(LIST_HEIGHT, 38 + 35 * max(len(table), 1)),
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        column_config=bars | small | words,
        placeholder="",
        alt="Conversations that fit the filters",
    )
    touched = [*event.selection.rows, *(row for row, _ in event.selection.cells)]
    if touched:
        open_(int(listed.index[touched[0]]))
    made = (
        f"Scores are by the judge {judge}: points of met criteria over the positive points; an empty cell has no score."
        if judge and scores
        else ""
    )
    blind = (
        "Opening it shows its verdicts, and takes it out of your blind reads. "
        if allows(check_can_read, viewer)
        else ""
    )
    st.html(html.foot(f"Click a row to open it. {blind}{made}"))


def _marks(row: object) -> str:
    marks = (
        (getattr(row, "n_overridden", 0), "overridden"),
        (getattr(row, "n_conflicting", 0), "in conflict"),
    )
    if not any(count for count, _ in marks):
        readers = int(getattr(row, "n_level_readers", 0))
        return "read, none overridden" if getattr(row, "n_read", 0) else f"read by {readers}" if readers else "–"
    return " · ".join(f"{int(count)} {word}" for count, word in marks if count)


def waiting_words(n_hidden: int) -> str:
    """Why some conversations are not in the list."""
    wait = "One conversation waits" if n_hidden == 1 else f"{n_hidden:,} conversations wait"
    return f"{wait} for your {own_act(viewer)}; they are shown here once you have submitted it, so that no verdict pulls yours."


def open_(example_id: int | None) -> None:
    """Go to a conversation, or back to the list; the address says where."""
    if example_id is None:
        st.query_params.pop("example", None)
    else:
        st.query_params["example"] = str(example_id)
    st.rerun()


def steps(listed: pd.DataFrame, example_id: int) -> None:
    """Back to the list, one back, one further."""
    order = list(listed.index)
    place = order.index(example_id) if example_id in order else None
    before = order[place - 1] if place else None
    after = order[place + 1] if place is not None and place + 1 < len(order) else None
    if st.button("List", icon=":material/arrow_back:", key="back"):
        open_(None)
    if st.button("Previous", disabled=before is None, key="previous", shortcut="Left"):
        open_(before)
    if st.button("Next", disabled=after is None, key="next", shortcut="Right"):
        open_(after)
    words = f"{place + 1:,} of {len(order):,}" if place is not None else "outside the filters"
    st.html(f'<span class="or-stamp">{html.escaped(words)}</span>', width="content")


def detail(
    viewer: Viewer, row: DeltaGenerator, listed: pd.DataFrame, filters: Filters, judge: str, example_id: int
) -> None:
    """The conversation, the chosen responses, and the rubric; `row` holds what steers them."""
    try:
        opened = exposing.open_conversation(common.engine(), viewer, example_id)
    except NotAllowed as refusal:  # it was assigned to the viewer this very moment
        st.html(html.notice(str(refusal), kind="error"))
        return
    if opened is None:
        st.html(html.notice(f"This study has no conversation {example_id}. The link may belong to another study."))
        return
    with row:
        steps(listed, example_id)
        chosen, as_markdown = choose(opened, filters)
    example = opened.example
    example["is_answered"] = not opened.responses.empty
    tags = [example["theme"], example["category"], LANGUAGES.get(example["language"] or ""), *opened.subsets]
    st.html(html.chips([*(shared_filters.plain(tag) for tag in tags if tag), example["prompt_id"]]))
    if allows(check_can_read, viewer):
        st.html(html.quiet(OPENED))
    if example["provisional"]:
        st.html(
            html.notice(
                "This conversation is known only from a result on it: import its examples file to see its theme and whole rubric."
            )
        )
    panel: Callable[[list[int]], None]
    if opened.is_case:
        panel = partial(case.panel, viewer, example_id)
        responses = opened.responses
        if not responses.empty and responses["text"].eq("").all():
            st.html(html.quiet("Of the answers to this case only the levels are known, not the texts."))
    else:
        panel = _rubric_panel(viewer, filters, judge, example_id)
    _laid_out(example, chosen, judge, panel, as_markdown=as_markdown)


def _rubric_panel(viewer: Viewer, filters: Filters, judge: str, example_id: int) -> Callable[[list[int]], None]:
    """Draws the rubric beside some responses; whether all of it, is asked here."""
    matching = common.read("matching", filters, example_id)
    only = matching if matching and st.toggle("Only criteria that fit the filters", key="only") else None
    return lambda shown: rubric.panel(viewer, example_id, shown, judge, only)


def _laid_out(
    example: dict[str, Any], chosen: pd.DataFrame, judge: str, panel: Callable[[list[int]], None], *, as_markdown: bool
) -> None:
    """One response beside what is said of it; several beside one another above that."""
    shown = [int(number) for number in chosen["response_id"]]
    if len(shown) > 1:
        st.html(html.conversation(example["messages"], as_markdown=as_markdown))
        for (_, response), column in zip(chosen.iterrows(), st.columns(len(shown), gap="medium"), strict=True):
            with column:
                _response(response, judge, as_markdown=as_markdown)
                suspects.show(int(response["response_id"]))
        st.html('<hr class="or-rule">')
        with st.container(key="rubric_wide"):
            panel(shown)
        return
    left, right = st.columns([58, 42], gap="large")
    with left, st.container(key="reading"):
        st.html(html.conversation(example["messages"], as_markdown=as_markdown))
        for _, response in chosen.iterrows():
            _response(response, judge, as_markdown=as_markdown)
            suspects.show(int(response["response_id"]))
        if not shown and not example["is_answered"]:
            st.html(
                html.notice("No model has answered this conversation yet: import a results file on the Study page.")
            )
    with right, st.container(key="rubric"):
        panel(shown)


def choose(opened: Opened, filters: Filters) -> tuple[pd.DataFrame, bool]:
    """Which responses are shown, one to three, and whether Markdown is drawn. Those of which only the level is known have nothing to show."""
    responses = opened.responses.assign(name=response_names(opened.responses)).set_index("name", drop=False)
    responses = responses.loc[responses["text"].ne("") | (not opened.is_case)]
    names = list(responses.index)
    fits = (
        pd.Series(data=True, index=responses.index) if filters.model is None else responses["model"].eq(filters.model)
    )
    if filters.format is not None:
        fits &= responses["evaluation"].eq(Format(filters.format).evaluation)
    preferred = list(responses.index[fits])[:1]
    kept = [name for name in st.session_state.get("shown", []) if name in names]
    st.session_state["shown"] = kept or preferred
    shown = st.multiselect(
        "Responses side by side", names, key="shown", max_selections=MAX_SHOWN, bind="query-params",
        placeholder="Choose one to three responses", label_visibility="collapsed", width=330,
    )  # fmt: skip
    as_markdown = st.toggle("Formatted text", key="formatted", persist_state="session")
    return responses.loc[shown or preferred], as_markdown


def _response(row: pd.Series, judge: str, *, as_markdown: bool) -> None:
    if row["evaluation"] in FORMATS:
        st.html(html.response(row["name"], FORMATS[row["evaluation"]], row["text"], as_markdown=as_markdown))
        _sent(row, as_markdown=as_markdown)
        return
    with reading(common.engine()) as session:
        scores = common.judge_scores(session)
    found = scores.loc[scores["response_id"].eq(row["response_id"]) & scores["judge"].eq(judge)]
    words = "no score yet"
    if len(found) and pd.notna(found["score"].iloc[0]):
        first = found.iloc[0]
        words = (
            f"score by {judge}: {first['score']:.2f} ({first['achieved'] or 0:.0f} of {first['possible']:.0f} points)"
        )
    elif len(found):
        words = f"no score by {judge}: a verdict is missing, or no criterion has positive points"
    st.html(html.response(row["name"], words, row["text"], as_markdown=as_markdown))
    _sent(row, as_markdown=as_markdown)


def _sent(row: pd.Series, *, as_markdown: bool) -> None:
    if isinstance(row["sent_messages"], str):
        with st.expander("This model was sent another prompt than the conversation above", icon=":material/warning:"):
            st.html(html.conversation(json.loads(row["sent_messages"]), as_markdown=as_markdown))


viewer = common.require()
judges = common.read("judges")
hidden = common.blind(viewer)
chosen_example = common.row_number(st.query_params.get("example", ""))
is_open = chosen_example is not None
if not is_open:
    counts = common.read("counts", hidden)
    line = f"{holdings(counts)}, {counts['judge_verdicts']:,} judges' and {counts['physician_verdicts']:,} physicians' verdicts"
    st.html(html.heading("Read conversations beside their verdicts", line))
top = st.container(horizontal=is_open, vertical_alignment="center", key="choose" if is_open else "find")
with top:
    asked = find.bar(hidden=hidden, folded=is_open)
filters = asked.filters
if filters.search or filters.language:
    prepare_search(common.engine())
judge = filters.judge or (judges[0] if judges else "")
listed = common.read("listed", filters, judge, hidden, asked.cases(viewer))
on = asked.words()
if on and not is_open:
    st.html(html.chips([f"{len(listed):,} fit", *on]))
if hidden and not is_open:
    st.html(html.quiet(waiting_words(len(hidden))))
if chosen_example is not None and (why_not := reason(check_can_open, viewer, chosen_example, hidden)):
    st.html(html.notice(why_not))
    with st.container(horizontal=True):
        st.page_link(routes.REVIEW, label="Review", icon=":material/rate_review:")
        if st.button("List", icon=":material/arrow_back:", key="back"):
            open_(None)
elif chosen_example is not None:
    detail(viewer, top, listed, filters, judge, chosen_example)
elif listed.empty and not on:
    st.html(html.notice("Nothing is in this study yet. Begin with a file of examples or results."))
    st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
elif listed.empty:
    st.html(html.notice("No conversation fits these filters. Clear one of them."))
else:
    listing(listed, judge)
