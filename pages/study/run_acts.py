"""Runs as the Study page has them: how far each is, read seldom where that takes long; and what a lead (others: NotAllowed) does with them."""

import time
from collections.abc import Collection
from typing import NamedTuple

import streamlit as st

from evalcore import runs
from evalcore.errors import OverreadError
from evalcore.runs import queries
from evalcore.runs import worker as runs_worker
from evalcore.runs.known_models import key_of
from evalcore.runs.queries import Progress, RunRow, Subject
from evalcore.runs.spec import RunSpec
from evalcore.runs.summary import State, asked_words, state_of
from evalcore.study.db import reading
from evalcore.study.policies import allows, check_can_run
from evalcore.study.schema import Outcome, RunKind, RunState, Viewer
from pages.shared import common

OPENED = "run"  # in the address: the number of the run that is open
LIVE_SECONDS = 2
PATIENCE = 10
"""What took long to count is counted again only after so many times as long; of a million questions it takes a second."""
REFUSED = "run_refused"


class _Known(NamedTuple):
    row: RunRow
    progress: Progress
    at: float
    seconds: float


@st.cache_resource(show_spinner=False)
def _known(location: str) -> dict[int, _Known]:  # noqa: ARG001 - the key
    return {}


def progress(row: RunRow) -> Progress:
    """How far a run is, at most a moment old; one that has ended is not counted again."""
    known, begun = _known(common.location()), time.monotonic()
    last = known.get(row.run_id)
    if last is not None and last.row == row:
        has_ended = row.state is not RunState.OPEN and not last.progress.n_workers
        if has_ended or begun - last.at < PATIENCE * last.seconds:
            return last.progress
    with reading(common.engine()) as session:
        at = queries.progress(session, row.run_id)
    known[row.run_id] = _Known(row, at, time.monotonic(), time.monotonic() - begun)
    return at


@st.cache_data(max_entries=1_000, show_spinner=False)
def _subject(location: str, run_id: int, n_questions: int) -> Subject:  # noqa: ARG001 - the key
    with reading(common.engine()) as session:
        return queries.subject(session, run_id)


def title(viewer: Viewer, row: RunRow, n_questions: int) -> str:
    """What a run asks, in words. A model that the viewer may not see behind a conversation that waits is not named."""
    name = "a model" if row.kind is not RunKind.JUDGE and row.spec.model.name in unnamed(viewer) else None
    return asked_words(row.spec, _subject(common.location(), row.run_id, n_questions), name=name)


def unnamed(viewer: Viewer) -> frozenset[str]:
    """Models that are known only from conversations that wait for this person's own first read."""
    hidden = common.blind(viewer)
    return frozenset(common.read("models")) - frozenset(common.read("models", hidden)) if hidden else frozenset()


def state(viewer: Viewer, at: Progress) -> State:
    """How a run stands. Why it stopped is told whole to leads alone, and to none who may yet read blind: a judge may speak in its last words."""
    return state_of(at, with_words=bool(at.reason) and allows(check_can_run, viewer) and not common.blind(viewer))


def open_(run_id: int | None) -> None:
    """Go to a run, or back to the list; the address says where."""
    if run_id is None:
        st.query_params.pop(OPENED, None)
    else:
        st.query_params[OPENED] = str(run_id)
    st.rerun()


def start(viewer: Viewer, spec: RunSpec, *, concurrency: int, max_cost: float | None) -> int:
    """Start a run, or the same one again, with a process that works on it.

    Returns its number. Where the process could not be started the run is there all the same, and says why it waits.
    """
    check_can_run(viewer)
    key_of(spec.model)
    run_id = runs.start(common.engine(), spec, actor=viewer, concurrency=concurrency, max_cost=max_cost)
    _work(run_id)
    return run_id


def retry(viewer: Viewer, row: RunRow, outcomes: Collection[Outcome]) -> None:
    """Ask again what ended so, by the processes that work on the run, or by a new one."""
    check_can_run(viewer)
    key_of(row.spec.model)
    runs.retry(common.engine(), row.run_id, actor=viewer, outcomes=outcomes)
    _work(row.run_id)


def _work(run_id: int) -> None:
    """Start a process, unless nothing is left to ask or somebody works on the run; who was told to stop only ends what is in flight."""
    st.session_state.pop(REFUSED, None)
    with reading(common.engine()) as session:
        is_open = queries.run(session, run_id).state is RunState.OPEN
        if not is_open or not all(worker.stop_asked for worker in runs_worker.alive(session, run_id)):
            return
    try:
        runs_worker.start_worker(common.location(), run_id)
    except OverreadError as error:
        st.session_state[REFUSED] = (run_id, str(error))


def refused(run_id: int) -> str:
    """Why no process could be started for a run, when it was last tried; empty where one could."""
    number, sentence = st.session_state.get(REFUSED, (None, ""))
    return sentence if number == run_id else ""
