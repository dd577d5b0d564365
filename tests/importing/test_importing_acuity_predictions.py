"""Answers to cases and their levels: who has looked, who found nothing, and what contradicts; published matrices whole or not at all."""

import random
import re

import pytest
from hypothesis import given, strategies as st

from evalcore.errors import ImportFailed, RowFault
from evalcore.importing.context import Options
from evalcore.importing.formats.acuity_predictions import Predictions, read_cells
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, ConfidenceMeaning
from evalcore.triage import acts, queries as triage_queries, setting_queries
from evalcore.triage.data import NO_LEVEL
from tests.acuity_files import case, json_lines, levels, matrix, prediction, table
from tests.invented import bring, dump, entry, judged, results, rows, study, write

QA, CONVERSATION = "acuity_qa", "acuity_conversation"


@pytest.fixture
def engine(sqlite_database_url, tmp_path):
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / "cases.csv", table(case(1), case(2))))
        yield engine


SAMPLES = [
    prediction(),
    prediction(sample_index=1, text="Two\nlines", level="", explanation="no line states it"),  # looked, and found none
    prediction(format="conversation", text="Go now.", level="emergency", rater="Magpie", confidence=0.9),
    prediction(format="conversation", text="", level="c", rater="rules"),
    prediction(case_id="clinic_2", model="Briar-1", text="Hm.", rater="", level=""),  # nobody has looked
]


@pytest.mark.parametrize("written", [table, json_lines])
def test_a_level_belongs_to_its_sample_and_rater_and_none_found_is_no_level(tmp_path, database_url, written):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "cases.csv", table(case(1), case(2))))
        report = bring(engine, write(tmp_path / "given", written(*SAMPLES)))
        assert (report.format, report.rows, report.responses_new, report.texts_new) == ("acuity-predictions", 5, 4, 4)
        assert (report.levels_new, report.without_level) == (4, 1)
        assert levels(engine) == [
            ("clinic_1", "Alder-2", CONVERSATION, 0, "Magpie", "D"),
            ("clinic_1", "Alder-2", CONVERSATION, 0, "acuity_rules", "C"),  # what the file says stands
            ("clinic_1", "Alder-2", QA, 0, "parser", "A"),
            ("clinic_1", "Alder-2", QA, 1, "parser", "cannot_assess"),
            ("clinic_2", "Briar-1", QA, 0, "parser", "cannot_assess"),  # nobody had looked: the program does
        ]
        assert rows(
            engine,
            "SELECT confidence, explanation FROM verdict WHERE confidence IS NOT NULL OR explanation IS NOT NULL ORDER BY id",
        ) == [(None, "no line states it"), (0.9, None), (None, "No level stated.")]
        with reading(engine) as session:
            found = triage_queries.load(session)
        assert found.samples["has_text"].tolist() == [True, True, True, True]
        assert found.levels["parser"].fillna(-1).tolist() == [1, NO_LEVEL, -1, NO_LEVEL]


@pytest.mark.parametrize("order", range(4))
def test_whatever_the_order_and_the_batches_the_study_is_the_same_and_again_adds_nothing(
    tmp_path, sqlite_database_url, monkeypatch, order
):
    came = [
        *SAMPLES,
        prediction(),
        prediction(format="conversation", text="Go now.", level="D", rater="rules", case_id="clinic_2"),
    ]
    random.Random(order).shuffle(came)
    monkeypatch.setattr(Predictions, "batch", order + 1)
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / "cases.csv", table(case(1), case(2))))
        report = bring(engine, write(tmp_path / "p.csv", table(*came)))
        assert (report.responses_new, report.responses_known, report.texts_new) == (5, 0, 5)
        assert (report.levels_new, report.levels_known, report.without_level) == (5, 1, 1)
        assert rows(engine, "SELECT count(*) FROM response WHERE text = 'Go now.'") == [(2,)]
        before = dump(engine)
        again = bring(engine, write(tmp_path / "q.csv", table(*reversed(came))))
        assert (again.responses_known, again.levels_known, again.adds_nothing) == (5, 6, True)
        assert dump(engine) == before


def test_a_text_may_come_later_and_only_once(engine, tmp_path):
    bring(engine, write(tmp_path / "p.csv", table(prediction(text=""))))
    report = bring(engine, write(tmp_path / "q.csv", table(prediction(rater="Magpie", level="B"))))
    assert (report.responses_new, report.responses_known, report.texts_new, report.levels_new) == (0, 1, 1, 1)
    assert rows(engine, "SELECT text FROM response") == [(prediction()["text"],)]


def test_a_later_file_supersedes_what_a_judge_said_before(engine, tmp_path):
    bring(engine, write(tmp_path / "p.csv", table(prediction())))
    report = bring(engine, write(tmp_path / "q.csv", table(prediction(level="C"))))
    assert (report.levels_new, report.levels_superseding) == (0, 1)
    assert levels(engine) == [("clinic_1", "Alder-2", QA, 0, "parser", "C")]
    assert rows(engine, "SELECT label FROM verdict ORDER BY id") == [("A",), ("C",)]


