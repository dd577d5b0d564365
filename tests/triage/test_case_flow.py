"""The flow of cases: every case goes one way, and the words, the tables and the figure count the same."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.figures.numbers import numbers
from evalcore.study.schema import MappingMethod
from evalcore.triage import case_flow as flows
from evalcore.triage.case_flow import Outcome, Why, case_flow
from evalcore.triage.data import AmbiguityRule, described
from evalcore.triage.figures import case_flow as figure_of
from tests.triage_cases import drawn

A, B, REMOVE = 1.0, 2.0, np.nan
CASES = [
    # source, label, meaning, file's gold, method, uncertainty, votes -> outcome, why, gold
    ("x", "em", "D", 4.0, MappingMethod.DIRECT, np.nan, (), (Outcome.DIRECT, Why.LABEL, "D")),
    ("x", "sc", "A", 1.0, MappingMethod.DIRECT, 0.9, (), (Outcome.AMBIGUOUS, Why.UNSURE, "")),
    ("x", "ne", "panel", np.nan, MappingMethod.NONE, np.nan, (), (Outcome.EXCLUDED, Why.NEEDS_PANEL, "")),
    ("x", "ne", "panel", np.nan, MappingMethod.MEDIAN, np.nan, (A, B), (Outcome.AMBIGUOUS, Why.DISAGREED, "")),  # spread 1
    ("x", "ne", "panel", 2.0, MappingMethod.DISAGREEMENT, np.nan, (A, A, B), (Outcome.CONSENSUS, Why.VOTES, "A")),  # spread 2/3
    ("x", "ne", "panel", np.nan, MappingMethod.MEDIAN, np.nan, (1.5, A), (Outcome.CONSENSUS, Why.VOTES, "A/B")),
    ("x", "ne", "panel", np.nan, MappingMethod.REMOVED, np.nan, (REMOVE, REMOVE, A), (Outcome.EXCLUDED, Why.REMOVED, "")),
    ("x", "ne", "panel", np.nan, MappingMethod.REMOVED, np.nan, (), (Outcome.EXCLUDED, Why.STATED_REMOVED, "")),
    ("x", "ne", "panel", np.nan, MappingMethod.NONE, np.nan, (A,), (Outcome.EXCLUDED, Why.FEW_VOTES, "")),
    ("y", "ne", "panel", 1.5, MappingMethod.MEDIAN, np.nan, (), (Outcome.CONSENSUS, Why.STATED_MEDIAN, "A/B")),
    ("y", "ne", "panel", 1.5, MappingMethod.DISAGREEMENT, np.nan, (), (Outcome.AMBIGUOUS, Why.STATED_DISAGREEMENT, "")),
    ("y", "3", "information B", np.nan, MappingMethod.NONE, np.nan, (), (Outcome.EXCLUDED, Why.INFORMATION, "")),
    ("y", None, None, np.nan, MappingMethod.NONE, np.nan, (), (Outcome.EXCLUDED, Why.NO_LABEL, "")),
    ("y", None, None, np.nan, MappingMethod.NONE, np.nan, (A, A, REMOVE), (Outcome.CONSENSUS, Why.VOTES, "A")),
]  # fmt: skip
N = len(CASES)


def made(rows):
    """These cases, described by the usual rule."""
    empty, _ = drawn(np.random.default_rng(0), n_cases=1)
    empty = empty.where([False])
    cases = pd.DataFrame(
        [row[:6] for row in rows],
        columns=["source", "original_label", "mapped_label", "file_gold", "method", "uncertainty"],
    )
    votes = [(row, place, vote) for row, case in enumerate(rows) for place, vote in enumerate(case[6], start=1)]
    voted = pd.DataFrame(votes, columns=["row", "place", "vote"]).astype({"row": int, "vote": float})
    return described(replace(empty, cases=cases.astype({"method": str}), votes=voted))


def test_each_case_goes_its_way_and_no_other():
    for case in CASES:
        (row,) = case_flow(made([case])).to_dict(orient="records")
        assert (row["outcome"], row["why"], row["gold"], row["n"]) == (*case[7], 1), case
        assert (row["source"], row["original_label"], row["meaning"]) == (case[0], case[1] or "", case[2] or "")


def test_the_sentence_names_what_is_used_and_why_the_rest_is_not():
    assert flows.sentence(case_flow(made(CASES))) == (
        "14 cases of 2 sources. 8 are used: 3 with one level (1 by their label, 2 by a panel), 2 between two levels (2 by a panel), 3 ambiguous. "
        "6 are left out: fewer than two votes (1); its file says that it was removed (1); its label is information only, and no panel has voted (1); "
        "its label needs a panel, and none has voted (1); no label and no votes (1); the panel removed it (1)."
    )
    assert flows.sentence(case_flow(made([]))) == "No cases yet."
    assert (
        flows.sentence(case_flow(made(CASES[2:3])))
        == "1 case of 1 source. None is used. 1 is left out: its label needs a panel, and none has voted."
    )


def test_the_rule_decides_what_is_ambiguous():
    triage_data = made(CASES[3:4])
    wide = AmbiguityRule(spread=1.0)
    assert case_flow(triage_data).loc[0, "outcome"] == "ambiguous"
    assert case_flow(described(triage_data, wide), wide).loc[0, ["outcome", "gold"]].tolist() == ["consensus", "A/B"]


@given(st.integers(0, 2**32 - 1), st.floats(0, 1), st.integers(1, 6))
def test_every_case_is_counted_once_in_any_order_and_in_parts(seed, share_panel, n_votes):
    rng = np.random.default_rng(seed)
    triage_data, _ = drawn(rng, n_cases=40, models=["m"], n_samples=1, share_panel=share_panel, n_votes=n_votes)
    triage_data = described(triage_data)
    flow = case_flow(triage_data)
    assert flow["n"].sum() == 40
    assert flow["n"].min() > 0
    assert not flow.duplicated(list(flows.COLUMNS[:-1])).any()
    kinds = triage_data.cases["kind"].value_counts()
    with_gold = flow.loc[flow["gold"].ne("")]
    assert with_gold.loc[with_gold["gold"].str.contains("/"), "n"].sum() == kinds["boundary"]
    assert flow.loc[flow["outcome"].eq("ambiguous"), "n"].sum() == kinds["ambiguous"]
    assert flow.loc[flow["outcome"].eq("excluded"), "n"].sum() == kinds["unlabelled"]
    half = rng.random(40) < 0.5
    parts = [case_flow(triage_data.where(half)), case_flow(triage_data.where(~half))]
    pd.testing.assert_frame_equal(flows.in_order(pd.concat(parts)), flow)
    labels = flows.mapping(flow)
    assert labels["n"].sum() == labels.filter(like="n_").to_numpy().sum() == 40


def test_the_figures_ribbons_carry_every_case_through_both_halves():
    flow = case_flow(made(CASES))
    links, (sources, outcomes, ends) = flows.links(flow), flows.stages(flow)
    assert links.groupby("stage")["n"].sum().tolist() == [N, N]
    assert (list(sources), list(outcomes)) == (["x", "y"], ["direct", "consensus", "ambiguous", "excluded"])
    assert list(ends)[:5] == ["A", "A/B", "D", "ambiguous", "removed by its panel"]
    assert list(ends)[5:] == ["removed by its file", "fewer than two votes", "no panel has voted", "no label, no votes"]
    assert sum(sources.values()) == sum(outcomes.values()) == sum(ends.values()) == N
    figure = figure_of(links, (sources, outcomes, ends))
    (drawn,) = figure.data
    assert len(drawn.node.label) == len(sources) + len(outcomes) + len(ends)
    assert drawn.node.label[:2] == ("x <b>9</b>", "y <b>5</b>")
    assert sum(drawn.link.value) == 2 * N
    saved = numbers(figure)
    assert saved.loc[saved["series"].isin(["x 9", "y 5"]), "value"].sum() == N


@pytest.mark.parametrize("n_sources", [1, 3, 12, 40])
def test_the_figure_stays_within_its_frame_and_shows_names_as_they_are(n_sources):
    rows = [(f"<b>{n}</b>", *CASES[0][1:]) for n in range(n_sources) for _ in range(n + 1)]
    flow = flows.folded(case_flow(made(rows)))
    figure = figure_of(flows.links(flow), flows.stages(flow))
    n_shown = min(n_sources, flows.MOST_SOURCES)
    assert len(flows.stages(flow)[0]) == n_shown
    nodes = figure.data[0].node
    assert all("&lt;b&gt;" in name or "other sources" in name for name in nodes.label[:n_shown])
    assert all(0 < place < 1 for place in nodes.y)
    assert all(one < other for one, other in pairwise(nodes.y[:n_shown]))
    assert flow["n"].sum() == len(rows)


def test_the_smallest_sources_are_shown_as_one():
    rows = [(str(n), *CASES[0][1:]) for n in range(16) for _ in range(16 - n)]
    flow = flows.folded(case_flow(made(rows)))
    sources = flow.groupby("source")["n"].sum()
    assert len(sources) == 14
    assert sources["3 other sources"] == 3 + 2 + 1
