"""The anchoring shift: which first reads were followed by a reveal, and which of them moved, toward the judge or away from it."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evalcore.judges.anchoring import (
    AWAY,
    CHANGED,
    GROUPINGS,
    MOVEMENTS,
    OVERALL,
    TOWARD,
    anchoring,
    left_out_words,
    population_words,
    sentences,
)
from evalcore.stats.intervals import share_interval, wilson
from evalcore.study.schema import Physicians
from tests import world
from tests.commands import Run
from tests.drawn_reads import LEFT_OUT, drawn, left_out, read, reads_of, shares
from tests.reading_steps import IMANI, decide_places, finish, first_conversation

# ---------------------------------------------------------------- the metric


def test_each_movement_has_its_own_denominator():
    table = anchoring(
        drawn("""
        first | says | revised
        +     | -    | -
        +     | -    | +
        +     | -    |
        +     | -    | ?
        +     | +    |
        +     | +    | +
        -     | -    | +
        ?     | -    | -
        ?     | ?    | -
    """)
    )
    # differed: lines 1 to 4 and 8; agreed: 5, 6, 7, 9. Toward: 1, 8. Away: 7, 9. Changed: those and 4.
    assert shares(table) == {CHANGED: (5, 9), TOWARD: (2, 5), AWAY: (2, 4)}
    overall = table.loc[table["grouping"].eq(OVERALL)]
    assert overall["denominator"].tolist() == ["revealed", "differed", "agreed"]
    assert overall["share"].tolist() == [5 / 9, 2 / 5, 2 / 4]


def test_reads_without_a_reveal_a_label_or_a_decision_are_left_out_and_counted_once():
    table = anchoring(
        drawn("""
        first | says | revised | revealed | decided
        +     | -    | -       | yes      | yes
        +     | -    | -       | no       | no
        +     | +    |         | no       | no
        +     |      | -       | yes      | yes
        +     |      |         | no       | no
        +     | -    |         | yes      | no
        +     | +    |         | yes      | no
        +     | -    | +       | yes      | no
    """)
    )
    # counted: the first, and of the reading that is not done what agreed and what was decided already
    assert shares(table) == {CHANGED: (1, 3), TOWARD: (1, 2), AWAY: (0, 1)}
    assert left_out(table) == {"n_without_label": 2, "n_not_revealed": 2, "n_undecided": 1}


def test_the_groups_are_axis_sign_kind_and_reader():
    table = anchoring(
        drawn("""
        rater | axis              | points | first | says | revised
        dr_a  | accuracy          | 5      | +     | -    | -
        dr_a  | context_awareness | -5     | +     | -    |
        dr_b  | context_awareness | -5     | +     | +    | -
        dr_b  |                   |        | +     | +    |
    """),
        by=GROUPINGS,
    )
    assert {row: shares(table, row)[TOWARD] for row in table["group"].unique()} == {
        "overall": (1, 2),
        "accuracy": (1, 1), "context awareness": (0, 1), "no axis": (0, 0),
        "desirable": (1, 1), "undesirable": (0, 1), "no points known": (0, 0),
        "accuracy, desirable": (1, 1), "context awareness, undesirable": (0, 1), "no axis, no points known": (0, 0),
        "dr_a": (1, 2), "dr_b": (0, 0),
    }  # fmt: skip
    assert shares(table, "dr_b") == {CHANGED: (1, 2), TOWARD: (0, 0), AWAY: (1, 2)}
    assert list(dict.fromkeys(table["grouping"])) == list(GROUPINGS)


def test_readers_are_not_named_unless_asked_for():
    assert "rater" not in set(anchoring(reads_of([{}]))["grouping"])


def test_a_share_of_nothing_is_missing_and_not_zero():
    table = anchoring(drawn("first | says\n+ | +"))
    toward = table.loc[table["movement"].eq(TOWARD)].iloc[0]
    assert (toward["n"], toward["n_moved"], toward["n_examples"]) == (0, 0, 0)
    assert toward[["share", "low", "high"]].isna().all()


def test_without_reads_there_are_no_rows():
    table = anchoring(reads_of([]))
    assert table.empty
    assert {"judge", "group", "movement", "n", "n_moved", "share", "low", "high", *LEFT_OUT} <= set(table.columns)


def test_of_few_readers_the_interval_is_for_these_and_clustered_by_conversation():
    # ten conversations of four reads that differ; in three all four are given up, in the others none
    rows = [
        {"example": example, "first": "+", "says": "-", "revised": "-" if example < 3 else "+"}
        for example in range(10)
        for _ in range(4)
    ]
    table = anchoring(reads_of(rows))
    toward = table.set_index("movement").loc[[TOWARD]].iloc[0]
    expected = share_interval([True] * 12 + [False] * 28, [place // 4 for place in range(40)])
    assert (toward["n_moved"], toward["n"], toward["n_examples"]) == (12, 40, 10)
    assert (toward["low"], toward["high"]) == (expected.low, expected.high)
    plain = share_interval([True] * 12 + [False] * 28, range(40))
    assert expected.high - expected.low > 1.5 * (plain.high - plain.low)
    assert toward["physicians"] == Physicians.THESE
    assert population_words(table.head(3)) == (
        "Intervals are for these physicians only: physicians in general take at least 3 effective readers (1 reader, 1.0 effective)."
    )


def test_of_several_readers_the_interval_is_for_physicians_in_general():
    # forty conversations, ten by each of four readers, of whom one always gives up: the readers differ, not the conversations
    rows = [
        {"example": e, "rater": f"dr_{e % 4}", "first": "+", "says": "-", "revised": "-" if e % 4 == 0 else "+"}
        for e in range(40)
    ]
    table = anchoring(reads_of(rows), by=[OVERALL])
    toward = table.set_index("movement").loc[TOWARD]
    assert (toward["physicians"], toward["n_readers"], toward["n_effective_readers"]) == (Physicians.IN_GENERAL, 4, 4)
    by_conversation = share_interval([True] * 10 + [False] * 30, range(40))
    assert toward["high"] - toward["low"] > 1.5 * (by_conversation.high - by_conversation.low)
    # v_K = 3/4 sum (p_k - 1/4)^2 with p_k 0 and three times 1/3: 3/4 (1/16 + 3/144) = 1/16; v_G and v_GK are alike, one read each.
    # n_eff = 40 / (1/16 / (3/16/39)) (t(39)/t(3))^2 = 40 / 13 x .404 = 1.2, so it is 4, the readers.
    expected = wilson(1, 4)
    assert (toward["low"], toward["high"]) == pytest.approx((float(expected[0]), float(expected[1])))
    assert population_words(table) == "Intervals are for physicians in general, by 4 readers and 40 conversations."


@pytest.mark.slow
@pytest.mark.parametrize(("n_readers", "spread"), [(4, 0.8), (6, 0.8), (10, 0.8), (20, 1.2)])
def test_the_interval_covers_the_share_of_physicians_in_general(n_readers, spread):
    """Readers give up more or less readily. By conversations alone the interval covers .54, .63, .75 and .57."""
    rng = np.random.default_rng(5)
    normal = np.random.default_rng(0).normal(size=400_000)
    truth = (1 / (1 + np.exp(1.2 - np.hypot(spread, 0.6) * normal))).mean()
    example = np.repeat(np.arange(60), 6)
    held = 0
    for _ in range(300):
        reader = rng.permutation(np.arange(60) % n_readers)[example]
        log_odds = -1.2 + spread * rng.normal(size=n_readers)[reader] + 0.6 * rng.normal(size=60)[example]
        revised = np.where(rng.random(len(example)) < 1 / (1 + np.exp(-log_odds)), "-", "+")
        rows = [
            {"example": e, "rater": f"dr_{r}", "first": "+", "says": "-", "revised": sign}
            for e, r, sign in zip(example, reader, revised, strict=True)
        ]
        toward = anchoring(reads_of(rows), by=[OVERALL]).set_index("movement").loc[TOWARD]
        assert toward["physicians"] == Physicians.IN_GENERAL
        held += toward["low"] <= truth <= toward["high"]
    assert 0.91 <= held / 300 <= 0.98  # two standard errors of .95 are .025


moved_read = st.tuples(
    read, st.sampled_from(["+", "-", "?", ""]), st.booleans(), st.booleans(), st.sampled_from(["dr_a", "dr_b"])
).map(lambda drawn: drawn[0] | {"revised": drawn[1], "revealed": drawn[2], "decided": drawn[3], "rater": drawn[4]})


def became(row):
    """What became of one read, in plain Python: why it is left out, or how it stood and moved."""
    if not row["says"]:
        return "n_without_label"
    if not row["revealed"]:
        return "n_not_revealed"
    if row["first"] != row["says"] and not row["revised"] and not row["decided"]:
        return "n_undecided"
    end = row["revised"] or row["first"]
    if row["first"] == row["says"]:
        return "agreed", end != row["first"], end != row["says"]
    return "differed", end != row["first"], end == row["says"]


@given(rows=st.lists(moved_read, min_size=1, max_size=40))
def test_every_read_is_counted_once_and_movements_add_up(rows):
    table = anchoring(reads_of(rows), by=GROUPINGS)
    for judge in {row["judge"] for row in rows}:
        mine = [became(row) for row in rows if row["judge"] == judge]
        counted = [state for state in mine if isinstance(state, tuple)]
        of_judge = table.loc[table["judge"].eq(judge)]
        for grouping in GROUPINGS:
            part = of_judge.loc[of_judge["grouping"].eq(grouping)]
            n = part.groupby("movement")["n"].sum()
            n_moved = part.groupby("movement")["n_moved"].sum()
            assert n[CHANGED] == len(counted) == n[TOWARD] + n[AWAY]
            assert n[TOWARD] == sum(how == "differed" for how, _, _ in counted)
            assert n_moved[CHANGED] == sum(changed for _, changed, _ in counted)
            assert n_moved[TOWARD] == sum(moved for how, _, moved in counted if how == "differed")
            assert n_moved[AWAY] == sum(moved for how, _, moved in counted if how == "agreed")
            assert n_moved[TOWARD] + n_moved[AWAY] <= n_moved[CHANGED]
            for reason in LEFT_OUT:
                assert part.loc[part["movement"].eq(CHANGED), reason].sum() == mine.count(reason)
    known = table.loc[table["n"].gt(0)]
    assert known["share"].between(known["low"], known["high"]).all()
    assert table.loc[table["n"].eq(0), ["share", "low", "high"]].isna().all(axis=None)


@given(rows=st.lists(moved_read, min_size=1, max_size=20), order=st.randoms(use_true_random=False))
def test_the_order_of_reads_does_not_matter(rows, order):
    shuffled = rows[:]
    order.shuffle(shuffled)
    one, other = anchoring(reads_of(rows), by=GROUPINGS), anchoring(reads_of(shuffled), by=GROUPINGS)
    assert one[["group", "movement", "n", "n_moved"]].equals(other[["group", "movement", "n", "n_moved"]])
    assert (one["low"].sub(other["low"]).abs().fillna(0) < 1e-9).all()


@given(rows=st.lists(moved_read, min_size=1, max_size=30))
def test_readers_who_change_nothing_are_not_anchored(rows):
    kept = [row | {"revised": row["first"]} for row in rows]
    assert anchoring(reads_of(kept), by=GROUPINGS)["n_moved"].sum() == 0


@given(rows=st.lists(moved_read, min_size=1, max_size=30))
def test_readers_who_always_follow_the_judge_move_toward_it_wholly_and_never_away(rows):
    following = [row | {"revised": row["says"]} for row in rows]
    table = anchoring(reads_of(following)).set_index("movement")
    assert (table.loc[[TOWARD], "n_moved"] == table.loc[[TOWARD], "n"]).all()
    assert (table.loc[[AWAY], "n_moved"] == 0).all()


# ---------------------------------------------------------------- the words


def test_each_sentence_names_its_denominator():
    rows = [{"example": e, "first": "+", "says": "-", "revised": "-" if e < 4 else ""} for e in range(16)]
    rows += [{"example": e, "first": "+", "says": "+"} for e in range(16, 40)]
    changed, toward, away = sentences(anchoring(reads_of(rows), by=[OVERALL]))
    assert (
        changed
        == "10 % (4/40) [4 %, 23 %] of the first reads were changed after their readers had seen the judge's label."
    )
    assert (
        toward == "25 % (4/16) [10 %, 49 %] of the first reads that differed from the judge were changed to its label."
    )
    assert (
        away == "0 % (0/24) [0 %, 14 %] of the first reads that agreed with the judge were changed away from its label."
    )


def test_a_change_to_neither_label_is_said_so_that_the_movements_add_up():
    """Two were changed: one of three that differed took the judge's label, one became cannot assess."""
    rows = [{"example": e, "first": "+", "says": "-", "revised": "-?"[e] if e < 2 else ""} for e in range(3)]
    changed, toward, away, third = sentences(anchoring(reads_of(rows), by=[OVERALL]))
    assert "(2/3)" in changed
    assert "(1/3)" in toward
    assert away == "None of the first reads agreed with the judge."
    assert third == "1 of the first reads that differed from the judge was changed to a third label."


