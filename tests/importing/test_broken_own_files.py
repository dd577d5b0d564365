"""A broken file with names of its own is refused whole: one sentence says where, what was expected, what was found; nothing is stored."""

import gzip
import io
import json
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evalcore.errors import ImportFailed
from evalcore.importing.mapping import parse
from tests.importing.shapes import json_lines, table
from tests.invented import bring, dump, study

TABLE = "{format: grade-table, columns: {q: question, a: answer, m: model, rule: criterion, weight: points, said: grade, who: judge}, met: [fine]}"
LOG = "{format: responses, columns: {'log.messages[:-1]': conversation, 'log.messages[-1].content': text, log.model: model}}"
LIST = "{format: grade-table, each: log.checks, columns: {q: question, a: answer, m: model, each.rule: criterion, each.said: grade, who: judge}}"
ROWS = TABLE.replace("format:", "rows: data.items, format:")
TURNS = [{"role": "user", "content": "Can I swim?"}, {"role": "assistant", "content": "With a light cold you can."}]


def row(**change):
    told = {
        "q": "Can I swim?",
        "a": "With a light cold you can.",
        "m": "wren",
        "rule": "Is careful.",
        "weight": 5,
        "said": "fine",
        "who": "Magpie",
    }
    return told | change


def log(**change):
    return {"log": {"messages": TURNS, "model": "wren"} | change}


def checked(checks):
    return {
        "q": "Can I swim?",
        "a": "With a light cold you can.",
        "m": "wren",
        "who": "Magpie",
        "log": {"checks": checks},
    }


def csv(*rows, delimiter=","):
    return table([row(), *rows], delimiter)


def lines(*rows):
    return json_lines([row(), *rows])


def sheet(*rows, change=lambda _sheet: None):
    book = openpyxl.Workbook()
    book.active.append(list(row()))
    for one in (row(), *rows):
        book.active.append(list(one.values()))
    change(book.active)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet(columns):
    out = io.BytesIO()
    pq.write_table(pa.table({name: [value] for name, value in row().items()} | columns), out)
    return out.getvalue()


def packed(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name.replace("__", "/"), content)
    return out.getvalue()


def formula(cells):
    cells["E2"] = "=2+3"


def excel_error(cells):
    cells["E3"] = "#N/A"
    cells["E3"].data_type = "e"


