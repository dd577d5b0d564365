"""Where the study stands, and what to do next: pictures first, what they rest on below."""

from datetime import timedelta

import streamlit as st

from evalcore.reading import adjudication, assignment_queries, pace, queries, thread_queries
from evalcore.reading.reference import read_words
from evalcore.rubric.composition_queries import changed_since
from evalcore.stats.wording import counted
from evalcore.study import policies
from evalcore.study.audit.trail import trail_head
from evalcore.study.browse import CONFLICTING
from evalcore.study.contents import holdings
from evalcore.study.schema import Role, Viewer
from evalcore.study.tables import now
from evalcore.team.provider import provider
from pages.overview import composition, results
from pages.review import telling
from pages.review.html import left_words
from pages.shared import common, filters, glossary, html, routes, theme, tour

MAX_READERS = 15
FOLD = "made_of_fold"
LATELY = timedelta(days=7)


def _next(viewer: Viewer) -> list[tuple[str, str, str]]:
    """One line a role: the page, its icon, and what waits there."""
    found = []
    if policies.allows(policies.check_can_read, viewer):
        progress = common.ask(queries.progress, viewer, now())
        left = left_words(progress)
        words = f"{counted(progress.n_left, 'response')} to review{', ' + left if left else ''}"
        found.append(("review", "rate_review", words if progress.n_left else "nothing waits for you"))
    if policies.allows(policies.check_can_adjudicate, viewer):
        queue = adjudication.cases(common.engine(), viewer)
        where = counted(len(queue.waiting), "response or case", "responses and cases")
        waits = "waits" if queue.n_items == 1 else "wait"
        words = f"{counted(queue.n_items, 'item')} on {where} {waits} for you to settle"
        found.append(("adjudicate", "balance", words if queue.waiting else "nothing waits for you to settle"))
    if Role.LEAD in viewer.roles:
        found.append(("study", "database", "import files, add people, assign reading"))
    if Role.RESEARCHER in viewer.roles:
        found.append(("export", "download", "labels, methods, and the numbers of a paper"))
    return found


def _lines(viewer: Viewer) -> list[str]:
    """What the viewer has read, and what is new in the study, for whom that matters."""
    lines = []
    if policies.allows(policies.check_can_give_verdict, viewer):
        own = common.read("readers")
        mine = own.loc[own["reader"].eq(viewer.name)]
        for row in mine.itertuples():
            read = read_words(row.n_items, row.n_responses, row.n_cases)
            lines.append(f"You have read {read}, the last on {common.local_day(row.last_at)}.")
        if mine.empty:
            lines.append("You have no verdicts yet. Open Review to start.")
        if told := common.ask(thread_queries.threads, person_id=viewer.person_id):
            lines.append(f"{telling.summary(told)}. See My reads.")
    if Role.RESEARCHER in viewer.roles:
        lines.append(_lately())
    return lines


def _lately() -> str:
    lately = common.ask(changed_since, now() - LATELY, hidden)
    changes = []
    if lately["n_verdicts"]:
        settled = f", {counted(lately['n_settled'], 'item')} settled" if lately["n_settled"] else ""
        verdicts = f"{counted(lately['n_verdicts'], 'verdict')} of {counted(lately['n_readers'], 'physician')}"
        changes.append(f"{verdicts} on {counted(lately['n_responses'], 'response')}{settled}")
    if lately["n_files"]:
        changes.append(f"{counted(lately['n_files'], 'file')} imported")
    if not changes:
        return "Nothing new in the last seven days."
    return f"In the last seven days: {', '.join(changes)}. Results have been updated."


def _progress() -> None:
    """How far assigned reading is, in all, by assignment and by reader."""
    assigned = common.ask(assignment_queries.assignments)
    if assigned.empty:
        return
    st.subheader("Progress of the reading", anchor=False, help=glossary.helps("assignment", "read"))
    table = pace.progress(assigned, common.ask(assignment_queries.locked_reads, hidden), now())
    alt = "Reads done and left, with the pace of each reader"
    theme.figure(pace.progress_figure(table), key="overview_progress", alt=alt)
    n_open, n_skipped = int(assigned["n_open"].sum()), int(assigned["n_skipped"].sum())
    skipped = f"; {n_skipped:,} {'is' if n_skipped == 1 else 'are'} skipped" if n_skipped else ""
    st.html(
        html.quiet(
            f"{counted(n_open, 'response is', 'responses are')} being read now{skipped}. The pace is of the last seven days."
        )
    )


