"""How long the numbers of triage take: `python tests/benchmarks/triage_speed.py`.

10,000 cases, 20 models, 2 formats and 5 samples: two million samples with a level each. Writing their files, once, has for a floor the bare fetch of the same
levels through the driver; reading these files each byte of them touched; each metric the plain numpy sum that it is made of; the Triage page, opened cold in Chromium, the same page of an empty study.
The target is the page under 3 s.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - found beside this file, installed or not
import pandas as pd  # noqa: E402

from evalcore.study.db import open_study, reading  # noqa: E402
from evalcore.triage import queries as triage_queries  # noqa: E402
from evalcore.triage.cases import flip_counts, misses  # noqa: E402
from evalcore.triage.data import TriageData, described  # noqa: E402
from evalcore.triage.harm import expected_harm  # noqa: E402
from evalcore.triage.predictions import joined, predictions, usual_judges  # noqa: E402
from evalcore.triage.rates import accounted, by_group, confusion, rates, summary  # noqa: E402
from tests.benchmarks._large_triage import made  # noqa: E402
from tests.benchmarks.statistics_speed import page, timed, touched, written  # noqa: E402

N_CASES, N_MODELS, REPEATS = 10_000, 20, 3
COLUMNS = ("gold", "kind", "source", "strength", "language")
BARE_FETCH = "SELECT response_id, rater_id, label = 'A' FROM verdict WHERE label IS NOT NULL AND stage = 'judge'"


def main() -> None:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "overread.db"
        made(path, n_cases=N_CASES, n_models=N_MODELS).dispose()
        measured(path)


def measured(path: Path) -> None:
    """All figures of a study."""
    engine = open_study(str(path))
    written(path, engine, BARE_FETCH)
    floor, _ = timed(lambda: touched(engine), REPEATS)
    with reading(engine) as session:
        took, triage_data = timed(lambda: triage_queries.load(session), REPEATS)
    engine.dispose()
    print(f"{len(triage_data.samples):,} samples of {len(triage_data.cases):,} cases; {len(triage_data.reads):,} reads")
    print(
        f"read from files, with physicians' reads: {took:.2f} s, {took / floor:.1f} x each byte touched ({floor:.2f} s)"
    )
    metrics(described(triage_data))
    page(path, "triage", ".js-plotly-plot .annotation")


def metrics(triage_data: TriageData) -> None:
    """One line a metric, with the plain sum below it."""
    judges = usual_judges(triage_data)
    found = joined(triage_data, predictions(triage_data, judges), COLUMNS)
    cells = confusion(found)
    by_sample, by_prediction = counted_samples(triage_data), counted_predictions(found)
    lines: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
        ("predictions", lambda: predictions(triage_data, judges), by_sample),
        ("confusion", lambda: confusion(found), by_prediction),
        ("rates and scores", lambda: (rates(cells), summary(cells)), by_prediction),
        ("by source", lambda: by_group(triage_data, found, "source"), by_prediction),
        ("what is counted where", lambda: accounted(triage_data, found), by_prediction),
        ("dangerous misses", lambda: misses(triage_data, found, judges=judges), by_prediction),
        ("flips", lambda: flip_counts(found), by_prediction),
        ("expected harm", lambda: expected_harm(cells), by_prediction),
    ]
    for name, act, floor in lines:
        took, _ = timed(act, REPEATS)
        least, _ = timed(floor, REPEATS)
        print(f"{name}: {1000 * took:,.0f} ms, {took / least:.1f} x the plain numpy sum ({1000 * least:,.1f} ms)")


def counted_samples(triage_data: TriageData) -> Callable[[], object]:
    """Samples by case, model and level: one bincount over arrays that are ready."""
    level = np.nan_to_num(triage_data.levels.max(axis=1).to_numpy(dtype=float)).astype(np.int64)
    samples = triage_data.samples
    group = samples["row"].to_numpy() * 100 + samples["model"].cat.codes.to_numpy().astype(np.int64) * 2
    group += samples["format"].cat.codes.to_numpy()
    return lambda: np.bincount(group * 5 + level)


def counted_predictions(found: pd.DataFrame) -> Callable[[], object]:
    """Predictions by model, gold and level."""
    clear = found.loc[found["gold"].notna() & found["predicted"].notna()]
    model = clear["model"].cat.codes.to_numpy().astype(np.int64)
    gold, predicted = (clear[name].to_numpy().astype(np.int64) for name in ("gold", "predicted"))
    return lambda: np.bincount((model * 5 + gold) * 5 + predicted)


if __name__ == "__main__":
    main()
