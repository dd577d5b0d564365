"""Adjudication: what waits for an adjudicator, one response at a time, its readers without names; settle, and correct what was settled."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd
from sqlalchemy import Engine
from sqlmodel import Session

from evalcore.errors import AlreadyChanged, NotFound, OverreadError
from evalcore.reading import adjudication_queries, exposures, tasks
from evalcore.reading.adjudication_queries import (
    Key,
    Question,
    Reader,
    SaidBy,
    questions,
    settlement,
    shown,
    standing,
    subject,
)
from evalcore.reading.conflicts import CASE, Reason, faulted_criteria, needing, without_judge
from evalcore.reading.conflicts import cases as by_case
from evalcore.reading.desks import ANSWERS, check_note
from evalcore.reading.exposing import expose
from evalcore.reading.sheets import Sheet
from evalcore.study import contents, frames, store
from evalcore.study.acting import allow
from evalcore.study.db import reading as reads
from evalcore.study.db import writing
from evalcore.study.policies import allows, check_can_adjudicate, check_can_open, check_can_settle, visible_verdicts
from evalcore.study.schema import (
    JUDGE_SHOWN,
    Acuity,
    ConflictCause,
    Label,
    RaterKind,
    Rules,
    Seen,
    Selection,
    Stage,
    Verdict,
    Viewer,
)


@dataclass(frozen=True)
class Waiting:
    """A response, or a case, with items that need an adjudicator.

    Attributes:
        reasons: Of all its items, the worst first, without those that tell what the judge said.
        points: The most that an item with the worst reason is worth, without its sign; None where none has points.
    """

    key: Key
    first_words: str
    language: str | None
    n_items: int
    reasons: tuple[Reason, ...]
    points: float | None


@dataclass(frozen=True)
class Queue:
    """What waits for one adjudicator, the worst first.

    Attributes:
        n_own: Further ones that the viewer has read and somebody else has to settle, of those on which the viewer sees everything.
    """

    waiting: tuple[Waiting, ...]
    n_own: int

    @property
    def n_items(self) -> int:
        """Items in all that wait."""
        return sum(waiting.n_items for waiting in self.waiting)

    def place(self, key: Key) -> int | None:
        """Where one stands, from 0; None where it does not wait."""
        return next((place for place, waiting in enumerate(self.waiting) if waiting.key == key), None)


@dataclass(frozen=True)
class Case:
    """One response, or one case, with what is in question on it; the response's model is not told."""

    key: Key
    sheet: Sheet
    questions: tuple[Question, ...]

    @property
    def n_open(self) -> int:
        """Items that are still to be settled."""
        return sum(question.settled is None for question in self.questions)


@dataclass(frozen=True)
class Settling:
    """How one item is settled.

    Attributes:
        criterion_id: None for acuity.
        cause: Why readers differed; None only where they did not.
        seen: Numbers of the verdicts that the screen showed (`Question.seen`).
    """

    criterion_id: int | None
    label: Label | Acuity
    cause: ConflictCause | None
    rationale: str
    seen: Collection[int]


