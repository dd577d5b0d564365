"""Judges' stated confidences on criteria, beside physicians' blind first reads of the same items."""

from collections.abc import Callable, Collection
from functools import partial

import pandas as pd
from sqlalchemy import and_, case, func, select
from sqlmodel import Session, col

from evalcore.rubric import queries as rubric_queries
from evalcore.rubric.data import RubricData, first_reads, is_drawn
from evalcore.rubric.drawings import over_all
from evalcore.study.frames import ITEM_BASE, frame, is_judge, not_superseded
from evalcore.study.schema import Label, Stage
from evalcore.study.tables import TABLES, Rater, alias

MET = {Label.MET: 1.0, Label.NOT_MET: 0.0}
HALF = 0.5
COLUMNS = ["judge", "item_id", "example_id", "response_id", "criterion_id", "label", "confidence"]
COLUMNS += ["reference", "n_reads", "is_drawn", "reference_drawn", "inclusion_probability"]


def beside_reads(
    session: Session,
    counts: pd.DataFrame,
    *,
    judged: Callable[[], RubricData] | None = None,
    blind: Collection[int] = (),
) -> pd.DataFrame:
    """Every label with a stated confidence on an item that a physician has read blind, by judge and item.

    `counts`: of `stated`. Of several prompt versions the newest one's label. Left out: what could not be assessed, and
    the examples `blind`, which wait for the viewer's own read. `judged` gives what judges say of every item, where that
    is kept. Gives `COLUMNS`: label (1 met, 0 not met), confidence as stated, reference (share of the blind first reads that
    say met), is_drawn (one of them was drawn with a known probability), reference_drawn (of these alone),
    inclusion_probability (over all drawings); NaN where there is none.
    """
    labels = _judged(session, set(counts["judge"])) if len(counts) else pd.DataFrame()
    if labels.empty:  # then neither reads nor what judges say is looked at
        return labels.reindex(columns=COLUMNS).astype({"judge": "category", "is_drawn": bool})
    labels = labels.merge(_reads(session, judged or partial(rubric_queries.judged, session)), on="item_id")
    kept = labels.loc[~labels["example_id"].isin(list(blind)), COLUMNS]
    return kept.astype({"judge": "category"}).sort_values(["judge", "item_id"], ignore_index=True)


def stated(session: Session, *, blind: Collection[int] = ()) -> pd.DataFrame:
    """How sure each judge says that it is, a row a judge and label (1 met, 0 not); n_above and n_below are of 0.5."""
    table = TABLES["verdict"].c
    statement = (
        select(
            col(Rater.name).label("judge"),
            table.label,
            func.count().label("n"),
            func.avg(table.confidence).label("mean_confidence"),
            func.sum(case((table.confidence > HALF, 1), else_=0)).label("n_above"),
            func.sum(case((table.confidence < HALF, 1), else_=0)).label("n_below"),
        )
        .join(Rater, and_(col(Rater.id) == table.rater_id, is_judge()))
        .where(
            table.confidence.is_not(None),  # first: most studies state none, and what is looked at first decides
            table.criterion_id.is_not(None),
            table.stage == Stage.JUDGE,
            table.label.in_(list(MET)),
            not_superseded(),
        )
        .group_by(col(Rater.name), table.label)
        .order_by(col(Rater.name), table.label)
    )
    if blind:
        statement = statement.where(table.example_id.not_in(sorted(blind)))
    counts = frame(session, statement)
    counts["label"] = counts["label"].map(MET).astype(float)
    return counts.astype({"mean_confidence": float, "n": int, "n_above": int, "n_below": int})


def _reads(session: Session, judged: Callable[[], RubricData]) -> pd.DataFrame:
    reads = first_reads(rubric_queries.reads(session))
    reads = reads.loc[reads["met"].notna()]
    drawn = is_drawn(reads)
    reads = reads.assign(inclusion_probability=reads["inclusion_probability"].where(drawn))
    known_drawings = rubric_queries.drawings_of(session, reads, drawn, known=judged)
    reads["inclusion_probability"] = over_all(known_drawings, reads, drawn)
    made = {"reference": ("met", "mean"), "n_reads": ("met", "size"), "is_drawn": ("is_drawn", "any")}
    made |= {"reference_drawn": ("met_drawn", "mean"), "inclusion_probability": ("inclusion_probability", "max")}
    reads = reads.assign(is_drawn=drawn, met_drawn=reads["met"].where(drawn))
    return reads.groupby("item_id", as_index=False).agg(**made)


def _judged(session: Session, names: Collection[str]) -> pd.DataFrame:
    """These judges' standing labels with a confidence on items that were read: looked up from the reads, which are few."""
    verdict = TABLES["verdict"]
    is_first = (verdict.c.stage == Stage.FIRST, verdict.c.criterion_id.is_not(None))
    firsts = select(verdict.c.response_id, verdict.c.criterion_id).where(*is_first).distinct().subquery("firsts")
    judged = alias("verdict", "judged")
    statement = (
        select(
            col(Rater.name).label("judge"),
            *(judged.c[name] for name in ("example_id", "response_id", "criterion_id", "label", "confidence")),
        )
        .select_from(firsts)
        .join(
            judged, and_(judged.c.response_id == firsts.c.response_id, judged.c.criterion_id == firsts.c.criterion_id)
        )
        .join(Rater, and_(col(Rater.id) == judged.c.rater_id, is_judge()))
        .where(
            col(Rater.name).in_(names),
            judged.c.stage == Stage.JUDGE,
            judged.c.label.in_(list(MET)),
            not_superseded(judged),
        )
        .order_by(judged.c.rater_id, judged.c.id)
    )
    labels = frame(session, statement)
    labels["item_id"] = labels["response_id"].astype("int64") * ITEM_BASE + labels["criterion_id"].astype("int64")
    labels = labels.drop_duplicates(["judge", "item_id"], keep="last")  # the newest prompt
    labels["label"] = labels["label"].map(MET).astype(float)
    labels["confidence"] = labels["confidence"].astype(float)
    return labels.loc[labels["confidence"].notna()]
