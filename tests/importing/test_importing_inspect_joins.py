"""Samples of inspect_ai logs find their example or their case; levels of care are taken for cases; the Study page brings logs in."""

import pytest

from evalcore.errors import ImportFailed
from evalcore.importing.formats.inspect_logs import Says
from evalcore.study import store
from evalcore.study.db import open_study, writing
from tests.acuity_files import case, levels, table
from tests.inspect_zips import LOGS, bring_log, item, log, refusal, rubric, sample
from tests.invented import bring, dump, entry, example, lines, results, rows, study, user, verdicts, write
from tests.page_steps import LEAD, check

RESPONSES = (
    "SELECT e.dataset, e.prompt_id, m.name, r.dataset, r.sample_index, r.text, r.n_criteria FROM response r"
    " JOIN example e ON e.id = r.example_id JOIN model m ON m.id = r.model_id ORDER BY r.id"
)


@pytest.fixture
def engine(sqlite_database_url):
    with study(sqlite_database_url) as engine:
        yield engine


# ---- which example


def test_a_sample_joins_the_example_of_its_name_and_its_verdicts_the_rubric(engine, tmp_path):
    bring(engine, write(tmp_path / "examples.jsonl", lines(example("p1"))), dataset="clinic")
    words = [(row[0], row[1]) for row in rows(engine, "SELECT text, points FROM criterion ORDER BY position")]
    items = [item(text, points=points, met=points > 0) for text, points in reversed(words)]
    report = bring_log(
        engine,
        tmp_path / "a.eval",
        log(sample("p1", input="Hello?", scores={"rubric": rubric(*items)})),
        dataset="clinic",
    )
    assert (report.examples_new, report.responses_joined, report.prompts_other) == (0, 1, 1)
    assert [row[3:] for row in verdicts(engine)] == [
        (1, "magpie", "met"),
        (2, "magpie", "met"),
        (3, "magpie", "not_met"),
    ]


def test_a_sample_with_a_number_for_a_name_joins_the_same_conversation_and_no_other(database_url, tmp_path):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "examples.jsonl", lines(example("1"), example("p2", prompt=[user("Another.")]))))
        scores: dict[str, object] = {"scores": {}}
        report = bring_log(
            engine, tmp_path / "a.eval", log(sample(1, input="Another.", **scores), sample(2, input="New.", **scores))
        )
        assert (report.responses_joined, report.responses_without_example, report.examples_new) == (1, 1, 1)
        (_, joined, *_), (_, made, *_) = rows(engine, RESPONSES)
        assert joined == "p2"
        assert made.startswith("thirst-2-")


def test_two_logs_that_number_their_samples_stay_apart(engine, tmp_path):
    bring_log(engine, tmp_path / "a.eval", log(sample(1, input="One thing."), task="one"))
    bring_log(engine, tmp_path / "b.eval", log(sample(1, input="Another thing."), task="two"))
    assert len(rows(engine, "SELECT id FROM example")) == 2
    report = bring_log(
        engine, tmp_path / "c.eval", log(sample(7, input="Another thing."), task="three", model="lab/briar-1")
    )
    assert (report.examples_new, report.responses_new) == (0, 1)


def test_a_name_that_two_logs_give_to_two_conversations_is_refused(engine, tmp_path):
    bring_log(engine, tmp_path / "a.eval", log(sample("q1", input="I am thirsty.")))
    said = refusal(engine, tmp_path / "b.eval", log(sample("q1", input="My foot hurts."), model="briar-1"))
    assert (
        "b.eval sample 1: input: expected the conversation of the example of this name for sample 'q1', got another; fill in Data set to keep the two apart"
        in said
    )
    assert "fill in Data set to keep the two apart" in said
    assert bring_log(engine, tmp_path / "b.eval", dataset="feet").examples_new == 1


def test_another_text_for_the_same_epoch_is_refused_and_another_model_is_not(engine, tmp_path):
    bring_log(engine, tmp_path / "a.eval", log(sample()))
    again = log(sample(answer="Drink tea."))
    assert (
        "b.eval sample 1: completion: expected the text imported before for sample 0 of model 'alder-2' to 'q1', got another; fill in Model to give the answers of anot"
        in refusal(engine, tmp_path / "b.eval", again)
    )
    assert bring_log(engine, tmp_path / "b.eval", model="alder-2, second run").responses_new == 1


def test_a_results_file_and_a_log_of_one_example_go_together(engine, tmp_path):
    bring(engine, write(tmp_path / "healthbench_alder-2_20260101_101010_allresults.json", results(entry("p1"))))
    report = bring_log(
        engine, tmp_path / "a.eval", log(sample("p1", 2, input="I sweat at night. What could it be?", scores={}))
    )
    assert (report.examples_new, report.responses_new) == (0, 1)
    assert [row[2:5] for row in rows(engine, RESPONSES)] == [
        ("alder-2", "healthbench", 0),
        ("alder-2", "healthbench", 1),
    ]


# ---- triage


CHEST, NOSE = "I have crushing chest pain.", "My nose has been running for a day."


@pytest.fixture
def cases(engine, tmp_path):
    return with_cases(engine, tmp_path)


def with_cases(engine, tmp_path):
    path = write(
        tmp_path / "cases.csv", table(case(1, normalized_prompt_text=CHEST), case(2, normalized_prompt_text=NOSE))
    )
    bring(engine, path)
    return engine


