"""Where the study stands, and what to do next."""

from datetime import timedelta
from typing import Any

import streamlit as st

from evalcore.reading import adjudication, assignment_queries, queries
from evalcore.reading.reference import read_words
from evalcore.rubric.composition import Grouping, findings, part_columns, summary
from evalcore.rubric.composition_queries import changed_since
from evalcore.rubric.figures import groups_read
from evalcore.stats.intervals import share_words
from evalcore.stats.wording import counted, listed
from evalcore.study import policies
from evalcore.study.browse import CONFLICTING
from evalcore.study.contents import holdings
from evalcore.study.schema import Role, Viewer
from evalcore.study.tables import now
from evalcore.study.trail import trail_head
from pages.review.html import left_words
from pages.shared import common, filters, html, page_cache, routes, tables, theme

MAX_READERS = 6
LATELY = timedelta(days=7)


def _reader_lines(viewer: Viewer) -> list[str]:
    lines = []
    if policies.allows(policies.check_can_read, viewer):
        progress = common.ask(queries.progress, viewer, now())
        if progress.n_left:
            left = left_words(progress)
            lines.append(f"{counted(progress.n_left, 'response')} to review{', ' + left if left else ''}.")
    if policies.allows(policies.check_can_give_verdict, viewer):
        own = common.read("readers")
        for row in own.loc[own["reader"].eq(viewer.name)].itertuples():
            read = read_words(row.n_items, row.n_responses, row.n_cases)
            lines.append(f"You have read {read}, the last on {common.local_time(row.last_at)}.")
        if not own["reader"].eq(viewer.name).any():
            lines.append("You have no verdicts yet. Open Review to start.")
    return lines


def _lead_lines(viewer: Viewer) -> list[str]:
    lines = []
    if policies.allows(policies.check_can_assign, viewer):
        assigned = common.ask(assignment_queries.assignments)
        wanted, done = int((assigned["n_tasks"] * assigned["n_readers"]).sum()), int(assigned["n_reads"].sum())
        if wanted:
            lines.append(
                f"Assigned reading: {done:,} of {wanted:,} reads done in {counted(len(assigned), 'assignment')}, "
                f"{int(assigned['n_open'].sum()):,} being read now, {wanted - done:,} still needed."
            )
    readers = common.read("readers", hidden)
    names = [
        f"{html.reader_name(row.reader)} {read_words(row.n_items, row.n_responses, row.n_cases)}"
        for row in readers.head(MAX_READERS).itertuples()
    ]
    if len(readers) > MAX_READERS:
        names.append(f"{len(readers) - MAX_READERS:,} more")
    return [*lines, f"Read so far: {'; '.join(names)}."] if names else lines


def _researcher_lines() -> list[str]:
    lately = common.ask(changed_since, now() - LATELY, hidden)
    if not lately["n_verdicts"] and not lately["n_files"]:
        return ["Nothing new in the last seven days."]
    changes = []
    if lately["n_verdicts"]:
        settled = f", {counted(lately['n_settled'], 'item')} settled" if lately["n_settled"] else ""
        verdicts = f"{counted(lately['n_verdicts'], 'verdict')} of {counted(lately['n_readers'], 'physician')}"
        changes.append(f"{verdicts} on {counted(lately['n_responses'], 'response')}{settled}")
    if lately["n_files"]:
        changes.append(f"{counted(lately['n_files'], 'file')} imported")
    return [f"In the last seven days: {', '.join(changes)}. Results have been updated."]


def _composition() -> None:
    frames, sizes_of = (lambda: common.read("composition")), common.read("subset_sizes")
    by, sizes, weights = page_cache.computed(summary, viewer, frames, sizes_of, hidden)
    st.html(html.quiet(sizes))
    look: dict[str, Any] = {"key": "made_of", "bind": "query-params", "format_func": lambda option: option.label}
    chosen = st.segmented_control("By", list(Grouping), default=Grouping.THEME, required=True, **look)
    grouping: Grouping = chosen or Grouping.THEME
    table, what = by[grouping], f"{grouping.unit.capitalize()} by {grouping.words}"
    imbalances = {name: findings(name, of) for name, of in by.items()}
    st.html(html.finding(" ".join(imbalances[grouping]) or f"No clear imbalance by {grouping.words}."))
    figure = groups_read(table, what=grouping.label, unit=grouping.unit)
    alt = f"{what}, read and not read, beside the full benchmark"
    theme.figure(figure, key=f"composition_{grouping}", alt=alt)
    alt = f"{what}, beside the full benchmark, and what was read of them"
    tables.show(part_columns(grouping, table), key="composition_table", names=(grouping.label,), alt=alt)
    too = " also" if imbalances[grouping] else ""
    if others := [name.label.lower() for name, words in imbalances.items() if words and name != grouping]:
        st.html(html.quiet(f"There is{too} an imbalance by {listed(others)}."))
    if weights and grouping == Grouping.THEME:
        st.html(html.quiet(weights))


