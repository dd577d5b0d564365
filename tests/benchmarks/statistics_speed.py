"""How long the numbers of a large study take: `python tests/benchmarks/statistics_speed.py`.

A study of 57,000 criteria, ten models and three judges (1.7 million verdicts), a twentieth of it read by two physicians. Each metric is measured
warm, beside its floor: the plain numpy sum that the metric is made of, over the same arrays in the same run. Files of judges' verdicts are written once, beside
the bare fetch of the same labels through the driver; reading has for a floor these files mapped and each byte of their columns touched, and physicians' reads,
which lie in files as well, are measured apart. The Models page, opened cold in Chromium, has the same page of an empty study.
With `--large` 10 million verdicts (60 models) are read and scored; `--study FILE` keeps the study there, and measures the one that is there.
Seconds are of the processor, so that others' work beside it does not count, but those of the page.
"""

import argparse
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - found beside this file, installed or not
import pyarrow as pa  # noqa: E402 - likewise
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from evalcore.judges.agreement import agreement, labels_of  # noqa: E402
from evalcore.judges.criterion_health import criterion_health  # noqa: E402
from evalcore.judges.drift import flips  # noqa: E402
from evalcore.judges.quality import balanced_f1, error_rates  # noqa: E402
from evalcore.rubric import queries as labels  # noqa: E402
from evalcore.rubric.data import RubricData  # noqa: E402
from evalcore.rubric.judge_only import differences  # noqa: E402
from evalcore.rubric.scores import GROUPINGS, example_scores, group_scores  # noqa: E402
from evalcore.study import contents, snapshot, store  # noqa: E402
from evalcore.study.db import Engine, open_study, reading, writing  # noqa: E402
from tests import chromium  # noqa: E402
from tests.benchmarks._large import made  # noqa: E402
from tests.browser.server import running_app  # noqa: E402
from tests.population import corrected_differences, corrected_scores  # noqa: E402

Found = TypeVar("Found")
N_MODELS, N_JUDGES, LARGE_MODELS = 10, 3, 60
REPEATS = 3
BARE_FETCH = (
    "SELECT response_id, criterion_id, rater_id, label = 'met' FROM verdict WHERE label IS NOT NULL AND stage = 'judge'"
)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--large", action="store_true", help="10 million verdicts instead")
    asked.add_argument("--study", type=Path, help="where the study lies, or is to be made and kept")
    given = asked.parse_args()
    n_models = LARGE_MODELS if given.large else N_MODELS
    with TemporaryDirectory() as folder:
        path = given.study or Path(folder) / "overread.db"
        if not path.exists():
            made(path, n_models=n_models, n_judges=N_JUDGES).dispose()
        engine = open_study(str(path))
        written(path, engine, BARE_FETCH)
        with reading(engine) as session:
            took, judged = timed(lambda: labels.judged(session), REPEATS)
            of_reads, rubric_data = timed(lambda: labels.with_reads(session, judged), REPEATS)
        print(
            f"{judged.judged.size:,} verdicts of {N_JUDGES} judges on {n_models} models; {len(rubric_data.reads):,} reads"
        )
        floor, _ = timed(lambda: touched(engine), REPEATS)
        print(f"judges' verdicts from files: {took:.2f} s, {took / floor:.1f} x each byte touched ({floor:.2f} s)")
        print(f"physicians' reads: {of_reads:.2f} s; {getrusage(RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB at most")
        metrics(rubric_data)
        engine.dispose()
        if not given.large:
            page(path)


def written(path: Path, engine: Engine, statement: str) -> None:
    """Write the files of a study anew, beside the bare fetch."""
    floor, _ = timed(lambda: bare_fetch(path, statement), 1)
    snapshot.remove(engine)
    took, _ = timed(lambda: snapshot.extend(engine), 1)
    print(f"files written, once: {took:.2f} s, {took / floor:.1f} x the bare fetch into numpy ({floor:.2f} s)")


def touched(engine: Engine) -> int:
    """Each byte of the columns in the files of a study."""
    place = snapshot.folder(engine)
    tables = (pa.ipc.open_file(pa.memory_map(str(path))).read_all() for path in sorted(place.glob("*.arrow")) if place)
    columns = (chunk for table in tables for column in table.columns for chunk in column.chunks)
    buffers = (buffer for column in columns for buffer in column.buffers() if buffer is not None and buffer.size)
    return sum(int(np.frombuffer(buffer, dtype=np.uint8).sum(dtype=np.int64)) for buffer in buffers)


def bare_fetch(path: Path, statement: str = BARE_FETCH) -> np.ndarray:
    """The same labels through the driver alone."""
    connection = sqlite3.connect(path)
    rows = np.array(connection.execute(statement).fetchall(), dtype=np.int64)
    connection.close()
    return rows


