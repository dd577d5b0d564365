"""How long physicians take over a response."""

from typing import Any

import pandas as pd
from sqlalchemy import func, select
from sqlmodel import Session, col

from evalcore.study.frames import frame
from evalcore.study.schema import Ask, ReadingState
from evalcore.study.tables import Assignment, Criterion, Reading, Task

RECENT = 500
"""So many readings at most, the newest, tell how long the next will take."""


def reading_times(session: Session) -> pd.DataFrame:
    """The newest locked readings of whole responses.

    Returns:
        One row a reading: seconds (of each pause two minutes at most), n_criteria (1 or more).
    """
    asked = (
        select(col(Criterion.example_id).label("example_id"), func.count().label("n_criteria"))
        .group_by(col(Criterion.example_id))
        .subquery()
    )
    columns: list[Any] = [col(Reading.seconds), asked.c.n_criteria]
    statement = (
        select(*columns)
        .join(Task, col(Task.id) == col(Reading.task_id))
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .join(asked, asked.c.example_id == col(Task.example_id))
        .where(col(Reading.state) != ReadingState.READING, col(Assignment.ask) == Ask.RUBRIC)
        .order_by(col(Reading.id).desc())
        .limit(RECENT)
    )
    return frame(session, statement)
