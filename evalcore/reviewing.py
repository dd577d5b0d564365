"""Assigned reading: take an item, mark its criteria, submit and lock, see the judge, keep or revise. Every mark is stored at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine
from sqlmodel import Session

from evalcore import store
from evalcore.db import reading as reads
from evalcore.db import writing
from evalcore.errors import AlreadyChanged, NotFound, OverreadError
from evalcore.policies import check_can_decide, check_can_mark, check_can_read
from evalcore.queries import sheets, study, tasks
from evalcore.queries.sheets import Given, Sheet
from evalcore.queries.tasks import Asked, Draft
from evalcore.review_tables import Reading
from evalcore.schema import (
    Acuity,
    Ask,
    CannotReason,
    Cause,
    ErrorKind,
    Label,
    RaterKind,
    ReadingMode,
    ReadingState,
    Rules,
    Severity,
    Stage,
    Verdict,
    Viewer,
)
from evalcore.tables import now

MAX_NOTE = 5_000
OWN_STAGES = (Stage.FIRST, Stage.OPEN)
ANSWERS: Mapping[Ask, tuple[Label | Acuity, ...]] = {
    Ask.RUBRIC: tuple(Label),
    Ask.RESPONSE_ACUITY: (*Acuity, Label.CANNOT_ASSESS),
    Ask.GOLD_ACUITY: (*Acuity, Label.CANNOT_ASSESS),
}


@dataclass(frozen=True)
class Desk:
    """What a reader has in hand.

    Attributes:
        asked: The task.
        sheet: Its texts.
        drafts: The newest mark on each item, by criterion_id (None: the response or case as a whole).
        first: The locked first read, by criterion_id; empty before.
        decided: What was kept or revised since, by criterion_id.
        judge, judged: Whose verdicts are shown and what they are; None and empty while the reader is blind.
    """

    reading: Reading
    asked: Asked
    sheet: Sheet
    drafts: dict[int | None, Draft]
    first: dict[int | None, Given]
    decided: dict[int | None, Given]
    judge: str | None
    judged: dict[int | None, Given]

    @property
    def state(self) -> ReadingState:
        """How far it is."""
        return ReadingState(self.reading.state)

    @property
    def keys(self) -> list[int | None]:
        """The items: criteria in order, or the one question on the whole."""
        return [item.criterion_id for item in self.sheet.items] or [None]

    @property
    def differing(self) -> list[int | None]:
        """Items on which the judge says something else than the locked first read."""
        return differing(self.first, self.judged)

    @property
    def undecided(self) -> list[int | None]:
        """Of these, those that still wait for keep or revise."""
        return [key for key in self.differing if key not in self.decided]


def differing(first: Mapping[int | None, Given], judged: Mapping[int | None, Given]) -> list[int | None]:
    """Items that the judge labelled otherwise than the reader did at first."""
    return [key for key, given in first.items() if key in judged and judged[key].label != given.label]


@dataclass(frozen=True)
class Decision:
    """What a reader makes of a difference, or of an agreement.

    Attributes:
        label: The first label again (kept), or another (revised).
        cause, severity, error_kind: Of the judge's error; only where the label differs from the judge's.
        right_for_wrong_reason: Only where the label is the judge's.
        reason: Why it cannot be assessed; None: as the first read said, where that could not be assessed either.
    """

    label: Label | Acuity
    cause: Cause | None = None
    severity: Severity | None = None
    error_kind: ErrorKind | None = None
    right_for_wrong_reason: bool = False
    note: str = ""
    reason: CannotReason | None = None


def take(engine: Engine, viewer: Viewer, *, at: datetime | None = None) -> Desk | None:
    """The reader's unfinished item, else the next one that waits, which is then reserved; None where nothing waits.

    An item whose reservation ran out is given back where nothing was marked and others have filled its places; with marks it stays:
    a physician's work is never lost. Where its place is still free, coming back reserves it anew.

    Raises:
        NotAllowed: The viewer does not read.
    """
    check_can_read(viewer)
    at = at or now()
    with reads(engine) as session:
        found = _in_hand(session, viewer, at)
        if found is not None and not _ran_out(found[0], at):
            return _desk(session, *found)
    with writing(engine) as session:
        store.wait_for_others(session)
        for unfinished in tasks.unfinished(session, viewer.person_id):
            reading = tasks.reading(
                session, unfinished.id or 0, lock=True
            )  # a mark from another tab comes before or after
            asked = tasks.task(session, unfinished.task_id)
            if reading is not None and asked is not None and not _is_kept(session, reading, asked, viewer, at):
                store.drop_reading(session, reading.id or 0)
        found = _in_hand(session, viewer, at)
        if found is not None:
            _reserve_again(session, *found, viewer, at)
        else:
            asked = tasks.next_task(session, viewer, at)
            if asked is None:
                return None
            guideline = study.guideline(session)
            reading = store.open_reading(
                session,
                asked.task_id,
                viewer.person_id,
                blinded=study.rules(session).mode is ReadingMode.BLIND,
                guideline_version=guideline.version if guideline else None,
                reserve_minutes=asked.reserve_minutes,
                at=at,
            )
            found = reading, asked
        return _desk(session, *found)


def _ran_out(reading: Reading, at: datetime) -> bool:
    return reading.state == ReadingState.READING and reading.reserved_until <= at


def _reserve_again(session: Session, reading: Reading, asked: Asked, viewer: Viewer, at: datetime) -> None:
    """Keep the place of somebody who comes back; the time away counts no more than it does at the next mark."""
    if _ran_out(reading, at) and tasks.has_place(session, asked, viewer, at):
        same = {"seconds": reading.seconds, "last_at": reading.last_at}
        store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at, **same)
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


def desk(engine: Engine, viewer: Viewer, reading_id: int) -> Desk:
    """One of the reader's own items, whatever its state.

    Raises:
        NotFound: There is none of this number, or it is somebody else's.
    """
    with reads(engine) as session:
        reading, asked = _own(session, viewer, reading_id)
        return _desk(session, reading, asked)


def _own(session: Session, viewer: Viewer, reading_id: int, *, lock: bool = False) -> tuple[Reading, Asked]:
    reading = tasks.reading(session, reading_id, lock=lock)
    asked = tasks.task(session, reading.task_id) if reading is not None else None
    if reading is None or asked is None or reading.person_id != viewer.person_id:
        msg = f"There is no item {reading_id} in your hands: it was given back, or belongs to somebody else."
        raise NotFound(msg)
    return reading, asked


def _desk(session: Session, reading: Reading, asked: Asked) -> Desk:
    number = reading.id or 0
    is_locked = reading.state != ReadingState.READING
    is_shown = is_locked or not reading.blinded
    judge, judged = _judge_on(session, reading, asked) if is_shown else (None, {})
    first, decided = _said(session, reading, asked) if is_locked else ({}, {})
    return Desk(
        reading=reading,
        asked=asked,
        sheet=sheets.sheet(session, asked),
        drafts=tasks.drafts(session, number),
        first=first,
        decided=decided,
        judge=judge,
        judged=judged,
    )


def _judge_on(session: Session, reading: Reading, asked: Asked) -> tuple[str | None, dict[int | None, Given]]:
    """The judge that was shown when the read was locked; before, the one that the study would show."""
    return sheets.judge_on(session, asked, reading.judge or study.rules(session).judge)


def _said(session: Session, reading: Reading, asked: Asked) -> tuple[dict[int | None, Given], dict[int | None, Given]]:
    """The locked read and what was decided since."""
    rater = tasks.rater_of(session, reading.person_id)
    first = sheets.first_said(session, asked, rater, Stage.FIRST if reading.blinded else Stage.OPEN)
    decided = sheets.said_by(session, asked, rater, [Stage.REVISED])
    return first, decided


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
        engine: The study.
        viewer: Who reads.
        reading_id: The item in hand.
        criterion_id: The criterion; None for a question on the whole.
        label: The answer; None: only a note so far.
        reason: Why it cannot be assessed; the submission asks for it.
        note: What the reader adds.
        then: Place, from 0, of the item that is in hand afterwards; None: the same.
        at: When; now by default.

    Raises:
        AlreadyChanged: The read is locked.
        NotFound: The item is not in the reader's hands, or has no such criterion.
        OverreadError: The answer is none to this question, or the note is too long.
    """
    at = at or now()
    _check_note(note or "")
    with writing(engine) as session:
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        if label is not None:
            _check_answer(label, asked.ask)
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
        store.add_mark(session, values)
        place = reading.place if then is None else then
        store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at, place=place)


