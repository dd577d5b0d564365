"""What some criteria say: `Opinions` hold no text."""

from collections.abc import Collection

from sqlalchemy import select
from sqlmodel import Session, col

from evalcore.study.tables import Criterion

CHUNK = 500  # bound variables in one statement


def criterion_texts(session: Session, criterion_ids: Collection[int]) -> dict[int, str]:
    """The text of each of these criteria by its number; one that is not in the study is not in it."""
    numbers = [int(number) for number in criterion_ids]
    found: dict[int, str] = {}
    for start in range(0, len(numbers), CHUNK):
        statement = select(col(Criterion.id), col(Criterion.text)).where(
            col(Criterion.id).in_(numbers[start : start + CHUNK])
        )
        found |= {int(row[0] or 0): row[1] for row in session.connection().execute(statement)}
    return found
