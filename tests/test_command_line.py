"""Every command: what it prints, what it leaves, how it ends."""

import csv
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from sqlalchemy import text

from evalcore import __version__
from evalcore.__main__ import main
from evalcore.codebook import CODEBOOK
from evalcore.db import connect, open_study
from evalcore.importers import FORMATS
from evalcore.importing.report import ImportReport
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
}  # the documented columns
RUBRIC = [
    {"criterion": "Names the warning signs.", "points": 6, "tags": ["level:example", "axis:accuracy"]},
    {"criterion": "Prescribes an antibiotic unasked.", "points": -3, "tags": ["level:example", "axis:accuracy"]},
    {"criterion": "Says when to come back.", "points": 4, "tags": ["level:example", "axis:completeness"]},
]
PROMPT = [{"role": "user", "content": "Sore throat for two days, should I worry?"}]


class Run:
    """Runs `overread` in a folder: the console command's own `main`, in this process, which saves each a second and a half of imports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "study.db"

    def __call__(self, *arguments, **environment):
        told = ["overread", *map(str, arguments)]
        shown, complained = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown), redirect_stderr(complained):
            patch.chdir(self.folder)
            patch.setattr(sys, "argv", told)
            for name in [name for name in os.environ if name.startswith("OVERREAD_")]:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        return subprocess.CompletedProcess(told, ended.value.code or 0, shown.getvalue(), complained.getvalue())

    def good(self, *arguments, **environment):
        """What a command printed that ended well."""
        done = self(*arguments, **environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def bad(self, *arguments, **environment):
        """The sentence of a command that ended with status 1."""
        done = self(*arguments, **environment)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert done.stderr.strip()
        assert done.stdout == ""
        return done.stderr.strip()


class Process(Run):
    """Runs it in a process of its own, as people and scripts do."""

    def __call__(self, *arguments, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OVERREAD_")}
        return subprocess.run(
            [sys.executable, "-m", "evalcore", *map(str, arguments)],
            cwd=self.folder,
            env=clean | {"PYTHONPATH": str(Path(__file__).parents[1])} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@pytest.fixture
def process(tmp_path):
    return Process(tmp_path)


@pytest.fixture
def overread(tmp_path):
    return Run(tmp_path)


@pytest.fixture
def files(tmp_path):
    """An examples file and a results file on it: criteria judged + + -, so the score is (6 - 3) / 10."""
    example = {
        "prompt_id": "p-1",
        "prompt": PROMPT,
        "rubrics": RUBRIC,
        "example_tags": ["theme:hedging"],
        "canary": "c",
    }
    examples = tmp_path / "examples.jsonl"
    examples.write_text(json.dumps(example) + "\n")
    graded = [
        item | {"criteria_met": met, "explanation": "So it is."}
        for item, met in zip(RUBRIC, (True, True, False), strict=True)
    ]
    entry = {
        "prompt_id": "p-1",
        "prompt": PROMPT,
        "completion": [{"role": "assistant", "content": "Probably a virus."}],
        "completion_id": "k-1",
        "rubric_items": graded,
        "score": 0.3,
    }
    results = tmp_path / "invented_Alder-2_20261120_100000_allresults.json"
    results.write_text(
        json.dumps(
            {"score": 0.3, "metrics": {}, "htmls": [], "convos": [], "metadata": {"example_level_metadata": [entry]}}
        )
    )
    return examples, results


@pytest.fixture
def filled(overread, files):
    """A study that holds both files."""
    examples, results = files
    overread.good("import", examples, "--dataset", "invented", "--db", overread.db)
    overread.good("import", results, "--judge", "Magpie", "--db", overread.db)
    return overread


def dump(path):
    """Every row of every table of the study, as one comparable value."""
    engine = connect(str(path))
    tables = (
        "study",
        "example",
        "criterion",
        "response",
        "verdict",
        "imported_file",
        "audit_event",
        "person",
        "rater",
        "model",
    )
    with engine.connect() as connection:
        found = [tuple(map(tuple, connection.execute(text(f"SELECT * FROM {table}")))) for table in tables]
    engine.dispose()
    return found


# ---------------------------------------------------------------- import


def test_import_reports_what_came_and_ends_well(process, files):
    examples, results = files
    said = process.good("import", examples, "--dataset", "invented", "--db", process.db)
    assert "examples.jsonl: healthbench-examples, 1 rows" in said
    assert "1 new examples" in said
    said = process.good("import", results, "--judge", "Magpie", "--db", process.db)
    assert "1 responses joined with their example" in said
    assert "3 new verdicts" in said


def test_import_json_is_a_list_of_reports(overread, files):
    examples, _ = files
    (report,) = json.loads(overread.good("import", examples, "--dataset", "invented", "--json", "--db", overread.db))
    assert set(report) == set(ImportReport().as_dict())
    assert (report["format"], report["rows"], report["examples_new"]) == ("healthbench-examples", 1, 1)


def test_several_files_are_imported_in_their_order(overread, files):
    told = ("--judge", "Magpie", "--dataset", "invented", "--json", "--db", overread.db)
    reports = json.loads(overread.good("import", *files, *told))
    assert [report["format"] for report in reports] == ["healthbench-examples", "simple-evals"]
    assert reports[1]["responses_joined"] == 1


def test_the_same_file_again_adds_nothing_and_says_so(filled, files):
    before = dump(filled.db)
    said = filled.good("import", files[1], "--judge", "Magpie", "--db", filled.db)
    assert "imported before" in said
    assert dump(filled.db) == before


def test_a_dry_run_reports_and_changes_nothing(filled, tmp_path, files):
    more = tmp_path / "more.jsonl"
    more.write_text(files[0].read_text().replace("p-1", "p-2"))
    before = dump(filled.db)
    said = filled.good("import", more, "--dataset", "invented", "--dry-run", "--db", filled.db)
    assert "(dry run)" in said
    assert "1 new examples" in said
    assert dump(filled.db) == before
    filled.good("import", more, "--dataset", "invented", "--db", filled.db)
    assert dump(filled.db) != before


def test_a_results_file_without_its_judge_is_refused_with_a_sentence(overread, files):
    said = overread.bad("import", files[1], "--db", overread.db)
    assert "--judge: nothing came, expected a name" in said
    assert "Nothing was imported" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "bad.jsonl"),
        (b'{"prompt_id": "p", "prompt": [', "bad.jsonl"),
        (
            b'{"prompt_id": "p", "prompt": [{"role": "user", "content": "x"}], "rubrics": [{"criterion": "c", "points": 0}]}',
            "points",
        ),
        (b"\xff\xfe\x00", "bad.jsonl"),
    ],
)
def test_a_bad_file_is_named_and_the_study_stays_as_it_was(filled, tmp_path, content, said):
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    before = dump(filled.db)
    assert said in filled.bad("import", bad, "--db", filled.db)
    assert dump(filled.db) == before


def test_a_file_that_is_not_there_is_named(process, tmp_path):
    assert "nowhere.jsonl" in process.bad("import", "nowhere.jsonl", "--db", process.db)
    assert tmp_path.name in process.bad("import", tmp_path, "--db", process.db)


def test_a_format_that_is_not_known_is_named_with_those_that_are(overread, files):
    said = overread.bad("import", files[0], "--format", "docx", "--db", overread.db)
    assert "docx" in said
    assert "simple-evals" in said


def test_formats_lists_every_format_with_its_columns(overread):
    said = overread.good("formats")
    for name, module in FORMATS.items():
        assert name in said
        for column in module.COLUMNS:
            assert column in said


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
    assert "--by: weather came, expected some of overall" in filled.bad(
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


# ---------------------------------------------------------------- export


def test_export_writes_the_table_and_its_codebook_and_leaves_an_event(filled, tmp_path):
    n_events = len(dump(filled.db)[6])
    said = filled.good("export", "labels.csv", "--db", filled.db)
    assert said.strip() == "labels.csv: 3 rows"
    with (tmp_path / "labels.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["judge_label"] for row in rows] == ["met", "met", "not_met"]
    assert [column for column, _ in CODEBOOK["labels"]] == list(rows[0])
    assert "| judge_label |" in (tmp_path / "labels.csv.codebook.md").read_text()
    events = dump(filled.db)[6]
    assert len(events) == n_events + 1
    assert "labels exported" in events[-1]
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.parametrize(
    ("arguments", "name", "starts"),
    [
        (("--what", "verdicts"), "out.jsonl", b'{"dataset":"invented"'),
        (("--what", "scores"), "out.parquet", b"PAR1"),
        (("--format", "jsonl"), "out.txt", b'{"dataset":"invented"'),
        (("--format", "meta-eval"), "out.jsonl", b""),
        (("--what", "verdicts", "--read-only"), "out.csv", b"dataset,example_id"),
    ],
)
def test_export_knows_its_formats_by_name_and_by_ending(filled, tmp_path, arguments, name, starts):
    filled.good("export", name, *arguments, "--db", filled.db)
    assert (tmp_path / name).read_bytes().startswith(starts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x.csv", "--what", "marks"), "'marks' came, expected one of labels, verdicts, scores"),
        (("x.csv", "--format", "docx"), "'docx' came, expected csv, parquet, jsonl or meta-eval"),
        (("x.csv", "--judge", "Owl"), "judge 'Owl' came, expected one of Magpie"),
        (("nowhere/x.csv",), "nowhere/x.csv: cannot be written"),
    ],
)
def test_an_export_that_cannot_be_is_one_sentence_and_leaves_no_event(filled, arguments, said):
    before = dump(filled.db)
    assert said in filled.bad("export", *arguments, "--db", filled.db)
    assert dump(filled.db) == before


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
    assert "which somebody in this study has already" in said
    assert "roles: king came" in overread.bad("people", "--add", "X", "--role", "king", "--db", overread.db)
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
    assert "no sign-in yet" in said
    assert not list(tmp_path.glob("*.db"))


def test_help_and_version_say_so(process):
    assert process.good("--version").strip() == __version__
    said = process.good("--help")
    for command in ("serve", "import", "formats", "download", "people", "scores", "export", "audit"):
        assert command in said


def test_a_wrong_option_is_told_with_status_2(process):
    done = process("scores", "--colour", "red")
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
    assert "The database refused: cannot execute INSERT in a read-only transaction" in said
    assert "\n" not in said
