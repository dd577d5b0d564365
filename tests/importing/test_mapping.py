"""A file with names and words of its own is imported as the format that a mapping says."""

import json
from datetime import date, datetime

import openpyxl
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import ImportFailed, OverreadError
from evalcore.importing import staging
from evalcore.importing.files import streams
from evalcore.importing.mapping import OwnNames, constant, keep, parse, said_constant, to_yaml
from evalcore.importing.proposing import sample
from evalcore.study.db import open_study, writing
from evalcore.study.schema import Administrator, Role
from evalcore.study.store import add_person
from tests.importing.test_own_data import ANSWER, ASKED, FEVER, as_file, row, scores
from tests.invented import bring, dump, entry, lines, results, rows, study, verdicts, write
from tests.part_steps import Killed, in_parts

TEXT = """
format: grade-table
columns: {Frage: question, Antwort: answer, Wer: model, Kriterium: criterion, Punkte: points, Urteil: grade}
met: [erfüllt, ja]
not_met: [nicht erfüllt]
"""
OWN = parse(TEXT, "mine.yaml")
EIGHT = datetime(2026, 11, 20, 8, 30)  # noqa: DTZ001 - Excel has no zones


def own_row(grade="erfüllt", **change):
    told = {"Frage": ASKED, "Antwort": ANSWER, "Wer": "wren", "Kriterium": FEVER, "Punkte": 6, "Urteil": grade}
    return told | {"judge": "Magpie", "Notiz": "x"} | change


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_own_columns_and_own_words_give_what_the_formats_own_give(tmp_path, database_url, kind):
    given_rows = [own_row(), own_row("Nicht  ERFÜLLT", Kriterium="Another", Punkte=3)]
    with study(database_url) as engine:
        report = bring(engine, as_file(tmp_path / "t", kind, *given_rows), judge=None, names=OWN)
        assert (report.format, report.verdicts_new, report.unread) == ("grade-table", 2, {"Notiz": 2})
        assert scores(engine) == {"wren": round(6 / 9, 9)}
        same = [row(reason=""), row("Another", 3, "no", reason="")]
        assert bring(engine, as_file(tmp_path / "u", kind, *same)).adds_nothing


def test_a_path_goes_into_objects_and_lists(tmp_path, sqlite_database_url):
    text = "format: responses\ncolumns: {in.messages: conversation, out.choices.1.text: text, who: model}"
    nested = {
        "in": {"messages": [{"role": "user", "content": ASKED}]},
        "out": {"choices": [{}, {"text": ANSWER}]},
        "who": "wren",
    }
    with study(sqlite_database_url) as engine:
        report = bring(engine, write(tmp_path / "t", lines(nested)), names=parse(text, "m"))
        assert (report.responses_new, report.unread) == (1, {})
        assert rows(engine, "SELECT text, first_words FROM response JOIN example ON example.id = example_id") == [
            (ANSWER, ASKED)
        ]
        with pytest.raises(
            ImportFailed, match=r"line 1: text \(from out.choices.1.text\): expected the response, got nothing"
        ):
            bring(engine, write(tmp_path / "u", lines(nested | {"out": {"choices": []}})), names=parse(text, "m"))


def test_a_column_that_is_replaced_is_left_unread(tmp_path, sqlite_database_url):
    names = OwnNames("grade-table", {"final": "grade"})
    with study(sqlite_database_url) as engine:
        report = bring(engine, as_file(tmp_path / "t", "csv", row(grade="yes", final="no")), names=names)
        assert report.unread == {"grade": 1}
        assert [label for *_, label in verdicts(engine)] == ["not_met"]


