"""The record of a judge: how often it is right, and what physicians changed after seeing its label. A section of the Judges page."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.judges import anchoring as shift, record as metric
from evalcore.judges.figures import record_forest, shift as shift_figure
from evalcore.study.policies import allows, check_can_see_audit, visible_verdicts
from evalcore.study.schema import Viewer
from pages.shared import common, glossary, html, judges_choice, page_cache, routes, tables, theme

TITLE = "Record of the judge"
LEFT_OUT = "Conversations that wait for you, to be read or settled, are left out of all numbers here."
NOTHING_READ = (
    "No physician has read blind what this judge has labelled, so there is nothing to hold its labels against. Assign responses to "
    "readers, or import their first reads."
)
ONLY_WAITING = "Nothing about this judge can be shown to you yet: blind first reads, if there are any, are of conversations that wait for your own."
NOT_SHOWN = (
    "This judge's label has not been shown after a blind read yet. Reads made on the Review page count here as soon as they are "
    "submitted and their differences kept or revised."
)
MOVED = {
    shift.CHANGED: ("Changed", "none read"),
    shift.TOWARD: ("Toward the judge", "none differed"),
    shift.AWAY: ("Away from the judge", "none agreed"),
}


Measured = tuple[pd.DataFrame, str, bool]
"""The record of a judge, which reads enter, and whether that can be chosen."""


def _measured(seen: pd.DataFrame, which: metric.Reads | None) -> Measured:
    answered = seen.loc[seen["label"].isin(metric.ANSWERS)]
    return metric.judge_record(seen, which), metric.reads_words(answered, which), metric.is_choice(answered)


def _shifted(seen: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """What became of first reads, and the label's effect in words."""
    effect = shift.effect(seen)
    return (
        shift.anchoring(seen, by=(*shift.DEFAULT_GROUPINGS, "rater")),
        "" if effect is None else shift.effect_words(effect),
    )


def _seen(viewer: Viewer, judge: str) -> pd.DataFrame:
    return visible_verdicts(common.blind_reads(judge), None, common.blind(viewer))


def measured(viewer: Viewer, judge: str, which: metric.Reads | None = None) -> Measured:
    """What the reads say of a judge that the viewer may see; of conversations that wait not even their own, since a read beside the label tells the label."""
    return page_cache.computed(_measured, viewer, lambda: _seen(viewer, judge), which, about=judge)


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


def record_table(every: pd.DataFrame) -> None:
    """How often the judge is right, by kind of criterion; kinds without a read are named in a sentence."""
    record = every.loc[every["n"].gt(0)]
    columns = {
        "Criteria": record["kind"],
        "Matches physicians' blind reads": metric.rate_cells(record, "share", "n_right", "n"),
        "Conversations": record["n_examples"],
        "Could not assess": record["n_cannot_assess"],
        "Not labelled": record["n_without_label"],
    }
    alt, optional = "How often the judge is right, by kind of criterion", ("Could not assess", "Not labelled")
    theme.figure(record_forest(record), key="record_forest", alt=f"{alt}, with 95 % intervals")
    with st.expander("As a table"):
        tables.show(columns, key="record", alt=alt, optional=optional)
    if len(none := every.loc[every["n"].eq(0), "kind"]):
        st.html(html.quiet(f"Without a read that can be compared: {', '.join(none)}."))


def shift_table(rows: pd.DataFrame, first: str, key: str) -> None:
    """The three movements side by side, a row a group."""
    of = {movement: rows.loc[rows["movement"].eq(movement)] for movement in MOVED}
    columns: dict[str, Any] = {first: [html.reader_name(group) for group in of[shift.CHANGED]["group"]]}
    for movement, (name, none) in MOVED.items():
        columns[name] = metric.rate_cells(of[movement], "share", "n_moved", "n", none=none)
    alt = f"Changes of first reads after the reveal, by {first.lower()}"
    tables.show(columns, key=key, alt=alt, names=("Reader",))


def moved(table: pd.DataFrame, *, effect: str, with_names: bool) -> None:
    """What readers did with their first reads once the judge's label was shown; beside the control where there is one."""
    overall = table.loc[table["grouping"].eq(metric.OVERALL)]
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
    by_kind = shown.loc[shown["grouping"].isin([metric.OVERALL, "kind"])]
    by_kind = by_kind.replace({"group": {metric.OVERALL: metric.ALL_CRITERIA}})
    figure = shift_figure(by_kind)
    alt = "Shares of first reads that moved toward the judge and away from it, by kind of criterion"
    theme.figure(figure, key="shift", alt=alt)
    shift_table(by_kind, "Criteria", "shift_table")
    if with_names:
        st.subheader("By reader", anchor=False)
        shift_table(shown.loc[shown["grouping"].eq("rater")], "Reader", "shift_readers")


def show(viewer: Viewer, judge: str, judges: Sequence[str], top: DeltaGenerator, row: DeltaGenerator) -> None:
    """The record, with its heading in `top` and its controls in `row`."""
    which = judges_choice.chosen_reads(row, asked=measured(viewer, judge)[2])
    record, selection, _ = measured(viewer, judge, which)
    shifts, effect = page_cache.computed(_shifted, viewer, lambda: _seen(viewer, judge), about=judge)
    waiting = common.blind(viewer)
    if not record["n"].any():
        with top:
            st.html(html.heading(TITLE, f"Judge {judge}, no blind first read to hold it against"))
        begin(viewer, judge, judges)
        return
    with top:
        reads = judges_choice.reads_words(record["n"].iloc[0], record["n_examples"].iloc[0])
        st.html(html.heading(TITLE, f"Judge {judge} beside {reads}"))
        if waiting:
            st.html(html.quiet(LEFT_OUT))
    st.html(html.finding(metric.finding(record)))
    st.html(html.quiet(selection))
    st.subheader("Matches by kind of criterion", anchor=False, help=glossary.helps("blind first read", "95 % interval"))
    record_table(record)
    st.subheader("Changes after the reveal", anchor=False, help=glossary.helps("reveal", "keep, revise"))
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
