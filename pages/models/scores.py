"""Three sections of the Models page: Scores, By theme and axis, and More (missing reads, repeats, length, published scores)."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.figures.colours import colour_of, dash_of
from evalcore.rubric import benchmark, corrected_groups, figures, finding, length_adjusted, results
from evalcore.rubric.corrected import MIN_EXAMPLES_READ
from evalcore.rubric.data import RubricData
from evalcore.rubric.judge_only import length_bins, length_finding, length_slopes, worst_at_k
from evalcore.rubric.scores import OF_CRITERIA, OVERALL, SMALL, group_scores, response_scores
from evalcore.rubric.sensitivity import missing_columns, sensitivity_sentence
from evalcore.stats.wording import counted, listed
from evalcore.study.analysis import Analysis
from evalcore.study.languages import LANGUAGES
from evalcore.study.schema import Viewer
from pages.shared import common, filters, glossary, html, models_choice, page_cache, routes, tables, theme

GROUPINGS = ("axis", "theme", "category", "cluster", "language")  # of an axis enough is read first
MOST_DRAWN = 12  # models of a figure by group: more fit no screen


def show(viewer: Viewer, chosen: Analysis) -> None:
    """Judge only, physicians only, corrected: the finding, the figure, the tables, and how they were made."""
    numbers = models_choice.numbers(viewer, chosen)
    if numbers.scores.empty or not numbers.scores["n_items"].any():
        st.html(html.notice(models_choice.NO_LABELS))
        return
    scores = finding.best_first(numbers.scores)
    st.html(html.finding(numbers.finding))
    primary(numbers)
    if beyond := finding.unreached_words(scores):
        st.html(html.notice(beyond, kind="warning"))
    if not scores["n_read"].any():
        st.page_link(routes.STUDY, label="Assign reads on Study", icon=":material/database:")
    lacks = ("corrected: " + scores["needed"]).where(scores["n_items"].gt(0), f"no response is {finding.UNLABELLED}")
    needs = lacks.mask(scores["enough"].astype(bool), "")
    if len(needs) > len(set(needs)) == 1 and scores["n_needed"].all():
        st.html(html.quiet(f"For a corrected score, of each model: {scores['needed'].iloc[0]}."))
        needs[:] = ""
    figure = figures.forest(scores.assign(needs=needs), colour_of(common.read("models")))
    alt = "Score of each model by the judge only, by physicians only, and corrected, with 95 % intervals"
    theme.figure(figure, key="models_forest", alt=alt)
    columns = finding.score_columns(scores)
    told = length_adjusted.help_words(length_adjusted.penalty_of(numbers.spec.evaluation, numbers.spec.subset))
    notes = {length_adjusted.NAME: told} if length_adjusted.NAME in columns else {}
    tables.show(
        columns, key="models_table", names=("Model",), optional=("Left out",), alt="Scores by model", notes=notes
    )
    if scores["n_read"].any():  # no claim stands alone
        st.subheader("Corrected scores by claim", anchor=False, help=glossary.helps("corrected score", "95 % interval"))
        columns = finding.claim_columns(numbers.claims, scores)
        tables.show(columns, key="models_claims", names=("Model",), alt="Corrected scores by claim")
        st.html(html.quiet(finding.claim_notes(numbers.where)))
    reads, readers, unsure = scores["n_reads"].sum(), scores["n_readers"].max(), scores["n_cannot_assess"].sum()
    st.html(
        html.foot(
            "A score is the points of met criteria over the positive points, as a mean over examples (HealthBench, which reports a mean below 0 as 0; here it "
            "stands as it is). Judge only: by the judge's labels on everything; for this benchmark that leaves no interval. "
            "Judge-only is the judge's opinion: its interval leaves out how often the judge is wrong. "
            "Physicians only: by what physicians have read, each criterion weighted by one over the probability with which it was "
            "drawn. Corrected: the judge's labels on everything, put right by how physicians differed from them where they have read (a "
            "regression estimator, GREG, the same as PPI++). Intervals are 95 %, with the criteria of one example counted as the cluster that they are. "
            f"A read is one physician's blind first label on one criterion: {counted(int(reads), 'read')} by {counted(readers, 'physician')}, all of items "
            f"drawn with a known probability, and {unsure:,} that could not assess were left out. In brackets, as how many physicians who had read alike they "
            "count (one over the sum of their squared shares of the reading). Reads saved by judge: the number of further criteria physicians would "
            "have had to read to know the score as well without the judge, with its interval. "
            "Left out: responses without a score, or without "
            f"a label by every chosen judge on every criterion. {models_choice.source_words(chosen)} These numbers are deterministic."
        )
    )


def primary(numbers: results.Results) -> None:
    """The primary comparison, where one is stated."""
    if words := results.primary_words(numbers, common.read("analysis")):
        st.html(html.notice(" ".join(words)))


def grouped(rubric_data: RubricData, chosen: Analysis, grouping: str) -> dict[str, pd.DataFrame]:
    """The corrected scores and tests of one grouping, and the scores by the judge alone; those with most examples first."""
    inputs = corrected_groups.by_group(rubric_data, grouping, **results.correcting(rubric_data, chosen))
    claims: Any = {"claim": chosen.claim, "physicians": chosen.physicians}
    scores = corrected_groups.group_corrected_scores(inputs, kinds=corrected_groups.SHOWN, **claims)
    judged = group_scores(*results.jury(rubric_data, chosen.judges), by=(grouping,))
    return {
        "scores": _most_first(scores),
        "tests": corrected_groups.interactions(inputs, grouping),
        "judged": _most_first(judged.loc[judged["grouping"].eq(grouping)]),
    }


def apart(rubric_data: RubricData, chosen: Analysis, grouping: str) -> pd.DataFrame:
    """The corrected differences of models in one grouping that can be told."""
    inputs = corrected_groups.by_group(rubric_data, grouping, **results.correcting(rubric_data, chosen))
    claims: Any = {"claim": chosen.claim, "physicians": chosen.physicians}
    return corrected_groups.group_differences(inputs, **claims).dropna(subset="difference", ignore_index=True)


def _most_first(table: pd.DataFrame) -> pd.DataFrame:
    most = table.groupby("group", observed=True)["n_examples"].transform("max")
    order = ["most", "group", "model"]
    return table.assign(most=most).sort_values(order, ascending=[False, True, True], ignore_index=True)


def by_group(viewer: Viewer, chosen: Analysis) -> None:
    """Corrected scores of each group, whether groups differ, and folded behind them the judge's opinion."""
    offered = (*GROUPINGS, *filters.task_kinds())
    control = st.segmented_control(
        "By",
        offered,
        format_func=filters.plain,
        default=GROUPINGS[0],
        key="models_by",
        required=True,
        **page_cache.KEPT,
    )
    grouping = control or GROUPINGS[0]
    of_groups: dict[str, pd.DataFrame] = models_choice.computed(grouped, viewer, chosen, grouping)
    if of_groups["judged"].empty:
        untagged = f"Nothing here is tagged with a {filters.plain(grouping)}: the tags come with the file of examples. Import it on the Study page."
        st.html(html.notice(untagged))
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
        return
    if not of_groups["judged"]["n_responses"].any():
        st.html(html.notice(models_choice.NO_LABELS))
        return
    names = LANGUAGES if grouping == "language" else {}
    scores, judged = of_groups["scores"], of_groups["judged"]
    groups = pd.concat([scores["group"], judged["group"]]).unique()
    words_of = {group: names.get(group, filters.plain(group)) for group in groups}
    scores, judged = (table.assign(group=table["group"].map(words_of)) for table in (scores, judged))
    word = filters.plain(grouping)
    words = corrected_groups.group_words(scores, of_groups["tests"], word, chosen.primary)
    _corrected_groups(scores, words, word, chosen.primary or ())
    if scores.loc[scores["enough"].astype(bool), "group"].duplicated().any():
        with _fold("Differences between models", "models_groups_apart") as fold:
            if fold.open:
                known = models_choice.computed(apart, viewer, chosen, grouping)
                known = known.assign(group=known["group"].map(words_of))
                columns = corrected_groups.group_difference_columns(known, word)
                alt = f"Differences of corrected scores by {word}"
                tables.show(columns, key="models_group_differences", names=(word.capitalize(), "Models"), alt=alt)
                st.html(html.quiet(f"p is adjusted by Holm over the {len(known):,} differences of this table."))
    judge = listed(chosen.judges)
    with _fold(f"{judge}'s opinion alone, not corrected", "models_groups_opinion") as fold:
        if fold.open:
            columns, alt = corrected_groups.judged_columns(judged, word), f"Scores by {word} in the judge's opinion"
            tables.show(columns, key="models_groups_judged", names=(word.capitalize(),), alt=alt)
            st.html(
                html.foot(
                    f"These are {judge}'s opinion: intervals leave out how often the judge is wrong. They are 95 %, clustered by example; of fewer than "
                    f"{SMALL} examples an interval promises too much. Responses without a score: {judged['n_undefined'].sum():,}, counted once a group."
                )
            )
    rule = (
        "the points of met criteria of that tag over the positive points of that tag; an example without positive points there is left out, not 0"
        if grouping in OF_CRITERIA
        else "the mean of the whole scores of the examples that carry the tag"
    )
    st.html(
        html.foot(
            f"A group's score is {rule} (HealthBench). Filled: corrected, by the estimator of the Scores section on the group alone. Hollow: the judge "
            "only. Whether groups differ is tested for new examples and these physicians (groups of examples: Welch; groups of criteria, which share "
            f"examples: Hotelling), with Holm over the models or pairs. {models_choice.source_words(chosen)}"
        )
    )