def test_a_movement_that_could_not_be_is_said_so():
    said_ = sentences(anchoring(drawn("first | says\n+ | +"), by=[OVERALL]))
    assert said_[1] == "None of the first reads differed from the judge."
    assert (
        sentences(anchoring(drawn("first | says\n+ | -"), by=[OVERALL]))[2]
        == "None of the first reads agreed with the judge."
    )
    nothing = sentences(anchoring(drawn("first | says | revealed\n+ | - | no"), by=[OVERALL]))
    assert nothing[0] == "No first read was followed by a reveal."


def test_what_was_left_out_is_said_with_its_reason():
    assert left_out_words(anchoring(drawn("first | says\n+ | +"), by=[OVERALL])) == ""
    table = anchoring(
        drawn("first | says | revealed | decided\n+ | | yes | yes\n+ | - | no | no\n- | + | yes | no"), by=[OVERALL]
    )
    assert left_out_words(table) == (
        "First reads left out: 1 were not followed by a reveal of this judge, 1 are of criteria that this judge has not labelled, "
        "1 wait for their reader to keep or revise."
    )


# ---------------------------------------------------------------- by the command line


@pytest.fixture
def study(tmp_path):
    """A study where one reader moved toward the judge once; its path."""
    path = tmp_path / "study.db"
    small = world.made(str(path), judged="+-++")
    number, _ = first_conversation(small, "--")
    decide_places(small, number, _0="+")
    finish(small, number)
    small.engine.dispose()
    return path