def cases(engine: Engine, viewer: Viewer) -> Queue:
    """What waits for this adjudicator, the worst first.

    Left out: what they have read themselves, which is counted, and conversations that wait for their own first read or another settlement of
    theirs, which are not: how many of those conflict is not for a blind reader. What tells the judge's verdict moves nothing up or down.

    Raises:
        NotAllowed: The viewer does not adjudicate.
    """
    with reads(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        rules = contents.rules(session)
        items = without_judge(_needing(session, rules), rules)
        found = by_case(items.assign(reasons=items["told_reasons"]))
        read_by = adjudication_queries.readers(session)
        blind = tasks.blind_examples(session, viewer)
        words = adjudication_queries.beginnings(session, [int(number) for number in found["example_id"]])
    waiting: list[Waiting] = []
    own: list[int] = []
    for row in found.to_dict(orient="records"):
        key = _key(row)
        if key[0] in blind:
            continue
        if not allows(check_can_settle, viewer, read_by.get(key, ())):
            own.append(key[0])
        else:
            points = None if pd.isna(row["points"]) else float(row["points"])
            waiting.append(Waiting(key, *words[key[0]], int(row["n_items"]), tuple(row["reasons"]), points))
    hidden = {each.key[0] for each in waiting}
    return Queue(tuple(waiting), sum(example not in hidden for example in own))


def to_settle(session: Session, viewer: Viewer, example_id: int | None = None) -> frozenset[int]:
    """Conversations with something that waits to be settled by this person; none for who does not adjudicate."""
    if not allows(check_can_adjudicate, viewer):
        return frozenset()
    keys = set(map(_key, _needing(session, contents.rules(session), example_id)[CASE].to_dict(orient="records")))
    read_by = adjudication_queries.readers(session, example_id)
    return frozenset(key[0] for key in keys if allows(check_can_settle, viewer, read_by.get(key, ())))


def hidden_examples(session: Session, viewer: Viewer, example_id: int | None = None) -> frozenset[int]:
    """Conversations on which this person sees nobody's verdicts but their own, on no page and in no file, their settling apart.

    They wait for the person's own first read, or for a settlement of theirs. The arguments are those of `to_settle`.
    """
    return tasks.blind_examples(session, viewer) | to_settle(session, viewer, example_id)


def _key(row: dict[Any, Any]) -> Key:
    return int(row["example_id"]), None if pd.isna(row["response_id"]) else int(row["response_id"])


def _needing(session: Session, rules: Rules, on: Key | int | None = None, *, settled_too: bool = False) -> pd.DataFrame:
    """Items that need an adjudicator; the study's key draws the checks, so that no reader can tell which are drawn."""
    found = adjudication_queries.reads(session, judge=rules.judge, with_judge=rules.both_against_judge, case=on)
    if settled_too:
        found = found.loc[found["stage"].ne(Stage.ADJUDICATED)]
    return needing(found, rules, seed=contents.study_key(session) or "")


def settled(engine: Engine, viewer: Viewer) -> pd.DataFrame:
    """What the viewer has settled, newest first: example_id, response_id (missing for a case), n_items, settled_at, first_words."""
    with reads(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        found = adjudication_queries.settled_by(session, tasks.raters_of(session, viewer))
        words = adjudication_queries.beginnings(session, [int(number) for number in found["example_id"]])
    return found.assign(first_words=[words[int(number)][0] for number in found["example_id"]])


def at_fault(engine: Engine, viewer: Viewer) -> pd.DataFrame:
    """Criteria for the rubric's authors (`conflicts.faulted_criteria`), without conversations that are hidden from the viewer."""
    with reads(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        verdicts = frames.verdicts(session, kind=RaterKind.REVIEWER, texts=True)
        return faulted_criteria(visible_verdicts(verdicts, viewer, hidden_examples(session, viewer)))


def open_case(engine: Engine, viewer: Viewer, key: Key) -> Case:
    """Everything that the adjudicator sees of one response or case.

    Items that somebody else has settled are not in question any more; those that the viewer has settled stay, to be corrected.

    Raises:
        NotFound: There is no such response or case.
        NotAllowed: The viewer has read it, is to read it, or does not adjudicate.
    """
    with reads(engine) as session:
        sheet = adjudication_queries.sheet(session, key)
        if sheet is None:
            msg = f"This study has no {subject(key)}. The link may belong to another study."
            raise NotFound(msg)
        _check(session, viewer, key)
        found = Case(key, sheet, _asked(session, viewer, key, sheet))
    expose(engine, viewer, Seen.ADJUDICATION, [key[0]])
    return found


def _check(session: Session, viewer: Viewer, key: Key) -> None:
    allow(session, viewer, check_can_settle, adjudication_queries.readers(session, key).get(key, ()))
    check_can_open(viewer, key[0], tasks.blind_examples(session, viewer))


def _asked(session: Session, viewer: Viewer, key: Key, sheet: Sheet) -> tuple[Question, ...]:
    rules = contents.rules(session)
    why = without_judge(_needing(session, rules, key, settled_too=True), rules)
    return tuple(questions(session, viewer, key, sheet, why, rules.judge))


def look(engine: Engine, viewer: Viewer, key: Key, criterion_id: int | None) -> None:
    """Show the judge's verdict on one item. It stays in the trail, and a settlement given afterwards counts as not blinded.

    Raises:
        NotFound: The item is not in question.
        NotAllowed: As for `open_case`.
    """
    with writing(engine) as session:
        sheet = adjudication_queries.sheet(session, key)
        if sheet is None:
            msg = f"This study has no {subject(key)}."
            raise NotFound(msg)
        _check(session, viewer, key)
        asked = {question.criterion_id: question for question in _asked(session, viewer, key, sheet)}
        if criterion_id not in asked:
            raise NotFound(_NOT_ASKED)
        if not asked[criterion_id].has_looked:
            detail = {"criterion": criterion_id}
            store.append_event(session, actor=viewer.name, action=JUDGE_SHOWN, subject=subject(key), detail=detail)


_NOT_ASKED = "This item is not in question any more: a read was taken back, or the study's rules have changed. Nothing was saved."
_SETTLED = "Somebody else has settled this item meanwhile. Their settlement stands; yours was not saved."
_OWN_TAB = "You have settled this item in another tab. That settlement is shown now; the last press was not saved."
_AMENDED = "A reader has changed a verdict here since the screen was drawn. It is shown now: look again, then settle. Nothing was saved."


def settle(
    engine: Engine, viewer: Viewer, key: Key, items: Sequence[Settling], *, at: datetime | None = None
) -> list[int]:
    """Settle items of one response or case, all or none: verdicts of stage `adjudicated`. Returns their numbers.

    An item that the viewer has settled before is corrected: the new verdict supersedes the old one. It counts as blinded unless the
    viewer looked at the judge's verdict on it (`look`), saw verdicts on the conversation on another page or in a file, could tell the
    judge's from what the item is in question for, or corrects what is not blinded. A read that is amended later leaves the item settled.

    Raises:
        NotAllowed: As for `open_case`.
        NotFound: An item is not in question.
        AlreadyChanged: Somebody else settled an item, or a reader changed a verdict, since the screen was drawn.
        OverreadError: A rationale or a cause is missing, or a label is no answer.
    """
    with writing(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        store.wait_for_others(session)
        adjudication_queries.hold_readings(session, key)
        sheet = adjudication_queries.sheet(session, key)
        if sheet is None or not items:
            msg = f"{subject(key)}: expected items of a response or case of this study, got nothing to settle"
            raise NotFound(msg)
        _check(session, viewer, key)
        said = adjudication_queries.said(session, key)
        mine = tasks.raters_of(session, viewer)
        looked = adjudication_queries.judge_shown(session, viewer.name, subject(key))
        for item in items:
            on_item = [verdict for verdict in said if verdict.criterion_id == item.criterion_id]
            _check_unchanged(on_item, item, mine, has_looked=item.criterion_id in looked)
        asked = {question.criterion_id: question for question in _asked(session, viewer, key, sheet)}
        guideline = contents.guideline(session)
        rater = store.ensure_rater(session, RaterKind.REVIEWER, viewer.name)
        has_seen = exposures.saw_elsewhere(session, viewer.person_id, key[0])
        verdicts = []
        for item in items:
            if item.criterion_id not in asked:
                raise NotFound(_NOT_ASKED)
            question = asked[item.criterion_id]
            check_settling(item, question)
            before = [
                v
                for v in said
                if (v.criterion_id, v.rater_id, v.stage) == (item.criterion_id, rater, Stage.ADJUDICATED)
            ]
            verdicts.append(
                Verdict(
                    example_id=key[0],
                    response_id=key[1],
                    criterion_id=item.criterion_id,
                    rater_id=rater,
                    stage=Stage.ADJUDICATED,
                    label=item.label,
                    explanation=item.rationale.strip(),
                    conflict_cause=item.cause,
                    selection=Selection.ADJUDICATION,
                    blinded=not (
                        has_seen
                        or question.has_looked
                        or question.tells_judge
                        or (before and before[-1].blinded is False)
                    ),
                    created_at=at,
                    supersedes=before[-1].verdict_id if before else None,
                    guideline_version=guideline.version if guideline else None,
                )
            )
        is_new = all(asked[item.criterion_id].settled is None for item in items)
        action = "conflict settled" if is_new else "settlement corrected"
        return store.add_verdicts(session, verdicts, actor=viewer.name, action=action)


def _check_unchanged(on_item: Sequence[SaidBy], item: Settling, mine: Collection[int], *, has_looked: bool) -> None:
    """Nobody has said anything on the item that the screen would show by now.

    Raises:
        AlreadyChanged: Somebody has.
    """
    settled = settlement(on_item)
    if settled is not None and settled.rater_id not in mine:
        raise AlreadyChanged(_SETTLED)
    if standing(shown(on_item, has_looked=has_looked)) != frozenset(item.seen):
        is_own = settled is not None and settled.verdict_id not in item.seen
        raise AlreadyChanged(_OWN_TAB if is_own else _AMENDED)


def check_settling(item: Settling, question: Question) -> None:
    """A settlement is an answer to the question, says why, and why readers differed where they did.

    Raises:
        OverreadError: One of these is missing, or the rationale is too long or no plain text.
    """
    if item.label not in ANSWERS[question.ask]:
        msg = f"label: expected one of {', '.join(ANSWERS[question.ask])}, got {item.label!r}"
        raise OverreadError(msg)
    if question.differ and item.cause is None:
        msg = "Say why the readers differed: their first reads conflict."
        raise OverreadError(msg)
    if not item.rationale.strip():
        msg = "Write the rationale: a settlement is kept with its reason."
        raise OverreadError(msg)
    check_note(item.rationale, name="rationale")


__all__ = [
    "Case", "Key", "Question", "Queue", "Reader", "Settling", "Waiting", "at_fault", "cases", "check_settling", "hidden_examples", "look", "open_case",
    "settle", "settled", "subject", "to_settle",
]  # fmt: skip
