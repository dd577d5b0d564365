"""The table of families in force."""

from sqlalchemy import select
from sqlmodel import Session

from evalcore.study import families
from evalcore.study.tables import TABLES


def own_table(session: Session) -> list[tuple[str, str]]:
    """The study's own pairs of pattern and family, in their order; empty where it has not written one."""
    rows = TABLES["model_family"]
    found = session.connection().execute(select(rows.c.pattern, rows.c.family).order_by(rows.c.place))
    return [(row.pattern, row.family) for row in found]


def table(session: Session) -> list[tuple[str, str]]:
    """The study's own table, else the one that comes with Overread."""
    return own_table(session) or families.default()
