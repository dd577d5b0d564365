"""Every write. Each act appends its audit event in the transaction of the act.

Texts that an import writes wait in `search_pending`: to index them, and to tell their language, costs more than all else.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import insert, text, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, SQLModel, col

from evalcore.errors import AlreadyChanged, OverreadError, refuse
from evalcore.study import analysis, families, tables
from evalcore.study.analysis import Analysis
from evalcore.study.audit.row_hashes import (
    CONTENT,
    LEDGER,
    VERDICT,
    Digest,
    hash_of,
    hashed_columns,
    hashes_of_columns,
    hashes_of_stored,
    ledger_row,
    number_column,
    stored,
)
from evalcore.study.corrections import showing
from evalcore.study.db import ACTS, TRAIL_HEAD, reading, writing
from evalcore.study.languages import index_parts, language_of, postgresql_vector
from evalcore.study.schema import PART_IMPORTED, RaterKind, Role, Rules, Source, Stage, Verdict
from evalcore.study.tables import STORED, TABLES, AnySelect, Verdict as VerdictRow, now

# ---------------------------------------------------------------- what was written, and its event

FIRST_PREVIOUS_HASH = "0" * 64
WROTE = "wrote"
"""Under this name an event's detail has, by table, the numbers of the rows that its act wrote and their digest."""
_CHUNK = 500  # bound variables in one statement
_CLAIM_LOCK, _CHAIN_LOCK = 0x636C6169, 0x61756469  # any constants: "clai", "audi"
_EVENT = TABLES["audit_event"]
_LAST_HASH = sa.select(_EVENT.c.hash).order_by(_EVENT.c.id.desc()).limit(1)


BROUGHT = frozenset({"criterion", "example", "published_matrix", "response"})
_PLACES: Mapping[str, tuple[str, ...]] = {
    "criterion": ("example_id", "position"),
    "example": ("dataset", "prompt_id"),
    "published_matrix": ("model", "format", "gold"),
    "response": ("example_id", "model_id", "dataset", "sample_index"),
}
"""What no two rows of a table have alike."""
MOVED = 1_000_000_000
"""From here on are the sample indexes of withdrawn responses whose place another one has."""
IMPORTING = "importing"
"""Under this name a session's info has the import that writes in it, as a row of `file_import`."""
OWN_EVENT = "own_event"
"""Likewise the hash of the newest event that it appended."""


class Brought:
    """Numbers of rows, as runs of neighbours; a number may come again."""

    def __init__(self) -> None:
        self.runs: list[list[int]] = []

    def add(self, numbers: Iterable[int]) -> None:
        """More of them."""
        if isinstance(numbers, range) and numbers:
            self._add_run(numbers[0], numbers[-1])
            return
        for number in numbers:
            self._add_run(number, number)

    def _add_run(self, first: int, last: int) -> None:
        if self.runs and self.runs[-1][0] <= first <= self.runs[-1][1] + 1:
            self.runs[-1][1] = max(self.runs[-1][1], last)
        else:
            self.runs.append([first, last])

    def merged(self) -> list[tuple[int, int]]:
        """In order, none beside or in another."""
        ordered = Brought()
        for first, last in sorted(map(tuple, self.runs)):
            ordered._add_run(first, last)
        return [(first, last) for first, last in ordered.runs]


class Written:
    """Rows that no event names yet."""

    def __init__(self) -> None:
        self.verdicts = Digest()
        self.brought: defaultdict[tuple[str, bool], Brought] = defaultdict(Brought)
        self._content: defaultdict[str, set[int]] = defaultdict(set)
        self._kept = Digest()

    def __bool__(self) -> bool:
        return self.verdicts.n_rows + self._kept.n_rows > 0 or bool(self._content)

    def content(self, table: str, numbers: Iterable[int]) -> None:
        """Rows of a table that verdicts rest on were added or changed; of other tables nothing is kept."""
        if table in CONTENT and (changed := set(numbers)):
            self._content[table] |= changed

    def keep_hashes(self, connection: sa.Connection) -> None:
        """Write the hashes of the content as it is now. It takes as long as the act wrote much, so the lock of the chain comes after it."""
        for table, numbers in sorted(self._content.items()):
            columns = STORED[table].c
            number = columns[number_column(table).name]
            rows = sa.select(number, *(columns[name] for name in hashed_columns(table))).order_by(number)
            wanted = sorted(numbers)
            for start in range(0, len(wanted), _CHUNK):
                part = wanted[start : start + _CHUNK]
                is_run = part[-1] - part[0] == len(part) - 1
                chosen = rows.where(number.between(part[0], part[-1]) if is_run else number.in_(part))
                add_to_ledger(connection, table, connection.execute(chosen).all(), self._kept)
        self._content.clear()

    def told(self) -> dict[str, dict[str, str]]:
        """By table, which rows the act wrote and their digest; the hashes of all content are kept."""
        digests = {VERDICT: self.verdicts, LEDGER: self._kept}
        return {table: digest.told() for table, digest in digests.items() if digest.n_rows}


