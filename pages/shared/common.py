"""What every page needs: the engine, cached reads, who is reading, errors as sentences."""

import gc
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, wraps
from pathlib import Path
from threading import Thread
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from evalcore.errors import DatabaseFault, OverreadError
from evalcore.importing.demo import DATASET
from evalcore.importing.staging import finish
from evalcore.judges.record import judge_record
from evalcore.reading import exposing, queries as reading_queries
from evalcore.reading.adjudication import to_settle
from evalcore.reading.read_queries import examples_of, level_readers
from evalcore.reading.reference import overridden_items, own_items
from evalcore.rubric import composition_queries, queries as rubric_queries
from evalcore.rubric.blind_read_queries import beside_judges, blind_firsts, labels_on, read_marks
from evalcore.rubric.data import RubricData
from evalcore.rubric.scores import mean_scores_by_example, scores_of_sums
from evalcore.runs import queries as run_queries
from evalcore.serving import PERSON_PATH, check_launched, cookie_name, give_back_memory
from evalcore.study import browse, contents, frames, freezing, lookups, snapshot
from evalcore.study.acting import opened, prepare_search
from evalcore.study.corrections import mending, renaming
from evalcore.study.db import PRESS_SECONDS, REQUEST, Engine, before_each_commit, reading, reading_together, together
from evalcore.study.policies import (
    allows,
    check_can_adjudicate,
    check_can_import,
    check_can_read,
    reason,
    visible_verdicts,
)
from evalcore.study.schema import Ask, RaterKind, Seen, Viewer
from evalcore.study.tables import UnfinishedImport
from evalcore.team import queries as team_queries, sign_in
from evalcore.team.provider import Provider, provider
from evalcore.team.sign_in import STUDY_HEADER, token_of
from evalcore.team.studies import Study, sign_ins, studies
from pages.shared import glossary, html, routes

CACHED_LISTS = 200
LATELY_SECONDS = 60
EMPTY = "Nothing is in this study yet"
MAX_DIGITS = 9  # a row's number has 31 bits in PostgreSQL
_JS = Path(__file__).with_name("frame.js").read_text(encoding="utf-8")
_listen = st.components.v2.component("overread_frame", js=_JS)


@st.cache_resource(show_spinner=False)
def _engine_at(location: str) -> Engine:
    engine = opened(location, wait_seconds=PRESS_SECONDS)
    before_each_commit(engine, _forget)
    prepare_search(engine)  # what an import that was broken off left waiting
    Thread(target=_finish_import, args=(engine,), daemon=True).start()  # it may take minutes, and no page waits for it
    _settle()
    return engine


def _finish_import(engine: Engine) -> None:
    try:
        if finish(engine) is not None:
            prepare_search(engine)
    except (OverreadError, DatabaseFault, OSError) as error:
        _log.warning("An import that was broken off is not finished: %s", error)


@cache
def _settle() -> None:
    """What is imported by now stays: later collections need not walk it. Once a process, whatever it opens."""
    gc.collect()
    gc.freeze()


_place: ContextVar[str] = ContextVar("place")


def location() -> str:
    """Where the database is of the study whose pages these are."""
    run = _run.get(None)
    if run is None or _place.get(""):
        return _place.get("") or _study().db
    run.place = run.place or _study().db
    return run.place


@contextmanager
def at(place: str) -> Iterator[None]:
    """In a thread beside the pages: what is read is of the study of this database."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def _study() -> Study:
    listed = studies()
    return listed.get("") or listed[st.context.headers.get(STUDY_HEADER.decode(), "")]


def engine() -> Engine:
    """The study's database."""
    return together(_engine_at(location()))


Version = tuple[int, int]


def version() -> Version:
    """The key of every cached read: acts, and texts whose language is unknown, these not during an import."""
    n_waiting = frames.n_waiting if _stands()[0] is None else lambda _session: 0
    return once("version", lambda session: (frames.data_version(session), n_waiting(session)))


def _stands() -> tuple[UnfinishedImport | None, freezing.Version | None]:
    return once("stands", lambda session: (lookups.unfinished_import(session), freezing.frozen(session)))


def tell_unfinished() -> None:
    """A line on every page while an import is not in the study whole."""
    if (unfinished := _stands()[0]) is not None:
        st.html(html.notice(unfinished.sentence))


def is_frozen() -> bool:
    """Whether nothing of the study is changed any more."""
    return _stands()[1] is not None


def drawn_frozen() -> bool:
    """Whether the study was frozen when the page was drawn: a press asks the study for nothing more, and an act that comes later is refused."""
    return bool(st.session_state.get("frozen"))


