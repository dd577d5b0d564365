"""Anybody's own data: responses, graded responses, and the long table of grades; each from its file to scores, and back to where it belongs."""

import csv
import io
import json
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing import staging
from evalcore.importing.files import apart
from evalcore.importing.formats import grade_table, own
from evalcore.rubric.scores import mean_scores, scores_of_verdicts
from evalcore.study import frames
from evalcore.study.corrections import mending
from evalcore.study.db import reading, writing
from evalcore.study.schema import Administrator, RaterKind
from evalcore.study.store import set_guideline
from tests.invented import assistant, bring, contents, dump, example, lines, rows, study, user, verdicts, write
from tests.part_steps import in_parts

ASKED, ANSWER = "Can I swim with a cold?", "With a light cold yes, with a fever no."
FEVER, MEDICINE = "Says not to swim with a fever.", "Recommends a medicine without being asked."
OTHER = "Ask a doctor."
KINDS = ("csv", "jsonl", "parquet")
STATEMENT = (
    "SELECT m.name, r.dataset, r.sample_index, r.text FROM response r JOIN model m ON m.id = r.model_id ORDER BY r.id"
)


def response(**change):
    """A row of a file of responses."""
    return {"conversation": ASKED, "model": "wren", "text": ANSWER} | change


def row(criterion=FEVER, points=6, grade="yes", **change):
    """A row of the long table."""
    told = {"question": ASKED, "answer": ANSWER, "model": "wren", "criterion": criterion, "points": points}
    return told | {"grade": grade, "reason": "So it says.", "judge": "Magpie"} | change


def line(fever=True, medicine=False, **change):
    """A graded response."""
    criteria = [{"text": FEVER, "points": 6, "met": fever, "explanation": "So it says."}]
    criteria.append({"text": MEDICINE, "points": -4, "met": medicine, "explanation": "So it says."})
    return {
        "conversation": ASKED,
        "model": "wren",
        "response": ANSWER,
        "judge": "Magpie",
        "criteria": criteria,
    } | change


def as_file(path, kind, *given):
    """Rows as a file of some kind."""
    if kind == "jsonl":
        return write(path, lines(*given))
    if kind == "parquet":
        pd.DataFrame(given).to_parquet(path)
        return path
    text = io.StringIO()
    columns = list(dict.fromkeys(name for one in given for name in one))
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(given)
    return write(path, text.getvalue().encode())


def scores(engine):
    """The overall score of each model."""
    with reading(engine) as session:
        table = mean_scores(scores_of_verdicts(frames.verdicts(session, kind=RaterKind.JUDGE), ["overall"]))
    told = zip(table["model"], table["raw_mean"], strict=True)
    return {model: round(score, 9) for model, score in told if score == score}  # noqa: PLR0124 - NaN: none


def kept(engine):
    return rows(engine, STATEMENT)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_table_becomes_scores_whatever_the_order_of_its_rows(tmp_path, database_url, kind):
    given = [
        row(),
        row(MEDICINE, -4, "no"),
        row(answer=OTHER, model="finch", grade="no"),
        row(MEDICINE, -4, "yes", answer=OTHER, model="finch"),
    ]
    with study(database_url) as engine:
        report = bring(engine, as_file(tmp_path / "t", kind, *given[::2], *given[1::2]), judge=None)
        assert (report.format, report.rows, report.unread) == ("grade-table", 4, {})
        assert (report.examples_new, report.examples_known, report.responses_new, report.verdicts_new) == (1, 0, 2, 4)
        assert scores(engine) == {"wren": 6 / 6, "finch": round(-4 / 6, 9)}
        assert rows(engine, "SELECT position, text, points FROM criterion ORDER BY position") == [
            (1, FEVER, 6),
            (2, MEDICINE, -4),
        ]


