"""The triggers that guard what was said: their only text, from which a database has them and with which `audit verify` compares its own."""

import re
from collections.abc import Mapping

from sqlalchemy import Connection, Engine, inspect

from evalcore.errors import refuse

APPEND_ONLY: Mapping[str, tuple[str, ...]] = {
    "analysis": ("version = NEW.version",),
    "audit_event": ("id = NEW.id", "previous_hash = NEW.previous_hash", "hash = NEW.hash"),
    "exposure": (
        "id = NEW.id",
        "person_id = NEW.person_id AND coalesce(example_id, 0) = coalesce(NEW.example_id, 0) "
        "AND what = NEW.what AND coalesce(through, 0) = coalesce(NEW.through, 0)",
    ),
    "guideline": ("version = NEW.version",),
    "response_note": ("id = NEW.id",),
    "row_hash": ("id = NEW.id",),
    "verdict": (
        "id = NEW.id",
        "supersedes = NEW.supersedes",
        "response_id = NEW.response_id AND criterion_id = NEW.criterion_id AND rater_id = NEW.rater_id "
        "AND stage = NEW.stage AND coalesce(supersedes, 0) = coalesce(NEW.supersedes, 0)",
        "criterion_id IS NULL AND NEW.criterion_id IS NULL AND example_id = NEW.example_id "
        "AND coalesce(response_id, 0) = coalesce(NEW.response_id, 0) AND rater_id = NEW.rater_id "
        "AND stage = NEW.stage AND coalesce(supersedes, 0) = coalesce(NEW.supersedes, 0)",
    ),
}
"""Each with what finds a row that is there already. SQLite's REPLACE deletes it without asking the DELETE trigger, unless the connection
says `PRAGMA recursive_triggers`: ours do, a bare SQLite shell does not."""
WAS_READ: Mapping[str, str] = {
    "criterion": "EXISTS (SELECT 1 FROM response JOIN verdict ON verdict.response_id = response.id "
    "WHERE response.example_id = OLD.example_id AND verdict.criterion_id = OLD.id AND verdict.stage <> 'judge')",
    "reading": "OLD.locked_at IS NOT NULL",
    "response": "EXISTS (SELECT 1 FROM verdict WHERE response_id = OLD.id AND stage <> 'judge')",
    "task": "EXISTS (SELECT 1 FROM reading WHERE task_id = OLD.id AND locked_at IS NOT NULL)",
}
"""When a row of these was read, and from then on stays."""
FIXED: Mapping[str, tuple[str, ...]] = {
    "criterion": ("id", "example_id"),
    "reading": ("id", "task_id", "person_id", "blinded", "opened_at", "locked_at", "guideline_version", "judge"),
    "response": ("id", "example_id", "model_id", "dataset", "sample_index"),
    "task": ("id", "assignment_id", "example_id", "response_id", "place", "inclusion_probability"),
}
FILLED: Mapping[str, Mapping[str, str]] = {
    "criterion": {"points": "points IS NOT NULL", "text": "points IS NOT NULL"},
    "reading": {"control_seed": "control_seed IS NOT NULL", "control_share": "control_share IS NOT NULL"},
    "response": {"text": "text <> ''"},
}
"""The columns that may be filled, and when they are: a rubric may come after results on it, the text of an answer after its level."""
_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+) .*? ON (\w+) ")
_PROCEDURE = re.compile(r"EXECUTE FUNCTION (\w+)\(\)$")


def texts(dialect: str) -> dict[str, str]:
    """The text of every trigger by its name, as the database gives it back; on PostgreSQL with its function's after a colon."""
    return _sqlite() if dialect == "sqlite" else _postgresql()


