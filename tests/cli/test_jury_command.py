"""`overread jury` and a judge against itself, by the command line."""

import json

import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli import judging
from evalcore.errors import OverreadError
from evalcore.study import store
from evalcore.study.db import writing
from evalcore.study.schema import RaterKind, Stage, Verdict, repeat_version
from tests import world

APP = typer.Typer()
APP.command()(judging.jury)
APP.command()(judging.drift)


def run(*arguments):
    found = CliRunner().invoke(APP, [*map(str, arguments)])
    assert found.exit_code == 0, (found.output, found.exception)
    return found.stdout


@pytest.fixture
def path(tmp_path):
    """Four items: Magpie + - + +, asked again + + + +, Wren + - - +."""
    made = world.made(str(tmp_path / "study.db"))
    with writing(made.engine) as session:
        for name, version, labels in (("Magpie", repeat_version("", 1), "++++"), ("Wren", "", "+--+")):
            rater = store.ensure_rater(session, RaterKind.JUDGE, name, prompt_version=version)
            verdicts = [
                Verdict(example_id=1 + place // 2, rater_id=rater, stage=Stage.JUDGE, label=world.LABELS[letter], **made.item(*divmod(place, 2)))
                for place, letter in enumerate(labels)
            ]  # fmt: skip
            store.add_verdicts(session, verdicts, actor="set-up", action="file imported")
    made.engine.dispose()
    return tmp_path / "study.db"


def test_a_jury_is_reported_in_words_and_as_json_and_a_dry_run_changes_nothing(path):
    asked = ("jury", "--name", "Bench", "--members", "Magpie, Wren", "--repeats-of", "Magpie", "--db", path)
    dry = run(*asked, "--dry-run")
    assert dry.splitlines() == [
        "Bench: the majority of Wren, Magpie and Magpie#2",
        "4 items decided (3 met, 1 not met)",
        "verdicts: 4 new",
        "Nothing was changed.",
    ]
    said = json.loads(run(*asked, "--json"))
    assert said["version"].startswith("jury@")
    assert said | {"version": ""} == {
        "name": "Bench", "version": "", "members": ["Wren", "Magpie", "Magpie#2"], "least": 3, "n_decided": 4, "n_split": 0, "n_too_few": 0,
        "n_new": 4, "n_changed": 0, "n_taken_back": 0, "n_unchanged": 0, "labels": {"met": 3, "not_met": 1},
    }  # fmt: skip
    assert run(*asked).splitlines()[-1] == "verdicts: 4 as before"


def test_an_unknown_member_is_named_with_those_that_are_known(path):
    found = CliRunner().invoke(APP, ["jury", "--name", "Bench", "--members", "Magpie,Heron", "--db", str(path)])
    assert isinstance(found.exception, OverreadError)
    assert str(found.exception) == "--members: expected some of Magpie, Wren, got 'Heron'"


def test_a_judge_is_held_against_itself_by_the_name_of_its_repeat(path):
    said = json.loads(run("drift", "--from", "Magpie", "--to", "Magpie#2", "--by", "overall", "--json", "--db", path))
    (row,) = said["flips"]
    assert (row["n"], row["n_flips"], row["n_to_met"]) == (4, 1, 1)
