"""Who is better, and head to head: two sections of the Models page."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from evalcore.reading.read_queries import open_example
from evalcore.rubric import figures, finding
from evalcore.rubric.data import RubricData
from evalcore.rubric.judge_only import differences, judge_only_warning, win_rate
from evalcore.rubric.results import jury
from evalcore.rubric.scores import example_scores, response_scores
from evalcore.stats import wording
from evalcore.study.analysis import Analysis
from evalcore.study.browse import Filters
from evalcore.study.schema import Viewer
from pages.models import scores as models_scores
from pages.shared import common, glossary, html, models_choice, routes, tables, theme
from pages.shared.html import response_names

EVERY = "every model"
MANY_PAIRS = 15
N_FARTHEST = 50
ALONE = "Only one model has responses in this part. A comparison needs a second model's results on the same examples."
HOW = "A point is a conversation. Click one, or a row of the table, to read it with both responses beside one rubric."


def judged_pairs(rubric_data: RubricData, chosen: Analysis, seed: int) -> pd.DataFrame:
    """Differences in the judge's opinion."""
    pairs = differences(example_scores(*jury(rubric_data, chosen.judges)), rng=np.random.default_rng(seed))
    return pairs.loc[pairs["n_examples"].gt(0)]


def _several(viewer: Viewer, chosen: Analysis) -> list[str]:
    names: list[str] = models_choice.about(viewer, chosen)["models"]
    if len(names) > 1:
        return names
    st.html(html.notice(ALONE))
    st.page_link(routes.STUDY, label="Import a file", icon=":material/database:")
    return []


def better(viewer: Viewer, chosen: Analysis) -> None:
    """Paired differences: after correction first, then the judge's opinion with the sentence that says so."""
    left, right, _ = st.columns([3, 2, 7])
    names = _several(viewer, chosen)
    if not names:
        return
    many = len(names) * (len(names) - 1) // 2 > MANY_PAIRS
    options = [EVERY, *names]
    against = left.selectbox("Pairs with", options, index=int(many), key="models_against", bind="query-params")
    limits = 0, models_choice.MAX_SEED, models_choice.SEED
    seed = right.number_input("Seed", *limits, key="models_seed", bind="query-params")
    model = None if against == EVERY else against
    numbers = models_choice.numbers(viewer, chosen)
    st.subheader(
        "After correction by physicians' reads", anchor=False, help=glossary.helps("corrected score", "95 % interval")
    )
    st.html(html.finding(numbers.finding))
    models_scores.primary(numbers)
    if not numbers.differences.empty:
        st.html(html.quiet(finding.rank_words(numbers.ranks)))
        _pairs(finding.leader_first(numbers.differences, model), corrected=True, key="corrected")
        st.subheader("Differences by claim", anchor=False)
        columns = finding.difference_columns(numbers.difference_claims, model)
        tables.show(columns, key="models_difference_claims", names=("Pair",), alt="Corrected differences by claim")
        st.html(html.quiet(finding.CLAIM_COLUMNS))
    st.subheader(f"In the judge's opinion{', not weighted' if chosen.weighted else ''}", anchor=False)
    judged = models_choice.computed(judged_pairs, viewer, chosen, seed)
    st.html(html.notice(judge_only_warning(wording.listed(chosen.judges)), kind="warning"))
    if judged.empty:
        st.html(html.quiet("The models share no example, so they cannot be compared."))
    else:
        _pairs(finding.leader_first(judged, model), corrected=False, key="judged")
    st.html(
        html.foot(
            "A difference is between two models' scores on the same examples, so what makes an example hard for both cancels. Corrected differences "
            "rest on the corrected score's part of each example. All pairs at once: intervals that hold together (Bonferroni); places "
            "follow from them. In the judge's opinion: intervals by resampling examples 10,000 times, p by 10,000 "
            "flips of the sign of each example's difference, two-sided. Holm: taken for as many pairs as there are. Max-T: the chance that any "
            f"pair differs so clearly where no model differs. Seed {seed}. {models_choice.source_words(chosen)}"
        )
    )


