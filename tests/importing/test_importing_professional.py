"""HealthBench Professional: its file lands in examples, tags and responses; its points may be large; the physician's response is one of the models'."""

import json

import pytest

from evalcore.errors import ImportFailed
from evalcore.importing.formats.healthbench import PHYSICIAN
from evalcore.reading import assigning, reviewing
from evalcore.reading.assigning import Choice
from evalcore.study import contents, store
from evalcore.study.browse import Filters, examples
from evalcore.study.db import open_study, reading, writing
from evalcore.study.schema import TASK_TAGS, Administrator
from tests import invented as made
from tests.invented import bring, rows, study, write

NAME = "healthbench_professional_eval.jsonl"
SCHEDULE, GUESS = "Gives a dosing schedule", "Guesses the creatinine"


def task(name="t1", **other):
    """A line of the file, invented."""
    row = {
        "id": name,
        "conversation": {"messages": [made.user("Dose of vancomycin at 80 kg?")]},
        "rubric_items": [{"criterion_text": SCHEDULE, "points": 15}, {"criterion_text": GUESS, "points": -24}],
        "use_case": "consult",
        "type": "good_faith",
        "difficulty": "typical",
        "specialty": "Infectious diseases",
        "physician_response": "15 mg/kg, then by level.",
        "canary_string": "invented canary",
    }
    return row | other


def test_a_task_becomes_an_example_with_its_tags_its_large_points_and_the_physicians_response(tmp_path, database_url):
    with study(database_url) as engine:
        report = bring(engine, write(tmp_path / "whatever.jsonl", [task(), task("t2", physician_response=None)]))
        assert (report.format, report.examples_new, report.responses_new, report.responses_joined) == (
            "healthbench-professional", 2, 1, 1,
        )  # fmt: skip
        assert rows(engine, "SELECT prompt_id, dataset, theme, canary FROM example ORDER BY id") == [
            ("t1", "healthbench", None, "invented canary"),
            ("t2", "healthbench", None, "invented canary"),
        ]
        (tags,) = rows(engine, "SELECT tags FROM example WHERE prompt_id = 't1'")[0]
        assert json.loads(tags) == [
            "use_case:consult", "type:good_faith", "difficulty:typical", "specialty:Infectious diseases",
        ]  # fmt: skip
        assert rows(engine, "SELECT position, text, points FROM criterion WHERE example_id = 1 ORDER BY position") == [
            (1, SCHEDULE, 15),
            (2, GUESS, -24),
        ]
        assert rows(engine, "SELECT DISTINCT subset FROM example_subset") == [("professional",)]
        assert rows(
            engine, "SELECT m.name, r.dataset, r.text, r.n_criteria FROM response r JOIN model m ON m.id = r.model_id"
        ) == [(PHYSICIAN, "healthbench_professional", "15 mg/kg, then by level.", None)]


def test_the_same_file_again_and_a_longer_one_add_nothing_that_is_there(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / NAME, [task()]))
        before = made.contents(engine)
        longer = bring(engine, write(tmp_path / "longer.jsonl", [task(), task("t2")]))
        assert (longer.examples_new, longer.examples_known, longer.responses_new, longer.responses_known) == (
            1, 1, 1, 1,
        )  # fmt: skip
        assert set(before["responses"]) < set(made.contents(engine)["responses"])


def test_results_of_the_reference_tool_on_it_join_with_their_large_points(tmp_path, database_url):
    rubric = [made.criterion(SCHEDULE, 15, "level:example"), made.criterion(GUESS, -24, "level:example")]
    result = made.entry("t1", (True, False), rubric=rubric, prompt=task()["conversation"]["messages"])
    name = "healthbench_professional_model-a_20260501_101010_allresults.json"
    with study(database_url) as engine:
        bring(engine, write(tmp_path / NAME, [task()]))
        report = bring(engine, write(tmp_path / name, made.results(result)))
        assert (report.responses_joined, report.verdicts_new, report.without_partner) == (1, 2, 0)
        assert rows(engine, "SELECT DISTINCT dataset FROM response") == [("healthbench_professional",)]
        assert rows(engine, "SELECT count(*) FROM criterion") == [(2,)]


