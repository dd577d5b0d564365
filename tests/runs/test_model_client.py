"""The client against a healthy server and one that misbehaves: what comes of every fault alone and mixed, and how often it asks."""

import socket

import pytest
from hypothesis import given, strategies as st

from evalcore.runs.model_client import MAX_REPLY, CallFailed, TryAgain
from evalcore.runs.spec import MAX_RAW, Reply
from evalcore.study.schema import Outcome
from tests.judge_server import Fault, Faults, answer, judge_server, key_of
from tests.judge_server.faults import ASKED_AGAIN, READABLE, REFUSED, REJECTED, UNREADABLE
from tests.model_asking import KEY, QUICK, SCHEMA, asked, question, reset

NOT_WHOLE = {Fault.MALFORMED, Fault.TRUNCATED, Fault.PAGE, Fault.NO_CHOICES, Fault.NULL_CONTENT}
STATUS = {
    Fault.TOO_MANY: 429, Fault.TOO_MANY_DATE: 429, Fault.TOO_MANY_BARE: 429, Fault.TIMED_OUT: 408, Fault.CONFLICT: 409, Fault.BROKEN: 500,
    Fault.UNAVAILABLE: 503, Fault.DROPPED_BEFORE: None, Fault.BAD_REQUEST: 400, Fault.UNAUTHORIZED: 401, Fault.REDIRECT: 307,
}  # fmt: skip


def expected_outcome(fault: Fault | None) -> Outcome:
    """What comes of a question whose last try met this fault."""
    if fault in REFUSED:
        return Outcome.REFUSED
    if fault in REJECTED:
        return Outcome.REJECTED
    if fault in NOT_WHOLE or fault is Fault.HUGE:
        return Outcome.UNREADABLE
    return Outcome.UNREACHABLE if fault in ASKED_AGAIN else Outcome.ANSWERED


# --- A healthy server


def test_a_reply_comes_with_text_counts_and_how_it_was_asked(healthy_judge):
    (reply,) = asked(healthy_judge, question())
    assert reply.text == answer(list(question().messages), schema=SCHEMA)
    assert (reply.status, reply.finish, reply.attempts) == (200, "stop", 1)
    assert (reply.prompt_tokens, reply.completion_tokens) == (
        healthy_judge.told.prompt_tokens,
        healthy_judge.told.completion_tokens,
    )
    assert reply.seconds > 0


def test_what_is_sent_is_the_question_and_the_settings_that_are_known(healthy_judge):
    asked(healthy_judge, question(schema=None))
    turns = [{"role": message.role, "content": message.content} for message in question().messages]
    assert healthy_judge.told.bodies == [{"model": "judge-1", "messages": turns}]
    asked(healthy_judge, question(), temperature=0.0, max_tokens=50)
    sent = healthy_judge.told.bodies[1]
    assert (sent["temperature"], sent["max_tokens"]) == (0.0, 50)
    wanted = {"name": "verdict", "schema": SCHEMA, "strict": True}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": wanted}


