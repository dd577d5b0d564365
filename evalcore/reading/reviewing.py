"""Assigned reading: take an item, mark it, submit and lock. Every mark is stored at once."""

import secrets
from datetime import datetime

from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import AlreadyChanged, NotFound, OverreadError
from evalcore.reading import exposures, sheets, tasks
from evalcore.reading import store as reading_store
from evalcore.reading.assigning import MAX_SEED
from evalcore.reading.desks import Desk, as_label, check_answer, check_note, control_keys, desk_of, missing, own_reading
from evalcore.reading.sheets import Given
from evalcore.reading.tasks import Asked, Draft
from evalcore.study import contents, store
from evalcore.study.acting import allow, anew
from evalcore.study.db import reading as reads
from evalcore.study.db import writing
from evalcore.study.policies import STUDY, check_can_mark, check_can_read
from evalcore.study.schema import (
    Acuity,
    Ask,
    CannotReason,
    Label,
    NotBlind,
    RaterKind,
    ReadingMode,
    ReadingState,
    Stage,
    Verdict,
    Viewer,
)
from evalcore.study.tables import Reading, now


def take(engine: Engine, viewer: Viewer, *, at: datetime | None = None) -> Desk | None:
    """The reader's unfinished item, else the next one that waits, which is then reserved; None where nothing waits.

    An item whose reservation ran out is given back where nothing was marked and others have filled its places; with marks it stays:
    a physician's work is never lost. Where its place is still free, coming back reserves it anew.

    Raises:
        NotAllowed: The viewer does not read.
    """
    at = at or now()
    with reads(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        found = _in_hand(session, viewer, at)
        if found is not None and not _ran_out(found[0], at):
            return desk_of(session, *found)
    with writing(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        store.wait_for_others(session)
        for unfinished in tasks.unfinished(session, viewer.person_id):
            reading = tasks.reading(
                session, unfinished.id or 0, lock=True
            )  # a mark from another tab comes before or after
            asked = tasks.task(session, unfinished.task_id)
            if reading is not None and asked is not None and not _is_kept(session, reading, asked, viewer, at):
                reading_store.drop_reading(session, reading.id or 0)
        found = _in_hand(session, viewer, at)
        if found is not None:
            _reserve_again(session, *found, viewer, at)
        else:
            asked = tasks.next_task(session, viewer, at)
            if asked is None:
                return None
            guideline = contents.guideline(session)
            reading = reading_store.open_reading(
                session,
                asked.task_id,
                viewer.person_id,
                blinded=contents.rules(session).mode is ReadingMode.BLIND,
                guideline_version=guideline.version if guideline else None,
                reserve_minutes=asked.reserve_minutes,
                at=at,
            )
            found = reading, asked
        return desk_of(session, *found)


def _ran_out(reading: Reading, at: datetime) -> bool:
    return reading.state == ReadingState.READING and reading.reserved_until <= at


def _reserve_again(session: Session, reading: Reading, asked: Asked, viewer: Viewer, at: datetime) -> None:
    """Keep the place of somebody who comes back; the time away counts no more than it does at the next mark."""
    if _ran_out(reading, at) and tasks.has_place(session, asked, viewer, at):
        same = {"seconds": reading.seconds, "last_at": reading.last_at}
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at, **same)
        session.refresh(reading)


def _in_hand(session: Session, viewer: Viewer, at: datetime) -> tuple[Reading, Asked] | None:
    for reading in tasks.unfinished(session, viewer.person_id):
        asked = tasks.task(session, reading.task_id)
        if asked is not None and _is_kept(session, reading, asked, viewer, at):
            return reading, asked
    return None


def _is_kept(session: Session, reading: Reading, asked: Asked, viewer: Viewer, at: datetime) -> bool:
    if not _ran_out(reading, at):
        return True
    return tasks.has_place(session, asked, viewer, at) or bool(tasks.drafts(session, reading.id or 0))


def mark(  # noqa: PLR0913 - what a mark says
    engine: Engine,
    viewer: Viewer,
    reading_id: int,
    criterion_id: int | None,
    label: Label | Acuity | None,
    *,
    reason: CannotReason | None = None,
    note: str | None = None,
    then: int | None = None,
    at: datetime | None = None,
) -> None:
    """Store a draft; the newest of an item counts.

    Args:
        criterion_id: The criterion; None for a question on the whole.
        label: The answer; None: only a note so far.
        reason: Why it cannot be assessed; the submission asks for it.
        then: Place, from 0, of the item that is in hand afterwards; None: the same.
        at: When; now by default.

    Raises:
        AlreadyChanged: The read is locked.
        NotFound: The item is not in the reader's hands, or has no such criterion.
        OverreadError: The answer is none to this question, or the note is too long.
    """
    at = at or now()
    check_note(note or "")
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = own_reading(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        if label is not None:
            check_answer(label, asked.ask)
        if not sheets.has_item(session, asked, criterion_id):
            msg = f"This item has no criterion {criterion_id}."
            raise NotFound(msg)
        values = {
            "reading_id": reading_id,
            "criterion_id": criterion_id,
            "label": label,
            "reason": reason if label == Label.CANNOT_ASSESS else None,
            "note": (note or "").strip() or None,
            "created_at": at,
        }
        reading_store.add_mark(session, values)
        place = reading.place if then is None else then
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at, place=place)


def move(engine: Engine, viewer: Viewer, reading_id: int, place: int, *, at: datetime | None = None) -> None:
    """Take another item of the sheet in hand; its place counts from 0.

    Raises:
        AlreadyChanged: The read is locked.
    """
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = own_reading(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at or now(), place=place)


def undo_mark(engine: Engine, viewer: Viewer, reading_id: int, *, at: datetime | None = None) -> int | None:
    """Take the newest draft away, so that the one before it counts. Returns whose criterion it was.

    Raises:
        AlreadyChanged: The read is locked, or there is nothing to take back.
    """
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = own_reading(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        last = tasks.last_mark(session, reading_id)
        if last is None:
            msg = "There is nothing to undo here."
            raise AlreadyChanged(msg)
        reading_store.drop_mark(session, last.id or 0)
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at or now())
        return last.criterion_id


def submit(
    engine: Engine, viewer: Viewer, reading_id: int, *, knows_model: bool = False, at: datetime | None = None
) -> ReadingState:
    """Lock the first read: drafts become verdicts, and the judge's may be shown. Returns the new state.

    Done at once where the judge says the same throughout, or nothing; else the differences wait for keep or revise. Where the study has a
    control, some criteria are drawn now for a second look before anything of the judge is shown. A read whose
    reservation ran out is taken all the same: it counts as one read more. What somebody submits who has seen others' verdicts on the
    conversation, or who leads the study, is stored as not blind, with the reason.

    Args:
        knows_model: The reader says that they know which model wrote the response: by its style, or since the text names it.
        at: When; now by default.

    Raises:
        AlreadyChanged: It is locked already.
        OverreadError: An item has no answer yet.
    """
    at = at or now()
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = own_reading(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        sheet = sheets.sheet(session, asked)
        drafts = tasks.drafts(session, reading_id)
        keys: list[int | None] = [item.criterion_id for item in sheet.items] or [None]
        if unanswered := missing(keys, drafts):
            msg = f"{len(unanswered)} of {len(keys)} still need an answer, or the reason why they cannot be assessed."
            raise OverreadError(msg)
        rater = store.ensure_rater(session, RaterKind.REVIEWER, viewer.name)
        # in an open study somebody may have said something here of their own accord since the item was opened: this takes its place
        before = {} if reading.blinded else sheets.said_by(session, asked, rater, [Stage.OPEN])
        why = _not_blind(session, viewer, reading, asked)
        verdicts = [_first_verdict(asked, reading, rater, key, drafts[key], before.get(key), why) for key in keys]
        said = {"knows_model": True} if knows_model else {}
        store.add_verdicts(session, verdicts, actor=viewer.name, action="first read submitted", **said)
        rules = contents.rules(session)
        judge, judged = sheets.judge_on(session, asked, rules.judge)
        is_drawn = rules.control_share > 0 and why is None and asked.ask is Ask.RUBRIC and bool(judged)
        seed, share = (secrets.randbelow(MAX_SEED + 1), rules.control_share) if is_drawn else (None, None)
        control = control_keys(seed, share, keys, judged)
        differs = any(key in judged and judged[key].label != drafts[key].label for key in keys if key not in control)
        state = ReadingState.REVEALED if differs or control else ReadingState.DONE
        reading_store.set_state(
            session,
            reading,
            state,
            reserve_minutes=asked.reserve_minutes,
            at=at,
            judge=judge,
            knows_model=knows_model,
        )
        if seed is not None:
            reading_store.touch(
                session, reading, reserve_minutes=asked.reserve_minutes, at=at, control_seed=seed, control_share=share
            )
        return state


def _not_blind(session: Session, viewer: Viewer, reading: Reading, asked: Asked) -> NotBlind | None:
    """Why what is submitted now was not read blind; None where it was."""
    if not reading.blinded:
        return NotBlind.OPEN
    if exposures.is_exposed(session, viewer.person_id, asked.example_id):
        return NotBlind.EXPOSED
    return NotBlind.ROLE if viewer.roles & STUDY else None


def _first_verdict(
    asked: Asked,
    reading: Reading,
    rater: int,
    key: int | None,
    draft: Draft,
    before: Given | None,
    why: NotBlind | None,
) -> Verdict:
    return Verdict(
        example_id=asked.example_id,
        response_id=asked.response_id,
        criterion_id=key,
        rater_id=rater,
        stage=Stage.FIRST if reading.blinded else Stage.OPEN,
        label=as_label(draft.label),
        reason=draft.reason,
        explanation=draft.note,
        selection=asked.selection,
        inclusion_probability=asked.chance,
        blinded=why is None,
        not_blind=why,
        guideline_version=reading.guideline_version,
        supersedes=before.verdict_id if before else None,
    )
