"""Conflicting reads side by side: settle them, once and with a reason."""

import pandas as pd
import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import adjudication, read_queries
from evalcore.reading.adjudication import Key, Queue
from evalcore.reading.conflicts import SENTENCES
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted
from evalcore.study import contents
from evalcore.study.db import reading
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import allows, check_can_adjudicate, check_can_export
from pages.adjudicate import html, settling
from pages.shared import common, routes
from pages.shared import html as shared_html
from pages.shared.keys import Press

TITLE = "Settle where readers differ"
LIST_HEIGHT = 560
BLIND_TOO = "Conversations that wait for your own first read are left out until you have submitted it."
VIEWS = {"waiting": "Waiting", "settled": "Settled by you", "faults": "For the rubric's authors"}


def chosen_case() -> Key | None:
    """The response or case that the address names; None where it names none."""
    word = st.query_params.get("case", "")
    number = common.row_number(word[1:])
    if number is None or word[:1] not in ("r", "e"):
        return None
    if word[0] == "e":
        return number, None
    with reading(common.engine()) as session:
        example = read_queries.example_of(session, number)
    return (example if example is not None else 0), number


def open_(key: Key) -> None:
    """One response or case, by its address."""
    st.query_params["case"] = settling.case_word(key)
    st.rerun()


def left_out(queue: Queue) -> list[str]:
    """What else waits, and why not for the viewer."""
    said = []
    if queue.n_own:
        said.append(f"{queue.n_own:,} more wait that you have read yourself: another adjudicator settles them.")
    if common.to_read(viewer):  # said whether or not their readers differ: how many do is not for a blind reader
        said.append(BLIND_TOO)
    return said


def waiting(queue: Queue) -> None:
    """What waits, the worst first; a click opens one."""
    if not queue.waiting:
        st.html(
            shared_html.notice(
                "Nothing waits to be settled. Items come here once all their readers have submitted and one of these holds: the first reads "
                "conflict, a reader cannot assess, or the item is to be checked."
            )
        )
        st.page_link(routes.BROWSE, label="Read conversations", icon=":material/menu_book:")
        return
    if st.button("Open the first", key="open_first", type="primary", shortcut="Ctrl+Enter", icon=":material/balance:"):
        open_(queue.waiting[0].key)
    table = pd.DataFrame(
        {
            "Why": ["; ".join(SENTENCES[reason] for reason in row.reasons) for row in queue.waiting],
            "Conversation": [row.first_words for row in queue.waiting],
            "In question": [row.n_items for row in queue.waiting],
            "Points at stake": [NO_VALUE if row.points is None else f"{row.points:.0f}" for row in queue.waiting],
            "Language": [LANGUAGES.get(row.language or "", "–") for row in queue.waiting],
        }
    )
    event = st.dataframe(
        table,
        key="waiting",
        hide_index=True,
        height=min(LIST_HEIGHT, 38 + 35 * len(table)),
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        column_config={
            "Why": st.column_config.TextColumn(width=250),
            "Conversation": st.column_config.TextColumn(width=375),
            "In question": st.column_config.NumberColumn(width=90),
            "Points at stake": st.column_config.TextColumn(width=110),
            "Language": st.column_config.TextColumn(width=95),
        },
        alt="Responses that wait for an adjudicator, the worst first",
    )
    touched = [*event.selection.rows, *(row for row, _ in event.selection.cells)]
    if touched:
        open_(queue.waiting[touched[0]].key)


def settled() -> None:
    """What the viewer has settled, to look at again and correct."""
    found = adjudication.settled(common.engine(), viewer)
    if found.empty:
        st.html(shared_html.notice("You have settled nothing yet."))
        return
    table = pd.DataFrame(
        {
            "Settled": [common.local_time(moment) for moment in found["settled_at"]],
            "Conversation": found["first_words"],
            "Items": found["n_items"],
        }
    )
    event = st.dataframe(
        table, key="settled", hide_index=True, height=min(LIST_HEIGHT, 38 + 35 * len(table)), on_select="rerun",
        selection_mode=["single-row", "single-cell"], alt="Responses that you have settled, the newest first",
    )  # fmt: skip
    touched = [*event.selection.rows, *(row for row, _ in event.selection.cells)]
    if touched:
        row = found.iloc[touched[0]]
        open_((int(row["example_id"]), None if pd.isna(row["response_id"]) else int(row["response_id"])))


