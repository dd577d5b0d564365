"""The length-adjusted score of HealthBench: its formula, its penalties, what stays undefined, and what it makes of corrected scores and their intervals."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import t as students

from evalcore.rubric import finding
from evalcore.rubric.corrected import corrected_scores, estimates_of, estimator_inputs
from evalcore.rubric.length_adjusted import length_adjusted, penalty_of, with_length_adjusted
from evalcore.rubric.results import results
from evalcore.rubric.scores import mean_scores, response_scores
from evalcore.study.analysis import Analysis
from evalcore.study.schema import Claim, Physicians
from tests.population import drawn

PENALTIES = {"healthbench": 0.0299, "healthbench_hard": 0.0392, "healthbench_consensus": 0.0020, "healthbench_professional": 0.0147}  # fmt: skip
some = settings(max_examples=15, deadline=None)
responses_drawn = st.lists(
    st.tuples(st.floats(-3, 1), st.integers(1, 20_000)), min_size=1, max_size=20
)  # scores with lengths


@pytest.mark.parametrize(("evaluation", "penalty"), PENALTIES.items())
def test_each_part_of_the_benchmark_has_its_own_penalty(evaluation, penalty):
    """2,500 characters are one step of 500 beyond 2,000, so the whole penalty; 1,000 are two steps short, so twice the penalty is won."""
    assert penalty_of(evaluation) == penalty
    found = length_adjusted([0.8, 0.8, 0.8, -0.5], [2_500, 2_000, 1_000, 4_000], penalty)
    assert found == pytest.approx([0.8 - penalty, 0.8, 0.8 + 2 * penalty, -0.5 - 4 * penalty])


def test_a_part_that_is_chosen_by_its_subset_has_the_penalty_of_that_part():
    assert penalty_of("healthbench", "hard") == penalty_of("healthbench_hard")
    assert penalty_of("healthbench", "oss_eval") == penalty_of("healthbench_oss_eval") == penalty_of("healthbench")


@pytest.mark.parametrize("other", ["invented", "healthbenchmark", "my_healthbench", "healthbench_mine", "", None])
def test_of_another_data_set_there_is_none(other):
    assert math.isnan(penalty_of(other))
    assert np.isnan(length_adjusted([0.5], [2_000], penalty_of(other))).all()


@pytest.mark.parametrize(("score", "n_chars"), [(math.nan, 2_000), (0.5, math.nan), (0.5, 0)])
def test_without_a_score_or_a_known_text_it_is_undefined_and_not_0(score, n_chars):
    assert np.isnan(length_adjusted([score], [n_chars], 0.0147)).all()


def scored(rows, evaluation="healthbench_professional", group="overall"):
    """What `scores_of_verdicts` gives, with the lengths of the responses: one response an example."""
    table = pd.DataFrame(rows, columns=["score", "n_chars"]).assign(
        model="A", judge="J", dataset=evaluation, group=group
    )
    table = table.assign(response_id=range(len(table)), example_id=range(len(table)))
    return with_length_adjusted(table.drop(columns="n_chars"), table.set_index("response_id")["n_chars"])


def mean(rows, **how):
    (row,) = mean_scores(scored(rows, **how)).to_dict(orient="records")
    return row


def test_only_the_mean_is_clipped():
    # 1 + 2 (.0147) = 1.0294 and 0 - 4 (.0147) = -.0588: their mean is .4853, while clipped one by one they would give .5
    row = mean([(1.0, 1_000), (0.0, 4_000)])
    assert row["raw_length_adjusted"] == row["length_adjusted"] == pytest.approx(0.4853)
    assert mean([(1.0, 500)])["raw_length_adjusted"] == pytest.approx(1.0441)
    assert mean([(1.0, 500)])["length_adjusted"] == 1
    assert mean([(-0.2, 500)])["length_adjusted"] == 0


@some
@given(responses_drawn)
def test_it_is_at_most_the_plain_score_where_no_response_is_short_and_the_same_at_2000(rows):
    longer = mean([(score, max(n_chars, 2_000)) for score, n_chars in rows])
    same = mean([(score, 2_000) for score, _ in rows])
    assert longer["raw_length_adjusted"] <= longer["raw_mean"] + 1e-9
    assert same["raw_length_adjusted"] == pytest.approx(same["raw_mean"])
    assert same["length_adjusted"] == pytest.approx(same["score"])


@some
@given(responses_drawn, st.randoms(use_true_random=False))
def test_the_order_of_responses_does_not_matter_and_the_mean_lies_in_0_to_1(rows, random):
    shuffled = random.sample(rows, len(rows))
    one, other = mean(rows), mean(shuffled)
    assert one["raw_length_adjusted"] == pytest.approx(other["raw_length_adjusted"])
    assert 0 <= one["length_adjusted"] <= 1


@pytest.mark.parametrize("group", ["axis:accuracy", "level:cluster", "cluster:x"])
def test_groups_of_criteria_have_none_and_groups_of_examples_have_it(group):
    assert scored([(0.5, 2_500)], group=group)["length_adjusted"].isna().all()
    for of_examples in ("theme:hedging", "physician_agreed_category:x"):
        assert scored([(0.5, 2_500)], group=of_examples)["length_adjusted"].tolist() == [pytest.approx(0.4853)]


def test_one_scored_response_of_unknown_length_leaves_the_mean_undefined_and_one_without_a_score_does_not():
    assert math.isnan(mean([(0.5, 2_500), (0.6, 0)])["length_adjusted"])
    assert mean([(0.5, 2_500), (math.nan, 0)])["length_adjusted"] == pytest.approx(0.4853)


# ---------------------------------------------------------------- corrected scores


def study(seed=3, *, penalty=0.0392, **how):
    """Inputs of one model whose responses' lengths go with nothing; and its responses as one judge scores them."""
    rubric_data, truth = drawn(np.random.default_rng(seed), **({"n_examples": 60, "share_read": 0.5} | how))
    ids = rubric_data.items["response_id"].to_numpy()
    lengths = np.random.default_rng(seed).integers(300, 6_000, ids.max() + 1)
    rubric_data = type(rubric_data)(
        rubric_data.items.assign(n_chars=lengths[ids], evaluation="healthbench_hard"), rubric_data.judged, rubric_data.reads
    )  # fmt: skip
    return rubric_data, truth, estimator_inputs(rubric_data, penalty=penalty)


