"""The rubric score: each rule of HealthBench's formula, and the whole against a plain re-implementation."""

import math

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.rubric.scores import REPORTED_GROUPINGS, mean_scores, scores_of_verdicts
from evalcore.study import frames
from evalcore.study.db import open_study, reading
from tests import tables, world

THEMES, AXES, CLUSTERS = ("hedging", "communication"), ("accuracy", "completeness"), ("a", "b")


def response_scores(verdicts, by=REPORTED_GROUPINGS):
    return scores_of_verdicts(verdicts, by)


def score_of(drawing, group="overall", **columns):
    """The score of the one response in the drawing."""
    found = response_scores(tables.verdicts(drawing, **columns))
    (score,) = found.loc[found["group"].eq(group), "score"]
    return score


def mean_of(drawing, group="overall", **columns):
    """The summary row of one group."""
    found = mean_scores(response_scores(tables.verdicts(drawing, **columns)))
    (row,) = found.loc[found["group"].eq(group)].to_dict(orient="records")
    return row


# ---------------------------------------------------------------- the reference formula, in plain Python


def reference_score(criteria):
    """(points, label) pairs to achieved / possible, as openai/simple-evals has it; None where it is undefined."""
    possible = sum(points for points, _ in criteria if points > 0)
    if possible == 0 or any(label == "?" for _, label in criteria):
        return None
    return sum(points for points, label in criteria if label == "+") / possible


def drawn(study):
    """A study (list of examples, each with theme and criteria) as a frame, one response an example."""
    lines = ["response | criterion | points | theme | axis | cluster | judge"]
    for number, (theme, criteria) in enumerate(study):
        lines += [
            f"r{number} | r{number}c{index} | {points} | {theme} | {axis} | {cluster} | {label}"
            for index, (points, label, axis, cluster) in enumerate(criteria)
        ]
    return tables.verdicts("\n".join(lines))


points = st.integers(-10, 10).filter(bool)
criterion = st.tuples(points, st.sampled_from("+-"), st.sampled_from((*AXES, "")), st.sampled_from((*CLUSTERS, "")))
unsure_criterion = st.tuples(points, st.sampled_from("+-?"), st.sampled_from(AXES), st.sampled_from((*CLUSTERS, "")))
example = st.tuples(st.sampled_from((*THEMES, "")), st.lists(criterion, min_size=1, max_size=8))
unsure_example = st.tuples(st.sampled_from(THEMES), st.lists(unsure_criterion, min_size=1, max_size=6))


def reference_groups(study):
    """Every group's list of scores, None where undefined."""
    groups: dict[str, list[float | None]] = {}
    for theme, criteria in study:
        overall = reference_score([(p, label) for p, label, _, _ in criteria])
        groups.setdefault("overall", []).append(overall)
        if theme:
            groups.setdefault(f"theme:{theme}", []).append(overall)
        for place, kind in ((2, "axis"), (3, "cluster")):
            for tag in {c[place] for c in criteria} - {""}:
                part = [(c[0], c[1]) for c in criteria if c[place] == tag]
                groups.setdefault(f"{kind}:{tag}", []).append(reference_score(part))
    return groups


@given(st.lists(st.one_of(example, unsure_example), min_size=1, max_size=6))
def test_every_group_agrees_with_the_reference_formula(study):
    found = mean_scores(response_scores(drawn(study))).set_index("group")
    expected = reference_groups(study)
    assert set(found.index) == set(expected)
    for group, values in expected.items():
        defined = [value for value in values if value is not None]
        row = found.loc[group]
        assert (row["n_examples"], row["n_undefined"]) == (len(defined), len(values) - len(defined))
        if defined:
            mean = sum(defined) / len(defined)
            assert row["raw_mean"] == pytest.approx(mean, abs=1e-12)
            assert row["score"] == pytest.approx(min(max(mean, 0), 1), abs=1e-12)
        else:
            assert math.isnan(row["raw_mean"])
            assert math.isnan(row["score"])


