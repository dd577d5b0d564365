"""How long others wait while a large file is imported: `python tests/benchmarks/import_beside.py [--rows 200000]`.

A study with 57,000 verdicts on a file of SQLite; a process of its own imports a table of verdicts by further judges. Beside it somebody
begins a writing transaction every 50 ms (`--gap`), as a press does, and ends it at once. The floor, in the same run: the same on the same
study while nobody imports. The target is that nobody waits longer than a second, at a million rows too.
"""

import argparse
import multiprocessing
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evalcore.importing import import_file  # noqa: E402
from evalcore.study import frames  # noqa: E402
from evalcore.study.db import connect, open_study, reading, writing  # noqa: E402 - found beside this file, installed or not
from evalcore.study.schema import PART_IMPORTED, Administrator, RaterKind  # noqa: E402
from tests.benchmarks.import_speed import ACTOR, JUDGE, MODEL, N_VERDICTS, write_results  # noqa: E402

TARGET_SECONDS, FLOOR_SECONDS = 1.0, 10.0
HEAD = "dataset,example_id,criterion_position,model,sample_index,evaluation,rater,rater_kind,stage,label,explanation\n"
WORDS = "The response names when to see a doctor and what to watch for, but gives no dose; the criterion asks for both."


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=200_000, help="of the file that is imported")
    asked.add_argument(
        "--gap",
        type=float,
        default=0.05,
        help="seconds between two acts; with 10 the import makes no pauses between them",
    )
    given = asked.parse_args()
    with TemporaryDirectory() as folder:
        study, table = Path(folder) / "study.db", Path(folder) / "verdicts.csv"
        fill(study)
        write_table(study, table, given.rows)
        start = time.perf_counter()
        floor = waits(study, lambda: time.perf_counter() - start < FLOOR_SECONDS, given.gap)
        context = multiprocessing.get_context("spawn")
        peak = context.Value("d", 0.0)
        importer = context.Process(target=bring, args=(study, table, peak))
        start = time.perf_counter()
        importer.start()
        beside = waits(study, importer.is_alive, given.gap)
        seconds = time.perf_counter() - start
        importer.join()
        with closing(sqlite3.connect(study)) as connection:
            said = "SELECT count(*) FROM audit_event WHERE action = ?"
            (n_parts,) = connection.execute(said, (PART_IMPORTED,)).fetchone()
    print(f"nobody imports: {told(floor)}")
    print(
        f"beside the import of {given.rows:,} rows in {n_parts} parts: {told(beside)} (target: {TARGET_SECONDS:.0f} s)"
    )
    print(f"the import took {seconds:.1f} s with {peak.value:.0f} MB at most")


def told(waited: list[float]) -> str:
    """In words."""
    of_time = sorted(waited)
    middle, high = (of_time[int(share * (len(of_time) - 1))] for share in (0.5, 0.99))
    return f"{len(waited):,} acts waited {middle:.3f} / {high:.3f} s (p50 / p99), at the longest {of_time[-1]:.2f} s"


def waits(study: Path, goes_on: Callable[[], bool], gap: float) -> list[float]:
    """Seconds until each writing transaction had begun."""
    waited = []
    engine = connect(str(study))
    while goes_on():
        start = time.perf_counter()
        with writing(engine, patient=True):
            waited.append(time.perf_counter() - start)
        time.sleep(gap)
    engine.dispose()
    return waited


def fill(study: Path) -> None:
    """Responses, and one judge's verdicts on them."""
    engine = open_study(str(study))
    results = study.with_name("bench_model_20260101_000000_allresults.json")
    write_results(results, N_VERDICTS)
    import_file(engine, results, actor=Administrator(name=ACTOR), model=MODEL, judge=JUDGE)
    engine.dispose()


def write_table(study: Path, path: Path, n_rows: int) -> None:
    """Verdicts on the same responses by as many further judges as it takes."""
    engine = connect(str(study))
    with reading(engine) as session:
        found = frames.verdicts(session, kind=RaterKind.JUDGE)
    engine.dispose()
    items = [
        f"{row.dataset},{row.prompt_id},{row.position},{row.model},0,{row.evaluation}" for row in found.itertuples()
    ]
    with path.open("w", encoding="utf-8") as lines:
        lines.write(HEAD)
        for number, (item, label) in enumerate(zip(cycle(items), cycle(("met", "not_met", "met")), strict=False)):
            if number == n_rows:
                break
            lines.write(f'{item},Judge {number // len(items) + 1},judge,judge,{label},"{WORDS} ({number})"\n')


def bring(study: Path, table: Path, peak: "multiprocessing.sharedctypes.Synchronized[float]") -> None:
    """Import the table; for a process of its own."""
    engine = connect(str(study))
    import_file(engine, table, actor=Administrator(name=ACTOR))
    engine.dispose()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak.value = int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
