"""Who saw others' verdicts on what: written the first time, never changed."""

from collections.abc import Collection

from sqlalchemy import ColumnElement, exists, func, insert, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlmodel import Session, col

from evalcore.study.schema import Seen
from evalcore.study.store import written
from evalcore.study.tables import TABLES, Example, Exposure, now

MANY = 500
"""With more examples than this all of a person's are read: a database takes only so many bound numbers."""


def add_exposures(session: Session, person_id: int, what: Seen, examples: Collection[int] | None) -> int:
    """Remember that somebody sees others' verdicts. Returns how many rows that took: none where all is known already.

    Where it is not 0 an event has to follow in the transaction, which vouches for the rows.

    Args:
        examples: Numbers of the examples; None: of every example that is there now (for those who are released: later ones too), as one row.
    """
    missing = unseen(session, person_id, what, examples)
    if missing:
        at, through = now(), _through(session, what) if examples is None else None
        rows = [
            {"person_id": person_id, "example_id": number, "through": through, "what": what, "at": at}
            for number in missing
        ]
        table = TABLES["exposure"]
        is_sqlite = session.get_bind().dialect.name == "sqlite"  # there the write lock keeps a second tab out
        statement = insert(table) if is_sqlite else insert_postgresql(table).on_conflict_do_nothing()
        made = session.connection().execute(statement.returning(table.c.id), rows)
        written(session).content("exposure", made.scalars())
    return len(missing)


def unseen(session: Session, person_id: int, what: Seen, examples: Collection[int] | None) -> list[int | None]:
    """Those of some examples (None: all as one) of which it is not known yet that somebody saw verdicts on them in this way."""
    of_person: list[ColumnElement[bool]] = [col(Exposure.person_id) == person_id, col(Exposure.what) == what]
    number = func.coalesce(col(Exposure.example_id), 0)
    if examples is None:
        through = func.coalesce(col(Exposure.through), 0) == (_through(session, what) or 0)
        is_known = session.connection().execute(select(exists().where(*of_person, number == 0, through))).scalar_one()
        return [] if is_known else [None]
    if len(examples) <= MANY:
        of_person.append(number.in_(list(examples)))
    known = session.connection().execute(select(number).where(*of_person)).scalars()
    return [*sorted(set(examples) - set(known))]


def _through(session: Session, what: Seen) -> int | None:
    """Up to which example somebody sees all."""
    if what is Seen.RELEASED:
        return None
    return session.connection().execute(select(func.max(col(Example.id)))).scalar()
