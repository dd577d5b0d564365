"""Logs of inspect_ai: what becomes of samples, verdicts and levels; what is counted and never taken for an answer."""

import json
import tracemalloc

import pytest

from evalcore import importing
from evalcore.errors import RowFault
from evalcore.importing import missing_options
from evalcore.importing.context import Options
from evalcore.importing.formats import inspect_logs
from evalcore.importing.formats.inspect_logs import Header, LogFile, Says, decoded
from evalcore.study.schema import Label
from tests.inspect_zips import (
    DEFLATED,
    LOGS,
    STORED,
    ZSTANDARD,
    as_json,
    bring_log,
    document,
    header,
    item,
    log,
    packed,
    refusal,
    rubric,
    sample,
)
from tests.invented import contents, dump, rows, study, user, verdicts, write

RESPONSES = (
    "SELECT e.dataset, e.prompt_id, m.name, r.dataset, r.sample_index, r.text, r.n_criteria FROM response r"
    " JOIN example e ON e.id = r.example_id JOIN model m ON m.id = r.model_id ORDER BY r.id"
)
ARABIC_ANSWER = "اشرب الماء واسترح، وراجع الطبيب إن طالت الحمى."
SAID = "Drink water and rest. Epoch by epoch I say the same."


@pytest.fixture
def engine(sqlite_database_url):
    with study(sqlite_database_url) as engine:
        yield engine


def read(given, *, judge=None, **told):
    """One sample as the reader gives it, without a study."""
    raw = as_json(given)
    known = inspect_logs.known_of(decoded(as_json(header(**told)), Header), iter([raw]))
    (found,) = inspect_logs.read(raw, 1, Options(judge=judge), known)
    return found


def test_samples_become_responses_and_rubric_items_the_graders_verdicts(database_url):
    with study(database_url) as engine:
        report = bring_log(engine, LOGS / "rubric.eval")
        assert (report.format, report.rows, report.examples_new, report.responses_new) == ("inspect-log", 4, 2, 4)
        # 2 epochs of a rubric of two criteria and of one of one
        assert report.verdicts_new == 2 * (2 + 1)
        assert rows(engine, RESPONSES) == [
            ("healthbench", "fever-1", "alder-2", "healthbench", 0, SAID, 2),
            ("healthbench", "fever-ar", "alder-2", "healthbench", 0, ARABIC_ANSWER, 1),
            ("healthbench", "fever-1", "alder-2", "healthbench", 1, SAID, 2),
            ("healthbench", "fever-ar", "alder-2", "healthbench", 1, ARABIC_ANSWER, 1),
        ]
        assert verdicts(engine) == [
            ("fever-1", "alder-2", epoch, position, "magpie", label)
            for epoch in (0, 1)
            for position, label in ((1, "met"), (2, "not_met"))
        ] + [("fever-ar", "alder-2", epoch, 1, "magpie", "met") for epoch in (0, 1)]
        assert rows(engine, "SELECT text, points, axis FROM criterion ORDER BY id") == [
            ("Advises to drink enough", 5, "completeness"), ("Names a dose of an antibiotic", -6, "accuracy"), ("يجيب بلغة السائل", 4, None),
        ]  # fmt: skip
        assert report.notes == [
            "model 'mockllm/alder-2' of the log: here 'alder-2'",
            "score 'rubric' of 4 samples: taken as verdicts on criteria, by the judge 'magpie'",
            "score 'includes' of 4 samples: passed over, as it holds neither a list of criteria nor a level of care",
        ]


def test_what_was_sent_is_kept_where_it_is_more_than_the_input(engine):
    bring_log(engine, LOGS / "rubric.eval")
    asked = [user("I have had a fever of 39 since yesterday. What should I do?")]
    (sent, messages), *_ = rows(
        engine, "SELECT r.sent_messages, e.messages FROM response r JOIN example e ON e.id = r.example_id ORDER BY r.id"
    )
    assert json.loads(messages) == asked
    assert json.loads(sent) == [{"role": "system", "content": "Answer briefly."}, *asked]


def test_the_same_run_as_a_zip_and_as_a_document_is_the_same_study(engine, tmp_path):
    bring_log(engine, LOGS / "rubric.eval")
    with study(str(tmp_path / "other.db")) as other:
        bring_log(other, LOGS / "rubric.json.gz")
        assert contents(other) == contents(engine)
    before = dump(engine)
    report = bring_log(engine, LOGS / "rubric.json.gz")
    assert (report.responses_known, report.verdicts_known, report.adds_nothing) == (4, 6, True)
    assert dump(engine) == before


