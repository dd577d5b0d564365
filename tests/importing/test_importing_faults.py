"""A faulty file gives clear sentences and leaves the study as it was, on both databases."""

import gzip
import json
import re

import pytest

from evalcore.errors import ImportFailed
from tests import invented as made
from tests.invented import bring, criterion, dump, entry, example, judged, meta, results, study, write

RESULTS_NAME = "healthbench_hard_model-a_20260101_101010_allresults.json"
HEADER = b"example_id,model,criterion_position,rater,label,explanation,confidence,read_at\n"


def rubric(**change: object) -> bytes:
    return made.lines(example("p9"), example("p10", rubric=[criterion() | change]))


def doc(**change: object) -> bytes:
    return json.dumps(results(entry("p9"), entry("p10") | change), indent=2).encode()


def row(
    label: bytes = b"met",
    *,
    model: bytes = b"model-a",
    position: bytes = b"1",
    confidence: bytes = b"",
    at: bytes = b"",
) -> bytes:
    return (
        HEADER
        + b"p1,"
        + model
        + b","
        + position
        + b",Dr. Vale,"
        + label
        + b',"Why, not",'
        + confidence
        + b","
        + at
        + b"\n"
    )


NESTED = b"[" * 5_000 + b"]" * 5_000
LEVELS_300 = json.loads("[" * 300 + "]" * 300)
HALF = b'"\\ud83d"'

