"""Assignments and exposures."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlmodel import Session, col

from evalcore.reading.queries import MANY, is_skipped, judge_of
from evalcore.study.schema import ReadingState, Seen
from evalcore.study.store import append_event, written
from evalcore.study.tables import TABLES, Assignment, Example, Exposure, now


def add_assignment(
    session: Session,
    items: Sequence[tuple[int, int | None, float]],
    *,
    readers: Collection[int],
    chosen_by: dict[str, Any],
    judge: str | None = None,
    actor: str,
    **row: Any,
) -> int:
    """Write an assignment (`row`: columns of its table) with its tasks and one audit event. Returns its number.

    `judge`: the study's choice. Who is shown to readers is settled here, so that results of another judge change nothing in the middle of it.
    `items`: (example_id, response_id or None, inclusion probability), in the order of reading.
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
    assignment.judge = judge_of(session, number, row["ask"], judge)
    session.flush()
    written(session).content("assignment", [number])
    people = [{"assignment_id": number, "person_id": person} for person in sorted(readers)]
    connection.execute(insert(TABLES["assignment_reader"]), people)
    detail = {"ask": row["ask"], "items": len(items), "of": row["n_population"], "n_readers": row["n_readers"]}
    detail |= {"readers": sorted(readers), "seed": row["seed"], "chosen_by": chosen_by}
    detail |= {"judge": assignment.judge} if assignment.judge else {}
    detail |= {"practice": json.loads(assignment.practice)} if assignment.practice else {}
    append_event(session, actor=actor, action="items assigned", subject=f"assignment {number}", detail=detail)
    return number


def add_readers(
    session: Session, assignment: Assignment, readers: Collection[int], practice: dict[int, list[int]]
) -> None:
    """More people may take an assignment's items; `practice`: the responses that some of them practise on first."""
    rows = [{"assignment_id": assignment.id, "person_id": person} for person in sorted(readers)]
    session.connection().execute(insert(TABLES["assignment_reader"]), rows)
    if practice:
        whole = json.loads(assignment.practice or "{}") | {str(person): numbers for person, numbers in practice.items()}
        assignment.practice = json.dumps(whole)
        written(session).content("assignment", [assignment.id or 0])


def remove_reader(session: Session, assignment: Assignment, person_id: int) -> None:
    """Somebody takes no more of an assignment's items; what they locked stays theirs."""
    reader = TABLES["assignment_reader"]
    this = reader.c.assignment_id == assignment.id, reader.c.person_id == person_id
    session.connection().execute(delete(reader).where(*this))


def free_readings(
    session: Session, at: datetime, *, person_id: int | None = None, assignment_id: int | None = None
) -> dict[int, int]:
    """Take what somebody has begun and not locked out of their hands, of this person or assignment, or of both: its place is free, its marks stay.

    Returns the person by task. What is skipped holds no place, and waits for a lead as before.
    """
    reading, task = TABLES["reading"], TABLES["task"].c
    wanted = [reading.c.state == ReadingState.READING, reading.c.freed_at.is_(None), ~is_skipped()]
    if person_id is not None:
        wanted.append(reading.c.person_id == person_id)
    if assignment_id is not None:
        wanted.append(reading.c.task_id.in_(select(task.id).where(task.assignment_id == assignment_id)))
    connection = session.connection()
    # locked first: a read that is submitted at the same time comes before this and stays, or is told
    held = list(connection.execute(select(reading.c.id).where(*wanted).with_for_update(of=reading)).scalars())
    still = reading.c.id.in_(held), reading.c.state == ReadingState.READING
    freed = update(reading).where(*still).values(freed_at=at)
    return {row[0]: row[1] for row in connection.execute(freed.returning(reading.c.task_id, reading.c.person_id))}


# ---------------------------------------------------------------- who saw others' verdicts on what: written the first time, never changed


def add_exposures(session: Session, person_id: int, what: Seen, examples: Collection[int] | None) -> int:
    """Remember that somebody sees others' verdicts. Returns how many rows that took: none where all is known already.

    Where it is not 0 an event has to follow in the transaction, which vouches for the rows.
    No examples: every one that is there now (for those who are released: later ones too), as one row.
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
