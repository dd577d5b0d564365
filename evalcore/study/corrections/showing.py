"""What a study shows where something of it was withdrawn, marked as broken, renamed or merged: the one place that every SELECT passes.

A transaction looks first which of these there are; in an ordinary study none, and nothing else happens. Else its connection gets a compiler of its own,
which writes into each SELECT, in the place of a table, those of its rows that are shown, by the names that they have now. So no query knows of it, by the
ORM or not. What writes (INSERT, UPDATE, DELETE), the driver's own SQL, and what is selected from `STORED` meet every row as it is stored.
"""

from copy import copy
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, TableClause
from sqlmodel import SQLModel

from evalcore.study.tables import TABLES

HIDDEN, NAMES, MERGED = "hidden_row", "other_name", "same_as"
"""The tables that say what is shown; each counts where it has a row."""
WITHDRAWN = "withdrawn"
"""Stands for `HIDDEN` where broken responses are shown: only what was withdrawn is not."""
SHOWS = "shows"
"""The execution option of connections that show a study: `HIDDEN`, or `WITHDRAWN`."""
_LOOK = "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table})" for table in (HIDDEN, NAMES, MERGED))  # noqa: S608 - our own words


def _hidden(table: str, column: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM hidden_row AS h WHERE h.table_name = {table} AND h.row_id = stored.{column})"  # noqa: S608 - our own words


def _rows(*columns: str) -> tuple[str, ...]:
    return tuple(_hidden(f"'{column.removesuffix('_id')}'", column) for column in columns)


_OF_TASK = (
    "NOT EXISTS (SELECT 1 FROM task JOIN hidden_row AS h ON (h.table_name = 'response' AND h.row_id = task.response_id) "
    "OR (h.table_name = 'example' AND h.row_id = task.example_id) WHERE task.id = stored.task_id)"
)
_SHOWN: dict[str, tuple[str, ...]] = {
    "example": (_hidden("'example'", "id"),),
    "example_subset": (*_rows("example_id"), _hidden("'example_subset:' || stored.subset", "example_id")),
    "criterion": (_hidden("'criterion'", "id"), *_rows("example_id")),
    "response": (_hidden("'response'", "id"), *_rows("example_id")),
    "verdict": (_hidden("'verdict'", "id"), *_rows("response_id", "criterion_id", "example_id")),
    "acuity_case": (_hidden("'acuity_case'", "example_id"), *_rows("example_id")),
    "panel_vote": (_hidden("'panel_vote'", "example_id"), *_rows("example_id")),
    "published_matrix": (_hidden("'published_matrix'", "id"),),
    "model": (_hidden("'model'", "id"),),
    "rater": (_hidden("'rater'", "id"),),
    "search_entry": _rows("example_id"),
    "suspect_response": _rows("response_id"),
    "task": _rows("response_id", "example_id"),
    "reading": (_OF_TASK,),
    "response_note": (_OF_TASK,),
    "assignment": (_hidden("'assignment'", "id"),),
    "run_question": _rows("response_id", "criterion_id", "example_id"),
}
"""When a row of these tables is shown. What stands on a hidden row is hidden with it, also what is written later."""
_BEFORE = (
    "CASE WHEN stored.supersedes IS NULL OR NOT EXISTS (SELECT 1 FROM hidden_row AS h WHERE h.table_name = 'verdict' "
    "AND h.row_id = stored.supersedes) THEN stored.supersedes "
    "ELSE (SELECT h.as_id FROM hidden_row AS h WHERE h.table_name = 'verdict' AND h.row_id = stored.supersedes) END"
)
"""A verdict takes the place of the shown one behind those that are hidden."""


def _name(kind: str, column: str) -> str:
    name = f"SELECT o.now FROM other_name AS o WHERE o.kind = {kind} AND o.was = stored.{column}"  # noqa: S608 - our own words
    return f"coalesce(({name}), stored.{column})"


def _same(table: str, column: str) -> str:
    same = f"SELECT s.as_id FROM same_as AS s WHERE s.table_name = '{table}' AND s.row_id = stored.{column}"  # noqa: S608 - our own words
    return f"coalesce(({same}), stored.{column})"