def test_a_graded_response_becomes_a_score(tmp_path, database_url):
    with study(database_url) as engine:
        path = write(tmp_path / "t", [line(), line(fever=False, medicine=True, model="finch", response=OTHER)])
        report = bring(engine, path, judge=None)
        assert (report.format, report.examples_new, report.responses_new, report.verdicts_new) == (
            "graded-responses",
            1,
            2,
            4,
        )
        assert scores(engine) == {"wren": 6 / 6, "finch": round(-4 / 6, 9)}
        assert rows(engine, "SELECT DISTINCT explanation FROM verdict") == [("So it says.",)]


@pytest.mark.parametrize("kind", KINDS)
def test_responses_wait_for_grades_that_come_with_either_format(tmp_path, database_url, kind):
    with study(database_url) as engine:
        given = [
            response(finish_reason="stop", date="2026-11-20"),
            response(text=OTHER, finish_reason="length", date="2026-11-18"),
        ]
        report = bring(engine, as_file(tmp_path / "responses", kind, *given))
        assert (report.format, report.responses_new, report.unread) == ("responses", 2, {})
        assert report.notes == [
            "How the responses ended, by the file: stop 1, length 1",
            "The responses were made from 2026-11-18 to 2026-11-20, by the file",
        ]
        assert kept(engine) == [("wren", "own", 0, ANSWER), ("wren", "own", 1, OTHER)]
        ended = rows(engine, "SELECT text, finish_reason, made_on FROM response ORDER BY sample_index")
        assert ended == [(ANSWER, "stop", "2026-11-20"), (OTHER, "length", "2026-11-18")]
        report = bring(engine, write(tmp_path / "graded", [line()]))
        assert (report.responses_new, report.responses_known, report.verdicts_new) == (0, 1, 2)
        report = bring(
            engine,
            as_file(tmp_path / "table", "csv", row(answer=OTHER, grade="no"), row(MEDICINE, -4, "no", answer=OTHER)),
        )
        assert (report.responses_new, report.responses_known, report.verdicts_new) == (0, 1, 2)
        assert scores(engine) == {"wren": (6 / 6 + 0 / 6) / 2}


def files(folder):
    """One file of each format, which speak of the same responses and of others."""
    odd = [
        row(),
        row(MEDICINE, -4, "no"),
        row(question="And with a cough?", grade="no"),
        row(answer=OTHER, grade=""),
        row(model="finch"),
    ]
    return [
        as_file(folder / "responses.csv", "csv", response(), response(), response(text=OTHER)),
        write(
            folder / "graded.jsonl",
            [line(), line(), line(judge="Robin"), line(fever=False, conversation="And with a cough?")],
        ),
        as_file(folder / "table.csv", "csv", *odd),
    ]


@pytest.mark.parametrize("way", ["at once", "in parts"])
def test_the_same_rows_twice_are_stored_once(tmp_path, database_url, way):
    with study(database_url) as engine:
        for path in files(tmp_path):
            assert not bring(engine, path).adds_nothing
        before = dump(engine)
        for path in files(tmp_path):
            again = write(path.with_name("again-" + path.name), path.read_bytes() + b"\n")  # another file to its hash
            if way == "at once":
                assert bring(engine, again).adds_nothing
            else:
                with in_parts():
                    assert bring(engine, again).adds_nothing
        assert dump(engine) == before


