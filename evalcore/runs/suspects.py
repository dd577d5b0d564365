"""Which responses hold text that speaks to their judge, and which have been searched for such text.

A run searches each response before it asks a judge about it, and keeps what it finds. An import searches none: at 1 to 4 ms a response it would take
longer than all else that an import does, more than half an hour for a million. So a response whose verdicts came by file is searched when it is shown
(`judged_text`), which writes nothing; and an export says true or false only of those that a run has searched (`told`).
"""

import json
from collections.abc import Collection

from sqlalchemy import exists, select
from sqlmodel import Session

from evalcore.study.run_words import Outcome
from evalcore.study.schema import Stage
from evalcore.study.tables import TABLES

_CHUNK = 500  # bound variables in one statement


def of_responses(session: Session, response_ids: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Of some responses those that are suspect, with the sentences that say why."""
    rows = TABLES["suspect_response"].c
    numbers = sorted(set(response_ids))
    found: dict[int, tuple[str, ...]] = {}
    for start in range(0, len(numbers), _CHUNK):
        part = select(rows.response_id, rows.reasons).where(rows.response_id.in_(numbers[start : start + _CHUNK]))
        found |= {
            int(number): tuple(json.loads(reasons)) for number, reasons in session.connection().execute(part).all()
        }
    return found


def judged_text(session: Session, response_id: int) -> str:
    """The text of a response on which a judge has given a verdict; "" where none has, or where there is no text."""
    response, verdict = (TABLES[name].c for name in ("response", "verdict"))
    is_judged = exists().where(verdict.response_id == response.id, verdict.stage == Stage.JUDGE.value)
    found = session.connection().execute(select(response.text).where(response.id == response_id, is_judged))
    return found.scalar() or ""


def told(session: Session) -> dict[int, bool]:
    """Whether a response is suspect, of those that a run has searched and has a judge's answer on; the others are not in it."""
    question, call, flagged = (TABLES[name].c for name in ("run_question", "run_call", "suspect_response"))
    searched = (
        select(question.response_id)
        .distinct()
        .where(
            question.id == call.question_id, call.outcome == Outcome.ANSWERED.value, question.response_id.is_not(None)
        )
    )
    connection = session.connection()
    found = dict.fromkeys(connection.execute(searched).scalars(), False)
    return found | dict.fromkeys(connection.execute(select(flagged.response_id)).scalars(), True)
