"""What a study lays down about triage: label maps, settings, and what a judge's confidence means."""

from sqlalchemy import Engine

from evalcore.study.acting import allow
from evalcore.study.db import writing
from evalcore.study.policies import check_can_set_meaning, check_can_set_triage
from evalcore.study.schema import ConfidenceMeaning, Viewer
from evalcore.triage import label_maps
from evalcore.triage import store as triage_store
from evalcore.triage.settings import TriageSettings


def set_label_map(engine: Engine, source: str, table: label_maps.Table, *, actor: Viewer) -> bool:
    """`triage_store.set_label_map`, by a lead."""
    with writing(engine) as session:
        allow(session, actor, check_can_set_triage)
        return triage_store.set_label_map(session, source, table, actor=actor.signature)


def set_triage_settings(engine: Engine, settings: TriageSettings | None, *, actor: Viewer) -> bool:
    """`triage_store.set_triage_settings`, by a lead."""
    with writing(engine) as session:
        allow(session, actor, check_can_set_triage)
        return triage_store.set_triage_settings(session, settings, actor=actor.signature)


def set_confidence_meaning(engine: Engine, judge: str, meaning: ConfidenceMeaning | None, *, actor: Viewer) -> bool:
    """`triage_store.set_confidence_meaning`, by a researcher or a lead."""
    with writing(engine) as session:
        allow(session, actor, check_can_set_meaning)
        return triage_store.set_confidence_meaning(session, judge, meaning, actor=actor.signature)
