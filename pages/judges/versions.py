"""Versions and families of judges: labels that flip, and whether a judge favours its own family. A section of the Judges page."""

from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.figures.colours import colour_of
from evalcore.judges import drift, figures, prompts_compared, self_preference
from evalcore.judges.prompts_compared import Compared
from evalcore.judges.record import CATEGORY, OVERALL, SIGN
from evalcore.rubric.data import RubricData
from evalcore.runs.queries import stated
from evalcore.stats.wording import counted
from evalcore.study import acting, contents, families
from evalcore.study.db import reading
from evalcore.study.policies import check_can_set_families, reason
from evalcore.study.schema import Viewer
from pages.shared import common, html, judges_choice, routes, tables, theme

BY = {"Axis": drift.AXIS, "Category": CATEGORY, "Points' sign": SIGN, "Theme": "theme"}
MAX_DRAWN = 30
MOST_NAMES = 8  # in one sentence
OWN_ALT = "How often the judge's label is in the response's favour, own family beside others, by what physicians say"
LEFT_OUT = {
    "n_without_family": "of models without a family",
    "n_without_label": "that this judge has not labelled",
    "n_without_points": "of criteria without points",
    "n_not_drawn": "that were not drawn with a known probability",
}
ONE_JUDGE = (
    "This study has one judge. Import another version's verdicts under a name of their own to see what it changes."
)
DRIFT_FOOT = (
    "Labels are compared on the items that both judges have labelled. p is McNemar's test with conversations as clusters, since criteria of one "
    "conversation flip together; where fewer than 20 conversations lean either way it is exact, from their signs. Of several groups it is adjusted "
    "for their number (Holm). Intervals of shares are 95 % (Wilson), clustered by conversation. "
    "Scores are of responses that both judges labelled whole: mean of points of met criteria over the positive "
    "points, not clipped at 0; their difference is paired, with a 95 % interval over conversations."
)
FAMILY_FOOT = (
    "A label is in the response's favour where a desirable criterion is met or an undesirable one is not. Own and other families are compared where a "
    "physician's blind first read gave the same label to a criterion of the same sign, so that a family that is right more often looks no different for "
    "it; the differences are combined by Mantel and Haenszel's weights. Intervals are 95 %, by leaving out one conversation at a time (t). Drawn reads "
    "count by one over the probability with which their item was drawn. What physicians get wrong leaves a remainder of the difference in how "
    "often families are right, and a difference can have other causes than kinship: families differ in how they write."
)


def _others(rubric_data: RubricData, judge: str) -> list[str]:
    known = pd.concat([rubric_data.judged, rubric_data.asked_again(judge).judged.drop(columns=judge)], axis=1)
    others = known.loc[rubric_data.judged[judge].notna()].drop(columns=judge).notna().sum()
    return [str(name) for name in others.sort_values(ascending=False, kind="stable").index]