def test_an_import_that_was_broken_off_goes_on_with_the_same_mapping(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        path = as_file(tmp_path / "t", "csv", *(own_row(Kriterium=f"Criterion {number}") for number in range(4)))
        with pytest.raises(Killed), in_parts(batch=1, dies_after=1):
            bring(engine, path, names=OWN)
        assert staging.finish(engine).verdicts_new == 4
        before = dump(engine)
        assert bring(engine, path, names=OWN).already_imported
        assert dump(engine) == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("columns: {a: text}", "mine.yaml: expected format, got nothing"),
        (
            "format: judge-verdicts\ncolumns: {a: judge}",
            "mine.yaml: format: expected one of responses, grade-table, verdict-table, got judge-verdicts",
        ),
        ("format: responses\ncolumns: {a: answer}", "mine.yaml: columns.a: expected one of .*text.*, got answer"),
        (
            "format: responses\ncolumns: {a: text, b: text}",
            "mine.yaml: columns: expected each field from one column, got text from several",
        ),
        (
            "format: responses\ncolumns: {a: text, a: model}",
            "mine.yaml line 2: cannot be read as YAML: expected each key once",
        ),
        ("format: responses\ncolumns: [a]", "mine.yaml: columns: expected keys with values, got a list"),
        ("format: responses\ncolumns: {a: text}\nfields: 3", "mine.yaml: .*fields"),
        (
            "format: grade-table\ncolumns: {a: grade}\nmet: [ja]\nnot_met: [JA]",
            "mine.yaml: met: expected other words than not_met, got ja",
        ),
        ("{", "mine.yaml line 1: cannot be read as YAML"),
        ("met: [yes]\nformat: grade-table\ncolumns: {a: grade}", r"mine.yaml: met\[0\]: expected text"),
        ("#" * 70_000, "mine.yaml: expected a file of settings of at most 65,536 bytes"),
        ("", "mine.yaml: expected format, got nothing"),
        (
            "format: responses\ncolumns: {'[a, b] | [@, @]': text}",
            r"mine.yaml: columns: .*: expected a path that only finds, with no function but join, not_null, to_string",
        ),
        (
            "format: responses\ncolumns: {'sort(a)': text}",
            "mine.yaml: columns: sort.*: expected a path that only finds",
        ),
        (
            f"format: responses\ncolumns: {{{'a' * 201}: text}}",
            "mine.yaml: columns: expected a column or path of at most 200",
        ),
        (
            "format: grade-table\ncolumns: {a: grade}\nseveral: [{b: grade}]",
            r"mine.yaml: several\[0\]: expected each field from one column, got grade from several",
        ),
    ],
)
def test_a_wrong_mapping_is_one_sentence(text, told):
    with pytest.raises(OverreadError, match=f"^{told}"):
        parse(text, "mine.yaml")


NAME = st.text("abcdef", min_size=1, max_size=3)


@given(
    st.dictionaries(NAME, st.text(max_size=5), max_size=6),
    st.dictionaries(NAME, st.sampled_from(["text", "model", "date"]), max_size=3),
)
def test_every_cell_is_under_its_field_and_no_field_is_left_over_from_elsewhere(cells, columns):
    fields = list(columns.values())
    if len(set(fields)) < len(fields):
        return
    (named,) = OwnNames("responses", columns).rows_of(cells)
    assert {field: named[field] for field in fields} == {
        field: cells.get(column, "") for column, field in columns.items()
    }
    assert {name: text for name, text in named.items() if name not in fields} == {
        name: text for name, text in cells.items() if name not in fields and name not in columns
    }


def test_the_command_takes_a_mapping(overread):
    write(overread.folder / "mine.yaml", TEXT.encode())
    pd.DataFrame([own_row()]).to_csv(overread.folder / "mine.csv", index=False)
    assert "1 new verdict" in overread.good("import", "mine.csv", "--mapping", "mine.yaml")
    assert "expected --mapping or --format, got both" in overread.bad(
        "import", "mine.csv", "--mapping", "mine.yaml", "--format", "responses"
    )
    assert "expected a file or one of the study's mappings (it keeps none), got no.yaml" in overread.bad(
        "import", "mine.csv", "--mapping", "no.yaml"
    )
    engine = open_study(f"sqlite:///{overread.folder / 'overread.db'}")
    keep(engine, "ours", OWN, actor=Administrator(name="tester"))
    assert not keep(engine, "ours", OWN, actor=Administrator(name="tester"))
    engine.dispose()
    assert "It adds nothing" in overread.good("import", "mine.csv", "--mapping", "ours")


