"""How often a judge is right by blind first reads: of which kind, and what the screen says of it."""

import math

import pytest
from hypothesis import given, settings, strategies as st

from evalcore.judges.record import (
    ALL,
    ALL_CRITERIA,
    KIND,
    MIN_KIND_READS,
    MIN_READS,
    SIGN,
    Reads,
    finding,
    judge_record,
    record_for,
    sentence,
)
from evalcore.stats.intervals import interval_words, share_interval
from tests.drawn_reads import drawn, read, reads_of

many = settings(max_examples=8, deadline=None)


def counts(record):
    """n and n_right by kind."""
    return {row["kind"]: (row["n"], row["n_right"]) for row in record.to_dict(orient="records")}


# ---------------------------------------------------------------- the metric


def test_reads_are_counted_by_kind_by_sign_and_in_all():
    record = judge_record(
        drawn("""
        axis              | points | first | says
        accuracy          | 7      | +     | +
        accuracy          | 3      | +     | -
        accuracy          | -4     | -     | -
        context_awareness | -2     | -     | +
        context_awareness | -2     | -     | -
    """)
    )
    assert counts(record) == {
        "all criteria": (5, 3),
        "desirable": (2, 1),
        "undesirable": (3, 2),
        "accuracy, desirable": (2, 1),
        "accuracy, undesirable": (1, 1),
        "context awareness, undesirable": (2, 1),
    }
    assert record["grouping"].tolist() == [ALL, SIGN, SIGN, KIND, KIND, KIND]
    assert record["share"].tolist() == [0.6, 0.5, 2 / 3, 0.5, 1, 0.5]


def test_reads_that_cannot_assess_and_items_without_the_judges_label_are_left_out_and_counted():
    record = judge_record(
        drawn("""
        first | says
        +     | +
        ?     | +
        ?     |
        -     |
        -     | ?
    """)
    )
    # left: + beside +; a judge who could not assess has given no label
    row = record.iloc[0]
    assert row[["n", "n_right", "n_cannot_assess", "n_without_label"]].tolist() == [1, 1, 2, 2]


def test_what_is_not_known_is_a_kind_of_its_own():
    record = judge_record(reads_of([{"axis": None, "points": None}, {"axis": None, "points": -3}, {"points": None}]))
    assert set(record["kind"]) == {
        "all criteria", "no points known", "undesirable", "no axis, no points known", "no axis, undesirable",
        "accuracy, no points known",
    }  # fmt: skip


def test_each_judge_has_its_own_record():
    record = judge_record(drawn("judge | first | says\nMagpie | + | +\nWren | + | -\nWren | - | -"))
    overall = record.loc[record["grouping"].eq(ALL)].set_index("judge")
    assert overall[["n", "n_right"]].to_numpy().tolist() == [[1, 1], [2, 1]]


def test_the_interval_is_clustered_by_conversation():
    # four conversations of five criteria, right throughout in three of them: 15/20, but four things are known
    rows = [{"example": example, "says": "-" if example == 1 else "+"} for example in range(1, 5) for _ in range(5)]
    row = judge_record(reads_of(rows)).iloc[0]
    expected = share_interval([True] * 15 + [False] * 5, [2] * 5 + [3] * 5 + [4] * 5 + [1] * 5)
    assert (row["share"], row["low"], row["high"]) == pytest.approx((0.75, expected.low, expected.high))
    assert row["n_examples"] == 4
    plain = share_interval([True] * 15 + [False] * 5, range(20))
    assert row["low"] < plain.low - 0.1


def test_drawn_reads_count_by_one_over_their_probability_and_volunteered_ones_stay_out():
    rows = [
        {"first": "+", "says": "+", "selection": "importance", "inclusion_probability": 0.25, "example": 1},
        {"first": "+", "says": "-", "selection": "random", "inclusion_probability": 0.5, "example": 2},
        {"first": "+", "says": "-", "selection": "volunteered", "example": 3},
    ]
    row = judge_record(reads_of(rows)).iloc[0]
    assert row[["n", "n_right", "n_examples", "weighted"]].tolist() == [2, 1, 2, True]
    assert row["share"] == pytest.approx(4 / 6)
    assert "67 % (weighted, n = 2)" in finding(judge_record(reads_of(rows)))
    every = judge_record(reads_of(rows), Reads.ALL).iloc[0]
    assert (every["n"], every["share"], every["weighted"]) == (3, pytest.approx(1 / 3), False)


def test_without_reads_there_is_no_record():
    record = judge_record(reads_of([]))
    assert record.empty
    assert {"judge", "grouping", "kind", "n", "n_right", "share", "low", "high", "n_examples"} <= set(record.columns)


