"""Assignments, readings and drafts. Drafts leave no audit event: they are no verdicts, and their reader alone sees them."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, text, update
from sqlmodel import Session

from evalcore.errors import OverreadError
from evalcore.schema import Ask, ReadingState, Rules, Selection
from evalcore.store.events import append_event
from evalcore.store.people import ensure_study
from evalcore.store.plain_text import is_storable
from evalcore.store.written import written
from evalcore.study.tables import TABLES, Assignment, Guideline, Reading, now

PAUSE_SECONDS = 120.0
"""Of a time without any act, so much counts as reading."""
MAX_GUIDELINE = 100_000
_CLAIM_LOCK = 0x636C6169  # any constant: "clai"


def wait_for_others(session: Session) -> None:
    """Hold whoever claims or settles at the same time until this transaction ends; on SQLite the write lock does that already."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CLAIM_LOCK})


def add_assignment(  # noqa: PLR0913 - what an assignment is made of
    session: Session,
    items: Sequence[tuple[int, int | None, float]],
    *,
    ask: Ask,
    readers: Collection[int],
    n_readers: int,
    seed: int,
    reserve_minutes: int,
    selection: Selection,
    chosen_by: dict[str, Any],
    n_population: int,
    actor: str,
) -> int:
    """Write an assignment with its tasks, in their order, and one audit event. Returns its number.

    Args:
        session: Where to write.
        items: (example_id, response_id or None, inclusion probability), in the order of reading.
        ask: What readers are asked.
        readers: Numbers of the people who may read.
        n_readers: How many readers an item gets.
        seed: Of the drawing and the order.
        reserve_minutes: For how long an opened item is kept for its reader.
        selection: How the items were chosen.
        chosen_by: The filters or the plan, for the record.
        n_population: How many items they were drawn from.
        actor: Who assigns.
    """
    row = Assignment(
        ask=ask,
        n_readers=n_readers,
        seed=seed,
        reserve_minutes=reserve_minutes,
        selection=selection,
        chosen_by=json.dumps(chosen_by, ensure_ascii=False),
        n_population=n_population,
        created_by=actor,
    )
    session.add(row)
    session.flush()
    number = row.id or 0
    tables, connection = TABLES, session.connection()
    tasks = [
        {"assignment_id": number, "example_id": example, "response_id": response, "place": place, "inclusion_probability": share}
        for place, (example, response, share) in enumerate(items, start=1)
    ]  # fmt: skip
    made = connection.execute(insert(tables["task"]).returning(tables["task"].c.id), tasks)
    written(session).content("task", made.scalars())
    written(session).content("assignment", [number])
    people = [{"assignment_id": number, "person_id": person} for person in sorted(readers)]
    connection.execute(insert(tables["assignment_reader"]), people)
    detail = {
        "ask": ask,
        "items": len(items),
        "of": n_population,
        "n_readers": n_readers,
        "readers": sorted(readers),
        "seed": seed,
        "chosen_by": chosen_by,
    }
    append_event(session, actor=actor, action="items assigned", subject=f"assignment {number}", detail=detail)
    return number


def open_reading(
    session: Session,
    task_id: int,
    person_id: int,
    *,
    blinded: bool,
    guideline_version: int | None,
    reserve_minutes: int,
    at: datetime,
) -> Reading:
    """A reader takes a task."""
    row = Reading(
        task_id=task_id,
        person_id=person_id,
        blinded=blinded,
        guideline_version=guideline_version,
        opened_at=at,
        last_at=at,
        reserved_until=at + timedelta(minutes=reserve_minutes),
    )
    session.add(row)
    session.flush()
    return row


def drop_reading(session: Session, reading_id: int) -> None:
    """Give a place back; drafts go with it."""
    for table, column in (("mark", "reading_id"), ("reading", "id")):
        rows = TABLES[table]
        session.connection().execute(delete(rows).where(rows.c[column] == reading_id))


def touch(session: Session, reading: Reading, *, reserve_minutes: int, at: datetime, **changes: Any) -> None:
    """The reader did something: time goes on, the reservation too."""
    spent = min(max((at - reading.last_at).total_seconds(), 0.0), PAUSE_SECONDS)
    values = {
        "seconds": reading.seconds + spent,
        "last_at": at,
        "reserved_until": at + timedelta(minutes=reserve_minutes),
        **changes,
    }
    rows = TABLES["reading"]
    session.connection().execute(update(rows).where(rows.c.id == reading.id).values(**values))


def add_mark(session: Session, values: dict[str, Any]) -> None:
    """A draft: reading_id, criterion_id, label, reason, note, created_at."""
    session.connection().execute(insert(TABLES["mark"]), values)


def drop_mark(session: Session, mark_id: int) -> None:
    """Take a draft away."""
    rows = TABLES["mark"]
    session.connection().execute(delete(rows).where(rows.c.id == mark_id))


def set_state(
    session: Session,
    reading: Reading,
    state: ReadingState,
    *,
    reserve_minutes: int,
    at: datetime,
    judge: str | None = None,
    knows_model: bool = False,
) -> None:
    """A reading is locked (`judge`: whose verdicts are shown from now on; `knows_model`: what its reader says of the model), or done."""
    changes: dict[str, Any] = {}
    if reading.locked_at is None:
        changes |= {"locked_at": at, "judge": judge, "knows_model": knows_model}
    if state is ReadingState.DONE:
        changes["done_at"] = at
    touch(session, reading, reserve_minutes=reserve_minutes, at=at, state=state, **changes)


def set_guideline(session: Session, guideline: str, *, actor: str) -> int:
    """Write a new version of what readers are told. Returns its number.

    Raises:
        OverreadError: It is empty, too long, or holds what no database holds.
    """
    if not guideline.strip() or len(guideline) > MAX_GUIDELINE or not is_storable(guideline):
        msg = f"guideline: {len(guideline):,} characters came, expected 1 to {MAX_GUIDELINE:,} of plain text"
        raise OverreadError(msg)
    row = Guideline(text=guideline, created_by=actor, created_at=now())
    session.add(row)
    session.flush()
    written(session).content("guideline", [row.version or 0])
    detail = {"characters": len(guideline)}
    append_event(session, actor=actor, action="guideline changed", subject=f"version {row.version}", detail=detail)
    return row.version or 0


def set_rules(session: Session, rules: Rules, *, actor: str) -> None:
    """Change what the study has chosen; what differs is in the trail.

    Raises:
        OverreadError: A share is none.
    """
    for name, share in (("check_share", rules.check_share), ("control_share", rules.control_share)):
        if not 0 <= share <= 1:
            msg = f"{name}: {share} came, expected a share from 0 to 1"
            raise OverreadError(msg)
    study = ensure_study(session)
    wanted = {
        "reading_mode": rules.mode.value,
        "judge": rules.judge,
        "check_share": rules.check_share,
        "both_against_judge": rules.both_against_judge,
        "control_share": rules.control_share,
        "blind": rules.blind,
        "leads_read": rules.leads_read,
    }
    changed = {name: value for name, value in wanted.items() if getattr(study, name) != value}
    if changed:
        for name, value in changed.items():
            setattr(study, name, value)
        session.add(study)
        append_event(session, actor=actor, action="rules changed", subject="study", detail=changed)
