"""No time decides in SQL either which label counts: a clock that steps back brings no older verdict back."""

from datetime import UTC, datetime, timedelta

import pytest

from evalcore.export import tables as export_tables
from evalcore.reading import read_queries
from evalcore.reading.reference import overridden_items
from evalcore.rubric.blind_read_queries import read_marks
from evalcore.study import browse, frames
from evalcore.study.browse import Filters
from evalcore.study.db import reading
from evalcore.study.schema import Label, RaterKind, Stage
from tests import world

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
READER = "Dr. Imani Noor"


@pytest.mark.slow_on_postgresql
@pytest.mark.parametrize("stage", [Stage.OPEN, Stage.REVISED, Stage.ADJUDICATED])
def test_the_verdict_that_was_written_last_counts_whatever_the_clock_says(small, stage):
    world.said(
        small, Label.CANNOT_ASSESS, created_at=NOON + timedelta(days=3)
    )  # the first read, by a clock that was ahead
    number = None
    for place, label in enumerate((Label.MET, Label.NOT_MET, Label.MET, Label.NOT_MET)):
        at = NOON - timedelta(days=place)
        number = world.said(small, label, stage=stage, created_at=at, supersedes=number)
        # the judge says met; a settlement takes no read back
        is_overridden = label is Label.NOT_MET or stage is Stage.ADJUDICATED
        with reading(small.engine) as session:
            standing = frames.verdicts(session, kind=RaterKind.REVIEWER).set_index("stage")["label"]
            assert standing.to_dict() == {Stage.FIRST: Label.CANNOT_ASSESS, stage: label}
            response, criterion = small.item()["response_id"], small.item()["criterion_id"]
            rater = next(row.rater_id for row in frames.raters(session).itertuples() if row.rater == READER)
            newest = read_queries.newest_of(session, response, criterion, rater, stage)
            assert newest is not None
            assert newest.id == number
            marks = overridden_items(read_marks(session), world.JUDGE)
            assert bool(marks["n_overridden"].sum()) is is_overridden
            found = browse.examples(session, Filters(judge=world.JUDGE, reads=browse.OVERRIDDEN))["example_id"].tolist()
            assert found == ([1] if is_overridden else [])
    labels = export_tables.table(small.engine, "labels")
    assert labels.loc[labels["n_reads"].gt(0), "reference_label"].tolist() == [Label.NOT_MET]
