"""What runs and ran, by the command line: seen, stopped, gone on with, and its failures tried again."""

import json

import pytest

from evalcore.runs.acts import retry, stop
from evalcore.runs.queries import LIST_COLUMNS
from evalcore.study.schema import Administrator, Outcome
from tests.judge_server import Fault, Faults, judge_server
from tests.run_commands import on_study
from tests.run_steps import MET, Scripted
from tests.run_world import add_cases, begun, judging, study, triage, worked

FAILURE_KEYS = {
    "question_id", "example_id", "prompt_id", "response_id", "model", "criterion_id", "position", "criterion", "format", "sample_index", "repeat",
    "outcome", "status", "error", "reply", "attempts", "n_calls", "n_tries", "at",
}  # fmt: skip


@pytest.fixture
def small(sqlite_database_url):
    """3 responses with 2 criteria each."""
    with study(sqlite_database_url, n_examples=3, points=(5, -3)) as made:
        yield made


@pytest.fixture
def judge():
    with judge_server() as running:
        yield running


@pytest.fixture
def runs(overread, small):
    """Runs `overread runs` on the small study."""
    return on_study(overread, small, "runs")


def failed(small, spec, *outcomes):
    """A run whose first questions ended so, and whose others were answered."""
    run_id = begun(small, spec, concurrency=1)
    worked(small, run_id, client=Scripted(lambda n, _request: outcomes[n - 1] if n <= len(outcomes) else MET))
    return run_id


def test_runs_are_listed_newest_first(runs, small):
    assert runs() == "No runs yet: see `overread judge --help`\n"
    assert json.loads(runs("--json")) == []
    failed(small, judging(limit=3), Outcome.REFUSED)
    stopped = begun(small, judging())
    stop(small.engine, stopped, actor=Administrator(name="Ana Ruiz"))
    found = json.loads(runs("--json"))
    assert [set(row) for row in found] == [set(LIST_COLUMNS)] * 2
    assert [[row[key] for key in ("run_id", "name", "state", "n_questions", "n_answered", "n_failed", "n_open", "reason")] for row in found] == [
        [2, "Magpie", "stopped", 4, 0, 0, 4, "Ana Ruiz stopped it"],  # all but the two that are answered
        [1, "Magpie", "done", 3, 2, 1, 0, None],
    ]  # fmt: skip
    # two answers of 100 tokens in and 10 out, at 1 and 4 US dollars a million
    assert [row["cost"] for row in found] == [None, pytest.approx(2 * (100 * 1.0 + 10 * 4.0) / 1e6)]
    said = runs()
    assert "stopped: Ana Ruiz stopped it" in said
    assert "2 of 3" in said


def test_failures_are_shown_with_what_came(runs, small):
    run_id = failed(small, judging(), Outcome.REFUSED, Outcome.REJECTED)
    found = json.loads(runs("--failures", run_id, "--json"))
    assert [set(row) for row in found] == [FAILURE_KEYS] * 2
    assert [(row["outcome"], row["error"], row["reply"], row["status"]) for row in found] == [
        ("refused", "call 1 failed", "no", 500),
        ("rejected", "call 2 failed", "no", 500),
    ]
    assert (found[0]["response_id"], found[0]["position"], found[0]["model"]) == (small.responses[0], 1, "Alder-2")
    said = runs("--failures", run_id)
    assert "Alder-2, criterion 1" in said
    assert "call 2 failed" in said
    assert runs("--failures", begun(small, judging(with_points=False))) == "Nothing failed in run 2.\n"


def test_failures_of_answers_name_their_format_and_sample_and_long_lists_are_cut(runs, small, monkeypatch):
    monkeypatch.setattr("evalcore.cli.run_at_console.MAX_LINES", 1)
    add_cases(small, 3)
    run_id = failed(small, triage(formats=("qa",), n_samples=2), *[Outcome.REFUSED] * 5)
    said = runs("--failures", run_id)
    assert "qa, sample 1" in said
    assert "and 4 more; --json has all of them" in said
    found = json.loads(runs("--failures", run_id, "--json"))
    assert len({row["question_id"] for row in found}) == len(found) == 5
    assert {(row["format"], row["response_id"], row["criterion"]) for row in found} == {("qa", None, None)}


def test_what_a_server_says_is_shown_without_what_a_terminal_obeys(runs, small):
    run_id = failed(small, judging(limit=1), Outcome.REFUSED)
    with small.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run_call SET error = '[b]red[/b] ' || char(27) || '[31m'")
    assert "[b]red[/b] �[31m" in runs("--failures", run_id)


