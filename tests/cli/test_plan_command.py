"""`overread plan`: what it says, what it draws, what it assigns."""

import json

import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli.planning import plan
from evalcore.errors import OverreadError
from evalcore.reading import assignment_queries
from evalcore.rubric import queries as rubric_queries
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Ask, Claim, Physicians
from tests import world
from tests.population import corrected_differences, corrected_scores

BRIAR = ("--target", "score:Briar-1:0.028", "--claim", "benchmark", "--physicians", "these")

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
        found = int(assignment_queries.assignments(session)["ask"].eq(Ask.RUBRIC).sum())
    engine.dispose()
    return found


def test_json_holds_the_documented_fields(run):
    said = json.loads(run(*BRIAR, "--json"))
    assert set(said) == {
        "target", "basis", "n_pilot", "correlation", "share_wrong", "n_responses", "n_items", "n_responses_read", "n_items_read",
        "n_responses_waiting", "half_width_now", "half_width_all", "seconds_each", "disagreement", "designs", "sentences", "why_claim", "claims",
        "n_readers", "n_readers_needed", "components", "next", "options", "detectable",
    }  # fmt: skip
    assert said["target"] == {
        "goal": "score", "within": 0.028, "models": ["Briar-1"], "judges": ["Magpie"], "evaluation": "overread-demo", "claim": "benchmark",
        "physicians": "these", "power": None,
    }  # fmt: skip
    assert [row["design"] for row in said["designs"]] == ["uniform", "importance"]
    for row in said["designs"]:
        assert set(row) == {
            "design", "reachable", "n_units", "n_responses", "n_items", "half_width", "n_same", "half_width_same", "hours",
        }  # fmt: skip
        assert row["half_width"] <= 0.028
        assert row["hours"] is None  # imported reads were not timed
    assert (said["basis"], said["seconds_each"], said["why_claim"], said["detectable"]) == ("drawn", None, "", None)
    assert 0 < said["half_width_all"] < 0.028  # one or two of six read each response
    assert [(row["claim"], row["physicians"]) for row in said["claims"]] == [
        (claim, who) for claim in ("benchmark", "new_examples") for who in ("these", "in_general")
    ]
    assert said["n_readers"] == len(said["components"]["loads"]) == 6
    assert [row["option"] for row in said["options"]] == ["now", "more_responses", "more_readers", "second_reads"]
    assert said["n_responses_read"] + said["n_responses_waiting"] < said["n_responses"] == 30
    assert any("No reading has been timed yet" in sentence for sentence in said["sentences"])


def test_it_says_in_words_how_much_has_to_be_read_and_changes_nothing(run):
    said = run(*BRIAR)
    assert "Then Briar-1's corrected score is known within ±0.028 on this benchmark, for these physicians." in said
    assert "Physicians have to read 2 further responses (" in said
    assert "criteria that were drawn and read blind" in said
    assert n_assignments(run) == 1  # the demo's own


def test_without_a_claim_the_plan_takes_the_widest_that_the_reads_carry_and_says_so(run):
    said = json.loads(run("--target", "score:Briar-1:0.05", "--json"))
    assert (said["target"]["claim"], said["target"]["physicians"]) == ("new_examples", "in_general")
    assert said["why_claim"].endswith("effective readers: the interval holds for physicians in general.")
    assert said["sentences"][0].startswith(
        "Reading alone will not do: with every response read, the 95 % interval of Briar-1's corrected score on new examples too, for physicians in general"
    )
    # what is expected of the reads so far is what the scores have, for every claim (it was 2.2 times as wide)
    engine = engine_of(run)
    with reading(engine) as session:
        known = rubric_queries.load(session)
    engine.dispose()
    for row in said["claims"]:
        found = (
            corrected_scores(
                known, judges=["Magpie"], claim=Claim(row["claim"]), physicians=Physicians(row["physicians"])
            )
            .set_index("model")
            .loc["Briar-1"]
        )
        half = (found["corrected_high"] - found["corrected_low"]) / 2
        assert 0.6 < row["half_width_now"] / half < 1.6


def test_the_width_that_is_expected_of_a_difference_is_the_one_that_it_has(run):
    # each model by its own regression, as the scores are: by one for both it was 2.5 times as wide
    claims = json.loads(run("--target", "difference:Alder-2:Briar-1:0.05", "--json"))["claims"]
    engine = engine_of(run)
    with reading(engine) as session:
        known = rubric_queries.load(session)
    engine.dispose()
    for row in claims:
        pairs = corrected_differences(
            known, judges=["Magpie"], claim=Claim(row["claim"]), physicians=Physicians(row["physicians"])
        ).set_index(["model_1", "model_2"])
        found = pairs.loc["Alder-2", "Briar-1"]
        assert 0.6 < row["half_width_now"] / ((found["high"] - found["low"]) / 2) < 1.6


