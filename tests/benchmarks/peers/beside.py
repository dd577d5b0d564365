"""Overread beside Label Studio and Inspect View, step by step on the same verdicts: `python tests/benchmarks/peers/beside.py`.

Each peer gets an environment of its own in `.cache/peers`, from the package index; where it does not install, a sentence says so and the
others go on. One invented set of responses with a judge's verdict on each criterion goes into each. A time in the browser is from the
click or the press to two frames after what it asks for is in the document; each step is done several times, and its median is told.
Label Studio draws a mark in the browser and stores it later; Inspect View has no marks. Peak memory is of the process that imports or
exports, of Label Studio its whole server.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402 - found beside this file, installed or not
from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402

from tests import chromium  # noqa: E402
from tests.benchmarks import review_latency  # noqa: E402
from tests.benchmarks.import_speed import write_results  # noqa: E402
from tests.browser.server import free_port, running_app  # noqa: E402

ENVIRONMENTS = ROOT / ".cache" / "peers"
PACKAGES = {"Label Studio": ["label-studio==1.23.2"], "Inspect View": ["inspect-ai==0.3.285", "pandas", "pyarrow"]}
STEPS = (
    "list painted, ms",
    "click to rubric, ms",
    "key to mark, ms",
    "submit to next, ms",
    "export, s",
    "export, MB",
    "import, s",
    "import, MB",
)
LINES = "lines.jsonl"
MOST_CRITERIA = 12
ROW_PX = 35
CHOICES = (
    '<View><Text name="question" value="$question"/><Text name="answer" value="$answer"/>'
    + "".join(
        f'<Header value="$k{place}"/><Choices name="k{place}" toName="answer"><Choice value="met"/><Choice value="not met"/></Choices>'
        for place in range(1, MOST_CRITERIA + 1)
    )
    + "</View>"
)
TASK_NUMBER = "[class*=current-task__task-id]"
SAMPLE_ROW = "[role=grid] a[role=row]"
EMAIL, PASSWORD = "bench@example.org", "bench-and-nothing-else"
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

Times = dict[str, float]


def main() -> None:
    """Measure and print one table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--verdicts", type=int, default=57_000)
    asked.add_argument("--times", type=int, default=15, help="each step is done so many times")
    asked.add_argument("--only", choices=["Overread", *PACKAGES], help="one of the three")
    given = asked.parse_args()
    told: dict[str, Times] = {}
    with TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        results = folder / "bench_model_20260101_000000_allresults.json"
        write_results(results, given.verdicts)
        lines = plain_lines(results, folder / LINES)
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=list(chromium.FLAGS))
        for name, measure in (("Overread", overread), ("Label Studio", label_studio), ("Inspect View", inspect_view)):
            if given.only in (None, name) and (name == "Overread" or installed(name)):
                home = folder / name.replace(" ", "_")
                home.mkdir()
                told[name] = measure(browser, home, results if name == "Overread" else lines, given.times)
        browser.close()
    print(f"{'':24}" + "".join(f"{name:>16}" for name in told))
    for step in STEPS:
        print(
            f"{step:24}" + "".join(f"{f'{times[step]:,.1f}' if step in times else '-':>16}" for times in told.values())
        )


def plain_lines(results: Path, file: Path) -> Path:
    """The same responses, one JSON line each, for those who do not read the reference tool's files."""
    with file.open("w", encoding="utf-8") as out:
        for entry in json.loads(results.read_bytes())["metadata"]["example_level_metadata"]:
            criteria = [
                {
                    "text": item["criterion"],
                    "label": "met" if item["criteria_met"] else "not met",
                    "explanation": item["explanation"],
                }
                for item in entry["rubric_items"]
            ]
            line = {
                "id": entry["prompt_id"],
                "question": "\n".join(message["content"] for message in entry["prompt"]),
                "answer": entry["completion"][0]["content"],
                "criteria": criteria,
            }
            out.write(json.dumps(line) + "\n")
    return file


# ---------------------------------------------------------------- what all share


def installed(name: str) -> bool:
    """Whether the peer's environment is there, made now if need be; a sentence where it cannot be."""
    home = environment(name)
    if (home / "ready").exists():
        return True
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    asked = subprocess.run(
        [home / "bin" / "pip", "install", "--quiet", *PACKAGES[name]], check=False, capture_output=True, text=True
    )
    if asked.returncode:
        print(
            f"{name} is left out: {' '.join(PACKAGES[name])} does not install here: {asked.stderr.strip().splitlines()[-1]}"
        )
        return False
    (home / "ready").touch()
    return True


def environment(name: str) -> Path:
    """Of a peer, by its name."""
    return ENVIRONMENTS / name.lower().replace(" ", "-")


BETWEEN = """import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(time.perf_counter() - start, used.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A small process between: to the system a child has held at least what its parent held when it began."""


