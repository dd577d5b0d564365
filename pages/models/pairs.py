"""Who is better, and head to head: two sections of the Models page."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.reading.read_queries import open_example
from evalcore.rubric import figures, finding, parts
from evalcore.rubric.comparison import differences, judge_only_warning, win_rate
from evalcore.rubric.data import RubricData
from evalcore.rubric.results import Results
from evalcore.rubric.scores import example_scores, response_scores
from evalcore.stats.wording import chance_words, decimal
from evalcore.study.browse import Filters
from evalcore.study.db import reading
from evalcore.study.schema import Viewer
from pages.models import scores as models_scores
from pages.shared import common, html, models_choice, routes, tables, theme
from pages.shared.html import response_names
from pages.shared.models_choice import Chosen

EVERY = "every model"
MANY_PAIRS = 15
HEADER_PIXELS, ROW_PIXELS, MAX_TABLE = 38, 35, 420
CLEAR_BELOW = 0.05
N_FARTHEST = 50


def judged_pairs(rubric_data: RubricData, chosen: Chosen, seed: int) -> pd.DataFrame:
    """Differences in the judge's opinion."""
    found = differences(example_scores(*parts.jury(rubric_data, chosen.judges)), rng=np.random.default_rng(seed))
    return found.loc[found["n_examples"].gt(0)]


def _several(viewer: Viewer, chosen: Chosen) -> list[str]:
    """The models of the part; where it is one alone, a notice says so, and there is none to compare."""
    names = models_choice.models_of(viewer, chosen)
    if len(names) > 1:
        return names
    st.html(
        html.notice(
            "Only one model has responses in this part. A comparison needs a second model's results on the same examples."
        )
    )
    st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
    return []


def better(viewer: Viewer, chosen: Chosen) -> None:
    """Paired differences: after correction first, then the judge's opinion with the sentence that says so."""
    left, right, _ = st.columns([3, 2, 7])
    names = _several(viewer, chosen)
    if not names:
        return
    many = len(names) * (len(names) - 1) // 2 > MANY_PAIRS
    with left:
        against = st.selectbox(
            "Pairs with", [EVERY, *names], index=1 if many else 0, key="models_against", bind="query-params"
        )
    with right:
        seed = st.number_input(
            "Seed of chance", 0, models_choice.MAX_SEED, models_choice.SEED, key="models_seed", bind="query-params"
        )
    model = None if against == EVERY else against
    found = models_choice.numbers(viewer, chosen)
    st.subheader("After correction by physicians' reads", anchor=False)
    st.html(html.finding(found.finding))
    models_scores.primary(found)
    if not found.differences.empty:
        st.html(html.quiet(finding.rank_words(found.ranks)))
        _pairs(finding.leader_first(found.differences, model), corrected=True, key="corrected")
        _claims(found, model)
    st.subheader(f"In the judge's opinion{', not weighted' if chosen.weighted else ''}", anchor=False)
    judged = models_choice.computed(judged_pairs, viewer, chosen, seed)
    st.html(html.notice(judge_only_warning(chosen.judge), kind="warning"))
    if judged.empty:
        st.html(html.quiet("The models share no example, so they cannot be compared."))
    else:
        _pairs(finding.leader_first(judged, model), corrected=False, key="judged")
    st.html(html.foot(_pairs_foot(chosen, seed)))


def _claims(found: Results, model: str | None) -> None:
    """The corrected differences for everything that their intervals may hold for."""
    st.subheader("The difference, by what its interval holds for", anchor=False)
    columns = finding.difference_columns(found.difference_claims, model)
    tables.show(columns, key="models_difference_claims", names=("Pair",), alt="Corrected differences by claim")
    st.html(html.quiet(finding.CLAIM_COLUMNS))


def _pairs(table: pd.DataFrame, *, corrected: bool, key: str) -> None:
    if table.empty:
        st.html(html.quiet("No pair with this model can be compared here."))
        return
    st.plotly_chart(
        figures.differences(table, corrected=corrected, ink=theme.ink()), config={"displayModeBar": False}, key=f"models_pairs_{key}",
        alt="Differences of the scores of each pair of models, with 95 % intervals",
    )  # fmt: skip
    rows = table.to_dict(orient="records")
    columns: dict[str, Any] = {
        "Pair": [f"{row['model_1']} − {row['model_2']}" for row in rows],
        "Difference": [finding.difference_words(row["difference"], row["low"], row["high"]) for row in rows],
    }
    if "sim_low" in table.columns and len(rows) > 1:
        columns["All pairs at once"] = [
            f"[{decimal(row['sim_low'], 3, signed=True)}, {decimal(row['sim_high'], 3, signed=True)}]" for row in rows
        ]
    named = {"p": "p", "p_holm": "p, Holm", "p_max_t": "p, max-T"}
    columns |= {
        words: [chance_words(row[name]) for row in rows] for name, words in named.items() if name in table.columns
    }
    columns["Examples"] = table["n_examples"]
    if "n_left_out" in table.columns:
        columns["Left out"] = table["n_left_out"]
    st.dataframe(
        columns,
        key=f"models_pairs_table_{key}",
        hide_index=True,
        height=min(MAX_TABLE, HEADER_PIXELS + ROW_PIXELS * len(rows)),
        alt="Differences of each pair of models",
    )


