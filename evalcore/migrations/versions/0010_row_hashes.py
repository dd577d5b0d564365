"""A hash a row: of verdicts in the row, of what they rest on in a table of its own; and what was read cannot be changed.

What is here already is hashed as it stands, and an event says that nothing vouched for it until now.
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from evalcore.row_hashes import CONTENT, LEDGER, VERDICT, Digest, ledger_row, row_hash

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

BATCH = 5_000
NUMBERED = {"acuity_case": "example_id", "analysis": "version", "guideline": "version"}
NOTE = "the rows that were here before this version; nothing vouched for them until now"
IS_READ = {
    "criterion": "SELECT 1 FROM response JOIN verdict ON verdict.response_id = response.id "
    "WHERE response.example_id = OLD.example_id AND verdict.criterion_id = OLD.id AND verdict.stage <> 'judge'",
    "response": "SELECT 1 FROM verdict WHERE response_id = OLD.id AND stage <> 'judge'",
    "task": "SELECT 1 FROM reading WHERE task_id = OLD.id AND locked_at IS NOT NULL",
}
# What may never change, and what only where it was nothing.
FIXED = {
    "criterion": ("id", "example_id"),
    "response": ("id", "example_id", "model_id", "dataset", "sample_index"),
    "task": ("id", "assignment_id", "example_id", "response_id", "place", "inclusion_probability"),
    "reading": ("id", "task_id", "person_id", "blinded", "opened_at", "locked_at", "guideline_version", "judge"),
}
FILLED = {"criterion": ("points",), "response": (), "task": (), "reading": ("control_seed", "control_share")}


def upgrade() -> None:
    op.add_column("verdict", sa.Column("row_hash", sa.LargeBinary(), nullable=True))
    op.create_table(
        LEDGER,
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("table_name", sa.String(), nullable=False),
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_row_hash_row", LEDGER, ["table_name", "row_id"])
    connection = op.get_bind()
    wrote = {VERDICT: hash_verdicts(connection), LEDGER: hash_content(connection)}
    told = {table: digest.told() for table, digest in wrote.items() if digest.n_rows}
    if told:
        append_event(connection, {"note": NOTE, "verdicts": wrote[VERDICT].n_rows, "wrote": told})
    if connection.dialect.name == "sqlite":
        guard_sqlite()
    else:
        guard_postgresql()


def hash_verdicts(connection: sa.Connection) -> Digest:
    """Give every verdict its hash; for that alone the trigger is put aside, within this transaction."""
    sqlite, digest = connection.dialect.name == "sqlite", Digest()
    kept = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'verdict_no_update'"
    trigger = connection.execute(sa.text(kept)).scalar_one() if sqlite else ""
    op.execute(
        "DROP TRIGGER verdict_no_update" if sqlite else "ALTER TABLE verdict DISABLE TRIGGER verdict_append_only"
    )
    names = sorted({column["name"] for column in sa.inspect(connection).get_columns("verdict")} - {"id", "row_hash"})
    change = sa.text("UPDATE verdict SET row_hash = :hash WHERE id = :number")
    for rows in batches(connection, "verdict", "id", names):
        added = []
        for number, *values in rows:
            content = row_hash(names, map(stored, values))
            digest.add(number, content)
            added.append({"hash": content, "number": number})
        connection.execute(change, added)
    op.execute(trigger or "ALTER TABLE verdict ENABLE TRIGGER verdict_append_only")
    return digest


def hash_content(connection: sa.Connection) -> Digest:
    """Append the hash of every row that verdicts rest on."""
    digest, place = Digest(), 0
    add = sa.text("INSERT INTO row_hash (id, table_name, row_id, hash) VALUES (:id, :table_name, :row_id, :hash)")
    for table in sorted(CONTENT):
        names = sorted(CONTENT[table])
        for rows in batches(connection, table, NUMBERED.get(table, "id"), names):
            added = []
            for place, (number, *values) in enumerate(rows, start=place + 1):  # noqa: B020 - goes on from batch to batch
                content = row_hash(names, map(stored, values))
                digest.add(place, ledger_row(table, number, content))
                added.append({"id": place, "table_name": table, "row_id": number, "hash": content})
            connection.execute(add, added)
    return digest


def batches(connection: sa.Connection, table: str, number: str, names: list[str]) -> Iterator[list[Any]]:
    """Rows by their number, some at a time, with what the driver itself gives."""
    said, last = ", ".join((number, *names)), -(2**31)
    some = sa.text(f"SELECT {said} FROM {table} WHERE {number} > :last ORDER BY {number} LIMIT {BATCH}")  # noqa: S608 - our own words
    while rows := connection.execute(some, {"last": last}).all():
        yield list(rows)
        last = rows[-1][0]


def stored(value: Any) -> Any:
    """A value as SQLite stores it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, float):
        return value + 0.0
    return int(value) if isinstance(value, bool) else value


