"""What the database itself promises, on SQLite and on PostgreSQL: constraints, whole transactions, times."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import insert, make_url, text
from sqlalchemy.exc import DBAPIError, IntegrityError, StatementError
from sqlmodel import Session, select

from evalcore.errors import AlreadyChanged
from evalcore.study import contents, frames, store
from evalcore.study.db import connect, open_study, reading, reading_together, together, writing
from evalcore.study.schema import Cause, Label, Severity, Stage, Verdict
from evalcore.study.tables import TABLES, AuditEvent, Verdict as VerdictRow
from tests import world
from tests.storage_steps import refused, rows

ALREADY_THERE = re.compile("(?i)unique|there already")


# ---------------------------------------------------------------- constraints


def test_an_index_over_some_rows_is_over_these_alone(database_url):
    """Over all of them a unique one would refuse what it should not."""
    engine = open_study(database_url)
    said = "name, sql FROM sqlite_master" if engine.dialect.name == "sqlite" else "indexname, indexdef FROM pg_indexes"
    with engine.connect() as connection:
        found = {name: str(sql) for name, sql in connection.execute(text(f"SELECT {said}"))}
    engine.dispose()
    every = (one for table in TABLES.values() for one in table.indexes)
    wanted = {one.name for one in every if one.dialect_options["sqlite"]["where"] is not None}
    assert "ix_verdict_acuity" in wanted
    assert {name for name, sql in found.items() if " WHERE " in sql and name.startswith("ix_")} == wanted


@pytest.mark.parametrize("points", [0, 1_001, -1_001])
def test_points_outside_the_scale_are_refused(small, points):
    insert = "INSERT INTO criterion (example_id, position, text, points, tags) VALUES (1, 9, 'x', :points, '[]')"
    assert "ck_points" in refused(small.engine, insert, points=points)


@pytest.mark.parametrize("points", [-1_000, -11, -1, 1, 10, 1_000, None])
def test_points_on_the_scale_or_unknown_are_kept(small, points):
    insert = "INSERT INTO criterion (example_id, position, text, points, tags) VALUES (1, 9, 'x', :points, '[]')"
    with small.engine.begin() as connection:
        connection.execute(text(insert), {"points": points})
        kept = connection.execute(text("SELECT points FROM criterion WHERE position = 9")).scalar_one()
    assert kept == points


def verdict(small, **changed):
    """A verdict on the first item that the database takes, with some columns changed."""
    values = {
        "example_id": 1,
        "response_id": small.responses[0],
        "criterion_id": small.criteria[0][0],
        "rater_id": 1,
        "stage": "first",
        "label": "met",
        "right_for_wrong_reason": False,
        "created_at": datetime.now(tz=UTC),
    } | changed
    names = ", ".join(values)
    return f"INSERT INTO verdict ({names}) VALUES ({', '.join(f':{name}' for name in values)})", values


def test_the_plain_verdict_of_these_tests_is_taken(small):
    statement, values = verdict(small)
    n_before = world.count(small.engine, "verdict")
    with small.engine.begin() as connection:
        connection.execute(text(statement), values)
    assert world.count(small.engine, "verdict") == n_before + 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"confidence": 1.01}, "ck_confidence"),
        ({"confidence": -0.01}, "ck_confidence"),
        ({"inclusion_probability": 0}, "ck_inclusion"),
        ({"inclusion_probability": 1.5}, "ck_inclusion"),
        ({"example_id": 99}, "foreign key"),
        ({"response_id": 99}, "foreign key"),
        ({"criterion_id": 99}, "foreign key"),
        ({"rater_id": 99}, "foreign key"),
        ({"supersedes": 99}, "foreign key"),
        ({"stage": None}, "null"),
        ({"created_at": None}, "null"),
        ({"right_for_wrong_reason": None}, "null"),
    ],
)
def test_a_verdict_with_an_unknown_number_is_refused(small, changed, said):
    statement, values = verdict(small, **changed)
    assert said in refused(small.engine, statement, **values).lower()


@pytest.mark.parametrize(
    "changed",
    [
        {"label": "perhaps"},
        {"label": ""},
        {"label": "MET"},
        {"stage": "later"},
        {"cause": "fatigue"},
        {"severity": "deadly"},
        {"selection": "whim"},
    ],
)
def test_a_verdict_with_a_word_of_no_vocabulary_is_not_written(small, changed):
    (came,) = changed.values()
    _statement, values = verdict(small, **changed)
    with pytest.raises(StatementError, match=f"expected one of .*, got '{came}'"), small.engine.begin() as connection:
        connection.execute(insert(VerdictRow).values(**values))


def test_a_rater_has_one_first_verdict_on_an_item_and_stage(small):
    statement, values = verdict(small)
    with small.engine.begin() as connection:
        connection.execute(text(statement), values)
    assert ALREADY_THERE.search(refused(small.engine, statement, **values))
    other_stage, values = verdict(small, stage="open")
    with small.engine.begin() as connection:
        connection.execute(text(other_stage), values)


def test_a_verdict_is_superseded_once(small):
    statement, values = verdict(small, stage="judge", supersedes=1)
    with small.engine.begin() as connection:
        connection.execute(text(statement), values)
    another, values = verdict(small, stage="revised", supersedes=1)
    assert ALREADY_THERE.search(refused(small.engine, another, **values))


# ---------------------------------------------------------------- transactions


def fail_after_two_writes(session):
    store.add_person(session, "Dr. Late", roles=["reviewer"], actor="set-up")
    store.ensure_rater(session, world.RaterKind.REVIEWER, "Dr. Late")
    raise ZeroDivisionError


def test_a_block_that_raises_leaves_nothing(small):
    tables = ("person", "audit_event", "verdict", "rater")
    before = [rows(small.engine, table) for table in tables]
    with pytest.raises(ZeroDivisionError), writing(small.engine) as session:
        fail_after_two_writes(session)
    assert [rows(small.engine, table) for table in tables] == before


def test_a_block_that_ends_is_kept_whole(small):
    with writing(small.engine) as session:
        store.add_person(session, "Dr. Early", roles=["reviewer"], actor="set-up")
        store.add_person(session, "Dr. Late", roles=["reviewer"], actor="set-up")
    assert {"Dr. Early", "Dr. Late"} <= {row.name for row in rows(small.engine, "person")}


def test_of_several_verdicts_one_of_which_is_refused_none_is_kept(small):
    n_before = world.count(small.engine, "verdict")
    good = Verdict(**small.item(0, 1), example_id=1, rater_id=1, stage=Stage.FIRST, label=Label.MET)
    doubled = Verdict(**small.item(), example_id=1, rater_id=1, stage=Stage.JUDGE, label=Label.MET)
    with pytest.raises(AlreadyChanged), writing(small.engine) as session:
        store.add_verdicts(session, [good, doubled], actor="x", action="y")
    assert world.count(small.engine, "verdict") == n_before


def test_a_mistake_of_ours_is_not_told_as_a_change_in_another_tab(small):
    nobody = Verdict(**small.item(), example_id=1, rater_id=99, stage=Stage.FIRST, label=Label.MET)
    with pytest.raises(IntegrityError), writing(small.engine) as session:
        store.add_verdicts(session, [nobody], actor="x", action="y")


def test_verdict_numbers_come_back_in_the_order_given(small):
    given = [
        Verdict(**small.item(example, criterion), example_id=example + 1, rater_id=1, stage=Stage.FIRST, label=label)
        for example, criterion, label in ((1, 1, Label.MET), (0, 0, Label.NOT_MET), (1, 0, Label.CANNOT_ASSESS))
    ]
    with writing(small.engine) as session:
        numbers = store.add_verdicts(session, given, actor="x", action="y")
    found = {row.id: row for row in rows(small.engine, "verdict")}
    assert [found[number].label for number in numbers] == ["met", "not_met", "cannot_assess"]
    assert [found[number].response_id for number in numbers] == [verdict.response_id for verdict in given]


# ---------------------------------------------------------------- what comes back


def test_a_time_comes_back_in_utc_whatever_zone_it_was_given_in(small):
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    given = datetime(2026, 11, 20, 1, 0, 0, 123456, tzinfo=kathmandu)
    words = Verdict(
        **small.item(), example_id=1, rater_id=1, stage=Stage.FIRST, label=Label.MET, created_at=given,
        cause=Cause.OTHER, severity=Severity.NONE, confidence=0.25, blinded=True,
    )  # fmt: skip
    with writing(small.engine) as session:
        (number,) = store.add_verdicts(session, [words], actor="x", action="y")
    with Session(small.engine) as session:
        row = session.get_one(VerdictRow, number)
    assert row.created_at == given
    assert row.created_at.isoformat() == "2026-11-19T19:15:00.123456+00:00"  # 01:00 less 5:45, the day before
    assert (row.label, row.cause, row.severity, row.confidence, row.blinded) == ("met", "other", "none", 0.25, True)


def test_a_time_without_a_zone_is_refused(small):
    naive = datetime(2026, 11, 20, 1, 0)  # noqa: DTZ001 - the point
    words = Verdict(**small.item(), example_id=1, rater_id=1, stage=Stage.FIRST, label=Label.MET, created_at=naive)
    with pytest.raises(StatementError, match="time without a zone"), writing(small.engine) as session:
        store.add_verdicts(session, [words], actor="x", action="y")


def test_times_are_in_utc_also_from_a_server_in_another_zone(postgres_database_url):
    world.made(postgres_database_url).engine.dispose()
    elsewhere = make_url(postgres_database_url).update_query_dict({"options": "-c timezone=Asia/Kolkata"})
    engine = open_study(elsewhere.render_as_string(hide_password=False))
    with Session(engine) as session:
        assert session.execute(text("SHOW timezone")).scalar_one() == "Asia/Kolkata"
        for event in session.exec(select(AuditEvent)):
            assert event.at.utcoffset() == timedelta(0)
            assert event.hash == event.expected_hash()
    engine.dispose()


def test_text_of_any_script_comes_back_as_it_was(small):
    strange = "٣ أيام \u202e\u200b 胸痛 ' \" \\ % $x$ \U0001f912 {} -- ;"
    words = Verdict(
        **small.item(), example_id=1, rater_id=1, stage=Stage.FIRST, label=Label.MET, explanation=strange
    )  # fmt: skip
    with writing(small.engine) as session:
        store.add_verdicts(session, [words], actor=strange, action="y")
    assert rows(small.engine, "verdict")[-1].explanation == strange
    assert rows(small.engine, "audit_event")[-1].actor == strange


def test_a_session_for_reads_sees_the_study_as_it_was_at_its_first_read(database_url):
    engine = open_study(database_url)
    count = text("SELECT count(*) FROM person")
    with reading(engine) as session:
        before = session.execute(count).scalar_one()
        with writing(engine) as other:
            store.add_person(other, "Ana Ruiz", roles=["reviewer"], actor="test")
        assert session.execute(count).scalar_one() == before
    with reading(engine) as session:
        assert session.execute(count).scalar_one() == before + 1
    engine.dispose()


def test_what_is_read_together_is_of_one_moment_until_one_writes_oneself(database_url):
    engine, other = open_study(database_url), connect(database_url)

    def guideline(of=engine):
        with reading(of) as session:
            row = contents.guideline(session)
            return row and row.text

    def write(of, words):
        with writing(of) as session:
            store.set_guideline(session, words, actor="Ana Ruiz")

    with reading_together(), ThreadPoolExecutor(1) as somebody:
        together(engine)
        assert guideline() is None
        somebody.submit(write, other, "# Theirs").result()
        assert (guideline(), guideline(other)) == (None, "# Theirs")  # another engine's reads are its own
        write(engine, "# Ours")
        assert guideline() == "# Ours"
        somebody.submit(write, other, "# Later").result()
        assert guideline() == "# Ours"
        with pytest.raises(DBAPIError), reading(engine) as session:
            session.connection().exec_driver_sql("SELECT nothing FROM nowhere")
        assert guideline() == "# Later"  # a question that failed ends it too
        with reading(engine) as session:
            write(engine, "# Within")
            assert contents.guideline(session).text == "# Within"
    assert engine.pool.checkedout() == other.pool.checkedout() == 0
    for one in (engine, other):
        one.dispose()


def test_a_table_that_is_read_in_parts_is_the_one_read_at_once(sqlite_database_url, monkeypatch):
    columns = "i, nullif(i, 2) AS gap, CASE WHEN i > 3 THEN 'late' END AS word, i / 2.0 AS half, NULL AS never"
    rows = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7) SELECT {columns} FROM n"
    statement = sa.text(rows).columns(*(sa.column(name) for name in ("i", "gap", "word", "half", "never")))
    engine = open_study(sqlite_database_url)
    with reading(engine) as session:
        whole = frames.frame(session, statement)
        monkeypatch.setattr(frames, "_PART", 2)
        in_parts = frames.frame(session, statement)
    engine.dispose()
    pd.testing.assert_frame_equal(in_parts, whole)
    assert list(whole["gap"].isna()) == [False, True, False, False, False, False, False]
