"""A physician's review: take an item, mark it, submit and lock, then revise what differs from the judge. Every mark is stored at once."""

import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError
from evalcore.reading import queries
from evalcore.reading import store as reading_store
from evalcore.reading.assigning import MAX_SEED
from evalcore.reading.queries import Asked, Draft, Given, Material
from evalcore.study import contents, schema, store
from evalcore.study.acting import allow, anew
from evalcore.study.db import Engine, Session, writing
from evalcore.study.db import reading as reads
from evalcore.study.policies import STUDY, check_can_decide, check_can_mark, check_can_read
from evalcore.study.tables import Reading, now

MAX_NOTE = 5_000
ANSWERS: Mapping[schema.Ask, tuple[schema.Label | schema.Acuity, ...]] = {
    schema.Ask.RUBRIC: tuple(schema.Label),
    schema.Ask.RESPONSE_ACUITY: (
        *(level for level in schema.Acuity if level is not schema.Acuity.REMOVE),
        schema.Label.CANNOT_ASSESS,
    ),
    schema.Ask.GOLD_ACUITY: (*schema.Acuity, schema.Label.CANNOT_ASSESS),
}


@dataclass(frozen=True)
class OpenReview:
    """What a reader has in hand.

    Attributes:
        drafts: The newest mark on each item, by criterion_id (None: the response or case as a whole).
        first: The locked first read, by criterion_id; empty before.
        decided: What was kept or revised since, by criterion_id.
        judge, judged: Whose verdicts are shown and what they are; None and empty while the reader is blind. Of the control they are shown
            when the whole reading is done.
        control: Criteria of a locked read that get a second look without the judge's verdict; empty once it is done.
    """

    reading: Reading
    asked: Asked
    material: Material
    drafts: dict[int | None, Draft]
    first: dict[int | None, Given]
    decided: dict[int | None, Given]
    judge: str | None
    judged: dict[int | None, Given]
    control: tuple[int | None, ...] = ()

    @property
    def state(self) -> schema.ReadingState:
        """How far it is."""
        return schema.ReadingState(self.reading.state)

    @property
    def keys(self) -> list[int | None]:
        """The items: criteria in order, or the one question on the whole."""
        return [item.criterion_id for item in self.material.items] or [None]

    @property
    def differing(self) -> list[int | None]:
        """Items on which the judge says something else than the locked first read."""
        judged = self.judged
        return [key for key, given in self.first.items() if key in judged and judged[key].label != given.label]

    @property
    def undecided(self) -> list[int | None]:
        """Of these, those that still wait for keep or revise; before them the control, while nothing of the judge is shown."""
        return self.looking or [key for key in self.differing if key not in self.decided]

    @property
    def looking(self) -> list[int | None]:
        """Of the control, those that still wait for their second look."""
        return [key for key in self.control if key not in self.decided]


def open_review(engine: Engine, viewer: schema.Viewer, reading_id: int) -> OpenReview:
    """One of the reader's own items, whatever its state."""
    with reads(engine) as session:
        return _review(session, *_own(session, viewer, reading_id))


def _own(session: Session, viewer: schema.Viewer, reading_id: int, *, lock: bool = False) -> tuple[Reading, Asked]:
    reading = queries.reading(session, reading_id, lock=lock)
    asked = queries.task(session, reading.task_id) if reading is not None else None
    if reading is None or asked is None or reading.person_id != viewer.person_id:
        msg = f"There is no item {reading_id} in your hands: it was given back, or belongs to somebody else."
        raise NotFound(msg)
    return reading, asked


def _review(session: Session, reading: Reading, asked: Asked) -> OpenReview:
    is_locked = reading.state != schema.ReadingState.READING
    judge, judged = _shown_judge(session, reading, asked) if is_locked or not reading.blinded else (None, {})
    first, decided = _said_in(session, reading, asked) if is_locked else ({}, {})
    material = queries.material(session, asked.target)
    control: tuple[int | None, ...] = ()
    if reading.state == schema.ReadingState.REVEALED:
        criteria = [item.criterion_id for item in material.items]
        control = control_keys(reading.control_seed, reading.control_share, criteria, judged)
        if any(key not in decided for key in control):
            judge, judged = None, {}
        judged = {key: given for key, given in judged.items() if key not in control}
    drafts = queries.drafts(session, reading.id or 0)
    return OpenReview(reading, asked, material, drafts, first, decided, judge, judged, control)


