"""Two tabs or two processes that press at once: one is kept, one is told, nobody writes over anybody."""

import pytest

from evalcore.errors import AlreadyChanged
from evalcore.reading import overriding
from evalcore.reading.reviewing import Decision
from evalcore.study.db import open_study
from evalcore.study.schema import Label
from tests import world
from tests.overriding_steps import labels, press, standing, take_back
from tests.processes import at_once


def test_a_second_tab_that_has_not_seen_the_first_is_told(small):
    first = press(small, Decision(Label.NOT_MET))
    with pytest.raises(AlreadyChanged, match="changed in another tab"):
        press(small, Decision(Label.MET), seen=None)
    second = press(small, Decision(Label.CANNOT_ASSESS), seen=first)
    for act in (lambda: press(small, Decision(Label.MET), seen=first), lambda: take_back(small, first)):
        with pytest.raises(AlreadyChanged, match="the last click was not saved"):
            act()
    assert labels(small) == ["not_met", "cannot_assess"]
    take_back(small, second)


def test_a_stale_page_after_an_undo_is_told(small):
    seen = press(small, Decision(Label.NOT_MET))
    take_back(small, seen)
    with pytest.raises(AlreadyChanged):
        press(small, Decision(Label.MET), seen=seen)
    with pytest.raises(AlreadyChanged):
        press(small, Decision(Label.MET), seen=None)


def press_at_once(start, location, item, label, seen):
    """In a process of its own: wait for the other one, then press."""
    small = world.World(location, open_study(location), [], [])
    viewer = small.viewer()
    start()
    overriding.give_verdict(small.engine, viewer, **item, decision=Decision(Label(label)), judge=world.JUDGE, seen=seen)
    small.engine.dispose()


@pytest.mark.parametrize("reader_is_new", [True, False])
def test_of_two_processes_that_press_at_once_one_is_kept_and_one_is_told(small, reader_is_new):
    """With the reader's very first verdict, when not even the rater is there yet, and with a later one."""
    seen = None if reader_is_new else press(small, Decision(Label.CANNOT_ASSESS))
    before = small.events(), labels(small)
    came = at_once(*((press_at_once, small.location, small.item(), label, seen) for label in ("met", "not_met")))
    assert [type(what) for what in came if what is not None] == [AlreadyChanged]
    assert len(small.events()) == len(before[0]) + 1
    assert len(labels(small)) == len(before[1]) + 1
    assert len(standing(small)) == 1
