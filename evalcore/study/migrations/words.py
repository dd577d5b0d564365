"""Tables in few words, for the migrations."""

from typing import Any

import sqlalchemy as sa
from alembic import op

KINDS: dict[str, Any] = {
    "int": sa.Integer, "text": sa.Text, "float": sa.Float, "bool": sa.Boolean, "bytes": sa.LargeBinary,
    "time": sa.DateTime(timezone=True),
}  # fmt: skip
DEFAULTS = {"": None, "true": sa.true(), "false": sa.false()}


def columns(spec: str) -> list[sa.Column[Any]]:
    """Columns from words: `name [kind, else a string] [of table.column] [key] [null] [unique] [= default]`, divided by commas."""
    made = []
    for part in spec.split(", "):
        said, _, default = part.partition(" = ")
        name, *words = said.split()
        refers_to = [sa.ForeignKey(words[words.index("of") + 1])] if "of" in words else []
        kind = next((KINDS[word] for word in words if word in KINDS), sa.String)
        marks: dict[str, Any] = {"primary_key": "key" in words, "nullable": "null" in words}
        marks |= {"unique": "unique" in words or None, "server_default": DEFAULTS.get(default, default)}
        made.append(sa.Column(name, kind, *refers_to, **marks))
    return made


def table(name: str, spec: str, *constraints: Any) -> sa.Table:
    """A table of these columns."""
    return op.create_table(name, *columns(spec), *constraints)


def numbered(name: str, spec: str, *constraints: Any, **more: Any) -> sa.Table:
    """A table whose rows have a number."""
    return op.create_table(name, *columns(f"id int key, {spec}"), *constraints, **more)


def add(name: str, spec: str) -> None:
    """More columns of a table."""
    for column in columns(spec):
        op.add_column(name, column)


def index(name: str, on: str, parts: str, *, unique: bool = False, where: str | None = None) -> None:
    """An index over columns and SQL of them, divided by commas; `where`: over some rows."""
    condition = None if where is None else sa.text(where)
    op.create_index(name, on, [sa.text(parts)], unique=unique, sqlite_where=condition, postgresql_where=condition)
