"""What the pages of results keep: numbers until the study changes, those that take seconds read ahead, and choices for the browser's way back."""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial
from queue import Queue
from threading import Thread
from time import sleep
from typing import Any, TypeVar

import streamlit as st

from evalcore.rubric import queries as rubric_queries
from evalcore.serving import give_back_memory
from evalcore.settings import settings
from evalcore.study.db import reading
from evalcore.study.policies import STUDY
from evalcore.study.schema import Administrator, Viewer
from evalcore.triage import queries as triage_queries
from evalcore.triage.data import TriageData
from pages.shared import common

_log = logging.getLogger(__name__)
_Made = TypeVar("_Made")
_Waiting = Queue[tuple[str, float, tuple[Callable[[], object], ...]]]
THREAD = "read ahead"
AHEAD_SECONDS = 1.5
"""The page itself comes first."""
KEPT: Mapping[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""A control whose choice is kept in the address, and while another page is open."""


@st.cache_data(max_entries=256, show_spinner=False)
def _computed(key: Hashable, arguments: tuple[Any, ...], _make: Callable[..., _Made], _of: Callable[[], Any]) -> _Made:  # noqa: ARG001 - the key
    made = _make(_of(), *arguments)
    give_back_memory()
    return made


def computed(
    make: Callable[..., _Made], viewer: Viewer, of: Callable[[], Any], *arguments: Any, about: Hashable = None
) -> _Made:
    """What `make(of(), *arguments)` gives, until anything in the study changes; `about`: what else tells what `of` gives apart."""
    name = f"{make.__module__}.{make.__qualname__}"
    key = (common.location(), common.version(), common.blind(viewer), name, about)
    made: _Made = _computed(key, arguments, make, of)
    return made


@st.cache_resource(max_entries=18, show_spinner=False)
def _shared(key: Hashable, _make: Callable[[], _Made]) -> _Made:  # noqa: ARG001 - the key
    made = _make()
    give_back_memory()
    return made


def shared(make: Callable[[], _Made], viewer: Viewer, about: Hashable) -> _Made:
    """What `make()` gives, by what it is (`about`), not copied: everybody who looks shares it, so never change it."""
    made: _Made = _shared((common.location(), common.version(), common.blind(viewer), about), make)
    return made


@st.cache_resource(max_entries=1, show_spinner="Reading the cases")
def imported_cases(location: str, judged_version: common.Version) -> TriageData:  # noqa: ARG001 - the key
    """All that was imported of the cases and answers of a study, kept while physicians read; nothing of it is shown."""
    return common.ask(triage_queries.imported)


@st.cache_resource(max_entries=1, show_spinner=False)
def _triage_data(location: str, versions: tuple[common.Version, common.Version]) -> TriageData:
    return common.ask(triage_queries.with_reads, imported_cases(location, versions[0]))


def triage_data(person: Viewer) -> TriageData:
    """The cases that this person may see and all that is said of them. Shared frames: never change them."""
    versions = common.judged_version(), common.version()
    return _triage_data(common.location(), versions).without(common.blind(person))


def leave(page: str, keys: Sequence[str], **more: Any) -> None:
    """Keep what is chosen, for the browser's way back: Streamlit empties this page's address before it goes to another page."""
    kept = {key: st.session_state[key] for key in keys if key in st.session_state}
    st.session_state[f"{page}_left"] = kept | more


def left(page: str, key: str, usual: Any = None) -> Any:
    """What was chosen before, after the browser's way back from a conversation; else what is usual."""
    return st.session_state.get(f"{page}_left", {}).get(key, usual) if "example" in st.query_params else usual


def section(page: str, sections: Sequence[str]) -> str:
    """The section of a page that is chosen, by the control in the row that is open; the address holds its words."""
    key = f"{page}_show"
    before = left(page, key)
    usual = before if before in sections else sections[0]
    chosen = st.segmented_control(
        "Show", sections, default=usual, key=key, required=True, label_visibility="collapsed", **KEPT
    )
    return str(chosen or sections[0])


def one_of(page: str, label: str, options: Sequence[Any], key: str, usual: Any = None, **more: Any) -> Any:
    """A choice of one of several, kept in the address under the key; it begins as usual, or as before where the browser came back from a conversation."""
    place = next((options.index(one) for one in (left(page, key, usual), usual) if one in options), 0)
    return st.selectbox(label, options, place, key=key, **KEPT, **more)


def read_ahead(person: Viewer) -> None:
    """What the pages of results need of a large study is read, once a process, study and person, while its lead or a researcher is elsewhere."""
    if settings().read_ahead and person.roles & STUDY:
        begun(common.location(), person)


@cache
def begun(place: str, person: Viewer) -> None:
    """Have it read."""
    _beside().put((place, 0, (partial(_read_all, person),)))


def ahead(person: Viewer, *asked: Callable[[], object]) -> None:
    """What the other sections of a page ask first is computed while its lead or researcher looks at the one that is open, unless the study changes."""
    if settings().read_ahead and person.roles & STUDY:
        _beside().put((common.location(), AHEAD_SECONDS, asked))


@cache
def _beside() -> _Waiting:
    waiting: _Waiting = Queue()
    Thread(target=_work, args=(waiting,), name=THREAD, daemon=True).start()
    return waiting


def _work(waiting: _Waiting) -> None:
    while True:
        place, seconds, asked = waiting.get()
        try:
            with common.at(place):
                version = common.version()
                if waiting.empty():
                    sleep(seconds)
                for ask in asked:
                    if seconds and (not waiting.empty() or common.version() != version):
                        break  # a newer page, or a newer study
                    ask()
            give_back_memory()
        except Exception:  # noqa: BLE001 - the page that needs it meets the same, and says so
            _log.debug("reading ahead broke off", exc_info=True)
        finally:
            waiting.task_done()


def _read_all(person: Viewer) -> None:
    with reading(common.engine()) as session:
        has_cases, has_criteria = triage_queries.has_cases(session), rubric_queries.has_criteria(session)
    # at the server's start it would only take turns with the first page
    if has_cases and not isinstance(person, Administrator):
        from pages.triage import matrices  # noqa: PLC0415 - its code takes a moment to load as well

        matrices.ahead(person)
    if has_criteria:
        from pages.shared import models_choice  # noqa: PLC0415 - likewise

        models_choice.ahead(person)
