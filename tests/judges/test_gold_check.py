"""Judge-check: measures by hand and by reference, intervals, bounds."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t as student

from evalcore.judges.gold_check import LOW, MEASURES, POINT, failures, gold_check
from evalcore.stats.intervals import share_interval

few = settings(max_examples=15, deadline=None)


def pairs(gold, judged, example=None):
    return pd.DataFrame(
        {
            "gold": [letter == "+" for letter in gold],
            "judged": [letter == "+" for letter in judged],
            "example": example or list(range(len(gold))),
        }
    )


def measures(*table):
    return gold_check(pairs(*table)).set_index("measure")


def test_the_measures_are_those_of_the_table_of_four():
    # TP 3, FN 1, TN 2, FP 2
    found = measures("++++----", "+++---++")
    assert list(found.index) == list(MEASURES)
    assert found["value"].to_dict() == pytest.approx(
        {"f1": (6 / 9 + 4 / 7) / 2, "accuracy": 5 / 8, "sensitivity": 3 / 4, "specificity": 2 / 4}
    )
    assert found["n"].to_dict() == {"f1": 8, "accuracy": 8, "sensitivity": 4, "specificity": 4}


def test_balanced_f1_is_macro_f1():
    # scikit-learn 1.9.1: f1_score([1]*7 + [0]*13, [1,1,1,1,0,0,0] + [1]*3 + [0]*10, average="macro") = 0.6703296703296704
    found = measures("+" * 7 + "-" * 13, "++++---" + "+++" + "-" * 10)
    assert found["value"]["f1"] == pytest.approx(0.6703296703296704, abs=1e-12)


def test_shares_have_the_clustered_interval_and_f1_that_of_a_jackknife():
    gold, judged = "+++---++--", "++-+--+--+"
    example = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    found = gold_check(pairs(gold, judged, example)).set_index("measure")
    right = [g == j for g, j in zip(gold, judged, strict=True)]
    alone = share_interval(right, example)
    assert (found["low"]["accuracy"], found["high"]["accuracy"]) == pytest.approx((alone.low, alone.high))
    kept = [[place for place in range(10) if example[place] != left] for left in range(1, 6)]
    values = np.array(
        [measures([gold[p] for p in places], [judged[p] for p in places])["value"]["f1"] for places in kept]
    )
    half = student.ppf(0.975, 4) * math.sqrt(4 / 5 * ((values - values.mean()) ** 2).sum())
    value = found["value"]["f1"]
    assert found["low"]["f1"] == pytest.approx(max(value - half, 0))
    assert found["high"]["f1"] == pytest.approx(min(value + half, 1))


def test_a_judge_without_an_error_is_not_certain_to_make_none():
    found = measures("++++++----", "++++++----")
    assert found["value"].tolist() == [1] * 4
    assert found["low"]["f1"] == found["low"]["accuracy"] < 0.75  # Wilson 10/10: .7225


@pytest.mark.parametrize(
    ("gold", "undefined", "reason"),
    [
        ("++++", {"f1", "specificity"}, "no gold label is not met"),
        ("----", {"f1", "sensitivity"}, "no gold label is met"),
        ("", set(MEASURES), "no item has both a gold label and the judge's"),
    ],
)
def test_what_the_gold_labels_cannot_tell_is_undefined_and_says_why(gold, undefined, reason):
    found = measures(gold, "+-+-"[: len(gold)])
    assert set(found.index[found["value"].isna()]) == undefined
    assert set(found.loc[list(undefined), "reason"]) == {reason}
    assert set(found.loc[found["value"].notna(), "reason"]) <= {""}


def test_a_class_that_one_example_alone_holds_has_an_f1_without_an_interval():
    found = measures("++++-", "++++-"[:4] + "+")
    assert not math.isnan(found["value"]["f1"])
    assert math.isnan(found["low"]["f1"])


# ---------------------------------------------------------------- bounds


def test_a_bound_is_reached_by_the_measure_or_by_the_lower_end_as_asked():
    table = gold_check(pairs("+" * 50 + "-" * 50, "+" * 40 + "-" * 10 + "-" * 45 + "+" * 5))
    # accuracy .85, Wilson .7672 to .9069; sensitivity .8; specificity .9
    assert failures(table, {"accuracy": 0.85, "sensitivity": 0.8, "specificity": 0.9}) == []
    assert failures(table, {"accuracy": 0.851}) == ["accuracy: expected at least 0.851, got 0.850"]
    assert failures(table, {"accuracy": 0.767}, by=LOW) == []
    assert failures(table, {"accuracy": 0.768}, by=LOW) == ["lower end of accuracy: expected at least 0.768, got 0.767"]


def test_an_undefined_measure_reaches_no_bound():
    table = gold_check(pairs("++++", "+++-"))
    for by in (POINT, LOW):
        said = failures(table, {"specificity": 0.0}, by=by)
        assert len(said) == 1
        assert "is undefined (no gold label is not met)" in said[0]
    one = gold_check(pairs("++++-", "+++++"))
    assert failures(one, {"f1": 0.0}) == []
    assert "is undefined (its interval cannot be computed)" in failures(one, {"f1": 0.0}, by=LOW)[0]


# ---------------------------------------------------------------- properties

drawn = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 6)), min_size=1, max_size=60)


def frame(rows):
    return pd.DataFrame(rows, columns=["gold", "judged", "example"])


@few
@given(rows=drawn, seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(rows, seed):
    table = frame(rows)
    anew = table.sample(frac=1, random_state=seed)
    pd.testing.assert_frame_equal(gold_check(table), gold_check(anew), rtol=1e-9)


@few
@given(rows=drawn)
def test_calling_met_not_met_swaps_sensitivity_and_specificity(rows):
    table = frame(rows)
    told = gold_check(table).set_index("measure")
    turned = gold_check(table.assign(gold=~table["gold"], judged=~table["judged"])).set_index("measure")
    for column in ("value", "low", "high"):
        assert told[column]["f1"] == pytest.approx(turned[column]["f1"], nan_ok=True)
        assert told[column]["accuracy"] == pytest.approx(turned[column]["accuracy"])
        assert told[column]["sensitivity"] == pytest.approx(turned[column]["specificity"], nan_ok=True)


@few
@given(rows=drawn)
def test_every_value_lies_in_its_interval_and_in_zero_to_one(rows):
    found = gold_check(frame(rows)).dropna(subset=["low"])
    assert (found["low"] <= found["value"] + 1e-12).all()
    assert (found["value"] <= found["high"] + 1e-12).all()
    assert found["low"].ge(0).all()
    assert found["high"].le(1).all()


@pytest.mark.slow
def test_the_jackknife_interval_of_f1_covers_the_f1_of_the_process():
    """A judge right on .8 of the items of an example, .95 or .65 by example; half of the labels met: F1 of the process is .8."""
    rng = np.random.default_rng(7)
    n_runs, covered = 600, 0
    for _ in range(n_runs):
        example = np.repeat(np.arange(60), 6)
        gold = rng.random(len(example)) < 0.5
        accuracy = np.repeat(rng.choice([0.95, 0.65], 60), 6)
        judged = np.where(rng.random(len(example)) < accuracy, gold, ~gold)
        found = gold_check(pd.DataFrame({"gold": gold, "judged": judged, "example": example})).iloc[0]
        covered += found["low"] <= 0.8 <= found["high"]
    assert covered / n_runs == pytest.approx(0.95, abs=0.03)
