"""What was marked as broken or withdrawn leaves readers' queues without a word, and the rest is read as before."""

import pytest

from evalcore.errors import NotFound
from evalcore.reading import adjudication, queries, reviewing
from evalcore.study.corrections import mending
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, Broken, ReadingState, Role
from evalcore.study.tables import now
from tests.adjudicating_steps import SOL
from tests.reading_steps import IMANI, TOVE, in_hand, take
from tests.world import add_researcher, answer, assigned, lock

ANA = Administrator(name="Ana Ruiz")


def progress(small, name=IMANI):
    with reading(small.engine) as session:
        found = queries.progress(session, small.viewer(name), now())
    return found.n_done, found.n_left


def test_a_broken_response_leaves_the_hands_of_its_reader_and_comes_back(small):
    assigned(small)
    desk = take(small)
    first = desk.asked.response_id
    mending.mark_broken(small.engine, first, Broken.EMPTY, actor=ANA)
    assert progress(small) == (0, 1)
    with pytest.raises(NotFound, match=r"There is no item \d+ in your hands"):
        answer(small, small.viewer(IMANI), desk, "++")
    assert in_hand(small) not in (first, None)
    mending.mark_broken(small.engine, first, None, actor=ANA)
    assert progress(small) == (0, 2)


def test_reading_and_settling_go_on_while_something_is_hidden(small):
    assigned(small, n_readers=2)
    add_researcher(small.engine, SOL, Role.ADJUDICATOR)
    settles = small.viewer(SOL)
    mending.mark_broken(small.engine, small.responses[0], Broken.EMPTY, actor=ANA)
    for name, labels in ((IMANI, "++"), (TOVE, "--")):
        viewer, desk = small.viewer(name), take(small, name)
        assert desk.asked.response_id == small.responses[1]
        number = answer(small, viewer, desk, labels)
        assert lock(small.engine, viewer, number) in (ReadingState.REVEALED, ReadingState.DONE)
        assert reviewing.take(small.engine, viewer) is None or progress(small, name)[1] <= 1
    assert progress(small)[0] == 1
    assert adjudication.cases(small.engine, settles).n_items == 2
    mending.mark_broken(small.engine, small.responses[1], Broken.OTHER, actor=ANA)
    assert adjudication.cases(small.engine, settles).n_items == 0
    assert progress(small) == (0, 0)