def _corrected_groups(scores: pd.DataFrame, words: str, grouping: str, pair: tuple[str, ...]) -> None:
    enough = scores["enough"].astype(bool)
    if not enough.any():
        st.html(html.notice(words))
    else:
        st.html(html.finding(words))
        shown = scores.loc[scores["group"].isin(scores.loc[enough, "group"])]
        means = shown.groupby("model", observed=True)["corrected"].mean().sort_values(ascending=False)  # NaN comes last
        is_best = shown["model"].isin([*means.index[:MOST_DRAWN], *pair])
        _group_figure(shown.loc[is_best], grouping)
        if n_more := shown.loc[~is_best, "model"].nunique():
            also = ", and the primary comparison" if pair else ""
            more = (
                f"{counted(n_more, 'more model')} (drawn above: the {MOST_DRAWN} best, by the mean over groups{also})"
            )
            with _fold(more, "models_groups_more") as fold:
                if fold.open:
                    _group_figure(shown.loc[~is_best], grouping, "_more")
    if enough.any() or scores["n_examples"].max() >= MIN_EXAMPLES_READ:
        columns = corrected_groups.group_columns(scores, grouping)
        tables.show(columns, key="models_groups", names=(grouping.capitalize(),), alt=f"Corrected scores by {grouping}")


