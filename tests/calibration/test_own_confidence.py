"""Whose confidence is the model's own: the one rule."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.calibration.confidence import model_items, own_confidence
from evalcore.study.schema import PARSER
from evalcore.triage import data as frames
from evalcore.triage.data import Kind
from evalcore.triage.predictions import joined, predictions, usual_judges
from tests.triage_cases import CONVERSATION, QA, drawn


def cases(seed, **more):
    """Drawn cases in which every level comes with a confidence, the parser's and the judge's."""
    triage_data, _ = drawn(np.random.default_rng(seed), confidence=True, **more)
    return frames.described(triage_data)


def test_what_comes_with_a_judges_level_is_the_judges_and_what_the_parser_reads_the_models_own():
    triage_data = cases(1)
    judges = usual_judges(triage_data)
    assert judges == {QA: PARSER, CONVERSATION: "Magpie"}
    assert set(triage_data.confidence["rater"]) == {PARSER, "Magpie"}
    own = own_confidence(predictions(triage_data, judges))
    known = own["predicted"].notna()
    assert own.loc[known, "is_stated"].eq(own.loc[known, "format"].eq(QA)).all()
    shares = own.loc[own["format"].eq(CONVERSATION) & own["n_valid"].ge(2)]
    assert shares["confidence"].tolist() == pytest.approx(shares["share"].tolist())
    assert not own_confidence(predictions(triage_data, judges), stated=False)["is_stated"].any()


@given(st.integers(0, 200))
def test_the_share_of_one_sample_is_no_confidence(seed):
    triage_data = cases(seed, n_cases=15, n_samples=2, invalid=0.5)
    own = own_confidence(predictions(triage_data, usual_judges(triage_data)), stated=False)
    several = own["n_valid"].ge(2)
    assert own["confidence"].notna().eq(several).all()
    assert own.loc[several, "confidence"].tolist() == pytest.approx(own.loc[several, "share"].tolist())


def test_three_times_the_same_confidence_is_that_confidence():
    triage_data = cases(1, n_cases=1, models=["Alder-2"], n_samples=3, invalid=0)
    qa = np.flatnonzero(triage_data.samples["format"].eq(QA))
    levels = pd.DataFrame({PARSER: np.where(triage_data.samples["format"].eq(QA), 2, np.nan).astype(np.float32)})
    stated = pd.DataFrame({"sample": qa, "rater": PARSER, "confidence": 0.1})
    found = predictions(replace(triage_data, levels=levels, confidence=stated), {QA: PARSER})
    assert found["stated"][0] != 0.1  # (0.1 + 0.1 + 0.1) / 3 in floating point
    assert own_confidence(found)["confidence"].tolist() == [0.1]


@given(st.integers(0, 500))
def test_every_prediction_on_a_clear_case_is_an_item(seed):
    triage_data = cases(seed, n_cases=30, invalid=0.4, n_samples=2)
    own = own_confidence(joined(triage_data, predictions(triage_data, usual_judges(triage_data))))
    items = model_items(own)
    kept = own.loc[own["kind"].eq(Kind.CLEAR) & own["predicted"].notna()]
    assert list(items.columns) == [
        "model",
        "format",
        "cluster",
        "confidence",
        "is_stated",
        "right",
        "gold",
        "predicted",
    ]
    assert items["right"].sum() == (kept["predicted"] == kept["gold"]).sum()
    assert items["confidence"].tolist() == pytest.approx(kept["confidence"].tolist(), nan_ok=True)
    assert items["cluster"].tolist() == kept["row"].tolist()
