"""Scores by group with their intervals: against `score`, the t interval, and the reference tool's own files."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from evalcore.rubric import queries as opinion_queries
from evalcore.rubric.scores import GROUPINGS, group_scores, mean_scores, scores_of_verdicts
from evalcore.stats.intervals import clustered_means
from evalcore.study.db import reading
from evalcore.study.schema import TASK_TAGS
from tests import population, rubric_rows, tables
from tests.invented import bring, study
from tests.rubric_rows import of_verdicts

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def chance(number=20261120):
    return np.random.default_rng(number)


def only(found, tag, model="Alder"):
    """The row of one tag and model."""
    (row,) = found.loc[found["tag"].eq(tag) & found["model"].eq(model)].to_dict(orient="records")
    return row


# ---------------------------------------------------------------- as metrics.score has them

points = st.integers(-10, 10).filter(bool)
criterion = st.tuples(
    points, st.sampled_from("+-"), st.sampled_from(["accuracy", "completeness", ""]), st.sampled_from(["a", "b", ""]),
    st.sampled_from(["example", "cluster"]),
)  # fmt: skip
example = st.tuples(
    st.sampled_from(["hedging", "communication", ""]), st.sampled_from(["simple", "detailed", ""]),
    st.lists(st.tuples(criterion, st.sampled_from("+-"), st.sampled_from("+-")), min_size=1, max_size=5), st.integers(1, 3),
)  # fmt: skip
studies = st.lists(example, min_size=1, max_size=5)


def drawn(examples, **columns):
    """Examples (theme, category, criteria with a label by response, number of responses) of two models as a verdict table."""
    lines = ["response | example | model | criterion | points | theme | category | axis | cluster | level | judge"]
    for number, (theme, category, criteria, n_responses) in enumerate(examples):
        for repeat in range(n_responses):
            model = "Birch" if repeat == 1 else "Alder"
            for place, ((value, one, axis, cluster, level), two, three) in enumerate(criteria):
                label = (one, two, three)[repeat]
                tags = f"{theme} | {category} | {axis} | {cluster} | {level}"
                lines.append(
                    f"r{number}.{repeat} | e{number} | {model} | c{number}.{place} | {value} | {tags} | {label}"
                )
    return tables.verdicts("\n".join(lines), **columns)


@given(studies)
def test_every_group_has_the_score_that_metrics_score_gives(examples):
    verdicts = drawn(examples)
    by = ["overall", "theme", "axis", "category", "level"]
    expected = (
        mean_scores(scores_of_verdicts(verdicts, by)).rename(columns={"group": "tag"}).set_index(["tag", "model"])
    )
    found = group_scores(of_verdicts(verdicts), "judge", by=by).set_index(["tag", "model"])
    assert set(found.index) == set(expected.index)
    assert found.index.is_unique
    names = ["n_examples", "n_responses", "n_undefined", "raw_mean", "score"]
    for name in names:
        assert found[name].tolist() == pytest.approx(expected.loc[list(found.index), name].tolist(), nan_ok=True)


@given(studies, st.integers(0, 2**32))
def test_the_order_of_items_does_not_matter(examples, number):
    rubric_data = of_verdicts(drawn(examples))
    mixed = group_scores(rubric_rows.shuffled(rubric_data, chance(number)), "judge", GROUPINGS)
    pd.testing.assert_frame_equal(mixed, group_scores(rubric_data, "judge", GROUPINGS), rtol=1e-9)


@given(studies)
def test_what_is_shown_lies_in_its_interval_and_between_nought_and_one(examples):
    found = group_scores(of_verdicts(drawn(examples)), "judge", by=GROUPINGS)
    known = found.loc[found["low"].notna()]
    assert known["raw_low"].le(known["raw_mean"]).all()
    assert known["raw_mean"].le(known["raw_high"]).all()
    assert known[["score", "low", "high"]].clip(0, 1).equals(known[["score", "low", "high"]])
    assert found["score"].isna().equals(found["n_examples"].eq(0))
    assert found.loc[found["n_examples"].lt(2), "low"].isna().all()
    assert found["small"].all()


def test_groups_come_in_the_order_that_was_asked_for():
    rubric_data, _ = population.drawn(chance(), n_examples=40, models=("Birch", "Alder"))
    found = group_scores(rubric_data, "Magpie", by=["axis", "overall", "theme"])
    assert found["grouping"].drop_duplicates().tolist() == ["axis", "overall", "theme"]
    themes = found.loc[found["grouping"].eq("theme")]
    assert themes["group"].is_monotonic_increasing
    assert themes["model"].tolist() == ["Alder", "Birch"] * 4
    assert only(found, "overall")["group"] == "overall"
    every = set(group_scores(rubric_data, "Magpie", GROUPINGS)["grouping"])
    assert every == set(GROUPINGS) - {"category", "cluster", *TASK_TAGS}  # nothing is tagged with one


def test_a_category_brings_the_clusters_of_its_criteria():
    verdicts = drawn([("hedging", "simple", [((5, "+", "accuracy", "a", "cluster"), "-", "-")], 1)])
    found = group_scores(of_verdicts(verdicts), "judge", by=["category"])
    assert found[["grouping", "group", "tag"]].to_numpy().tolist() == [
        ["category", "simple", "physician_agreed_category:simple"], ["cluster", "a", "cluster:a"],
    ]  # fmt: skip
    assert group_scores(of_verdicts(verdicts), "judge", by=["cluster"])["tag"].tolist() == ["cluster:a"]


DRAWING = """
    response | example | criterion | points | axis     | theme   | judge
    r1       | e1      | c1        |   5    | accuracy | hedging |  +
    r1       | e1      | c2        |   5    |          | hedging |  -
    r2       | e2      | c3        |  -5    | accuracy | hedging |  -
    r2       | e2      | c4        |   5    |          | hedging |  +
    r3       | e3      | c5        |   5    | accuracy | hedging |  ?
    r3       | e3      | c6        |   5    |          | hedging |  +
    r4       | e4      | c7        |   5    | accuracy | hedging |  +
