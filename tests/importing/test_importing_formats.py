"""Each format is told from its content and lands in the right rows, on both databases."""

import gzip
import json

import pytest

from evalcore.errors import ImportFailed
from evalcore.importing.formats import FORMATS
from evalcore.study.store import index_texts
from tests import acuity_files, invented as made
from tests.invented import bring, entry, example, judged, meta, results, rows, study, verdicts, write

RESULTS_NAME = "healthbench_hard_model-a_20260101_101010_allresults.json"
VOTES = b"source_dataset,source_id,anon_label_1,anon_label_2\nclinic,0,A,B\n"
TABLE = 'example_id,model,criterion_position,rater,label,explanation\np1,model-a,1,Dr. Vale,not_met,"It never asks, ""how long"""\n'


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A study with an example, a case, and the responses of two models."""
    folder = tmp_path_factory.mktemp("filled")
    with study(str(folder / "overread.db")) as engine:
        bring(engine, write(folder / "examples.jsonl", [example()]))
        bring(engine, write(folder / RESULTS_NAME, results(entry())), dataset="healthbench")
        bring(engine, write(folder / "cases.csv", acuity_files.table(acuity_files.case(0))))
        bring(engine, write(folder / "m.json", results(entry(answer="Other"))), model="m")
        yield engine


@pytest.mark.parametrize(
    ("name", "content", "format_name"),
    [
        ("anything.txt", made.lines(example()), "healthbench-examples"),
        ("anything.txt", json.dumps(results(entry(answer="A third")), indent=2).encode(), "simple-evals"),
        ("anything.txt", json.dumps(results(entry(answer="A fourth"))).encode(), "simple-evals"),
        ("anything.txt", made.lines(meta()), "healthbench-meta-eval"),
        ("anything.txt", made.lines(judged()), "judge-verdicts"),
        (
            "anything.txt",
            made.lines(
                {"example_id": "p1", "rater": "Dr. Vale", "label": "met", "model": "m", "criterion_position": 1}
            ),
            "verdict-table",
        ),
        ("anything.txt", TABLE.encode(), "verdict-table"),
        ("anything.txt", acuity_files.table(acuity_files.case()), "acuity-cases"),
        ("anything.txt", VOTES, "acuity-votes"),
        ("anything.txt", acuity_files.table(acuity_files.prediction(case_id="clinic_0")), "acuity-predictions"),
        ("anything.txt", acuity_files.json_lines(acuity_files.prediction(case_id="clinic_0")), "acuity-predictions"),
    ],
)
@pytest.mark.parametrize("packing", ["plain", "gzip", "byte order mark", "blank lines first"])
def test_the_format_is_told_from_the_content_whatever_the_name_says(
    tmp_path, filled, name, content, format_name, packing
):
    packed = {
        "plain": content,
        "gzip": gzip.compress(content),
        "byte order mark": b"\xef\xbb\xbf" + content,
        "blank lines first": content if format_name == "simple-evals" else b"\n  \n" + content,
    }[packing]
    report = bring(filled, write(tmp_path / name, packed), model="model-a", dry_run=True)  # which writes nothing
    assert report.format == format_name
    assert report.rows == 1


def test_there_is_a_case_for_every_format():
    assert set(FORMATS) == {
        "healthbench-examples",
        "healthbench-professional",  # with its own tests
        "simple-evals",
        "healthbench-meta-eval",
        "judge-verdicts",
        "verdict-table",
        "acuity-verdicts",  # with its own tests
        "inspect-log",  # with its own tests
        "acuity-cases",
        "acuity-votes",
        "acuity-predictions",
        "responses",  # with their own tests, as the next two
        "graded-responses",
        "grade-table",
        "acuity-matrices",  # its files have four rows: tested with the others of triage
    }


def test_an_examples_file_brings_conversation_rubric_tags_and_canary(tmp_path, database_url):
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / "hard.jsonl", [example(), example("p2", theme="communication")]))
        assert (report.rows, report.examples_new) == (2, 2)
        index_texts(engine)
        assert rows(engine, "SELECT prompt_id, theme, canary, language FROM example ORDER BY prompt_id") == [
            ("p1", "hedging", "invented canary", "en"),
            ("p2", "communication", "invented canary", "en"),
        ]
        assert rows(engine, "SELECT position, points, axis, cluster FROM criterion ORDER BY id LIMIT 3") == [
            (1, 5, "context_awareness", made.SWEAT_CLUSTER),
            (2, 7, "completeness", None),
            (3, -6, "accuracy", None),
        ]
        assert rows(engine, "SELECT DISTINCT subset FROM example_subset") == [("hard",)]


def test_a_results_file_brings_responses_and_every_verdict(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "hard.jsonl", [example()]))
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(entry(met=(True, False, True)))))
        assert (report.responses_joined, report.verdicts_new, report.prompts_other) == (1, 3, 0)
        assert verdicts(engine) == [
            ("p1", "model-a", 0, 1, "Judge A", "met"),
            ("p1", "model-a", 0, 2, "Judge A", "not_met"),
            ("p1", "model-a", 0, 3, "Judge A", "met"),
        ]
        assert rows(engine, "SELECT dataset, n_criteria FROM response") == [("healthbench_hard", 3)]


def test_a_criterion_text_that_stands_twice_in_a_rubric_keeps_two_places(tmp_path, database_url):
    twice = [made.criterion(made.SWEAT, 5), made.criterion(made.CLINIC, 3), made.criterion(made.SWEAT, 5)]
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "hard.jsonl", [example(rubric=twice)]))
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry(rubric=twice, met=(True, False, False)))))
        assert [(position, label) for _, _, _, position, _, label in verdicts(engine)] == [
            (1, "met"),
            (2, "not_met"),
            (3, "not_met"),
        ]


def test_physicians_labels_join_the_example_by_cluster(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        report = bring(
            engine, write(tmp_path / "meta.jsonl", [meta(labels=(True, False, True), rubric="In other words")])
        )
        assert (report.verdicts_new, report.criteria_without_points) == (3, 0)
        assert [(position, label) for _, _, _, position, _, label in verdicts(engine)] == [
            (1, "met"),
            (1, "not_met"),
            (1, "met"),
        ]
        assert rows(engine, "SELECT DISTINCT stage, blinded FROM verdict") in ([("first", 1)], [("first", True)])


def test_a_judges_row_finds_its_response_by_model_or_by_completion_id(tmp_path, database_url):
    by_id = judged(completion_id="c-p1-25", position=2, met=False)
    del by_id["model"]
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        report = bring(engine, write(tmp_path / "b.jsonl", [judged(), by_id]))
        assert (report.verdicts_new, report.without_partner) == (2, 0)
        assert [row[3:] for row in verdicts(engine) if row[4] == "Judge B"] == [
            (1, "Judge B", "met"),
            (2, "Judge B", "not_met"),
        ]


def test_a_table_may_have_every_documented_column(tmp_path, database_url):
    told = {
        "example_id": "p1", "model": "model-a", "sample_index": "0", "criterion_position": "1", "rater": "Dr. Vale",
        "rater_kind": "reviewer", "stage": "revised", "label": "cannot_assess", "explanation": "'=not a formula", "confidence": "0.25",
        "cause": "language", "severity": "mild", "right_for_wrong_reason": "TRUE", "selection": "random",
        "inclusion_probability": "0.5", "blinded": "no", "read_at": "2026-11-20T10:00:00+02:00", "dataset": "healthbench",
        "evaluation": "healthbench_hard", "unknown column": "is left alone",
    }  # fmt: skip
    table = ",".join(told) + "\r\n" + ",".join(told.values()) + "\r\n"
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        bring(engine, write(tmp_path / "reads.csv.gz", table.encode()))
        found = rows(
            engine,
            "SELECT stage, label, explanation, confidence, cause, severity, selection, inclusion_probability FROM verdict WHERE stage <> 'judge'",
        )
        assert found == [("revised", "cannot_assess", "=not a formula", 0.25, "language", "mild", "random", 0.5)]


@pytest.mark.parametrize(
    "words", ["two\nlines", 'a "quote", a comma', "  spaces  ", "'quoted", "=1+1", "ends in \\", "مرحبا", "a\r\nb"]
)
def test_a_table_gives_text_back_as_it_was(tmp_path, sqlite_database_url, words):
    cell = '"' + words.replace('"', '""') + '"'
    table = f"example_id,model,criterion_position,rater,label,explanation\np1,model-a,1,Dr. Vale,met,{cell}\n"
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        bring(engine, write(tmp_path / "reads.csv", table.encode()))
        assert rows(engine, "SELECT explanation FROM verdict WHERE stage = 'first'") == [(words,)]


def test_model_and_data_set_are_told_by_the_files_name_and_the_judge_is_asked_for(tmp_path, sqlite_database_url):
    path = write(tmp_path / RESULTS_NAME, results(entry()))
    nameless = write(tmp_path / "run.json", results(entry()))
    with study(sqlite_database_url) as engine:
        with pytest.raises(ImportFailed, match="Fill in Judge: results files do not record it"):
            bring(engine, path, judge=None)
        with pytest.raises(ImportFailed, match="Fill in Model"):
            bring(engine, nameless)
        report = bring(engine, nameless, model="model-a", dataset="clinic_consensus")
        assert report.dataset == "clinic_consensus"
        assert rows(engine, "SELECT dataset FROM example") == [("clinic",)]


def test_a_document_may_hold_metadata_before_its_pages_or_spaced_otherwise(tmp_path, sqlite_database_url):
    document = results(entry())
    turned = dict(reversed(document.items()))
    spaced = json.dumps(document, separators=(" , ", " : ")).encode()
    with study(sqlite_database_url) as engine:
        assert bring(engine, write(tmp_path / "a.json", turned), model="a").verdicts_new == 3
        assert bring(engine, write(tmp_path / "b.json", spaced), model="b").verdicts_new == 3


def test_progress_ends_at_the_files_size(tmp_path, sqlite_database_url):
    for path in (
        write(tmp_path / "hard.jsonl", [example(), example("p2")]),
        write(tmp_path / RESULTS_NAME, results(entry(), entry("p2"))),
        write(tmp_path / "reads.csv", TABLE.encode()),
    ):
        done: list[int] = []
        with study(sqlite_database_url) as engine:
            bring(engine, path, progress=done.append)
        assert done == sorted(done)
        assert done[-1] == path.stat().st_size
