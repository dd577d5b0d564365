"""Which blind first reads the database gives, beside which label of which judge, and what became of them after the reveal."""

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.judges.anchoring import AWAY, CHANGED, OVERALL, TOWARD, anchoring
from evalcore.judges.record import judge_record
from evalcore.reading import overriding, reviewing
from evalcore.reading.reviewing import Decision
from evalcore.rubric.blind_read_queries import blind_reads
from evalcore.study import store
from evalcore.study.db import reading, writing
from evalcore.study.frames import ITEM_BASE
from evalcore.study.schema import Acuity, Ask, Label, RaterKind, ReadingMode, ReadingState, Stage, Verdict
from tests import world
from tests.drawn_reads import left_out, shares, sign
from tests.reading_steps import IMANI, TOVE, decide_places, decide_the_rest, finish, first_conversation, use
from tests.world import judged, said

COLUMNS = [
    "verdict_id", "example_id", "response_id", "criterion_id", "rater_id", "rater", "label", "judge", "judge_label", "points", "axis",
    "level", "cluster", "theme", "revised_label", "looked_label", "control_share", "revealed", "decided", "item_id", "selection", "inclusion_probability",
]  # fmt: skip


@pytest.fixture
def small(database_url):
    made = world.made(database_url, judged="+-+ ")  # nothing on the last criterion
    yield made
    made.engine.dispose()


def found_reads(small, judge=None, **options):
    with reading(small.engine) as session:
        return blind_reads(session, judge, **options)


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
        small.engine, small.viewer(TOVE), **small.item(), decision=Decision(Label.NOT_MET), judge=world.JUDGE, seen=None
    )
    assert found_reads(small)["verdict_id"].tolist() == [counted, new]


def test_a_read_stands_beside_each_judge_once_with_the_standing_label_of_each(small):
    said(small, Label.MET, criterion=1)
    old = judged(small, "Wren", Label.NOT_MET, criterion=1)
    judged(small, "Wren", Label.MET, criterion=1, supersedes=old)
    judged(small, "Owl", Label.MET, example=1)
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
    old = judged(small, "Wren", Label.NOT_MET)
    judged(small, "Wren", None, supersedes=old)
    assert found_reads(small, "Wren")["judge_label"].isna().tolist() == [True]


def test_a_criterion_that_the_judge_has_not_labelled_is_there_without_a_label(small):
    said(small, Label.MET, example=1, criterion=1)
    assert found_reads(small)["judge_label"].isna().tolist() == [True]
    assert judge_record(found_reads(small))["n_without_label"].tolist() == [1, 1, 1]


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
            world.lock(small.engine, viewer, number, at=world.START)
            decide_the_rest(small, number, name=name)
            given.update({(name, first + place): mark for place, mark in enumerate(marks)})
    counted = [(place, mark) for (_, place), mark in given.items() if mark != "?"]
    record = judge_record(found_reads(small, world.JUDGE)).iloc[0]
    assert (record["n"], record["n_right"]) == (len(counted), sum("+-+-"[place] == mark for place, mark in counted))
    assert record["n_cannot_assess"] == len(given) - len(counted)
    small.engine.dispose()


# ---------------------------------------------------------------- what became of them


def of_first(small):
    """revised_label (None where missing), revealed, decided of each item of the first conversation, in order."""
    found = found_reads(small)
    found = found.loc[found["example_id"].eq(1)].sort_values("criterion_id")
    return [
        (row["revised_label"] if isinstance(row["revised_label"], str) else None, row["revealed"], row["decided"])
        for row in found.to_dict(orient="records")
    ]


def test_a_draft_is_no_read(small):
    world.assigned(small)
    viewer = small.viewer(IMANI)
    world.answer(small, viewer, reviewing.take(small.engine, viewer, at=world.START), "+-")
    assert found_reads(small).empty


def test_a_read_is_revealed_once_locked_and_decided_once_done(small):
    number, state = first_conversation(small, "--")  # differs from the judge on the first
    assert state is ReadingState.REVEALED
    assert of_first(small) == [(None, True, False), (None, True, False)]
    decide_places(small, number, _0="+")
    assert of_first(small) == [("met", True, False), (None, True, False)]
    finish(small, number)
    assert of_first(small) == [("met", True, True), (None, True, True)]


