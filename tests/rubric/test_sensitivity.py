"""What the missing reads could have said: cannot assess, and drawn but never read."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.rubric import queries as rubric_data
from evalcore.rubric.sensitivity import Scenario, sensitivity, sensitivity_sentence
from evalcore.study.db import reading
from tests import world
from tests.population import corrected_scores, drawn
from tests.rubric_rows import shuffled


def study(seed=1, *, share_unknown=0.1, **how):
    rng = np.random.default_rng(seed)
    found, _ = drawn(rng, **({"n_examples": 60, "share_read": 0.6, "whole_responses": True} | how))
    unknown = rng.random(len(found.reads)) < share_unknown
    return replace(found, reads=found.reads.assign(met=found.reads["met"].mask(unknown)))


def by_scenario(table, column="corrected"):
    return {Scenario(row["scenario"]): row[column] for row in table.to_dict(orient="records")}


def held_back(rubric_data, n):
    """The same study before its last responses were read, and these."""
    late = sorted(rubric_data.reads["response_id"].unique())[-n:]
    is_late = rubric_data.reads["response_id"].isin(late)
    unread = rubric_data.reads.loc[is_late, ["response_id", "inclusion_probability"]].drop_duplicates("response_id")
    return replace(rubric_data, reads=rubric_data.reads.loc[~is_late].reset_index(drop=True)), unread


def test_a_criterion_nobody_could_assess_counts_by_the_sign_of_its_points():
    # everything is read, so that the corrected score is what physicians say: sum a y; an item that nobody could assess adds max(a, 0) at best
    rubric_data = study(share_read=1.0, judges={"Magpie": 0.8})
    a = (
        rubric_data.items["points"]
        / rubric_data.items["points"].clip(lower=0).groupby(rubric_data.items["response_id"]).transform("sum")
        / 60
    )
    met = rubric_data.reads.set_index("row")["met"].reindex(rubric_data.items.index)
    best = (a * met.fillna(a.gt(0).astype(float))).sum()
    worst = (a * met.fillna(a.lt(0).astype(float))).sum()
    found = by_scenario(sensitivity(rubric_data))
    assert found[Scenario.CANNOT_ASSESS_FOR] == pytest.approx(best)
    assert found[Scenario.CANNOT_ASSESS_AGAINST] == pytest.approx(worst)
    assert found[Scenario.UNREAD_FOR] == found[Scenario.ESTIMATED]  # nothing that was drawn is unread


def test_a_response_that_was_drawn_and_never_read_counts_as_if_each_criterion_of_it_had_been_read_so():
    whole = study(share_unknown=0.0)
    before, unread = held_back(whole, 8)
    is_late = whole.reads["response_id"].isin(unread["response_id"])
    good = whole.items["points"].gt(0).to_numpy()[whole.reads["row"].to_numpy()]
    table = sensitivity(before, unread)
    found, taken = by_scenario(table), by_scenario(table, "n_taken")
    for scenario, label in ((Scenario.UNREAD_FOR, good), (Scenario.UNREAD_AGAINST, ~good)):
        met = whole.reads["met"].mask(is_late, pd.Series(label.astype(float)))
        expected = corrected_scores(replace(whole, reads=whole.reads.assign(met=met))).iloc[0]
        assert found[scenario] == pytest.approx(expected["corrected"])
        assert taken[scenario] == 8
    assert by_scenario(table, "n_of")[Scenario.UNREAD_FOR] == whole.reads["response_id"].nunique()
    said = sensitivity_sentence(table)
    assert said.startswith("If the 8 responses of")
    assert (
        "of drawings that have begun and that nobody has read (yet) had all spoken for the model, or all against it"
        in said
    )


@settings(max_examples=2, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.05, 0.3]), st.integers(0, 12))
def test_the_bounds_hold_what_is_estimated_and_what_would_have_been_read(seed, share_unknown, n_late):
    truth = study(seed, share_unknown=0.0, share_read=1.0, models=("Alder", "Birch"), n_examples=40)
    rng = np.random.default_rng(seed)
    unknown = replace(
        truth, reads=truth.reads.assign(met=truth.reads["met"].mask(rng.random(len(truth.reads)) < share_unknown))
    )
    before, unread = held_back(unknown, n_late) if n_late else (unknown, None)
    table = sensitivity(before, unread)
    assert len(table) == 2 * len(Scenario)
    for model, rows in table.groupby("model"):
        found = by_scenario(rows)
        would = corrected_scores(truth).set_index("model").loc[model, "corrected"]  # all read: no fit is left in it
        assert found[Scenario.ALL_AGAINST] - 1e-9 <= would <= found[Scenario.ALL_FOR] + 1e-9
        for low, high in (
            (Scenario.CANNOT_ASSESS_AGAINST, Scenario.CANNOT_ASSESS_FOR),
            (Scenario.UNREAD_AGAINST, Scenario.UNREAD_FOR),
        ):
            assert found[low] <= found[high] + 1e-9
    one = sensitivity(shuffled(before, rng), unread)
    pd.testing.assert_frame_equal(one, table)


def test_a_study_without_missing_reads_says_so_and_moves_nowhere():
    table = sensitivity(study(share_unknown=0.0))
    assert table["shift"].abs().max() == 0
    assert table["n_taken"].sum() == 0
    assert sensitivity_sentence(table).startswith("No read is missing")


def test_too_little_read_has_no_score_and_no_shift():
    rubric_data = study(share_read=0.02)
    table = sensitivity(rubric_data)
    assert table["corrected"].isna().all()
    assert table["shift"].isna().all()
    assert "Too little has been read" in sensitivity_sentence(table)


def test_responses_that_were_drawn_here_and_not_read_are_told_with_their_probability(sqlite_database_url):
    small = world.made(sqlite_database_url, points=((7,),) * 10, judged="+" * 10, languages={})
    reader = "Dr. Imani Noor"
    world.assigned(small, n_items=4, n_readers=1, readers=(reader,))
    with reading(small.engine) as session:
        assert rubric_data.unread(session).empty  # nobody has begun
    world.submitted(small, reader, "+")
    with reading(small.engine) as session:
        known, unread = rubric_data.load(session), rubric_data.unread(session)
    small.engine.dispose()
    # one of four drawn of ten is read: 1/10, on the scale of the read one
    assert unread["inclusion_probability"].tolist() == pytest.approx([known.reads["inclusion_probability"].max()] * 3)
    assert not set(unread["response_id"]) & set(known.reads["response_id"])
    taken = by_scenario(sensitivity(known, unread), "n_taken")
    assert (taken[Scenario.UNREAD_FOR], taken[Scenario.CANNOT_ASSESS_FOR]) == (3, 0)
