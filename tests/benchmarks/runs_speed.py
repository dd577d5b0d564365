"""How fast verdicts are asked for and saved: `python tests/benchmarks/runs_speed.py [--questions 10000] [--concurrency 200]`.

A judge server in a process of its own answers after 50 ms. The floor, measured in the same run before and after the rest: a bare aiohttp loop over
the same bodies, made beforehand, that parses each reply and throws it away. Beside it, on the same questions: our client alone; a run that asks,
reads and saves, into SQLite and into PostgreSQL; the openai package in as many threads, as the reference tool does it; and inspect_ai with its
provider for such servers. The last two run in a virtual environment that is made with pip for the occasion, or in the one whose Python is named by
REFERENCE_PYTHON, and on fewer questions. The target is 0.6 of the floor for runs, and less than 150 MB more than at the start (on Linux, where
it can be told).
"""

import argparse
import asyncio
import os
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import aiohttp  # noqa: E402 - found beside this file, installed or not
import msgspec  # noqa: E402
import orjson  # noqa: E402

from evalcore.runs.acts import start  # noqa: E402
from evalcore.runs.asking import Stop  # noqa: E402
from evalcore.runs.model_client import ModelClient  # noqa: E402
from evalcore.runs.prompts import Asker, spec_for  # noqa: E402
from evalcore.runs.spec import ChatRequest, ModelSettings, Question, RunSpec  # noqa: E402
from evalcore.runs.worker import work  # noqa: E402
from evalcore.study.db import reading  # noqa: E402
from evalcore.study.schema import Administrator, Outcome, RunKind  # noqa: E402
from tests.benchmarks.reviewers import database  # noqa: E402
from tests.judge_server import judge_process  # noqa: E402
from tests.run_world import Study, study  # noqa: E402

POINTS = (5, -3, 7, 2, 10, -8, 4, 6, -5, 1)
WORDS = (
    " Drink enough, rest, and have somebody look in on you. See a doctor within two days if the fever stays above 39 degrees."
    * 12
)
TARGET_RATIO, TARGET_MB = 0.6, 150.0
INSTALL_SECONDS = 900

OPENAI = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
from openai import OpenAI

url, path, n, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
bodies = [json.loads(line) for line in open(path)][:n]
client = OpenAI(base_url=url, api_key="none")

def verdict(body):
    return json.loads(client.chat.completions.create(**body).choices[0].message.content)["criteria_met"]

with ThreadPoolExecutor(concurrency) as threads:
    list(threads.map(verdict, bodies[:concurrency]))
    began = time.perf_counter()
    verdicts = list(threads.map(verdict, bodies))
    print(sum(one in (True, False) for one in verdicts) / (time.perf_counter() - began))
"""
INSPECT = """
import json, os, sys, time
url, path, n, concurrency, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
os.environ.update(JUDGE_API_KEY="none", JUDGE_BASE_URL=url)
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.solver import generate

kinds = {"system": ChatMessageSystem, "user": ChatMessageUser}
turns = [json.loads(line)["messages"] for line in open(path)][:n]
samples = [Sample(input=[kinds[turn["role"]](content=turn["content"]) for turn in one]) for one in turns]
began = time.perf_counter()
(log,) = eval(
    Task(dataset=samples, solver=generate()), model="openai-api/judge/judge", max_connections=concurrency, max_samples=concurrency,
    log_dir=folder, display="none",
)
seconds = time.perf_counter() - began
assert log.status == "success", log.error
print(sum("criteria_met" in json.loads(one.output.completion) for one in log.samples) / seconds)
"""


@dataclass
class Measured:
    """What one way of asking reached: answers a second, and of this process the time of the processor for each and the memory."""

    way: str
    rate: float = float("nan")
    busy_us: float | None = None
    start_mb: float = float("nan")
    most_mb: float = float("nan")

    def line(self, floor: float) -> str:
        """As it is printed."""
        ratio = f"{self.way:42} {self.rate:8,.0f} /s {self.rate / floor:5.2f} of the floor"
        if self.busy_us is None:
            return ratio
        return f"{ratio} {self.busy_us:6.0f} us {self.start_mb:6.0f} MB {self.most_mb:6.0f} MB {self.most_mb - self.start_mb:+6.0f} MB"


def resident_mb() -> float:
    """Memory of this process now; NaN where the machine does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def measured(way: str, n: int) -> Iterator[Measured]:
    """Measures the block, which asks n questions; memory is looked at every 20 ms."""
    found = Measured(way, start_mb=resident_mb(), most_mb=resident_mb())
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            found.most_mb = max(found.most_mb, resident_mb())

    watching = threading.Thread(target=watch)
    watching.start()
    began, busy = time.perf_counter(), time.process_time()
    try:
        yield found
    finally:
        found.rate, found.busy_us = n / (time.perf_counter() - began), (time.process_time() - busy) * 1e6 / n
        ended.set()
        watching.join()


async def bare(url: str, bodies: list[bytes], concurrency: int) -> None:
    """The floor."""
    left = iter(bodies)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def ask() -> int:
            n_verdicts = 0
            for body in left:
                async with session.post(f"{url}/chat/completions", data=body, headers=headers) as reply:
                    text = orjson.loads(await reply.read())["choices"][0]["message"]["content"]
                n_verdicts += orjson.loads(text)["criteria_met"] in (True, False)
            return n_verdicts

        assert sum(await asyncio.gather(*(ask() for _ in range(concurrency)))) == len(bodies)


