"""What a later file adds to cases of triage that are here already."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, update
from sqlmodel import Session

from evalcore.study.store.written import written
from evalcore.study.tables import TABLES


def complete_cases(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Give cases the gold and the method that they came without; the import appends the one audit event for all of them.

    Args:
        session: The writing transaction.
        rows: example_id, gold, method.
    """
    if rows:
        table = TABLES["acuity_case"]
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in ("gold", "method")}
        statement = update(table).where(table.c.example_id == bindparam("of_example")).values(**values)
        given = [
            {"of_example": row["example_id"], "new_gold": row["gold"], "new_method": row["method"]} for row in rows
        ]
        session.connection().execute(statement, given)
        written(session).content("acuity_case", [row["example_id"] for row in rows])
