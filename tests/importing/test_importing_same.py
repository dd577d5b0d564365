"""The same content twice adds nothing; other content adds what is new and keeps what was."""

import random

import pytest

from tests import invented as made
from tests.invented import bring, criterion, dump, entry, example, judged, meta, results, rows, study, verdicts, write

RESULTS_NAME = "healthbench_hard_model-a_20260101_101010_allresults.json"
TWICE = [criterion(made.SWEAT, 5), criterion(made.CLINIC, 3), criterion(made.SWEAT, 5)]
ENTRIES = [
    entry("p1"),
    entry("p2", rubric=TWICE, met=(True, False, False)),
    entry("p2", rubric=TWICE, met=(False, False, True)),  # the same answer again, judged otherwise
    entry("p2", rubric=TWICE, met=(False, False, True)),  # and again, judged the same
    entry("p1", answer="Another answer"),
]
EXAMPLES = [example("p1"), example("p2", rubric=TWICE)]
METAS = [meta("p1"), meta("p3"), meta("p3", completion_id="m-2", completion="Two causes are common.")]
JUDGED = [
    judged("p1", sample_index=0),
    judged("p1", sample_index=1),
    judged("p2", sample_index=2, position=3, met=False),
]
TABLE = (
    "example_id,model,sample_index,criterion_position,rater,label,explanation\n"
    "p1,model-a,0,1,Dr. Vale,met,\n"
    "p2,model-a,1,3,Dr. Vale,not_met,no\n"
)


def files(
    folder, shuffle=lambda rows: rows, names=("oss_eval.jsonl", RESULTS_NAME, "meta.jsonl", "judge.jsonl", "reads.csv")
):
    """All formats, in the order in which they can be joined."""
    head, *body = TABLE.splitlines(keepends=True)
    contents = [
        made.lines(*shuffle(EXAMPLES)),
        results(*shuffle(ENTRIES)),
        made.lines(*shuffle(METAS)),
        made.lines(*shuffle(JUDGED)),
        (head + "".join(shuffle(body))).encode(),
    ]
    return [write(folder / name, content) for name, content in zip(names, contents, strict=True)]


def shuffled(seed):
    def shuffle(rows):
        return random.Random(seed).sample(rows, len(rows))

    return shuffle


def test_the_same_file_twice_adds_nothing_and_says_so(tmp_path, database_url):
    with study(database_url) as engine:
        for path in files(tmp_path):
            assert not bring(engine, path, model=None).adds_nothing
            before = dump(engine)
            report = bring(engine, path)
            assert report.already_imported
            assert report.sentences() == ["This file was imported before. It adds nothing."]
            assert dump(engine) == before


def test_a_dry_run_says_what_an_import_would_do_and_changes_nothing(tmp_path, database_url):
    with study(database_url) as engine:
        for path in files(tmp_path):
            before = dump(engine)
            planned = bring(engine, path, dry_run=True)
            assert dump(engine) == before
            done = bring(engine, path)
            assert vars(planned) | {"dry_run": False} == vars(done)
            assert dump(engine) != before


def test_a_renamed_file_adds_nothing(tmp_path, database_url):
    other = ("oss_eval (1).jsonl", "healthbench_hard_model-a_20270707_070707_allresults.json", "a", "b", "c")
    with study(database_url) as engine:
        for path in files(tmp_path):
            bring(engine, path)
        before = dump(engine)
        for path in files(tmp_path, names=other):
            assert bring(engine, path).adds_nothing
        assert dump(engine) == before


@pytest.mark.parametrize("seed", range(6))
def test_rows_in_another_order_add_nothing(tmp_path, sqlite_database_url, seed):
    with study(sqlite_database_url) as engine:
        for path in files(tmp_path):
            bring(engine, path)
        before = dump(engine)
        for path in files(tmp_path, shuffled(seed)):
            report = bring(engine, path)
            assert report.adds_nothing, report
            assert report.verdicts_superseding == 0
        assert dump(engine) == before


def test_rows_in_another_order_add_nothing_on_postgresql(tmp_path, postgres_database_url):
    with study(postgres_database_url) as engine:
        for path in files(tmp_path):
            bring(engine, path)
        before = dump(engine)
        for path in files(tmp_path, shuffled(1)):
            assert bring(engine, path).adds_nothing
        assert dump(engine) == before