def test_anchoring_json_has_the_documented_keys_and_the_derived_numbers(study):
    done = Run(study.parent)("anchoring", "--json", "--db", study)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    rows = found["movements"]
    assert found["effects"] == []  # nobody looked a second time without the label
    documented = {
        "judge", "grouping", "group", "movement", "denominator", "n", "n_moved", "share", "low", "high", "physicians",
        "n_examples", "n_readers", "n_effective_readers", "n_without_label", "n_not_revealed", "n_undecided", "n_control",
    }  # fmt: skip
    assert all(set(row) == documented for row in rows)
    assert {row["grouping"] for row in rows} == {"overall", "axis", "sign", "kind"}
    undesirable = {row["movement"]: row for row in rows if row["group"] == "undesirable"}  # not met, as the judge says
    assert (undesirable[AWAY]["n_moved"], undesirable[AWAY]["n"], undesirable[AWAY]["share"]) == (0, 1, 0)
    assert (undesirable[TOWARD]["n"], undesirable[TOWARD]["share"], undesirable[TOWARD]["low"]) == (0, None, None)
    kind = {row["movement"]: row for row in rows if row["group"] == "accuracy, desirable"}
    assert (kind[TOWARD]["n_moved"], kind[TOWARD]["judge"], kind[TOWARD]["denominator"]) == (1, world.JUDGE, "differed")
    assert [row["movement"] for row in rows[:3]] == list(MOVEMENTS)


