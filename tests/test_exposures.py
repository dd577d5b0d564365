"""Who has seen others' verdicts on what: recorded once, never changed, and their reads are not blind."""

import pytest
from sqlalchemy import create_engine

from evalcore import store
from evalcore.db import reading, writing
from evalcore.queries import exposures
from evalcore.schema import Seen
from tests import world
from tests.storage_steps import refused, small

__all__ = ["small"]  # a fixture


def expose(study, name, what, examples):
    """Write that somebody sees verdicts; how many rows that took."""
    with writing(study.engine) as session:
        return store.add_exposures(session, study.viewer(name).person_id, what, examples)


def is_exposed(study, name, example_id):
    with reading(study.engine) as session:
        return exposures.is_exposed(session, study.viewer(name).person_id, example_id)


def test_an_exposure_is_written_the_first_time_and_never_changed(small):
    assert [expose(small, "Dr. Imani Noor", Seen.CONVERSATION, [1]) for _ in range(2)] == [1, 0]
    assert expose(small, "Dr. Imani Noor", Seen.EXPORT, [1, 2]) == 2
    assert is_exposed(small, "Dr. Imani Noor", 1)
    assert not is_exposed(small, "Dr. Tove Lind", 1)
    for statement in ("UPDATE exposure SET person_id = 2", "DELETE FROM exposure WHERE id = 1"):
        assert "exposure is append-only" in refused(small.engine, statement)


def test_a_row_for_everything_reaches_what_was_there_then(small):
    assert [expose(small, "Dr. Imani Noor", Seen.EXPORT, None) for _ in range(2)] == [1, 0]
    assert [is_exposed(small, "Dr. Imani Noor", number) for number in (1, 2, 3)] == [True, True, False]
    expose(small, "Dr. Imani Noor", Seen.RELEASED, None)
    assert is_exposed(small, "Dr. Imani Noor", 3)  # who is released stays so when more is imported


@pytest.mark.parametrize("columns", ["*", "id + 100, person_id, example_id, through, what, at"])
def test_replace_of_an_exposure_is_refused_on_a_bare_sqlite_connection(sqlite_database_url, columns):
    small = world.made(sqlite_database_url)
    expose(small, "Dr. Imani Noor", Seen.CONVERSATION, [1])
    small.engine.dispose()
    bare = create_engine(sqlite_database_url)
    assert "exposure is append-only" in refused(bare, f"INSERT OR REPLACE INTO exposure SELECT {columns} FROM exposure")
    bare.dispose()
