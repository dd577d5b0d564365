"""One run: how far it is, what it costs, where its answers are; a lead stops it and goes on with it."""

import streamlit as st

from evalcore.errors import NotFound
from evalcore.runs import queries
from evalcore.runs.acts import MAX_CONCURRENCY
from evalcore.runs.queries import Progress, RunRow
from evalcore.runs.telling import cost_words, cut_off_words, dollars, duration, how_words
from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.policies import allows, check_can_run
from evalcore.study.run_words import RunKind, RunSpec, RunState
from evalcore.study.schema import CASES, Format, Viewer
from pages.shared import common, filters, html, routes
from pages.study import run_acts, run_failures, run_html
from pages.study.run_acts import LIVE_SECONDS

NOTHING, LONGEST = "–", 400


def show(viewer: Viewer, run_id: int) -> None:
    """The run that the address names."""
    if st.button("All runs", icon=":material/arrow_back:", key="run_back"):
        run_acts.open_(None)
    row = _found(run_id)
    if row is None:
        st.html(html.notice(f"This study has no run {run_id}. The link may belong to another study."))
        return
    at = run_acts.progress(row)
    st.html(html.finding(run_acts.title(viewer, row, at.n_questions)))
    is_named = row.kind is RunKind.JUDGE or row.spec.model.name not in run_acts.unnamed(viewer)
    st.html(html.quiet(_line(row, is_named=is_named)))
    if sentence := run_acts.refused(run_id):
        st.html(html.notice(sentence, kind="error"))
    is_live = at.n_workers > 0
    has_failed = at.n_failed > 0
    common.fragment(_figures, run_every=LIVE_SECONDS if is_live else None)(
        viewer, run_id, is_live=is_live, has_failed=has_failed
    )
    if row.kind is not RunKind.JUDGE and not is_live:  # to count takes a look at every answer
        _cut_off(row)
    if at.n_answered and is_named:
        _links(row.spec)
    if has_failed:
        run_failures.show(viewer, run_id)


def _found(run_id: int) -> RunRow | None:
    with reading(common.engine()) as session:
        try:
            return queries.run(session, run_id)
        except NotFound:
            return None


def _line(row: RunRow, *, is_named: bool) -> str:
    """Who started it, and how it is asked."""
    spec = row.spec
    seen = []
    if spec.kind is RunKind.JUDGE and spec.dataset != CASES:
        seen.append("sees the points" if spec.with_points else "does not see the points")
    if spec.kind is RunKind.JUDGE:
        seen.append("is asked for its confidence" if spec.with_confidence else "is not asked for its confidence")
    limit = f" At most {counted(spec.limit, 'question')}." if spec.limit is not None else ""
    judge = f" The judge {' and '.join(seen)}." if seen else ""
    how = f"Asked: {how_words(spec.model)}. " if is_named else ""
    return (
        f"Run {row.run_id} on the data set {spec.dataset}, started by {row.started_by}, first on {common.local_time(row.created_at)}. "
        f"{how}Prompt {spec.prompt_version}; {counted(row.concurrency, 'question')} at once.{limit}{judge}"
    )


def _figures(viewer: Viewer, run_id: int, *, is_live: bool, has_failed: bool) -> None:
    """How far it is, and what can be done about that; drawn every two seconds while somebody works on it.

    The rest of the page is drawn anew when the first question has failed, and when nobody works any more.
    """
    row = _found(run_id)
    if row is None:
        return
    at = run_acts.progress(row)
    state = run_acts.state(viewer, at)
    st.html(html.notice(f"{state.word}: {_short(state.more)}." if state.more else f"{state.word}."))
    st.html(run_html.bar(at))
    st.html(html.facts(_facts(at)))
    if allows(check_can_run, viewer):
        _steer(viewer, row, at)
    if (is_live and not at.n_workers) or (at.n_failed and not has_failed):
        st.rerun()


