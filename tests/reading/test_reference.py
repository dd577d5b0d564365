"""The reference label: what each item is labelled in the end, and by whom."""

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.reading.overriding import give_verdict, undo
from evalcore.reading.reference import current_reads, item_labels, overrides, reference_labels
from evalcore.reading.reviewing import Decision
from evalcore.study import frames
from evalcore.study.db import open_study, reading
from evalcore.study.frames import ITEM_BASE
from evalcore.study.schema import Label
from tests import tables, world

COUNTS = ["n_reads", "n_met", "n_not_met", "n_cannot_assess"]
STAGES = ("first", "revised", "open")


def labelled(drawing, judge="judge", **columns):
    """Label and source of the first item in the drawing."""
    row = item_labels(tables.verdicts(drawing, **columns), judge).iloc[0]
    label = row["reference_label"]
    return (label if isinstance(label, str) else None), row["reference_source"]


def one(cells, raters):
    """A drawing of one item."""
    return f"response | criterion | {' | '.join(raters)}\nr1 | c1 | {' | '.join(cells)}"


# ---------------------------------------------------------------- whose word counts


@pytest.mark.parametrize(
    ("cells", "label", "source"),
    [
        # dr_a, dr_b, dr_c:adjudicated, judge
        (("+", "+", "-", "+"), "not_met", "adjudicated"),
        (("+", "-", "?", "+"), "cannot_assess", "adjudicated"),
        (("", "", "-", "+"), "not_met", "adjudicated"),
        (("-", "-", "", "+"), "not_met", "agreed"),
        (("?", "?", "", "+"), "cannot_assess", "agreed"),
        (("-", "", "", "+"), "not_met", "single"),
        (("", "?", "", "+"), "cannot_assess", "single"),
        (("+", "-", "", "+"), None, "unsettled"),
        (("+", "?", "", "+"), None, "unsettled"),
        (("-", "?", "", ""), None, "unsettled"),
        (("", "", "", "+"), "met", "judge"),
        (("", "", "", "-"), "not_met", "judge"),
        (("-", "", "", ""), "not_met", "single"),
    ],
)
def test_adjudicated_goes_before_agreed_before_single_before_judge(cells, label, source):
    assert labelled(one(cells, ("dr_a", "dr_b", "dr_c:adjudicated", "judge"))) == (label, source)


def reference_of(reads, settled, judge):
    """The rule in plain Python: reads by reader (in the order of stages), the adjudication, the judge's label."""
    standing = [labels[-1] for labels in reads if labels]
    if settled:
        return settled, "adjudicated"
    if not standing:
        return judge, "judge"
    if len(standing) == 1:
        return standing[0], "single"
    return (standing[0], "agreed") if len(set(standing)) == 1 else (None, "unsettled")


cell = st.sampled_from(["", "+", "-", "?"])


@given(
    reads=st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=4),
    settled=cell,
    judged=st.sampled_from(["+", "-"]),
)
def test_every_mixture_of_readers_and_stages_follows_the_rule(reads, settled, judged):
    columns, cells = [], []
    for stage_index, stage in enumerate(STAGES):  # drawn from left to right, so the stages follow each other in time
        for reader, given_labels in enumerate(reads):
            columns.append(f"dr_{reader}:{stage}")
            cells.append(given_labels[stage_index])
    drawing = one([*cells, settled, judged], [*columns, "dr_z:adjudicated", "judge"])
    row = item_labels(tables.verdicts(drawing), "judge").iloc[0]
    mine = [[c for c in given_labels if c] for given_labels in reads]
    expected = reference_of(mine, settled, judged)
    label = row["reference_label"]
    assert (label if isinstance(label, str) else None, row["reference_source"]) == (
        tables.LABELS.get(expected[0] or ""), expected[1],
    )  # fmt: skip
    standing = [labels[-1] for labels in mine if labels]
    assert row[COUNTS].tolist() == [len(standing), *(standing.count(sign) for sign in "+-?")]
    others = [*standing, *([settled] if settled else [])]
    assert row["overridden"] == any(sign != judged for sign in others)


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(random):
    frame = tables.verdicts("""
        response | criterion | dr_a | dr_b | dr_a:open | dr_c:adjudicated | judge
        r1       | c1        |  +   |  -   |           |                  |  +
        r1       | c2        |  +   |  +   |  -        |                  |  +
        r2       | c3        |  ?   |  +   |           |  -               |  -
        r2       | c4        |      |      |           |                  |  -
    """)
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = item_labels(frame.iloc[order].reset_index(drop=True), "judge")
    pd.testing.assert_frame_equal(shuffled, item_labels(frame, "judge"), check_dtype=False)