def control_keys(
    seed: int | None, share: float | None, keys: Collection[int | None], judged: Collection[int | None]
) -> tuple[int | None, ...]:
    """The criteria that were drawn for a second look without the judge's verdict: of those that the judge has labelled, each by itself.

    Args:
        seed: Of the drawing; None: there was none.
        share: Of the criteria that are drawn, in [0, 1]; None: there was no drawing.
    """
    if seed is None or share is None:
        return ()
    ordered = sorted(key for key in keys if key is not None)
    drawn = np.random.default_rng(seed).random(len(ordered)) < share
    return tuple(key for key, is_drawn in zip(ordered, drawn, strict=True) if is_drawn and key in judged)


def _shown_judge(session: Session, reading: Reading, asked: Asked) -> tuple[str | None, dict[int | None, Given]]:
    """The judge that was shown when the read was locked; before, the one that the study would show."""
    return queries.judge_on(session, asked.target, reading.judge or contents.rules(session).judge)


def _said_in(
    session: Session, reading: Reading, asked: Asked
) -> tuple[dict[int | None, Given], dict[int | None, Given]]:
    rater = queries.rater_of(session, reading.person_id)
    first = queries.first_said(session, asked, rater, schema.Stage.FIRST if reading.blinded else schema.Stage.OPEN)
    return first, queries.said_by(session, asked, rater, schema.Stage.REVISED)


# ---------------------------------------------------------------- what a physician may say


def missing(keys: Collection[int | None], drafts: Mapping[int | None, Draft]) -> list[int | None]:
    """Items that still need an answer, or the reason why they cannot be assessed."""

    def is_answered(draft: Draft | None) -> bool:
        return bool(draft and draft.label and (draft.label != schema.Label.CANNOT_ASSESS or draft.reason is not None))

    return [key for key in keys if not is_answered(drafts.get(key))]


def as_label(word: str | None) -> schema.Label | schema.Acuity | None:
    """The word of a table as the type it is."""
    if word is None:
        return None
    return schema.Label(word) if word in set(schema.Label) else schema.Acuity(word)


def check_answer(label: schema.Label | schema.Acuity, ask: schema.Ask) -> None:
    """The label is an answer to the question."""
    if label not in ANSWERS[ask]:
        msg = f"label: expected one of {', '.join(ANSWERS[ask])}, got {label}"
        raise OverreadError(msg)


def check_note(note: str, *, name: str = "note") -> None:
    """A note (or what else a physician writes: its name) is plain text of a bearable length."""
    if len(note) > MAX_NOTE:
        msg = f"{name}: expected at most {MAX_NOTE:,} characters, got {len(note):,}"
        raise OverreadError(msg)
    if not store.is_storable(note):
        msg = f"{name}: expected plain text, got a character that no database holds (NUL, or half of a surrogate pair)"
        raise OverreadError(msg)


@dataclass(frozen=True)
class Decision:
    """What a physician says of an item with the judge in view.

    Attributes:
        label: The first label again (kept), or another (revised).
        cause, severity, error_kind: Of the judge's error; only where the label differs from the judge's.
        right_for_wrong_reason: Only where the label is the judge's.
        reason: Why it cannot be assessed; None: as the first read said, where that could not be assessed either.
    """

    label: schema.Label | schema.Acuity
    cause: schema.Cause | None = None
    severity: schema.Severity | None = None
    error_kind: schema.ErrorKind | None = None
    right_for_wrong_reason: bool = False
    note: str = ""
    reason: schema.CannotReason | None = None


def check_decision(decision: Decision, judge_label: str | None) -> None:
    """What is said of the judge's error belongs to a difference from the judge, "reason wrong" to an agreement.

    Args:
        judge_label: The judge's label on the item; None where the judge gave none: there is nothing to differ from then.
    """
    check_note(decision.note)
    agrees = decision.label == judge_label
    is_held_against = "there is none here" if judge_label is None else f"this one {'agrees' if agrees else 'differs'}"
    if (decision.cause or decision.severity or decision.error_kind) and (agrees or judge_label is None):
        msg = f"A cause, a severity and a kind of error belong to a label that differs from the judge's; {is_held_against}."
        raise OverreadError(msg)
    if decision.right_for_wrong_reason and not agrees:
        msg = f"'Judge's label right, reason wrong' belongs to a label that agrees with the judge's; {is_held_against}."
        raise OverreadError(msg)


