"""The check of items that all agree on: a share of them, drawn by a seed, goes to an adjudicator too."""

import itertools

from hypothesis import given, strategies as st

from evalcore.reading.conflicts import check_place
from evalcore.study.schema import Rules
from tests.conflict_rows import conflicts, drawn_items, is_unanimous, key, one, reasons


@given(drawn_items())
def test_no_share_draws_nothing_and_the_whole_share_every_unanimous_item_that_is_due(items):
    without, whole = reasons(*items), reasons(*items, rules=Rules(check_share=1))
    assert "check" not in " ".join(without.values())
    settled = {key(rows) for rows in items if any(row["stage"] == "adjudicated" for row in rows)}
    waits = {key(rows) for rows in items if len(rows) < (rows[0]["n_wanted"] or 0)}
    wanted = {key(rows) for rows in items if is_unanimous(rows)} - settled - waits - set(without)
    assert {item for item, why in whole.items() if why == "check"} == wanted
    assert {item: why for item, why in whole.items() if why != "check"} == without


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 10**9))
def test_a_larger_share_draws_the_items_of_a_smaller_one_too(one_share, other, example):
    small, large = sorted((one_share, other))
    items = [one("+", "+", item=(example, 1, number)) for number in range(1, 30)]
    fewer, more = (set(reasons(*items, rules=Rules(check_share=share))) for share in (small, large))
    assert fewer <= more


def test_the_share_is_met_and_another_seed_draws_others():
    items = [one("+", "+", item=(1, 1, number)) for number in range(1, 2001)]
    drawn = {
        seed: {each.item for each in conflicts(*items, rules=Rules(check_share=0.2), seed=seed)}
        for seed in ("one", "two")
    }
    # 2000 draws of 0.2: 400, standard deviation 17.9; five of them either way
    assert all(abs(len(found) - 400) < 90 for found in drawn.values())
    assert len(drawn["one"] & drawn["two"]) < 160  # 80 expected of independent drawings, deviation 8.8


def test_the_place_in_the_drawing_is_a_share_and_depends_on_every_part():
    places = [check_place("s", item) for item in itertools.product((0, 1, 2), repeat=3)]
    assert len(set(places)) == 27
    assert all(0 <= place < 1 for place in places)
