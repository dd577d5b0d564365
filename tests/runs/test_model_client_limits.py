"""How long the client of models waits, when it leaves the JSON schema out, and how it ends early."""

import asyncio
from itertools import pairwise

import msgspec
import pytest

from evalcore.runs.model_client import Patience
from evalcore.runs.spec import Reply
from evalcore.study.schema import Outcome
from tests.judge_server import Fault, Faults, Judge, answer
from tests.model_asking import QUICK, asked, client, question

# --- How long it waits


def gaps(judge: Judge) -> list[float]:
    (times,) = judge.told.times.values()
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize("fault", [Fault.TOO_MANY, Fault.TOO_MANY_DATE])
def test_retry_after_is_obeyed(healthy_judge, fault):
    # A date has whole seconds: 1.4 s from now are written as 0.4 to 1.4 s.
    said, least = (0.3, 0.3) if fault is Fault.TOO_MANY else (1.4, 0.3)
    healthy_judge.told.faults, healthy_judge.told.retry_after = Faults.alone(fault, tries=1), said
    (reply,) = asked(healthy_judge, question(), patience=QUICK)
    assert reply.attempts == 2
    assert gaps(healthy_judge)[0] >= least


def test_a_wait_past_the_time_is_not_begun(healthy_judge):
    healthy_judge.told.faults, healthy_judge.told.retry_after = Faults.alone(Fault.TOO_MANY), 60
    (failed,) = asked(healthy_judge, question(), patience=msgspec.structs.replace(QUICK, seconds=30))
    assert (failed.attempts, failed.outcome) == (1, Outcome.UNREACHABLE)
    assert failed.seconds < 5


def test_waits_double_up_to_the_most(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.BROKEN)
    patience = Patience(attempts=5, seconds=60, wait_initial=0.05, wait_max=0.12, wait_jitter=0.0)
    (failed,) = asked(healthy_judge, question(), patience=patience)
    assert failed.attempts == 5
    assert all(gap >= least for gap, least in zip(gaps(healthy_judge), (0.05, 0.1, 0.12, 0.12), strict=True))


def test_no_try_begins_after_the_time(healthy_judge):
    healthy_judge.told.faults, healthy_judge.told.delay = Faults.alone(Fault.BROKEN), 0.1
    patience = Patience(attempts=1000, seconds=0.25, wait_initial=0.001, wait_max=0.001, wait_jitter=0.0)
    (failed,) = asked(healthy_judge, question(), patience=patience)
    assert 1 <= failed.attempts <= 3


def test_one_attempt_is_one_try(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.BROKEN)
    (failed,) = asked(healthy_judge, question(), patience=msgspec.structs.replace(QUICK, attempts=1))
    assert failed.attempts == healthy_judge.told.n_asked == 1


# --- The JSON schema


def test_a_server_that_takes_no_schema_is_asked_without_and_that_is_remembered(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.NO_SCHEMA)

    async def ask() -> list[Reply]:
        async with client(healthy_judge) as asking:
            return [await asking.ask(question("first")), await asking.ask(question("second"))]

    first, second = asyncio.run(ask())
    assert [first.attempts, second.attempts] == [2, 1]
    assert ["response_format" in body for body in healthy_judge.told.bodies] == [True, False, False]
    assert second.text == answer(list(question("second").messages))


def test_a_schema_that_was_said_to_be_taken_is_not_left_out(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.NO_SCHEMA)
    (failed,) = asked(healthy_judge, question(), structured=True)
    assert (failed.outcome, failed.status, failed.attempts) == (Outcome.REJECTED, 400, 1)


def test_a_schema_is_not_sent_where_none_is_taken(healthy_judge):
    asked(healthy_judge, question(), structured=False)
    assert "response_format" not in healthy_judge.told.bodies[0]


def test_any_other_400_is_not_asked_without_the_schema(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.BAD_REQUEST)
    (failed,) = asked(healthy_judge, question())
    assert failed.attempts == 1


# --- Ending early


def test_a_cancelled_question_is_cancelled_and_the_client_goes_on(healthy_judge):
    healthy_judge.told.delay = 30

    async def cancelled() -> Reply:
        async with client(healthy_judge, concurrency=1) as asking:
            question_task = asyncio.create_task(asking.ask(question("slow")))
            while not healthy_judge.told.in_flight:  # noqa: ASYNC110 - the server counts in another thread
                await asyncio.sleep(0.005)
            question_task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question_task
            healthy_judge.told.delay = 0
            return await asking.ask(question("quick"))

    assert isinstance(asyncio.run(cancelled()), Reply)


def test_a_client_that_is_not_open_says_so(healthy_judge):
    with pytest.raises(RuntimeError, match="inside its `async with`"):
        asyncio.run(client(healthy_judge).ask(question()))
