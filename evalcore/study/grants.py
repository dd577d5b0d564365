"""What the role of a running server may do in PostgreSQL: add to what is append-only, and no more; the tables are another role's."""

from sqlalchemy import Engine, inspect

from evalcore.errors import OverreadError
from evalcore.study.triggers import APPEND_ONLY

READ_ONLY_TABLES = frozenset({"alembic_version"})


def grant(engine: Engine, role: str) -> None:
    """Give a role what the program needs of a study's tables, and take all else away. By their owner; again after each migration.

    Raises:
        OverreadError: The database is SQLite, there is no such role, or it owns the tables itself.
    """
    if engine.dialect.name != "postgresql":
        msg = "--app-role: expected a study in PostgreSQL, got SQLite, which has no roles"
        raise OverreadError(msg)
    with engine.begin() as connection:
        known = connection.exec_driver_sql("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (role,)).scalar()
        owner = connection.exec_driver_sql("SELECT current_user").scalar_one()
        if known is None or known or role == owner:
            wrong = (
                "there is none of this name"
                if known is None
                else "it may do everything"
                if known
                else "it owns the tables"
            )
            msg = f"--app-role: expected a role of PostgreSQL without rights of its own, got {role[:60]!r}: {wrong}"
            raise OverreadError(msg)
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
