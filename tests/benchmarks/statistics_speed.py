"""How long the numbers of a large study take: `python tests/benchmarks/statistics_speed.py`.

A study of 57,000 criteria, ten models and three judges (1.7 million verdicts), a twentieth of it read by two physicians. Each metric is measured
warm, beside its floor: the plain numpy sum that the metric is made of, over the same arrays in the same run. Reading the study from SQLite has for a floor
the bare fetch of the same labels through the driver; the Models page, opened cold in Chromium, the same page of an empty study.
The target is a metric under 1 s and the page under 3 s; with `--large` 10 million verdicts (60 models) are read and scored, under 20 s.
"""

import argparse
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - found beside this file, installed or not
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from evalcore.judges.agreement import agreement, labels_of  # noqa: E402
from evalcore.judges.criterion_health import criterion_health  # noqa: E402
from evalcore.judges.drift import flips  # noqa: E402
from evalcore.judges.quality import balanced_f1, error_rates  # noqa: E402
from evalcore.rubric import queries as labels  # noqa: E402
from evalcore.rubric.data import RubricData  # noqa: E402
from evalcore.rubric.judge_only import differences  # noqa: E402
from evalcore.rubric.scores import GROUPINGS, example_scores, group_scores  # noqa: E402
from evalcore.study import contents, store  # noqa: E402
from evalcore.study.db import open_study, reading, writing  # noqa: E402
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
    given = asked.parse_args()
    n_models = LARGE_MODELS if given.large else N_MODELS
    with TemporaryDirectory() as folder:
        path = Path(folder) / "overread.db"
        made(path, n_models=n_models, n_judges=N_JUDGES).dispose()
        floor, _ = timed(lambda: bare_fetch(path), 1)
        took, rubric_data = timed(lambda: load(path), 1)
        print(
            f"{rubric_data.judged.size:,} verdicts of {N_JUDGES} judges on {n_models} models; {len(rubric_data.reads):,} reads"
        )
        print(f"read from SQLite: {took:.2f} s, {took / floor:.1f} x the bare fetch into numpy ({floor:.2f} s)")
        metrics(rubric_data)
        if not given.large:
            page(path)


def load(path: Path) -> RubricData:
    """As the pages read the study for the first time."""
    engine = open_study(str(path))
    with reading(engine) as session:
        found = labels.load(session)
    engine.dispose()
    return found


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
    """Seconds of the quickest run, and what it gave."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        found = act()
        best = min(best, time.perf_counter() - start)
    return best, found


if __name__ == "__main__":
    main()
