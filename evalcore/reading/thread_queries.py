"""Threads between a reader and the lead: who has skipped or flagged what, and what was answered."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import select
from sqlmodel import Session, col

from evalcore.study.schema import Ask, NoteKind
from evalcore.study.tables import Assignment, Example, Person, ResponseNote, Task

OF_READER = (NoteKind.SKIP, NoteKind.FLAG)


@dataclass(frozen=True)
class Line:
    """One line of a thread. Who of the leads wrote it, leads alone are told."""

    number: int
    kind: NoteKind
    text: str
    written_by: str
    at: datetime


@dataclass(frozen=True)
class Thread:
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


def threads(
    session: Session, *, person_id: int | None = None, task_id: int | None = None, hidden: frozenset[int] = frozenset()
) -> list[Thread]:
    """Threads of one reader, on one task, or of all; without those on hidden conversations. What waits for a lead comes first, then the newest."""
    line: list[Any] = [col(getattr(ResponseNote, name)) for name in ("id", "kind", "text", "written_by", "at")]
    of_thread: list[Any] = [
        col(ResponseNote.task_id), col(ResponseNote.person_id), col(Person.name), col(Assignment.ask), col(Task.example_id),
        col(Task.response_id), col(Example.prompt_id), col(Example.first_words),
    ]  # fmt: skip
    statement = (
        select(*of_thread, *line)
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
    n = len(of_thread)
    found = []
    for head, rows in groupby(session.connection().execute(statement), key=lambda row: tuple(row[:n])):
        task, person, reader, ask, *what = head
        lines = tuple(Line(row[n], NoteKind(row[n + 1]), *row[n + 2 :]) for row in rows)
        found.append(Thread(task, person, reader, Ask(ask), *what, lines))
    open_ = [thread for thread in found if thread.example_id not in hidden]
    return sorted(open_, key=lambda thread: (thread.waits, thread.lines[-1].number), reverse=True)