@many
@given(rows=st.lists(read, min_size=1, max_size=40))
def test_every_read_is_counted_once_in_each_grouping(rows):
    record = judge_record(reads_of(rows))
    for judge in {row["judge"] for row in rows}:
        mine = [row for row in rows if row["judge"] == judge]
        answered = [row for row in mine if row["first"] != "?" and row["says"] in ("+", "-")]
        for grouping in (ALL, SIGN, KIND):
            part = record.loc[record["judge"].eq(judge) & record["grouping"].eq(grouping)]
            assert part["n"].sum() == len(answered)
            assert part["n_right"].sum() == sum(row["first"] == row["says"] for row in answered)
            assert part["n_cannot_assess"].sum() == sum(row["first"] == "?" for row in mine)
            assert part["n_without_label"].sum() == sum(
                row["first"] != "?" and row["says"] not in ("+", "-") for row in mine
            )
    known = record.loc[record["n"].gt(0)]
    assert known["share"].between(known["low"], known["high"]).all()
    assert known["share"].tolist() == (known["n_right"] / known["n"]).tolist()
    assert record.loc[record["n"].eq(0), ["share", "low", "high"]].isna().all(axis=None)


# ---------------------------------------------------------------- the record of one criterion


def many_reads(n, **row):
    """n reads of one kind, each on a conversation of its own, all of them agreeing with the judge."""
    return [{"example": place, **row} for place in range(n)]


@pytest.mark.parametrize(
    ("n_kind", "n_sign", "n_other", "shown"),
    [
        (MIN_KIND_READS, 0, 0, KIND),
        (MIN_KIND_READS - 1, 1, 0, SIGN),
        (MIN_KIND_READS - 1, 0, 1, ALL),
        (0, MIN_KIND_READS, 0, SIGN),
        (1, 1, MIN_READS - 2, ALL),
        (0, 0, MIN_KIND_READS, ALL),
        (MIN_READS, 0, 0, ALL),
        (MIN_READS - 1, 0, 0, KIND),  # too few even in all: it says how few of the kind
        (0, 0, MIN_READS - 1, KIND),
        (0, 0, 0, KIND),
    ],
)
def test_a_kind_with_few_reads_gives_way_to_its_sign_and_that_to_all(n_kind, n_sign, n_other, shown):
    rows = many_reads(n_kind, axis="accuracy", points=-4)
    rows += many_reads(n_sign, axis="completeness", points=-2) + many_reads(n_other, axis="accuracy", points=6)
    found = record_for(judge_record(reads_of(rows)), "accuracy", -7)
    assert found["grouping"] == shown
    expected = {
        KIND: ("accuracy, undesirable", n_kind),
        SIGN: ("undesirable", n_kind + n_sign),
        ALL: (ALL_CRITERIA, n_kind + n_sign + n_other),
    }
    assert (found["kind"], found["n"]) == expected[shown]
    assert found["n_right"] == found["n"]


def test_reads_that_cannot_assess_do_not_make_a_kind_known():
    rows = many_reads(MIN_KIND_READS - 1) + many_reads(30, first="?")
    assert record_for(judge_record(reads_of(rows)), "accuracy", 5)["grouping"] == ALL


def test_a_criterion_without_axis_or_points_has_its_own_kind():
    record = judge_record(reads_of(many_reads(MIN_KIND_READS, axis=None, points=None)))
    assert record_for(record, None, None)["kind"] == "no axis, no points known"
    assert record_for(record, None, math.nan)["n"] == MIN_KIND_READS


def test_the_sentence_says_of_which_criteria_with_counts_and_interval():
    rows = many_reads(30, says="+") + many_reads(10, says="-")
    record = judge_record(reads_of([row | {"example": place} for place, row in enumerate(rows)]))
    found = share_interval([True] * 30 + [False] * 10, range(40))
    share = f"75 % (30/40) {interval_words(found.low, found.high)}"
    for axis, points, criteria in (
        ("accuracy", 5, "such"),
        ("completeness", 5, "desirable"),
        ("completeness", -5, "all"),
        ("accuracy", -5, "all"),
    ):
        expected = f"On {criteria} criteria this judge matched physicians' blind reads in {share}."
        assert sentence(record_for(record, axis, points)) == expected


@pytest.mark.parametrize("n", [0, 1, MIN_READS - 1])
def test_with_too_few_reads_the_sentence_says_how_few(n):
    found = record_for(judge_record(reads_of(many_reads(n))), "accuracy", 5)
    assert (
        sentence(found)
        == f"Too few blind reads yet to say how often this judge matches physicians on such criteria ({n})."
    )