def written(session: Session) -> Written:
    """What this session has written since its last event."""
    rows: Written = session.info.setdefault("written", Written())
    return rows


def forget_written(session: Session) -> None:
    """It is undone, or an event tells it now."""
    session.info.pop("written", None)
    session.info.pop(TRAIL_HEAD, None)


def bring(session: Session, table: str, numbers: Iterable[int], *, is_known: bool = True) -> None:
    """Rows that the import of this session brings, new or known; nothing is kept of what comes otherwise."""
    if IMPORTING in session.info:
        written(session).brought[table, is_known].add(numbers)


def keep_brought(session: Session) -> None:
    """Write which rows came with the import, whose row is made with its first ones."""
    brought = {named: runs.merged() for named, runs in sorted(written(session).brought.items()) if runs.runs}
    written(session).brought.clear()
    if not brought:
        return
    bulk, row = Bulk(session), session.info[IMPORTING]
    imports = STORED["file_import"].c
    import_id = session.connection().execute(sa.select(imports.id).where(imports.key == row["key"])).scalar()
    if import_id is None:
        (import_id,) = bulk.insert("file_import", [row])
    bulk.insert_only(
        "brought_rows",
        [
            {"import_id": import_id, "table_name": table, "first_id": first, "last_id": last, "is_known": is_known}
            for (table, is_known), runs in brought.items()
            for first, last in runs
        ],
    )


def add_to_ledger(connection: sa.Connection, table: str, rows: Sequence[Any], digest: Digest) -> None:
    """Append the hashes of some rows that verdicts rest on, as they are now: their number first, then `hashed_columns`."""
    if connection.dialect.name == "postgresql":  # others take numbers beside this transaction
        taken = text("SELECT nextval('row_hash_number') FROM generate_series(1, :n)")
        places: Sequence[int] = sorted(connection.execute(taken, {"n": len(rows)}).scalars())
    else:
        last = connection.execute(_last_number(LEDGER)).scalar_one()
        places = range(last + 1, last + 1 + len(rows))
    if not rows:
        return
    hashes, numbers = hashes_of_stored(table, rows), [row[0] for row in rows]
    digest.add_all(places, [ledger_row(table, *of_row) for of_row in zip(numbers, hashes, strict=True)])
    added = [(place, table, *of_row) for place, *of_row in zip(places, numbers, hashes, strict=True)]
    columns = ("id", "table_name", "row_id", "hash")
    if connection.dialect.name == "sqlite":  # by the driver itself, as `Bulk` does
        statement = f"INSERT INTO {LEDGER} ({', '.join(columns)}) VALUES (?, ?, ?, ?)"  # noqa: S608 - names of our own tables
        connection.exec_driver_sql(statement, added)
    else:
        connection.execute(insert(TABLES[LEDGER]), [dict(zip(columns, row, strict=True)) for row in added])


@cache
def _last_number(table: str) -> AnySelect:
    return sa.select(sa.func.coalesce(sa.func.max(STORED[table].c.id), 0))


def wait_for_others(session: Session, lock: int = _CLAIM_LOCK) -> None:
    """Hold whoever claims or settles at the same time until this transaction ends; on SQLite the write lock does that already."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": lock})


def append_event(
    session: Session,
    *,
    actor: str,
    action: str,
    subject: str,
    detail: dict[str, Any] | None = None,
    tells_rows: bool = True,
) -> None:
    """Append one event, linked to the last one by its hash, with a digest of the rows that the act wrote, unless its own event comes later (`tells_rows`).

    Call it last in the transaction: on PostgreSQL it holds the chain's lock until the commit, so nothing that takes long comes after it.
    """
    session.flush()  # what the session still holds comes before the event that tells of it
    keep_brought(session)
    connection, rows = session.connection(), written(session)
    rows.keep_hashes(connection)
    wrote = rows.told() if tells_rows else {}
    if wrote:
        detail = {**(detail or {}), WROTE: wrote}
        forget_written(session)
    event = tables.AuditEvent(
        at=now(),
        actor=actor,
        action=action,
        subject=subject,
        detail=json.dumps(detail or {}, ensure_ascii=False, default=str),
        previous_hash=FIRST_PREVIOUS_HASH,
        hash="",
    )
    if connection.dialect.name == "postgresql":
        event.hash = _chained(connection, event)
    else:
        event.previous_hash = last_event(session)
        event.hash = event.expected_hash()
        connection.execute(insert(_EVENT), event.model_dump(exclude={"id"}))
    session.info.setdefault(ACTS, []).append(action)
    session.info[OWN_EVENT] = event.hash
    session.info[TRAIL_HEAD] = f"{event.at.isoformat()} {event.hash}"


def last_event(session: Session) -> str:
    """The hash of the trail's newest event."""
    return session.connection().execute(_LAST_HASH).scalar() or FIRST_PREVIOUS_HASH


