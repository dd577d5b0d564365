"""The Triage page in a browser: a cell leads to its cases and on to one of them, and a physician's read changes the matrix by physicians."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from evalcore.reading.assigning import Choice, assign
from evalcore.study import store
from evalcore.study.browse import Filters
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Administrator, Ask, Role
from tests.browser import steps
from tests.browser.looks import looked_at
from tests.browser.server import AppServer, running_app
from tests.triage_cases import drawn, stored

LEAD, READER, MODEL = "Mina Castell", "Dr. Imani Lund", "Briar-1"
SECTIONS = (
    "Matrices", "Dangerous misses", "Groups", "Boundary", "Ambiguous", "Flips", "Harm", "Level readers", "Guide",
)  # fmt: skip
N_ASSIGNED = 12


@pytest.fixture(scope="module")
def triage_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """Cases that one model sends home, of which a physician has answers of this model to read."""
    folder = tmp_path_factory.mktemp("triage")
    triage_data, _ = drawn(
        np.random.default_rng(4), n_cases=60, models={"Alder-2": {"qa": 0.6}, MODEL: {"conversation": -1.2}}, judges={"Magpie": 0.9}, share_read=0.0
    )  # fmt: skip
    engine = open_study(str(folder / "overread.db"))
    with writing(engine) as session:
        stored(session, triage_data)
        store.add_person(session, LEAD, roles=[Role.LEAD, Role.RESEARCHER], actor="set-up")
        store.add_person(session, READER, roles=[Role.REVIEWER], actor="set-up")
    choice = Choice(
        ask=Ask.RESPONSE_ACUITY, filters=Filters(dataset="acuity", model="Alder-2"), n_items=N_ASSIGNED, n_readers=1, readers=(READER,), seed=2
    )  # fmt: skip
    assign(engine, choice, actor=Administrator(name=LEAD))
    engine.dispose()
    with running_app(folder) as server:
        yield server


def show(page: Page, section: str) -> None:
    """Another section of the page, drawn."""
    steps.keyed(page, "triage_show").get_by_role("radio", name=section, exact=True).click()
    expect(steps.keyed(page, "triage_show").locator("[aria-checked=true]")).to_have_text(section)
    expect(page.locator(".or-foot")).to_be_visible()


def cells(page: Page, word: str) -> Locator:
    """The words in the sixteen cells of a matrix, by gold and then by answer."""
    found = steps.keyed(page, f"triage_matrix_{word}").locator(".textpoint text")
    expect(found).to_have_count(16)
    return found


def n_of(cell: Locator) -> int:
    """How many cases a cell says it has."""
    found = re.search(r"(\d+)/\d+$", cell.text_content() or "")
    return int(found.group(1)) if found else 0


@pytest.mark.slow
def test_a_click_on_a_cell_opens_its_cases_one_of_them_opens_in_browse_and_back_returns(
    page: Page, triage_server: AppServer
):
    steps.choose_reader(page, triage_server, LEAD, path=f"/triage?triage_model={MODEL}")
    needs_c_answers_a = cells(page, "conversation").nth(8)
    n = n_of(needs_c_answers_a)
    assert n
    box = needs_c_answers_a.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # a layer for selecting lies over it
    expect(page.locator(".or-finding", has_text="answered A")).to_contain_text(MODEL)
    expect(page).to_have_url(re.compile("triage_cell=conversation"))
    cases = page.locator(".or-triage-case")
    expect(cases).to_have_count(min(n, 10))
    words = cases.first.locator(".or-triage-words").inner_text()
    page.get_by_role("link", name="Open the case").first.click()
    expect(page.locator(".or-conversation")).to_contain_text(words)
    steps.settled(page)
    page.go_back()
    expect(cases).to_have_count(min(n, 10))


@pytest.mark.slow
def test_a_physicians_read_in_review_changes_the_matrix_by_physicians(page: Page, triage_server: AppServer):
    steps.choose_reader(page, triage_server, LEAD, path="/triage?triage_basis=by+physicians")
    expect(page.locator(".or-notice")).to_contain_text("No physician here has read an answer to a clear case yet")
    steps.change_reader(page, READER)
    page.goto(f"{triage_server.url}/review")
    page.get_by_role("button", name=re.compile(r"^A\s+Home")).click()
    expect(page.locator(".or-rows .or-mark")).to_have_text("A")
    page.get_by_role("button", name=re.compile("^Submit")).click()
    expect(page.get_by_text("Locked: A.")).to_be_visible()  # below the next response
    steps.change_reader(page, LEAD)
    page.goto(f"{triage_server.url}/triage?triage_basis=by+physicians&triage_model=Alder-2")
    expect(steps.keyed(page, "triage_cell_row")).to_be_visible()
    read = [word for word in ("qa", "conversation") if steps.keyed(page, f"triage_matrix_{word}").count()]
    assert len(read) == 1
    assert sum(n_of(cells(page, read[0]).nth(place)) for place in (0, 4, 8, 12)) == 1  # answered A, whatever it needed


@pytest.mark.slow
def test_no_section_has_a_serious_fault_of_accessibility_or_scrolls_sideways(page: Page, triage_server: AppServer):
    found = []
    steps.choose_reader(page, triage_server, LEAD, path="/triage")
    for section in SECTIONS:
        show(page, section)
        found += looked_at(page, section)
    assert found == []
