"""What the missing reads could change, repeats, length and published scores: the last section of the Models page."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.figures.colours import colour_of, dash_of
from evalcore.rubric import benchmark, drawings, figures, finding, parts
from evalcore.rubric.data import RubricData
from evalcore.rubric.scores import OVERALL, group_scores, response_scores
from evalcore.rubric.sensitivity import Scenario, bounds_words, sensitivity, sensitivity_sentence
from evalcore.rubric.variation import length_bins, length_finding, length_slopes, worst_at_k
from evalcore.stats.wording import decimal
from evalcore.study.db import reading
from evalcore.study.schema import Viewer
from pages.shared import common, html, models_choice, tables, theme
from pages.shared.models_choice import Chosen

HARD = "hard"
SEVERAL = 4
"""Columns of a table with one kind of missing reads."""


def further(rubric_data: RubricData, chosen: Chosen) -> dict[str, pd.DataFrame]:
    """Worst-at-k, score by length, and the whole scores, in the judge's opinion."""
    one, judge = parts.jury(rubric_data, chosen.judges)
    responses = response_scores(one, judge)
    return {
        "worst": worst_at_k(responses),
        "slopes": length_slopes(responses),
        "bins": length_bins(responses),
        "overall": group_scores(one, judge, by=(OVERALL,)),
    }


def missing(rubric_data: RubricData, chosen: Chosen, viewer: Viewer) -> pd.DataFrame:
    """Corrected scores if the missing reads had all spoken for the model or all against it."""
    known = common.rubric_data(viewer)
    with reading(common.engine()) as session:
        unread = drawings.unread(session, known=known)
    correcting = models_choice.correcting(rubric_data, chosen)
    return sensitivity(rubric_data, unread, claim=chosen.claim, physicians=chosen.physicians, **correcting)


def show(viewer: Viewer, chosen: Chosen) -> None:
    """Four short parts, one below the other."""
    found = models_choice.computed(further, viewer, chosen)
    if not found["overall"]["n_responses"].any():
        st.html(html.notice(models_choice.NO_LABELS))
        return
    everybody = models_choice.models()
    look = {"colours": colour_of(everybody), "dashes": dash_of(everybody)}
    _missing(models_choice.computed(missing, viewer, chosen, viewer))
    st.html(
        html.quiet(
            f"All numbers below but the published ones are {chosen.judge}'s opinion, not corrected by physicians, each example counted alike."
        )
    )
    _repeats(found["worst"], look)
    _length(found["bins"], found["slopes"], look)
    _published(found["overall"], chosen, look["colours"])
    st.html(
        html.foot(
            "Worst-at-k: of each example's responses by a model, the mean of the lowest score over all choices of k of them, then the mean over "
            "examples (HealthBench). Length: all responses in bins of about equal number, and the slope of a line through all responses of a model, with "
            "intervals clustered by example; a relation, not what would happen if a response were made longer. "
            f"{benchmark.CITATION}. Cost is not stored, so there is no plot of it. "
            f"Judge: {models_choice.versions(chosen.judges)}. Criteria: {chosen.criteria}."
        )
    )


