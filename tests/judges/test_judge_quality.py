"""Balanced F1 of judges and physicians: when it is undefined, what must not change it, and how wide its interval is."""

import json
import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.judges.confusion import f1_scores
from evalcore.judges.quality import CATEGORY, OVERALL, PHYSICIAN, PHYSICIANS, TOGETHER, balanced_f1, judge_pairs
from evalcore.rubric.data import RubricData
from evalcore.rubric.queries import load
from evalcore.study.db import reading
from tests.invented import bring, study as opened
from tests.population import drawn
from tests.quality_rows import many, opinions_of, row_of
from tests.rubric_rows import of_drawing as study, shuffled

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


# ---------------------------------------------------------------- pairs


def test_precision_recall_and_f1_of_both_classes():
    # met: 2 by both, 1 by the judge alone, 1 by the physician alone; neither 3
    table = balanced_f1(
        study("""
            Magpie | dr_a
            +      | +
            +      | +
            +      | -
            -      | +
            -      | -
            -      | -
            -      | -
        """)
    )
    row = row_of(table, "Magpie")
    assert (row["precision_met"], row["recall_met"], row["f1_met"]) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert (row["precision_not_met"], row["recall_not_met"], row["f1_not_met"]) == pytest.approx((3 / 4, 3 / 4, 3 / 4))
    assert row["balanced_f1"] == pytest.approx((2 / 3 + 3 / 4) / 2)
    assert row["undefined"] == ""


@pytest.mark.parametrize(
    ("judge", "physician", "why"),
    [
        ("++++", "++--", "it never says not met"),
        ("----", "++--", "it never says met"),
        ("++--", "++++", "physicians never say not met"),
        ("++--", "----", "physicians never say met"),
        ("++++", "++++", "it never says not met, physicians never say not met"),
    ],
)
def test_a_class_that_one_side_never_says_leaves_it_undefined_with_the_reason(judge, physician, why):
    lines = [f"{mine} | {other}" for mine, other in zip(judge, physician, strict=True)]
    row = row_of(balanced_f1(study("\n".join(["Magpie | dr_a", *lines]))), "Magpie")
    assert math.isnan(row["balanced_f1"])
    assert math.isnan(row["low"])
    assert row["undefined"] == why


def test_a_judge_wrong_on_every_pair_of_both_classes_has_0_which_is_a_value():
    lines = ["Magpie | dr_a", "+ | -", "- | +"]
    row = row_of(balanced_f1(study("\n".join(lines))), "Magpie")
    assert (row["balanced_f1"], row["undefined"]) == (0, "")


def test_categories_are_the_clusters_and_items_without_one_enter_the_pooled_value_alone():
    table = balanced_f1(
        study("""
            cluster | Magpie | dr_a
            hedging | +      | +
            hedging | -      | -
                    | +      | -
        """)
    )
    assert list(table["group"]) == [OVERALL, "hedging"]
    assert row_of(table, "Magpie")["n_pairs"] == 3
    assert row_of(table, "Magpie", "hedging")["balanced_f1"] == 1


# ---------------------------------------------------------------- against scikit-learn


def test_it_is_the_macro_f1_of_scikit_learn_where_all_classes_occur():
    # scikit-learn 1.9.1: f1_score([1]*60 + [0]*40, [1]*40 + [0]*20 + [1]*10 + [0]*30, average="macro") = 0.696969696969697,
    # average=None = [0.66666667, 0.72727273] (0, then 1); with 7 and 3 of 10, [1]*7+[0]*3 and [1]*5+[0]*2+[1]+[0]*2: 0.6703296703296704
    found = f1_scores(np.array([[40.0, 10, 20, 30], [5, 1, 2, 2]]))
    assert found["balanced_f1"].to_list() == pytest.approx([0.696969696969697, 0.6703296703296704], abs=1e-15)
    assert found.loc[0, ["f1_not_met", "f1_met"]].to_list() == pytest.approx([0.66666667, 0.72727273], abs=1e-8)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"The real meta-evaluation rows are not here: {DATA} does not exist.")