def command(*words: str | Path) -> tuple[float, float]:
    """Seconds of a command that has to succeed, and the most memory that it held, in MB."""
    between = [sys.executable, "-c", BETWEEN, *map(str, words)]
    told = subprocess.run(between, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds, most = map(float, told.split())
    return seconds, most


@contextmanager
def server(*words: str | Path, port: int, folder: Path, **variables: str) -> Iterator[tuple[str, int]]:
    """A peer's server until the block ends: its address and process."""
    url = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [str(word) for word in words], stdout=log, stderr=log, env=os.environ | variables, cwd=folder
        )
        try:
            until = time.monotonic() + 300
            while not answers(url):
                if process.poll() is not None or time.monotonic() > until:
                    said = (folder / "server.log").read_text()[-2000:]
                    raise subprocess.CalledProcessError(process.poll() or 1, words, said)
                time.sleep(0.2)
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(30)


def answers(url: str) -> bool:
    """Whether a server is there."""
    try:
        return httpx.get(url, timeout=5).status_code < 500
    except httpx.TransportError:
        return False


def took(page: Page, act: Callable[[], object], seen: Callable[[], object]) -> float:
    """Milliseconds from an act to two frames after what was waited for."""
    start = time.perf_counter()
    act()
    seen()
    page.evaluate(PAINTED)
    return 1000 * (time.perf_counter() - start)


def new_page(browser: Browser) -> Page:
    """In a context of its own."""
    return browser.new_context(viewport={"width": 1280, "height": 900}).new_page()


def middle(times: list[float]) -> float:
    """The median."""
    return statistics.median(times)


def peak_mb(process: int) -> float:
    """The most memory that a process held, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def visible(page: Page, selector: str, words: str = "") -> Callable[[], object]:
    """Wait until the first element of this selector, with these words in it, is seen."""
    return page.locator(selector).filter(has_text=words).first.wait_for


# ---------------------------------------------------------------- Overread


def overread(browser: Browser, folder: Path, results: Path, times: int) -> Times:
    """The commands and Browse on a new study; Review on one with two readers, as `review_latency` makes it."""
    ours = [Path(sys.executable).with_name("overread"), "--db", folder / "new.db"]
    command(*ours, "people", "--add", "Lead One", "--role", "lead")
    told = dict(zip(("import, s", "import, MB"), command(*ours, "import", results, "--judge", "Bench"), strict=True))
    told |= zip(
        ("export, s", "export, MB"), command(*ours, "export", folder / "all.csv", "--what", "verdicts"), strict=True
    )
    with running_app(folder, "--db", str(folder / "new.db")) as app:
        page = new_page(browser)
        page.goto(f"{app.url}/reader/1?next=/")
        page.wait_for_selector("h1")
        rows = visible(page, "[data-testid=stDataFrame] canvas")
        told["list painted, ms"] = middle(
            [took(page, lambda: page.goto(f"{app.url}/browse"), rows) for _ in range(times)]
        )
        clicks = []
        for place in range(times):
            page.goto(f"{app.url}/browse")
            rows()
            page.wait_for_timeout(1000)
            box = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
            assert box is not None
            click = partial(page.mouse.click, box["x"] + 120, box["y"] + ROW_PX * (place % 8 + 1.5))
            clicks.append(took(page, click, visible(page, ".st-key-rubric .or-verdict")))
        page.close()
    review_latency.made(folder, sum(len(json.loads(line)["criteria"]) for line in (results.parent / LINES).open()))
    with running_app(folder, "--db", str(folder / "study.db")) as app:
        page = new_page(browser)
        page.goto(f"{app.url}/reader/1?next=/review")
        marks, nexts = review_latency.read(page, times)
        page.close()
    return told | {
        "click to rubric, ms": middle(clicks),
        "key to mark, ms": middle([painted for _, painted in marks]),
        "submit to next, ms": middle([painted for _, painted in nexts]),
    }


# ---------------------------------------------------------------- Label Studio


def label_studio(browser: Browser, folder: Path, lines: Path, times: int) -> Times:
    """A task a response, a pair of choices a criterion, and the judge's verdicts as predictions."""
    port = free_port()
    program = environment("Label Studio") / "bin" / "label-studio"
    start = [
        program,
        "start",
        "--no-browser",
        "--port",
        str(port),
        "--username",
        EMAIL,
        "--password",
        PASSWORD,
        "--data-dir",
        folder,
    ]
    quiet = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "0", "SENTRY_RATE": "0", "FRONTEND_SENTRY_RATE": "0"}
    rows = [json.loads(line) for line in lines.open(encoding="utf-8")]
    with server(*start, port=port, folder=folder, LABEL_STUDIO_BASE_DATA_DIR=str(folder), **quiet) as (url, process):
        page = new_page(browser)
        page.goto(f"{url}/user/login/")
        page.fill("input[name=email]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.press("input[name=password]", "Enter")
        page.wait_for_url(lambda address: "login" not in address)
        token = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == "csrftoken")
        asked: dict[str, Any] = {"headers": {"X-CSRFToken": token, "Referer": url}, "timeout": 900_000}
        project = page.request.post(
            f"{url}/api/projects/", data={"title": "bench", "label_config": CHOICES}, **asked
        ).json()["id"]
        begun = time.perf_counter()
        done = page.request.post(f"{url}/api/projects/{project}/import", data=[task(row) for row in rows], **asked)
        assert done.ok, done.text()
        told = {"import, s": time.perf_counter() - begun, "import, MB": peak_mb(process)}
        tasks = f"{url}/projects/{project}/data"
        listed = visible(page, "[data-testid=table-row-wrapper]")
        told["list painted, ms"] = middle([took(page, lambda: page.goto(tasks), listed) for _ in range(times)])
        clicks, marks, submits = [], [], []
        for place in range(times):
            page.goto(tasks)
            row = page.locator("[data-testid=table-row-wrapper]").nth(place % 8)
            row.wait_for()
            page.wait_for_timeout(1000)
            clicks.append(took(page, partial(row.click, position={"x": 200, "y": 20}), visible(page, "label", "met")))
            page.wait_for_timeout(500)
            first = page.locator("input[type=checkbox][name^=k1], .lsf-choices input[type=checkbox]").first
            was = first.is_checked()
            marks.append(
                took(
                    page,
                    partial(page.keyboard.press, "1"),
                    lambda first=first, was=was: expect(first).to_be_checked(checked=not was),
                )
            )
        page.goto(f"{tasks}?labeling=1")
        for _ in range(times):
            submit = page.get_by_test_id("bottombar-submit-button")
            submit.wait_for()
            page.wait_for_timeout(500)
            before = page.locator(TASK_NUMBER).first.inner_text()
            submits.append(
                took(
                    page,
                    submit.click,
                    lambda before=before: expect(page.locator(TASK_NUMBER).first).not_to_have_text(before),
                )
            )
        told |= {
            "click to rubric, ms": middle(clicks),
            "key to mark, ms": middle(marks),
            "submit to next, ms": middle(submits),
        }
        begun = time.perf_counter()
        done = page.request.get(f"{url}/api/projects/{project}/export?exportType=CSV&download_all_tasks=true", **asked)
        assert done.ok, done.text()
        page.close()
        return told | {"export, s": time.perf_counter() - begun, "export, MB": peak_mb(process)}


