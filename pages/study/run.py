"""One run: progress, cost, its answers and failures; a lead stops it, resumes it, and has failures asked again."""

import time
from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from evalcore.errors import OverreadError
from evalcore.runs import acts as runs, queries, summary, worker
from evalcore.runs.acts import MAX_CONCURRENCY
from evalcore.runs.queries import Progress, RunRow, Subject
from evalcore.runs.spec import RunSpec, key_of
from evalcore.stats.wording import counted
from evalcore.study.frames import records
from evalcore.study.policies import allows, check_can_run, check_can_see_replies, own_act, reason, visible_verdicts
from evalcore.study.schema import CASES, Format, Outcome, RunKind, RunState, Viewer
from evalcore.study.tables import now
from pages.shared import common, filters, html, routes
from pages.shared.html import Fold, escaped, verbatim

NOTHING, LONGEST, ON_A_PAGE = "–", 400, 10
REPLY, ERROR = Fold(400, 6), Fold(240, 3)  # of a reply as much stands there as tells what went wrong; the rest unfolds
WHY = (
    "A reply that could not be read may still show what a judge thinks. So replies are shown to leads only, and never "
    "those on conversations that wait for the lead's own read."
)
OPENED = "run"  # in the address: the number of the run that is open
LIVE_SECONDS = 2
PATIENCE = 10
"""What took long to count is counted again only after so many times as long: a million questions take a second."""
REFUSED = "run_refused"
"""Why no process could be started when it was last tried: the number of the run, and a sentence."""


def show(viewer: Viewer, run_id: int) -> None:
    """The run that the address names."""
    if st.button("All runs", icon=":material/arrow_back:", key="run_back"):
        open_(None)
    row = next(iter(common.ask(queries.rows, run_ids=[run_id])), None)
    if row is None:
        st.html(html.notice(f"This study has no run {run_id}. The link may belong to another study."))
        return
    at = progress(row)
    st.html(html.finding(title(viewer, row, at.n_questions)))
    is_named = row.kind is RunKind.JUDGE or row.spec.model.name not in unnamed(viewer)
    st.html(html.quiet(_line(row, is_named=is_named)))
    if row.spec.own:
        with st.expander("Its prompt", icon=":material/edit_note:"):
            made = "; ".join(one.words for one in row.spec.made_with)
            st.html(html.quiet(f"Made with {made}." if made else "Nobody has said what it was made with."))
            st.html(verbatim(row.spec.own.text, Fold(20_000, 400)))
    number, sentence = st.session_state.get(REFUSED, (None, ""))
    if number == run_id:
        st.html(html.notice(sentence, kind="error"))
    is_live, has_failed = at.n_workers > 0, at.n_failed > 0
    drawn = common.fragment(_figures, run_every=LIVE_SECONDS if is_live else None)
    drawn(viewer, run_id, is_live=is_live, has_failed=has_failed)
    # to count what was cut off takes a look at every answer
    if row.kind is not RunKind.JUDGE and not is_live and (n_cut := common.read("n_cut_off", run_id)):
        st.html(html.notice(summary.cut_off_words(n_cut)))
    if at.n_answered and is_named:
        with st.container(horizontal=True, vertical_alignment="center"):
            _links(row.spec)
    if has_failed:  # as they are now; they stand still while the run goes on, so that one can read them
        common.fragment(_failures)(viewer, run_id)


def _line(row: RunRow, *, is_named: bool) -> str:
    spec, seen = row.spec, []
    if spec.kind is RunKind.JUDGE and spec.dataset != CASES and not spec.own:
        seen.append("sees the points" if spec.with_points else "does not see the points")
    if spec.kind is RunKind.JUDGE:
        seen.append("is asked for its confidence" if spec.with_confidence else "is not asked for its confidence")
    limit = f" At most {counted(spec.limit, 'question')}." if spec.limit is not None else ""
    judge = f" The judge {' and '.join(seen)}." if seen else ""
    how = f"Asked: {summary.how_words(spec.model)}. " if is_named else ""
    return (
        f"Run {row.run_id} on the data set {spec.dataset}, started by {row.started_by}, first on "
        f"{common.local_time(row.created_at)}. {how}Prompt {spec.prompt_version}; "
        f"{counted(row.concurrency, 'question')} at once.{limit}{judge}"
    )


def bar(at: Progress) -> str:
    """How much is answered, how much has failed; the numbers stand beside it in words."""
    n_all = max(at.n_questions, 1)
    answered, failed = 100 * at.n_answered / n_all, 100 * at.n_failed / n_all
    words = f"{at.n_answered:,} of {at.n_questions:,} answered, {at.n_failed:,} failed"
    return (
        f'<div class="or-run-bar" role="img" aria-label="{escaped(words)}"><i style="width:{answered:.2f}%"></i>'
        f'<i class="or-run-failed" style="width:{failed:.2f}%"></i></div>'
    )