def test_of_the_other_parts_points_stay_within_ten(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        for row, name in (
            ([made.example(rubric=[made.criterion(points=11)])], "hard.jsonl"),
            (made.results(made.entry(rubric=[made.criterion(points=11)], met=[True])), "healthbench_hard_m_20260101_101010_allresults.json"),
        ):  # fmt: skip
            with pytest.raises(ImportFailed, match=r"points: expected .*10, got 11"):
                bring(engine, write(tmp_path / name, row))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"id": ""}, "id: expected text of length >= 1, got ''"),
        ({"conversation": {}}, "conversation.messages: expected a value, got nothing"),
        ({"conversation": {"messages": []}}, "conversation.messages: expected a list of length >= 1, got []"),
        ({"conversation": {"messages": [made.user(), made.assistant("Yes.")]}}, "conversation.messages"),
        ({"rubric_items": []}, "rubric_items: expected a list of length >= 1, got []"),
        ({"rubric_items": [{"criterion_text": "x", "points": 0}]}, "rubric_items[0].points: expected a whole number other than 0, got 0"),
        ({"rubric_items": [{"criterion_text": "x", "points": 1001}]}, "rubric_items[0].points: expected a whole number <= 1000, got 1001"),
        ({"rubric_items": [{"criterion_text": "x", "points": 2.5}]}, "rubric_items[0].points: expected a whole number, got 2.5"),
        ({"rubric_items": [{"points": 3}]}, "rubric_items[0].criterion_text: expected a value, got nothing"),
        ({"specialty": 7}, "specialty: expected text or nothing, got 7"),
        ({"physician_response": ["a"]}, 'physician_response: expected text or nothing, got ["a"]'),
    ],
)  # fmt: skip
def test_a_broken_line_is_one_sentence_with_its_place_and_nothing_is_kept(tmp_path, sqlite_database_url, broken, said):
    with study(sqlite_database_url) as engine:
        with pytest.raises(ImportFailed) as failed:
            bring(engine, write(tmp_path / NAME, [task(), task("t2", **broken)]))
        (fault,) = failed.value.faults
        assert fault.startswith(f"{NAME} line 2: {said}")
        assert rows(engine, "SELECT count(*) FROM example") == [(0,)]


def test_another_response_of_the_physician_to_a_known_task_is_refused(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / NAME, [task()]))
        with pytest.raises(ImportFailed, match="line 1: completion: expected the text imported before"):
            bring(engine, write(tmp_path / NAME, [task(physician_response="Another.")]))


def test_conversations_are_chosen_by_each_of_the_four_and_by_the_whole_word(tmp_path, database_url):
    others = task(
        "t2", use_case="research", type="red_teaming", difficulty="difficult", specialty='Ear, "nose" & 100%_ö'
    )
    with study(database_url) as engine:
        bring(engine, write(tmp_path / NAME, [task(), others, task("t3", specialty="Infectious")]))
        bring(engine, write(tmp_path / "hard.jsonl", [made.example()]))
        with reading(engine) as session:
            offered = contents.choices(session)
            assert {kind: offered[kind] for kind in TASK_TAGS} == {
                "use_case": ["consult", "research"],
                "type": ["good_faith", "red_teaming"],
                "difficulty": ["difficult", "typical"],
                "specialty": ['Ear, "nose" & 100%_ö', "Infectious", "Infectious diseases"],
            }

            def found(**chosen):
                return list(examples(session, Filters(**chosen))["prompt_id"])

            assert found(use_case="consult") == ["t1", "t3"]
            assert found(type="red_teaming") == found(difficulty="difficult") == ["t2"]
            assert found(specialty="Infectious") == ["t3"]
            assert found(specialty='Ear, "nose" & 100%_ö') == ["t2"]
            assert found(use_case="consult", specialty="Infectious diseases") == ["t1"]
            assert found(use_case="consult", type="red_teaming") == []


def test_the_physicians_response_is_read_blind_as_a_models_is(tmp_path, database_url):
    """Nothing that the reader is given before the lock says who wrote it, or tells it from the response of a model."""
    rubric = [made.criterion(SCHEDULE, 15, "level:example"), made.criterion(GUESS, -24, "level:example")]
    prompt = task()["conversation"]["messages"]
    result = made.entry("t1", (True, False), rubric=rubric, prompt=prompt, answer="20 mg/kg.", completion_id=None)
    with study(database_url) as engine:
        with writing(engine) as session:
            store.ensure_study(session)
            store.add_person(session, "Dr. Vale", roles=["reviewer"], actor="set-up")
        bring(engine, write(tmp_path / NAME, [task()]))
        bring(engine, write(tmp_path / "healthbench_professional_model-a_20260501_101010.json", made.results(result)))
        assigning.assign(engine, Choice(seed=1, n_readers=1), actor=Administrator(name="Ana Ruiz"))
        with reading(engine) as session:
            (reader,) = contents.people(session)
        given = {}
        for _ in range(2):
            desk = reviewing.take(engine, reader)
            assert desk is not None
            said = repr(desk)
            assert PHYSICIAN not in said
            assert "hysician" not in said
            assert "model-a" not in said
            given["15 mg/kg" in said] = said
            for key in desk.keys:
                reviewing.mark(engine, reader, desk.reading.id, key, "met")
            reviewing.submit(engine, reader, desk.reading.id)
        assert set(given) == {True, False}


@pytest.mark.parametrize(
    ("option", "n"),
    [
        ("--use-case=consult", 2),
        ("--type=red_teaming", 1),
        ("--difficulty=hard", 0),
        ("--task-specialty=Cardiology", 1),
    ],
)
def test_reading_is_assigned_by_the_tags_of_the_tasks(overread, option, n):
    write(
        overread.folder / NAME,
        [task(), task("t2", type="red_teaming", specialty="Cardiology"), task("t3", use_case="writing")],
    )
    overread.good("import", NAME)
    engine = open_study(str(overread.folder / "overread.db"))
    with writing(engine) as session:
        store.add_person(session, "Dr. Ines Vale", roles=["reviewer"], actor="set-up")
    engine.dispose()
    said = overread.good if n else overread.bad
    assert (f"{n} of {n} items that fit" if n else "no item fits") in said(
        "assign", option, "--readers", "1", "--dry-run"
    )