viewer = common.require()
hidden = common.blind(viewer)
counts = common.read("counts", hidden)
whose = f"judged by {counted(counts['judges'], 'judge')} and read by {counted(counts['reviewers'], 'physician')}"
st.html(html.heading("Overview", f"{holdings(counts)}, {whose}" if counts["examples"] else common.EMPTY))
if provider() is not None:  # else the start page has said it
    st.html(html.quiet(tour.WHAT))
if common.is_demo():
    st.html(html.notice(tour.FICTIONAL))
tour.show(viewer)
if not counts["examples"]:
    common.offer_import(viewer)
    st.stop()
is_of_study = bool(viewer.roles & policies.STUDY)
with st.container(gap="xxsmall", key="next"):
    if Role.LEAD in viewer.roles and (n_waiting := common.ask(thread_queries.n_waiting, hidden)):
        words = counted(n_waiting, "line from a reader waits", "lines from readers wait")
        reading, icon = {"study_tab": "Reading"}, ":material/forum:"
        st.page_link(routes.STUDY, label=f"Study: {words} for your answer", icon=icon, query_params=reading)
    for page, icon, label in _next(viewer):
        st.page_link(routes.script(page), label=f"{routes.title(page)}: {label}", icon=f":material/{icon}:")
if lines := _lines(viewer):
    st.html(html.items(lines) if len(lines) > 1 else html.quiet(lines[0]))
if is_of_study:
    _progress()
    results.judges(viewer)
    results.models(viewer)
waiting = f"Reads of conversations that wait for your own {policies.own_act(viewer)} are left out here."
left_out = html.quiet(waiting) if hidden else ""
if left_out and is_of_study:
    st.html(left_out)
with st.container(horizontal=True):
    if policies.allows(policies.check_can_give_verdict, viewer):
        st.page_link(routes.BROWSE, label="Read conversations", icon=":material/menu_book:")
        conflicts = {"reads": filters.READS[CONFLICTING]}  # an address holds an option in the words of the screen
        icon = ":material/compare_arrows:"
        st.page_link(routes.BROWSE, label="See where readers conflict", icon=icon, query_params=conflicts)
    if counts["cases"]:
        st.page_link(routes.TRIAGE, label="See triage", icon=":material/emergency:")
if is_of_study and counts["reviewers"]:
    readers = common.read("readers", hidden)
    names = [
        f"{html.reader_name(row.reader)}: {read_words(row.n_items, row.n_responses, row.n_cases)}"
        for row in readers.head(MAX_READERS).itertuples()
    ]
    if len(readers) > MAX_READERS:
        names.append(f"{len(readers) - MAX_READERS:,} more")
    with st.expander(f"What {counted(len(readers), 'physician has', 'physicians have')} read so far, from files too"):
        st.html(html.items(names))
st.session_state.setdefault(FOLD, "made_of" in st.query_params)
with st.expander("Composition and coverage", key=FOLD, on_change="rerun") as fold:
    if fold.open:  # to count it takes long
        facts = {"conversations": f"{counts['examples'] - counts['cases']:,}"}
        if counts["cases"]:
            facts["cases of triage"] = f"{counts['cases']:,}"
        facts |= {
            "criteria": f"{counts['criteria']:,}",
            "judges' verdicts": f"{counts['judge_verdicts']:,}",
            "physicians' verdicts": f"{counts['physician_verdicts']:,}",
            "items where readers conflict": f"{common.read('n_conflicting', hidden):,}",
        }
        st.html(html.facts(facts) + ("" if is_of_study else left_out))
        if counts["examples"] > counts["cases"]:
            composition.show(viewer, hidden)
if policies.allows(policies.check_can_see_audit, viewer) and not hidden:  # it moves with every act of others
    head = common.ask(trail_head)[1]
    with st.expander(f"Last hash of the audit trail: {head[:12]}…"):
        st.code(head, language=None)
        keep = "overread audit verify --expect HASH fails if the trail has been cut off or rewritten since"
        st.html(html.quiet(f"Keep it outside this study: {keep}."))
