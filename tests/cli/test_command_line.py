"""The other commands, and what all have in common: which study, help, how each ends."""

import json
import subprocess
import sys
import zipfile

import pandas as pd
import pytest
from sqlalchemy import text

from evalcore import __version__
from evalcore.study.db import connect, open_study
from tests import world

SCORES_KEYS = {
    "model",
    "judge",
    "dataset",
    "group",
    "n_examples",
    "n_undefined",
    "raw_mean",
    "score",
    "raw_length_adjusted",
    "length_adjusted",
}  # the documented columns


# ---------------------------------------------------------------- scores


def test_scores_json_has_the_documented_keys_and_the_derived_numbers(filled):
    rows = json.loads(filled.good("scores", "--json", "--db", filled.db))
    assert all(set(row) >= SCORES_KEYS for row in rows)
    assert {row["group"]: row["raw_mean"] for row in rows} == {
        "overall": pytest.approx(0.3, abs=1e-12),  # (6 - 3) / (6 + 4)
        "theme:hedging": pytest.approx(0.3, abs=1e-12),
        "axis:accuracy": 0.5,  # (6 - 3) / 6
        "axis:completeness": 0,  # 0 / 4
        "level:example": pytest.approx(0.3, abs=1e-12),
    }
    overall = next(row for row in rows if row["group"] == "overall")
    assert {key: overall[key] for key in ("model", "judge", "dataset", "n_examples", "n_undefined")} == {
        "model": "Alder-2", "judge": "Magpie", "dataset": "invented", "n_examples": 1, "n_undefined": 0,
    }  # fmt: skip


def test_scores_come_by_what_was_asked_for(filled):
    rows = json.loads(filled.good("scores", "--json", "--by", "axis", "--db", filled.db))
    assert {row["group"] for row in rows} == {"axis:accuracy", "axis:completeness"}
    assert "0.3000" in filled.good("scores", "--by", "overall", "--db", filled.db)
    assert "--by: expected some of overall, theme, axis, category, level, got weather" in filled.bad(
        "scores", "--by", "overall,weather", "--db", filled.db
    )


def test_an_undefined_score_is_null_in_json_and_a_dash_in_the_table(overread):
    world.made(str(overread.db), points=((-3,),), judged="-").engine.dispose()
    (row,) = json.loads(overread.good("scores", "--json", "--by", "overall", "--db", overread.db))
    assert (row["raw_mean"], row["score"], row["n_examples"], row["n_undefined"]) == (None, None, 0, 1)
    assert "–" in overread.good("scores", "--by", "overall", "--db", overread.db)


def test_an_empty_study_has_no_scores(overread):
    assert json.loads(overread.good("scores", "--json", "--db", overread.db)) == []
    assert "No scores yet" in overread.good("scores", "--db", overread.db)


# ---------------------------------------------------------------- people


def test_people_are_added_and_listed(overread):
    assert "Nobody yet" in overread.good("people", "--db", overread.db)
    added = ("--role", "reviewer", "--role", "lead", "--specialty", "cardiology", "--language", "sw")
    overread.good("people", "--add", "Dr. Imani Noor", *added, "--db", overread.db)
    expected = [
        {"name": "Dr. Imani Noor", "roles": ["lead", "reviewer"], "specialties": ["cardiology"], "languages": ["sw"]}
    ]
    assert json.loads(overread.good("people", "--json", "--db", overread.db)) == expected
    assert "cardiology" in overread.good("people", "--db", overread.db)
    said = overread.bad("people", "--add", "Dr. Imani Noor", "--db", overread.db)
    assert "Dr. Imani Noor is already in this study" in said
    assert "roles: expected one or more of reviewer, adjudicator, researcher, lead, got king" in overread.bad(
        "people", "--add", "X", "--role", "king", "--db", overread.db
    )
    assert json.loads(overread.good("people", "--json", "--db", overread.db)) == expected


# ---------------------------------------------------------------- audit verify


def test_audit_verify_holds_and_finds_what_was_changed(filled, tmp_path):
    assert "The audit trail holds: 2 events" in filled.good("audit", "verify", "--db", filled.db)
    copy = world.copy_of(filled.db, tmp_path / "tampered.db")
    engine = open_study(str(copy))
    world.tampered(engine, "UPDATE audit_event SET actor = 'somebody else' WHERE id = 2")
    engine.dispose()
    done = filled("audit", "verify", "--db", copy)
    assert done.returncode == 1
    assert "The audit trail is broken at event 2: its content was changed" in done.stdout
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- which study


def test_the_study_is_said_by_option_before_or_after_the_command_or_by_the_environment(filled, tmp_path):
    for arguments, environment in (
        (("scores", "--json", "--db", filled.db), {}),
        (("--db", filled.db, "scores", "--json"), {}),
        (("scores", "--json"), {"OVERREAD_DB": str(filled.db)}),
        (("scores", "--json", "--db", filled.db), {"OVERREAD_DB": str(tmp_path / "another.db")}),
    ):
        assert len(json.loads(filled.good(*arguments, **environment))) == 5, arguments
    assert not (tmp_path / "another.db").exists()
    assert not (tmp_path / "overread.db").exists()


def test_without_a_word_the_study_is_in_the_working_folder(process, tmp_path):
    process.good("people")
    assert (tmp_path / "overread.db").exists()


def test_a_command_that_prints_people_loads_no_statistics(overread):
    overread.good("people", "--add", "Ada", "--db", overread.db)
    loads = "import sys; from evalcore.__main__ import main; sys.argv = ['overread', *sys.argv[1:]]\ntry: main()\nfinally: print(*sys.modules)"
    called = [sys.executable, "-c", loads, "people", "--db", str(overread.db)]
    done = subprocess.run(called, capture_output=True, text=True, check=True, timeout=100)
    assert "Ada" in done.stdout
    assert not {"numpy", "pandas", "scipy", "plotly", "streamlit", "alembic"} & set(done.stdout.split())