def test_a_key_is_sent_in_the_authorization_header_alone(healthy_judge):
    asked(healthy_judge, question())
    asked(healthy_judge, question(), key=None)
    first, second = healthy_judge.told.headers
    assert [name for name, value in first.items() if KEY in value] == ["authorization"]
    assert first["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in second
    assert KEY not in str(healthy_judge.told.bodies)


def test_no_more_questions_are_on_their_way_than_was_said(healthy_judge):
    healthy_judge.told.delay = 0.02
    replies = asked(healthy_judge, *(question(str(number)) for number in range(40)), concurrency=5)
    assert all(isinstance(reply, Reply) for reply in replies)
    assert healthy_judge.told.most_in_flight == 5


def test_a_slow_trickle_is_a_reply(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.TRICKLE)
    (reply,) = asked(healthy_judge, question())
    assert (reply.text, reply.attempts) == (answer(list(question().messages), schema=SCHEMA), 1)


def test_a_server_is_found_under_an_address_of_version_6():
    try:
        server = judge_server(host="::1")
        with server as judge:
            (reply,) = asked(judge, question())
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert isinstance(reply, Reply)


# --- Every fault alone


@pytest.mark.parametrize("fault", sorted(ASKED_AGAIN))
def test_after_a_fault_it_is_asked_again_until_the_patience_ends(healthy_judge, fault):
    healthy_judge.told.faults, healthy_judge.told.retry_after = Faults.alone(fault), 0
    (failed,) = asked(healthy_judge, question())
    assert isinstance(failed, CallFailed)
    assert failed.outcome is expected_outcome(fault)
    assert failed.status == STATUS.get(fault, 200)
    assert failed.attempts == healthy_judge.told.n_asked == QUICK.attempts
    assert failed.sentence == str(failed)
    assert (failed.raw is None) == (fault is Fault.DROPPED_BEFORE)


@pytest.mark.parametrize("fault", sorted(ASKED_AGAIN))
def test_after_a_fault_that_ends_the_answer_comes(healthy_judge, fault):
    healthy_judge.told.faults, healthy_judge.told.retry_after = Faults.alone(fault, tries=2), 0
    (reply,) = asked(healthy_judge, question())
    assert isinstance(reply, Reply)
    assert reply.text == answer(list(question().messages), schema=SCHEMA)
    assert reply.attempts == healthy_judge.told.n_asked == 3


@pytest.mark.parametrize("fault", sorted(REFUSED | REJECTED | {Fault.HUGE}))
def test_what_another_try_would_not_change_is_asked_once(healthy_judge, fault):
    healthy_judge.told.faults = Faults.alone(fault)
    (failed,) = asked(healthy_judge, question())
    assert isinstance(failed, CallFailed)
    assert not isinstance(failed, TryAgain)
    assert (failed.outcome, failed.status) == (expected_outcome(fault), STATUS.get(fault, 200))
    assert failed.attempts == healthy_judge.told.n_asked == 1
    assert failed.raw is None if fault is Fault.REDIRECT else len(failed.raw) <= MAX_RAW


@pytest.mark.parametrize("fault", sorted(UNREADABLE | READABLE - {Fault.NO_SCHEMA}))
def test_what_the_text_says_is_left_to_the_prompt(healthy_judge, fault):
    healthy_judge.told.faults = Faults.alone(fault)
    (reply,) = asked(healthy_judge, question())
    assert (reply.status, reply.attempts) == (200, 1)


def test_a_refusal_keeps_its_tokens_and_its_reason(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.REFUSAL)
    (failed,) = asked(healthy_judge, question())
    assert failed.sentence == "the model refused: I cannot help with that."
    assert (failed.prompt_tokens, failed.completion_tokens) == (
        healthy_judge.told.prompt_tokens,
        healthy_judge.told.completion_tokens,
    )


def test_the_sentence_says_what_the_server_said(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.BAD_REQUEST)
    (failed,) = asked(healthy_judge, question())
    assert failed.sentence == "the server answered 400 Bad Request: the messages are longer than the model's context"
    healthy_judge.told.faults = Faults.alone(Fault.PAGE)
    (failed,) = asked(healthy_judge, question())
    assert failed.sentence.endswith("that is not JSON")
    assert "Your session has ended" in failed.raw


def test_a_redirect_is_not_followed(healthy_judge):
    healthy_judge.told.faults = Faults.alone(Fault.REDIRECT)
    (failed,) = asked(healthy_judge, question())
    assert failed.sentence == "the server answered 307 Temporary Redirect"


def test_a_reply_without_end_is_read_no_further_than_the_bound(healthy_judge):
    healthy_judge.told.faults, healthy_judge.told.huge_bytes = Faults.alone(Fault.HUGE), 10**12
    (failed,) = asked(healthy_judge, question())
    assert failed.sentence == f"expected a reply of at most {MAX_REPLY:,} bytes, got more"
    assert len(failed.raw) == MAX_RAW


@pytest.mark.parametrize("fault", [Fault.STALLED, Fault.TRICKLE])
def test_a_reply_that_takes_too_long_is_given_up(healthy_judge, fault):
    healthy_judge.told.faults, healthy_judge.told.stall_seconds, healthy_judge.told.trickle_seconds = (
        Faults.alone(fault),
        60,
        60,
    )
    (failed,) = asked(healthy_judge, question(), timeout_seconds=0.1)
    assert (failed.outcome, failed.attempts) == (Outcome.UNREACHABLE, QUICK.attempts)
    assert failed.sentence == "no whole reply came within 0.1 seconds"
    assert 0.3 <= failed.seconds < 10


def test_a_server_that_is_not_there_is_unreachable(healthy_judge):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (failed,) = asked(healthy_judge, question(), base_url=f"http://127.0.0.1:{port}/v1")
    assert (failed.outcome, failed.status, failed.raw, failed.attempts) == (
        Outcome.UNREACHABLE,
        None,
        None,
        QUICK.attempts,
    )
    assert failed.sentence.startswith("the connection failed: Cannot connect to host 127.0.0.1")


# --- Mixed faults


@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.3, 1.0]),
    some=st.sets(st.sampled_from(sorted(Fault)), min_size=1),
)
def test_every_question_ends_as_its_faults_say_and_none_is_invented(running_judge, seed, share, some):
    some.discard(Fault.NO_SCHEMA)  # whether it strikes depends on who was first
    faults = Faults.mixed(share, *some) if some else Faults()
    reset(running_judge, seed=seed, faults=faults, retry_after=0, keep=False)
    requests = [question(f"question {number}", schema=None) for number in range(25)]
    came = asked(running_judge, *requests)
    for request, end in zip(requests, came, strict=True):
        key = key_of(request.messages)
        fault, tries = faults.last(key, QUICK.attempts, seed=seed)
        if expected_outcome(fault) is Outcome.ANSWERED:
            assert isinstance(end, Reply)
            assert fault in UNREADABLE | READABLE or end.text == answer(list(request.messages), seed=seed)
        else:
            assert isinstance(end, CallFailed)
            assert end.outcome is expected_outcome(fault)
        assert end.attempts == tries == running_judge.told.asked[key]


@given(seed=st.integers(0, 10**6))
def test_with_a_schema_and_every_fault_each_question_ends_in_a_reply_or_a_failure(running_judge, seed):
    reset(running_judge, seed=seed, faults=Faults.mixed(0.5), retry_after=0, keep=False)
    requests = [question(f"question {number}") for number in range(25)]
    came = asked(running_judge, *requests)
    assert all(isinstance(end, Reply | CallFailed) for end in came)
    assert sum(end.attempts for end in came) == running_judge.told.n_asked