def _chained(connection: sa.Connection, event: tables.AuditEvent) -> str:
    """Append an event on PostgreSQL, which links and hashes it there as `AuditEvent.expected_hash` does. Returns its hash.

    In one message: whoever waits for the chain's lock waits for the database alone, and not until this program has its turn again and again. Each
    statement of it sees what was kept before it begins, so the second one what others kept while the first one waited.
    """
    from psycopg.sql import quote  # noqa: PLC0415 - only where there is such a database

    hashed = json.dumps(event.hashed_parts()[1:], ensure_ascii=False)[1:]
    columns = ("at", "actor", "action", "subject", "detail")
    values = [
        quote(value, connection.connection.driver_connection)
        for value in (*(getattr(event, name) for name in columns), hashed)
    ]
    message = f"""
        SELECT pg_advisory_xact_lock({_CHAIN_LOCK});
        INSERT INTO audit_event ({", ".join(columns)}, previous_hash, hash)
        SELECT {", ".join(values[:-1])}, last.hash, encode(sha256(convert_to('["' || last.hash || '", ' || {values[-1]}, 'UTF8')), 'hex')
        FROM (SELECT coalesce((SELECT hash FROM audit_event ORDER BY id DESC LIMIT 1), '{FIRST_PREVIOUS_HASH}') AS hash) AS last
        RETURNING hash
    """  # noqa: S608 - quoted by the driver
    said: Any = connection.exec_driver_sql(message, execution_options={"no_parameters": True}).cursor
    said.nextset()
    return str(said.fetchone()[0])


def is_storable(text: str) -> bool:
    r"""Whether both databases can hold a text: not with the character NUL (PostgreSQL refuses it) or half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


# ---------------------------------------------------------------- verdicts that people give

_DUPLICATE = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_TRIGGER", "23505"}  # the trigger: the row is there already


def add_verdicts(
    session: Session, verdicts: Sequence[Verdict], *, actor: str, action: str, **further: Any
) -> list[int]:
    """Append verdicts and one audit event, which tells what is said further. Returns the new row numbers, in order."""
    at = now()
    stamp = {"source": Source.SESSION, "recorded_at": at}
    rows = [verdict_row(verdict, stamp, at=at) for verdict in behind_hidden(session, verdicts)]
    try:
        added = session.execute(insert(VerdictRow).returning(VerdictRow.id, sort_by_parameter_order=True), rows)  # type: ignore[call-overload]
    except IntegrityError as error:
        states = {getattr(error.orig, name, None) for name in ("sqlite_errorname", "sqlstate")}
        if not _DUPLICATE & states:  # a wrong word or number is a mistake of ours, not of two tabs
            raise
        msg = "This was changed in another tab or by a second press. The newer state is shown now; nothing was saved twice."
        raise AlreadyChanged(msg) from error
    numbers = [int(number) for number in added.scalars()]
    labels = []
    for number, verdict, row in zip(numbers, verdicts, rows, strict=True):
        written(session).verdicts.add(number, row["row_hash"])
        item = {"response": verdict.response_id, "criterion": verdict.criterion_id}
        labels.append({"verdict": number, **item, "label": verdict.label})
        if verdict.explanation:
            session.add(tables.SearchPending(example_id=verdict.example_id, body=verdict.explanation))
    (example_id, response_id), *others = {(verdict.example_id, verdict.response_id) for verdict in verdicts}
    subject = f"example {example_id}" if response_id is None else f"response {response_id}"
    if others:
        subject = f"{len(others) + 1} responses"
    append_event(session, actor=actor, action=action, subject=subject, detail={**further, "verdicts": labels})
    return numbers


def behind_hidden(session: Session, verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """Where a rater's verdict on an item is hidden, the next one takes its place, as the database knows no two of them; who gave it is shown again."""
    connection = session.connection()
    if not verdicts or not showing.hides(connection):
        return verdicts
    hidden, given = STORED[showing.HIDDEN], STORED[VERDICT]
    newer = given.alias("newer")
    raters = sorted({verdict.rater_id for verdict in verdicts})
    connection.execute(sa.delete(hidden).where(hidden.c.table_name == "rater", hidden.c.row_id.in_(raters)))
    last = sa.select(sa.func.max(given.c.id)).where(
        given.c.example_id == sa.bindparam("example_id"),
        sa.func.coalesce(given.c.response_id, 0) == sa.bindparam("response_id"),
        sa.func.coalesce(given.c.criterion_id, 0) == sa.bindparam("criterion_id"),
        given.c.rater_id == sa.bindparam("rater_id"),
        given.c.stage == sa.bindparam("stage"),
        given.c.id.in_(sa.select(hidden.c.row_id).where(hidden.c.table_name == VERDICT)),
        given.c.id.not_in(sa.select(newer.c.supersedes).where(newer.c.supersedes.is_not(None))),
    )
    placed = []
    for verdict in verdicts:
        names = ("example_id", "response_id", "criterion_id", "rater_id")
        item = {name: getattr(verdict, name) or 0 for name in names} | {"stage": verdict.stage.value}
        before = connection.execute(last, item).scalar()
        placed.append(verdict if before is None else msgspec.structs.replace(verdict, supersedes=int(before)))
    return placed