def test_rows_without_their_case_are_left_out_and_named(engine, tmp_path):
    report = bring(engine, write(tmp_path / "p.csv", table(prediction(), prediction(case_id="clinic_9"))))
    assert (report.responses_new, report.without_partner) == (1, 1)
    assert report.without_partner_named == ["line 3: case 'clinic_9' is not in the study"]


FAULTS = {
    "a level without rater": (prediction(rater=""), "rater: expected who read the level beside level 'A' .*, got nothing"),
    "a confidence without rater": (prediction(rater="", level="", confidence=0.5), "rater: expected who read the level beside confidence 0.5 .*, got nothing"),
    "an explanation without rater": (prediction(rater="", level="", explanation="x"), "rater: expected who read the level beside explanation 'x' .*, got nothing"),
    "nothing at all": (prediction(rater="", level="", text=""), "text: expected a text or a rater, got neither"),
    "a boundary": (prediction(level="A|B"), r"level: expected A, B, C, D .*, got 'A\|B'"),
    "a removal": (prediction(level="Remove"), "level: expected A, B, C, D .*, got 'Remove'"),
    "a prose level": (prediction(level="not an EMERGENCY"), "level: expected A, B, C, D .*, got 'not an EMERGENCY'"),
    "no model": (prediction(model=""), "model: expected who answered, here or as Model, got nothing"),
    "no case": (prediction(case_id=""), "case_id: expected the case's name, got nothing"),
    "no format": (prediction(format=""), "format: expected qa or conversation, got nothing"),
    "an unknown format": (prediction(format="chat"), "format: expected qa or conversation, got 'chat'"),
    "a negative sample": (prediction(sample_index=-1), "sample_index: expected a whole number from 0 to 9999, got '-1'"),
    "half a sample": (prediction(sample_index=0.5), "sample_index: expected a whole number from 0 to 9999, got '0.5'"),
    "a seed for a sample": (prediction(sample_index=10_000), "sample_index: expected a whole number from 0 to 9999, got '10000'"),
    "confidence above 1": (prediction(confidence=1.5), "confidence: expected a number from 0 to 1, got '1.5'"),
    "confidence infinite": (prediction(confidence="inf"), "confidence: expected a number from 0 to 1, got 'inf'"),
    "another text": (prediction(text="Other", rater="rules"), "text: expected 'Rest and drink.' for 'clinic_1', 'Alder-2', qa, sample 0.*, got 'Other'"),
    "another level in one file": (
        prediction(level="B"),
        "level: expected A for 'clinic_1', 'Alder-2', qa, sample 0 by 'parser' as on an earlier line, got B",
    ),
    "another confidence in one file": (prediction(confidence="0.5"), "level: expected A for .* as on an earlier line, got A with confidence 0.5"),
    "another text than the study": (
        prediction(case_id="clinic_2", text="Other"),
        "text: expected 'Rest and drink.' for 'clinic_2', 'Alder-2', qa, sample 0.*, got 'Other'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("batch", [1, 5_000])
def test_each_fault_is_named_with_its_line_and_nothing_is_imported(engine, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(Predictions, "batch", batch)
    bring(engine, write(tmp_path / "first.csv", table(prediction(case_id="clinic_2"))))
    before = dump(engine)
    for name, (wrong, expected) in FAULTS.items():
        with pytest.raises(ImportFailed) as failed:
            bring(engine, write(tmp_path / "p.csv", table(prediction(), wrong)))
        assert len(failed.value.faults) == 1, (name, failed.value.faults)
        assert re.search("^p.csv line 3: " + expected, failed.value.faults[0]), (name, failed.value.faults)
        assert dump(engine) == before, name


@given(st.text(max_size=12))
def test_no_cell_that_names_no_level_becomes_one(text):
    folded = re.sub(r"[\W_]+", " ", text).strip().casefold()
    try:
        (found,) = read_cells(prediction(level=text), 1, Options())
    except RowFault:
        return
    names = {
        "a": "A",
        "b": "B",
        "c": "C",
        "d": "D",
        "self care": "A",
        "primary care": "B",
        "urgent care": "C",
        "emergency": "D",
    }
    assert str(found.label) == ("cannot_assess" if not text.strip() else names[folded])


def test_a_stated_confidence_of_a_level_means_that_the_judge_is_right(engine, tmp_path):
    report = bring(engine, write(tmp_path / "p.csv", table(prediction(confidence=0.8), prediction(rater="rules"))))
    assert (report.meanings_set, report.meanings_missing) == (1, [])
    with reading(engine) as session:
        assert setting_queries.confidence_meanings(session) == {"parser": ConfidenceMeaning.RIGHT}
    with pytest.raises(
        ImportFailed,
        match=r"p\.csv: Confidence refers to: expected right, as a level of care is no criterion that can be met, got met",
    ):
        bring(engine, tmp_path / "p.csv", confidence_means=ConfidenceMeaning.MET)
    with pytest.raises(ImportFailed, match="expected nothing, as acuity-cases brings no confidences, got met"):
        bring(engine, tmp_path / "cases.csv", confidence_means=ConfidenceMeaning.MET)


def test_of_a_judge_of_criteria_it_is_asked_and_may_be_said_later(tmp_path, database_url):
    with study(database_url) as engine:
        bring(engine, write(tmp_path / "run.json", results(entry())), model="model-a")
        path = write(tmp_path / "b.jsonl", [judged(confidence=0.7), judged(position=2)])
        report = bring(engine, path)
        assert report.meanings_missing == ["Judge B"]
        assert any("refer to is not specified" in sentence for sentence in report.sentences())
        report = bring(engine, path, confidence_means=ConfidenceMeaning.MET)
        assert (report.meanings_set, report.verdicts_new, report.adds_nothing) == (1, 0, False)
        with reading(engine) as session:
            assert setting_queries.confidence_meanings(session) == {"Judge B": ConfidenceMeaning.MET}
        before = dump(engine)
        assert bring(engine, path, confidence_means=ConfidenceMeaning.MET).adds_nothing
        assert dump(engine) == before


PUBLISHED = ((48, 15, 13, 1), (11, 57, 41, 1), (0, 5, 64, 9), (0, 0, 27, 235))


def test_a_published_matrix_is_stored_as_it_is_and_has_no_cases(tmp_path, database_url):
    with study(database_url) as engine:
        came = [
            *matrix(PUBLISHED),
            *matrix(PUBLISHED, asked="conversation", golds=("emergency", "C", "B", "self-care")),
        ]
        report = bring(engine, write(tmp_path / "m.csv", table(*came)))
        assert (report.format, report.matrices_new) == ("acuity-matrices", 2)
        with reading(engine) as session:
            found = triage_queries.load(session).published
        qa = found.loc[found["format"].eq("qa")].sort_values("gold")
        assert qa[["A", "B", "C", "D"]].to_numpy().tolist() == [list(line) for line in PUBLISHED]
        before = dump(engine)
        report = bring(engine, write(tmp_path / "again.csv", table(*reversed(came))))
        assert (report.matrices_known, report.adds_nothing) == (2, True)
        assert dump(engine) == before


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        (matrix(PUBLISHED)[:3], "line 4: gold: expected D too for 'Model P', qa.*, got A, B, C"),
        ([*matrix(PUBLISHED), matrix(PUBLISHED)[0]], r"line 6: gold: expected A once for 'Model P', qa, got it again \(first on line 2\)"),
        (matrix([*PUBLISHED[:3], (0, 0, 27, -1)]), "line 5: D: expected a whole number from 0 to .*, got '-1'"),
        (matrix([*PUBLISHED[:3], ("", 0, 27, 1)]), "line 5: A: expected a whole number, got nothing"),
        (matrix(PUBLISHED, golds=("A", "B", "C", "C|D")), r"line 5: gold: expected A, B, C, D .*, got 'C\|D'"),
        (matrix(PUBLISHED, golds=("A", "B", "C", "")), "line 5: gold: expected A, B, C, D .*, got nothing"),
        (matrix([*PUBLISHED[:3], (0, 0, 1, 1)], "Model Q"), "line 5: A, B, C, D: expected 0, 0, 27, 235 as imported before for 'Model Q', qa, gold D, got 0, 0, 1, 1"),
    ],
)  # fmt: skip
def test_a_matrix_that_is_not_whole_or_not_the_same_is_refused(engine, tmp_path, came, expected):
    bring(engine, write(tmp_path / "first.csv", table(*matrix(PUBLISHED, "Model Q"))))
    before = dump(engine)
    with pytest.raises(ImportFailed) as failed:
        bring(engine, write(tmp_path / "m.csv", table(*came)))
    assert re.search("^m.csv " + expected, failed.value.faults[0]), failed.value.faults
    assert dump(engine) == before


class _Read:
    """What a reading of levels reports."""

    def sentences(self):
        return ["1 level read by rules."]


@pytest.mark.parametrize(("came", "n_calls"), [(prediction(), 1), (prediction(text=""), 0)])
def test_texts_that_come_are_read_at_once_and_the_report_says_so(engine, tmp_path, monkeypatch, came, n_calls):
    calls = []
    monkeypatch.setattr(acts, "read_levels", lambda study, *, actor: calls.append((study, actor)) or _Read())
    path = write(tmp_path / "p.csv", table(came))
    assert bring(engine, path, dry_run=True).levels_read == []
    assert calls == []
    report = bring(engine, path)
    assert calls == [(engine, Administrator(name="tester"))] * n_calls
    assert ("1 level read by rules." in report.sentences()) == bool(n_calls)
    bring(engine, path)
    assert len(calls) == n_calls
