"""A run spread over the workers of a Dask cluster: exactly the full set, none twice, whoever is killed in the middle."""

import os
import signal
import threading

import pytest

from evalcore.errors import RunRefused
from evalcore.runs import queries
from evalcore.runs.asking import Stop
from evalcore.runs.cluster import work_on_cluster
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, RunState
from tests.judge_server.running import judge_server
from tests.run_steps import until
from tests.run_world import KEY, begun, judging, study

ACTOR = "Lea Lead"
pytestmark = [
    pytest.mark.timeout(180),
    # Dask's own: a process that is killed leaves its connections and its loop behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def spread(small, run_id, *, address="local:2", stop=None, batch=10, progress=None):
    return work_on_cluster(
        small.engine,
        run_id,
        address=address,
        actor=Administrator(name=ACTOR),
        stop=stop or Stop(),
        batch=batch,
        progress=progress,
    )


def shared_while_one_is_killed(database_url, monkeypatch):
    monkeypatch.setenv("OVERREAD_TEST_KEY", KEY)
    with judge_server(delay=0.1) as judge, study(database_url, n_examples=40, points=(5, -3, 4)) as small:
        n_all = 3 * 40
        run_id = begun(small, judging(judge.base_url), concurrency=4)
        killed = []

        def kill_one():
            until(lambda: judge.told.n_asked > 20)
            killed.append(small.one("SELECT min(pid) FROM run_worker WHERE ended_at IS NULL"))
            os.kill(killed[0], signal.SIGKILL)

        beside = threading.Thread(target=kill_one)
        beside.start()
        ended = spread(small, run_id)
        beside.join()
        assert killed
        assert (ended.state, ended.reason, ended.n_left) == (RunState.DONE, None, 0)
        assert 0 < ended.n_answered <= n_all  # what the killed one had saved of a batch, no batch tells
        assert len(small.verdicts()) == small.verdicts().total() == n_all
        assert small.one("SELECT count(*) FROM run_call WHERE outcome = 'answered'") == n_all
        assert small.one("SELECT count(DISTINCT pid) FROM run_worker") >= 2
        assert (
            judge.told.n_asked <= n_all + 2 * 4 + 4
        )  # beyond those in flight, and a lot on its way to be saved, nothing twice


@pytest.mark.slow
def test_two_workers_share_a_run_and_one_that_is_killed_loses_and_doubles_nothing(postgres_database_url, monkeypatch):
    shared_while_one_is_killed(postgres_database_url, monkeypatch)


@pytest.mark.slow
def test_two_workers_share_a_file_on_one_machine_likewise(tmp_path, monkeypatch):
    shared_while_one_is_killed(str(tmp_path / "study.db"), monkeypatch)


@pytest.mark.slow
def test_stopping_ends_all_workers_and_the_run_can_go_on(tmp_path):
    with (
        judge_server(delay=0.05) as judge,
        study(str(tmp_path / "study.db"), n_examples=40, points=(5, -3, 4)) as small,
    ):
        run_id = begun(small, judging(judge.base_url), concurrency=2)
        stop = Stop()
        ended = spread(small, run_id, stop=stop, progress=lambda at: stop.finish() if at.n_answered else None)
        assert (ended.state, ended.reason) == (RunState.STOPPED, f"{ACTOR} stopped it")
        assert 0 < ended.n_answered == small.verdicts().total() == 3 * 40 - ended.n_left
        assert begun(small, judging(judge.base_url), concurrency=20) == run_id
        again = spread(small, run_id)
        assert (again.state, again.n_answered) == (RunState.DONE, 3 * 40 - ended.n_answered)


@pytest.mark.parametrize("address", ["local:0", "local:many", "local:"])
def test_a_number_of_workers_that_is_none_is_refused(tmp_path, address):
    with study(str(tmp_path / "study.db"), n_examples=1, points=(5,)) as small:
        run_id = begun(small, judging("http://127.0.0.1:9/v1"))
        with pytest.raises(RunRefused, match=rf"expected local:N with N from 1 to 64, .*, got '{address}'"):
            spread(small, run_id, address=address)


def test_a_sqlite_file_is_not_given_to_other_machines(tmp_path):
    with study(str(tmp_path / "study.db"), n_examples=1, points=(5,)) as small:
        run_id = begun(small, judging("http://127.0.0.1:9/v1"))
        with pytest.raises(RunRefused, match="use PostgreSQL, or --cluster local:N"):
            spread(small, run_id, address="tcp://127.0.0.1:8786")


def test_where_no_scheduler_answers_one_sentence_says_so(postgres_database_url, monkeypatch):
    monkeypatch.setattr("evalcore.runs.cluster.CONNECT_SECONDS", 1)
    with study(postgres_database_url, n_examples=1, points=(5,)) as small:
        run_id = begun(small, judging("http://127.0.0.1:9/v1"))
        with pytest.raises(RunRefused, match=r"expected a Dask scheduler at .* got no answer from"):
            spread(small, run_id, address="tcp://127.0.0.1:9")
        with reading(small.engine) as session:
            assert queries.progress(session, run_id).n_open == 1


@pytest.mark.slow
def test_the_command_spreads_a_run_and_says_how_it_went(asked, quick_run):
    said = asked("judge", "--judge", "Magpie", "--cluster", "local:2")
    assert said.startswith("Run 1: 6 answered, 0 failed.\nRun 1 as a whole: 6 of 6 answered; ")
    assert quick_run.verdicts().total() == 6


def test_the_command_says_what_no_cluster_is_before_anything_is_written(asked, quick_run):
    said = asked.bad("judge", "--judge", "Magpie", "--cluster", "tcp://10.0.0.1:8786")
    assert "use PostgreSQL, or --cluster local:N" in said
    assert quick_run.one("SELECT count(*) FROM run") == 0