def _group_figure(scores: pd.DataFrame, grouping: str, which: str = "") -> None:
    figure = figures.by_group(scores, colour_of(common.read("models")))
    alt = f"Corrected score of each model by {grouping}, with 95 % intervals, and the judge's opinion beside it"
    theme.figure(figure, key=f"models_groups_{grouping}{which}", alt=alt)


def _fold(title: str, key: str) -> Any:
    """What is behind it is drawn once it is opened: with many models it is long."""
    return st.expander(title, key=key, on_change="rerun")


def further(rubric_data: RubricData, chosen: Analysis) -> dict[str, pd.DataFrame]:
    """Worst-at-k, score by length, and the whole scores, in the judge's opinion."""
    one, judge = results.jury(rubric_data, chosen.judges)
    responses = response_scores(one, judge)
    tables_of = {"worst": worst_at_k(responses), "slopes": length_slopes(responses), "bins": length_bins(responses)}
    return tables_of | {"overall": group_scores(one, judge, by=(OVERALL,))}


def missing(rubric_data: RubricData, chosen: Analysis, viewer: Viewer) -> pd.DataFrame:
    """Corrected scores if the missing reads had all spoken for the model or all against it."""
    return common.ask(results.missing, common.rubric_data(viewer), rubric_data, chosen)


