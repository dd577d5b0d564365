"""Scores of responses and examples by one judge: the same as `score` gives on the same verdicts."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.rubric import queries as opinion_queries
from evalcore.rubric.data import RubricData
from evalcore.rubric.scores import example_scores, response_scores, scores_of_verdicts
from evalcore.study import frames
from evalcore.study.db import reading
from tests import population, rubric_rows, tables, world
from tests.rubric_rows import of_verdicts


def chance(number):
    return np.random.default_rng(number)


points = st.integers(-10, 10).filter(bool)
criterion = st.tuples(points, st.sampled_from("+-?"), st.sampled_from("+-"))
response = st.lists(criterion, min_size=1, max_size=5)
study = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("AB"), response), min_size=1, max_size=8)


def drawn(rows, **columns):
    """Responses (example, model, criteria with the labels of two judges) as a verdict table."""
    lines = ["response | example | model | criterion | points | judge | judge_2"]
    lines += [
        f"r{number} | e{example} | {model} | c{place} | {value} | {one} | {other}"
        for number, (example, model, criteria) in enumerate(rows)
        for place, (value, one, other) in enumerate(criteria)
    ]
    return tables.verdicts("\n".join(lines), **columns)


@given(study, st.sampled_from(["judge", "judge_2"]))
def test_responses_and_examples_score_as_metrics_score_says(rows, judge):
    verdicts = drawn(rows)
    expected = scores_of_verdicts(verdicts, ["overall"])
    expected = expected.loc[expected["judge"].eq(judge)].set_index("response_id")["score"].sort_index()
    rubric_data = of_verdicts(verdicts)
    found = response_scores(rubric_data, judge).set_index("response_id")["score"]
    pd.testing.assert_series_equal(found, expected, rtol=1e-12)
    wide = verdicts.drop_duplicates("response_id").set_index("response_id").join(expected)
    by_hand = wide.groupby(["example_id", "model"])["score"].mean().unstack("model")
    pd.testing.assert_frame_equal(example_scores(rubric_data, judge), by_hand, rtol=1e-12)


@given(st.integers(0, 2**32))
def test_the_order_of_items_does_not_matter_to_scores(number):
    rubric_data, _ = population.drawn(chance(number), n_examples=6, models=("Birch", "Alder"), n_repeats=2)
    mixed = rubric_rows.shuffled(rubric_data, chance(number))
    pd.testing.assert_frame_equal(example_scores(mixed, "Magpie"), example_scores(rubric_data, "Magpie"), rtol=1e-12)
    pd.testing.assert_frame_equal(response_scores(mixed, "Magpie"), response_scores(rubric_data, "Magpie"), rtol=1e-12)


DRAWING = """
    response | example | model | criterion | points | judge
    r1       | e1      | Alder | c1        |   7    |  +
    r1       | e1      | Alder | c2        |  -4    |  +
    r2       | e1      | Alder | c1        |   7    |  +
    r2       | e1      | Alder | c2        |  -4    |  -
    r3       | e2      | Alder | c3        |   5    |  ?
    r4       | e2      | Birch | c3        |   5    |  -
    r5       | e3      | Birch | c4        |  -3    |  +
"""


def test_repeats_are_averaged_and_what_has_no_score_is_nan():
    found = example_scores(of_verdicts(tables.verdicts(DRAWING)), "judge")
    assert found.index.tolist() == [1, 2, 3]
    assert found["Alder"].tolist() == pytest.approx([(3 / 7 + 1) / 2, math.nan, math.nan], nan_ok=True)
    assert found["Birch"].tolist() == pytest.approx([math.nan, 0.0, math.nan], nan_ok=True)


def test_a_response_without_a_score_is_left_out_of_the_mean_of_its_example():
    unsure = DRAWING.replace("r2       | e1      | Alder | c2        |  -4    |  -", "r2 | e1 | Alder | c2 | -4 | ?")
    assert unsure != DRAWING
    found = example_scores(of_verdicts(tables.verdicts(unsure)), "judge")
    assert found.loc[1, "Alder"] == pytest.approx(3 / 7)


def test_a_label_that_is_missing_leaves_the_response_incomplete():
    rubric_data = of_verdicts(tables.verdicts(DRAWING, n_expected=2))
    found = response_scores(rubric_data, "judge").set_index("response_id")
    assert found["is_complete"].tolist() == [True, True, False, False, False]
    assert found["score"].tolist() == pytest.approx([3 / 7, 1, math.nan, math.nan, math.nan], nan_ok=True)


def test_a_response_keeps_what_describes_it():
    (row,) = response_scores(
        rubric_rows.of_columns(example=[4, 4], criterion=[1, 2], judges={"Magpie": "+-"}), "Magpie"
    ).to_dict(orient="records")
    assert {name: row[name] for name in ("example_id", "model", "evaluation", "theme", "n_chars", "score")} == {
        "example_id": 4, "model": "Alder", "evaluation": "invented", "theme": "hedging", "n_chars": 100, "score": 0.5,
    }  # fmt: skip


def test_the_study_in_the_database_scores_the_same_both_ways(database_url):
    small = world.made(database_url, judged="+-+?", models=("Alder-2", "Birch"))
    with reading(small.engine) as session:
        expected = scores_of_verdicts(frames.verdicts(session), ["overall"])
        found = response_scores(opinion_queries.load(session), world.JUDGE)
    small.engine.dispose()
    expected = expected.sort_values("response_id")
    assert found["response_id"].tolist() == expected["response_id"].tolist()
    assert found["score"].tolist() == pytest.approx(expected["score"].tolist(), nan_ok=True)
    assert found["score"].notna().sum() == 2


def test_two_evaluations_at_once_are_refused():
    rubric_data = of_verdicts(tables.verdicts(DRAWING))
    items = rubric_data.items.assign(evaluation=np.where(rubric_data.items["response_id"].eq(1), "hard", "full"))
    with pytest.raises(ValueError, match=r"expected responses of one evaluation, got 2 \(full, hard\)"):
        example_scores(RubricData(items, rubric_data.judged, rubric_data.reads), "judge")
