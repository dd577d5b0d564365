"""What a lead changes in an assignment that is being read, and how far each reader is, with a link to send."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.reading import amending, assignment_queries, pace, registering
from evalcore.reading.assigning import readers_of
from evalcore.reading.threads import MAX_LINE
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import decimal
from evalcore.study.schema import Ask, Viewer
from evalcore.study.tables import now
from evalcore.team.provider import provider
from evalcore.team.studies import review_link
from pages.shared import common, html, tables

SHARED = (
    "Could take: waiting responses that this reader may get. Readers share them, so the days left are at most these. "
    "Pace: locked reads a day, over the last seven days. The link opens Review for whoever signs in; it holds no "
    "secret."
)
REASON_HELP = "Readers who have begun something see this line. They may read blind: no model, no judge."
QUEUE_HELP = (
    "Before the first read: puts the hash of the items, their order, probabilities and seed into the audit trail, to "
    "register it. `overread assignments freeze` also writes the file that the hash is of."
)
EXTEND_HELP = (
    "Drawn with the same filters among what fits now and is not assigned yet, with a seed that follows from the "
    "first. Estimates treat all as if they had been drawn at once."
)


def readers(hidden: frozenset[int]) -> None:
    """Each reader's progress, pace and days left; and the address of Review."""
    at = now()
    found = pace.by_reader(
        common.ask(assignment_queries.readers, at), common.ask(assignment_queries.locked_reads, hidden), at
    )
    if found.empty:
        return
    st.subheader("Readers", anchor=False)
    columns: dict[str, Any] = {"Reader": found["reader"], "Locked": found["n_reads"], "Begun": found["n_open"]}
    columns |= {"Skipped": found["n_skipped"], "Could take": found["n_waiting"]}
    columns |= {"Pace": [NO_VALUE if pd.isna(a_day) else f"{decimal(a_day, 1)} a day" for a_day in found["pace"]]}
    columns |= {"Days left": [NO_VALUE if pd.isna(days) else f"{days:,.0f}" for days in found["days"]]}
    tables.show(columns, key="readers", alt="Progress by reader", optional=("Begun", "Skipped"), names=("Reader",))
    st.html(html.quiet(SHARED))
    signing_in = provider()
    with common.shown_errors():
        base = signing_in.public_url if signing_in else str(st.context.url or "").split("/study")[0]
        st.code(review_link(base, common.location() if signing_in else None), language=None, wrap_lines=True)


def change(viewer: Viewer, found: pd.DataFrame, label: dict[Ask, str], hidden: frozenset[int]) -> None:
    """The acts on an assignment. `found`: as `assignment_queries.assignments`; `label`: of a question."""
    if said := st.session_state.pop("amended", None):
        st.html(html.notice("Changed."))
        st.html(html.items(said))
    going_on = found.loc[found["cancelled_at"].isna()]
    if going_on.empty:
        return
    rows = {int(row["assignment_id"]): row for row in going_on.to_dict(orient="records")}
    with st.expander("Change an assignment", icon=":material/edit:"):
        number = st.selectbox(
            "Assignment", list(rows), key="amend_number",
            format_func=lambda one: f"{one}: {label[Ask(rows[one]['ask'])]}, {common.local_time(rows[one]['created_at'])[:10]}",
        )  # fmt: skip
        if number is None:
            return
        row = rows[number]
        names = [person.name for person in readers_of(common.read("people"))]
        numbers = common.ask(assignment_queries.readers_of, number)
        present = [person.name for person, _, _ in common.read("everybody") if person.person_id in numbers]
        is_paused = not pd.isna(row["paused_at"])
        act, verb, icon = (amending.resume, "Resume", "play_arrow") if is_paused else (amending.pause, "Pause", "pause")
        st.html(html.quiet(f"Readers: {', '.join(present)}"))
        with st.container(horizontal=True, vertical_alignment="center"):
            if st.button(verb, key=f"amend_pause_{number}", icon=f":material/{icon}:"):
                common.act(act, number, actor=viewer)
            _queue(viewer, number)
        _form(f"hand_{number}", "Hand over", lambda: _hand_over(viewer, number, present, names))
        others = [name for name in names if name not in present]
        _form(f"add_{number}", "Add readers", lambda: _add(viewer, number, others))
        _form(f"extend_{number}", "Draw more", lambda: _extend(viewer, number, hidden))
        _form(f"cancel_{number}", "Cancel the assignment", lambda: _cancel(viewer, number))


def _queue(viewer: Viewer, number: int) -> None:
    kept = common.ask(registering.registered).get(number)
    if kept is not None:
        when = f"Queue frozen before the first read, on {common.local_day(kept.at)} by {kept.by}"
        st.html(html.quiet(f"{when}. SHA-256 of its items, order, probabilities and seed: {kept.sha256}"))
    elif st.button("Freeze the queue", key=f"amend_queue_{number}", icon=":material/ac_unit:", help=QUEUE_HELP):
        common.act(registering.freeze_queue, number, actor=viewer)


def _form(key: str, verb: str, fields: Any) -> None:
    """A form of one row, whose fields give what is done when it is sent; what came of it is told below."""
    with (
        st.form(f"amend_{key}", border=False, enter_to_submit=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        done = fields()
        pressed = st.form_submit_button(verb, key=f"amend_{key}_go")
    if pressed:
        with common.shown_errors():
            st.session_state["amended"] = done()
            st.rerun()


def _hand_over(viewer: Viewer, number: int, present: list[str], names: list[str]) -> Any:
    giver = st.selectbox(
        "Hand over unlocked reads of", present, index=None, key=f"hand_from_{number}", placeholder="Choose"
    )
    taker = st.selectbox("To", names, index=None, key=f"hand_to_{number}", placeholder="Choose")
    return lambda: amending.hand_over(
        common.engine(), giver or "", taker or "", number=number, actor=viewer
    ).sentences()


def _add(viewer: Viewer, number: int, names: list[str]) -> Any:
    chosen = st.multiselect("Further readers", names, key=f"add_readers_{number}", placeholder="Choose")
    return lambda: amending.add_readers(common.engine(), number, chosen, actor=viewer).sentences()


def _extend(viewer: Viewer, number: int, hidden: frozenset[int]) -> Any:
    n = st.number_input("How many more", min_value=1, value=10, step=1, key=f"extend_n_{number}", help=EXTEND_HELP)
    return lambda: amending.extend(common.engine(), number, int(n), blind=hidden, actor=viewer).sentences()


def _cancel(viewer: Viewer, number: int) -> Any:
    because = st.text_input("Reason that readers see", key=f"cancel_why_{number}", max_chars=MAX_LINE, help=REASON_HELP)
    return lambda: [amending.cancel(common.engine(), number, because or "", actor=viewer).sentence]