@pytest.mark.parametrize(("method", "frames"), [(STORED, 1), (DEFLATED, 1), (ZSTANDARD, 1), (ZSTANDARD, 3)])
def test_every_way_of_packing_reads_the_same(engine, tmp_path, method, frames):
    rows_in = {"header.json": as_json(header()), "samples/q1_epoch_1.json": as_json(sample(answer="ماء " * 500))}
    report = bring_log(engine, tmp_path / "a.eval", packed(rows_in, method=method, frames=frames))
    assert (report.responses_new, report.verdicts_new) == (1, 1)
    assert rows(engine, "SELECT text FROM response") == [("ماء " * 500,)]


def test_a_log_packed_once_more_is_read(engine, tmp_path):
    assert bring_log(engine, write(tmp_path / "a.eval.gz", log(sample()))).responses_new == 1


def test_an_error_is_no_answer_and_a_conversation_in_parts_is_one(engine):
    report = bring_log(engine, LOGS / "odd.eval")
    assert (report.rows, report.samples_left_out, report.responses_new) == (2, 1, 1)
    assert "1 sample with an error: left out, and never taken for an empty answer" in report.notes
    ((messages, text),) = rows(
        engine, "SELECT e.messages, r.text FROM response r JOIN example e ON e.id = r.example_id"
    )
    assert json.loads(messages) == [
        {"role": "system", "content": "You are a nurse."},
        user("I feel hot.\nIs that a fever?"),
        {"role": "assistant", "content": "Have you measured it?"},
        user("38.5"),
    ]
    assert text == SAID


def test_a_run_that_was_stopped_gives_what_is_complete_and_says_what_is_missing(engine):
    report = bring_log(engine, LOGS / "stopped.eval")
    assert (report.rows, report.responses_new) == (2, 2)
    assert report.notes[:2] == [
        "The run behind this log did not end well: its status is 'started'",
        "2 of the 4 samples that the run was to ask are not in the log",
    ]


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_how_a_run_ended_is_said(engine, tmp_path, status):
    content = document(sample(), status=status, dataset={"sample_ids": ["q1", "q2"]}, config={"epochs": 3})
    report = bring_log(engine, tmp_path / "a.json", content)
    assert report.responses_new == 1
    assert report.notes[0].endswith(f"its status is '{status}'")
    assert report.notes[1].startswith("5 of the 6 samples")  # two questions, three epochs, one sample


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"error": {"message": "broken", "traceback": ""}}, "with an error"),
        ({"invalidation": {"reason": "wrong file"}}, "declared invalid in inspect_ai"),
        ({"answer": "  "}, "without an answer"),
        ({"output": None}, "without an answer"),
        ({"output": {"choices": []}}, "without an answer"),
        ({"answer": [{"type": "reasoning", "reasoning": "Hm."}], "output": {"choices": [{"message": {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "Hm."}]}}]}}, "without an answer"),  # noqa: E501, RUF100
        ({"input": [{"role": "tool", "content": "22 degrees"}]}, "whose input is no conversation of system, user and assistant"),
    ],
)  # fmt: skip
def test_a_sample_without_an_answer_is_never_a_response(change, why):
    found = read(sample(**({"answer": "x"} | change)))
    assert found.left_out == why
    assert (found.text, found.judged) == ("", ())


def test_text_in_parts_is_joined_thoughts_are_left_out_and_pictures_are_named(engine, tmp_path):
    asked = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image", "image": "data:..."}]}
    ]
    said = [
        {"type": "reasoning", "reasoning": "A rash."},
        {"type": "text", "text": "A rash."},
        {"type": "text", "text": "See a doctor."},
    ]
    output = {"choices": [{"message": {"role": "assistant", "content": said}}], "completion": "A rash.\nSee a doctor."}
    report = bring_log(engine, tmp_path / "a.eval", log(sample(input=asked, output=output)))
    ((messages, text),) = rows(
        engine, "SELECT e.messages, r.text FROM response r JOIN example e ON e.id = r.example_id"
    )
    assert json.loads(messages) == [user("What is this?\n[image]")]
    assert text == "A rash.\nSee a doctor."
    assert "1 input with parts that are no text: each stands as its kind in brackets, such as [image]" in report.notes


def test_a_text_that_stands_apart_from_its_message_is_put_back(engine, tmp_path):
    long = "Drink water. " * 30
    bring_log(engine, tmp_path / "a.eval", log(sample(answer="attachment://ab12", attachments={"ab12": long})))
    assert rows(engine, "SELECT text FROM response") == [(long,)]
    said = refusal(engine, tmp_path / "b.eval", log(sample("q2", answer="attachment://cd34")))
    assert "b.eval sample 1: attachments: expected the text 'cd34' that a message refers to, got nothing" in said


