"""The PostgreSQL database that one test after the other is given: as good as new each time."""

import pytest
from sqlalchemy import text

from evalcore.study.db import connect, open_study
from tests import world
from tests.conftest import Spare

COUNTED = ("study", "example", "response", "verdict", "person", "audit_event")


@pytest.fixture
def spare(postgres_url, postgres_template):
    made = Spare(postgres_url, postgres_template)
    yield made
    made.drop()


def test_no_row_of_the_test_before_is_left_and_numbers_start_anew(spare):
    url = spare.take()
    before = world.made(url)
    before.engine.dispose()
    spare.give_back()
    assert spare.take() == url
    engine = open_study(url)
    assert [world.count(engine, table) for table in COUNTED] == [0] * len(COUNTED)
    engine.dispose()
    again = world.made(url)
    assert (again.responses, again.criteria) == (before.responses, before.criteria)
    again.engine.dispose()


@pytest.mark.parametrize(
    "changed",
    [
        "DROP TRIGGER audit_event_append_only ON audit_event",
        "ALTER TABLE verdict DISABLE TRIGGER ALL",
        "ALTER TABLE person ADD COLUMN shoe_size integer",
        "CREATE TABLE other (number integer)",
        "UPDATE alembic_version SET version_num = '0001'",
        "DROP TABLE alembic_version",
    ],
)
def test_where_more_than_rows_was_changed_the_next_test_has_another(changed, spare):
    url = spare.take()
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(text(changed))
    spare.give_back()
    engine.dispose()
    assert spare.take() != url


def test_a_connection_that_a_test_left_open_with_a_lock_is_ended(spare):
    engine = connect(spare.take())
    with engine.connect() as connection:
        connection.execute(text("LOCK TABLE verdict"))
        spare.give_back()
        connection.invalidate()
    engine.dispose()
    assert spare.take()