def _figures(viewer: Viewer, run_id: int, *, is_live: bool, has_failed: bool) -> None:
    """Drawn every two seconds while somebody works; the whole page at the first failure and at the end."""
    row = common.ask(queries.run, run_id)
    at = progress(row)
    stands = state(viewer, at)
    more = stands.more if len(stands.more) <= LONGEST else stands.more[:LONGEST].rstrip() + " …"
    st.html(html.notice(f"{stands.word}: {more}." if more else f"{stands.word}."))
    st.html(bar(at))
    answered = f"{at.n_answered:,} of {at.n_questions:,}"
    figures = {"answered": answered, "failed": f"{at.n_failed:,}", "to ask": f"{at.n_open:,}"}
    if at.n_workers:
        left = summary.duration(at.seconds_left) if at.n_open and at.seconds_left is not None else NOTHING
        figures |= {"a second": f"{at.rate:,.1f}", "left": left}
    limit = f", limit {summary.dollars(at.max_cost)}" if at.max_cost is not None else ""
    tokens = {"tokens in": f"{at.calls.prompt_tokens:,}", "tokens out": f"{at.calls.completion_tokens:,}"}
    st.html(html.facts(figures | {f"cost{limit}": summary.cost_words(at.calls).removeprefix("cost ")} | tokens))
    if allows(check_can_run, viewer):
        if at.n_workers and at.state is RunState.OPEN:
            if st.button("Stop", icon=":material/stop:", key="run_stop"):
                common.act(runs.stop, run_id, actor=viewer)
        elif at.n_open and not at.n_workers:
            _go_on(viewer, row)
    if (is_live and not at.n_workers) or (at.n_failed and not has_failed):
        st.rerun()


def _go_on(viewer: Viewer, row: RunRow) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = f"run_on_concurrency_{row.run_id}"
        concurrency = st.number_input("Questions at once", 1, MAX_CONCURRENCY, row.concurrency, key=key, width=160)
        max_cost = st.number_input(
            "Cost limit (US dollars)", 0.0, None, row.max_cost, 1.0, "%.10g", key=f"run_on_cost_{row.run_id}", width=180, placeholder="no limit",
            disabled=not row.spec.model.has_prices,
        )  # fmt: skip
        if st.button("Resume", type="primary", icon=":material/play_arrow:", key="run_on"):
            with common.shown_errors():
                start(viewer, row.spec, concurrency=int(concurrency), max_cost=max_cost)
                st.rerun()


def _links(spec: RunSpec) -> None:
    name, is_judge, is_cases = spec.model.name, spec.kind is RunKind.JUDGE, spec.dataset == CASES
    browsed = {"dataset": filters.plain(spec.dataset), "judge" if is_judge else "model": name}
    if is_judge and is_cases:  # of levels Browse finds what one judge says only by the level
        browsed = {"dataset": CASES, "format": filters.FORMATS[Format.CONVERSATION.value]}
    label = f"Browse its {'verdicts' if is_judge else 'answers'}"
    st.page_link(routes.BROWSE, label=label, icon=":material/menu_book:", query_params=browsed)
    if is_cases:
        query = {"triage_conversation_judge": name} if is_judge else {}
        st.page_link(routes.TRIAGE, label="Its numbers on Triage", icon=":material/emergency:", query_params=query)
        return
    query = {"models_data": spec.dataset} | ({"models_judges": name} if is_judge else {})
    st.page_link(routes.MODELS, label="Its numbers on Models", icon=":material/leaderboard:", query_params=query)
    if not is_judge:
        st.html(html.quiet("It has numbers there once a judge has labelled its answers."), width="content")


def _failures(viewer: Viewer, run_id: int) -> None:
    row = common.ask(queries.run, run_id)
    at = progress(row)
    counts = {outcome: at.outcomes[outcome] for outcome in summary.OUTCOMES if at.outcomes.get(outcome)}
    if not counts:  # all of them are being asked again
        return
    st.subheader("Failures", anchor=False)
    st.html(html.items(f"{n:,} {': '.join(summary.OUTCOMES[outcome])}" for outcome, n in counts.items()))
    if not allows(check_can_see_replies, viewer):
        st.html(html.quiet(f"{reason(check_can_see_replies, viewer)} {WHY}"))
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kinds, many = list(counts), f"run_kinds_{run_id}"
        words = {outcome: f"{summary.OUTCOMES[outcome][0]} {counts.get(outcome, 0):,}" for outcome in summary.OUTCOMES}
        chosen = st.pills(
            "Kinds", kinds, selection_mode="multi", default=kinds, format_func=words.__getitem__, key=many
        )
        n_chosen = sum(counts.get(outcome, 0) for outcome in chosen)
        ask = f"Ask {counted(n_chosen, 'question')} again"
        again = st.button(ask, icon=":material/replay:", key="run_retry", disabled=not n_chosen)
        if at.n_workers:  # what has failed since is shown at a press
            if st.button("Refresh", icon=":material/refresh:", type="tertiary", key="run_failures_again"):
                common.draw_anew()
            st.html(html.quiet(f"as it was at {common.local_time(now())}"), width="content")
    if again:
        with common.shown_errors():
            retry(viewer, row, chosen)
            st.rerun()
    if n_chosen:
        with common.shown_errors():
            _page(viewer, run_id, chosen, n_chosen)
    st.html(html.quiet(WHY))


