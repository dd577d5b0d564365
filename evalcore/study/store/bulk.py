"""Rows by the thousand: what an import writes. The import appends the one audit event for all of them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Float, Select, Table, bindparam, func, insert, select, text, update
from sqlalchemy.dialects import sqlite
from sqlmodel import Session

from evalcore.study.languages import index_parts, postgresql_vector
from evalcore.study.row_hashes import CONTENT, VERDICT, number_column, row_hash, stored
from evalcore.study.schema import Source, Verdict
from evalcore.study.store.events import Written, written
from evalcore.study.store.verdicts import verdict_row
from evalcore.study.tables import TABLES, now


@cache
def _last_number(table: str) -> Select[Any]:
    return select(func.coalesce(func.max(TABLES[table].c.id), 0))


@cache
def _processor(table: str, column: str) -> Callable[[Any], Any] | None:
    """How a value is written for SQLite's driver; None: as it is."""
    dialect = sqlite.dialect()
    process: Callable[[Any], Any] | None = TABLES[table].c[column].type.dialect_impl(dialect).bind_processor(dialect)
    return process


class Bulk:
    """Inserts and updates within a writing transaction.

    Args:
        session: Has the transaction: a new one after each commit.
        source_hash: SHA-256 of the file that brings them.

    Attributes:
        repeats: What comes has come before, and was written: verdicts and texts for the index are passed over.
    """

    repeats = False

    def __init__(self, session: Session, *, source: Source = Source.RUN, source_hash: str | None = None) -> None:
        self._stamp: dict[str, Any] = {"source": source, "source_hash": source_hash, "recorded_at": now()}
        self._session = session
        self._is_sqlite = session.get_bind().dialect.name == "sqlite"

    @property
    def _connection(self) -> Connection:
        return self._session.connection()

    @property
    def _written(self) -> Written:
        return written(self._session)

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Insert rows, all with the same columns, and return their numbers, in order."""
        if not rows:
            return []
        target = TABLES[table]
        if self._is_sqlite:
            # It cannot return the numbers of many rows in order; the write lock is ours, so they are ours to give.
            last = self._connection.execute(_last_number(table)).scalar_one()
            numbers = list(range(last + 1, last + 1 + len(rows)))
            values = ((number, *row.values()) for number, row in zip(numbers, rows, strict=True))
            self._insert_tuples(target, ["id", *rows[0]], values)
        else:
            found = self._connection.execute(insert(target).returning(target.c.id, sort_by_parameter_order=True), rows)
            numbers = [int(number) for number in found.scalars()]
        self._written.content(table, numbers)
        return numbers

    def insert_only(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows whose numbers nobody asks for."""
        if not rows:
            return
        if table in CONTENT:
            number = number_column(table).name
            if number not in rows[0]:
                self.insert(table, rows)  # the trail asks for their numbers
                return
            self._written.content(table, [row[number] for row in rows])
        if self._is_sqlite:
            self._insert_tuples(TABLES[table], list(rows[0]), (tuple(row.values()) for row in rows))
        else:
            self._connection.execute(insert(TABLES[table]), rows)

    def verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Insert verdicts, each with how it came here and its hash."""
        if self.repeats:
            return
        if verdicts and self._is_sqlite:
            last = self._connection.execute(_last_number(VERDICT)).scalar_one()
            tuples = map(msgspec.structs.astuple, verdicts)
            hashes = self._insert_tuples(TABLES[VERDICT], Verdict.__struct_fields__, tuples, stamp=self._stamp)
            numbers: Iterable[int] = range(last + 1, last + 1 + len(hashes))
        else:
            rows = [verdict_row(verdict, self._stamp) for verdict in verdicts]
            hashes, numbers = [row["row_hash"] for row in rows], self.insert(VERDICT, rows)
        digest = self._written.verdicts
        for number, content in zip(numbers, hashes, strict=True):
            digest.add(number, content)

    def _insert_tuples(
        self,
        target: Table,
        names: Sequence[str],
        rows: Iterable[tuple[Any, ...]],
        *,
        stamp: Mapping[str, Any] | None = None,
    ) -> list[bytes]:
        """By the driver itself: SQLAlchemy handles every value of every row, which costs more than SQLite's whole insert.

        Args:
            stamp: What every row has alike, in further columns; each row gets its hash then. Returns the hashes.
        """
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        if stamp is not None:
            columns += [(value,) * len(columns[0]) for value in stamp.values()]
            names = [*names, *stamp]
        filled = [index for index, cells in enumerate(columns) if cells.count(None) < len(cells)]
        columns, names = [columns[index] for index in filled], [names[index] for index in filled]
        for index, name in enumerate(names):
            process = _processor(target.name, name)
            if process is None and isinstance(columns[index][0], StrEnum):
                process = str  # SQLite's driver asks around what to do with an enum
            if process is not None:
                processed = {value: value if value is None else process(value) for value in set(columns[index])}
                columns[index] = [processed[value] for value in columns[index]]
        hashes: list[bytes] = []
        if stamp is not None:
            for index, name in enumerate(names):
                if isinstance(target.c[name].type, Float):
                    columns[index] = [stored(target.name, name, value) for value in columns[index]]
            order = sorted(range(len(names)), key=names.__getitem__)
            by_name = [names[index] for index in order]
            hashes = [row_hash(by_name, row) for row in zip(*(columns[index] for index in order), strict=True)]
            columns, names = [*columns, hashes], [*names, "row_hash"]
        marks = ", ".join("?" * len(names))
        statement = f"INSERT INTO {target.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of our own tables
        self._connection.exec_driver_sql(statement, list(zip(*columns, strict=True)))
        return hashes

    def update(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Change rows of a table that may change; each brings its `id` and the same columns."""
        if rows:
            target = TABLES[table]
            values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "id"}
            statement = update(target).where(target.c.id == bindparam("new_id")).values(**values)
            self._connection.execute(statement, [{f"new_{name}": value for name, value in row.items()} for row in rows])
            self._written.content(table, [row["id"] for row in rows])

    def move_criteria(self, positions: Mapping[int, int]) -> None:
        """Give criteria new positions; by way of negative ones, since positions are unique at every step."""
        for sign in (-1, 1):
            self.update("criterion", [{"id": number, "position": sign * place} for number, place in positions.items()])

    def await_index(self, entries: Iterable[tuple[int, Sequence[str]]], *, are_examples: bool = False) -> None:
        """Leave texts for the full-text index: the number of an example, and texts that are searched together."""
        if not self.repeats:
            waiting = ((number, "\n".join(texts)) for number, texts in entries)
            rows = [
                {"example_id": number, "body": body, "is_example": are_examples} for number, body in waiting if body
            ]
            self.insert_only("search_pending", rows)

    def index(self, entries: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Add entries to the full-text index: the number of an example, and texts that are searched together."""
        parts = [(example_id, part) for example_id, texts in entries for part in index_parts(texts)]
        numbers = self.insert("search_entry", [{"example_id": example_id} for example_id, _ in parts])
        rows = [(number, body) for number, (_, body) in zip(numbers, parts, strict=True)]
        if rows and self._is_sqlite:
            self._connection.exec_driver_sql("INSERT INTO search_text (rowid, body) VALUES (?, ?)", rows)
        elif rows:
            statement = "INSERT INTO search_text (rowid, body) VALUES (:row, CAST(:body AS tsvector))"
            bodies = [{"row": number, "body": postgresql_vector(body)} for number, body in rows]
            self._connection.execute(text(statement), bodies)

    def restate_prompts(self, changes: Iterable[tuple[int, str, str]]) -> None:
        """Examples get other conversations: responses keep what was sent to them, where it is not the example's new one.

        Args:
            changes: Number of the example, its former conversation, its new one.
        """
        target = TABLES["response"]
        for example_id, former, new in changes:
            of_example = update(target).where(target.c.example_id == example_id)
            kept = of_example.where(target.c.sent_messages.is_(None)).values(sent_messages=former)
            same = of_example.where(target.c.sent_messages == new).values(sent_messages=None)
            for restated in (kept, same):
                numbers = self._connection.execute(restated.returning(target.c.id)).scalars()
                self._written.content("response", numbers)


def as_json(values: Iterable[str]) -> str:
    """A list of words as the tables hold it."""
    return json.dumps(list(values), ensure_ascii=False)
