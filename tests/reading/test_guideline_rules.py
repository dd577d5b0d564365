"""What the study has chosen, and what readers are told: versions, the trail, what a reading keeps."""

import json
import math

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import OverreadError
from evalcore.reading import queries, reviewing
from evalcore.reading.reviewing import Decision
from evalcore.study import contents, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import Label, ReadingMode, Rules
from evalcore.study.store import MAX_GUIDELINE
from tests import world
from tests.world import answer, assigned, submitted

LEAD, IMANI, TOVE = "Ana Ruiz", "Dr. Imani Noor", "Dr. Tove Lind"


@pytest.fixture
def small(database_url):
    made = world.made(database_url)
    yield made
    made.engine.dispose()


def write(small, guideline):
    with writing(small.engine) as session:
        return store.set_guideline(session, guideline, actor=LEAD)


def use(small, rules):
    with writing(small.engine) as session:
        store.set_rules(session, rules, actor=LEAD)


def now_in_force(small):
    with reading(small.engine) as session:
        return contents.rules(session)


def trail(small, action):
    found = world.rows(
        small.engine, "SELECT subject, detail FROM audit_event WHERE action = :act ORDER BY id", act=action
    )
    return [(subject, json.loads(detail)) for subject, detail in found]


# ---------------------------------------------------------------- guideline


def test_each_guideline_is_a_version_and_the_earlier_ones_stay(small):
    with reading(small.engine) as session:
        assert contents.guideline(session) is None
    texts = ["# Read\n", "# Read slowly  \n*всё* ٣"]
    versions = [write(small, text) for text in texts]
    assert versions == [1, 2]
    with reading(small.engine) as session:
        assert contents.guideline(session).text == texts[1]
        assert [contents.guideline(session, version).text for version in versions] == texts
        assert contents.guideline(session, 2).created_by == LEAD
        assert contents.guideline(session, 3) is None
    told = [(subject, detail["characters"]) for subject, detail in trail(small, "guideline changed")]
    assert told == [(f"version {v}", len(t)) for v, t in zip(versions, texts, strict=True)]


def test_a_guideline_that_is_none_is_refused_and_leaves_nothing(small):
    for text in ("", " \n\t", "x" * (MAX_GUIDELINE + 1), "a\x00b", "half \ud83e"):
        with pytest.raises(OverreadError, match=r"guideline: expected 1 to 100,000 characters of plain text, got"):
            write(small, text)
    assert world.count(small.engine, "guideline") == 0
    assert trail(small, "guideline changed") == []
    write(small, "x" * MAX_GUIDELINE)


def test_a_reading_and_all_its_verdicts_keep_the_version_that_was_there_when_it_was_opened(small):
    assigned(small, n_items=1)
    without = reviewing.take(small.engine, small.viewer(TOVE))
    assert without.reading.guideline_version is None
    first = write(small, "Read.")
    imani = small.viewer(IMANI)
    number = answer(small, imani, reviewing.take(small.engine, imani), "??")
    second = write(small, "Read slowly.")
    desk = reviewing.take(small.engine, imani)
    assert desk.reading.guideline_version == first != second
    world.lock(small.engine, imani, number)
    reviewing.revise(small.engine, imani, number, desk.keys[0], Decision(Label.NOT_MET), seen=None)
    answer(small, small.viewer(TOVE), without, "??")
    world.lock(small.engine, small.viewer(TOVE), without.reading.id)
    versions = [(row["rater"], row["stage"], row["guideline_version"]) for row in small.history()]
    assert versions == [(IMANI, "first", first)] * 2 + [(IMANI, "revised", first)] + [(TOVE, "first", None)] * 2
    reviewing.revise(small.engine, imani, number, desk.keys[1], Decision(Label.NOT_MET), seen=None)
    reviewing.finish(small.engine, imani, number)
    assigned(small)
    submitted(small, IMANI, "++")
    assert small.history()[-1]["guideline_version"] == second  # an item that is opened later


def test_a_reader_knows_the_newest_version_under_which_they_have_locked_a_read(small):
    def known(reader):
        with reading(small.engine) as session:
            return queries.guideline_known(session, small.viewer(reader))

    assigned(small, n_items=2)
    submitted(small, TOVE, "++")  # before there was one
    first = write(small, "Read.")
    imani = small.viewer(IMANI)
    desk = reviewing.take(small.engine, imani)
    number = answer(small, imani, desk, "??")
    assert known(IMANI) is known(TOVE) is None  # what is only in hand is no read yet
    world.lock(small.engine, imani, number)
    assert (known(IMANI), known(TOVE)) == (first, None)
    write(small, "Read slowly.")
    assert known(IMANI) == first
    for key in desk.keys:
        reviewing.revise(small.engine, imani, number, key, Decision(Label.NOT_MET), seen=None)
    reviewing.finish(small.engine, imani, number)
    submitted(small, IMANI, "++")
    assert known(IMANI) == first + 1


# ---------------------------------------------------------------- rules


def test_a_study_begins_blind_with_no_judge_chosen_and_nothing_checked(small):
    assert now_in_force(small) == Rules(ReadingMode.BLIND, None, 0.0, both_against_judge=False)


def test_only_what_changed_is_in_the_trail_and_nothing_where_nothing_changed(small):
    steps = [
        (Rules(), {}),
        (Rules(check_share=0.1), {"check_share": 0.1}),
        (Rules(check_share=0.1), {}),
        (Rules(mode=ReadingMode.OPEN, judge=world.JUDGE, check_share=0.1), {"reading_mode": "open", "judge": world.JUDGE}),
        (Rules(check_share=1.0, both_against_judge=True),
         {"reading_mode": "blind", "judge": None, "check_share": 1.0, "both_against_judge": True}),
    ]  # fmt: skip
    for rules, _ in steps:
        use(small, rules)
        assert now_in_force(small) == rules
    assert trail(small, "rules changed") == [("study", changed) for _, changed in steps if changed]
    assert {actor for actor, action in small.events() if action == "rules changed"} == {LEAD}


def test_a_share_outside_0_to_1_is_refused_and_the_rules_stay(small):
    use(small, Rules(check_share=0.25))
    n_events = len(small.events())
    for share in (-0.01, 1.01, math.nan, math.inf, -math.inf):
        with pytest.raises(OverreadError, match=r"^check_share: expected a share from 0 to 1, got .*$"):
            use(small, Rules(mode=ReadingMode.OPEN, check_share=share))
    assert now_in_force(small) == Rules(check_share=0.25)
    assert len(small.events()) == n_events


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_share_that_is_none_is_refused_before_the_database_is_asked(share):
    if not 0 <= share <= 1:
        with pytest.raises(OverreadError, match="check_share"):
            store.set_rules(None, Rules(check_share=share), actor=LEAD)