def test_parts_make_the_same_study(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as one, study(f"sqlite:///{tmp_path / 'other.db'}") as other:
        for path in files(tmp_path):
            bring(one, path)
            with in_parts():
                bring(other, path)
        assert contents(one) == contents(other)


ROWS = st.builds(
    row,
    criterion=st.sampled_from((FEVER, MEDICINE, "Asks how old the child is.")),
    points=st.sampled_from((6, -4, "")),
    grade=st.sampled_from(("yes", "yes", "no", "")),
    question=st.sampled_from((ASKED, "And with a cough?")),
    answer=st.sampled_from((ANSWER, OTHER)),
    judge=st.sampled_from(("Magpie", "Robin")),
)


@given(st.lists(ROWS, min_size=1, max_size=12))
def test_neighbours_of_one_response_make_the_same_study_as_each_row_alone(sqlite_template, given):
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_:
        path = as_file(Path(folder) / "t.csv", "csv", *given)
        copies = (shutil.copy(sqlite_template, Path(folder) / name) for name in ("one.db", "other.db"))
        one, other = (open_.enter_context(study(str(copy))) for copy in copies)
        told = []
        for engine, most in ((one, grade_table.MOST_GATHERED), (other, 1)):
            with mock.patch.object(grade_table, "MOST_GATHERED", most):
                try:
                    told.append(bring(engine, path, judge=None))
                except ImportFailed as failed:
                    told.append(failed.faults)
        assert told[0] == told[1]
        assert contents(one) == contents(other)


def test_what_others_change_between_two_parts_counts_for_the_rows_behind(tmp_path, sqlite_database_url):
    rubric = [{"criterion": FEVER, "points": 6, "tags": []}]
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", lines(example("p1", rubrics=rubric))))
        said = (("wren", FEVER), ("finch", MEDICINE))
        of_known = (row(text, question="", example_id="p1", model=model) for model, text in said)
        table = as_file(tmp_path / "table.csv", "csv", *of_known)

        def reworded(_seconds):
            with writing(engine) as session:
                session.connection().exec_driver_sql("UPDATE criterion SET text = ?", (MEDICINE,))
                set_guideline(session, "# Version 1", actor="Ana")

        with in_parts(), mock.patch.object(staging.time, "sleep", reworded):
            report = bring(engine, table, judge=None, dataset="healthbench")
        assert (report.rows, report.responses_new, report.verdicts_new, report.without_partner) == (2, 2, 2, 0)


def shown(engine):
    """The texts of what is not hidden."""
    tables = {"example": "messages", "criterion": "text", "response": "text", "verdict": "label || explanation"}
    hidden = "SELECT row_id FROM hidden_row WHERE table_name = '{}'"
    return {
        name: sorted(map(repr, rows(engine, f"SELECT {said} FROM {name} WHERE id NOT IN ({hidden.format(name)})")))
        for name, said in tables.items()
    }


@given(
    first=st.lists(ROWS, min_size=1, max_size=6),
    given=st.lists(ROWS, min_size=1, max_size=10),
    batch=st.integers(1, 3),
    most_kept=st.sampled_from((0, 2, grade_table.TableRows.most_kept)),
)
def test_rows_on_examples_of_the_study_make_the_same_study_in_batches_of_any_size(
    sqlite_template, first, given, batch, most_kept
):
    with tempfile.TemporaryDirectory() as folder, ExitStack() as open_:
        paths = [as_file(Path(folder) / f"{n}.csv", "csv", *rows) for n, rows in enumerate((first, given))]
        copies = (shutil.copy(sqlite_template, Path(folder) / name) for name in ("one.db", "other.db"))
        one, other = (open_.enter_context(study(str(copy))) for copy in copies)
        adds = []
        for engine, size, most in ((one, grade_table.TableRows.batch, 0), (other, batch, most_kept)):
            with mock.patch.multiple(grade_table.TableRows, batch=size, most_kept=most):
                for path in paths:
                    try:
                        adds.append(bring(engine, path, judge=None).verdicts_new)
                    except ImportFailed:
                        adds.append(None)
        assert adds[:2] == adds[2:]
        assert contents(one) == contents(other)
        if adds[0] is not None:
            for engine in (one, other):  # what the second file brings too stays
                mending.withdraw(engine, 1, reason="the wrong file", actor=Administrator(name="Ana"))
            assert shown(one) == shown(other)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_that_another_process_reads_makes_the_same_study(tmp_path, sqlite_database_url, kind):
    given = [
        row(),
        row(MEDICINE, -4, "no", why="late"),
        row(model="finch", grade=""),
        row(question="And with a cough?"),
    ]
    path = as_file(tmp_path / f"table.{kind}", kind, *given)
    with study(sqlite_database_url) as one, study(f"sqlite:///{tmp_path / 'other.db'}") as other:
        here = bring(one, path, judge=None)
        with in_parts(), mock.patch.object(staging, "APART_BYTES", -1):
            there = bring(other, path, judge=None)
        assert (there.rows, there.unread) == (4, {"why": 1}) == (here.rows, here.unread)
        assert not [one.name for one in tmp_path.iterdir() if ".import-" in one.name]
        assert contents(one) == contents(other)


def test_a_faulty_file_that_another_process_reads_is_refused_with_its_sentences(tmp_path, sqlite_database_url):
    path = as_file(tmp_path / "table.csv", "csv", row(), row(grade="maybe"))
    with study(sqlite_database_url) as engine:
        before = dump(engine)
        with pytest.raises(ImportFailed) as here:
            bring(engine, path, judge=None)
        with mock.patch.object(staging, "APART_BYTES", -1), pytest.raises(ImportFailed) as there:
            bring(engine, path, judge=None)
        assert there.value.faults == here.value.faults
        with path.open("ab") as stream:
            stream.write(b"\xff")
        with mock.patch.object(staging, "APART_BYTES", -1), pytest.raises(ImportFailed, match="UTF-8"):
            bring(engine, path, judge=None)
        assert dump(engine) == before


@pytest.mark.parametrize("says", ["", "0", "d" + 7 * "\0" + "no hundred bytes"])
def test_where_the_process_that_reads_ends_nothing_is_imported(tmp_path, sqlite_database_url, says):
    path = as_file(tmp_path / "table.csv", "csv", row())
    ends = [sys.executable, "-c", f"print({says!r}, end='')"], dict(os.environ)
    with study(sqlite_database_url) as engine:
        before = dump(engine)
        with (
            mock.patch.object(staging, "APART_BYTES", -1),
            mock.patch.object(apart, "started_again", return_value=ends),
            pytest.raises(ImportFailed, match="the process that read it has ended"),
        ):
            bring(engine, path, judge=None)
        assert dump(engine) == before


def test_equal_answers_are_repeats_but_not_for_another_judge(tmp_path, sqlite_database_url):
    """Two lines of Magpie are two answers, and Robin's line is about the first of them, in one batch and in the next."""
    with study(sqlite_database_url) as engine:
        given = [line(), line(judge="Robin"), line(medicine=True), line(judge="Robin", fever=False)]
        bring(engine, write(tmp_path / "t", given[:3]))
        assert len(kept(engine)) == 2
        bring(engine, write(tmp_path / "u", given))
        assert len(kept(engine)) == 2
        said = {(sample, judge, place): label for _, _, sample, place, judge, label in verdicts(engine)}
        assert said == {
            (0, "Magpie", 1): "met", (0, "Magpie", 2): "not_met", (0, "Robin", 1): "met", (0, "Robin", 2): "not_met",
            (1, "Magpie", 1): "met", (1, "Magpie", 2): "met", (1, "Robin", 1): "not_met", (1, "Robin", 2): "not_met",
        }  # fmt: skip


def test_rows_of_a_table_with_equal_answers_are_of_one_response_unless_a_number_tells_them_apart(
    tmp_path, sqlite_database_url
):
    with study(sqlite_database_url) as engine:
        bring(engine, as_file(tmp_path / "t", "csv", *[row(sample_index=number, grade=number) for number in (0, 1)]))
        assert [(sample, label) for _, _, sample, _, _, label in verdicts(engine)] == [(0, "not_met"), (1, "met")]
        with pytest.raises(ImportFailed, match="line 3: criterion: expected it once for a response and judge"):
            bring(engine, as_file(tmp_path / "u", "csv", row(model="finch"), row(model="finch", grade="no")))
        before = dump(engine)
        with pytest.raises(ImportFailed, match="line 3: criterion: expected it once"), in_parts():
            bring(engine, as_file(tmp_path / "u", "csv", row(model="finch"), row(model="finch", grade="no")))
        assert dump(engine) == before


def test_a_later_table_may_revise_a_grade(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, as_file(tmp_path / "t", "csv", row()))
        assert bring(engine, as_file(tmp_path / "u", "csv", row(grade="no"))).verdicts_superseding == 1
        assert [label for *_, label in verdicts(engine)] == ["not_met"]


def test_no_grade_is_no_verdict_and_is_counted(tmp_path, database_url):
    with study(database_url) as engine:
        ungraded = line()
        ungraded["criteria"][1]["met"] = None
        for report in (
            bring(engine, write(tmp_path / "t", [ungraded])),
            bring(engine, as_file(tmp_path / "u", "csv", row(model="finch"), row(MEDICINE, -4, "", model="finch"))),
        ):
            assert (report.verdicts_new, report.ungraded) == (1, 1)
            assert any("1 criterion of responses without a grade" in sentence for sentence in report.sentences())
        assert len(verdicts(engine)) == 2
        assert scores(engine) == {}  # a response with fewer verdicts than criteria has none


def test_a_conversation_as_text_is_the_same_as_one_turn_of_the_users(tmp_path, sqlite_database_url):
    as_json = json.dumps([user(ASKED)])
    with study(sqlite_database_url) as engine:
        bring(engine, as_file(tmp_path / "a", "csv", response()))
        for number, path in enumerate([
            as_file(tmp_path / "b", "csv", response(conversation=as_json)),
            as_file(tmp_path / "c", "jsonl", response(conversation=[user(ASKED)])),
            as_file(tmp_path / "d", "parquet", row(question=as_json)),
            as_file(tmp_path / "e", "jsonl", row(question=[user(ASKED)])),
            write(tmp_path / "f", [line(conversation=[user(ASKED)], prompt=None)]),
        ]):  # fmt: skip
            assert bring(engine, path).examples_new == 0, number
        assert rows(engine, "SELECT count(*), max(n_turns) FROM example") == [(1, 1)]


def test_text_in_brackets_is_no_json(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        bring(engine, as_file(tmp_path / "a", "csv", response(conversation="[My mother asks] Can she swim?")))
        assert rows(engine, "SELECT first_words FROM example") == [("[My mother asks] Can she swim?",)]


def test_a_row_without_a_name_finds_the_example_by_its_conversation(tmp_path, database_url):
    known = example("p1", prompt=[user(ASKED)], rubric=[{"criterion": FEVER, "points": 6, "tags": ["axis:accuracy"]}])
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", [known]))
        for path in (
            as_file(tmp_path / "a", "csv", response()),
            as_file(tmp_path / "b", "csv", row()),
            as_file(tmp_path / "c", "csv", row(question="", example_id="p1", model="finch")),
        ):
            report = bring(engine, path)
            assert (report.examples_new, report.without_partner) == (0, 0)
        assert {(name, model) for name, model, *_ in verdicts(engine)} == {("p1", "wren"), ("p1", "finch")}
        with pytest.raises(ImportFailed, match=r"line 2: rubrics: expected the rubric imported before .*7 points"):
            bring(engine, as_file(tmp_path / "d", "csv", row(points=7)))


def test_a_file_of_healthbench_examples_with_answers_and_grades_is_read_as_graded_responses(tmp_path, database_url):
    graded = [{"criterion": FEVER, "points": 6, "tags": ["axis:accuracy"], "criteria_met": True, "explanation": "Yes."}]
    mixed = example("p1", prompt=[user(ASKED)], rubric=graded) | {"completion": [assistant(ANSWER)], "grader_cost": 3}
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / "t.jsonl", [mixed]), model="wren", judge="Magpie")
        assert report.format == "graded-responses"
        assert report.unread == {"grader_cost": 1, "ideal_completions_data": 0}
        assert scores(engine) == {"wren": 1.0}
        assert rows(engine, "SELECT theme, canary FROM example") == [("hedging", "invented canary")]
        assert rows(engine, "SELECT axis FROM criterion") == [("accuracy",)]