def row_of(inputs, claim=Claim.BENCHMARK, physicians=Physicians.THESE):
    return corrected_scores(inputs, claim=claim, physicians=physicians).to_dict(orient="records")[0]


def test_on_this_benchmark_it_is_the_score_less_the_mean_loss_and_its_interval_as_wide():
    rubric_data, _, inputs = study()
    responses, row = response_scores(rubric_data, "Magpie"), row_of(inputs)
    loss = 0.0392 * (responses["n_chars"].mean() - 2_000) / 500
    assert row["length_loss"] == pytest.approx(loss)
    for kind in ("judge_only", "corrected"):
        for end in ("", "_low", "_high"):
            assert row[f"{kind}_adjusted{end}"] == pytest.approx(row[f"{kind}{end}"] - loss)


def test_for_new_examples_the_interval_is_that_of_the_adjusted_example_scores():
    """Where a judge, or physicians, have labelled everything, it is the t interval over the examples' adjusted scores."""
    rubric_data, _, inputs = study(share_read=1.0, judges={"Magpie": 0.8})
    row = row_of(inputs, Claim.NEW_EXAMPLES)
    responses = response_scores(rubric_data, "Magpie")
    adjusted = length_adjusted(responses["score"], responses["n_chars"], 0.0392)
    half = students.ppf(0.975, len(adjusted) - 1) * adjusted.std(ddof=1) / math.sqrt(len(adjusted))
    assert row["judge_only_adjusted"] == pytest.approx(adjusted.mean())
    assert row["judge_only_adjusted_high"] == pytest.approx(adjusted.mean() + half)
    assert row["judge_only_adjusted_low"] == pytest.approx(adjusted.mean() - half)
    read = rubric_data.reads.set_index("row")["met"].reindex(rubric_data.items.index)
    by_physicians = type(rubric_data)(rubric_data.items, read.to_frame("all"), rubric_data.reads)
    responses = response_scores(by_physicians, "all")
    adjusted = length_adjusted(responses["score"], responses["n_chars"], 0.0392)
    assert row["corrected_adjusted"] == pytest.approx(adjusted.mean())
    # both variances allow for votes that were not seen, alike: what differs is that over examples
    corrected = estimates_of(inputs[0], claim=Claim.NEW_EXAMPLES).of_kind["corrected"]
    (*_, (plain, freedom)), (*_, (variance, same_freedom)) = corrected.widths, corrected.adjusted
    losses = responses["score"] - adjusted  # one response an example
    apart = ((corrected.psi - losses).var(ddof=1) - corrected.psi.var(ddof=1)) / len(adjusted)
    assert corrected.psi == pytest.approx(
        responses["score"].to_numpy(), abs=0.05
    )  # but for how far a fit is pulled by each read
    assert variance - plain == pytest.approx(apart)
    assert freedom == same_freedom
    half = students.ppf(0.975, freedom) * math.sqrt(variance)
    assert row["corrected_adjusted_high"] == pytest.approx(adjusted.mean() + half)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_where_all_responses_have_2000_characters_it_is_the_score_with_its_interval_for_every_claim(seed):
    rubric_data, _, _ = study(seed, readers=("A", "B", "C", "D"))
    same = type(rubric_data)(rubric_data.items.assign(n_chars=2_000), rubric_data.judged, rubric_data.reads)
    inputs = estimator_inputs(same, penalty=0.0392)
    for claim in Claim:
        for physicians in Physicians:
            row = row_of(inputs, claim, physicians)
            for kind in ("judge_only", "corrected"):
                for end in ("", "_low", "_high"):
                    assert row[f"{kind}_adjusted{end}"] == pytest.approx(row[f"{kind}{end}"], nan_ok=True)


