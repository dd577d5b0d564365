"""What the error of a corrected score is made of: the components come out as they went in, and price the next reads."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.planning.pilot_estimates import (
    MORE_READERS,
    MORE_RESPONSES,
    NOW,
    SECOND_READS,
    Target,
    components,
    moments,
    options,
    population,
)
from evalcore.planning.words import options_words
from evalcore.rubric.drawings import Goal
from evalcore.study.schema import Claim, Physicians
from tests.population import drawn

MADE = (0.09, 0.04, 0.16)  # of units, of readers, of the rest


def reads(rng, *, n_units=60, n_readers=5, share_double=0.4, made=MADE):
    """Units with a reader each, some with two; readers of very unequal loads."""
    unit = np.concatenate([np.arange(n_units), np.flatnonzero(rng.random(n_units) < share_double)])
    chances = np.arange(1, n_readers + 1) / np.arange(1, n_readers + 1).sum()
    reader = rng.choice(n_readers, len(unit), p=chances)
    for place in range(n_units, len(unit)):  # another than the first
        reader[place] = (reader[unit[place]] + 1 + rng.integers(n_readers - 1)) % n_readers if n_readers > 1 else 0
    units, readers, rest = (
        math.sqrt(value) * rng.normal(size=n) for value, n in zip(made, (n_units, n_readers, len(unit)), strict=True)
    )
    return 3 + units[unit] + readers[reader] + rest, unit, reader


def test_the_components_of_simulated_studies_come_out_on_average():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        x, unit, reader = reads(rng)
        out = moments(x, unit, reader, np.ones(len(x)))
        found.append((out.of_units, out.of_readers, out.of_rest))
    errors = np.abs(np.mean(found, axis=0) - MADE) / (np.std(found, axis=0) / math.sqrt(len(found)))
    assert errors.max() < 3.5, errors
    assert np.min(found) < 0  # by chance, which is why they are clipped and said to be


def test_units_drawn_by_importance_stand_for_all():
    # half of the units vary a hundred times as much and are drawn five times as often: by 1/pi they count as half again
    rng = np.random.default_rng(2)
    found = []
    for _ in range(300):
        wild = np.arange(200) % 2 == 0
        taken = np.flatnonzero(rng.random(200) < np.where(wild, 0.5, 0.1))
        of_unit = rng.normal(size=200) * np.where(wild, 1.0, 0.1)
        unit, reader = np.repeat(np.arange(len(taken)), 2), np.tile([0, 1], len(taken))
        x = np.repeat(of_unit[taken], 2) + 0.3 * rng.normal(size=len(unit))
        found.append(moments(x, unit, reader, np.repeat(1 / np.where(wild, 0.5, 0.1)[taken], 2)).of_units)
    assert np.mean(found) == pytest.approx(0.505, abs=3.5 * np.std(found) / math.sqrt(300) + 0.02)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.floats(0.1, 10))
def test_a_shift_changes_nothing_a_scale_its_square_and_the_order_nothing(seed, shift, scale):
    rng = np.random.default_rng(seed)
    x, unit, reader = reads(rng, n_units=20)
    one = moments(x, unit, reader, np.ones(len(x)))
    order = rng.permutation(len(x))
    other = moments((scale * x + shift)[order], unit[order], reader[order], np.ones(len(x)))
    for name in ("of_units", "of_readers", "of_rest"):
        assert getattr(other, name) == pytest.approx(scale**2 * getattr(one, name), rel=1e-6, abs=1e-6 * scale**2)


def test_without_double_reads_units_and_the_rest_are_one_and_with_one_reader_nobody_knows_how_readers_differ():
    rng = np.random.default_rng(3)
    x, unit, reader = reads(rng, n_units=4_000, share_double=0.0)
    apart = moments(x, unit, reader, np.ones(len(x)))
    assert math.isnan(apart.of_units)
    assert apart.of_rest == pytest.approx(0.09 + 0.16, rel=0.1)
    alone = moments(x, unit, np.zeros_like(reader), np.ones(len(x)))
    assert math.isnan(alone.of_readers)


# ---------------------------------------------------------------- of a study


def score(claim=Claim.NEW_EXAMPLES, physicians=Physicians.IN_GENERAL):
    return Target(Goal.SCORE, 0.03, ("Alder",), ("Magpie",), "invented", claim=claim, physicians=physicians)


def test_the_advice_on_the_next_reads_says_how_many_can_be_had_and_what_fewer_would_give():
    """74 second reads bring it to .0092, 12 further responses to .0097: both are said, for the 12 are the cheaper."""
    table = pd.DataFrame(
        {
            "option": [NOW, MORE_RESPONSES, SECOND_READS],
            "n_reads": [0, 12, 74],
            "standard_error": [0.0116, 0.0097, 0.0092],
        }
    )
    said = options_words(table, score(), "the next 100 reads of a response")
    assert said == (
        "The next 100 reads of a response should help most if spent on second reads of the same responses (74 can be made). The expected "
        "standard error then falls from 0.0116 to 0.0092 on new examples too, for physicians in general. "
        "12 reads spent on more responses by the same physicians would bring it to 0.0097."
    )
    assert "would bring" not in options_words(table.drop(index=1), score(), "the next 100 reads")


def found_of(seed=1, **how):
    plain = {
        "n_examples": 150,
        "whole_responses": True,
        "share_read": 0.5,
        "readers": [f"Dr. {n}" for n in range(6)],
        "n_readers": 2,
    }
    study = drawn(np.random.default_rng(seed), **(plain | how))[0]
    return components(population(study, score()), score())


def test_physicians_who_lean_are_found_to_differ_and_those_who_do_not_are_not():
    leanings = {"Dr. 0": 0.4, "Dr. 1": 0.4, "Dr. 2": 0.2, "Dr. 3": -0.2, "Dr. 4": -0.4, "Dr. 5": -0.4}
    alike, apart = found_of(), found_of(leanings=leanings)
    assert apart.of_readers > 0.008
    assert alike.of_readers < apart.of_readers / 10
    assert alike.of_rest < apart.of_rest / 20  # two readers who say the truth never differ
    assert alike.n_double == alike.n_units
    assert alike.share_of_rest < 0.01 < apart.share_of_rest


def test_a_component_below_nothing_is_nothing_and_said():
    found = [found_of(seed, reader_accuracy=0.9, n_examples=60) for seed in range(6)]
    clipped = [one for one in found if "readers" in one.clipped]
    assert clipped  # nobody leans: it falls to either side of 0
    assert all(one.of_readers == 0 for one in clipped)


def test_too_little_read_tells_nothing():
    found = found_of(share_read=0.0)
    assert not found.is_known
    assert options(found, score(), n_more=50).empty


def test_what_each_option_takes_from_the_error_is_what_the_formula_says():
    leanings = {"Dr. 0": 0.4, "Dr. 1": -0.4}
    found = found_of(leanings=leanings, reader_accuracy=0.9, n_readers=1, readers=["Dr. 0", "Dr. 1", "Dr. 2"])
    double = found_of(leanings=leanings, reader_accuracy=0.9, readers=["Dr. 0", "Dr. 1", "Dr. 2"])
    assert math.isnan(found.of_units)
    table = options(found, score(), n_more=20).set_index("option")
    assert math.isnan(table.loc[SECOND_READS, "standard_error"])  # nobody has read twice: it cannot be told
    table = options(double, score(), n_more=20).set_index("option")
    n, m, r = double.n_units, double.n_reads, double.of_readers
    q = np.array(double.loads) / m
    now = (
        double.of_examples / 150 + double.of_units * (1 / n - 1 / double.n_all) + r * (q**2).sum() + double.of_rest / m
    )
    assert table.loc[NOW, "standard_error"] == pytest.approx(math.sqrt(now))
    more = double.of_examples / 150 + double.of_units * (1 / (n + 20) - 1 / double.n_all) + double.of_rest / (m + 20)
    assert table.loc[MORE_RESPONSES, "standard_error"] == pytest.approx(math.sqrt(more + r * (q**2).sum()))
    loads = np.array([*double.loads, *[20 / 3] * 3]) / (m + 20)
    assert table.loc[MORE_READERS, "standard_error"] == pytest.approx(math.sqrt(more + r * (loads**2).sum()))
    assert (
        table.loc[MORE_READERS, "standard_error"] < table.loc[MORE_RESPONSES, "standard_error"]
    )  # readers are what differs here
    these = options(double, score(Claim.BENCHMARK, Physicians.THESE), n_more=20).set_index("option")["standard_error"]
    assert these[NOW] < table.loc[NOW, "standard_error"]
