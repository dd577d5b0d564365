"""Runs in a browser, asked of a real server by a real process: started, watched, read, tried again, stopped, killed, and found after a restart."""

import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from evalcore.runs.queries import is_gone, this_host
from tests.browser import steps
from tests.browser.hostile import FOUND, text_of
from tests.browser.looks import faults, too_wide
from tests.browser.server import AppServer, free_port, running_app
from tests.judge_server import Judge, judge_server
from tests.run_commands import models_file
from tests.run_steps import MET, until

LEAD, PHYSICIAN = "Mina Castell", "Dr. Amara Okafor"
RUNS = "/study?study_tab=Runs"
NO_ONE = "http://127.0.0.1:9"
ARABIC = "لا أستطيع تقييم هذا المعيار، فالرد غير مكتمل. <b>met</b>"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with judge_server(seed=5) as running:
        yield running


@pytest.fixture(scope="module")
def server(demo_folder: Path, judge: Judge) -> Iterator[AppServer]:
    """The demo study, with a file of models that knows two judges, which are both the judge server."""
    with study_served(demo_folder, judge) as served:
        yield served
    end_workers(served)


@contextmanager
def study_served(folder: Path, judge: Judge, port: int | None = None) -> Iterator[AppServer]:
    """A server in this folder; what workers print comes into it as well."""
    models_file(folder, judge.base_url, "Merlin", "Rook")
    with running_app(folder, environment={"TMPDIR": str(folder)}, port=port) as served:
        yield served


@pytest.fixture
def own_folder(tmp_path: Path, demo_file: Path) -> Iterator[Path]:
    """A folder with the demo study; no process works on its runs afterwards."""
    shutil.copyfile(demo_file, tmp_path / "overread.db")
    yield tmp_path
    end_workers(AppServer("", tmp_path))


def end_workers(server: AppServer) -> None:
    for pid in pids(server):
        os.kill(pid, signal.SIGKILL)
        until(lambda pid=pid: is_gone(this_host(), pid))


def pids(server: AppServer) -> list[int]:
    """Of the processes that work on runs here now."""
    with closing(sqlite3.connect(server.database)) as study:
        found = study.execute("SELECT pid FROM run_worker WHERE ended_at IS NULL").fetchall()
    return [pid for (pid,) in found if not is_gone(this_host(), pid)]


def n_verdicts(server: AppServer, judge: str) -> tuple[int, int]:
    """Verdicts of a judge, and the items that have one."""
    with closing(sqlite3.connect(server.database)) as study:
        found = study.execute(
            "SELECT count(*), count(DISTINCT v.response_id || ' ' || v.criterion_id) FROM verdict v JOIN rater r ON r.id = v.rater_id WHERE r.name = ?",
            (judge,),
        ).fetchone()
    return found[0], found[1]


# ---------------------------------------------------------------- steps


def press(page: Page, key: str) -> None:
    steps.keyed(page, key).get_by_role("button").click()


def number(page: Page, key: str, value: int) -> None:
    field = steps.keyed(page, key).get_by_role("spinbutton")
    field.fill(str(value))
    field.press("Enter")


def fact(page: Page, name: str) -> Locator:
    """A figure by the words below it."""
    return page.locator(".or-fact", has=page.get_by_text(name, exact=True)).locator("b")


def state(page: Page) -> Locator:
    return page.get_by_role("status").filter(has_text=re.compile("^(Running|Stopping|Stopped|Done|Paused|Ending)"))


def n_answered(page: Page) -> int:
    return int(fact(page, "answered").inner_text().split(" of ")[0].replace(",", ""))


def begin(page: Page, name: str, *, at_once: int, limit: int | None = None) -> None:
    """Fill in the form, see what it would take, and start."""
    steps.pick(page, "run_name", name)
    expect(page.get_by_text("it needs no key.")).to_be_visible()
    begin_chosen(page, at_once=at_once, limit=limit)


def first_run(page: Page) -> bool:
    """Whether nothing has run here yet, so that the form stands open."""
    expect(page.get_by_text("Nothing has run yet.").or_(page.locator(".or-run").first)).to_be_visible()
    return page.get_by_text("Nothing has run yet.").is_visible()