FAULTS = {
    "0 bytes": (b"", "got 0 bytes"),
    "blank lines": (b"\n \n\t\n", "expected one of the formats .*, got only blank lines"),
    "a packed nothing": (gzip.compress(b""), "expected one of the formats"),
    "prose": (b"Dear colleague, here are the results.\n", "line 1: expected the columns or keys of one of the formats .*, got 'Dear colleague, here are the results.'"),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), "line 1: expected the columns or keys of one of the formats .*, got '.PNG'"),
    "UTF-16": ("example_id,rater,label\n".encode("utf-16"), "expected the columns or keys of one of the formats .*, got "),
    "a list": (b"[1, 2, 3]\n", r"line 1: the row: expected an object, got \[1,2,3\]"),
    "a list over lines": (b"[\n1,\n2]\n", "line 1: the row: expected an object, got another value"),
    "a number": (b"42\n", "expected the columns or keys of one of the formats .*, got '42'"),
    "an empty object": (b"{}\n", "line 1: prompt_id: expected a value, got nothing"),
    "truncated JSON": (made.lines(example("p9"))[:-30], "line 1: not valid JSON"),
    "truncated second line": (made.lines(example("p9"), example("p10"))[:-30], "line 2: not valid JSON"),
    "truncated document": (doc()[:-30], "not valid JSON"),
    "a document cut in its pages": (doc()[:80], "not valid JSON"),
    "points 0": (rubric(points=0), r"line 2: rubrics\[0\].points: expected -10..10 without 0, got 0"),
    "points 11": (rubric(points=11), r"line 2: rubrics\[0\].points: expected a whole number <= 10, got 11"),
    "points -11": (rubric(points=-11), r"line 2: rubrics\[0\].points: expected a whole number >= -10, got -11"),
    "points 0 in a result": (doc(rubric_items=[criterion(points=0) | {"criteria_met": True}]), r"entry 2: rubric_items\[0\].points: expected -10..10 without 0, got 0"),
    "points true": (rubric(points=True), r"line 2: rubrics\[0\].points: expected a whole number, got true"),
    "points 2.5": (rubric(points=2.5), r"line 2: rubrics\[0\].points: expected a whole number, got 2.5"),
    "points of many digits": (rubric(points=10**30), r"line 2: rubrics\[0\].points: expected a whole number <= 10, got 1e\+30"),
    "points as a text": (rubric(points="5"), r'line 2: rubrics\[0\].points: expected a whole number, got .5.'),
    "no points": (rubric(points=None), r"line 2: rubrics\[0\].points: expected a whole number, got null"),
    "a list for a text": (rubric(criterion=["a", "b"]), r"line 2: rubrics\[0\].criterion: expected text, got \[.*\]"),
    "an empty criterion": (rubric(criterion=""), r"line 2: rubrics\[0\].criterion"),
    "a deep list for a text": (rubric(criterion=LEVELS_300), r"line 2: rubrics\[0\].criterion: expected text, got a deeply nested list"),
    "no rubric": (made.lines(example("p9", rubric=[])), r"line 1: rubrics: expected a list of length >= 1, got \[\]"),
    "no conversation": (made.lines(example("p9", prompt=[])), r"line 1: prompt: expected a list of length >= 1, got \[\]"),
    "an answer last": (made.lines(example("p9", prompt=[made.user(), made.assistant("Hm.")])), r"line 1: prompt\[1\].role: expected the user's turn last, got 'assistant'"),
    "an unknown role": (made.lines(example("p9", prompt=[{"role": "nurse", "content": "x"}])), r"prompt\[0\].role: expected one of system, developer, user, assistant, got 'nurse'"),
    "nested very deeply": (b'{"prompt_id": "p9", "prompt": ' + NESTED + b', "rubrics": []}\n', r"line 1: prompt\[0\]: expected an object, got another value"),
    "nested very deeply beside": (made.lines(example("p9"))[:-2] + b', "more": ' + NESTED + b"}\n", "nested too deeply"),
    "nested very deeply in a second line": (
        made.lines(example("p9")) + made.lines(example("p10"))[:-2] + b', "more": ' + NESTED + b"}\n",
        "line 2: nested too deeply",
    ),
    "not UTF-8": (
        made.lines(example("p9")) + made.lines(example("p10")).replace(b"sweat at", b"sw\xe9at at"),
        "line 2: byte .*: expected UTF-8, got e9 61 74 20",
    ),
    "not UTF-8 in what is kept as it is": (
        made.lines(example("p9", ideal_completions_data={"a": "sweet"})).replace(b"sweet", b"sw\xe9et"),
        "expected UTF-8",
    ),
    "not UTF-8 in a document": (doc().replace(b"It says so", b"It s\xe9ys so"), "entry 1: byte .*: expected UTF-8, got e9"),
    "NUL": (made.lines(example("p9", prompt=[made.user("a\x00b")])), "NUL"),
    "bare NUL": (made.lines(example("p9")).replace(b"sweat", b"sw\x00at"), "not valid JSON"),
    "NUL in a document": (doc(completion=[made.assistant("a\x00b")]), "entry 2: text: expected text that a database can hold, got the character NUL"),
    "half a surrogate pair": (made.lines(example("p9")).replace(b'"I sweat at night. What could it be?"', HALF), "surrogate"),
    "half a surrogate pair in a document": (doc().replace(b'"It says so."', HALF), "surrogate"),
    "a prompt_id twice": (
        made.lines(example("p9"), example("p9", prompt=[made.user("Another question?")])),
        r"line 2: prompt_id: expected it once, got 'p9' again with other content \(first on line 1\)",
    ),
    "a prompt_id twice, other rubric": (made.lines(example("p9"), example("p9", rubric=[criterion(points=4)])), r"line 2: prompt_id: expected it once, got 'p9' again with other content \(first on line 1\)"),
    "a prompt_id of the study, other prompt": (
        made.lines(example("p1", prompt=[made.user("Another question?")])),
        "line 1: prompt: expected the conversation imported before for prompt_id 'p1', got another",
    ),
    "a prompt_id of the study, other points": (
        made.lines(example("p1", rubric=[*made.RUBRIC[:2], made.RUBRIC[2] | {"points": -7}])),
        r"line 1: rubrics: expected the rubric imported before for prompt_id 'p1', got the criterion .* \(-7 points\) too",
    ),
    "a prompt_id of the study, a criterion less": (
        made.lines(example("p1", rubric=made.RUBRIC[:2])),
        "line 1: rubrics: expected the rubric imported before for prompt_id 'p1', got it without the criterion",
    ),
    "a prompt_id of the study, other theme": (made.lines(example("p1", theme="communication")), "line 1: example_tags: expected theme:hedging for prompt_id 'p1' as imported before, got theme:communication"),
    "a result on another rubric": (
        json.dumps(results(entry("p1", rubric=[criterion("Another")], met=[True]))).encode(),
        r"entry 1: rubric_items\[0\].criterion: expected a criterion of prompt_id 'p1', got 'Another'",
    ),
    "a result without entries": (json.dumps(results()).encode(), "expected at least one row, got none"),
    "a result without metadata entries": (json.dumps(results() | {"metadata": {}}).encode(), "metadata.example_level_metadata: expected a value, got nothing"),
    "a result whose metadata is null": (json.dumps(results() | {"metadata": None}).encode(), "metadata: expected an object, got null"),
    "a result whose verdict is null": (
        doc(rubric_items=[criterion() | {"criteria_met": None}]),
        r"entry 2: rubric_items\[0\].criteria_met: expected true or false, got null",
    ),
    "a result without an answer": (doc(completion=[]), "entry 2: completion"),
    "a result of the user's": (doc(completion=[made.user()]), r"entry 2: completion\[\].role: expected 'assistant', got 'user'"),
    "a result nobody asked for": (doc(prompt=[made.assistant("Hm.")]), "entry 2: prompt: expected at least one turn of the user's, got none"),
    "more labels than physicians": (
        made.lines(meta("p9", anonymized_physician_ids=["a"])),
        "line 1: anonymized_physician_ids: expected 2 different names, one a label, got 1",
    ),
    "a physician twice": (
        made.lines(meta("p9", anonymized_physician_ids=["a", "a"])),
        "line 1: anonymized_physician_ids: expected 2 different names, one a label, got 2",
    ),
    "a physician's label as a text": (
        made.lines(meta("p9", binary_labels=["yes", "no"])),
        r"line 1: binary_labels\[0\]: expected true or false, got .yes.",
    ),
    "another text under one completion_id": (
        made.lines(meta("p9"), meta("p10")) + made.lines(meta("p9", completion="Other")),
        "line 3: completion",
    ),
    "a judge's null": (made.lines(judged(met=None)), "line 1: criteria_met: expected true or false, got null"),
    "a judge's word": (made.lines(judged(met="yes")), "line 1: criteria_met: expected true or false, got .yes."),
    "a judge's confidence above 1": (made.lines(judged(confidence=1.5)), "line 1: confidence: expected a number <= 1.0, got 1.5"),
    "a judge without criterion": (
        made.lines({"prompt_id": "p1", "model": "model-a", "criteria_met": True, "judge": "B"}),
        "line 1: category: expected it, or criterion_position, or criterion, got nothing",
    ),
    "nobody named: a judge's row": (
        made.lines({"prompt_id": "p1", "category": "x", "criteria_met": True, "judge": "B"}),
        "line 1: completion_id: expected it, or model, to find the response, got nothing",
    ),
    "verdicts on nothing here": (
        made.lines(judged("p77"), judged("p78")),
        "expected rows that fit the study, got none in 2 rows; line 1: example 'p77'",
    ),
    "only a header": (HEADER, "expected at least one row, got none"),
    "an unknown label": (row(b"maybe"), "line 2: label: expected met, not_met, cannot_assess, got 'maybe'"),
    "an empty label": (row(b""), "line 2: label: expected a value, got nothing"),
    "a position 0": (row(position=b"0"), "line 2: criterion_position: expected a whole number >= 1, got 0"),
    "a position in words": (row(position=b"first"), "line 2: criterion_position: expected a whole number or nothing, got 'first'"),
    "a confidence that is none": (row(confidence=b"nan"), "line 2: confidence: expected a number or nothing, got 'nan'"),
    "a time without its zone": (row(at=b"2026-01-01T10:00:00"), "line 2: read_at: expected a time with its zone such as .*, got '2026-01-01T10:00:00'"),
    "a time before the calendar": (row(at=b"0001-01-01T00:00:00+14:00"), "line 2: read_at"),
    "nobody named: a table": (row(model=b""), "line 2: model: expected it, or completion_id, to find the response, got nothing"),
    "a cell too many": (row() + b"p1,model-a,1,Dr. Vale,met,Why,,,9\n", "line 3: expected 8 cells as in the first line, got 9"),
    "a cell too few": (row() + b"p1,model-a\n", "line 3: expected 8 cells as in the first line, got 2"),
    "a quote that never ends": (row() + b'p1,model-a,1,Dr. Vale,met,"Why\n', "not readable as CSV"),
    "a column twice": (HEADER.replace(b"confidence", b"label") + b"p1,model-a,1,Dr. Vale,met,Why,,\n", "line 1: label: expected the column once, got it twice"),
    "NUL in a table": (row().replace(b"Why", b"W\x00y"), "line 2: explanation: expected text that a database can hold, got the character NUL"),
    "a table not in UTF-8": (row().replace(b"Why", b"Wh\xfd"), "line 2: byte .*: expected UTF-8, got fd .*"),
    "half a gzip": (gzip.compress(made.lines(example("p9")) * 50)[:-20], "not readable as gzip"),
    "gzip with other bytes": (gzip.compress(made.lines(example("p9")))[:30] + b"no gzip at all", "not readable as gzip"),
    "gzip in name of bytes only": (b"\x1f\x8b and then nothing", "not readable as gzip"),
}  # fmt: skip


