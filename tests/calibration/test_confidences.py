"""Judges' stated confidences beside physicians' blind first reads, from both databases."""

import numpy as np
import pandas as pd
import pytest

from evalcore.calibration.confidence import criteria_meanings
from evalcore.calibration.queries import COLUMNS, beside_reads, stated
from evalcore.study import store
from evalcore.study.db import reading, writing
from evalcore.study.frames import ITEM_BASE
from evalcore.study.schema import ConfidenceMeaning, Label, RaterKind, Stage, Verdict
from tests import world
from tests.confidences import counted
from tests.world import judged, said


@pytest.fixture
def small(database_url):
    made = world.made(database_url, judged="    ")  # nothing of the judge yet
    yield made
    made.engine.dispose()


def found_in(small, **options):
    with reading(small.engine) as session:
        return beside_reads(session, stated(session), **options)


def stated_in(small, **options):
    with reading(small.engine) as session:
        return stated(session, **options)


def test_an_empty_study_has_the_columns_and_no_row(small):
    assert list(found_in(small).columns) == COLUMNS
    assert found_in(small).empty
    assert stated_in(small).empty
    assert criteria_meanings(stated_in(small), {}).empty


def test_a_confidence_stands_beside_the_share_of_physicians_that_say_met(small):
    judged(small, "Wren", Label.NOT_MET, criterion=1, confidence=0.8)
    said(small, Label.MET, criterion=1, name="Dr. A", selection="random", inclusion_probability=0.25)
    said(small, Label.NOT_MET, criterion=1, name="Dr. B", selection="volunteered")
    (row,) = found_in(small).to_dict(orient="records")
    item = small.item(0, 1)
    wanted = {"judge": "Wren", "example_id": 1, "label": 0.0, "confidence": 0.8, "reference": 0.5, "n_reads": 2, "is_drawn": True,
              "reference_drawn": 1.0} | item  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    assert row["item_id"] == item["response_id"] * ITEM_BASE + item["criterion_id"]
    assert row["inclusion_probability"] == pytest.approx(0.25)


def test_only_blind_first_reads_that_could_assess_count(small):
    judged(small, "Wren", Label.MET, confidence=0.8)
    said(small, Label.MET, name="not blind", blinded=False)
    said(small, Label.MET, name="open", stage=Stage.OPEN)
    said(small, Label.MET, name="settled", stage=Stage.ADJUDICATED)
    said(small, Label.MET, name="revised", stage=Stage.REVISED)
    said(small, Label.CANNOT_ASSESS, name="cannot")
    back = said(small, Label.MET, name="taken back")
    said(small, None, name="taken back", supersedes=back)
    assert found_in(small).empty
    old = said(small, Label.MET, name="changed")
    said(small, Label.NOT_MET, name="changed", supersedes=old)
    assert found_in(small)[["reference", "n_reads", "is_drawn"]].to_numpy().tolist() == [[0.0, 1, False]]


def test_a_judge_counts_with_its_newest_label_and_only_where_it_states_a_confidence(small):
    said(small, Label.MET)
    judged(small, "silent", Label.MET)
    judged(small, "unable", Label.CANNOT_ASSESS, confidence=0.9)
    judged(small, "elsewhere", Label.MET, example=1, confidence=0.9)
    old = judged(small, "Wren", Label.MET, confidence=0.6)
    judged(small, "Wren", Label.NOT_MET, confidence=0.7, supersedes=old)
    judged(small, "Owl", Label.MET, confidence=0.6)
    with writing(small.engine) as session:
        prompt = store.ensure_rater(session, RaterKind.JUDGE, "Owl", prompt_version="2")
        verdict = Verdict(
            example_id=1, rater_id=prompt, stage=Stage.JUDGE, label=Label.MET, confidence=0.9, **small.item()
        )
        store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")
    found = found_in(small)[["judge", "label", "confidence"]]
    assert found.to_numpy().tolist() == [["Owl", 1.0, 0.9], ["Wren", 0.0, 0.7]]


def test_examples_that_wait_for_the_viewers_read_are_left_out(small):
    for example in (0, 1):
        said(small, Label.MET, example=example)
        judged(small, "Wren", Label.MET, example=example, confidence=0.9)
    assert found_in(small, blind={1})["example_id"].tolist() == [2]
    assert found_in(small)["example_id"].tolist() == [1, 2]
    assert stated_in(small)["n"].tolist() == [2]
    assert stated_in(small, blind={1})["n"].tolist() == [1]


def test_the_sums_of_the_database_are_those_of_the_rows(small):
    rows = []
    for place, (label, confidence) in enumerate(
        [(Label.MET, 0.9), (Label.MET, 0.5), (Label.NOT_MET, 0.3), (Label.NOT_MET, 0.8)]
    ):
        judged(small, "Wren", label, example=place // 2, criterion=place % 2, confidence=confidence)
        rows.append(("Wren", float(label is Label.MET), confidence))
    frame = pd.DataFrame(rows, columns=["judge", "label", "confidence"])
    one, other = (
        criteria_meanings(counts, {"Wren": ConfidenceMeaning.MET}) for counts in (counted(frame), stated_in(small))
    )
    pd.testing.assert_frame_equal(one, other)
    assert one.loc[0, ["n", "n_met"]].tolist() == [4, 2]
    assert one.loc[0, "mean_confidence"] == pytest.approx(np.mean([0.9, 0.5, 0.3, 0.8]))