def test_a_study_on_postgresql_is_said_by_its_url(overread, files, postgres_database_url):
    overread.good("import", *files, "--judge", "Magpie", "--dataset", "invented", "--db", postgres_database_url)
    rows = json.loads(overread.good("scores", "--json", "--by", "overall", OVERREAD_DB=postgres_database_url))
    assert rows[0]["raw_mean"] == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize(
    ("db", "said"),
    [
        ("nowhere/study.db", "cannot be opened as a study"),
        ("letter.txt", "file is not a database"),
        ("mysql://me@host/study", "expected postgresql:// or the path of a SQLite file"),
        ("postgresql://me:secret@127.0.0.1:1/study", "cannot be opened as a study"),
    ],
)
def test_a_study_that_cannot_be_opened_is_one_sentence(overread, tmp_path, db, said):
    (tmp_path / "letter.txt").write_text("Dear colleague, " * 100)
    sentence = overread.bad("scores", "--db", db)
    assert said in sentence
    assert "\n" not in sentence
    assert "secret" not in sentence


# ---------------------------------------------------------------- the rest


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.7", "example.org", ""])
def test_serve_refuses_an_address_that_others_reach_before_it_makes_a_study(overread, tmp_path, address):
    said = overread.bad("serve", "--address", address, "--no-browser")
    assert "no sign-in is set up" in said
    assert not list(tmp_path.glob("*.db"))


def test_help_and_version_say_so(overread):
    assert overread.good("--version").strip() == __version__
    said = overread.good("--help")
    for command in ("serve", "import", "formats", "download", "people", "scores", "export", "audit"):
        assert command in said


def test_a_wrong_option_is_told_with_status_2(overread):
    done = overread("scores", "--colour", "red")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_download_knows_healthbench_alone(overread):
    assert "expected healthbench" in overread.bad("download", "imagenet", "--db", overread.db)


def test_a_setting_that_is_no_number_is_one_sentence(overread, files):
    said = overread.bad("import", files[0], "--db", overread.db, OVERREAD_MAX_LINE_BYTES="many")
    assert "OVERREAD_MAX_LINE_BYTES" in said


def test_a_database_that_takes_no_writes_says_so_in_one_sentence(overread, postgres_database_url):
    open_study(postgres_database_url).dispose()
    engine = connect(postgres_database_url)
    with engine.begin() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    engine.dispose()
    said = overread.bad("people", "--add", "Dr. Imani Noor", "--db", postgres_database_url)
    assert "The database is read-only, so nothing can be saved." in said
    assert "\n" not in said


def test_the_length_adjusted_score_is_in_scores_compare_export_and_bundle(overread):
    """Two tasks of HealthBench Professional; a model meets 15 of 15 points in 2,500 characters, and 0 of 15 in 1,000: it scores
    1 - .0147 and 0 + 2 (.0147), in the mean .50735."""
    prompt = [{"role": "user", "content": "Dose of vancomycin at 80 kg?"}]
    tasks = [
        {"id": name, "conversation": {"messages": prompt}, "rubric_items": [{"criterion_text": "Gives it", "points": 15}], "specialty": specialty}
        for name, specialty in (("t1", "Nephrology"), ("t2", "Cardiology"))
    ]  # fmt: skip
    entries = [
        {
            "prompt_id": task["id"],
            "prompt": prompt,
            "completion": [{"role": "assistant", "content": "ü" * n_chars}],
            "rubric_items": [{"criterion": "Gives it", "points": 15, "tags": [], "criteria_met": met}],
        }
        for task, n_chars, met in zip(tasks, (2_500, 1_000), (True, False), strict=True)
    ]
    results = "healthbench_professional_model-a_20260501_101010_allresults.json"
    (overread.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    (overread.folder / results).write_text(
        json.dumps({"score": 0.5, "metadata": {"example_level_metadata": entries}}, ensure_ascii=False)
    )
    overread.good("import", "tasks.jsonl", "--db", overread.db)
    overread.good("import", results, "--judge", "Magpie", "--db", overread.db)
    (row,) = json.loads(overread.good("scores", "--json", "--by", "overall", "--db", overread.db))
    assert (row["score"], row["length_adjusted"], row["raw_length_adjusted"]) == pytest.approx((0.5, 0.50735, 0.50735))
    found = json.loads(overread.good("compare", "--json", "--by", "specialty", "--db", overread.db))
    assert found["scores"][0]["judge_only_adjusted"] == pytest.approx(0.50735)
    assert found["scores"][0]["length_loss"] == pytest.approx(-0.00735)
    assert found["scores"][0]["corrected_adjusted"] is None
    assert {(row["group"], row["score"]) for row in found["groups"]} == {("Cardiology", 0.0), ("Nephrology", 1.0)}
    shown = overread.good("compare", "--by", "specialty", "--db", overread.db)
    assert "Length-adjusted score" in shown
    assert "0.507" in shown
    overread.good("export", "scores.csv", "--what", "scores", "--db", overread.db)
    table = pd.read_csv(overread.folder / "scores.csv").set_index("example_id")
    assert table["length_adjusted"].to_dict() == pytest.approx({"t1": 0.9853, "t2": 0.0294})
    assert table["n_chars"].to_dict() == {"t1": 2_500, "t2": 1_000}
    overread.good("bundle", "paper.zip", "--db", overread.db)
    with zipfile.ZipFile(overread.folder / "paper.zip") as packed:
        corrected = pd.read_csv(packed.open("corrected-scores.csv"))
    assert corrected["judge_only_adjusted"].tolist() == pytest.approx([0.50735] * len(corrected))
