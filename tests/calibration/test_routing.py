"""At which confidence cases would go to a human."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from statsmodels.stats.proportion import proportion_confint

from evalcore.calibration.confidence import own_confidence
from evalcore.calibration.routing import NO_MISSES, NONE_SURE, SHARES, TOO_FEW, chosen, curves
from evalcore.triage import data as frames
from evalcore.triage.cases import misses
from evalcore.triage.data import Kind
from evalcore.triage.predictions import joined, predictions, usual_judges
from tests.triage_cases import drawn

SEED = 20_261_125


def chance(more=0):
    return np.random.default_rng(SEED + more)


def found_of(*rows, model="Alder-2"):
    """One row a case: gold (None: ambiguous), predicted (None: no valid sample), confidence."""
    table = pd.DataFrame(rows, columns=["gold", "predicted", "confidence"]).astype(float)
    return table.assign(
        row=range(len(table)),
        model=model,
        format="qa",
        kind=np.where(table["gold"].isna(), Kind.AMBIGUOUS, Kind.CLEAR),
        n_valid=table["predicted"].notna() * 5,
        n_invalid=table["predicted"].isna() * 5,
    )


EIGHT = (
    (4, 1, 0.4),  # dangerous misses
    (3, 1, 0.8),
    (4, 4, 0.6),  # right
    (1, 1, 0.8),
    (2, 2, 1.0),
    (3, 2, 0.4),  # wrong, and no danger
    (1, 4, 1.0),
    (4, None, None),  # nothing valid
    (None, 3, 0.6),  # ambiguous
    (None, 3, 1.0),
)


def test_every_threshold_says_what_it_costs_and_what_it_catches():
    table = curves(found_of(*EIGHT)).set_index("threshold")
    assert table.index.tolist() == [0.4, 0.6, 0.8, 1.0, np.inf]
    assert table[["k_routed", "n_routed"]].to_numpy().tolist() == [[1, 8], [3, 8], [4, 8], [6, 8], [8, 8]]
    assert table[["k_caught", "n_caught"]].to_numpy().tolist() == [[0, 2], [1, 2], [1, 2], [2, 2], [2, 2]]
    assert table[["k_exact_kept", "n_exact_kept"]].to_numpy().tolist() == [[3, 7], [3, 5], [2, 4], [1, 2], [0, 0]]
    assert table["k_ambiguous_routed"].tolist() == [0, 0, 1, 1, 2]
    assert table["caught"].tolist() == [0, 0.5, 0.5, 1, 1]
    assert np.isnan(table.loc[np.inf, ["exact_kept", "low_exact_kept"]].astype(float)).all()
    wanted = proportion_confint(3, 8, method="wilson")
    assert table.loc[0.6, ["low_routed", "high_routed"]].tolist() == pytest.approx(wanted)


def test_a_case_without_a_valid_sample_always_goes_and_one_that_nobody_read_does_not_enter():
    found = found_of((4, None, None), (4, None, None), (4, 4, 0.8))
    found.loc[1, "n_invalid"] = 0
    first = curves(found).iloc[0]
    assert (first["k_routed"], first["n_routed"], first["n_caught"]) == (1, 2, 0)


def test_boundary_and_unlabelled_cases_do_not_enter():
    found = found_of(*EIGHT)
    more = found.iloc[:2].assign(kind=[Kind.BOUNDARY, Kind.UNLABELLED], row=[50, 51])
    pd.testing.assert_frame_equal(curves(pd.concat([found, more])), curves(found))


@given(st.integers(0, 200))
def test_the_dangerous_misses_are_those_of_the_triage_page(seed):
    triage_data, _ = drawn(np.random.default_rng(seed), n_cases=30, n_samples=2, noise=1.5)
    triage_data = frames.described(triage_data)
    found = joined(triage_data, predictions(triage_data, usual_judges(triage_data)))
    listed = misses(triage_data, found, judges=usual_judges(triage_data))
    counted = (
        listed.loc[listed["rank"].lt(4)].groupby(["model", "format"], observed=True).size()
    )  # D to A, B, C; C to A
    for row in curves(own_confidence(found)).to_dict(orient="records"):
        assert row["n_caught"] == counted.get((row["model"], row["format"]), 0)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=300, unique=True), st.integers(0, 1000))
def test_a_threshold_that_is_set_is_counted_at_itself(thousandths, at):
    found = found_of(*[(4, 1, value / 1000) for value in thousandths])
    (row,) = curves(found, at=at / 1000).to_dict(orient="records")
    assert row["threshold"] == at / 1000
    assert row["k_routed"] == sum(value < at for value in thousandths)  # of more than 100 different ones too


def test_a_threshold_that_a_slider_is_a_hair_off_sends_no_case_that_stands_at_it():
    found = found_of((4, 1, 0.6), (4, 4, 0.6), (4, 4, 0.4))
    assert curves(found, at=0.6 + 1e-12)["k_routed"].tolist() == [1]


def test_cases_without_a_confidence_are_counted():
    found = found_of((4, 1, None), (4, 4, 0.6), (4, None, None), (None, 3, None))
    assert curves(found, at=0.5)[["n_without", "k_routed", "n_routed"]].to_numpy().tolist() == [[2, 2, 3]]


@given(st.integers(0, 500))
def test_the_higher_the_threshold_the_more_cases_go_and_the_more_misses_are_caught(seed):
    triage_data, _ = drawn(
        np.random.default_rng(seed), n_cases=40, models=["Alder-2"], n_samples=3, noise=1.0, invalid=0.2
    )
    triage_data = frames.described(triage_data)
    found = joined(triage_data, predictions(triage_data, usual_judges(triage_data)))
    table = curves(own_confidence(found))
    for _, group in table.groupby(["model", "format"]):
        for name in ("routed", "caught", "ambiguous_routed"):
            assert group[f"k_{name}"].is_monotonic_increasing
            assert set(group[f"n_{name}"]) == {group[f"n_{name}"].iloc[0]}
        last = group.iloc[-1]
        assert (last["k_routed"], last["n_exact_kept"]) == (last["n_routed"], 0)
        assert (group["n_exact_kept"] == group["n_routed"] - group["k_routed"]).all()


def test_the_order_of_rows_does_not_matter():
    found = found_of(*EIGHT, *EIGHT)
    shuffled = found.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(curves(shuffled), curves(found))
    pd.testing.assert_frame_equal(chosen(shuffled, rng=chance()), chosen(found, rng=chance()))


def test_the_threshold_is_the_lowest_that_catches_the_wanted_share_of_the_first_half():
    rng = chance()
    confidence = np.round(rng.uniform(0, 1, 400), 2)
    missed = rng.random(400) > confidence
    found = found_of(*[(4, 1 if miss else 4, value) for miss, value in zip(missed, confidence, strict=True)])
    line = chosen(found, rng=chance(), wanted=0.8).iloc[0]
    assert line["n_routed"] == 200
    assert line["caught_first"] >= 0.8
    # the halves as the same seed draws them
    first = np.zeros(400, dtype=bool)
    first[chance().permutation(400)[:200]] = True
    own = curves(found.loc[first]).set_index("threshold")
    assert line["caught_first"] == own.loc[line["threshold"], "caught"]
    assert (own.loc[own.index < line["threshold"], "caught"] < 0.8).all()
    other = curves(found.loc[~first]).set_index("threshold").loc[line["threshold"]]
    for name in list(SHARES)[:3]:
        assert (line[f"k_{name}"], line[f"n_{name}"]) == (other[f"k_{name}"], other[f"n_{name}"])


def test_the_halves_are_the_same_cases_for_every_model():
    one = found_of(*[(4, 1, 0.5), (4, 4, 0.9)] * 20)
    two = one.assign(model="Briar-1")
    table = chosen(pd.concat([one, two], ignore_index=True), rng=chance())
    assert table.loc[0, "k_caught"] == table.loc[1, "k_caught"]
    assert table.loc[0, "n_caught"] + table.loc[0, "n_misses_first"] == 20


def test_without_misses_there_is_no_threshold_and_the_reason():
    none = chosen(found_of(*[(4, 4, 0.5)] * 10), rng=chance()).iloc[0]
    assert none["undefined"] == NO_MISSES
    assert none[["threshold", "caught", "routed", "caught_first"]].isna().all()
    few = chosen(found_of((4, 1, 0.5), *[(4, 4, 0.5)] * 9), rng=chance()).iloc[0]
    assert few["undefined"] == TOO_FEW
    unsure = chosen(found_of(*[(4, 1, None)] * 10), rng=chance()).iloc[0]
    assert (unsure["undefined"], unsure["n_without"]) == (NONE_SURE, 5)
    assert np.isnan(unsure["threshold"])


def test_no_case_gives_empty_tables_with_all_columns():
    found = found_of(*EIGHT)
    for of in (curves, lambda table: chosen(table, rng=chance())):
        assert of(found.iloc[:0]).empty
        assert set(of(found.iloc[:0]).columns) == set(of(found).columns)


@pytest.mark.slow
def test_a_threshold_shown_where_it_was_chosen_flatters_itself_and_on_the_other_half_it_does_not():
    rng = chance(1)
    own, other = [], []
    for draw in range(300):
        confidence = np.round(rng.uniform(0, 1, 60), 3)
        missed = rng.random(60) < 0.4
        found = found_of(*[(4, 1 if miss else 4, value) for miss, value in zip(missed, confidence, strict=True)])
        line = chosen(found, rng=chance(draw), wanted=0.8).iloc[0]
        own.append(line["caught_first"] - min(line["threshold"], 1))  # confidence says nothing: a threshold t catches t
        other.append(line["caught"] - min(line["threshold"], 1))
    assert np.mean(own) > 0.02
    assert abs(np.mean(other)) < 3 * np.std(other) / np.sqrt(300)