def more(viewer: Viewer, chosen: Analysis) -> None:
    """Four short parts, one below the other."""
    of_judge = models_choice.computed(further, viewer, chosen)
    if not of_judge["overall"]["n_responses"].any():
        st.html(html.notice(models_choice.NO_LABELS))
        return
    _missing(models_choice.computed(missing, viewer, chosen, viewer))
    judge = listed(chosen.judges)
    opinion = f"All numbers below but the published ones are {judge}'s opinion, not corrected by physicians, each example counted alike."
    st.html(html.quiet(opinion))
    everybody = common.read("models")
    look: dict[str, Any] = {"colours": colour_of(everybody), "dashes": dash_of(everybody)}
    _repeats(of_judge["worst"], look)
    st.subheader("Scores by length of the response", anchor=False)
    st.html(html.finding(length_finding(of_judge["slopes"])))
    figure = figures.score_by_length(of_judge["bins"], **look)
    theme.figure(figure, key="models_length", alt="Mean score by length of the response, by model")
    columns, alt = finding.length_columns(of_judge["slopes"]), "How the score goes with the length, by model"
    tables.show(columns, key="models_length_table", names=("Model",), alt=alt)
    st.subheader("Published scores of HealthBench", anchor=False)
    st.html(html.notice(benchmark.NOT_COMPARABLE, kind="warning"))
    published = benchmark.published_scores()
    subset = benchmark.HARD if chosen.subset == benchmark.HARD else benchmark.FULL
    own = of_judge["overall"].sort_values("score", ascending=False)
    others = published.loc[published["subset"].eq(subset)]
    figure = figures.beside_published(own, others, look["colours"])
    alt = "This study's scores over published scores of other models by another judge"
    theme.figure(figure, key="models_published", alt=alt)
    st.html(
        html.foot(
            "Worst-at-k: of each example's responses by a model, the mean of the lowest score over all choices of k of them, then the mean over "
            "examples (HealthBench). Length: all responses in bins of about equal number, and the slope of a line through all responses of a model, with "
            "intervals clustered by example; a relation, not what would happen if a response were made longer. "
            f"{benchmark.CITATION}. Cost is not stored, so there is no plot of it. {models_choice.source_words(chosen)}"
        )
    )


def _missing(table: pd.DataFrame) -> None:
    st.subheader("Missing reads: the least and the most that they could change", anchor=False)
    st.html(html.finding(sensitivity_sentence(table)))
    if not table["n_taken"].any() or not table["corrected"].notna().any():
        return
    alt = "Corrected scores if the missing reads had all spoken for the model or all against it"
    tables.show(missing_columns(table), key="models_missing_table", names=("Model",), alt=alt)
    how = "Estimated as if the missing were like the rest. For the model: met, or not met where a criterion is undesirable; against it: the reverse."
    st.html(html.quiet(how))


def _repeats(worst: pd.DataFrame, look: dict[str, Any]) -> None:
    st.subheader("Worst of several answers", anchor=False, help=glossary.helps("score", "judge only"))
    if worst.empty or worst["k"].max() < 2:  # noqa: PLR2004 - one answer has no worst
        once = "Each model answered each example once. Import a file with repeats (several answers to each example) to see how steady it is."
        st.html(html.notice(once))
        return
    figure = figures.worst_at_k(worst, **look)
    theme.figure(figure, key="models_worst", alt="Score of the worst of k answers, by model")
    tables.show(finding.worst_columns(worst), key="models_worst_table", names=("Model",), alt="Worst-at-k by model")