def verdict_row(verdict: Verdict, stamp: Mapping[str, Any], *, at: datetime | None = None) -> dict[str, Any]:
    """A verdict as a row of the table, with how it came here and its hash; of the time `at` where it has none of its own."""
    row = {**msgspec.structs.asdict(verdict), **stamp}
    row["created_at"] = row["created_at"] or at
    return {**row, "row_hash": hash_of(VERDICT, row)}


# ---------------------------------------------------------------- rows by the thousand


@cache
def _processor(table: str, column: str) -> Callable[[Any], Any] | None:
    dialect = sqlite.dialect()
    process: Callable[[Any], Any] | None = TABLES[table].c[column].type.dialect_impl(dialect).bind_processor(dialect)
    return process


class Bulk:
    """Inserts and updates within a writing transaction of the session, of what came how (with the SHA-256 of the file that brings it)."""

    repeats = False
    """What comes has come before, and was written: verdicts and texts for the index are passed over."""
    only_checks = False
    """What is written is thrown away: rows get no hash, nothing is told of them, and no text waits for the index."""

    def __init__(self, session: Session, *, source: Source = Source.RUN, source_hash: str | None = None) -> None:
        self._stamp: dict[str, Any] = {"source": source, "source_hash": source_hash, "recorded_at": now()}
        self._session = session
        self._is_sqlite = session.get_bind().dialect.name == "sqlite"

    @property
    def _connection(self) -> sa.Connection:
        return self._session.connection()

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Insert rows, all with the same columns, and return their numbers, in order."""
        if not rows:
            return []
        if table in _PLACES and showing.hides(self._connection):
            self._make_room(table, rows)
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
        if self.only_checks:
            return numbers
        written(self._session).content(table, numbers)
        if table in BROUGHT:
            bring(self._session, table, numbers, is_known=False)
        return numbers

    def _make_room(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Where a withdrawn row stands in the place of a new one, it moves; and the model of a new response is shown again."""
        columns, hidden = STORED[table].c, STORED[showing.HIDDEN]
        is_hidden = sa.select(hidden.c.row_id).where(hidden.c.table_name == table, ~hidden.c.is_broken)
        places = list(dict.fromkeys(tuple(row[name] for name in _PLACES[table]) for row in rows))
        for start in range(0, len(places), _CHUNK // 4):
            place = sa.tuple_(*(columns[name] for name in _PLACES[table])).in_(places[start : start + _CHUNK // 4])
            for row in self._connection.execute(sa.select(STORED[table]).where(place, columns.id.in_(is_hidden))).all():
                self._move(table, row)
        if table == "response":
            models = sorted({row["model_id"] for row in rows})
            again = sa.delete(hidden).where(hidden.c.table_name == "model", hidden.c.row_id.in_(models))
            self._connection.execute(again)

    def _move(self, table: str, row: Any) -> None:
        hidden, away = STORED[showing.HIDDEN], f" (withdrawn {row.id})"
        if table == "response":
            given = STORED[VERDICT].c
            read = sa.select(given.id).where(given.response_id == row.id, given.stage != Stage.JUDGE.value).limit(1)
            if self._connection.execute(read).first() is not None:
                msg = (
                    f"sample {row.sample_index} of this model to example {row.example_id} was withdrawn after physicians had read it, so its "
                    "place is not free. Bring the withdrawn import back, or give the model of this file another name"
                )
                raise OverreadError(msg)
            self.update(table, [{"id": row.id, "sample_index": MOVED + row.id}])
            of_row = (hidden.c.table_name == table, hidden.c.row_id == row.id)
            self._connection.execute(update(hidden).where(*of_row).values(as_id=row.sample_index))
        elif table == "criterion":
            self.update(table, [{"id": row.id, "position": -row.id}])
        else:
            name = _PLACES[table][-1] if table == "example" else "model"
            self.update(table, [{"id": row.id, name: getattr(row, name) + away}])

    def insert_only(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows whose numbers nobody asks for."""
        if not rows:
            return
        if table in CONTENT:
            number = number_column(table).name
            if number not in rows[0]:
                self.insert(table, rows)  # the trail asks for their numbers
                return
            written(self._session).content(table, [row[number] for row in rows])
        if table in {"acuity_case", "example_subset", "panel_vote"}:
            for row in rows:
                part = f"{table}:{row['subset']}" if table == "example_subset" else table
                bring(self._session, part, [row["example_id"]], is_known=False)
        if self._is_sqlite:
            self._insert_tuples(TABLES[table], list(rows[0]), (tuple(row.values()) for row in rows))
        else:
            self._connection.execute(insert(TABLES[table]), rows)

    def verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Insert verdicts, each with how it came here and its hash."""
        if self.repeats:
            return
        verdicts = behind_hidden(self._session, verdicts)
        if verdicts and self._is_sqlite:
            last = self._connection.execute(_last_number(VERDICT)).scalar_one()
            tuples = map(msgspec.structs.astuple, verdicts)
            how: dict[str, Any] = {"alike": self._stamp, "hashed": not self.only_checks}
            hashes = self._insert_tuples(TABLES[VERDICT], Verdict.__struct_fields__, tuples, **how)
            if self.only_checks:
                return
            numbers: Sequence[int] = range(last + 1, last + 1 + len(hashes))
        else:
            rows = [verdict_row(verdict, self._stamp) for verdict in verdicts]
            hashes, numbers = [row["row_hash"] for row in rows], self.insert(VERDICT, rows)
        bring(self._session, VERDICT, numbers, is_known=False)
        written(self._session).verdicts.add_all(numbers, hashes)

    def _insert_tuples(
        self,
        target: sa.Table,
        names: Sequence[str],
        rows: Iterable[tuple[Any, ...]],
        *,
        alike: Mapping[str, Any] | None = None,
        hashed: bool = False,
    ) -> list[bytes]:
        """By the driver itself: SQLAlchemy handles every value of every row, which costs more than SQLite's whole insert.

        `alike`: what every row has alike, in further columns. `hashed`: each row gets its hash. Returns the hashes.
        """
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        if alike is not None:
            columns += [(value,) * len(columns[0]) for value in alike.values()]
            names = [*names, *alike]
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
        if hashed:
            for index, name in enumerate(names):
                if isinstance(target.c[name].type, sa.Float):
                    columns[index] = [stored(target.name, name, value) for value in columns[index]]
            order = sorted(range(len(names)), key=names.__getitem__)
            by_name = [names[index] for index in order]
            hashes = hashes_of_columns(by_name, [columns[index] for index in order])
            columns, names = [*columns, hashes], [*names, "row_hash"]
        marks = ", ".join("?" * len(names))
        statement = f"INSERT INTO {target.name} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of our own tables
        self._connection.exec_driver_sql(statement, list(zip(*columns, strict=True)))
        return hashes

    def update(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Change rows of a table that may change; each brings its number and the same columns."""
        if rows:
            target, key = TABLES[table], number_column(table)
            values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in rows[0] if name != key.name}
            statement = update(target).where(key == sa.bindparam(f"new_{key.name}")).values(**values)
            self._connection.execute(statement, [{f"new_{name}": value for name, value in row.items()} for row in rows])
            written(self._session).content(table, [row[key.name] for row in rows])

    def move_criteria(self, positions: Mapping[int, int]) -> None:
        """Give criteria new positions; by way of negative ones, since positions are unique at every step."""
        for sign in (-1, 1):
            self.update("criterion", [{"id": number, "position": sign * place} for number, place in positions.items()])

    def await_index(self, entries: Iterable[tuple[int, Sequence[str]]], *, are_examples: bool = False) -> None:
        """Leave texts for the full-text index: the number of an example, and texts that are searched together."""
        if not self.repeats and not self.only_checks:
            waiting = ((number, body) for number, texts in entries if (body := "\n".join(texts)))
            rows = [{"example_id": number, "body": body, "is_example": are_examples} for number, body in waiting]
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
        """Examples (number, former conversation, new one) get other conversations: responses keep what was sent to them, where it is not the new one."""
        target = TABLES["response"]
        for example_id, former, new in changes:
            of_example = update(target).where(target.c.example_id == example_id)
            kept = of_example.where(target.c.sent_messages.is_(None)).values(sent_messages=former)
            same = of_example.where(target.c.sent_messages == new).values(sent_messages=None)
            for restated in (kept, same):
                numbers = self._connection.execute(restated.returning(target.c.id)).scalars()
                written(self._session).content("response", numbers)


def as_json(values: Iterable[str]) -> str:
    """A list of words as the tables hold it."""
    return json.dumps(list(values), ensure_ascii=False)


# ---------------------------------------------------------------- imports, and the search

BATCH = 500


def begin_import(session: Session, begun: tables.ImportUnderWay | tables.UnfinishedImport) -> None:
    """Say that somebody imports from now on; or what is to be written in parts, in place of the same that was broken off."""
    end_import(session, type(begun))
    session.connection().execute(insert(TABLES[begun.__tablename__]), begun.model_dump())


def note_import(session: Session, *, megabytes: float | None = None) -> None:
    """Say that the import goes on, and how far it is."""
    far = {} if megabytes is None else {"megabytes": megabytes}
    session.connection().execute(update(TABLES["import_under_way"]).values(seen_at=now(), **far))


def end_import(session: Session, begun: type[tables.ImportUnderWay | tables.UnfinishedImport]) -> None:
    """Nobody imports any more; or writes in parts."""
    session.connection().execute(sa.delete(TABLES[begun.__tablename__]))


def note_part(session: Session, *, n_done: int, report: str) -> None:
    """Remember how far the file is in the study, and what came of that."""
    session.connection().execute(update(TABLES["unfinished_import"]).values(n_done=n_done, report=report))
    note_import(session)


def append_part(session: Session, begun: tables.UnfinishedImport, *, n_done: int) -> None:
    """Tell which rows a part wrote; where it wrote none, since all of them were there, nothing is told."""
    if written(session):
        detail = {"source_hash": begun.source_hash, "rows": n_done, "of": begun.n_rows}
        append_event(session, actor=begun.actor, action=PART_IMPORTED, subject=begun.name, detail=detail)


def index_texts(engine: sa.Engine) -> int:
    """Index the texts that wait, each once, in short transactions, so that nobody who saves a verdict waits long. Returns how many it was."""
    pending, example = TABLES["search_pending"], STORED["example"].c
    waiting = sa.select(pending).order_by(pending.c.id).limit(BATCH)
    n_indexed = 0
    while True:
        with reading(engine) as session:
            if session.connection().execute(sa.select(pending.c.id).limit(1)).first() is None:
                break
        with writing(engine) as session:
            rows = session.connection().execute(waiting.with_for_update(skip_locked=True)).all()
            if not rows:  # another process has them in hand
                break
            bulk = Bulk(session)
            bulk.index((row.example_id, [row.body]) for row in rows)
            told = {row.example_id for row in rows if row.is_example}
            conversations = sa.select(example.id, example.messages).where(example.id.in_(told))
            languages = []
            for number, messages in session.connection().execute(conversations):
                said = " ".join(turn["content"] for turn in json.loads(messages) if turn["role"] == "user")
                languages.append({"id": number, "language": language_of(said)})
            bulk.update("example", languages)
            session.connection().execute(sa.delete(pending).where(pending.c.id.in_([row.id for row in rows])))
            n_indexed += len(rows)
    if n_indexed:
        with writing(engine) as session:
            refresh_statistics(session)
    return n_indexed


def refresh_statistics(session: Session) -> None:
    """Let the database look at what has come: PostgreSQL plans with the sizes it last saw, which after an import are none."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("ANALYZE"))


# ---------------------------------------------------------------- the study, its people, and what it has chosen

MAX_GUIDELINE = 100_000
_RATER = STORED["rater"].c
_NAMED = (_RATER[name] == sa.bindparam(name) for name in ("kind", "name", "prompt_version"))
_RATER_NAMED = sa.select(_RATER.id, _RATER.person_id).where(*_NAMED)


def ensure_study(session: Session) -> tables.Study:
    """The study's one row, made at the first call."""
    study = session.get(tables.Study, 1)
    if study is None:
        _inserted(session, tables.Study(key=secrets.token_hex(16)))
        study = session.get_one(tables.Study, 1)
    return study


def _inserted(session: Session, row: SQLModel) -> bool:
    """Insert a row whose name is unique; False where another process was first (on SQLite writers wait for each other)."""
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True


def add_person(
    session: Session,
    name: str,
    *,
    roles: Iterable[str],
    specialties: Iterable[str] = (),
    languages: Iterable[str] = (),
    actor: str,
) -> tables.Person:
    """Add somebody who uses this study."""
    name, specialties, languages = name.strip(), _cleaned(specialties), _cleaned(languages)
    wanted = list(dict.fromkeys(roles))
    unknown = [role for role in wanted if role not in set(Role)]
    if not name or not all(map(is_storable, (name, *specialties, *languages))):
        refuse(f"name, specialties, languages: expected how the person is to be called, in plain text, got {name!r}")
    if unknown or not wanted:
        refuse(f"roles: expected one or more of {', '.join(Role)}, got {', '.join(unknown) or 'nothing'}")
    person = tables.Person(
        name=name,
        roles=json.dumps(wanted),
        specialties=json.dumps(specialties, ensure_ascii=False),
        languages=json.dumps(languages, ensure_ascii=False),
    )
    if not _inserted(session, person):
        refuse(f"{name} is already in this study")
    written(session).content("person", [person.id or 0])
    append_event(session, actor=actor, action="person added", subject=name, detail={"roles": wanted})
    return person


def _cleaned(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in words if word.strip()))


def ensure_rater(session: Session, kind: RaterKind, name: str, *, prompt_version: str = "") -> int:
    """The number of the rater of this name, made at the first call, a reviewer with the person of the same name; by the core, which is quicker than the ORM."""
    connection = session.connection()
    name = first_name(session, "judge", name) if kind is RaterKind.JUDGE else name
    bound = {"kind": kind.value, "name": name, "prompt_version": prompt_version}
    person_id = None
    if kind is RaterKind.REVIEWER:
        person = TABLES["person"].c
        person_id = connection.execute(sa.select(person.id).where(person.name == name)).scalar()
    row = connection.execute(_RATER_NAMED, bound).first()
    if row is None:
        _inserted(session, tables.Rater(kind=kind, name=name, prompt_version=prompt_version, person_id=person_id))
        row = connection.execute(_RATER_NAMED, bound).one()
        written(session).content("rater", [row.id])
    if row.person_id is None and person_id is not None:
        connection.execute(update(STORED["rater"]).where(_RATER.id == row.id).values(person_id=person_id))
    return int(row.id)


def first_name(session: Session, kind: str, name: str) -> str:
    """Under which name a model, judge, data set or evaluation is stored that is called so now, or was once."""
    known, connection = STORED["other_name"].c, session.connection()
    if connection.execute(sa.select(known.id).limit(1)).first() is None:
        return name
    of_kind = sa.select(known.was).where(known.kind == kind, known.now.is_not(None)).order_by(known.id)
    now_called = sa.select(known.now).where(known.kind == kind, known.was == name)
    shown = connection.execute(now_called).scalar() or name
    columns = {"model": STORED["model"].c.name, "judge": _RATER.name, "dataset": STORED["example"].c.dataset}
    column = columns.get(kind, STORED["response"].c.dataset)
    if connection.execute(sa.select(column).where(column == shown).limit(1)).first() is not None:
        return shown
    return connection.execute(of_kind.where(known.now == shown).limit(1)).scalar() or shown


def set_guideline(session: Session, guideline: str, *, actor: str) -> int:
    """Write a new version of what readers are told. Returns its number."""
    if not guideline.strip() or len(guideline) > MAX_GUIDELINE or not is_storable(guideline):
        refuse(f"guideline: expected 1 to {MAX_GUIDELINE:,} characters of plain text, got {len(guideline):,}")
    row = tables.Guideline(text=guideline, created_by=actor, created_at=now())
    session.add(row)
    session.flush()
    written(session).content("guideline", [row.version or 0])
    detail = {"characters": len(guideline)}
    append_event(session, actor=actor, action="guideline changed", subject=f"version {row.version}", detail=detail)
    return row.version or 0


def set_rules(session: Session, rules: Rules, *, actor: str) -> None:
    """Change what the study has chosen; what differs is in the trail."""
    for name, share in (("check_share", rules.check_share), ("control_share", rules.control_share)):
        if not 0 <= share <= 1:
            refuse(f"{name}: expected a share from 0 to 1, got {share}")
    study, wanted = ensure_study(session), msgspec.structs.asdict(rules)
    wanted = {"reading_mode": wanted.pop("mode").value, **wanted}
    changed = {name: value for name, value in wanted.items() if getattr(study, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(study, name, value)
        session.add(study)
        append_event(session, actor=actor, action="rules changed", subject="study", detail=changed)


def state_analysis(session: Session, spec: Analysis, *, actor: str, at: datetime | None = None) -> int | None:
    """State what is analysed from now on, with the number of blind first reads that exist already (`at`: then, of an invented study).

    Returns the version; None where nothing changes.
    """
    rows, connection = TABLES["analysis"], session.connection()

    def names(column: object, *conditions: object) -> list[str]:
        return sorted(connection.execute(sa.select(column).distinct().where(*conditions)).scalars())  # type: ignore[call-overload]

    session.flush()
    analysis.check(
        spec,
        evaluations=names(tables.Response.dataset),
        judges=names(tables.Rater.name, tables.Rater.kind == RaterKind.JUDGE),
        subsets=names(tables.ExampleSubset.subset),
        models=names(tables.Model.name),
    )
    last = connection.execute(sa.select(rows.c.version, rows.c.text).order_by(rows.c.version.desc()).limit(1)).first()
    before = analysis.of_json(last.text) if last else Analysis()
    if before == spec:
        return None
    reads = sa.select(sa.func.count()).select_from(VerdictRow).join(tables.Rater)  # also those taken back since
    reads = reads.where(col(tables.Rater.kind) == RaterKind.REVIEWER, col(VerdictRow.stage) == Stage.FIRST)
    reads = reads.where(col(VerdictRow.supersedes).is_(None), col(VerdictRow.blinded).is_not(False))
    version, n_reads = (last.version if last else 0) + 1, int(connection.execute(reads).scalar_one())
    row = {"version": version, "text": analysis.to_json(spec), "stated_by": actor, "stated_at": at or now()}
    connection.execute(insert(rows), [{**row, "n_reads_before": n_reads}])
    written(session).content("analysis", [version])
    changed = {name: value for name, value in asdict(spec).items() if getattr(before, name) != value}
    detail = {**changed, "reads_before": n_reads}
    append_event(session, actor=actor, action="analysis stated", subject=f"version {version}", detail=detail)
    return version


def set_families(session: Session, table: families.Table, *, actor: str) -> bool:
    """Write the table whole, in its order; an empty one brings the table of Overread back. Returns whether anything changed."""
    given = [(f"row {number}", *row) for number, row in enumerate(table, start=1)]
    wanted = families.check(given, "the table of families") if given else []
    for place, pattern, family in given:
        if not (is_storable(pattern) and is_storable(family)):
            refuse(f"{place}: expected plain text, got {pattern!r}")
    rows, connection = TABLES["model_family"], session.connection()
    before = connection.execute(sa.select(rows.c.pattern, rows.c.family).order_by(rows.c.place)).all()
    if [tuple(row) for row in before] == wanted:
        return False
    connection.execute(sa.delete(rows))
    numbered = [{"place": place, "pattern": row[0], "family": row[1]} for place, row in enumerate(wanted, start=1)]
    if numbered:
        connection.execute(insert(rows), numbered)
    subject = f"{len(wanted)} patterns" if wanted else "the table of Overread"
    detail = {"families": [f"{pattern} = {family}" for pattern, family in wanted]}
    append_event(session, actor=actor, action="families set", subject=subject, detail=detail)
    return True


def set_mapping(session: Session, name: str, mapping: str, *, actor: str) -> bool:
    """Keep a mapping of columns, as YAML, in place of the one that had its name. Returns whether anything changed."""
    rows, connection = TABLES["column_mapping"], session.connection()
    if connection.execute(sa.select(rows.c.text).where(rows.c.name == name)).scalar() == mapping:
        return False
    connection.execute(sa.delete(rows).where(rows.c.name == name))
    connection.execute(insert(rows), [{"name": name, "text": mapping, "kept_by": actor, "kept_at": now()}])
    append_event(session, actor=actor, action="mapping kept", subject=f"mapping {name}", detail={"text": mapping})
    return True
