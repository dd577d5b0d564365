"""A physician's review: take an item, mark it, submit and lock, then revise what differs from the judge. Every mark is stored at once."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from evalcore.errors import AlreadyChanged, NotAllowed, NotFound, OverreadError, refuse
from evalcore.reading import practice_queries, queries
from evalcore.reading.assigning import MAX_SEED
from evalcore.reading.queries import Asked, Draft, Given, Item, Material
from evalcore.study import contents, schema, store
from evalcore.study.acting import allow, anew
from evalcore.study.db import Engine, Session, reading as reads, writing
from evalcore.study.policies import (
    STUDY,
    check_can_decide,
    check_can_mark,
    check_can_read,
    check_can_reveal,
    check_can_slip,
    check_has_practised,
    check_is_open,
    check_own,
)
from evalcore.study.schema import ReadingState
from evalcore.study.tables import Mark, Reading, Verdict as VerdictRow, now

MAX_NOTE = 5_000
NOTHING_TO_UNDO = "There is nothing to undo here."
PAUSE_SECONDS = 120.0  # of a time without any act, so much counts as reading
_LEVELS = tuple(level for level in schema.Acuity if level is not schema.Acuity.REMOVE)
ANSWERS: Mapping[schema.Ask, tuple[schema.Label | schema.Acuity, ...]] = {
    schema.Ask.RUBRIC: tuple(schema.Label),
    schema.Ask.RESPONSE_ACUITY: (*_LEVELS, schema.Label.CANNOT_ASSESS),
    schema.Ask.GOLD_ACUITY: (*schema.Acuity, schema.Label.CANNOT_ASSESS),
}


@dataclass(frozen=True)
class OpenReview:
    """What a reader has in hand.

    By criterion_id (None: the response or case as a whole): `drafts`, the newest mark; `first`, the locked first read; `decided`, what was kept or revised
    since; `judged`, the verdicts of `judge` that are shown: none while the reader is blind, and of the control none before the whole reading is done.
    `control`: criteria of a locked read that get a second look without the judge's verdict; empty once it is done.
    `slipped`: the label that stood before in the first read, where the reader said that it was a slip.
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
    slipped: Mapping[int | None, str] = field(default_factory=dict)

    @property
    def state(self) -> ReadingState:
        """How far it is."""
        return ReadingState(self.reading.state)

    @property
    def keys(self) -> list[int | None]:
        """The items: criteria in order, or the one question on the whole; once it is locked those that were answered then."""
        return list(self.first) or [item.criterion_id for item in self.material.items] or [None]

    def item(self, key: int | None) -> Item | None:
        """A criterion; None for the question on the whole."""
        return next((item for item in self.material.items if item.criterion_id == key), None)

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


def open_review(engine: Engine, viewer: schema.Viewer, reading_id: int, *, known: Material | None = None) -> OpenReview:
    """One of the reader's own items, whatever its state.

    `known`: its texts, where they are on the screen already; they never change. Then, once it is locked, its marks are not read either.
    """
    with reads(engine) as session:
        return _review(session, *_own(session, viewer, reading_id), known=known)


def _own(session: Session, viewer: schema.Viewer, reading_id: int, *, lock: bool = False) -> tuple[Reading, Asked]:
    own = queries.readings(session, viewer.person_id, reading_id, lock=lock)
    if not own:
        msg = f"There is no item {reading_id} in your hands: it was given back, or belongs to somebody else."
        raise NotFound(msg)
    return own[0]


_NO_TEXTS = Material(messages=[], response=None, items=())
"""For acts, which need what was said alone."""


