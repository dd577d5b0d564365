"""A study from one database into another, SQLite or PostgreSQL: all of it, proved by its trail, or nothing."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from alembic import command
from sqlalchemy import Connection, Engine, Table, func, insert, inspect, select
from sqlmodel import Session, SQLModel

from evalcore.errors import OverreadError
from evalcore.study import store
from evalcore.study.auditing import ChainReport, verify
from evalcore.study.backups import set_sequence
from evalcore.study.db import connect, migrations, open_study, reading, upgrade, writing
from evalcore.study.tables import TABLES

BATCH, PART = 5_000, 500
EXAMPLE, CRITERION, RESPONSE, VERDICT = (TABLES[name].c for name in ("example", "criterion", "response", "verdict"))
SEARCH = frozenset({"search_entry", "search_pending"})
"""Each database has its own way to search: what is searched is taken up anew."""


def copy_study(source: str, target: str) -> ChainReport:
    """Make a study in a database that holds none, from another. Returns how far the copy's audit trail holds.

    Args:
        source, target: Database URLs, or paths of SQLite files.

    Raises:
        OverreadError: The target has tables already, or a table has not as many rows as its source.
    """
    into = connect(target)
    try:
        _check_is_empty(into)
        origin = open_study(source)
        try:
            with reading(origin) as session, into.execution_options(immediate=True).begin() as connection:
                command.upgrade(migrations(connection), "head")
                for table in _tables():
                    _copy(session.connection(), connection, table)
                upgrade(connection)
        finally:
            origin.dispose()
        _prepare_search(into)
        with reading(into) as session:
            return verify(session)
    finally:
        into.dispose()


def _check_is_empty(engine: Engine) -> None:
    with engine.connect() as connection:
        if inspect(connection).get_table_names():
            msg = "--to: expected a database without tables, found a study or something else. Nothing was overwritten."
            raise OverreadError(msg)


def _tables() -> Iterator[Table]:
    """Every table but those of the search, each after those that it refers to."""
    return (table for table in SQLModel.metadata.sorted_tables if table.name not in SEARCH)


def _copy(source: Connection, target: Connection, table: Table) -> None:
    rows = source.execution_options(yield_per=BATCH).execute(select(table).order_by(*table.primary_key.columns))
    for part in rows.mappings().partitions():
        target.execute(insert(table), [dict(row) for row in part])
    n_rows, n_copied = (
        connection.execute(select(func.count()).select_from(table)).scalar_one() for connection in (source, target)
    )
    if n_copied != n_rows:
        msg = f"{table.name}: expected {n_rows:,} rows in the copy, got {n_copied:,}. Nothing was copied."
        raise OverreadError(msg)
    if target.dialect.name == "postgresql":
        set_sequence(target, table.name)


def _prepare_search(engine: Engine) -> None:
    """Leave every text for the search, and take them up: a conversation with its criteria, a response with what is said of it."""
    with writing(engine, patient=True) as session:
        bulk = store.Bulk(session)
        for part in _parts(session, EXAMPLE.id):
            bulk.await_index(_conversations(session, part), are_examples=True)
        for part in _parts(session, RESPONSE.id):
            bulk.await_index(_responses(session, part))
        bulk.await_index(_of_cases(session))
        store.forget_written(session)  # nobody's act
    store.index_texts(engine)


def _parts(session: Session, number: Any) -> Iterator[list[int]]:
    numbers = list(session.connection().execute(select(number).order_by(number)).scalars())
    return (numbers[start : start + PART] for start in range(0, len(numbers), PART))


def _conversations(session: Session, numbers: list[int]) -> Iterator[tuple[int, list[str]]]:
    connection, criteria = session.connection(), defaultdict(list)
    for number, words in connection.execute(
        select(CRITERION.example_id, CRITERION.text).where(CRITERION.example_id.in_(numbers)).order_by(CRITERION.id)
    ):
        criteria[number].append(words)
    for number, messages in connection.execute(select(EXAMPLE.id, EXAMPLE.messages).where(EXAMPLE.id.in_(numbers))):
        yield number, [*(turn["content"] for turn in json.loads(messages)), *criteria[number]]


def _responses(session: Session, numbers: list[int]) -> Iterator[tuple[int, list[str]]]:
    connection, said = session.connection(), defaultdict(list)
    of_responses = VERDICT.response_id.in_(numbers)
    explained = select(VERDICT.response_id, VERDICT.explanation).where(of_responses, VERDICT.explanation.is_not(None))
    for number, words in connection.execute(explained.order_by(VERDICT.id)):
        said[number].append(words)
    texts = select(RESPONSE.id, RESPONSE.example_id, RESPONSE.text).where(RESPONSE.id.in_(numbers))
    for number, example_id, words in connection.execute(texts):
        yield example_id, [words, *said[number]]


def _of_cases(session: Session) -> Iterator[tuple[int, list[str]]]:
    """What is said of a conversation itself: whether its level of care is right."""
    of_cases = VERDICT.response_id.is_(None) & VERDICT.explanation.is_not(None)
    for number, words in session.connection().execute(select(VERDICT.example_id, VERDICT.explanation).where(of_cases)):
        yield number, [words]
