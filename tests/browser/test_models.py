"""The Models page in a browser: its figure is drawn, and a point of head to head opens the conversation with both responses."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import steps
from tests.browser.looks import looked_at
from tests.browser.server import AppServer

LEAD = "Mina Castell"
ALDER, BRIAR = "Alder-2", "Briar-1"
SECTIONS = ("Scores", "By theme and axis", "Comparison", "Head to head", "More")


def show(page: Page, section: str) -> None:
    """Another section of the page, drawn."""
    steps.keyed(page, "models_show").get_by_role("radio", name=section, exact=True).click()
    expect(steps.keyed(page, "models_show").locator("[aria-checked=true]")).to_have_text(section)
    expect(page.locator(".stPlotlyChart .main-svg").first).to_be_visible()
    expect(page.locator(".or-foot").first).to_be_visible()


@pytest.mark.slow
def test_the_forest_is_drawn_with_its_finding_and_the_address_keeps_the_choice(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, LEAD, path="/models")
    expect(page.locator(".or-heading h1")).to_contain_text("Model scores")
    expect(page.locator(".or-finding")).not_to_be_empty()
    forest = page.locator(".st-key-models_forest")
    for model in (ALDER, BRIAR, "Clover-mini"):
        expect(forest.get_by_text(model, exact=True)).to_be_visible()
    show(page, "Comparison")
    expect(page).to_have_url(re.compile(r"models_show=Comparison"))
    page.reload()
    expect(page.locator(".or-heading h1")).to_contain_text("Differences between models")


@pytest.mark.slow
def test_a_point_of_head_to_head_opens_its_conversation_with_both_responses_and_back_returns(
    page: Page, app_server: AppServer
):
    steps.choose_reader(page, app_server, LEAD, path="/models?models_show=Head+to+head")
    points = page.locator(".st-key-models_points .scatterlayer .trace").last.locator("path.point")
    expect(points).to_have_count(30)
    box = points.nth(4).bounding_box()
    assert box is not None
    page.mouse.click(
        box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    )  # a layer for dragging lies over the points
    expect(page.locator(".or-response")).to_have_count(2)
    assert [name.strip() for name in page.locator(".or-response h3 span").all_inner_texts()] == [ALDER, BRIAR]
    expect(page).to_have_url(re.compile(r"/browse\?.*example=\d+"))
    steps.settled(page)
    page.go_back()
    expect(page.locator(".or-heading h1")).to_contain_text("Two models, conversation by conversation")
    expect(points).to_have_count(30)


@pytest.mark.slow
def test_a_row_of_the_table_opens_its_conversation_too(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, LEAD, path="/models?models_show=Head+to+head")
    expect(steps.table(page)).to_be_visible()
    steps.table(page).click(position={"x": 120, "y": steps.ROW_PIXELS * 1.5})
    expect(page.locator(".or-response")).to_have_count(2)


@pytest.mark.slow
def test_no_section_has_a_serious_fault_of_accessibility_or_scrolls_sideways(page: Page, app_server: AppServer):
    found = []
    steps.choose_reader(page, app_server, LEAD, path="/models")
    for section in SECTIONS:
        show(page, section)
        found += looked_at(page, section)
    assert found == []
