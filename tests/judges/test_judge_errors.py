"""Sensitivity and specificity against physicians: what is counted, by which groups, with which interval."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.judges.quality import AXIS, LANGUAGE, OVERALL, SIGN, THEME, balanced_f1, error_rates
from evalcore.rubric.data import RubricData
from evalcore.stats.intervals import share_interval
from tests.population import drawn
from tests.quality_rows import opinions_of
from tests.rubric_rows import of_drawing as study, shuffled

many = settings(max_examples=4, deadline=None)


def row_of(table: pd.DataFrame, group: str = OVERALL, judge: str = "Magpie") -> pd.Series:
    return table.loc[table["judge"].eq(judge) & table["group"].eq(group)].squeeze()


def test_each_read_is_a_pair_and_the_judge_is_right_by_one_of_two_readers_who_differ():
    row = row_of(
        error_rates(
            study("""
                Magpie | dr_a | dr_b
                +      | +    | -
                +      | +    | +
                -      | +    | ?
                -      | -    |
                       | -    | -
            """)
        )
    )
    assert (row["n_pairs"], row["n_met"], row["n_met_right"], row["n_not_met"], row["n_not_met_right"]) == (
        6,
        4,
        3,
        2,
        1,
    )
    assert (row["sensitivity"], row["specificity"]) == (0.75, 0.5)


def test_without_a_read_of_one_label_its_rate_is_no_value():
    row = row_of(error_rates(study("Magpie | dr_a\n+ | +\n- | +")))
    assert (row["sensitivity"], row["n_not_met"]) == (0.5, 0)
    assert math.isnan(row["specificity"])
    assert math.isnan(row["specificity_low"])


def test_groups_are_named_in_words_and_what_has_no_tag_is_a_group_too():
    table = error_rates(
        study("""
            points | axis              | theme             | language | Magpie | dr_a
            5      | context_awareness | health_data_tasks | sw       | +      | +
            -5     | accuracy          | hedging           | en       | +      | +
                   |                   |                   |          | +      | +
        """)
    )
    groups = {name: set(part["group"]) for name, part in table.groupby("grouping")}
    assert groups == {
        OVERALL: {OVERALL},
        SIGN: {"desirable", "undesirable", "no points known"},
        AXIS: {"context awareness", "accuracy", "no axis"},
        THEME: {"health data tasks", "hedging", "no theme"},
        LANGUAGE: {"Swahili", "English", "language not known"},
    }
    assert set(table.loc[table["grouping"].ne(OVERALL), "n_pairs"]) == {1}


def test_the_interval_is_that_of_shares_clustered_by_example():
    rubric_data = opinions_of(4, n_examples=30)
    row = row_of(error_rates(rubric_data))
    reads = rubric_data.reads.assign(says=rubric_data.judged["Magpie"].to_numpy()[rubric_data.reads["row"]])
    met = reads.loc[reads["met"].eq(1) & reads["says"].notna()]
    expected = share_interval(met["says"].eq(1), met["example_id"])
    assert (row["n_met"], row["n_met_right"]) == (expected.n, expected.n_hits)
    assert (row["sensitivity"], row["sensitivity_low"], row["sensitivity_high"]) == pytest.approx(
        (expected.share, expected.low, expected.high), rel=1e-12
    )


def test_the_jury_is_one_more_judge():
    table = error_rates(opinions_of(4))
    assert list(table["judge"].unique()) == ["Magpie", "Wren", "majority of 2 judges", "mean of 2 judges"]
    assert list(error_rates(opinions_of(4), jury=False)["judge"].unique()) == ["Magpie", "Wren"]


@many
@given(st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(seed):
    rubric_data = opinions_of(seed)
    other = shuffled(rubric_data, np.random.default_rng(seed))
    pd.testing.assert_frame_equal(error_rates(rubric_data), error_rates(other), rtol=1e-9)


@many
@given(st.integers(0, 10_000))
def test_groups_add_up_and_agree_with_the_recall_of_the_balanced_f1(seed):
    rubric_data = opinions_of(seed)
    table = error_rates(rubric_data)
    counts = ["n_pairs", "n_met", "n_met_right", "n_not_met", "n_not_met_right"]
    by_grouping = table.groupby(["judge", "grouping"])[counts].sum()
    assert by_grouping.groupby("judge").nunique().eq(1).all(axis=None)
    recall = balanced_f1(rubric_data).query("rater_kind == 'judge' and grouping == 'overall'").set_index("rater")
    overall = table.loc[table["grouping"].eq(OVERALL)].set_index("judge")
    np.testing.assert_allclose(overall["sensitivity"], recall["recall_met"])
    np.testing.assert_allclose(overall["specificity"], recall["recall_not_met"])


@many
@given(st.integers(0, 10_000))
def test_turning_every_label_swaps_sensitivity_and_specificity(seed):
    rubric_data = opinions_of(seed)
    turned = RubricData(
        rubric_data.items, 1 - rubric_data.judged, rubric_data.reads.assign(met=1 - rubric_data.reads["met"])
    )
    one, other = error_rates(rubric_data), error_rates(turned)
    for bound in ("", "_low", "_high"):
        np.testing.assert_allclose(one[f"sensitivity{bound}"], other[f"specificity{bound}"], rtol=1e-9)


def test_a_judges_own_rates_are_found_again():
    rubric_data, _ = drawn(
        np.random.default_rng(6), n_examples=1000, judges={"Magpie": 0.83}, share_read=1.0, readers=("dr_a",)
    )
    row = row_of(error_rates(rubric_data))
    assert (row["sensitivity"], row["specificity"]) == pytest.approx((0.83, 0.83), abs=0.015)
    assert row["sensitivity_low"] < 0.83 < row["sensitivity_high"]


def test_without_a_pair_there_is_no_row():
    assert error_rates(study("Magpie\n+")).empty
