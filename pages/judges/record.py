"""The record of a judge: how often it is right, and what physicians changed after seeing its label. A section of the Judges page."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.judges import anchoring as shift
from evalcore.judges.figures import shift as shift_figure
from evalcore.judges.reads import Reads, is_choice, reads_words
from evalcore.judges.record import ALL_CRITERIA, ANSWERS, finding, judge_record
from evalcore.settings import settings
from evalcore.stats.intervals import NO_VALUE, interval_words, rate_words, share_words
from evalcore.study.policies import allows, check_can_see_audit, visible_verdicts
from evalcore.study.schema import RaterKind, Viewer
from pages.shared import common, html, judges_choice, routes, tables, theme

TITLE = "How often the judge is right, and what readers changed after seeing it"
LEFT_OUT = "Conversations that wait for you, to be read or settled, are left out of all numbers here."
NOTHING_READ = (
    "No physician has read blind what this judge has labelled, so there is nothing to hold its labels against. Assign responses to "
    "readers, or import their first reads."
)
ONLY_WAITING = "Nothing can be shown to you of this judge yet: there is no blind first read but perhaps of conversations that wait for your own."
NOT_SHOWN = (
    "This judge's label has not been shown after a blind read yet. Reads made on the Review page count here as soon as they are "
    "submitted and their differences kept or revised."
)
MOVED = {shift.CHANGED: "Changed", shift.TOWARD: "Toward the judge", shift.AWAY: "Away from the judge"}
NONE_MOVED = {shift.CHANGED: "none read", shift.TOWARD: "none differed", shift.AWAY: "none agreed"}


@st.cache_data(max_entries=32, show_spinner=False)
def _measured(
    location: str,  # noqa: ARG001 - the key
    version: common.Version,  # noqa: ARG001 - the key
    hidden: frozenset[int],
    judge: str,
    which: Reads | None,
) -> tuple[pd.DataFrame, pd.DataFrame, str, bool]:
    reads = common.read("blind_reads", judge)
    # a read beside the judge's label tells the label: of conversations that wait, the viewer's own reads stay out too
    seen = visible_verdicts(reads.assign(rater_kind=RaterKind.REVIEWER), None, hidden)
    told = seen.loc[seen["label"].isin(ANSWERS)]
    return (
        judge_record(seen, which),
        shift.anchoring(seen, by=(*shift.DEFAULT_GROUPINGS, "rater")),
        reads_words(told, which),
        is_choice(told),
    )


def measured(viewer: Viewer, judge: str, which: Reads | None = None) -> tuple[pd.DataFrame, pd.DataFrame, str, bool]:
    """The record of a judge, what became of first reads after its label was shown, and which reads enter, from the blind reads that the viewer may see."""
    return _measured(settings().db, common.version(), common.blind(viewer), judge, which)


@st.cache_data(max_entries=32, show_spinner=False)
def _effect(
    location: str,  # noqa: ARG001 - the key
    version: common.Version,  # noqa: ARG001 - the key
    hidden: frozenset[int],
    judge: str,
) -> str:
    reads = common.read("blind_reads", judge)
    found = shift.effect(visible_verdicts(reads.assign(rater_kind=RaterKind.REVIEWER), None, hidden))
    return "" if found is None else shift.effect_words(found)


def is_read(viewer: Viewer, judge: str) -> bool:
    """Whether the viewer may see a blind read of what this judge has labelled."""
    return bool(measured(viewer, judge)[0]["n"].any())


def begin(viewer: Viewer, judge: str, judges: Sequence[str]) -> None:
    """There is nothing to show yet: why, and the way to change it."""
    st.html(html.notice(ONLY_WAITING if common.blind(viewer) else NOTHING_READ))
    others = [name for name in judges if name != judge and is_read(viewer, name)]
    if others:
        st.html(html.quiet(f"Physicians have read what {', '.join(others)} labelled: choose one of these above."))
    else:
        st.page_link(routes.STUDY, label="Go to Study", icon=":material/database:")


def in_words(rows: pd.DataFrame, hits: str, without: str) -> list[str]:
    """A share with its counts and interval, a row a cell; a dash with the reason where nothing was counted."""
    return [
        f"{share_words(row[hits], row['n'], row['share'])} {interval_words(row['low'], row['high'])}"
        if row["n"]
        else f"{NO_VALUE} {without}"
        for row in rows.to_dict(orient="records")
    ]


def record_table(every: pd.DataFrame) -> None:
    """How often the judge is right, by kind of criterion; kinds without a read are named in a sentence."""
    record = every.loc[every["n"].gt(0)]
    tables.show(
        {
            "Criteria": record["kind"],
            "Matches physicians' blind reads": [
                rate_words(
                    row["share"], row["low"], row["high"], n_hits=row["n_right"], n=row["n"], weighted=row["weighted"]
                )
                for row in record.to_dict(orient="records")
            ],
            "Conversations": record["n_examples"],
            "Could not assess": record["n_cannot_assess"],
            "Not labelled": record["n_without_label"],
        },
        key="record",
        alt="How often the judge is right, by kind of criterion",
        optional=("Could not assess", "Not labelled"),
    )
    if len(none := every.loc[every["n"].eq(0), "kind"]):
        st.html(html.quiet(f"Without a read that can be compared: {', '.join(none)}."))


def shift_table(rows: pd.DataFrame, first: str, key: str) -> None:
    """The three movements side by side, a row a group."""
    of = {movement: rows.loc[rows["movement"].eq(movement)] for movement in MOVED}
    tables.show(
        {
            first: [html.reader_name(group) for group in of[shift.CHANGED]["group"]],
            **{name: in_words(of[movement], "n_moved", NONE_MOVED[movement]) for movement, name in MOVED.items()},
        },
        key=key,
        alt=f"Changes of first reads after the reveal, by {first.lower()}",
        names=("Reader",),
    )


def moved(table: pd.DataFrame, *, effect: str, with_names: bool) -> None:
    """What readers did with their first reads once the judge's label was shown; beside the control where there is one."""
    overall = table.loc[table["grouping"].eq(shift.OVERALL)]
    if not overall["n"].any():
        st.html(html.notice(NOT_SHOWN))
        return
    first, *more = shift.sentences(overall)
    st.html(html.finding(first))
    st.html(html.items([*more, shift.population_words(overall)]))
    if effect:
        st.html(html.finding(effect))
    if left_out := shift.left_out_words(overall):
        st.html(html.quiet(left_out))
    shown = table.loc[table.groupby(["grouping", "group"])["n"].transform("any")]
    by_kind = shown.loc[shown["grouping"].isin([shift.OVERALL, "kind"])].replace(
        {"group": {shift.OVERALL: ALL_CRITERIA}}
    )
    st.plotly_chart(
        shift_figure(by_kind, ink=theme.ink()),
        config={"displayModeBar": False},
        key="shift",
        alt="Shares of first reads that moved toward the judge and away from it, by kind of criterion",
    )
    shift_table(by_kind, "Criteria", "shift_table")
    if with_names:
        st.subheader("By reader", anchor=False)
        shift_table(shown.loc[shown["grouping"].eq("rater")], "Reader", "shift_readers")