def _check_answer(label: Label | Acuity, ask: Ask) -> None:
    if label not in ANSWERS[ask]:
        msg = f"label: {label} came, expected one of {', '.join(ANSWERS[ask])}"
        raise OverreadError(msg)


def _check_note(note: str) -> None:
    if len(note) > MAX_NOTE or not store.is_storable(note):
        msg = f"note: {len(note):,} characters came, expected at most {MAX_NOTE:,} of plain text"
        raise OverreadError(msg)


def move(engine: Engine, viewer: Viewer, reading_id: int, place: int, *, at: datetime | None = None) -> None:
    """Take another item of the sheet in hand; its place counts from 0.

    Raises:
        AlreadyChanged: The read is locked.
    """
    with writing(engine) as session:
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at or now(), place=place)


def undo_mark(engine: Engine, viewer: Viewer, reading_id: int, *, at: datetime | None = None) -> int | None:
    """Take the newest draft away, so that the one before it counts. Returns whose criterion it was.

    Raises:
        AlreadyChanged: The read is locked, or there is nothing to take back.
    """
    with writing(engine) as session:
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, ReadingState(reading.state))
        last = tasks.last_mark(session, reading_id)
        if last is None:
            msg = "There is nothing to undo here."
            raise AlreadyChanged(msg)
        store.drop_mark(session, last.id or 0)
        store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at or now())
        return last.criterion_id


