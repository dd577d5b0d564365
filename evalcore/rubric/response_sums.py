"""Points of every response by every judge, added up by the database."""

import pandas as pd
from sqlalchemy import func, select
from sqlmodel import Session, col

from evalcore.study.frames import frame, is_judge, not_superseded
from evalcore.study.schema import Label
from evalcore.study.tables import TABLES, Model, Rater, Response


def response_sums(session: Session) -> pd.DataFrame:
    """Points by response and judge, summed in SQL so that millions of verdicts become one row a response.

    Of a judge's several prompts the one with the most labels on the response counts, of equals the newest; repeats do not.

    Returns:
        One row a response and judge: example_id, response_id, model, judge, achieved, possible, n_judged, n_expected.
    """
    verdict, criterion = TABLES["verdict"], TABLES["criterion"]
    scored = (
        select(criterion.c.example_id, func.count(criterion.c.points).label("n_scored"))
        .group_by(criterion.c.example_id)
        .subquery()
    )
    met = verdict.c.label == Label.MET
    positive = criterion.c.points > 0
    statement = (
        select(
            verdict.c.example_id,
            verdict.c.response_id,
            func.max(col(Model.name)).label("model"),
            func.max(col(Rater.name)).label("judge"),
            verdict.c.rater_id,
            func.sum(criterion.c.points).filter(met).label("achieved"),
            func.sum(criterion.c.points).filter(positive).label("possible"),
            func.count(criterion.c.points).filter(verdict.c.label != Label.CANNOT_ASSESS).label("n_judged"),
            func.max(func.coalesce(col(Response.n_criteria), scored.c.n_scored)).label("n_expected"),
        )
        .select_from(verdict)
        .join(criterion, criterion.c.id == verdict.c.criterion_id)
        .join(Rater, col(Rater.id) == verdict.c.rater_id)
        .join(Response, col(Response.id) == verdict.c.response_id)
        .join(Model, col(Model.id) == col(Response.model_id))
        .join(scored, scored.c.example_id == verdict.c.example_id)
        .where(is_judge(), not_superseded())
        .group_by(verdict.c.example_id, verdict.c.response_id, verdict.c.rater_id)
    )
    found = frame(session, statement)
    if found.duplicated(["response_id", "judge"]).any():  # several prompts of one judge
        found = (
            found.sort_values(["n_judged", "rater_id"], kind="stable")
            .drop_duplicates(["response_id", "judge"], keep="last")
            .sort_index()
        )
    return found.drop(columns="rater_id").reset_index(drop=True)