# ---- whose verdicts, and which


@pytest.mark.parametrize(
    ("scores", "roles", "judge", "expected"),
    [
        ({"r": rubric()}, {"grader": {"model": "lab/magpie"}}, None, "magpie"),
        ({"r": rubric()}, {"grader": [{"model": "magpie"}]}, None, "magpie"),
        ({"r": rubric(judge_model="openrouter/lab/heron")}, {"grader": {"model": "lab/magpie"}}, None, "lab/heron"),
        ({"r": rubric(grader="heron")}, None, None, "heron"),
        ({"r": rubric(judge="heron")}, None, "Wren", "Wren"),
    ],
)
def test_the_judge_is_who_was_said_else_the_scores_own_else_the_grader(scores, roles, judge, expected):
    (found,) = read(sample(scores=scores), model_roles=roles, judge=judge).judged
    assert found.judge == expected
    assert {verdict.rater for verdict in found.verdicts} == {expected}


def test_a_log_that_names_no_judge_asks_for_one(engine, tmp_path, overread):
    content = log(sample(), model_roles=None)
    said = refusal(engine, tmp_path / "a.eval", content)
    assert said == "a.eval: Fill in Judge: the log does not say whose its verdicts are"
    assert missing_options(tmp_path / "a.eval", options=Options()) == ["judge"]
    assert missing_options(tmp_path / "a.eval", options=Options(judge="Wren")) == []
    assert "a.eval: Fill in Judge: the log does not say whose its verdicts are" in overread.bad(
        "import", tmp_path / "a.eval", "--db", overread.db
    )
    assert "by the judge 'Wren'" in overread.good("import", tmp_path / "a.eval", "--judge", "Wren", "--db", overread.db)


def test_a_log_that_names_no_model_asks_for_one(engine, tmp_path):
    content = log(sample(), model="none/none")
    assert "Fill in Model: the log does not say who answered" in refusal(engine, tmp_path / "a.eval", content)
    assert missing_options(tmp_path / "a.eval", options=Options()) == ["model"]
    assert bring_log(engine, tmp_path / "a.eval", model="Alder-2").responses_new == 1


@pytest.mark.parametrize("name", ["rubric_items", "criteria_results", "grading", "anything"])
def test_a_list_of_criteria_is_told_by_its_shape_not_by_its_name(name):
    scores = {
        "s": {
            "value": 1,
            "metadata": {name: [item(), item("Says when to come back", met=False, points=2.0)], "notes": ["x"], "n": 2},
        }
    }
    (found,) = read(sample(scores=scores)).judged
    assert [(criterion.text, criterion.points) for criterion in found.rubric] == [
        ("Says to drink", 5),
        ("Says when to come back", 2),
    ]
    assert [verdict.label for verdict in found.verdicts] == [Label.MET, Label.NOT_MET]


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        (None, Says.NOTHING),
        ({"rubric_items": []}, Says.NOTHING),
        ({"rubric_items": [{"criterion": "x"}]}, Says.NOTHING),
        ({"rubric_items": [item(), {"criterion": "x"}]}, Says.NOTHING),
        ({"rubric_items": ["x"]}, Says.NOTHING),
        ({"rubric_items": item()}, Says.NOTHING),
        ({"a": [item()], "b": [item(met=False)]}, Says.SEVERAL),
    ],
)
def test_a_score_that_is_no_one_list_of_criteria_gives_no_verdict(metadata, says):
    found = read(sample(scores={"s": {"value": 1.5, "metadata": metadata}}))
    assert (found.judged, found.levels, found.scores) == ((), (), (("s", says),))


