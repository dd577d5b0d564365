"""What a study is made of and what physicians have read of it, counted in SQL."""

from datetime import datetime
from typing import Any, TypedDict

import numpy as np
import orjson
import pandas as pd
from sqlalchemy import ColumnElement, Subquery, case, func, select
from sqlmodel import Session, col

from evalcore.study import snapshot
from evalcore.study.frames import frame, is_read, not_superseded, numbers
from evalcore.study.schema import CASES, FILE_IMPORTED, RaterKind, Stage
from evalcore.study.tables import TABLES, AuditEvent, ExampleSubset, Rater

NAMES = ("theme", "category", "language")


class MadeOf(TypedDict):
    """What `composition` takes."""

    examples: pd.DataFrame
    criteria: pd.DataFrame
    responses: pd.DataFrame


def load(session: Session) -> MadeOf:
    """The study as three frames: one row an example, one row criteria that are alike, one row a response."""
    return {"examples": examples(session), "criteria": criteria(session), "responses": responses(session)}


def _read(*conditions: ColumnElement[bool]) -> list[ColumnElement[bool]]:
    """Physicians' standing verdicts; SQLite uses their index only where its condition stands in the same words."""
    verdict = TABLES["verdict"].c
    return [is_read(verdict), verdict.label.is_not(None), not_superseded(), *conditions]


def _read_responses() -> Subquery:
    verdict = TABLES["verdict"].c
    read = select(verdict.response_id, verdict.example_id).where(*_read(verdict.response_id.is_not(None)))
    return read.distinct().subquery("read")


def examples(session: Session) -> pd.DataFrame:
    """One row an example but cases of triage (`case_flow` counts them); n_undesirable: criteria with negative points; n_read: responses with a verdict."""
    read, example = _read_responses(), TABLES["example"].c
    criterion, response = TABLES["criterion"].c, TABLES["response"].c
    n_undesirable = func.sum(case((criterion.points < 0, 1), else_=0)).label("n_undesirable")

    def per_example(example_id: Any, name: str, *more: Any) -> Subquery:
        counted = select(example_id.label("counted_of"), func.count().label(name), *more)
        return counted.group_by(example_id).subquery()

    counts = (
        per_example(criterion.example_id, "n_criteria", n_undesirable),
        per_example(response.example_id, "n_responses"),
        per_example(read.c.example_id, "n_read"),
    )
    sums = [column for table in counts for column in table.c if column.name != "counted_of"]
    statement = select(
        example.id.label("example_id"),
        *(example[name] for name in (*NAMES, "n_turns", "messages")),
        *(func.coalesce(number, 0).label(number.name) for number in sums),
    )
    for table in counts:
        statement = statement.outerjoin(table, table.c.counted_of == example.id)
    rows = frame(session, statement.where(example.dataset != CASES).order_by(example.id))
    turns = [orjson.loads(messages) for messages in rows.pop("messages")]
    rows["n_chars"] = [sum(len(turn["content"]) for turn in conversation) for conversation in turns]
    names = ["example_id", "n_turns", "n_chars", *(number.name for number in sums)]
    return rows.astype({**dict.fromkeys(names, "int64"), **dict.fromkeys(NAMES, "str")})


def criteria(session: Session) -> pd.DataFrame:
    """Criteria that are alike, counted: one row an example, axis and points. n_read: those with a physician's verdict in some response; n_items_read: items."""
    criterion, verdict = TABLES["criterion"], TABLES["verdict"].c
    read = (
        select(verdict.criterion_id, func.count(verdict.response_id.distinct()).label("n_items"))
        .where(*_read(verdict.criterion_id.is_not(None)))
        .group_by(verdict.criterion_id)
        .subquery("read")
    )
    alike = (criterion.c.example_id, criterion.c.axis, criterion.c.points)
    statement = (
        select(
            *alike,
            func.count().label("n_criteria"),
            func.count(read.c.criterion_id).label("n_read"),
            func.coalesce(func.sum(read.c.n_items), 0).label("n_items_read"),
        )
        .outerjoin(read, read.c.criterion_id == criterion.c.id)
        .group_by(*alike)
        .order_by(*alike)
    )
    counts = dict.fromkeys(("example_id", "n_criteria", "n_read", "n_items_read"), "int64")
    return frame(session, statement).astype({**counts, "axis": "str", "points": "float64"})


def responses(session: Session) -> pd.DataFrame:
    """One row a response, those to cases of triage left out: example_id, model (categorical), n_chars, is_read (a physician has given a verdict on it)."""
    example, model = (TABLES[name].c for name in ("example", "model"))
    found, _ = snapshot.responses(session)
    cases = numbers(session, select(example.id).where(example.dataset == CASES))
    kept = ~np.isin(found["example_id"], list(cases))
    read = numbers(session, select(_read_responses().c.response_id))
    names = dict(tuple(row) for row in session.connection().execute(select(model.id, model.name)))
    columns: dict[str, Any] = {name: found[name][kept].astype(np.int64) for name in ("example_id", "n_chars")}
    columns["is_read"] = np.isin(found["id"][kept], list(read))
    return pd.DataFrame(columns).assign(model=pd.Series(found["model_id"][kept]).map(names).astype("category"))


def subset_sizes(session: Session) -> dict[str, int]:
    """Examples of each subset."""
    subset = col(ExampleSubset.subset)
    statement = select(subset, func.count()).group_by(subset).order_by(subset)
    return {str(row[0]): int(row[1]) for row in session.connection().execute(statement)}


def changed_since(session: Session, since: datetime, hidden: frozenset[int] = frozenset()) -> dict[str, int]:
    """What has come since a moment, without verdicts on hidden conversations: verdicts of physicians that stand, n_settled of them, their readers, files."""
    verdict, connection = TABLES["verdict"].c, session.connection()
    conditions = _read(verdict.created_at >= since, col(Rater.kind) == RaterKind.REVIEWER)
    if hidden:
        conditions.append(verdict.example_id.not_in(list(hidden)))
    statement = (
        select(
            func.count().label("n_verdicts"),
            func.count(verdict.rater_id.distinct()).label("n_readers"),
            func.count(verdict.response_id.distinct()).label("n_responses"),
            func.coalesce(func.sum(case((verdict.stage == Stage.ADJUDICATED, 1), else_=0)), 0).label("n_settled"),
        )
        .join_from(TABLES["verdict"], TABLES["rater"], col(Rater.id) == verdict.rater_id)
        .where(*conditions)
    )
    counted = connection.execute(statement).mappings().one()
    files = (
        select(func.count())
        .select_from(AuditEvent)
        .where(col(AuditEvent.action) == FILE_IMPORTED, col(AuditEvent.at) >= since)
    )
    return {
        **{str(name): int(n) for name, n in counted.items()},
        "n_files": int(connection.execute(files).scalar_one()),
    }