def append_event(connection: sa.Connection, detail: dict[str, Any]) -> None:
    """The event of this migration, in the chain."""
    event = sa.table("audit_event", *(sa.column(name) for name in ("id", "actor", "action", "subject", "detail", "previous_hash", "hash")),
                     sa.column("at", sa.DateTime(timezone=True)))  # fmt: skip
    last = connection.execute(sa.select(event.c.hash).order_by(event.c.id.desc()).limit(1)).scalar() or "0" * 64
    at = datetime.now(tz=UTC)
    said = {"actor": "Overread", "action": "hashes added", "subject": "study", "detail": json.dumps(detail)}
    parts = [last, at.isoformat(), *said.values()]
    own = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
    stored_at = at.replace(tzinfo=None) if connection.dialect.name == "sqlite" else at
    connection.execute(sa.insert(event), {**said, "at": stored_at, "previous_hash": last, "hash": own})


def guard_sqlite() -> None:
    """RAISE(ABORT) where a row of the trail, a guideline, or what somebody has read would be changed or removed."""
    for table, number in (("row_hash", "id"), ("guideline", "version")):
        for act in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{act.lower()} BEFORE {act} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only: {act} refused'); END"
            )
        present = f"SELECT 1 FROM {table} WHERE {number} = NEW.{number}"  # noqa: S608 - our own words
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS ({present}) "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only: this row is there already'); END"
        )
    for table in FIXED:
        read = f"EXISTS ({IS_READ[table]})" if table in IS_READ else "OLD.locked_at IS NOT NULL"
        for act, when in (("UPDATE", f"({differs(table, 'IS NOT')}) AND {read}"), ("DELETE", read)):
            op.execute(
                f"CREATE TRIGGER {table}_read_no_{act.lower()} BEFORE {act} ON {table} WHEN {when} "
                f"BEGIN SELECT RAISE(ABORT, '{table} was read: {act} refused'); END"
            )


def guard_postgresql() -> None:
    """The same by functions, whose text says when."""
    for table in ("row_hash", "guideline"):
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )
    for table in FIXED:
        read = f"EXISTS ({IS_READ[table]})" if table in IS_READ else "OLD.locked_at IS NOT NULL"
        op.execute(
            f"CREATE FUNCTION refuse_change_of_read_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF TG_OP = 'UPDATE' THEN IF ({differs(table, 'IS DISTINCT FROM')}) AND {read} "
            f"THEN RAISE EXCEPTION '{table} was read: UPDATE refused'; END IF; RETURN NEW; END IF; "
            f"IF {read} THEN RAISE EXCEPTION '{table} was read: DELETE refused'; END IF; RETURN OLD; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {table}_read BEFORE UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION refuse_change_of_read_{table}()"
        )


def differs(table: str, unlike: str) -> str:
    """Whether an update changes what may not change."""
    parts = [f"OLD.{name} {unlike} NEW.{name}" for name in FIXED[table]]
    parts += [f"OLD.{name} IS NOT NULL AND OLD.{name} {unlike} NEW.{name}" for name in FILLED[table]]
    if (
        table == "criterion"
    ):  # known from results alone, without points, it takes the wording of the rubric when that comes
        parts.append(f"OLD.points IS NOT NULL AND OLD.text {unlike} NEW.text")
    if table == "response":  # the level of an answer may have come before its text
        parts.append(f"OLD.text <> '' AND OLD.text {unlike} NEW.text")
    return " OR ".join(parts)