@given(st.lists(example, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(study, random):
    frame = drawn(study)
    order = list(range(len(frame)))
    random.shuffle(order)
    straight, shuffled = (mean_scores(response_scores(f)).set_index("group") for f in (frame, frame.iloc[order]))
    pd.testing.assert_frame_equal(straight.sort_index(), shuffled.sort_index(), check_exact=False, rtol=1e-12)


@given(st.lists(example, min_size=1, max_size=5))
def test_no_score_is_above_one_and_only_the_mean_is_clipped(study):
    each = response_scores(drawn(study))
    assert not each["score"].gt(1).any()
    summary = mean_scores(each)
    assert not summary["score"].lt(0).any()
    assert summary["raw_mean"].isna().equals(summary["score"].isna())


@given(st.lists(st.integers(1, 10), min_size=1, max_size=8))
def test_all_met_and_nothing_undesirable_is_one(rubric):
    lines = [f"r1 | c{n} | {p} | +" for n, p in enumerate(rubric)]
    assert score_of("\n".join(["response | criterion | points | judge", *lines])) == 1


@given(example, st.integers(1, 10))
def test_one_more_undesirable_thing_that_happened_lowers_the_score_by_its_points(one, cost):
    theme, criteria = one
    with_it = (theme, [*criteria, (-cost, "+", "", "")])
    before, after = (response_scores(drawn([study])).query("group == 'overall'") for study in (one, with_it))
    possible = before["possible"].item()
    if possible:
        assert after["score"].item() == pytest.approx(before["score"].item() - cost / possible, abs=1e-12)
    else:
        assert after["score"].isna().all()


@given(example, st.integers(1, 10))
def test_an_undesirable_thing_that_did_not_happen_changes_nothing(one, cost):
    theme, criteria = one
    with_it = (theme, [*criteria, (-cost, "-", "", "")])
    before, after = (response_scores(drawn([study])).query("group == 'overall'") for study in (one, with_it))
    assert after["score"].tolist() == pytest.approx(before["score"].tolist(), nan_ok=True)


# ---------------------------------------------------------------- the rules, one by one


def test_met_points_over_positive_points():
    # (7 - 4) / (7 + 5): the undesirable criterion costs 4 and is not among the possible points
    drawing = """
        response | criterion | points | judge
        r1       | c1        |  7     |  +
        r1       | c2        |  5     |  -
        r1       | c3        | -4     |  +
    """
    assert score_of(drawing) == 3 / 12


def test_an_example_may_score_below_zero_and_its_raw_mean_too():
    # (0 - 9) / 3 = -3 for r1 and 1 for r2: the raw mean is -1, the score 0
    row = mean_of("""
        response | criterion | points | judge
        r1       | c1        |  3     |  -
        r1       | c2        | -9     |  +
        r2       | c3        |  2     |  +
    """)
    assert (row["raw_mean"], row["score"], row["n_examples"]) == (-1, 0, 2)


def test_without_positive_points_there_is_no_score_and_it_is_counted_and_not_taken_for_zero():
    row = mean_of("""
        response | criterion | points | judge
        r1       | c1        | -3     |  -
        r2       | c2        |  2     |  +
    """)
    assert (row["raw_mean"], row["n_examples"], row["n_undefined"]) == (1, 1, 1)


def test_where_nothing_is_defined_there_is_no_mean():
    row = mean_of("""
        response | criterion | points | judge
        r1       | c1        | -3     |  +
    """)
    assert math.isnan(row["raw_mean"])
    assert math.isnan(row["score"])
    assert (row["n_examples"], row["n_responses"], row["n_undefined"]) == (0, 0, 1)


def test_a_missing_verdict_leaves_no_score_in_any_group_and_is_counted():
    drawing = """
        response | criterion | points | axis     | theme   | judge
        r1       | c1        |  3     | accuracy | hedging |  +
        r1       | c2        |  2     | accuracy | hedging |
    """
    for group in ("overall", "axis:accuracy", "theme:hedging"):
        row = mean_of(drawing, group, n_expected=2)
        assert math.isnan(row["score"]), group
        assert row["n_undefined"] == 1, group


def test_what_could_not_be_assessed_leaves_no_score_where_it_counts():
    drawing = """
        response | criterion | points | axis         | judge
        r1       | c1        |  3     | accuracy     |  +
        r1       | c2        |  2     | completeness |  ?
    """
    assert math.isnan(score_of(drawing))
    assert math.isnan(score_of(drawing, "axis:completeness"))
    assert score_of(drawing, "axis:accuracy") == 1


def test_an_axis_counts_its_own_criteria_alone():
    drawing = """
        response | criterion | points | axis         | judge
        r1       | c1        |  3     | accuracy     |  +
        r1       | c2        | -2     | accuracy     |  +
        r1       | c3        |  5     | completeness |  -
        r1       | c4        |  1     |              |  +
    """
    assert score_of(drawing, "axis:accuracy") == pytest.approx(1 / 3)  # (3 - 2) / 3
    assert score_of(drawing, "axis:completeness") == 0  # 0 / 5
    assert score_of(drawing) == pytest.approx(2 / 9)  # (3 - 2 + 1) / (3 + 5 + 1)


def test_an_axis_without_positive_points_is_left_out_and_counted():
    drawing = """
        response | criterion | points | axis         | judge
        r1       | c1        | -2     | accuracy     |  -
        r1       | c2        |  5     | completeness |  +
        r2       | c3        |  4     | accuracy     |  -
    """
    row = mean_of(drawing, "axis:accuracy")
    assert (row["raw_mean"], row["n_examples"], row["n_undefined"]) == (0, 1, 1)  # r2 alone: 0 / 4


def test_a_theme_is_the_mean_of_the_overall_scores_of_its_examples():
    drawing = """
        response | criterion | points | theme         | judge
        r1       | c1        |  2     | hedging       |  +
        r2       | c2        |  4     | hedging       |  -
        r3       | c3        |  1     | communication |  +
        r4       | c4        |  1     |               |  -
    """
    assert mean_of(drawing, "theme:hedging")["score"] == 0.5  # (1 + 0) / 2
    assert mean_of(drawing, "theme:communication")["score"] == 1
    assert mean_of(drawing)["score"] == 0.5  # (1 + 0 + 1 + 0) / 4


def test_a_category_is_of_examples_and_a_cluster_is_of_criteria():
    drawing = """
        response | criterion | points | category | cluster | level   | judge
        r1       | c1        |  2     | enough   | hedges  | cluster |  +
        r1       | c2        |  2     | enough   |         | example |  -
    """
    assert score_of(drawing, "physician_agreed_category:enough") == 0.5
    assert score_of(drawing, "cluster:hedges") == 1
    assert score_of(drawing, "level:example") == 0


def test_repeats_of_an_example_each_count_and_the_example_counts_once():
    drawing = """
        response | example | criterion | points | judge
        r1       | e1      | c1        |  2     |  +
        r2       | e1      | c1        |  2     |  +
        r3       | e2      | c2        |  2     |  -
    """
    row = mean_of(drawing)
    assert row["raw_mean"] == pytest.approx(2 / 3)  # (1 + 1 + 0) / 3 as in the reference, not (1 + 0) / 2
    assert (row["n_examples"], row["n_responses"]) == (2, 3)


def test_judges_models_and_data_sets_are_apart():
    drawing = """
        response | model | criterion | points | judge_a | judge_b
        r1       | Alder | c1        |  2     |  +      |  -
        r2       | Briar | c1        |  2     |  -      |  -
    """
    found = mean_scores(response_scores(tables.verdicts(drawing), by=["overall"]))
    assert found.set_index(["model", "judge"])["score"].to_dict() == {
        ("Alder", "judge_a"): 1, ("Alder", "judge_b"): 0, ("Briar", "judge_a"): 0, ("Briar", "judge_b"): 0,
    }  # fmt: skip


def test_the_data_set_of_a_score_is_what_the_response_was_made_for():
    found = response_scores(tables.verdicts("response | criterion | judge\nr1 | c1 | +", evaluation="invented_hard"))
    assert set(found["dataset"]) == {"invented_hard"}


def test_a_criterion_without_points_is_not_scored():
    drawing = """
        response | criterion | points | judge
        r1       | c1        |  2     |  +
        r1       | c2        |        |  -
    """
    assert score_of(drawing) == 1


def test_only_the_groups_that_were_asked_for_come():
    frame = tables.verdicts("response | criterion | theme | axis | judge\nr1 | c1 | hedging | accuracy | +")
    assert set(response_scores(frame, by=["axis"])["group"]) == {"axis:accuracy"}
    assert set(response_scores(frame, by=["theme", "overall"])["group"]) == {"theme:hedging", "overall"}


# ---------------------------------------------------------------- nothing to score


@pytest.mark.parametrize("by", [REPORTED_GROUPINGS, *([group] for group in REPORTED_GROUPINGS), []])
def test_no_verdicts_give_empty_tables_with_their_columns(by, tmp_path):
    engine = open_study(str(tmp_path / "empty.db"))
    with reading(engine) as session:
        each = response_scores(frames.verdicts(session), by=by)
    engine.dispose()
    assert each.empty
    assert {"group", "score", "achieved", "possible"} <= set(each.columns)
    summary = mean_scores(each)
    assert summary.empty
    assert list(summary.columns) == [
        "model", "judge", "dataset", "group", "n_examples", "n_responses", "n_undefined", "raw_mean", "score",
    ]  # fmt: skip


def test_criteria_without_any_points_give_empty_tables():
    assert mean_scores(response_scores(tables.verdicts("response | criterion | points | judge\nr1 | c1 | | +"))).empty


def test_the_study_in_the_database_scores_as_drawn(database_url):
    """Points 7, -4 judged +-; 5, 3 judged +?: the first is 7 / 7, the second cannot be scored."""
    small = world.made(database_url, judged="+-+?")
    with reading(small.engine) as session:
        found = mean_scores(response_scores(frames.verdicts(session), by=["overall"]))
    (row,) = found.to_dict(orient="records")
    small.engine.dispose()
    assert row == {
        "model": "Alder-2", "judge": "Magpie", "dataset": "invented", "group": "overall",
        "n_examples": 1, "n_responses": 1, "n_undefined": 1, "raw_mean": 1.0, "score": 1.0,
    }  # fmt: skip


def test_a_verdict_that_is_missing_in_the_database_leaves_no_score(database_url):
    small = world.made(database_url, judged="+ ++")
    with reading(small.engine) as session:
        found = response_scores(frames.verdicts(session), by=["overall"])
    small.engine.dispose()
    assert found["score"].isna().tolist() == [True, False]
