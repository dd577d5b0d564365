"""A jury that stands in the study among its judges, on the pages of triage: chosen where one chooses it, and beside physicians alone."""

from collections.abc import Iterator

import numpy as np
import pytest
from sqlalchemy import Engine

from evalcore.judges import juries
from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import JURY, Administrator, Role
from tests.page_steps import Open, said as words
from tests.triage_cases import drawn, stored

LEAD = "Mina Castell"
SECTIONS = (
    "Matrices", "Dangerous misses", "Groups", "Boundary", "Ambiguous", "Flips", "Harm", "Level readers", "Guide",
)  # fmt: skip


@pytest.fixture
def engine(location: str) -> Iterator[Engine]:
    made = open_study(location)
    yield made
    made.dispose()


def made(engine: Engine, **judges: float) -> None:
    """A study whose conversations these have read."""
    triage_data, _ = drawn(np.random.default_rng(5), n_cases=30, judges=judges, n_samples=1, share_read=0.4)
    with writing(engine) as session:
        stored(session, triage_data)
        store.add_person(session, LEAD, roles=[Role.LEAD, Role.RESEARCHER], actor="set-up")


def test_a_jury_of_the_study_stands_beside_physicians_and_not_beside_its_own_members(
    engine: Engine, location: str, open_page: Open
):
    made(engine, Magpie=0.9, Wren=0.7)
    juries.convene(engine, "Bench", members=("Magpie", "Wren"), actor=Administrator(name=LEAD))
    app = open_page(location, "triage", LEAD, triage_show="Level readers")
    assert "Bench" in app.selectbox(key="triage_conversation_judge").options
    pairs = app.selectbox(key="triage_beside").options
    assert set(pairs) == {
        "conversation: Magpie beside physicians here",
        "conversation: Wren beside physicians here",
        "conversation: Bench beside physicians here",
        "qa: parser beside physicians here",
        *[pair for pair in pairs if {"Magpie", "Wren"} <= set(pair.split())],
    }
    assert sum("physicians" not in pair for pair in pairs) == 1  # Magpie beside Wren


def test_a_format_that_a_jury_alone_has_read_is_shown_as_it_reads_it(engine: Engine, location: str, open_page: Open):
    made(engine, Bench=0.9)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE rater SET prompt_version = '{JURY}12345678' WHERE name = 'Bench'")
    app = open_page(location, "triage", LEAD)
    assert app.selectbox(key="triage_conversation_judge").options == ["Bench"]
    for section in SECTIONS:
        app.segmented_control(key="triage_show").set_value(section).run()
        assert "levels of qa by parser and conversation by Bench" in words(app), section