async def through_client(model: ModelSettings, requests: list[ChatRequest], concurrency: int) -> None:
    """Our client alone."""
    left = iter(requests)
    async with ModelClient(model, concurrency=concurrency, key=None) as client:

        async def ask() -> int:
            n_verdicts = 0
            for request in left:
                reply = await client.ask(request)
                n_verdicts += orjson.loads(reply.text)["criteria_met"] in (True, False)
            return n_verdicts

        assert sum(await asyncio.gather(*(ask() for _ in range(concurrency)))) == len(requests)


def asked(folder: Path, spec: RunSpec, n: int) -> list[ChatRequest]:
    """What a run sends."""
    with database("sqlite", folder) as url, made(url, n) as small:
        run_id = start(small.engine, spec, actor=Administrator(name="benchmark"), concurrency=1)
        rows = small.rows(
            "SELECT id, example_id, response_id, criterion_id, format, sample_index, repeat FROM run_question WHERE run_id = :run",
            run=run_id,
        )
        questions = [Question(*row) for row in rows]
        asker = Asker(spec)
        with reading(small.engine) as session:
            return [asker.request(one) for one in asker.prepared(session, questions)]


def made(url: str, n: int) -> AbstractContextManager[Study]:
    """A study with at least n criteria to judge."""
    return study(url, n_examples=-(-n // len(POINTS)), points=POINTS, words=WORDS)


def body(model: ModelSettings, request: ChatRequest) -> bytes:
    """As it goes over the wire."""
    schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
    form = {"type": "json_schema", "json_schema": schema}
    return msgspec.json.encode({"model": model.api_model, "messages": request.messages, "response_format": form})


def into(kind: str, folder: Path, spec: RunSpec, n: int, concurrency: int) -> Measured:
    """A run from the first question to the last verdict saved."""
    folder.mkdir()
    with database(kind, folder) as url, made(url, n) as small:
        run_id = start(small.engine, spec, actor=Administrator(name="benchmark"), concurrency=concurrency)
        with measured(f"a run into {kind}", n) as found:
            worked = work(small.engine, run_id, key=None, stop=Stop())
        assert worked.outcomes == {Outcome.ANSWERED: n}, worked
        assert small.one("SELECT count(*) FROM verdict WHERE stage = 'judge'") == n
    return found


def reference_python(folder: Path) -> str | None:
    """A Python that has openai and inspect_ai; None where it cannot be had."""
    named = os.environ.get("REFERENCE_PYTHON")
    if named:
        return named
    print("Making a virtual environment with openai and inspect_ai")
    venv.create(folder / "reference", with_pip=True)
    python = str(folder / "reference" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "openai", "inspect_ai"]
    installed = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    if installed.returncode:
        print(f"openai and inspect_ai are not measured, pip could not install them: {installed.stderr.strip()[-300:]}")
        return None
    return python


def by_reference(python: str, program: str, arguments: list[str]) -> float:
    """What a program of another environment reached; NaN where it failed, which is printed."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [python, "-c", program, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        print(done.stderr.strip()[-1500:])
        return float("nan")
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--reference-questions", type=int, default=2_000, help="0: the reference tools are left out")
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--delay", default="0.05", help="seconds that the server takes to answer")
    given = parser.parse_args()
    n, concurrency, n_reference = given.questions, given.concurrency, min(given.questions, given.reference_questions)
    print(
        f"{n:,} questions, {concurrency} at once, answered after {given.delay} s; {os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}"
    )
    with TemporaryDirectory() as temporary, judge_process("--delay", given.delay) as judge:
        folder = Path(temporary)
        model = ModelSettings(name="judge", base_url=judge.base_url, api_model="judge")
        spec = spec_for(RunKind.JUDGE, model, "invented", limit=n)
        requests = asked(folder, spec, n)
        bodies = [body(model, request) for request in requests]

        def bare_loop() -> Measured:
            with measured("the floor: a bare aiohttp loop", n) as found:
                asyncio.run(bare(judge.base_url, bodies, concurrency))
            return found

        asyncio.run(bare(judge.base_url, bodies[: 5 * concurrency], concurrency))  # the server warms up
        floors = [bare_loop()]
        with measured("our client alone", n) as alone:
            asyncio.run(through_client(model, requests, concurrency))
        runs = [into(kind, folder / kind, spec, n, concurrency) for kind in ("sqlite", "postgresql")]
        found = [alone, *runs]
        python = reference_python(folder) if n_reference else None
        if python is not None:
            path = folder / "bodies.jsonl"
            path.write_bytes(b"\n".join(bodies[:n_reference]))
            arguments = [judge.base_url, str(path), str(n_reference), str(concurrency)]
            references: dict[str, Callable[[], float]] = {
                f"the openai package in {concurrency} threads": lambda: by_reference(python, OPENAI, arguments),
                "inspect_ai": lambda: by_reference(python, INSPECT, [*arguments, str(folder / "logs")]),
            }
            found += [Measured(way, measure()) for way, measure in references.items()]
        floors.append(bare_loop())
    floor = len(floors) / sum(1 / one.rate for one in floors)
    print(
        "Answers a second, time of this process's processor for each, memory of this process at the start and at most"
    )
    for one in (*floors, *found):
        print(one.line(floor))
    for one in runs:
        is_held = one.rate / floor >= TARGET_RATIO and not one.most_mb - one.start_mb >= TARGET_MB
        print(
            f"{one.way}: the target of {TARGET_RATIO} of the floor and under {TARGET_MB:.0f} MB {'holds' if is_held else 'does NOT hold'}"
        )


if __name__ == "__main__":
    main()