def _cut_off(row: RunRow) -> None:
    if n_cut := common.read("n_cut_off", row.run_id):
        st.html(html.notice(cut_off_words(n_cut)))


def _short(words: str) -> str:
    """Words of a server can be long; a failure shows them whole."""
    return words if len(words) <= LONGEST else words[:LONGEST].rstrip() + " …"


def _facts(at: Progress) -> dict[str, str]:
    figures = {
        "answered": f"{at.n_answered:,} of {at.n_questions:,}",
        "failed": f"{at.n_failed:,}",
        "to ask": f"{at.n_open:,}",
    }
    if at.n_workers:
        left = duration(at.seconds_left) if at.n_open and at.seconds_left is not None else NOTHING
        figures |= {"a second": f"{at.rate:,.1f}", "left": left}
    limit = f", stops at {dollars(at.max_cost)}" if at.max_cost is not None else ""
    tokens = {"tokens in": f"{at.prompt_tokens:,}", "tokens out": f"{at.completion_tokens:,}"}
    return figures | {f"cost{limit}": cost_words(at).removeprefix("cost ")} | tokens


def _steer(viewer: Viewer, row: RunRow, at: Progress) -> None:
    """Stop it, or go on with it."""
    if at.n_workers and at.state is RunState.OPEN:
        if st.button("Stop", icon=":material/stop:", key="run_stop"):
            with common.shown_errors():
                run_acts.stop(viewer, row.run_id)
                st.rerun()
    elif at.n_open and not at.n_workers:
        _go_on(viewer, row)


def _go_on(viewer: Viewer, row: RunRow) -> None:
    has_prices = None not in (row.spec.model.price_in, row.spec.model.price_out)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        concurrency = st.number_input(
            "Questions at once", 1, MAX_CONCURRENCY, row.concurrency, key=f"run_on_concurrency_{row.run_id}", width=160
        )
        max_cost = st.number_input(
            "Stop at US dollars", 0.0, None, row.max_cost, 1.0, "%.10g", key=f"run_on_cost_{row.run_id}", width=160, placeholder="no limit",
            disabled=not has_prices,
        )  # fmt: skip
        if st.button("Go on", type="primary", icon=":material/play_arrow:", key="run_on"):
            with common.shown_errors():
                run_acts.start(viewer, row.spec, concurrency=int(concurrency), max_cost=max_cost)
                st.rerun()


def _links(spec: RunSpec) -> None:
    """Where its answers are."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if spec.kind is RunKind.JUDGE:
            _judge_links(spec)
        else:
            _answer_links(spec)


def _judge_links(spec: RunSpec) -> None:
    judge = spec.model.name
    if spec.dataset == CASES:  # of levels Browse finds what one judge says only by the level
        _browse("Its verdicts in Browse", {"dataset": CASES, "format": filters.FORMATS[Format.CONVERSATION.value]})
        _triage({"triage_conversation_judge": judge})
        return
    _browse("Its verdicts in Browse", {"dataset": filters.plain(spec.dataset), "judge": judge})
    _models({"models_data": spec.dataset, "models_judges": judge})


def _answer_links(spec: RunSpec) -> None:
    _browse("Its answers in Browse", {"dataset": filters.plain(spec.dataset), "model": spec.model.name})
    if spec.dataset == CASES:
        _triage({})
        return
    _models({"models_data": spec.dataset})
    st.html(html.quiet("It has numbers there once a judge has labelled its answers."), width="content")


def _browse(label: str, query: dict[str, str]) -> None:
    st.page_link(routes.BROWSE, label=label, icon=":material/menu_book:", query_params=query)


def _triage(query: dict[str, str]) -> None:
    st.page_link(routes.TRIAGE, label="Its numbers on Triage", icon=":material/emergency:", query_params=query)


def _models(query: dict[str, str]) -> None:
    st.page_link(routes.MODELS, label="Its numbers on Models", icon=":material/leaderboard:", query_params=query)
