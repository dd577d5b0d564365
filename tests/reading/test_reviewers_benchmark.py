"""The benchmark of many reviewers at once works: it finds nothing lost where nothing is, and finds what is. Its times are not judged here."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from evalcore.reading import reviewing
from evalcore.reading.reviewing import Decision
from evalcore.study.schema import CannotReason, Label
from tests import world
from tests.benchmarks._kept import Read, Said, faults
from tests.benchmarks.reviewers import in_order
from tests.world import assigned, submitted

pytestmark = pytest.mark.slow  # the tests of a program that tests

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "reviewers.py"
IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"
WORDS = {1: "Names warning sign 1.", 2: "Names warning sign 2."}


def ran(*options):
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--reviewers", "4", "--verdicts", "228", *options],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_four_reviewers_at_once_lose_nothing_and_double_nothing():
    said = ran("--seconds", "6", "--pause", "0.02", "0.1")
    assert "in the database: nothing lost, nothing doubled; the audit trail holds" in said
    kept = re.search(
        r"^(\d+) marks and (\d+) revisions were shown, (\d+) reads submitted with (\d+) first verdicts; 0 presses",
        said,
        re.M,
    )
    assert kept, said
    n_marks, _, n_reads, n_first = map(int, kept.groups())
    assert n_marks >= n_first >= 11 * n_reads > 0  # 228 verdicts are 20 rubrics of 11 or 12 criteria
    assert re.search(r"^a mark: \d+ presses, .* x the floor at p95 \(target: p95 under 500 ms\)$", said, re.M)


@pytest.mark.slow
def test_bursts_are_counted_for_one_alone_for_one_among_others_and_for_all_at_once():
    said = ran("--seconds", "3", "--burst")
    alone, among, at_once = re.findall(r"^(.+): \d+ of (\d+) arrived, \d+ were lost; ", said, re.M)
    assert alone == ("one reviewer, nobody else at work", "60")
    assert among[0] == "one reviewer, 3 others at a person's pace"
    assert at_once[0].endswith(" reviewers at once")


# ---------------------------------------------------------------- what it compares


@pytest.fixture
def small(database_url):
    """Dr. Noor has read the first response, + then - after a slip, and revised the second criterion; Dr. Lind has marked one criterion of it."""
    made = world.made(database_url, judged="++++")
    assigned(made)
    viewer = made.viewer(IMANI)
    desk = reviewing.take(made.engine, viewer, at=world.START)
    reviewing.mark(made.engine, viewer, desk.reading.id, desk.keys[0], Label.NOT_MET, at=world.START)
    number, _ = submitted(made, IMANI, "+-")
    reviewing.revise(made.engine, viewer, number, desk.keys[1], Decision(Label.MET), seen=None)
    other = reviewing.take(made.engine, made.viewer(TOVE), at=world.START)
    assert other.asked.task_id == desk.asked.task_id
    assert {item.position: item.text for item in desk.material.items} == WORDS
    reviewing.mark(
        made.engine, made.viewer(TOVE), other.reading.id, desk.keys[1], Label.CANNOT_ASSESS, reason=CannotReason.LANGUAGE, at=world.START
    )  # fmt: skip
    yield made
    made.engine.dispose()


def logs():
    """What the two did."""
    noor = Read(dict(WORDS), [Said(1, "not_met"), Said(1, "met"), Said(2, "not_met")], is_submitted=True, revised=[2])
    lind = Read(dict(WORDS), [Said(2, "cannot_assess", "language")])
    return {IMANI: [noor], TOVE: [lind]}


def test_logs_that_the_database_holds_are_without_fault(small):
    assert faults(small.engine, logs(), n_readers=2) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda noor, lind: lind.marks.append(Said(1, "met")), "mark Said(position=1, label='met', reason=None) was lost 1 times"),
        (lambda noor, lind: lind.marks.append(lind.marks[0]), "was lost 1 times"),
        (lambda noor, lind: lind.marks.clear(), "is there 1 times more"),
        (lambda noor, lind: noor.marks.reverse(), "marks are in another order"),
        (lambda noor, lind: noor.marks.append(Said(2, "met")), "first verdict Said(position=2, label='met', reason=None) was lost"),
        (lambda noor, lind: noor.marks.append(Said(2, "met")), "label='not_met', reason=None) is there more often than given"),
        (lambda noor, lind: setattr(lind, "is_submitted", True), "first verdict Said(position=2, label='cannot_assess', reason='language') was lost"),
        (lambda noor, lind: setattr(lind, "is_submitted", True), "'first read submitted' happened 2 times, the trail tells of 1"),
        (lambda noor, lind: setattr(lind, "is_submitted", True), "was submitted with a criterion open"),
        (lambda noor, lind: setattr(noor, "is_submitted", False), "revealed, and was not submitted"),
        (lambda noor, lind: noor.revised.append(1), "revision of 1 was lost"),
        (lambda noor, lind: noor.revised.clear(), "revision of 2 is there more often than given"),
        (lambda noor, lind: noor.words.update({2: "Something else."}), "other criteria were shown than belong to the item"),
    ],
)  # fmt: skip
def test_a_log_that_the_database_does_not_hold_is_a_fault(small, change, found):
    told = logs()
    change(told[IMANI][0], told[TOVE][0])
    assert any(found in what for what in faults(small.engine, told, n_readers=2))


def test_an_item_that_nobody_opened_and_one_that_is_not_stored_are_faults(small):
    told = logs()
    del told[TOVE]
    told[IMANI] = [*told[IMANI], Read({1: "Names warning sign 1."})]
    found = faults(small.engine, told, n_readers=2)
    assert found == [f"{IMANI}: 2 items were opened, 1 are stored", f"readings of people who read nothing: {TOVE}"]


def test_more_readers_than_an_item_gets_are_a_fault(small):
    assert faults(small.engine, logs(), n_readers=1) == ["item 1 has 2 readers"]


def test_a_trail_that_was_changed_is_a_fault(small):
    world.tampered(small.engine, "UPDATE audit_event SET subject = 'another' WHERE id = 2")
    (found,) = faults(small.engine, logs(), n_readers=2)
    assert found.startswith("The audit trail is broken at event 2:")


# ---------------------------------------------------------------- bursts


@given(st.lists(st.tuples(st.sampled_from(["met", "not_met"]), st.booleans())))
def test_what_is_left_after_losses_is_in_order(pressed):
    whole = [label for label, _ in pressed]
    assert in_order([label for label, is_kept in pressed if is_kept], whole)


@given(st.lists(st.sampled_from("ab")), st.lists(st.sampled_from("ab")))
def test_in_order_is_what_looking_for_each_in_turn_finds(part, whole):
    at = 0
    for one in part:
        while at < len(whole) and whole[at] != one:
            at += 1
        at += 1
    assert in_order(part, whole) == (at <= len(whole))


def test_two_that_changed_places_are_not_in_order():
    assert not in_order(["met", "not_met"], ["not_met", "met"])
