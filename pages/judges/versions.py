"""Versions and families of judges: labels that flip, and whether a judge favours its own family. A section of the Judges page."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from evalcore.figures.colours import colour_of
from evalcore.judges import drift, figures, self_preference
from evalcore.rubric.data import RubricData
from evalcore.stats.intervals import NO_VALUE, interval_words, percent_words, share_words
from evalcore.study import acting, contents, families
from evalcore.study.db import reading
from evalcore.study.policies import check_can_set_families, reason
from evalcore.study.schema import Viewer
from pages.shared import common, filters, html, judges_choice, routes, tables, theme

BY = {"Axis": drift.AXIS, "Category": drift.CATEGORY, "Points' sign": drift.SIGN, "Theme": "theme"}
MAX_DRAWN = 30
MOST_NAMES = 8
"""Names in one sentence."""
SAY_NOTHING = {"displayModeBar": False}
ONE_JUDGE = (
    "This study has one judge. Import another version's verdicts under a name of their own to see what it changes."
)
DRIFT_FOOT = (
    "Labels are compared on the items that both judges have labelled. p is McNemar's test with conversations as clusters, since criteria of one "
    "conversation flip together; where fewer than 20 conversations lean either way it is exact, from their signs. Of several groups it is adjusted "
    "for their number (Holm). Intervals of shares are 95 % (Wilson), "
    "clustered by conversation. Scores are of responses that both judges labelled whole: mean of points of met criteria over the positive "
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
    """The other judges and this one when it was asked again, those first that labelled most of what this one labelled."""
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
    st.subheader("Its own family", anchor=False)
    with reading(common.engine()) as session:
        own, table = contents.own_families(session), contents.family_table(session)
    _families(viewer, judge, table)
    with st.expander("The table of families", icon=":material/table:"):
        _editor(viewer, table, is_own=bool(own))
    st.html(html.foot(FAMILY_FOOT if before is None else f"{DRIFT_FOOT} {FAMILY_FOOT}"))


def _versions(viewer: Viewer, before: str, judge: str) -> None:
    flipped, scores = judges_choice.computed(_drift, viewer, before, judge)
    st.html(html.finding(drift.finding(flipped, before, judge)))
    known = flipped.loc[flipped["n"].gt(0)]
    if known.empty:
        return
    shown = st.segmented_control("By", list(BY), default="Axis", required=True, key="versions_by") or "Axis"
    rows = known.loc[known["grouping"].isin([drift.OVERALL, BY[shown]])]
    rows = rows.sort_values("n_flips", ascending=False, kind="stable")  # all criteria together have most
    if len(rows) == 1:
        st.html(
            html.quiet(f"No item that both labelled has {'an' if shown == 'Axis' else 'a'} {filters.plain(shown.lower())}.")
        )  # fmt: skip
    rows = rows.assign(
        words=[_group(group) for group in rows["group"]], n_not_met_before=rows["n"] - rows["n_met_before"]
    )
    st.plotly_chart(
        figures.flips(rows.head(MAX_DRAWN), ink=theme.ink()),
        config=SAY_NOTHING,
        key="versions_flips",
        alt="Shares of labels that changed from met to not met and back, by group of criteria",
    )
    _flips_table(rows)
    alone = rows.loc[rows["grouping"].eq(drift.OVERALL)].iloc[0]
    if alone["n_before_only"] or alone["n_after_only"]:
        st.html(
            html.quiet(
                f"Not compared, since one of the two alone has labelled them: {alone['n_before_only']:,} items ({before}), "
                f"{alone['n_after_only']:,} items ({judge})."
            )
        )
    _scores(scores)


def _scores(scores: pd.DataFrame) -> None:
    """Scores of the models that both judged whole; the others are named."""
    named = scores.assign(words=_score_names(scores))
    whole = named["n_responses"].gt(0)
    if whole.any():
        st.plotly_chart(
            figures.score_drift(named.loc[whole], colour_of(common.read("models")), ink=theme.ink()),
            config=SAY_NOTHING,
            key="versions_scores",
            alt="Mean score of each model by the earlier and the later judge",
        )
        _scores_table(named.loc[whole])
    if not whole.all():
        missing = _listed(named.loc[~whole, "words"])
        st.html(html.quiet(f"No response that both judges have labelled whole: {missing}."))


def _listed(names: Iterable[str]) -> str:
    """Names as a list in a sentence; of many the first."""
    every = list(names)
    rest = f" and {len(every) - MOST_NAMES:,} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + rest


def _group(group: str) -> str:
    return "all criteria" if group == drift.OVERALL else group.replace("_", " ")


def _score_names(scores: pd.DataFrame) -> list[str]:
    several = len(set(scores["evaluation"])) > 1
    return [
        f"{model} · {evaluation}" if several else model
        for model, evaluation in zip(scores["model"], scores["evaluation"], strict=True)
    ]


def _flips_table(rows: pd.DataFrame) -> None:
    records = rows.to_dict(orient="records")

    def shares(name: str, hits: str, total: str) -> list[str]:
        return [
            f"{share_words(row[hits], row[total], row[name])} {interval_words(row[f'{name}_low'], row[f'{name}_high'])}"
            if row[total]
            else NO_VALUE
            for row in records
        ]

    tables.show(
        {
            "Criteria": rows["words"],
            "Flipped": shares("flips", "n_flips", "n"),
            "Met, now not met": shares("to_not_met", "n_to_not_met", "n_met_before"),
            "Not met, now met": shares("to_met", "n_to_met", "n_not_met_before"),
            "p (Holm)": [row["reason"] or f"{_p_words(row['p_holm'])} ({row['test']})" for row in records],
            "Conversations": rows["n_examples"],
        },
        key="versions_table",
        alt="Labels that flip between two judges, by group of criteria",
    )


def _p_words(p: float) -> str:
    return "< 0.001" if p < drift.SMALL_P else f"{p:.3f}"


def _scores_table(scores: pd.DataFrame) -> None:
    def number(value: float) -> str:
        return NO_VALUE if pd.isna(value) else f"{value:.3f}"

    def difference(row: Mapping[Any, Any]) -> str:
        said = NO_VALUE if pd.isna(row["difference"]) else f"{row['difference']:+.3f}"
        return (said if pd.isna(row["low"]) else f"{said} [{row['low']:+.3f}, {row['high']:+.3f}]").replace("-", "−")

    tables.show(
        {
            "Model": scores["words"],
            "Earlier judge": [number(value) for value in scores["score_before"]],
            "Later judge": [number(value) for value in scores["score_after"]],
            "Difference": [difference(row) for row in scores.to_dict(orient="records")],
            "Responses": scores["n_responses"],
            "Left out": scores["n_left_out"],
            "Conversations": scores["n_examples"],
        },
        key="versions_score_table",
        alt="Mean scores by the earlier and the later judge, by model",
        optional=("Left out",),
        names=("Model",),
    )


def _favoured(
    rubric_data: RubricData, judge: str, table: families.Table
) -> tuple[dict[str, Any], pd.DataFrame, list[str]]:
    """What self-preference says of this judge, by what physicians say, and who has no family."""
    visible = rubric_data.items["model"].cat.remove_unused_categories().cat.categories
    names = [*visible, *rubric_data.judges]
    known = families.families_of(names, table)
    found = self_preference.self_preference(rubric_data, known)
    mine = found.loc[found["judge"].eq(judge)].to_dict(orient="records")
    by_label = self_preference.by_label(rubric_data, judge, known) if mine and not mine[0]["reason"] else pd.DataFrame()
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    return {str(name): value for row in mine for name, value in row.items()}, by_label, unknown


def _families(viewer: Viewer, judge: str, table: families.Table) -> None:
    row, by_label, unknown = judges_choice.computed(_favoured, viewer, judge, table)
    if not row:
        st.html(html.notice("This judge has labelled nothing that you may see yet."))
        return
    said = self_preference.finding(row)
    st.html(html.notice(said) if row["reason"] else html.finding(said))
    if len(by_label):
        named = by_label.assign(
            words=[_stratum(row) for row in by_label.to_dict(orient="records")],
            is_together=by_label["label"].eq(self_preference.TOGETHER),
        )
        st.plotly_chart(
            figures.own_family(named, ink=theme.ink()),
            config=SAY_NOTHING,
            key="versions_bias",
            alt="How much more often the judge's label is in the favour of its own family's responses, by what physicians say",
        )
        _own_family_table(named)
    for sentence in _left_out(row, unknown):
        st.html(html.quiet(sentence))


def _stratum(row: Mapping[Any, Any]) -> str:
    if row["label"] == self_preference.TOGETHER:
        return "Both labels together"
    return f"Physicians say {row['label']}{', ' if row['sign'] else ', together'}{row['sign']}"


def _own_family_table(rows: pd.DataFrame) -> None:
    def rates(name: str) -> list[str]:
        return [
            f"{percent_words(rate)} (n = {n:,})" if pd.notna(rate) else f"n = {n:,}"
            for rate, n in zip(rows[f"rate_{name}"], rows[f"n_{name}"], strict=True)
        ]

    tables.show(
        {
            "Criteria": rows["words"],
            "In favour of its own family": rates("own"),
            "In favour of other families": rates("other"),
            "Difference (points)": [
                self_preference.points_words(*row)
                for row in zip(rows["difference"], rows["low"], rows["high"], strict=True)
            ],
        },
        key="versions_own_table",
        alt="How often the judge's label is in the response's favour, own family beside others, by what physicians say",
    )


def _left_out(row: Mapping[str, object], unknown: list[str]) -> list[str]:
    """Who has no family, and which reads do not count here, in words."""
    said = [f"Without a family: {_listed(unknown)}. Add a pattern below."] if unknown else []
    counts = {
        "n_without_family": "of models without a family",
        "n_without_label": "that this judge has not labelled",
        "n_without_points": "of criteria without points",
        "n_not_drawn": "that were not drawn with a known probability",
    }
    parts = [f"{row[name]:,} {why}" for name, why in counts.items() if row[name]]
    return [*said, *([f"Blind first reads that are left out: {', '.join(parts)}."] if parts else [])]


def _editor(viewer: Viewer, table: families.Table, *, is_own: bool) -> None:
    """The table to read, and to change by who may."""
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
    with st.container(horizontal=True):
        save = st.button(
            "Save the table", type="primary", icon=":material/save:", key="families_save", disabled=bool(why_not)
        )
        back = st.button(
            "Back to the table of Overread",
            icon=":material/undo:",
            key="families_reset",
            disabled=bool(why_not) or not is_own,
        )
    if save or back:
        kept = edited.fillna("").astype(str)
        rows = (
            [] if back else [(pattern, family) for pattern, family in kept.itertuples(index=False) if pattern or family]
        )
        with common.shown_errors():
            _save(viewer, rows, clear=bool(back))
            st.session_state["families_drawn"] += 1
            st.rerun()


def _save(viewer: Viewer, rows: list[tuple[str, str]], *, clear: bool) -> None:
    wanted = (
        rows
        if clear
        else families.check([(f"row {n}", *row) for n, row in enumerate(rows, start=1)], "the table of families")
    )
    acting.set_families(common.engine(), wanted, actor=viewer)
