"""What the tests of storage share: a small study, a table's rows, and what a database says against a statement."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError


def rows(engine, table):
    """A table's rows, in order."""
    with engine.connect() as connection:
        return connection.execute(text(f"SELECT * FROM {table} ORDER BY id")).all()


def refused(engine, statement, **values):
    """Run a statement, and return what the database says against it."""
    with pytest.raises(DBAPIError) as refusal, engine.begin() as connection:
        connection.execute(text(statement), values)
    return str(refusal.value.orig)
