"""How fast and in how much memory a results file is imported: `python tests/benchmarks/import_speed.py`.

The floor, measured in the same run on the same file: bare `orjson.loads` of the file plus one `executemany` of its verdict rows with
their texts into a new SQLite file in WAL mode; and the same with all the rows that the import writes, one `executemany` a
table. The target is at most four times the floor, and under 250 MB for 57,000 verdicts. With `--long-table 1000000` instead: a table with
one row a criterion, ten of them for each of an answer, in a process of its own; the target is under 60 s and 500 MB.
"""

import argparse
import csv
import json
import random
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evalcore.importing import import_file  # noqa: E402
from evalcore.study.db import open_study  # noqa: E402 - found beside this file, installed or not
from evalcore.study.schema import Administrator  # noqa: E402
from evalcore.study.store import index_texts  # noqa: E402

REAL_RESULTS = ROOT.parent / "shared" / "data" / "results"
REAL_MIN_BYTES = (
    1_000_000  # a file that is read in a millisecond measures the fixed work of one import, and is reported apart
)
N_VERDICTS, CRITERIA_PER_RESPONSE = 57_000, (11, 11, 11, 12, 12)
TARGET_RATIO, TARGET_MB = 4.0, 250.0
N_MODELS, N_CRITERIA = 20, 10  # of the long table
ACTOR, JUDGE, MODEL = "benchmark", "Bench Judge", "Bench Model"


Entries = list[dict]


@dataclass(frozen=True)
class Floor:
    """A bare table, and its rows out of the entries of a results file."""

    name: str
    columns: tuple[str, ...]
    rows: Callable[[Entries], Iterator[tuple[object, ...]]]


def items(entries: Entries) -> Iterator[tuple[dict, int, dict]]:
    """Each criterion of each entry, with its place."""
    for entry in entries:
        for position, item in enumerate(entry["rubric_items"], 1):
            yield entry, position, item


VERDICTS = Floor(
    "verdict",
    ("prompt_id", "position", "label", "explanation"),
    lambda entries: (
        (entry["prompt_id"], position, "met" if item["criteria_met"] else "not_met", item["explanation"])
        for entry, position, item in items(entries)
    ),
)
CRITERIA = Floor(
    "criterion",
    ("prompt_id", "position", "text", "points", "tags"),
    lambda entries: (
        (entry["prompt_id"], position, item["criterion"], item["points"], json.dumps(item["tags"]))
        for entry, position, item in items(entries)
    ),
)
RESPONSES = Floor(
    "response",
    ("prompt_id", "text"),
    lambda entries: ((entry["prompt_id"], entry["completion"][0]["content"]) for entry in entries),
)
EXAMPLES = Floor(
    "example", ("prompt_id", "messages"), lambda entries: ((e["prompt_id"], json.dumps(e["prompt"])) for e in entries)
)


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--verdicts", type=int, default=N_VERDICTS, help="size of the invented file")
    asked.add_argument("--repeats", type=int, default=3, help="each time is the best of so many")
    asked.add_argument("--no-real", action="store_true", help="leave ../shared/data alone")
    asked.add_argument("--peak", type=Path, help="import this one file and print this process's peak memory in MB")
    asked.add_argument("--long-table", type=int, help="so many rows of a long table instead")
    asked.add_argument("--by-model", action="store_true", help="its rows model by model, not question by question")
    given = asked.parse_args()
    if given.peak:
        print(*(f"{megabytes:.0f}" for megabytes in peaks_of_import(given.peak)))
        return
    if given.long_table:
        print_long_table(given.long_table, by_model=given.by_model)
        return
    with TemporaryDirectory() as folder:
        invented = Path(folder) / "bench_model_20260101_000000_allresults.json"
        write_results(invented, given.verdicts)
        print_ratio(f"invented, {given.verdicts:,} verdicts", [invented], given.repeats)
        own = [sys.executable, __file__, "--peak", str(invented)]
        own_peak, with_search = subprocess.run(own, check=True, capture_output=True, text=True).stdout.split()
        print(
            f"peak memory of importing it: {own_peak} MB (target: under {TARGET_MB:.0f}), with the search {with_search} MB"
        )
    real = [] if given.no_real else sorted(REAL_RESULTS.glob("*_allresults.json"))
    for path in [path for path in real if path.stat().st_size >= REAL_MIN_BYTES]:
        print_ratio(path.name, [path], given.repeats)
    if small := [path for path in real if path.stat().st_size < REAL_MIN_BYTES]:
        print_ratio(f"{len(small)} small real files together", small, given.repeats)