def renew(connection: Connection) -> None:
    """Take every trigger away and make them all: after the tables were made or changed."""
    if connection.dialect.name == "sqlite":
        for (name,) in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").all():
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
        for text in _sqlite().values():
            connection.exec_driver_sql(text)
        return
    there = (
        "SELECT tgname, relname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace"
    )
    for name, table in connection.exec_driver_sql(there).all():
        connection.exec_driver_sql(f"DROP TRIGGER {name} ON {table}")
    for text in _postgresql().values():
        trigger, source = text.split(": ", 1)
        (function,) = _PROCEDURE.findall(trigger)
        header = f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ {source} $$"
        connection.exec_driver_sql(header.replace("%", "%%"))
        connection.exec_driver_sql(trigger)
        name, table = _TRIGGER.findall(trigger)[0]
        # also for who copies as a replica does
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def _sqlite() -> dict[str, str]:
    made: dict[str, str] = {}
    for table, there in APPEND_ONLY.items():
        for act in ("UPDATE", "DELETE"):
            made[f"{table}_no_{act.lower()}"] = (
                f"BEFORE {act} ON {table} BEGIN SELECT RAISE(ABORT, '{table} is append-only: {act} refused'); END"
            )
        present = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE {row})" for row in there)  # noqa: S608 - our own words
        made[f"{table}_no_replace"] = (
            f"BEFORE INSERT ON {table} WHEN {present} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only: this row is there already'); END"
        )
    for table, read in WAS_READ.items():
        for act, when in (("UPDATE", f"({_differs(table, 'IS NOT')}) AND {read}"), ("DELETE", read)):
            made[f"{table}_read_no_{act.lower()}"] = (
                f"BEFORE {act} ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, '{table} was read: {act} refused'); END"
            )
    return {name: f"CREATE TRIGGER {name} {text}" for name, text in made.items()}


def _postgresql() -> dict[str, str]:
    made = {
        f"{table}_append_only": f"BEFORE DELETE OR UPDATE OR TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change(): "
        "BEGIN RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP; END"
        for table in APPEND_ONLY
    }
    for table, read in WAS_READ.items():
        made[f"{table}_read"] = (
            f"BEFORE DELETE OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_change_of_read_{table}(): BEGIN "
            f"IF TG_OP = 'UPDATE' THEN IF ({_differs(table, 'IS DISTINCT FROM')}) AND {read} "
            f"THEN RAISE EXCEPTION '{table} was read: UPDATE refused'; END IF; RETURN NEW; END IF; "
            f"IF {read} THEN RAISE EXCEPTION '{table} was read: DELETE refused'; END IF; RETURN OLD; END"
        )
    return {name: f"CREATE TRIGGER {name} {text}" for name, text in made.items()}


def _differs(table: str, unlike: str) -> str:
    parts = [f"OLD.{name} {unlike} NEW.{name}" for name in FIXED[table]]
    parts += [f"OLD.{filled} AND OLD.{name} {unlike} NEW.{name}" for name, filled in FILLED.get(table, {}).items()]
    return " OR ".join(parts)


READ_ONLY_TABLES = frozenset({"alembic_version"})


def grant(engine: Engine, role: str) -> None:
    """Give a role what the program needs of a study's tables, and take all else away. By their owner; again after each migration."""
    if engine.dialect.name != "postgresql":
        refuse("--app-role: expected a study in PostgreSQL, got SQLite, which has no roles")
    with engine.begin() as connection:
        known = connection.exec_driver_sql("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (role,)).scalar()
        owner = connection.exec_driver_sql("SELECT current_user").scalar_one()
        wrong = {None: "there is none of this name", True: "it may do everything"}.get(known, "it owns the tables")
        if known is not False or role == owner:
            refuse(f"--app-role: expected a role of PostgreSQL without rights of its own, got {role[:60]!r}: {wrong}")
        schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
        quote = connection.dialect.identifier_preparer.quote
        who, where = quote(role), quote(schema)
        statements = [
            f"GRANT USAGE ON SCHEMA {where} TO {who}",
            f"REVOKE CREATE ON SCHEMA {where} FROM {who}, PUBLIC",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {where} TO {who}",
        ]
        for table in inspect(connection).get_table_names():
            acts = "SELECT" if table in READ_ONLY_TABLES else "SELECT, INSERT"
            if table not in READ_ONLY_TABLES | APPEND_ONLY.keys():
                acts += ", UPDATE, DELETE"
            statements += [
                f"REVOKE ALL ON {where}.{quote(table)} FROM {who}",
                f"GRANT {acts} ON {where}.{quote(table)} TO {who}",
            ]
        for statement in statements:
            connection.exec_driver_sql(statement)