def test_a_place_that_is_said_finds_the_response_though_only_one_file_has_its_own_name(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, as_file(tmp_path / "a", "csv", response(sample_index=3)))
        report = bring(engine, write(tmp_path / "b", [line(sample_index=3, completion_id="c-1")]))
        assert (report.responses_new, report.responses_known) == (0, 1)
        with pytest.raises(ImportFailed, match="the text imported before for sample 3 of model 'wren'"):
            bring(engine, as_file(tmp_path / "c", "csv", response(sample_index=3, text=OTHER)))


def test_a_name_of_its_own_tells_equal_answers_of_a_table_apart(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        given = [row(completion_id="c-1"), row(completion_id="c-2", grade="no")]
        bring(engine, as_file(tmp_path / "t", "csv", *given))
        assert [(sample, label) for _, _, sample, _, _, label in verdicts(engine)] == [(0, "met"), (1, "not_met")]
        assert bring(engine, as_file(tmp_path / "u", "csv", *reversed(given))).adds_nothing


@pytest.mark.parametrize("way", ["in one file", "in two"])
def test_one_name_for_two_conversations_is_a_fault(tmp_path, database_url, way):
    one, other = row(example_id="1"), row(example_id="1", question="May I drink wine with this?")
    with study(database_url) as engine:
        if way == "in two":
            bring(engine, as_file(tmp_path / "t", "csv", one))
        with pytest.raises(
            ImportFailed, match="line 3: example_id: expected '1' for one conversation, got it for another"
        ):
            bring(engine, as_file(tmp_path / "u", "csv", one, other))


def test_what_was_sent_is_kept_where_it_is_not_the_conversation_alone(tmp_path, database_url):
    sent = [{"role": "system", "content": "Be brief."}, user(ASKED)]
    with study(database_url) as engine:
        bring(engine, as_file(tmp_path / "a", "csv", response(sent=json.dumps(sent)), response(text=OTHER, sent="")))
        bring(engine, write(tmp_path / "b", [line(response="No.", sent=sent)]))
        told = [
            found and json.loads(found) for (found,) in rows(engine, "SELECT sent_messages FROM response ORDER BY id")
        ]
        assert told == [sent, None, sent]


BROKEN = {
    "responses": {
        "no text": (response(text=""), "text: expected the response, got nothing"),
        "only blanks": (response(text="  "), "text: expected the response, got nothing"),
        "no model": (response(model=""), "model: expected who answered, here or as Model, got nothing"),
        "a model over two lines": (response(model="a\nb"), "model: expected a name of at most 200 printable characters"),
        "no conversation": (response(conversation=""), "conversation: expected it, or example_id, to find the example, got nothing"),
        "an index below 0": (response(sample_index=-1), "sample_index: expected a whole number from 0 to 9999, got '-1'"),
        "a seed": (response(sample_index=1234567), "sample_index: expected a whole number from 0 to 9999, got '1234567'"),
        "half an index": (response(sample_index="0.5"), "sample_index: expected a whole number"),
        "a day in words": (response(date="last week"), "date: expected a day or time such as 2026-11-20"),
        "an impossible day": (response(date="2026-02-30"), "date: expected a day or time"),
        "a broken list": (response(conversation='[{"role": "user"'), "conversation: not valid JSON"),
        "a turn without words": (response(conversation='[{"role": "user"}]'), r"conversation\[0\].content: expected a value, got nothing"),
        "an answer last": (response(conversation=json.dumps([user(), assistant("Hm.")])), "conversation.*: expected the user's turn last, got 'assistant'"),
        "an unknown role": (response(sent=json.dumps([{"role": "doctor", "content": "Hm."}])), r"sent\[0\].role: expected one of system"),
    },
    "grade-table": {
        "no grade word": (row(grade="maybe"), "grade: expected true or false, yes or no, .*, got 'maybe'"),
        "a share": (row(grade="0.5"), "grade: expected true or false"),
        "two": (row(grade=2), "grade: expected true or false, .*, got '2'"),
        "a level": (row(grade="cannot_assess"), "grade: expected true or false"),
        "points 0": (row(points=0), r"points: expected a whole number -10..10 without 0, got '0'"),
        "points 11": (row(points=11), "points: expected a whole number"),
        "points -11": (row(points=-11), "points: expected a whole number"),
        "half a point": (row(points="1.5"), "points: expected a whole number .*, got '1.5'"),
        "points in words": (row(points="six"), "points: expected a whole number .*, got 'six'"),
        "no criterion": (row(criterion=""), "criterion: expected the criterion's text, got nothing"),
        "no answer": (row(answer=""), "answer: expected the response, got nothing"),
        "no question": (row(question=""), "question: expected it, or example_id, to find the example, got nothing"),
        "no model": (row(model=""), "model: expected who answered"),
        "no judge": (row(judge=""), "judge: expected the judge's name here or as Judge, got nothing"),
    },
}  # fmt: skip


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in BROKEN for what in BROKEN[name]])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_broken_row_is_one_sentence_and_nothing_is_stored(tmp_path, sqlite_database_url, name, what, kind):
    faulty, sentence = BROKEN[name][what]
    good = response(text="Good.") if name == "responses" else row(answer="Good.")
    with study(sqlite_database_url) as engine:
        before = dump(engine)
        path = as_file(tmp_path / "mine", kind, *({**dict.fromkeys(faulty, ""), **one} for one in (good, faulty)))
        with pytest.raises(ImportFailed, match=f"^mine line {3 if kind == 'csv' else 2}: {sentence}") as failed:
            bring(engine, path, judge=None)
        assert failed.value.n_faults == 1
        assert dump(engine) == before


