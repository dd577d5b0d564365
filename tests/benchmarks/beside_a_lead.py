"""What a physician's mark takes while a lead walks all pages: `python tests/benchmarks/beside_a_lead.py`.

One process, and 1.7 million verdicts, or the study of `--study FILE`. Presses of one physician, ten a second,
without a browser: first alone, which is the floor, then while the lead opens one page and section after another. And the memory of
the process after each walk.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - found beside this file, installed or not
import psutil  # noqa: E402 - likewise

from evalcore.reading import assigning  # noqa: E402
from evalcore.serving import cookie_name  # noqa: E402
from evalcore.study import contents, store  # noqa: E402
from evalcore.study.db import open_study, reading, writing  # noqa: E402
from evalcore.study.schema import Administrator  # noqa: E402
from tests.benchmarks import _tab  # noqa: E402
from tests.benchmarks._large import made  # noqa: E402
from tests.browser.server import AppServer, running_app  # noqa: E402

SECTIONS = {
    "models": ("Scores", "By theme and axis", "Comparison", "Head to head", "More"),
    "judges": ("Record", "Against physicians", "Criteria", "Between physicians", "Versions and families"),
}
OTHERS = ("overview", "browse", "calibration", "triage", "export", "study", "audit")
PAGES = (*(f"{page}?{urlencode({f'{page}_show': one})}" for page, ones in SECTIONS.items() for one in ones), *OTHERS)
PHYSICIAN = "Dr. Beside"
N_ALONE, GAP_SECONDS = 200, 0.1


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument(
        "--study", type=Path, help="where a study lies; one person more and one assignment are put in it"
    )
    given = asked.parse_args()
    with TemporaryDirectory() as folder:
        path = given.study or Path(folder) / "overread.db"
        if not path.exists():
            made(path, n_models=10, n_judges=3).dispose()
        cookies = with_physician(path)
        with running_app(path.parent, "--db", str(path)) as server:
            asyncio.run(measured(server, *cookies))


def with_physician(path: Path) -> tuple[str, str]:
    """The cookies of a physician with something to read, and of the lead."""
    engine = open_study(str(path))
    with writing(engine) as session:
        is_new = PHYSICIAN not in {person.name for person in contents.people(session)}
        if is_new:
            store.add_person(session, PHYSICIAN, roles=["reviewer"], actor="benchmark")
    if is_new:
        choice = assigning.Choice(seed=1, n_items=50, n_readers=1, readers=(PHYSICIAN,))
        assigning.assign(engine, choice, actor=Administrator(name="benchmark"))
    with reading(engine) as session:
        name = cookie_name(contents.study_key(session) or "")
        number_of = {person.name: person.person_id for person in contents.people(session)}
    engine.dispose()
    return f"{name}={number_of[PHYSICIAN]}", f"{name}={number_of['Lea Lead']}"


async def measured(server: AppServer, physician: str, lead: str) -> None:
    """The physician alone, then beside the lead's first walk, and beside a second one."""
    _tab.ANSWER_SECONDS = 600.0  # a page of a study of ten million verdicts, read for the first time
    async with _tab.opened(server.url, "review", cookie=physician) as tab:
        alone = await marks(tab, N_ALONE)
        told("a physician's mark, alone", alone, alone)
        for walk in ("first", "second"):
            walking = asyncio.create_task(walked(server.url, lead))
            beside = []
            while not walking.done():
                beside += await marks(tab, 1)
            await walking
            told(f"the same beside the lead's {walk} walk", beside, alone)
            memory = max(process.memory_info().rss for process in psutil.Process().children(recursive=True))
            print(f"memory of the process after it: {memory / 2**20:,.0f} MB")


async def marks(tab: _tab.Tab, n: int) -> list[float]:
    """Milliseconds of so many presses: met, and back to it."""
    times = []
    for _ in range(n):
        key = "answer_1" if len(times) % 2 else "answer_2"
        times.append(await tab.press(key if not tab.buttons[key].disabled else "back"))
        await asyncio.sleep(GAP_SECONDS)
    return times


async def walked(url: str, cookie: str) -> None:
    """One page after another."""
    for page in PAGES:
        async with _tab.opened(url, page, cookie=cookie):
            pass


def told(what: str, times: list[float], floor: list[float]) -> None:
    """A line."""
    p50, p95 = np.percentile(times, [50, 95])
    ratio = p95 / np.percentile(floor, 95)
    print(f"{what}: p50 {p50:.0f} ms, p95 {p95:.0f} ms, {ratio:.1f} x alone ({len(times)} presses)")


if __name__ == "__main__":
    main()