def test_the_meta_evaluation_rows_come_out_as_scikit_learn_has_them(sqlite_database_url):
    """Literal numbers: scikit-learn 1.9.1, f1_score(physicians, judge, average="macro") on the pairs of the rows of shared/data/physicians."""
    with opened(sqlite_database_url) as engine:
        for path in (*sorted(DATA.glob("examples/*.jsonl")), *sorted(DATA.glob("physicians/*.jsonl"), reverse=True)):
            bring(engine, path)
        with reading(engine) as session:
            rubric_data = load(session)
    table = balanced_f1(rubric_data)
    pooled = table.loc[table["grouping"].eq(OVERALL)]
    expected = {
        "llama-3.1-70b-instruct-turbo": (124, 0.6696636696636696, 6, 0.5574074074074075),
        "llama-3.1-8b-instruct-turbo": (124, 0.5682392298764252, 6, 0.5503968253968254),
        "llama-3.3-70b-instruct-turbo-free": (124, 0.6482269503546099, 4, 0.5694444444444444),
    }
    for judge, (n_pairs, macro_f1, n_categories, mean) in expected.items():
        row = row_of(pooled, judge)
        assert row["n_pairs"] == n_pairs
        assert row["balanced_f1"] == pytest.approx(macro_f1, abs=1e-12)
        of_category = table.loc[table["rater"].eq(judge) & table["grouping"].eq(CATEGORY), "balanced_f1"].dropna()
        assert (len(of_category), of_category.mean()) == (n_categories, pytest.approx(mean, abs=1e-12))
    together = row_of(pooled, TOGETHER)
    assert (together["n_pairs"], together["balanced_f1"]) == (138, pytest.approx(0.6356550163439778, abs=1e-12))
    physicians = pooled.loc[pooled["rater_kind"].eq(PHYSICIAN)]
    assert (len(physicians), physicians["balanced_f1"].notna().sum()) == (77, 12)
    # and against a count of the files' own pairs, one by one
    rows = [json.loads(line) for line in (DATA / "physicians" / "meta_eval_part.jsonl").read_bytes().splitlines()]
    pairs = [pair for row in rows for pair in permutations(row["binary_labels"], 2)]
    assert list(together[["n_both", "n_rater_only", "n_other_only", "n_neither"]]) == [
        pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))
    ]


# ---------------------------------------------------------------- what must hold


@many
@given(st.integers(0, 10_000))
def test_the_order_of_rows_does_not_matter(seed):
    rubric_data = opinions_of(seed)
    other = shuffled(rubric_data, np.random.default_rng(seed))
    key = ["rater_kind", "rater", "grouping", "group"]
    tables = [balanced_f1(each).sort_values(key, ignore_index=True) for each in (rubric_data, other)]
    pd.testing.assert_frame_equal(*tables, rtol=1e-9)


@many
@given(st.integers(0, 10_000))
def test_met_and_not_met_are_treated_alike(seed):
    rubric_data = opinions_of(seed)
    turned = RubricData(
        rubric_data.items, 1 - rubric_data.judged, rubric_data.reads.assign(met=1 - rubric_data.reads["met"])
    )
    one, other = balanced_f1(rubric_data), balanced_f1(turned)
    for name in ("balanced_f1", "low", "high"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9)
    np.testing.assert_allclose(one["f1_met"], other["f1_not_met"], rtol=1e-12)