def print_long_table(n_rows: int, *, by_model: bool) -> None:
    """One line: seconds on the clock and of the processor, and the peak, of importing it; its texts are indexed afterwards."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "grades.csv"
        write_long_table(table, n_rows, by_model=by_model)
        size, before = table.stat().st_size / 1e9, cpu_seconds()
        engine = open_study(str(Path(folder) / "study.db"))
        with timed() as seconds:
            import_file(engine, table, actor=Administrator(name=ACTOR))
        engine.dispose()
        cpu = cpu_seconds() - before
    order = "model by model" if by_model else "question by question"
    reader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"long table of {n_rows:,} rows, {order}, {size:.1f} GB: {seconds():.1f} s, {cpu:.1f} s of the processor, {peak():.0f} MB and {reader:.0f} MB "
        "of the process that reads it (target: under 60 s and 500 MB for 1,000,000)"
    )


def cpu_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def print_ratio(title: str, paths: list[Path], repeats: int) -> None:
    """One line: the seconds of the floors and of the import, each the best of several taken in turn, and their ratios."""
    floors, wholes, imports = [], [], []
    for _ in range(repeats):
        floors.append(sum(seconds_of_floor(path, [VERDICTS]) for path in paths))
        wholes.append(sum(seconds_of_floor(path, [VERDICTS, CRITERIA, RESPONSES, EXAMPLES]) for path in paths))
        imports.append(sum(seconds_of_import(path) for path in paths))
    floor, whole, ours = min(floors), min(wholes), min(imports)
    print(
        f"{title}: import {ours:.3f} s; floor of verdict rows {floor:.3f} s, ratio {ours / floor:.2f}; floor of all rows that the import "
        f"writes {whole:.3f} s, ratio {ours / whole:.2f} (target: at most {TARGET_RATIO:.0f})"
    )


def seconds_of_floor(path: Path, tables: list[Floor]) -> float:
    """Read, parse, one executemany a table, commit."""
    with TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder) / "floor.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for table in tables:
            connection.execute(f"CREATE TABLE {table.name} (id INTEGER PRIMARY KEY, {', '.join(table.columns)})")
        connection.commit()
        with timed() as seconds:
            entries = orjson.loads(path.read_bytes())["metadata"]["example_level_metadata"]
            for table in tables:
                marks = ", ".join("?" * len(table.columns))
                insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})"
                connection.executemany(insert, list(table.rows(entries)))
            connection.commit()
        return seconds()


def seconds_of_import(path: Path) -> float:
    """Of `import_file` into a new study. What a process does once is not counted: statements compiled."""
    with TemporaryDirectory() as folder:
        engine = open_study(str(Path(folder) / "study.db"))
        first = Path(folder) / "first.json"
        write_results(first, CRITERIA_PER_RESPONSE[0])
        import_file(engine, first, actor=Administrator(name=ACTOR), model="First Model", judge=JUDGE)
        with timed() as seconds:
            import_file(engine, path, actor=Administrator(name=ACTOR), model=MODEL, judge=JUDGE)
        engine.dispose()
        return seconds()


def peaks_of_import(path: Path) -> tuple[float, float]:
    """The most memory that this process ever held, in MB, until all is written and until it is indexed; for a process of its own."""
    with TemporaryDirectory() as folder:
        engine = open_study(str(Path(folder) / "study.db"))
        import_file(engine, path, actor=Administrator(name=ACTOR), model=MODEL, judge=JUDGE)
        written = peak()
        index_texts(engine)  # what the command does next: the index, and the language model
        engine.dispose()
    return written, peak()


def peak() -> float:
    """The most memory that this process ever held, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


@contextmanager
def timed() -> Iterator[Callable[[], float]]:
    """A stopwatch over the block."""
    start = time.perf_counter()
    end: list[float] = []
    yield lambda: end[0]
    end.append(time.perf_counter() - start)


