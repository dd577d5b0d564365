"""The hash of a row, the same whichever database holds it; and which rows the trail vouches for.

A verdict keeps the hash over all its columns in the row itself. Of the tables that verdicts rest on, the append-only table `row_hash` keeps
the hash of each row as an act left it. The event of the act carries a digest of both (`Digest`), so that the chain of events holds them all.

A row is hashed as JSON: its columns by name, sorted, without those that hold nothing. A column that a later version adds and leaves empty
in older rows therefore changes no hash. True and false are 1 and 0, a time is UTC with microseconds: as SQLite stores them.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from enum import StrEnum
from functools import cache
from typing import Any

import orjson
from sqlalchemy import Boolean, Column, Float

from evalcore.study.tables import TABLES, UtcDateTime

VERDICT, LEDGER = "verdict", "row_hash"
CONTENT: Mapping[str, tuple[str, ...]] = {
    "acuity_case": ("gold", "mapped_label", "method", "original_label", "source", "source_id"),
    "analysis": ("n_reads_before", "stated_by", "text"),
    "assignment": (
        *("ask", "cancelled_at", "cancelled_because", "chosen_by", "created_by", "judge", "n_population", "n_readers"),
        *("paused_at", "practice", "seed", "selection"),
    ),
    "criterion": ("axis", "cluster", "example_id", "level", "points", "position", "tags", "text"),
    "example": ("category", "dataset", "messages", "prompt_id", "tags", "theme"),
    "exposure": ("at", "example_id", "person_id", "through", "what"),
    "guideline": ("created_by", "text"),
    "identity": ("issuer", "person_id", "subject", "unbound_at"),
    "model": ("name",),
    "person": ("name",),
    "rater": ("kind", "name", "prompt_version"),
    "response": ("dataset", "example_id", "model_id", "n_criteria", "sample_index", "sent_messages", "text"),
    "response_note": ("at", "kind", "person_id", "task_id", "text", "written_by"),
    "task": ("assignment_id", "example_id", "inclusion_probability", "place", "response_id"),
}
"""The tables that verdicts, and their being blind, rest on, with the columns that the program changes by acts alone."""


def number_column(table: str) -> Column[Any]:
    """The column that numbers the rows of a table."""
    return next(iter(TABLES[table].primary_key.columns))


@cache
def hashed_columns(table: str) -> tuple[str, ...]:
    """The columns that enter the hash of a row, sorted: of a verdict all but its number, which the act's digest holds, and the hash itself."""
    if table in CONTENT:
        return tuple(sorted(CONTENT[table]))
    return tuple(sorted({column.name for column in TABLES[table].columns} - {"id", "row_hash"}))


def row_hash(names: Sequence[str], values: Iterable[Any]) -> bytes:
    """SHA-256 of a row: sorted names of columns, values as SQLite stores them. TypeError: a value is none that the program writes."""
    cells = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return hashlib.sha256(orjson.dumps(cells)).digest()


def hashes_of_columns(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[bytes]:
    """`row_hash` of many rows, given by their columns."""
    filled = [place for place, cells in enumerate(columns) if cells.count(None) < len(cells)]
    names, columns = [names[place] for place in filled], [columns[place] for place in filled]
    if any(None in cells for cells in columns):
        return [row_hash(names, row) for row in zip(*columns, strict=True)]
    rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return [hashlib.sha256(content).digest() for content in map(orjson.dumps, rows)]


def hashes_of_stored(table: str, rows: Sequence[Sequence[Any]]) -> list[bytes]:
    """`hash_of` of many rows as the database gives them: their number, and `hashed_columns` in their order."""
    columns = list[Sequence[Any]](zip(*rows, strict=True))[1:]
    for place, name in enumerate(hashed_columns(table)):
        if (change := _change(table, name)) is not _word:
            columns[place] = [cell if cell is None else change(cell) for cell in columns[place]]
    return hashes_of_columns(hashed_columns(table), columns)


def hash_of(table: str, row: Mapping[str, Any]) -> bytes:
    """The hash of a row whose values are Python's; what the row does not name is nothing."""
    names = hashed_columns(table)
    return row_hash(names, (stored(table, name, row.get(name)) for name in names))


def stored(table: str, column: str, value: Any) -> Any:
    """A value as SQLite stores it."""
    return value if value is None else _change(table, column)(value)


@cache
def _change(table: str, column: str) -> Callable[[Any], Any]:
    kind = TABLES[table].c[column].type
    if isinstance(kind, UtcDateTime):
        return lambda time: time.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if isinstance(kind, Boolean):
        return int
    if isinstance(kind, Float):
        return lambda number: float(number) + 0.0  # SQLite keeps no minus before a zero
    return _word


def _word(word: Any) -> Any:
    return str(word) if isinstance(word, StrEnum) else word


class Digest:
    """What an act wrote into one table: the numbers of its rows, and one hash over all of them in the order of their numbers."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.runs: list[list[int]] = []
        self._sum = hashlib.sha256()

    def add(self, number: int, row: bytes) -> None:
        """The next row, by its number and what stands for its content."""
        self.add_all([number], [row])

    def add_all(self, numbers: Sequence[int], rows: Sequence[bytes]) -> None:
        """The next rows, in the order of their numbers."""
        for number in numbers:
            if self.runs and self.runs[-1][1] == number - 1:
                self.runs[-1][1] = number
            else:
                self.runs.append([number, number])
        self.n_rows += len(rows)
        self._sum.update(b"".join([b"%d " % number + row for number, row in zip(numbers, rows, strict=True)]))

    def hex(self) -> str:
        """64 hexadecimal digits."""
        return self._sum.hexdigest()

    def told(self) -> dict[str, str]:
        """As an event's detail has it."""
        rows = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.runs)
        return {"rows": rows, "sha256": self.hex()}


def runs_told(rows: str) -> list[tuple[int, int]]:
    """First and last number of each run, as `Digest.told` writes them; ValueError: they are written otherwise."""
    ends = [part.partition("-")[::2] for part in rows.split(",")]
    return [(int(first), int(last or first)) for first, last in ends]


def ledger_row(table: str, number: int, content: bytes) -> bytes:
    """What stands for a row of the table `row_hash` in a digest."""
    return f"{table} {number} ".encode() + content
