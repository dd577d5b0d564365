"""What a person does, in a word: choose a profile, open a page, press a verdict. Each waits for what it should bring about."""

import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import quote

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error as PlaywrightError, Locator, Page, expect

from tests.browser.server import AppServer

WAIT_MS = 30_000

# With it Chromium asks where to save, which no test can answer; without it a download is a download.
NO_FILE_PICKER = "delete window.showSaveFilePicker"

ROW_PIXELS = 35  # of Streamlit's tables, the header's too: their cells are painted, so a row is a place

# Every page, its address, and the beginning of its title.
PAGES = {
    "overview": ("/", "Overview"),
    "browse": ("/browse", "Conversations and verdicts"),
    "models": ("/models", "Model scores"),
    "judges": ("/judges", "Record of the judge"),
    "triage": ("/triage", "Levels of care"),
    "calibration": ("/calibration", "Confidence of judges against physicians"),
    "study": ("/study", "Study set-up"),
    "export": ("/export", "Export"),
    "audit": ("/audit", "Audit trail"),
}


def choose_reader(page: Page, server: AppServer, name: str, *, path: str = "/") -> None:
    """Open an address as somebody: by the link of their card, without the page that shows the cards, which takes a second to load."""
    with closing(sqlite3.connect(server.database)) as study:
        ((number,),) = study.execute("SELECT id FROM person WHERE name = ?", (name,))
    page.goto(f"{server.url}/reader/{number}?next={quote(path, safe='')}")
    expect(page.locator(".or-signed b")).to_have_text(name)


def click_profile(page: Page, name: str) -> None:
    """Click the card of somebody, on the page that shows the cards."""
    page.locator("a.or-profile", has=page.get_by_text(name, exact=True)).click()
    expect(page.locator(".or-signed b")).to_have_text(name)


def change_reader(page: Page, name: str) -> None:
    """Somebody else takes the chair, on the page that is open."""
    page.get_by_role("link", name="Change reader").click()
    page.locator("a.or-profile", has_text=name).click()
    expect(page.locator(".or-signed b")).to_contain_text(name)


def go(page: Page, name: str) -> None:
    """Another page by the navigation."""
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=name.capitalize()).click()
    expect(page.locator(".or-heading h1")).to_contain_text(PAGES[name][1])


def opened(page: Page, server: AppServer, name: str, query: str = "") -> None:
    """Another page by its address."""
    path, title = PAGES[name]
    page.goto(server.url + path + query)
    expect(page.locator(".or-heading h1")).to_contain_text(title)


def settled(page: Page) -> None:
    """Wait until the script has come to rest. What a run has not reached yet is faded, which is too little contrast."""
    page.wait_for_timeout(250)  # a run begins a moment after the click that asks for it
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator("[data-stale=true]")).to_have_count(0)


def keyed(page: Page | Locator, key: str) -> Locator:
    """The widget or container of a key."""
    return page.locator(f".st-key-{key}")


def button(page: Page, key: str) -> Locator:
    """A button of Review: its key ends with the number of the read."""
    return page.locator(f"[class*='st-key-{key}_']").get_by_role("button")


def table(page: Page) -> Locator:
    """The one table on the screen: Streamlit writes the key of a table on the page only where its rows can be selected."""
    return page.get_by_test_id("stDataFrame").filter(visible=True)


def open_row(page: Page, row: int) -> None:
    """Click the conversation in this row of Browse's list, counted from 0."""
    expect(table(page)).to_be_visible()
    table(page).click(position={"x": 250, "y": ROW_PIXELS * (row + 1.5)})
    expect(page.locator(".or-conversation").first).to_be_visible()


def verdict(page: Page, item: str, words: str) -> Locator:
    """One of the three buttons of the viewer's own verdict on an item `response_criterion`."""
    return keyed(page, f"label_{item}").get_by_role("radio", name=re.compile(rf"^\S+ {words}"))


def stamp(page: Page, item: str) -> Locator:
    """When the viewer's verdict on an item was saved."""
    return keyed(page, f"own_{item}").locator(".or-stamp")


