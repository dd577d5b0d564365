"""Who has seen others' verdicts on what."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlmodel import Session, col

from evalcore.study.schema import Seen
from evalcore.study.tables import TABLES, Exposure

MANY = 500
"""With more names than this those of all examples are read: a database takes only so many bound values."""


def has_seen(person_id: int, example: Any) -> ColumnElement[bool]:
    """The condition that somebody has seen others' verdicts on an example, or has been released from reading it blind.

    Args:
        example: The example's number: a column of the statement around it, or a number.
    """
    number = func.coalesce(col(Exposure.example_id), 0)
    this = exists().where(_of(person_id), number == example)
    all_ = exists().where(_of(person_id), number == 0, _reaches(example))
    return or_(this, all_)


def _reaches(example: Any) -> ColumnElement[bool]:
    return or_(col(Exposure.through).is_(None), col(Exposure.through) >= example)


def _of(person_id: int) -> ColumnElement[bool]:
    return col(Exposure.person_id) == person_id


def numbers_of(session: Session, names: Collection[str] | None) -> set[int]:
    """The numbers of the examples with these names (of both, where two data sets share one); None: of all."""
    example = TABLES["example"].c
    statement = select(example.id)
    if names is not None and len(names) <= MANY:
        statement = statement.where(example.prompt_id.in_(list(names)))
        return set(session.connection().execute(statement).scalars())
    wanted = None if names is None else set(names)
    rows = session.connection().execute(select(example.id, example.prompt_id))
    return {number for number, name in rows if wanted is None or name in wanted}


def is_exposed(session: Session, person_id: int, example_id: int) -> bool:
    """Whether somebody has seen others' verdicts on an example."""
    return bool(session.connection().execute(select(has_seen(person_id, example_id))).scalar_one())


def saw_elsewhere(session: Session, person_id: int, example_id: int) -> bool:
    """Whether somebody has seen verdicts on an example, the judge's too, anywhere but where they settle."""
    number = func.coalesce(col(Exposure.example_id), 0)
    elsewhere = col(Exposure.what).not_in([Seen.ADJUDICATION, Seen.RELEASED])
    this = exists().where(_of(person_id), elsewhere, or_(number == example_id, and_(number == 0, _reaches(example_id))))
    return bool(session.connection().execute(select(this)).scalar_one())


def exposed_among(session: Session, people: Collection[int], examples: Collection[int]) -> dict[int, set[int]]:
    """Of each of these people the examples, of these, on which they have seen others' verdicts."""
    rows = select(Exposure.person_id, Exposure.example_id, Exposure.through).where(  # type: ignore[call-overload]
        col(Exposure.person_id).in_(list(people))
    )
    wanted = set(examples)
    found: dict[int, set[int]] = {person: set() for person in people}
    for person, example, through in session.connection().execute(rows):
        if example is not None:
            found[person] |= {example} & wanted
        else:
            found[person] |= {number for number in wanted if through is None or number <= through}
    return found


def is_released(session: Session, person_id: int) -> bool:
    """Whether a lead has released somebody from reading blind, altogether."""
    whole = and_(_of(person_id), col(Exposure.what) == Seen.RELEASED, col(Exposure.example_id).is_(None))
    return bool(session.connection().execute(select(exists().where(whole))).scalar_one())
