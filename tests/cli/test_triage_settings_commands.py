"""Label maps and settings of triage as commands: what they print, what they change, how they refuse."""

import json

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from evalcore.cli import triage as cli_triage
from evalcore.errors import OverreadError
from evalcore.study.audit import chain
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import Administrator
from evalcore.triage import label_maps, setting_queries, settings, store as triage_store
from evalcore.triage.settings import TriageSettings
from tests import triage_cases
from tests.triage_cases import settings_with

app = typer.Typer()
app.command("label-maps")(cli_triage.label_maps)
app.command("triage-settings")(cli_triage.triage_settings)


@pytest.fixture
def location(tmp_path):
    """A study of twelve cases: nine labels of Semigran's (three of them imported as C), three of a source without a map."""
    drawn = triage_cases.drawn(np.random.default_rng(3), n_cases=12, models=("Alder-2",), n_samples=1)[0]
    drawn.cases["source"] = pd.Series(["semigran"] * 9 + ["hotline"] * 3, dtype="category")
    drawn.cases["original_label"] = pd.Series(["em"] * 6 + ["SC"] * 3 + ["self care", "self care", "red"], dtype=object)
    drawn.cases["mapped_label"] = pd.Series(["C"] * 3 + ["D"] * 3 + ["A"] * 3 + ["A", "A", None], dtype=object)
    path = str(tmp_path / "study.db")
    engine = open_study(path)
    with writing(engine) as session:
        triage_cases.stored(session, drawn)
    engine.dispose()
    return path


def ran(location, *arguments):
    done = CliRunner().invoke(app, [*map(str, arguments), "--db", location])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def told(location, *arguments):
    return json.loads(ran(location, *arguments, "--json"))


def of(found, source):
    return next(row for row in found if row["source"] == source)


def acts(location):
    engine = open_study(location)
    trail = chain.events(engine, Administrator(), is_blind=False)[0]
    engine.dispose()
    return [row.action for row in trail.itertuples() if row.actor.endswith("command line)")][::-1]


def test_label_maps_lists_every_source_with_its_labels_and_the_cases_that_have_them(location):
    found = told(location, "label-maps")
    assert [row["source"] for row in found] == sorted({*label_maps.default_tables(), "hotline"})
    assert of(found, "semigran") == {
        "source": "semigran", "is_own": False, "has_map": True, "n_cases": 9, "n_otherwise": 3,
        "labels": [
            {"label": "em", "meaning": "D", "n_cases": 6, "n_otherwise": 3},
            {"label": "ne", "meaning": "panel", "n_cases": 0, "n_otherwise": 0},
            {"label": "sc", "meaning": "A", "n_cases": 3, "n_otherwise": 0},
        ],
        "unknown": [],
    }  # fmt: skip
    assert of(found, "hotline") == {
        "source": "hotline", "is_own": False, "has_map": False, "n_cases": 3, "n_otherwise": 0,
        "labels": [{"label": "self care", "meaning": "A", "n_cases": 2, "n_otherwise": 0}],
        "unknown": [{"label": "red", "n_cases": 1}],
    }  # fmt: skip
    shown = ran(location, "label-maps", "--source", "Semigran")
    assert "semigran: the map that comes with Overread" in shown
    assert "3 of 9 cases imported as something else." in shown
    assert "hotline" not in shown
    shown = ran(location, "label-maps", "--source", "hotline")
    assert "hotline: no map of its own" in shown
    assert "– (unknown)" in shown


def test_a_map_is_exported_changed_imported_and_reset(location, tmp_path):
    path = tmp_path / "semigran.csv"
    ran(location, "label-maps", "--source", "semigran", "--export", path)
    table = label_maps.parse(path.read_text(), path.name)
    assert table == label_maps.default_tables()["semigran"]
    path.write_text(path.read_text().replace("em,D", "em,C"))
    found = of(told(location, "label-maps", "--source", "semigran", "--import", path), "semigran")
    assert found["is_own"]
    assert found["labels"][0] == {"label": "em", "meaning": "C", "n_cases": 6, "n_otherwise": 3}
    assert not of(told(location, "label-maps", "--source", "semigran", "--reset"), "semigran")["is_own"]
    assert acts(location) == ["label map set", "label map reset"]


