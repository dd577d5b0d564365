"""What readers told the lead of responses that they skipped or flagged, and the lead's answers."""

import streamlit as st

from evalcore.reading.pace import BRIEFLY
from evalcore.reading.thread_queries import Thread
from evalcore.reading.threads import MAX_LINE, of_lead, reply
from evalcore.stats.wording import counted
from evalcore.study.schema import NoteKind, Viewer
from pages.review import telling
from pages.shared import common, html, routes

MOST = 20  # forms that one page draws
BLIND = (
    "Only this reader and the leads see a thread. Readers read blind: mention no verdict, judge or model, and not "
    "what you think of the response yourself."
)


def show(viewer: Viewer) -> None:
    """Every thread, what waits for an answer first."""
    found, n_hidden = of_lead(common.engine(), viewer)
    if not found and not n_hidden:
        return
    waiting = [thread for thread in found if thread.waits]
    st.subheader("Lines from readers", anchor=False)
    n_skipped = sum(thread.is_skipped for thread in found)
    waits = counted(len(waiting), "thread waits", "threads wait")
    st.html(html.quiet(f"{waits} for an answer; {n_skipped:,} skipped."))
    if n_hidden:
        more = f"{n_hidden:,} more are on conversations that wait for your own read; they are shown after it."
        st.html(html.quiet(more))
    if waiting:
        st.html(html.notice(BLIND))
    for thread in waiting[:MOST]:
        _thread(viewer, thread)
    if len(waiting) > MOST:
        st.html(html.quiet(f"{len(waiting) - MOST:,} more come once these are answered."))
    if others := [thread for thread in found if not thread.waits]:
        label = f"Answered or closed: {len(others):,}"
        with st.expander(label, key="lines_answered", on_change="rerun") as answered:
            if answered.open:
                for thread in others[:MOST]:
                    _thread(viewer, thread)


def _thread(viewer: Viewer, thread: Thread) -> None:
    name = f"{thread.task_id}_{thread.person_id}"
    with st.container(key=f"thread_{name}", gap="xsmall"):
        st.html(telling.shown(thread, with_head=True, reader=thread.reader))
        state = "skipped, not read" if thread.is_skipped else "closed" if thread.is_closed else "flagged"
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.html(html.quiet(f"{BRIEFLY[thread.ask]}, {thread.prompt_id}: {state}."), width="content")
            to = {"example": str(thread.example_id)}
            st.page_link(routes.BROWSE, label="Open in Browse", icon=":material/menu_book:", query_params=to)
        with st.form(f"reply_{name}", border=False, clear_on_submit=False, enter_to_submit=False):
            key = f"reply_{name}_{thread.lines[-1].number}"
            text = st.text_input(f"Answer to {thread.reader}", key=key, max_chars=MAX_LINE)
            with st.container(horizontal=True, gap="small"):
                kinds = {NoteKind.ANSWER: "Answer"}
                if thread.is_skipped:
                    kinds[NoteKind.RETURN] = "Return it to the reader"
                if not thread.is_closed:
                    kinds[NoteKind.CLOSE] = "Close"
                pressed = [kind for kind, words in kinds.items() if st.form_submit_button(words, key=f"{kind}_{name}")]
        for kind in pressed:
            to_whom, seen = (thread.task_id, thread.person_id), thread.lines[-1].number
            common.act(reply, viewer, *to_whom, kind, text or "", seen=seen)
