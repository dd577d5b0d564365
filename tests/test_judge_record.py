"""How often a judge is right by blind first reads: which reads count, of which kind, and what the screen says of it."""

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import deciding, desks, overriding, reviewing, store
from evalcore.db import reading, writing
from evalcore.metrics.intervals import interval_words, share_interval
from evalcore.metrics.judge_record import (
    ALL,
    ALL_CRITERIA,
    KIND,
    MIN_KIND_READS,
    MIN_READS,
    SIGN,
    judge_record,
    record_for,
    sentence,
)
from evalcore.overriding import Reading
from evalcore.queries.blind_reads import blind_reads
from evalcore.queries.frames import ITEM_BASE
from evalcore.schema import AXES, Acuity, Label, RaterKind, Stage, Verdict
from tests import tables, world

many = settings(max_examples=60, deadline=None)
IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"
SIGNS = tables.LABELS | {"": None}
COLUMNS = [
    "verdict_id", "example_id", "response_id", "criterion_id", "rater_id", "rater", "label", "judge", "judge_label", "points", "axis",
    "level", "cluster", "theme", "revised_label", "revealed", "decided", "item_id",
]  # fmt: skip


def reads_of(rows):
    """The frame that `blind_reads` gives, of one dictionary a read: what it does not say is plain."""
    plain = {
        "example": 1, "axis": "accuracy", "points": 5, "rater": "dr_a", "first": "+", "judge": "Magpie", "says": "+", "revised": "",
        "revealed": True, "decided": True,
    }  # fmt: skip
    made = [plain | row for row in rows]
    frame = pd.DataFrame(
        {
            "verdict_id": range(1, len(made) + 1),
            "item_id": range(1, len(made) + 1),
            **{
                name: [row[name] for row in made]
                for name in ("rater", "judge", "axis", "points", "revealed", "decided")
            },
            "example_id": [row["example"] for row in made],
            "label": [SIGNS[row["first"]] for row in made],
            "judge_label": [SIGNS[row["says"]] for row in made],
            "revised_label": [SIGNS[row["revised"]] for row in made],
        }
    )
    words = ["rater", "judge", "axis", "label", "judge_label", "revised_label"]
    return frame.astype({"points": float, "revealed": bool, "decided": bool, **dict.fromkeys(words, "str")})


