"""The command `import`: what it reports, what it refuses, and that a fault leaves the study as it was."""

import json

import pytest

from evalcore.importing import ImportReport
from evalcore.importing.formats import FORMATS
from tests.commands import dump


def test_import_reports_what_came_and_ends_well(overread, files):
    examples, results = files
    said = overread.good("import", examples, "--dataset", "invented", "--db", overread.db)
    assert "examples.jsonl: healthbench-examples, 1 row\n" in said
    assert "1 new example\n" in said
    said = overread.good("import", results, "--judge", "Magpie", "--db", overread.db)
    assert "1 response joined with its example" in said
    assert "3 new verdicts" in said


def test_import_json_is_a_list_of_reports(overread, files):
    examples, _ = files
    (report,) = json.loads(overread.good("import", examples, "--dataset", "invented", "--json", "--db", overread.db))
    assert set(report) == set(vars(ImportReport()))
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
    assert "1 new example\n" in said
    assert dump(filled.db) == before
    filled.good("import", more, "--dataset", "invented", "--db", filled.db)
    assert dump(filled.db) != before


def test_a_results_file_without_its_judge_is_refused_with_a_sentence(overread, files):
    said = overread.bad("import", files[1], "--db", overread.db)
    assert "Fill in Judge: results files do not record it" in said
    assert "--judge" in said
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


def test_a_file_that_is_not_there_is_named(overread, tmp_path):
    assert "nowhere.jsonl" in overread.bad("import", "nowhere.jsonl", "--db", overread.db)
    assert tmp_path.name in overread.bad("import", tmp_path, "--db", overread.db)


def test_a_format_that_is_not_known_is_named_with_those_that_are(overread, files):
    said = overread.bad("import", files[0], "--format", "docx", "--db", overread.db)
    assert "docx" in said
    assert "simple-evals" in said


def test_formats_lists_every_format_with_its_columns(overread):
    said = overread.good("formats")
    for name, file_format in FORMATS.items():
        assert name in said
        for column in file_format.columns:
            assert column in said