# ---------------------------------------------------------------- the blind read


def take(engine: Engine, viewer: schema.Viewer, *, at: datetime | None = None) -> OpenReview | None:
    """The reader's unfinished item, else the next one that waits, which is then reserved; None where nothing waits.

    An item whose reservation ran out is given back where nothing was marked and others have filled its places; with marks it stays:
    a physician's work is never lost. Where its place is still free, coming back reserves it anew.
    """
    at = at or now()
    with reads(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        in_hand = _in_hand(session, viewer, at)
        if in_hand is not None and not _ran_out(in_hand[0], at):
            return _review(session, *in_hand)
    with writing(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        store.wait_for_others(session)
        for unfinished in queries.unfinished(session, viewer.person_id):
            # a mark from another tab comes before or after
            reading = queries.reading(session, unfinished.id or 0, lock=True)
            asked = queries.task(session, unfinished.task_id)
            if reading is not None and asked is not None and not _is_kept(session, reading, asked, viewer, at):
                reading_store.drop_reading(session, reading.id or 0)
        in_hand = _in_hand(session, viewer, at)
        if in_hand is not None:
            reading, asked = in_hand
            if _ran_out(reading, at) and queries.has_place(session, asked, viewer, at):
                # the time away counts no more than it does at the next mark
                same = {"seconds": reading.seconds, "last_at": reading.last_at}
                reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at, **same)
                session.refresh(reading)
            return _review(session, reading, asked)
        asked = queries.next_task(session, viewer, at)
        if asked is None:
            return None
        guideline = contents.guideline(session)
        reading = reading_store.open_reading(
            session,
            asked.task_id,
            viewer.person_id,
            blinded=contents.rules(session).mode is schema.ReadingMode.BLIND,
            guideline_version=guideline.version if guideline else None,
            reserve_minutes=asked.reserve_minutes,
            at=at,
        )
        return _review(session, reading, asked)


def _ran_out(reading: Reading, at: datetime) -> bool:
    return reading.state == schema.ReadingState.READING and reading.reserved_until <= at


def _in_hand(session: Session, viewer: schema.Viewer, at: datetime) -> tuple[Reading, Asked] | None:
    for reading in queries.unfinished(session, viewer.person_id):
        asked = queries.task(session, reading.task_id)
        if asked is not None and _is_kept(session, reading, asked, viewer, at):
            return reading, asked
    return None


def _is_kept(session: Session, reading: Reading, asked: Asked, viewer: schema.Viewer, at: datetime) -> bool:
    if not _ran_out(reading, at):
        return True
    return queries.has_place(session, asked, viewer, at) or bool(queries.drafts(session, reading.id or 0))


@contextmanager
def _marking(
    engine: Engine, viewer: schema.Viewer, reading_id: int
) -> Iterator[tuple[Session, schema.Viewer, Reading, Asked]]:
    """The transaction of an act on a read of one's own that is not locked."""
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_mark(viewer, reading.person_id, schema.ReadingState(reading.state))
        yield session, viewer, reading, asked


def mark(  # noqa: PLR0913 - what a mark says
    engine: Engine,
    viewer: schema.Viewer,
    reading_id: int,
    criterion_id: int | None,
    label: schema.Label | schema.Acuity | None,
    *,
    reason: schema.CannotReason | None = None,
    note: str | None = None,
    then: int | None = None,
    at: datetime | None = None,
) -> None:
    """Store a draft; the newest of an item counts.

    Args:
        then: Place, from 0, of the item that is in hand afterwards; None: the same.
    """
    at = at or now()
    check_note(note or "")
    with _marking(engine, viewer, reading_id) as (session, _, reading, asked):
        if label is not None:
            check_answer(label, asked.ask)
        if not queries.has_item(session, asked, criterion_id):
            raise NotFound(_NO_CRITERION.format(criterion_id))
        values = {
            "reading_id": reading_id,
            "criterion_id": criterion_id,
            "label": label,
            "reason": reason if label == schema.Label.CANNOT_ASSESS else None,
            "note": (note or "").strip() or None,
            "created_at": at,
        }
        reading_store.add_mark(session, values)
        place = reading.place if then is None else then
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at, place=place)


