"""What criteria ask, and what juries that are stored are made of."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, exists, func, select
from sqlmodel import Session

from evalcore.study import lookups
from evalcore.study.schema import RaterKind, Stage
from evalcore.study.tables import TABLES, alias

CHUNK = 500  # bound variables in one statement


def criterion_texts(session: Session, criterion_ids: Collection[int]) -> dict[int, str]:
    """The text of each of these criteria by its number; one that is not in the study is not in it."""
    numbers = map(int, criterion_ids)
    return {row["id"]: row["text"] for row in lookups.rows(session, lookups.CRITERION_TEXTS, list(numbers))}


def conversations(session: Session, example_ids: Collection[int]) -> dict[int, str]:
    """The conversation of each of these examples as the tables hold it."""
    example, numbers = TABLES["example"].c, sorted(map(int, example_ids))
    found: dict[int, str] = {}
    for start in range(0, len(numbers), CHUNK):
        some = select(example.id, example.messages).where(example.id.in_(numbers[start : start + CHUNK]))
        found |= {int(number): str(text) for number, text in session.connection().execute(some)}
    return found


_TOGETHER = 1 << 12  # responses that are read at once: some hundred thousand labels
Item = tuple[int, int | None]  # response_id; criterion_id, or None for the level of care that the response recommends


class JudgeRater(NamedTuple):
    """A judge with one prompt version, or a repeat of it."""

    rater_id: int
    name: str
    version: str


class Standing(NamedTuple):
    """What a jury has said of an item; label None: it was taken back."""

    verdict_id: int
    example_id: int
    label: str | None
    confidence: float | None
    explanation: str | None


def judges(session: Session) -> list[JudgeRater]:
    """Every rater that is a judge, oldest first."""
    rater = TABLES["rater"].c
    statement = select(rater.id, rater.name, rater.prompt_version).where(rater.kind == RaterKind.JUDGE.value)
    return [JudgeRater(*row) for row in session.connection().execute(statement.order_by(rater.id))]


def labels(session: Session, rater_ids: Collection[int]) -> Iterator[tuple[range, list[Any]]]:
    """The standing labels of some judges on criteria and on levels, in parts: the numbers of the responses, and rows of the columns named here, by rater."""
    verdict = TABLES["verdict"].c
    last = session.connection().execute(select(func.max(TABLES["response"].c.id))).scalar() or 0
    named = (verdict.response_id, verdict.criterion_id, verdict.example_id, verdict.rater_id, verdict.label)
    of_judges = select(*named).where(*_said_by(rater_ids), verdict.label.is_not(None)).order_by(verdict.rater_id)
    for first in range(1, last + 1, _TOGETHER):
        part = range(first, min(first + _TOGETHER, last + 1))
        rows = session.connection().execute(of_judges.where(verdict.response_id.between(part.start, part.stop - 1)))
        yield part, list(rows)


def standing(session: Session, rater_ids: Collection[int], response_ids: Collection[int]) -> dict[Item, Standing]:
    """What a jury, in any version, says of some responses and nothing has superseded, also what was taken back."""
    verdict = TABLES["verdict"].c
    named = [verdict[name] for name in ("response_id", "criterion_id", "id", *Standing._fields[1:])]
    verdicts: dict[Item, Standing] = {}
    ordered = sorted(response_ids) if rater_ids else []
    for start in range(0, len(ordered), CHUNK):
        part = ordered[start : start + CHUNK]
        statement = select(*named).where(*_said_by(rater_ids), verdict.response_id.in_(part)).order_by(verdict.id)
        rows = session.connection().execute(statement)
        verdicts |= {(row[0], row[1]): Standing(*row[2:]) for row in rows}
    return verdicts


def _said_by(rater_ids: Collection[int]) -> list[ColumnElement[bool]]:
    verdict, newer = TABLES["verdict"], alias("verdict", "newer")
    replaced = exists(select(newer.c.id).where(newer.c.supersedes == verdict.c.id)).correlate(verdict)
    return [verdict.c.rater_id.in_(list(rater_ids)), verdict.c.stage == Stage.JUDGE.value, ~replaced]
