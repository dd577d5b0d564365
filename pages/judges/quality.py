"""Judges against physicians: balanced F1, place among physicians, sensitivity and specificity. A section of the Judges page."""

from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.judges import figures, quality as metric, record as judge_reads
from evalcore.judges.quality import balanced_f1, error_rates
from evalcore.judges.record import ALL_CRITERIA, CATEGORY, OVERALL
from evalcore.rubric.data import RubricData
from evalcore.stats import majority as stats_majority
from evalcore.stats.intervals import NO_VALUE
from evalcore.stats.wording import counted, decimal
from evalcore.study.policies import allows, check_can_see_audit
from evalcore.study.schema import Viewer
from pages.shared import common, glossary, html, judges_choice, routes, tables, theme

GROUPINGS = {"Points' sign": "sign", "Axis": "axis", "Theme": "theme", "Language": "language"}
NOTHING = "No criterion that this judge has labelled and a physician has read belongs to a category (a cluster tag)."
SPREAD = {
    "Physicians, median": "median",
    "Lowest": "lowest",
    "First quarter": "q25",
    "Third quarter": "q75",
    "Highest": "highest",
}


def _measured(
    rubric_data: RubricData, judges: tuple[str, ...], judge: str, which: judge_reads.Reads | None
) -> dict[str, Any]:
    of_judges = rubric_data.by(judges)
    quality = balanced_f1(of_judges, reads=which)
    themes = metric.theme_of_categories(of_judges.items)
    is_jury = len(of_judges.voters) >= stats_majority.MIN_JUDGES
    return {
        "quality": quality,
        "values": metric.standings(quality, themes),
        "errors": error_rates(of_judges, reads=which),
        "jury": stats_majority.words(stats_majority.decisions(of_judges.judged[of_judges.voters])) if is_jury else "",
        "left_out": metric.left_out(rubric_data, judge),
        "selection": judge_reads.reads_words(judge_reads.assessed(rubric_data.reads), which),
    }


def show(viewer: Viewer, judge: str, row: DeltaGenerator) -> None:
    """How the judge, the judges beside it and their jury do against physicians."""
    known = judges_choice.computed(judges_choice.names, viewer)
    others = [name for name in known if name != judge]
    beside = []
    if others:
        look: dict[str, Any] = {"key": "judges_beside", "width": 320, "placeholder": "None"}
        beside = row.multiselect("Judges beside it", others, default=others, **look)
    min_pairs = row.number_input(
        "Physicians with more pairs than", 0, 10_000, metric.MIN_PAIRS, step=10, key="judges_min_pairs",
        bind="query-params", width=240,
    )  # fmt: skip
    which = judges_choice.chosen_reads(row, asked=judges_choice.computed(judges_choice.has_choice, viewer))
    judges = tuple(name for name in known if name == judge or name in beside)
    found = judges_choice.computed(_measured, viewer, judges, judge, which)
    quality, values = found["quality"], found["values"]
    if not quality["rater_kind"].eq(metric.JUDGE).any():
        nothing = "No physician has read blind what these judges have labelled, so there is nothing to hold their labels against."
        st.html(html.notice(f"{nothing} Assign responses to readers, or import their first reads."))
        st.page_link(routes.STUDY, label="Go to Study", icon=":material/database:")
        return
    ranks = metric.percentiles(values, min_pairs=min_pairs)
    st.html(html.finding(metric.finding(quality, ranks, judge, min_pairs=min_pairs)))
    for sentence in (found["selection"], found["jury"]):
        if sentence:
            st.html(html.quiet(sentence))
    pooled = quality.loc[quality["grouping"].eq(OVERALL) & quality["rater_kind"].ne(metric.PHYSICIAN)]
    alt, optional = "Balanced F1 of judges, their jury and physicians, over all criteria", ("Percentile",)
    columns = metric.f1_columns(pooled, ranks)
    tables.show(columns, key="quality_pooled", alt=alt, optional=optional, names=("Who",))
    if (quality["rater_kind"].eq(metric.JUDGE) & quality["rater"].eq(judge)).any():
        with_names = allows(check_can_see_audit, viewer) and not common.blind(viewer)
        st.subheader("Among physicians", anchor=False, help=glossary.helps("balanced F1"))
        _among(values, ranks, judge, min_pairs, with_names=with_names)
        st.subheader("By category", anchor=False)
        _by_category(quality, judge)
    st.subheader("Sensitivity and specificity", anchor=False, help=glossary.helps("sensitivity, specificity"))
    grouping = st.segmented_control(
        "By", list(GROUPINGS), default="Points' sign", required=True, key="judges_errors_by", bind="query-params"
    )
    rows = found["errors"].loc[found["errors"]["grouping"].isin([OVERALL, GROUPINGS[grouping or "Points' sign"]])]
    order = {group: place for place, group in enumerate([OVERALL, *sorted(set(rows["group"]) - {OVERALL})])}
    rows = rows.sort_values("group", key=lambda column: column.map(order), kind="stable")
    alt = "Sensitivity and specificity by judge and kind of criterion"
    tables.show(metric.error_columns(rows), key="quality_errors", alt=alt, names=("Judge",))
    n_cannot_assess, n_unlabelled = found["left_out"]
    st.html(
        html.foot(
            "A pair is a judge's label and one physician's blind first read of the same criterion; a criterion with three reads makes "
            "three. F1 of met and of not met, and their plain mean (balanced, macro F1), as in HealthBench's meta-evaluation (arXiv "
            "2505.08775). It is undefined where either side never says one of the labels. Physicians are held against the other "
            "physicians' reads of the same criteria. Of a theme: the mean of its categories, weighted by pairs. Percentile: the share of "
            "physicians below, ties half, from 10 physicians on; its interval is for other physicians like these "
            "(Wilson) and takes each value as known. Each judge is counted on what it has labelled. The majority needs more than half of the judges; "
            "the mean counts the pairs of all of them where all have labelled. Intervals are 95 % and clustered by conversation: for F1 by "
            "leaving out one conversation at a time (t), for shares Wilson's on the effective number; there is none where too few "
            "conversations hold both labels, or where nothing varies. "
            f"Left out for this judge: {counted(n_cannot_assess, 'read')} that could not assess, {counted(n_unlabelled, 'read')} of criteria that it has "
            "not labelled."
        )
    )


