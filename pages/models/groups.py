"""By theme and axis: a section of the Models page."""

from typing import Any

import pandas as pd
import streamlit as st

from evalcore.figures.colours import colour_of
from evalcore.rubric import corrected_groups, parts
from evalcore.rubric.claims import MIN_EXAMPLES_READ
from evalcore.rubric.data import RubricData
from evalcore.rubric.figures import by_group
from evalcore.rubric.finding import difference_words, score_words
from evalcore.rubric.scores import OF_CRITERIA, SMALL, group_scores
from evalcore.stats.wording import chance_words
from evalcore.study.languages import LANGUAGES
from evalcore.study.schema import Viewer
from pages.shared import filters, html, models_choice, routes, tables, theme
from pages.shared.models_choice import Chosen

GROUPINGS = ("axis", "theme", "category", "cluster", "language")
"""In the order of the control. An axis has criteria in most examples, so that it is the first of which enough is read."""


def grouped(rubric_data: RubricData, chosen: Chosen, grouping: str) -> dict[str, pd.DataFrame]:
    """The corrected scores, differences and tests of one grouping, and the scores by the judge alone; those with most examples first."""
    how = models_choice.correcting(rubric_data, chosen)
    known = corrected_groups.by_group(rubric_data, grouping, **how)
    claims: dict[str, Any] = {"claim": chosen.claim, "physicians": chosen.physicians}
    scores = corrected_groups.group_corrected_scores(known, **claims)
    judged = group_scores(*parts.jury(rubric_data, chosen.judges), by=(grouping,))
    return {
        "scores": _most_first(scores),
        "differences": corrected_groups.group_differences(known, **claims),
        "tests": corrected_groups.interactions(known, grouping),
        "judged": _most_first(judged.loc[judged["grouping"].eq(grouping)]),
    }


def _most_first(table: pd.DataFrame) -> pd.DataFrame:
    most = table.groupby("group", observed=True)["n_examples"].transform("max")
    return table.assign(most=most).sort_values(
        ["most", "group", "model"], ascending=[False, True, True], ignore_index=True
    )


def show(viewer: Viewer, chosen: Chosen) -> None:
    """Corrected scores of each group, whether groups differ, and folded behind them the judge's opinion."""
    grouping = (
        st.segmented_control(
            "By",
            GROUPINGS,
            default=GROUPINGS[0],
            key="models_by",
            bind="query-params",
            persist_state="session",
            required=True,
        )
        or GROUPINGS[0]
    )
    found: dict[str, pd.DataFrame] = models_choice.computed(grouped, viewer, chosen, grouping)
    if found["judged"].empty:
        st.html(
            html.notice(
                f"Nothing here is tagged with a {grouping}: the tags come with the file of examples. Import it on the Study page."
            )
        )
        st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
        return
    if not found["judged"]["n_responses"].any():
        st.html(html.notice(models_choice.NO_LABELS))
        return
    named = {name: _named(table, grouping) for name, table in found.items() if name != "tests"}
    said = corrected_groups.group_words(named["scores"], found["tests"], grouping, chosen.spec.primary)
    corrected(named["scores"], named["differences"], said, grouping)
    with st.expander(f"{chosen.judge}'s opinion alone, not corrected"):
        by_judge(named["judged"], grouping)
        st.html(html.foot(judge_foot(found["judged"], chosen)))
    st.html(html.foot(foot(grouping, chosen)))


def _named(table: pd.DataFrame, grouping: str) -> pd.DataFrame:
    names = LANGUAGES if grouping == "language" else {}
    return table.assign(group=[names.get(group, filters.plain(group)) for group in table["group"]])


def corrected(scores: pd.DataFrame, differences: pd.DataFrame, said: str, grouping: str) -> None:
    """What is known after correction: the figure, whether groups differ, and the table."""
    enough = scores["enough"].astype(bool)
    if not enough.any():
        st.html(html.notice(said))
    else:
        st.html(html.finding(said))
        st.plotly_chart(
            by_group(
                scores.loc[scores["group"].isin(scores.loc[enough, "group"])],
                colour_of(models_choice.models()),
                ink=theme.ink(),
            ),
            config={"displayModeBar": False},
            key=f"models_groups_{grouping}",
            alt=f"Corrected score of each model by {grouping}, with 95 % intervals, and the judge's opinion beside it",
        )
    if enough.any() or scores["n_examples"].max() >= MIN_EXAMPLES_READ:
        table(scores, grouping)
    known = differences.loc[differences["difference"].notna()]
    if not known.empty:
        pairs(known, grouping)


