"""Three readers, several tabs and a clock, in any order: what must hold of every read after every act."""

import itertools
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.reading import queries, reviewing
from evalcore.reading.reviewing import Decision
from evalcore.study import store
from evalcore.study.db import connect, reading, writing
from evalcore.study.schema import CannotReason, Label, ReadingMode, ReadingState, Role, Rules
from tests import world

READERS = ("Dr. Imani Noor", "Dr. Tove Lind", "Dr. Third")
JUDGED = "+-+ "  # two criteria of the first response, one of the second; the judge says nothing of the third
SAID = ("met", "not_met", "met", None)
ORDER = [ReadingState.READING, ReadingState.LOCKED, ReadingState.REVEALED, ReadingState.DONE]
LOOKED = (ReadingState.REVEALED, ReadingState.DONE)
MOST = 120.0
JUMPS = st.sampled_from([1, 30, 119, 121, 600, 44 * 60, 45 * 60, 46 * 60])
LABELS = st.sampled_from(list(Label))
REASONS = st.none() | st.sampled_from([CannotReason.LANGUAGE, CannotReason.CONTEXT_MISSING])


@dataclass
class Held:
    """What the test expects of one reading."""

    reader: str
    task: int
    keys: list[int]
    last_at: datetime
    reserved_until: datetime
    guideline: int
    state: ReadingState = ReadingState.READING
    marks: list[tuple[int, str | None, str | None]] = field(default_factory=list)
    decided: dict[int, int] = field(default_factory=dict)
    first: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    is_shown: bool = False
    locked_at: datetime | None = None
    marked_at: datetime = world.START
    seconds: float = 0.0
    is_late: bool = False

    def drafts(self) -> dict[int, tuple[str | None, str | None]]:
        return {key: (label, reason) for key, label, reason in self.marks}

    def missing(self) -> bool:
        said = self.drafts()
        return any(key not in said or said[key] == ("cannot_assess", None) for key in self.keys)


