"""What stops a worker, and how several share a run."""

import asyncio
import os
import threading
import time

import pytest

from evalcore.errors import RunRefused
from evalcore.runs import asking, store
from evalcore.runs.acts import stop
from evalcore.runs.asking import Stop
from evalcore.runs.spec import WAS_STOPPED
from evalcore.study.db import writing
from evalcore.study.schema import STREAK, Administrator, Outcome, RunState
from tests.run_steps import MET, NOT_MET, Scripted, until
from tests.run_world import begun, done, judging, study, worked


@pytest.fixture
def larger_on_both(database_url):
    with study(database_url, n_examples=30, points=(5, -3)) as made:
        yield made


def test_failures_in_a_row_stop_the_run_with_a_sentence(larger_run):
    client = Scripted(lambda _n, _request: Outcome.UNREACHABLE)
    run_id = begun(larger_run, judging(), concurrency=4)
    ended = worked(larger_run, run_id, client=client)
    assert ended.state is RunState.STOPPED
    assert ended.reason.startswith(f"{STREAK} questions in a row failed, the last one: call ")
    assert STREAK <= ended.n_failed == len(client.asked) <= STREAK + 4
    assert ended.n_left == 60 - ended.n_failed
    told = f"{STREAK} questions in a row failed"  # without the words of the last failure, which may be a judge's
    assert [event["reason"] for event in larger_run.events("run stopped")] == [told]
    assert worked(larger_run, run_id, client=Scripted()).outcomes == {}  # a stopped run is left alone


def test_so_many_failures_in_a_row_as_was_said_stop_the_run(larger_run):
    run_id = begun(larger_run, judging(), concurrency=1, max_failures=1)
    ended = worked(larger_run, run_id, client=Scripted(lambda n, _request: Outcome.REFUSED if n == 4 else MET))
    assert (ended.n_answered, ended.n_failed, ended.state) == (3, 1, RunState.STOPPED)
    assert ended.reason == "1 question in a row failed, the last one: call 4 failed"
    with pytest.raises(RunRefused, match="max failures: expected 1 or more, got 0"):
        begun(larger_run, judging(), max_failures=0)


