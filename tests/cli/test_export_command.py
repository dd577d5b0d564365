"""The command `export`: the formats by name and by ending, the codebook beside it, and one sentence where it cannot be."""

import csv

import pytest

from evalcore.export.tables import CODEBOOK
from tests.commands import dump


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
        (("--format", "inspect", "--model", "Alder-2"), "out.jsonl", b""),
        (("--what", "verdicts", "--read-only"), "out.csv", b"dataset,example_id"),
    ],
)
def test_export_knows_its_formats_by_name_and_by_ending(filled, tmp_path, arguments, name, starts):
    filled.good("export", name, *arguments, "--db", filled.db)
    assert (tmp_path / name).read_bytes().startswith(starts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("x.csv", "--what", "marks"),
            "table: expected one of labels, verdicts, scores, criteria, acuity, cases, got 'marks'",
        ),
        (
            ("x.csv", "--format", "docx"),
            "expected csv, parquet, jsonl, meta-eval, inspect, examples or responses, got 'docx'",
        ),
        (("x.csv", "--judge", "Owl"), "judge: expected one of Magpie, got 'Owl'"),
        (("nowhere/x.csv",), "nowhere/x.csv: cannot be written"),
    ],
)
def test_an_export_that_cannot_be_is_one_sentence_and_leaves_no_event(filled, arguments, said):
    before = dump(filled.db)
    assert said in filled.bad("export", *arguments, "--db", filled.db)
    assert dump(filled.db) == before
