"""The part of a study that a comparison is about: data sets, examples, judges together."""

import numpy as np
import pandas as pd
from hypothesis import given, strategies as st

from evalcore.rubric.data import RubricData, is_scored
from evalcore.rubric.results import common_weighting, evaluations, jury, part_of
from evalcore.study.analysis import Analysis
from tests.population import drawn

TWO = {"Magpie": 0.8, "Wren": 0.7}


def made(seed: int = 1, **wanted: object) -> RubricData:
    """A drawn study with two models and two judges."""
    return drawn(
        np.random.default_rng(seed), **{"n_examples": 12, "models": ("Alder", "Briar"), "judges": TWO} | wanted
    )[0]


def in_two_data_sets(rubric_data: RubricData) -> RubricData:
    """Examples 1 to 4 belong to a second, smaller data set, on which Wren gave no label."""
    second = rubric_data.items["example_id"].le(4)
    names = pd.Series("first", index=rubric_data.items.index).mask(second, "second").astype("category")
    judged = rubric_data.judged.assign(Wren=rubric_data.judged["Wren"].mask(second))
    return RubricData(rubric_data.items.assign(evaluation=names), judged, rubric_data.reads)


def test_data_sets_come_with_their_judges_the_one_with_most_responses_first():
    table = evaluations(in_two_data_sets(made())).to_dict(orient="records")
    assert [(row["evaluation"], row["n_examples"], row["n_responses"], row["n_models"]) for row in table] == [
        ("first", 8, 16, 2),
        ("second", 4, 8, 2),
    ]
    assert set(table[0]["judges"]) == {"Magpie", "Wren"}
    assert table[1]["judges"] == ("Magpie",)
    assert [row["n_repeats"] for row in table] == [1, 1]


def test_repeats_are_told_and_an_empty_study_has_no_data_set():
    repeated = made(n_repeats=3)
    assert evaluations(repeated)["n_repeats"].tolist() == [3]
    nothing = repeated.where(np.zeros(len(repeated.items), dtype=bool))
    assert evaluations(nothing).empty


def test_a_part_holds_its_items_with_what_was_said_of_them_and_no_other_name():
    whole = in_two_data_sets(made(share_read=0.6))
    found = part_of(whole, Analysis(evaluation="second", judges=("Magpie",)), [2, 3, 9])
    assert set(found.items["example_id"]) == {2, 3}
    assert list(found.judged.columns) == ["Magpie"]
    assert list(found.items["evaluation"].cat.categories) == ["second"]
    kept = whole.items["item_id"].isin(found.items["item_id"])
    assert found.judged["Magpie"].tolist() == whole.judged.loc[kept, "Magpie"].tolist()
    expected = whole.reads.loc[whole.reads["example_id"].isin([2, 3])]
    assert found.reads["item_id"].tolist() == expected["item_id"].tolist()
    assert len(expected) > 0
    assert found.items["item_id"].to_numpy()[found.reads["row"]].tolist() == found.reads["item_id"].tolist()


def test_on_cluster_criteria_alone_a_response_is_asked_no_more_than_these():
    whole = made()
    items = whole.items.assign(level=np.where(whole.items["position"].le(2), "cluster", "example"))
    tagged = RubricData(items.astype({"level": "category"}), whole.judged, whole.reads)
    found = part_of(tagged, Analysis(evaluation="invented", judges=tuple(whole.judges), subset="consensus"))
    assert found.items["position"].max() == 2
    assert found.items["n_expected"].eq(found.items.groupby("response_id")["item_id"].transform("size")).all()
    possible = found.items["points"].clip(lower=0).groupby(found.items["response_id"]).transform("sum")
    assert is_scored(found.items).tolist() == possible.gt(0).tolist()


def test_several_judges_speak_as_their_mean_and_are_silent_where_one_of_them_is():
    whole = made()
    whole.judged.loc[3, "Wren"] = np.nan
    one, name = jury(whole, ["Magpie", "Wren"])
    assert name == "Magpie and Wren"
    assert list(one.judged.columns) == [name]
    expected = (whole.judged["Magpie"] + whole.judged["Wren"]) / 2
    assert np.isnan(one.judged[name].to_numpy()[3])
    pd.testing.assert_series_equal(one.judged[name], expected, check_names=False)


def test_one_judge_alone_stays_itself():
    whole = made()
    one, name = jury(whole, ["Wren"])
    assert (name, list(one.judged.columns)) == ("Wren", ["Wren"])
    assert one.judged["Wren"].tolist() == whole.judged["Wren"].tolist()


@given(seed=st.integers(0, 50), shuffle=st.integers(0, 50))
def test_the_order_of_judges_does_not_change_what_they_say_together(seed: int, shuffle: int):
    whole = made(seed)
    order = list(np.random.default_rng(shuffle).permutation(list(TWO)))
    first, _ = jury(whole, list(TWO))
    other, _ = jury(whole, order)
    assert first.judged.iloc[:, 0].tolist() == other.judged.iloc[:, 0].tolist()


def test_weights_are_offered_where_all_models_answered_the_same_examples_and_these_have_themes():
    whole = made()
    weights = common_weighting(whole)
    assert weights is not None
    assert set(weights.weights.index) == set(whole.items["example_id"])
    assert common_weighting(whole.where(~(whole.items["model"].eq("Alder") & whole.items["example_id"].eq(1)))) is None
    untagged = whole.items.assign(theme=pd.Categorical([None] * len(whole.items)))
    assert common_weighting(RubricData(untagged, whole.judged, whole.reads)) is None