def made(text, **cells):
    return list(parse(text, "m").rows_of(cells))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("log.turns[-1].content", "last"),
        ("log.turns[?role=='user'].content | [0]", "first"),
        ("log.turns.0.content", "first"),
        ("'always'", "always"),
        ("log.none[0]", ""),
        ("What is met? (1-5)", "5"),
        ("log.grade", "true"),
        ("reply.met", "false"),
        ("to_string(log.number)", "0.5"),
    ],
)
def test_a_path_finds_what_stands_there_and_a_name_that_is_no_path_is_a_column(path, found):
    log = {
        "turns": [{"role": "user", "content": "first"}, {"role": "user", "content": "last"}],
        "grade": True,
        "number": 0.5,
    }
    cells = {
        "log": json.dumps(log),
        "What is met? (1-5)": "5",
        "reply": 'I think\n```json\n{"met": false}\n```\nThat is all.',
    }
    (row,) = OwnNames("grade-table", {path: "reason"}).rows_of(cells)
    assert row["reason"] == found


def test_each_item_of_a_list_and_each_set_of_columns_is_a_row():
    text = "{format: grade-table, each: checks, columns: {a: answer, each.rule: criterion}, several: [{each.one: grade}, {each.two: grade}]}"
    checks = json.dumps([{"rule": "r", "one": 1, "two": 0}, {"rule": "s", "one": 0, "two": 1}])
    found = made(text, a="x", checks=checks)
    assert [(row["answer"], row["criterion"], row["grade"]) for row in found] == [
        ("x", "r", "1"), ("x", "r", "0"), ("x", "s", "0"), ("x", "s", "1"),
    ]  # fmt: skip
    assert [row["grade"] for row in made(text, a="x", checks="[]")] == ["", ""]  # answers that nobody graded


def test_an_answer_that_nobody_graded_comes_in_without_verdicts(tmp_path, database_url):
    with study(database_url) as engine:
        rows_of_table = [row(), row(answer="Ask a doctor.", criterion="", grade="", points="")]
        report = bring(engine, as_file(tmp_path / "t", "csv", *rows_of_table))
        assert (report.responses_new, report.verdicts_new, report.ungraded) == (2, 1, 0)


@given(st.floats(0, 10), st.floats(0, 10))
def test_a_number_is_met_from_the_threshold_on(number, least):
    (row,) = OwnNames("grade-table", {"g": "grade"}, met_from=least).rows_of({"g": repr(number)})
    assert row["grade"] == ("met" if number >= least else "not_met")


@pytest.mark.parametrize(
    "turns",
    [
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        [{"type": "human", "content": "a"}, {"type": "ai", "content": "b"}],
        [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "Assistant", "content": "b"}],
    ],
)
def test_conversations_of_other_programs_are_understood(turns):
    (row,) = OwnNames("responses", {"t[:-1]": "conversation", "t[-1]": "text"}).rows_of({"t": json.dumps(turns)})
    assert (json.loads(row["conversation"]), row["text"]) == ([{"role": "user", "content": "a"}], "b")


@given(st.text(max_size=30))
def test_words_of_ones_own_are_found_as_they_are(words):
    assert said_constant(constant(words)) == words
    (row,) = OwnNames("grade-table", {constant(words): "criterion"}).rows_of({"a": "b"})
    assert row["criterion"] == words


def test_cells_of_excel_are_text_without_loss(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["day", "time", "number", "long", "truth", "text", "calculated"])
    book.active.append([date(2026, 11, 20), EIGHT, 0.1, 123456789012345, True, " ä\n0123", 5])
    book.save(tmp_path / "t.xlsx")
    ((number, cells),) = sample(tmp_path / "t.xlsx", "t.xlsx").rows
    assert number == 2
    assert cells == {
        "day": "2026-11-20", "time": "2026-11-20T08:30:00", "number": "0.1", "long": "123456789012345", "truth": "true", "text": " ä\n0123",
        "calculated": "5",
    }  # fmt: skip