def test_anchoring_comes_by_what_was_asked_for_and_by_one_judge(study):
    told = ("--json", "--by", "rater", "--judge", world.JUDGE, "--db", study)
    rows = json.loads(Run(study.parent)("anchoring", *told).stdout)["movements"]
    assert {(row["grouping"], row["group"]) for row in rows} == {("rater", IMANI)}
    table = Run(study.parent)("anchoring", "--by", "sign", "--db", study).stdout
    assert "toward (of differed)" in table
    assert "(0/0)" not in table
    assert "no first read and" in table


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--judge", "Owl"), "--judge: expected one of Magpie, got 'Owl'"),
        (("--by", "weather"), "--by: expected some of overall, axis, sign, kind, rater, got weather"),
        (("--by", ""), "--by: expected some of overall, axis, sign, kind, rater, got nothing"),
    ],
)
def test_what_anchoring_does_not_know_is_one_sentence(study, arguments, sentence):
    done = Run(study.parent)("anchoring", *arguments, "--db", study)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_study_without_reads_has_no_shift(tmp_path):
    world.made(str(tmp_path / "study.db")).engine.dispose()
    assert json.loads(Run(tmp_path)("anchoring", "--json", "--db", "study.db").stdout) == {
        "movements": [],
        "effects": [],
    }
    assert "No blind first read beside a judge yet" in Run(tmp_path)("anchoring", "--db", "study.db").stdout
