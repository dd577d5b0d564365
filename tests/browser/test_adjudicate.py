"""An adjudicator at work, by keyboard alone."""

import re
import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import steps
from tests.browser.looks import small_targets, too_wide
from tests.browser.server import AppServer

ADJUDICATOR, READERS = "Dr. Tomas Vega", ("Okafor", "Lindqvist", "Haddad", "Nair", "Weber", "Zhou")
BY_TOUCH = "One may read it either way."
RATIONALE = "The answer says so in its second sentence."


def settled(server: AppServer) -> list[tuple]:
    with closing(sqlite3.connect(server.database)) as study:
        return study.execute(
            "SELECT label, conflict_cause, explanation, blinded, selection FROM verdict WHERE stage = 'adjudicated'"
            " AND conflict_cause IS NOT NULL AND criterion_id IS NOT NULL"
        ).fetchall()


def tells_nothing(desk: Locator) -> None:
    """A conflict that waits: no reader, judge or model, and nothing that would tell the judge's label."""
    expect(desk).to_contain_text("First reads conflict")
    for secret in ("Rated severe", *READERS, "Magpie", "Alder-2", "Briar-1", "Clover-mini"):
        expect(desk).not_to_contain_text(secret)


def test_a_conflict_is_settled_by_keyboard_without_names_and_with_the_judge_only_on_demand(
    page: Page, app_server: AppServer
):
    steps.choose_reader(page, app_server, ADJUDICATOR, path="/adjudicate")
    expect(steps.table(page)).to_be_visible()
    steps.settled(page)
    page.keyboard.press("Control+Enter")
    settle = page.get_by_role("button", name="Settle")
    expect(settle).to_be_visible()
    steps.settled(page)
    desk = page.get_by_test_id("stMain")
    tells_nothing(desk)
    first = desk.inner_text()
    page.keyboard.press("ArrowRight")
    expect(desk).not_to_have_text(first, use_inner_text=True)
    tells_nothing(desk)
    steps.settled(page)
    page.keyboard.press("ArrowLeft")
    expect(desk).to_have_text(first, use_inner_text=True)
    steps.settled(page)
    page.keyboard.press("2")
    steps.settled(page)
    page.keyboard.press("s")
    steps.settled(page)
    page.keyboard.press("n")
    expect(page.locator("[class*='st-key-rationale_'] textarea")).to_be_focused()
    page.keyboard.type(RATIONALE)
    page.keyboard.press("Control+Enter")
    expect(desk).to_contain_text("Item 2 of 2")
    expect(desk).not_to_contain_text(RATIONALE)
    found = settled(app_server)
    assert found == [("not_met", "reader_slipped", RATIONALE, 1, "adjudication")]
    steps.settled(page)
    page.keyboard.press("v")
    expect(desk).to_contain_text("Magpie")
    expect(page.locator(".or-warning")).to_have_count(0)
    page.locator(".or-row").first.click()
    expect(desk).to_contain_text("Item 1 of 2")
    expect(desk).to_contain_text("You have settled this")


def test_on_a_phone_what_is_asked_stays_in_view_and_is_answered_by_touch(browser: Browser, app_server: AppServer):
    context = steps.new_context(browser, width=390, height=844, has_touch=True)
    page = context.new_page()
    steps.choose_reader(page, app_server, ADJUDICATOR, path="/adjudicate")
    page.get_by_role("button", name="Open the first").tap()
    labels = page.locator(".st-key-settling_labels button")
    expect(labels).to_have_count(3)
    for top in (0, 10**6):  # of the page
        page.get_by_test_id("stMain").evaluate("(main, top) => { main.scrollTop = top }", top)
        expect(page.locator(".st-key-rubric")).to_be_in_viewport(ratio=0.95)  # and scrolls by itself
    assert small_targets(page) + too_wide(page) == []
    place = page.get_by_role("heading", level=1).inner_text()
    labels.first.tap()
    page.get_by_role("button", name="Criterion ambiguous").tap()
    page.get_by_role("textbox", name="Rationale").fill(BY_TOUCH)
    page.get_by_role("button", name="Settle").tap()
    expect(page.get_by_role("heading", level=1)).not_to_have_text(place)
    assert settled(app_server)[-1][:3] == ("met", "criterion_ambiguous", BY_TOUCH)
    context.close()


@pytest.mark.slow
def test_words_selected_in_the_response_go_into_the_rationale_with_their_place(page: Page, app_server: AppServer):
    steps.choose_reader(page, app_server, ADJUDICATOR, path="/adjudicate")
    expect(steps.table(page)).to_be_visible()
    steps.settled(page)
    page.keyboard.press("Control+Enter")
    rationale = page.locator("[class*='st-key-rationale_'] textarea")
    expect(rationale).to_have_value("")
    steps.settled(page)  # a text that is drawn anew is selected no more
    word = page.locator(".or-response p").first.inner_text().split()[0]
    steps.select_by_mouse(page, word)
    page.keyboard.press("r")
    said = re.compile(rf"“{re.escape(word)}” \(response, characters \d+–\d+\)")
    expect(rationale).to_have_value(said)
    steps.settled(page)
    rationale.fill(f"Too vague: {rationale.input_value()}")
    steps.select_by_mouse(page, word)
    page.get_by_role("button", name="Quote").click()  # what is quoted stands there once, what was typed stays
    expect(rationale).to_have_value(re.compile(f"^Too vague: {said.pattern}$"))
    for key in ("2", "s"):
        steps.settled(page)
        page.keyboard.press(key)
    steps.settled(page)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("stMain")).not_to_contain_text("Too vague")
    assert re.match(f"Too vague: {said.pattern}$", settled(app_server)[-1][2])
