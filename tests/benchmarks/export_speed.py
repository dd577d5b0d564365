"""How long an export takes: `python tests/benchmarks/export_speed.py`.

The floor, measured in the same run on the same table: bare `pandas.DataFrame.to_csv` of the finished table to memory. Each table is
exported from a study with 57,000 judge's verdicts with texts, a tenth of them read by two physicians, and from one with half as many:
twice the verdicts should take about twice as long.
"""

import argparse
import io
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine, insert

from evalcore.study.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evalcore.export import tables as export_tables  # noqa: E402 - found beside this file, installed or not
from evalcore.study.db import open_study  # noqa: E402
from evalcore.study.tables import now  # noqa: E402

N_VERDICTS, N_CRITERIA, READ_EVERY = 57_000, 12, 10
JUDGE, FIRST_READER, SECOND_READER = 1, 2, 3
WORDS = [
    "the",
    "answer",
    "names",
    "fever,",
    "stiff",
    "neck",
    "and",
    "rash",
    "as",
    "reasons",
    "to",
    "be",
    "seen",
    "today",
    "but",
    "leaves",
    "the",
    "dose",
    "out",
]


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--verdicts", type=int, default=N_VERDICTS, help="judge's verdicts in the larger study")
    asked.add_argument("--repeats", type=int, default=3, help="each time is the best of so many")
    given = asked.parse_args()
    with TemporaryDirectory() as folder:
        half, whole = (made(Path(folder) / f"{n}.db", n) for n in (given.verdicts // 2, given.verdicts))
        for what in export_tables.WHAT:
            print_table(what, half, whole, given.repeats)
        seconds = best(lambda: export_tables.meta_eval_rows(whole), given.repeats)
        seconds_half = best(lambda: export_tables.meta_eval_rows(half), given.repeats)
        print(f"meta-eval: {seconds:.2f} s, {seconds / seconds_half:.1f} x half the study")


def print_table(what: str, half: Engine, whole: Engine, repeats: int) -> None:
    """One line: the export, its floor, and its growth with the size of the study."""
    table = export_tables.table(whole, what)
    floor = best(lambda: table.to_csv(index=False), repeats)
    took, took_half = (best(lambda engine=engine: written(engine, what, "csv"), repeats) for engine in (whole, half))
    parquet = best(lambda: written(whole, what, "parquet"), repeats)
    beside = f"{took / floor:.1f} x the floor (bare to_csv, {floor:.2f} s), " if len(table) else "no floor, "
    print(
        f"{what}: {len(table):,} rows in {took:.2f} s, {beside}{took / took_half:.1f} x half the study; Parquet {parquet:.2f} s"
    )


def written(engine: Engine, what: str, file_format: str) -> None:
    """Write a table to memory, a part at a time, as the command writes it to a file."""
    export_tables.write(engine, what, file_format, io.BytesIO())


def best(act: Callable[[], object], repeats: int) -> float:
    """Seconds of the quickest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times)


def made(path: Path, n_verdicts: int) -> Engine:
    """A study with so many judge's verdicts, written straight into its tables."""
    rng = random.Random(7)
    engine = open_study(str(path))
    tables, at = TABLES, now()
    n_responses = n_verdicts // N_CRITERIA

    def words(n_words: int) -> str:
        return " ".join(rng.choices(WORDS, k=n_words))

    def verdict(rater: int, response: int, position: int) -> dict[str, object]:
        return {
            "example_id": response,
            "response_id": response,
            "criterion_id": (response - 1) * N_CRITERIA + position,
            "rater_id": rater,
            "stage": "judge" if rater == JUDGE else "first",
            "label": rng.choice(["met", "not_met"]),
            "explanation": words(40),
            "right_for_wrong_reason": False,
            "created_at": at,
        }

    responses, positions = range(1, n_responses + 1), range(1, N_CRITERIA + 1)
    rows: dict[str, list[dict[str, object]]] = {
        "rater": [{"id": n, "kind": "judge" if n == JUDGE else "reviewer", "name": f"rater {n}"} for n in (1, 2, 3)],
        "model": [{"id": 1, "name": "Alder-2"}],
        "example": [
            {"id": n, "dataset": "invented", "prompt_id": f"p{n}", "messages": "[]", "n_turns": 1, "first_words": "x"}
            for n in responses
        ],
        "criterion": [
            {
                "id": (n - 1) * N_CRITERIA + position,
                "example_id": n,
                "position": position,
                "text": words(20),
                "points": rng.choice([-5, 3, 7]),
                "axis": "accuracy",
            }
            for n in responses
            for position in positions
        ],
        "response": [
            {"id": n, "example_id": n, "model_id": 1, "dataset": "invented", "text": words(200)} for n in responses
        ],
        "verdict": [
            verdict(rater, response, position)
            for rater in (JUDGE, FIRST_READER, SECOND_READER)
            for response in responses
            for position in positions
            if rater == JUDGE or response % READ_EVERY == 0
        ],
    }
    with engine.begin() as connection:
        for name, found in rows.items():
            connection.execute(insert(tables[name]), found)
    return engine


if __name__ == "__main__":
    main()
