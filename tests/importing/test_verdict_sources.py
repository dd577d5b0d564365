"""How a verdict came goes with it: through an export, into another study, and onto the page where somebody looks at it."""

import shutil
from datetime import UTC, datetime, timedelta
from itertools import product

import numpy as np
import pandas as pd
import pytest

from evalcore.errors import ImportFailed, NotAllowed
from evalcore.export import tables as export_tables
from evalcore.importing import import_file
from evalcore.reading.read_queries import open_example
from evalcore.reading.reviewing import Decision
from evalcore.study.db import open_study, reading
from evalcore.study.schema import Administrator, Cause, Label, RaterKind, Role, Severity, Stage
from tests import world
from tests.export_steps import as_file
from tests.importing.test_import_own_reads import READER, forged
from tests.overriding_steps import press
from tests.page_steps import LEAD, check

DESK = Administrator(name="The Desk")
SAME = ["rater", "stage", "label", "read_at", "criterion_position", "example_id", "blinded", "selection"]


def test_a_read_that_goes_to_another_study_keeps_when_it_was_made_and_says_how_it_came(
    small, tmp_path, sqlite_template
):
    rng = np.random.default_rng(8)
    stages = (Stage.FIRST, Stage.OPEN, Stage.REVISED, Stage.ADJUDICATED)
    for name, example, criterion, stage in product(("Dr. Away", "Dr. Abroad"), (0, 1), (0, 1), stages):
        at = datetime(2021, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(rng.integers(10**14)))
        label, item = list(Label)[rng.integers(3)], {"example": example, "criterion": criterion}
        world.said(small, label, name=name, stage=stage, created_at=at, **item)
    taken = _reads_of(small)
    for file_format in ("csv", "jsonl"):
        path = tmp_path / f"verdicts.{file_format}"
        path.write_bytes(as_file(taken, file_format))
        here = world.made(str(shutil.copyfile(sqlite_template, tmp_path / f"{file_format}.db")))
        report = import_file(here.engine, path, actor=DESK)
        brought = _reads_of(here)
        pd.testing.assert_frame_equal(brought[SAME], taken[SAME])
        assert set(taken["came_by"]) == {"session"}
        assert set(brought["came_by"]) == {"import"}
        assert set(brought["file_sha256"]) == {report.source_hash}
        assert (brought["recorded_at"] > taken["recorded_at"]).all()
        assert (brought["recorded_at"] > brought["read_at"]).all()
        here.engine.dispose()


def _reads_of(study):
    verdicts = export_tables.table(study.engine, "verdicts")
    reads = verdicts.loc[verdicts["rater_kind"].eq(RaterKind.REVIEWER)]
    return reads.sort_values(["rater", "example_id", "criterion_position", "stage"], ignore_index=True)


def test_a_read_from_before_sources_were_kept_counts_as_its_readers_own(small, tmp_path):
    press(small, Decision(Label.NOT_MET, Cause.MISREAD_ANSWER, Severity.MILD))
    is_sqlite = small.engine.dialect.name == "sqlite"
    without = "DROP TRIGGER verdict_no_update" if is_sqlite else "ALTER TABLE verdict DISABLE TRIGGER USER"
    world.tampered(small.engine, without, "UPDATE verdict SET source = NULL, recorded_at = NULL WHERE stage = 'open'")
    before = small.history()
    with pytest.raises(ImportFailed, match="no file replaces a person's own reads"):
        import_file(small.engine, forged(tmp_path, small, stage="open"), actor=DESK, reads_of=[READER])
    assert small.history() == before


def test_only_a_lead_says_whose_reads_a_file_brings(small, tmp_path):
    world.add_researcher(small.engine, "A Researcher", Role.RESEARCHER)
    path = forged(tmp_path, small)
    with pytest.raises(NotAllowed, match="Only leads can import reads of people with an account"):
        import_file(small.engine, path, actor=small.viewer("A Researcher"), reads_of=[READER])
    assert import_file(small.engine, path, actor=small.viewer("Ana Ruiz"), reads_of=[READER]).verdicts_new == 1


def test_who_looks_at_a_read_is_told_that_it_came_with_a_file_and_who_brought_it(small, tmp_path):
    press(small, Decision(Label.NOT_MET, Cause.MISREAD_ANSWER, Severity.MILD))
    import_file(small.engine, forged(tmp_path, small, rater="Dr. Away"), actor=DESK)
    with reading(small.engine) as session:
        said = open_example(session, 1).verdicts.set_index("rater")["brought_by"]
    assert said["Dr. Away"] == DESK.signature
    assert said.drop("Dr. Away").isna().all()


def test_browse_says_of_a_read_from_a_file_when_it_came_and_by_whom(demo_study, open_page):
    engine = open_study(demo_study)
    ((number,),) = world.rows(
        engine,
        "SELECT min(v.example_id) FROM verdict v JOIN response r ON r.id = v.response_id JOIN model m ON m.id = r.model_id "
        "WHERE v.stage = 'first' AND v.criterion_id IS NOT NULL AND m.name = 'Alder-2'",
    )
    engine.dispose()
    app = open_page(demo_study, "browse", LEAD, example=str(number))
    shown = check(app)
    today = datetime.now(UTC)
    assert f"from a file, imported {today.day} {today:%B %Y} by Overread" in shown