def test_a_read_that_agrees_throughout_is_revealed_and_decided_at_once(small):
    _, state = first_conversation(small, "+-")
    assert state is ReadingState.DONE
    assert of_first(small) == [(None, True, True)] * 2


def test_the_newest_decision_counts(small):
    number, _ = first_conversation(small, "--")
    decide_places(small, number, _0="+")
    decide_places(small, number, _0="-")
    finish(small, number)
    decide_places(small, number, _1="+")  # amended afterwards: away from the judge
    assert of_first(small) == [("not_met", True, True), ("met", True, True)]
    reads = found_reads(small)
    table = anchoring(reads.loc[reads["example_id"].eq(1)])
    assert shares(table) == {CHANGED: (1, 2), TOWARD: (0, 1), AWAY: (1, 1)}


def test_each_readers_own_decision_stands_beside_their_own_read(small):
    number, _ = first_conversation(small, "--")
    decide_places(small, number, _0="+")
    finish(small, number)
    for _ in range(2):
        number, _ = world.submitted(small, TOVE, "--")
        decide_the_rest(small, number, Label.NOT_MET, name=TOVE)
    reads = found_reads(small)
    first = reads.loc[reads["criterion_id"].eq(small.criteria[0][0])].set_index("rater")["revised_label"]
    assert first.to_dict() == {IMANI: "met", TOVE: "not_met"}
    by_reader = anchoring(reads.loc[reads["example_id"].eq(1)], by=["rater"])
    assert shares(by_reader, IMANI)[TOWARD] == (1, 1)
    assert shares(by_reader, TOVE)[TOWARD] == (0, 1)


def test_reads_of_an_open_study_are_not_blind(small):
    use(small, mode=ReadingMode.OPEN)
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
        world.lock(small.engine, viewer, desk.reading.id, at=world.START)
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
        judged(small, "Wren", label, criterion=criterion)
    number, _ = first_conversation(small, "--")
    decide_places(small, number, _0="+")
    finish(small, number)
    shown, other = found_reads(small, world.JUDGE), found_reads(small, "Wren")
    assert shown.loc[shown["example_id"].eq(1), "revealed"].tolist() == [
        True,
        True,
    ]  # as many verdicts: the first by name
    assert not other["revealed"].any()
    use(small, judge="Wren")
    shown, other = found_reads(small, world.JUDGE), found_reads(small, "Wren")  # what was shown is kept with the read
    assert shown.loc[shown["example_id"].eq(1), "revealed"].tolist() == [True, True]
    assert not other["revealed"].any()


@given(firsts=st.tuples(sign, sign, sign, sign), ends=st.tuples(sign, sign, sign, sign))
def test_what_is_said_in_review_comes_back_as_the_shift(firsts, ends, tmp_path_factory):
    judged = "+-++"
    small = world.made(str(tmp_path_factory.mktemp("study") / "overread.db"), judged=judged)
    world.assigned(small, readers=(IMANI,), n_readers=1)
    viewer = small.viewer(IMANI)
    for _ in range(2):
        desk = reviewing.take(small.engine, viewer, at=world.START)
        start = (desk.asked.example_id - 1) * 2
        number = world.answer(small, viewer, desk, "".join(firsts[start : start + 2]))
        world.lock(small.engine, viewer, number, at=world.START)
        decide_places(small, number, _0=ends[start], _1=ends[start + 1])
        finish(small, number)
    table = anchoring(found_reads(small), by=[OVERALL])
    small.engine.dispose()
    differed = [place for place in range(4) if firsts[place] != judged[place]]
    agreed = [place for place in range(4) if firsts[place] == judged[place]]
    assert shares(table) == {
        CHANGED: (sum(firsts[place] != ends[place] for place in range(4)), 4),
        TOWARD: (sum(ends[place] == judged[place] for place in differed), len(differed)),
        AWAY: (sum(ends[place] != judged[place] for place in agreed), len(agreed)),
    }
