"""Self-preference: sums checked by hand, what is left out, and how often a judge that treats all alike is accused."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.judges.self_preference import MIN_EXAMPLES, by_label, finding, self_preference
from evalcore.rubric.data import RubricData
from tests.rubric_rows import of_columns, shuffled

FAMILIES = {"Magpie": "Birds", "Alder": "Birds", "Briar": "Shrubs"}


def two_models(own, other, read_own, read_other, **more):
    """One criterion an example, each answered by Alder (own family) and by Briar."""
    n = len(own)
    return of_columns(
        example=list(range(1, n + 1)) * 2,
        criterion=[1] * (2 * n),
        model=["Alder"] * n + ["Briar"] * n,
        judges={"Magpie": own + other},
        readers={"Dr. A": read_own + read_other},
        **more,
    )


def only(rubric_data, families=None):
    table = self_preference(rubric_data, FAMILIES if families is None else families)
    assert len(table) == 1
    return table.iloc[0]


# ---------------------------------------------------------------- by hand


def test_own_and_other_responses_are_compared_within_each_label_of_physicians():
    #                     judge own  other     physicians own, other
    rubric_data = two_models("++-+--", "+---+-", "+++---", "++----")
    # met: own 2/3, other 1/2: difference 1/6, m = 3 * 2 / 5 = 6/5; not met: own 1/3, other 1/4: 1/12, m = 3 * 4 / 7 = 12/7
    found = only(rubric_data)
    assert found["met_difference"] == pytest.approx(1 / 6)
    assert found["not_met_difference"] == pytest.approx(1 / 12)
    assert found["difference"] == pytest.approx((6 / 5 / 6 + 12 / 7 / 12) / (6 / 5 + 12 / 7))
    assert (found["n_own"], found["n_other"], found["n_shared_examples"], found["reason"]) == (6, 6, 6, "")
    table = by_label(rubric_data, "Magpie", FAMILIES)
    assert table[["label", "sign", "n_own", "n_other"]].to_numpy().tolist() == [
        ["met", "desirable", 3, 2],
        ["not met", "desirable", 3, 4],
        ["met", "", 3, 2],
        ["not met", "", 3, 4],
        ["together", "", 6, 6],
    ]
    assert table["rate_own"].tolist()[:2] == pytest.approx([2 / 3, 1 / 3])
    assert table["rate_other"].tolist()[:2] == pytest.approx([1 / 2, 1 / 4])


def test_of_an_undesirable_criterion_not_met_is_in_the_responses_favour():
    met = two_models("+++---", "------", "++++++", "++++++")
    turned = two_models("+++---", "------", "++++++", "++++++", points=[-2.0] * 12)
    assert only(met)["difference"] == pytest.approx(1 / 2)
    assert only(turned)["difference"] == pytest.approx(-1 / 2)


def test_what_was_drawn_seldom_weighs_more():
    # not met throughout; own labels + - - - - with weights 4 1 1 1 1: 4/8 in favour, others 0
    rubric_data = two_models("+----", "-----", "-----", "-----", probability=[0.2] + [0.8] * 9)
    assert only(rubric_data)["difference"] == pytest.approx(1 / 2)


def test_volunteered_reads_stay_out_where_others_were_drawn():
    rubric_data = two_models("+-----", "------", "------", "------")
    reads = rubric_data.reads.copy()
    reads.loc[reads["row"].eq(0), ["selection", "inclusion_probability"]] = ["volunteered", np.nan]
    found = only(RubricData(rubric_data.items, rubric_data.judged, reads))
    assert (found["difference"], found["n_own"], found["n_not_drawn"]) == (0, 5, 1)
    assert math.isnan(found["low"])  # nothing varies


# ---------------------------------------------------------------- what cannot be said


def test_who_has_no_family_is_left_out_counted_and_named():
    rubric_data = two_models("++++--", "+-+---", "++----", "++----")
    found = only(rubric_data, {"Magpie": "Birds", "Alder": "Birds"})
    assert (found["n_without_family"], found["models_without_family"]) == (6, "Briar")
    assert found["reason"].startswith("Physicians have read responses of other families in no conversations")
    found = only(rubric_data, {"Alder": "Birds", "Briar": "Shrubs"})
    assert found["family"] is None
    assert found["reason"] == "No pattern of the table of families fits the judge Magpie."
    assert math.isnan(found["difference"])


def test_too_few_conversations_or_no_label_in_common_have_no_difference():
    found = only(two_models("+" * 4, "-" * 4, "-" * 4, "-" * 4))
    assert MIN_EXAMPLES == 5
    assert (
        found["reason"] == "Physicians have read responses of the family Birds in 4 conversations, where 5 are needed."
    )
    apart = only(two_models("+" * 5, "-" * 5, "+" * 5, "-" * 5))
    assert apart["reason"] == "No kind of criterion got the same label by physicians on both sides."


def test_reads_of_criteria_without_points_or_label_are_counted():
    found = only(two_models("++++--.", "+-+---+", "++-----", "++-----", points=[1.0] * 13 + [math.nan]))
    assert (found["n_without_label"], found["n_without_points"]) == (1, 1)
    assert (found["n_own"], found["n_other"]) == (6, 6)


def test_the_finding_says_who_favours_whom_or_why_it_cannot_be_said():
    # physicians not met throughout; own 9/10 in favour, others 0: difference .9, leaving one out .8889 or 1: [.674, 1]
    strong = only(two_models("+" * 9 + "-", "-" * 10, "-" * 10, "-" * 10))
    assert finding(strong) == (
        "Magpie (Birds) favours responses of its own family over others'. Where physicians gave the same label, labels in the response's "
        "favour differ by +90 [+67, +100] points, own family less others (met: –; not met: +90 [+67, +100]), by 10 reads of its own family and 10 of others."
    )
    turned = only(two_models("-" * 10, "+" * 9 + "-", "-" * 10, "-" * 10))
    assert "is harder on responses of its own family" in finding(turned)
    assert "−90 [−100, −67]" in finding(turned)
    assert "is not shown to treat" in finding(only(two_models("+---+", "-+--+", "-----", "-----")))
    assert finding(only(two_models("+", "-", "-", "-"))).startswith(
        "Whether Magpie favours its own family cannot be said: physicians have read"
    )


# ---------------------------------------------------------------- a judge that treats all alike


def study_of(rng, *, n_examples=40, favour=0.0):
    """Alder (own) is right less often than Briar; the judge has one sensitivity (.85) and one specificity (.75), and `favour` more for its own.

    Each example has six criteria, the last two undesirable; half of the items are read, by importance. An example shifts what is met.
    """
    shape = (n_examples, 2, 6)
    points = np.broadcast_to([5.0, 5, 5, 5, -5, -5], shape)
    own = np.broadcast_to(np.array([True, False])[None, :, None], shape)
    good = np.where(own, 0.45, 0.85) + rng.uniform(-0.1, 0.1, (n_examples, 1, 1))
    met = rng.random(shape) < np.where(points > 0, good, 1 - good)
    says_met = np.where(met, 0.85, 0.25) + np.where(own, favour, 0.0) * np.sign(points)
    judged = (rng.random(shape) < says_met).astype(np.float32)
    probability = np.broadcast_to([0.7, 0.7, 0.4, 0.4, 0.4, 0.4], shape)
    row = np.flatnonzero((rng.random(shape) < probability).ravel())
    example = np.broadcast_to(np.arange(n_examples)[:, None, None], shape).ravel()
    items = pd.DataFrame(
        {
            "example_id": example,
            "points": points.ravel(),
            "model": pd.Categorical(np.where(own, "Alder", "Briar").ravel()),
        }
    )
    reads = pd.DataFrame(
        {
            "row": row, "rater": "Dr. A", "met": met.ravel()[row].astype(float), "stage": "first", "blinded": True, "selection": "importance",
            "inclusion_probability": probability.ravel()[row],
        }
    )  # fmt: skip
    return RubricData(items, pd.DataFrame({"Magpie": judged.ravel()}), reads)


def shares(n_runs, seed, **more):
    """Of the studies: those where the judge is said to favour its own, where it is said to be harder on them, and where the interval holds `favour`."""
    rng, counts = np.random.default_rng(seed), np.zeros(3)
    for _ in range(n_runs):
        found = only(study_of(rng, **more))
        counts += [found["low"] > 0, found["high"] < 0, found["low"] <= more.get("favour", 0) <= found["high"]]
    return counts / n_runs


@pytest.mark.slow
def test_a_judge_with_one_sensitivity_and_specificity_is_seldom_accused_however_often_families_are_right():
    favours, harder, _ = shares(80, 1)
    # 2.5 % each way; 6 of 80 or more would come in 1.2 % of such runs
    assert favours < 6 / 80
    assert harder < 6 / 80


@pytest.mark.slow
@pytest.mark.parametrize("favour", [0.0, 0.1])
def test_the_interval_covers_the_common_difference(favour):
    favours, _, covered = shares(600, 2026, favour=favour)
    assert covered == pytest.approx(0.95, abs=0.025)
    assert favours < 0.05 or favour > 0


# ---------------------------------------------------------------- properties


@pytest.fixture(scope="module")
def study():
    return study_of(np.random.default_rng(5), favour=0.1)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(study, seed):
    anew = shuffled(study, np.random.default_rng(seed))
    pd.testing.assert_frame_equal(self_preference(study, FAMILIES), self_preference(anew, FAMILIES), rtol=1e-9)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_judge_of_the_other_family_has_the_opposite_difference(study, seed):
    some = study.where(study.items["example_id"].isin(np.random.default_rng(seed).permutation(40)[:30]))
    there, back = only(some), only(some, FAMILIES | {"Magpie": "Shrubs"})
    assert there["difference"] == pytest.approx(-back["difference"])
    assert (there["low"], there["high"]) == pytest.approx((-back["high"], -back["low"]))


def test_a_judge_that_says_what_physicians_say_favours_nobody_and_has_no_interval(study):
    truth = study.reads.groupby("row")["met"].mean().reindex(range(len(study.items)))
    found = only(RubricData(study.items, pd.DataFrame({"Magpie": truth.astype(np.float32)}), study.reads))
    assert found["difference"] == 0
    assert math.isnan(found["low"])
    assert "is not shown to treat" in finding(found)


def test_a_study_without_reads_says_nothing_of_its_judges(study):
    unread = RubricData(study.items, study.judged, study.reads.iloc[:0])
    assert only(unread)["reason"].startswith("Physicians have read responses of the family Birds in no conversations")
    assert by_label(unread, "Magpie", FAMILIES).empty
