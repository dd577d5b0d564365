"""What the study has chosen about triage: settings, meanings of confidence, and the label maps in force."""

from collections.abc import Mapping

import pandas as pd
from sqlalchemy import func, select
from sqlmodel import Session

from evalcore.study.frames import frame
from evalcore.study.schema import ConfidenceMeaning
from evalcore.study.tables import TABLES
from evalcore.triage import label_maps, settings
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


def own_tables(session: Session) -> dict[str, list[tuple[str, str]]]:
    """The study's own maps by source, folded; those that come with Overread are not among them."""
    rows = TABLES["label_mapping"].c
    found: dict[str, list[tuple[str, str]]] = {}
    for row in session.connection().execute(select(rows.source, rows.label, rows.meaning)):
        found.setdefault(row.source, []).append((row.label, row.meaning))
    return {source: label_maps.in_order(found[source]) for source in sorted(found)}


def tables_of(session: Session) -> Mapping[str, label_maps.Table]:
    """Every map in force by source: the study's own, else the one that comes with Overread."""
    return {**label_maps.default_tables(), **own_tables(session)}


def labels_of_cases(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """source, original_label, mapped_label and n (cases), a row each, without cases of no label and the `hidden`."""
    rows = TABLES["acuity_case"].c
    named = (rows.source, rows.original_label, rows.mapped_label)
    statement = select(*named, func.count().label("n")).where(rows.original_label.is_not(None)).group_by(*named)
    if hidden:
        statement = statement.where(rows.example_id.not_in(list(hidden)))
    found = frame(session, statement).sort_values(["source", "original_label", "mapped_label"], ignore_index=True)
    return found.astype({"n": int, "source": object, "original_label": object, "mapped_label": object})