def tell_frozen() -> None:
    """A line on every page of a frozen study, so that nobody wonders why nothing can be changed."""
    st.session_state["frozen"] = is_frozen()
    if (version := _stands()[1]) is not None:
        by = f"Frozen on {local_day(version.frozen_at)} by {version.frozen_by} as {version.name}"
        words = f"{by}: it can be read and exported. A lead can open it again (Study, Analysis)."
        st.html(html.notice(words, kind="frozen"))


def judged_version() -> Version:
    """The key of what only judges' verdicts change, so that it is kept while physicians read."""
    return once("judged version", lambda session: (frames.judged_version(session), frames.n_waiting(session)))


@st.cache_data(max_entries=CACHED_LISTS, show_spinner=False)
def _cached(location: str, data_version: Version, name: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ARG001 - the version is the key
    with reading(_engine_at(location)) as session:
        return READS[name](session, *arguments)


def read(name: str, *arguments: Any) -> Any:
    """A cached read of `READS`; read again as soon as anything in the study has changed."""
    return _cached(location(), version(), name, arguments)


@st.cache_resource(max_entries=1, show_spinner=False)
def _judge_scores(_session: Any, location: str, judged_version: int) -> pd.DataFrame:  # noqa: ARG001 - the version is the key
    scores = scores_of_sums(rubric_queries.response_sums(_session))
    short = {"model": "category", "judge": "category", "example_id": "int32", "response_id": "int32"}
    return scores.drop(columns=["n_judged", "n_expected"]).astype(short)  # a row a response and judge


def is_demo() -> bool:
    """Whether the demo is in the study."""
    return DATASET in read("choices")["dataset"]


def judge_scores(session: Any) -> pd.DataFrame:
    """The overall score of every response and judge; physicians' verdicts do not enter it."""
    return _judge_scores(session, location(), frames.judged_version(session))


@st.cache_resource(max_entries=1, show_spinner="Reading the judges' labels")
def _judged(location: str, judged_version: tuple[int, int]) -> RubricData:  # noqa: ARG001 - the version is the key
    with reading(_engine_at(location)) as session:
        return rubric_queries.judged(session)


@st.cache_resource(max_entries=1, show_spinner=False)
def _reads(location: str, data_version: Version) -> pd.DataFrame:  # noqa: ARG001 - the version is the key
    with reading(_engine_at(location)) as session:
        return rubric_queries.reads(session)


@st.cache_resource(max_entries=1, show_spinner=False)
def _rubric_data(location: str, judged_version: tuple[int, int], data_version: Version) -> RubricData:
    with ThreadPoolExecutor(1) as beside:
        reads = beside.submit(_reads, location, data_version)
        beside.submit(snapshot.compute_hashes, _engine_at(location))
        judged = _judged(location, judged_version)
    with reading(_engine_at(location)) as session:
        return rubric_queries.with_reads(session, judged, reads.result())


def judged_labels() -> RubricData:
    """What judges say of every item, kept while physicians read; nothing of it is shown."""
    return _judged(location(), judged_version())


@st.cache_resource(max_entries=1, show_spinner=False)
def _blind_firsts(location: str, data_version: Version) -> tuple[pd.DataFrame, dict[str, Any]]:
    with reading(_engine_at(location)) as session:
        firsts = blind_firsts(session, known=judged_labels, given=_reads(location, data_version))
        return firsts, labels_on(session, firsts)


def blind_reads(judge: str) -> pd.DataFrame:
    """Physicians' blind first reads beside the labels of this judge."""
    return beside_judges(*_blind_firsts(location(), version()), judge).assign(rater_kind=RaterKind.REVIEWER)


def rubric_data(person: Viewer) -> RubricData:
    """What everybody says of every item that this person may see. Shared frames: never change them."""
    return _rubric_data(location(), judged_version(), version()).without(blind(person))


def to_read(person: Viewer, *, among: frozenset[int] | None = None) -> frozenset[int]:
    """Conversations on which this person may yet give a blind first read."""
    key = ("to read", person, among)
    return once(key, lambda session: reading_queries.blind_examples(session, person, among=among))


def blind(person: Viewer, *, among: frozenset[int] | None = None) -> frozenset[int]:
    """Conversations on which no verdict of others may be shown to this person (`adjudication.hidden_examples`)."""
    own = to_read(person, among=among) if allows(check_can_read, person) else frozenset()
    return own | read("to_settle", person) if allows(check_can_adjudicate, person) else own


def list_openly(person: Viewer, examples: Iterable[int]) -> None:
    """Record, before it is drawn, that a list shows verdicts on conversations; readers are told what that means."""
    exposing.expose(engine(), person, Seen.PREVIEW, {int(number) for number in examples} - blind(person))
    if allows(check_can_read, person):
        st.html(html.quiet("This list shows verdicts: the conversations in it are no longer among your blind reads."))


@st.cache_data(max_entries=CACHED_LISTS, show_spinner=False)
def _listed(key: tuple[Any, ...], filters: browse.Filters, judge: str, only: frozenset[int] | None) -> pd.DataFrame:
    *_, hidden = key
    examples: pd.DataFrame = read("fitting", filters).set_index("example_id")
    examples = examples.loc[~examples.index.isin(hidden) & (only is None or examples.index.isin(only or ()))]
    counts = dict.fromkeys(("n_overridden", "n_conflicting", "n_read", "n_level_readers"), 0)
    beside = read("beside", judge, hidden)
    give_back_memory()
    return examples.join(beside).fillna(counts)


def listed(
    filters: browse.Filters, judge: str, hidden: frozenset[int], only: frozenset[int] | None = None
) -> pd.DataFrame:
    """The rows of `browse.examples` that fit, without hidden ones, with a judge's scores and what physicians read."""
    found: pd.DataFrame = _listed((location(), version(), hidden), filters, judge, only)
    return found


def _beside(session: Any, judge: str, hidden: frozenset[int]) -> pd.DataFrame:
    """What a list says of each conversation that anybody has said something of: the same whatever is asked for."""
    scores = mean_scores_by_example(visible_verdicts(judge_scores(session), None, hidden), judge)
    marks = overridden_items(read_marks(session, judge, given=_reads(location(), version())), judge)
    return scores.add_prefix("score ").join(marks, how="outer").join(level_readers(session), how="outer")


def _n_conflicting(session: Any, hidden: frozenset[int]) -> int:
    marks = visible_verdicts(read_marks(session, "", given=_reads(location(), version())), None, hidden)
    return int(overridden_items(marks, "")["n_conflicting"].sum())


def _own_items(session: Any, reader: Viewer, hidden: frozenset[int]) -> pd.DataFrame:
    example_ids = examples_of(session, reader)
    of_rubrics = frames.verdicts(session, kind=RaterKind.REVIEWER, example_ids=example_ids).assign(asked=Ask.RUBRIC)
    of_acuity = frames.acuity_verdicts(session, kind=RaterKind.REVIEWER, example_ids=example_ids)
    items = [
        own_items(asked, reader.name).assign(ask=ask)
        for verdicts in (of_rubrics, of_acuity)
        for ask, asked in visible_verdicts(verdicts, reader, hidden).groupby("asked")
    ]
    together = pd.concat(items or [own_items(of_rubrics, reader.name).assign(ask="")], ignore_index=True)
    return together.astype({"response_id": "Int64"})


READS: dict[str, Callable[..., Any]] = {
    "fitting": browse.examples,
    "beside": _beside,
    "analysis": contents.stated_analysis,
    "n_conflicting": _n_conflicting,
    "own_items": _own_items,
    "people": contents.people,
    "everybody": team_queries.everybody,
    "judges": contents.judges,
    "models": contents.models,
    "counts": contents.counts,
    "readers": contents.readers,
    "choices": contents.choices,
    "imports": mending.imports,
    "broken": mending.broken,
    "names": renaming.all_names,
    "changed names": renaming.changed,
    "composition": composition_queries.load,
    "subset_sizes": composition_queries.subset_sizes,
    "matching": browse.matching_items,
    "run_datasets": run_queries.datasets,
    "n_cut_off": run_queries.n_cut_off,
    "to_settle": to_settle,
    "models_to_judge": run_queries.models_of,
}


@st.cache_resource(max_entries=8, ttl=LATELY_SECONDS, show_spinner=False)
def _lately(location: str, judge: str) -> pd.DataFrame:  # noqa: ARG001 - the key
    return blind_reads(judge)


def judge_records(person: Viewer, judge: str, response_id: int | None) -> pd.DataFrame:
    """How often a judge is right on other responses that this person may see; a minute old at most."""
    reads = _lately(location(), judge)
    hidden = blind(person, among=frozenset(reads["example_id"].tolist()))
    reads = visible_verdicts(reads, None, hidden)  # nor the viewer's own: beside them few reads would tell the label
    return judge_record(reads.loc[reads["response_id"].ne(response_id or 0)])


def row_number(words: str) -> int | None:
    """The number of a row from an address or a cookie; None where no database gives such a one."""
    return int(words) if words.isascii() and words.isdigit() and len(words) <= MAX_DIGITS else None


def viewer(*, pressed: bool = True) -> Viewer | None:
    """Who is reading, looked up anew on every run and after each act; None: nobody was chosen, or a session has ended.

    `pressed`: somebody did something, so that their session lasts on; not where a part of a page draws itself anew.
    """
    try:
        check_launched()
    except OverreadError as refusal:
        st.error(str(refusal))
        st.stop()
    if (signing_in := provider()) is not None:
        return in_run("viewer", lambda: _signed_in(signing_in, pressed=pressed))
    return once("viewer", _chosen)


def _chosen(session: Any) -> Viewer | None:
    cookie = cookie_name(contents.study_key(session) or "")
    number = row_number(st.context.cookies.get(cookie, ""))
    return None if number is None else contents.person(session, number)


def _signed_in(signing_in: Provider, *, pressed: bool) -> Viewer | None:
    sessions = _engine_at(sign_ins())
    found = sign_in.viewer_of(sessions, engine(), token_of(st.context.cookies), signing_in)
    if found is None:
        return None
    if pressed:
        sign_in.pressed(sessions, found[0])
    return found[1]


def came(person: Viewer) -> None:
    """Once a session: whether somebody else came last by this browser is in the trail."""
    if st.session_state.get("came") != person.person_id:
        exposing.choose_reader(engine(), person, st.context.headers.get("User-Agent") or "")
        st.session_state["came"] = person.person_id


def require(check: Callable[[Viewer], None] | None = None) -> Viewer:
    """The first statement of every page, which can be reached without app.py: stops where nobody may be here."""
    person = viewer()
    if person is None:
        ask_who()
        st.stop()
    if check is not None and (why := reason(check, person)):
        st.html(html.heading("This page is not for your role", why))
        st.stop()
    return person


def ask_who() -> None:
    """What somebody is told whom the study does not know at the moment, and the way on."""
    if provider() is None:
        st.info("Choose who is reading first: open the start page.")
        return
    why = "Your session has ended, or you are not in this study any more. What you have marked is saved. Sign in again to resume where you were."
    st.html(html.way_on("Sign in again", why, f"{sign_in.SIGN_IN}?{_come_back()}", "Sign in"))


def reader_link(person_id: int) -> str:
    """The address that chooses a person, or nobody (0), and comes back to where the viewer is."""
    return f"{PERSON_PATH}{person_id}?{_come_back()}"


def _come_back() -> str:
    here = urlsplit(st.context.url or "/").path or "/"
    pairs = [(key, value) for key in st.query_params for value in st.query_params.get_all(key)]
    query = f"?{urlencode(pairs, quote_via=quote)}" if pairs else ""
    return f"next={quote(here + query, safe='')}"


def sidebar(person: Viewer) -> None:
    """Under the navigation, on every page: the glossary, then name and role with the way out, to another profile or to the end of the session."""
    with st.sidebar:
        glossary.show()
        study, ways = "", {"Change reader": reader_link(0)}
        if provider() is not None:
            study, ways = _study().title, {"Studies": "/"} if len(studies()) > 1 else {}
            ways["Sign out"] = sign_in.SIGN_OUT
        st.html(html.signed_in(person.name, sorted(role.value for role in person.roles), ways, study=study))
        _listen(key="frame")


def draw_anew() -> None:
    """Run the fragment, or else the page, once more; where a press failed that run says so, and none follows."""
    run = _run.get(None)
    if run is not None and run.is_second:
        return
    if run is not None and run.fault:
        st.session_state["fault"] = run.fault
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:
        st.rerun()


@dataclass
class _Run:
    """One run of a page or a part of it: what failed, and where it says so. The one after a failed press saves nothing."""

    top: DeltaGenerator
    fault: str = ""
    is_second: bool = False
    is_alone: bool = True
    known: dict[Hashable, Any] = field(default_factory=dict)
    place: str = ""

    def say(self, fault: DatabaseFault) -> None:
        _log.warning("%s (%s)", fault, fault.reason)
        self.fault = str(fault)
        self.top.html(html.notice(self.fault, kind="error"))


_log = logging.getLogger(__name__)
_run: ContextVar[_Run] = ContextVar("_run")
_Found = TypeVar("_Found")
_Asked = ParamSpec("_Asked")


def ask(find: Callable[Concatenate[Any, _Asked], _Found], *arguments: _Asked.args, **named: _Asked.kwargs) -> _Found:
    """What a query finds, in the study as it is now."""
    with reading(engine()) as session:
        return find(session, *arguments, **named)


def once(key: Hashable, find: Callable[[Any], _Found]) -> _Found:
    """What a run of a page asks the study again and again is asked once, and anew after the run has saved something."""
    return in_run(key, lambda: ask(find))


def in_run(key: Hashable, find: Callable[[], _Found]) -> _Found:
    """Likewise of what is no query."""
    run = _run.get(None)
    known = {} if run is None else run.known
    if key not in known:
        known[key] = find()
    answer: _Found = known[key]
    return answer


def _forget() -> None:
    run = _run.get(None)
    if run is not None:
        run.known.clear()


@contextmanager
def guarded() -> Iterator[None]:
    """Around a page or a fragment: where the database fails, a sentence says so, and one can try again."""
    fault, outer = st.session_state.pop("fault", ""), _run.get(None)
    run = _Run(st.empty(), fault, is_second=bool(fault))
    if fault:
        run.top.html(html.notice(fault, kind="error"))
    elif outer is not None and outer.is_second:
        run.fault, run.is_second = outer.fault, True
    if outer is not None:
        run.known, run.place, run.is_alone = outer.known, outer.place, False
    token, request = _run.set(run), REQUEST.set(uuid4().hex)
    try:
        with reading_together():
            yield
    except DatabaseFault as failed:
        run.say(failed)
    except OverreadError as error:  # the study cannot be opened
        run.top.html(html.notice(str(error), kind="error"))
    else:
        return
    finally:
        _run.reset(token)
        REQUEST.reset(request)
    st.button("Try again", key="try_again", icon=":material/refresh:")
    st.stop()  # not an end: what is typed in fields that were not drawn stays


def fragment(draw: Callable[_Asked, None], *, run_every: float | None = None) -> Callable[_Asked, None]:
    """`st.fragment`, guarded."""

    @st.fragment(run_every=run_every)
    @wraps(draw)
    def drawn(*arguments: _Asked.args, **named: _Asked.kwargs) -> None:
        with guarded():  # where it does not run alone, the page around it has looked who is here
            if runs_alone() and provider() is not None and viewer(pressed=run_every is None) is None:
                st.rerun()  # their session ended, or a lead let them out: nothing of the page stays on the screen
            draw(*arguments, **named)

    return drawn


def runs_alone() -> bool:
    """Whether this part of a page runs by itself, without the page around it."""
    return _run.get().is_alone


def has_failed() -> bool:
    """Whether the database failed in this run."""
    return bool(_run.get().fault)


def saved(act: Callable[[], object]) -> bool:
    """Do what a press asks for. Where the database fails, the page says so, and this run saves nothing more."""
    run = _run.get()
    if run.fault:
        return False
    try:
        act()
    except DatabaseFault as fault:
        run.say(fault)
        return False
    return True


@contextmanager
def shown_errors() -> Iterator[None]:
    """What a reader can act on is shown as its sentence, and the page goes on."""
    try:
        yield
    except (OverreadError, DatabaseFault) as error:
        st.html(html.notice(str(error), kind="error"))


def act(do: Callable[..., object], *arguments: Any, **named: Any) -> None:
    """Do in the study what a press asks for, and draw the page anew; a refusal is shown as its sentence."""
    with shown_errors():
        do(engine(), *arguments, **named)
        st.rerun()


def offer_import(person: Viewer) -> None:
    """In an empty study: the way to the first file, for whoever may import; others are told who does."""
    if allows(check_can_import, person):
        st.html(html.notice("Begin with a file of examples or results."))
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
    else:
        st.html(html.notice("A lead or researcher imports the first file. Come back once that is done."))


def local_time(moment: datetime | pd.Timestamp, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in the viewer's own zone, to the second; in UTC, and saying so, where that zone is not known."""
    time = pd.Timestamp(moment)
    try:
        return str(time.tz_convert(st.context.timezone or "UTC").strftime(form))
    except (KeyError, ValueError):
        return str(time.tz_convert("UTC").strftime(f"{form} UTC"))


def local_minute(moment: datetime | pd.Timestamp) -> str:
    """Likewise, to the minute."""
    return local_time(moment, "%Y-%m-%d %H:%M")


def local_day(moment: datetime | pd.Timestamp) -> str:
    """A day in the viewer's own zone, in words: 12 March 2026."""
    day = pd.Timestamp(local_time(moment)[:10])
    return f"{day.day} {day.month_name()} {day.year}"