@many
@given(st.integers(0, 10_000))
def test_counts_add_up_over_raters_and_the_value_lies_in_its_interval(seed):
    rubric_data = opinions_of(seed)
    table = balanced_f1(rubric_data)
    assert table["n_pairs"].eq(table[["n_both", "n_rater_only", "n_other_only", "n_neither"]].sum(axis=1)).all()
    one_by_one = table.loc[table["rater_kind"].eq(PHYSICIAN)].groupby(["grouping", "group"])["n_pairs"].sum()
    together = table.loc[table["rater_kind"].eq(PHYSICIANS)].set_index(["grouping", "group"])["n_pairs"]
    pd.testing.assert_series_equal(one_by_one.sort_index(), together.sort_index())
    bounded = table.loc[table["low"].notna()]
    assert not bounded.empty
    assert (bounded["low"] <= bounded["balanced_f1"]).all()
    assert (bounded["balanced_f1"] <= bounded["high"]).all()
    assert bounded["low"].ge(0).all()
    assert bounded["high"].le(1).all()
    assert table["balanced_f1"].isna().eq(table["undefined"].ne("")).all()


def test_a_judge_of_coin_flips_reaches_about_a_half_where_half_is_met():
    rubric_data, _ = drawn(
        np.random.default_rng(1), n_examples=800, judges={"coin": 0.5}, share_read=1.0, readers=("dr_a",), spread=0.0
    )
    row = row_of(balanced_f1(rubric_data), "coin")
    # half is met: precision and recall of both classes are 1/2, and so is every F1; 5,900 pairs: standard error .007
    assert row["balanced_f1"] == pytest.approx(0.5, abs=0.02)
    assert row["low"] < 0.5 < row["high"]


def test_a_judge_that_says_what_all_physicians_say_has_1_and_no_interval_since_nothing_varies():
    rubric_data, _ = drawn(np.random.default_rng(2), judges={"same": 1.0})
    row = row_of(balanced_f1(rubric_data), "same")
    assert row["balanced_f1"] == 1
    assert math.isnan(row["low"])


# ---------------------------------------------------------------- intervals


def test_the_interval_is_that_of_leaving_out_one_example_at_a_time():
    rubric_data = opinions_of(5)
    row = row_of(balanced_f1(rubric_data), "Magpie")
    paired = judge_pairs(rubric_data, jury=False).query("rater == 'Magpie'")["row"]
    examples = rubric_data.items.loc[paired, "example_id"].unique()
    without = [
        row_of(balanced_f1(rubric_data.without(frozenset([example]))), "Magpie")["balanced_f1"] for example in examples
    ]
    n_examples = row["n_examples"]
    assert n_examples == len(examples)
    deviation = np.array(without) - np.mean(without)
    standard_error = math.sqrt((n_examples - 1) / n_examples * (deviation**2).sum())
    t = 2.2281388519862735  # scipy 1.17.1: scipy.stats.t.ppf(.975, 10)
    assert n_examples == 11
    assert (row["low"], row["high"]) == pytest.approx(
        (row["balanced_f1"] - t * standard_error, row["balanced_f1"] + t * standard_error), rel=1e-9
    )


def test_there_is_no_interval_where_one_example_alone_holds_a_class():
    table = balanced_f1(
        study("""
            example | Magpie | dr_a
            1       | -      | -
            2       | +      | +
            3       | +      | +
            4       | +      | +
        """)
    )
    row = row_of(table, "Magpie")
    assert row["balanced_f1"] == 1
    assert math.isnan(row["low"])


@pytest.mark.slow
@pytest.mark.parametrize("n_examples", [50, 150])
def test_the_interval_covers_the_value_of_the_population(n_examples):
    """Of 1,000 drawn studies; 95 % +- 4 standard errors would be 92 % to 98 %."""
    rng = np.random.default_rng(11)
    told = {"judges": {"Magpie": 0.8}, "n_readers": 2, "reader_accuracy": 0.9, "share_read": 0.5, "spread": 1.5}
    whole, _ = drawn(rng, n_examples=40_000, **told)
    truth = row_of(balanced_f1(whole), "Magpie")["balanced_f1"]
    covered = 0
    for _ in range(1000):
        rubric_data, _ = drawn(rng, n_examples=n_examples, **told)
        row = row_of(balanced_f1(rubric_data), "Magpie")
        covered += row["low"] <= truth <= row["high"]
    assert 920 <= covered <= 970


# ---------------------------------------------------------------- where a judge stands
