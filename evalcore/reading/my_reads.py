"""What one person has read: in Review, in Browse, and what a file brought of them."""

from typing import Any

import pandas as pd
from sqlalchemy import case, func, select
from sqlmodel import Session, col

from evalcore.reading.tasks import raters_of
from evalcore.study.frames import frame, is_read, not_superseded
from evalcore.study.schema import Ask, ReadingState, Stage, Viewer
from evalcore.study.tables import Assignment, Example, Model, Reading, Response, Task, Verdict

TASK = ["ask", "example_id", "response_id"]


def my_reads(session: Session, viewer: Viewer) -> pd.DataFrame:
    """One row a response (or case) and question that a person has given a label of their own on, newest first. Settling others' conflicts is no read.

    Returns:
        ask, example_id, response_id (missing for a case), first_words, model (missing for a case), read_at; and, missing where it was not read in
        Review: reading_id, state, seconds, locked_at.
    """
    readings = _readings(session, viewer)
    found = _given(session, viewer).merge(readings, on=TASK, how="left")
    found["read_at"] = found["locked_at"].fillna(found["read_at"])
    return found.sort_values("read_at", ascending=False, kind="stable", ignore_index=True)


def _given(session: Session, viewer: Viewer) -> pd.DataFrame:
    """By the verdicts that stand."""
    ask = case(
        (col(Verdict.criterion_id).is_not(None), Ask.RUBRIC.value),
        (col(Verdict.response_id).is_not(None), Ask.RESPONSE_ACUITY.value),
        else_=Ask.GOLD_ACUITY.value,
    ).label("ask")
    task: tuple[Any, ...] = (ask, col(Verdict.example_id), col(Verdict.response_id), col(Example.first_words), col(Model.name).label("model"))  # fmt: skip
    columns: list[Any] = [*task, func.max(col(Verdict.created_at)).label("read_at")]
    statement = (
        select(*columns)
        .join(Example, col(Example.id) == col(Verdict.example_id))
        .outerjoin(Response, col(Response.id) == col(Verdict.response_id))
        .outerjoin(Model, col(Model.id) == col(Response.model_id))
        .where(
            is_read(Verdict),
            col(Verdict.rater_id).in_(raters_of(session, viewer)),
            col(Verdict.stage) != Stage.ADJUDICATED,
            col(Verdict.label).is_not(None),
            not_superseded(),
        )
        .group_by(*task)
    )
    return frame(session, statement).astype({"response_id": "Int64"})


def _readings(session: Session, viewer: Viewer) -> pd.DataFrame:
    """What they have locked in Review."""
    columns: list[Any] = [
        col(Assignment.ask), col(Task.example_id), col(Task.response_id), col(Reading.id).label("reading_id"), col(Reading.state), col(Reading.seconds),
        col(Reading.locked_at),
    ]  # fmt: skip
    statement = (
        select(*columns)
        .join(Task, col(Task.id) == col(Reading.task_id))
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .where(col(Reading.person_id) == viewer.person_id, col(Reading.state) != ReadingState.READING)
        .order_by(col(Reading.locked_at).desc())
    )
    found = frame(session, statement).drop_duplicates(TASK)
    return found.astype({"response_id": "Int64", "reading_id": "Int64"})


def examples_of(session: Session, viewer: Viewer) -> list[int]:
    """Examples on which a person has given any label."""
    given = (
        select(col(Verdict.example_id))
        .distinct()
        .where(is_read(Verdict), col(Verdict.rater_id).in_(raters_of(session, viewer)))
    )
    return sorted(session.connection().execute(given).scalars())
