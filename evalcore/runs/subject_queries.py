"""What the questions of a run are about, counted."""

from typing import NamedTuple

from sqlalchemy import distinct, func, select
from sqlmodel import Session

from evalcore.study.tables import TABLES


class Subject(NamedTuple):
    """What a run asks about.

    Attributes:
        n_examples: Conversations, or cases of triage.
        n_responses: That are judged; 0 where answers are asked for.
        n_models: That gave them.
    """

    n_examples: int
    n_responses: int
    n_models: int


def subject(session: Session, run_id: int) -> Subject:
    """What the questions of a run are about; of a million it takes a second, so keep it: it changes only with their number."""
    question, response = (TABLES[name].c for name in ("run_question", "response"))
    counted = select(func.count(distinct(question.example_id)), func.count(distinct(question.response_id)))
    n_examples, n_responses = session.connection().execute(counted.where(question.run_id == run_id)).one()
    judged = select(question.response_id).where(question.run_id == run_id)
    by = select(func.count(distinct(response.model_id))).where(response.id.in_(judged))
    n_models = session.connection().execute(by).scalar_one() if n_responses else 0
    return Subject(int(n_examples), int(n_responses), int(n_models))