def test_a_new_source_gets_a_map_by_import(location, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("label,meaning\nred,D\nself care,information A\n")
    found = of(told(location, "label-maps", "--source", "hotline", "--import", path), "hotline")
    assert (found["has_map"], found["unknown"], found["n_otherwise"]) == (True, [], 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--import", "MAP"], r"^--source: expected the source whose map it is beside --import, got nothing"),
        (["--source", "x", "--reset", "--export", "MAP"], r"^expected one of --export, --reset, got 2"),
        (
            ["--source", "elsewhere"],
            r"^--source: expected one of healthbench, hotline, levels, pmr, semigran, structured, got 'elsewhere'",
        ),
        (
            ["--source", "elsewhere", "--export", "OUT"],
            r"^--source: expected one of healthbench, hotline, levels, pmr, semigran, structured, got 'elsewhere'",
        ),
        (
            ["--source", "x", "--import", "MAP"],
            r"^m\.csv line 2: meaning: expected one of A, A/B, B, B/C, C, C/D, D, panel, information A, information A/B, information B, information B/C, information C",
        ),
        (["--source", "x", "--import", "OUT"], r"out.csv: cannot be read"),
    ],
)
def test_label_maps_refuses_in_a_sentence_and_changes_nothing(location, tmp_path, arguments, said):
    (tmp_path / "m.csv").write_text("label,meaning\nx,E\n")
    files = {"MAP": tmp_path / "m.csv", "OUT": tmp_path / "out.csv"}
    with pytest.raises(OverreadError, match=said):
        ran(location, "label-maps", *(files.get(word, word) for word in arguments))
    assert acts(location) == []
    assert not files["OUT"].exists()


def test_settings_are_shown_exported_imported_and_reset(location, tmp_path):
    path = tmp_path / "s.yaml"
    assert settings.parse(ran(location, "triage-settings"), "shown") == TriageSettings()
    assert ran(location, "triage-settings", "--export", path).strip().endswith("s.yaml written")
    path.write_text(
        path.read_text().replace("under: 5.0", "under: 20").replace("uncertainty_above: 0.7", "uncertainty_above: null")
    )
    found = told(location, "triage-settings", "--import", path)
    assert found["is_own"]
    assert found["weights"] == {"under": 20.0, "over": 1.0}
    assert found["ambiguous"] == {"spread_above": 0.75, "uncertainty_above": None}
    assert list(found["level_names"]) == ["A", "B", "C", "D"]
    assert not told(location, "triage-settings", "--reset")["is_own"]
    assert acts(location) == ["triage settings changed"] * 2


def test_a_file_of_settings_with_a_fault_changes_nothing(location, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("weights:\n  under: 3\nlevels: 5\n")
    with pytest.raises(
        OverreadError, match=r"^s\.yaml: expected level_names, formats, metrics, weights, ambiguous, got 'levels'"
    ):
        ran(location, "triage-settings", "--import", path)
    path.write_text("weights: {under: 3}\n")
    with pytest.raises(OverreadError, match=r"^expected --reset or a file, got both"):
        ran(location, "triage-settings", "--import", path, "--reset")
    engine = open_study(location)
    with reading(engine) as session:
        assert setting_queries.own(session) is None
        assert setting_queries.own_tables(session) == {}
    engine.dispose()
    assert acts(location) == []


def test_the_study_reads_the_same_file_that_it_wrote(location, tmp_path):
    path = tmp_path / "s.yaml"
    engine = open_study(location)
    with writing(engine) as session:
        triage_store.set_triage_settings(session, settings_with(over=2.5), actor="Dr. Noor")
    engine.dispose()
    ran(location, "triage-settings", "--export", path)
    ran(location, "triage-settings", "--import", path)
    assert acts(location) == []
