"""Verdicts on the level of care come back as `overread export --what acuity` wrote them."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evalcore.errors import ImportFailed, RowFault
from evalcore.export import tables as export_tables
from evalcore.importing.context import Options
from evalcore.importing.formats import FORMATS, acuity_verdicts
from evalcore.study import frames, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import (
    Acuity,
    CannotReason,
    Cause,
    ConflictCause,
    ErrorKind,
    Label,
    RaterKind,
    Selection,
    Severity,
    Stage,
    Verdict,
)
from evalcore.triage import queries as triage_queries
from tests.acuity_files import case, prediction, table
from tests.export_steps import as_file
from tests.invented import bring, dump, study, write
from tests.triage_cases import drawn, stored

SAID = (
    "asked", "prompt_id", "model", "evaluation", "sample_index", "rater", "stage", "label", "explanation", "confidence", "reason", "cause",
    "severity", "error_kind", "conflict_cause", "right_for_wrong_reason", "selection", "inclusion_probability", "blinded", "created_at",
)  # fmt: skip
GOOD = {
    "asked": "response_acuity", "example_id": "clinic_1", "model": "Alder-2", "evaluation": "acuity_conversation", "rater": "Dr. Noor",
    "label": "C",
}  # fmt: skip


def filled(engine, *, with_reads):
    """Drawn cases, with every column of a verdict filled by somebody."""
    triage_data, _ = drawn(np.random.default_rng(21), n_cases=8, share_read=0.3, confidence=True)
    with writing(engine) as session:
        stored(session, triage_data if with_reads else replace(triage_data, reads=triage_data.reads.iloc[:0]))
        if not with_reads:
            return
        rater = store.ensure_rater(session, RaterKind.REVIEWER, "=Dr. Tove Lind")
        of_response = {"example_id": 1, "response_id": 1, "criterion_id": None, "rater_id": rater}
        of_case = {"example_id": 2, "response_id": None, "criterion_id": None, "rater_id": rater}
        revised = Verdict(
            **of_response, stage=Stage.REVISED, label=Acuity.B_C, explanation="'=two\nlines, \"quoted\"", cause=Cause.MISREAD_ANSWER,
            severity=Severity.SEVERE, error_kind=ErrorKind.OMISSION, selection=Selection.IMPORTANCE, inclusion_probability=1 / 3, blinded=False,
        )  # fmt: skip
        agreed = Verdict(
            **of_response, stage=Stage.OPEN, label=Acuity.REMOVE, right_for_wrong_reason=True, confidence=0.25
        )
        unsure = Verdict(
            **of_case, stage=Stage.FIRST, label=Label.CANNOT_ASSESS, reason=CannotReason.CONTEXT_MISSING, blinded=True
        )
        settled = Verdict(
            **of_case,
            stage=Stage.ADJUDICATED,
            label=Acuity.D,
            conflict_cause=ConflictCause.CLINICAL_DISAGREEMENT,
            explanation="-x",
        )
        store.add_verdicts(session, [revised, agreed, unsure, settled], actor="set-up", action="x")


def by_physicians(engine):
    """All that physicians said, but for the numbers of this study."""
    with reading(engine) as session:
        found = frames.acuity_verdicts(session)
    found = found.loc[found["rater_kind"].eq(RaterKind.REVIEWER), list(SAID)].astype(object)
    return sorted(map(repr, found.where(found.notna(), None).to_dict(orient="records")))


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_what_was_exported_adds_nothing_to_the_study_that_it_came_from(tmp_path, database_url, file_format):
    with study(database_url) as engine:
        filled(engine, with_reads=True)
        before = dump(engine)
        path = tmp_path / f"acuity.{file_format}"
        path.write_bytes(as_file(export_tables.table(engine, "acuity"), file_format))
        report = bring(engine, path)
        assert (report.format, report.adds_nothing, report.without_partner) == (acuity_verdicts.FORMAT.name, True, 0)
        assert report.verdicts_known == report.rows > 100
        assert dump(engine) == before


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_what_was_exported_brings_every_read_to_a_study_that_has_none(tmp_path, database_url, file_format):
    with study(database_url) as source, study(f"sqlite:///{tmp_path}/other.db") as target:
        filled(source, with_reads=True)
        filled(target, with_reads=False)
        table = export_tables.table(source, "acuity")
        path = tmp_path / f"acuity.{file_format}"
        path.write_bytes(as_file(table, file_format))
        report = bring(target, path)
        n_reads = int(table["rater_kind"].eq(RaterKind.REVIEWER).sum())
        assert (report.verdicts_new, report.verdicts_known) == (n_reads, len(table) - n_reads)
        assert by_physicians(target) == by_physicians(source) != []
        with reading(source) as one, reading(target) as other:
            assert len(triage_queries.load(other).reads) == len(triage_queries.load(one).reads) > 4


def wrote(path, *rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def named(engine):
    """The first response with a text, as the file names it."""
    with reading(engine) as session:
        found = triage_queries.load(session)
    sample = found.samples.iloc[0]
    return {
        **GOOD, "example_id": found.cases["case_id"][sample["row"]], "model": sample["model"], "evaluation": f"acuity_{sample['format']}",
    }  # fmt: skip


def test_a_second_thought_replaces_the_first_and_a_stage_stands_beside_another(tmp_path, database_url):
    with study(database_url) as engine:
        filled(engine, with_reads=False)
        row = named(engine)
        first = bring(engine, wrote(tmp_path / "1.csv", row, row | {"stage": "revised", "label": "B|C"}))
        second = bring(engine, wrote(tmp_path / "2.csv", row | {"label": "emergency"}))
        assert (first.verdicts_new, second.verdicts_new, second.verdicts_superseding) == (2, 0, 1)
        with reading(engine) as session:
            reads = triage_queries.load(session).reads
        assert sorted(zip(reads["stage"], reads["label"], strict=True)) == [("first", "D"), ("revised", "B/C")]


def test_one_physician_says_one_thing_of_an_item_in_one_file(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        filled(engine, with_reads=False)
        row = named(engine)
        before = dump(engine)
        with pytest.raises(
            ImportFailed,
            match=r"reads\.csv line 3: rater: expected one verdict, as on line 2, got 'Dr\. Noor' again for this item and stage",
        ):
            bring(engine, wrote(tmp_path / "reads.csv", row, row | {"label": "A"}))
        assert dump(engine) == before


def test_a_drawn_read_of_a_response_without_a_text_keeps_its_probability(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        bring(engine, write(tmp_path / "cases.csv", table(case())))
        bring(engine, write(tmp_path / "p.csv", table(prediction(text=""))))
        said = {"asked": "response_acuity", "example_id": "clinic_1", "model": "Alder-2", "evaluation": "acuity_qa", "rater": "Dr. Noor", "label": "B",
                "selection": "random", "inclusion_probability": "0.25"}  # fmt: skip
        bring(engine, write(tmp_path / "reads.csv", table(said)))
        with reading(engine) as session:
            reads = triage_queries.load(session).reads
    assert reads[["label", "inclusion_probability"]].to_numpy().tolist() == [["B", 0.25]]


def test_what_the_study_does_not_have_is_left_out_and_named(tmp_path, sqlite_database_url):
    with study(sqlite_database_url) as engine:
        filled(engine, with_reads=False)
        row = named(engine)
        others = [row | {"example_id": "nobody_1"}, row | {"model": "Nobody-9"}, row | {"sample_index": "77"}]
        report = bring(engine, wrote(tmp_path / "reads.csv", row | {"sample_index": "0"}, *others))
        assert (report.verdicts_new, report.without_partner) == (1, 3)
        assert "example 'nobody_1' of 'acuity' is not in the study" in report.without_partner_named[0]
        assert "is sample 0 of model 'Nobody-9' for" in report.without_partner_named[1]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"asked": "rubric"}, "asked: expected response_acuity or gold_acuity, got 'rubric'"),
        ({"asked": ""}, "asked: expected response_acuity or gold_acuity, got nothing"),
        (
            {"label": "met"},
            "label: expected A, B, C, D (or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY), A|B, B|C, C|D, Remove, got 'met'",
        ),
        (
            {"label": ""},
            "label: expected A, B, C, D (or SELF_CARE, PRIMARY_CARE, URGENT_CARE, EMERGENCY), A|B, B|C, C|D, Remove, cannot_assess, got nothing",
        ),
        ({"evaluation": ""}, "evaluation: expected what the response was made for, such as acuity_qa, got nothing"),
        ({"model": ""}, "model: expected who answered, here or as Model, got nothing"),
        ({"stage": "judge"}, "stage: expected judge for judges only, got 'judge' with rater_kind 'reviewer'"),
        (
            {"cause": "bad luck"},
            "cause: expected judge_misread_answer, judge_misread_criterion, medical_disagreement, criterion_ambiguous, criterion_wrong, context_missing, language, other, got 'bad luck'",
        ),
        ({"inclusion_probability": "0"}, "inclusion_probability: expected a number above 0 and at most 1, got 0"),
        (
            {"read_at": "yesterday"},
            "read_at: expected a time with its zone such as 2026-11-20T10:00:00+00:00, got 'yesterday'",
        ),
        ({"confidence": "2"}, "confidence: expected a number from 0 to 1, got '2'"),
    ],
)
def test_a_wrong_cell_is_one_sentence(changed, sentence):
    with pytest.raises(RowFault) as fault:
        list(acuity_verdicts.read_cells(GOOD | changed, 2, Options()))
    assert str(fault.value).startswith(sentence)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.sampled_from(list(acuity_verdicts.COLUMNS)))
def test_any_text_in_any_column_is_a_row_or_one_sentence(text, column):
    try:
        (row,) = acuity_verdicts.read_cells(GOOD | {column: text}, 2, Options())
    except RowFault as fault:
        assert ": " in str(fault)  # noqa: PT017 - any other exception goes on
    else:
        assert row.line == 2


def test_a_table_of_criteria_is_not_taken_for_one_of_levels():
    of_levels, of_criteria = set(GOOD), set(GOOD) - {"asked"} | {"criterion_position"}
    found = [
        next(name for name, module in FORMATS.items() if module.recognises(keys)) for keys in (of_levels, of_criteria)
    ]
    assert found == [acuity_verdicts.FORMAT.name, "verdict-table"]


def test_every_column_of_a_line_is_documented():
    read = set(acuity_verdicts.GivenLevel.__struct_fields__) - {"line"}
    assert read | {"asked"} == set(acuity_verdicts.COLUMNS)