def _page(viewer: Viewer, run_id: int, outcomes: list[Outcome], n_all: int) -> None:
    n_pages = -(-n_all // ON_A_PAGE)
    place = min(st.session_state.get(f"run_failed_{run_id}", 1), n_pages)
    skipped, engine = (place - 1) * ON_A_PAGE, common.engine()
    failed = runs.failures(engine, viewer, run_id, most=ON_A_PAGE, skipped=skipped, outcomes=outcomes)
    visible = visible_verdicts(failed, None, common.blind(viewer))
    if n_hidden := len(failed) - len(visible):
        more = f"{counted(n_hidden, 'question')} more on conversations that wait for your own {own_act(viewer)}."
        st.html(html.quiet(more))
    if not visible.empty:  # Streamlit refuses to draw nothing
        st.html("".join(map(failure_html, records(visible))))
    if n_pages > 1:
        st.pagination(n_pages, key=f"run_failed_{run_id}")


def failure_html(failed: Mapping[Any, Any]) -> str:
    """A question that failed: what it was about, why, and the reply as it came, escaped."""
    n_tries = int(failed["n_tries"])
    about = [
        failed["prompt_id"],
        *summary.about_words(failed),
        f"HTTP {failed['status']:.0f}" if failed["status"] is not None else "no HTTP status",
        {0: "never sent", 1: "asked once"}.get(n_tries, f"asked {n_tries:,} times"),
    ]
    word = summary.OUTCOMES[Outcome(failed["outcome"])][0]
    error = verbatim(failed["error"], ERROR) if failed["error"] else ""
    reply = "<h4>No reply</h4>"
    if failed["reply"]:
        reply = f"<h4>The reply as it came</h4>{verbatim(failed['reply'], REPLY)}"
    heads = "".join(f'<span dir="auto">{escaped(part)}</span>' for part in about)
    return (
        f'<section class="or-failed"><div class="or-failed-head"><b>{escaped(word)}</b>{heads}</div>'
        f'{error}<div class="or-failed-reply">{reply}</div></section>'
    )


@st.cache_resource(show_spinner=False)
def _known(location: str) -> dict[int, tuple[RunRow, Progress, float, float]]:  # noqa: ARG001 - the key
    return {}


def progress(row: RunRow) -> Progress:
    """How far a run is, at most a moment old; one that has ended is not counted again."""
    known, begun = _known(common.location()), time.monotonic()
    if row.run_id in known:
        of_row, at, counted_at, seconds = known[row.run_id]
        has_ended = row.state is not RunState.OPEN and not at.n_workers
        if of_row == row and (has_ended or begun - counted_at < PATIENCE * seconds):
            return at
    at = common.ask(queries.progress, row.run_id)
    known[row.run_id] = row, at, time.monotonic(), time.monotonic() - begun
    return at


@st.cache_data(max_entries=1_000, show_spinner=False)
def _subject(location: str, run_id: int, n_questions: int) -> Subject:  # noqa: ARG001 - the key
    return common.ask(queries.subject, run_id)


def title(viewer: Viewer, row: RunRow, n_questions: int) -> str:
    """What a run asks, in words. A model that the viewer may not see behind a conversation that waits is not named."""
    name = "a model" if row.kind is not RunKind.JUDGE and row.spec.model.name in unnamed(viewer) else None
    return summary.asked_words(row.spec, _subject(common.location(), row.run_id, n_questions), name=name)


def unnamed(viewer: Viewer) -> frozenset[str]:
    """Models that are known only from conversations that wait for this person's own first read."""
    hidden = common.blind(viewer)
    return frozenset(common.read("models")) - frozenset(common.read("models", hidden)) if hidden else frozenset()


def state(viewer: Viewer, at: Progress) -> summary.State:
    """The state of a run. Why it stopped may quote a judge: whole to leads alone, and to no blind reader."""
    with_words = bool(at.reason) and allows(check_can_run, viewer) and not common.blind(viewer)
    return summary.state_of(at, with_words=with_words)


def open_(run_id: int | None) -> None:
    """Go to a run, or back to the list; the address says where."""
    if run_id is None:
        st.query_params.pop(OPENED, None)
    else:
        st.query_params[OPENED] = str(run_id)
    st.rerun()


def start(viewer: Viewer, spec: RunSpec, *, concurrency: int, max_cost: float | None) -> int:
    """Start or resume a run with a process of its own. Returns its number, also where no process could be started."""
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
    """Start a process, unless nothing is left to ask or somebody works on the run and was not told to stop."""
    st.session_state.pop(REFUSED, None)
    is_open = common.ask(queries.run, run_id).state is RunState.OPEN
    if not is_open or not all(one.stop_asked for one in common.ask(worker.alive, run_id)):
        return
    try:
        worker.start_worker(common.location(), run_id)
    except OverreadError as error:
        st.session_state[REFUSED] = (run_id, str(error))
