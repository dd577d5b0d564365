"""Workers as processes of their own: started, found again, stopped, killed, started again; and Ctrl-C as a terminal sends it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from evalcore.errors import NotFound, OverreadError, RunRefused
from evalcore.runs.acts import stop
from evalcore.runs.queries import is_gone, this_host
from evalcore.runs.worker import alive, start_worker
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, RunState
from tests.judge_server import judge_server
from tests.run_commands import models_file
from tests.run_steps import until
from tests.run_world import KEY, begun, judging, study, worked

ROOT = Path(__file__).parents[2]
N_QUESTIONS = 40


@pytest.fixture
def larger(sqlite_database_url):
    with study(sqlite_database_url, n_examples=N_QUESTIONS // 2, points=(5, -3)) as made:
        yield made


@pytest.fixture
def judge():
    with judge_server(delay=0.2, key=KEY) as running:
        yield running


@pytest.fixture
def keyed(larger, judge, monkeypatch, tmp_path):
    """A run that needs a key, which is in the environment; what workers print comes into the test's folder."""
    monkeypatch.setenv("INVENTED_KEY", KEY)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return begun(larger, judging(judge.base_url, model={"key_variable": "INVENTED_KEY"}), concurrency=2)


def pids(larger, run_id):
    with reading(larger.engine) as session:
        found = alive(session, run_id)
    assert {row.host for row in found} <= {this_host()}
    return [row.pid for row in found]


@pytest.mark.slow
def test_a_worker_is_started_found_and_stopped(larger, judge, keyed, tmp_path):
    pid = start_worker(larger.url, keyed)
    assert pids(larger, keyed) == [pid]
    assert os.getsid(pid) == pid != os.getsid(0)  # the end of this terminal does not reach it
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert arguments[-5:] == [b"evalcore", b"runs", b"--work", str(keyed).encode(), b""]
    until(lambda: larger.progress(keyed).n_answered > 0)
    stop(larger.engine, keyed, actor=Administrator(name="Ana Ruiz"))
    until(lambda: not Path(f"/proc/{pid}").exists())  # ended, and nothing of it left in the list of processes
    at = larger.progress(keyed)
    assert (at.state, at.reason, pids(larger, keyed)) == (RunState.STOPPED, "Ana Ruiz stopped it", [])
    assert 0 < at.n_answered == judge.told.n_asked < N_QUESTIONS
    (log,) = tmp_path.glob("overread-run-*.log")
    said = log.read_text()
    assert f"Saved: {at.n_answered} of {N_QUESTIONS} answers. Resume with `overread runs --resume {keyed}`." in said
    assert KEY not in said
    assert log.stat().st_mode & 0o077 == 0  # nobody else reads it


@pytest.mark.slow
def test_a_worker_that_was_killed_is_gone_and_another_goes_on(larger, judge, keyed):
    pid = start_worker(larger.url, keyed)
    until(lambda: larger.progress(keyed).n_answered > 0)
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(this_host(), pid))
    assert pids(larger, keyed) == []
    assert larger.progress(keyed).state is RunState.OPEN
    other = start_worker(larger.url, keyed)
    assert pids(larger, keyed) == [other] != [pid]
    until(lambda: larger.progress(keyed).state is RunState.DONE)
    until(lambda: not Path(f"/proc/{other}").exists())
    assert set(larger.verdicts().values()) == {1}
    assert len(larger.verdicts()) == N_QUESTIONS
    again = judge.told.n_asked - N_QUESTIONS
    assert 0 <= again <= 2 + 2 * 4  # in flight when it was killed, and what came in the quarter of a second before that


def test_a_worker_that_cannot_begin_is_refused_with_its_last_words(larger, judge, keyed, monkeypatch):
    popen, said = subprocess.Popen, "import sys; print('no room', file=sys.stderr); sys.exit(3)"
    monkeypatch.setattr(subprocess, "Popen", lambda _command, **rest: popen([sys.executable, "-S", "-c", said], **rest))
    with pytest.raises(
        RunRefused, match=r"run 1: the process that was started has ended: no room \(see .*run-1-.*log\)"
    ):
        start_worker(larger.url, keyed)
    assert (pids(larger, keyed), judge.told.n_asked) == ([], 0)


def test_what_cannot_be_worked_on_is_refused_before_a_process_is_started(larger, keyed, monkeypatch):
    def nobody(*_arguments, **_options):
        pytest.fail("a process was started")

    monkeypatch.setattr(subprocess, "Popen", nobody)
    with pytest.raises(NotFound, match=r"run: expected the number of a run, got 99"):
        start_worker(larger.url, 99)
    with pytest.raises(OverreadError, match="expected postgresql://"):
        start_worker("mysql://me@host/study", keyed)
    monkeypatch.delenv("INVENTED_KEY")
    with pytest.raises(RunRefused, match="the environment variable INVENTED_KEY is not set"):
        start_worker(larger.url, keyed)
    stop(larger.engine, keyed, actor=Administrator(name="Ana Ruiz"))
    with pytest.raises(RunRefused, match="is stopped: start it first"):
        start_worker(larger.url, keyed)


# ---------------------------------------------------------------- Ctrl-C


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_in_a_process(larger, tmp_path, presses):
    """Once: what is in flight comes; twice: it does not. The same command then asks only what is missing."""
    command = [sys.executable, "-m", "evalcore", "judge", "--judge", "Magpie", "--concurrency", "2", "--db", larger.url]
    with judge_server(delay=1.5) as judge:
        models_file(tmp_path, judge.base_url)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            guard = threading.Timer(60, process.kill)
            guard.start()
            until(lambda: judge.told.in_flight == 2 or process.poll() is not None)
            assert process.returncode is None, process.stderr.read()
            process.send_signal(signal.SIGINT)
            first = process.stderr.readline()
            if presses == 2:
                process.send_signal(signal.SIGINT)
            said, complained = process.communicate()
            guard.cancel()
        saved = 2 if presses == 1 else 0
        assert first == "finishing 2 in flight (Ctrl-C again to stop at once)\n"
        assert process.returncode == 130
        assert complained.splitlines()[-1] == (
            f"Run 1 stopped: interrupted. Saved: {saved} of {N_QUESTIONS} answers. Resume with the same command."
        )
        assert f"Run 1: {saved} answered, 0 failed." in said
        assert len(larger.verdicts()) == saved
        assert judge.told.n_asked == 2
        judge.told.delay = 0.0
        begun(larger, judging(judge.base_url))  # the same run
        assert worked(larger, 1).n_answered == N_QUESTIONS - saved
    assert set(larger.verdicts().values()) == {1}