def test_answers_to_cases_get_their_format_from_the_input_and_their_level_from_the_judge(database_url, tmp_path):
    with study(database_url) as engine:
        cases = with_cases(engine, tmp_path)
        report = bring_log(cases, LOGS / "levels.eval", judge="Magpie")
        assert (report.rows, report.responses_new, report.texts_new) == (2, 2, 2)
        assert levels(cases) == [
            ("clinic_1", "alder-2", "acuity_conversation", 0, "Magpie", "D"),
            ("clinic_1", "alder-2", "acuity_conversation", 0, "acuity_rules", "D"),
            ("clinic_2", "alder-2", "acuity_qa", 0, "Magpie", "A"),
            ("clinic_2", "alder-2", "acuity_qa", 0, "parser", "A"),
        ]
        assert {"1 answer to a case, in the format conversation", "1 answer to a case, in the format qa"} <= set(
            report.notes
        )


def test_the_data_set_that_is_said_decides_the_format(cases):
    bring_log(cases, LOGS / "levels.eval", judge="Magpie", dataset="acuity_qa")
    assert rows(cases, "SELECT DISTINCT dataset FROM response") == [("acuity_qa",)]


def test_a_level_of_a_case_without_a_judge_is_refused_once(cases):
    before = dump(cases)
    with pytest.raises(ImportFailed) as refused:
        bring_log(cases, LOGS / "levels.eval")
    assert refused.value.faults == [
        "levels.eval sample 1: scores.level: expected a judge in its metadata or as Judge, got a level without one"
    ]
    assert dump(cases) == before


def test_a_case_is_found_by_its_words_too(cases, tmp_path):
    told = sample("other-name", input=NOSE, answer="Rest.", scores={"level": {"value": 1, "answer": "A"}})
    bring_log(cases, tmp_path / "a.eval", log(told))
    assert ("clinic_2", "alder-2", "acuity_conversation", 0, "magpie", "A") in levels(cases)


def test_a_sample_of_a_case_whose_words_it_does_not_hold_is_left_out_unless_its_format_is_said(cases, tmp_path):
    content = log(sample("clinic_1", input="Which level?", scores={}), sample("clinic_2", input=NOSE, scores={}))
    report = bring_log(cases, tmp_path / "a.eval", content, dry_run=True)
    assert (report.responses_new, report.without_partner) == (1, 1)
    assert (
        "does not hold the words of case 'clinic_1'; fill in Data set (acuity_qa or acuity_conversation) to say how it was asked"
        in report.named()[0]
    )
    assert bring_log(cases, tmp_path / "a.eval", dataset="acuity_qa").responses_new == 2


def test_the_mark_for_a_correct_answer_is_no_level_and_letters_beside_it_are(cases, tmp_path):
    marked = [
        sample(f"clinic_{n}", input=text, scores={"match": {"value": mark}})
        for n, text, mark in ((1, CHEST, "C"), (2, NOSE, "I"))
    ]
    report = bring_log(cases, tmp_path / "a.eval", log(*marked), dry_run=True)
    assert report.levels_new == 0
    assert report.notes[-2:] == [
        f"score 'match' of 1 sample: passed over, as it holds {Says.ONLY_MARK}",
        f"score 'match' of 1 sample: passed over, as it holds {Says.NOTHING}",
    ]
    lettered = [
        sample(f"clinic_{n}", input=text, scores={"level": {"value": mark}})
        for n, text, mark in ((1, CHEST, "D"), (2, NOSE, "C"))
    ]
    bring_log(cases, tmp_path / "b.eval", log(*lettered))
    assert [row[5] for row in levels(cases) if row[4] == "magpie"] == ["D", "C"]


def test_a_level_of_an_example_and_verdicts_of_a_case_are_passed_over_and_said(cases, tmp_path):
    content = log(sample("q1", scores={"level": {"value": 1, "answer": "B"}}), sample("clinic_1", input=CHEST))
    report = bring_log(cases, tmp_path / "a.eval", content)
    assert (report.levels_new, report.verdicts_new, report.responses_new) == (0, 0, 2)
    assert report.notes[-2:] == [
        "score 'level' of 1 sample: passed over, as it holds a level of care and the sample is of no case of triage",
        "score 'rubric' of 1 sample: passed over, as it holds verdicts on criteria and the sample is of a case of triage",
    ]


# ---- the page


def test_the_study_page_brings_a_log_in_and_says_what_was_passed_over(location, open_page):
    engine = open_study(location)
    with writing(engine) as session:
        store.ensure_study(session)
        store.add_person(session, LEAD, roles=["lead"], actor="set-up")
    engine.dispose()
    app = open_page(location, "study", LEAD)
    app.file_uploader(key="upload").upload("2026_fever.eval", (LOGS / "rubric.eval").read_bytes()).run()
    app.button(key="check").click().run()
    assert "2026_fever.eval: inspect-log, 4 rows, would be imported; nothing was changed" in check(app)
    app.button(key="import").click().run()
    shown = check(app)
    assert "6 new verdicts" in shown
    assert "of 4 samples: taken as verdicts on criteria, by the judge" in shown
    uploads = app.file_uploader(key="upload").upload("2026_fever.eval", (LOGS / "rubric.eval").read_bytes())
    uploads.upload("b.eval", log(sample(), model_roles=None)).run()
    app.button(key="import").click().run()
    shown = check(app)  # of both files, one after the other
    assert "This file was imported before. It adds nothing." in shown
    assert "Fill in Judge: the log does not say whose its verdicts are" in shown