def test_a_workbook_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path, monkeypatch):
    book = openpyxl.Workbook()
    for _ in range(50):
        book.active.append(["a" * 1_000])
    book.save(tmp_path / "t.xlsx")
    monkeypatch.setattr(streams, "FREE", 500)
    monkeypatch.setattr(streams, "MAX_RATIO", 0)
    with pytest.raises(ImportFailed, match=r"t\.xlsx: it unpacks to more than 500 bytes"):
        sample(tmp_path / "t.xlsx", "t.xlsx")


def test_a_text_that_nested_parquet_holds_once_and_shows_often_is_measured_where_it_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("OVERREAD_MAX_LINE_BYTES", "10000")
    turns = [[{"role": "user", "content": "a" * 1_000}] * 11] * 3
    pd.DataFrame({"turns": turns, "text": ["b"] * 3}).to_parquet(tmp_path / "t")
    with pytest.raises(ImportFailed, match="t row 1: expected rows of at most 10,000 bytes, got a longer one"):
        sample(tmp_path / "t", "t")


LABELS = OwnNames(
    "verdict-table",
    {
        "Fall": "example_id",
        "System": "model",
        "Nr": "criterion_position",
        "Arzt": "rater",
        "Urteil": "label",
        "Warum": "explanation",
    },
    met=("erfüllt",),
    not_met=("fehlt",),
)
READ = "Fall,System,Nr,Arzt,Urteil,Warum\n"


def test_physicians_labels_in_columns_of_their_own_are_reads_as_those_of_the_format(tmp_path, sqlite_database_url):
    """Own words, the usual ones and those of the format; each of a physician, as a first read."""
    with study(sqlite_database_url) as engine:
        bring(
            engine, write(tmp_path / "healthbench_m_20260101_101010_allresults.json", results(entry("p1"))), judge="J"
        )
        given_lines = "p1,m,1,Dr. Vale,erfüllt,ja\np1,m,2,Dr. Vale,no,\np1,m,3,Dr. Vale,cannot_assess,\np1,m,1,Dr. Okri,Fehlt,nein\n"
        report = bring(engine, write(tmp_path / "labels.csv", (READ + given_lines).encode()), names=LABELS)
        assert report.verdicts_new == 4
        found = rows(
            engine,
            "SELECT r.name, r.kind, c.position, v.stage, v.label, v.explanation FROM verdict v JOIN rater r ON r.id = v.rater_id "
            "JOIN criterion c ON c.id = v.criterion_id WHERE r.kind = 'reviewer' ORDER BY r.name, c.position",
        )
        assert found == [
            ("Dr. Okri", "reviewer", 1, "first", "not_met", "nein"),
            ("Dr. Vale", "reviewer", 1, "first", "met", "ja"),
            ("Dr. Vale", "reviewer", 2, "first", "not_met", None),
            ("Dr. Vale", "reviewer", 3, "first", "cannot_assess", None),
        ]
        assert parse(to_yaml(LABELS), "labels") == LABELS


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("p1,m,1,Dr. Vale,vielleicht,", "line 2: label (from Urteil): expected"),
        ("p1,m,1,,erfüllt,", "line 2: rater (from Arzt): expected"),
        ("p1,m,,Dr. Vale,erfüllt,", "line 2: criterion_position (from Nr): expected it, or criterion, got nothing"),
        ("p1,m,1,Dr. Sol,erfüllt,", "Dr. Sol"),
    ],
)
def test_physicians_labels_in_columns_of_their_own_are_checked_as_those_of_the_format(
    line, fault, tmp_path, sqlite_database_url
):
    """Also that reads of somebody with an account come only if a lead names them."""
    with study(sqlite_database_url) as engine:
        with writing(engine) as session:
            add_person(session, "Dr. Sol", roles=[Role.REVIEWER], actor="set-up")
        bring(
            engine, write(tmp_path / "healthbench_m_20260101_101010_allresults.json", results(entry("p1"))), judge="J"
        )
        before = dump(engine)
        with pytest.raises(ImportFailed) as refused:
            bring(engine, write(tmp_path / "labels.csv", f"{READ}{line}\n".encode()), names=LABELS)
        assert fault in str(refused.value)
        assert dump(engine) == before
