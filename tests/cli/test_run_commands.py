"""Models and judges are asked by the command line: what comes of it, what is said of it, and how it ends."""

import json
import re

import pytest
from hypothesis import given, strategies as st

from evalcore.cli import run_at_console
from evalcore.runs import item_queries, summary
from evalcore.runs.prompts import Asker
from evalcore.study.db import reading
from evalcore.study.schema import STREAK
from tests.judge_server import Fault, Faults
from tests.judge_server.rule import drawn
from tests.run_commands import everything, models_file, pressing
from tests.run_world import judging, keys, study

JSON_KEYS = {
    "run", "state", "reason", "outcomes", "n_calls", "prompt_tokens", "completion_tokens", "cost", "n_left", "n_held", "n_there", "n_lost", "levels",
    "interrupted", "whole",
}  # fmt: skip
DRY_KEYS = {
    "n_all", "n_there", "n_failed", "n_missing", "prompt_tokens", "completion_tokens", "cost", "seconds", "seconds_each", "n_before",
}  # fmt: skip


@pytest.fixture
def small(database_url):
    with study(database_url, n_examples=3, points=(5, -3)) as made:
        yield made


# ---------------------------------------------------------------- answers and verdicts


def test_a_judge_is_asked_for_every_verdict_and_each_is_what_it_said(overread, small, judge):
    models_file(overread.folder, judge.base_url)
    said = overread.good("judge", "--judge", "Magpie", "--db", small.url)
    assert said.startswith("Run 1: 6 answered, 0 failed.\nRun 1 as a whole: 6 of 6 answered; ")
    labels = small.rows(
        "SELECT q.id, v.label, r.name FROM run_question q JOIN verdict v ON v.response_id = q.response_id "
        "AND v.criterion_id = q.criterion_id JOIN rater r ON r.id = v.rater_id"
    )
    expected = {number: "met" if drawn(3, key, "met") < 0.5 else "not_met" for number, key in keys(small, 1).items()}
    assert {row[0]: row[1] for row in labels} == expected
    assert {row[2] for row in labels} == {"Magpie"}
    assert set(judge.told.asked.values()) == {1}


def test_a_model_is_asked_for_samples_of_its_answers(asked, quick_run, judge):
    judge.told.keep = True
    found = json.loads(asked("respond", "--model", "Magpie", "--samples", "2", "--temperature", "0.5", "--json"))
    assert set(found) == JSON_KEYS
    tokens = judge.told.prompt_tokens, judge.told.completion_tokens
    assert (found["prompt_tokens"], found["completion_tokens"]) == tokens
    assert found["cost"] == pytest.approx((tokens[0] * 1.0 + tokens[1] * 4.0) / 1_000_000)
    assert (found["state"], found["reason"], found["outcomes"]["answered"], found["interrupted"]) == (
        "done", None, 6, False,
    )  # fmt: skip
    assert found["whole"] == {"n_questions": 6, "n_answered": 6, "n_failed": 0, "n_open": 0, "n_cut_off": 0}
    rows = quick_run.rows(
        "SELECT r.example_id, r.sample_index FROM response r JOIN model m ON m.id = r.model_id WHERE m.name = 'Magpie'"
    )
    assert sorted(rows) == [(example, sample) for example in quick_run.examples for sample in range(2)]
    assert {(body["model"], body["temperature"]) for body in judge.told.bodies} == {("magpie-1", 0.5)}


def test_the_responses_of_some_models_of_the_demo_study_are_judged(overread, sqlite_demo_url, judge):
    models_file(overread.folder, judge.base_url)
    told = ("judge", "--judge", "Magpie", "--models", "Alder-2, Briar-1", "--dataset", "overread-demo")
    done = overread(*told, "--concurrency", "100", "--json", "--db", sqlite_demo_url)
    assert done.returncode == 0, done.stderr  # which tells how far it is, on a busy machine
    found = json.loads(done.stdout)
    scores = json.loads(overread.good("runs", "--json", "--db", sqlite_demo_url))
    each = {}
    for model in ("Alder-2", "Briar-1"):
        options = ("--judge", "Magpie", "--models", model, "--dataset", "overread-demo", "--dry-run", "--json")
        planned = json.loads(overread.good("judge", *options, "--db", sqlite_demo_url))
        each[model] = planned["n_all"]
        assert planned["n_there"] == planned["n_all"] > 0
    assert found["outcomes"]["answered"] == sum(each.values()) == scores[0]["n_answered"] == judge.told.n_asked


