"""The hardest examples of one's own models."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evalcore.metrics.hard_subset import hard_subset

many = settings(max_examples=80, deadline=None)
score = st.one_of(st.integers(-4, 4).map(lambda number: number / 4), st.just(math.nan))
tables = arrays.arrays(float, st.tuples(st.integers(1, 10), st.integers(1, 3)), elements=score)


def framed(values):
    values = np.asarray(values, dtype=float)
    index = pd.Index(np.arange(1, len(values) + 1), name="example_id")
    return pd.DataFrame(values, index=index, columns=list("ABC")[: values.shape[1]])


@many
@given(tables, st.integers(1, 12))
def test_it_is_the_hardest_of_those_that_some_model_is_above_nought_on(values, n):
    found = hard_subset(framed(values), n)
    means = {number: np.nanmean(row) for number, row in enumerate(values, start=1) if (row > 0).any()}
    expected = sorted(means, key=lambda number: (round(means[number], 12), number))[:n]
    assert found.example_ids == expected
    assert found.mean_scores.tolist() == pytest.approx([means[number] for number in expected])


@many
@given(tables, st.integers(1, 12))
def test_every_example_is_chosen_or_counted_with_its_reason(values, n):
    found = hard_subset(framed(values), n)
    assert len(found.example_ids) + found.n_easier + found.n_nobody + found.n_unscored == len(values)
    assert found.n_unscored == np.isnan(values).all(axis=1).sum()
    assert found.n_easier == 0 or len(found.example_ids) == n


@many
@given(tables, st.integers(1, 12), st.randoms(use_true_random=False))
def test_neither_the_order_of_examples_nor_that_of_models_matters(values, n, random):
    scores = framed(values)
    rows, columns = list(scores.index), list(scores.columns)
    random.shuffle(rows)
    random.shuffle(columns)
    assert hard_subset(scores.loc[rows, columns], n).example_ids == hard_subset(scores, n).example_ids


def test_an_example_on_which_no_model_is_above_nought_is_left_out_and_counted():
    found = hard_subset(framed([[0.0, -0.5], [0.25, -1.0], [0.5, 0.5]]), 2)
    assert found.example_ids == [2, 3]
    assert (found.n_nobody, found.n_easier, found.n_unscored) == (1, 0, 0)


def test_without_a_number_it_is_a_fifth_as_in_healthbench():
    assert len(hard_subset(framed(np.linspace(0.1, 1, 50)[:, None])).example_ids) == 10
    assert hard_subset(framed([[0.5], [0.4]])).example_ids == [2]


@pytest.mark.parametrize("n", [0, -3])
def test_fewer_than_one_example_is_refused(n):
    with pytest.raises(ValueError, match=f"n: {n} came, expected 1 example or more"):
        hard_subset(framed([[0.5]]), n)
