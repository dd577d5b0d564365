"""Threads between a reader and the lead: who has skipped or flagged what, and what was answered."""

from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec
from sqlalchemy import func, select
from sqlmodel import Session, col

from evalcore.study.schema import Ask, NoteKind
from evalcore.study.tables import Assignment, Example, Person, ResponseNote, Task

OF_READER = (NoteKind.SKIP, NoteKind.FLAG)


class Line(msgspec.Struct, frozen=True):
    """One line of a thread. Who of the leads wrote it, leads alone are told."""

    number: int
    kind: NoteKind
    text: str
    written_by: str
    at: datetime


class Thread(msgspec.Struct, frozen=True):
    """What one reader and the lead have said to one another on one task, oldest first; no model, no judge and no other reader is in it."""

    task_id: int
    person_id: int
    reader: str
    ask: Ask
    example_id: int
    response_id: int | None
    prompt_id: str
    first_words: str
    lines: tuple[Line, ...]

    @property
    def is_skipped(self) -> bool:
        """The reader has skipped it, and no lead has returned it since."""
        kinds = [line.kind for line in self.lines if line.kind in (NoteKind.SKIP, NoteKind.RETURN)]
        return bool(kinds) and kinds[-1] is NoteKind.SKIP

    @property
    def waits(self) -> bool:
        """The last line is the reader's: it waits for a lead."""
        return self.lines[-1].kind in OF_READER

    @property
    def is_closed(self) -> bool:
        """A lead has closed it, and the reader has said nothing since."""
        return self.lines[-1].kind is NoteKind.CLOSE


def n_waiting(session: Session, hidden: frozenset[int]) -> int:
    """How many threads wait for a lead (`Thread.waits`), but for those on conversations of which nothing may be shown."""
    newest = select(func.max(col(ResponseNote.id))).group_by(col(ResponseNote.task_id), col(ResponseNote.person_id))
    waiting = (
        select(col(Task.example_id))
        .join(ResponseNote, col(ResponseNote.task_id) == col(Task.id))
        .where(col(ResponseNote.id).in_(newest), col(ResponseNote.kind).in_(OF_READER))
    )
    return sum(example not in hidden for example in session.connection().scalars(waiting))


def threads(session: Session, *, person_id: int | None = None, task_id: int | None = None) -> list[Thread]:
    """Threads of one reader, on one task, or all. What waits for a lead comes first, then the newest."""
    named: dict[str, Any] = {
        **{
            name: col(getattr(ResponseNote, name))
            for name in ("task_id", "person_id", "kind", "text", "written_by", "at")
        },
        "number": col(ResponseNote.id),
        "reader": col(Person.name),
        "ask": col(Assignment.ask),
        "example_id": col(Task.example_id),
        "response_id": col(Task.response_id),
        "prompt_id": col(Example.prompt_id),
        "first_words": col(Example.first_words),
    }
    statement = (
        select(*(column.label(name) for name, column in named.items()))
        .join(Person, col(Person.id) == col(ResponseNote.person_id))
        .join(Task, col(Task.id) == col(ResponseNote.task_id))
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .join(Example, col(Example.id) == col(Task.example_id))
        .order_by(col(ResponseNote.task_id), col(ResponseNote.person_id), col(ResponseNote.id))
    )
    if person_id is not None:
        statement = statement.where(col(ResponseNote.person_id) == person_id)
    if task_id is not None:
        statement = statement.where(col(ResponseNote.task_id) == task_id)
    rows = session.connection().execute(statement).mappings()
    found = []
    for _, of_thread in groupby(rows, key=lambda row: (row["task_id"], row["person_id"])):
        lines = [dict(row) for row in of_thread]
        found.append(msgspec.convert(lines[0] | {"lines": lines}, Thread))
    return sorted(found, key=lambda thread: (thread.waits, thread.lines[-1].number), reverse=True)
