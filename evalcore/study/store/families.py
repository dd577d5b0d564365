"""The study's own table of families of models."""

from sqlalchemy import delete, insert, select
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.study import families
from evalcore.study.store.events import append_event
from evalcore.study.store.plain_text import is_storable
from evalcore.study.tables import TABLES


def set_families(session: Session, table: families.Table, *, actor: str) -> bool:
    """Write the table whole, in its order; an empty one brings the table of Overread back. Returns whether anything changed.

    Raises:
        OverreadError: A row is not as `families.check` wants it.
    """
    given = [(f"row {number}", *row) for number, row in enumerate(table, start=1)]
    wanted = families.check(given, "the table of families") if given else []
    for place, pattern, family in given:
        if not (is_storable(pattern) and is_storable(family)):
            msg = f"{place}: expected plain text, got {pattern!r}"
            raise OverreadError(msg)
    rows, connection = TABLES["model_family"], session.connection()
    before = connection.execute(select(rows.c.pattern, rows.c.family).order_by(rows.c.place)).all()
    if [tuple(row) for row in before] == wanted:
        return False
    connection.execute(delete(rows))
    if wanted:
        numbered = enumerate(wanted, start=1)
        connection.execute(
            insert(rows),
            [{"place": place, "pattern": pattern, "family": family} for place, (pattern, family) in numbered],
        )
    append_event(
        session,
        actor=actor,
        action="families set",
        subject=f"{len(wanted)} patterns" if wanted else "the table of Overread",
        detail={"families": [f"{pattern} = {family}" for pattern, family in wanted]},
    )
    return True
