"""Small files that stand for very much: refused with a sentence before they fill the memory, and before the study is locked."""

import gzip
import io
import json
import resource
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing import context, staging
from evalcore.importing.files import opening, parquet, streams
from evalcore.importing.formats import healthbench, values
from tests.acuity_files import case, table
from tests.invented import bring, example, lines, study

MEMORY = 4 << 30
"""Bytes of addresses that an import may have: the program itself takes two thirds of a GB."""


@pytest.fixture
def engine(sqlite_database_url):
    with study(sqlite_database_url) as engine:
        yield engine


def imported(path: Path) -> subprocess.CompletedProcess[str]:
    """`overread import`, with bounded memory."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    command = [sys.executable, "-m", "evalcore", "import", str(path), "--db", str(path.parent / "study.db")]
    told = ["--judge", "Judge A", "--model", "M"] if path.suffix == ".gz" else []
    return subprocess.run(
        [*command, *told], capture_output=True, text=True, check=False, timeout=120, preexec_fn=bounded
    )


def refusal(engine, path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    with pytest.raises(ImportFailed) as failed:
        bring(engine, path)
    return failed.value.faults


def repeated(text: str, n_rows: int) -> bytes:
    """Cases of triage as Parquet, all with one and the same text, which the file holds once."""
    columns = {name: pa.array([value] * n_rows) for name, value in case().items()}
    columns["source_id"] = pa.array([str(number) for number in range(n_rows)])
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, dtype=np.int32)), pa.array([text]))
    columns["normalized_prompt_text"] = texts
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, compression="zstd", dictionary_pagesize_limit=1 << 30)
    return file.getvalue()


@pytest.mark.slow
def test_a_text_that_parquet_holds_once_and_shows_a_thousand_times_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "cases.parquet"
    path.write_bytes(repeated("a" * 8_000_000, 1_000))  # 8 GB
    assert path.stat().st_size < 60_000
    done = imported(path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        f"cases.parquet: it unpacks to more than 50,000,000 bytes, {EXPECTED}",
    ), done.stderr


EXPECTED = "expected at most that (100 bytes for each of the file's, and 17,179,869,184)"


@pytest.mark.slow
def test_gzip_that_unpacks_to_gigabytes_of_one_document_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "made_m_20260101_000000_allresults.json.gz"
    head = gzip.compress(b'{"score": 1, "metadata": {"example_level_metadata": [')
    path.write_bytes(head + gzip.compress(b"{}," * 5_000_000, 9) * 300)  # 4.5 GB
    assert path.stat().st_size < 6_000_000
    done = imported(path)
    assert done.returncode == 1, done.stderr
    assert "it unpacks to more than" in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_gzip_that_unpacks_to_too_much_is_refused_before_the_study_is_locked(engine, tmp_path, monkeypatch):
    # Each row is right, and there already: an import of all of them held the lock for minutes.
    one = gzip.compress(lines(example("p1")) * 20_000, mtime=0)
    monkeypatch.setattr(staging, "writing", Mock(side_effect=AssertionError("the study was locked")))
    (fault,) = refusal(engine, tmp_path / "rows.jsonl.gz", one * 20)
    assert fault.startswith(
        f"rows.jsonl.gz: it unpacks to more than {2_000 * len(one):,} bytes"
    )  # a hundred times the file


def test_with_ten_thousand_faults_a_file_is_read_no_further(engine, tmp_path):
    content = lines(example("p1")) + b'{"prompt_id": 1}\n' * 30_000
    found = refusal(engine, tmp_path / "rows.jsonl", content)
    assert len(found) == context.MAX_FAULTS + 1
    assert found[-1] == "rows.jsonl line 10001: with 10,000 faults it was read no further"


def test_lines_without_end_are_bounded_empty_ones_too(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "MAX_ROWS", 100)
    found = refusal(engine, tmp_path / "rows.jsonl", lines(example("p1")) + b"\n" * 1_000)
    assert found == ["rows.jsonl line 101: expected at most 100 lines, got more"]


@pytest.mark.parametrize("entry", ["{}", "[]", "1", '{"a": [1, 2]}'])
def test_entries_of_a_document_are_counted_before_one_is_held(entry, monkeypatch):
    monkeypatch.setattr(values, "MAX_ENTRIES", 1_000)
    document = '{"metadata": {"example_level_metadata": [' + ",".join([entry] * 1_001) + "]}}"
    with pytest.raises(
        RowFault, match=r"metadata.example_level_metadata: expected a list of at most 1,000 objects, got .*"
    ):
        healthbench.entries(document.encode())


def test_a_document_may_have_as_many_entries_as_it_may_and_any_number_of_commas(monkeypatch):
    monkeypatch.setattr(values, "MAX_ENTRIES", 100)
    document = {"htmls": [",,,,"] * 500, "metadata": {"example_level_metadata": [{"prompt": ",,,"}] * 100}}
    assert len(healthbench.entries(json.dumps(document).encode())) == 100


def test_parquet_is_bounded_by_row_by_rows_and_by_pages(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERREAD_MAX_LINE_BYTES", "10000")
    file = tmp_path / "a"
    assert refusal(engine, file, repeated("a" * 10_000, 3)) == [
        "a row 1: expected rows of at most 10,000 bytes, got a longer one"
    ]
    monkeypatch.setattr(parquet, "MAX_ROWS", 2)
    assert refusal(engine, file, repeated("a", 3)) == ["a: expected at most 2 rows, got more"]
    monkeypatch.undo()
    monkeypatch.setattr(streams, "FREE", 500)
    monkeypatch.setattr(streams, "MAX_RATIO", 0)
    assert "a: it unpacks to more than 500 bytes" in refusal(engine, file, repeated("a" * 1_000, 3))[0]


def test_a_table_with_a_text_repeated_in_it_gives_what_csv_gives(tmp_path, sqlite_database_url, monkeypatch):
    monkeypatch.setattr(parquet, "_TOGETHER", 100)  # a row at a time
    with study(sqlite_database_url) as engine:
        path = tmp_path / "cases.parquet"
        path.write_bytes(repeated("I have had a fever.", 30))
        assert bring(engine, path, judge=None).rows == 30
        same = tmp_path / "cases.csv"
        same.write_bytes(table(*(case(number, normalized_prompt_text="I have had a fever.") for number in range(30))))
        report = bring(engine, same, judge=None)
        assert (report.rows, report.adds_nothing) == (30, True)
