"""How fast assigned reading goes, and until when at this pace."""

import math
from datetime import UTC, datetime, timedelta

import pandas as pd
from hypothesis import given, strategies as st

from evalcore.reading.assignment_queries import assignments, locked_reads
from evalcore.reading.pace import pace_words, progress, reads_a_day
from evalcore.study.db import reading
from tests import world

AT = datetime(2026, 11, 25, 12, tzinfo=UTC)


def locked(*days_ago: float) -> pd.Series:
    return pd.to_datetime(
        pd.Series([AT - timedelta(days=days) for days in days_ago], dtype="datetime64[us, UTC]"), utc=True
    )


def test_the_pace_is_of_seven_days_or_since_the_first_read_and_never_of_less_than_a_day():
    assert reads_a_day(locked(0.1, 0.2), AT) == 2  # of one day
    assert reads_a_day(locked(1, 2, 3, 4), AT) == 1  # since four days
    assert reads_a_day(locked(1, 2, 40), AT) == 2 / 7
    assert math.isnan(reads_a_day(locked(8, 9), AT))
    assert math.isnan(reads_a_day(locked(), AT))


@given(st.lists(st.floats(0, 60), max_size=20))
def test_a_pace_times_seven_days_is_never_less_than_what_was_read_in_them(days):
    a_day, n = reads_a_day(locked(*days), AT), sum(ago < 7 for ago in days)
    assert math.isnan(a_day) if n == 0 else n / 7 - 1e-9 <= a_day <= n


def test_a_day_of_another_year_is_said_with_it_and_what_is_finished_has_none():
    assert pace_words(1.0, 40, AT) == "1.0 a day, at this pace until 4 January 2027"
    assert pace_words(1.0, 0, AT) == "1.0 a day"


def test_each_assignment_and_each_reader_has_a_row_and_nothing_read_has_no_pace():
    made = {"created_at": AT, "cancelled_at": pd.NaT, "paused_at": pd.NaT}
    assignments = pd.DataFrame(
        [
            {"assignment_id": 2, "ask": "rubric", "n_wanted": 10, "n_reads": 10, "n_skipped": 0, **made},
            {"assignment_id": 1, "ask": "gold_acuity", "n_wanted": 8, "n_reads": 0, "n_skipped": 1, **made},
        ]
    )
    reads = pd.DataFrame({"assignment_id": 2, "reader": ["A"] * 6 + ["B"] * 4, "locked_at": locked(*[2] * 10)})
    found = progress(assignments, reads, AT)
    assert found.to_numpy().tolist() == [
        ["All assigned reading", 10, 8, "10 of 18, 1 skipped: 5.0 a day, at this pace until 27 November"],
        ["Criteria, 25 November", 10, 0, "10 of 10: finished"],
        ["Case's level, 25 November", 0, 8, "0 of 8, 1 skipped: no pace yet"],
        ["A", 6, 0, "6: 3.0 a day"],
        ["B", 4, 0, "4: 2.0 a day"],
    ]


def test_locked_reads_have_their_reader_and_time_and_none_of_hidden_conversations(small):
    world.assigned(small)
    world.submitted(small, "Dr. Imani Noor", "+-", at=AT)
    world.submitted(small, "Dr. Tove Lind", "+-", at=AT)
    with reading(small.engine) as session:
        found, none = locked_reads(session), locked_reads(session, {1, 2})
        assignment = assignments(session).loc[0, "assignment_id"]
    assert sorted(found["reader"]) == ["Dr. Imani Noor", "Dr. Tove Lind"]
    assert set(found["locked_at"]) == {pd.Timestamp(AT)}
    assert set(found["assignment_id"]) == {assignment}
    assert none.empty