def test_scores_that_are_passed_over_are_said_and_leave_no_rubric(engine, tmp_path):
    report = bring_log(engine, tmp_path / "a.eval", log(sample(scores={"s": {"value": 1.5}})))
    assert (report.responses_new, report.verdicts_new) == (1, 0)
    assert report.notes[-1] == f"score 's' of 1 sample: passed over, as it holds {Says.NOTHING}"
    assert rows(engine, "SELECT n_criteria FROM response") == [(None,)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            {"criteria_met": "true"},
            "scores.s.metadata.rubric_items[1].criteria_met: expected true or false or nothing, got 'true'",
        ),
        (
            {"criteria_met": 1},
            "scores.s.metadata.rubric_items[1].criteria_met: expected true or false or nothing, got 1",
        ),
        ({"points": 0}, "rubric_items[1].points: expected a whole number -10..10 without 0, got 0.0"),
        (
            {"points": 2.5},
            "scores.s.metadata.rubric_items[1].points: expected a whole number -10..10 without 0, got 2.5",
        ),
        (
            {"points": 11},
            "scores.s.metadata.rubric_items[1].points: expected a whole number -10..10 without 0, got 11.0",
        ),
        ({"points": "5"}, "scores.s.metadata.rubric_items[1].points: expected a number or nothing, got '5'"),
        ({"criterion": ""}, "scores.s.metadata.rubric_items[1].criterion: expected text of length >= 1, got ''"),
        ({"explanation": ["x"]}, 'scores.s.metadata.rubric_items[1].explanation: expected text or nothing, got ["x"]'),
        (
            {"tags": "axis:accuracy"},
            "scores.s.metadata.rubric_items[1].tags: expected a list or nothing, got 'axis:accuracy'",
        ),
        ({"explanation": "a\x00b"}, "the character NUL"),
    ],
)
def test_a_criterion_of_another_shape_is_refused_with_its_place(change, place):
    with pytest.raises(RowFault) as refused:
        read(sample(scores={"s": rubric(item(), item("Other") | change)}))
    assert str(refused.value).startswith("scores.s.metadata.rubric_items")
    assert place in str(refused.value)


def test_a_criterion_that_the_grader_left_open_has_no_verdict_and_stays_in_the_rubric(engine, tmp_path):
    scores = {"s": rubric(item(), item("Says when to come back", met=None))}
    report = bring_log(engine, tmp_path / "a.eval", log(sample(scores=scores)))
    assert report.verdicts_new == 1
    assert rows(engine, "SELECT n_criteria FROM response") == [(2,)]
    assert "1 criterion without true or false: no verdict" in report.notes


def test_two_judges_in_one_log_are_two_raters_and_of_two_scores_of_one_judge_the_first_counts(engine, tmp_path):
    scores = {
        "a": rubric(judge="Wren"),
        "b": rubric(item(met=False), judge="Heron"),
        "c": rubric(item(met=False), judge="Wren"),
    }
    report = bring_log(engine, tmp_path / "a.eval", log(sample(scores=scores)))
    assert [row[4:] for row in verdicts(engine)] == [("Heron", "not_met"), ("Wren", "met")]
    assert (report.responses_new, report.verdicts_superseding) == (1, 0)
    assert (
        report.notes[-1] == "score 'c' of 1 sample: passed over, as an earlier score of the same is by the same judge"
    )


# ---- recognising, and size


def test_a_log_is_told_from_a_results_file_by_its_beginning(engine, tmp_path):
    content = document(sample(), metrics=None).replace(b'"samples"', b'"metrics": {}, "samples"')
    assert bring_log(engine, tmp_path / "renamed_allresults.json", content).format == "inspect-log"
    flat = as_json({"eval": header()["eval"], "status": "success", "samples": [sample("q9", input="New.")]})
    assert bring_log(engine, tmp_path / "flat.json", b"\xef\xbb\xbf" + flat).responses_new == 1


def test_numbers_that_json_does_not_have_are_read_as_nothing_and_texts_keep_them(engine, tmp_path):
    answer = 'It is "NaN" or -Infinity: NaN, {"x": NaN}'
    content = document(sample(answer=answer, scores={"s": {"value": "?", "metadata": {"x": "!"}}}))
    content = content.replace(b'"?"', b"NaN").replace(b'"!"', b"-Infinity")
    bring_log(engine, tmp_path / "a.json", content)
    assert rows(engine, "SELECT text FROM response") == [(answer,)]


def test_what_is_not_wanted_of_a_sample_is_not_built(tmp_path):
    events = [{"event": "model", "output": {"text": "x", "numbers": [1, 2, 3]}} for _ in range(60_000)]
    raw = as_json(sample(events=events))
    known = LogFile(write(tmp_path / "a.eval", log(sample())), "a.eval").known
    tracemalloc.start()
    (found,) = inspect_logs.read(raw, 1, Options(model="m"), known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.text == "Drink water."
    assert peak < len(raw) / 10  # the events alone, built, would take ten times their text


def test_a_format_named_by_the_caller_is_the_one_that_is_read(engine, tmp_path):
    assert "expected simple-evals, got a zip" in refusal(
        engine, tmp_path / "a.eval", log(sample()), format_name="simple-evals", judge="x", model="y"
    )
    odd = json.dumps(
        {"samples": [sample("q1")], "eval": header()["eval"]}
    ).encode()  # samples first: not told by its beginning
    assert bring_log(engine, tmp_path / "a.json", odd, format_name="inspect-log").responses_new == 1


def test_importing_knows_the_format_by_name():
    assert importing.told_by_name("2026-11-22T05-50-01-00-00_fever-advice_27oR89.eval") == Options()
