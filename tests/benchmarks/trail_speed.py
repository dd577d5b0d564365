"""How fast and in how much memory the trail is verified, and what the hash of a row costs: `python tests/benchmarks/trail_speed.py`.

Processor time, so that other work on the machine does not count. The floor: SHA-256 over the same rows, read by plain sqlite3 and written by `repr`.
The target for 1,200,000 verdicts is a minute, and 150 MB more than the opened study has, of which SQLite's cache is 64 MB.
"""

import argparse
import hashlib
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evalcore.study import store  # noqa: E402 - found beside this file, installed or not
from evalcore.study.audit.chain import verify  # noqa: E402
from evalcore.study.audit.row_hashes import hash_of  # noqa: E402
from evalcore.study.db import open_study, reading, writing  # noqa: E402
from evalcore.study.schema import Label, RaterKind, Stage, Verdict  # noqa: E402
from evalcore.study.tables import Example, Model, Response, now  # noqa: E402

N_VERDICTS, N_RESPONSES, BATCH = 1_200_000, 50_000, 2_000
SENTENCE = "The answer names fever, stiff neck and rash as reasons to be seen today but leaves the dose out and does not ask how old the child is."


def made(path: Path, n_verdicts: int, *, n_examples: int = 1, n_responses: int = N_RESPONSES) -> None:
    """A study with so many levels of care, read by as many judges as that takes, written as an import writes them."""
    engine = open_study(str(path))
    n_responses = min(n_responses, n_verdicts)
    with writing(engine) as session:
        store.ensure_study(session)
        bulk = store.Bulk(session)
        example = {"dataset": "invented", "messages": "[]", "n_turns": 1, "first_words": "", "tags": "[]"}
        named = [example | {"prompt_id": f"p{n}", "provisional": False} for n in range(n_examples)]
        bulk.insert(Example.__tablename__, named)
        bulk.insert(Model.__tablename__, [{"name": "model"}])
        bulk.insert(Response.__tablename__, [
            {"example_id": 1 + n % n_examples, "model_id": 1, "dataset": "invented", "sample_index": n, "text": SENTENCE * 10}
            for n in range(n_responses)
        ])  # fmt: skip
        store.append_event(session, actor="benchmark", action="responses made", subject="study")
    for judge in range(-(-n_verdicts // n_responses)):
        with writing(engine) as session:
            rater, bulk, at = store.ensure_rater(session, RaterKind.JUDGE, f"judge-{judge}"), store.Bulk(session), now()
            for start in range(1, n_responses + 1, BATCH):
                bulk.verdicts([
                    Verdict(
                        example_id=1 + (number - 1) % n_examples, response_id=number, criterion_id=None, rater_id=rater, stage=Stage.JUDGE, label=Label.MET,
                        confidence=0.9, explanation=SENTENCE, created_at=at,
                    )
                    for number in range(start, min(start + BATCH, n_responses + 1))
                ])  # fmt: skip
            store.append_event(session, actor="benchmark", action="verdicts made", subject="study")
    engine.dispose()


def floor_seconds(path: Path) -> float:
    """Processor time of SHA-256 over every verdict and response."""
    start = time.process_time()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("verdict", "response"):
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY id"):
                hashlib.sha256(repr(row).encode()).digest()
    return time.process_time() - start


def verified(path: Path) -> None:
    """Print processor seconds and the peak of this process."""
    engine = open_study(str(path))
    before, start = peak_mb(), time.process_time()
    with reading(engine) as session:
        report = verify(session)
    assert report.holds, report.sentence
    print(time.process_time() - start, peak_mb() - before)


def peak_mb() -> float:
    """The most memory that this process has had; `getrusage` would count what it was forked from too."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


def main() -> None:
    """Make the study, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=N_VERDICTS)
    parser.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        verified(asked.only)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        start = time.process_time()
        made(path, asked.verdicts)
        writing_seconds = time.process_time() - start
        alone = [sys.executable, __file__, "--only", str(path)]
        said = subprocess.run(alone, check=True, capture_output=True, text=True).stdout.split()
        seconds, floor = float(said[0]), floor_seconds(path)
        row = {"example_id": 1, "stage": "judge", "label": "met", "explanation": SENTENCE, "created_at": now()}
        start = time.process_time()
        for _ in range(100_000):
            hash_of("verdict", row)
        hashing = time.process_time() - start
    print(
        f"{asked.verdicts:,} verdicts: verify {seconds:.2f} s, floor {floor:.2f} s, ratio {seconds / floor:.2f} (target: under 60 s); "
        f"memory {float(said[1]):.0f} MB more than the study opened (target: under 150)"
    )
    print(f"writing them {writing_seconds:.1f} s; the hash alone {hashing:.2f} s for 100,000 rows of Python's values")


if __name__ == "__main__":
    main()
