"""The codebook, the same values in every format, and cells that run nothing in a spreadsheet."""

import csv
import io
import json

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from evalcore.export import columnar, queries, tables as export_tables
from evalcore.export.tables import CODEBOOK, DTYPES
from evalcore.study.csv_cells import guarded, unguarded
from tests import world
from tests.export_steps import as_file, from_csv

DANGEROUS = "=+-@\t\r\n＝＋－＠"


# ---------------------------------------------------------------- the codebook


@pytest.mark.parametrize("what", export_tables.WHAT)
def test_the_codebook_says_something_about_every_column_once(overridden, what):
    columns = [column for column, _ in CODEBOOK[what]]
    assert list(export_tables.table(overridden.engine, what).columns) == columns
    assert len(set(columns)) == len(columns)
    text = export_tables.codebook_text(what)
    for column, meaning in CODEBOOK[what]:
        assert meaning
        assert f"| {column} | {meaning} |" in text


def test_every_kind_that_the_codebook_gives_belongs_to_a_column():
    named = {column for columns in CODEBOOK.values() for column, _ in columns}
    assert {column for kinds in DTYPES.values() for column in kinds} <= named


# ---------------------------------------------------------------- the same in every format


@pytest.mark.parametrize("what", export_tables.WHAT)
def test_every_format_holds_the_same_values(overridden, what):
    table = export_tables.table(overridden.engine, what)
    plain = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    parquet = pq.read_table(io.BytesIO(as_file(table, "parquet"))).to_pylist()
    assert parquet == plain
    said = [{k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in row.items()} for row in plain]
    assert [json.loads(line) for line in as_file(table, "jsonl").splitlines()] == said
    assert [{k: unguarded(v) for k, v in row.items()} for row in from_csv(export_tables.to_csv(table))] == [
        {k: as_cell(v) for k, v in row.items()} for row in said
    ]


def as_cell(value):
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("what", export_tables.WHAT)
def test_an_empty_study_gives_empty_tables_with_the_same_columns_and_kinds(empty, small_kinds, what):
    table = export_tables.table(empty, what)
    assert table.empty
    assert table.dtypes.astype(str).to_dict() == small_kinds[what]
    assert export_tables.to_csv(table).decode().strip().split(",") == list(table.columns)
    assert as_file(table, "jsonl") == b""
    assert pq.read_table(io.BytesIO(as_file(table, "parquet"))).num_rows == 0


@pytest.fixture(scope="module")
def small_kinds(tmp_path_factory):
    made = world.made(str(tmp_path_factory.mktemp("kinds") / "study.db"))
    kinds = {what: export_tables.table(made.engine, what).dtypes.astype(str).to_dict() for what in export_tables.WHAT}
    made.engine.dispose()
    return kinds


# ---------------------------------------------------------------- cells that run nothing


texts = st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=12)


hostile = st.builds(str.__add__, st.text("'" + DANGEROUS + ' "', max_size=4), texts)


@settings(deadline=None)
@given(st.lists(st.one_of(hostile, texts), min_size=1, max_size=6))
def test_no_text_cell_begins_with_what_a_spreadsheet_runs_and_the_text_comes_back(words):
    content = export_tables.to_csv(pd.DataFrame({"word": pd.Series(words, dtype="str"), "n": range(len(words))}))
    cells = [row["word"] for row in from_csv(content)]
    assert not [cell for cell in cells if cell.startswith(tuple(DANGEROUS))]
    assert [unguarded(cell) for cell in cells] == words


@pytest.mark.parametrize("sign", DANGEROUS)
def test_each_of_the_signs_is_guarded(sign):
    content = export_tables.to_csv(pd.DataFrame({"word": [sign + "1"]}))
    assert from_csv(content) == [{"word": "'" + sign + "1"}]


def test_numbers_truths_and_times_are_no_texts():
    frame = pd.DataFrame(
        {
            "points": pd.array([-5, None], dtype="Int64"),
            "score": [-2.5, None],
            "read": pd.array([True, None], dtype="boolean"),
            "at": pd.to_datetime(["2026-11-20T10:00:00.5Z", None], format="ISO8601"),
        }
    )
    assert from_csv(export_tables.to_csv(frame)) == [
        {"points": "-5", "score": "-2.5", "read": "true", "at": "2026-11-20T10:00:00.500000+00:00"},
        {"points": "", "score": "", "read": "", "at": ""},
    ]


cells = st.one_of(st.none(), hostile, texts)


@settings(deadline=None)
@given(st.lists(st.tuples(cells, cells, st.one_of(st.none(), st.floats(allow_nan=False))), max_size=6))
def test_the_lines_are_those_of_the_csv_module(rows):
    frame = pd.DataFrame(rows, columns=["one", "other", "share"]).astype({"one": "str", "other": "str", "share": float})
    plain = io.StringIO()
    writer = csv.writer(plain)
    writer.writerow(frame.columns)
    writer.writerows([*("" if cell is None else guarded(cell) for cell in row[:2]), row[2]] for row in rows)
    assert export_tables.to_csv(frame).decode() == plain.getvalue()


def test_a_table_of_one_column_has_a_line_for_an_empty_cell():
    assert export_tables.to_csv(pd.DataFrame({"word": ["a", "", None]})) == b'word\r\na\r\n""\r\n""\r\n'


@pytest.mark.parametrize("what", export_tables.WHAT)
def test_a_table_is_the_same_in_every_format_whatever_parts_it_is_made_in(overridden, monkeypatch, what):
    table = export_tables.table(overridden.engine, what)
    monkeypatch.setattr(queries, "_VERDICTS", 3)
    monkeypatch.setattr(columnar, "_ITEMS", 1)
    in_parts = export_tables.table(overridden.engine, what)
    for file_format in export_tables.WRITERS:
        whole, file = as_file(table, file_format), io.BytesIO()
        n_rows, named = export_tables.write(overridden.engine, what, file_format, file)
        if file_format == "parquet":
            whole, parts = (pq.read_table(io.BytesIO(content)) for content in (whole, file.getvalue()))
            assert (parts.schema, parts.to_pylist()) == (whole.schema, whole.to_pylist())
        else:
            assert file.getvalue() == whole, file_format
        assert (n_rows, named) == (len(in_parts), set(in_parts["example_id"])), file_format
