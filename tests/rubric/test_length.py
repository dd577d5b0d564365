"""Score against length: the slope against statsmodels, the bins against a plain count."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.regression.linear_model as linear
from hypothesis import given, strategies as st

from evalcore.rubric.judge_only import length_bins, length_slopes

score = st.one_of(st.integers(-4, 4).map(lambda number: number / 4), st.just(math.nan))
length = st.one_of(st.integers(1, 12).map(lambda number: 100.0 * number), st.just(math.nan))
row = st.tuples(st.sampled_from("AB"), st.integers(1, 5), length, score)
rows = st.lists(row, max_size=30)


def framed(found):
    table = pd.DataFrame(found, columns=["model", "example_id", "n_chars", "score"])
    return table.astype({"n_chars": float, "score": float}).assign(evaluation="invented")


def drawn(rng, n_examples=40, slope=0.1):
    """Two responses to each example, whose scores share its difficulty."""
    examples = np.repeat(np.arange(n_examples), 2)
    chars = rng.integers(200, 3_000, len(examples)).astype(float)
    scores = 0.3 + slope * chars / 1_000 + rng.normal(0, 0.2, n_examples)[examples] + rng.normal(0, 0.1, len(examples))
    return pd.DataFrame(
        {"model": "A", "example_id": examples, "n_chars": chars, "score": scores, "evaluation": "invented"}
    )


@given(st.integers(0, 2**32), st.integers(3, 30))
def test_slope_and_interval_are_those_of_statsmodels_with_clusters(number, n_examples):
    responses = drawn(np.random.default_rng(number), n_examples)
    x = np.column_stack([np.ones(len(responses)), responses["n_chars"] / 1_000])
    # statsmodels 0.14: OLS(...).fit(cov_type="cluster", cov_kwds={"groups": ...}, use_t=True)
    fitted = linear.OLS(responses["score"].to_numpy(), x).fit(
        cov_type="cluster", cov_kwds={"groups": responses["example_id"].to_numpy()}, use_t=True
    )
    (found,) = length_slopes(responses).to_dict(orient="records")
    assert found["slope"] == pytest.approx(fitted.params[1])
    assert (found["slope_low"], found["slope_high"]) == pytest.approx(tuple(fitted.conf_int()[1]))
    assert found["correlation"] == pytest.approx(np.corrcoef(responses["n_chars"], responses["score"])[0, 1])
    assert (found["n_examples"], found["n_responses"], found["n_left_out"]) == (n_examples, 2 * n_examples, 0)
    assert (found["mean_chars"], found["raw_mean"]) == pytest.approx(
        (responses["n_chars"].mean(), responses["score"].mean())
    )


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_responses_does_not_matter(found, random):
    mixed = found[:]
    random.shuffle(mixed)
    for compute in (length_slopes, length_bins):
        pd.testing.assert_frame_equal(compute(framed(mixed)), compute(framed(found)), rtol=1e-6, atol=1e-9)


@given(rows)
def test_every_response_is_counted_or_left_out(found):
    table = framed(found)
    slopes = length_slopes(table).set_index("model")
    known = table.dropna()
    for model, mine in table.groupby("model"):
        assert slopes.loc[model, "n_responses"] == known["model"].eq(model).sum()
        assert slopes.loc[model, "n_left_out"] == len(mine) - slopes.loc[model, "n_responses"]
        assert slopes["correlation"].dropna().between(-1, 1).all()
    bins = length_bins(table)
    assert bins["n_responses"].sum() == len(known)


@given(rows, st.integers(1, 6))
def test_each_bin_has_the_mean_of_the_responses_between_its_ends(found, n_bins):
    known = framed(found).dropna()
    bins = length_bins(framed(found), n_bins=n_bins)
    ends = bins.drop_duplicates("bin").sort_values("bin")
    assert len(ends) <= n_bins
    assert ends["from_chars"].le(ends["to_chars"]).all()
    assert (ends["to_chars"].to_numpy()[:-1] < ends["from_chars"].to_numpy()[1:]).all()  # equal lengths are never apart
    for each in bins.to_dict(orient="records"):
        mine = known.loc[
            known["model"].eq(each["model"]) & known["n_chars"].between(each["from_chars"], each["to_chars"])
        ]
        assert each["n_responses"] == len(mine)
        assert each["n_examples"] == mine["example_id"].nunique()
        assert each["raw_mean"] == pytest.approx(mine["score"].mean())
        assert each["mean_chars"] == pytest.approx(mine["n_chars"].mean())
        assert each["score"] == pytest.approx(np.clip(mine["score"].mean(), 0, 1))


def test_bins_hold_about_as_many_responses_each():
    responses = drawn(np.random.default_rng(1), 200).assign(
        n_chars=np.random.default_rng(2).permutation(400.0 + np.arange(400))
    )
    bins = length_bins(responses)
    assert bins["bin"].tolist() == [1, 2, 3, 4, 5]
    assert bins["n_responses"].between(79, 81).all()


def test_a_score_that_rises_by_a_tenth_in_a_thousand_characters_has_that_slope_exactly():
    table = framed([("A", n, 500.0 * n, 0.05 * n) for n in range(1, 6)])
    (found,) = length_slopes(table).to_dict(orient="records")
    assert found["slope"] == pytest.approx(0.1)
    assert found["correlation"] == pytest.approx(1)
    assert math.isnan(found["slope_low"])  # the line fits exactly: nothing is seen of how it might vary


def test_where_all_are_as_long_there_is_no_slope():
    (found,) = length_slopes(framed([("A", n, 500.0, n / 10) for n in range(5)])).to_dict(orient="records")
    assert all(math.isnan(found[name]) for name in ("slope", "slope_low", "slope_high", "correlation"))
    assert found["raw_mean"] == pytest.approx(0.2)


def test_two_examples_give_a_slope_and_no_interval():
    (found,) = length_slopes(framed([("A", n % 2, 100.0 * n, (n * 7 % 5) / 10) for n in range(6)])).to_dict(
        orient="records"
    )
    assert not math.isnan(found["slope"])
    assert math.isnan(found["slope_low"])


def test_models_share_the_ends_of_bins():
    one = drawn(np.random.default_rng(1))
    both = pd.concat([one, one.assign(model="B", n_chars=one["n_chars"] + 500)], ignore_index=True)
    bins = length_bins(both)
    assert bins.groupby("bin")[["from_chars", "to_chars"]].nunique().eq(1).all(axis=None)


@pytest.mark.slow
def test_the_interval_of_the_slope_covers_the_true_one():
    rng, n_draws = np.random.default_rng(20261120), 1_500
    held = 0
    for _ in range(n_draws):
        (found,) = length_slopes(drawn(rng, 50, slope=0.1)).to_dict(orient="records")
        held += found["slope_low"] <= 0.1 <= found["slope_high"]
    assert 0.925 <= held / n_draws <= 0.965
