"""What belongs together finds each other: prompts that were sent, examples that come later, rows without a partner."""

import pytest

from evalcore.errors import ImportFailed
from evalcore.study.store import index_texts
from tests import invented as made
from tests.invented import (
    assistant,
    bring,
    criterion,
    entry,
    example,
    judged,
    meta,
    results,
    rows,
    study,
    user,
    verdicts,
    write,
)

RESULTS_NAME = "healthbench_model-a_20260101_101010_allresults.json"
SYSTEM = {"role": "system", "content": "Answer briefly."}
SENT = {
    "as it is": [user()],
    "with a system message": [SYSTEM, user()],
    "another conversation": [user("A wrapper asks: what is wrong with this person?")],
}


@pytest.mark.parametrize(
    ("sent", "counted"), [("as it is", (0, 0)), ("with a system message", (1, 0)), ("another conversation", (0, 1))]
)
def test_a_prompt_that_differs_from_the_examples_is_counted_and_kept(tmp_path, database_url, sent, counted):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(entry(prompt=SENT[sent]))))
        assert (report.prompts_with_system_message, report.prompts_other) == counted
        ((kept,),) = rows(engine, "SELECT sent_messages FROM response")
        assert (kept is None) == (sent == "as it is")
        assert kept is None or SENT[sent][0]["content"] in kept


@pytest.mark.parametrize("sent", SENT)
def test_it_does_not_matter_whether_the_example_comes_before_or_after(
    tmp_path, database_url, sqlite_database_url, sent
):
    before, after = (
        [example()],
        results(entry(prompt=SENT[sent]), entry("p1", answer="Second", prompt=SENT["as it is"])),
    )
    paths = [write(tmp_path / "oss_eval.jsonl", before), write(tmp_path / RESULTS_NAME, after)]
    with study(database_url) as one, study(f"sqlite:///{tmp_path / 'other.db'}") as other:
        for path in paths:
            bring(one, path)
        for path in reversed(paths):
            bring(other, path)
        assert plain(made.contents(one)) == plain(made.contents(other))


def plain(contents):
    """SQLite says 1 where PostgreSQL says True."""
    return {
        name: [str(row).replace("True", "1").replace("False", "0") for row in rows] for name, rows in contents.items()
    }


def test_a_response_without_its_example_is_kept_and_joined_when_the_example_comes(tmp_path, database_url):
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / RESULTS_NAME, results(entry(prompt=SENT["with a system message"]))))
        assert (report.responses_without_example, report.responses_joined, report.prompts_with_system_message) == (
            1,
            0,
            0,
        )
        assert rows(engine, "SELECT theme, provisional FROM example") in ([(None, 1)], [(None, True)])
        report = bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        assert (report.examples_new, report.examples_completed) == (0, 1)
        assert rows(engine, "SELECT theme, provisional FROM example") in ([("hedging", 0)], [("hedging", False)])
        assert rows(engine, "SELECT count(*) FROM criterion") == [(3,)]


def test_consensus_hard_and_the_whole_are_one_example_with_three_memberships(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "consensus.jsonl", [example(rubric=made.RUBRIC[:1])]))
        bring(engine, write(tmp_path / "hard.jsonl", [example()]))
        report = bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        assert (report.examples_new, report.examples_known, report.memberships_new) == (0, 1, 1)
        assert rows(engine, "SELECT subset FROM example_subset ORDER BY subset") == [
            ("consensus",),
            ("hard",),
            ("oss_eval",),
        ]
        assert rows(engine, "SELECT position, points FROM criterion ORDER BY position") == [(1, 5), (2, 7), (3, -6)]


def test_a_consensus_row_that_differs_from_the_one_before_is_a_fault(tmp_path, database_url):
    other = criterion(made.CLINIC, 7, cluster=made.CLINIC_CLUSTER)
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "consensus.jsonl", [example(rubric=made.RUBRIC[:1])]))
        with pytest.raises(
            ImportFailed,
            match=r"consensus\.jsonl line 1: rubrics: expected the rubric imported before for prompt_id 'p1', got the criterion 'Says when to go to a clinic' \(7 points\) to",
        ):
            bring(engine, write(tmp_path / "consensus.jsonl", [example(rubric=[*made.RUBRIC[:1], other])]))