def missing(keys: list[int | None], drafts: Mapping[int | None, Draft]) -> list[int | None]:
    """Items that still need an answer, or the reason why they cannot be assessed."""

    def is_answered(draft: Draft | None) -> bool:
        return (
            draft is not None
            and draft.label is not None
            and (draft.label != Label.CANNOT_ASSESS or draft.reason is not None)
        )

    return [key for key in keys if not is_answered(drafts.get(key))]


def submit(engine: Engine, viewer: Viewer, reading_id: int, *, at: datetime | None = None) -> ReadingState:
    """Lock the first read: drafts become verdicts, and the judge's may be shown. Returns the new state.

    Done at once where the judge says the same throughout, or nothing; else the differences wait for keep or revise. A read whose
    reservation ran out is taken all the same: it counts as one read more.

    Raises:
        AlreadyChanged: It is locked already.
        OverreadError: An item has no answer yet.
    """
    at = at or now()
    with writing(engine) as session:
        reading, asked = _own(session, viewer, reading_id, lock=True)
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
        verdicts = [_first_verdict(asked, reading, rater, key, drafts[key], before.get(key)) for key in keys]
        store.add_verdicts(session, verdicts, actor=viewer.name, action="first read submitted")
        judge, judged = sheets.judge_on(session, asked, study.rules(session).judge)
        differs = any(key in judged and judged[key].label != drafts[key].label for key in keys)
        state = ReadingState.REVEALED if differs else ReadingState.DONE
        store.set_state(session, reading, state, reserve_minutes=asked.reserve_minutes, at=at, judge=judge)
        return state


def _first_verdict(
    asked: Asked, reading: Reading, rater: int, key: int | None, draft: Draft, before: Given | None
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
        inclusion_probability=asked.inclusion_probability,
        blinded=reading.blinded,
        guideline_version=reading.guideline_version,
        supersedes=before.verdict_id if before else None,
    )


def as_label(word: str | None) -> Label | Acuity | None:
    """The word of a table as the type it is."""
    if word is None:
        return None
    return Label(word) if word in set(Label) else Acuity(word)