viewer = common.require()
hidden = common.blind(viewer)
counts = common.read("counts", hidden)
whose = f"judged by {counted(counts['judges'], 'judge')} and read by {counted(counts['reviewers'], 'physician')}"
st.html(html.heading("Overview", f"{holdings(counts)}, {whose}"))
if not counts["examples"]:
    st.html(html.notice("Nothing is in this study yet. Begin with a file of examples or results."))
    st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
    st.stop()

sentences = _reader_lines(viewer)
if policies.allows(policies.check_can_adjudicate, viewer):
    queue = adjudication.cases(common.engine(), viewer)
    waits = "waits" if queue.n_items == 1 else "wait"
    where = counted(len(queue.waiting), "response or case", "responses and cases")
    to_settle = f"{counted(queue.n_items, 'item')} on {where} {waits} for you to settle."
    sentences.append(to_settle if queue.waiting else "Nothing waits for you to settle.")
if policies.allows(policies.check_can_import, viewer):
    sentences += _lead_lines(viewer)
if Role.RESEARCHER in viewer.roles:
    sentences += _researcher_lines()
if sentences:
    st.html(html.items(sentences))
overrides = common.read("overrides_by_judge", hidden)
facts = {"conversations": f"{counts['examples'] - counts['cases']:,}"}
if counts["cases"]:
    facts["cases of triage"] = f"{counts['cases']:,}"
facts |= {
    "criteria": f"{counts['criteria']:,}",
    "judges' verdicts": f"{counts['judge_verdicts']:,}",
    "physicians' verdicts": f"{counts['physician_verdicts']:,}",
    "items where readers conflict": f"{overrides['conflicting']:,}",
}
st.html(html.facts(facts))
with st.container(horizontal=True):
    if policies.allows(policies.check_can_read, viewer):
        st.page_link(routes.REVIEW, label="Review", icon=":material/rate_review:")
    if policies.allows(policies.check_can_give_verdict, viewer):
        st.page_link(routes.BROWSE, label="Read conversations", icon=":material/menu_book:")
        conflicts = {"reads": filters.READS[CONFLICTING]}  # an address holds an option in the words of the screen
        icon = ":material/compare_arrows:"
        st.page_link(routes.BROWSE, label="See where readers conflict", icon=icon, query_params=conflicts)
    if policies.allows(policies.check_can_import, viewer):
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
    if counts["cases"]:
        st.page_link(routes.TRIAGE, label="See triage", icon=":material/emergency:")
    st.page_link(routes.EXPORT, label="Export labels", icon=":material/download:")

if overrides["by_judge"]:
    st.subheader("Judges beside physicians", anchor=False)
    st.html(
        html.items(
            f"{row['judge']}: physicians differ on {share_words(row['n_overridden'], row['n_read'], row['share'])} of the items that they read"
            for row in overrides["by_judge"]
        )
    )
if hidden:
    left_out = (
        "are left out of what is said here of readers and their verdicts, their conflicts, the judges and what was read"
    )
    st.html(html.quiet(f"Conversations that wait for your own {policies.own_act(viewer)} {left_out}."))
if policies.allows(policies.check_can_see_audit, viewer) and not hidden:  # it moves with every act of others
    head = common.ask(trail_head)[1]
    with st.expander(f"Last hash of the audit trail: {head[:12]}…"):
        st.code(head, language=None)
        keep = "overread audit verify --expect HASH fails where the trail was since cut off or written anew"
        st.html(html.quiet(f"Keep it outside of this study: {keep}."))
if counts["examples"] > counts["cases"]:
    st.subheader("Composition and coverage", anchor=False)
    _composition()
st.html(
    html.foot(
        "An item is one criterion of one response. Physicians differ from a judge where a standing verdict or an adjudication has another "
        "label than the judge's; the items read are no random sample unless they were drawn, so the share is no error rate of the judge. "
        "The full benchmark's shares are its published counts (HealthBench, arXiv 2505.08775). Of all reads: the group's share of the responses (of "
        "criteria: items) that physicians have read, beside its share of all that could be read. Intervals are Wilson's, with the criteria and responses "
        "of one conversation counted as the cluster that they are; they hold together for all groups of a table (95 %, Bonferroni). More and fewer are "
        "said only where such an interval shows it. A conversation or criterion counts as read when a physician has given a verdict on at least one "
        "response to it. For languages, categories, points and lengths there is no published count."
    )
)