def _missing(table: pd.DataFrame) -> None:
    """A row a model; no intervals, since each is the worst or the best that could be."""
    st.subheader("What the missing reads could change", anchor=False)
    st.html(html.finding(sensitivity_sentence(table)))
    if not table["n_taken"].any() or not table["corrected"].notna().any():
        return
    by = table.set_index(["model", "scenario"])
    models = list(table["model"].unique())

    def counts(scenario: Scenario) -> list[str]:
        return [f"{by.loc[(name, scenario), 'n_taken']:,} of {by.loc[(name, scenario), 'n_of']:,}" for name in models]

    def bounds(low: Scenario, high: Scenario) -> list[str]:
        return [bounds_words(by.loc[(name, low), "corrected"], by.loc[(name, high), "corrected"]) for name in models]

    columns = {
        "Model": models,
        "As estimated": [bounds_words(by.loc[(name, Scenario.ESTIMATED), "corrected"]) for name in models],
    }
    for what, worst, best in (
        ("Could not assess", Scenario.CANNOT_ASSESS_AGAINST, Scenario.CANNOT_ASSESS_FOR),
        ("Drawn, not read", Scenario.UNREAD_AGAINST, Scenario.UNREAD_FOR),
    ):
        if table.loc[table["scenario"].eq(worst), "n_taken"].any():
            columns |= {what: counts(worst), f"{what}: against to for the model": bounds(worst, best)}
    if len(columns) > SEVERAL:
        columns["Both: against to for the model"] = bounds(Scenario.ALL_AGAINST, Scenario.ALL_FOR)
    tables.show(
        columns,
        key="models_missing_table",
        names=("Model",),
        alt="Corrected scores if the missing reads had all spoken for the model or all against it",
    )
    st.html(
        html.quiet(
            "Estimated as if the missing were like the rest. For the model: met, or not met where a criterion is undesirable; against it: the reverse."
        )
    )


def _repeats(worst: pd.DataFrame, look: dict[str, Any]) -> None:
    st.subheader("How low a model falls on its worst of several answers", anchor=False)
    if worst.empty or worst["k"].max() < 2:  # noqa: PLR2004 - one answer has no worst
        st.html(
            html.notice(
                "Each model answered each example once. Import a file with repeats (several answers to each example) to see how steady it is."
            )
        )
        return
    st.plotly_chart(
        figures.worst_at_k(worst, **look), config={"displayModeBar": False}, key="models_worst", alt="Score of the worst of k answers, by model"
    )  # fmt: skip
    rows = worst.to_dict(orient="records")
    tables.show(
        {
            "Model": worst["model"],
            "k": worst["k"],
            "Worst of k": [finding.score_words(row["score"], row["low"], row["high"]) for row in rows],
            "Examples": worst["n_examples"],
            "Left out (fewer answers)": worst["n_left_out"],
        },
        key="models_worst_table",
        names=("Model",),
        alt="Worst-at-k by model",
    )


def _length(bins: pd.DataFrame, slopes: pd.DataFrame, look: dict[str, Any]) -> None:
    st.subheader("Whether longer responses score higher", anchor=False)
    st.html(html.finding(length_finding(slopes)))
    st.plotly_chart(
        figures.score_by_length(bins, **look), config={"displayModeBar": False}, key="models_length", alt="Mean score by length of the response, by model"
    )  # fmt: skip
    rows = slopes.to_dict(orient="records")
    tables.show(
        {
            "Model": slopes["model"],
            "Mean length (characters)": [f"{row['mean_chars']:,.0f}" for row in rows],
            "Score per 1,000 characters": [
                finding.difference_words(row["slope"], row["slope_low"], row["slope_high"]) for row in rows
            ],
            "Correlation": [decimal(row["correlation"], signed=True) for row in rows],
            "Responses": slopes["n_responses"],
            "Left out": slopes["n_left_out"],
        },
        key="models_length_table",
        names=("Model",),
        alt="How the score goes with the length, by model",
    )


def _published(overall: pd.DataFrame, chosen: Chosen, colours: dict[str, str]) -> None:
    st.subheader("Beside published scores of HealthBench", anchor=False)
    st.html(html.notice(benchmark.NOT_COMPARABLE, kind="warning"))
    subset = benchmark.HARD if chosen.subset == HARD else benchmark.FULL
    others = benchmark.published_scores()
    own = overall.sort_values("score", ascending=False)
    st.plotly_chart(
        figures.beside_published(own, others.loc[others["subset"].eq(subset)], colours, ink=theme.ink()), config={"displayModeBar": False},
        key="models_published", alt="This study's scores over published scores of other models by another judge",
    )  # fmt: skip