def test_spaces_and_packing_add_nothing(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(*ENTRIES), indent=2))
        before = dump(engine)
        assert bring(engine, write(tmp_path / RESULTS_NAME, results(*ENTRIES), indent=None)).adds_nothing
        assert bring(engine, write(tmp_path / (RESULTS_NAME + ".gz"), results(*ENTRIES), indent=2)).already_imported
        assert dump(engine) == before


def test_repeats_are_as_many_responses_even_with_equal_texts(tmp_path, database_url):
    once = [entry("p1"), entry("p2", rubric=TWICE, met=(True, False, False))]
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(*once * 3)))
        assert (report.responses_new, report.verdicts_new) == (6, 18)
        assert rows(engine, "SELECT sample_index, count(*) FROM response GROUP BY sample_index ORDER BY 1") == [
            (0, 2),
            (1, 2),
            (2, 2),
        ]
        more = bring(
            engine,
            write(tmp_path / "more_model-a_20260101_101011.json", results(*once * 4)),
            dataset="healthbench_hard",
        )
        assert (more.responses_new, more.responses_known, more.verdicts_known) == (2, 6, 18)


def test_repeats_that_lie_in_different_batches_are_still_told_apart(tmp_path, sqlite_database_url):
    many = [entry(f"p{number}") for number in range(250)]
    with study(sqlite_database_url) as engine:
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(*many * 2)))
        assert (report.responses_new, report.examples_new) == (500, 250)
        again = bring(engine, write(tmp_path / RESULTS_NAME, results(*many * 2), indent=None))
        assert (again.responses_new, again.responses_known, again.verdicts_known) == (0, 500, 1500)


def test_a_judges_file_with_other_labels_supersedes_and_keeps_the_history(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        bring(engine, write(tmp_path / "b.jsonl", [judged(met=True), judged(met=True, position=2)]))
        report = bring(engine, write(tmp_path / "b.jsonl", [judged(met=False), judged(met=True, position=2)]))
        assert (report.verdicts_new, report.verdicts_superseding, report.verdicts_known) == (0, 1, 1)
        assert [row[3:] for row in verdicts(engine) if row[4] == "Judge B"] == [
            (1, "Judge B", "not_met"),
            (2, "Judge B", "met"),
        ]
        history = "SELECT v.label, w.label FROM verdict v JOIN verdict w ON w.supersedes = v.id"
        assert rows(engine, history) == [("met", "not_met")]


def test_a_results_file_with_other_labels_supersedes_item_by_item(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry(met=(True, True, False)))))
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(entry(met=(True, False, False)))))
        assert (report.responses_new, report.verdicts_superseding, report.verdicts_known) == (0, 1, 2)
        assert [row[5] for row in verdicts(engine)] == ["met", "not_met", "not_met"]


def test_another_judges_file_stands_beside(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        report = bring(
            engine, write(tmp_path / RESULTS_NAME, results(entry(met=(False, False, False)))), judge="Judge C"
        )
        assert (report.responses_new, report.responses_known, report.verdicts_new) == (0, 1, 3)
        assert {row[4] for row in verdicts(engine)} == {"Judge A", "Judge C"}


def test_another_model_with_the_same_answer_is_another_response(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(entry())), model="model-b")
        assert (report.responses_new, report.verdicts_new) == (1, 3)


@pytest.mark.parametrize("change", [{"confidence": 0.5}, {"explanation": "Otherwise."}])
def test_another_explanation_or_confidence_is_another_verdict(tmp_path, sqlite_database_url, change):
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        bring(engine, write(tmp_path / "b.jsonl", [judged()]))
        assert bring(engine, write(tmp_path / "b.jsonl", [judged(**change)])).verdicts_superseding == 1


def test_a_file_may_revise_itself_in_the_order_of_its_rows(tmp_path, database_url):
    revised = [
        judged(met=True),
        judged(met=True, position=2),
        judged(met=False),
        judged(met=False, position=2),
        judged(met=True),
    ]
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        report = bring(engine, write(tmp_path / "b.jsonl", [*revised, judged(met=True)]))
        assert (report.verdicts_new, report.verdicts_superseding, report.verdicts_known) == (2, 3, 1)
        assert [row[3:] for row in verdicts(engine) if row[4] == "Judge B"] == [
            (1, "Judge B", "met"),
            (2, "Judge B", "not_met"),
        ]


def test_an_import_leaves_one_audit_event_with_its_counts(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        ((actor, action, subject, detail),) = rows(engine, "SELECT actor, action, subject, detail FROM audit_event")
        assert (actor, action, subject) == ("tester", "file imported", RESULTS_NAME)
        assert '"verdicts_new": 3' in detail
