"""Tables to take away: labels, verdicts, scores, levels of care; the way back in, and the event that an export leaves."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from evalcore.errors import OverreadError
from evalcore.export import tables as export_tables
from evalcore.export.tables import CODEBOOK, Part
from evalcore.importing import import_file
from evalcore.study import frames, store
from evalcore.study.db import reading, writing
from evalcore.study.schema import (
    Acuity,
    Administrator,
    CannotReason,
    ConflictCause,
    ErrorKind,
    Label,
    RaterKind,
    Selection,
    Stage,
    Verdict,
)
from evalcore.study.store import WROTE
from tests import world
from tests.export_steps import NOTE, as_file, from_csv

LABELS_COLUMNS = [  # in the documented order
    "dataset", "example_id", "response_id", "model", "criterion_position", "criterion", "points", "theme",
    "language", "axis", "cluster", "judge", "judge_label", "judge_explanation", "reference_label", "reference_source", "n_reads", "n_met",
    "n_not_met", "n_cannot_assess", "overridden", "override_cause", "severity", "note", "selection",
    "inclusion_probability", "blinded", "first_read_at", "knows_model", "n_slips", "canary",
]  # fmt: skip


# ---------------------------------------------------------------- labels


def test_labels_have_the_columns_of_the_issue_in_its_order(overridden):
    assert list(export_tables.table(overridden.engine, "labels").columns) == LABELS_COLUMNS
    assert (
        from_csv(export_tables.to_csv(export_tables.table(overridden.engine, "labels")))[0].keys()
        == dict.fromkeys(LABELS_COLUMNS).keys()
    )


def test_labels_have_one_row_an_item_with_everybodys_word(overridden):
    table = export_tables.table(overridden.engine, "labels").astype(object)
    rows = table.where(table.notna(), None).to_dict(orient="records")
    assert [(row["example_id"], row["criterion_position"]) for row in rows] == [
        ("prompt-0", 1), ("prompt-0", 2), ("prompt-1", 1), ("prompt-1", 2),
    ]  # fmt: skip
    shown = (
        "judge_label",
        "reference_label",
        "reference_source",
        "n_reads",
        "n_not_met",
        "overridden",
        "override_cause",
    )
    assert [tuple(row[name] for name in shown) for row in rows] == [
        ("met", "not_met", "agreed", 2, 2, True, None),  # the newest verdict that differs, Dr. Lind's, names no cause
        ("not_met", "not_met", "single", 1, 1, False, None),
        ("met", "met", "judge", 0, 0, False, None),  # taken back: as if nobody had read it
        ("met", "met", "judge", 0, 0, False, None),
    ]
    assert [row["points"] for row in rows] == [7, -4, 5, 3]
    assert {row["judge"] for row in rows} == {world.JUDGE}
    assert {row["canary"] for row in rows} == {"invented-canary"}
    assert [row["selection"] for row in rows] == ["volunteered", "volunteered", None, None]
    assert [row["blinded"] for row in rows] == ["false", "false", None, None]


def test_the_first_read_is_the_very_first_also_where_it_was_changed_later(overridden):
    table = export_tables.table(overridden.engine, "labels")
    earliest = min(row["created_at"] for row in overridden.history())
    assert table["first_read_at"].iloc[0] == earliest
    assert table["first_read_at"].isna().tolist() == [False, False, True, True]


def test_another_judge_stands_beside_the_physicians_where_it_is_asked_for(overridden):
    table = export_tables.table(overridden.engine, "labels", Part(judge="Wren"))
    assert table["example_id"].tolist() == ["prompt-0", "prompt-0"]  # what Wren judged, or somebody read
    assert table["judge_label"].fillna("").tolist() == ["not_met", ""]
    assert table["overridden"].tolist() == [False, False]


@pytest.mark.parametrize(
    ("part", "n_rows"),
    [
        (Part(), 4),
        (Part(read_only=True), 2),
        (Part(model="Alder-2"), 4),
        (Part(model="Briar-1"), 0),
        (Part(dataset="invented", theme="hedging"), 4),
        (Part(theme="communication"), 0),
        (Part(dataset="healthbench"), 0),
    ],
)
def test_a_part_is_a_part_in_every_format(overridden, part, n_rows):
    table = export_tables.table(overridden.engine, "labels", part)
    assert len(table) == n_rows
    assert len(from_csv(export_tables.to_csv(table))) == n_rows
    assert pq.read_table(io.BytesIO(as_file(table, "parquet"))).num_rows == n_rows
    assert as_file(table, "jsonl").count(b"\n") == n_rows


def test_a_judge_or_a_table_that_is_not_there_is_named(overridden, empty):
    with pytest.raises(OverreadError, match="judge: expected one of Magpie, Wren, got 'Owl'"):
        export_tables.table(overridden.engine, "labels", Part(judge="Owl"))
    with pytest.raises(
        OverreadError, match=r"table: expected one of labels, verdicts, scores, criteria, acuity, cases, got 'marks'"
    ):
        export_tables.table(overridden.engine, "marks")


def test_a_judge_is_missed_in_an_empty_study(empty):
    with pytest.raises(OverreadError, match="the study has no judge yet"):
        export_tables.table(empty, "labels", Part(judge="Owl"))


# ---------------------------------------------------------------- verdicts and scores


def test_verdicts_are_those_that_stand_with_their_raters_own_words(overridden):
    table = export_tables.table(overridden.engine, "verdicts")
    assert list(table.columns) == [column for column, _ in CODEBOOK["verdicts"]]
    by_kind = table["rater_kind"].value_counts().to_dict()
    assert by_kind == {"judge": 5, "reviewer": 3}  # Magpie 4, Wren 1; changed and taken-back ones are not standing
    mine = table.loc[table["rater"].eq("Dr. Imani Noor")].iloc[0]
    assert (mine["label"], mine["cause"], mine["severity"], mine["stage"]) == (
        "not_met", "judge_misread_answer", "mild", "open",
    )  # fmt: skip
    assert mine["explanation"] == NOTE


def test_verdicts_of_one_judge_keep_the_physicians(overridden):
    table = export_tables.table(overridden.engine, "verdicts", Part(judge="Wren"))
    assert set(table["rater"]) == {"Wren", "Dr. Imani Noor", "Dr. Tove Lind"}
    read = export_tables.table(overridden.engine, "verdicts", Part(read_only=True))
    assert set(zip(read["example_id"], read["criterion_position"], strict=True)) == {("prompt-0", 1), ("prompt-0", 2)}


def test_scores_have_one_row_a_response_and_judge(overridden):
    table = export_tables.table(overridden.engine, "scores").astype(object)
    rows = table.where(table.notna(), None).to_dict(orient="records")
    shown = ("judge", "example_id", "n_criteria", "n_expected", "achieved", "possible", "score")
    assert sorted(tuple(row[name] for name in shown) for row in rows) == [
        ("Magpie", "prompt-0", 2, 2, 7, 7, 1.0),
        ("Magpie", "prompt-1", 2, 2, 8, 8, 1.0),
        ("Wren", "prompt-0", 1, 2, 0, 7, None),  # one of two criteria judged: no score
    ]


# ---------------------------------------------------------------- acuity


@pytest.mark.parametrize("part", [Part(), Part(read_only=True)])
def test_reads_of_acuity_are_a_table_of_their_own_and_in_no_other(overridden, part):
    before = {what: len(export_tables.table(overridden.engine, what)) for what in ("labels", "verdicts", "scores")}
    with writing(overridden.engine) as session:
        rater = store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Ada Moss")
        common = {"criterion_id": None, "rater_id": rater, "stage": Stage.FIRST, "blinded": True}
        of_response = Verdict(
            **common, example_id=1, response_id=overridden.responses[0], label=Acuity.C_D, explanation="=now"
        )
        of_case = Verdict(
            **common, example_id=2, response_id=None, label=Label.CANNOT_ASSESS, reason=CannotReason.CONTEXT_MISSING
        )
        store.add_verdicts(session, [of_response, of_case], actor="set-up", action="x")
    rows = list(
        csv.DictReader(
            io.StringIO(export_tables.to_csv(export_tables.table(overridden.engine, "acuity", part)).decode())
        )
    )
    shown = ("asked", "example_id", "response_id", "model", "label", "reason", "explanation", "blinded", "rater")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        (
            "response_acuity",
            "prompt-0",
            str(overridden.responses[0]),
            "Alder-2",
            "C/D",
            "",
            "'=now",
            "true",
            "Dr. Ada Moss",
        ),
        ("gold_acuity", "prompt-1", "", "", "cannot_assess", "context_missing", "", "true", "Dr. Ada Moss"),
    ]
    assert {what: len(export_tables.table(overridden.engine, what)) for what in before} == before
    hidden = export_tables.table(overridden.engine, "acuity", Part(blind=frozenset({1})))
    assert hidden["example_id"].tolist() == ["prompt-1"]


# ---------------------------------------------------------------- the way back


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_exported_verdicts_come_back_the_same_in_a_study_without_them(overridden, database_url, tmp_path, file_format):
    path = tmp_path / f"verdicts.{file_format}"
    said_in_review(overridden)
    table = export_tables.table(overridden.engine, "verdicts")
    path.write_bytes(as_file(table.loc[table["rater_kind"].eq("reviewer")], file_format))
    lead, bare = Administrator(name="Ana Ruiz"), world.made(str(tmp_path / "bare.db"))
    report = import_file(
        bare.engine, path, actor=lead, dataset="invented", reads_of=["Dr. Imani Noor", "Dr. Tove Lind"]
    )
    assert (report.verdicts_new, report.without_partner) == (5, 0)
    assert said_by_physicians(bare) == said_by_physicians(overridden) != []
    again = import_file(bare.engine, path, actor=lead, dataset="invented", reads_of=["Dr. Imani Noor", "Dr. Tove Lind"])
    assert again.verdicts_new == 0
    bare.engine.dispose()


def said_in_review(small):
    """A read that cannot be assessed, and an adjudication, with all that only they say."""
    with writing(small.engine) as session:
        rater = store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Ada Moss")
        common = {"example_id": 2, **small.item(1), "rater_id": rater, "error_kind": ErrorKind.OMISSION}
        unsure = Verdict(
            **common, stage=Stage.FIRST, label=Label.CANNOT_ASSESS, reason=CannotReason.NEEDS_EXAMINATION, blinded=True
        )
        settled = Verdict(
            **common, stage=Stage.ADJUDICATED, label=Label.MET, conflict_cause=ConflictCause.READER_SLIPPED, explanation="It does."
        )  # fmt: skip
        store.add_verdicts(session, [unsure, settled], actor="set-up", action="x")


def said_by_physicians(small):
    """Everything about the standing verdicts of physicians but their numbers."""
    columns = [
        "prompt_id", "position", "model", "rater", "stage", "label", "explanation", "confidence", "cause", "severity",
        "right_for_wrong_reason", "selection", "inclusion_probability", "blinded", "created_at", "error_kind", "reason", "conflict_cause",
    ]  # fmt: skip
    with reading(small.engine) as session:
        found = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True)[columns]
    rows = found.astype(object).where(found.notna(), None).to_numpy().tolist()
    return sorted(rows, key=str)


# ---------------------------------------------------------------- the trail


def test_an_export_leaves_an_event_that_says_what_was_taken(overridden):
    part = Part(judge="Wren", read_only=True)
    export_tables.record(
        overridden.engine, actor=Administrator(name="Ana Ruiz"), what="labels", file_format="csv", n_rows=2, part=part
    )
    assert overridden.events()[-1] == ("Ana Ruiz", "labels exported")
    with overridden.engine.connect() as connection:
        subject, detail = connection.exec_driver_sql(
            "SELECT subject, detail FROM audit_event ORDER BY id DESC LIMIT 1"
        ).one()
    assert subject == "labels as csv"
    said = json.loads(detail)
    assert set(said.pop(WROTE)) == {"row_hash"}  # that she has seen it
    assert said == {"rows": 2, "judge": "Wren", "read_only": True}


def test_a_study_with_adjudications_and_no_read_has_labels_without_a_first_read(sqlite_database_url):
    small = world.made(sqlite_database_url)
    with writing(small.engine) as session:
        settler = store.ensure_rater(session, RaterKind.REVIEWER, "Dr. Tomas Vega")
        settled = Verdict(
            example_id=1, **small.item(), rater_id=settler, stage=Stage.ADJUDICATED, label=Label.NOT_MET, selection=Selection.ADJUDICATION
        )  # fmt: skip
        store.add_verdicts(session, [settled], actor="set-up", action="settled")
    table = export_tables.table(small.engine, "labels")
    assert table["reference_source"].tolist().count("adjudicated") == 1
    assert table["first_read_at"].isna().all()
    small.engine.dispose()
