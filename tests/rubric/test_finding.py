"""Scores and differences in words: what the sentence above the figure says, and when it says no number."""

import math

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.rubric.finding import difference_words, finding, leader_first, score_words, unreached_words, worth_words

NAN = math.nan
HERE = "for this benchmark, these physicians"


def scores(*rows: tuple[str, float, bool, float]) -> pd.DataFrame:
    """Model, corrected score, whether enough is read, further reads needed."""
    table = pd.DataFrame(rows, columns=["model", "corrected", "enough", "n_needed"])
    return table.assign(
        corrected_low=table["corrected"] - 0.02,
        corrected_high=table["corrected"] + 0.02,
        n_read=[0 if math.isnan(value) else 50 for value in table["corrected"]],
        n_items=[0 if math.isnan(value) else 400 for value in table["n_needed"]],
    )


def gap(first: str, second: str, difference: float, low: float, high: float, p_holm: float = 0.003) -> pd.DataFrame:
    row = {"model_1": first, "model_2": second, "difference": difference, "low": low, "high": high, "p_holm": p_holm}
    return pd.DataFrame([row])


A, B = ("A", 0.602, True, 0.0), ("B", 0.543, True, 0.0)


def test_the_best_two_are_told_apart_with_their_difference():
    said = finding(scores(B, A), gap("A", "B", 0.059, 0.021, 0.097), HERE)
    assert said == "A is ahead of B by 0.059 [0.021, 0.097] after correction (for this benchmark, these physicians)."


def test_a_lead_that_many_pairs_could_bring_about_says_so():
    said = finding(scores(B, A), gap("A", "B", 0.059, 0.004, 0.114, 0.21), HERE)
    assert said == (
        "A is ahead of B by 0.059 [0.004, 0.114] after correction (for this benchmark, these physicians); with as many pairs as here that may be chance "
        "(p 0.21 by Holm)."
    )


def test_a_pair_that_stands_the_other_way_round_is_turned():
    said = finding(scores(A, B), gap("B", "A", -0.059, -0.097, -0.021), HERE)
    assert said == "A is ahead of B by 0.059 [0.021, 0.097] after correction (for this benchmark, these physicians)."


def test_two_whose_interval_holds_nought_cannot_be_told_apart():
    said = finding(scores(A, B), gap("A", "B", 0.059, -0.01, 0.13), HERE)
    assert said == (
        "A and B cannot be told apart yet after correction (for this benchmark, these physicians): the difference is +0.059 [−0.010, +0.130]."
    )


def test_models_of_which_too_little_is_read_are_named_and_have_no_number():
    said = finding(scores(A, B, ("C", NAN, False, 300.0)), gap("A", "B", 0.059, 0.021, 0.097), HERE)
    assert said.endswith("Too little has been read of C.")


def test_models_that_a_chosen_judge_has_not_labelled_are_not_told_to_be_read():
    said = finding(
        scores(A, B, ("C", NAN, False, NAN), ("D", NAN, False, NAN)), gap("A", "B", 0.059, 0.021, 0.097), HERE
    )
    assert said.endswith(
        "(for this benchmark, these physicians). No response of C or D is labelled by every chosen judge on every criterion."
    )
    nothing = finding(scores(("A", NAN, False, 30.0), ("C", NAN, False, NAN)), pd.DataFrame(), HERE)
    assert "About 30 more criteria" in nothing
    assert nothing.endswith("No response of C is labelled by every chosen judge on every criterion.")


def test_one_model_alone_has_its_score_said():
    said = finding(scores(A), pd.DataFrame(), HERE)
    assert said == "A scores 0.602 [0.582, 0.622] after correction (for this benchmark, these physicians)."


def test_where_nothing_is_read_no_score_is_said_but_how_much_must_be():
    said = finding(scores(("A", NAN, False, 33.2), ("B", NAN, False, 41.0)), pd.DataFrame(), HERE)
    assert said == (
        "No physician has read anything yet that was drawn at random, so all scores here are the judge's opinion. "
        "About 34 to 41 more criteria of each model's responses must be read."
    )
    some = scores(("A", 0.6, False, 20.0), ("B", 0.5, False, 20.0))
    assert finding(some, pd.DataFrame(), HERE) == (
        "Too little has been read to correct the judge yet. About 20 more criteria of each model's responses must be read."
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (score_words(0.5, NAN, NAN), "0.500"),
        (difference_words(NAN, NAN, NAN), "–"),
        (worth_words(0.4, -3.0, 5.0), "none [−3, 5]"),
        (worth_words(-0.0, -0.0, -0.0), "none"),
        (difference_words(-0.0004, -0.03, 0.0002), "0.000 [−0.030, 0.000]"),
        (worth_words(12_400.0, 9_000.0, 15_000.0), "12,400 [9,000, 15,000]"),
        (score_words(-0.03, -0.08, 0.02), "−0.030 [−0.080, 0.020]"),
        (score_words(0.4, 0.4, 0.4), "0.400"),
        (score_words(0.99, 0.95, 1.03), "0.990 [0.950, 1.000]"),
    ],
)
def test_numbers_as_screens_say_them(said: str, expected: str):
    assert said == expected


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Differences of every pair of a few models."""
    names = [f"M{n}" for n in range(draw(st.integers(2, 5)))]
    rows = []
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            middle, half = draw(st.floats(-1, 1)), draw(st.floats(0, 1))
            rows.append((first, second, middle, middle - half, middle + half))
    return pd.DataFrame(rows, columns=["model_1", "model_2", "difference", "low", "high"])


@given(tables())
def test_turning_pairs_keeps_every_difference_and_puts_the_leader_first(table: pd.DataFrame):
    turned = leader_first(table)
    assert (turned["difference"] >= 0).all()
    assert turned["difference"].is_monotonic_decreasing
    assert (turned["low"] <= turned["high"]).all()
    known = {(row.model_1, row.model_2): (row.difference, row.low, row.high) for row in table.itertuples()}
    for row in turned.itertuples():
        straight = known.get((row.model_1, row.model_2))
        other = known.get((row.model_2, row.model_1))
        expected = straight if straight is not None else (-other[0], -other[2], -other[1])
        assert (row.difference, row.low, row.high) == expected


@given(tables())
def test_pairs_with_one_model_have_it_first_and_all_of_its_pairs(table: pd.DataFrame):
    turned = leader_first(table, "M1")
    assert turned["model_1"].eq("M1").all()
    others = set(table["model_1"]) | set(table["model_2"])
    assert set(turned["model_2"]) == others - {"M1"}


def test_responses_that_no_drawing_could_have_taken_are_named_with_their_model():
    counted = pd.DataFrame({"model": ["Alder", "Briar"], "n_unreached": [0, 12], "n_responses": [30, 40]})
    assert "No drawing could reach 12 of 40 responses of Briar." in unreached_words(counted)
    assert "Alder" not in unreached_words(counted)
    assert unreached_words(counted.head(1)) == ""