def test_each_repeat_is_a_rater_and_a_confidence_keeps_its_meaning(asked, quick_run):
    asked("judge", "--judge", "Magpie", "--repeat", "2", "--confidence", "--no-points")
    version = judging(with_points=False, with_confidence=True).prompt_version
    rows = quick_run.rows(
        "SELECT r.prompt_version, count(v.confidence) FROM verdict v JOIN rater r ON r.id = v.rater_id GROUP BY r.prompt_version"
    )
    assert dict(rows) == {version: 6, f"{version}#2": 6}
    assert quick_run.rows("SELECT judge, meaning FROM judge_confidence") == [("Magpie", "right")]


def test_without_confidence_none_is_asked_for(asked, quick_run):
    asked("judge", "--judge", "Magpie")
    assert quick_run.one("SELECT count(confidence) FROM verdict") == 0
    assert quick_run.rows("SELECT * FROM judge_confidence") == []


# ---------------------------------------------------------------- dry run


def test_a_dry_run_says_what_would_be_asked_and_writes_nothing(asked, quick_run, judge):
    before = everything(quick_run)
    found = json.loads(asked("judge", "--judge", "Magpie", "--dry-run", "--json"))
    assert set(found) == DRY_KEYS
    spec = judging(judge.base_url)
    with reading(quick_run.engine) as session:
        questions = item_queries.drawn(session, spec, 100)
        prepared = Asker(spec).prepared(session, questions)
    sent = sum(len(message.content) for one in prepared for message in Asker(spec).request(one).messages)
    assert found["n_all"] == found["n_missing"] == 3 * 2
    assert found["prompt_tokens"] == pytest.approx(sent / 4, rel=0.01)  # a token for four characters
    assert found["completion_tokens"] == 6 * 120
    assert found["cost"] == pytest.approx((found["prompt_tokens"] * 1.0 + 6 * 120 * 4.0) / 1_000_000)
    assert (found["seconds"], found["seconds_each"], found["n_before"]) == (None, None, 0)
    table = asked("judge", "--judge", "Magpie", "--dry-run")
    assert "Magpie judges invented (dry run)" in table
    assert re.search(r"to ask +6 *\n", table)
    assert f"{found['prompt_tokens']:,} in, 720 out (by the lengths of texts)" in table
    assert re.search(r"time +unknown: nobody has asked it yet", table)
    assert (everything(quick_run), judge.told.n_asked) == (before, 0)


def test_a_dry_run_counts_what_is_there_and_expects_what_was_seen(asked, overread, judge):
    models_file(overread.folder, judge.base_url, price_out=None)
    asked("judge", "--judge", "Magpie", "--limit", "2")
    found = json.loads(asked("judge", "--judge", "Magpie", "--dry-run", "--json", "--concurrency", "4"))
    assert (found["n_all"], found["n_there"], found["n_missing"], found["n_before"]) == (6, 2, 4, 2)
    assert found["prompt_tokens"] == round(4 * judge.told.prompt_tokens / 2)
    assert found["cost"] is None
    assert found["seconds"] == pytest.approx(found["seconds_each"] * 4 / 4)
    table = asked("judge", "--judge", "Magpie", "--dry-run", "--concurrency", "4")
    assert re.search(r"cost +unknown: no prices", table)
    assert "4 questions at once" in table
    assert "(as 2 questions before)" in table


# ---------------------------------------------------------------- limits, and going on


def test_a_run_goes_on_where_a_limit_ended_it(asked, quick_run, judge):
    for told, whole in ((("--limit", "2"), 2), (("--limit", "2"), 2), ((), 6), ((), 6)):
        asked("judge", "--judge", "Magpie", *told)
        assert quick_run.one("SELECT count(*) FROM verdict") == whole
    assert asked("judge", "--judge", "Magpie").startswith("Nothing is left to ask.\n")
    assert set(judge.told.asked.values()) == {1}


def test_a_run_stops_before_it_costs_too_much_and_goes_on_with_more(asked, quick_run, judge):
    (one,) = (json.loads(asked("judge", "--judge", "Magpie", "--limit", "1", "--json"))["cost"],)
    most = 2.5 * one  # questions cost about the same: two can be paid, three cannot
    done = asked.ended("judge", "--judge", "Magpie", "--max-cost", str(most), "--concurrency", "1")
    assert done.returncode == 1
    assert done.stderr == (
        f"Run 2 stopped: the next question would bring the cost above {most:g} US dollars. Saved: 2 of 5 answers. "
        "Resume with the same command, with a higher --max-cost.\n"
    )
    assert quick_run.one("SELECT sum(cost) FROM run_call WHERE run_id = 2") <= most
    assert quick_run.rows("SELECT state FROM run WHERE id = 2") == [("stopped",)]
    asked("judge", "--judge", "Magpie", "--max-cost", str(20 * one))
    assert quick_run.one("SELECT count(*) FROM verdict") == 6 == judge.told.n_asked