def test_repeats_and_weights_count_in_the_loss_as_in_the_score():
    rubric_data, _, _ = study(n_repeats=3)
    weights = pd.Series(np.random.default_rng(1).uniform(0.2, 3, 60), index=range(1, 61))
    row = row_of(estimator_inputs(rubric_data, penalty=0.0392, weights=weights))
    responses = response_scores(rubric_data, "Magpie")
    adjusted = pd.Series(length_adjusted(responses["score"], responses["n_chars"], 0.0392))
    weight = responses["example_id"].map(weights)
    assert row["judge_only_adjusted"] == pytest.approx((adjusted * weight).sum() / weight.sum())


def test_a_response_of_unknown_length_or_another_data_set_leaves_it_undefined_and_the_plain_scores_as_they_are():
    rubric_data, _, inputs = study()
    unknown = rubric_data.items.assign(
        n_chars=rubric_data.items["n_chars"].where(rubric_data.items["example_id"].ne(7), 0)
    )
    plain = row_of(inputs)
    for row in (
        row_of(estimator_inputs(type(rubric_data)(unknown, rubric_data.judged, rubric_data.reads), penalty=0.0392)),
        row_of(estimator_inputs(rubric_data)),
    ):
        assert all(math.isnan(value) for name, value in row.items() if "adjusted" in name or name == "length_loss")
        assert row["corrected"] == plain["corrected"]
        assert row["corrected_se"] == plain["corrected_se"]


def test_the_table_of_scores_names_it_and_says_whose_it_is():
    rubric_data, _, _ = study()
    numbers = results(rubric_data, Analysis(evaluation="healthbench_hard", judges=("Magpie",)))
    (words,) = finding.score_columns(numbers.scores)["Length-adjusted score"]
    row = numbers.scores.iloc[0]
    low, high = (f"{min(1, row[f'corrected_adjusted_{end}']):.3f}" for end in ("low", "high"))
    assert words == f"{row['corrected_adjusted']:.3f} [{low}, {high}], corrected"
    unread = type(rubric_data)(rubric_data.items, rubric_data.judged, rubric_data.reads.iloc[:0])
    numbers = results(unread, Analysis(evaluation="healthbench_hard", judges=("Magpie",)))
    (words,) = finding.score_columns(numbers.scores)["Length-adjusted score"]
    assert words.endswith(", judge only")
    other = type(rubric_data)(rubric_data.items.assign(evaluation="mine"), rubric_data.judged, rubric_data.reads)
    numbers = results(other, Analysis(evaluation="mine", judges=("Magpie",)))
    assert "Length-adjusted score" not in finding.score_columns(numbers.scores)
