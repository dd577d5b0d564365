"""The command that reads levels out of responses."""

import json

import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli import judging
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import RULES
from evalcore.triage import queries as triage_queries
from tests.triage_cases import drawn, stored

APP = typer.Typer()
APP.command()(judging.acuity_rules)


def run(*arguments, said=None):
    found = CliRunner().invoke(APP, list(arguments), input=said)
    assert found.exit_code == 0, (found.output, found.exception)
    return found.stdout


@pytest.fixture
def path(tmp_path, rng):
    made = tmp_path / "study.db"
    engine = open_study(str(made))
    with writing(engine) as session:
        stored(session, drawn(rng, n_cases=4, n_samples=2)[0])
    engine.dispose()
    return str(made)


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(7)


def test_a_text_is_shown_with_the_words_that_decided_and_no_study_is_touched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run("--text", "You [b]don't[/b] need the ER. See your GP this week.")
    assert "Recommended: B, a doctor, without hurry, is the main course" in shown
    assert "“See your GP this week”" in shown
    assert "Stated: no level, no level stated" in shown
    assert list(tmp_path.iterdir()) == []


def test_a_text_from_standard_input_as_json():
    found = json.loads(run("--text", "-", "--json", said="Call 911 now.\nACUITY: D\n"))
    assert found["recommended"]["level"] == "D"
    assert found["recommended"]["quotes"] == [{"begin": 0, "end": 12, "words": "Call 911 now"}]
    assert found["recommended"]["language"] is None
    assert found["stated"] == {"level": "D", "words": "ACUITY: D", "why": ""}


def test_the_responses_of_a_study_are_read_once(path):
    found = json.loads(run("--db", path, "--json"))
    assert (
        found["n_read"] == 8
    )  # 4 cases x 2 models, the first sample of each conversation; qa came with the parser's levels
    assert found["labels"] == {RULES: {"B": 8}}  # "Rest, drink, and see a doctor."
    engine = open_study(path)
    with reading(engine) as session:
        assert triage_queries.load(session).levels[RULES].notna().sum() == 8
    engine.dispose()
    assert "No response waits to be read." in run("--db", path)
    assert "acuity_rules" not in run("--db", path, "--json")
