"""Freeze a study: nothing that a number rests on is written any more (`db.writing`); a later amendment is a version with a name and a reason.

Written all the same: who is let in and who came, and who saw or took out what, since a reader who looks meanwhile reads nothing blind later.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import exists, select
from sqlmodel import Session

from evalcore.errors import AlreadyChanged, OverreadError, refuse
from evalcore.stats.wording import counted
from evalcore.study import contents, lookups, store
from evalcore.study.acting import act
from evalcore.study.audit import trail
from evalcore.study.db import AMENDED, STUDY_FROZEN, Engine, hold_writers
from evalcore.study.policies import check_can_freeze
from evalcore.study.schema import Viewer
from evalcore.study.tables import TABLES, now

FIRST = "version 1"
MAX_NAME, MAX_REASON = 80, 500
ALIVE = timedelta(minutes=2)  # a worker of a run that has said nothing for longer has died


@dataclass(frozen=True)
class Version:
    """One state of the study that was frozen, with the hash of the last of its `n_events`; what comes after `analysis` is None as long as it is frozen."""

    name: str
    frozen_at: datetime
    frozen_by: str
    hash: str
    n_events: int
    analysis: int | None
    reopened_at: datetime | None = None
    reopened_by: str | None = None
    amendment: str | None = None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """What is fixed, and whether it has been opened again since."""
        spec = "no analysis was stated" if self.analysis is None else f"version {self.analysis} of the stated analysis"
        said = f"Frozen as {self.name} on {self.frozen_at:%Y-%m-%d} by {self.frozen_by}: last hash of the audit trail {self.hash}, {spec}."
        if self.reopened_at is not None:
            said += (
                f" Opened again on {self.reopened_at:%Y-%m-%d} by {self.reopened_by} as {self.amendment}: {self.reason}"
            )
        return said


def versions(session: Session) -> list[Version]:
    """Every version that was frozen, oldest first."""
    found: list[Version] = []
    for row in trail.of_action(session, STUDY_FROZEN, AMENDED):
        detail = json.loads(row.detail)
        if row.action == STUDY_FROZEN:
            state = {"n_events": detail["events"] + 1, "analysis": detail["analysis"]}
            found.append(Version(row.subject, row.at, row.actor, row.hash, **state))
        else:
            why = {"amendment": row.subject, "reason": detail["reason"]}
            found[-1] = replace(found[-1], reopened_at=row.at, reopened_by=row.actor, **why)
    return found


def frozen(session: Session) -> Version | None:
    """The version that is frozen now; None where the study is open."""
    newest = next(reversed(versions(session)), None)
    return newest if newest is not None and newest.reopened_at is None else None


def sentences(found: Sequence[Version]) -> list[str]:
    """What exports say of all versions."""
    return [version.sentence for version in found]


def freeze(engine: Engine, *, actor: Viewer) -> Version:
    """Freeze the study as it is; refused while somebody imports, or a run is worked on."""
    store.index_texts(engine)  # what waits for the search could not be taken up later
    with act(engine, actor, check_can_freeze, though_frozen=True) as session:
        hold_writers(session)
        found = versions(session)
        if found and found[-1].reopened_at is None:
            refuse(f"The study is frozen already. {found[-1].sentence}", AlreadyChanged)
        _check_is_at_rest(session)
        n_events, _ = trail.trail_head(session)
        stated = contents.stated_analysis(session)
        name = found[-1].amendment or FIRST if found else FIRST
        day = f"{now():%Y-%m-%d %H:%M} UTC"
        detail = {"events": n_events, "analysis": stated.version if stated else None, "day": day}
        store.append_event(session, actor=actor.signature, action=STUDY_FROZEN, subject=name, detail=detail)
        return versions(session)[-1]


def _check_is_at_rest(session: Session) -> None:
    busy = lookups.unfinished_import(session) or lookups.import_under_way(session)
    if busy is not None:
        refuse(f"{busy.sentence} Freeze the study when that is done.")
    worker = TABLES["run_worker"].c
    works = exists().where(worker.ended_at.is_(None), worker.seen_at > now() - ALIVE)
    if session.connection().execute(select(works)).scalar_one():
        msg = "A run is being worked on. Wait until it has ended, or stop it (Study, Runs), and then freeze the study."
        raise OverreadError(msg)


def amend(engine: Engine, name: str, reason: str, *, actor: Viewer) -> Version:
    """Open a frozen study again, as an amendment with a name and a reason, which exports and the methods tell from then on."""
    name, reason = _text("name", name, MAX_NAME), _text("reason", reason, MAX_REASON)
    with act(engine, actor, check_can_freeze, though_frozen=True) as session:
        hold_writers(session)
        found = versions(session)
        if not found or found[-1].reopened_at is not None:
            refuse("The study is not frozen: it can be changed already.", AlreadyChanged)
        if name in {version.name for version in found}:
            refuse(f"name: expected a new one, got {name!r}, which is the name of a version that was frozen")
        detail = {"reason": reason, "of": found[-1].name}
        store.append_event(session, actor=actor.signature, action=AMENDED, subject=name, detail=detail)
        return versions(session)[-1]


def _text(field: str, text: str, most: int) -> str:
    text = text.strip()
    if not 0 < len(text) <= most or not store.is_storable(text):
        refuse(f"{field}: expected 1 to {most} characters of plain text, got {counted(len(text), 'character')}")
    return text