def test_failures_in_a_row_stop_a_run_with_a_sentence(overread, sqlite_database_url, judge):
    judge.told.faults = Faults.alone(Fault.BAD_REQUEST)
    models_file(overread.folder, judge.base_url)
    with study(sqlite_database_url, n_examples=STREAK, points=(5, -3)) as larger:
        done = overread("judge", "--judge", "Magpie", "--concurrency", "1", "--json", "--db", larger.url)
    assert done.returncode == 1
    assert f"Run 1 stopped: {STREAK} questions in a row failed, the last one: the server answered 400" in done.stderr
    found = json.loads(done.stdout)
    assert found["state"] == "stopped"
    assert found["outcomes"]["rejected"] == found["whole"]["n_failed"] == STREAK
    assert found["whole"]["n_open"] == 2 * STREAK - STREAK


def test_a_run_with_failures_ends_well_and_says_how_to_see_them(asked, judge):
    judge.told.faults = Faults.alone(Fault.REFUSAL)
    said = asked("judge", "--judge", "Magpie")
    assert "Run 1: 0 answered, 6 failed (refused 6)." in said
    assert "`overread runs --failures 1` shows what failed, `overread runs --retry 1` asks it again." in said


# ---------------------------------------------------------------- Ctrl-C


def test_ctrl_c_finishes_what_is_in_flight(asked, quick_run, judge, monkeypatch):
    judge.told.delay = 1.0
    with pressing(monkeypatch, lambda: judge.told.in_flight == 2):
        done = asked.ended("judge", "--judge", "Magpie", "--concurrency", "2")
    assert done.returncode == 130
    assert done.stderr == (
        "finishing 2 in flight (Ctrl-C again to stop at once)\n"
        "Run 1 stopped: interrupted. Saved: 2 of 6 answers. Resume with the same command.\n"
    )
    assert quick_run.one("SELECT count(*) FROM verdict") == 2 == judge.told.n_asked
    judge.told.delay = 0.0
    asked("judge", "--judge", "Magpie")
    assert quick_run.one("SELECT count(*) FROM verdict") == 6 == judge.told.n_asked


def test_ctrl_c_twice_stops_at_once(asked, quick_run, judge, monkeypatch):
    judge.told.delay = 50.0
    with pressing(monkeypatch, lambda: judge.told.in_flight == 2, lambda: True):
        done = asked.ended("judge", "--judge", "Magpie", "--concurrency", "2", "--json")
    assert done.returncode == 130
    assert "Run 1 stopped: interrupted. Saved: 0 of 6 answers. Resume with the same command.\n" in done.stderr
    found = json.loads(done.stdout)
    assert (found["interrupted"], found["n_left"], found["n_held"], found["state"]) == (True, 6, 0, "stopped")
    assert quick_run.rows("SELECT * FROM verdict") == []


def test_where_nobody_watches_progress_comes_as_lines(asked, monkeypatch):
    monkeypatch.setattr(run_at_console, "LINE_SECONDS", 0.0)
    lines = asked.ended("judge", "--judge", "Magpie").stderr.splitlines()
    assert lines[0] == "Magpie judges invented: 0 of 6 answered · 0 failed · 0.0 a second · $0"
    assert re.fullmatch(
        r"Magpie judges invented: 6 of 6 answered · 0 failed · [0-9.,]+ a second · \$0\.00\d\d", lines[-1]
    )


# ---------------------------------------------------------------- words


@given(text=st.text())
def test_words_of_a_server_are_one_line_that_no_terminal_obeys(text):
    shown = run_at_console.printable(text)
    assert shown.isprintable()
    assert len(shown) <= len(text)
    if text.isprintable():
        assert shown == " ".join(text.split())


@given(cost=st.floats(1e-4, 1e6))
def test_a_cost_is_shown_to_the_cent_or_to_four_places(cost):
    shown = float(summary.dollars(cost).removeprefix("$").replace(",", ""))
    assert abs(shown - cost) <= (0.005 if cost >= 1 else 0.00005) * 1.0001


@given(seconds=st.floats(0, 1e6))
def test_a_duration_is_off_by_half_a_minute_at_most(seconds):
    units = {"h": 3600, "min": 60, "s": 1}
    parts = summary.duration(seconds).replace(",", "").split()
    shown = sum(int(number) * units[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True))
    assert abs(shown - seconds) <= (1 if seconds < 90 else 30)
