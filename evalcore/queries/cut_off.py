"""Answers of a run that are not whole."""

from sqlalchemy import func, select
from sqlmodel import Session, SQLModel

import evalcore.run_tables  # noqa: F401 - fills the metadata
from evalcore.run_words import CUT_OFF, Outcome


def n_cut_off(session: Session, run_id: int) -> int:
    """How many answers of a run the server cut off at max_tokens, or at its own limit; of a judge's run none."""
    call = SQLModel.metadata.tables["run_call"].c
    counted = select(func.count()).where(
        call.run_id == run_id, call.outcome == Outcome.ANSWERED.value, call.error == CUT_OFF
    )  # fmt: skip
    return int(session.connection().execute(counted).scalar_one())