def test_a_difference_with_power_says_what_it_takes_and_what_is_found_already(run):
    said = json.loads(run("--target", "difference:Alder-2:Briar-1:0.3", "--power", 0.8, "--json"))
    assert said["target"]["power"] == 0.8
    assert said["detectable"] == pytest.approx(said["half_width_now"] * (1.959964 + 0.841621) / 1.959964)
    assert any("would be found with 80 % power" in sentence for sentence in said["sentences"])
    with pytest.raises(OverreadError, match="power: expected a difference of two models as the target, got score"):
        run("--target", "score:Briar-1:0.05", "--power", 0.8)
    with pytest.raises(OverreadError, match=r"power: expected more than 0\.5 and less than 1, got 80"):
        run("--target", "difference:Alder-2:Briar-1:0.3", "--power", 80)


def test_a_judges_error_rate_says_how_often_it_was_wrong(run):
    said = json.loads(run("--target", "judge-error:0.03", "--judges", "Wren", "--json"))
    assert said["target"]["judges"] == ["Wren"]
    assert 0 < said["share_wrong"] < 0.5
    assert said["n_items"] < 1092 / 2  # Wren has labelled a third


def test_what_is_drawn_is_written_with_its_probabilities(run, tmp_path):
    said = json.loads(run(*BRIAR, "--draw", tmp_path / "plan.csv", "--responses", 3, "--seed", 5, "--json"))
    assert said["drawn"]["n_responses"] == 3
    assert (said["drawn"]["design"], said["drawn"]["seed"]) == ("importance", 5)
    lines = (tmp_path / "plan.csv").read_text().splitlines()
    assert lines[0] == "prompt_id,model,sample_index,dataset,inclusion_probability"
    assert len(lines) == 4
    assert all(",Briar-1,0,overread-demo,0." in line for line in lines[1:])
    assert n_assignments(run) == 1
    run(*BRIAR, "--draw", tmp_path / "again.csv", "--responses", 3, "--seed", 5)
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "plan.csv").read_text()


def test_what_is_drawn_is_assigned_and_a_dry_run_assigns_nothing(run):
    arguments = (*BRIAR, "--design", "uniform", "--assign", "--readers", 1, "--seed", 5)
    dry = json.loads(run(*arguments, "--dry-run", "--json"))
    assert dry["assigned"]["assignment_id"] is None
    assert n_assignments(run) == 1
    said = json.loads(run(*arguments, "--json"))
    assert said["drawn"]["n_responses"] == said["designs"][0]["n_responses"] == said["assigned"]["n_items"]
    engine = engine_of(run)
    with reading(engine) as session:
        row = assignment_queries.assignments(session).iloc[0]
    engine.dispose()
    assert (row["assignment_id"], row["ask"]) == (said["assigned"]["assignment_id"], Ask.RUBRIC)
    assert (row["seed"], row["n_readers"], row["selection"]) == (5, 1, "random")
    assert row["n_tasks"] == said["drawn"]["n_responses"]
    assert row["n_population"] == said["drawn"]["n_population"]
    # what was assigned waits, and nothing more is needed
    after = json.loads(run(*BRIAR, "--json"))
    assert after["designs"][0]["n_units"] == 0
    assert "Nothing more has to be read" in after["sentences"][0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "score:Nobody:0.03"], "models: expected some of Alder-2, Briar-1, Clover-mini, got 'Nobody'"),
        ([*BRIAR, "--draw", "x.csv", "--design", "bold"], "--design: expected one of uniform, importance, got 'bold'"),
        (["--target", "score:Briar-1:0.4", "--assign"], "Nothing more has to be read for this, so nothing was drawn"),
        ([*BRIAR, "--assign", "--responses", "99"], "responses: expected 1 to"),
        (
            [*BRIAR, "--assign", "--reader", "Dr. Nobody"],
            "readers: expected reviewers or adjudicators of this study: .*, got Dr. Nobody",
        ),
    ],
)
def test_a_wrong_wish_is_one_sentence_and_assigns_nothing(run, arguments, sentence):
    with pytest.raises(OverreadError, match=sentence):
        run(*arguments)
    assert n_assignments(run) == 1