# ---------------------------------------------------------------- the newest counts


def test_the_newest_verdict_of_a_reader_over_the_stages_counts_once():
    drawing = """
        response | criterion | dr_a | dr_b | dr_a:revised | judge
        r1       | c1        |  +   |  -   |  -           |  +
    """
    assert labelled(drawing) == ("not_met", "agreed")
    reads = current_reads(tables.verdicts(drawing))
    assert reads[["rater", "label", "stage"]].to_numpy().tolist() == [
        ["dr_b", "not_met", "first"], ["dr_a", "not_met", "revised"],
    ]  # fmt: skip


def test_a_later_stage_counts_whichever_was_written_first():
    drawing = "response | criterion | dr_a:open | dr_a | judge\nr1 | c1 | - | + | +"
    assert labelled(drawing) == ("not_met", "single")


def test_a_clock_that_steps_back_changes_no_label():
    drawn = tables.verdicts("""
        response | criterion | dr_a | dr_a:revised | dr_b:open | dr_v:adjudicated | judge
        r1       | c1        |  +   |  -           |  -        |                  | +
        r1       | c2        |  +   |  +           |  -        |  ?               | +
    """)
    backwards = drawn.assign(created_at=drawn["created_at"].iloc[::-1].to_numpy())
    said = ["reference_label", "reference_source"]
    for each in (drawn, backwards):
        assert item_labels(each, "judge")[said].to_numpy().tolist() == [
            ["not_met", "agreed"],
            ["cannot_assess", "adjudicated"],
        ]


def test_of_two_verdicts_at_the_same_moment_the_later_number_counts():
    frame = tables.verdicts("response | criterion | dr_a | dr_a:open\nr1 | c1 | + | -")
    frame["created_at"] = frame["created_at"].iloc[0]
    assert current_reads(frame)["label"].tolist() == ["not_met"]


def test_of_two_adjudications_the_newer_counts():
    drawing = "response | criterion | dr_a:adjudicated | dr_b:adjudicated | judge\nr1 | c1 | + | - | +"
    assert labelled(drawing) == ("not_met", "adjudicated")


def test_the_time_of_the_first_read_is_that_of_the_earliest_stage():
    frame = tables.verdicts("response | criterion | judge | dr_a | dr_b | dr_a:open\nr1 | c1 | + | - | - | +")
    assert reference_labels(frame)["first_read_at"].tolist() == [frame["created_at"].iloc[1]]  # dr_a's, not the judge's


def test_a_verdict_that_was_taken_back_does_not_count(database_url):
    small = world.made(database_url)
    one_of_two = [
        give_verdict(small.engine, small.viewer(name), **small.item(), decision=Decision(label), judge=world.JUDGE, seen=None)
        for name, label in (("Dr. Imani Noor", Label.NOT_MET), ("Dr. Tove Lind", Label.MET))
    ]  # fmt: skip
    assert source_of_first(small) == (None, "unsettled", True)
    undo(small.engine, small.viewer(), **small.item(), seen=one_of_two[0])
    assert source_of_first(small) == ("met", "single", False)
    undo(small.engine, small.viewer("Dr. Tove Lind"), **small.item(), seen=one_of_two[1])
    assert source_of_first(small) == ("met", "judge", False)
    small.engine.dispose()


def source_of_first(small):
    with reading(small.engine) as session:
        found = item_labels(frames.verdicts(session, texts=True), world.JUDGE)
    row = found.loc[found["item_id"].eq(small.responses[0] * ITEM_BASE + small.criteria[0][0])].iloc[0]
    label = row["reference_label"]
    return (label if isinstance(label, str) else None), row["reference_source"], row["overridden"]


# ---------------------------------------------------------------- overrides