"""


def test_what_has_no_score_in_a_group_is_left_out_and_counted_with_its_reason():
    found = group_scores(of_verdicts(tables.verdicts(DRAWING)), "judge", GROUPINGS)
    accuracy = only(found, "axis:accuracy")
    # e1 and e4 score 1; e2 has no positive points; e3 has no label.
    assert (
        accuracy["n_examples"],
        accuracy["n_left_out"],
        accuracy["n_without_positive"],
        accuracy["n_undefined"],
    ) == (2, 2, 1, 2)
    assert accuracy["raw_mean"] == 1
    theme = only(found, "theme:hedging")
    assert (theme["n_examples"], theme["n_left_out"], theme["n_without_positive"]) == (3, 1, 0)
    assert theme["raw_mean"] == pytest.approx((0.5 + 1 + 1) / 3)


def test_where_all_examples_score_the_same_there_is_no_interval():
    accuracy = only(group_scores(of_verdicts(tables.verdicts(DRAWING)), "judge", GROUPINGS), "axis:accuracy")
    assert math.isnan(accuracy["low"])
    assert math.isnan(accuracy["high"])


def test_from_twenty_examples_on_a_group_is_not_small():
    for n, expected in ((19, True), (20, False)):
        rubric_data = rubric_rows.of_columns(
            example=list(range(1, n + 1)), criterion=[1] * n, judges={"Magpie": ("+-" * 10)[:n]}
        )
        assert group_scores(rubric_data, "Magpie", by=["theme"])["small"].tolist() == [expected]


def test_a_study_without_items_has_the_columns_and_no_row():
    rubric_data, _ = population.drawn(chance(), n_examples=3)
    empty = group_scores(rubric_data.where(np.zeros(len(rubric_data.items))), "Magpie", GROUPINGS)
    assert empty.empty
    assert {"grouping", "group", "model", "n_examples", "score", "low", "high"} <= set(empty.columns)


# ---------------------------------------------------------------- intervals


def test_the_interval_is_the_t_interval_of_the_examples_means():
    rubric_data, _ = population.drawn(chance(), n_examples=30, n_repeats=3)
    scores = score_by_example(rubric_data)
    expected = scipy.stats.t.interval(0.95, len(scores) - 1, scores.mean(), scipy.stats.sem(scores))
    row = only(group_scores(rubric_data, "Magpie", by=["overall"]), "overall")
    assert (row["raw_low"], row["raw_high"]) == pytest.approx(expected)
    assert (row["n_examples"], row["n_responses"]) == (30, 90)


def score_by_example(rubric_data):
    """Mean score of the responses to each example, in plain pandas."""
    items = rubric_data.items.assign(met=rubric_data.judged["Magpie"].astype(float))
    items = items.assign(achieved=items["points"] * items["met"], possible=items["points"].clip(lower=0))
    sums = items.groupby(["example_id", "response_id"])[["achieved", "possible"]].sum()
    return (sums["achieved"] / sums["possible"]).groupby("example_id").mean()


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(-4, 4)), max_size=25),
    st.randoms(use_true_random=False),
)
def test_clustered_means_are_what_the_formula_says(rows, random):
    random.shuffle(rows)
    cells, clusters, values = (
        np.array([row[place] for row in rows], dtype=kind) for place, kind in ((0, int), (1, int), (2, float))
    )
    found = clustered_means(cells, clusters, values, n_cells=3)
    for cell in range(3):
        mine = pd.DataFrame({"cluster": clusters, "value": values}).loc[cells == cell]
        row = found.iloc[cell]
        assert (row["n_values"], row["n_clusters"]) == (len(mine), mine["cluster"].nunique())
        if mine.empty:
            assert row[["mean", "low", "high"]].isna().all()
            continue
        mean, n = mine["value"].mean(), len(mine)
        residuals = (mine["value"] - mean).groupby(mine["cluster"]).sum()
        assert row["mean"] == pytest.approx(mean)
        if len(residuals) < 2 or residuals.abs().max() < 1e-9:
            assert math.isnan(row["low"])
            continue
        g = len(residuals)
        half = scipy.stats.t.ppf(0.975, g - 1) * math.sqrt(g / (g - 1) * (residuals**2).sum()) / n
        assert (row["low"], row["high"]) == pytest.approx((mean - half, mean + half))


@pytest.mark.slow
@pytest.mark.parametrize("n_examples", [12, 60])
def test_with_repeats_it_covers_what_it_says_and_responses_taken_apart_would_not(n_examples):
    rng, held, held_apart, n_draws = chance(), 0, 0, 2_000
    clusters = np.repeat(np.arange(n_examples), 4)
    for _ in range(n_draws):
        values = 0.4 + rng.normal(0, 0.3, n_examples)[clusters] + rng.normal(0, 0.2, len(clusters))
        cells = np.zeros(len(clusters), dtype=int)
        row = clustered_means(cells, clusters, values, n_cells=1).iloc[0]
        held += row["low"] <= 0.4 <= row["high"]
        apart = clustered_means(cells, np.arange(len(clusters)), values, n_cells=1).iloc[0]
        held_apart += apart["low"] <= 0.4 <= apart["high"]
    assert 0.937 <= held / n_draws <= 0.963  # .95 within 2.7 standard errors
    assert held_apart / n_draws < 0.80


# ---------------------------------------------------------------- the reference tool's own files


@pytest.mark.skipif(not DATA.is_dir(), reason=f"The real HealthBench files are not here: {DATA} does not exist.")
@pytest.mark.parametrize(
    ("name", "n_at_least"),
    [("healthbench_hard_gpt-4.1-mini_20260117_121957", 11), ("healthbench_gpt-4o-mini_20260113_121418", 3)],
)
def test_the_scores_are_those_of_the_tools_own_files(name, n_at_least, sqlite_database_url):
    path = DATA / "results" / f"{name}_allresults.json"
    with study(sqlite_database_url) as engine:
        for examples in sorted((DATA / "examples").glob("*.jsonl")):
            bring(engine, examples)
        bring(engine, path, model="a model", judge="gpt-4.1")
        with reading(engine) as session:
            rubric_data = opinion_queries.load(session)
    found = group_scores(rubric_data, "gpt-4.1", by=["overall", "theme", "axis", "category", "level"])
    told = json.loads((DATA / "results" / f"{name}.json").read_text(encoding="utf-8"))
    n_compared = 0
    for row in found.to_dict(orient="records"):
        key = "overall_score" if row["tag"] == "overall" else row["tag"]
        if row["n_examples"] >= 10 and told[f"{key}:n_samples"] == row["n_examples"]:
            assert row["score"] == pytest.approx(told[key], abs=1e-12)
            n_compared += 1
    assert n_compared >= n_at_least
