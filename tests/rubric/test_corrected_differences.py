"""Differences of corrected scores: paired by example, the same either way round, and on what both models have answered."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.multitest import multipletests

from evalcore.rubric import corrected
from evalcore.rubric.corrected import rank_intervals
from evalcore.rubric.data import RubricData
from evalcore.study.schema import Claim, Physicians
from tests.population import corrected_differences, corrected_scores, drawn, example_terms

some = settings(max_examples=4, deadline=None)
READERS = ("Dr. A", "Dr. B", "Dr. C", "Dr. D")


def study(seed=1, **how):
    plain = {"n_examples": 100, "share_read": 0.4, "models": {"Alder": 0.0, "Birch": 0.5}, "readers": READERS}
    return drawn(np.random.default_rng(seed), **(plain | how))


def one(rubric_data, **how):
    (row,) = corrected_differences(rubric_data, **how).to_dict(orient="records")
    return row


def renamed(rubric_data, names):
    return replace(
        rubric_data, items=rubric_data.items.assign(model=rubric_data.items["model"].cat.rename_categories(names))
    )


def test_a_difference_is_that_of_the_scores_and_its_error_that_of_the_paired_examples():
    rubric_data, _ = study()
    scores = corrected_scores(rubric_data).set_index("model")["corrected"]
    psi = example_terms(rubric_data).pivot(index="example_id", columns="model", values="psi_corrected")
    apart = psi["Alder"] - psi["Birch"]
    row = one(rubric_data)
    assert (row["model_1"], row["model_2"], row["n_examples"]) == ("Alder", "Birch", 100)
    assert row["difference"] == pytest.approx(scores["Alder"] - scores["Birch"])
    assert row["se"] == pytest.approx(apart.std(ddof=1) / 10)
    # t(99): .975 quantile 1.984217 (scipy 1.17, scipy.stats.t.ppf(.975, 99)); 300 reads and more, so k - p is larger
    assert row["high"] - row["difference"] == pytest.approx(1.984217 * row["se"], rel=1e-6)


@given(st.integers(0, 50), st.sampled_from(Physicians))
@some
def test_models_that_change_places_change_the_sign(seed, physicians):
    rubric_data, _ = study(seed, n_repeats=2, n_examples=40)
    row = one(rubric_data, physicians=physicians)
    other = one(renamed(rubric_data, {"Alder": "Birch", "Birch": "Alder"}), physicians=physicians)
    assert other["difference"] == pytest.approx(-row["difference"])
    assert (other["low"], other["high"]) == pytest.approx((-row["high"], -row["low"]))
    assert (other["se"], other["p"]) == pytest.approx((row["se"], row["p"]))


def test_a_model_and_its_copy_do_not_differ():
    rubric_data, _ = study(models=("Alder",))
    copy = rubric_data.items.assign(
        model="Copy", response_id=rubric_data.items["response_id"] + 1000, item_id=rubric_data.items["item_id"] + 10**9
    )
    items = pd.concat([rubric_data.items.astype({"model": str}), copy], ignore_index=True).astype({"model": "category"})
    n = len(rubric_data.items)
    reads = pd.concat(
        [rubric_data.reads, rubric_data.reads.assign(row=rubric_data.reads["row"] + n)], ignore_index=True
    )
    twice = RubricData(items, pd.concat([rubric_data.judged] * 2, ignore_index=True), reads)
    for physicians in Physicians:
        row = one(twice, physicians=physicians)
        assert row["difference"] == pytest.approx(0, abs=1e-12)
        assert row["se"] == pytest.approx(0, abs=1e-9)


def test_only_examples_that_both_have_answered_count():
    rubric_data, _ = study()
    is_birch, example = rubric_data.items["model"].eq("Birch"), rubric_data.items["example_id"]
    part = rubric_data.where(~is_birch | example.le(60))
    row = one(part)
    assert row["n_examples"] == 60
    # Alder is corrected by all of its reads, and its score is then that on the 60: its examples' own corrected scores, averaged.
    psi = example_terms(part).pivot(index="example_id", columns="model", values="psi_corrected").loc[:60]
    assert row["difference"] == pytest.approx((psi["Alder"] - psi["Birch"]).mean())
    none = rubric_data.where(np.where(is_birch, example.le(50), example.gt(50)))
    assert one(none)["n_examples"] == 0
    assert np.isnan([one(none)[name] for name in ("difference", "low", "high", "se", "p", "p_holm")]).all()


def test_where_too_little_was_read_of_a_model_there_is_no_difference():
    rubric_data, _ = study(models=("Alder", "Birch", "Cedar"))
    of_cedar = rubric_data.items["model"].eq("Cedar").to_numpy()
    reads = rubric_data.reads.loc[~of_cedar[rubric_data.reads["row"]]].reset_index(drop=True)
    found = corrected_differences(replace(rubric_data, reads=reads)).set_index(["model_1", "model_2"])
    assert found["p"].notna().tolist() == [True, False, False]
    # Holm's over one pair is the p itself
    assert found.loc[("Alder", "Birch"), "p_holm"] == found.loc[("Alder", "Birch"), "p"]


def test_p_values_are_adjusted_over_the_pairs_of_an_evaluation():
    rubric_data, _ = study(models=("Alder", "Birch", "Cedar"))
    found = corrected_differences(rubric_data)
    assert found["p_holm"].tolist() == pytest.approx(multipletests(found["p"], method="holm")[1].tolist())
    other = rubric_data.items.assign(
        evaluation="other", response_id=rubric_data.items["response_id"] + 10_000, example_id=rubric_data.items["example_id"] + 5_000
    )  # fmt: skip
    items = pd.concat([rubric_data.items.astype({"evaluation": str}), other], ignore_index=True)
    reads = pd.concat(
        [rubric_data.reads, rubric_data.reads.assign(row=rubric_data.reads["row"] + len(other))], ignore_index=True
    )
    both = RubricData(
        items.astype({"evaluation": "category", "model": "category"}), pd.concat([rubric_data.judged] * 2, ignore_index=True), reads
    )  # fmt: skip
    again = corrected_differences(both)
    assert again["evaluation"].tolist() == ["invented"] * 3 + ["other"] * 3
    assert again["p_holm"].tolist() == pytest.approx(found["p_holm"].tolist() * 2)


def test_a_physician_who_leans_alike_on_both_models_does_not_set_them_apart():
    # All four lean strongly, each alike on both models: that widens either score for physicians in general, and hardly their difference.
    leanings = {"Dr. A": 0.6, "Dr. B": -0.6, "Dr. C": 0.4, "Dr. D": -0.4}
    rubric_data, _ = study(n_examples=600, leanings=leanings, models=("Alder", "Birch"))
    scores = corrected_scores(rubric_data, physicians=Physicians.IN_GENERAL, claim=Claim.NEW_EXAMPLES)
    apart = one(rubric_data, physicians=Physicians.IN_GENERAL)
    assert apart["se"] < 0.6 * np.sqrt((scores["corrected_se"] ** 2).sum())


def test_four_physicians_who_lean_one_way_on_one_model_and_the_other_on_the_other_leave_three_degrees_of_freedom():
    # t(3) is 3.18 (scipy 1.17, scipy.stats.t.ppf(.975, 3)); loads that are not quite equal make it a little more, the examples a little less
    leanings = {"Dr. A": 0.9, "Dr. B": -0.9, "Dr. C": 0.5, "Dr. D": -0.5}
    rubric_data, _ = study(n_examples=600, leanings=leanings, models=("Alder", "Birch"))
    is_birch = rubric_data.items["model"].eq("Birch").to_numpy()[rubric_data.reads["row"]]
    other = rubric_data.reads["rater"].map({"Dr. A": "Dr. B", "Dr. B": "Dr. A", "Dr. C": "Dr. D", "Dr. D": "Dr. C"})
    turned = replace(
        rubric_data, reads=rubric_data.reads.assign(rater=rubric_data.reads["rater"].where(~is_birch, other))
    )
    row = one(turned, physicians=Physicians.IN_GENERAL)
    assert (row["high"] - row["low"]) / 2 == pytest.approx(3.18 * row["se"], rel=0.05)


def test_where_judges_are_always_right_a_difference_is_widened_as_the_scores_are():
    rubric_data, truth = study()
    right = replace(rubric_data, judged=pd.DataFrame({"Right": truth.astype(np.float32)}))
    psi = example_terms(right).pivot(index="example_id", columns="model", values="psi_corrected")
    scores = corrected_scores(right)  # for this benchmark: V_A is 0, and all is what was not seen
    paired = (psi["Alder"] - psi["Birch"]).var() / 100
    assert one(right)["se"] ** 2 == pytest.approx(paired + (scores["corrected_se"] ** 2).sum())


def test_at_full_read_physicians_who_agree_add_nothing():
    rubric_data, truth = study(share_read=1.0)
    right = replace(rubric_data, judged=pd.DataFrame({"Right": truth.astype(np.float32)}))
    assert one(right, physicians=Physicians.IN_GENERAL)["se"] == pytest.approx(one(right)["se"])


def test_a_study_without_items_has_no_pairs():
    rubric_data, _ = study()
    found = corrected_differences(rubric_data.where(np.zeros(len(rubric_data.items), dtype=bool)))
    assert found.empty
    assert "p_holm" in found.columns


def test_on_a_benchmark_that_one_physician_has_read_whole_differences_are_as_sure_as_the_scores():
    # Both scores are then known to the last digit, and so is their difference; for new examples it is not.
    rubric_data, _ = study(share_read=1.0, readers=("Dr. A",))
    known = {claim: one(rubric_data, claim=claim) for claim in Claim}
    scores = corrected_scores(rubric_data, claim=Claim.BENCHMARK)
    assert scores["corrected_se"].to_numpy() == pytest.approx([0, 0], abs=1e-12)
    assert known[Claim.BENCHMARK]["se"] == pytest.approx(0, abs=1e-12)
    assert known[Claim.NEW_EXAMPLES]["se"] > 0.01


def test_what_rounding_leaves_of_a_difference_that_is_known_without_error_is_no_difference():
    # 0.1 + 0.2 - 0.3 is 5.6e-17: p was 0 where everything was read and both scores are the same
    assert corrected._p(0.1 + 0.2 - 0.3, 0.0, 20) == 1
    assert corrected._p(0.01, 0.0, 20) == 0


def test_two_models_read_apart_differ_on_this_benchmark_by_both_their_errors():
    rubric_data, _ = study(n_examples=400, share_read=0.2)
    scores = corrected_scores(rubric_data, claim=Claim.BENCHMARK)
    row = one(rubric_data, claim=Claim.BENCHMARK)
    # by example, not by item: criteria of one example err apart, so that it is the same on average
    assert row["se"] == pytest.approx(np.sqrt((scores["corrected_se"] ** 2).sum()), rel=0.1)
    assert row["df"] > 100


def test_all_pairs_hold_at_once_by_bonferroni():
    rubric_data, _ = study(models=("Alder", "Birch", "Cedar"))
    found = corrected_differences(rubric_data)
    # t(99) at 1 - .05/6: 2.436 (scipy 1.17, scipy.stats.t.ppf(1 - .05/6, 99))
    assert ((found["sim_high"] - found["sim_low"]) / 2 / found["se"]).tolist() == pytest.approx([2.436] * 3, abs=1e-3)
    alone = one(study()[0])
    assert (alone["sim_low"], alone["sim_high"]) == (alone["low"], alone["high"])


def pairs(*rows):
    """Models by letter, with the simultaneous bounds of the first less the second."""
    table = pd.DataFrame(rows, columns=["model_1", "model_2", "sim_low", "sim_high"])
    return table.assign(evaluation="invented", difference=(table["sim_low"] + table["sim_high"]) / 2)


def test_a_model_may_have_every_rank_that_no_surely_better_or_worse_model_takes():
    # A beats C; B is told from neither.
    found = rank_intervals(pairs(("A", "B", -0.1, 0.3), ("A", "C", 0.1, 0.5), ("B", "C", -0.1, 0.4)))
    assert found[["model", "rank_low", "rank_high"]].to_numpy().tolist() == [["A", 1, 2], ["B", 1, 3], ["C", 2, 3]]
    assert found["n_models"].tolist() == [3, 3, 3]


def test_a_model_of_which_nothing_is_known_has_no_rank_and_takes_none():
    found = rank_intervals(pairs(("A", "B", 0.1, 0.3), ("A", "C", np.nan, np.nan), ("B", "C", np.nan, np.nan)))
    assert found[["rank_low", "rank_high"]].iloc[:2].to_numpy().tolist() == [[1, 1], [2, 2]]
    assert found.iloc[2][["rank_low", "rank_high"]].isna().all()
    assert rank_intervals(corrected_differences(study(models=("Alder",))[0])).empty


@given(st.integers(0, 30))
@some
def test_ranks_hold_the_order_of_the_scores(seed):
    rubric_data, _ = study(seed, n_examples=40, models={"Alder": 0.0, "Birch": 0.5, "Cedar": 1.5})
    scores = corrected_scores(rubric_data).set_index("model")["corrected"]
    ranks = rank_intervals(corrected_differences(rubric_data)).set_index("model")
    place = scores.rank(ascending=False)
    assert ranks["rank_low"].le(place).all()
    assert ranks["rank_high"].ge(place).all()


def test_only_examples_of_both_count_and_are_as_sure_as_if_there_were_no_others():
    rubric_data, _ = study(n_examples=100, share_read=0.4)
    half = rubric_data.items["example_id"].le(50).to_numpy()
    part = rubric_data.items["model"].eq("Alder").to_numpy() | half
    for claim, physicians in product(Claim, Physicians):
        row = one(rubric_data.where(part), claim=claim, physicians=physicians)
        alone = one(rubric_data.where(half), claim=claim, physicians=physicians)
        assert row["n_examples"] == alone["n_examples"] == 50
        # Alder's reads of the other examples still say how far the judge is to be trusted
        assert row["se"] == pytest.approx(alone["se"], rel=0.15)
