"""Rows in the format of HealthBench's meta-evaluation, and the names of physicians in them."""

import orjson

from evalcore.export import tables as export_tables
from evalcore.importing.context import Options
from evalcore.importing.formats import healthbench
from evalcore.reading.overriding import give_verdict
from evalcore.reading.reviewing import Decision
from evalcore.study.schema import Label
from tests import world

# ---------------------------------------------------------------- the same in every format


def test_an_empty_study_gives_no_meta_evaluation_rows(empty):
    assert export_tables.meta_eval_rows(empty) == b""


# ---------------------------------------------------------------- meta-evaluation rows


def test_meta_evaluation_rows_are_what_the_importer_of_the_official_file_reads(overridden):
    lines = export_tables.meta_eval_rows(overridden.engine).splitlines()
    rows = [orjson.loads(line) for line in lines]
    assert [set(row) for row in rows] == 2 * [{
        "prompt_id", "completion_id", "prompt", "completion", "rubric", "category",
        "binary_labels", "anonymized_physician_ids", "canary",
    }]  # fmt: skip
    assert healthbench.META_EVAL.recognises(set(rows[0]))
    read = [graded for n, line in enumerate(lines, 1) for graded in healthbench.read_meta(line, n, Options())]
    assert [[v.label for v in graded.verdicts] for graded in read] == [["not_met", "not_met"], ["not_met"]]
    assert rows[0]["binary_labels"] == [False, False]
    assert rows[0]["prompt"] == [{"role": "user", "content": "I have had a sore throat for 2 days."}]
    assert rows[0]["rubric"] == "Names warning sign 1."
    assert (rows[0]["category"], rows[0]["completion_id"]) == ("axis:accuracy", "answer-0")
    names = rows[0]["anonymized_physician_ids"]
    assert len(set(names)) == 2
    assert "Noor" not in str(names)
    assert all(len(name) == 64 for name in names)


def test_a_meta_evaluation_row_leaves_cannot_assess_out_and_names_an_unnamed_response(database_url):
    small = world.made(database_url)
    with small.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE response SET completion_id = NULL WHERE id = 2")
    for item, label in (
        (small.item(), Label.CANNOT_ASSESS),
        (small.item(0, 1), Label.MET),
        (small.item(1, 0), Label.MET),
    ):
        give_verdict(small.engine, small.viewer(), **item, decision=Decision(label), judge=world.JUDGE, seen=None)
    rows = [orjson.loads(line) for line in export_tables.meta_eval_rows(small.engine).splitlines()]
    assert [(row["rubric"], row["completion_id"]) for row in rows] == [
        ("Names warning sign 2.", "answer-0"), ("Names warning sign 1.", "response-2"),
    ]  # fmt: skip
    small.engine.dispose()


def test_the_official_names_of_physicians_stay_as_they_are():
    official = "0123456789abcdef" * 4
    assert export_tables.anonymous(official, key="one") == official


def test_a_hashed_name_tells_people_apart_and_cannot_be_found_without_the_key_of_the_study():
    name = "Dr. Imani Noor"
    assert export_tables.anonymous(name, key="one") == export_tables.anonymous(name, key="one")
    assert export_tables.anonymous(name, key="one") != export_tables.anonymous("Dr. Tove Lind", key="one")
    assert export_tables.anonymous(name, key="one") != export_tables.anonymous(name, key="two")
