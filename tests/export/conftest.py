"""Fixtures of these tests."""

import pytest

from evalcore.reading.overriding import give_verdict, undo
from evalcore.reading.reviewing import Decision
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Cause, Label, RaterKind, Severity, Stage, Verdict
from tests import world
from tests.export_steps import NOTE


def _overridden(url: str) -> world.World:
    made = world.made(url)
    imani, tove = made.viewer(), made.viewer("Dr. Tove Lind")

    def press(viewer, item, *said, seen=None, **more):
        return give_verdict(made.engine, viewer, **item, decision=Decision(*said, **more), judge=world.JUDGE, seen=seen)

    first = press(imani, made.item(), Label.CANNOT_ASSESS)
    press(imani, made.item(), Label.NOT_MET, Cause.MISREAD_ANSWER, Severity.MILD, note=NOTE, seen=first)
    press(tove, made.item(), Label.NOT_MET)
    press(tove, made.item(0, 1), Label.NOT_MET, right_for_wrong_reason=True)
    taken = press(tove, made.item(1, 0), Label.NOT_MET)
    undo(made.engine, tove, **made.item(1, 0), seen=taken)
    with writing(made.engine) as session:
        wren = store.ensure_rater(session, RaterKind.JUDGE, "Wren")
        said = Verdict(
            **made.item(), example_id=1, rater_id=wren, stage=Stage.JUDGE, label=Label.NOT_MET, confidence=0.125
        )
        store.add_verdicts(session, [said], actor="set-up", action="x")
    return made


@pytest.fixture(scope="session")
def overridden_file(tmp_path_factory):
    return world.at_rest(_overridden(str(tmp_path_factory.mktemp("overridden") / "made.db")))


@pytest.fixture
def overridden(database_url, overridden_file):
    """Two judges; the first item overridden twice (one changed his mind), the second agreed with, the third taken back."""
    is_sqlite = database_url.startswith("sqlite")
    made = world.copied(overridden_file, database_url) if is_sqlite else _overridden(database_url)
    yield made
    made.engine.dispose()


@pytest.fixture
def empty(database_url):
    engine = open_study(database_url)
    yield engine
    engine.dispose()