def begin_chosen(page: Page, *, at_once: int, limit: int | None) -> None:
    number(page, "run_concurrency", at_once)
    if limit is not None:
        number(page, "run_limit", limit)
    expect(steps.keyed(page, "run_plan").get_by_role("button")).to_be_enabled()
    steps.settled(page)
    press(page, "run_plan")
    expect(fact(page, "to ask")).to_have_text(re.compile(r"^[1-9]"))
    press(page, "run_start")
    expect(state(page)).to_be_visible(timeout=30_000)


def good_to_look_at(page: Page, where: str) -> None:
    assert faults(page, where) + too_wide(page) == []


# ---------------------------------------------------------------- from the start to the verdicts


@pytest.mark.slow
def test_a_run_is_started_watched_and_its_verdicts_read_in_browse_and_models(
    page: Page, server: AppServer, judge: Judge
):
    steps.choose_reader(page, server, LEAD, path=RUNS)
    expect(page.get_by_text("Nothing has run yet.")).to_be_visible()
    good_to_look_at(page, "empty")
    judge.told.delay = 0.3
    begin(page, "Merlin", at_once=40)

    # It goes on by itself, and nothing on the screen moves meanwhile.
    expect(state(page)).to_have_text("Running: 1 process asks.")
    assert re.search(r"study_tab=Runs&run=\d+$", page.url)
    page.evaluate(
        """() => { window.tops = new Set(); window.watch = setInterval(
            () => tops.add(document.querySelector(".or-run-bar").getBoundingClientRect().top), 50) }"""
    )
    first = n_answered(page)
    expect(fact(page, "answered")).not_to_have_text(re.compile(f"^{first} of"))
    second = n_answered(page)
    expect(fact(page, "answered")).not_to_have_text(re.compile(f"^{second:,} of"))
    assert 0 <= first < second < n_answered(page)
    assert page.evaluate("() => { clearInterval(watch); return tops.size }") == 1
    judge.told.delay = 0.0
    expect(state(page)).to_have_text("Done.", timeout=60_000)
    every = n_verdicts(server, "Merlin")
    assert every[0] == every[1] == n_answered(page)
    expect(fact(page, "to ask")).to_have_text("0")
    good_to_look_at(page, "done")

    # In Browse its verdicts stand beside the criteria; on Models it has scored.
    page.get_by_role("link", name="Browse its verdicts").click()
    expect(page.get_by_text("Conversations and verdicts")).to_be_visible()
    expect(page.locator(".or-chips").first).to_contain_text("Merlin")
    steps.open_row(page, 0)
    expect(page.locator(".or-judge .or-who", has_text="Merlin").first).to_be_visible()
    expect(page.locator(".or-judge .or-why").first).to_contain_text("The answer was compared with the criterion")
    page.goto(server.url + RUNS)
    press(page, "run_open_1")
    page.get_by_role("link", name="Its numbers on Models").click()
    expect(page.locator(".or-heading p")).to_contain_text("judged by Merlin")
    expect(page.locator(".or-finding")).not_to_be_empty()


# ---------------------------------------------------------------- failures


@dataclass
class Rogue:
    """A server that answers what it is told to."""

    base_url: str
    texts: list[str]
    n_asked: int = 0