def test_rows_without_a_partner_are_counted_and_named_and_join_at_a_second_import(tmp_path, database_url):
    path = write(
        tmp_path / "b.jsonl", [judged("p1"), judged("p2"), judged("p1", position=9), judged("p1", model="model-z")]
    )
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry("p1"))))
        report = bring(engine, path)
        assert (report.verdicts_new, report.without_partner) == (1, 3)
        assert report.without_partner_named == [
            "line 2: example 'p2' is not in the study",
            "line 3: criterion_position 9 is not in the rubric of 'p1', or is there twice",
            "line 4: no response of model 'model-z' to example 'p1'",
        ]
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry("p1"), entry("p2"))))
        again = bring(engine, path)
        assert (again.verdicts_new, again.verdicts_known, again.without_partner) == (1, 1, 2)
        assert sum(row[4] == "Judge B" for row in verdicts(engine)) == 2


def test_a_file_of_which_every_row_has_a_partner_is_remembered_only_then(tmp_path, sqlite_database_url):
    path = write(tmp_path / "b.jsonl", [judged("p1"), judged("p2")])
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry("p1"))))
        bring(engine, path)
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry("p1"), entry("p2"))))
        assert not bring(engine, path).already_imported
        assert bring(engine, path).adds_nothing


def test_a_row_that_fits_two_responses_asks_which(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry(), entry(answer="Another"))))
        with pytest.raises(
            ImportFailed,
            match=r"b\.jsonl line 1: sample_index: expected sample_index, model or completion_id to tell which, since 2 responses fit, got nothing",
        ):
            bring(engine, write(tmp_path / "b.jsonl", [judged()]))
        assert bring(engine, write(tmp_path / "b.jsonl", [judged(sample_index=1)])).verdicts_new == 1


def test_a_model_that_answered_for_two_evaluations_is_told_apart_by_the_evaluation(tmp_path, database_url):
    table = "example_id,dataset,evaluation,model,criterion_position,rater,label\np1,healthbench,healthbench_hard,model-a,1,Dr. Vale,met\n"
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())), dataset="healthbench_hard")
        bring(engine, write(tmp_path / "reads.csv", table.encode()))
        found = rows(
            engine, "SELECT r.dataset FROM verdict v JOIN response r ON r.id = v.response_id WHERE v.stage = 'first'"
        )
        assert found == [("healthbench_hard",)]


def test_two_clusters_of_one_text_stay_two_criteria(tmp_path, database_url):
    rows_of_two = [meta("p1"), meta("p1", category=f"cluster:{made.CLINIC_CLUSTER}")]
    full = [criterion(made.SWEAT, 5, cluster=made.SWEAT_CLUSTER), criterion(made.SWEAT, 7, cluster=made.CLINIC_CLUSTER)]
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / "meta.jsonl", rows_of_two))
        assert report.criteria_without_points == 2
        bring(engine, write(tmp_path / "oss_eval.jsonl", [example(rubric=full)]))
        found = rows(
            engine,
            "SELECT c.points, count(*) FROM verdict v JOIN criterion c ON c.id = v.criterion_id GROUP BY c.points ORDER BY 1",
        )
        assert found == [(5, 2), (7, 2)]


def test_physicians_rows_never_join_a_models_response_unless_the_model_is_named(tmp_path, database_url):
    same = {"completion": "See a doctor if it lasts.", "completion_id": "c-p1-25"}
    with study(database_url) as engine:
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry())))
        bring(engine, write(tmp_path / "meta.jsonl", [meta(**same)]))
        assert {row[1] for row in verdicts(engine)} == {"model-a", "model not recorded"}
        report = bring(engine, write(tmp_path / "meta.jsonl", [meta(**same)]), model="model-a")
        assert (report.responses_new, report.verdicts_new) == (0, 2)


def test_what_the_search_finds_does_not_depend_on_the_batch(tmp_path, sqlite_database_url):
    """One entry an example, one a new response with its explanations, one for every later explanation."""
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        bring(engine, write(tmp_path / RESULTS_NAME, results(entry(), entry(answer="Another"))))
        bring(engine, write(tmp_path / "b.jsonl", [judged(sample_index=0), judged(sample_index=0, position=2)]))
        assert rows(engine, "SELECT count(*) FROM search_pending") == [(1 + 2 + 2,)]
        assert index_texts(engine) == 1 + 2 + 2
        assert rows(engine, "SELECT count(*) FROM search_entry") == [(1 + 2 + 2,)]


def test_a_conversation_of_many_turns_in_another_language_keeps_its_words(tmp_path, database_url):
    turns = [
        user("Me duele la cabeza desde hace tres días y no sé qué tomar."),
        assistant("¿Tiene fiebre?"),
        user("No, no tengo fiebre."),
    ]
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "hard.jsonl", [example(prompt=turns)]))
        index_texts(engine)
        assert rows(engine, "SELECT n_turns, first_words, language FROM example") == [(3, "No, no tengo fiebre.", "es")]