# ---------------------------------------------------------------- an invented results file, as the reference tool writes it

SENTENCES = (
    "the response advises the patient to see a clinician when fever pain or swelling lasts and says which signs ask for help at "
    "once it explains the likely cause in plain words but gives no dose and does not ask how long the cough has lasted so the "
    "criterion about context is only partly answered while warning about interactions with daily medicines and pregnancy"
)
WORDS = SENTENCES.split()
AXES = ("accuracy", "completeness", "context_awareness", "communication_quality", "instruction_following")


def write_results(path: Path, n_verdicts: int) -> None:
    """A `NAME_allresults.json` with htmls and convos beside the entries, indented by two."""
    drawn = random.Random(57)
    entries: list[dict] = []
    left = n_verdicts
    while left > 0:
        n_criteria = min(left, CRITERIA_PER_RESPONSE[len(entries) % len(CRITERIA_PER_RESPONSE)])
        entries.append(entry(drawn, len(entries), n_criteria))
        left -= n_criteria
    htmls = ["<h3>Prompt</h3>" + "".join(f"<p>{item}</p>" for item in one["rubric_items"]) for one in entries]
    convos = [[*one["prompt"], *one["completion"]] for one in entries]
    metadata = {"example_level_metadata": entries}
    document = {"score": 0.5, "metrics": {"overall_score": 0.5}, "htmls": htmls, "convos": convos, "metadata": metadata}
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")


def write_long_table(path: Path, n_rows: int, *, by_model: bool) -> None:
    """Rows of (question, model) in either order, ten criteria each, with a judge's reason for each grade."""
    drawn = random.Random(57)
    n_questions = -(-n_rows // N_CRITERIA // N_MODELS)
    questions = [text(drawn, 350) for _ in range(n_questions)]
    rubrics = [[(text(drawn, 120), drawn.choice((-8, -5, 3, 5, 7, 10))) for _ in range(N_CRITERIA)] for _ in questions]
    models = [f"Model {number}" for number in range(N_MODELS)]
    both = [(question, model) for model in models for question in range(n_questions)]
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("question", "answer", "model", "criterion", "points", "grade", "reason", "judge"))
        for question, model in (both if by_model else sorted(both))[: n_rows // N_CRITERIA]:
            answer = text(drawn, 700)
            for criterion, points in rubrics[question]:
                grade, reason = drawn.choice(("yes", "no")), text(drawn, 250)
                rows.writerow((questions[question], answer, model, criterion, points, grade, reason, JUDGE))


def entry(drawn: random.Random, number: int, n_criteria: int) -> dict:
    """One response with its verdicts."""
    turns = drawn.choice((1, 1, 3, 5))
    return {
        "score": 0.5,
        "usage": {"input_tokens": 100, "output_tokens": 400},
        "rubric_items": [rubric_item(drawn) for _ in range(n_criteria)],
        "prompt": [{"role": ("user", "assistant")[turn % 2], "content": text(drawn, 350)} for turn in range(turns)],
        "completion": [{"role": "assistant", "content": text(drawn, 1_500)}],
        "prompt_id": f"bench-{number:06}",
        "completion_id": f"bench-completion-{number:06}",
    }


def rubric_item(drawn: random.Random) -> dict:
    """A criterion with a verdict; its explanation has about 300 characters."""
    return {
        "criterion": text(drawn, drawn.randint(60, 200)),
        "points": drawn.choice((-8, -5, 3, 5, 7, 10)),
        "tags": ["level:example", f"axis:{drawn.choice(AXES)}"],
        "criteria_met": drawn.random() < 0.5,
        "explanation": text(drawn, drawn.randint(200, 400)),
    }


def text(drawn: random.Random, n_chars: int) -> str:
    """Words up to a length; one text in twenty has a typographic dash, as judges write it."""
    words = " ".join(drawn.choices(WORDS, k=n_chars // 6 + 8))[:n_chars]
    number = f" ({drawn.randint(1, 9_999)})"  # texts differ, as real ones do
    return words.capitalize() + (" – unclear" if drawn.random() < 0.05 else "") + number + "."


if __name__ == "__main__":
    main()
