"""A reader skips a response or flags it, with a line to the lead; the lead answers. One thread a response and reader, which stays blind.

Nobody but the reader and the leads sees it, before the lock and after it; and since its reader may be blind, an answer names no model and no judge.
"""

from datetime import datetime

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, refuse
from evalcore.reading import adjudication, queries, thread_queries
from evalcore.reading.reviewing import acting_on, check_note
from evalcore.reading.thread_queries import Thread
from evalcore.study import contents, families, policies, schema, store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, reading as reads, writing
from evalcore.study.schema import NoteKind
from evalcore.study.tables import ResponseNote, now

MAX_LINE = 500
ACTIONS = {
    NoteKind.SKIP: "response skipped",
    NoteKind.FLAG: "response flagged",
    NoteKind.ANSWER: "reader answered",
    NoteKind.CLOSE: "thread closed",
    NoteKind.RETURN: "response returned",
}
"""In the audit trail, which does not repeat the text: readers are physicians, and what they ask stays between them and the lead."""


def check_line(text: str, *, name: str = "Line to the lead") -> str:
    """A line says something, briefly. Returns it without the space around it."""
    line = text.strip()
    if not line:
        more = " Say what is wrong with this response." if name == "Line to the lead" else ""
        refuse(f"{name}: expected a few words, got none.{more}")
    _check_text(line, name=name)
    return line


def _check_text(text: str, *, name: str) -> None:
    if len(text) > MAX_LINE:
        refuse(f"{name}: expected at most {MAX_LINE} characters, got {len(text):,}. Shorten it.")
    check_note(text, name=name)


def tell(
    engine: Engine, viewer: schema.Viewer, reading_id: int, text: str, *, skip: bool, at: datetime | None = None
) -> None:
    """Flag the response in hand to the lead, or skip it. What is skipped keeps its marks, gives its place to others, and counts as no read."""
    line, at = check_line(text), at or now()
    with acting_on(engine, viewer, reading_id, policies.check_can_mark, at) as (session, person, reading, asked):
        if skip:
            reading.reserved_until = at
        kind = NoteKind.SKIP if skip else NoteKind.FLAG
        _write(session, asked, person.person_id, kind, line, actor=person, at=at)


def own_thread(session: Session, viewer: schema.Viewer, task_id: int) -> Thread | None:
    """What this reader and the lead have said on a task; None where nothing was."""
    return next(iter(thread_queries.threads(session, person_id=viewer.person_id, task_id=task_id)), None)


def of_lead(engine: Engine, viewer: schema.Viewer) -> tuple[list[Thread], int]:
    """Every thread that a lead may see, and how many more there are on conversations that wait for the lead's own read or settlement."""
    with reads(engine) as session:
        viewer = allow(session, viewer, policies.check_can_answer)
        found = thread_queries.threads(session)
        hidden = adjudication.hidden_examples(session, viewer) if found else frozenset()
    seen = [thread for thread in found if thread.example_id not in hidden]
    return seen, len(found) - len(seen)


def reply(
    engine: Engine,
    viewer: schema.Viewer,
    task_id: int,
    person_id: int,
    kind: NoteKind,
    text: str = "",
    *,
    seen: int,
    at: datetime | None = None,
) -> None:
    """Answer a reader, close the thread, or return a skipped response; with a line, which only an answer must have. `seen`: the newest line on the screen."""
    line, at = text.strip(), at or now()
    if kind not in ACTIONS or kind in thread_queries.OF_READER:
        refuse(f"kind: expected answer, close or return, got {kind}")
    if not line and kind is NoteKind.ANSWER:
        refuse("Answer: expected a few words, got none.")
    _check_text(line, name="Answer")
    with writing(engine) as session:
        viewer = allow(session, viewer, policies.check_can_answer)
        asked = queries.task(session, task_id)
        if asked is None or not thread_queries.threads(session, person_id=person_id, task_id=task_id):
            refuse(f"There is no thread with this reader on item {task_id}.", NotFound)
        hidden = adjudication.hidden_examples(session, viewer, asked.example_id)
        policies.check_can_open(viewer, asked.example_id, hidden)
        # a line of the reader, or of another lead, comes before this or after
        queries.hold_readings(session, asked.example_id, asked.response_id)
        (thread,) = thread_queries.threads(session, person_id=person_id, task_id=task_id)
        if thread.lines[-1].number != seen or (kind is NoteKind.CLOSE and thread.is_closed):
            msg = "Somebody has written here since. The newer lines are shown now; nothing of yours was saved."
            raise AlreadyChanged(msg)
        check_blind(session, line)
        if kind is NoteKind.RETURN:
            is_theirs = queries.is_asked(session, thread.person_id, asked.assignment_id)
            has_place = is_theirs and _has_place(session, thread, at)
            policies.check_is_returnable(is_skipped=thread.is_skipped, is_theirs=is_theirs, has_place=has_place)
        _write(session, asked, person_id, kind, line, actor=viewer, at=at)


def check_blind(session: Session, line: str, *, name: str = "This answer") -> None:
    """The reader may read blind still, or read another answer of the same model next."""
    named = [*contents.models(session), *contents.judges(session)]
    if families.mentions(line, named, contents.family_table(session)):
        msg = f"{name} names a model, a judge, or who made it, and the reader reads blind. Write it without the name."
        raise NotAllowed(msg)


def _has_place(session: Session, thread: Thread, at: datetime) -> bool:
    reader, asked = contents.person(session, thread.person_id), queries.task(session, thread.task_id)
    if reader is None or asked is None:
        refuse(f"{thread.reader} has no access any more. Close the thread instead.", NotAllowed)
    return queries.has_place(session, asked, reader, at) or queries.has_marks(session, thread.task_id, thread.person_id)


def _write(
    session: Session,
    asked: queries.Asked,
    reader: int,
    kind: NoteKind,
    text: str,
    *,
    actor: schema.Viewer,
    at: datetime,
) -> None:
    row = ResponseNote(task_id=asked.task_id, person_id=reader, kind=kind, text=text, written_by=actor.signature, at=at)
    session.add(row)
    session.flush()
    store.written(session).content("response_note", [row.id or 0])
    subject = queries.subject(asked.example_id, asked.response_id)
    store.append_event(session, actor=actor.signature, action=ACTIONS[kind], subject=subject, detail={"reader": reader})
