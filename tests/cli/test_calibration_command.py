"""`overread calibration`: what it prints, the JSON that its help promises, and what it refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from evalcore.calibration import case_spread, confidence, routing
from evalcore.calibration.confidence import own_confidence
from evalcore.cli import triage
from evalcore.errors import OverreadError
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import PARSER, ConfidenceMeaning, Format, Label
from evalcore.triage import queries as stored_triage, store as triage_store
from evalcore.triage.data import AmbiguityRule, described
from evalcore.triage.predictions import joined, predictions, usual_judges
from tests import world
from tests.commands import help_of
from tests.triage_cases import drawn, settings_with, stored

app = typer.Typer()
app.command()(triage.calibration)
RULE = AmbiguityRule(spread=0.3)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases with stated confidences: it is known what the parser's mean, and not what Magpie's do."""
    path = tmp_path_factory.mktemp("calibration") / "drawn.db"
    models = {"Alder-2": {"qa": 0.4}, "Briar-1": {"conversation": -0.9}}
    judges = {"Magpie": 0.9, "acuity_rules": 0.8}
    triage_data, _ = drawn(
        np.random.default_rng(3), n_cases=60, models=models, judges=judges, n_samples=3, confidence=True
    )
    engine = open_study(str(path))
    with writing(engine) as session:
        stored(session, triage_data)
        triage_store.set_triage_settings(session, settings_with(rule=RULE), actor="set-up")
        triage_store.set_confidence_meaning(session, PARSER, ConfidenceMeaning.RIGHT, actor="set-up")
    engine.dispose()
    return path


