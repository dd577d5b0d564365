"""Assigning and the guideline by the command line."""

import hashlib
import json

import pytest

from evalcore.reading import assignment_queries, reviewing
from evalcore.study import contents
from evalcore.study.db import reading
from evalcore.study.schema import Label
from tests import world
from tests.commands import Run

IMANI, TOVE = "Dr. Imani Noor", "Dr. Tove Lind"


@pytest.fixture
def small(tmp_path):
    made = world.made(str(tmp_path / "study.db"))  # two conversations with one response each, two reviewers, a lead
    yield made
    made.engine.dispose()


@pytest.fixture
def run(small, tmp_path):
    runner = Run(tmp_path)
    return lambda *arguments: runner(*arguments, "--db", runner.db)


def told(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_assigning_says_what_was_drawn_from_what_and_stores_it(run, small):
    said = json.loads(told(run("assign", "--items", "1", "--seed", "3", "--minutes", "30", "--json")))
    assert (said["n_items"], said["n_population"], said["seed"]) == (1, 2, 3)
    assert said["readers"] == ["Dr. Imani Noor", "Dr. Tove Lind"]
    with reading(small.engine) as session:
        (row,) = assignment_queries.assignments(session).to_dict(orient="records")
    asked = reviewing.take(small.engine, small.viewer()).asked
    assert (row["n_tasks"], row["n_readers"], row["seed"]) == (1, 2, 3)
    assert (asked.inclusion_probability, asked.reserve_minutes, asked.selection) == (1 / 2, 30, "random")


@pytest.mark.parametrize(
    ("options", "drawn"),
    [
        (["--label", "met"], {1, 2}),
        (["--label", "not_met", "--points-to", "-1"], {1}),
        (["--label", "not_met", "--points-from", "1"], {2}),
        (["--judge", "Wren"], {2}),
        (["--judges-differ"], {2}),
        (["--points-from", "4", "--points-to", "6"], {2}),
        (["--label", "met", "--points-to", "-1"], set()),  # each is there, but not on one criterion
        (["--judge", "Wren", "--label", "met"], set()),
        (["--judge", "Owl"], set()),
    ],
)
def test_filters_on_criteria_and_verdicts_hold_on_one_and_the_same_criterion(run, small, options, drawn):
    """The judge: met on 7 points and not met on -4 in the first response, met on 5 and on 3 in the second. Wren: not met on the 3."""
    world.judged(small, "Wren", Label.NOT_MET, example=1, criterion=1)
    done = run("assign", *options)
    assert {example for (example,) in world.rows(small.engine, "SELECT example_id FROM task")} == drawn
    assert done.returncode == (0 if drawn else 1)
    assert drawn or "Nothing is left to assign: no item fits." in done.stderr


def test_the_record_keeps_the_filters_on_verdicts(run, small):
    told(run("assign", "--judge", world.JUDGE, "--label", "not_met", "--points-to", "-1"))
    ((chosen_by,),) = world.rows(small.engine, "SELECT chosen_by FROM assignment")
    assert json.loads(chosen_by) == {"judge": world.JUDGE, "label": "not_met", "points_to": -1}


def test_a_dry_run_assigns_nothing(run, small):
    assert "Nothing was changed." in told(run("assign", "--dry-run"))
    assert world.count(small.engine, "assignment") == 0


def test_a_plan_brings_its_own_probabilities(run, small, tmp_path):
    plan = tmp_path / "plan.csv"
    plan.write_text("prompt_id,model,inclusion_probability\nprompt-1,Alder-2,0.25\n")
    told(run("assign", "--plan", plan))
    asked = reviewing.take(small.engine, small.viewer()).asked
    assert (asked.example_id, asked.inclusion_probability, asked.selection) == (2, 0.25, "importance")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ask", "poem"], "--ask: expected one of rubric, response_acuity, gold_acuity, got 'poem'"),
        (["--reads", "sometimes"], "--reads: expected one of overridden, conflicting, read, unread, got 'sometimes'"),
        (["--label", "maybe"], "--label: expected one of met, not_met, cannot_assess, got 'maybe'"),
        (["--readers", "3"], "readers: expected at least 3, as many as read an item, got 2"),
        (
            ["--reader", "Dr. Nobody"],
            "readers: expected reviewers or adjudicators of this study: Dr. Imani Noor, Dr. Tove Lind, got Dr. Nobody",
        ),
        (["--items", "0"], "items: expected at least 1, got 0"),
        (["--theme", "no such theme"], "Nothing is left to assign: no item fits."),
        (["--plan", "no-such-plan.csv"], "no-such-plan.csv: cannot be read"),
    ],
)
def test_a_wrong_wish_is_one_sentence_and_assigns_nothing(run, small, arguments, said):
    done = run("assign", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert said in done.stderr
    assert world.count(small.engine, "assignment") == 0


def test_a_guideline_is_kept_by_version_and_the_newest_is_printed(run, small, tmp_path):
    assert "No guideline yet" in told(run("guideline"))
    for version, text in enumerate(("Read everything.", "Read everything twice."), start=1):
        (tmp_path / "guideline.md").write_text(text)
        assert f"version {version}" in told(run("guideline", tmp_path / "guideline.md"))
    assert told(run("guideline")).strip() == "Read everything twice."
    with reading(small.engine) as session:
        assert contents.guideline(session, 1).text == "Read everything."


def test_an_assignment_is_changed_by_commands(run, small, tmp_path):
    told(run("assign", "--items", "1", "--readers", "1", "--reader", IMANI, "--seed", "3"))
    queue = tmp_path / "queue.json"
    said = told(run("assignments", "freeze", "1", "--file", str(queue)))
    assert hashlib.sha256(queue.read_bytes()).hexdigest() in said.replace("\n", "")
    told(run("assignments", "pause", "1"))
    told(run("assignments", "resume", "1"))
    assert "can take 1 of 1 response" in told(run("assignments", "add-readers", "1", TOVE))
    assert "can take 1 of 1 response" in told(run("assignments", "hand-over", "--from", IMANI, "--to", TOVE))
    assert "Assignment 2." in told(run("assignments", "extend", "1", "--items", "1"))
    assert "0 locked reads stay" in told(run("assignments", "cancel", "2", "--reason", "Enough."))
    listed = json.loads(told(run("assignments", "list", "--json")))
    assert [(one["assignment_id"], one["readers"], one["cancelled_at"] is None) for one in listed["assignments"]] == [
        (2, TOVE, False), (1, TOVE, True),
    ]  # fmt: skip
    assert [(one["reader"], one["n_waiting"], one["days"]) for one in listed["readers"]] == [(TOVE, 1, None)]
    assert "cancelled" in told(run("assignments", "list"))