def _among(values: pd.DataFrame, ranks: pd.DataFrame, judge: str, min_pairs: int, *, with_names: bool) -> None:
    kept = metric.kept_physicians(values, min_pairs=min_pairs)
    mine = ranks.loc[ranks["judge"].eq(judge) & (ranks["n_physicians"].gt(0) | ranks["grouping"].eq(OVERALL))]
    if kept.empty:
        nobody = f"No physician has more than {min_pairs:,} pairs with other physicians"
        st.html(html.quiet(f"{nobody}. More criteria read by two, or a smaller number above, bring them here."))
        return
    words = {group: ALL_CRITERIA if group == OVERALL else group.replace("_", " ") for group in mine["group"]}
    names = kept["rater"].map(html.reader_name) if with_names else "a physician"
    shown = kept.loc[kept["group"].isin(list(words))].assign(words=kept["group"].map(words), name=names)
    figure = figures.among_physicians(mine.assign(words=mine["group"].map(words)), shown)
    alt = "The judge's balanced F1 among those of physicians"
    theme.figure(figure, key="quality_among", alt=alt)
    columns = {
        "Criteria": mine["group"].map(words),
        "The judge": mine["balanced_f1"].map(decimal),
        "Percentile": [metric.percentile_words(row) for row in mine.to_dict(orient="records")],
        **{title: mine[column].map(decimal) for title, column in SPREAD.items()},
        "Physicians": mine["n_physicians"],
        "Left out": mine["n_physicians_left_out"],
        "Pairs of the judge": mine["n_pairs"],
    }
    alt, optional = "The judge's balanced F1 among physicians' own", ("Left out", "Percentile")
    tables.show(columns, key="quality_ranks", alt=alt, optional=optional)


def _by_category(quality: pd.DataFrame, judge: str) -> None:
    sides = metric.side_by_side(quality.loc[quality["grouping"].eq(CATEGORY)], judge)
    if sides.empty:
        st.html(html.quiet(NOTHING))
        return
    sides = sides.assign(category=sides["category"].str.replace("_", " "))
    drawn = sides.loc[sides["judge_low"].notna() | sides["physicians_low"].notna()]
    words = {kind: drawn[f"{kind}_words"].where(drawn[kind].notna(), NO_VALUE) for kind in ("judge", "physicians")}
    why = drawn["physicians_words"].where(drawn["physicians"].isna(), "")
    why = drawn["judge_words"].where(drawn["judge"].isna(), why).str.removeprefix("undefined: ")
    if drawn.empty:
        st.html(html.quiet("No category has both labels in enough conversations for an interval yet."))
    else:
        alt = "Balanced F1 by category, of the judge and of physicians against one another"
        figure = figures.by_category(drawn, judge)
        theme.figure(figure, key="quality_categories", alt=alt)
        columns = {
            "Category": drawn["category"],
            "The judge": words["judge"],
            "Physicians": words["physicians"],
            "Pairs": drawn["judge_pairs"],
            "Physicians' pairs": drawn["physicians_pairs"],
            "Why empty": why,
        }
        alt = "Balanced F1 by category, of the judge and of physicians"
        tables.show(columns, key="quality_category_table", alt=alt, optional=("Why empty",))
    if n := int((sides["judge"].notna() & ~sides.index.isin(drawn.index)).sum()):
        why_left = "with a value and no interval, since too few conversations hold both labels"
        st.html(html.quiet(f"Left out: {n} of {len(sides)} categories {why_left}."))
    mine = quality.loc[quality["grouping"].eq(CATEGORY) & quality["rater"].isin([judge, metric.TOGETHER])]
    for sentence in metric.undefined_words(mine):
        st.html(html.quiet(sentence))
