"""The Triage page for its tests: a drawn study with two models, one with people alone, and the page opened on it."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine
from streamlit.testing.v1 import AppTest

from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Role
from evalcore.study.tables import PublishedMatrix
from pages.triage import matrices as triage_cell
from tests.page_steps import Open
from tests.triage_cases import drawn, stored

LEAD, READER, NEWCOMER, ADJUDICATOR = "Mina Castell", "Dr. Noor", "Dr. Imani Lund", "Dr. Vega"
HOSTILE = "![](http://canary.invalid/x) <b>$1$</b> :red[x]"
SECTIONS = (
    "Matrices",
    "Dangerous misses",
    "Groups",
    "Boundary",
    "Ambiguous",
    "Flips",
    "Harm",
    "Who read the level",
    "Which view",
)
Look = Callable[..., AppTest]


@pytest.fixture(scope="module")
def drawn_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def people(session: object) -> None:
    """A lead, an adjudicator and two readers."""
    store.add_person(session, LEAD, roles=[Role.LEAD, Role.RESEARCHER], actor="set-up")
    store.add_person(session, ADJUDICATOR, roles=[Role.ADJUDICATOR], actor="set-up")
    for name in (READER, NEWCOMER):
        store.add_person(session, name, roles=[Role.REVIEWER], actor="set-up")


@pytest.fixture
def engine(location: str, drawn_file: Path) -> Iterator[Engine]:
    """The study of these cases, for one test."""
    shutil.copyfile(drawn_file, location)
    made = open_study(location)
    yield made
    made.dispose()


@pytest.fixture
def look(engine: Engine, location: str, open_page: Open) -> Look:
    """Opens the page with what stands in the address."""
    assert engine
    return partial(open_page, location, "triage", LEAD)


def cell(word: str, gold: int, predicted: int) -> str:
    """The name of a cell in the address."""
    return triage_cell.cell_name(word, gold, predicted)


@pytest.fixture
def bare(location: str) -> Iterator[Engine]:
    """A study with people and nothing else."""
    made = open_study(location)
    with writing(made) as session:
        store.ensure_study(session)
        people(session)
    yield made
    made.dispose()
