"""What a study chooses about triage: label maps, settings, what a judge's confidence means."""

from typing import Any

import msgspec
from sqlalchemy import delete, exists, insert, select
from sqlmodel import Session, col

from evalcore.errors import NotFound, refuse
from evalcore.study.schema import ConfidenceMeaning, RaterKind
from evalcore.study.store import append_event, is_storable
from evalcore.study.tables import TABLES, Rater
from evalcore.triage import label_maps, setting_queries, settings as triage_settings
from evalcore.triage.settings import TriageSettings


def set_label_map(session: Session, source: str, table: label_maps.Table, *, actor: str) -> bool:
    """Write the study's own map of a source whole; an empty one brings Overread's back. Whether anything changed.

    Cases that were imported before keep what their map made of them then. A source without a name, or a row that
    `label_maps.check` does not want, is refused.
    """
    folded = label_maps.fold(source)
    if not 0 < len(folded) <= label_maps.MAX_LENGTH or not folded.isprintable() or not is_storable(folded):
        refuse(f"source: expected 1 to {label_maps.MAX_LENGTH} printable characters, got {source[:40]!r}")
    given = [(f"row {number}", *row) for number, row in enumerate(table, start=1)]
    wanted = label_maps.check(given, f"the label map of {folded}") if given else []
    if wanted == label_maps.default_tables().get(folded):
        wanted = []
    rows, connection = TABLES["label_mapping"], session.connection()
    if setting_queries.own_tables(session).get(folded, []) == wanted:
        return False
    connection.execute(delete(rows).where(rows.c.source == folded))
    if wanted:
        given_rows = [{"source": folded, "label": label, "meaning": meaning} for label, meaning in wanted]
        connection.execute(insert(rows), given_rows)
    action = "label map set" if wanted else "label map reset"
    detail = {"labels": [f"{label} = {meaning}" for label, meaning in wanted]} if wanted else {}
    append_event(session, actor=actor, action=action, subject=f"source {folded}", detail=detail)
    return True


def set_triage_settings(session: Session, settings: TriageSettings | None, *, actor: str) -> bool:
    """Write the study's settings of triage; None brings the defaults back. Whether anything changed."""
    wanted = TriageSettings()
    if settings is not None:
        wanted = triage_settings.parse(triage_settings.to_yaml(settings), "the settings of triage")
    rows, connection = TABLES["triage_choice"], session.connection()
    before = setting_queries.load(session)
    if before == wanted:
        return False
    connection.execute(delete(rows))
    if wanted != TriageSettings():
        connection.execute(insert(rows), [{"id": 1, "text": triage_settings.to_yaml(wanted)}])
    was, now = msgspec.to_builtins(before), msgspec.to_builtins(wanted)
    changed: dict[str, Any] = {name: value for name, value in now.items() if was[name] != value}
    append_event(session, actor=actor, action="triage settings changed", subject="study", detail=changed)
    return True


def set_confidence_meaning(session: Session, judge: str, meaning: ConfidenceMeaning | None, *, actor: str) -> bool:
    """Say what a judge's confidence is the probability of (None: unknown). Whether that is new. Raises NotFound."""
    if not write_confidence_meaning(session, judge, meaning):
        return False
    told: dict[str, Any] = {"action": "confidence meaning set", "subject": f"judge {judge}"}
    told["detail"] = {"meaning": None if meaning is None else meaning.value}
    append_event(session, actor=actor, **told, tells_rows=False)
    return True


def write_confidence_meaning(session: Session, judge: str, meaning: ConfidenceMeaning | None) -> bool:
    """The same without an event of its own: for an act whose event tells it."""
    rows, connection = TABLES["judge_confidence"], session.connection()
    is_judge = exists().where(col(Rater.kind) == RaterKind.JUDGE, col(Rater.name) == judge)
    session.flush()
    if not connection.execute(select(is_judge)).scalar():
        refuse(f"judge: expected one with a verdict in this study, got {judge[:80]!r}", NotFound)
    before = connection.execute(select(rows.c.meaning).where(rows.c.judge == judge)).scalar()
    if before == meaning:
        return False
    connection.execute(delete(rows).where(rows.c.judge == judge))
    if meaning is not None:
        connection.execute(insert(rows), [{"judge": judge, "meaning": meaning.value}])
    return True
