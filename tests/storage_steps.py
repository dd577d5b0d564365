"""What the tests of storage share: a small study, a table's rows, and what a database says against a statement."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from evalcore.study import store
from evalcore.study.db import open_study, writing


def rows(engine, table):
    """A table's rows, in order."""
    with engine.connect() as connection:
        return connection.execute(text(f"SELECT * FROM {table} ORDER BY id")).all()


def refused(engine, statement, **values):
    """Run a statement, and return what the database says against it."""
    with pytest.raises(DBAPIError) as refusal, engine.begin() as connection:
        connection.execute(text(statement), values)
    return str(refusal.value.orig)


def open_at_once(start, location):
    """In a process of its own: wait for the others, then open. (Here, since test modules that have fixtures of conftest.py at hand take a second to import.)"""
    start()
    engine = open_study(location)
    with writing(engine) as session:
        key = store.ensure_study(session).key
    engine.dispose()
    return key
