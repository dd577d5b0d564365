"""What a reader and the lead say to one another on a response: skip it, flag it, and what the lead answered."""

from typing import NamedTuple

import streamlit as st

from evalcore.reading.thread_queries import OF_READER, Line, Thread, threads
from evalcore.reading.threads import MAX_LINE
from evalcore.stats.wording import counted
from evalcore.study.schema import NoteKind, Viewer
from pages.review.html import stamp
from pages.shared import common, html, keys
from pages.shared.keys import Press

DID = {
    NoteKind.SKIP: "skipped it",
    NoteKind.FLAG: "flagged it",
    NoteKind.ANSWER: "answered",
    NoteKind.CLOSE: "closed this",
    NoteKind.RETURN: "returned it to be read",
}
WHO_SEES = "Only you and the leads see it. What is skipped counts as no read, and a lead can return it to you."


class Told(NamedTuple):
    """What the form was sent with."""

    line: str
    skip: bool


def is_open(number: int) -> bool:
    """Whether the form of a read is open."""
    return bool(st.session_state.get(f"telling_{number}"))


def button(number: int) -> None:
    """Opens the form of a read."""
    if not is_open(number):
        keys.press(Press.TELL, "Tell the lead", f"tell_lead_{number}", on_click=_open, args=(number,))


def _open(number: int) -> None:
    st.session_state[f"telling_{number}"] = True


def close(number: int) -> None:
    """The form goes, with what was typed."""
    st.session_state.pop(f"telling_{number}", None)


def form(number: int) -> Told | None:
    """The line to the lead on the read in hand; None where nothing was sent."""
    with st.form(f"tell_{number}", border=False, enter_to_submit=False):
        such = "For instance: the conversation is cut off"
        line = st.text_input("Line to the lead", key=f"line_{number}", max_chars=MAX_LINE, placeholder=such)
        with st.container(horizontal=True, gap="small", key="tell_row"):
            skip = st.form_submit_button("Skip", key=f"skip_{number}")
            flag = st.form_submit_button("Flag, and read on", key=f"flag_{number}")
            st.form_submit_button("Not now", key=f"not_now_{number}", on_click=close, args=(number,))
        st.html(stamp(WHO_SEES))
    return Told(line or "", skip) if skip or flag else None


def done(number: int, told: Told, what: str) -> None:
    """It is saved: the form closes, and the next page says so."""
    close(number)
    st.session_state["review_done"] = f"{what} {'skipped' if told.skip else 'flagged'}; the lead has your line"


def skipped_words(n: int) -> str:
    """That some items are set aside; empty where none is."""
    return f"{n:,} skipped" if n else ""


def shown(thread: Thread, *, with_head: bool, reader: str = "You") -> str:
    """A thread, oldest line first; above it, where that is not plain, which conversation it is about. `reader`: what the reader is called here."""
    head = f'<p class="or-thread-head" dir="auto">{html.escaped(thread.first_words)}</p>' if with_head else ""
    lines = "".join(_line(line, reader) for line in thread.lines)
    return f'<section class="or-thread" aria-label="Lines between the reader and the lead">{head}{lines}</section>'


def _line(line: Line, reader: str) -> str:
    lead = "The lead" if reader == "You" else line.written_by
    who = html.sentence(reader if line.kind in OF_READER else lead)
    text = f'<span dir="auto">{html.escaped(line.text)}</span>' if line.text else ""
    return f"<p><small><b>{who}</b> {DID[line.kind]}, {common.local_minute(line.at)}</small>{text}</p>"


def summary(found: list[Thread]) -> str:
    """What a reader has told the lead, in a line."""
    n_skipped, n_waiting = sum(thread.is_skipped for thread in found), sum(thread.waits for thread in found)
    waiting = f"{n_waiting:,} {'waits' if n_waiting == 1 else 'wait'} for an answer" if n_waiting else "all answered"
    said = ", ".join(words for words in (skipped_words(n_skipped), waiting) if words)
    return f"What you told the lead on {counted(len(found), 'response')}: {said}"


def own(viewer: Viewer) -> None:
    """Everything that the viewer has told the lead; folded, unless a lead has answered something that is not closed."""
    found = common.ask(threads, person_id=viewer.person_id)
    if found:
        is_news = any(not thread.waits and not thread.is_closed for thread in found)
        with st.expander(summary(found), icon=":material/forum:", expanded=is_news):
            for thread in found:
                st.html(shown(thread, with_head=True))