def faults() -> None:
    """Criteria that adjudicators or readers call wrong, ambiguous or unclear."""
    found = adjudication.at_fault(common.engine(), viewer)
    if found.empty:
        st.html(shared_html.notice("No criterion has been called wrong, ambiguous or unclear."))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            shared_html.quiet(
                f"{counted(len(found), 'criterion', 'criteria')}, those called at fault most often first. Nobody is named."
            ),
            width="content",
        )
        if allows(check_can_export, viewer):
            st.page_link(routes.EXPORT, label="Export this list", icon=":material/download:")
    rows = found.astype(object).where(found.notna(), None).to_dict(orient="records")
    st.html("".join(html.fault({str(name): value for name, value in row.items()}) for row in rows))


def lists(queue: Queue) -> None:
    """What waits, what the viewer has settled, and what goes to the rubric's authors."""
    n_waiting = len(queue.waiting)
    line = (
        f"{counted(n_waiting, 'response')} {'waits' if n_waiting == 1 else 'wait'}, with {counted(queue.n_items, 'item')} in question"
        if n_waiting
        else "Nothing waits"
    )
    st.html(shared_html.heading(TITLE, line))
    saved = st.session_state.pop("settling_saved", None)
    if saved:
        st.html(shared_html.notice(f"Settled, {saved}."))
    view = st.segmented_control(
        "View", list(VIEWS), default="waiting", required=True, format_func=VIEWS.__getitem__, key="adjudicate_view",
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    {"waiting": lambda: waiting(queue), "settled": settled, "faults": faults}[view or "waiting"]()
    for sentence in left_out(queue):
        st.html(shared_html.quiet(sentence))
    st.html(
        shared_html.foot(
            "First reads decide what conflicts; a read that was changed after the judge was shown settles nothing. An item waits once all its "
            "readers have submitted. The worst come first: levels of care far apart, then conflicts by their points. What tells the judge's verdict "
            "stays away until you ask for that verdict: severe harm that a reader claims, why a reader changed a label, that readers agree "
            "against the judge. Until it is settled, a conversation that waits for you is hidden from you on all other pages."
        )
    )


def steps(queue: Queue, key: Key) -> Key | None:
    """Where the viewer is in what waits, and the ways on. Returns what comes next."""
    place = queue.place(key)
    others = [row.key for row in queue.waiting if row.key != key]
    before = queue.waiting[place - 1].key if place else None
    after = queue.waiting[place + 1].key if place is not None and place + 1 < len(queue.waiting) else None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="settling_top"):
        words = f"{place + 1:,} of {len(queue.waiting):,} waiting" if place is not None else "Not waiting"
        st.html(html.top(words, st.session_state.get("settling_saved", "")), width="stretch")
        for label, shortcut, target in (
            ("Previous", Press.BACK_CASE.key, before),
            ("Next", Press.NEXT_CASE.key, after),
        ):
            if st.button(
                label, key=f"case_{shortcut}", shortcut=shortcut, disabled=target is None, on_click=settling.keep_notes
            ):
                open_(target or key)
        if st.button("All that wait", key="case_list", shortcut=Press.LIST.key, on_click=settling.keep_notes):
            st.query_params.pop("case", None)
            st.session_state.pop("settling_saved", None)
            st.rerun()
        st.toggle("Formatted text", key="formatted", persist_state="session")
    return after or (others[0] if others else None)


def opened(queue: Queue, key: Key) -> None:
    """The conversation and the response on the left, what is in question on the right."""
    try:
        case = adjudication.open_case(common.engine(), viewer, key)
    except OverreadError as error:
        st.html(shared_html.heading(TITLE, "This one is not for you to settle"))
        st.html(shared_html.notice(str(error), kind="warning"))
        if st.button("All that wait", key="case_list", shortcut=Press.LIST.key):
            st.query_params.pop("case", None)
            st.rerun()
        return
    following = steps(queue, key)
    with reading(common.engine()) as session:
        guideline = contents.guideline(session)
    as_markdown = bool(st.session_state.get("formatted"))
    left, right = st.columns([55, 45], gap="large")
    with left:
        st.html(html.texts(case.sheet, as_markdown=as_markdown))
    with right, st.container(key="rubric"):
        settling.panel(viewer, key, following, guideline.text if guideline else None)


viewer = common.require(check_can_adjudicate)
queue = adjudication.cases(common.engine(), viewer)
chosen = chosen_case()
if chosen is None:
    lists(queue)
else:
    opened(queue, chosen)