BROKEN = {
    "a grade of no known word": (TABLE, csv(row(said="so-so")), r"line 3: grade \(from said\): expected true or false, yes or no, .*, got 'so-so'"),
    "a grade in a sentence": (TABLE, csv(row(said="Yes, mostly.")), r"line 3: grade \(from said\): expected true or false, .*, got 'Yes, mostly.'"),
    "points with a fraction": (TABLE, csv(row(weight=2.5)), r"line 3: points \(from weight\): expected a whole number -10..10 without 0, got '2.5'"),
    "points beyond the scale": (TABLE, csv(row(weight=50)), r"line 3: points \(from weight\): expected a whole number -10..10 without 0, got '50'"),
    "points of 0": (TABLE, csv(row(weight=0)), r"line 3: points \(from weight\): expected a whole number -10..10 without 0, got '0'"),
    "no answer": (TABLE, csv(row(a=" ")), r"line 3: answer \(from a\): expected the response, got nothing"),
    "no conversation": (TABLE, csv(row(q="")), r"line 3: question \(from q\): expected it, or example_id, to find the example, got nothing"),
    "no model": (TABLE, csv(row(m="")), r"line 3: model \(from m\): expected who answered, here or as Model, got nothing"),
    "no judge": (TABLE, csv(row(who="")), r"line 3: judge \(from who\): expected the judge's name here or as Judge, got nothing"),
    "a grade without its criterion": (TABLE, csv(row(rule="")), r"line 3: criterion \(from rule\): expected the criterion's text, got nothing"),
    "a criterion graded twice": (TABLE, csv(row(said="no")), "line 3: criterion: expected it once for a response and judge, got it again with another grade"),
    "a name of several lines": (TABLE, csv(row(m="wren\nfinch")), r"model \(from m\): expected a name of at most 200 printable characters"),
    "a column that is not there": (TABLE, csv().replace(b",said,", b",verdict,"), r"line 2: said: expected a column of the file, which are q, a, m, rule, weight, verdict, who, got none of this name: correct the mapping"),
    "a column twice": (TABLE, csv().replace(b",said,", b",rule,"), "line 1: rule: expected the column once, got it twice"),
    "a cell too many": (TABLE, csv() + b"a,b,c,d,e,f,g,h\n", "line 3: expected 7 cells as in the first line, got 8"),
    "a quote that is never closed": (TABLE, csv() + b'"Can I', "line 3: not readable as CSV: unexpected end of data"),
    "an old Windows encoding": (TABLE, csv(row(rule="Größe genannt.")).decode().encode("cp1252"), "line 3: byte .*: expected UTF-8, got f6 df"),
    "text with a NUL": (TABLE, lines(row(a="a\x00b")), "line 2: text: expected text that a database can hold, got the character NUL"),
    "names of columns alone": (TABLE, csv().splitlines()[0] + b"\n", "expected at least one row, got none"),
    "an empty file": (TABLE, b"", "expected CSV, JSON Lines, JSON, Parquet or XLSX, got 0 bytes"),
    "a line cut off": (TABLE, lines() + b'{"q": "Can I', "line 2: not valid JSON: "),
    "a line that is no object": (TABLE, lines() + b"[1, 2]\n", r"line 2: the row: expected an object, got \[1,2\]"),
    "a document cut off": (TABLE, json.dumps([row()]).encode()[:-9], "the row: |not valid JSON: "),
    "an entry that is no object": (TABLE, json.dumps([row(), "x"]).encode(), "entry 2: the row: expected an object, got \"x\"|entry 2: the row: expected an object, got 'x'"),
    "rows at another key": (ROWS, json.dumps({"data": {"rows": [row()]}}, indent=1).encode(), "rows: expected the key data.items with a list of objects, got no items"),
    "a conversation that ends with the answer": (LOG.replace("[:-1]", ""), json_lines([log()]), r"line 1: conversation\[1\].role: expected the user's turn last, got 'assistant'"),
    "a turn of a tool": (LOG, json_lines([log(messages=[{"role": "tool", "content": "x"}, *TURNS])]), r"line 1: conversation\[0\].role: expected one of system, developer, user, assistant, got 'tool'"),
    "a picture in a turn": (LOG, json_lines([log(messages=[{"role": "user", "content": [{"type": "image_url"}]}, TURNS[1]])]), r"line 1: conversation\[0\].content: expected text, got \["),
    "a log without an answer": (LOG, json_lines([log(messages=[])]), r"line 1: .*: expected "),
    "a list that is none": (LIST, json_lines([checked(7)]), "line 1: log.checks: expected a list, of which each item becomes a row, got 7"),
    "a list without end": (LIST, json_lines([checked([{"rule": str(n), "said": True} for n in range(1_001)])]), "line 1: log.checks: expected a list of at most 1,000 items, got 1,001"),
    "a workbook with an error of Excel": (TABLE, sheet(row(), change=excel_error), "row 3: cell E3: expected a value, got Excel's error #N/A"),
    "a formula that was never calculated": (TABLE, sheet(change=formula), "row 2: cell E2: expected a value, got a formula that was never calculated: open the file in Excel and save it, or paste values"),
    "a cell beyond the names": (TABLE, sheet(change=lambda cells: cells.cell(2, 9, "x")), "row 2: expected 7 cells as in the first row, got 9"),
    "a sheet of another name": (TABLE.replace("format:", "rows: Grades, format:"), sheet(), "rows: expected one of the sheets Sheet, got 'Grades'"),
    "a workbook cut off": (TABLE, sheet()[:-40], "expected CSV, JSON Lines, JSON, Parquet or XLSX, got a zip that is no workbook"),
    "a damaged workbook": (TABLE, packed(xl__workbook_xml="x", **{"xl__workbook.xml": "<broken"}), "not readable as XLSX: "),
    "a workbook of an old Excel": (TABLE, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, r"got a workbook of an old Excel \(.xls\): save it as .xlsx or CSV"),
    "a damaged Parquet": (TABLE, parquet({})[:-30] + b"PAR1", "not readable as Parquet: "),
    "Parquet with a column less": (TABLE, parquet({"rule": [""], "said": [""], "weight": [""], "a": [""]}), r"row 1: answer \(from a\): expected the response, got nothing"),
    "gzip cut off": (TABLE, gzip.compress(csv() * 50)[:-20], "not readable as gzip: "),
}  # fmt: skip


@pytest.mark.parametrize(("text", "content", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_in_one_sentence_and_nothing_is_stored(
    tmp_path, sqlite_database_url, text, content, told
):
    path = tmp_path / "mine"
    path.write_bytes(content)
    with study(sqlite_database_url) as engine:
        before = dump(engine)
        with pytest.raises(ImportFailed, match=told) as failed:
            bring(engine, path, names=parse(text, "mapping"), judge=None)
        assert len(failed.value.faults) == 1
        assert failed.value.faults[0].startswith("mine")
        assert dump(engine) == before
