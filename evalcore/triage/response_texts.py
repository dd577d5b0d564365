"""What some responses say, and in which words a judge read them: `TriageData` holds no text."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select
from sqlmodel import Session, col

from evalcore.study.frames import is_judge, not_superseded
from evalcore.study.schema import Stage
from evalcore.study.tables import TABLES, Rater

CHUNK = 500  # bound variables in one statement


@dataclass(frozen=True)
class Told:
    """A response, and how judges read its level: by judge the explanation, which may be empty."""

    text: str
    explanations: dict[str, str]


def told(session: Session, response_ids: Collection[int]) -> dict[int, Told]:
    """The text of each of these responses by its number; one that is not in the study is not in it."""
    response, verdict = (TABLES[name].c for name in ("response", "verdict"))
    numbers = [int(number) for number in response_ids]
    found: dict[int, Told] = {}
    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        texts = select(response.id, response.text).where(response.id.in_(part))
        found |= {row[0]: Told(row[1] or "", {}) for row in session.connection().execute(texts)}
        said = (
            select(verdict.response_id, col(Rater.name), verdict.explanation)
            .join(Rater, col(Rater.id) == verdict.rater_id)
            .where(
                verdict.response_id.in_(part),
                verdict.criterion_id.is_(None),
                verdict.stage == Stage.JUDGE,
                is_judge(),
                not_superseded(),
            )
            .order_by(verdict.rater_id, verdict.id)  # the newest prompt last
        )
        for response_id, judge, explanation in session.connection().execute(said):
            found[response_id].explanations[judge] = explanation or ""
    return found