def test_failures_are_tried_again_here(runs, small, judge):
    judge.told.faults = Faults.alone(Fault.BAD_REQUEST)
    spec = judging(judge.base_url)
    run_id = begun(small, spec)
    assert worked(small, run_id).n_failed == 6
    judge.told.faults = Faults()
    assert "Run 1: nothing to ask again." in runs("--retry", run_id, "--outcome", "refused", "--outcome", "unreadable")
    said = runs("--retry", run_id)
    assert said.startswith("Asked again in run 1: 6 questions.\nRun 1: 6 answered, 0 failed.")
    assert json.loads(runs("--retry", run_id, "--json")) == {"run": 1, "n_retried": 0}
    assert small.one("SELECT count(*) FROM verdict") == 6


def test_only_failures_of_one_kind_are_tried_again(runs, small, judge):
    run_id = failed(small, judging(judge.base_url), Outcome.REFUSED, Outcome.REJECTED)
    found = json.loads(runs("--retry", run_id, "--outcome", "rejected", "--json"))
    assert (found["n_retried"], found["outcomes"]["answered"], found["whole"]["n_failed"]) == (1, 1, 1)
    assert small.progress(run_id).outcomes == {Outcome.ANSWERED: 5, Outcome.REFUSED: 1}
    words = "--outcome: expected some of unreadable, refused, rejected, unreachable, got answered"
    assert runs.bad("--retry", run_id, "--outcome", "answered") == words
    assert runs.bad("--outcome", "refused") == "--outcome: expected it with --retry, got it alone"


def test_a_run_is_stopped_and_gone_on_with(runs, small, judge):
    run_id = begun(small, judging(judge.base_url))
    assert runs("--stop", run_id) == "Run 1 is stopped. Resume with `overread runs --resume 1`.\n"
    done = runs.ended("--work", run_id)
    assert done.returncode == 1
    assert "command line) stopped it. Saved: 0 of 6 answers. Resume with `overread runs --resume 1`." in done.stderr
    assert judge.told.n_asked == 0
    assert "Run 1: 6 answered, 0 failed." in runs("--resume", run_id)
    assert runs("--stop", run_id) == "Run 1 is done.\n"
    assert json.loads(runs("--stop", run_id, "--json")) == {"run": 1, "n_workers": 0}


def test_a_run_that_reached_its_cost_goes_on_with_more(runs, small, judge):
    run_id = begun(small, judging(judge.base_url), concurrency=1, max_cost=0.0001)
    done = runs.ended("--work", run_id)
    assert (done.returncode, judge.told.n_asked) == (1, 0)
    assert "above 0.0001 US dollars" in done.stderr
    assert done.stderr.endswith("Resume with `overread runs --resume 1`, with a higher --max-cost.\n")
    assert runs.ended("--resume", run_id).returncode == 1  # what was said before still counts
    assert json.loads(runs("--resume", run_id, "--max-cost", "1", "--json"))["outcomes"]["answered"] == 6
    assert runs.bad("--max-cost", "1") == "--max-cost: expected it with --resume, got it alone"


def test_a_run_is_worked_on_beside_others(runs, small, judge):
    run_id = begun(small, judging(judge.base_url))
    assert json.loads(runs("--work", run_id, "--json"))["outcomes"]["answered"] == 6


@pytest.mark.parametrize("act", ["--failures", "--retry", "--resume", "--stop", "--work"])
def test_a_run_that_is_not_there_is_named(runs, act):
    assert runs.bad(act, "7") == "run: expected the number of a run, got 7"


def test_one_thing_is_done_at_a_time(runs):
    assert runs.bad("--stop", "1", "--retry", "1") == "expected one of them, got --retry and --stop"


@pytest.mark.parametrize("act", ["--retry", "--resume", "--work"])
def test_without_its_key_a_run_stays_as_it_is(runs, small, judge, act):
    run_id = failed(small, judging(judge.base_url, model={"key_variable": "INVENTED_KEY"}), Outcome.REFUSED)
    retry(small.engine, run_id, actor=Administrator(name="Ana Ruiz"), outcomes=[Outcome.REFUSED])
    before = (
        small.rows("SELECT * FROM run"),
        small.rows("SELECT * FROM run_worker"),
        small.rows("SELECT * FROM audit_event"),
    )
    assert "the environment variable INVENTED_KEY is not set" in runs.bad(act, run_id)
    after = (
        small.rows("SELECT * FROM run"),
        small.rows("SELECT * FROM run_worker"),
        small.rows("SELECT * FROM audit_event"),
    )
    assert after == before
