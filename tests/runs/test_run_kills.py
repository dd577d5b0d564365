"""Processes that work on a run are killed, interrupted, and run side by side: exactly the full set, none twice, nothing asked in vain."""

import random
import signal

import pytest

from evalcore.study.schema import RunState
from tests.judge_server.running import judge_server
from tests.run_steps import Scripted, Working, until
from tests.run_world import begun, judging, keys, study, worked

pytestmark = pytest.mark.slow

SEED = 20_261_120


def saved_keys(small, told):
    """What the judge server calls the questions whose answers are saved."""
    return {told[number] for (number,) in small.rows("SELECT id FROM run_question WHERE outcome = 'answered'")}


def killed(url, *, n_examples, n_kills, concurrency=20):
    """Kill a process at random moments, over and over; then go on to the end. What was saved before a kill is never asked again."""
    chance = random.Random(SEED)
    with judge_server(delay=0.02) as judge, study(url, n_examples=n_examples, points=(5, -3, 4)) as small:
        n_all = 3 * n_examples
        run_id = begun(small, judging(judge.base_url), concurrency=concurrency)
        told = keys(small, run_id)
        n_most = dict.fromkeys(told.values(), 1)  # how often each may be asked
        for number in range(n_kills):
            small.engine.dispose()
            process = Working(url, run_id)
            wanted = judge.told.n_asked + chance.randint(
                1, max((n_all - len(small.verdicts())) // (n_kills - number + 1), 1)
            )
            until(lambda wanted=wanted: judge.told.n_asked >= wanted)
            process.signal(signal.SIGKILL)
            assert process.ended() is None
            until(lambda: judge.told.in_flight == 0)
            saved = saved_keys(small, told)
            n_most |= {key: judge.told.asked[key] + (key not in saved) for key in told.values()}
            n_held = small.one("SELECT count(*) FROM run_question WHERE outcome IS NULL AND worker_id IS NOT NULL")
            n_arrived_or_in_flight = sum(key not in saved for key in set(judge.told.asked))
            n_on_their_way = concurrency  # to the server, or just taken
            assert (
                n_held - n_arrived_or_in_flight <= 3 * concurrency + n_on_their_way
            )  # of a lot of twice as many half is left when the next is taken
        ended = worked(small, run_id)
        assert (ended.state, ended.n_left) == (RunState.DONE, 0)
        assert len(small.verdicts()) == small.verdicts().total() == n_all
        assert set(judge.told.asked) == set(told.values())
        assert all(n <= n_most[key] for key, n in judge.told.asked.items())
        assert small.one("SELECT count(*) FROM run_call WHERE outcome = 'answered'") == n_all
        assert small.one("SELECT count(*) FROM run_worker WHERE ended_at IS NULL") == 0
        assert sum(event["answers"] for event in small.events("answers saved")) == n_all


def test_a_process_that_is_killed_loses_nothing_and_doubles_nothing(database_url):
    killed(database_url, n_examples=40, n_kills=2)


@pytest.mark.timeout(900)
def test_a_process_that_is_killed_at_ten_moments_loses_nothing_and_doubles_nothing(database_url):
    killed(database_url, n_examples=700, n_kills=10, concurrency=50)


def test_two_processes_on_one_run_ask_nothing_twice_also_where_one_is_killed(database_url):
    """What the killed one had in flight may be asked again by the other, which goes on to the end."""
    with judge_server(delay=0.02) as judge, study(database_url, n_examples=60, points=(5, -3, 4)) as small:
        run_id = begun(small, judging(judge.base_url), concurrency=10)
        told = keys(small, run_id)
        small.engine.dispose()
        victim, other = Working(database_url, run_id), Working(database_url, run_id)
        until(lambda: small.one("SELECT count(DISTINCT worker_id) FROM run_question WHERE outcome = 'answered'") == 2)
        victim.signal(signal.SIGKILL)
        assert victim.ended() is None
        assert len(saved_keys(small, told)) < 180
        ended = other.ended()
        assert ended["outcomes"]["answered"] > 0
        if ended["n_left"]:  # the other ended before the death was seen
            worked(small, run_id)
        assert len(small.verdicts()) == small.verdicts().total() == 180
        again = sum(n - 1 for n in judge.told.asked.values())
        assert again <= 10 + 200  # in flight, or arrived within the last quarter of a second
        assert max(judge.told.asked.values()) <= 2


@pytest.fixture
def going(database_url):
    """A process at work, a good while from its end."""
    with judge_server(delay=0.2) as judge, study(database_url, n_examples=60, points=(5, -3, 4)) as small:
        run_id = begun(small, judging(judge.base_url, model={"timeout_seconds": 100.0}), concurrency=10)
        small.engine.dispose()
        process = Working(database_url, run_id)
        until(lambda: judge.told.n_asked >= 15)
        yield small, run_id, process, judge


def test_ctrl_c_finishes_what_is_in_flight(going):
    small, run_id, process, judge = going
    process.interrupt()
    ended = process.ended()
    assert (ended["state"], ended["reason"]) == ("stopped", "stopped by hand")
    assert ended["outcomes"]["answered"] == judge.told.n_asked == len(small.verdicts()) < 180
    assert small.one("SELECT count(*) FROM run_question WHERE outcome IS NULL AND worker_id IS NOT NULL") == 0
    assert small.events("run stopped") == [{"run": run_id, "reason": "stopped by hand"}]


def test_ctrl_c_twice_breaks_off_what_is_in_flight_and_saves_what_has_arrived(going):
    small, run_id, process, judge = going
    judge.told.delay = 100.0  # what is asked from now on does not come
    n_before = judge.told.n_asked
    until(lambda: judge.told.n_asked >= n_before + 9 and len(small.verdicts()) + 10 == judge.told.n_asked)
    process.interrupt()
    process.interrupt()
    ended = process.ended()
    n_answered = len(small.verdicts())
    assert n_before <= ended["outcomes"]["answered"] == n_answered < judge.told.n_asked
    assert (ended["n_left"], ended["n_held"]) == (180 - n_answered, 0)
    assert begun(small, judging(judge.base_url), concurrency=10) == run_id
    assert worked(small, run_id, client=Scripted()).n_answered == 180 - n_answered
    assert len(small.verdicts()) == small.verdicts().total() == 180
