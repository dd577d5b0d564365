"""The table that `overread export --what verdicts` writes is read back as it was."""

import csv
import io

import hypothesis
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import RowFault
from evalcore.export import tables as export_tables
from evalcore.importing.context import Options
from evalcore.importing.formats.verdicts import VERDICT_TABLE, VerdictRow, read_cells
from evalcore.study.csv_cells import guarded, unguarded
from tests.export_steps import as_file
from tests.invented import bring, dump, entry, example, results, rows, study, verdicts, write

RESULTS_NAME = "healthbench_hard_model-a_20260101_101010_allresults.json"
ODD = [
    "=SUM(A1)",
    "'=SUM(A1)",
    "''@x",
    "-1",
    "two\nlines",
    "a\rb",
    "a\r\nb",
    'a "quote", a comma',
    " spaces ",
    "NA",
    "null",
    "",
    "𝛼 مرحبا 胸痛",
]


def filled(engine, folder, *, reads):
    """Two models' results, twice judged, with every kind of odd text; and physicians' reads of all of it."""
    bring(engine, write(folder / "hard.jsonl", [example("p1"), example("=p2")]))
    bring(
        engine,
        write(
            folder / RESULTS_NAME,
            results(*(entry("p1", why=why, answer=f"Answer {n}") for n, why in enumerate(ODD)), entry("=p2")),
        ),
    )
    bring(engine, write(folder / RESULTS_NAME, results(entry("p1"), entry("p1"), entry("=p2"))), model="-model b")
    bring(engine, write(folder / RESULTS_NAME, results(entry("p1"))), dataset="healthbench", judge="Judge, C")
    if reads:
        text = io.StringIO()
        table = csv.writer(text)
        columns = "example_id,model,evaluation,sample_index,criterion_position,rater,label,explanation,stage,confidence,read_at"
        table.writerow(columns.split(","))
        for number, words in enumerate(ODD):
            item = ["p1", "model-a", "healthbench_hard", number, 1, "Dr. Vale"]
            table.writerow([*item, "met", words, "first", 0.1 + number / 30, "2026-01-01T10:00:00.123456+01:00"])
            table.writerow([*item, "not_met", words, "revised", "", ""])
        bring(engine, write(folder / "reads.csv", text.getvalue().encode()))


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_what_was_exported_adds_nothing_to_the_study_that_it_came_from(tmp_path, database_url, file_format):
    with study(database_url) as engine:
        filled(engine, tmp_path, reads=True)
        before = dump(engine)
        exported = as_file(export_tables.table(engine, "verdicts"), file_format)
        report = bring(engine, write(tmp_path / "exported", exported))
        assert report.format == "verdict-table"
        assert (report.adds_nothing, report.without_partner) == (True, 0)
        assert report.verdicts_known == report.rows == len(verdicts(engine))
        assert dump(engine) == before


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_what_was_exported_brings_every_read_to_a_study_that_has_none(tmp_path, database_url, file_format):
    kept = (
        "SELECT e.prompt_id, r.sample_index, c.position, v.stage, v.label, v.explanation, v.confidence, v.created_at FROM verdict v"
        " JOIN example e ON e.id = v.example_id JOIN response r ON r.id = v.response_id JOIN criterion c ON c.id = v.criterion_id"
        " WHERE v.stage <> 'judge' ORDER BY 1, 2, 3, 4"
    )
    with study(database_url) as source, study(f"sqlite:///{tmp_path}/other.db") as target:
        filled(source, tmp_path, reads=True)
        filled(target, tmp_path, reads=False)
        exported = as_file(export_tables.table(source, "verdicts"), file_format)
        report = bring(target, write(tmp_path / "exported", exported))
        assert (report.verdicts_new, report.without_partner) == (2 * len(ODD), 0)
        assert verdicts(target) == verdicts(source)
        one, other = rows(source, kept), rows(target, kept)
        assert [row[:-1] for row in one] == [row[:-1] for row in other]
        first = "SELECT created_at FROM verdict WHERE stage = 'first' ORDER BY id LIMIT 1"
        assert all("09:00:00.123456" in str(rows(engine, first)[0][0]) for engine in (source, target))


TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)


@given(
    TEXT
    | st.builds(
        str.__add__,
        st.sampled_from(["'", "''", "=", "'=", "''=", "@", "\t", "\r", "-", "\n", "'\n", "＝", "'＋"]),
        TEXT,
    )
)
def test_a_guarded_cell_is_unguarded_to_what_it_was(text):
    assert unguarded(guarded(text)) == text


def line_or_sentence(cells):
    """Any exception but a fault of the row goes on."""
    try:
        (row,) = read_cells(cells, 2, Options())
    except RowFault as fault:
        return "a sentence" if ": " in str(fault) else str(fault)
    return f"line {row.line}"


@hypothesis.example("¹")  # a digit to Python, and no number
@hypothesis.example("--1")
@given(TEXT)
def test_any_text_in_any_column_is_a_row_or_one_sentence(text):
    good = {"example_id": "p1", "model": "m", "criterion_position": "1", "rater": "Dr. Vale", "label": "met"}
    for column in VerdictRow.__struct_fields__:
        assert line_or_sentence(good | {column: text}) in ("line 2", "a sentence")


TRUTHS = [
    ("true", True),
    ("True", True),
    ("1", True),
    ("YES", True),
    ("false", False),
    ("0", False),
    (" No ", False),
    ("", None),
]


@pytest.mark.parametrize(("cell", "expected"), TRUTHS)
def test_truth_may_be_written_in_several_ways(cell, expected):
    good = {
        "example_id": "p1",
        "model": "m",
        "criterion_position": "1",
        "rater": "Dr. Vale",
        "label": "met",
        "blinded": cell,
    }
    (row,) = read_cells(good, 2, Options())
    assert row.verdicts[0].blinded is expected


def test_every_documented_column_is_one_that_is_read():
    documented = {
        word.strip(",;") for column, meaning in VERDICT_TABLE.columns.items() for word in (column, *meaning.split())
    }
    assert set(VerdictRow.__struct_fields__) <= documented
