"""Conflicting reads side by side: settle them, once and with a reason."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
import streamlit as st

from evalcore.errors import OverreadError
from evalcore.reading import adjudication, read_queries
from evalcore.reading.adjudication import Queue
from evalcore.reading.conflicts import SENTENCES, Key, Reason
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted, listed
from evalcore.study import contents
from evalcore.study.db import reading
from evalcore.study.languages import LANGUAGES
from evalcore.study.policies import allows, check_can_adjudicate, check_can_export
from pages.adjudicate import settling
from pages.shared import common, html, kept_choices, keys, routes, tables
from pages.shared.keys import Press

TITLE = "Settle where readers differ"
NOTHING = (
    "Nothing waits to be settled. Items come here once all their readers have submitted and one of these holds: the first reads "
    "conflict, a reader cannot assess, or the item is to be checked."
)
IN_QUESTION = "Criteria of the response, or its level of care, that an adjudicator has to settle"
AT_STAKE = "The most points that one of these criteria earns or costs"
SITTING = "sitting"
VIEWS = {"waiting": "Waiting", "settled": "Settled by you", "faults": "For the rubric's authors"}
WIDTHS = {"Why": 250, "Conversation": 375, "Points at stake": 110, "Language": 95}
FAULTS = {
    "n_settled_wrong": "wrong, by adjudicators",
    "n_settled_ambiguous": "ambiguous, by adjudicators",
    "n_readers_wrong": "wrong, by readers",
    "n_readers_ambiguous": "ambiguous, by readers",
    "n_readers_unclear": "unclear, by readers",
}


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


def why(reasons: Iterable[Reason]) -> str:
    """Why something waits, in one line."""
    words = ", ".join(SENTENCES[reason] for reason in reasons).lower()
    return words[:1].upper() + words[1:]


def waiting(queue: Queue) -> None:
    """What waits, the worst first; a click opens one."""
    if not queue.waiting:
        st.html(html.notice(NOTHING))
        st.page_link(routes.BROWSE, label="Read conversations", icon=":material/menu_book:")
        return
    if st.button("Open the first", key="open_first", type="primary", shortcut="Ctrl+Enter", icon=":material/balance:"):
        open_(queue.waiting[0].key)
    columns = {
        "Why": [why(row.reasons) for row in queue.waiting],
        "Conversation": [row.first_words for row in queue.waiting],
        "In question": [row.n_items for row in queue.waiting],
        "Points at stake": [NO_VALUE if row.points is None else str(row.points) for row in queue.waiting],
        "Language": [LANGUAGES.get(row.language or "", "–") for row in queue.waiting],
    }
    widths = {name: st.column_config.TextColumn(width=width) for name, width in WIDTHS.items()}
    config = {
        **widths,
        "In question": st.column_config.NumberColumn(width=90, help=IN_QUESTION),
        "Points at stake": st.column_config.TextColumn(
            width=WIDTHS["Points at stake"], alignment="right", help=AT_STAKE
        ),
    }
    alt = "Responses that wait for an adjudicator, the worst first"
    place = tables.choose(columns, key="waiting", column_config=config, alt=alt)
    if place is not None:
        open_(queue.waiting[place].key)


def settled() -> None:
    """What the viewer has settled, to look at again and correct."""
    table = adjudication.settled(common.engine(), viewer)
    if table.empty:
        st.html(html.notice("You have settled nothing yet."))
        return
    moments = table["settled_at"].map(common.local_time)
    columns = {"Settled": moments, "Conversation": table["first_words"], "Items": table["n_items"]}
    place = tables.choose(columns, key="settled", alt="Responses that you have settled, the newest first")
    if place is not None:
        row = table.iloc[place]
        open_((int(row["example_id"]), None if pd.isna(row["response_id"]) else int(row["response_id"])))


def faults() -> None:
    """Criteria that adjudicators or readers call wrong, ambiguous or unclear."""
    table = adjudication.at_fault(common.engine(), viewer)
    if table.empty:
        st.html(html.notice("No criterion has been called wrong, ambiguous or unclear."))
        return
    n = counted(len(table), "criterion", "criteria")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(html.quiet(f"{n}, those called at fault most often first. Nobody is named."), width="content")
        if allows(check_can_export, viewer):
            st.page_link(routes.EXPORT, label="Export this list", icon=":material/download:")
    st.html("".join(map(fault, table.astype(object).where(table.notna(), None).to_dict(orient="records"))))


def fault(row: dict[Any, Any]) -> str:
    """A criterion at fault: its text, how often it was called so, and in which words; nobody is named."""
    parts = [
        html.criterion(int(row["position"]), row["criterion"], row["points"], [str(row["prompt_id"])]),
        html.chips(f"{row[name]}× {words}" for name, words in FAULTS.items() if row[name]),
    ]
    for name, who in (("rationales", "Adjudicators"), ("notes", "Readers")):
        if row[name]:
            parts.append(f'<div class="or-fault-words"><h3>{who}</h3>{html.items(str(row[name]).splitlines())}</div>')
    return f'<section class="or-fault">{"".join(parts)}</section>'


def lists(queue: Queue) -> None:
    """What waits, what the viewer has settled, and what goes to the rubric's authors. A sitting ends here."""
    st.session_state.pop(SITTING, None)
    n, wait = len(queue.waiting), f"with {counted(queue.n_items, 'item')} in question"
    line = f"{counted(n, 'response')} {'waits' if n == 1 else 'wait'}, {wait}" if n else "Nothing waits"
    st.html(html.heading(TITLE, line))
    saved = st.session_state.pop("settling_saved", None)
    if saved:
        st.html(html.notice(f"Settled, {saved}."))
    view = st.segmented_control(
        "View", list(VIEWS), default="waiting", required=True, format_func=VIEWS.__getitem__, key="adjudicate_view",
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    {"waiting": lambda: waiting(queue), "settled": settled, "faults": faults}[view or "waiting"]()
    if queue.n_own:
        own = f"{queue.n_own:,} more wait that you have read yourself: another adjudicator settles them."
        st.html(html.quiet(own))
    if queue.n_foreign:
        counts = listed(f"{n:,} in {LANGUAGES.get(code, code)}" for code, n in sorted(queue.n_foreign.items()))
        st.html(html.quiet(f"More wait in languages that your profile does not name: {counts}."))
    if common.to_read(viewer):  # said whether or not their readers differ: how many do is not for a blind reader
        st.html(html.quiet("Conversations that wait for your own first read are left out until you have submitted it."))
    foot = (
        "First reads decide what conflicts; a read that was changed after the judge was shown settles nothing. An item waits once all its "
        "readers have submitted. The worst come first: levels of care far apart, then conflicts by their points. What tells the judge's verdict "
        "stays away until you ask for that verdict: severe harm that a reader claims, why a reader changed a label, that readers agree "
        "against the judge. Until it is settled, a conversation that waits for you is hidden from you on all other pages."
    )
    st.html(html.foot(foot))


def to_list() -> None:
    """Back to all that wait."""
    if keys.press(Press.LIST, "All that wait", "case_list", on_click=settling.keep_notes):
        st.query_params.pop("case", None)
        st.session_state.pop("settling_saved", None)
        st.rerun()


def sitting(queue: Queue, key: Key) -> list[Key]:
    """What waited when the viewer began, in the order of then: what is settled, or raised meanwhile, moves nothing. What came since begins a new one."""
    order: list[Key] = st.session_state.get(SITTING, [])
    if key not in order:
        order = st.session_state[SITTING] = [row.key for row in queue.waiting]
    return order


def steps(queue: Queue, key: Key) -> tuple[Key | None, bool]:
    """Where the viewer is in this sitting, and the ways on. Returns what comes next, behind this one or first of all, and whether texts are formatted."""
    order, still = sitting(queue, key), [row.key for row in queue.waiting]
    place = order.index(key) if key in order else -1
    before = next((other for other in reversed(order[: max(place, 0)]) if other in still), None)
    after = next((other for other in order[place + 1 :] if other in still), None) if place >= 0 else None
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="settling_top"):
        words = f"Response {place + 1:,} of {len(order):,}" if place >= 0 else "Not waiting"
        saved = html.escaped(st.session_state.get("settling_saved", ""))
        stamp = f'<span class="or-stamp or-saved" role="status">{saved}</span>' if saved else ""
        st.html(f'<div class="or-settling-top"><h1>{html.escaped(words)}</h1>{stamp}</div>', width="stretch")
        for label, act, target in (("Previous", Press.BACK_CASE, before), ("Next", Press.NEXT_CASE, after)):
            is_off = target is None
            if keys.press(act, label, f"case_{act.name}", disabled=is_off, on_click=settling.keep_notes):
                open_(target or key)
        to_list()
        as_markdown = kept_choices.formatted()
    return after or next((other for other in still if other != key), None), as_markdown


def opened(queue: Queue, key: Key) -> None:
    """The conversation and the response on the left, what is in question on the right."""
    try:
        case = settling.opened(viewer, key)
    except OverreadError as error:
        st.html(html.heading(TITLE, "This one is not for you to settle"))
        st.html(html.notice(str(error), kind="warning"))
        to_list()
        return
    following, as_markdown = steps(queue, key)
    with reading(common.engine()) as session:
        guideline = contents.guideline(session)
    sheet, answer = case.material, ""
    if sheet.response is not None:
        answer = html.response("The response", "its model is hidden", sheet.response, as_markdown=as_markdown)
    left, right = st.columns([55, 45], gap="large")
    with left:  # one element, so that the next case begins at its top
        st.html(f'<div class="or-case">{html.conversation(sheet.messages, as_markdown=as_markdown)}{answer}</div>')
    with right, st.container(key="rubric"):
        settling.panel(viewer, key, following, guideline.text if guideline else None)


viewer = common.require(check_can_adjudicate)
queue = adjudication.cases(common.engine(), viewer)
chosen = chosen_case()
if chosen is None:
    lists(queue)
else:
    opened(queue, chosen)
