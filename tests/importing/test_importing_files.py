"""Files that are too long, not there, oddly named, or said to be what they are not."""

import os
import re

import pytest

from evalcore.errors import ImportFailed
from tests import invented as made
from tests.invented import bring, dump, entry, example, judged, results, study, write

RESULTS_NAME = "healthbench_hard_model-a_20260101_101010_allresults.json"


@pytest.fixture
def filled(database_url, tmp_path):
    """A study with one example, one response to it and its verdicts."""
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        bring(engine, write(tmp_path / "healthbench_model-a_20260101_101010_allresults.json", results(entry())))
        yield engine


@pytest.mark.parametrize("start", [b"", b'{"prompt_id": "', b"example_id,model,rater,label\n"])
def test_a_line_that_is_too_long_is_a_fault_and_is_not_read_whole(filled, tmp_path, monkeypatch, start):
    monkeypatch.setenv("OVERREAD_MAX_LINE_BYTES", "2000")
    before = dump(filled)
    path = write(tmp_path / "long.jsonl", start + b"x" * 3000)
    with pytest.raises(
        ImportFailed, match=r"long\.jsonl line [12]: expected lines of at most 2,000 bytes, got a longer one"
    ):
        bring(filled, path)
    after_a_good_one = write(tmp_path / "later.jsonl", made.lines(example("p9")) + b'{"prompt_id": "' + b"x" * 3000)
    with pytest.raises(
        ImportFailed, match=r"later\.jsonl line 2: expected lines of at most 2,000 bytes, got a longer one"
    ):
        bring(filled, after_a_good_one)
    assert dump(filled) == before


def test_a_line_of_100_megabytes_is_one_clear_fault(sqlite_database_url, tmp_path):
    path = tmp_path / "endless.jsonl"
    with path.open("wb") as stream:
        stream.write(made.lines(example()) + b'{"prompt_id": "')
        stream.seek(100_000_000)  # zeros that take no space on the disk
        stream.write(b'"}\n')
    with (
        study(sqlite_database_url) as engine,
        pytest.raises(
            ImportFailed, match=r"endless\.jsonl line 2: expected lines of at most 16,777,216 bytes, got a longer one"
        ),
    ):
        bring(engine, path)


def test_a_first_line_of_100_megabytes_is_one_clear_fault(sqlite_database_url, tmp_path):
    path = tmp_path / "endless.jsonl"
    path.write_bytes(b'{"prompt_id": "' + b"x" * 100_000_000 + b'"}\n')
    with (
        study(sqlite_database_url) as engine,
        pytest.raises(
            ImportFailed, match=r"endless\.jsonl line 1: expected lines of at most 16,777,216 bytes, got a longer one"
        ),
    ):
        bring(engine, path)


def test_a_results_document_on_one_line_may_be_longer_than_a_line(sqlite_database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERREAD_MAX_LINE_BYTES", "500")
    path = write(tmp_path / RESULTS_NAME, results(entry(), entry("p2")), indent=None)
    with study(sqlite_database_url) as engine:
        assert bring(engine, path).verdicts_new == 6


def test_a_folder_a_missing_file_and_a_locked_file_are_faults(sqlite_database_url, tmp_path):
    with study(sqlite_database_url) as engine:
        (tmp_path / "folder").mkdir()
        with pytest.raises(ImportFailed, match="folder: cannot be read: Is a directory"):
            bring(engine, tmp_path / "folder")
        with pytest.raises(ImportFailed, match="missing: no such file"):
            bring(engine, tmp_path / "missing")
        locked = write(tmp_path / "locked.jsonl", [example()])
        locked.chmod(0)
        if not os.access(locked, os.R_OK):  # root may read it all the same
            with pytest.raises(ImportFailed, match=r"locked.jsonl: cannot be read: Permission denied"):
                bring(engine, locked)


def test_a_file_name_of_odd_bytes_is_no_obstacle(filled, tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.jsonl")
    report = bring(filled, write(path, [example("p9")]))
    assert report.file == "caf?.jsonl"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model": " "}, "Model: expected a name of printable characters, got ' '"),
        ({"judge": ""}, "Judge: expected a name of printable characters, got ''"),
        ({"dataset": "a\x00b"}, r"Data set: expected a name of printable characters, got 'a\x00b'"),
        ({"model": "\udc80"}, r"Model: expected a name of printable characters, got '\udc80'"),
        ({"format_name": "excel"}, "expected one of graded-responses, healthbench-examples, "),
    ],
)
def test_a_name_that_is_none_is_a_fault(filled, tmp_path, given, expected):
    before = dump(filled)
    with pytest.raises(ImportFailed, match=re.escape(f"{RESULTS_NAME}: {expected}")):
        bring(filled, write(tmp_path / RESULTS_NAME, results(entry())), **given)
    assert dump(filled) == before


def test_a_format_that_is_named_wrongly_gives_the_faults_of_that_format(filled, tmp_path):
    with pytest.raises(ImportFailed, match=r"line 1: rubrics: expected .*got nothing|line 1: prompt"):
        bring(filled, write(tmp_path / "b.jsonl", [judged()]), format_name="healthbench-examples")
    with pytest.raises(ImportFailed, match=r"b\.jsonl: metadata: expected a value, got nothing"):
        bring(filled, write(tmp_path / "b.jsonl", [judged()]), format_name="simple-evals", model="m")
    with pytest.raises(
        ImportFailed,
        match=r"c\.json line 1: not valid JSON: unexpected end of data: line 1 column 2 \(char 1\), got '\{'\
c\.json line 2: the row: expected an object, got another value",
    ):
        bring(filled, write(tmp_path / "c.json", results(entry())), format_name="verdict-table")
