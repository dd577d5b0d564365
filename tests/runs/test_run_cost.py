"""A run does not cost more than it may: alone, beside others, with replies that cannot be read, and when the limit changes."""

import asyncio

import pytest
from hypothesis import given, strategies as st

from evalcore.runs import asking, queries, store
from evalcore.runs.acts import retry
from evalcore.runs.asking import MAX_CALLS
from evalcore.runs.spec import Call
from evalcore.runs.summary import Figures
from evalcore.study.db import reading, writing
from evalcore.study.schema import Administrator, Outcome, RunState
from tests.run_steps import MET, UNREADABLE, Scripted
from tests.run_world import begun, judging, worked

EACH = (100 * 1.0 + 10 * 4.0) / 1_000_000


class Slow(Scripted):
    """Answers slower than a worker says that it lives."""

    async def ask(self, request):
        await asyncio.sleep(0.01)
        return await super().ask(request)


def test_a_run_stops_before_it_costs_more_than_it_may(larger_run):
    run_id = begun(larger_run, judging(), concurrency=4, max_cost=20.5 * EACH)
    ended = worked(larger_run, run_id, client=Scripted())
    assert (ended.state, ended.n_answered) == (RunState.STOPPED, 20)
    assert ended.cost == pytest.approx(20 * EACH)
    assert "would bring the cost above 0.00287 US dollars" in ended.reason
    assert begun(larger_run, judging(), concurrency=4, max_cost=40.5 * EACH) == run_id
    assert worked(larger_run, run_id, client=Scripted()).n_answered == 20  # what was spent before counts
    assert begun(larger_run, judging(), concurrency=4) == run_id
    assert worked(larger_run, run_id, client=Scripted()).n_answered == 20


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_reply_that_cannot_be_read_is_not_asked_for_again_above_the_limit(larger_run, concurrency):
    n_read, n_paid = 20, 20 + MAX_CALLS + 1  # the last call is the first of a question
    run_id = begun(larger_run, judging(), concurrency=concurrency, max_cost=(n_paid + 0.5) * EACH)
    client = Scripted(lambda number, _request: MET if number <= n_read else UNREADABLE)
    ended = worked(larger_run, run_id, client=client)
    assert (len(client.asked), ended.n_calls, ended.state) == (n_paid, n_paid, RunState.STOPPED)
    assert larger_run.one("SELECT count(*) FROM run_call") == n_paid
    assert ended.n_left == 60 - n_read - ended.n_failed
    assert begun(larger_run, judging(), concurrency=concurrency) == run_id
    assert worked(larger_run, run_id, client=Scripted()).n_left == 0


def test_what_failed_before_and_is_asked_again_counts_towards_the_cost(small_run):
    run_id = begun(small_run, judging())
    assert worked(small_run, run_id, client=Scripted(UNREADABLE)).n_failed == 6
    retry(small_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.UNREADABLE])
    with reading(small_run.engine) as session:
        before = queries.calls(session, run_id)
    with writing(small_run.engine) as session:
        mine = store.add_worker(session, run_id, pid=1)
        assert len(store.take(session, run_id, mine, 10)[0]) == 6
        assert queries.calls(session, run_id, besides=mine) == before
    assert before.cost == pytest.approx(6 * MAX_CALLS * EACH)


def test_a_worker_leaves_the_others_their_share(larger_run, monkeypatch):
    """Beside one that may have as much in flight, it stops when what is left is less than a call for each."""
    monkeypatch.setattr(asking, "BEAT_SECONDS", 0.005)
    run_id = begun(larger_run, judging(), concurrency=4, max_cost=40.5 * EACH)
    with writing(larger_run.engine) as session:
        store.add_worker(session, run_id, pid=1)  # a process that lives
    ended = worked(larger_run, run_id, client=Slow())
    assert (ended.n_answered, ended.state) == (39, RunState.STOPPED)
    assert ended.reason == "a question for each of 2 processes would bring the cost above 0.00567 US dollars"


def test_what_another_worker_spent_before_it_ended_is_not_spent_again(larger_run, monkeypatch):
    monkeypatch.setattr(asking, "BEAT_SECONDS", 0.005)
    monkeypatch.setattr(asking, "SUM_SHARE", 1e9)  # as where to add up takes long: only where it must be
    run_id = begun(larger_run, judging(), concurrency=1, max_cost=40.5 * EACH)
    with writing(larger_run.engine) as session:
        other = store.add_worker(session, run_id, pid=1)

    def says(number, _request):
        if number == 5:
            with writing(larger_run.engine) as session:
                session.connection().exec_driver_sql(
                    "INSERT INTO run_call (run_id, question_id, outcome, cost, attempts, seconds, at, worker_id) "
                    f"SELECT run_id, id, 'refused', {EACH}, 1, 0, '2026-01-01', {other} FROM run_question WHERE id > 30"
                )
                store.end_worker(session, run_id, other, actor="somebody", reason=None, for_all=False)
        return MET

    ended = worked(larger_run, run_id, client=Slow(says))
    assert (ended.n_answered, ended.state) == (10, RunState.STOPPED)


def test_a_limit_that_is_set_while_a_worker_asks_holds_for_it(larger_run, monkeypatch):
    monkeypatch.setattr(asking, "BEAT_SECONDS", 0.005)
    run_id = begun(larger_run, judging(), concurrency=1)

    def says(number, _request):
        if number == 5:
            assert begun(larger_run, judging(), concurrency=1, max_cost=4 * EACH) == run_id
        return MET

    ended = worked(larger_run, run_id, client=Slow(says))
    assert 5 <= ended.n_answered < 30
    assert "would bring the cost above 0.00056 US dollars" in ended.reason


@given(max_cost=st.floats(0, 50), each=st.floats(0.5, 30), n_workers=st.integers(1, 5), in_flight=st.integers(1, 6))
def test_workers_that_ask_as_fast_as_each_other_stay_below_the_limit_together(max_cost, each, n_workers, in_flight):
    """Each asks while its figures allow it, from one sum of what was spent."""
    total = queries.Calls(n_calls=1, prompt_tokens=0, completion_tokens=0, cost=each, n_with_cost=1, n_without_cost=0)
    together = [Figures(1, 100, {}, total, max_cost, each, n_workers=n_workers) for _ in range(n_workers)]
    n_asked = 0
    for figures in together:
        while figures.affords(in_flight):
            figures.count_call(Call(question_id=1, outcome=Outcome.ANSWERED, cost=each))
            n_asked += 1
    assert each + (n_asked + in_flight - 1 if n_asked else 0) * each <= max(max_cost, each) + 1e-9