def ran(db: Path | str, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--db", str(db)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def said(db: Path | str, *arguments: str) -> dict:
    return json.loads(ran(db, "--json", *arguments))


def named(found: object) -> set[str]:
    """Every name in the JSON."""
    if isinstance(found, dict):
        return set(found) | {name for value in found.values() for name in named(value)}
    return {name for value in found for name in named(value)} if isinstance(found, list) else set()


def test_json_holds_what_the_help_lists_and_its_numbers_are_those_of_the_metrics(db: Path):
    found = said(db)
    help_ = help_of("calibration")
    for name in named(found) - set(found["levels_by"]):
        parts = {name, re.sub(r"_(low|high)$", "", name), re.sub(r"^(k|n|low|high|floor)_", "", name)}
        between = name in ("h_B", "h_C", "m_B", "m_C")  # the help says h_A .. h_D
        assert between or any(re.search(rf"\b{part}\b", help_) for part in parts), name
    with reading(open_study(str(db))) as session:
        triage_data = described(stored_triage.load(session), RULE)
    judges = usual_judges(triage_data)
    own = own_confidence(joined(triage_data, predictions(triage_data, judges)))
    errors = confidence.models_confidence(own)[0].errors
    assert [row["brier"] for row in found["models"]["errors"]] == pytest.approx(errors["brier"].tolist())
    chosen = routing.chosen(own, 0.9)
    assert [row["k_caught"] for row in found["routing"]["chosen"]] == chosen["k_caught"].tolist()
    cases = case_spread.on_ambiguous(triage_data, own, judges).cases
    assert [row["concentration"] for row in found["ambiguous"]["cases"]] == pytest.approx(
        cases["concentration"].tolist()
    )
    assert found["ambiguous"]["cases"][0]["case_id"] == triage_data.cases["case_id"][cases["row"][0]]
    assert (found["stated"], found["levels_by"]) == (True, judges)


def test_without_a_meaning_a_judge_has_no_value_and_the_sentence_says_what_to_choose(db: Path):
    levels = said(db, "--section", "judges")["judges"]["levels"]
    assert [(row["judge"], row["meaning"], row["usable"]) for row in levels["meanings"]] == [
        ("Magpie", None, False),
        ("acuity_rules", None, False),
    ]
    stated = [row for row in levels["errors"] if row["group"] not in levels["majorities"]]
    assert len(stated) == 2
    assert all(row["brier"] is None and "is not specified" in row["undefined"] for row in stated)
    assert levels["majorities"] == []  # of two judges, and two who agree would always be sure
    assert {row["group"] for row in levels["reliability"]} == set(levels["majorities"])
    assert "What the confidence of Magpie refers to is not specified" in ran(db, "--section", "judges")


def test_a_section_alone_a_judge_and_the_share_of_samples_can_be_asked_for(db: Path):
    found = said(db, "--section", "models", "--share", "--judge", "conversation=acuity_rules")
    assert not {"judges", "ambiguous", "routing"} & set(found)
    assert found["stated"] is False
    assert found["levels_by"] == {"qa": PARSER, "conversation": "acuity_rules"}
    assert all(row["n_stated"] == 0 for row in found["models"]["sources"])


def test_only_the_formats_that_the_study_shows_have_numbers(tmp_path: Path, db: Path):
    every = said(db, "--section", "models,ambiguous,routing")
    other = world.copy_of(db, tmp_path / "qa.db")
    engine = open_study(str(other))
    with writing(engine) as session:
        triage_store.set_triage_settings(session, settings_with(rule=RULE, formats=(Format.QA,)), actor="set-up")
    engine.dispose()
    found = said(other, "--section", "models,ambiguous,routing")
    assert (every["levels_by"].keys(), found["levels_by"]) == ({"qa", "conversation"}, {"qa": PARSER})
    for section, table, number in (
        ("models", "errors", "brier"),
        ("ambiguous", "summary", "value"),
        ("ambiguous", "cases", "concentration"),
        ("routing", "chosen", "k_caught"),
    ):
        of_qa = [(row["model"], row[number]) for row in every[section][table] if row["format"] == "qa"]
        assert 0 < len(of_qa) < len(every[section][table])
        assert [(row["model"], row[number]) for row in found[section][table]] == of_qa


def test_no_threshold_is_chosen_where_one_is_given(monkeypatch: pytest.MonkeyPatch, db: Path):
    monkeypatch.setattr(routing, "chosen", None)
    assert said(db, "--section", "routing", "--threshold", "0.7")["routing"]["chosen"]


def test_a_threshold_that_is_given_takes_the_place_of_the_wanted_share(db: Path):
    found = said(db, "--section", "routing", "--threshold", "0.7")["routing"]
    assert {row["threshold"] for row in found["chosen"]} == {0.7}
    assert "wanted" not in found["chosen"][0]
    last = found["curves"][-1]
    assert (last["threshold"], last["every_case"], last["routed"]) == (None, True, 1)
    assert "below 70 %" in ran(db, "--section", "routing", "--threshold", "0.7")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--section", "all"), "--section: expected some of judges, models, ambiguous, routing, got all"),
        (
            ("--judge", "qa=Magpie"),
            "--judge: expected some of qa=parser, conversation=Magpie, conversation=acuity_rules, conversation=majority of the judges, got 'qa=Magpie'",
        ),
        (("--reads", "none"), "--reads: expected one of drawn, all, got 'none'"),
    ],
)
def test_what_is_not_known_is_refused_by_name(arguments: tuple[str, ...], expected: str, db: Path):
    with pytest.raises(OverreadError, match=re.escape(expected)):
        ran(db, *arguments)


@pytest.mark.slow
def test_a_study_without_cases_prints_the_majority_of_its_judges(tmp_path: Path):
    location = str(tmp_path / "overread.db")
    small = world.made(location, judged="+-++")
    for example in (0, 1):
        for judge in ("Wren", "Rook"):
            world.judged(small, judge, Label.MET, example=example)
        world.said(small, Label.MET, example=example)
    small.engine.dispose()
    assert (
        "The majority of 3 judges is carried by 100 % of the votes on average and right on 100 % of 2 criteria in 2 conversations"
        in ran(location)
    )
    criteria = said(location)["judges"]["criteria"]
    assert (criteria["drawn"], criteria["majorities"]) == (False, ["majority of 3 judges"])
    assert [(row["group"], row["n"]) for row in criteria["errors"]] == [("majority of 3 judges", 2)]
    assert "No ambiguous case has" in " ".join(said(location)["findings"])