_CHANGED: dict[str, dict[str, dict[str, str]]] = {
    HIDDEN: {"verdict": {"supersedes": _BEFORE}},
    WITHDRAWN: {"verdict": {"supersedes": _BEFORE}},
    NAMES: {
        "example": {"dataset": _name("'dataset'", "dataset")},
        "response": {"dataset": _name("'evaluation'", "dataset")},
        "model": {"name": _name("'model'", "name")},
        "published_matrix": {"model": _name("'model'", "model")},
        "rater": {"name": _name("CASE WHEN stored.kind = 'judge' THEN 'judge' END", "name")},
        "assignment": {"judge": _name("'judge'", "judge")},
        "reading": {"judge": _name("'judge'", "judge")},
        "study": {"judge": _name("'judge'", "judge")},
        "judge_confidence": {"judge": _name("'judge'", "judge")},
        "run": {"name": _name("CASE WHEN stored.kind = 'judge' THEN 'judge' ELSE 'model' END", "name")},
    },
    MERGED: {"response": {"model_id": _same("model", "model_id")}, "verdict": {"rater_id": _same("rater", "rater_id")}},
}
_LEFT: dict[str, dict[str, tuple[str, ...]]] = {
    HIDDEN: _SHOWN,
    WITHDRAWN: {
        table: tuple(condition.replace("h.row_id =", "NOT h.is_broken AND h.row_id =") for condition in conditions)
        for table, conditions in _SHOWN.items()
    },
    NAMES: {
        "judge_confidence": (
            "NOT EXISTS (SELECT 1 FROM other_name AS o JOIN judge_confidence AS c ON c.judge = o.now WHERE o.kind = 'judge' AND o.was = stored.judge)",
        )
    },
    MERGED: {
        table: (f"NOT EXISTS (SELECT 1 FROM same_as AS s WHERE s.table_name = '{table}' AND s.row_id = stored.id)",)  # noqa: S608 - our own words
        for table in ("model", "rater")
    },
}


def shown(table: str, *parts: str, alias: str = "") -> str:
    """The rows of a table that are shown, as SQL to select from, by its name or another one."""
    return f"{_shown(table, frozenset(parts)) or table} AS {alias or table}"


@cache
def _shown(table: str, parts: frozenset[str]) -> str | None:
    """The rows of a table that are shown, as SQL in its place; None: all of them as they are."""
    changed = {column: sql for part in sorted(parts) for column, sql in _CHANGED[part].get(table, {}).items()}
    conditions = [condition for part in sorted(parts) for condition in _LEFT[part].get(table, ())]
    if not changed and not conditions:
        return None
    names = [column.name for column in TABLES[table].c]
    columns = ", ".join(f"{changed.get(name, f'stored.{name}')} AS {name}" for name in names)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"(SELECT {columns} FROM {table} AS stored{where})"  # noqa: S608 - our own words


@cache
def _kind(of: Any, parts: frozenset[str]) -> type[Dialect]:
    class Compiler(of.statement_compiler):  # type: ignore[misc]
        def visit_table(self, table: Any, asfrom: bool = False, iscrud: bool = False, **named: Any) -> str:  # noqa: FBT001, FBT002 - SQLAlchemy's signature
            written: str = super().visit_table(table, asfrom=asfrom, iscrud=iscrud, **named)
            if not asfrom or iscrud or table.metadata is not SQLModel.metadata:
                return written
            rows = _shown(table.name, parts)
            if rows is None:
                return written
            alias = named.get("enclosing_alias")  # of the table itself, or of a query around it
            return rows if isinstance(getattr(alias, "element", None), TableClause) else f"{rows} AS {written}"

        def group_by_clause(self, select: Any, **named: Any) -> str:
            """With what depends on a number that is grouped by: of a table PostgreSQL knows that, of the rows in its place it does not."""
            grouped = set(select._group_by_clauses)  # noqa: SLF001 - there is no other way to it
            whole = {getattr(column, "table", None) for column in grouped if getattr(column, "primary_key", False)}
            columns = (*select.exported_columns, *select._order_by_clauses)  # noqa: SLF001 - the same
            further = [one for one in columns if getattr(one, "table", None) in whole and one not in grouped]
            return str(super().group_by_clause(select.group_by(*further) if further else select, **named))

    return type(of.__name__, (of,), {"statement_compiler": Compiler, "supports_statement_cache": True})


@lru_cache(maxsize=64)
def _dialect(of: Dialect, parts: frozenset[str]) -> Dialect:
    made = copy(of)
    kind: Any = type(of)
    made.__class__ = _kind(kind, parts)
    made.statement_compiler = made.__class__.statement_compiler
    return made


def begin(connection: Connection) -> None:
    """At the start of a transaction: look what is to be shown, and have the connection show that."""
    if found := parts(connection):
        connection.dialect = _dialect(connection.dialect, found)


def parts(connection: Connection) -> frozenset[str]:
    """What of `HIDDEN` (or `WITHDRAWN`), `NAMES` and `MERGED` changes what a connection shows; nothing of it where it shows every row."""
    shows = connection.get_execution_options().get(SHOWS)
    if not shows:
        return frozenset()
    found = zip((shows, NAMES, MERGED), connection.exec_driver_sql(_LOOK).one(), strict=True)
    return frozenset(part for part, is_there in found if is_there)


def hides(connection: Connection) -> bool:
    """Whether rows are hidden from this connection's SELECTs."""
    return bool(connection.exec_driver_sql("SELECT EXISTS (SELECT 1 FROM hidden_row)").scalar())
