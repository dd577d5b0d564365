"""Worst-at-k against the minimum over every subset, one by one."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.rubric.judge_only import worst_at_k
from evalcore.rubric.scores import response_scores
from tests import population

many = settings(max_examples=12, deadline=None)
score = st.one_of(st.integers(-8, 4).map(lambda number: number / 4), st.just(math.nan))
repeats = st.dictionaries(
    st.tuples(st.sampled_from("AB"), st.integers(1, 4)), st.lists(score, min_size=1, max_size=6), max_size=6
)


def framed(scores):
    """Responses of (model, example) to its scores."""
    rows = [(model, "invented", number, value) for (model, number), values in scores.items() for value in values]
    return pd.DataFrame(rows, columns=["model", "evaluation", "example_id", "score"]).astype({"score": float})


def by_hand(scores, model, k):
    """Mean minimum over all subsets of k, by example with at least k scores."""
    known = [
        [value for value in values if not math.isnan(value)] for (name, _), values in scores.items() if name == model
    ]
    return [
        np.mean([min(subset) for subset in itertools.combinations(values, k)]) for values in known if len(values) >= k
    ]


@many
@given(repeats, st.randoms(use_true_random=False))
def test_it_is_the_mean_of_the_lowest_of_every_subset(scores, random):
    rows = list(framed(scores).itertuples(index=False))
    random.shuffle(rows)
    found = worst_at_k(pd.DataFrame(rows, columns=framed(scores).columns))
    models = sorted({model for model, _ in scores})
    expected = [
        (model, k, by_hand(scores, model, k)) for model in models for k in range(1, 7) if by_hand(scores, model, k)
    ]
    assert list(zip(found["model"], found["k"], strict=True)) == [(model, k) for model, k, _ in expected]
    for row, (model, _, values) in zip(found.to_dict(orient="records"), expected, strict=True):
        assert row["raw_mean"] == pytest.approx(np.mean(values), abs=1e-12)
        assert row["score"] == pytest.approx(np.clip(np.mean(values), 0, 1), abs=1e-12)
        assert row["n_examples"] == len(values)
        assert row["n_left_out"] == sum(name == model for name, _ in scores) - len(values)


@many
@given(repeats)
def test_with_as_many_responses_everywhere_it_never_rises(scores):
    found = worst_at_k(framed({key: (values * 6)[:6] for key, values in scores.items()}).dropna())
    for _, curve in found.groupby("model"):
        whole = curve.loc[curve["n_left_out"].eq(0)]
        assert whole["raw_mean"].diff().dropna().le(1e-12).all()


def test_the_curve_of_three_responses_by_hand():
    # 0.2, 0.4, 0.9: mean .5; lowest of pairs .2, .2, .4; lowest of all .2
    found = worst_at_k(framed({("A", 1): [0.4, 0.9, 0.2]}))
    assert found["raw_mean"].tolist() == pytest.approx([0.5, 0.8 / 3, 0.2])
    assert found["low"].isna().all()  # one example


def test_only_the_mean_is_clipped():
    found = worst_at_k(framed({("A", 1): [-2.0, 1.0], ("A", 2): [0.5, 1.0]}))
    assert found["raw_mean"].tolist() == pytest.approx([(-0.5 + 0.75) / 2, (-2 + 0.5) / 2])
    assert found["score"].tolist() == pytest.approx([0.125, 0])
    assert found["low"].ge(0).all()


def test_at_one_it_is_the_mean_score_and_the_interval_is_that_of_examples():
    rubric_data, _ = population.drawn(
        np.random.default_rng(1), n_examples=40, models={"Alder": 0.0, "Birch": 1.0}, n_repeats=4
    )
    responses = response_scores(rubric_data, "Magpie")
    found = worst_at_k(responses).set_index(["model", "k"])
    means = responses.groupby(["model", "example_id"], observed=True)["score"].mean()
    for model in ("Alder", "Birch"):
        row = found.loc[(model, 1)]
        assert row["raw_mean"] == pytest.approx(means[model].mean())
        # t(39) at .975: 2.0226909, R 4.3 qt(.975, 39)
        assert row["raw_high"] - row["raw_mean"] == pytest.approx(2.0226909 * means[model].std() / math.sqrt(40))
        assert found.loc[model]["raw_mean"].is_monotonic_decreasing


def test_without_a_score_there_is_no_curve():
    assert worst_at_k(framed({("A", 1): [math.nan]})).empty
    assert worst_at_k(framed({})).empty
