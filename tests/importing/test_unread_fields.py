"""What a file holds and nobody reads is listed, with the number of rows that hold something there."""

import csv
import io
import json

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from evalcore.errors import RowFault
from evalcore.importing import staging
from evalcore.importing.context import MAX_NAMED, Kind, Options
from evalcore.importing.files.opening import MAX_FIELDS, OTHERS, recognise
from evalcore.importing.formats import FORMATS, template
from evalcore.importing.formats.healthbench import ExampleRow
from evalcore.importing.formats.verdicts import VerdictRow
from evalcore.study.schema import FILE_IMPORTED
from tests import acuity_files
from tests.invented import bring, criterion, entry, example, lines, results, rows, study, user, write
from tests.part_steps import Killed, in_parts

READ = {"example_id": "p1", "model": "m", "criterion_position": "1", "rater": "Dr. Vale", "label": "met"}
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6).map("x_".__add__)
"""No format has a field that begins so."""
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def left_of(path, content, format_name=None):
    """The fields of a file that are left unread."""
    left: dict[str, int] = {}
    file = recognise(write(path, content), name=path.name, format_name=format_name)
    for _, row in file.rows(Options(model="m", judge="j"), lambda _done: None, left):
        assert not isinstance(row, RowFault), row
    return left


def table(*given):
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(given[0]))
    writer.writeheader()
    writer.writerows(given)
    return text.getvalue().encode()


@in_one_folder
@given(st.lists(NAMES, unique=True, max_size=5), st.booleans())
def test_of_a_table_each_column_is_either_read_or_listed(tmp_path, extra, as_json):
    row = READ | {"criterion_position": 1} | dict.fromkeys(extra, "something")
    left = left_of(tmp_path / "t", lines(row) if as_json else table(row))
    assert left.keys() | (row.keys() & set(VerdictRow.__struct_fields__)) == row.keys()
    assert left == dict.fromkeys(extra, 1)


@in_one_folder
@given(*[st.lists(NAMES, unique=True, max_size=4)] * 3)
def test_of_an_object_each_field_is_either_read_or_listed_also_within_a_list(tmp_path, above, in_turn, in_criterion):
    row = example(
        prompt=[user() | dict.fromkeys(in_turn, 1)],
        rubric=[criterion() | dict.fromkeys(in_criterion, 1), criterion("Another")],
    )
    row |= dict.fromkeys(above, 1)
    left = left_of(tmp_path / "t", lines(row))
    assert left.keys() | set(ExampleRow.__struct_fields__) == (
        row.keys() | {f"prompt[].{name}" for name in in_turn} | {f"rubrics[].{name}" for name in in_criterion}
    )


@pytest.mark.parametrize("kind", ["CSV", "JSON Lines", "Parquet"])
def test_rows_that_hold_nothing_in_a_field_do_not_count(tmp_path, kind):
    cases = [acuity_files.case(place) | {"noted": "x" if place < 2 else None, "blank": None} for place in range(5)]
    frame = pd.DataFrame(cases).astype({"noted": "string", "blank": "string"})
    path = tmp_path / "cases"
    if kind == "Parquet":
        frame.to_parquet(path)
    content = {"CSV": frame.to_csv(index=False).encode(), "JSON Lines": lines(*cases)}.get(kind)
    assert left_of(path, path.read_bytes() if content is None else content) == {"noted": 2, "blank": 0}


def test_a_field_of_several_items_counts_once_a_row(tmp_path):
    noted = [criterion() | {"note": "x"}, criterion("Another") | {"note": "y"}, criterion("A third") | {"note": None}]
    left = left_of(tmp_path / "t", lines(example(rubric=noted), example("p2", rubric=noted[2:])))
    assert left == {"rubrics[].note": 1}


def test_of_a_results_document_what_stands_around_the_entries_is_listed_too(tmp_path):
    document = {"grader": "somebody"} | results(entry(), entry("p2", usage={"tokens": 3})) | {"seed": 1}
    document["metadata"]["host"] = "here"
    named = dict.fromkeys(("grader", "score", "metrics", "htmls", "convos", "seed", "metadata.host"), 1)
    around = {f"the document's {name}": n for name, n in named.items()}
    assert left_of(tmp_path / "t", document) == around | {"score": 2, "usage": 1}


def test_a_log_with_numbers_that_json_does_not_have_is_looked_at_too(tmp_path):
    log = json.loads(template("inspect-log").read_bytes())
    log["samples"][0] |= {"cost": float("nan"), "host": "NaN"}
    left = left_of(tmp_path / "t", json.dumps(log).encode())
    assert {name: left.get(name) for name in ("cost", "host")} == {"cost": 0, "host": 1}


def test_votes_are_read_where_the_format_has_votes_alone(tmp_path):
    voted = {"anon_label_7": "A", "anon_label_7_rater": "Dr. Vale"}
    assert left_of(tmp_path / "cases", acuity_files.table(acuity_files.case() | voted)) == {}
    assert left_of(tmp_path / "reads", table(READ | voted)) == {"anon_label_7": 1, "anon_label_7_rater": 1}


def test_of_very_many_fields_the_rest_is_counted_together(tmp_path):
    row = example() | {f"x_{number:03}": 1 for number in range(MAX_FIELDS + 10)}
    left = left_of(tmp_path / "t", lines(row))
    assert (len(left), left[OTHERS]) == (MAX_FIELDS + 1, 10)


def test_the_check_the_report_and_the_trail_say_the_same(tmp_path, database_url):
    extra = {"responses": [{"text": "Drink water."}], "grader": None}
    path = write(tmp_path / "mine.jsonl", [example() | extra, example("p2") | {"responses": []}])
    with study(database_url) as engine:
        checked, done = bring(engine, path, dry_run=True), bring(engine, path)
        assert checked.unread == done.unread == {"responses": 1, "grader": 0}
        said = "2 fields are not read, with the number of rows that hold something there: responses (1), grader (always empty)"
        assert said in checked.sentences()
        assert said in done.sentences()
        ((detail,),) = rows(engine, f"SELECT detail FROM audit_event WHERE action = '{FILE_IMPORTED}'")
        assert (detail if isinstance(detail, dict) else json.loads(detail))["unread"] == done.unread


def test_an_import_in_parts_counts_every_row_once_also_where_it_was_broken_off(tmp_path, sqlite_database_url):
    path = write(tmp_path / "mine.jsonl", [example(f"p{number}") | {"note": "x"} for number in range(4)])
    with study(sqlite_database_url) as engine:
        with pytest.raises(Killed), in_parts(batch=1, dies_after=1):
            bring(engine, path)
        assert staging.finish(engine).unread == {"note": 4}


def test_a_file_without_such_fields_is_told_of_none(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        report = bring(engine, write(tmp_path / "mine.jsonl", [example()]))
        assert (report.unread, [line for line in report.sentences() if "not read" in line]) == ({}, [])


def test_of_many_fields_the_fullest_are_named(tmp_path, sqlite_database_url):
    row = example() | {f"x_{number:02}": 1 for number in range(MAX_NAMED + 3)}
    with study(sqlite_database_url) as engine:
        report = bring(engine, write(tmp_path / "mine.jsonl", [row]))
        (said,) = [line for line in report.sentences() if "not read" in line]
        assert said.startswith(f"{MAX_NAMED + 3} fields are not read")
        assert said.endswith(f"x_{MAX_NAMED - 1:02} (1), and 3 more")


def test_every_format_of_objects_says_which_of_their_fields_it_reads():
    assert [one.name for one in FORMATS.values() if one.row is None and (one.read or one.kind is Kind.LOG)] == []
