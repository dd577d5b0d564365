"""What a press on a control takes until all is painted: `python tests/benchmarks/controls.py`.

In Chromium, on a study of 1.7 million verdicts, or the study of `--study FILE`, whose pages a lead has walked through once: each choice of each row of
choices on Models, Judges, Triage and Overview, the first time, eight seconds after the page was there, and once more. The floor is the same on the demo
study, which is small.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - found beside this file, installed or not
from playwright.sync_api import Page, sync_playwright  # noqa: E402 - likewise

from tests import chromium  # noqa: E402
from tests.benchmarks import _tab  # noqa: E402
from tests.benchmarks._large import made  # noqa: E402
from tests.benchmarks.beside_a_lead import PAGES, walked, with_physician  # noqa: E402
from tests.browser.server import running_app  # noqa: E402

ROWS = '[data-testid="stMain"] [data-testid="stButtonGroup"]'
"""The rows of choices; the first of Models and of Judges is that of its sections, which are walked through."""
CHOSEN = "stBaseButton-segmented_controlActive"
SHOWN = tuple(page for page in PAGES if page.split("?")[0] in ("models", "judges", "triage", "overview"))
PRESSED = """button => new Promise(done => {
    const app = document.querySelector('[data-testid="stApp"]')
    const start = performance.now()
    let last = start
    const unseen = ({type, target}) => (type === "childList" ? target : target.parentElement)?.closest("canvas")
    const watch = new MutationObserver(changes => {
        if (!changes.every(unseen)) last = performance.now()
    })
    watch.observe(document.querySelector('[data-testid="stMain"]'), {attributes: true, childList: true, characterData: true, subtree: true})
    button?.click()
    const look = () => {
        const quiet = performance.now() - last
        if (quiet < 400 || app.dataset.testScriptState !== "notRunning") return setTimeout(look, 20)
        watch.disconnect()
        done(last - start)
    }
    look()
})"""
"""Milliseconds from a press, or from now, to the last change of the page: nothing runs, and for 400 ms nothing changes any more. What is within a
canvas is not painted: a table keeps its cells there for screen readers, and writes them 200 ms later."""
LOOKED_MS = 8_000.0
"""So long somebody looks at a page before the first press."""
WAIT_MS = 600_000.0


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--study", type=Path, help="where a study lies; one person more is put in it")
    given = asked.parse_args()
    _tab.ANSWER_SECONDS = WAIT_MS / 1000
    with TemporaryDirectory() as folder:
        path = given.study or Path(folder) / "overread.db"
        if not path.exists():
            made(path, n_models=10, n_judges=3).dispose()
        _, lead = with_physician(path)
        with running_app(Path(folder), "--db", str(path)) as server:
            asyncio.run(walked(server.url, lead))
            times = presses(server.url, int(lead.rpartition("=")[2]))
        demo = Path(folder, "demo")
        demo.mkdir()
        with running_app(demo) as server:
            floor = presses(server.url, 1)
    for which in ("first", "again"):
        p50, p95 = np.percentile([ms for ms, _ in times[which]], [50, 95])
        ratio = p95 / np.percentile([ms for ms, _ in floor[which]], 95)
        slowest = "; ".join(f"{name} {ms:,.0f} ms" for ms, name in sorted(times[which], reverse=True)[:5])
        print(f"a press, {which}: p50 {p50:,.0f} ms, p95 {p95:,.0f} ms, {ratio:.1f} x in the demo study; {slowest}")


def presses(url: str, lead: int) -> dict[str, list[tuple[float, str]]]:
    """Each choice of each page, pressed once and once more, with its name."""
    times: dict[str, list[tuple[float, str]]] = {"first": [], "again": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.set_default_timeout(WAIT_MS)
        tab.goto(f"{url}/reader/{lead}?next=/audit")
        for page in SHOWN:
            tab.goto(f"{url}/{page}")
            tab.wait_for_selector("h1")
            tab.evaluate(PRESSED)  # nothing: until all is there
            tab.wait_for_timeout(LOOKED_MS)
            for found in times.values():
                found += [(ms, f"{page}: {name}") for name, ms in pressed(tab, page)]
        browser.close()
    return times


def pressed(tab: Page, page: str) -> Iterator[tuple[str, float]]:
    """Each choice that is not chosen, row by row, and the milliseconds of its press."""
    for row in range(page.startswith(("models", "judges")), tab.locator(ROWS).count()):
        for place in range(tab.locator(ROWS).nth(row).locator("button").count()):
            button = tab.locator(ROWS).nth(row).locator("button").nth(place)
            if button.is_visible() and button.get_attribute("data-testid") != CHOSEN:
                yield button.inner_text(), button.evaluate(PRESSED)


if __name__ == "__main__":
    main()
