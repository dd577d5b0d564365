"""A run is gone on with: after a typing error, after an upgrade, after its last answer, and beside others."""

import asyncio
import threading
from dataclasses import replace

import pytest

from evalcore.errors import RunRefused
from evalcore.runs import acts, asking, worker
from evalcore.runs.acts import retry
from evalcore.runs.asking import Stop
from evalcore.study.schema import PARSER, RULES, Administrator, Outcome, RunState
from tests.run_steps import MET, Scripted
from tests.run_world import add_cases, begun, done, judging, study, triage, worked


def test_a_name_is_free_after_a_typing_error_that_brought_no_answer(small_run):
    mistyped = judging(model={"api_model": "magpie-typo"})
    ended = done(small_run, mistyped, client=Scripted(lambda _n, _request: Outcome.REJECTED))
    assert (ended.n_failed, ended.n_answered) == (6, 0)
    assert done(small_run, judging(), client=Scripted()).n_answered == 6
    with pytest.raises(RunRefused, match="'Magpie' was asked otherwise in run 2"):
        begun(small_run, mistyped)


def test_failures_that_cannot_be_asked_again_stay_as_they_are(quick_run, monkeypatch):
    run_id = begun(quick_run, judging())
    worked(quick_run, run_id, client=Scripted(lambda _n, _request: Outcome.REFUSED))
    with monkeypatch.context() as newer:
        newer.setattr(acts, "prompt_version", lambda _spec: "judge@of-tomorrow")
        with pytest.raises(RunRefused, match="start a new run"):
            retry(quick_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED])
    assert {word for (word,) in quick_run.rows("SELECT outcome FROM run_question")} == {"refused"}
    assert quick_run.one("SELECT state FROM run") == "done"
    retry(quick_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED])
    assert worked(quick_run, run_id, client=Scripted()).n_answered == 6


@pytest.fixture
def cases(sqlite_database_url):
    with study(sqlite_database_url, n_examples=0, models=()) as made:
        add_cases(made, 2)
        yield made


def levels(cases):
    return cases.rows("SELECT r.name FROM verdict v JOIN rater r ON r.id = v.rater_id ORDER BY r.name")


def test_levels_that_a_killed_process_did_not_read_are_read_when_the_run_is_gone_on_with(cases, monkeypatch):
    run_id = begun(cases, triage())
    with monkeypatch.context() as killed:
        killed.setattr(worker, "read_levels", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            worked(cases, run_id, client=Scripted("See a doctor tomorrow. Level: B"))
    assert (cases.one("SELECT state FROM run"), levels(cases)) == ("done", [])
    ended = worked(cases, run_id, client=Scripted())
    assert (ended.state, ended.outcomes, ended.levels.n_read) == (RunState.DONE, {}, 4)
    assert levels(cases) == sorted([(PARSER,), (RULES,)] * 2)
    assert worked(cases, run_id, client=Scripted()).levels.n_read == 0


def test_the_second_press_does_not_wait_for_levels_either(cases, monkeypatch):
    run_id, halt, read = begun(cases, triage()), Stop(), worker.read_levels

    def pressed(*told, **more):
        halt.now()
        return read(*told, **more)

    with monkeypatch.context() as reading:
        reading.setattr(worker, "read_levels", pressed)
        ended = worked(cases, run_id, client=Scripted("See a doctor tomorrow. Level: B"), stop=halt)
    assert (ended.n_answered, ended.levels, levels(cases)) == (4, None, [])
    assert worked(cases, run_id, client=Scripted()).levels.n_read == 4


class Slow(Scripted):
    """Answers slower than a worker says that it lives."""

    async def ask(self, request):
        await asyncio.sleep(0.01)
        return await super().ask(request)


def test_progress_counts_what_others_ask_and_once_what_is_asked_again(larger_run, monkeypatch):
    monkeypatch.setattr(asking, "BEAT_SECONDS", 0.005)
    monkeypatch.setattr(asking, "SUM_SHARE", 0)
    monkeypatch.setattr(asking, "SAVE_SECONDS", 0.001)
    run_id = begun(larger_run, judging(), concurrency=1)
    told = []

    def beside(act):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join(20)

    def says(number, _request):
        if number <= 5:
            return Outcome.REFUSED
        if number == 10:  # another process asks what this one does not hold
            beside(lambda: worked(larger_run, run_id, client=Scripted()))
        if number == 15:
            beside(
                lambda: retry(
                    larger_run.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED]
                )
            )
        return MET

    ended = worked(larger_run, run_id, client=Slow(says), progress=told.append)
    assert (ended.state, ended.n_left) == (RunState.DONE, 0)
    assert ended.n_answered < 60
    assert all(0 <= at.n_open <= at.n_questions for at in told)
    last = replace(told[-1], rate=0.0, n_workers=0)
    assert (last.n_asked, last.n_failed) == (60, 0)