@pytest.fixture
def filled(database_url, tmp_path):
    """A study with one example, one response to it and its verdicts."""
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "oss_eval.jsonl", [example()]))
        bring(engine, write(tmp_path / "healthbench_model-a_20260101_101010_allresults.json", results(entry())))
        yield engine


def test_every_fault_is_a_sentence_and_leaves_the_study_as_it_was(filled, tmp_path):
    before = dump(filled)
    for name, (content, expected) in FAULTS.items():
        path = tmp_path / "given file"
        path.write_bytes(content)
        with pytest.raises(ImportFailed) as failed:
            bring(filled, path, model=None if name.startswith("nobody named") else "model-a")
        error = failed.value
        assert re.search(expected, str(error)), (name, error.faults)
        assert 1 <= len(error.faults) == error.n_faults <= 20, name
        assert all(fault.startswith("given file") and "\n" not in fault for fault in error.faults), (name, error.faults)
        assert max(map(len, error.faults)) < 450, (name, error.faults)
        assert dump(filled) == before, name


def test_twenty_faults_are_shown_and_all_are_counted(filled, tmp_path):
    before = dump(filled)
    wrong = [example(f"p{number}", rubric=[criterion(points=0)]) for number in range(100, 135)]  # 35 rows
    clash = [
        example("p1", prompt=[made.user(f"Question {number}?")]) for number in range(3)
    ]  # and 1 that contradicts the study,
    with pytest.raises(ImportFailed) as failed:  # then 2 that contradict it and the row before: a row is counted once
        bring(filled, write(tmp_path / "many.jsonl", [*wrong, *clash]))
    assert len(failed.value.faults) == 20
    assert failed.value.n_faults == 38
    assert failed.value.faults[19].startswith("many.jsonl line 20: ")
    assert dump(filled) == before


def test_every_contradiction_of_a_results_file_is_counted(filled, tmp_path):
    wrong = [entry("p1", answer=f"Answer {n}", rubric=[criterion(f"Other {n}")], met=[True]) for n in range(25)]
    with pytest.raises(ImportFailed) as failed:
        bring(filled, write(tmp_path / RESULTS_NAME, results(entry("p1", answer="Fine"), *wrong)))
    assert failed.value.n_faults == 25
    assert failed.value.faults[0].startswith(
        f"{RESULTS_NAME} entry 2: rubric_items[0].criterion: expected a criterion of prompt_id 'p1', got 'Other 0'"
    )


def test_a_fault_in_a_later_batch_undoes_the_earlier_ones(filled, tmp_path):
    before = dump(filled)
    many = [example(f"p{number}") for number in range(100, 700)]
    with pytest.raises(ImportFailed, match="line 601: rubrics"):
        bring(filled, write(tmp_path / "late.jsonl", [*many, example("p9", rubric=[criterion(points=11)])]))
    assert dump(filled) == before