_NO_CRITERION = "This item has no criterion {}."


def move(engine: Engine, viewer: schema.Viewer, reading_id: int, place: int, *, at: datetime | None = None) -> None:
    """Take another item of the review in hand; its place counts from 0."""
    with _marking(engine, viewer, reading_id) as (session, _, reading, asked):
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at or now(), place=place)


def undo_mark(engine: Engine, viewer: schema.Viewer, reading_id: int, *, at: datetime | None = None) -> int | None:
    """Take the newest draft away, so that the one before it counts. Returns whose criterion it was."""
    with _marking(engine, viewer, reading_id) as (session, _, reading, asked):
        last = queries.last_mark(session, reading_id)
        if last is None:
            msg = "There is nothing to undo here."
            raise AlreadyChanged(msg)
        reading_store.drop_mark(session, last.id or 0)
        reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at or now())
        return last.criterion_id


def submit(
    engine: Engine, viewer: schema.Viewer, reading_id: int, *, knows_model: bool = False, at: datetime | None = None
) -> schema.ReadingState:
    """Lock the first read: drafts become verdicts, and the judge's may be shown. Returns the new state.

    Done at once where the judge says the same throughout, or nothing; else the differences wait for keep or revise. Where the study has a
    control, some criteria are drawn now for a second look before anything of the judge is shown. A read whose
    reservation ran out is taken all the same: it counts as one read more. What somebody submits who has seen others' verdicts on the
    conversation, or who leads the study, is stored as not blind, with the reason.

    Args:
        knows_model: The reader says that they know which model wrote the response: by its style, or since the text names it.
    """
    at = at or now()
    with _marking(engine, viewer, reading_id) as (session, person, reading, asked):
        material, drafts = queries.material(session, asked.target), queries.drafts(session, reading_id)
        keys: list[int | None] = [item.criterion_id for item in material.items] or [None]
        if unanswered := missing(keys, drafts):
            msg = f"{len(unanswered)} of {len(keys)} still need an answer, or the reason why they cannot be assessed."
            raise OverreadError(msg)
        rater = store.ensure_rater(session, schema.RaterKind.REVIEWER, person.name)
        # in an open study somebody may have said something here of their own accord since the item was opened: this takes its place
        before = {} if reading.blinded else queries.said_by(session, asked, rater, schema.Stage.OPEN)
        why = _not_blind(session, person, reading, asked)
        verdicts = [
            schema.Verdict(
                **_of_task(reading, asked),
                criterion_id=key,
                rater_id=rater,
                stage=schema.Stage.FIRST if reading.blinded else schema.Stage.OPEN,
                label=as_label(drafts[key].label),
                reason=drafts[key].reason,
                explanation=drafts[key].note,
                blinded=why is None,
                not_blind=why,
                supersedes=before[key].verdict_id if key in before else None,
            )
            for key in keys
        ]
        said = {"knows_model": True} if knows_model else {}
        store.add_verdicts(session, verdicts, actor=person.name, action="first read submitted", **said)
        rules = contents.rules(session)
        judge, judged = queries.judge_on(session, asked.target, rules.judge)
        is_drawn = rules.control_share > 0 and why is None and asked.ask is schema.Ask.RUBRIC and bool(judged)
        seed, share = (secrets.randbelow(MAX_SEED + 1), rules.control_share) if is_drawn else (None, None)
        control = control_keys(seed, share, keys, judged)
        differs = any(key in judged and judged[key].label != drafts[key].label for key in keys if key not in control)
        state = schema.ReadingState.REVEALED if differs or control else schema.ReadingState.DONE
        until: dict[str, Any] = {"reserve_minutes": asked.reserve_minutes, "at": at}
        reading_store.set_state(session, reading, state, **until, judge=judge, knows_model=knows_model)
        if seed is not None:
            reading_store.touch(session, reading, **until, control_seed=seed, control_share=share)
        return state


def _of_task(reading: Reading, asked: Asked) -> dict[str, Any]:
    return {
        "example_id": asked.example_id,
        "response_id": asked.response_id,
        "selection": asked.selection,
        "inclusion_probability": asked.chance,
        "guideline_version": reading.guideline_version,
    }


