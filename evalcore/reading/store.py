"""Assignments, readings, drafts and exposures. Drafts leave no audit event: they are no verdicts, and their reader alone sees them."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlmodel import Session, col

from evalcore.reading.queries import MANY
from evalcore.study.schema import ReadingState, Seen
from evalcore.study.store import append_event, written
from evalcore.study.tables import TABLES, Assignment, Example, Exposure, Reading, now

PAUSE_SECONDS = 120.0
"""Of a time without any act, so much counts as reading."""


def add_assignment(
    session: Session,
    items: Sequence[tuple[int, int | None, float]],
    *,
    readers: Collection[int],
    chosen_by: dict[str, Any],
    actor: str,
    **row: Any,
) -> int:
    """Write an assignment with its tasks, in their order, and one audit event. Returns its number.

    Args:
        items: (example_id, response_id or None, inclusion probability), in the order of reading.
        row: ask, n_readers, seed, reserve_minutes, selection, n_population of the `Assignment`.
    """
    assignment = Assignment(chosen_by=json.dumps(chosen_by, ensure_ascii=False), created_by=actor, **row)
    session.add(assignment)
    session.flush()
    number, connection = assignment.id or 0, session.connection()
    tasks = [
        {"assignment_id": number, "example_id": example, "response_id": response, "place": place, "inclusion_probability": share}
        for place, (example, response, share) in enumerate(items, start=1)
    ]  # fmt: skip
    task_ids = connection.execute(insert(TABLES["task"]).returning(TABLES["task"].c.id), tasks)
    written(session).content("task", task_ids.scalars())
    written(session).content("assignment", [number])
    people = [{"assignment_id": number, "person_id": person} for person in sorted(readers)]
    connection.execute(insert(TABLES["assignment_reader"]), people)
    detail = {
        "ask": row["ask"],
        "items": len(items),
        "of": row["n_population"],
        "n_readers": row["n_readers"],
        "readers": sorted(readers),
        "seed": row["seed"],
        "chosen_by": chosen_by,
    }
    append_event(session, actor=actor, action="items assigned", subject=f"assignment {number}", detail=detail)
    return number


# ---------------------------------------------------------------- readings and drafts


def open_reading(
    session: Session, task_id: int, person_id: int, *, reserve_minutes: int, at: datetime, **row: Any
) -> Reading:
    """A reader takes a task. `row`: blinded, guideline_version of the `Reading`."""
    reserved_until = at + timedelta(minutes=reserve_minutes)
    reading = Reading(
        task_id=task_id, person_id=person_id, opened_at=at, last_at=at, reserved_until=reserved_until, **row
    )
    session.add(reading)
    session.flush()
    return reading


def drop_reading(session: Session, reading_id: int) -> None:
    """Give a place back; drafts go with it."""
    for table, column in (("mark", "reading_id"), ("reading", "id")):
        rows = TABLES[table]
        session.connection().execute(delete(rows).where(rows.c[column] == reading_id))


def touch(session: Session, reading: Reading, *, reserve_minutes: int, at: datetime, **changes: Any) -> None:
    """The reader did something: time goes on, the reservation too."""
    spent = min(max((at - reading.last_at).total_seconds(), 0.0), PAUSE_SECONDS)
    reserved_until = at + timedelta(minutes=reserve_minutes)
    values = {"seconds": reading.seconds + spent, "last_at": at, "reserved_until": reserved_until, **changes}
    rows = TABLES["reading"]
    session.connection().execute(update(rows).where(rows.c.id == reading.id).values(**values))


def set_state(
    session: Session, reading: Reading, state: ReadingState, *, reserve_minutes: int, at: datetime, **locked: Any
) -> None:
    """A reading is locked, or done.

    Args:
        locked: Where it is locked now: judge (whose verdicts are shown from now on), knows_model (what its reader says of the model).
    """
    changes: dict[str, Any] = {"locked_at": at, **locked} if reading.locked_at is None else {}
    if state is ReadingState.DONE:
        changes["done_at"] = at
    touch(session, reading, reserve_minutes=reserve_minutes, at=at, state=state, **changes)


def add_mark(session: Session, values: dict[str, Any]) -> None:
    """A draft: reading_id, criterion_id, label, reason, note, created_at."""
    session.connection().execute(insert(TABLES["mark"]), values)


def drop_mark(session: Session, mark_id: int) -> None:
    """Take a draft away."""
    rows = TABLES["mark"]
    session.connection().execute(delete(rows).where(rows.c.id == mark_id))


# ---------------------------------------------------------------- who saw others' verdicts on what: written the first time, never changed


def add_exposures(session: Session, person_id: int, what: Seen, examples: Collection[int] | None) -> int:
    """Remember that somebody sees others' verdicts. Returns how many rows that took: none where all is known already.

    Where it is not 0 an event has to follow in the transaction, which vouches for the rows.

    Args:
        examples: Numbers of the examples; None: of every example that is there now (for those who are released: later ones too), as one row.
    """
    missing = unseen(session, person_id, what, examples)
    if missing:
        at, through = now(), _through(session, what) if examples is None else None
        rows = [
            {"person_id": person_id, "example_id": number, "through": through, "what": what, "at": at}
            for number in missing
        ]
        table = TABLES["exposure"]
        is_sqlite = session.get_bind().dialect.name == "sqlite"  # there the write lock keeps a second tab out
        statement = insert(table) if is_sqlite else insert_postgresql(table).on_conflict_do_nothing()
        row_ids = session.connection().execute(statement.returning(table.c.id), rows)
        written(session).content("exposure", row_ids.scalars())
    return len(missing)


def unseen(session: Session, person_id: int, what: Seen, examples: Collection[int] | None) -> list[int | None]:
    """Those of some examples (None: all as one) of which it is not known yet that somebody saw verdicts on them in this way."""
    of_person: list[ColumnElement[bool]] = [col(Exposure.person_id) == person_id, col(Exposure.what) == what]
    number = func.coalesce(col(Exposure.example_id), 0)
    if examples is None:
        through = func.coalesce(col(Exposure.through), 0) == (_through(session, what) or 0)
        is_known = session.connection().execute(select(exists().where(*of_person, number == 0, through))).scalar_one()
        return [] if is_known else [None]
    if len(examples) <= MANY:
        of_person.append(number.in_(list(examples)))
    return [*sorted(set(examples) - set(session.connection().execute(select(number).where(*of_person)).scalars()))]


def _through(session: Session, what: Seen) -> int | None:
    if what is Seen.RELEASED:
        return None
    return session.connection().execute(select(func.max(col(Example.id)))).scalar()
