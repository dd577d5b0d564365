"""Takes the pictures of docs/ and README from the demo study: `python -m tests.docs.pictures`, which `make pictures` runs."""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests import chromium
from tests.browser import steps
from tests.browser.server import AppServer, running_app
from tests.page_steps import BOTH_READER, LEAD, PHYSICIAN

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
COLOURS = 128  # as many as a screen of few colours needs; a third of the size
HEIGHT, WIDE, PHONE = 860, 1280, 390


def as_it_is(_page: Page) -> None:
    """The page as it opens."""


def first_row(page: Page) -> None:
    steps.open_row(page, 0)


def marked(page: Page) -> None:
    """Some criteria have their mark, and the next one is in hand."""
    for key in "112":
        page.keyboard.press(key)
        page.wait_for_timeout(700)


def revealed(page: Page) -> None:
    """Every criterion is not met, so that the judge differs somewhere; then submitted and locked, and the judge asked for."""
    for _ in range(16):
        page.keyboard.press("2")
        page.wait_for_timeout(400)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".or-locked")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".or-locked")).to_have_count(0)
    expect(page.locator(".or-compared .or-current")).to_be_visible()


def first_to_settle(page: Page) -> None:
    page.get_by_role("button", name="Open the first").click()
    expect(page.locator(".or-response").first).to_be_visible()


TAKEN: dict[str, tuple[str, str, int, str, Callable[[Page], None]]] = {
    "browse": (LEAD, "/browse", WIDE, "light", first_row),
    "overview": (LEAD, "/", WIDE, "light", as_it_is),
    "reading": (LEAD, "/study?study_tab=Reading", WIDE, "light", as_it_is),
    "models": (LEAD, "/models", WIDE, "light", as_it_is),
    "judges": (LEAD, "/judges", WIDE, "light", as_it_is),
    "triage": (LEAD, "/triage", WIDE, "dark", as_it_is),
    "adjudicate": (BOTH_READER, "/adjudicate", WIDE, "light", first_to_settle),
    "phone": (PHYSICIAN, "/review", PHONE, "light", as_it_is),
    "review": (PHYSICIAN, "/review", WIDE, "light", marked),
    "reveal": (PHYSICIAN, "/review", WIDE, "light", revealed),
}
"""By file: who looks at which address, how wide, in which theme, after doing what. In this order, since the last ones mark."""


def take(browser: Browser, server: AppServer, name: str) -> None:
    """One picture, as small as it can be read."""
    who, path, width, scheme, act = TAKEN[name]
    context = steps.new_context(browser, width=width, scheme=scheme, has_touch=width == PHONE)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": HEIGHT})
    steps.choose_reader(page, server, who, path=path)
    steps.settled(page)
    act(page)
    steps.settled(page)
    page.wait_for_timeout(1_500)  # figures draw themselves after the page has come to rest
    with Image.open(io.BytesIO(page.screenshot())) as shot:
        shot.convert("RGB").quantize(COLOURS).save(PICTURES / f"{name}.png", optimize=True)
    context.close()


if __name__ == "__main__":
    expect.set_options(timeout=steps.WAIT_MS)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running_app(Path(folder)) as running, sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        for picture in TAKEN:
            take(chrome, running, picture)
        chrome.close()