def _pairs_foot(chosen: Chosen, seed: int) -> str:
    return (
        "A difference is between two models' scores on the same examples, so what makes an example hard for both cancels. Corrected differences "
        "rest on the corrected score's part of each example. All pairs at once: intervals that hold together (Bonferroni); places "
        "follow from them. In the judge's opinion: intervals by resampling examples 10,000 times, p by 10,000 "
        "flips of the sign of each example's difference, two-sided. Holm: taken for as many pairs as there are. Max-T: the chance that any "
        "pair differs so clearly where no model differs. "
        f"Seed {seed}. Judge: {models_choice.versions(chosen.judges)}. Criteria: {chosen.criteria}."
    )


# ---------------------------------------------------------------- head to head


def both(rubric_data: RubricData, chosen: Chosen, first: str, second: str) -> dict[str, Any]:
    """The scores of two models on each example that both have one on, and how often the first wins."""
    responses = response_scores(*parts.jury(rubric_data, chosen.judges))
    ones, others = (responses.loc[responses["model"].eq(model)] for model in (first, second))
    scores = example_scores(*parts.jury(rubric_data, chosen.judges))[[first, second]].dropna()
    table = scores.set_axis(["first", "second"], axis=1).rename_axis("example_id").reset_index()
    table["apart"] = table["first"] - table["second"]
    return {
        "table": table,
        "wins": win_rate(ones, others),
        "alike": win_rate(ones, others, length_controlled=True),
    }


def head_to_head(viewer: Viewer, chosen: Chosen) -> None:
    """Two models' scores by example; a click opens the conversation with both responses."""
    names = _several(viewer, chosen)
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = st.selectbox(
            "Across",
            names,
            index=models_choice.first("models_first", names),
            key="models_first",
            bind="query-params",
            persist_state="session",
            width=260,
        )
        rest = [name for name in names if name != first]
        second = st.selectbox(
            "Up",
            rest,
            index=models_choice.first("models_second", rest),
            key="models_second",
            bind="query-params",
            persist_state="session",
            width=260,
        )
    found = models_choice.computed(both, viewer, chosen, first, second)
    table = found["table"]
    if table.empty:
        st.html(
            html.notice(
                "The two models share no example on which both have a score. Choose another pair, other examples, or fewer judges."
            )
        )
        return
    table["words"] = _first_words(viewer, table["example_id"])
    st.html(html.finding(finding.win_sentence(found["wins"], first, second, chosen.judge)))
    st.html(html.quiet(finding.alike_sentence(found["alike"])))
    st.html(
        html.quiet(
            "A point is a conversation. Click one, or a row of the table, to read it with both responses beside one rubric."
        )
    )
    left, right = st.columns([52, 48], gap="medium")
    with left:
        event = st.plotly_chart(
            figures.head_to_head(table, first, second), config={"displayModeBar": False}, key="models_points", on_select="rerun",
            selection_mode="points", alt=f"Scores of {len(table):,} conversations: one model across, the other up",
        )  # fmt: skip
    with right:
        farthest = table.reindex(table["apart"].abs().sort_values(ascending=False, kind="stable").index).head(
            N_FARTHEST
        )
        row = st.dataframe(
            {
                "Conversation": farthest["words"],
                f"score {first}": farthest["first"],
                f"score {second}": farthest["second"],
                "Apart": farthest["apart"],
            },
            key="models_farthest",
            hide_index=True,
            height=480,
            on_select="rerun",
            selection_mode=["single-row", "single-cell"],
            column_config={
                "Conversation": st.column_config.TextColumn(width=200),
                **{
                    f"score {name}": st.column_config.NumberColumn(name, format="%.2f", width=72)
                    for name in (first, second)
                },
                "Apart": st.column_config.NumberColumn(format="%+.2f", width=64),
            },
            alt="The conversations on which the two models are farthest apart",
        )
    touched = [*row.selection.rows, *(number for number, _ in row.selection.cells)]
    points = [point["customdata"][0] for point in event.selection.points if point.get("customdata")]
    if touched:
        points.append(farthest["example_id"].iloc[touched[0]])
    if points:
        _open(viewer, chosen, int(points[0]), first, second)
    st.html(
        html.foot(
            f"A point is the mean score of a model's responses to one conversation, by {chosen.judge}, not corrected; on the line both score the same. "
            "Win rate: all pairs of the two models' responses to the same conversation, ties dropped, then the mean over conversations; of like "
            "length: only pairs whose lengths differ by at most 10 % of their mean (HealthBench). Intervals are 95 %, clustered by conversation. "
            f"The table holds the {N_FARTHEST} conversations farthest apart. Judge: {models_choice.versions(chosen.judges)}. Criteria: {chosen.criteria}."
        )
    )


def _first_words(viewer: Viewer, example_ids: pd.Series) -> "pd.Series[str]":
    hidden = common.blind(viewer)
    judges = common.read("judges")
    listed = common.read("listed", Filters(), judges[0] if judges else "", hidden)
    return example_ids.map(listed["first_words"]).fillna("–")


def _open(viewer: Viewer, chosen: Chosen, example_id: int, first: str, second: str) -> None:
    """Go to Browse, with a response of each model beside one rubric."""
    with reading(common.engine()) as session:
        opened = open_example(session, example_id)
    if opened is None or example_id in common.blind(viewer):
        return
    named = opened.responses.assign(name=response_names(opened.responses))
    here = named.loc[named["evaluation"].eq(chosen.evaluation)].sort_values("sample_index", kind="stable")
    shown = [here.loc[here["model"].eq(model), "name"].iloc[0] for model in (first, second)]
    models_choice.leave()
    st.switch_page(routes.BROWSE, query_params={"example": str(example_id), "shown": shown})
