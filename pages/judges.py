"""Judge against physicians: how often it is right, and what showing its label does to their reads."""

import pandas as pd
import streamlit as st

from evalcore.db import reading
from evalcore.metrics import anchoring as shift
from evalcore.metrics.intervals import interval_words, share_words
from evalcore.metrics.judge_record import ALL_CRITERIA, judge_record
from evalcore.plots.judges import shift as shift_figure
from evalcore.policies import can_see_audit, visible_verdicts
from evalcore.queries.tasks import blind_examples
from evalcore.schema import Viewer
from pages import _common, _text

TITLE = "How often the judge is right, and how it moves its readers"
NOTHING_READ = (
    "No physician has read blind what this judge has labelled, so there is nothing to hold its labels against. Assign responses to "
    "readers, or import their first reads."
)
ONLY_WAITING = "Nothing can be shown to you of this judge yet: there is no blind first read but perhaps of conversations that wait for your own."
HEADER_PIXELS, ROW_PIXELS = 38, 35
MOVED = {shift.CHANGED: "Changed", shift.TOWARD: "Toward the judge", shift.AWAY: "Away from the judge"}


def visible_reads(viewer: Viewer, judge: str) -> tuple[pd.DataFrame, frozenset[int]]:
    """The blind reads that the viewer may see, and the conversations that wait for the viewer's own."""
    with reading(_common.engine()) as session:
        blind = blind_examples(session, viewer)
    reads = _common.read("blind_reads", judge)
    return visible_verdicts(reads.assign(rater_kind="reviewer"), viewer, blind), blind


def begin(sentence: str, label: str, line: str) -> None:
    """There is nothing to show yet: why, and the way to change it."""
    st.html(_text.heading(TITLE, line))
    st.html(_text.notice(sentence))
    st.page_link("pages/study.py", label=label, icon=":material/database:")
    st.stop()


def in_words(rows: pd.DataFrame, hits: str) -> list[str]:
    """A share with its counts and interval, a row a cell."""
    return [
        f"{share_words(row[hits], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"
        for row in rows.to_dict(orient="records")
    ]


def record_table(record: pd.DataFrame) -> None:
    """How often the judge is right, by kind of criterion."""
    st.dataframe(
        {
            "Criteria": record["kind"],
            "Right, by blind reads": in_words(record, "n_right"),
            "Conversations": record["n_examples"],
            "Could not assess": record["n_cannot_assess"],
            "Not labelled": record["n_without_label"],
        },
        key="record",
        hide_index=True,
        height=HEADER_PIXELS + ROW_PIXELS * len(record),
        column_config={
            "Criteria": st.column_config.TextColumn(width="medium"),
            "Right, by blind reads": st.column_config.TextColumn(width="medium"),
        },
        alt="How often the judge is right, by kind of criterion",
    )


def shift_table(rows: pd.DataFrame, first: str, key: str) -> None:
    """The three movements side by side, a row a group."""
    of = {movement: rows.loc[rows["movement"].eq(movement)] for movement in MOVED}
    groups = [_text.reader_name(group) for group in of[shift.CHANGED]["group"]]
    st.dataframe(
        {first: groups, **{name: in_words(of[movement], "n_moved") for movement, name in MOVED.items()}},
        key=key,
        hide_index=True,
        height=HEADER_PIXELS + ROW_PIXELS * len(groups),
        alt=f"Changes of first reads after the reveal, by {first.lower()}",
    )


def moved(reads: pd.DataFrame, *, with_names: bool) -> None:
    """What readers did with their first reads once the judge's label was shown."""
    table = shift.anchoring(reads, by=(*shift.DEFAULT_GROUPINGS, "rater"))
    overall = table.loc[table["grouping"].eq(shift.OVERALL)]
    if not overall["n"].any():
        st.html(
            _text.notice(
                "This judge's label has not been shown after a blind read yet. Reads made on the Review page count here as soon as "
                "they are submitted and their differences kept or revised."
            )
        )
        return
    st.html(_text.items(shift.sentences(overall)))
    if left_out := shift.left_out_words(overall):
        st.html(_text.quiet(left_out))
    shown = table.loc[table.groupby(["grouping", "group"])["n"].transform("any")]
    by_kind = shown.loc[shown["grouping"].isin([shift.OVERALL, "kind"])].replace(
        {"group": {shift.OVERALL: ALL_CRITERIA}}
    )
    st.plotly_chart(shift_figure(by_kind), config={"displayModeBar": False}, key="shift")
    shift_table(by_kind, "Criteria", "shift_table")
    if with_names:
        st.subheader("By reader", anchor=False)
        shift_table(shown.loc[shown["grouping"].eq("rater")], "Reader", "shift_readers")


viewer = _common.require()
judges = _common.read("judges")
top = st.container()
if not judges:
    begin(
        "No judge has labelled anything yet. Begin with a file of results.",
        "Import a file",
        "No judge in this study yet",
    )
judge = st.selectbox("Judge", judges, key="judges_judge", bind="query-params", width=320)
reads, waiting = visible_reads(viewer, judge)
record = judge_record(reads)
with top:
    if not record["n"].any():
        begin(
            ONLY_WAITING if waiting else NOTHING_READ,
            "Go to Study",
            f"Judge {judge}, no blind first read to hold it against",
        )
    everything = record.iloc[0]
    st.html(
        _text.heading(
            TITLE,
            f"Judge {judge} beside {everything['n']:,} blind first reads of criteria in {everything['n_examples']:,} conversations",
        )
    )
if waiting:
    st.html(_text.quiet("Reads of conversations that wait for your own first read are left out of all numbers here."))
st.subheader("How often it is right, by kind of criterion", anchor=False)
record_table(record)
st.subheader("What showing its label does to first reads", anchor=False)
moved(reads, with_names=can_see_audit(viewer) and not waiting)
st.html(
    _text.foot(
        "A judge is right where its label is the one that a physician gave on a blind first read. A criterion that two physicians have "
        "read counts twice; reads that could not assess are left out and counted. Toward the judge: of the first reads that differed "
        "from it, those whose reader took its label after the reveal. Away: of those that agreed, those whose reader left it. A first "
        "read that nobody revised was kept. A change need not be a mistake: a judge can point to what its reader overlooked. "
        "Intervals are 95 % (Wilson), with the criteria of one conversation counted as the cluster that they are. Reads are not "
        "weighted by how they were drawn."
    )
)
