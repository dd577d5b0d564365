"""Runs in words, and what they are about in numbers."""

import pytest
from hypothesis import given, strategies as st

from evalcore.runs import queries
from evalcore.runs.queries import Calls, Progress, Subject, subject
from evalcore.runs.summary import OUTCOMES, asked_words, dollars, duration, state_of, told
from evalcore.study.db import reading
from evalcore.study.schema import STREAK, Outcome, RunState
from tests.run_steps import MET, UNREADABLE, Scripted
from tests.run_world import MODELS, add_cases, begun, done, judging, responding, study, triage, worked


def at(state: RunState = RunState.OPEN, *, reason: str | None = None, n_workers: int = 0, **changed) -> Progress:
    """10 questions, of which 6 are answered and 2 have failed."""
    outcomes = {Outcome.ANSWERED: 6, Outcome.REFUSED: 2}
    usual = {
        "run_id": 1, "n_questions": 10, "outcomes": outcomes, "max_cost": None, "rate": 0.5 if n_workers else 0.0,
    }  # fmt: skip
    calls = {
        "n_calls": 8,
        "prompt_tokens": 800,
        "completion_tokens": 80,
        "cost": 0.25,
        "n_with_cost": 8,
        "n_without_cost": 0,
    }
    calls |= {name: changed.pop(name) for name in calls if name in changed}
    return Progress(state=state, reason=reason, n_workers=n_workers, calls=Calls(**calls), **(usual | changed))


@pytest.mark.parametrize(
    ("run", "word", "more"),
    [
        (at(n_workers=1), "Running", "1 process asks"),
        (at(n_workers=3), "Running", "3 processes ask"),
        (at(), "Paused", "nothing is being asked now"),
        (at(outcomes={Outcome.ANSWERED: 10}), "Ending", "the last answers are saved"),
        (at(RunState.STOPPED, reason="Ana Ruiz stopped it"), "Stopped", "Ana Ruiz stopped it"),
        (
            at(RunState.STOPPED, reason="Ana Ruiz stopped it", n_workers=1), "Stopping",
            "Ana Ruiz stopped it; questions already sent are waited for",
        ),
        (at(RunState.DONE), "Done", "2 questions without an answer"),
        (at(RunState.DONE, outcomes={Outcome.ANSWERED: 10}), "Done", ""),
    ],
)  # fmt: skip
def test_a_run_stands_in_a_word(run, word, more):
    assert state_of(run, with_words=True) == state_of(run, with_words=False) == (word, more)


def test_the_words_of_a_failure_in_the_reason_are_for_those_who_may_read_replies(sqlite_database_url):
    with study(sqlite_database_url, n_examples=2 * STREAK, points=(5,)) as small:
        run_id = done(small, judging(), client=Scripted(UNREADABLE)).run_id
        stopped = small.progress(run_id)
    whole = state_of(stopped, with_words=True).more
    assert (
        whole == f'{STREAK} questions in a row failed, the last one: criteria_met: expected true or false, got "true"'
    )
    assert state_of(stopped, with_words=False).more == f"{STREAK} questions in a row failed"


def test_rate_and_time_left_are_told_only_while_somebody_asks():
    # 2 of 10 questions are open; at one in two seconds they take 4 seconds.
    assert told(at(n_workers=1)) == ["6 of 10 answered", "2 failed", "0.5 a second", "$0.2500", "4 s left"]
    assert told(at(n_workers=1, rate=0.0)) == ["6 of 10 answered", "2 failed", "0.0 a second", "$0.2500"]
    assert told(at()) == ["6 of 10 answered", "2 failed", "$0.2500"]
    assert told(at(cost=None, n_without_cost=8))[-1] == "cost unknown"


@given(st.floats(min_value=0, max_value=1e7))
def test_a_duration_is_told_to_within_half_a_minute_or_half_a_second(seconds):
    numbers = dict(zip(duration(seconds).split()[1::2], map(_whole, duration(seconds).split()[::2]), strict=True))
    back = numbers.get("s", 0) + 60 * numbers.get("min", 0) + 3_600 * numbers.get("h", 0)
    assert abs(back - max(seconds, 0.5)) <= (0.5 if "s" in numbers else 30)
    assert numbers.get("min", 0) < (60 if "h" in numbers else 100)


def _whole(word: str) -> int:
    return int(word.replace(",", ""))


def test_every_way_to_fail_has_its_words():
    assert set(OUTCOMES) == set(Outcome) - {Outcome.ANSWERED}


def test_a_run_is_told_by_what_its_questions_are_about(database_url):
    with study(database_url, n_examples=4, points=(5, -3), models=MODELS) as small:
        add_cases(small, 3)
        specs = [judging(), judging(of_models=MODELS[:1], n_repeats=2), responding(n_samples=2), triage(n_samples=5)]
        numbers = [begun(small, spec) for spec in specs]
        with reading(small.engine) as session:
            about = [subject(session, number) for number in numbers]
    # 4 examples with an answer of each of 2 models; 3 cases in 2 formats.
    assert about == [Subject(4, 8, 2), Subject(4, 4, 1), Subject(4, 0, 0), Subject(3, 0, 0)]
    assert [asked_words(spec, one) for spec, one in zip(specs, about, strict=True)] == [
        "Verdicts of judge Magpie on 8 responses of 2 models",
        "Verdicts of judge Magpie on 4 responses of 1 model, 2 times each",
        "Answers of Magpie to 4 conversations, 2 samples each",
        "Answers of Magpie to 3 cases, both formats, 5 samples each",
    ]


def test_failures_are_read_by_kind(database_url):
    def says(number, _request):
        return Outcome.REFUSED if number == 1 else UNREADABLE if number in (2, 3, 4) else MET

    with study(database_url, n_examples=4, points=(5,)) as small:
        run_id = begun(small, judging(), concurrency=1)
        worked(small, run_id, client=Scripted(says))
        with reading(small.engine) as session:
            by_kind = {kind: list(queries.failures(session, run_id, outcomes=[kind])["outcome"]) for kind in Outcome}
            assert list(queries.failures(session, run_id)["outcome"]) == [Outcome.REFUSED, Outcome.UNREADABLE]
    found = {Outcome.REFUSED: [Outcome.REFUSED], Outcome.UNREADABLE: [Outcome.UNREADABLE]}
    assert by_kind == {kind: [] for kind in Outcome} | found


def test_dollars_and_durations_are_told_in_round_figures():
    amounts = (1234.5, 0.01234, 0.0, 0.00001, None)
    assert [dollars(amount) for amount in amounts] == [
        "$1,234.50",
        "$0.0123",
        "$0",
        "under $0.0001",
        "unknown: no prices",
    ]
    assert [duration(seconds) for seconds in (0.2, 89, 100, 3 * 3600 + 240)] == ["1 s", "89 s", "2 min", "3 h 4 min"]
