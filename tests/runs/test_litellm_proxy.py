"""The client of models against a server that others wrote: the LiteLLM proxy with mock responses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evalcore.runs.model_client import CallFailed
from evalcore.runs.prompts import JudgePrompt, new_fence
from evalcore.runs.spec import Reply
from evalcore.study.schema import Label, Message, Outcome
from tests.judge_server import Judge
from tests.litellm_proxy import ANSWER, MOCKED, VARIABLE, found, litellm_proxy
from tests.model_asking import KEY, QUICK, asked, question

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    program = found()
    if program is None:
        pytest.skip(
            f"no LiteLLM here: make an environment with `python -m tests.litellm_proxy FOLDER` and name it in {VARIABLE}"
        )
    with litellm_proxy(program, Path(tmp_path_factory.mktemp("litellm")), key=KEY) as running:
        yield running


def failed(proxy: Judge, **options: object) -> CallFailed:
    (came,) = asked(proxy, question(), **options)
    assert isinstance(came, CallFailed)
    assert KEY not in f"{came!r} {came} {came.raw}"
    return came


def test_a_whole_answer_comes_with_its_usage(proxy):
    (came,) = asked(proxy, question())
    assert isinstance(came, Reply)
    assert (came.text, came.status, came.finish, came.attempts) == (ANSWER, 200, "stop", 1)
    assert came.prompt_tokens
    assert came.completion_tokens


def test_a_judges_prompt_is_answered_and_read(proxy):
    prompt = JudgePrompt(with_points=True, with_confidence=False)
    request = prompt.request((Message("user", "I am thirsty."),), "Drink water.", "Says to drink", 5, fence=new_fence())
    (came,) = asked(proxy, request)
    assert prompt.read(came.text).label is Label.MET


def test_text_that_is_not_english_comes_whole(proxy):
    (came,) = asked(proxy, question(schema=None), api_model="arabic")
    assert came.text == MOCKED["arabic"]


def test_a_hundred_questions_at_once_are_all_answered(proxy):
    came = asked(proxy, *[question(f"Question {n}") for n in range(100)], concurrency=25)
    assert [reply.text for reply in came] == [ANSWER] * 100


def test_a_model_that_it_does_not_know_is_rejected_at_once(proxy):
    came = failed(proxy, api_model="nobody")
    assert (came.outcome, came.attempts) == (Outcome.REJECTED, 1)
    assert came.status in (400, 404)
    assert "nobody" in came.sentence


def test_a_missing_key_is_rejected_at_once(proxy):
    came = failed(proxy, key=None)
    assert (came.outcome, came.status, came.attempts) == (Outcome.REJECTED, 401, 1)


def test_a_wrong_key_is_rejected_at_once_and_kept_nowhere(proxy):
    wrong = "sk-wrong-0123456789"
    came = failed(proxy, key=wrong)
    assert (came.outcome, came.attempts) == (Outcome.REJECTED, 1)
    assert came.status in (400, 401)  # 400 where it has no database to look the key up in
    assert wrong not in f"{came!r} {came} {came.raw}"


def test_a_limit_of_the_rate_and_a_broken_server_are_asked_again_and_then_given_up(proxy):
    for model, status in (("busy", 429), ("broken", 500)):
        came = failed(proxy, api_model=model)
        assert (came.outcome, came.status, came.attempts) == (Outcome.UNREACHABLE, status, QUICK.attempts)


def test_a_question_that_is_too_long_is_rejected_at_once(proxy):
    came = failed(proxy, api_model="too-long")
    assert (came.outcome, came.status, came.attempts) == (Outcome.REJECTED, 400, 1)
