"""What failed in a run, by kind, with the replies as they came; a lead has it asked again."""

import streamlit as st

from evalcore import runs
from evalcore.runs import queries
from evalcore.runs.queries import Progress
from evalcore.runs.telling import OUTCOMES
from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.policies import allows, check_can_see_replies, own_act, reason, visible_verdicts
from evalcore.study.run_words import Outcome
from evalcore.study.schema import Viewer
from evalcore.study.tables import now
from pages.shared import common, html
from pages.study import run_acts, run_html

ON_A_PAGE = 10
WHY = (
    "A reply that could not be read may still tell what a judge thinks. So replies are shown to leads alone; to a lead who reads blind as well, not those "
    "on conversations that wait for that read."
)


def show(viewer: Viewer, run_id: int) -> None:
    """The failures as they are now; they stand still while the run goes on, so that one can read them."""
    common.fragment(_failures)(viewer, run_id)


def _failures(viewer: Viewer, run_id: int) -> None:
    with reading(common.engine()) as session:
        row = queries.run(session, run_id)
    at = run_acts.progress(row)
    counts = {outcome: at.outcomes[outcome] for outcome in OUTCOMES if at.outcomes.get(outcome)}
    if not counts:  # all of them are being asked again
        return
    st.subheader("What failed", anchor=False)
    st.html(html.items(f"{n:,} {OUTCOMES[outcome][0]}: {OUTCOMES[outcome][1]}" for outcome, n in counts.items()))
    if not allows(check_can_see_replies, viewer):
        st.html(html.quiet(f"{reason(check_can_see_replies, viewer)} {WHY}"))
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.pills(
            "Kinds",
            list(counts),
            selection_mode="multi",
            default=list(counts),
            format_func=lambda outcome: f"{OUTCOMES[outcome][0]} {counts.get(outcome, 0):,}",
            key=f"run_kinds_{run_id}",
        )
        n_chosen = sum(counts.get(outcome, 0) for outcome in chosen)
        again = st.button(
            f"Ask {counted(n_chosen, 'question')} again", icon=":material/replay:", key="run_retry", disabled=not n_chosen
        )  # fmt: skip
        _look_again(at)
    if again:
        with common.shown_errors():
            run_acts.retry(viewer, row, chosen)
            st.rerun()
    if n_chosen:
        with common.shown_errors():
            _page(viewer, run_id, chosen, n_chosen)
    st.html(html.quiet(WHY))


def _look_again(at: Progress) -> None:
    """What has failed since is shown at a press."""
    if not at.n_workers:
        return
    if st.button("Look again", icon=":material/refresh:", type="tertiary", key="run_failures_again"):
        common.draw_anew()
    st.html(html.quiet(f"as it was at {common.local_time(now())}"), width="content")


def _page(viewer: Viewer, run_id: int, outcomes: list[Outcome], n_all: int) -> None:
    """Some of them, in the order in which they were asked."""
    n_pages = -(-n_all // ON_A_PAGE)
    place = min(st.session_state.get(f"run_failed_{run_id}", 1), n_pages)
    found = runs.failures(
        common.engine(), viewer, run_id, most=ON_A_PAGE, skipped=(place - 1) * ON_A_PAGE, outcomes=outcomes
    )
    shown = visible_verdicts(found, None, common.blind(viewer))
    if n_hidden := len(found) - len(shown):
        st.html(
            html.quiet(
                f"{counted(n_hidden, 'question')} more on conversations that wait for your own {own_act(viewer)}."
            )
        )
    if not shown.empty:  # Streamlit refuses to draw nothing
        st.html(run_html.failures(shown))
    if n_pages > 1:
        st.pagination(n_pages, key=f"run_failed_{run_id}")