def test_an_answer_between_failures_begins_the_count_anew(larger_run):
    client = Scripted(lambda n, _request: MET if n % STREAK == 0 else Outcome.REFUSED)
    ended = done(larger_run, judging(), client=client, concurrency=1)
    assert (ended.state, ended.outcomes) == (
        RunState.DONE,
        {Outcome.ANSWERED: 60 // STREAK, Outcome.REFUSED: 60 - 60 // STREAK},
    )


def test_a_worker_that_is_told_to_finish_saves_what_is_in_flight(larger_run):
    halt = Stop()

    def says(number, _request):
        if number == 10:
            halt.finish()
        return MET

    client = Scripted(says)
    run_id = begun(larger_run, judging(), concurrency=4)
    ended = worked(larger_run, run_id, client=client, stop=halt)
    assert 10 <= len(client.asked) <= 14
    assert (ended.n_answered, ended.n_left) == (len(client.asked), 60 - len(client.asked))
    assert (ended.state, ended.reason) == (RunState.STOPPED, "stopped by hand")
    assert larger_run.one("SELECT count(*) FROM run_question WHERE worker_id IS NOT NULL AND outcome IS NULL") == 0
    assert begun(larger_run, judging(), concurrency=4) == run_id
    assert worked(larger_run, run_id, client=Scripted()).n_answered == 60 - len(client.asked)
    assert set(larger_run.verdicts().values()) == {1}


def test_a_worker_that_is_told_now_breaks_off_what_is_in_flight(larger_run):
    halt, gate = Stop(), asyncio.Event()

    class Stuck(Scripted):
        async def ask(self, request):
            if len(self.asked) == 10:
                halt.finish()
                asyncio.get_running_loop().call_soon(halt.now)
                self.gate = gate
            return await super().ask(request)

    run_id = begun(larger_run, judging(), concurrency=4)
    ended = worked(larger_run, run_id, client=Stuck(), stop=halt)
    assert 7 <= ended.n_answered <= 10
    assert len(larger_run.verdicts()) == ended.n_answered
    assert larger_run.one("SELECT count(*) FROM run_question WHERE worker_id IS NOT NULL AND outcome IS NULL") == 0


def test_somebody_else_stops_the_run(larger_run, monkeypatch):
    monkeypatch.setattr(asking, "BEAT_SECONDS", 0.05)
    begun_asking = threading.Event()

    def says(_number, _request):
        begun_asking.set()
        return MET

    class Slow(Scripted):
        async def ask(self, request):
            await asyncio.sleep(0.02)
            return await super().ask(request)

    run_id = begun(larger_run, judging(), concurrency=1)
    found = {}
    thread = threading.Thread(target=lambda: found.update(worked=worked(larger_run, run_id, client=Slow(says))))
    thread.start()
    assert begun_asking.wait(20)
    stop(larger_run.engine, run_id, actor=Administrator(name="Dr. Tove Lind"))
    thread.join(20)
    ended = found["worked"]
    assert (ended.state, ended.reason) == (RunState.STOPPED, "Dr. Tove Lind stopped it")
    assert 0 < ended.n_answered < 60
    assert larger_run.events("run stopped") == [{"run": run_id, "reason": "Dr. Tove Lind stopped it"}]
    stop(larger_run.engine, run_id, actor=Administrator(name="Dr. Tove Lind"))
    assert len(larger_run.events("run stopped")) == 1


def test_a_fault_of_ours_stops_the_run_and_loses_nothing(larger_run, monkeypatch):
    read = asking.Asker.read
    seen = []

    def faulty(self, asked, text):
        seen.append(asked)
        if len(seen) == 20:
            msg = "no such field"
            raise KeyError(msg)
        return read(self, asked, text)

    monkeypatch.setattr(asking.Asker, "read", faulty)
    run_id = begun(larger_run, judging(), concurrency=4)
    ended = worked(larger_run, run_id, client=Scripted())
    assert ended.reason == "a fault in Overread: KeyError: 'no such field'"
    assert ended.state is RunState.STOPPED
    assert len(larger_run.verdicts()) == ended.n_answered == len(seen) - 1
    assert ended.n_left == 60 - ended.n_answered


def test_at_most_so_many_questions_are_in_flight(larger_run):
    client = Scripted()
    done(larger_run, judging(), client=client, concurrency=7)
    assert client.most == 7


def test_two_workers_on_one_run_ask_nothing_twice(larger_on_both):
    class Slow(Scripted):
        async def ask(self, request):
            await asyncio.sleep(0.005)
            return await super().ask(request)

    client, other = Slow(), Slow()
    run_id = begun(larger_on_both, judging(), concurrency=3)
    found = []
    threads = [
        threading.Thread(target=lambda c=c: found.append(worked(larger_on_both, run_id, client=c)))
        for c in (client, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(ended.n_answered for ended in found) == len(client.asked) + len(other.asked) == 60
    assert len(larger_on_both.verdicts()) == 60
    assert set(larger_on_both.verdicts().values()) == {1}
    assert larger_on_both.one("SELECT state FROM run") == "done"


def test_what_another_worker_holds_is_not_waited_for(small_run):
    run_id = begun(small_run, judging())
    with writing(small_run.engine) as session:
        other = store.add_worker(session, run_id, pid=1)  # a process that lives
        held = store.take(session, run_id, other, 4)[0]
    assert len(held) == 4
    ended = worked(small_run, run_id, client=Scripted())
    assert (ended.n_answered, ended.n_left, ended.n_held, ended.state) == (2, 4, 4, RunState.OPEN)
    assert "4 questions are in the hands of other processes." in ended.sentences()
    assert small_run.progress(run_id).n_workers == 1


@pytest.mark.parametrize("death", ["ended", "not seen", "no such process"])
def test_what_a_dead_worker_held_is_free_again(small_run, death):
    run_id = begun(small_run, judging())
    with writing(small_run.engine) as session:
        other = store.add_worker(session, run_id, pid=2**22 + 1 if death == "no such process" else 1)
        store.take(session, run_id, other, 4)
        if death == "ended":
            store.end_worker(session, run_id, other, actor="somebody", reason=None, for_all=False)
    if death == "not seen":
        with small_run.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE run_worker SET seen_at = '2026-01-01 00:00:00'")
    assert small_run.progress(run_id).n_workers == 0
    ended = worked(small_run, run_id, client=Scripted())
    assert (ended.n_answered, ended.n_left, ended.state) == (6, 0, RunState.DONE)


def test_a_worker_whose_machine_slept_asks_nothing_that_others_have_taken_over(small_run, monkeypatch):
    """Its two questions in flight are answered by another one meanwhile; the four that it held were not asked yet."""
    monkeypatch.setattr(asking, "STALE_SECONDS", 0.02)
    monkeypatch.setattr(asking, "BEAT_SECONDS", 0.01)
    run_id = begun(small_run, judging(), concurrency=2)
    sleeps, wakes = threading.Event(), threading.Event()

    class Sleeping(Scripted):
        async def ask(self, request):
            sleeps.set()
            wakes.wait(20)  # the whole loop waits
            return await super().ask(request)

    found, client = {}, Sleeping(NOT_MET)
    thread = threading.Thread(target=lambda: found.update(worked=worked(small_run, run_id, client=client)))
    thread.start()
    assert sleeps.wait(20)

    def is_taken_over():
        with small_run.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE run_worker SET seen_at = '2026-01-01 00:00:00'")
        return worked(small_run, run_id, client=Scripted(MET)).n_answered == 6

    until(is_taken_over)  # a sign of life that was on its way when it fell asleep may come in between
    time.sleep(2 * asking.STALE_SECONDS)  # nobody is taken for dead sooner than that
    wakes.set()
    thread.join(20)
    assert (found["worked"].n_there, len(client.asked)) == (2, 2)
    assert {label for (label,) in small_run.rows("SELECT label FROM verdict")} == {"met"}
    assert small_run.verdicts().total() == small_run.one("SELECT count(*) FROM run_call") == 6
    told = small_run.events("answers saved")[-1]
    assert (told["answers"], told["not_kept"], told["calls_of_others"]) == (0, 2, 2)


def test_who_was_told_to_stop_does_not_close_a_run_that_was_started_again(larger_run):
    run_id = begun(larger_run, judging())
    with writing(larger_run.engine) as session:
        worker_id = store.add_worker(session, run_id, pid=os.getpid())
    stop(larger_run.engine, run_id, actor=Administrator(name="Ana Ruiz"))
    assert begun(larger_run, judging()) == run_id
    with writing(larger_run.engine) as session:
        ended = store.end_worker(session, run_id, worker_id, actor="Ana Ruiz", reason=WAS_STOPPED, for_all=False)
    assert (ended.state, ended.reason) == (RunState.OPEN, None)