def drawn(drawing):
    """Reads of a drawn table; `-` and `+` are labels, empty cells are missing, numbers are numbers."""
    lines = [[cell.strip() for cell in line.split("|")] for line in drawing.strip().splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    for row in rows:
        if "points" in row:
            row["points"] = float(row["points"]) if row["points"] else None
        if "axis" in row:
            row["axis"] = row["axis"] or None
        for name in ("revealed", "decided"):
            if name in row:
                row[name] = row[name] == "yes"
    return reads_of(rows)


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
    # left: + beside +, and - beside a judge who could not assess, which is not right
    row = record.iloc[0]
    assert row[["n", "n_right", "n_cannot_assess", "n_without_label"]].tolist() == [2, 1, 2, 1]


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


def test_without_reads_there_is_no_record():
    record = judge_record(reads_of([]))
    assert record.empty
    assert {"judge", "grouping", "kind", "n", "n_right", "share", "low", "high", "n_examples"} <= set(record.columns)


sign = st.sampled_from(["+", "-", "?"])
read = st.fixed_dictionaries(
    {
        "example": st.integers(1, 5),
        "axis": st.sampled_from([*AXES, None]),
        "points": st.sampled_from([-10, -1, 1, 10, None]),
        "judge": st.sampled_from(["Magpie", "Wren"]),
        "first": sign,
        "says": st.sampled_from(["+", "-", "?", ""]),
    }
)


@many
@given(rows=st.lists(read, min_size=1, max_size=40))
def test_every_read_is_counted_once_in_each_grouping(rows):
    record = judge_record(reads_of(rows))
    for judge in {row["judge"] for row in rows}:
        mine = [row for row in rows if row["judge"] == judge]
        answered = [row for row in mine if row["first"] != "?" and row["says"]]
        for grouping in (ALL, SIGN, KIND):
            part = record.loc[record["judge"].eq(judge) & record["grouping"].eq(grouping)]
            assert part["n"].sum() == len(answered)
            assert part["n_right"].sum() == sum(row["first"] == row["says"] for row in answered)
            assert part["n_cannot_assess"].sum() == sum(row["first"] == "?" for row in mine)
            assert part["n_without_label"].sum() == sum(row["first"] != "?" and not row["says"] for row in mine)
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
    assert found.grouping == shown
    expected = {
        KIND: ("accuracy, undesirable", n_kind),
        SIGN: ("undesirable", n_kind + n_sign),
        ALL: (ALL_CRITERIA, n_kind + n_sign + n_other),
    }
    assert (found.kind, found.n) == expected[shown]
    assert found.n_right == found.n


def test_reads_that_cannot_assess_do_not_make_a_kind_known():
    rows = many_reads(MIN_KIND_READS - 1) + many_reads(30, first="?")
    assert record_for(judge_record(reads_of(rows)), "accuracy", 5).grouping == ALL


def test_a_criterion_without_axis_or_points_has_its_own_kind():
    record = judge_record(reads_of(many_reads(MIN_KIND_READS, axis=None, points=None)))
    assert record_for(record, None, None).kind == "no axis, no points known"
    assert record_for(record, None, math.nan).n == MIN_KIND_READS


def test_records_of_two_judges_at_once_are_refused():
    record = judge_record(reads_of([{"judge": "Magpie"}, {"judge": "Wren"}]))
    with pytest.raises(ValueError, match="records of 2 judges came"):
        record_for(record, "accuracy", 5)


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
        expected = f"This judge is right on {share} of {criteria} criteria by blind reads."
        assert sentence(record_for(record, axis, points)) == expected


@pytest.mark.parametrize("n", [0, 1, MIN_READS - 1])
def test_with_too_few_reads_the_sentence_says_how_few(n):
    found = record_for(judge_record(reads_of(many_reads(n))), "accuracy", 5)
    assert sentence(found) == f"Too few blind reads yet to say how often this judge is right on such criteria ({n})."


# ---------------------------------------------------------------- which reads the database gives


@pytest.fixture
def small(database_url):
    made = world.made(database_url, judged="+-+ ")  # nothing on the last criterion
    yield made
    made.engine.dispose()


def found_reads(small, judge=None, **options):
    with reading(small.engine) as session:
        return blind_reads(session, judge, **options)


def said(small, label, *, name=IMANI, kind=RaterKind.REVIEWER, stage=Stage.FIRST, example=0, criterion=0, **more):
    """A verdict as an import brings it. Returns its number."""
    item = small.item(example, criterion)
    with writing(small.engine) as session:
        verdict = Verdict(
            example_id=example + 1,
            rater_id=store.ensure_rater(session, kind, name),
            stage=stage,
            label=label,
            **(item | more),
        )
        return store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")[0]


def test_an_empty_study_has_the_columns_and_no_row(database_url):
    made = world.made(database_url)
    found = found_reads(made)
    assert sorted(found.columns) == sorted(COLUMNS)
    assert found.empty
    assert judge_record(found).empty
    made.engine.dispose()


def test_a_read_stands_beside_the_judges_label_with_what_it_is_grouped_by(small):
    number = said(small, Label.MET, example=0, criterion=1)
    (row,) = found_reads(small).to_dict(orient="records")
    item = small.item(0, 1)
    assert {name: row[name] for name in ("verdict_id", "example_id", "rater", "label", "judge", "judge_label", "points", "axis", "level")} == {
        "verdict_id": number, "example_id": 1, "rater": IMANI, "label": "met", "judge": world.JUDGE, "judge_label": "not_met", "points": -4,
        "axis": "accuracy", "level": "example",
    }  # fmt: skip
    assert (row["response_id"], row["criterion_id"]) == (item["response_id"], item["criterion_id"])
    assert row["item_id"] == item["response_id"] * ITEM_BASE + item["criterion_id"]
    assert row["theme"] == "hedging"
    assert pd.isna(row["revised_label"])
    assert (row["revealed"], row["decided"]) == (False, False)


def test_only_standing_blind_first_reads_of_criteria_count(small):
    counted = said(small, Label.MET, blinded=True)
    said(small, Label.MET, name="not blind", blinded=False)
    said(small, Label.MET, name="open", stage=Stage.OPEN)
    said(small, Label.MET, name="settled", stage=Stage.ADJUDICATED)
    said(small, Acuity.A, name="acuity", criterion_id=None)
    old = said(small, Label.MET, name="changed")
    new = said(small, Label.NOT_MET, name="changed", supersedes=old)
    back = said(small, Label.MET, name="taken back")
    said(small, None, name="taken back", supersedes=back)
    overriding.give_verdict(
        small.engine, small.viewer(TOVE), **small.item(), reading=Reading(Label.NOT_MET), judge=world.JUDGE, seen=None
    )
    assert found_reads(small)["verdict_id"].tolist() == [counted, new]


def test_a_read_stands_beside_each_judge_once_with_the_standing_label_of_each(small):
    said(small, Label.MET, criterion=1)
    old = said(small, Label.NOT_MET, name="Wren", kind=RaterKind.JUDGE, stage=Stage.JUDGE, criterion=1)
    said(small, Label.MET, name="Wren", kind=RaterKind.JUDGE, stage=Stage.JUDGE, criterion=1, supersedes=old)
    said(small, Label.MET, name="Owl", kind=RaterKind.JUDGE, stage=Stage.JUDGE, example=1)
    found = found_reads(small).set_index("judge")["judge_label"]
    assert found.drop("Owl").to_dict() == {world.JUDGE: "not_met", "Wren": "met"}
    assert pd.isna(found["Owl"])
    assert found_reads(small, "Wren")["judge"].tolist() == ["Wren"]
    assert found_reads(small, "nobody").empty


def test_of_two_prompts_of_one_judge_the_newer_label_counts_and_the_read_counts_once(small):
    number = said(small, Label.MET)
    with writing(small.engine) as session:
        prompt = store.ensure_rater(session, RaterKind.JUDGE, world.JUDGE, prompt_version="2")
        verdict = Verdict(example_id=1, rater_id=prompt, stage=Stage.JUDGE, label=Label.NOT_MET, **small.item())
        store.add_verdicts(session, [verdict], actor="set-up", action="verdicts made")
    found = found_reads(small, world.JUDGE)
    assert found[["verdict_id", "judge_label"]].to_numpy().tolist() == [[number, "not_met"]]


def test_a_label_that_the_judge_took_back_is_none(small):
    said(small, Label.MET)
    old = said(small, Label.NOT_MET, name="Wren", kind=RaterKind.JUDGE, stage=Stage.JUDGE)
    said(small, None, name="Wren", kind=RaterKind.JUDGE, stage=Stage.JUDGE, supersedes=old)
    assert found_reads(small, "Wren")["judge_label"].isna().tolist() == [True]


def test_a_criterion_that_the_judge_has_not_labelled_is_there_without_a_label(small):
    said(small, Label.MET, example=1, criterion=1)
    assert found_reads(small)["judge_label"].isna().tolist() == [True]
    assert judge_record(found_reads(small))["n_without_label"].tolist() == [1, 1, 1]


def test_a_response_can_be_left_out(small):
    said(small, Label.MET, example=0)
    kept = said(small, Label.MET, example=1)
    assert found_reads(small, leave_out=small.responses[0])["verdict_id"].tolist() == [kept]


@settings(max_examples=8, deadline=None)
@given(labels=st.lists(st.tuples(sign, sign), min_size=4, max_size=4))
def test_reads_made_in_review_give_the_record_that_their_labels_say(labels, tmp_path_factory):
    small = world.made(str(tmp_path_factory.mktemp("study") / "overread.db"), judged="+-+-")
    world.assigned(small)
    given = {}
    for reader, name in enumerate((IMANI, TOVE)):
        for _ in range(2):
            viewer = small.viewer(name)
            desk = reviewing.take(small.engine, viewer, at=world.START)
            first = (desk.asked.example_id - 1) * 2
            marks = "".join(labels[first + place][reader] for place in range(2))
            number = world.answer(small, viewer, desk, marks)
            reviewing.submit(small.engine, viewer, number, at=world.START)
            decide_all(small, viewer, number)
            given.update({(name, first + place): mark for place, mark in enumerate(marks)})
    counted = [(place, mark) for (_, place), mark in given.items() if mark != "?"]
    record = judge_record(found_reads(small, world.JUDGE)).iloc[0]
    assert (record["n"], record["n_right"]) == (len(counted), sum("+-+-"[place] == mark for place, mark in counted))
    assert record["n_cannot_assess"] == len(given) - len(counted)
    small.engine.dispose()


def decide_all(small, viewer, number):
    """Keep every first label."""
    desk = desks.desk(small.engine, viewer, number)
    for key in desk.undecided:
        kept = deciding.Decision(Label(desk.first[key].label))
        deciding.decide(small.engine, viewer, number, key, kept, seen=None)
    deciding.finish(small.engine, viewer, number)
