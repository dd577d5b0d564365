"""The way of each role from the first address to its result, on a phone, a tablet and two desktops, light and dark."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import steps
from tests.browser.looks import looked_at, small_targets
from tests.browser.server import AppServer, running_app

SMALL = 1_100  # below it there is one column, and a finger

Look = Callable[..., None]
"""Given a page and the name of its screen: notes what is wrong with it, and takes its picture."""


def has_touch(page: Page) -> bool:
    return bool(page.evaluate("navigator.maxTouchPoints"))


def pressed(page: Page, selector: str, words: str | re.Pattern[str] | None = None) -> None:
    """A tap where there is touch, else a click, on the first of these that can be seen."""
    target = page.locator(selector, has_text=words).filter(visible=True).first
    expect(target).to_be_enabled()
    if has_touch(page):
        target.tap()
    else:
        target.click()


def signed_in(page: Page, server: AppServer, name: str, look: Look) -> None:
    page.goto(server.url)
    expect(page.locator("a.or-profile").first).to_be_visible()
    look(page, "who reads")
    pressed(page, "a.or-profile", name)
    expect(page.locator(".or-heading h1")).to_have_text("Overview")
    look(page, "overview")


def navigate(page: Page, name: str) -> None:
    """By the navigation, which a narrow screen keeps closed, and closes again."""
    sidebar = page.get_by_test_id("stSidebar")
    if has_touch(page):
        expect(sidebar).to_have_attribute("data-collapsed", "true")
        pressed(page, "[data-testid=stExpandSidebarButton]")
        expect(sidebar).to_have_attribute("data-collapsed", "false")
        page.wait_for_timeout(400)  # it slides in
    pressed(page, "[data-testid=stSidebarNav] a", re.compile(f"{name}$"))
    expect(sidebar).to_have_attribute("data-collapsed", str(has_touch(page)).lower())
    expect(page).to_have_url(re.compile(rf"/{name.lower().replace(' ', '_')}\b"))
    steps.settled(page)


def answer_all(page: Page) -> int:
    """Every criterion is not met. Returns the number of presses."""
    n_open = page.locator(".or-open").count()
    for left in range(n_open - 1, -1, -1):
        steps.settled(page)
        pressed(page, ".st-key-labels button", "Not met")
        expect(page.locator(".or-open")).to_have_count(left)
    return n_open


def physician(page: Page, server: AppServer, look: Look) -> None:
    signed_in(page, server, "Dr. Amara Okafor", look)
    pressed(page, "[data-testid=stMain] a", "Open Review")
    expect(page.locator(".or-row").first).to_be_visible()
    look(page, "review")
    answer_all(page)
    look(page, "review, answered")
    pressed(page, "[class*='st-key-submit_'] button")
    expect(page.get_by_text("Nothing of the judge is shown yet")).to_be_visible()
    look(page, "review, locked")
    pressed(page, "[class*='st-key-go_on_'] button")
    expect(page.locator(".or-compared .or-current")).to_be_visible()
    look(page, "review, beside the judge")
    navigate(page, "My reads")
    expect(steps.table(page)).to_be_visible()
    look(page, "my reads")


def adjudicator(page: Page, server: AppServer, look: Look) -> None:
    signed_in(page, server, "Dr. Tomas Vega", look)
    navigate(page, "Adjudicate")
    expect(steps.table(page)).to_be_visible()
    look(page, "adjudicate")
    pressed(page, "button", "Open the first")
    expect(page.locator(".or-response").first).to_be_visible()
    look(page, "adjudicate, a conflict")
    needed = page.locator(".or-stamp", has_text="still needed")
    expect(needed).to_have_text("still needed: a label, why they differed, the rationale")
    for words in ("Not met", "One reader slipped"):
        pressed(page, "[data-testid=stMain] :is(button, label)", words)
        steps.settled(page)
    rationale = page.get_by_role("textbox", name="Rationale")
    rationale.fill("The response says so in its second sentence.")
    rationale.press("Tab")
    expect(needed).to_have_count(0)
    look(page, "adjudicate, ready to settle")
    pressed(page, "button", "Settle")
    expect(needed).to_be_visible()  # the next conflict
    expect(rationale.last).to_have_value("")


def lead(page: Page, server: AppServer, look: Look) -> None:
    signed_in(page, server, "Mina Castell", look)
    navigate(page, "Study")
    for tab in ("People", "Reading", "Plan"):
        pressed(page, "[role=tab]", tab)
        expect(page.get_by_role("tab", name=tab, exact=True)).to_have_attribute("aria-selected", "true")
        look(page, f"study, {tab}")
    navigate(page, "Audit")
    expect(steps.table(page)).to_be_visible()
    look(page, "audit")


def researcher(page: Page, server: AppServer, look: Look) -> None:
    signed_in(page, server, "Mina Castell", look)
    for name, drawn in (("Models", ".js-plotly-plot"), ("Judges", ".or-finding"), ("Triage", ".or-finding")):
        navigate(page, name)
        expect(page.locator(drawn).filter(visible=True).first).to_be_visible()
        look(page, name)
    navigate(page, "Calibration")
    look(page, "Calibration")
    navigate(page, "Export")
    expect(steps.table(page)).to_be_visible()
    look(page, "Export")
    with page.expect_download() as download:
        pressed(page, ".st-key-download button")
    assert b"reference_label" in Path(download.value.path()).read_bytes().splitlines()[0]


def own_data(page: Page, server: AppServer, look: Look) -> None:
    signed_in(page, server, "Mina Castell", look)
    navigate(page, "Study")
    example = {
        "prompt_id": "heron-0001",
        "prompt": [{"role": "user", "content": "My heronfoot itches. Which cream?"}],
        "rubrics": [{"criterion": "Asks since when.", "points": 4, "tags": []}],
        "example_tags": [],
    }
    file = {"name": "heron.jsonl", "mimeType": "application/json", "buffer": json.dumps(example).encode()}
    steps.keyed(page, "upload").locator("input[type=file]").set_input_files([file])  # type: ignore[list-item]
    expect(steps.keyed(page, "import").get_by_role("button")).to_be_enabled()
    look(page, "study, a file")
    pressed(page, ".st-key-import button")
    expect(page.get_by_role("status").filter(has_text="heron.jsonl")).to_contain_text("imported")
    look(page, "study, imported")
    navigate(page, "Browse")
    steps.type_in(page, "q", "heronfoot")
    expect(page.get_by_text("1 fit")).to_be_visible()
    look(page, "browse, found")


JOURNEYS = (physician, adjudicator, lead, researcher, own_data)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", [390, 820, 1280, 1920])
def test_each_role_comes_to_its_result_on_every_screen(width: int, browser: Browser, tmp_path: Path, demo_file: Path):
    """Each screen on the way is looked at in light and in the dark."""
    found: list[str] = []
    shutil.copyfile(demo_file, tmp_path / "overread.db")
    with running_app(tmp_path) as server:
        for journey in JOURNEYS:
            context = steps.new_context(browser, width=width, height=1_000, has_touch=width < SMALL)
            complaints = steps.Complaints()
            complaints.hear(context)

            def look(page: Page, name: str, of: str = journey.__name__) -> None:
                where = f"{of}, {name}, {width}"
                found.extend(looked_at(page, where, dark_width=width))
                found.extend(f"{where}: {each}" for each in small_targets(page) if width < SMALL)
                page.screenshot(path=tmp_path / f"{where.replace(', ', '-').replace(' ', '_')}.png")

            journey(context.new_page(), server, look)
            found.extend(f"{journey.__name__}: {each}" for each in complaints.all)
            context.close()
    assert not found, "\n".join(found)


WORDS_A_MINUTE, SECONDS_A_PRESS = 238, 2.55
"""Silent reading in English (Brysbaert 2019); to decide, to point and to click (1.35 + 1.1 + 0.1; Card, Moran and Newell 1980)."""


@pytest.mark.slow
def test_a_newcomer_locks_a_first_response_within_two_minutes_beside_reading_the_case(
    page: Page, app_server: AppServer
):
    """A card, a link, a press a criterion, and the lock; what the screens say is read word for word."""
    n_words = 0

    def read(page: Page, _name: str) -> None:
        nonlocal n_words
        steps.settled(page)
        main = page.get_by_test_id("stMain")
        not_said = page.locator(
            ".or-conversation, .or-response, .or-row, [data-testid=stMain] [data-testid=stIconMaterial]"
        )
        n_words += len(main.inner_text().split()) - sum(len(text.split()) for text in not_said.all_inner_texts())

    signed_in(page, app_server, "Dr. Amara Okafor", read)
    pressed(page, "[data-testid=stMain] a", "Open Review")
    expect(page.locator(".or-row").first).to_be_visible()
    read(page, "review")
    expect(page.locator(".st-key-labels button", has_text="Met").first).to_be_in_viewport(ratio=1)
    n_criteria = page.locator(".or-row").count()
    assert answer_all(page) == n_criteria
    pressed(page, "[class*='st-key-submit_'] button")
    expect(page.get_by_text("Nothing of the judge is shown yet")).to_be_visible()
    seconds = n_words * 60 / WORDS_A_MINUTE + (n_criteria + 3) * SECONDS_A_PRESS
    assert seconds < 120, f"{n_words} words and {n_criteria + 3} presses take {seconds:.0f} s"