def metrics(rubric_data: RubricData) -> None:
    """One line a metric, with the plain sum below it."""
    judge, rng = rubric_data.judges[0], np.random.default_rng
    scores = example_scores(rubric_data, judge)
    sums = Sums(rubric_data)
    lines: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("scores by example", lambda: example_scores(rubric_data, judge), sums.by_response),
        ("scores by theme, axis, category", lambda: group_scores(rubric_data, judge, GROUPINGS), sums.by_group),
        ("corrected scores, one judge", lambda: corrected_scores(rubric_data, judges=[judge]), sums.by_model),
        ("corrected scores, three judges", lambda: corrected_scores(rubric_data), sums.by_model),
        ("corrected differences", lambda: corrected_differences(rubric_data), sums.by_response),
        (
            "paired differences, 10,000 resamples",
            lambda: differences(scores, rng=rng(1)),
            lambda: sums.resampled(scores),
        ),
        ("balanced F1 of judges", lambda: balanced_f1(rubric_data), sums.read_pairs),
        ("sensitivity and specificity", lambda: error_rates(rubric_data), sums.read_pairs),
        ("agreement of physicians", lambda: agreement(labels_of(rubric_data)), sums.read_pairs),
        ("criterion health", lambda: criterion_health(rubric_data, judge), sums.by_criterion),
        ("flips between two judges", lambda: flips(rubric_data, *rubric_data.judges[:2]), sums.flipped),
    ]
    for name, act, floor in lines:
        took, _ = timed(act, REPEATS)
        least, _ = timed(floor, REPEATS)
        print(f"{name}: {1000 * took:,.0f} ms, {took / least:.1f} x the plain numpy sum ({1000 * least:,.1f} ms)")


class Sums:
    """The plain sums of each metric, over arrays that are ready."""

    def __init__(self, rubric_data: RubricData) -> None:
        items, reads = rubric_data.items, rubric_data.reads
        self._met = [rubric_data.judged[judge].to_numpy() for judge in rubric_data.judges]
        self._points = items["points"].to_numpy()
        self._response = items["response_id"].to_numpy()
        self._model = items["model"].cat.codes.to_numpy().astype(np.int64)
        self._axis = items["axis"].cat.codes.to_numpy().astype(np.int64)
        self._criterion = items["criterion_id"].to_numpy()
        self._row, self._vote = reads["row"].to_numpy(), reads["met"].to_numpy()

    def by_response(self) -> object:
        """Points achieved and possible, by response."""
        return [np.bincount(self._response, weights) for weights in (self._points * self._met[0], self._points.clip(0))]

    def by_group(self) -> object:
        """The same by response and axis."""
        group = self._response * (self._axis.max() + 1) + self._axis
        return [np.bincount(group, weights) for weights in (self._points * self._met[0], self._points.clip(0))]

    def by_model(self) -> object:
        """Points achieved by each judge's labels and by the votes read, by model."""
        read = self._points[self._row] * self._vote
        return [
            *(np.bincount(self._model, self._points * met) for met in self._met),
            np.bincount(self._model[self._row], read),
        ]

    def by_criterion(self) -> object:
        """Met by the judge and by physicians, by criterion."""
        return np.bincount(self._criterion, self._met[0]), np.bincount(self._criterion[self._row], self._vote)

    def read_pairs(self) -> object:
        """The four counts of each judge's label beside the vote."""
        return [np.bincount((2 * met[self._row] + self._vote).astype(np.int64), minlength=4) for met in self._met]

    def flipped(self) -> object:
        """Labels that two judges give differently, by model."""
        return np.bincount(self._model, self._met[0] != self._met[1])

    @staticmethod
    def resampled(scores: object) -> object:
        """Resampled means of all models, as one product of weights and scores a block."""
        table = np.nan_to_num(np.asarray(scores, dtype=np.float32))
        rng, n = np.random.default_rng(1), len(table)
        blocks = []
        for _ in range(20):
            drawn = rng.integers(0, n, (500, n)) + n * np.arange(500)[:, None]
            blocks.append(np.bincount(drawn.ravel(), minlength=500 * n).reshape(500, n).astype(np.float32) @ table)
        return blocks


def page(path: Path, name: str = "models", awaited: str = ".js-plotly-plot .scatterlayer") -> None:
    """From the address to the drawn figure, on the first visit after the start; beside the same page of a study that holds nothing but people."""
    empty = path.with_name("empty.db")
    engine = open_study(str(empty))
    with writing(engine) as session:
        if not contents.people(session):
            store.ensure_study(session)
            store.add_person(session, "Lea Lead", roles=["lead"], actor="benchmark")
    engine.dispose()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        floor, took = (visited(browser, *one, name) for one in ((empty, ".or-notice"), (path, awaited)))
        browser.close()
    print(
        f"{name.capitalize()} page, first visit after the start: {took:.2f} s to the figure, {took / floor:.1f} x the same page of an empty study "
        f"({floor:.2f} s)"
    )


def visited(browser: Browser, path: Path, awaited: str, page: str) -> float:
    """Seconds from the address to what is awaited. The page's code is loaded by a visit to another page first."""
    with running_app(path.parent, "--db", str(path)) as server:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(f"{server.url}/reader/1?next=/audit")
        tab.wait_for_selector("h1")
        start = time.perf_counter()
        tab.goto(f"{server.url}/{page}")
        tab.wait_for_selector(awaited)
        took = time.perf_counter() - start
        tab.close()
    return took


def timed(act: Callable[[], Found], repeats: int) -> tuple[float, Found]:
    """The processor's seconds of the quickest run, and what it gave."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        found = act()
        best = min(best, time.process_time() - start)
    return best, found


if __name__ == "__main__":
    main()