@pytest.fixture
def rogue() -> Iterator[Rogue]:
    found = Rogue("", [])

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            text = found.texts[found.n_asked // 3 % len(found.texts)]  # what cannot be read is asked for three times
            found.n_asked += 1
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            body = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        found.base_url = f"http://127.0.0.1:{listening.server_port}/v1"
        thread = Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield found
        listening.shutdown()
        thread.join()


def a_physician_sees_neither_buttons_nor_replies(browser: Browser, address: str) -> None:
    context = steps.new_context(browser)
    page = context.new_page()
    page.goto(address)
    page.locator("a.or-profile", has=page.get_by_text(PHYSICIAN, exact=True)).click()
    expect(state(page)).to_have_text("Done: 10 questions without an answer.")
    expect(page.get_by_text("Only leads can read the replies to questions that failed;")).to_be_visible()
    assert [word for word in (NO_ONE, ARABIC[:10], "JSON object") if word in page.content()] == []
    expect(page.get_by_role("button", name="again")).to_have_count(0)
    press(page, "run_back")
    expect(page.locator(".or-run").first).to_be_visible()
    expect(page.get_by_text("Start a run")).to_have_count(0)
    context.close()


@pytest.mark.slow
def test_hostile_replies_are_shown_as_text_and_are_asked_again(browser: Browser, server: AppServer, rogue: Rogue):
    context = steps.new_context(browser, scheme="dark", width=1600)
    complaints = steps.Complaints()
    complaints.hear(context)
    page = context.new_page()
    hostile = text_of(NO_ONE, "reply")
    rogue.texts = [hostile, ARABIC]
    steps.choose_reader(page, server, LEAD, path=RUNS)
    if not first_run(page):
        page.get_by_text("Start a run").click()

    # A model that the file does not have is named by its address.
    name = steps.keyed(page, "run_name").get_by_role("combobox")
    name.fill("Rogue")
    name.press("Enter")
    steps.type_in(page, "run_base_url", rogue.base_url)
    expect(page.get_by_text("none is sent to an address that is typed here")).to_be_visible()
    begin_chosen(page, at_once=1, limit=10)
    expect(state(page)).to_have_text("Done: 10 questions without an answer.", timeout=60_000)
    expect(fact(page, "answered")).to_have_text("0 of 10")
    expect(page.locator(".or-failed")).to_have_count(10)

    # The whole of it is there, folded, and none of it is more than text.
    replies = page.locator(".or-failed-reply")
    assert replies.nth(0).locator(":scope > details > .or-verbatim").evaluate("e => e.textContent") == hostile
    arabic = replies.nth(1).locator(".or-verbatim")
    assert (arabic.inner_text(), arabic.evaluate("e => getComputedStyle(e).direction")) == (ARABIC, "rtl")
    assert page.evaluate(FOUND, NO_ONE) == []
    good_to_look_at(page, "failures")
    assert complaints.all == []
    a_physician_sees_neither_buttons_nor_replies(browser, page.url)

    # The server has come to its senses.
    rogue.texts = [MET]
    expect(steps.keyed(page, "run_retry")).to_contain_text("Ask 10 questions again")
    press(page, "run_retry")
    expect(state(page)).to_have_text("Done.", timeout=60_000)
    expect(fact(page, "answered")).to_have_text("10 of 10")
    expect(page.locator(".or-failed")).to_have_count(0)
    assert n_verdicts(server, "Rogue") == (10, 10)
    context.close()


# ---------------------------------------------------------------- processes


@pytest.mark.slow
def test_a_run_outlives_the_server_and_a_killed_process_and_is_stopped(page: Page, own_folder: Path, judge: Judge):
    port = free_port()
    judge.told.delay = 0.8
    with study_served(own_folder, judge, port) as server:
        steps.choose_reader(page, server, LEAD, path=RUNS)
        begin(page, "Rook", at_once=2, limit=400)
        expect(fact(page, "answered")).not_to_have_text("0 of 400")
        address, (pid,) = page.url, pids(server)
    before = n_verdicts(server, "Rook")
    assert pids(server) == [pid]  # the server is gone, the process works on
    until(lambda: n_verdicts(server, "Rook") > before)

    with study_served(own_folder, judge, port) as server:
        page.goto(address)
        expect(state(page)).to_have_text("Running: 1 process asks.")
        assert n_answered(page) > before[0]
        os.kill(pid, signal.SIGKILL)
        expect(state(page)).to_have_text("Paused: nothing is being asked now.")
        press(page, "run_on")
        expect(state(page)).to_have_text("Running: 1 process asks.", timeout=30_000)
        (other,) = pids(server)
        assert other != pid
        left = n_answered(page)
        expect(fact(page, "answered")).not_to_have_text(f"{left} of 400")
        press(page, "run_stop")
        expect(state(page)).to_have_text(f"Stopped: {LEAD} stopped it.")
        until(lambda: not pids(server))
        there, items = n_verdicts(server, "Rook")
        assert there == items < 400
        expect(fact(page, "answered")).to_have_text(f"{items} of 400")

        judge.told.delay = 0.0
        press(page, "run_on")
        expect(state(page)).to_have_text("Done.", timeout=60_000)
        assert n_verdicts(server, "Rook") == (400, 400)
