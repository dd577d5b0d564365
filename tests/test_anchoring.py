"""The anchoring shift: which first reads were followed by a reveal, and which of them moved, toward the judge or away from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import deciding, desks, reviewing, store
from evalcore.db import reading, writing
from evalcore.deciding import Decision
from evalcore.metrics.anchoring import (
    AWAY,
    CHANGED,
    GROUPINGS,
    MOVEMENTS,
    OVERALL,
    TOWARD,
    anchoring,
    left_out_words,
    sentences,
)
from evalcore.metrics.intervals import share_interval
from evalcore.queries.blind_reads import blind_reads
from evalcore.schema import Ask, Label, RaterKind, ReadingMode, ReadingState, Rules, Stage
from tests import world
from tests.test_judge_record import IMANI, TOVE, drawn, read, reads_of, said

many = settings(max_examples=60, deadline=None)
LEFT_OUT = ["n_without_label", "n_not_revealed", "n_undecided"]


def shares(table, group=OVERALL):
    """(moved, of) by movement, of one group."""
    rows = table.loc[table["group"].eq(group)].to_dict(orient="records")
    return {row["movement"]: (row["n_moved"], row["n"]) for row in rows}


def left_out(table):
    """The reads left out, by reason."""
    return table.iloc[0][LEFT_OUT].to_dict()


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


def test_a_grouping_that_is_not_known_is_named():
    with pytest.raises(ValueError, match="by: weather came, expected some of overall"):
        anchoring(reads_of([{}]), by=["weather"])


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


def test_the_intervals_are_clustered_by_conversation():
    # ten conversations of four reads that differ; in three all four are given up, in the others none
    rows = [
        {"example": example, "first": "+", "says": "-", "revised": "-" if example < 3 else "+"}
        for example in range(10)
        for _ in range(4)
    ]
    toward = anchoring(reads_of(rows)).set_index("movement").loc[[TOWARD]].iloc[0]
    expected = share_interval([True] * 12 + [False] * 28, [place // 4 for place in range(40)])
    assert (toward["n_moved"], toward["n"], toward["n_examples"]) == (12, 40, 10)
    assert (toward["low"], toward["high"]) == (expected.low, expected.high)
    plain = share_interval([True] * 12 + [False] * 28, range(40))
    assert expected.high - expected.low > 1.5 * (plain.high - plain.low)


moved_read = st.tuples(
    read,
    st.sampled_from(["+", "-", "?", ""]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["dr_a", "dr_b"]),
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


@many
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


@many
@given(rows=st.lists(moved_read, min_size=1, max_size=20), order=st.randoms(use_true_random=False))
def test_the_order_of_reads_does_not_matter(rows, order):
    shuffled = rows[:]
    order.shuffle(shuffled)
    one, other = anchoring(reads_of(rows), by=GROUPINGS), anchoring(reads_of(shuffled), by=GROUPINGS)
    assert one[["group", "movement", "n", "n_moved"]].equals(other[["group", "movement", "n", "n_moved"]])
    assert (one["low"].sub(other["low"]).abs().fillna(0) < 1e-9).all()


@many
@given(rows=st.lists(moved_read, min_size=1, max_size=30))
def test_readers_who_change_nothing_are_not_anchored(rows):
    kept = [row | {"revised": row["first"]} for row in rows]
    assert anchoring(reads_of(kept), by=GROUPINGS)["n_moved"].sum() == 0


@many
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
    assert changed == "10 % (4/40) [4 %, 23 %] of the first reads were changed after the judge's label was shown."
    assert toward == "25 % (4/16) [10 %, 49 %] of the first reads that differed from the judge took its label."
    assert away == "0 % (0/24) [0 %, 14 %] of the first reads that agreed with the judge left its label."


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


# ---------------------------------------------------------------- reads made in Review, and imported ones


@pytest.fixture
def small(database_url):
    made = world.made(database_url, judged="+-++")
    yield made
    made.engine.dispose()


def found_reads(small, judge=world.JUDGE):
    with reading(small.engine) as session:
        return blind_reads(session, judge)


def decide(small, name, number, **labels):
    """Decide items of a locked read by their place: `_0="-"`."""
    viewer = small.viewer(name)
    desk = desks.desk(small.engine, viewer, number)
    for place, label in labels.items():
        key = desk.keys[int(place[1:])]
        seen = desk.decided[key].verdict_id if key in desk.decided else None
        deciding.decide(small.engine, viewer, number, key, Decision(world.LABELS[label]), seen=seen)


def finish(small, name, number):
    deciding.finish(small.engine, small.viewer(name), number)


def of_first(small):
    """revised_label (None where missing), revealed, decided of each item of the first conversation, in order."""
    found = found_reads(small)
    found = found.loc[found["example_id"].eq(1)].sort_values("criterion_id")
    return [
        (row["revised_label"] if isinstance(row["revised_label"], str) else None, row["revealed"], row["decided"])
        for row in found.to_dict(orient="records")
    ]


def first_conversation(small, labels, name=IMANI):
    """A read of the first conversation, locked: its number and state. The judge says met, not met there."""
    world.assigned(small, readers=(IMANI, TOVE))
    for _ in range(2):
        viewer = small.viewer(name)
        desk = reviewing.take(small.engine, viewer, at=world.START)
        wanted = labels if desk.asked.example_id == 1 else "++"
        number = world.answer(small, viewer, desk, wanted)
        state = reviewing.submit(small.engine, viewer, number, at=world.START)
        if desk.asked.example_id == 1:
            return number, state
    raise AssertionError


def test_a_draft_is_no_read(small):
    world.assigned(small)
    viewer = small.viewer(IMANI)
    world.answer(small, viewer, reviewing.take(small.engine, viewer, at=world.START), "+-")
    assert found_reads(small).empty


def test_a_read_is_revealed_once_locked_and_decided_once_done(small):
    number, state = first_conversation(small, "--")  # differs from the judge on the first
    assert state is ReadingState.REVEALED
    assert of_first(small) == [(None, True, False), (None, True, False)]
    decide(small, IMANI, number, _0="+")
    assert of_first(small) == [("met", True, False), (None, True, False)]
    finish(small, IMANI, number)
    assert of_first(small) == [("met", True, True), (None, True, True)]


def test_a_read_that_agrees_throughout_is_revealed_and_decided_at_once(small):
    _, state = first_conversation(small, "+-")
    assert state is ReadingState.DONE
    assert of_first(small) == [(None, True, True)] * 2


def test_the_newest_decision_counts(small):
    number, _ = first_conversation(small, "--")
    decide(small, IMANI, number, _0="+")
    decide(small, IMANI, number, _0="-")
    finish(small, IMANI, number)
    decide(small, IMANI, number, _1="+")  # amended afterwards: away from the judge
    assert of_first(small) == [("not_met", True, True), ("met", True, True)]
    reads = found_reads(small)
    table = anchoring(reads.loc[reads["example_id"].eq(1)])
    assert shares(table) == {CHANGED: (1, 2), TOWARD: (0, 1), AWAY: (1, 1)}


def test_each_readers_own_decision_stands_beside_their_own_read(small):
    number, _ = first_conversation(small, "--")
    decide(small, IMANI, number, _0="+")
    finish(small, IMANI, number)
    for _ in range(2):
        world.submitted(small, TOVE, "--")
        viewer = small.viewer(TOVE)
        desk = reviewing.take(small.engine, viewer, at=world.START)
        for key in desk.undecided:
            deciding.decide(small.engine, viewer, desk.reading.id, key, Decision(Label.NOT_MET), seen=None)
        finish(small, TOVE, desk.reading.id)
    reads = found_reads(small)
    first = reads.loc[reads["criterion_id"].eq(small.criteria[0][0])].set_index("rater")["revised_label"]
    assert first.to_dict() == {IMANI: "met", TOVE: "not_met"}
    by_reader = anchoring(reads.loc[reads["example_id"].eq(1)], by=["rater"])
    assert shares(by_reader, IMANI)[TOWARD] == (1, 1)
    assert shares(by_reader, TOVE)[TOWARD] == (0, 1)


def test_reads_of_an_open_study_are_not_blind(small):
    with writing(small.engine) as session:
        store.set_rules(session, Rules(mode=ReadingMode.OPEN), actor="set-up")
    first_conversation(small, "--")
    assert found_reads(small).empty


def test_a_read_of_acuity_reveals_nothing_of_the_rubric(small):
    said(small, Label.MET)
    world.assigned(small, ask=Ask.RESPONSE_ACUITY, readers=(IMANI, TOVE))
    viewer = small.viewer(IMANI)
    for _ in range(2):
        desk = reviewing.take(small.engine, viewer, at=world.START)
        reviewing.mark(
            small.engine, viewer, desk.reading.id, None, Label.CANNOT_ASSESS, reason="language", at=world.START
        )
        reviewing.submit(small.engine, viewer, desk.reading.id, at=world.START)
    assert of_first(small) == [(None, False, False)]


def test_imported_reads_are_revealed_where_their_reader_revised_anything_on_the_response(small):
    said(small, Label.NOT_MET, name="hash", criterion=0)
    said(small, Label.NOT_MET, name="hash", criterion=1)
    said(small, Label.NOT_MET, name="another", criterion=0)
    said(small, Label.MET, name="hash", example=1)
    assert found_reads(small)["revealed"].tolist() == [False] * 4
    said(small, Label.MET, name="hash", stage=Stage.REVISED, criterion=0, blinded=False)
    found = found_reads(small)
    of = {(row["rater"], row["criterion_id"]): row["revealed"] for row in found.to_dict(orient="records")}
    (first, second), (third, _) = small.criteria
    assert of == {("hash", first): True, ("hash", second): True, ("another", first): False, ("hash", third): False}
    assert found["decided"].tolist() == found["revealed"].tolist()
    table = anchoring(found)
    assert shares(table) == {CHANGED: (1, 2), TOWARD: (1, 1), AWAY: (0, 1)}
    assert left_out(table) == {"n_without_label": 0, "n_not_revealed": 2, "n_undecided": 0}


def test_somebody_elses_reveal_is_none_of_an_imported_read(small):
    said(small, Label.NOT_MET, name="hash")
    first_conversation(small, "--")
    revealed = found_reads(small).drop_duplicates("rater").set_index("rater")["revealed"]
    assert revealed.to_dict() == {"hash": False, IMANI: True}


def test_a_decision_that_was_taken_back_is_none(small):
    said(small, Label.NOT_MET, name="hash")
    number = said(small, Label.MET, name="hash", stage=Stage.REVISED)
    said(small, None, name="hash", stage=Stage.REVISED, supersedes=number)
    assert of_first(small) == [(None, False, False)]


def test_only_the_judge_that_was_shown_moves_a_reader(small):
    for criterion, label in enumerate((Label.NOT_MET, Label.NOT_MET)):
        said(small, label, name="Wren", kind=RaterKind.JUDGE, stage=Stage.JUDGE, criterion=criterion)
    number, _ = first_conversation(small, "--")
    decide(small, IMANI, number, _0="+")
    finish(small, IMANI, number)
    shown, other = found_reads(small), found_reads(small, "Wren")
    assert shown.loc[shown["example_id"].eq(1), "revealed"].tolist() == [
        True,
        True,
    ]  # as many verdicts: the first by name
    assert not other["revealed"].any()
    with writing(small.engine) as session:
        store.set_rules(session, Rules(judge="Wren"), actor="set-up")
    shown, other = found_reads(small), found_reads(small, "Wren")  # what was shown is kept with the read
    assert shown.loc[shown["example_id"].eq(1), "revealed"].tolist() == [True, True]
    assert not other["revealed"].any()


labels = st.sampled_from("+-?")


@settings(max_examples=8, deadline=None)
@given(firsts=st.tuples(labels, labels, labels, labels), ends=st.tuples(labels, labels, labels, labels))
def test_what_is_said_in_review_comes_back_as_the_shift(firsts, ends, tmp_path_factory):
    judged = "+-++"
    small = world.made(str(tmp_path_factory.mktemp("study") / "overread.db"), judged=judged)
    world.assigned(small, readers=(IMANI,), n_readers=1)
    viewer = small.viewer(IMANI)
    for _ in range(2):
        desk = reviewing.take(small.engine, viewer, at=world.START)
        start = (desk.asked.example_id - 1) * 2
        number = world.answer(small, viewer, desk, "".join(firsts[start : start + 2]))
        reviewing.submit(small.engine, viewer, number, at=world.START)
        decide(small, IMANI, number, _0=ends[start], _1=ends[start + 1])
        finish(small, IMANI, number)
    table = anchoring(found_reads(small), by=[OVERALL])
    small.engine.dispose()
    differed = [place for place in range(4) if firsts[place] != judged[place]]
    agreed = [place for place in range(4) if firsts[place] == judged[place]]
    assert shares(table) == {
        CHANGED: (sum(firsts[place] != ends[place] for place in range(4)), 4),
        TOWARD: (sum(ends[place] == judged[place] for place in differed), len(differed)),
        AWAY: (sum(ends[place] != judged[place] for place in agreed), len(agreed)),
    }


# ---------------------------------------------------------------- by the command line


def overread(folder, *arguments):
    """A command in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OVERREAD_")}
    return subprocess.run(
        [sys.executable, "-m", "evalcore", *map(str, arguments)],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def study(tmp_path):
    """A study where one reader moved toward the judge once; its path."""
    path = tmp_path / "study.db"
    small = world.made(str(path), judged="+-++")
    number, _ = first_conversation(small, "--")
    decide(small, IMANI, number, _0="+")
    finish(small, IMANI, number)
    small.engine.dispose()
    return path


def test_anchoring_json_has_the_documented_keys_and_the_derived_numbers(study):
    done = overread(study.parent, "anchoring", "--json", "--db", study)
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    documented = {
        "judge", "grouping", "group", "movement", "denominator", "n", "n_moved", "share", "low", "high", "n_examples",
        "n_without_label", "n_not_revealed", "n_undecided",
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
    rows = json.loads(overread(study.parent, "anchoring", *told).stdout)
    assert {(row["grouping"], row["group"]) for row in rows} == {("rater", IMANI)}
    table = overread(study.parent, "anchoring", "--by", "sign", "--db", study).stdout
    assert "toward (of differed)" in table
    assert "– (0/0)" in table


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--judge", "Owl"), "--judge: 'Owl' came, expected one of Magpie"),
        (("--by", "weather"), "--by: weather came, expected some of overall, axis, sign, kind, rater"),
        (("--by", ""), "--by: nothing came"),
    ],
)
def test_what_anchoring_does_not_know_is_one_sentence(study, arguments, sentence):
    done = overread(study.parent, "anchoring", *arguments, "--db", study)
    assert (done.returncode, done.stdout) == (1, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_study_without_reads_has_no_shift(tmp_path):
    world.made(str(tmp_path / "study.db")).engine.dispose()
    assert json.loads(overread(tmp_path, "anchoring", "--json", "--db", "study.db").stdout) == []
    assert "No blind first read beside a judge yet" in overread(tmp_path, "anchoring", "--db", "study.db").stdout