def test_an_override_is_a_standing_verdict_that_is_not_the_judges_label():
    frame = tables.verdicts("""
        response | criterion | judge | dr_a | dr_b | dr_b:open | dr_c:adjudicated
        r1       | c1        |  +    |  +   |  +   |           |
        r1       | c2        |  +    |  -   |      |           |
        r1       | c3        |  +    |      |  -   |  +        |
        r1       | c4        |  -    |  -   |      |           |  ?
        r1       | c5        |       |  -   |      |           |
    """)
    found = overrides(frame, "judge")
    assert found[["criterion_id", "rater", "label", "judge_label"]].to_numpy().tolist() == [
        [2, "dr_a", "not_met", "met"], [4, "dr_c", "cannot_assess", "not_met"],
    ]  # fmt: skip
    table = item_labels(frame, "judge").set_index("criterion_id")
    assert table["overridden"].to_dict() == {1: False, 2: True, 3: False, 4: True, 5: False}


def test_cause_severity_and_note_are_those_of_the_newest_verdict_that_differs():
    frame = tables.verdicts("response | criterion | judge | dr_a | dr_b | dr_d\nr1 | c1 | + | - | - | +")
    frame["cause"] = [None, "language", "other", None]
    frame["severity"] = [None, "mild", "severe", None]
    frame["explanation"] = ["by the judge", "by a", "by b", "by d"]
    row = item_labels(frame, "judge").iloc[0]
    assert row[["override_cause", "severity", "note"]].tolist() == ["other", "severe", "by b"]
    assert (row["judge_explanation"], row["judge_label"]) == ("by the judge", "met")


def test_where_nobody_differs_the_note_is_that_of_the_newest_read():
    frame = tables.verdicts("response | criterion | judge | dr_a | dr_b\nr1 | c1 | + | + | +")
    frame["explanation"] = ["by the judge", "by a", "by b"]
    row = item_labels(frame, "judge").iloc[0]
    assert row["note"] == "by b"
    assert not isinstance(row["override_cause"], str)


def test_another_judges_labels_stay_out():
    frame = tables.verdicts("""
        response | criterion | judge_a | judge_b | dr_a
        r1       | c1        |  +      |  -      |  +
        r1       | c2        |         |  -      |
        r1       | c3        |         |  -      |  +
    """)
    found = item_labels(frame, "judge_a").set_index("criterion_id")
    assert sorted(found.index) == [1, 3]  # nobody but judge_b spoke on the second
    assert found["judge_label"].dropna().to_dict() == {1: "met"}
    assert found["judge"].dropna().to_dict() == {1: "judge_a"}
    assert not found["overridden"].any()


# ---------------------------------------------------------------- how it was read


def test_how_the_readers_came_to_it_is_listed_without_repetition():
    frame = tables.verdicts("""
        response | criterion | dr_a | dr_b | dr_c
        r1       | c1        |  +   |  +   |  +
        r1       | c2        |  +   |      |
    """)
    frame["selection"] = ["volunteered", None, "random", "random"]
    frame["blinded"] = [False, None, True, True]
    frame["inclusion_probability"] = [None, None, 0.25, 0.25]
    found = reference_labels(frame)
    assert found["selection"].tolist()[0] == "random;volunteered"
    assert found["blinded"].tolist()[0] == "false;true"
    assert found["inclusion_probability"].tolist()[0] == 0.25
    assert found[["selection", "blinded", "inclusion_probability"]].iloc[1].isna().all()


# ---------------------------------------------------------------- nothing to label


def test_an_empty_study_gives_empty_tables_with_their_columns(database_url):
    engine = open_study(database_url)
    with reading(engine) as session:
        frame = frames.verdicts(session, texts=True)
    engine.dispose()
    assert current_reads(frame).empty
    assert overrides(frame, "judge").empty
    assert reference_labels(frame).empty
    found = item_labels(frame, "judge")
    assert found.empty
    assert {"reference_label", "reference_source", "overridden", "note", "judge_label", *COUNTS} <= set(found.columns)


def test_with_judges_alone_every_label_is_the_judges():
    frame = tables.verdicts("response | criterion | judge\nr1 | c1 | +\nr1 | c2 | -")
    assert reference_labels(frame).empty
    found = item_labels(frame, "judge")
    assert found["reference_label"].tolist() == ["met", "not_met"]
    assert found[COUNTS].to_numpy().sum() == 0
    assert not found["overridden"].any()


def test_with_physicians_alone_every_label_is_theirs():
    frame = tables.verdicts("response | criterion | dr_a | dr_b\nr1 | c1 | + | +\nr1 | c2 | - |")
    found = item_labels(frame, "")
    assert found["reference_label"].tolist() == ["met", "not_met"]
    assert found["reference_source"].tolist() == ["agreed", "single"]
    assert found["judge_label"].isna().all()
    assert not found["overridden"].any()
