"""How fast Review answers a key, in Chromium, on a study of 57,000 verdicts: `python tests/benchmarks/review_latency.py`.

From the press to the visible mark (in the document, and painted two frames later), and from the submission to the next item. The floor,
measured in the same run by the same script: the same press on a page with one button and one counter, served with the same settings.
The target is a mark under 60 ms and the next item under 150 ms, both at the 95th percentile, painted.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Page, sync_playwright  # noqa: E402 - found beside this file, installed or not

from evalcore.importing import import_file  # noqa: E402
from evalcore.reading import assigning  # noqa: E402
from evalcore.study import contents, store  # noqa: E402
from evalcore.study.db import open_study, reading, writing  # noqa: E402
from evalcore.study.schema import Administrator  # noqa: E402
from evalcore.study.store import index_texts  # noqa: E402
from tests import chromium  # noqa: E402
from tests.benchmarks.import_speed import write_results  # noqa: E402
from tests.browser.server import AppServer, free_port, running_app, served  # noqa: E402

MARK_MS, NEXT_MS = 60.0, 150.0
READERS = ("Dr. First", "Dr. Second")
JUDGE = "Bench Judge"

FLOOR_APP = """
import streamlit as st

@st.fragment
def panel():
    if st.button("Met", key="met", shortcut="1"):
        st.session_state["n"] = st.session_state.get("n", 0) + 1
    st.html(f'<b class="or-counter">{st.session_state.get("n", 0)}</b>')

panel()
"""

# Press a key and wait until what `watched` returns has changed; then for two frames, so that it is painted.
PRESS = """async ([key, ctrl, watched]) => {
  const look = () => document.querySelector(watched)?.textContent ?? '';
  const before = look();
  const changed = new Promise((done, failed) => {
    setTimeout(() => failed(`nothing changed in 10 s: ${before.slice(0, 300)}`), 10000);
    const observer = new MutationObserver(() => { const now = look(); if (now && now !== before) { observer.disconnect(); done(performance.now()); } });
    observer.observe(document.body, {subtree: true, childList: true, characterData: true});
  });
  const start = performance.now();
  for (const type of ['keydown', 'keyup'])
    document.body.dispatchEvent(new KeyboardEvent(type, {key, code: key === 'Enter' ? 'Enter' : 'Digit' + key, ctrlKey: ctrl, bubbles: true, composed: true}));
  const at = await changed;
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return [at - start, performance.now() - start];
}"""


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--verdicts", type=int, default=57_000)
    asked.add_argument("--items", type=int, default=12, help="so many responses are read")
    given = asked.parse_args()
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        made(Path(folder), given.verdicts)
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        with floor_app(Path(folder)) as url:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(url)
            page.wait_for_selector(".or-counter")
            floor = [pressed(page, "1", ".or-counter") for _ in range(8 * given.items)]
            page.close()
        with running_app(Path(folder), "--db", str(Path(folder) / "study.db")) as server:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{server.url}/reader/1?next=/review")
            marks, nexts = read(page, given.items)
        browser.close()
    told("one button on an empty page", floor)
    told("a mark in Review", marks, floor, MARK_MS)
    told("the next item in Review", nexts, floor, NEXT_MS)


def made(folder: Path, n_verdicts: int) -> None:
    """A study with so many judge's verdicts, two readers, and everything assigned to them; the judge and the readers will agree."""
    results = folder / "bench_model_20260101_000000_allresults.json"
    write_results(results, n_verdicts)
    document = json.loads(results.read_bytes())
    for one in document["metadata"]["example_level_metadata"]:
        for item in one["rubric_items"]:
            item["criteria_met"] = True
    results.write_text(json.dumps(document), encoding="utf-8")
    engine = open_study(str(folder / "study.db"))
    with writing(engine) as session:
        store.ensure_study(session)
        for name in READERS:
            store.add_person(session, name, roles=["reviewer"], actor="benchmark")
    import_file(engine, results, actor=Administrator(name="benchmark"), model="Bench Model", judge=JUDGE)
    index_texts(engine)
    assigning.assign(engine, assigning.Choice(seed=1), actor=Administrator(name="benchmark"))
    with reading(engine) as session:
        assert contents.counts(session)["judge_verdicts"] == n_verdicts
    engine.dispose()


@contextlib.contextmanager
def floor_app(folder: Path) -> Iterator[str]:
    """The empty page, served by Streamlit with our settings."""
    home = folder / "floor"
    (home / ".streamlit").mkdir(parents=True)
    shutil.copy(ROOT / ".streamlit" / "config.toml", home / ".streamlit")
    (home / "app.py").write_text(FLOOR_APP)
    port = free_port()
    server = AppServer(f"http://127.0.0.1:{port}", home)
    with served(server, "-m", "streamlit", "run", "app.py", "--server.port", str(port), environment=os.environ):
        yield server.url


def pressed(page: Page, key: str, watched: str, *, ctrl: bool = False) -> tuple[float, float]:
    """Milliseconds from the press to the change in the document, and to the frame that shows it."""
    changed, painted = page.evaluate(PRESS, [key, ctrl, watched])
    page.wait_for_timeout(60)  # as a reader who is quick
    return changed, painted


def read(page: Page, n_items: int) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Read so many responses, every criterion met as the judge has it, so that each submission opens the next response."""
    marks, nexts = [], []
    page.wait_for_selector(".or-row")
    page.wait_for_selector(
        "[data-testid=stApp][data-test-script-state=notRunning]"
    )  # the rows stand before the buttons
    for _ in range(n_items):
        n_rows = page.locator(".or-row").count()
        marks += [pressed(page, "1", ".st-key-rows") for _ in range(n_rows)]
        page.wait_for_selector("[class*='st-key-submit_'] button:not([disabled])")
        nexts.append(pressed(page, "Enter", ".st-key-rows", ctrl=True))
        page.wait_for_selector("[class*='st-key-go_on_'] button")
        page.wait_for_timeout(300)
        nexts.append(pressed(page, "Enter", ".st-key-rows"))
        page.wait_for_timeout(300)
    return marks[5:], nexts


def told(
    title: str,
    times: list[tuple[float, float]],
    floor: list[tuple[float, float]] | None = None,
    target: float | None = None,
) -> None:
    """One line: median and 95th percentile, in the document and painted."""
    changed, painted = ([one[part] for one in times] for part in (0, 1))
    seen, drawn = (f"{middle(values):.0f} / {high(values):.0f} ms" for values in (changed, painted))
    line = f"{title} ({len(times)} presses): in the document {seen}, painted {drawn} (p50 / p95)"
    if floor is not None and target is not None:
        ratio = high(painted) / high([one[1] for one in floor])
        line += f", {ratio:.1f} x the empty page at p95 (target: p95 painted under {target:.0f} ms)"
    print(line)


def middle(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def high(values: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


if __name__ == "__main__":
    main()
