"""What the study has stated that it analyses."""

from typing import Any

from sqlalchemy import select
from sqlmodel import Session

from evalcore.study import analysis
from evalcore.study.analysis import StatedAnalysis
from evalcore.study.tables import TABLES


def stated(session: Session) -> StatedAnalysis | None:
    """The newest statement; None where nothing was stated, so that every choice is the usual one."""
    return next(iter(_versions(session, limit=1)), None)


def history(session: Session) -> list[StatedAnalysis]:
    """Every version, newest first."""
    return _versions(session)


def _versions(session: Session, limit: int | None = None) -> list[StatedAnalysis]:
    rows: Any = TABLES["analysis"]
    statement = select(*rows.c).order_by(rows.c.version.desc()).limit(limit)
    return [
        StatedAnalysis(row.version, analysis.of_json(row.text), row.stated_by, row.stated_at, row.n_reads_before)
        for row in session.connection().execute(statement)
    ]
