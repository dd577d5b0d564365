"""After the lock: keep or revise each difference from the judge, amend later; each is a new verdict, and the first read stays."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.reading import store as reading_store
from evalcore.reading.desks import (
    Desk,
    check_against_judge,
    check_answer,
    check_note,
    desk_of,
    own_reading,
    said_in,
    shown_judge,
)
from evalcore.reading.sheets import Given
from evalcore.study import store
from evalcore.study.acting import anew
from evalcore.study.db import writing
from evalcore.study.policies import check_can_decide
from evalcore.study.schema import (
    Acuity,
    CannotReason,
    Cause,
    ErrorKind,
    Label,
    RaterKind,
    ReadingState,
    Severity,
    Stage,
    Verdict,
    Viewer,
)
from evalcore.study.tables import now


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

    Also how a reader amends what is done, and looks a second time at an item of the control, without the judge's verdict: then the new
    verdict is `blinded`.

    Args:
        reading_id: The item in hand, or one that is done.
        criterion_id: The criterion; None for a question on the whole.
        seen: The newest decision on the item that the screen showed, or None.
        at: When; now by default.

    Raises:
        NotAllowed: The first read is not locked yet.
        NotFound: The item is not in the reader's hands, or has no such criterion.
        AlreadyChanged: Another tab decided since.
        OverreadError: The answer is none to this question, or the parts contradict each other.
    """
    at = at or now()
    check_note(decision.note)
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = own_reading(session, viewer, reading_id, lock=True)
        check_can_decide(viewer, reading.person_id, ReadingState(reading.state))
        first, decided = said_in(session, reading, asked)
        if criterion_id not in first:
            msg = f"This item has no criterion {criterion_id}."
            raise NotFound(msg)
        check_answer(decision.label, asked.ask)
        before = decided.get(criterion_id)
        if (before.verdict_id if before else None) != seen:
            msg = "This was decided in another tab. The newer decision is shown now; the last press was not saved."
            raise AlreadyChanged(msg)
        is_control = False
        if reading.control_seed is not None:
            found = desk_of(session, reading, asked)
            check_turn(found, criterion_id)
            is_control = criterion_id in found.control
        _, judged = shown_judge(session, reading, asked)
        of_judge = None if is_control else judged.get(criterion_id)
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
            inclusion_probability=asked.chance,
            blinded=is_control,
            guideline_version=reading.guideline_version,
            supersedes=seen,
        )
        kept = decision.label == first[criterion_id].label
        amended = reading.state == ReadingState.DONE
        action = "read amended" if amended else "read kept" if kept else "read revised"
        (number,) = store.add_verdicts(session, [verdict], actor=viewer.name, action=action)
        if is_control and not desk_of(session, reading, asked).undecided:  # nothing else differs from the judge
            reading_store.set_state(session, reading, ReadingState.DONE, reserve_minutes=asked.reserve_minutes, at=at)
        elif not amended:
            reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at)
        return number


def check_turn(found: Desk, criterion_id: int | None) -> None:
    """The control is looked at before anything of the judge is shown, and stands from then on until the reading is done.

    Raises:
        NotAllowed: It is not this item's turn.
    """
    if found.looking and criterion_id not in found.control:
        msg = "The judge's verdict is shown once you have looked again at the criteria without it."
        raise NotAllowed(msg)
    if not found.looking and criterion_id in found.control:
        msg = "Your second look at this criterion is kept. It can be amended once this response is done."
        raise NotAllowed(msg)


def _reason_of(decision: Decision, first: Given) -> CannotReason | None:
    if decision.label != Label.CANNOT_ASSESS:
        return None
    return decision.reason or (CannotReason(first.reason) if first.reason else None)


def check_decision(decision: Decision, judge_label: str | None) -> None:
    """Its parts fit each other and the judge's label on the item (None: the judge gave none).

    Raises:
        OverreadError: They do not.
    """
    check_against_judge(
        decision.label,
        judge_label,
        names_error=bool(decision.cause or decision.severity or decision.error_kind),
        right_for_wrong_reason=decision.right_for_wrong_reason,
    )


def finish(engine: Engine, viewer: Viewer, reading_id: int, *, at: datetime | None = None) -> None:
    """Every difference is decided: go on to the next item. Pressed twice it changes nothing.

    Raises:
        OverreadError: A difference still waits for keep or revise.
    """
    at = at or now()
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = own_reading(session, viewer, reading_id, lock=True)
        check_can_decide(viewer, reading.person_id, ReadingState(reading.state))
        if reading.state == ReadingState.DONE:
            return
        found = desk_of(session, reading, asked)
        if found.undecided:
            n, of = len(found.undecided), "second looks" if found.looking else "differences"
            msg = f"{n} of {len(found.control if found.looking else found.differing)} {of} still wait: keep your label or revise it."
            raise OverreadError(msg)
        reading_store.set_state(session, reading, ReadingState.DONE, reserve_minutes=asked.reserve_minutes, at=at)
