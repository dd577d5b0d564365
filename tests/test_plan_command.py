"""`overread plan`: what it says, what it draws, what it assigns."""

import json

import pytest
import typer
from typer.testing import CliRunner

from evalcore.db import open_study, reading
from evalcore.errors import OverreadError
from evalcore.planning_commands import plan
from evalcore.queries import tasks
from evalcore.schema import Ask
from tests import world

app = typer.Typer()
app.command()(plan)


@pytest.fixture
def run(demo_file, tmp_path):
    path = world.copy_of(demo_file, tmp_path / "study.db")

    def runs(*arguments):
        done = CliRunner().invoke(app, [*map(str, arguments), "--db", str(path)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    runs.path = path
    return runs


def engine_of(run):
    return open_study(str(run.path))


def n_assignments(run):
    engine = engine_of(run)
    with reading(engine) as session:
        found = int(tasks.assignments(session)["ask"].eq(Ask.RUBRIC).sum())
    engine.dispose()
    return found


def test_json_holds_the_documented_fields(run):
    said = json.loads(run("--target", "score:Briar-1:0.01", "--json"))
    assert set(said) == {
        "target", "basis", "n_pilot", "correlation", "share_wrong", "n_responses", "n_items", "n_responses_read", "n_items_read",
        "n_responses_waiting", "half_width_now", "half_width_all", "seconds_each", "disagreement", "designs", "sentences",
    }  # fmt: skip
    assert said["target"] == {
        "goal": "score", "within": 0.01, "models": ["Briar-1"], "judges": ["Magpie"], "evaluation": "overread-demo",
    }  # fmt: skip
    assert [row["design"] for row in said["designs"]] == ["uniform", "importance"]
    for row in said["designs"]:
        assert set(row) == {
            "design", "reachable", "n_units", "n_responses", "n_items", "half_width", "n_same", "half_width_same", "hours",
        }  # fmt: skip
        assert row["half_width"] <= 0.01
        assert row["hours"] is None  # imported reads were not timed
    assert (said["basis"], said["half_width_all"], said["seconds_each"]) == ("drawn", 0, None)
    assert said["n_responses_read"] + said["n_responses_waiting"] < said["n_responses"] == 30
    assert any("No reading has been timed yet" in sentence for sentence in said["sentences"])


def test_it_says_in_words_how_much_has_to_be_read_and_changes_nothing(run):
    said = run("--target", "score:Briar-1:0.01")
    assert "To know Briar-1's corrected score within ±0.010, physicians have to read" in said
    assert "drawn with equal chances, or" in said
    assert "drawn by importance." in said
    assert "criteria that were drawn and read blind" in said
    assert n_assignments(run) == 1  # the demo's own


def test_a_judges_error_rate_says_how_often_it_was_wrong(run):
    said = json.loads(run("--target", "judge-error:0.03", "--judges", "Wren", "--json"))
    assert said["target"]["judges"] == ["Wren"]
    assert 0 < said["share_wrong"] < 0.5
    assert said["n_items"] < 1092 / 2  # Wren has labelled a third


def test_what_is_drawn_is_written_with_its_probabilities(run, tmp_path):
    said = json.loads(
        run("--target", "score:Briar-1:0.01", "--draw", tmp_path / "plan.csv", "--responses", 3, "--seed", 5, "--json")
    )
    assert said["drawn"]["n_responses"] == 3
    assert (said["drawn"]["design"], said["drawn"]["seed"]) == ("importance", 5)
    lines = (tmp_path / "plan.csv").read_text().splitlines()
    assert lines[0] == "prompt_id,model,sample_index,dataset,inclusion_probability"
    assert len(lines) == 4
    assert all(",Briar-1,0,overread-demo,0." in line for line in lines[1:])
    assert n_assignments(run) == 1
    run("--target", "score:Briar-1:0.01", "--draw", tmp_path / "again.csv", "--responses", 3, "--seed", 5)
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "plan.csv").read_text()


def test_what_is_drawn_is_assigned_and_a_dry_run_assigns_nothing(run):
    arguments = ("--target", "score:Briar-1:0.01", "--design", "uniform", "--assign", "--readers", 1, "--seed", 5)
    dry = json.loads(run(*arguments, "--dry-run", "--json"))
    assert dry["assigned"]["assignment_id"] is None
    assert n_assignments(run) == 1
    said = json.loads(run(*arguments, "--json"))
    assert said["drawn"]["n_responses"] == said["designs"][0]["n_responses"] == said["assigned"]["n_items"]
    engine = engine_of(run)
    with reading(engine) as session:
        row = tasks.assignments(session).iloc[0]
    engine.dispose()
    assert (row["assignment_id"], row["ask"]) == (said["assigned"]["assignment_id"], Ask.RUBRIC)
    assert (row["seed"], row["n_readers"], row["selection"]) == (5, 1, "random")
    assert row["n_tasks"] == said["drawn"]["n_responses"]
    assert row["n_population"] == said["drawn"]["n_population"]
    # what was assigned waits, and nothing more is needed
    after = json.loads(run("--target", "score:Briar-1:0.01", "--json"))
    assert after["designs"][0]["n_units"] == 0
    assert "Nothing more has to be read" in after["sentences"][0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "score:Nobody:0.03"], "models: 'Nobody' came, expected some of Alder-2, Briar-1, Clover-mini"),
        (["--target", "score:Briar-1:0.01", "--draw", "x.csv", "--design", "bold"], "--design: 'bold' came"),
        (["--target", "score:Briar-1:0.4", "--assign"], "Nothing more has to be read for this, so nothing was drawn"),
        (["--target", "score:Briar-1:0.01", "--assign", "--responses", "99"], "responses: 99 came, expected 1 to"),
        (["--target", "score:Briar-1:0.01", "--assign", "--reader", "Dr. Nobody"], "readers: Dr. Nobody came"),
    ],
)
def test_a_wrong_wish_is_one_sentence_and_assigns_nothing(run, arguments, sentence):
    with pytest.raises(OverreadError, match=sentence):
        run(*arguments)
    assert n_assignments(run) == 1
