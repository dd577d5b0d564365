"""Scores: a section of the Models page."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.figures.colours import colour_of
from evalcore.rubric import finding
from evalcore.rubric.claims import JUDGE_ONLY_CAUTION
from evalcore.rubric.figures import forest
from evalcore.rubric.results import Results, primary_words
from evalcore.study.schema import Viewer
from pages.shared import html, models_choice, routes, tables, theme
from pages.shared.models_choice import Chosen

ANYTIME = "However often one looks"


def show(viewer: Viewer, chosen: Chosen) -> None:
    """Judge only, physicians only, corrected: the finding, the figure, the tables, and how they were made."""
    found = models_choice.numbers(viewer, chosen)
    scores = found.scores
    if scores.empty or not scores["n_items"].any():
        st.html(html.notice(models_choice.NO_LABELS))
        return
    best = "corrected" if scores["enough"].all() else "judge_only"
    scores = scores.sort_values(best, ascending=False, ignore_index=True)
    st.html(html.finding(found.finding))
    primary(found)
    if beyond := finding.unreached_words(scores):
        st.html(html.notice(beyond, kind="warning"))
    if not scores["n_read"].any():
        st.page_link(routes.STUDY, label="Assign reads on Study", icon=":material/database:")
    scores["needs"] = [
        ""
        if row["enough"]
        else f"corrected: {row['needed']}"
        if row["n_items"]
        else f"no response is {finding.UNLABELLED}"
        for row in scores.to_dict(orient="records")
    ]
    st.plotly_chart(
        forest(scores, colour_of(models_choice.models()), ink=theme.ink()),
        config={"displayModeBar": False},
        key="models_forest",
        alt="Score of each model by the judge only, by physicians only, and corrected, with 95 % intervals",
    )
    table(scores)
    if scores["n_read"].any():
        claims(found, list(scores["model"]))
    st.html(html.foot(foot(scores, chosen)))


def primary(found: Results) -> None:
    """The primary comparison, where one is stated."""
    if said := primary_words(found, models_choice.stated()):
        st.html(html.notice(" ".join(said)))


def table(scores: pd.DataFrame) -> None:
    """The same numbers, exactly."""
    rows = scores.to_dict(orient="records")
    tables.show(
        {
            "Model": scores["model"],
            "Judge only": [_cell(row, "judge_only") for row in rows],
            "Physicians only": [_cell(row, "physicians_only") for row in rows],
            "Corrected": [_corrected(row) for row in rows],
            "Criteria read": scores["n_read"],
            "Reads": [
                f"{row['n_reads']:,} by {finding.readers_words(row['n_readers'], row['n_effective_readers'])}"
                for row in rows
            ],
            "Reads saved by judge": [
                finding.worth_words(row["worth"], row["worth_low"], row["worth_high"]) if row["enough"] else "–"
                for row in rows
            ],
            "Examples": scores["n_examples"],
            "Left out": scores["n_left_out"],
        },
        key="models_table",
        names=("Model",),
        optional=("Left out",),
        alt="Scores by model",
    )


def claims(found: Results, models: list[str]) -> None:
    """The corrected scores for everything that their intervals may hold for, so that no claim stands alone."""
    st.subheader("The corrected score, by what its interval holds for", anchor=False)
    in_order = found.claims.set_index("model").loc[models].reset_index()
    columns = finding.claim_columns(in_order.sort_values("place", kind="stable"))
    rows = found.scores.set_index("model").loc[models].to_dict(orient="records")
    often = [
        finding.score_words(row["corrected"], row["corrected_any_low"], row["corrected_any_high"])
        if row["enough"]
        else "–"
        for row in rows
    ]
    tables.show(columns | {ANYTIME: often}, key="models_claims", names=("Model",), alt="Corrected scores by claim")
    st.html(
        html.quiet(
            f"{finding.CLAIM_COLUMNS} {ANYTIME}: {found.where}, an interval that stays valid if you look at it while reading goes on, and stop when it "
            "suits you."
        )
    )


def _cell(row: dict[Any, Any], kind: str) -> str:
    return finding.score_words(row[kind], row[f"{kind}_low"], row[f"{kind}_high"])


def _corrected(row: dict[Any, Any]) -> str:
    if not row["enough"] and row["n_items"]:
        return f"needs {row['n_needed']:,} more criteria"
    return _cell(row, "corrected")


def foot(scores: pd.DataFrame, chosen: Chosen) -> str:
    """How the scores were made."""
    reads, readers, unsure = scores["n_reads"].sum(), scores["n_readers"].max(), scores["n_cannot_assess"].sum()
    return (
        "A score is the points of met criteria over the positive points, as a mean over examples (HealthBench, which reports a mean below 0 as 0; here it "
        "stands as it is). Judge only: by the judge's labels "
        "on everything; for this benchmark that leaves no interval. "
        f"{JUDGE_ONLY_CAUTION} Physicians only: by what physicians have read, each criterion weighted by one over the probability with which it was "
        "drawn. Corrected: the judge's labels on everything, put right by how physicians differed from them where they have read (a "
        "regression estimator, GREG, the same as PPI++). Intervals are 95 %, with the criteria of one example counted as the cluster that they are. "
        f"A read is one physician's blind first label on one criterion; {reads:,} reads by {readers:,} physicians were used, all of items drawn "
        f"with a known probability, and {unsure:,} that could not assess were left out. In brackets, as how many physicians who had read alike they "
        "count (one over the sum of their squared shares of the reading). Reads saved by judge: the number of further criteria physicians would "
        "have had to read to know the score as well without the judge, with its interval. "
        "Left out: responses without a score, or without "
        f"a label by every chosen judge on every criterion. Judge: {models_choice.versions(chosen.judges)}. "
        f"Criteria: {chosen.criteria}. These numbers are deterministic."
    )