def _not_blind(session: Session, viewer: schema.Viewer, reading: Reading, asked: Asked) -> schema.NotBlind | None:
    if not reading.blinded:
        return schema.NotBlind.OPEN
    if queries.is_exposed(session, viewer.person_id, asked.example_id):
        return schema.NotBlind.EXPOSED
    return schema.NotBlind.ROLE if viewer.roles & STUDY else None


# ---------------------------------------------------------------- after the lock


def revise(
    engine: Engine,
    viewer: schema.Viewer,
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
        seen: The newest decision on the item that the screen showed, or None.
    """
    at = at or now()
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_decide(viewer, reading.person_id, schema.ReadingState(reading.state))
        said_first, decided = _said_in(session, reading, asked)
        if criterion_id not in said_first:
            raise NotFound(_NO_CRITERION.format(criterion_id))
        first, before = said_first[criterion_id], decided.get(criterion_id)
        check_answer(decision.label, asked.ask)
        if (before.verdict_id if before else None) != seen:
            msg = "This was decided in another tab. The newer decision is shown now; the last press was not saved."
            raise AlreadyChanged(msg)
        is_control = reading.control_seed is not None and _is_control(_review(session, reading, asked), criterion_id)
        _, judged = _shown_judge(session, reading, asked)
        of_judge = None if is_control else judged.get(criterion_id)
        check_decision(decision, of_judge.label if of_judge else None)
        reason = decision.reason or (schema.CannotReason(first.reason) if first.reason else None)
        verdict = schema.Verdict(
            **_of_task(reading, asked),
            **of_decision(decision),
            criterion_id=criterion_id,
            rater_id=store.ensure_rater(session, schema.RaterKind.REVIEWER, viewer.name),
            stage=schema.Stage.REVISED,
            reason=reason if decision.label == schema.Label.CANNOT_ASSESS else None,
            blinded=is_control,
            supersedes=seen,
        )
        amended = reading.state == schema.ReadingState.DONE
        action = "read amended" if amended else "read kept" if decision.label == first.label else "read revised"
        (number,) = store.add_verdicts(session, [verdict], actor=viewer.name, action=action)
        if is_control and not _review(session, reading, asked).undecided:  # nothing else differs from the judge
            reading_store.set_state(
                session, reading, schema.ReadingState.DONE, reserve_minutes=asked.reserve_minutes, at=at
            )
        elif not amended:
            reading_store.touch(session, reading, reserve_minutes=asked.reserve_minutes, at=at)
        return number


def of_decision(decision: Decision) -> dict[str, Any]:
    """What a verdict keeps of a decision, its reason apart."""
    return {
        "label": decision.label,
        "explanation": decision.note.strip() or None,
        "cause": decision.cause,
        "severity": decision.severity,
        "error_kind": decision.error_kind,
        "right_for_wrong_reason": decision.right_for_wrong_reason,
    }


def _is_control(review: OpenReview, criterion_id: int | None) -> bool:
    """Whether the item is of the control, which is looked at before anything of the judge is shown, and stands from then on until the reading is done."""
    is_control = criterion_id in review.control
    if review.looking and not is_control:
        msg = "The judge's verdict is shown once you have looked again at the criteria without it."
        raise NotAllowed(msg)
    if not review.looking and is_control:
        msg = "Your second look at this criterion is kept. It can be amended once this response is done."
        raise NotAllowed(msg)
    return is_control


def finish(engine: Engine, viewer: schema.Viewer, reading_id: int, *, at: datetime | None = None) -> None:
    """Every difference is decided: go on to the next item. Pressed twice it changes nothing."""
    at = at or now()
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check_can_decide(viewer, reading.person_id, schema.ReadingState(reading.state))
        if reading.state == schema.ReadingState.DONE:
            return
        review = _review(session, reading, asked)
        if review.undecided:
            n, of = len(review.undecided), "second looks" if review.looking else "differences"
            msg = f"{n} of {len(review.control if review.looking else review.differing)} {of} still wait: keep your label or revise it."
            raise OverreadError(msg)
        reading_store.set_state(
            session, reading, schema.ReadingState.DONE, reserve_minutes=asked.reserve_minutes, at=at
        )