def changed(**change):
    graded = line()
    graded["criteria"][1] |= change
    return graded


BROKEN_LINES = {
    "no grade word": (changed(met="maybe"), r"criteria\[1\].met: expected true or false, .*, got 'maybe'"),
    "a share": (changed(met=0.5), r"criteria\[1\].met: expected true or false, .*, got '0.5'"),
    "a list": (changed(met=[True]), r"criteria\[1\].met: expected .*, got \[true\]"),
    "both words": (changed(criteria_met=True), r"criteria\[1\].criteria_met: expected one of met and criteria_met, got both"),
    "points 0": (changed(points=0), r"criteria\[1\].points: expected a whole number -10..10 without 0, got '0'"),
    "half a point": (changed(points=1.5), r"criteria\[1\].points: expected a whole number .*, got '1.5'"),
    "no words": (changed(text=" "), r"criteria\[1\].text: expected the criterion's text, got nothing"),
    "no criteria": (line(criteria=[]), "criteria: expected .*length >= 1"),
    "null criteria": (line(criteria=None), "criteria: expected at least one criterion, got nothing"),
    "no judge": (line(judge=None), "judge: expected the judge's name here or as Judge, got nothing"),
    "no model": (line(model=None), "model: expected who answered, here or as Model, got nothing"),
    "no response": (line(response=""), "response: expected the response, got nothing"),
    "a user's response": (line(response=[user()]), r"response\[0\].role: expected 'assistant', got 'user'"),
    "no conversation": (line(conversation=None), "conversation: expected it, or example_id, to find the example, got nothing"),
    "a conversation of numbers": (line(conversation=[1]), r"conversation\[0\]: expected an object, got 1"),
    "an answer last": (line(conversation=[user(), assistant("Hm.")]), r"conversation\[1\].role: expected the user's turn last"),
    "an index below 0": (line(sample_index=-1), "sample_index: expected .*0, got -1"),
    "a seed": (line(sample_index=1234567), "sample_index: expected a whole number from 0 to 9999, got 1234567"),
    "cut off": (b'{"conversation": "Hm', "not valid JSON"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN_LINES)
def test_a_broken_line_is_one_sentence_and_nothing_is_stored(tmp_path, sqlite_database_url, what):
    faulty, sentence = BROKEN_LINES[what]
    with study(sqlite_database_url) as engine:
        before = dump(engine)
        second = faulty if isinstance(faulty, bytes) else lines(faulty)
        path = write(tmp_path / "mine", lines(line(response="Good.")) + second)
        with pytest.raises(ImportFailed, match=f"^mine line 2: {sentence}") as failed:
            bring(engine, path, judge=None)
        assert failed.value.n_faults == 1
        assert dump(engine) == before


def test_every_faulty_row_is_told_of(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine, pytest.raises(ImportFailed) as failed:
        bring(engine, as_file(tmp_path / "t", "csv", *(row(grade="maybe") for _ in range(30))))
    assert (failed.value.n_faults, len(failed.value.faults)) == (30, 20)


WORDS = {"true": True, "yes": True, "1": True, "pass": True, "met": True, "false": False, "no": False, "0": False, "fail": False, "not_met": False}  # fmt: skip


def in_any_case(word):
    return list(map("".join, product(*({letter.lower(), letter.upper()} for letter in word[:4])))), word[4:]


@given(st.sampled_from(list(WORDS)), st.data(), st.sampled_from(["", " ", "\t"]))
def test_a_grade_counts_in_any_case_and_between_blanks(word, data, blank):
    beginnings, rest = in_any_case(word)
    assert own.grade(blank + data.draw(st.sampled_from(beginnings)) + rest + blank, "grade") is WORDS[word]


@given(st.text(max_size=12))
def test_any_other_text_is_a_fault_and_none_at_all_is_no_grade(text):
    said = "_".join(text.lower().split())
    if not said:
        assert own.grade(text, "grade") is None
    elif said in {*WORDS, "1.0", "0.0"}:
        assert own.grade(text, "grade") is WORDS[said.removesuffix(".0")]
    else:
        with pytest.raises(RowFault, match=r"^grade: expected true or false, .*, got "):
            own.grade(text, "grade")


@given(st.one_of(st.integers(-30, 30).map(str), st.integers(-12, 12).map("{}.0".format), st.text(max_size=5)))
def test_points_are_a_whole_number_within_the_bounds_and_never_0(text):
    try:
        expected = int(text.strip().removesuffix(".0"))
    except ValueError:
        expected = 0
    if not text.strip():
        assert own.points(text, "points") is None
    elif text.isascii() and 1 <= abs(expected) <= 10 and "_" not in text:
        assert own.points(text, "points") == expected
    else:
        with pytest.raises(RowFault, match=r"^points: expected a whole number"):
            own.points(text, "points")


def test_a_file_of_ones_own_is_of_no_benchmark_that_it_does_not_name(tmp_path, database_url):
    table = "question,answer,model,criterion,grade,judge\nDo I need a doctor?,Yes.,wren,Says when,yes,Magpie\n"
    more = table.replace("wren", "finch") + "And tomorrow?,No.,finch,Says when,no,Magpie\n"
    tagged = {
        "conversation": "A cough.",
        "response": "Rest.",
        "model": "wren",
        "criteria": [{"text": "Rest", "met": True}],
    }
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "my_hard_cases.csv", table.encode()))
        first = ("wren", "own", 0, "Yes.")
        assert kept(engine) == [first]
        assert bring(engine, write(tmp_path / "my_hard_cases.csv", table.encode())).already_imported
        named = write(tmp_path / "other.csv", table.replace("wren", "crow").encode())
        bring(engine, named, dataset="clinic")
        bring(engine, write(tmp_path / "more.csv", more.encode()))
        line = lines(tagged | {"judge": "Magpie", "example_tags": ["theme:hedging"]})
        bring(engine, write(tmp_path / "tagged.jsonl", line))
        assert kept(engine) == [
            first, ("crow", "clinic", 0, "Yes."), ("finch", "own", 0, "Yes."), ("finch", "own", 0, "No."), ("wren", "healthbench", 0, "Rest."),
        ]  # fmt: skip


def test_a_file_of_ones_own_goes_on_with_the_data_set_that_its_conversations_are_of(tmp_path, database_url):
    table = "question,answer,model,criterion,grade,judge\nDo I need a doctor?,Yes.,wren,Says when,yes,Magpie\n"
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "a.csv", table.encode()), dataset="healthbench")
        assert bring(engine, write(tmp_path / "a.csv", table.encode())).already_imported
        bring(engine, write(tmp_path / "b.csv", table.replace("wren", "finch").encode()))
        assert {row[:2] for row in kept(engine)} == {("wren", "healthbench"), ("finch", "healthbench")}
