"""Responses to cases whose text a shipped judge has not read yet, and what that judge has said so far."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlalchemy import exists, func, select
from sqlmodel import Session, col

from evalcore.study.frames import not_superseded
from evalcore.study.schema import Format, RaterKind, Stage
from evalcore.study.tables import TABLES, Rater, Response, Verdict

_CHUNK = 500  # bound variables in one statement


class ResponseText(NamedTuple):
    """A response to a case, with its text."""

    response_id: int
    example_id: int
    text: str


class Standing(NamedTuple):
    """What a judge has said of a response, in one of its versions."""

    verdict_id: int
    version: str
    label: str | None
    explanation: str | None


def texts(
    session: Session, asked: Format, *, judge: str, versions: Collection[str] | None, batch: int
) -> Iterator[list[ResponseText]]:
    """Responses of one format to cases, by number, in batches; those without a text are left out.

    Args:
        versions: Responses of which one of these versions has said anything are left out; None: none are.
    """
    table, case_ = Response.__table__.c, TABLES["acuity_case"].c  # type: ignore[attr-defined]
    statement = select(table.id, table.example_id, table.text).where(
        table.dataset == asked.evaluation, table.text != "", table.example_id.in_(select(case_.example_id))
    )
    if versions is not None:
        raters = [number for number, version in _raters(session, judge).items() if version in versions]
        said = exists().where(
            col(Verdict.response_id) == table.id,
            col(Verdict.criterion_id).is_(None),
            col(Verdict.rater_id).in_(raters),
            col(Verdict.stage) == Stage.JUDGE,
        )
        statement = statement.where(~said)
    last = 0
    while True:
        rows = session.connection().execute(statement.where(table.id > last).order_by(table.id).limit(batch)).all()
        if not rows:
            return
        last = int(rows[-1][0])
        yield [ResponseText(int(number), int(example_id), text) for number, example_id, text in rows]


def n_texts(session: Session, asked: Format) -> int:
    """How many responses of one format to cases have a text."""
    table, case_ = Response.__table__.c, TABLES["acuity_case"].c  # type: ignore[attr-defined]
    counted = select(func.count()).where(
        table.dataset == asked.evaluation, table.text != "", table.example_id.in_(select(case_.example_id))
    )
    return int(session.connection().execute(counted).scalar_one())


def standing(session: Session, response_ids: Collection[int], *, judge: str) -> dict[int, list[Standing]]:
    """What a judge, in whichever version, says of some responses and nothing has superseded; by response, the version that came last first."""
    versions = _raters(session, judge)
    if not versions:
        return {}
    found: dict[int, list[Standing]] = {}
    ordered = list(response_ids)
    for start in range(0, len(ordered), _CHUNK):
        statement = (
            select(
                col(Verdict.response_id), col(Verdict.id), col(Verdict.rater_id), col(Verdict.label), col(Verdict.explanation)
            )
            .where(
                col(Verdict.response_id).in_(ordered[start : start + _CHUNK]),
                col(Verdict.criterion_id).is_(None),
                col(Verdict.rater_id).in_(versions),
                col(Verdict.stage) == Stage.JUDGE,
                not_superseded(),
            )
            .order_by(col(Verdict.rater_id).desc(), col(Verdict.id).desc())
        )  # fmt: skip
        for response_id, number, rater_id, label, explanation in session.connection().execute(statement):
            said = Standing(int(number or 0), versions[rater_id], label, explanation)
            found.setdefault(int(response_id or 0), []).append(said)
    return found


def _raters(session: Session, judge: str) -> dict[int, str]:
    """The versions of a judge, by the rater's number."""
    statement = select(col(Rater.id), col(Rater.prompt_version)).where(
        col(Rater.kind) == RaterKind.JUDGE, col(Rater.name) == judge
    )
    return {int(number or 0): str(version) for number, version in session.connection().execute(statement)}
