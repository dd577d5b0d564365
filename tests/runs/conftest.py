"""Fixtures of these tests."""

from collections.abc import Iterator

import pytest

from tests.judge_server import Judge, judge_server
from tests.model_asking import reset


@pytest.fixture
def healthy_judge(running_judge: Judge) -> Judge:
    """The server, healthy and with nothing asked yet; tests set `judge.told`."""
    reset(running_judge)
    return running_judge


@pytest.fixture(scope="module")
def running_judge() -> Iterator[Judge]:
    with judge_server() as judge:
        yield judge
