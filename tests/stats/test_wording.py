"""How numbers, shares and names are said; arrays of codes; degrees of freedom and effective readers on small numbers."""

import math

import numpy as np
import pandas as pd
import pytest

from evalcore.stats import majority
from evalcore.stats.arrays import cells_of, codes_of, quotient, sorted_codes
from evalcore.stats.estimator import effective_readers, freedom_of_sum, with_strictness
from evalcore.stats.intervals import interval_words, percent_words, rate_words, share_words, signed_points
from evalcore.stats.wording import chance_words, counted, decimal, listed


def test_a_share_is_said_with_its_counts_where_they_make_it():
    assert share_words(92, 148, 92 / 148) == "62 % (92/148)"
    assert share_words(0, 0, math.nan) == "– (0/0)"
    assert share_words(92, 148, 0.5816, weighted=True) == "58 % (weighted, n = 148)"
    assert (percent_words(0.6216), percent_words(math.nan)) == ("62 %", "–")


def test_an_interval_stands_in_brackets():
    assert interval_words(0.5404, 0.6958) == "[54 %, 70 %]"
    assert rate_words(92 / 148, 0.5404, 0.6958, n_hits=92, n=148, weighted=False) == "62 % (92/148) [54 %, 70 %]"


def test_points_have_a_sign_and_nought_has_none():
    assert [signed_points(value) for value in (0.094, -0.3, -0.001, math.nan)] == ["+9", "−30", "0", "–"]


def test_a_number_has_a_proper_minus_sign_and_nought_none():
    assert [decimal(value) for value in (-0.0712, -0.004, math.nan)] == ["−0.07", "0.00", "–"]
    assert (decimal(0.021, 3, signed=True), decimal(1234.5, 0)) == ("+0.021", "1,234")


def test_a_p_value_has_no_more_digits_than_it_deserves():
    assert [chance_words(p) for p in (0.0002, 0.0314, 0.42, math.nan)] == ["< 0.001", "0.031", "0.42", "–"]


def test_one_is_counted_in_the_singular_and_nought_in_the_plural():
    said = counted(1, "response"), counted(1_200, "response"), counted(0, "criterion", "criteria")
    assert said == ("1 response", "1,200 responses", "0 criteria")


def test_the_last_of_several_names_is_joined_by_a_word():
    assert (listed(["Magpie"]), listed(["A", "B", "C"]), listed(["A", "B"], "or")) == ("Magpie", "A, B and C", "A or B")


def test_what_is_divided_by_nought_is_nan():
    assert quotient([1, 2], [4, 0]).tolist() == pytest.approx([0.25, math.nan], nan_ok=True)


def test_codes_are_of_categories_in_order_and_a_missing_one_is_below_0():
    codes, names = codes_of(pd.Series(["b", None, "a"], dtype="category"))
    assert (codes.tolist(), names) == ([1, -1, 0], ["a", "b"])
    codes, names = sorted_codes(pd.Series(["b", "a", "b"]).astype("category"))
    assert (codes.tolist(), names.tolist()) == ([1, 0, 1], ["a", "b"])


def test_cells_are_the_combinations_that_occur():
    table = pd.DataFrame({"model": ["b", "a", "b"], "evaluation": ["x", "x", "x"]})
    cells, keys = cells_of(table, ["model", "evaluation"])
    assert (cells.tolist(), keys["model"].tolist()) == ([1, 0, 1], ["a", "b"])


def test_more_than_half_of_the_votes_are_the_majority():
    label, share = majority.most([2, 1, 0, 0], [3, 2, 2, 0])
    assert label.tolist() == pytest.approx([1.0, math.nan, 0.0, math.nan], nan_ok=True)
    assert share.round(2).tolist() == pytest.approx([0.67, math.nan, 1.0, math.nan], nan_ok=True)


def test_a_jury_is_named_by_how_many_it_is_and_says_what_it_decided():
    assert majority.jury_names(["Magpie", "Wren", "Rook"]) == ("majority of 3 judges", "mean of 3 judges")
    jury = majority.Decisions(n_judges=2, n_items=10, n_decided=7, n_unanimous=7, n_tied=2, n_open=1)
    assert majority.words(jury) == (
        "Of 10 criteria that any of the 2 judges labelled, 7 have a majority (7 unanimous), 2 are tied, and 1 has too few labels."
    )


def test_strictness_adds_what_physicians_are_further_apart_than_alike_ones():
    assert with_strictness(1.0, 100, (3.0, 2), 1.0) == (3.0, 2.0)
    assert with_strictness(1.0, 100, (0.5, 2), 1.0)[0] == 1.0


def test_readers_with_unequal_loads_count_as_fewer():
    assert round(effective_readers(np.array([12, 1, 1, 1, 1])), 1) == 1.7
    assert effective_readers(np.array([5, 5, 5])) == 3.0


def test_degrees_of_freedom_of_a_sum():
    assert (freedom_of_sum(1.0, 3, 0.0, 99), freedom_of_sum(1.0, 10, 1.0, 10)) == (3.0, 20.0)
