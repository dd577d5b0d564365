"""One item and what one rater has said about it."""

from sqlalchemy import RowMapping, select
from sqlmodel import Session, col
from sqlmodel import select as select_rows

from evalcore.study.frames import is_judge, not_superseded
from evalcore.study.schema import Stage
from evalcore.study.tables import TABLES, Criterion, Rater, Response
from evalcore.study.tables import Verdict as VerdictRow

__all__ = ["VerdictRow", "example_of", "item", "newest_of", "verdict_numbered"]


def item(session: Session, response_id: int, criterion_id: int | None, *, judge: str) -> RowMapping | None:
    """The item's example_id and the judge's label on it (None where that judge gave none); None where there is no such item.

    Args:
        session: Where to read.
        response_id: The response.
        criterion_id: The criterion; None: the response as a whole.
        judge: Whose label.
    """
    verdict = TABLES["verdict"]
    of_judge = select(col(Rater.id)).where(is_judge(), col(Rater.name) == judge)
    given = (
        select(verdict.c.label)
        .where(
            verdict.c.response_id == response_id,
            verdict.c.criterion_id == criterion_id if criterion_id is not None else verdict.c.criterion_id.is_(None),
            verdict.c.rater_id.in_(of_judge),
            not_superseded(),
        )
        .order_by(verdict.c.rater_id.desc(), verdict.c.id.desc())  # the newest prompt
        .limit(1)
        .scalar_subquery()
    )
    statement = select(col(Response.example_id).label("example_id"), given.label("judge_label"))
    statement = statement.where(col(Response.id) == response_id)
    if criterion_id is not None:
        beside = col(Criterion.example_id) == col(Response.example_id)
        statement = statement.join(Criterion, beside).where(col(Criterion.id) == criterion_id)
    return session.connection().execute(statement).mappings().first()


def example_of(session: Session, response_id: int) -> int | None:
    """The example that a response answers; None where there is no such response."""
    statement = select(col(Response.example_id)).where(col(Response.id) == response_id)
    return session.connection().execute(statement).scalar()


def newest_of(
    session: Session, response_id: int, criterion_id: int | None, rater_id: int, stage: Stage
) -> VerdictRow | None:
    """A rater's newest verdict on an item at a stage, one taken back (label None) too."""
    statement = select_rows(VerdictRow).where(
        VerdictRow.response_id == response_id,
        VerdictRow.criterion_id == criterion_id,
        VerdictRow.rater_id == rater_id,
        VerdictRow.stage == stage.value,
        not_superseded(),
    )
    return session.exec(statement).first()


def verdict_numbered(session: Session, number: int) -> VerdictRow | None:
    """The verdict of this number."""
    return session.get(VerdictRow, number)
