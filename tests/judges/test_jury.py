"""Several judges as one: when there is a majority, what is counted where there is none, and how the jury stands in the tables."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.judges.quality import OVERALL, balanced_f1
from evalcore.stats.majority import decisions, jury_names, majority, words
from tests.population import drawn
from tests.quality_rows import row_of
from tests.rubric_rows import of_drawing as study

many = settings(max_examples=15, deadline=None)
LABELS = st.sampled_from([1.0, 0.0, math.nan])


def judged(*rows: str) -> pd.DataFrame:
    """Labels, a word an item: + met, - not met, . no label."""
    return pd.DataFrame([[{"+": 1.0, "-": 0.0, ".": math.nan}[sign] for sign in row] for row in rows])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("+++", 1), ("++-", 1), ("+--", 0), ("---", 0), ("++.", 1), ("+-.", None), ("+..", None), ("...", None), ("+-", None), ("++", 1),
        ("+.", None), ("++--", None),
    ],
)  # fmt: skip
def test_more_than_half_of_all_judges_decide_so_that_a_missing_label_could_change_nothing(labels, expected):
    found = majority(judged(labels)).iloc[0]
    assert math.isnan(found) if expected is None else found == expected


@many
@given(st.lists(LABELS, min_size=2, max_size=5))
def test_no_label_that_is_still_missing_could_turn_a_majority(labels):
    found = majority(pd.DataFrame([labels])).iloc[0]
    for label in (0.0, 1.0):
        full = pd.DataFrame([labels]).fillna(label)
        assert math.isnan(found) or majority(full).iloc[0] == found


def test_ties_and_missing_labels_are_counted_apart():
    found = decisions(judged("++++", "+++-", "++--", "++-.", "+...", "....", "----"))
    assert (found.n_judges, found.n_items) == (4, 6)
    assert (found.n_decided, found.n_unanimous, found.n_tied, found.n_open) == (3, 2, 1, 2)
    assert words(found).startswith(
        "Of 6 criteria that any of the 4 judges labelled, 3 have a majority (2 unanimous), 1 is tied, and 2 have too few labels."
    )


@many
@given(st.lists(st.tuples(LABELS, LABELS, LABELS), max_size=12))
def test_the_decisions_add_up_to_the_items(rows):
    frame = pd.DataFrame(rows, columns=["a", "b", "c"], dtype=float)
    found = decisions(frame)
    assert found.n_items == found.n_decided + found.n_tied + found.n_open == frame.notna().any(axis=1).sum()
    assert found.n_decided == majority(frame).notna().sum()
    assert found == decisions(frame[::-1]) == decisions(frame[["c", "a", "b"]])


def test_a_jury_never_takes_the_name_of_a_judge():
    assert jury_names(["Magpie", "mean of 2 judges"]) == ("majority of 2 judges (jury)", "mean of 2 judges (jury)")


def test_the_majority_enters_as_one_more_judge_and_has_no_label_on_a_tie():
    table = balanced_f1(
        study("""
            Magpie | Wren | dr_a
            +      | +    | +
            +      | -    | +
            -      | -    | -
            +      |      | -
        """)
    )
    row = row_of(table, "majority of 2 judges")
    assert (row["n_pairs"], row["n_both"], row["n_neither"], row["balanced_f1"]) == (2, 1, 1, 1)


def test_the_mean_counts_each_judges_pairs_on_the_items_that_all_have_labelled():
    table = balanced_f1(
        study("""
            Magpie | Wren | dr_a | dr_b
            +      | +    | +    | -
            +      | -    | +    | +
            -      | -    | -    | -
            +      |      | -    | -
        """)
    )
    row = row_of(table, "mean of 2 judges")
    # Magpie: ++ +-, ++ ++, -- --; Wren: ++ +-, -+ -+, -- --
    assert (row["n_pairs"], row["n_items"]) == (12, 3)
    assert list(row[["n_both", "n_rater_only", "n_other_only", "n_neither"]]) == [4, 2, 2, 4]


def test_one_judge_is_no_jury_and_a_jury_can_be_left_out():
    rubric_data = study("Magpie | dr_a\n+ | +")
    assert list(balanced_f1(rubric_data)["rater"].unique()) == ["Magpie"]
    both = study("Magpie | Wren | dr_a\n+ | + | +")
    assert list(balanced_f1(both, jury=False)["rater"].unique()) == ["Magpie", "Wren"]


def test_three_judges_that_err_alone_are_better_together():
    rubric_data, _ = drawn(
        np.random.default_rng(3),
        n_examples=600,
        judges={"a": 0.8, "b": 0.8, "c": 0.8},
        share_read=1.0,
        readers=("dr_a",),
    )
    table = balanced_f1(rubric_data)
    # right by two or three of three: 3 x .8^2 x .2 + .8^3 = .896 of the items, against .8
    row = row_of(table, "majority of 3 judges")
    assert (row["n_both"] + row["n_neither"]) / row["n_pairs"] == pytest.approx(0.896, abs=0.02)
    assert (
        row["balanced_f1"]
        > table.loc[table["rater"].isin(list("abc")) & table["grouping"].eq(OVERALL), "balanced_f1"].max() + 0.05
    )
    assert row_of(table, "mean of 3 judges")["balanced_f1"] == pytest.approx(0.8, abs=0.02)


def test_three_times_the_same_judge_is_that_judge():
    rubric_data, _ = drawn(np.random.default_rng(3), n_examples=60, judges={"a": 0.8})
    thrice = pd.concat([rubric_data.judged["a"].rename(name) for name in "abc"], axis=1)
    table = balanced_f1(type(rubric_data)(rubric_data.items, thrice, rubric_data.reads))
    alone, by_majority, by_mean = (row_of(table, name) for name in ("a", "majority of 3 judges", "mean of 3 judges"))
    for name in ("balanced_f1", "low", "high"):
        assert alone[name] == pytest.approx(by_majority[name], rel=1e-12)
        assert alone[name] == pytest.approx(by_mean[name], rel=1e-12)