def stored(server: AppServer, item: str) -> dict[str, object]:
    """The newest verdict of a physician on an item, as it stands in the study."""
    names = ("label", "cause", "severity", "explanation")
    response, criterion = item.split("_")
    with closing(sqlite3.connect(server.database)) as study:
        row = study.execute(
            f"SELECT {', '.join(names)} FROM verdict WHERE response_id = ? AND criterion_id = ? AND stage = 'open' ORDER BY id DESC",
            (response, criterion),
        ).fetchone()
    return dict(zip(names, row or (None,) * len(names), strict=True))


def wait_until_stored(server: AppServer, item: str, **expected: str | None) -> None:
    """Wait until the newest verdict on an item holds these values. A page that is closed sooner may take the last choice with it."""
    last_moment = time.monotonic() + WAIT_MS / 1000
    found = stored(server, item)
    while {name: found[name] for name in expected} != expected and time.monotonic() < last_moment:
        time.sleep(0.05)
        found = stored(server, item)
    assert {name: found[name] for name in expected} == expected, f"item {item} holds {found}"


def items(page: Page) -> list[str]:
    """The items on the screen, each `response_criterion`, in the rubric's order."""
    own = page.locator("[class*='st-key-own_']")
    expect(own.first).to_be_visible()
    settled(page)  # the first stands there before the last
    return own.evaluate_all(
        "all => all.map(e => [...e.classList].find(c => c.startsWith('st-key-own_')).slice('st-key-own_'.length))"
    )


def pick(page: Page, key: str, words: str) -> None:
    """Choose an option of a select box. Its list closes when the page scrolls under it: then it is opened again."""
    option = page.get_by_role("option", name=words, exact=True)
    for _ in range(3):
        keyed(page, key).get_by_role("combobox").click()
        try:
            option.click(timeout=2_000)
        except PlaywrightError:  # no option to click
            page.keyboard.press("Escape")
        else:
            break
    expect(keyed(page, key).get_by_role("combobox")).to_have_value(words)


def type_in(page: Page, key: str, words: str) -> None:
    """Fill in a text field and press Enter."""
    field_ = keyed(page, key).get_by_role("textbox")
    field_.fill(words)
    field_.press("Enter")


def select_by_mouse(page: Page, words: str) -> None:
    """Draw over the last of these words in the response."""
    ends = page.evaluate(
        """words => {
            const found = [], all = document.createTreeWalker(document.querySelector(".or-response"), NodeFilter.SHOW_TEXT);
            while (all.nextNode()) if (all.currentNode.data.includes(words)) found.push(all.currentNode);
            const range = document.createRange(), node = found.at(-1), at = node.data.lastIndexOf(words);
            node.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
            range.setStart(node, at); range.setEnd(node, at + words.length);
            const { left, right, top, height } = range.getBoundingClientRect();
            return [left, right, top + height / 2];
        }""",
        words,
    )
    page.mouse.move(ends[0], ends[2])
    page.mouse.down()
    page.mouse.move(ends[1], ends[2], steps=4)
    page.mouse.up()


@dataclass
class Complaints:
    """What the browser complained about: errors of the console, errors of scripts, dialogs that opened."""

    console: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def hear(self, context: BrowserContext) -> None:
        """Listen to every page of a context."""
        context.on("console", self._said)
        context.on("weberror", lambda error: self.scripts.append(str(error.error)))
        context.on("page", lambda page: page.on("dialog", self._asked))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console.append(f"{message.text} ({message.location.get('url', '')})")

    def _asked(self, dialog: object) -> None:
        self.dialogs.append(str(dialog))
        dialog.dismiss()  # type: ignore[attr-defined]

    @property
    def all(self) -> list[str]:
        """Everything."""
        return [*self.console, *self.scripts, *self.dialogs]


def new_context(
    browser: Browser, *, width: int = 1280, height: int = 900, scheme: str = "light", has_touch: bool = False
) -> BrowserContext:
    """A browser of its own: no cookie, no storage."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, locale="en-GB", color_scheme=scheme, has_touch=has_touch
    )
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(NO_FILE_PICKER)
    return context
