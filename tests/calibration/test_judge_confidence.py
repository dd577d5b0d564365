"""Judges' confidence in levels and on criteria, and how far several judges agree, as items for calibration."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.calibration.confidence import (
    TIED,
    TOO_FEW_VOTES,
    as_right,
    criterion_items,
    level_items,
    level_vote_items,
    majority,
    majority_items,
    stated_levels,
)
from evalcore.study.schema import ConfidenceMeaning
from tests import rubric_rows
from tests.confidences import checked
from tests.triage_cases import drawn

LEVEL_COLUMNS = {
    "judge", "format", "model", "group", "cluster", "example_id", "response_id", "confidence", "label", "right", "n_reads", "weight",
}  # fmt: skip


def read(triage_data, *rows):
    """The same with these reads of responses alone: sample, label, and what differs from a blind first read."""
    columns = {"asked": "response_acuity", "rater": "Dr. Noor", "stage": "first", "blinded": True, "selection": "random",
               "inclusion_probability": 0.25}  # fmt: skip
    made = [
        columns | {"sample": sample, "label": label, "row": triage_data.samples["row"][sample]} | more
        for sample, label, more in rows
    ]
    return replace(triage_data, reads=pd.DataFrame(made).assign(verdict_id=range(len(made))))


def judged(level, confidence=0.9):
    """One case with one response, whose level Magpie reads."""
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=1, models=["Alder-2"], n_samples=1)
    return replace(
        triage_data,
        levels=pd.DataFrame({"Magpie": np.array([np.nan, level], dtype=np.float32)}),
        confidence=pd.DataFrame({"sample": [1], "rater": ["Magpie"], "confidence": [confidence]}),
    )


@pytest.mark.parametrize(
    ("level", "label", "right"),
    [
        (4, "D", 1),
        (4, "C", 0),
        (3.5, "D", 1),
        (3.5, "C/D", 1),
        (3, "B/C", 1),
        (2, "C/D", 0),
        (1.5, "B/C", 1),
        (1.5, "C", 0),
    ],
)
def test_a_level_is_right_that_has_a_letter_in_common_with_the_physicians(level, label, right):
    items = level_items(read(judged(level), (1, label, {})))
    assert set(items.columns) == LEVEL_COLUMNS
    assert items[["right", "n_reads", "confidence", "weight"]].to_numpy().tolist() == [[right, 1, 0.9, 1]]
    assert items["group"].tolist() == ["Magpie, conversation"]


def test_only_blind_first_reads_that_could_assess_count_and_several_are_a_share():
    triage_data = judged(4)
    others = [
        (1, "A", {"stage": "revised"}), (1, "A", {"blinded": False}), (1, "cannot_assess", {}), (1, "A", {"asked": "gold_acuity"}),
    ]  # fmt: skip
    assert level_items(read(triage_data, *others)).empty
    both = level_items(read(triage_data, (1, "D", {}), (1, "A", {"rater": "Dr. Brandt"}), *others))
    assert both[["right", "n_reads"]].to_numpy().tolist() == [[0.5, 2]]


def test_drawn_reads_weigh_by_their_probability_and_others_are_left_out():
    triage_data = judged(4)
    assert level_items(read(triage_data, (1, "D", {})), drawn=True)["weight"].tolist() == [4]
    volunteered = read(triage_data, (1, "D", {"selection": "volunteered", "inclusion_probability": np.nan}))
    assert level_items(volunteered, drawn=True).empty
    assert len(level_items(volunteered)) == 1


def test_no_level_is_no_label():
    assert level_items(read(judged(0), (1, "D", {}))).empty
    nothing, _ = drawn(np.random.default_rng(2), n_cases=3)
    assert set(level_items(nothing).columns) == LEVEL_COLUMNS


def test_levels_of_a_drawn_study_stand_beside_its_reads():
    triage_data, _ = drawn(np.random.default_rng(3), n_cases=80, confidence=True, share_read=0.5)
    items = level_items(triage_data)
    assert set(items["group"]) == {"Magpie, conversation", "parser, qa"}
    of_parser = items.loc[items["judge"].eq("parser")]
    assert of_parser["right"].eq(1).all()  # the parser is never wrong
    assert 0.8 < items.loc[items["judge"].eq("Magpie"), "right"].mean() < 1


def test_a_rater_that_found_no_level_has_none_to_be_sure_of():
    triage_data = judged(0)
    assert stated_levels(triage_data).empty
    assert stated_levels(judged(3))[["judge", "label", "confidence"]].to_numpy().tolist() == [["Magpie", 3.0, 0.9]]


def several(**levels):
    """One case with one response, whose level several judges read."""
    column = {name: np.array([np.nan, level], dtype=np.float32) for name, level in levels.items()}
    return replace(judged(4), levels=pd.DataFrame(column))


def test_the_level_that_most_judges_read_is_as_sure_as_many_of_them_read_it():
    items = level_vote_items(read(several(Magpie=4, Wren=4, Rook=3), (1, "D", {})), drawn=True)
    assert items["group"].tolist() == ["majority of 3 judges, conversation"]
    assert items[["label", "confidence", "right", "weight"]].to_numpy().tolist() == [[4, pytest.approx(2 / 3), 1, 4]]
    # of equals the more severe, as everywhere
    tied = level_vote_items(read(several(Magpie=4, Wren=3, Rook=4, Jay=3), (1, "C", {})))
    assert tied[["label", "confidence", "right"]].to_numpy().tolist() == [[4, 0.5, 0]]
    assert level_vote_items(read(several(Magpie=4, Wren=4), (1, "D", {}))).empty  # two who agree would always be sure


def test_one_judge_the_parser_or_a_reader_without_a_level_make_no_majority():
    for alone in (several(Magpie=4), several(Magpie=4, parser=4), several(Magpie=4, Wren=0), several(Magpie=np.nan)):
        assert level_vote_items(read(alone, (1, "D", {}))).empty


# ---------------------------------------------------------------- criteria


def beside(**columns):
    plain = {
        "judge": "Magpie",
        "label": 1.0,
        "confidence": 0.9,
        "reference": 1.0,
        "example_id": 1,
        "is_drawn": True,
        "reference_drawn": 1.0,
        "inclusion_probability": 0.5,
    }
    n = max(len(values) for values in columns.values())
    return pd.DataFrame({name: columns.get(name, [value] * n) for name, value in plain.items()})


def test_a_label_is_as_right_as_physicians_say_the_same():
    frame = beside(label=[1.0, 0.0, 1.0, 0.0], reference=[1.0, 1.0, 0.25, 0.25], example_id=[1, 1, 2, 3])
    items = criterion_items(as_right(frame, checked(frame, {"Magpie": ConfidenceMeaning.RIGHT})))
    assert items["right"].tolist() == [1, 0, 0.25, 0.75]
    assert items["cluster"].tolist() == [1, 1, 2, 3]
    assert items["weight"].eq(1).all()
    assert items["group"].eq("Magpie").all()


def test_what_was_not_drawn_does_not_stand_for_what_was_not_read():
    frame = beside(is_drawn=[True, False], inclusion_probability=[0.2, np.nan])
    assert criterion_items(frame, drawn=True)["weight"].tolist() == [5]
    assert len(criterion_items(frame)) == 2


def test_what_somebody_volunteered_enters_only_where_all_blind_reads_count():
    frame = beside(reference=[0.5], reference_drawn=[1.0])
    assert criterion_items(frame, drawn=True)["right"].tolist() == [1]
    assert criterion_items(frame)["right"].tolist() == [0.5]


# ---------------------------------------------------------------- several judges as one


def test_what_most_judges_say_is_as_sure_as_many_of_them_say_it():
    rubric_data = rubric_rows.of_columns(
        example=[1, 1, 2, 2, 2], criterion=[1, 2, 1, 2, 3],
        judges={"Magpie": "++-?-", "Wren": "+--.-", "Owl": "++---"}, readers={"dr_a": "+-?+ ", "dr_b": "+  -+"},
    )  # fmt: skip
    items = majority_items(rubric_data)
    # On the third nobody could assess; on the fourth one judge voted; on the last all say not met, and the physician met.
    assert items["confidence"].tolist() == pytest.approx([1, 2 / 3, np.nan, 1], nan_ok=True)
    assert items["right"].tolist() == pytest.approx([1, 0, np.nan, 0], nan_ok=True)
    assert items["refused"].tolist() == ["", "", TOO_FEW_VOTES, ""]
    assert items["group"].unique().tolist() == ["majority of 3 judges"]
    assert set(majority_items(rubric_data, drawn=True)["weight"]) == {2}


def test_two_judges_who_agree_are_no_confidence():
    columns = {"example": [1, 2], "criterion": [1, 1], "readers": {"dr_a": "++"}}
    assert majority_items(rubric_rows.of_columns(judges={"Magpie": "++", "Wren": "++"}, **columns)).empty
    said = majority(pd.DataFrame({"Magpie": [1.0], "Wren": [1.0], "Owl": [np.nan]})).iloc[0]
    assert (said["n_votes"], said["refused"]) == (2, TOO_FEW_VOTES)
    assert np.isnan(said["confidence"])


def test_where_no_item_was_labelled_by_two_judges_there_is_no_majority():
    columns = {"example": [1, 2], "criterion": [1, 1], "readers": {"dr_a": "++"}}
    assert majority_items(rubric_rows.of_columns(judges={"Magpie": "+ ", "Wren": " +"}, **columns)).empty
    assert majority_items(rubric_rows.of_columns(judges={"Magpie": "++"}, **columns)).empty


@given(st.lists(st.lists(st.sampled_from([1.0, 0.0, np.nan]), min_size=4, max_size=4), min_size=1, max_size=20))
def test_a_majority_holds_more_than_half_of_the_labels(rows):
    found = majority(pd.DataFrame(rows, columns=["a", "b", "c", "d"]))
    for row, line in zip(rows, found.to_dict(orient="records"), strict=True):
        given_ = [label for label in row if not np.isnan(label)]
        same = sum(label == line["label"] for label in given_)
        assert line["n_votes"] == len(given_)
        if len(given_) < 3 or 2 * sum(given_) == len(given_):
            assert np.isnan([line["label"], line["confidence"]]).all()
            assert line["refused"] == (TOO_FEW_VOTES if len(given_) < 3 else TIED)
        else:
            assert line["confidence"] == pytest.approx(same / len(given_))
            assert line["confidence"] > 0.5
