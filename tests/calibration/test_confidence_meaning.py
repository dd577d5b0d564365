"""What a judge's confidence means, and whether its labels bear that out."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.calibration.confidence import as_right, criteria_meanings, level_meanings
from evalcore.calibration.reliability import calibration_error, reliability
from evalcore.study.schema import ConfidenceMeaning
from tests.confidences import checked, counted

MET, RIGHT = ConfidenceMeaning.MET, ConfidenceMeaning.RIGHT


def labels(judge="Magpie", **of):
    """Confidences by label, e.g. met=[.9], not_met=[.2]."""
    rows = [(judge, float(name == "met"), value) for name, values in of.items() for value in values]
    return pd.DataFrame(rows, columns=["judge", "label", "confidence"])


def said(frame, meaning):
    return checked(frame, {"Magpie": meaning} if meaning else {}).iloc[0]


def test_a_judge_that_says_met_four_times_in_a_thousand_with_confidence_903_does_not_state_p_met():
    frame = labels(met=[0.95] * 4, not_met=[0.9028] * 996)
    found = said(frame, MET)
    assert (found["n"], found["n_met"]) == (1_000, 4)
    assert found["share_met"] == pytest.approx(0.004)
    assert found["mean_confidence"] == pytest.approx(0.903, abs=1e-3)
    assert (found["contradicted"], found["usable"]) == (True, False)
    assert found["why"].startswith("0.4 % of the labels are met, and 996 of 996")
    assert found["mean_confidence_not_met"] == pytest.approx(0.9028)
    assert said(frame, RIGHT)["usable"]


def test_a_judge_that_states_p_met_does_not_state_that_it_is_right():
    frame = labels(met=[0.9] * 30, not_met=[0.1] * 30)
    assert said(frame, MET)["usable"]
    found = said(frame, RIGHT)
    assert found["contradicted"]
    assert "30 of 30" in found["why"]


def test_before_anybody_has_said_nothing_is_usable_and_nothing_contradicted():
    found = said(labels(met=[0.9] * 30), None)
    assert (found["usable"], found["contradicted"], found["meaning"]) == (False, False, None)
    assert found["why"].startswith("What the confidence of Magpie refers to is not specified: ")


def test_a_few_labels_contradict_nothing():
    assert said(labels(met=[0.9] * 30, not_met=[0.9] * 9), MET)["usable"]
    assert said(labels(met=[0.9] * 30, not_met=[0.9] * 10), MET)["contradicted"]


def test_a_label_of_one_kind_alone_can_mean_both():
    frame = labels(met=[0.9] * 30)
    assert said(frame, MET)["usable"]
    assert said(frame, RIGHT)["usable"]
    assert np.isnan(said(frame, MET)["mean_confidence_not_met"])


rows = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([0.0, 1.0, np.nan]), st.floats(0, 1)), max_size=60
)


@given(rows, st.sampled_from([MET, RIGHT]))
def test_sums_say_what_rows_say_and_their_order_does_not_matter(drawn, meaning):
    frame = pd.DataFrame(drawn, columns=["judge", "label", "confidence"])
    one = checked(frame, {"a": meaning})
    pd.testing.assert_frame_equal(one, criteria_meanings(counted(frame.iloc[::-1]), {"a": meaning}))
    assert one["n"].sum() == frame["label"].notna().sum()
    assert (one["usable"] == one["why"].eq("")).all()


@given(rows)
def test_p_met_and_p_right_are_the_same_under_met_and_add_up_to_1_under_not_met(drawn):
    frame = pd.DataFrame(drawn, columns=["judge", "label", "confidence"])
    found = checked(frame, {"a": MET, "b": MET}).assign(usable=True, why="")
    right = as_right(frame, found)
    of = {label: right["label"].eq(label) & right["judge"].isin(found["judge"]) for label in (0.0, 1.0)}
    assert right.loc[of[1.0], "confidence"].tolist() == frame.loc[of[1.0], "confidence"].tolist()
    assert (right.loc[of[0.0], "confidence"] + frame.loc[of[0.0], "confidence"]).tolist() == pytest.approx(
        [1] * of[0.0].sum()
    )


def test_p_right_stays_as_it_is():
    frame = labels(met=[0.9] * 10, not_met=[0.7] * 10)
    assert as_right(frame, checked(frame, {"Magpie": RIGHT}))["confidence"].equals(frame["confidence"])


@pytest.mark.parametrize("meaning", [None, MET])
def test_nothing_is_drawn_or_computed_before_the_meaning_is_known(meaning):
    frame = labels(met=[0.9] * 5, not_met=[0.9] * 20)
    found = checked(frame, {"Magpie": meaning} if meaning else {})
    items = as_right(frame, found).assign(right=1.0, cluster=range(25), group="Magpie")
    assert items["confidence"].isna().all()
    assert reliability(items).empty
    table = calibration_error(items, rng=np.random.default_rng(1))
    assert table["undefined"].tolist() == [found["why"][0]]
    assert np.isnan(table["error"][0])


def test_a_judge_that_was_never_checked_is_refused():
    frame = labels(met=[0.9])
    assert as_right(frame, checked(frame.iloc[:0], {}))["refused"][0].startswith(
        "What the confidence of Magpie refers to is not specified"
    )


def test_levels_have_no_p_met():
    frame = pd.DataFrame(
        {"rater": ["Magpie"] * 10 + ["Rook"] * 10 + ["Wren"], "confidence": [0.9] * 10 + [0.2] * 10 + [0.5]}
    ).assign(sample=range(21))
    data = SimpleNamespace(confidence=frame, levels=pd.DataFrame(3.0, index=range(21), columns=frame["rater"].unique()))
    found = level_meanings(data, {"Magpie": MET, "Rook": RIGHT}).set_index("judge")
    assert found["contradicted"].to_dict() == {"Magpie": True, "Rook": True, "Wren": False}
    assert "less than a guess among four" in found["why"]["Rook"]
    assert not found["usable"].any()
    assert level_meanings(data, {"Magpie": RIGHT})["usable"].tolist() == [True, False, False]
