"""Runs: what models and judges are asked, how far that is, and a form to start more. A tab of the Study page."""

from collections.abc import Iterable, Mapping

import streamlit as st

from evalcore.runs import known_models, queries
from evalcore.runs.queries import Progress, RunRow
from evalcore.runs.summary import State, told
from evalcore.study.policies import check_can_run, reason
from evalcore.study.schema import RunState, Viewer
from pages.shared import common, html
from pages.shared.html import escaped
from pages.study import run, run_form
from pages.study.run import LIVE_SECONDS, OPENED

TITLE = "Runs"
ON_A_PAGE, OPEN_WIDTH = 15, 130
BEGINNING = (
    "A run asks a model for answers, or a judge for verdicts, one question at a time, and saves each answer as it comes. It can be stopped and started "
    "again at any moment: only what is missing is asked."
)
STEPS = (
    "Bring in what is to be asked about: a file of examples or cases for answers, a file of responses for verdicts.",
    "Say which models and judges there are: write a file models.toml like the one below into the folder in which Overread is started. "
    "A model without a key can also be named in the form, by its address.",
    "Put keys into environment variables before Overread is started. A key is never typed, stored or shown here.",
    "Choose in the form what is asked, look at what it would take, and start. It goes on when you close the browser.",
)


def show(viewer: Viewer) -> None:
    """The list with the form, or the run that the address names."""
    number = common.row_number(st.query_params.get(OPENED, ""))
    if number is not None:
        run.show(viewer, number)
        return
    rows = common.ask(queries.rows)
    why_not = reason(check_can_run, viewer)
    if why_not:
        st.html(html.notice(why_not))
    else:
        icon = ":material/play_arrow:"
        with st.expander("Start a run", icon=icon, expanded=not rows, key="run_form", on_change="rerun") as fold:
            if fold.open:
                run_form.show(viewer)
    if rows:
        _list(viewer, rows)
        return
    st.html(html.notice(f"Nothing has run yet. {BEGINNING}"))
    if not why_not:
        st.html(html.items(STEPS))
        with st.expander("An example of models.toml", icon=":material/description:"):
            st.code(known_models.example(), language="toml", wrap_lines=True)


def _list(viewer: Viewer, rows: list[RunRow]) -> None:
    ordered = sorted(rows, key=lambda row: (row.state is not RunState.OPEN, -row.run_id))
    n_pages = -(-len(ordered) // ON_A_PAGE)
    place = st.session_state.get("runs_page", 1) if n_pages > 1 else 1
    first = (min(place, n_pages) - 1) * ON_A_PAGE
    titles, is_live = {}, False
    for row in ordered[first : first + ON_A_PAGE]:
        at = run.progress(row)
        titles[row.run_id] = run.title(viewer, row, at.n_questions)
        is_live |= at.n_workers > 0
    common.fragment(_rows, run_every=LIVE_SECONDS if is_live else None)(viewer, titles, is_live=is_live)
    if n_pages > 1:
        st.pagination(n_pages, key="runs_page")
    st.html(
        html.foot(
            "A question has failed when no answer came of it after all tries; it is counted nowhere else, and it can be asked again. Cost: what the server "
            "counted in tokens, by the prices in the file of models; unknown where there are none. Time left: at the rate of the last half minute."
        )
    )


def _rows(viewer: Viewer, titles: Mapping[int, str], *, is_live: bool) -> None:
    """The rows of some runs, each with its title: which models may be named takes reading what every saved answer renews, and this is drawn often."""
    found = {row.run_id: row for row in common.ask(queries.rows, run_ids=titles)}
    is_still_live = False
    rows = st.container(gap=None)
    for number, title in titles.items():
        row = found[number]
        at = run.progress(row)
        is_still_live |= at.n_workers > 0
        with rows, st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"run_row_{number}"):
            state = run.state(viewer, at)
            st.html(_drawn(title, state, at, told(at)))
            if st.button(
                f"Open run {number}", icon=":material/chevron_right:", key=f"run_open_{number}", type="tertiary", width=OPEN_WIDTH
            ):  # fmt: skip
                run.open_(number)
    if is_live and not is_still_live:
        st.rerun()  # drawn without a clock


def _drawn(title: str, state: State, at: Progress, figures: Iterable[str]) -> str:
    more = f'<span dir="auto">{escaped(state.more)}</span>' if state.more else ""
    numbers = "".join(f"<span>{escaped(words)}</span>" for words in figures)
    return (
        f'<div class="or-run"><div class="or-run-what"><b dir="auto">{escaped(title)}</b>'
        f'<div class="or-run-state"><em>{escaped(state.word)}</em>{more}</div></div>'
        f'<div class="or-run-far">{run.bar(at)}<div class="or-run-figures">{numbers}</div></div></div>'
    )
