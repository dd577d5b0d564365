"""A read stays its reader's: what a file may and may not bring under the name of somebody with an account."""

import pytest
from sqlmodel import select

from evalcore.errors import ImportFailed
from evalcore.importing import import_file
from evalcore.reading.reviewing import Decision
from evalcore.study import frames
from evalcore.study.db import reading
from evalcore.study.schema import Administrator, Cause, Label, RaterKind, Severity
from evalcore.study.tables import Verdict
from tests.overriding_steps import press

READER = "Dr. Imani Noor"


def forged(folder, made, rater=READER, stage="first"):
    with reading(made.engine) as session:
        row = frames.verdicts(session, kind=RaterKind.JUDGE).iloc[0]
    columns = {
        "dataset": row["dataset"], "example_id": row["prompt_id"], "criterion_position": row["position"], "model": row["model"],
        "sample_index": 0, "evaluation": row["evaluation"], "rater": rater, "rater_kind": "reviewer", "stage": stage, "label": "met",
        "blinded": "true", "read_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    path = folder / "forged.csv"
    path.write_text(",".join(columns) + "\n" + ",".join(map(str, columns.values())) + "\n")
    return path


@pytest.mark.parametrize("rater", [READER, READER.upper(), READER.replace(" ", "  ")])
@pytest.mark.parametrize("stage", ["first", "revised"])
def test_a_file_brings_nothing_under_the_name_of_somebody_with_an_account(small, tmp_path, rater, stage):
    path = forged(tmp_path, small, rater, stage)
    with pytest.raises(ImportFailed, match=f"{READER} has an account here"):
        import_file(small.engine, path, actor=Administrator(name="somebody"))
    assert small.history() == []


@pytest.mark.parametrize("stage", ["first", "open"])
def test_no_file_replaces_a_persons_own_read_not_even_one_that_a_lead_imports(small, tmp_path, stage):
    press(small, Decision(Label.NOT_MET, Cause.MISREAD_ANSWER, Severity.MILD))
    before = small.history()
    with pytest.raises(ImportFailed, match="no file replaces a person's own reads"):
        import_file(
            small.engine, forged(tmp_path, small, stage=stage), actor=Administrator(name="somebody"), reads_of=[READER]
        )
    assert small.history() == before


def test_a_verdict_says_how_it_came_and_when_it_was_written(small, tmp_path):
    path = forged(tmp_path, small)
    report = import_file(small.engine, path, actor=Administrator(name="somebody"), reads_of=[READER])
    with reading(small.engine) as session:
        row = session.exec(select(Verdict).order_by(Verdict.id.desc())).first()
        assert (row.source, row.source_hash) == ("import", report.source_hash)
        assert row.created_at.year == 2026
        assert row.created_at < row.recorded_at
    assert report.source_hash in str(report.for_audit())
    again = path.with_name("again.csv")
    again.write_text(path.read_text() + "\n")
    assert import_file(
        small.engine, again, actor=Administrator(name="somebody")
    ).adds_nothing  # known rows ask for nobody's leave
