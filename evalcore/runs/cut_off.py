"""Answers of a run that are not whole."""

from sqlalchemy import func, select
from sqlmodel import Session

from evalcore.study.run_words import CUT_OFF, Outcome
from evalcore.study.tables import TABLES


def n_cut_off(session: Session, run_id: int) -> int:
    """How many answers of a run the server cut off at max_tokens, or at its own limit; of a judge's run none."""
    call = TABLES["run_call"].c
    counted = select(func.count()).where(
        call.run_id == run_id, call.outcome == Outcome.ANSWERED.value, call.error == CUT_OFF
    )  # fmt: skip
    return int(session.connection().execute(counted).scalar_one())