def table(scores: pd.DataFrame, grouping: str) -> None:
    """The same numbers exactly, a row a group; where there is none, what lacks."""
    words = scores.assign(words=[_cell(row) for row in scores.to_dict(orient="records")])
    cells = words.pivot(index="group", columns="model", values="words").reindex(scores["group"].drop_duplicates())
    read = scores.groupby("group")["n_read"].sum().reindex(cells.index)
    most = scores.groupby("group")["n_examples"].max().reindex(cells.index)
    tables.show(
        {
            grouping.capitalize(): cells.index,
            **{str(model): cells[model].fillna("–") for model in cells.columns},
            "Examples": most,
            "Criteria read": read,
        },
        key="models_groups",
        names=(grouping.capitalize(),),
        alt=f"Corrected scores by {grouping}",
    )


def _cell(row: dict[Any, Any]) -> str:
    if row["enough"]:
        return score_words(row["corrected"], row["corrected_low"], row["corrected_high"])
    return corrected_groups.lacking_words(row)


def pairs(known: pd.DataFrame, grouping: str) -> None:
    """The differences of models in each group."""
    with st.expander("Differences between models"):
        tables.show(
            {
                grouping.capitalize(): known["group"],
                "Models": [f"{row['model_1']} − {row['model_2']}" for row in known.to_dict(orient="records")],
                "Difference": [
                    difference_words(row["difference"], row["low"], row["high"])
                    for row in known.to_dict(orient="records")
                ],
                "p, Holm": [chance_words(p) for p in known["p_holm"]],
            },
            key="models_group_differences",
            names=(grouping.capitalize(), "Models"),
            alt=f"Differences of corrected scores by {grouping}",
        )
        st.html(html.quiet(f"p is adjusted by Holm over the {len(known):,} differences of this table."))


def by_judge(judged: pd.DataFrame, grouping: str) -> None:
    """The scores by the judge's labels alone, a row a group."""
    words = [score_words(row["score"], row["low"], row["high"]) for row in judged.to_dict(orient="records")]
    cells = (
        judged.assign(words=words)
        .pivot(index="group", columns="model", values="words")
        .reindex(judged["group"].drop_duplicates())
    )
    most = judged.groupby("group")["n_examples"].max().reindex(cells.index)
    tables.show(
        {
            grouping.capitalize(): cells.index,
            **{f"{model}, judge only": cells[model].fillna("–") for model in cells.columns},
            "Examples": most,
        },
        key="models_groups_judged",
        names=(grouping.capitalize(),),
        alt=f"Scores by {grouping} in the judge's opinion",
    )


def judge_foot(judged: pd.DataFrame, chosen: Chosen) -> str:
    """What the judge's scores leave out."""
    return (
        f"These are {chosen.judge}'s opinion: intervals leave out how often the judge is wrong. They are 95 %, clustered by example; of fewer than "
        f"{SMALL} examples an interval promises too much. Responses without a score: {judged['n_undefined'].sum():,}, counted once a group."
    )


def foot(grouping: str, chosen: Chosen) -> str:
    """How the scores were made."""
    rule = (
        "the points of met criteria of that tag over the positive points of that tag; an example without positive points there is left out, not 0"
        if grouping in OF_CRITERIA
        else "the mean of the whole scores of the examples that carry the tag"
    )
    return (
        f"A group's score is {rule} (HealthBench). Filled: corrected, by the estimator of the Scores section on the group alone. Hollow: the judge only. "
        "Whether groups differ is tested for new examples and these physicians (groups of examples: Welch; groups of criteria, which share examples: "
        f"Hotelling), with Holm over the models or pairs. Judge: {models_choice.versions(chosen.judges)}. Criteria: {chosen.criteria}."
    )
