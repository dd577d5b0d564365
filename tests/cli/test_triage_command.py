"""`overread triage`: what it prints, the JSON that its help promises, and what it refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli import triage as cli_triage
from evalcore.errors import OverreadError
from evalcore.study import store
from evalcore.study.db import open_study, reading, writing
from evalcore.study.tables import PublishedMatrix
from evalcore.triage import queries as stored_triage
from evalcore.triage.data import described
from evalcore.triage.predictions import JURY, joined, predictions, usual_judges
from evalcore.triage.rates import confusion
from tests.commands import help_of
from tests.triage_cases import drawn, stored

app = typer.Typer()
app.command()(cli_triage.triage)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("triage") / "drawn.db"
    models = {"Alder-2": {"qa": 0.6}, "Briar-1": {"conversation": -0.9}}
    triage_data, _ = drawn(np.random.default_rng(3), n_cases=60, models=models, judges={"Magpie": 0.9, "acuity_rules": 0.8}, n_samples=3)  # fmt: skip
    engine = open_study(str(path))
    with writing(engine) as session:
        stored(session, triage_data)
        session.add(PublishedMatrix(model="GPT-5.4", format="qa", gold="D", a=0, b=0, c=27, d=235))
    engine.dispose()
    return path


def ran(db: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--db", str(db)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def said(db: Path, *arguments: str) -> dict:
    return json.loads(ran(db, "--json", *arguments))


def test_json_holds_what_the_help_lists_and_its_cells_are_the_cases(db: Path):
    found = said(db)
    help_ = help_of("triage")
    for name, rows in found.items():
        assert re.search(rf"\b{name}\b", help_), name
        for field in rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else ():
            assert field.rsplit("_", 1)[0] in help_ or field in help_ or name == "accounted", field
    engine = open_study(str(db))
    with reading(engine) as session:
        triage_data = described(stored_triage.load(session))
    engine.dispose()
    expected = confusion(joined(triage_data, predictions(triage_data, usual_judges(triage_data))))
    cells = pd.DataFrame(found["cells"])
    own = cells.loc[~cells["model"].str.startswith("GPT")]
    assert own["n"].tolist() == expected["n"].tolist()
    assert found["judges"] == usual_judges(triage_data)
    assert found["n_cases"] == 60
    assert sum(found["n_kinds"].values()) == 60


def test_exact_over_and_under_add_up_to_one_and_every_rate_has_its_denominator(db: Path):
    rates = pd.DataFrame(said(db)["rates"])
    shares = rates.pivot(index=["model", "format"], columns="measure", values="value")
    assert shares[["exact", "over", "under"]].sum(axis=1).tolist() == pytest.approx([1.0] * len(shares))
    assert rates["denominator"].str.startswith("of ").all()


def test_a_format_a_model_and_a_judge_can_be_chosen(db: Path):
    found = said(db, "--format", "conversation", "--model", "Briar-1", "--judge", "conversation=acuity_rules")
    assert found["judges"] == {"conversation": "acuity_rules"}
    assert {(row["model"], row["format"]) for row in found["rates"]} == {("Briar-1", "conversation")}
    assert said(db, "--judge", "Magpie")["judges"] == {"qa": "parser", "conversation": "Magpie"}


def test_by_physicians_counts_responses_and_corrected_has_no_counts(db: Path):
    by_judge, by_physicians, corrected = (said(db, "--basis", basis) for basis in ("judge", "physicians", "corrected"))
    n = {
        name: sum(row["n"] or 0 for row in found["cells"])
        for name, found in (("judge", by_judge), ("physicians", by_physicians))
    }
    assert 0 < n["physicians"] < n["judge"]
    assert {row["n"] for row in corrected["cells"]} == {None}
    assert "Too little was read of every model" in ran(db, "--basis", "corrected")


def test_an_empty_study_has_no_matrix_on_any_basis(tmp_path: Path):
    for basis in ("judge", "physicians", "corrected"):
        assert said(tmp_path / "empty.db", "--basis", basis)["cells"] == []


def test_every_basis_has_its_harm_and_corrected_says_what_its_interval_holds_for(db: Path):
    by_judge, by_physicians, corrected = (said(db, "--basis", basis) for basis in ("judge", "physicians", "corrected"))
    assert all(row["harm"] is not None for row in by_judge["harm"] + by_physicians["harm"])
    assert {row["n"] for row in by_judge["harm"]} != {row["n"] for row in by_physicians["harm"]}
    assert all("to be read" in row["reason"] for row in corrected["harm"])  # a fifth of 60 texts a model and format
    assert (by_judge["means"], by_judge["claim"]) == (None, None)
    of_benchmark = said(db, "--basis", "corrected", "--claim", "benchmark", "--physicians", "in_general")
    assert "physicians in general" in of_benchmark["means"]
    assert "of this benchmark" in of_benchmark["means"]
    assert any("more physician" in row["reason"] for row in of_benchmark["rates"])  # two have read
    assert by_judge["differences"]
    assert (
        "these physicians" in by_physicians["means"]
    )  # their intervals are clustered by case, and no sample of physicians
    by_rate = pd.DataFrame(by_judge["safety"])
    assert set(by_rate["measure"]) == {"under", "missed_emergencies"}
    assert not by_rate[["model_1", "model_2"]].isin(["GPT-5.4 (published)"]).any(axis=None)
    assert any(words.startswith("In the judge's opinion, in conversation") for words in by_judge["findings"])
    assert all("to be read" in row["reason"] for row in corrected["safety"])
    assert "Too little was read of every model for a corrected share." in corrected["findings"]


def test_weights_can_be_given_instead_of_the_settings(db: Path):
    found = said(db, "--under-weight", "2", "--over-weight", "3.5")
    assert found["weights"] == {"under": 2, "over": 3.5}
    row = next(row for row in found["harm"] if row["n"])
    assert row["harm"] * row["n"] == pytest.approx(2 * row["steps_under"] + 3.5 * row["steps_over"])
    assert said(db, "--under-weight", "0")["weights"] == {"under": 0, "over": 1}
    for weight in ("-1", "1000.5", "nan"):
        done = CliRunner().invoke(app, ["--under-weight", weight, "--db", str(db)])
        assert done.exit_code == 2, weight


def test_the_majority_of_the_judges_can_be_taken_at_its_word(db: Path):
    found = said(db, "--judge", f"conversation={JURY}")
    assert found["judges"] == {"qa": "parser", "conversation": JURY}
    rows = {
        name: [row["n"] for row in table["cells"] if row["format"] == "conversation"]
        for name, table in (("jury", found), ("one", said(db)))
    }
    assert sum(rows["jury"]) >= sum(rows["one"])
    assert rows["jury"] != rows["one"]


def test_gold_as_read_by_physicians_changes_cells_and_not_the_number_of_cases(db: Path):
    assert said(db, "--gold", "physicians")["cells"] != said(db)["cells"]
    assert said(db, "--gold", "physicians")["n_cases"] == 60


def test_the_words_are_those_of_the_page(db: Path):
    printed = ran(db)
    assert "dangerous misses" in printed
    assert "(published)" in printed
    assert all(sentence.split(":")[0] in printed.replace("\n", " ") for sentence in said(db)["findings"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--format", "poem"), "--format: expected one of qa, conversation, got 'poem'"),
        (("--gold", "best"), "--gold: expected one of file, physicians, got 'best'"),
        (("--basis", "mine"), "--basis: expected one of judge, physicians, corrected, got 'mine'"),
        (("--model", "Nobody"), "--model: expected one of Alder-2, Briar-1, GPT-5.4, got 'Nobody'"),
        (
            ("--judge", "qa=Magpie"),
            "--judge: expected some of qa=parser, conversation=Magpie, conversation=acuity_rules, conversation=majority of the judges, got 'qa=Magpie'",
        ),
        (("--judge", f"qa={JURY}"), f"got 'qa={JURY}'"),
        (
            ("--under-weight", "0", "--over-weight", "0"),
            "--under-weight, --over-weight: expected at least one above 0, got 0 for both",
        ),
        (("--claim", "all"), "--claim: expected one of benchmark, new_examples, got 'all'"),
        (("--physicians", "all"), "--physicians: expected one of these, in_general, got 'all'"),
        (("--judge", "Nobody"), "got 'Nobody'"),
    ],
)
def test_what_is_not_known_is_named_with_what_is(db: Path, arguments: tuple[str, str], expected: str):
    with pytest.raises(OverreadError, match=re.escape(expected)):
        ran(db, *arguments)


def test_an_empty_study_says_what_to_import(tmp_path: Path):
    assert "import a file of cases" in ran(tmp_path / "new.db")


def test_cases_whose_answers_nobody_has_read_say_how(tmp_path: Path):
    path = tmp_path / "unread.db"
    triage_data, _ = drawn(np.random.default_rng(1), n_cases=6, share_read=0.0)
    triage_data = type(triage_data)(**{**vars(triage_data), "levels": triage_data.levels.iloc[:, :0]})
    engine = open_study(str(path))
    with writing(engine) as session:
        store.ensure_study(session)
        stored(session, triage_data)
    engine.dispose()
    assert "overread acuity-rules" in ran(path)
