"""What a reader has in hand: the task, its texts, drafts, and, once it may be shown, what the judge said."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import NotFound, OverreadError
from evalcore.reading import sheets, tasks
from evalcore.reading.sheets import Given, Sheet
from evalcore.reading.tasks import Asked, Draft
from evalcore.study import contents, store
from evalcore.study.db import reading as reads
from evalcore.study.schema import Acuity, Ask, Label, ReadingState, Stage, Viewer
from evalcore.study.tables import Reading

MAX_NOTE = 5_000
ANSWERS: Mapping[Ask, tuple[Label | Acuity, ...]] = {
    Ask.RUBRIC: tuple(Label),
    Ask.RESPONSE_ACUITY: (*(level for level in Acuity if level is not Acuity.REMOVE), Label.CANNOT_ASSESS),
    Ask.GOLD_ACUITY: (*Acuity, Label.CANNOT_ASSESS),
}


@dataclass(frozen=True)
class Desk:
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
    sheet: Sheet
    drafts: dict[int | None, Draft]
    first: dict[int | None, Given]
    decided: dict[int | None, Given]
    judge: str | None
    judged: dict[int | None, Given]
    control: tuple[int | None, ...] = ()

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
        """Of these, those that still wait for keep or revise; before them the control, while nothing of the judge is shown."""
        return self.looking or [key for key in self.differing if key not in self.decided]

    @property
    def looking(self) -> list[int | None]:
        """Of the control, those that still wait for their second look."""
        return [key for key in self.control if key not in self.decided]


def differing(first: Mapping[int | None, Given], judged: Mapping[int | None, Given]) -> list[int | None]:
    """Items that the judge labelled otherwise than the reader did at first."""
    return [key for key, given in first.items() if key in judged and judged[key].label != given.label]


def desk(engine: Engine, viewer: Viewer, reading_id: int) -> Desk:
    """One of the reader's own items, whatever its state.

    Raises:
        NotFound: There is none of this number, or it is somebody else's.
    """
    with reads(engine) as session:
        reading, asked = own_reading(session, viewer, reading_id)
        return desk_of(session, reading, asked)


def own_reading(session: Session, viewer: Viewer, reading_id: int, *, lock: bool = False) -> tuple[Reading, Asked]:
    """A reading of this reader's with its task; locked until the transaction ends where `lock` is said.

    Raises:
        NotFound: There is none of this number, or it is somebody else's.
    """
    reading = tasks.reading(session, reading_id, lock=lock)
    asked = tasks.task(session, reading.task_id) if reading is not None else None
    if reading is None or asked is None or reading.person_id != viewer.person_id:
        msg = f"There is no item {reading_id} in your hands: it was given back, or belongs to somebody else."
        raise NotFound(msg)
    return reading, asked


def desk_of(session: Session, reading: Reading, asked: Asked) -> Desk:
    """Everything that a reading shows at its state; nothing of the judge while the reader is blind."""
    number = reading.id or 0
    is_locked = reading.state != ReadingState.READING
    is_shown = is_locked or not reading.blinded
    judge, judged = shown_judge(session, reading, asked) if is_shown else (None, {})
    first, decided = said_in(session, reading, asked) if is_locked else ({}, {})
    sheet = sheets.sheet(session, asked)
    control: tuple[int | None, ...] = ()
    if reading.state == ReadingState.REVEALED:
        control = control_keys(
            reading.control_seed, reading.control_share, [item.criterion_id for item in sheet.items], judged
        )
        if any(key not in decided for key in control):
            judge, judged = None, {}
        judged = {key: given for key, given in judged.items() if key not in control}
    return Desk(
        reading=reading,
        asked=asked,
        sheet=sheet,
        drafts=tasks.drafts(session, number),
        first=first,
        decided=decided,
        judge=judge,
        judged=judged,
        control=control,
    )


def control_keys(
    seed: int | None, share: float | None, keys: Collection[int | None], judged: Collection[int | None]
) -> tuple[int | None, ...]:
    """The criteria that were drawn for a second look without the judge's verdict: of those that the judge has labelled, each by itself.

    Args:
        seed: Of the drawing; None: there was none.
        share: Of the criteria that are drawn, in [0, 1]; None: there was no drawing.
        keys: All criteria of the rubric, in any order.
    """
    if seed is None or share is None:
        return ()
    ordered = sorted(key for key in keys if key is not None)
    drawn = np.random.default_rng(seed).random(len(ordered)) < share
    return tuple(key for key, is_drawn in zip(ordered, drawn, strict=True) if is_drawn and key in judged)


def shown_judge(session: Session, reading: Reading, asked: Asked) -> tuple[str | None, dict[int | None, Given]]:
    """The judge that was shown when the read was locked; before, the one that the study would show."""
    return sheets.judge_on(session, asked, reading.judge or contents.rules(session).judge)


def said_in(
    session: Session, reading: Reading, asked: Asked
) -> tuple[dict[int | None, Given], dict[int | None, Given]]:
    """The locked read and what was decided since."""
    rater = tasks.rater_of(session, reading.person_id)
    first = sheets.first_said(session, asked, rater, Stage.FIRST if reading.blinded else Stage.OPEN)
    decided = sheets.said_by(session, asked, rater, [Stage.REVISED])
    return first, decided


def missing(keys: list[int | None], drafts: Mapping[int | None, Draft]) -> list[int | None]:
    """Items that still need an answer, or the reason why they cannot be assessed."""

    def is_answered(draft: Draft | None) -> bool:
        return (
            draft is not None
            and draft.label is not None
            and (draft.label != Label.CANNOT_ASSESS or draft.reason is not None)
        )

    return [key for key in keys if not is_answered(drafts.get(key))]


def as_label(word: str | None) -> Label | Acuity | None:
    """The word of a table as the type it is."""
    if word is None:
        return None
    return Label(word) if word in set(Label) else Acuity(word)


def check_answer(label: Label | Acuity, ask: Ask) -> None:
    """The label is an answer to the question.

    Raises:
        OverreadError: It is none.
    """
    if label not in ANSWERS[ask]:
        msg = f"label: expected one of {', '.join(ANSWERS[ask])}, got {label}"
        raise OverreadError(msg)


def check_note(note: str, *, name: str = "note") -> None:
    """A note (or what else a physician writes: its name) is plain text of a bearable length.

    Raises:
        OverreadError: It is not.
    """
    if len(note) > MAX_NOTE:
        msg = f"{name}: expected at most {MAX_NOTE:,} characters, got {len(note):,}"
        raise OverreadError(msg)
    if not store.is_storable(note):
        msg = f"{name}: expected plain text, got a character that no database holds (NUL, or half of a surrogate pair)"
        raise OverreadError(msg)


def check_against_judge(
    label: str, judge_label: str | None, *, names_error: bool, right_for_wrong_reason: bool
) -> None:
    """What is said of the judge's error belongs to a difference from the judge, "reason wrong" to an agreement.

    Args:
        judge_label: The judge's label on the item; None where the judge gave none: there is nothing to differ from then.
        names_error: A cause, a severity or a kind of error is said.
        right_for_wrong_reason: The judge's label is said to be right, its reason wrong.

    Raises:
        OverreadError: It is the other way round.
    """
    agrees = label == judge_label
    is_held_against = "there is none here" if judge_label is None else f"this one {'agrees' if agrees else 'differs'}"
    if names_error and (agrees or judge_label is None):
        msg = f"A cause, a severity and a kind of error belong to a label that differs from the judge's; {is_held_against}."
        raise OverreadError(msg)
    if right_for_wrong_reason and not agrees:
        msg = f"'Judge's label right, reason wrong' belongs to a label that agrees with the judge's; {is_held_against}."
        raise OverreadError(msg)
