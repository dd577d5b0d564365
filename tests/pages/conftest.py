"""Fixtures of these tests."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import PropertyMock

import numpy as np
import pytest
from sqlalchemy import Engine
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import local_script_runner

from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.tables import PublishedMatrix
from tests import leaks, world
from tests.blind_walks import Phase, Walker
from tests.leaks import WALKERS
from tests.page_steps import Open
from tests.pages.test_judges_page import IMANI, TOVE, read_all
from tests.triage_cases import drawn, stored
from tests.triage_page_steps import HOSTILE, LEAD, Look, people

_ask_until_it_ended = local_script_runner.require_widgets_deltas


def _wait_until_it_ended(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
    """AppTest asks a thousand times a second whether the script has ended, which takes a tenth of the script's time from it."""
    runner._script_thread.join(timeout)
    _ask_until_it_ended(runner, timeout=0.05)


local_script_runner.require_widgets_deltas = _wait_until_it_ended


@pytest.fixture(scope="module")
def phases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Phase]:
    folder = tmp_path_factory.mktemp("blind")
    path = folder / "waiting.db"
    leaks.make(str(path), folder).dispose()
    made = {"waiting": Phase(path, {})}
    for phase, act in (("in_hand", leaks.take_in_hand), ("locked", leaks.lock)):
        path = leaks.copied(path, folder / f"{phase}.db")
        engine = open_study(str(path))
        made[phase] = Phase(path, {name: act(engine, name) for name in WALKERS})
        engine.dispose()
    return made


@pytest.fixture
def engine(location: str) -> Iterator[Engine]:
    """Of a new study with nobody in it but its lead."""
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
    yield engine
    engine.dispose()


@pytest.fixture
def walker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: object) -> Callable[[Path], Walker]:
    """A server on a copy of a study; `open_page` is asked for since it opens pages as the launcher does."""

    def start(path: Path, *, name: str = "study") -> Walker:
        copy = leaks.copied(path, tmp_path / f"{name}.db")
        monkeypatch.setenv("OVERREAD_DB", str(copy))
        monkeypatch.setattr(ContextProxy, "cookies", PropertyMock(return_value={}))
        return Walker(copy, monkeypatch)

    return start


@pytest.fixture(scope="module")
def drawn_triage_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases with two models: Alder-2 too high in qa, Briar-1 too low in conversation; and a published matrix."""
    path = tmp_path_factory.mktemp("triage") / "drawn.db"
    triage_data, _ = drawn(
        np.random.default_rng(3),
        n_cases=60,
        models={"Alder-2": {"qa": 0.6}, "Briar-1": {"conversation": -0.9}},
        judges={"Magpie": 0.93, "acuity_rules": 0.85},
        n_samples=3,
    )
    triage_data.cases["first_words"] = [f"{HOSTILE} case {number}" for number in range(len(triage_data.cases))]
    engine = open_study(str(path))
    with writing(engine) as session:
        stored(session, triage_data)
        people(session)
        session.add(PublishedMatrix(model="GPT-5.4", format="qa", gold="D", a=0, b=0, c=27, d=235))
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


@pytest.fixture
def drawn_triage(location: str, drawn_triage_file: Path) -> Iterator[Engine]:
    """The study of these cases, for one test."""
    shutil.copyfile(drawn_triage_file, location)
    made = open_study(location)
    yield made
    made.dispose()


@pytest.fixture
def look_at_triage(drawn_triage: Engine, location: str, open_page: Open) -> Look:
    """Opens the page with what stands in the address."""
    assert drawn_triage
    return partial(open_page, location, "triage", LEAD)


@pytest.fixture
def people_alone(location: str) -> Iterator[Engine]:
    """A study with people and nothing else."""
    made = open_study(location)
    with writing(made) as session:
        store.ensure_study(session)
        people(session)
    yield made
    made.dispose()


@pytest.fixture
def two_conversations(location: str) -> Iterator[world.World]:
    """Two conversations of two criteria; the judge says met, not met, met, met."""
    made = world.made(location, judged="+-++")
    yield made
    made.engine.dispose()


@pytest.fixture
def open_judges(location: str, open_page: Open) -> Open:
    """Opens the page as somebody; `alone`: its file without app.py."""
    return partial(open_page, location, "judges")


@pytest.fixture(scope="session")
def both_read_file(tmp_path_factory: pytest.TempPathFactory) -> world.World:
    made = world.made(str(tmp_path_factory.mktemp("both_read") / "made.db"), judged="+-++")
    world.assigned(made)
    read_all(made, IMANI, {1: "--", 2: "++"}, {1: "+"})  # differs on 1.1, and follows the judge there
    read_all(made, TOVE, {1: "-+", 2: "-+"}, {})  # differs on 1.1, 1.2 and 2.1, and keeps
    return world.at_rest(made)


@pytest.fixture
def both_read(location: str, both_read_file: world.World) -> Iterator[world.World]:
    """Both physicians read everything; one takes the judge's label once."""
    made = world.copied(both_read_file, location)
    yield made
    made.engine.dispose()
