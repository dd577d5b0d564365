"""What the study has chosen about triage, and what its judges' confidences mean."""

from sqlalchemy import select
from sqlmodel import Session

from evalcore.study.schema import ConfidenceMeaning
from evalcore.study.tables import TABLES
from evalcore.triage import settings
from evalcore.triage.settings import TriageSettings


def own(session: Session) -> TriageSettings | None:
    """The study's own settings; None where it has chosen nothing."""
    rows = TABLES["triage_choice"].c
    text = session.connection().execute(select(rows.text)).scalar()
    return None if text is None else settings.parse(text, "the study's settings of triage")


def load(session: Session) -> TriageSettings:
    """The study's own settings, else the defaults."""
    return own(session) or TriageSettings()


def confidence_meanings(session: Session) -> dict[str, ConfidenceMeaning]:
    """What the confidence of each judge means, of those for which somebody has said it."""
    rows = TABLES["judge_confidence"].c
    found = session.connection().execute(select(rows.judge, rows.meaning).order_by(rows.judge))
    return {row.judge: ConfidenceMeaning(row.meaning) for row in found}
