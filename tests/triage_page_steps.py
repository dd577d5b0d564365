"""The Triage page for its tests: a drawn study with two models, one with people alone, and the page opened on it."""

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from evalcore.study import store
from evalcore.study.schema import Role
from pages.triage import matrices as triage_cell

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
    "Level readers",
    "Guide",
)
Look = Callable[..., AppTest]


def people(session: object) -> None:
    """A lead, an adjudicator and two readers."""
    store.add_person(session, LEAD, roles=[Role.LEAD, Role.RESEARCHER], actor="set-up")
    store.add_person(session, ADJUDICATOR, roles=[Role.ADJUDICATOR], actor="set-up")
    for name in (READER, NEWCOMER):
        store.add_person(session, name, roles=[Role.REVIEWER], actor="set-up")


def cell(word: str, gold: int, predicted: int) -> str:
    """The name of a cell in the address."""
    return triage_cell.cell_name(word, gold, predicted)