def _review(session: Session, reading: Reading, asked: Asked, *, known: Material | None = None) -> OpenReview:
    is_locked = reading.state != ReadingState.READING
    judge: str | None = None
    judged: dict[int | None, Given] = {}
    said = queries.Said({}, {}, {})
    if reading.state in (ReadingState.REVEALED, ReadingState.DONE) or not reading.blinded:
        judge, judged = _shown(session, reading, asked)
    if is_locked:
        stage = schema.Stage.FIRST if reading.blinded else schema.Stage.OPEN
        said = queries.said_by(session, asked, reading.person_id, stage, schema.Stage.REVISED)
    material = queries.material(session, asked.target) if known is None else known
    in_order: list[int | None] = [item.criterion_id for item in material.items] or list(said.first)
    # a corrected answer keeps its place
    first = {key: said.first[key] for key in in_order if key in said.first}
    control: tuple[int | None, ...] = ()
    if reading.state == ReadingState.REVEALED:
        control = control_keys(reading.control_seed, reading.control_share, in_order, judged)
        if any(key not in said.standing for key in control):
            judge, judged = None, {}
        judged = {key: given for key, given in judged.items() if key not in control}
    drafts = {} if is_locked and known is not None else queries.drafts(session, reading.id or 0)
    return OpenReview(reading, asked, material, drafts, first, said.standing, judge, judged, control, said.slipped)


def _shown(session: Session, reading: Reading, asked: Asked) -> tuple[str | None, dict[int | None, Given]]:
    """The judge that was shown when it was locked; before, that of the assignment and no other; where it has none, the one that the study would show."""
    settled = queries.settled_judge(session, asked.assignment_id)
    judge = reading.judge or settled or contents.rules(session).judge
    return queries.judge_on(session, asked.target, judge, alone=settled is not None)


def control_keys(
    seed: int | None, share: float | None, keys: Collection[int | None], judged: Collection[int | None]
) -> tuple[int | None, ...]:
    """The criteria that were drawn for a second look without the judge's verdict: of those that the judge has labelled, each by itself.

    With probability `share`, in [0, 1]; without a seed there was no drawing.
    """
    if seed is None or share is None:
        return ()
    ordered = sorted(key for key in keys if key is not None)
    drawn = np.random.default_rng(seed).random(len(ordered)) < share
    return tuple(key for key, is_drawn in zip(ordered, drawn, strict=True) if is_drawn and key in judged)


def missing(keys: Collection[int | None], drafts: Mapping[int | None, Draft]) -> list[int | None]:
    """Items that still need an answer, or the reason why they cannot be assessed."""
    answered = {
        key
        for key, draft in drafts.items()
        if draft.label and (draft.label != schema.Label.CANNOT_ASSESS or draft.reason is not None)
    }
    return [key for key in keys if key not in answered]


def as_label(word: str) -> schema.Label | schema.Acuity:
    """The word of a table as the type it is."""
    return schema.Label(word) if word in set(schema.Label) else schema.Acuity(word)


def check_answer(label: str, ask: schema.Ask) -> None:
    """The label is an answer to the question."""
    if label not in ANSWERS[ask]:
        refuse(f"label: expected one of {', '.join(ANSWERS[ask])}, got {label}")


def check_note(note: str, *, name: str = "note") -> None:
    """A note (or what else a physician writes: its name) is plain text of a bearable length."""
    if len(note) > MAX_NOTE:
        refuse(f"{name}: expected at most {MAX_NOTE:,} characters, got {len(note):,}")
    if not store.is_storable(note):
        msg = f"{name}: expected plain text, got a character that no database holds (NUL, or half of a surrogate pair)"
        raise OverreadError(msg)


@dataclass(frozen=True)
class Decision:
    """What a physician says of an item with the judge in view.

    `label`: the first one again (kept), or another (revised). `cause`, `severity`, `error_kind`: only where it differs from the judge's;
    `right_for_wrong_reason`: only where it is the judge's. `reason`: why it cannot be assessed; None: as the first read said.
    """

    label: str
    cause: schema.Cause | None = None
    severity: schema.Severity | None = None
    error_kind: schema.ErrorKind | None = None
    right_for_wrong_reason: bool = False
    note: str = ""
    reason: schema.CannotReason | None = None


def check_decision(decision: Decision, judge_label: str | None) -> None:
    """What is said of the judge's error belongs to a difference from the judge (not where it gave no label), wrong reasoning to an agreement."""
    check_note(decision.note)
    agrees = decision.label == judge_label
    is_held_against = "there is none here" if judge_label is None else f"this one {'agrees' if agrees else 'differs'}"
    if (decision.cause or decision.severity or decision.error_kind) and (agrees or judge_label is None):
        msg = f"A cause, a severity and a kind of error belong to a label that differs from the judge's; {is_held_against}."
        raise OverreadError(msg)
    if decision.right_for_wrong_reason and not agrees:
        refuse(f"'Right label, wrong reasoning' belongs to a label that agrees with the judge's; {is_held_against}.")


