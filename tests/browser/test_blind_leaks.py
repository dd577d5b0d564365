"""In a real browser, whoever is to read blind is sent no secret: not on the screen, not through the socket, in no file, address or log."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests import leaks
from tests.browser import steps
from tests.browser.server import AppServer, running_app
from tests.leaks import BLIND, EVERY_ROLE, OPEN_EYES, REVIEWER, SECRETS, Hand


@dataclass(frozen=True)
class Study:
    server: AppServer
    hands: dict[str, Hand]


@pytest.fixture(scope="module")
def blind_study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder = tmp_path_factory.mktemp("blind")
    files = tmp_path_factory.mktemp("files")
    engine = leaks.make(str(folder / "overread.db"), files)
    hands = {name: leaks.take_in_hand(engine, name) for name in leaks.WALKERS}
    engine.dispose()
    with running_app(folder) as server:
        yield Study(server, hands)


@dataclass
class Ears:
    """All that reaches one browser, by where it came."""

    page: Page
    heard: dict[str, bytes] = field(default_factory=dict)
    where: str = "start"

    def __post_init__(self) -> None:
        self.page.on("websocket", self._socket)
        self.page.on("response", lambda response: self.keep("address", response.url.encode()))
        self.page.on("console", lambda message: self.keep("console", message.text.encode()))

    def _socket(self, socket: WebSocket) -> None:
        where = self.where  # of the page that opened it: what comes late is still that page's

        def came(frame: str | bytes) -> None:
            self.keep("socket", frame if isinstance(frame, bytes) else frame.encode(), where)

        socket.on("framereceived", came)

    def keep(self, kind: str, content: bytes, where: str | None = None) -> None:
        """Something came."""
        name = f"{where or self.where}: {kind}"
        self.heard[name] = self.heard.get(name, b"") + b"\n" + content

    def take_in(self) -> None:
        """What stands there now: the document with what is folded or hidden, the address, the title."""
        self.keep("document", self.page.content().encode())
        self.keep("address", self.page.url.encode())
        self.keep("title", self.page.title().encode())

    def go(self, server: AppServer, address: str) -> None:
        """Another address, drawn to the end."""
        self.take_in()
        self.where = address
        self.page.goto(server.url + address)
        self.rest()

    def rest(self) -> None:
        """Wait until the script has begun to draw, and is done."""
        expect(self.page.locator(".or-signed")).to_be_visible()
        expect(self.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")

    def found(self) -> dict[str, set[str]]:
        """Secrets by where they came."""
        hits = {name: leaks.found((*SECRETS, *BLIND), content) for name, content in self.heard.items()}
        return {name: words for name, words in hits.items() if words}


def walk(ears: Ears, server: AppServer, name: str, pages: tuple[str, ...]) -> None:
    """Pages with their tabs, lists, folds, keys and files."""
    ears.page.goto(server.url)
    steps.click_profile(ears.page, name)
    ears.rest()
    for address in pages:
        ears.go(server, address)
        inside = {"/study": _study, "/browse": _browse, "/export": _export, "/review": _review}.get(address)
        if inside is not None:
            inside(ears)
    ears.take_in()


def _study(ears: Ears) -> None:
    for tab in ("Reading", "People"):
        ears.page.get_by_role("tab", name=tab).click()
        ears.rest()
        ears.take_in()


def _browse(ears: Ears) -> None:
    ears.page.get_by_role("button", name="More filters").click()
    steps.keyed(ears.page, "model").get_by_role("combobox").click()
    expect(ears.page.get_by_role("option").first).to_be_visible()


def _export(ears: Ears) -> None:
    tables = {
        "Labels": "One row per item (",
        "Verdicts": "One row per standing verdict of",
        "Acuity": "One row per standing verdict on",
        "Cases of triage": "One row per case of triage",
        "Meta-evaluation rows": "meta-evaluation;",
    }
    for table, meaning in tables.items():
        steps.keyed(ears.page, "export_what").get_by_role("radio", name=table).click()
        expect(
            ears.page.locator(".or-quiet", has_text=meaning)
        ).to_be_visible()  # notRunning holds until the run begins, too
        ears.page.wait_for_timeout(500)
        ears.rest()
        button = steps.keyed(ears.page, "download").get_by_role("button")
        if button.is_enabled():
            with ears.page.expect_download() as loading:
                button.click()
            ears.keep("file", loading.value.path().read_bytes())
            ears.keep("file", loading.value.suggested_filename.encode())
        ears.take_in()


def _review(ears: Ears) -> None:
    expect(ears.page.locator(".or-rows").first).to_be_visible()
    for key in ("j", "g", "g", "?"):
        ears.page.keyboard.press(key)
        ears.rest()


FOLDED = "/browse?example=1&shown=" + leaks.SEEN_MODEL
WALKS = {
    REVIEWER: ("/study", "/browse", "/browse?reads=differ+from+the+judge", FOLDED, "/judges", "/export", "/audit", "/my_reads", "/review"),
    EVERY_ROLE: ("/study", FOLDED, "/audit", "/adjudicate", "/judges", "/triage", "/calibration", "/review"),
}  # fmt: skip


@pytest.mark.slow
def test_whoever_waits_for_nothing_is_sent_every_secret_on_such_a_walk(browser: Browser, blind_study: Study):
    context = steps.new_context(browser)
    ears = Ears(context.new_page())
    walk(ears, blind_study.server, OPEN_EYES, ("/browse", FOLDED, "/export"))
    by_kind: dict[str, set[str]] = {}
    for name, words in ears.found().items():
        by_kind.setdefault(name.rpartition(" ")[2], set()).update(words)
    assert by_kind["socket"] >= {leaks.MODEL, leaks.EXPLANATIONS[1], leaks.READER, *BLIND}
    assert by_kind["document"] >= {leaks.EXPLANATIONS[1], BLIND[0]}
    assert by_kind["file"] >= {*SECRETS, *BLIND}
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", WALKS)
def test_whoever_is_to_read_blind_is_sent_none(name: str, browser: Browser, blind_study: Study):
    context = steps.new_context(browser)
    ears = Ears(context.new_page())
    walk(ears, blind_study.server, name, WALKS[name])
    own, found = blind_study.hands[name].conversation, ears.found()
    assert {where for where, words in found.items() if own in words} == {"/review: document", "/review: socket"}
    people = ("start", "/study", "/audit")  # who is in the study is no secret: the cards, the People tab, who did what
    bad = {
        where: words - {own} - ({*leaks.PEOPLE_AT_READING} if where.startswith(people) else set()) for where, words in found.items()
    }  # fmt: skip
    assert {where: words for where, words in bad.items() if words} == {}
    assert leaks.found((*SECRETS, *BLIND), blind_study.server.log.read_bytes()) == set()
    context.close()