def task(row: dict[str, Any]) -> dict[str, Any]:
    """One response as Label Studio takes it."""
    names = {f"k{place}": one for place, one in enumerate(row["criteria"], 1)}
    blank = {f"k{place}": "" for place in range(1, MOST_CRITERIA + 1)}
    said = [
        {"from_name": name, "to_name": "answer", "type": "choices", "value": {"choices": [one["label"]]}}
        for name, one in names.items()
    ]
    data = (
        {"question": row["question"], "answer": row["answer"]}
        | blank
        | {name: one["text"] for name, one in names.items()}
    )
    return {"data": data, "predictions": [{"model_version": "Bench", "result": said}]}


# ---------------------------------------------------------------- Inspect View


def inspect_view(browser: Browser, folder: Path, lines: Path, times: int) -> Times:
    """A log with a sample a response. It reads the log in place, so there is no import; and nobody can mark."""
    logs = folder / "logs"
    logs.mkdir()
    home = environment("Inspect View") / "bin"
    script = Path(__file__).with_name("inspect_log.py")
    command(home / "python", script, "make", lines, logs)
    told = dict(
        zip(
            ("export, s", "export, MB"),
            command(home / "python", script, "export", logs, folder / "all.csv"),
            strict=True,
        )
    )
    port = free_port()
    with server(
        home / "inspect", "view", "start", "--log-dir", logs, "--port", str(port), port=port, folder=folder
    ) as (url, _):
        page = new_page(browser)
        page.goto(url)
        page.get_by_text("bench").first.click()
        page.locator(SAMPLE_ROW).first.wait_for()
        log = page.url
        rows = visible(page, SAMPLE_ROW)
        told["list painted, ms"] = middle([took(page, partial(fresh, page, log), rows) for _ in range(times)])
        clicks = []
        for place in range(times):
            fresh(page, log)
            rows()
            page.wait_for_timeout(1000)
            clicks.append(took(page, page.locator(SAMPLE_ROW).nth(place % 8).click, visible(page, "button, a", "Scor")))
        page.close()
    return told | {"click to rubric, ms": middle(clicks)}


def fresh(page: Page, address: str) -> None:
    """Load a page anew whose address differs from the last one only after the hash."""
    page.goto("about:blank")
    page.goto(address)


if __name__ == "__main__":
    main()