def _pairs(pairs: pd.DataFrame, *, corrected: bool, key: str) -> None:
    if pairs.empty:
        st.html(html.quiet("No pair with this model can be compared here."))
        return
    figure = figures.differences(pairs, corrected=corrected)
    alt = "Differences of the scores of each pair of models, with 95 % intervals"
    theme.figure(figure, key=f"models_pairs_{key}", alt=alt)
    columns, alt = finding.pair_columns(pairs), "Differences of each pair of models"
    tables.show(columns, key=f"models_pairs_table_{key}", names=("Pair",), alt=alt)


def both(rubric_data: RubricData, chosen: Analysis, first: str, second: str) -> dict[str, Any]:
    """The scores of two models on each example that both have one on, and how often the first wins."""
    one, judge = jury(rubric_data, chosen.judges)
    responses = response_scores(one, judge)
    ones, others = (responses.loc[responses["model"].eq(model)] for model in (first, second))
    scores = example_scores(one, judge)[[first, second]].dropna()
    table = scores.set_axis(["first", "second"], axis=1).rename_axis("example_id").reset_index()
    return {
        "table": table.assign(apart=table["first"] - table["second"]),
        "wins": win_rate(ones, others),
        "alike": win_rate(ones, others, length_controlled=True),
    }


def head_to_head(viewer: Viewer, chosen: Analysis) -> None:
    """Two models' scores by example; a click opens the conversation with both responses."""
    names = _several(viewer, chosen)
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = models_choice.one_of("Across", names, "models_first", width=260)
        rest = [name for name in names if name != first]
        second = models_choice.one_of("Up", rest, "models_second", width=260)
    of_both = models_choice.computed(both, viewer, chosen, first, second)
    table = of_both["table"]
    if table.empty:
        nothing = "The two models share no example on which both have a score. Choose another pair, other examples, or fewer judges."
        st.html(html.notice(nothing))
        return
    listed = common.read("fitting", Filters()).set_index("example_id")
    table["words"] = table["example_id"].map(listed["first_words"]).fillna("–")
    judge = wording.listed(chosen.judges)
    st.html(html.finding(finding.win_sentence(of_both["wins"], first, second, judge)))
    st.html(html.quiet(finding.alike_sentence(of_both["alike"])))
    st.html(html.quiet(HOW))
    left, right = st.columns([52, 48], gap="medium")
    with left:
        figure, click = figures.head_to_head(table, first, second), {"on_select": "rerun", "selection_mode": "points"}
        alt = f"Scores of {len(table):,} conversations: one model across, the other up"
        event = theme.figure(figure, key="models_points", alt=alt, **click)
    order = table["apart"].abs().sort_values(ascending=False, kind="stable").index
    farthest = table.reindex(order).head(N_FARTHEST)
    column_of = st.column_config
    with right:
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
            column_config={
                "Conversation": column_of.TextColumn(width=200),
                **{f"score {name}": column_of.NumberColumn(name, format="%.2f", width=72) for name in (first, second)},
                "Apart": column_of.NumberColumn(format="%+.2f", width=64),
            },
            alt="The conversations on which the two models are farthest apart",
            **tables.CLICKED,
        )
    points = [point["customdata"][0] for point in event.selection.points if point.get("customdata")]
    if (place := tables.touched(row)) is not None:
        points.append(farthest["example_id"].iloc[place])
    if points:
        _open(viewer, chosen, int(points[0]), first, second)
    st.html(
        html.foot(
            f"A point is the mean score of a model's responses to one conversation, by {judge}, not corrected; on the line both score the same. "
            "Win rate: all pairs of the two models' responses to the same conversation, ties dropped, then the mean over conversations; of like "
            "length: only pairs whose lengths differ by at most 10 % of their mean (HealthBench). Intervals are 95 %, clustered by conversation. "
            f"The table holds the {N_FARTHEST} conversations farthest apart. {models_choice.source_words(chosen)}"
        )
    )


def _open(viewer: Viewer, chosen: Analysis, example_id: int, first: str, second: str) -> None:
    opened = common.ask(open_example, example_id)
    if opened is None or example_id in common.blind(viewer):
        return
    named = opened.responses.assign(name=response_names(opened.responses))
    here = named.loc[named["evaluation"].eq(chosen.evaluation or "")].sort_values("sample_index", kind="stable")
    shown = [here.loc[here["model"].eq(model), "name"].iloc[0] for model in (first, second)]
    models_choice.leave()
    st.switch_page(routes.BROWSE, query_params={"example": str(example_id), "shown": shown})