def decide(
    engine: Engine,
    viewer: Viewer,
    reading_id: int,
    criterion_id: int | None,
    decision: Decision,
    *,
    seen: int | None,
    at: datetime | None = None,
) -> int:
    """Keep or revise one item now that the judge is shown: a new verdict of stage `revised`; the first read stays. Returns its number.

    Also how a reader amends what is done.

    Args:
        engine: The study.
        viewer: Who reads.
        reading_id: The item in hand, or one that is done.
        criterion_id: The criterion; None for a question on the whole.
        decision: What is said.
        seen: The newest decision on the item that the screen showed, or None.
        at: When; now by default.

    Raises:
        NotAllowed: The first read is not locked yet.
        NotFound: The item is not in the reader's hands, or has no such criterion.
        AlreadyChanged: Another tab decided since.
        OverreadError: The answer is none to this question, or the parts contradict each other.
    """
    at = at or now()
    _check_note(decision.note)
    with writing(engine) as session:
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_decide(viewer, reading.person_id, ReadingState(reading.state))
        first, decided = _said(session, reading, asked)
        if criterion_id not in first:
            msg = f"This item has no criterion {criterion_id}."
            raise NotFound(msg)
        _check_answer(decision.label, asked.ask)
        before = decided.get(criterion_id)
        if (before.verdict_id if before else None) != seen:
            msg = "This was decided in another tab. The newer decision is shown now; the last press was not saved."
            raise AlreadyChanged(msg)
        _, judged = _judge_on(session, reading, asked)
        of_judge = judged.get(criterion_id)
        check_decision(decision, of_judge.label if of_judge else None)
        verdict = Verdict(
            example_id=asked.example_id,
            response_id=asked.response_id,
            criterion_id=criterion_id,
            rater_id=store.ensure_rater(session, RaterKind.REVIEWER, viewer.name),
            stage=Stage.REVISED,
            label=decision.label,
            explanation=decision.note.strip() or None,
            cause=decision.cause,
            severity=decision.severity,
            error_kind=decision.error_kind,
            right_for_wrong_reason=decision.right_for_wrong_reason,
            reason=_reason_of(decision, first[criterion_id]),
            selection=asked.selection,
            inclusion_probability=asked.inclusion_probability,
            blinded=False,
            guideline_version=reading.guideline_version,
            supersedes=seen,
        )
        kept = decision.label == first[criterion_id].label
        amended = reading.state == ReadingState.DONE
        action = "read amended" if amended else "read kept" if kept else "read revised"
        (number,) = store.add_verdicts(session, [verdict], actor=viewer.name, action=action)
        if not amended:
            store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at)
        return number


def _reason_of(decision: Decision, first: Given) -> CannotReason | None:
    if decision.label != Label.CANNOT_ASSESS:
        return None
    return decision.reason or (CannotReason(first.reason) if first.reason else None)


def check_decision(decision: Decision, judge_label: str | None) -> None:
    """A cause belongs to a difference from the judge, "reason wrong" to an agreement.

    Args:
        decision: What is said.
        judge_label: The judge's label on the item; None where the judge gave none: there is nothing to differ from then.

    Raises:
        OverreadError: It is the other way round.
    """
    agrees = decision.label == judge_label
    is_held_against = "there is none here" if judge_label is None else f"this one {'agrees' if agrees else 'differs'}"
    if (decision.cause or decision.severity or decision.error_kind) and (agrees or judge_label is None):
        msg = f"A cause, a severity and a kind of error belong to a label that differs from the judge's; {is_held_against}."
        raise OverreadError(msg)
    if decision.right_for_wrong_reason and not agrees:
        msg = f"'Judge's label right, reason wrong' belongs to a label that agrees with the judge's; {is_held_against}."
        raise OverreadError(msg)


def finish(engine: Engine, viewer: Viewer, reading_id: int, *, at: datetime | None = None) -> None:
    """Every difference is decided: go on to the next item. Pressed twice it changes nothing.

    Raises:
        OverreadError: A difference still waits for keep or revise.
    """
    at = at or now()
    with writing(engine) as session:
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_decide(viewer, reading.person_id, ReadingState(reading.state))
        if reading.state == ReadingState.DONE:
            return
        found = _desk(session, reading, asked)
        if found.undecided:
            msg = f"{len(found.undecided)} of {len(found.differing)} differences still wait: keep your label or revise it."
            raise OverreadError(msg)
        store.set_state(session, reading, ReadingState.DONE, reserve_minutes=asked.reserve_minutes, at=at)


__all__ = [
    "ANSWERS", "Decision", "Desk", "Rules", "check_decision", "decide", "desk", "differing", "finish", "mark", "missing", "move", "submit", "take",
    "undo_mark",
]  # fmt: skip
