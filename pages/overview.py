"""Where the study stands, and what to do next."""

import streamlit as st

from evalcore.db import reading
from evalcore.metrics.composition import by_language, by_theme
from evalcore.plots.overview import shares_read
from evalcore.policies import can_assign, can_give_verdict, can_import, can_read
from evalcore.queries import tasks
from evalcore.queries.browse import CONFLICTING
from evalcore.schema import Viewer
from evalcore.tables import now
from pages import _common, _filters, _review_text, _text

MAX_READERS = 6


def waiting_lines(viewer: Viewer) -> list[str]:
    """What waits for who is signed in: a reader's queue, the lead's assignments."""
    lines = []
    with reading(_common.engine()) as session:
        if can_read(viewer):
            progress = tasks.progress(session, viewer, now())
            if progress.n_left:
                left = _review_text.left_words(progress)
                wait = "One item waits" if progress.n_left == 1 else f"{progress.n_left:,} items wait"
                lines.append(f"{wait} for your read in Review{', ' + left if left else ''}.")
        if can_assign(viewer):
            assigned = tasks.assignments(session)
            wanted = assigned["n_tasks"] * assigned["n_readers"]
            lines += [
                f"Assignment {number}: {done:,} of {want:,} reads done, {being_read:,} being read now"
                for number, done, want, being_read in zip(
                    assigned["assignment_id"], assigned["n_reads"], wanted, assigned["n_open"], strict=True
                )
            ][:MAX_READERS]
    return lines


def reading_lines(viewer: Viewer) -> list[str]:
    """What matters to who is signed in: one's own reads; for a lead, how far each reader is."""
    readers = _common.read("readers", hidden)
    lines = waiting_lines(viewer)
    own = _common.read("readers")
    mine = own.loc[own["reader"].eq(viewer.name)]
    if can_give_verdict(viewer):
        lines += [
            f"You have given {row.n_verdicts:,} verdicts on {row.n_responses:,} responses, the last on {_common.local_time(row.last_at)}."
            for row in mine.itertuples()
        ] or ["You have not given a verdict yet. Open a conversation and say what you think of the judge's."]
    if can_import(viewer):
        lines += [
            f"{_text.reader_name(row.reader)}: {row.n_verdicts:,} verdicts on {row.n_responses:,} responses"
            for row in readers.head(MAX_READERS).itertuples()
        ]
        if len(readers) > MAX_READERS:
            lines.append(f"and {len(readers) - MAX_READERS:,} further readers")
    return lines


viewer = _common.require()
hidden = _common.blind(viewer)
counts = _common.read("counts")
st.html(
    _text.heading(
        "Where the study stands",
        f"{counts['responses']:,} responses of {counts['models']:,} models to {counts['examples']:,} conversations, "
        f"judged by {counts['judges']:,} judges and read by {counts['reviewers']:,} physicians",
    )
)
if not counts["examples"]:
    st.html(_text.notice("Nothing is in this study yet. Begin with a file of examples or results."))
    st.page_link("pages/study.py", label="Import a file", icon=":material/database:")
    st.stop()

composition = _common.read("composition")
listed = _common.read("overrides_by_judge", hidden)
st.html(
    _text.facts(
        {
            "conversations": f"{counts['examples']:,}",
            "criteria": f"{counts['criteria']:,}",
            "judges' verdicts": f"{counts['judge_verdicts']:,}",
            "physicians' verdicts": f"{counts['physician_verdicts']:,}",
            "items where readers conflict": f"{listed['conflicting']:,}",
        }
    )
)
with st.container(horizontal=True):
    if can_read(viewer):
        st.page_link("pages/review.py", label="Review", icon=":material/rate_review:")
    if can_give_verdict(viewer):
        st.page_link("pages/browse.py", label="Read conversations", icon=":material/menu_book:")
        st.page_link(
            "pages/browse.py",
            label="See where readers conflict",
            icon=":material/compare_arrows:",
            query_params={
                "reads": _filters.READS[CONFLICTING]
            },  # an address holds an option in the words of the screen
        )
    if can_import(viewer):
        st.page_link("pages/study.py", label="Import a file", icon=":material/database:")
    st.page_link("pages/export.py", label="Export labels", icon=":material/download:")

lines = reading_lines(viewer)
if lines:
    st.subheader("Readers", anchor=False)
    st.html(_text.items(lines))
if listed["by_judge"]:
    st.subheader("Judges beside physicians", anchor=False)
    st.html(
        _text.items(
            f"{row['judge']}: physicians differ on {row['share']:.0%} ({row['n_overridden']:,}/{row['n_read']:,}) of the items that they read"
            for row in listed["by_judge"]
        )
    )
if hidden:
    st.html(
        _text.quiet(
            "Conversations that wait for your own first read are left out of what is said here of readers, their conflicts and the judges."
        )
    )
st.subheader("What it is made of, and what has been read", anchor=False)
left, right = st.columns(2, gap="large")
left.plotly_chart(shares_read(by_theme(composition), "Theme"), config={"displayModeBar": False}, key="themes")
right.plotly_chart(shares_read(by_language(composition), "Language"), config={"displayModeBar": False}, key="languages")
st.html(
    _text.foot(
        "An item is one criterion of one response. Physicians differ from a judge where a standing verdict or an adjudication has another "
        "label than the judge's; the items read are no random sample unless they were drawn, so the share is no error rate of the judge. "
        "A conversation counts as read when a physician has given a verdict on at least one response to it."
    )
)
