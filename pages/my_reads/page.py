"""What I have read, how it stands to what was settled, and amending it."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import reviewing
from evalcore.reading.read_queries import my_reads
from evalcore.reading.reference import TASK, by_task, final_labels, read_words, totals
from evalcore.reading.reviewing import OpenReview
from evalcore.stats.wording import counted, decimal
from evalcore.study.db import reading
from evalcore.study.policies import allows, check_can_open, check_can_read
from evalcore.study.schema import Ask, ReadingState, Viewer
from pages.review import telling
from pages.review.html import compared, decided_words
from pages.review.panels import DecidingPanel, refusal
from pages.shared import common, html, kept_choices, routes, tables
from pages.shared.keys import Panel

ASKS = {Ask.RUBRIC: "Criteria", Ask.RESPONSE_ACUITY: "Response's level", Ask.GOLD_ACUITY: "Case's level"}
HELP = {
    "Changed": "Items on which your label after the judge was shown is another than your first",
    "Settled": "Items that an adjudicator has settled",
    "Settled otherwise": "Items on which the adjudicator gave another label than you; both stay on record",
}
WIDTHS = {"Read": 122, "Conversation": 233, "Question": 105, "Model": 105}
WIDTHS |= {"Items": 55, "Changed": 70, "Settled": 65, "Settled otherwise": 118}
"""With the minutes and the boxes to choose by, all that a window of 1280 has beside the sidebar."""


def listing(reads: pd.DataFrame, items: pd.DataFrame) -> None:
    """My reads as a table; a click opens one."""
    table = reads.merge(by_task(items), on=TASK, how="left")
    is_open = table["example_id"].map(lambda example: allows(check_can_open, viewer, example, hidden)).astype(bool)
    columns = {
        "Read": [common.local_minute(moment) for moment in table["read_at"]],
        "Conversation": table["first_words"],
        "Question": [ASKS[Ask(ask)] for ask in table["ask"]],
        "Model": table["model"].where(is_open).fillna("–"),
        "Items": table["n_items"],
        "Changed": table["n_changed"],
        "Settled": table["n_settled"],
        "Settled otherwise": table["n_off_final"],
        "Minutes": [decimal(seconds / 60, 1) for seconds in table["seconds"].astype(float)],
    }
    config = {name: st.column_config.Column(width=width, help=HELP.get(name)) for name, width in WIDTHS.items()}
    config["Minutes"] = st.column_config.TextColumn(width=68, alignment="right")
    place = tables.choose(columns, key="my_list", column_config=config, alt="Responses that you have read")
    if place is not None:
        row = reads.iloc[place]
        if pd.isna(row["reading_id"]):
            st.switch_page(routes.BROWSE, query_params={"example": str(row["example_id"])})
        st.query_params["read"] = str(int(row["reading_id"]))
        st.rerun()
    foot = (
        "Click a row to open it. What was not read in Review opens in Browse, and has no minutes. You were asked for labels on a rubric's criteria, "
        "for the level of care that the response gives, or for the level that the case needs. "
        "The model and what was settled are shown once nothing on the conversation waits for you."
    )
    st.html(html.foot(foot))


def detail(viewer: Viewer, reading_id: int, items: pd.DataFrame) -> None:
    """One read: the texts, and each criterion with what was said; amend it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("My reads", icon=":material/arrow_back:", key="back_to_list"):
            st.query_params.pop("read", None)
            st.rerun()
        as_markdown = kept_choices.formatted()
    try:
        desk = reviewing.open_review(common.engine(), viewer, reading_id)
    except OverreadError as error:
        st.html(html.notice(str(error), kind="error"))
        return
    left, right = st.columns([58, 42], gap="large")
    with left, st.container(key="reading"):
        st.html(html.conversation(desk.material.messages, as_markdown=as_markdown))
        if desk.material.response is not None:
            st.html(html.response("The response", "", desk.material.response, as_markdown=as_markdown))
    with right, st.container(key="desk"):
        amend(viewer, reading_id, final_labels(items, desk.asked.ask, desk.asked.example_id, desk.asked.response_id))


@common.fragment
def amend(viewer: Viewer, reading_id: int, finals: dict[int | None, str]) -> None:
    """A read that is done, item by item: mine, the judge's, the reference label by criterion_id (None for acuity); amended by a new verdict."""
    desk = reviewing.open_review(common.engine(), viewer, reading_id)
    if desk.state is ReadingState.DONE:
        refusal()
        _Amending(viewer, desk, finals).draw()
        return
    st.html(html.notice("This read still waits for your decisions."))
    st.page_link(routes.REVIEW, label="Resume in Review", icon=":material/rate_review:")


class _Amending(DecidingPanel):
    panel = Panel.AMEND
    kind = " or-compared"

    def __init__(self, viewer: Viewer, desk: OpenReview, finals: dict[int | None, str]) -> None:
        super().__init__(viewer, desk)
        self.keys = [key for key in desk.keys if key in desk.first]
        self._finals = finals

    def _lines(self) -> list[str]:
        lines = []
        for place, key in enumerate(self.keys):
            first, decided, judged = self.desk.first[key], self.desk.decided.get(key), self.desk.judged.get(key)
            labels = {"you": (decided or first).label, "judge": judged.label if judged else None}
            labels["final"] = self._finals.get(key)
            how: Any = {"place": place, "is_current": place == self.at}
            lines.append(compared(self.desk, key, labels, decided_words(first, decided), **how))
        return lines


viewer = common.require(check_can_read)
with reading(common.engine()) as session:
    reads = my_reads(session, viewer)
chosen = common.row_number(st.query_params.get("read", ""))
hidden = common.blind(viewer)
items = common.read("own_items", viewer, hidden)
if chosen is not None:
    detail(viewer, chosen, items)
    st.stop()
own = totals(items)
so_far = "You have no verdicts yet. Open Review to start."
if own.n_items:
    so_far = (
        f"{read_words(own.n_items, own.n_responses, own.n_cases)}. You changed {counted(own.n_changed, 'label')} after you had seen the judge's. "
        f"An adjudicator settled {counted(own.n_settled, 'item')}, {own.n_off_final:,} of them with another label than yours."
    )
st.html(html.heading("What you have read", so_far))
telling.own(viewer)
if reads.empty:
    st.page_link(routes.REVIEW, label="Open Review", icon=":material/rate_review:")
    st.stop()
listing(reads, items)
