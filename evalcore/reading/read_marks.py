"""What physicians have left on conversations, for lists of them."""

import pandas as pd
from sqlalchemy import func, select
from sqlmodel import Session, col

from evalcore.study.frames import frame, is_judge, is_read, not_superseded
from evalcore.study.schema import RaterKind, Stage
from evalcore.study.tables import TABLES, Rater


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
