"""Assignments, readings and drafts. Drafts leave no audit event: they are no verdicts, and their reader alone sees them."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, update
from sqlmodel import Session

from evalcore.study.schema import Ask, ReadingState, Selection
from evalcore.study.store import append_event, written
from evalcore.study.tables import TABLES, Assignment, Reading

PAUSE_SECONDS = 120.0
"""Of a time without any act, so much counts as reading."""


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
        items: (example_id, response_id or None, inclusion probability), in the order of reading.
        readers: Numbers of the people who may read.
        n_readers: How many readers an item gets.
        seed: Of the drawing and the order.
        reserve_minutes: For how long an opened item is kept for its reader.
        chosen_by: The filters or the plan, for the record.
        n_population: How many items they were drawn from.
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
