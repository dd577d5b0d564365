"""`overread composition`: what it prints, and the JSON that its help promises."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli import data as cli_data
from evalcore.errors import OverreadError
from evalcore.rubric import composition_queries
from evalcore.rubric.benchmark import THEMES
from evalcore.rubric.composition import GROUPINGS, Grouping
from evalcore.study.db import open_study, reading
from tests import world
from tests.commands import help_of

app = typer.Typer()
app.command()(cli_data.composition)
SHARES = (
    "n_whole", "share", "low", "high", "n_reads", "n_reads_whole", "read_share", "read_low", "read_high", "population_share",
)  # fmt: skip


def ran(db: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--db", str(db)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_json_holds_what_the_help_lists_and_counts_every_conversation(demo_file: Path):
    said = json.loads(ran(demo_file, "--json"))
    engine = open_study(str(demo_file))
    with reading(engine) as session:
        examples = composition_queries.examples(session)
    engine.dispose()
    assert set(said) == {"sizes", "spreads", "groups", "sentences", "weights"}
    assert said["sizes"][0] == {
        "what": "conversations",
        "n": len(examples),
        "n_read": (examples["n_read"] > 0).sum(),
        "published": 5000,
    }
    groups = pd.DataFrame(said["groups"])
    assert set(groups.columns) == {
        "grouping", "unit", "group", "n", "n_read", "n_unread", "published", "published_whole", "published_share", *SHARES,
    }  # fmt: skip
    assert list(groups["grouping"].unique()) == list(GROUPINGS)
    themes = groups.loc[groups["grouping"].eq("theme")].set_index("group")
    assert themes["n"].to_dict() == {
        theme.replace("_", " "): n for theme, n in examples["theme"].value_counts().items()
    }
    assert themes["published"].to_dict() == {theme.replace("_", " "): n for theme, n in THEMES.items()}
    documented = help_of("composition")
    assert all(
        re.search(rf"\b{name}\b", documented)
        for name in {*said, *said["sizes"][0], *said["spreads"][0], *SHARES, *said["weights"]}
    )


def test_json_gives_the_weight_of_each_theme(demo_file: Path):
    weights = json.loads(ran(demo_file, "--by", "theme", "--json"))["weights"]
    engine = open_study(str(demo_file))
    with reading(engine) as session:
        counts = composition_queries.examples(session)["theme"].value_counts()
    engine.dispose()
    assert weights["by_theme"] == pytest.approx({theme: n / 5000 / (counts[theme] / 30) for theme, n in THEMES.items()})
    assert (weights["n_known"], weights["n_unknown"], weights["absent"]) == (30, 0, [])


def test_only_the_groupings_that_were_asked_for_are_shown(demo_file: Path):
    said = json.loads(ran(demo_file, "--by", "axis,sign", "--json"))
    assert {group["grouping"] for group in said["groups"]} == {"axis", "sign"}
    shown = ran(demo_file, "--by", "axis,sign")
    assert re.search(r"accuracy +42 % \(153/364\) \[35 %, 49 %\] +33 % \(18,888/57,237\) +100 %", shown)
    # nothing is published of the sign: no such column
    assert re.search(r"undesirable +16 % \(60/364\) \[\d+ %, \d+ %\] +100 % \(60/60\)", shown)
    assert "beside the full benchmark: fewer criteria of completeness (26 % [20 %, 32 %], there 39 %)" in shown
    assert "emergency referrals" not in shown


def test_an_unknown_grouping_is_one_sentence(demo_file: Path):
    done = CliRunner().invoke(app, ["--by", "colour", "--db", str(demo_file)])
    assert isinstance(done.exception, OverreadError)
    assert (
        "--by: expected some of theme, category, language, turns, length, axis, sign, points, model, response_length, got colour"
        in str(done.exception)
    )


def test_the_default_is_every_grouping():
    assert cli_data.COMPOSED.split(",") == [str(grouping) for grouping in Grouping]


def test_a_study_without_themes_of_the_benchmark_has_no_weights(demo_file: Path, tmp_path: Path):
    path = shutil.copyfile(demo_file, tmp_path / "study.db")
    engine = open_study(str(path))
    world.tampered(engine, "UPDATE example SET theme = NULL")
    engine.dispose()
    said = json.loads(ran(path, "--by", "theme", "--json"))
    assert said["weights"] is None
    assert [group["n"] for group in said["groups"] if group["group"] == "not known"] == [30]
    assert said["groups"][-1]["low"] is None


def test_an_empty_study_says_that_there_is_nothing(tmp_path: Path):
    shown = ran(tmp_path / "new.db")
    assert re.search(r"conversations +0 +0 +5,000", shown)
    said = json.loads(ran(tmp_path / "new.db", "--json"))
    assert said["spreads"][0]["median"] is None
    assert said["sentences"] == []


def test_names_are_not_taken_for_markup(demo_file: Path, tmp_path: Path):
    path = shutil.copyfile(demo_file, tmp_path / "study.db")
    engine = open_study(str(path))
    world.tampered(engine, "UPDATE model SET name = '[red]Alder[/red]' WHERE name = 'Alder-2'")
    engine.dispose()
    assert "[red]Alder[/red]" in ran(path, "--by", "model")
