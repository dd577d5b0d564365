"""Who is asked by the command line: what the options and the file of models say; and that keys stay where they are."""

import json
import re
import shutil

import pytest

from tests.judge_server import Fault, Faults, judge_server
from tests.run_commands import everything, models_file
from tests.run_world import KEY, study


@pytest.fixture
def small(database_url):
    with study(database_url, n_examples=3, points=(5, -3)) as made:
        yield made


def test_what_is_said_wins_over_the_file_and_the_file_here_over_that_of_the_environment(
    overread, quick_run, judge, tmp_path
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    far = models_file(elsewhere, judge.base_url, api_model='"far"')
    said = models_file(elsewhere, judge.base_url, file="said.toml", api_model='"said"')

    def who(*options):
        table = overread.good(
            "judge", "--judge", "Magpie", *options, "--dry-run", "--db", quick_run.url, OVERREAD_MODELS=str(far)
        )
        return re.search(r"asked +(\S+) at", table)[1]

    assert who() == "far"
    models_file(overread.folder, judge.base_url, api_model='"here"')
    assert who() == "here"
    assert who("--models-file", said) == "said"
    assert who("--models-file", said, "--api-model", "option") == "option"


def test_a_judge_needs_no_file_where_its_address_is_said(overread, quick_run, judge):
    overread.good("judge", "--judge", "Wren", "--base-url", judge.base_url, "--db", quick_run.url)
    assert quick_run.rows("SELECT name FROM rater") == [("Wren",)]


def test_a_judge_that_nobody_knows_is_one_sentence(asked, overread, quick_run):
    assert asked.bad("judge", "--judge", "Nobody") == (
        "Nobody: expected this model in a file of models, or a base URL, got neither: models.toml has Magpie"
    )
    (overread.folder / "models.toml").unlink()
    assert "no file of models was named" in asked.bad("respond", "--model", "Magpie")
    assert "missing.toml: cannot be read" in asked.bad("respond", "--model", "Magpie", OVERREAD_MODELS="missing.toml")
    assert quick_run.rows("SELECT * FROM run") == []


def test_of_several_data_sets_one_is_to_be_said(asked, overread, demo_file):
    demo = shutil.copyfile(demo_file, overread.folder / "demo.db")
    words = overread.bad("judge", "--judge", "Magpie", "--db", demo)
    assert words == "--dataset: the study holds several, say which: acuity, overread-demo"
    # cases of triage are not answered by respond: one data set is left, and is not to be said
    assert "answers overread-demo" in overread.good("respond", "--model", "Magpie", "--dry-run", "--db", demo)
    assert "data set: expected one of invented, got 'hard'" in asked.bad(
        "judge", "--judge", "Magpie", "--dataset", "hard"
    )
    assert "models: expected some of Alder-2, of which 'invented' has responses, got Ash" in asked.bad(
        "judge", "--judge", "Magpie", "--models", "Ash"
    )
    assert asked.bad("judge", "--judge", "Magpie", "--models", " ,") == (
        "--models: expected names joined by commas, got nothing"
    )


def test_an_empty_study_has_nothing_to_ask(overread, judge):
    models_file(overread.folder, judge.base_url)
    assert "has no responses to judge" in overread.bad("judge", "--judge", "Magpie", "--db", overread.db)
    assert "has no examples to answer" in overread.bad("respond", "--model", "Magpie", "--db", overread.db)


@pytest.mark.parametrize("place", ["option", "file"])
def test_an_address_with_a_password_is_refused_and_not_shown(asked, overread, quick_run, place):
    address = "http://me:hush-5a77@127.0.0.1:1/v1"
    told = ("--base-url", address) if place == "option" else ()
    if place == "file":
        models_file(overread.folder, address)
    said = asked.bad("judge", "--judge", "Magpie", *told)
    assert "without user name, password and query" in said
    assert "hush" not in said
    assert quick_run.rows("SELECT * FROM run") == []


# ---------------------------------------------------------------- keys


def test_no_option_takes_a_key(asked):
    for command, who in (("judge", "--judge"), ("respond", "--model"), ("triage-run", "--model")):
        assert asked.ended(command, who, "Magpie", "--key", KEY).returncode == 2
        said = asked.bad(command, who, "Magpie", "--key-variable", KEY)
        assert "and not the key itself" in said
        assert KEY not in said


def test_a_key_that_is_not_in_the_environment_is_named_before_anything_is_written(asked, overread, quick_run, judge):
    models_file(overread.folder, judge.base_url, key_variable='"INVENTED_KEY"')
    assert "the environment variable INVENTED_KEY is not set" in asked.bad("judge", "--judge", "Magpie")
    assert quick_run.rows("SELECT * FROM run") == []
    asked("judge", "--judge", "Magpie", "--dry-run")  # nobody is asked, so nothing needs to be there


def test_the_key_is_left_nowhere(overread, small, tmp_path, caplog):
    models = {"key_variable": '"INVENTED_KEY"'}
    with judge_server(key=KEY, faults=Faults.mixed(0.5, Fault.UNAUTHORIZED, Fault.WORD_TRUE), seed=2) as judge:
        models_file(overread.folder, judge.base_url, **models)
        said = [
            overread(*told, "--db", small.url, INVENTED_KEY=KEY)
            for told in (
                ("judge", "--judge", "Magpie"),
                ("judge", "--judge", "Magpie", "--dry-run"),
                ("respond", "--model", "Magpie", "--json"),
                ("runs", "--failures", "1", "--json"),
                ("runs", "--json"),
            )
        ]
    assert [done.returncode for done in said] == [0] * 5
    assert any(entry["outcome"] == "rejected" for entry in json.loads(said[3].stdout))
    written = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    rows = [row for table in everything(small).values() for row in table]
    for text in (*rows, *written, caplog.text, *(part for done in said for part in (done.stdout, done.stderr))):
        assert KEY not in text
    assert any("[key]" in row for row in rows)  # the server sent it back