def take(engine: Engine, viewer: schema.Viewer, *, at: datetime | None = None) -> OpenReview | None:
    """The reader's unfinished item, else the next one that waits, which is then reserved; None where nothing waits.

    What was once taken out of their hands comes, where its turn comes again, with the marks that it had.

    An item whose reservation ran out is given back where nothing was marked and others have filled its places; with marks it stays:
    a physician's work is never lost. Where its place is still free, coming back reserves it anew.
    """
    at = at or now()
    with reads(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        unfinished = queries.readings(session, viewer.person_id)
        in_hand = next((own for own in unfinished if _is_kept(session, *own, viewer, at)), None)
        if in_hand is not None and not _ran_out(in_hand[0], at):
            return _review(session, *in_hand)
    with writing(engine) as session:
        viewer = allow(session, viewer, check_can_read)
        guideline, rules = contents.guideline(session), contents.rules(session)
        reading = _claimed(session, viewer, rules, guideline.version if guideline else None, at)
    # read once it is kept: whoever else opens an item waits for as long as the claim takes
    return None if reading is None else open_review(engine, viewer, reading.id or 0)


def _claimed(
    session: Session, viewer: schema.Viewer, rules: schema.Rules, guideline: int | None, at: datetime
) -> Reading | None:
    """The last thing in a transaction: others wait for its end."""
    store.wait_for_others(session)
    in_hand = None
    # locked: a mark from another tab comes before or after
    for reading, asked in queries.readings(session, viewer.person_id, lock=True):
        if not _is_kept(session, reading, asked, viewer, at):
            session.delete(reading)
        elif in_hand is None:
            in_hand = reading, asked
    if in_hand is not None:
        reading, asked = in_hand
        if _ran_out(reading, at) and queries.has_place(session, asked, viewer, at):
            reading.reserved_until = at + timedelta(minutes=asked.reserve_minutes)
        return reading
    task = queries.next_task(session, viewer, at)
    if task is None:
        return None
    check_has_practised(practice_queries.n_left(session, viewer, task.assignment_id))
    begun = queries.freed(session, viewer.person_id, task.task_id)
    reading = begun or Reading(task_id=task.task_id, person_id=viewer.person_id, opened_at=at)
    reading.blinded = rules.mode is schema.ReadingMode.BLIND
    reading.guideline_version = guideline
    reading.last_at, reading.reserved_until = at, at + timedelta(minutes=task.reserve_minutes)
    reading.freed_at = None
    session.add(reading)
    return reading


def _ran_out(reading: Reading, at: datetime) -> bool:
    return reading.state == ReadingState.READING and reading.reserved_until <= at


def _is_kept(session: Session, reading: Reading, asked: Asked, viewer: schema.Viewer, at: datetime) -> bool:
    if not _ran_out(reading, at):
        return True
    return queries.has_place(session, asked, viewer, at) or bool(queries.drafts(session, reading.id or 0))


@contextmanager
def acting_on(
    engine: Engine, viewer: schema.Viewer, reading_id: int, check: Callable[..., None], at: datetime
) -> Iterator[tuple[Session, schema.Viewer, Reading, Asked]]:
    """The transaction of an act on a read of one's own; in one that is not done time goes on, and the reservation too."""
    with writing(engine) as session:
        viewer = anew(session, viewer)
        reading, asked = _own(session, viewer, reading_id, lock=True)
        check(viewer, reading.person_id, ReadingState(reading.state))
        if reading.state == ReadingState.READING:
            check_is_open(is_skipped=queries.has_skipped(session, reading_id), is_freed=reading.freed_at is not None)
        was_done = reading.state == ReadingState.DONE
        if not was_done:
            reading.seconds += min(max((at - reading.last_at).total_seconds(), 0.0), PAUSE_SECONDS)
            reading.last_at, reading.reserved_until = at, at + timedelta(minutes=asked.reserve_minutes)
        yield session, viewer, reading, asked
        if not was_done and reading.state == ReadingState.DONE:
            reading.done_at = at


def mark(  # noqa: PLR0913 - what a mark says
    engine: Engine,
    viewer: schema.Viewer,
    reading_id: int,
    criterion_id: int | None,
    label: str | None,
    *,
    reason: schema.CannotReason | None = None,
    note: str | None = None,
    then: int | None = None,
    at: datetime | None = None,
) -> None:
    """Store a draft; the newest of an item counts. Afterwards the item at the place `then`, from 0, is in hand; None: the same."""
    at = at or now()
    check_note(note or "")
    with acting_on(engine, viewer, reading_id, check_can_mark, at) as (session, _, reading, asked):
        if label is not None:
            check_answer(label, asked.ask)
        if not queries.has_item(session, asked, criterion_id):
            raise NotFound(_NO_CRITERION.format(criterion_id))
        draft = Mark(reading_id=reading_id, criterion_id=criterion_id, label=label, created_at=at)
        draft.reason = reason if label == schema.Label.CANNOT_ASSESS else None
        draft.note = (note or "").strip() or None
        session.add(draft)
        reading.place = reading.place if then is None else then


_NO_CRITERION = "This item has no criterion {}."


def move(engine: Engine, viewer: schema.Viewer, reading_id: int, place: int, *, at: datetime | None = None) -> None:
    """Take another item of the review in hand; its place counts from 0."""
    with acting_on(engine, viewer, reading_id, check_can_mark, at or now()) as (_, _, reading, _):
        reading.place = place


def undo_mark(engine: Engine, viewer: schema.Viewer, reading_id: int, *, at: datetime | None = None) -> int | None:
    """Take the newest label away, so that the one before it counts; a note stays as it was written last. Returns whose criterion it was."""
    at = at or now()
    with acting_on(engine, viewer, reading_id, check_can_mark, at) as (session, _, _, _):
        marks = queries.marks(session, reading_id)
        for place, last in reversed(list(enumerate(marks))):
            on_item = [mark for mark in marks if mark.criterion_id == last.criterion_id]
            before = next((mark for mark in reversed(marks[:place]) if mark.criterion_id == last.criterion_id), None)
            label, reason, note = (before.label, before.reason, before.note) if before else (None, None, None)
            if (last.label, last.reason) == (label, reason) and last.note != note:
                continue  # a note alone
            for mark in on_item[on_item.index(last) :]:
                session.delete(mark)
            if (kept := on_item[-1].note) != note:
                again = Mark(reading_id=reading_id, criterion_id=last.criterion_id, label=label, reason=reason)
                again.note, again.created_at = kept, at
                session.add(again)
            return last.criterion_id
        raise AlreadyChanged(NOTHING_TO_UNDO)


def submit(
    engine: Engine, viewer: schema.Viewer, reading_id: int, *, knows_model: bool = False, at: datetime | None = None
) -> ReadingState:
    """Lock the first read: drafts become verdicts. Returns the new state.

    A blind read waits until its reader asks for the judge's verdict (`reveal`), whatever the judge says: until then a slip can be told. Where no
    judge has labelled it, it is done at once. A read whose reservation ran out is taken all the same: it counts as one read more. What somebody
    submits who has seen others' verdicts on the conversation, or who leads the study, is stored as not blind, with the reason.
    `knows_model`: the reader says that they know which model wrote it.
    """
    at = at or now()
    with acting_on(engine, viewer, reading_id, check_can_mark, at) as (session, person, reading, asked):
        material, drafts = queries.material(session, asked.target), queries.drafts(session, reading_id)
        keys: list[int | None] = [item.criterion_id for item in material.items] or [None]
        if unanswered := missing(keys, drafts):
            refuse(f"{len(unanswered)} of {len(keys)} still need an answer, or the reason why they cannot be assessed.")
        rater = store.ensure_rater(session, schema.RaterKind.REVIEWER, person.name)
        # in an open study somebody may have said something here of their own accord since the item was opened: this takes its place
        first = schema.Stage.FIRST if reading.blinded else schema.Stage.OPEN
        before = {} if reading.blinded else queries.said_by(session, asked, person.person_id, first, first).standing
        why = None
        if not reading.blinded:
            why = schema.NotBlind.OPEN
        elif queries.is_exposed(session, person.person_id, asked.example_id):
            why = schema.NotBlind.EXPOSED
        elif person.roles & STUDY:
            why = schema.NotBlind.ROLE
        verdicts = [
            schema.Verdict(
                **_of_task(reading, asked),
                criterion_id=key,
                rater_id=rater,
                stage=first,
                label=as_label(drafts[key].label or ""),
                reason=drafts[key].reason,
                explanation=drafts[key].note,
                blinded=why is None,
                not_blind=why,
                supersedes=before[key].verdict_id if key in before else None,
            )
            for key in keys
        ]
        judge, judged = _shown(session, reading, asked)
        if reading.blinded and judged:
            reading.state = ReadingState.LOCKED
        else:
            differs = any(key in judged and judged[key].label != drafts[key].label for key in keys)
            reading.state = ReadingState.REVEALED if differs else ReadingState.DONE
        reading.locked_at, reading.judge, reading.knows_model = at, judge, knows_model
        said = {"knows_model": True} if knows_model else {}
        store.add_verdicts(session, verdicts, actor=person.name, action="first read submitted", **said)
        return ReadingState(reading.state)


def reveal(engine: Engine, viewer: schema.Viewer, reading_id: int, *, at: datetime | None = None) -> ReadingState:
    """Show the judge's verdicts beside the locked read. Returns the new state; pressed twice it changes nothing.

    Done at once where the judge says the same throughout; else the differences wait for keep or revise. Where the study has a control, some criteria
    are drawn now for a second look before anything of the judge is shown.
    """
    with acting_on(engine, viewer, reading_id, check_can_reveal, at or now()) as (session, _, reading, asked):
        if reading.state == ReadingState.LOCKED:
            first = _review(session, reading, asked, known=_NO_TEXTS).first
            share = contents.rules(session).control_share
            is_blind = all(given.blinded for given in first.values())
            if share > 0 and is_blind and asked.ask is schema.Ask.RUBRIC:
                reading.control_seed, reading.control_share = secrets.randbelow(MAX_SEED + 1), share
            _, judged = _shown(session, reading, asked)
            control = control_keys(reading.control_seed, reading.control_share, list(first), judged)
            read = {key: given.label for key, given in first.items() if key not in control}
            differs = any(key in judged and judged[key].label != label for key, label in read.items())
            reading.state = ReadingState.REVEALED if differs or control else ReadingState.DONE
        return ReadingState(reading.state)


def slip(
    engine: Engine,
    viewer: schema.Viewer,
    reading_id: int,
    criterion_id: int | None,
    label: str,
    *,
    reason: schema.CannotReason | None = None,
    seen: int | None,
    at: datetime | None = None,
) -> int:
    """Correct an answer of a locked read that was a slip of the hand. Returns the new verdict's number.

    A new first read takes the place of the one that was locked, which stays in the record; its note stays too. Only before the judge or anybody else was
    shown, and, where no judge is, before the reader's next answer. `seen`: the verdict that the screen showed.
    """
    with acting_on(engine, viewer, reading_id, check_own, at or now()) as (session, person, reading, asked):
        first, state = _review(session, reading, asked, known=_NO_TEXTS).first, ReadingState(reading.state)
        was_blind = any(given.blinded for given in first.values())
        judge_shown = not reading.blinded or (state is ReadingState.DONE and reading.judge is not None)
        check_can_slip(
            person,
            reading.person_id,
            state,
            has_seen=judge_shown or (was_blind and queries.is_exposed(session, person.person_id, asked.example_id)),
            has_gone_on=queries.has_gone_on(session, person.person_id, reading_id),
        )
        check_answer(label, asked.ask)
        if criterion_id not in first:
            raise NotFound(_NO_CRITERION.format(criterion_id))
        stands = session.get(VerdictRow, first[criterion_id].verdict_id)
        if stands is None or stands.id != seen:
            msg = "This was corrected in another tab. The newer answer is shown now; the last press was not saved."
            raise AlreadyChanged(msg)
        if label == schema.Label.CANNOT_ASSESS and reason is None:
            refuse("Expected the reason why it cannot be assessed, got none.")
        reason = reason if label == schema.Label.CANNOT_ASSESS else None
        if (label, reason) == (stands.label, stands.reason):
            refuse("This is your answer already.", AlreadyChanged)
        verdict = schema.Verdict(
            **_of_task(reading, asked),
            criterion_id=criterion_id,
            rater_id=stands.rater_id,
            stage=schema.Stage.FIRST,
            label=as_label(label),
            reason=reason,
            explanation=stands.explanation,
            blinded=stands.blinded,
            not_blind=schema.NotBlind(stands.not_blind) if stands.not_blind else None,
            supersedes=seen,
        )
        told: dict[str, Any] = {"action": "slip corrected", "slipped_from": stands.label}
        (number,) = store.add_verdicts(session, [verdict], actor=person.name, **told)
        return number


def _of_task(reading: Reading, asked: Asked) -> dict[str, Any]:
    return {
        "example_id": asked.example_id,
        "response_id": asked.response_id,
        "selection": asked.selection,
        "inclusion_probability": asked.chance,
        "guideline_version": reading.guideline_version,
    }


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
    verdict is `blinded`. `seen`: the newest decision on the item that the screen showed, or None.
    """
    with acting_on(engine, viewer, reading_id, check_can_decide, at or now()) as (session, person, reading, asked):
        review = _review(session, reading, asked, known=_NO_TEXTS)
        if criterion_id not in review.first:
            raise NotFound(_NO_CRITERION.format(criterion_id))
        first, before = review.first[criterion_id], review.decided.get(criterion_id)
        check_answer(decision.label, asked.ask)
        if (before.verdict_id if before else None) != seen:
            msg = "This was decided in another tab. The newer decision is shown now; the last press was not saved."
            raise AlreadyChanged(msg)
        is_control = criterion_id in review.control
        if is_control and not review.looking:
            msg = "Your second look at this criterion is kept. It can be amended once this response is done."
            raise NotAllowed(msg)
        if review.looking and not is_control:
            refuse("The judge's verdict is shown once you have looked again at the criteria without it.", NotAllowed)
        of_judge = review.judged.get(criterion_id)
        check_decision(decision, of_judge.label if of_judge else None)
        reason = decision.reason or first.reason
        verdict = schema.Verdict(
            **_of_task(reading, asked),
            **of_decision(decision),
            criterion_id=criterion_id,
            rater_id=store.ensure_rater(session, schema.RaterKind.REVIEWER, person.name),
            stage=schema.Stage.REVISED,
            reason=reason if decision.label == schema.Label.CANNOT_ASSESS else None,
            blinded=is_control,
            supersedes=seen,
        )
        amended = reading.state == ReadingState.DONE
        action = "read amended" if amended else "read kept" if decision.label == first.label else "read revised"
        (number,) = store.add_verdicts(session, [verdict], actor=person.name, action=action)
        if is_control and not _review(session, reading, asked, known=_NO_TEXTS).undecided:
            reading.state = ReadingState.DONE  # nothing else differs from the judge
        return number


def of_decision(decision: Decision) -> dict[str, Any]:
    """What a verdict keeps of a decision, its reason apart."""
    return {
        "label": as_label(decision.label),
        "explanation": decision.note.strip() or None,
        "cause": decision.cause,
        "severity": decision.severity,
        "error_kind": decision.error_kind,
        "right_for_wrong_reason": decision.right_for_wrong_reason,
    }


def finish(engine: Engine, viewer: schema.Viewer, reading_id: int, *, at: datetime | None = None) -> None:
    """Every difference is decided: go on to the next item. Pressed twice it changes nothing."""
    with acting_on(engine, viewer, reading_id, check_can_decide, at or now()) as (session, _, reading, asked):
        if reading.state == ReadingState.DONE:
            return
        review = _review(session, reading, asked, known=_NO_TEXTS)
        if review.undecided:
            n, of = len(review.undecided), "second looks" if review.looking else "differences"
            msg = f"{n} of {len(review.control if review.looking else review.differing)} {of} still wait: keep your label or revise it."
            raise OverreadError(msg)
        reading.state = ReadingState.DONE
