"""Read what is assigned: blind first, then beside the judge. All by keyboard."""

from typing import Any

import msgspec
import streamlit as st

from evalcore.errors import Frozen
from evalcore.reading import amending, queries, reviewing, threads
from evalcore.reading.queries import Progress
from evalcore.reading.reviewing import OpenReview
from evalcore.stats.wording import counted
from evalcore.study import contents, families
from evalcore.study.contents import family_table
from evalcore.study.db import reading
from evalcore.study.policies import check_can_read
from evalcore.study.schema import ReadingState, Viewer
from evalcore.study.tables import now
from pages.review import html, panels, practice, telling
from pages.shared import common, html as shared_html, kept_choices, routes, suspects


def names_model(desk: OpenReview) -> bool:
    """Whether the texts name one of the study's models or their makers, whoever wrote this one; looked up once for each read."""
    kept = st.session_state.get("names_model")
    if kept is None or kept[0] != desk.reading.id:
        said = "\n".join([*(turn["content"] for turn in desk.material.messages), desk.material.response or ""])
        with reading(common.engine()) as session:
            kept = desk.reading.id, families.mentions(said, contents.models(session), family_table(session))
        st.session_state["names_model"] = kept
    return bool(kept[1])


@st.cache_data(ttl=common.LATELY_SECONDS, max_entries=common.CACHED_LISTS, show_spinner=False)
def measured(_session: Any, location: str, person: Viewer, n_assignments: int) -> Progress:  # noqa: ARG001 - the key
    """How far a reader is, a minute old at most: to count what waits for them takes longer than all else of a press."""
    return queries.progress(_session, person, now())


def far(session: Any, desk: OpenReview | None) -> Progress:
    """How far the viewer is: what they have read is counted anew; what others took from them since is seen within a minute."""
    if desk is None:
        return queries.progress(session, viewer, now())
    lately = measured(session, common.location(), viewer, queries.n_assignments(session))
    n_done, n_skipped = queries.n_locked(session, viewer), queries.n_skipped(session, viewer)
    n_left = lately.n_done + lately.n_left + lately.n_skipped - n_done - n_skipped
    n_left = max(n_left, int(desk.state is ReadingState.READING))
    return msgspec.structs.replace(lately, n_done=n_done, n_left=n_left, n_skipped=n_skipped)


viewer = common.require(check_can_read)
slipping, is_closed = st.session_state.get(panels.SLIPPING), False
if slipping is not None and slipping == common.ask(queries.last_read, viewer.person_id):
    desk: OpenReview | None = reviewing.open_review(common.engine(), viewer, slipping)
else:
    if not common.is_frozen():
        practice.show(viewer)  # and nothing else, where practice comes first
    try:
        desk = reviewing.take(common.engine(), viewer)
    except Frozen:  # what is in hand is still shown; nothing is given out
        desk, is_closed = None, True
with reading(common.engine()) as session:
    progress = far(session, desk)
    guideline = contents.guideline(session, desk.reading.guideline_version) if desk else None
    thread = threads.own_thread(session, viewer, desk.asked.task_id) if desk else None
    guided = ""
    if desk and guideline and desk.state is ReadingState.READING:
        guided = html.guideline_words(guideline.version or 0, queries.guideline_known(session, viewer))
if desk is None or (desk.state is ReadingState.READING and not desk.drafts):
    for sentence in amending.taken_back_words(common.ask(queries.taken_back, viewer)):
        st.html(shared_html.notice(sentence, kind="warning"))
said = st.session_state.pop("review_done", "")
panels.refusal()
if desk is None:
    title, words = "Nothing waits for you", "No item is assigned to you, or others are reading what is left."
    if progress.n_done:
        words = f"{said} You have read {counted(progress.n_done, 'item')}. Thank you.".strip()
        title = "Everything is read"
    if progress.n_skipped:
        title = "Nothing else waits for you"
        skipped = counted(progress.n_skipped, "item")
        words += f" You have skipped {skipped}: a lead answers, and can return what you skipped."
    if is_closed:
        title, words = "Reading is closed", "The study is frozen. What waits for you comes once a lead opens it again."
    st.html(shared_html.heading(title, words))
    lead = "New items come from the study's lead, on the Study page. Until then, look at what you did or browse."
    if not is_closed:
        st.html(shared_html.notice(lead))
        panels.slip_line(viewer)
    telling.own(viewer)
    with st.container(horizontal=True):
        st.page_link(routes.MY_READS, label="My reads", icon=":material/checklist:")
        st.page_link(routes.BROWSE, label="Browse", icon=":material/menu_book:")
        if "lead" in viewer.roles:
            st.page_link(routes.STUDY, label="Assign items", icon=":material/database:")
    st.stop()
is_locked = desk.state is not ReadingState.READING
place, in_all = progress.n_done + (0 if is_locked else 1), progress.n_done + progress.n_left
what = html.item_word(desk.asked.ask)
with st.container(horizontal=True, vertical_alignment="center", key="review_top"):
    how = "" if desk.reading.blinded else "This study reads open: the judge is in view."
    stamps = [html.left_words(progress), telling.skipped_words(progress.n_skipped), how, said, guided]
    st.html(html.top(f"{what} {place:,} of {in_all:,}", stamps))
    as_markdown = kept_choices.formatted()
left, right = st.columns([58, 42], gap="large")
with left, st.container(key="reading"):
    if thread is not None:
        st.html(telling.shown(thread, with_head=False))
    st.html(shared_html.conversation(desk.material.messages, as_markdown=as_markdown))
    if desk.material.response is not None:  # its model unnamed
        st.html(shared_html.response("The response", "", desk.material.response, as_markdown=as_markdown))
        if desk.judge is not None:  # the judge is in view: never before
            suspects.show(desk.asked.response_id)
with right, st.container(key="desk"):
    is_named = not is_locked and names_model(desk)
    panels.panel(viewer, desk, guideline.text if guideline else None, names_model=is_named)
