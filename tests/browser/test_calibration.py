"""The Calibration page in a browser: the question comes first, the answer draws the diagram, and a case of the list opens in Browse and comes back."""

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from evalcore.study import store
from evalcore.study.db import open_study, writing
from evalcore.study.schema import PARSER, ConfidenceMeaning, Role
from evalcore.triage import store as triage_store
from evalcore.triage.data import AmbiguityRule
from tests.browser import steps
from tests.browser.looks import looked_at
from tests.browser.server import AppServer, running_app
from tests.triage_cases import drawn, settings_with, stored

LEAD = "Mina Castell"
JUDGES, MODELS, AMBIGUOUS, ROUTING = SECTIONS = (
    "Judges' confidence",
    "Models' confidence",
    "Ambiguous cases",
    "Routing",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """Cases with stated confidences: it is known what the models' own mean, and not what Magpie's do."""
    folder = tmp_path_factory.mktemp("calibration")
    models = {"Alder-2": {"qa": 0.4}, "Briar-1": {"conversation": -0.9}}
    triage_data, _ = drawn(np.random.default_rng(4), n_cases=60, models=models, confidence=True, share_read=0.4)
    engine = open_study(str(folder / "overread.db"))
    with writing(engine) as session:
        stored(session, triage_data)
        triage_store.set_triage_settings(session, settings_with(rule=AmbiguityRule(spread=0.3)), actor="set-up")
        triage_store.set_confidence_meaning(session, PARSER, ConfidenceMeaning.RIGHT, actor="set-up")
        store.add_person(session, LEAD, roles=[Role.LEAD], actor="set-up")
    engine.dispose()
    with running_app(folder) as made:
        yield made


def show(page: Page, section: str) -> None:
    """Another section of the page, drawn."""
    steps.keyed(page, "calibration_show").get_by_role("radio", name=section, exact=True).click()
    expect(steps.keyed(page, "calibration_show").locator("[aria-checked=true]")).to_have_text(section)
    expect(page.locator(".or-foot")).to_be_visible()
    expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()


@pytest.mark.slow
def test_the_answer_draws_the_diagram_and_a_case_opens_in_browse_and_comes_back(page: Page, server: AppServer):
    steps.choose_reader(page, server, LEAD, path="/calibration")
    expect(page.locator(".or-warning")).to_contain_text("Magpie states a confidence with")
    expect(page.locator(".stPlotlyChart")).to_have_count(0)
    keep = page.get_by_role("button", name="Keep this meaning")
    expect(keep).to_be_disabled()
    page.get_by_text("that its own level is right").click()
    expect(keep).to_be_enabled()
    keep.click()
    expect(page.locator(".or-finding")).to_contain_text("Magpie in conversation is")
    expect(page.locator(".or-warning")).to_have_count(0)
    expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()
    show(page, ROUTING)
    finding = page.locator(".or-finding")
    expect(finding).to_contain_text("To catch 90 %")
    steps.keyed(page, "calibration_wanted").get_by_role("slider").press("ArrowLeft")
    expect(finding).to_contain_text("To catch 85 %")
    show(page, AMBIGUOUS)
    listed = page.locator("[class*='st-key-calibration_cases_'] .or-triage-case")
    expect(listed).to_have_count(10)
    steps.keyed(page, "calibration_case_list").click(position={"x": 150, "y": steps.ROW_PIXELS * 2.5})
    expect(listed).to_have_count(1)
    said = listed.locator(".or-triage-words").inner_text()
    page.get_by_role("link", name="Open the case").click()
    expect(page.locator(".or-conversation")).to_contain_text(said)
    steps.settled(page)
    page.go_back()
    expect(steps.keyed(page, "calibration_show").locator("[aria-checked=true]")).to_have_text(AMBIGUOUS)
    expect(listed.first).to_be_visible()


@pytest.mark.slow
def test_a_link_of_the_triage_page_opens_its_section_whatever_was_open_before(page: Page, server: AppServer):
    steps.choose_reader(page, server, LEAD, path="/calibration")
    shown = steps.keyed(page, "calibration_show").locator("[aria-checked=true]")
    for label, section in (("what would go to a human", ROUTING), ("models' confidence", MODELS)):
        show(page, MODELS)
        page.get_by_test_id("stSidebarNav").get_by_role("link", name="Triage").click()
        steps.keyed(page, "triage_show").get_by_role("radio", name="Guide", exact=True).click()
        page.get_by_role("link", name=f"Calibration: {label}").first.click()
        expect(shown).to_have_text(section)


@pytest.mark.slow
def test_no_section_is_wider_than_the_page_or_breaks_a_rule_of_axe(page: Page, server: AppServer):
    found: list[str] = []
    complaints = steps.Complaints()
    complaints.hear(page.context)
    steps.choose_reader(page, server, LEAD, path="/calibration?calibration_show=Routing")
    expect(page.locator(".or-foot")).to_be_visible()
    for section in SECTIONS[1:]:
        show(page, section)
        found += looked_at(page, section)
    assert found == []
    assert complaints.all == []
