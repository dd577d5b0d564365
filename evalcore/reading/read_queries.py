"""What physicians have read: one item, one person, lists of conversations, and how long it took."""

from typing import Any

import pandas as pd
from sqlalchemy import RowMapping, case, func, select
from sqlmodel import Session, col
from sqlmodel import select as select_rows

from evalcore.reading.tasks import raters_of
from evalcore.study.frames import frame, is_judge, is_read, not_superseded
from evalcore.study.schema import Ask, RaterKind, ReadingState, Stage, Viewer
from evalcore.study.tables import TABLES, Assignment, Criterion, Example, Model, Rater, Reading, Response, Task, Verdict


def item(session: Session, response_id: int, criterion_id: int | None, *, judge: str) -> RowMapping | None:
    """The item's example_id and the judge's label on it (None where that judge gave none); None where there is no such item.

    Args:
        criterion_id: The criterion; None: the response as a whole.
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
) -> Verdict | None:
    """A rater's newest verdict on an item at a stage, one taken back (label None) too."""
    statement = select_rows(Verdict).where(
        Verdict.response_id == response_id,
        Verdict.criterion_id == criterion_id,
        Verdict.rater_id == rater_id,
        Verdict.stage == stage.value,
        not_superseded(),
    )
    return session.exec(statement).first()


def verdict_numbered(session: Session, number: int) -> Verdict | None:
    """The verdict of this number."""
    return session.get(Verdict, number)


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


def read_marks(session: Session) -> pd.DataFrame:
    """Physicians' standing verdicts on criteria beside the judges', one row a physician's verdict and judge, by verdict and judge.

    Returns:
        verdict_id, created_at, example_id, response_id, criterion_id, rater_id, stage, label, judge, judge_label (missing where no judge labelled the item).
    """
    read, judged = (
        TABLES["verdict"].alias("read"),
        TABLES["verdict"].alias("judged"),
    )
    judges = select(col(Rater.id), col(Rater.name)).where(is_judge()).subquery()
    beside = (
        (judged.c.response_id == read.c.response_id)
        & (judged.c.criterion_id == read.c.criterion_id)
        & (judged.c.stage == Stage.JUDGE)
        & judged.c.label.is_not(None)
        & judged.c.rater_id.in_(select(col(Rater.id)).where(is_judge()))
        & not_superseded(judged)
    )
    statement = (
        select(
            read.c.id.label("verdict_id"),
            read.c.created_at,
            read.c.example_id,
            read.c.response_id,
            read.c.criterion_id,
            read.c.rater_id,
            read.c.stage,
            read.c.label,
            judges.c.name.label("judge"),
            judged.c.label.label("judge_label"),
            judged.c.rater_id.label("judged_by"),
        )
        .select_from(read.outerjoin(judged, beside).outerjoin(judges, judges.c.id == judged.c.rater_id))
        .where(is_read(read.c), read.c.label.is_not(None), not_superseded(read))
        .where(read.c.criterion_id.is_not(None))
    )
    found = frame(session, statement)
    if found.duplicated(["verdict_id", "judge"]).any():  # several prompts of one judge: the newest counts
        found = found.sort_values("judged_by").drop_duplicates(["verdict_id", "judge"], keep="last")
    return found.sort_values(["verdict_id", "judge"], ignore_index=True).drop(columns="judged_by")


def level_readers(session: Session) -> pd.Series:
    """How many physicians have said which level a case, or any response to it, needs or recommends: n_level_readers, by example_id."""
    verdict, rater = TABLES["verdict"].c, TABLES["rater"]
    statement = (
        select(verdict.example_id, func.count(verdict.rater_id.distinct()).label("n_level_readers"))
        .join(rater, rater.c.id == verdict.rater_id)
        .where(
            rater.c.kind == RaterKind.REVIEWER,
            is_read(verdict),
            verdict.criterion_id.is_(None),
            verdict.label.is_not(None),
            not_superseded(),
        )
        .group_by(verdict.example_id)
    )
    return frame(session, statement).set_index("example_id")["n_level_readers"]


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