class Reading(RuleBasedStateMachine):
    template: Path

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        shutil.copyfile(self.template, self.folder / "study.db")
        self.small = world.World("", connect(str(self.folder / "study.db")), [1, 2, 3], [[1, 2], [3], [4]])
        self.viewers = [self.small.viewer(name) for name in READERS]
        self.now = world.START
        self.held: dict[int, Held] = {}
        self.given_back: set[int] = set()
        self.first: list[tuple[str, int, str, str | None, int]] = []
        self.kept_rows: list[tuple[object, ...]] = []
        self.guideline = 1

    def teardown(self):
        self.small.engine.dispose()
        shutil.rmtree(self.folder)

    # ------------------------------------------------------------ the world

    @initialize(mode=st.sampled_from(ReadingMode), n_readers=st.integers(1, 3), seed=st.integers(0, 9))
    def assign(self, mode, n_readers, seed):
        self.is_blind, self.n_readers = mode is ReadingMode.BLIND, n_readers
        with writing(self.small.engine) as session:
            store.set_rules(session, Rules(mode=mode), actor="Ana Ruiz")
        world.assigned(self.small, n_items=2, n_readers=n_readers, seed=seed)  # 2 of 3

    def rows(self, statement):
        with self.small.engine.connect() as connection:
            return connection.execute(text(statement)).all()

    def chosen(self, place):
        """One of the readings that a tab has ever shown, those that were given back too."""
        numbers = sorted(self.held)
        number = numbers[place % len(numbers)]
        held = self.held[number]
        return number, held, next(v for v in self.viewers if v.name == held.reader)

    def touched(self, held):
        if held.state is ReadingState.READING and held.reserved_until <= self.now:
            held.is_late = True  # comes back after the place was open to others: counts as one read more
        held.seconds += min((self.now - held.last_at).total_seconds(), MOST)
        held.last_at, held.reserved_until = self.now, self.now + timedelta(minutes=45)

    @rule(seconds=JUMPS)
    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule()
    def write_a_guideline(self):
        with writing(self.small.engine) as session:
            self.guideline = store.set_guideline(session, "Read slowly.", actor="Ana Ruiz")

    # ------------------------------------------------------------ acts

    def places_kept_by_others(self, task, reader):
        return sum(
            held.task == task and held.reader != reader
            and (held.state is not ReadingState.READING or held.reserved_until > self.now)
            for number, held in self.held.items() if number not in self.given_back
        )  # fmt: skip

    @rule(reader=st.integers(0, 2))
    def take(self, reader):
        viewer = self.viewers[reader]
        desk = reviewing.take(self.small.engine, viewer, at=self.now)
        mine = {n: h for n, h in self.held.items() if h.reader == viewer.name and n not in self.given_back}
        for number, held in mine.items():
            ran_out = held.state is ReadingState.READING and held.reserved_until <= self.now
            is_free = self.places_kept_by_others(held.task, viewer.name) < self.n_readers
            if ran_out and not held.marks and not is_free:
                self.given_back.add(number)
            elif ran_out and is_free:
                held.reserved_until = self.now + timedelta(minutes=45)
        unfinished = [n for n, h in mine.items() if h.state is not ReadingState.DONE and n not in self.given_back]
        assert len(unfinished) <= 1
        if unfinished:
            assert desk is not None
            assert desk.reading.id == unfinished[0]
        if desk is None:
            read = {held.task for n, held in mine.items() if n not in self.given_back}
            left = {number for (number,) in self.rows("SELECT id FROM task")} - read
            assert all(self.places_kept_by_others(task, viewer.name) >= self.n_readers for task in left)
        elif desk.reading.id not in unfinished:
            assert desk.reading.id not in self.held  # a number is never used again
            assert self.places_kept_by_others(desk.asked.task_id, viewer.name) < self.n_readers
            assert desk.asked.task_id not in {held.task for n, held in mine.items() if n not in self.given_back}
            self.held[desk.reading.id] = Held(
                viewer.name, desk.asked.task_id, desk.keys, self.now, self.now + timedelta(minutes=45), self.guideline
            )

    def refused(self, number, held, act):
        """An act on a reading that is not open for marks."""
        error = NotFound if number in self.given_back else AlreadyChanged
        with pytest.raises(error):
            act()

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99), item=st.integers(0, 1), label=LABELS, reason=REASONS)
    def mark(self, place, item, label, reason):
        number, held, viewer = self.chosen(place)
        key = held.keys[item % len(held.keys)]

        def act():
            reviewing.mark(self.small.engine, viewer, number, key, label, reason=reason, at=self.now)

        if number in self.given_back or held.state is not ReadingState.READING:
            self.refused(number, held, act)
        else:
            act()
            self.touched(held)
            held.marks.append((key, label, reason if label is Label.CANNOT_ASSESS else None))
            held.marked_at = self.now

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99))
    def undo(self, place):
        number, held, viewer = self.chosen(place)

        def act():
            return reviewing.undo_mark(self.small.engine, viewer, number, at=self.now)

        if number in self.given_back or held.state is not ReadingState.READING or not held.marks:
            self.refused(number, held, act)
        else:
            assert act() == held.marks.pop()[0]
            self.touched(held)

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99), complete=st.booleans())
    def submit(self, place, complete):
        """Often with what is still missing marked first, so that many reads come to the lock."""
        number, held, viewer = self.chosen(place)
        if complete and number not in self.given_back and held.state is ReadingState.READING:
            for item in range(len(held.keys)):
                self.mark(place, item, (Label.MET, Label.NOT_MET)[item], None)

        def act():
            return reviewing.submit(self.small.engine, viewer, number, at=self.now)

        if number in self.given_back or held.state is not ReadingState.READING:
            self.refused(number, held, act)
        elif held.missing():
            with pytest.raises(OverreadError, match="still need an answer"):
                act()
        else:
            state = act()
            said = held.drafts()
            self.first += [(held.reader, key, *said[key], number) for key in held.keys]
            held.first, held.locked_at = {key: said[key] for key in held.keys}, self.now
            has_judge = any(SAID[key - 1] for key in held.keys)
            held.is_shown = has_judge and not self.is_blind
            wanted = ReadingState.LOCKED if has_judge and self.is_blind else self.compared(held)
            assert state is wanted
            self.touched(held)
            held.state = state

    @staticmethod
    def compared(held):
        differs = any(SAID[key - 1] not in (None, label) for key, (label, _) in held.first.items())
        return ReadingState.REVEALED if differs else ReadingState.DONE

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99))
    def reveal(self, place):
        number, held, viewer = self.chosen(place)

        def act():
            return reviewing.reveal(self.small.engine, viewer, number, at=self.now)

        if number in self.given_back:
            self.refused(number, held, act)
        elif held.state is ReadingState.READING:
            with pytest.raises(NotAllowed):
                act()
        else:
            is_first = held.state is ReadingState.LOCKED
            wanted = self.compared(held) if is_first else held.state
            assert act() is wanted
            if held.state is not ReadingState.DONE:
                self.touched(held)
            held.state, held.is_shown = wanted, held.is_shown or is_first

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99), item=st.integers(0, 1), label=LABELS, reason=REASONS)
    def slip(self, place, item, label, reason):
        """Told between the lock and the judge alone; where no judge is, before the next answer. It changes this answer and no other."""
        number, held, viewer = self.chosen(place)
        key = held.keys[item % len(held.keys)]
        desk = None if number in self.given_back else reviewing.open_review(self.small.engine, viewer, number)
        seen = desk.first[key].verdict_id if desk and key in desk.first else None

        def act():
            reviewing.slip(self.small.engine, viewer, number, key, label, reason=reason, seen=seen, at=self.now)

        others = [
            h for n, h in self.held.items() if h.reader == held.reader and n != number and n not in self.given_back
        ]
        gone_on = held.locked_at is not None and any(
            (h.locked_at or world.START) > held.locked_at or (h.marks and h.marked_at > held.locked_at) for h in others
        )
        is_open = held.state is ReadingState.LOCKED or (
            held.state is ReadingState.DONE and not held.is_shown and not gone_on
        )
        if number in self.given_back:
            self.refused(number, held, act)
        elif not is_open or not self.is_blind:
            with pytest.raises(NotAllowed):
                act()
        elif label is Label.CANNOT_ASSESS and reason is None:
            with pytest.raises(OverreadError, match="Expected the reason"):
                act()
        elif held.first[key] == (label, reason if label is Label.CANNOT_ASSESS else None):
            with pytest.raises(AlreadyChanged):
                act()
        else:
            act()
            held.first[key] = label, reason if label is Label.CANNOT_ASSESS else None
            self.first.append((held.reader, key, *held.first[key], number))
            if held.state is ReadingState.LOCKED:
                self.touched(held)

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99), item=st.integers(0, 1), label=LABELS, is_stale=st.booleans())
    def decide(self, place, item, label, is_stale):
        number, held, viewer = self.chosen(place)
        key = held.keys[item % len(held.keys)]
        seen = held.decided.get(key)
        shown = (seen or 0) + 1_000 if is_stale else seen

        def act():
            return reviewing.revise(self.small.engine, viewer, number, key, Decision(label), seen=shown, at=self.now)

        if number in self.given_back:
            self.refused(number, held, act)
        elif held.state not in LOOKED:
            with pytest.raises(NotAllowed):
                act()
        elif is_stale:
            with pytest.raises(AlreadyChanged):
                act()
        else:
            held.decided[key] = act()
            if held.state is ReadingState.REVEALED:
                self.touched(held)

    @precondition(lambda self: self.held)
    @rule(place=st.integers(0, 99))
    def finish(self, place):
        number, held, viewer = self.chosen(place)

        def act():
            reviewing.finish(self.small.engine, viewer, number, at=self.now)

        first = {key: label for key, (label, _) in held.first.items()}
        if number in self.given_back:
            self.refused(number, held, act)
        elif held.state not in LOOKED:
            with pytest.raises(NotAllowed):
                act()
        elif held.state is ReadingState.REVEALED and any(
            SAID[key - 1] not in (None, first[key]) and key not in held.decided for key in held.keys
        ):
            with pytest.raises(OverreadError, match="differences still wait"):
                act()
        else:
            act()
            if held.state is ReadingState.REVEALED:
                self.touched(held)
            held.state = ReadingState.DONE

    # ------------------------------------------------------------ what must hold

    @invariant()
    def first_reads_are_what_was_submitted_and_nothing_else_each_once_and_never_changed(self):
        columns = (
            "v.id, r.name, v.criterion_id, v.label, v.reason, v.stage, v.selection, v.inclusion_probability, v.blinded,"
            " v.guideline_version, v.supersedes, v.created_at, v.response_id"
        )
        found = [
            tuple(row)
            for row in self.rows(
                f"SELECT {columns} FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE v.stage IN ('first', 'open') ORDER BY v.id"
            )
        ]
        assert found[: len(self.kept_rows)] == self.kept_rows
        self.kept_rows = found
        assert [row[1:5] for row in found] == [said[:4] for said in self.first]
        replaced = {row[10] for row in found}
        standing = [row[1:3] for row in found if row[0] not in replaced]
        assert len(set(standing)) == len(standing)
        for row, said in zip(found, self.first, strict=True):
            assert row[5] == ("first" if self.is_blind else "open")
            assert row[6:9] == ("random", pytest.approx(2 / 3), self.is_blind)
            assert row[9] == self.held[said[4]].guideline

    @invariant()
    def readings_are_as_expected_go_forward_and_no_pause_counts_more_than_two_minutes(self):
        found = {row[0]: row for row in self.rows("SELECT id, state, seconds FROM reading")}
        assert set(found) == set(self.held) - self.given_back
        for number, state, seconds in found.values():
            assert ORDER.index(ReadingState(state)) == ORDER.index(self.held[number].state)
            assert seconds == pytest.approx(self.held[number].seconds)

    @invariant()
    def no_more_readers_keep_a_place_than_are_wanted_but_those_who_came_back_late(self):
        rows = self.rows("SELECT id, task_id FROM reading")
        for _, of_task in itertools.groupby(sorted((task, number) for number, task in rows), key=lambda row: row[0]):
            held = [self.held[number] for _, number in of_task]
            kept = [h for h in held if h.state is not ReadingState.READING or h.reserved_until > self.now]
            assert sum(not h.is_late for h in kept) <= self.n_readers
            assert len({h.reader for h in held}) == len(held)

    @invariant()
    def a_conversation_is_blind_to_whom_it_may_yet_be_given_or_who_is_at_it(self):
        tasks_of = dict(tuple(row) for row in self.rows("SELECT id, example_id FROM task"))
        alive = [held for number, held in self.held.items() if number not in self.given_back]
        for viewer in self.viewers:
            mine = {held.task: held.state for held in alive if held.reader == viewer.name}
            wanted = set()
            for task, example in tasks_of.items():
                n_locked = sum(held.task == task and held.state is not ReadingState.READING for held in alive)
                waits = n_locked < self.n_readers if task not in mine else mine[task] is not ReadingState.DONE
                wanted |= {example} if waits else set()
            with reading(self.small.engine) as session:
                blind, few = queries.blind_examples(session, viewer), set(list(tasks_of.values())[::2])
                assert blind == (wanted if self.is_blind else set())
                for most in (queries.FEW, 0):
                    with mock.patch.object(queries, "FEW", most):
                        assert queries.blind_examples(session, viewer, among=few) == blind & few

    @invariant()
    def before_the_judge_is_asked_for_a_blind_desk_holds_nothing_of_the_judge_or_of_others(self):
        for number, held in self.held.items():
            if number in self.given_back:
                continue
            viewer = next(v for v in self.viewers if v.name == held.reader)
            desk = reviewing.open_review(self.small.engine, viewer, number)
            drafts = {key: (draft.label, draft.reason) for key, draft in desk.drafts.items()}
            assert drafts == held.drafts()
            is_shown = held.state in LOOKED or not self.is_blind
            judged = {key: SAID[key - 1] for key in held.keys if SAID[key - 1]} if is_shown else {}
            assert {key: given.label for key, given in desk.judged.items()} == judged
            assert desk.judge == (world.JUDGE if judged else None)
            first = {key: label for key, (label, _) in held.first.items()}
            assert {key: given.label for key, given in desk.first.items()} == first
            if not is_shown:
                is_locked = held.state is ReadingState.LOCKED  # then the row itself keeps which judge is to be shown
                words = repr(replace(desk, reading=None) if is_locked else desk)
                assert not any(word in words for word in ("Magpie", "Alder", "It does."))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A study to begin with; each course of events has a copy."""
    path = tmp_path_factory.mktemp("machine") / "template.db"
    made = world.made(str(path), points=((7, -4), (5,), (3,)), judged=JUDGED)
    world.add_researcher(made.engine, "Dr. Third", Role.REVIEWER)
    with writing(made.engine) as session:
        store.set_guideline(session, "Read.", actor="Ana Ruiz")
    with made.engine.connect() as connection:
        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
    made.engine.dispose()
    return path


def test_whatever_readers_do_in_whatever_order_their_reads_hold(template):
    Reading.template = template
    run_state_machine_as_test(Reading, settings=settings(max_examples=8, suppress_health_check=list(HealthCheck)))