def show(viewer: Viewer, judge: str, judges: Sequence[str], top: DeltaGenerator, row: DeltaGenerator) -> None:
    """The record, with its heading in `top` and its controls in `row`."""
    record, shifts, said, _ = measured(viewer, judge, judges_choice.chosen_reads(row, asked=measured(viewer, judge)[3]))
    waiting, everything = common.blind(viewer), record.head(1).to_dict(orient="records")
    if not record["n"].any():
        with top:
            st.html(html.heading(TITLE, f"Judge {judge}, no blind first read to hold it against"))
        begin(viewer, judge, judges)
        return
    with top:
        reads = judges_choice.reads_words(everything[0]["n"], everything[0]["n_examples"])
        st.html(html.heading(TITLE, f"Judge {judge} beside {reads}"))
        if waiting:
            st.html(html.quiet(LEFT_OUT))
    st.html(html.finding(finding(record)))
    st.html(html.quiet(said))
    st.subheader("How often it is right, by kind of criterion", anchor=False)
    record_table(record)
    st.subheader("What readers changed after seeing its label", anchor=False)
    effect = _effect(settings().db, common.version(), waiting, judge)
    moved(shifts, effect=effect, with_names=allows(check_can_see_audit, viewer) and not waiting)
    st.html(
        html.foot(
            "A judge is right where its label is the one that a physician gave on a blind first read. A criterion that two physicians have "
            "read counts twice; reads that could not assess are left out and counted. Toward the judge: of the first reads that differed "
            "from it, those whose reader took its label after the reveal. Away: of those that agreed, those whose reader left it. A first "
            "read that nobody revised was kept. A change need not be a mistake: a judge can point to what its reader overlooked. Nor need the label "
            "be its cause: a second look alone changes some. These intervals take readers and conversations for samples of more; they are "
            "not weighted. The record's are 95 % (Wilson), with the criteria of one conversation counted as the cluster that they are; its drawn "
            "reads count by one over the probability with which their item was drawn."
        )
    )
