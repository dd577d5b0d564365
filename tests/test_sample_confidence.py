"""A model's own confidence and a judge's, as items for calibration."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.metrics import panels
from evalcore.metrics.calibration import calibration_error
from evalcore.metrics.confidence_meaning import as_right, checked
from evalcore.metrics.judge_confidence import criterion_items, vote_items
from evalcore.metrics.panels import Kind
from evalcore.metrics.predictions import joined, predictions, usual_judges
from evalcore.metrics.sample_confidence import LEVEL_COLUMNS, MODEL_COLUMNS, level_items, model_items
from evalcore.schema import ConfidenceMeaning
from tests import opinion_rows
from tests.triage_cases import drawn

BY = ("model", "format")


@given(st.integers(0, 500))
def test_every_prediction_on_a_clear_case_is_an_item(seed):
    triaged, _ = drawn(np.random.default_rng(seed), n_cases=30, invalid=0.4, n_samples=2, confidence=True)
    triaged = panels.described(triaged)
    found = joined(triaged, predictions(triaged, usual_judges(triaged)))
    items = model_items(found)
    kept = found.loc[found["kind"].eq(Kind.CLEAR) & found["predicted"].notna()]
    assert list(items.columns) == MODEL_COLUMNS
    assert len(items) == len(kept)
    assert items["right"].sum() == (kept["predicted"] == kept["gold"]).sum()
    assert items["confidence"].tolist() == kept["stated"].fillna(kept["share"]).tolist()
    assert model_items(found, stated=False)["confidence"].tolist() == kept["share"].tolist()
    by_two = calibration_error(items, rng=np.random.default_rng(1), n_draws=2, by=BY)
    by_group = calibration_error(items, rng=np.random.default_rng(1), n_draws=2)
    assert by_two["brier"].tolist() == by_group["brier"].tolist()
    assert list(by_group["group"]) == [f"{row.model}, {row.format}" for row in by_two.itertuples()]


def read(triaged, *rows):
    """The same with these reads of responses alone: sample, label, and what differs from a blind first read."""
    columns = {"asked": "response_acuity", "rater": "Dr. Noor", "stage": "first", "blinded": True, "selection": "random",
               "inclusion_probability": 0.25}  # fmt: skip
    made = [
        columns | {"sample": sample, "label": label, "row": triaged.samples["row"][sample]} | more
        for sample, label, more in rows
    ]
    return replace(triaged, reads=pd.DataFrame(made).assign(verdict_id=range(len(made))))


def judged(level, confidence=0.9):
    """One case with one response, whose level Magpie reads."""
    triaged, _ = drawn(np.random.default_rng(1), n_cases=1, models=["Alder-2"], n_samples=1)
    return replace(
        triaged,
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
    assert list(items.columns) == LEVEL_COLUMNS
    assert items[["right", "n_reads", "confidence", "weight"]].to_numpy().tolist() == [[right, 1, 0.9, 1]]
    assert items["group"].tolist() == ["Magpie, conversation"]


def test_only_blind_first_reads_that_could_assess_count_and_several_are_a_share():
    triaged = judged(4)
    others = [
        (1, "A", {"stage": "revised"}), (1, "A", {"blinded": False}), (1, "cannot_assess", {}), (1, "A", {"asked": "gold_acuity"}),
    ]  # fmt: skip
    assert level_items(read(triaged, *others)).empty
    both = level_items(read(triaged, (1, "D", {}), (1, "A", {"rater": "Dr. Brandt"}), *others))
    assert both[["right", "n_reads"]].to_numpy().tolist() == [[0.5, 2]]


def test_drawn_reads_weigh_by_their_probability_and_others_are_left_out():
    triaged = judged(4)
    assert level_items(read(triaged, (1, "D", {})), drawn=True)["weight"].tolist() == [4]
    volunteered = read(triaged, (1, "D", {"selection": "volunteered", "inclusion_probability": np.nan}))
    assert level_items(volunteered, drawn=True).empty
    assert len(level_items(volunteered)) == 1


def test_no_level_is_no_label():
    assert level_items(read(judged(0), (1, "D", {}))).empty
    nothing, _ = drawn(np.random.default_rng(2), n_cases=3)
    assert list(level_items(nothing).columns) == LEVEL_COLUMNS


def test_levels_of_a_drawn_study_stand_beside_its_reads():
    triaged, _ = drawn(np.random.default_rng(3), n_cases=80, confidence=True, share_read=0.5)
    items = level_items(triaged)
    assert set(items["group"]) == {"Magpie, conversation", "parser, qa"}
    of_parser = items.loc[items["judge"].eq("parser")]
    assert of_parser["right"].eq(1).all()  # the parser is never wrong
    assert 0.8 < items.loc[items["judge"].eq("Magpie"), "right"].mean() < 1


# ---------------------------------------------------------------- criteria


def beside(**columns):
    plain = {
        "judge": "Magpie",
        "label": 1.0,
        "confidence": 0.9,
        "reference": 1.0,
        "example_id": 1,
        "is_drawn": True,
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


def test_votes_of_judges_stand_for_a_confidence_that_nobody_states():
    opinions = opinion_rows.of_columns(
        example=[1, 1, 2, 2], criterion=[1, 2, 1, 2],
        judges={"Magpie": "++-?", "Wren": "+--.", "Owl": "++--"}, readers={"dr_a": "+-?+", "dr_b": "+  -"},
    )  # fmt: skip
    items = vote_items(opinions)
    assert items["confidence"].tolist() == pytest.approx(
        [1, 2 / 3]
    )  # on the third nobody could assess; on the last one judge voted
    assert items["right"].tolist() == [1, 0]
    assert items["n_votes"].tolist() == [3, 3]
    assert items["group"].unique().tolist() == ["Votes of 3 judges"]
    assert vote_items(opinions, drawn=True)["weight"].tolist() == [2, 2]
