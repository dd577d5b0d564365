"""How working on a run with a cluster ends: what is said of it, a scheduler that is killed, and Ctrl-C, which reaches all processes of a terminal."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evalcore.runs import cluster
from evalcore.runs.asking import Stop
from evalcore.runs.cluster import work_on_cluster
from evalcore.study.schema import PARSER, RULES, Administrator, Outcome, RunState
from tests.judge_server import Fault, Faults
from tests.run_commands import models_file
from tests.run_steps import Scripted, until
from tests.run_world import KEY, add_cases, begun, judging, study, triage, worked

ROOT = Path(__file__).resolve().parents[2]
SOMEWHERE = "tcp://10.0.0.1:8786"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    # Dask's own: a connection that broke and its loop are left behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Batch:
    """A batch that has ended when it is handed over."""

    def __init__(self, function, arguments):
        self.failed = self.done_with = None
        try:
            self.done_with = function(*arguments)
        except Exception as error:  # noqa: BLE001 - as Dask keeps what a batch raised
            self.failed = error

    def done(self):
        return True

    def exception(self):
        return self.failed

    def result(self):
        return self.done_with


class Here:
    """A cluster of one worker, which is this process."""

    status = "running"

    def scheduler_info(self, *, n_workers):
        return {"workers": {SOMEWHERE: {}}}

    def submit(self, function, *arguments, pure):
        return Batch(function, arguments)

    def cancel(self, batches):
        assert batches == []


@pytest.fixture
def here(monkeypatch):
    """What `--cluster` finds, whatever is named."""
    client = Here()

    @contextmanager
    def found(engine, address):
        monkeypatch.setenv("OVERREAD_DB", engine.url.render_as_string(hide_password=False))
        yield client

    monkeypatch.setattr(cluster, "_client", found)
    monkeypatch.setattr(cluster, "WAIT_SECONDS", 0)
    return client


def spread(small, run_id, **changed):
    return work_on_cluster(
        small.engine,
        run_id,
        **({"address": SOMEWHERE, "actor": Administrator(name="Lea Lead"), "stop": Stop(), "batch": 2} | changed),
    )


# ---------------------------------------------------------------- what is said


def test_what_a_command_tells_of_its_work_on_a_cluster_is_its_own_work(asked, quick_run, judge, here):
    run_id = begun(quick_run, judging(judge.base_url))
    before = worked(quick_run, run_id, most=2, client=Scripted())  # 100 tokens in and 10 out each
    judge.told.faults = Faults.alone(Fault.REFUSAL)
    found = json.loads(asked("judge", "--judge", "Magpie", "--cluster", "local:1", "--json"))
    assert (before.n_answered, judge.told.n_asked) == (2, 4)
    assert {word: n for word, n in found["outcomes"].items() if n} == {"refused": 6 - 2}
    assert found["n_calls"] == judge.told.n_asked
    assert (found["prompt_tokens"], found["completion_tokens"]) == (
        judge.told.prompt_tokens, judge.told.completion_tokens,
    )  # fmt: skip
    assert found["whole"].items() >= {"n_questions": 6, "n_answered": 2, "n_failed": 4, "n_open": 0}.items()


def test_batches_add_up_also_what_they_could_not_keep_or_save(quick_run, judge, here, monkeypatch):
    work = cluster.work
    monkeypatch.setattr(cluster, "work", lambda *told, **more: replace(work(*told, **more), n_there=1, n_lost=2))
    ended = spread(quick_run, begun(quick_run, judging(judge.base_url)))
    n_batches = 6 // 2
    assert (ended.state, ended.reason, ended.n_left, ended.n_held) == (RunState.DONE, None, 0, 0)
    assert ended.outcomes == {Outcome.ANSWERED: 6}
    assert (ended.n_calls, ended.n_there, ended.n_lost) == (6, n_batches * 1, n_batches * 2)
    assert ended.sentences() == [
        "Run 1: 6 answered, 0 failed.",
        "3 answers not kept: another had come first.",
        "6 answers arrived and could not be saved: asked again when the run is started again.",
    ]


def test_with_nothing_left_to_ask_a_cluster_says_so_as_one_process_does(asked, here):
    assert asked("judge", "--judge", "Magpie", "--cluster", "local:1").startswith("Run 1: 6 answered, 0 failed.\n")
    assert asked("judge", "--judge", "Magpie", "--cluster", "local:1").startswith("Nothing is left to ask.\n")


def test_levels_of_triage_are_read_when_the_last_batch_has_ended(sqlite_database_url, judge, here):
    with study(sqlite_database_url, n_examples=0, models=()) as small:
        add_cases(small, 2)
        ended = spread(small, begun(small, triage(judge.base_url)))
        read = small.rows(
            "SELECT r.name, count(*) FROM verdict v JOIN rater r ON r.id = v.rater_id GROUP BY r.name ORDER BY r.name"
        )
    assert read == sorted([(PARSER, 2), (RULES, 2)])
    assert ended.levels.n_read == 4


def test_batches_that_fail_end_it_and_say_why_once(quick_run, here, monkeypatch):
    monkeypatch.setattr(cluster, "key_of", lambda _model: 1 / 0)
    ended = spread(quick_run, begun(quick_run, judging()))
    assert (ended.state, ended.n_left, ended.outcomes) == (RunState.OPEN, 6, {})
    assert ended.reason == "a batch failed: division by zero"


# ---------------------------------------------------------------- a scheduler that is gone


@pytest.mark.parametrize("moment", ["look", "submit", "result"])
@pytest.mark.parametrize("error", ["OSError", "CommClosedError", "CancelledError", "ClosedClientError"])
def test_whatever_a_scheduler_that_is_gone_breaks_is_one_sentence(quick_run, judge, here, monkeypatch, moment, error):
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    known = {kind.__name__: kind for kind in (OSError, CommClosedError, CancelledError, ClosedClientError)}

    def gone(*_told, **_more):
        raise known[error]

    whose, name = {"look": (Here, "scheduler_info"), "submit": (Here, "submit"), "result": (Batch, "result")}[moment]
    monkeypatch.setattr(whose, name, gone)
    n_saved = 4 if moment == "result" else 0  # two batches were handed over
    ended = spread(quick_run, begun(quick_run, judging(judge.base_url)))
    assert ended.reason == (
        f"the Dask scheduler at {SOMEWHERE} does not answer any more; workers of it that live go on to the end of their batches"
    )
    assert (ended.state, ended.n_left, ended.n_answered) == (RunState.OPEN, 6 - n_saved, 0)
    assert quick_run.verdicts().total() == n_saved


def test_a_connection_that_broke_is_not_waited_for(quick_run, judge, here):
    here.status = "connecting"
    ended = spread(quick_run, begun(quick_run, judging(judge.base_url)))
    assert "does not answer any more" in ended.reason
    assert judge.told.n_asked == 0


@contextmanager
def dask(folder, program, *options, **environment) -> Iterator[subprocess.Popen]:
    """A scheduler or a worker, as people start them."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--host", "127.0.0.1", "--no-dashboard"]
    with (
        (folder / f"{program}.log").open("wb") as log,
        subprocess.Popen(
            [*command, *options],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_a_scheduler_that_is_killed_ends_the_command_with_a_sentence(
    overread, tmp_path, postgres_database_url, judge, monkeypatch
):
    models_file(tmp_path, judge.base_url, key_variable='"OVERREAD_TEST_KEY"')
    judge.told.delay = 0.2
    written = tmp_path / "dask.json"
    with (
        study(postgres_database_url, n_examples=20, points=(5, -3, 4)) as small,
        dask(tmp_path, "scheduler", "--port", "0", "--scheduler-file", str(written)) as scheduler,
    ):
        until(written.exists)
        until(lambda: written.read_text().rstrip().endswith("}"))
        address = json.loads(written.read_text())["address"]
        known = {"OVERREAD_DB": postgres_database_url, "OVERREAD_TEST_KEY": KEY}
        with dask(tmp_path, "worker", address, "--nthreads", "1", "--no-nanny", **known) as worker:
            told = ("judge", "--judge", "Magpie", "--concurrency", "2", "--db", small.url)
            with killing(monkeypatch, scheduler, lambda: judge.told.n_asked > 4):
                done = overread(*told, "--cluster", address)
            worker.kill()
            worker.wait()
        judge.told.delay = 0.0
        n_before = len(small.verdicts())
        again = overread.good(*told, OVERREAD_TEST_KEY=KEY)
        assert small.verdicts().total() == len(small.verdicts()) == 60
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search(
        rf"^Run 1 stopped: the Dask scheduler at {address} does not answer any more; .*\. "
        r"Saved: \d+ of 60 answers\. Resume with the same command\.$",
        done.stderr,
        re.MULTILINE,
    )
    assert 0 < n_before < 60
    assert again.startswith(f"Run 1: {60 - n_before} answered, 0 failed.\n")


@contextmanager
def killing(monkeypatch, process, holds):
    """Within the block a process is killed at the first look of the command at which it holds."""
    progress = cluster.queries.progress

    def looked(session, run_id):
        if holds():
            process.kill()
            process.wait()
        return progress(session, run_id)

    monkeypatch.setattr(cluster.queries, "progress", looked)
    yield
    monkeypatch.setattr(cluster.queries, "progress", progress)


# ---------------------------------------------------------------- Ctrl-C


@contextmanager
def at_a_terminal(folder, *arguments) -> Iterator[subprocess.Popen]:
    """The command in a group of processes of its own, as a shell starts it: Ctrl-C goes to all of them."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OVERREAD_")}
    with subprocess.Popen(
        [sys.executable, "-m", "evalcore", *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def in_two_workers(small, judge, folder):
    """A run of 2 workers with 2 questions in flight each."""
    models_file(folder, judge.base_url)
    told = ("judge", "--judge", "Magpie", "--concurrency", "2", "--cluster", "local:2", "--json", "--db", small.url)
    return at_a_terminal(folder, *told)


def n_free(small):
    """Questions that are open and that nobody holds."""
    return small.one("SELECT count(*) FROM run_question WHERE outcome IS NULL AND worker_id IS NULL")


def test_ctrl_c_finishes_what_is_in_flight_on_workers_here(tmp_path, sqlite_database_url, judge):
    judge.told.delay = 4.0
    with study(sqlite_database_url, n_examples=300, points=(5, -3)) as small, in_two_workers(small, judge, tmp_path) as run:  # fmt: skip
        until(lambda: judge.told.in_flight == 2 * 2)
        os.killpg(run.pid, signal.SIGINT)
        said, complained = run.communicate(timeout=60)
        n_all, n_asked = 600, judge.told.n_asked
        assert small.verdicts().total() == small.one("SELECT count(*) FROM run_call") == n_asked
        assert n_free(small) == n_all - n_asked
        assert small.one("SELECT count(*) FROM run_worker") == 2  # none had to take another's place
    assert run.returncode == 130
    assert (
        f"Run 1 stopped: interrupted. Saved: {n_asked:,} of {n_all:,} answers. Resume with the same command."
        in complained
    )
    assert "Traceback" not in complained
    found = json.loads(said)
    assert (found["outcomes"]["answered"], found["state"], found["interrupted"]) == (n_asked, "stopped", True)


def test_ctrl_c_twice_does_not_wait_for_what_is_in_flight_on_workers_here(tmp_path, sqlite_database_url, judge):
    judge.told.delay = 100.0
    with study(sqlite_database_url, n_examples=300, points=(5, -3)) as small, in_two_workers(small, judge, tmp_path) as run:  # fmt: skip
        until(lambda: judge.told.in_flight == 2 * 2)
        os.killpg(run.pid, signal.SIGINT)
        until(lambda: small.one("SELECT state FROM run") == "stopped")
        os.killpg(run.pid, signal.SIGINT)
        said, complained = run.communicate(timeout=60)
        assert small.verdicts().total() == 0
        assert (judge.told.n_asked, small.one("SELECT count(*) FROM run_worker")) == (4, 2)
    assert run.returncode == 130
    assert "Run 1 stopped: interrupted. Saved: 0 of 600 answers. Resume with the same command." in complained
    assert json.loads(said)["outcomes"]["answered"] == 0