def _drift(rubric_data: RubricData, before: str, after: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    known = rubric_data.with_repeats()
    return drift.flips(known, before, after, by=drift.GROUPINGS), drift.score_drift(known, before, after)


def show(viewer: Viewer, judge: str, row: DeltaGenerator) -> None:
    """What a change of version does to labels and scores; which family each model and judge belongs to, and what that does."""
    others = judges_choice.computed(_others, viewer, judge)
    before = row.selectbox("Compared with the earlier", others, key="versions_before", width=320) if others else None
    st.subheader("Another version on the same items", anchor=False)
    if before is None:
        st.html(html.notice(ONE_JUDGE))
        st.page_link(routes.STUDY, label="Import verdicts", icon=":material/database:")
    else:
        _versions(viewer, before, judge)
    st.subheader("Two prompts on physicians' reads", anchor=False)
    _prompts(viewer)
    st.subheader("Its own family", anchor=False)
    own, table = common.ask(contents.own_families), common.ask(contents.family_table)
    _families(viewer, judge, table)
    with st.expander("The table of families", icon=":material/table:"):
        _editor(viewer, table, is_own=bool(own))
    st.html(html.foot(FAMILY_FOOT if before is None else f"{DRIFT_FOOT} {FAMILY_FOOT}"))


def ahead(viewer: Viewer, judge: str) -> None:
    """What the section shows first of a judge: all labels of two judges are held against each other, which takes seconds in a large study."""
    if judge not in judges_choice.computed(judges_choice.names, viewer):
        return
    if others := judges_choice.computed(_others, viewer, judge):
        judges_choice.computed(_drift, viewer, others[0], judge)
    judges_choice.computed(_favoured, viewer, judge, common.ask(contents.family_table))


def _compared(rubric_data: RubricData, before: str, after: str, hidden: frozenset[int]) -> Compared:
    with reading(common.engine()) as session:
        said = {rater.name: stated(session, rater.name) for rater in prompts_compared.prompts(session).values()}
        return prompts_compared.compare(session, before, after, stated=said, blind=hidden, reads=rubric_data.reads)


def _prompts(viewer: Viewer) -> None:
    known = list(common.ask(prompts_compared.prompts))
    if len(known) < len(("before", "after")):
        st.html(html.notice("One prompt has labelled this study. Ask a judge with another one to compare the two."))
        st.page_link(routes.STUDY, label="Go to Study, Runs", icon=":material/database:")
        return
    with st.container(horizontal=True):
        before = st.selectbox("Prompt", known, index=len(known) - 2, key="prompts_before", width=320)
        others = [name for name in known if name != before]
        after = st.selectbox("Compared with", others, index=len(others) - 1, key="prompts_after", width=320)
    if before is None or after is None:
        return
    with common.shown_errors():
        found = judges_choice.computed(_compared, viewer, before, after, common.blind(viewer))
        st.html(html.finding(found.sentences[0]))
        for sentence in found.sentences[1:]:
            st.html(html.quiet(sentence))
        if found.n_items:
            alt = "Agreement of two prompts with physicians' blind first reads"
            tables.show(prompts_compared.columns(found), key="prompts_table", alt=alt, names=("Prompt",))
    st.html(html.foot(prompts_compared.FOOT))


def _versions(viewer: Viewer, before: str, judge: str) -> None:
    flipped, scores = judges_choice.computed(_drift, viewer, before, judge)
    st.html(html.finding(drift.finding(flipped, before, judge)))
    known = flipped.loc[flipped["n"].gt(0)]
    if known.empty:
        return
    _flips(known, before, judge)
    # scores of the models that both judged whole; the others are named
    named = scores.assign(words=drift.score_names(scores))
    whole = named["n_responses"].gt(0)
    if whole.any():
        figure = figures.score_drift(named.loc[whole], colour_of(common.read("models")))
        alt = "Mean score of each model by the earlier and the later judge"
        theme.figure(figure, key="versions_scores", alt=alt)
        columns = drift.scores_columns(scores.loc[whole]) | {"Model": named.loc[whole, "words"]}
        alt, optional = "Mean scores by the earlier and the later judge, by model", ("Left out",)
        tables.show(columns, key="versions_score_table", alt=alt, optional=optional, names=("Model",))
    if not whole.all():
        missing = _listed(named.loc[~whole, "words"].tolist())
        st.html(html.quiet(f"No response that both judges have labelled whole: {missing}."))


@common.fragment
def _flips(known: pd.DataFrame, before: str, judge: str) -> None:
    """The flips by one grouping; a press on it draws nothing else anew."""
    shown = st.segmented_control("By", list(BY), default="Axis", required=True, key="versions_by") or "Axis"
    rows = known.loc[known["grouping"].isin([OVERALL, BY[shown]])]
    rows = rows.sort_values("n_flips", ascending=False, kind="stable")  # all criteria together have most
    if len(rows) == 1:
        a = "an" if shown == "Axis" else "a"
        st.html(html.quiet(f"No item that both labelled has {a} {shown.lower()}."))
    columns = drift.flips_columns(rows)
    drawn = rows.assign(words=columns["Criteria"], n_not_met_before=rows["n"] - rows["n_met_before"])
    figure = figures.flips(drawn.head(MAX_DRAWN))
    alt = "Shares of labels that changed from met to not met and back, by group of criteria"
    theme.figure(figure, key="versions_flips", alt=alt)
    tables.show(columns, key="versions_table", alt="Labels that flip between two judges, by group of criteria")
    alone = rows.loc[rows["grouping"].eq(OVERALL)].iloc[0]
    if alone["n_before_only"] or alone["n_after_only"]:
        counts = (
            f"{counted(alone['n_before_only'], 'item')} ({before}), {counted(alone['n_after_only'], 'item')} ({judge})"
        )
        st.html(html.quiet(f"Not compared, since one of the two alone has labelled them: {counts}."))


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def _favoured(
    rubric_data: RubricData, judge: str, table: families.Table
) -> tuple[dict[Any, Any], pd.DataFrame, list[str]]:
    visible = rubric_data.items["model"].cat.remove_unused_categories().cat.categories
    names = [*visible, *rubric_data.judges]
    known = families.families_of(names, table)
    rows = self_preference.self_preference(rubric_data, known)
    row = next(iter(rows.loc[rows["judge"].eq(judge)].to_dict(orient="records")), {})
    strata = self_preference.by_label(rubric_data, judge, known) if row and not row["reason"] else pd.DataFrame()
    return row, strata, [name for name in dict.fromkeys(names) if name not in known]


def _families(viewer: Viewer, judge: str, table: families.Table) -> None:
    row, strata, unknown = judges_choice.computed(_favoured, viewer, judge, table)
    if not row:
        st.html(html.notice("This judge has labelled nothing that you may see yet."))
        return
    sentence = self_preference.finding(row)
    st.html(html.notice(sentence) if row["reason"] else html.finding(sentence))
    if len(strata):
        columns = self_preference.columns(strata)
        is_together = strata["label"].eq(self_preference.TOGETHER)
        drawn = strata.assign(words=columns["Criteria"], is_together=is_together)
        alt = "How much more often the judge's label is in the favour of its own family's responses, by what physicians say"
        theme.figure(figures.own_family(drawn), key="versions_bias", alt=alt)
        tables.show(columns, key="versions_own_table", alt=OWN_ALT)
    if unknown:
        st.html(html.quiet(f"Without a family: {_listed(unknown)}. Add a pattern below."))
    if parts := [f"{row[name]:,} {why}" for name, why in LEFT_OUT.items() if row[name]]:
        st.html(html.quiet(f"Blind first reads that are left out: {', '.join(parts)}."))


def _editor(viewer: Viewer, table: families.Table, *, is_own: bool) -> None:
    why_not = reason(check_can_set_families, viewer)
    st.html(
        html.quiet(
            "A pattern fits a whole name, upper and lower case alike: * stands for any characters, ? for one. The first pattern that fits "
            f"counts. This is {'the own table of this study' if is_own else 'the table that comes with Overread'}."
        )
    )
    if why_not:
        st.html(html.quiet(why_not))
    st.session_state.setdefault("families_drawn", 0)
    edited = st.data_editor(
        pd.DataFrame(list(table), columns=list(families.COLUMNS), dtype="str"),
        key=f"families_{st.session_state['families_drawn']}",
        num_rows="dynamic" if not why_not else "fixed",
        disabled=bool(why_not),
        hide_index=True,
        column_config={
            "pattern": st.column_config.TextColumn("Pattern", max_chars=families.MAX_LENGTH),
            "family": st.column_config.TextColumn("Family", max_chars=families.MAX_LENGTH),
        },
        alt="Patterns of names and the family that each gives",
    )
    off, back_off = bool(why_not), bool(why_not) or not is_own
    with st.container(horizontal=True):
        save = st.button("Save the table", type="primary", icon=":material/save:", key="families_save", disabled=off)
        back = st.button("Use Overread's table", disabled=back_off, icon=":material/undo:", key="families_reset")
    if save or back:
        rows = edited.fillna("").astype(str).itertuples(index=False)
        given = [] if back else [(pattern, family) for pattern, family in rows if pattern or family]
        with common.shown_errors():
            numbered = [(f"row {n}", pattern, family) for n, (pattern, family) in enumerate(given, start=1)]
            wanted = [] if back else families.check(numbered, "the table of families")
            acting.set_families(common.engine(), wanted, actor=viewer)
            st.session_state["families_drawn"] += 1
            st.rerun()
