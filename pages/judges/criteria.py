"""Health of criteria: which ones the judge reads unlike physicians. A section of the Judges page."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.judges import criterion_health as metric
from evalcore.judges.figures import health
from evalcore.judges.queries import criterion_texts
from evalcore.judges.record import CATEGORY, Reads, reads_words
from evalcore.rubric.data import RubricData, first_reads
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted
from evalcore.study.db import reading
from evalcore.study.schema import Viewer
from pages.shared import common, html, judges_choice, routes, tables, theme

GROUPINGS = {"Category": CATEGORY, "Axis": "axis", "Theme": "theme", "One criterion": metric.CRITERION}
MAX_ROWS, MAX_DRAWN = 200, 30  # groups in the table, and in the figure: those with alarms first
ITEMS_SHOWN, ITEM_PIXELS = 10, 820
TALLEST = 12
NO_CATEGORY = "No criterion that physicians have read belongs to a category (a consensus cluster). Look at axis, theme or one criterion."
NO_LABEL = "This judge has labelled none of the items that physicians have read, so the table shows physicians alone."
FOOT = (
    "Judge and physicians are compared on the same items, those that both have labelled; physicians speak by their blind first reads, an item "
    "counting once by the mean of its readers' votes; a drawn item counts by one over the probability with which it was drawn. "
    "Intervals are 95 % (Wilson), clustered by conversation; of one criterion by response, since it belongs to one conversation. "
    "Inverted: physicians say met less often where the judge says met than where it says not met, beyond chance. Too lenient, too strict: the judge "
    f"finds more met, or less, than physicians do by {100 * metric.SHIFT:.0f} points or more, and the interval of the difference (Newcombe) leaves out 0. "
    f"Disputed: physicians differ in more than {metric.DISPUTED_SHARE:.0%} of the pairs of reads, beyond chance. Unassessable: they could not assess more "
    f"than {metric.UNASSESSABLE_SHARE:.0%} of the reads, beyond chance. With fewer than {metric.MIN_ITEMS} items, pairs or reads there is no "
    "alarm, and no interval of the difference. Each alarm is allowed to be false in 2.5 % of the groups at its bound, so among hundreds of criteria some are."
).replace("%", " %").replace("  %", " %")  # fmt: skip


def _health(rubric_data: RubricData, judge: str, by: str, which: Reads | None) -> tuple[pd.DataFrame, str]:
    table = metric.criterion_health(rubric_data, judge, by=by, reads=which)
    return table, reads_words(first_reads(rubric_data.reads), which)


def _usual(rubric_data: RubricData, judge: str) -> str:
    category, axis = (metric.largest_group(rubric_data, judge, by=by) for by in (CATEGORY, "axis"))
    return "Axis" if category < metric.MIN_ITEMS and axis > category else "Category"


def ahead(viewer: Viewer, judge: str) -> None:
    """What each choice of groups shows first."""
    if judge in judges_choice.computed(judges_choice.names, viewer):
        for by in GROUPINGS.values():
            judges_choice.computed(_health, viewer, judge, by, None)


def show(viewer: Viewer, judge: str, row: DeltaGenerator) -> None:
    """The criteria, as judge and physicians label them, with alarms; a click on a row lists its items."""
    usual = judges_choice.computed(_usual, viewer, judge)
    look: dict[str, Any] = {"key": "criteria_by", "bind": "query-params"}
    default = judges_choice.left("criteria_by", usual)
    chosen = row.segmented_control("By", list(GROUPINGS), default=default, required=True, **look)
    by = GROUPINGS[chosen or usual]
    which = judges_choice.chosen_reads(row, asked=judges_choice.computed(judges_choice.has_choice, viewer))
    table, selection = judges_choice.computed(_health, viewer, judge, by, which)
    read = table.loc[table["n_reads"].gt(0)]
    if read.empty:
        if by == CATEGORY and judges_choice.computed(judges_choice.n_reads, viewer):
            st.html(html.notice(NO_CATEGORY))
            return
        st.html(html.notice(metric.finding(table)))
        st.page_link(routes.STUDY, label="Assign items to readers", icon=":material/database:")
        return
    st.html(html.finding(metric.finding(table)))
    st.html(html.quiet(selection))
    if not read["n"].any():
        st.html(html.notice(NO_LABEL))
    shown = read.sort_values(["n_alarms", "n_reads"], ascending=False, kind="stable").head(MAX_ROWS)
    shown = shown.assign(words=_words(shown, by), alarms=metric.alarm_words(shown)).reset_index(drop=True)
    drawn = shown.loc[shown["judge"].notna()].head(MAX_DRAWN)
    if by != metric.CRITERION and len(drawn):
        figure = health(drawn, judge)
        alt = "Share met by the judge and by physicians, by group of criteria"
        theme.figure(figure, key="criteria_health", alt=alt)
        if len(drawn) < len(read):
            st.html(html.quiet(f"Drawn are {len(drawn):,} of {len(read):,}: those with alarms or most reads."))
    touched = _listing(shown, by)
    more = ["Click a row to see its items."]
    if n_unread := len(table) - len(read):
        more.append(f"{n_unread:,} more have not been read.")
    if len(read) > MAX_ROWS:
        more.append(f"Of {len(read):,} that were read, the {MAX_ROWS} with alarms or most reads are listed.")
    st.html(html.quiet(" ".join(more)))
    if touched is not None:
        _items(viewer, judge, shown.iloc[touched], by)
    st.html(html.foot(FOOT))


def _words(table: pd.DataFrame, by: str) -> list[str]:
    if by != metric.CRITERION:
        return [str(group).replace("_", " ") for group in table["group"]]
    with reading(common.engine()) as session:
        texts = criterion_texts(session, table["group"].tolist())
    return [texts.get(int(group), NO_VALUE) for group in table["group"]]


def _listing(shown: pd.DataFrame, by: str) -> int | None:
    optional = ("Alarm", "Judge, met", "Physicians, met", "Difference (points)", "Items", "Readers differ")
    before = shown.index[shown["group"].eq(judges_choice.left("group"))]
    return tables.pick(
        metric.columns(shown, shown["words"].tolist()),
        key=f"criteria_list_{by}",
        optional=optional,
        names=() if by == metric.CRITERION else (by.capitalize(),),
        tallest=TALLEST,
        config={"Criterion": st.column_config.TextColumn(width=300)},
        selection_default={"selection": {"rows": [int(row) for row in before]}},
        alt="Groups of criteria with the shares that judge and physicians find met",
    )


def _items(viewer: Viewer, judge: str, chosen: pd.Series, by: str) -> None:
    is_one = by == metric.CRITERION
    group = int(chosen["group"]) if is_one else str(chosen["group"])
    items = judges_choice.computed(metric.read_items, viewer, judge, by, group)
    judges_choice.leave(group=group)
    st.html('<hr class="or-rule">')
    n_pages = max(math.ceil(len(items) / ITEMS_SHOWN), 1)
    head = st.container()
    page = st.pagination(n_pages, key=f"criteria_page_{by}_{group}") if n_pages > 1 else 1
    part = items.iloc[(page - 1) * ITEMS_SHOWN : page * ITEMS_SHOWN].to_dict(orient="records")
    with reading(common.engine()) as session:
        texts = criterion_texts(session, {int(row["criterion_id"]) for row in part})
    with head:
        common.list_openly(viewer, [row["example_id"] for row in part])
        st.html(_criterion(part[0], texts) if is_one else html.finding(chosen["words"]))
        if chosen["reasons"]:
            st.html(html.notice(chosen["reasons"], kind="warning"))
        what = f"{counted(len(items), 'item')} that physicians have read, those first on which the judge differs most"
        st.html(html.quiet(what))
    link: dict[str, Any] = {"label": "Open the conversation", "icon": ":material/menu_book:"}
    for row in part:
        with st.container(width=ITEM_PIXELS, gap="xsmall"):
            st.html(("" if is_one else _criterion(row, texts)) + _verdicts(row, judge))
            opened = {"example": str(row["example_id"]), "model": row["model"], "judge": judge}
            st.page_link(routes.BROWSE, query_params=opened, **link)


def _criterion(row: Mapping[Any, Any], texts: Mapping[int, str]) -> str:
    tags = [str(row[name]).replace("_", " ") for name in ("axis", "cluster") if isinstance(row[name], str)]
    return html.criterion(row["position"], texts.get(row["criterion_id"], ""), row["points"], tags)


def _verdicts(row: Mapping[Any, Any], judge: str) -> str:
    label = {1.0: "met", 0.0: "not_met"}.get(row["judge_met"])
    judged = html.label(label) if label else "no label"
    counts = (("met", row["n_met"]), ("not_met", row["n_not_met"]), ("cannot_assess", row["n_cannot_assess"]))
    votes = " ".join(f"{count} {html.label(name)}" for name, count in counts if count)
    repeat = f" · repeat {row['sample_index'] + 1}" if row["sample_index"] else ""
    return (
        f'<div class="or-verdict or-judge"><div><span class="or-who" dir="auto">{html.escaped(judge)}</span> {judged} '
        f"<small>on the response of {html.escaped(row['model'])}{html.escaped(repeat)}</small></div></div>"
        f'<div class="or-verdict or-read"><div><span class="or-who">Physicians</span> {votes}</div></div>'
    )
