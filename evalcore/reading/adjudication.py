"""Adjudication: what waits for an adjudicator, one response at a time, its readers without names; settle, and correct what was settled."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import pandas as pd
from msgspec import structs

from evalcore.errors import AlreadyChanged, NotFound, refuse
from evalcore.reading import queries, read_queries
from evalcore.reading.conflicts import Conflict, Key, Reason, cases as by_case, faulted_criteria, needing
from evalcore.reading.exposing import expose
from evalcore.reading.queries import Given, Item, Material, subject
from evalcore.reading.reviewing import as_label, check_answer, check_note
from evalcore.study import contents, frames, schema, store
from evalcore.study.acting import allow
from evalcore.study.db import Engine, Session, reading as reads, writing
from evalcore.study.policies import allows, check_can_adjudicate, check_can_open, check_can_settle, visible_verdicts
from evalcore.study.schema import JUDGE_SHOWN

_SaidBy = tuple[int, Given]  # a verdict behind the number of who gave it
_ORDER = {schema.Stage.FIRST: 0, schema.Stage.OPEN: 1, schema.Stage.REVISED: 2}


@dataclass(frozen=True)
class Waiting:
    """A response, or a case, with items that need an adjudicator.

    `reasons`: the worst first, without those that tell what the judge said. `points`: the most that an item with the worst is worth, without its sign.
    """

    key: Key
    first_words: str
    language: str | None
    n_items: int
    reasons: tuple[Reason, ...]
    points: int | None


@dataclass(frozen=True)
class Queue:
    """What waits for one adjudicator, the worst first."""

    waiting: tuple[Waiting, ...]
    n_own: int
    """Further ones that the viewer has read and somebody else has to settle, of those on which the viewer sees everything."""
    n_foreign: Mapping[str, int]
    """Further ones in languages that the viewer does not read, by language."""

    @property
    def n_items(self) -> int:
        """Items in all that wait."""
        return sum(waiting.n_items for waiting in self.waiting)


def cases(engine: Engine, viewer: schema.Viewer) -> Queue:
    """What waits for this adjudicator, the worst first.

    Left out and counted: what they have read themselves, and what is in languages that they do not read. Left out and not counted, since how many of
    those conflict is not for a blind reader: conversations that wait for their own first read or another settlement of theirs. What tells the judge's
    verdict moves nothing up or down.
    """
    with reads(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        by_worst = by_case(_needing(session, contents.rules(session)))
        read_by = read_queries.readers(session)
        blind = queries.blind_examples(session, viewer)
        words = read_queries.beginnings(session, [case.key[0] for case in by_worst])
    waiting: list[Waiting] = []
    own: list[int] = []
    foreign: Counter[str] = Counter()
    for key, n_items, reasons, points in by_worst:
        if key[0] in blind:
            continue
        first_words, language = words[key[0]]
        if not allows(check_can_settle, viewer, read_by.get(key, ())):
            own.append(key[0])
        elif language is not None and language not in queries.languages_of(viewer):
            foreign[language] += 1
        else:
            waiting.append(Waiting(key, first_words, language, n_items, reasons, points))
    hidden = {each.key[0] for each in waiting}
    return Queue(tuple(waiting), sum(example not in hidden for example in own), foreign)


def to_settle(session: Session, viewer: schema.Viewer, example_id: int | None = None) -> frozenset[int]:
    """Conversations with something that waits to be settled by this person; none for who does not adjudicate."""
    if not allows(check_can_adjudicate, viewer):
        return frozenset()
    keys = {conflict.item[:2] for conflict in _needing(session, contents.rules(session), example_id)}
    read_by = read_queries.readers(session, example_id)
    return frozenset(key[0] for key in keys if allows(check_can_settle, viewer, read_by.get(key, ())))


def hidden_examples(session: Session, viewer: schema.Viewer, example_id: int | None = None) -> frozenset[int]:
    """Conversations on which this person sees nobody's verdicts but their own, on no page and in no file, their settling apart.

    They wait for the person's own first read, or for a settlement of theirs. The arguments are those of `to_settle`.
    """
    return queries.blind_examples(session, viewer) | to_settle(session, viewer, example_id)


def _needing(
    session: Session, rules: schema.Rules, on: Key | int | None = None, *, settled_too: bool = False
) -> list[Conflict]:
    """Items that need an adjudicator; the study's key draws the checks, so that no reader can tell which are drawn."""
    verdicts = read_queries.reads(session, judge=rules.judge, with_judge=rules.both_against_judge, on=on)
    if settled_too:
        verdicts = [verdict for verdict in verdicts if verdict.stage != schema.Stage.ADJUDICATED]
    return needing(verdicts, rules, seed=contents.study_key(session) or "")


def settled(engine: Engine, viewer: schema.Viewer) -> pd.DataFrame:
    """What the viewer has settled, as `read_queries.settled_by` gives it."""
    with reads(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        return read_queries.settled_by(session, queries.raters_of(session, viewer))


def at_fault(engine: Engine, viewer: schema.Viewer) -> pd.DataFrame:
    """Criteria for the rubric's authors (`conflicts.faulted_criteria`), without conversations that are hidden from the viewer."""
    with reads(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        verdicts = frames.verdicts(session, kind=schema.RaterKind.REVIEWER, texts=True)
        return faulted_criteria(visible_verdicts(verdicts, viewer, hidden_examples(session, viewer)))


@dataclass(frozen=True)
class Reader:
    """What one reader says on one item, by stage in the order of reading (until the viewer looks: `shown`); who it is, is a number alone."""

    number: int
    said: tuple[Given, ...]


@dataclass(frozen=True)
class Question:
    """One item (no criterion: acuity) that needs an adjudicator, or that the viewer has settled.

    `reasons`: the worst first; until the viewer has looked, without those that tell what the judge said. `tells_judge`: its being in question tells that by
    itself. `differ`: the first reads conflict, so a settlement says why. `settled`: the viewer's own that stands. `seen`: the verdicts that are shown here,
    which `settle` is given back. `judge`, `judged`: shown only once the viewer has looked.
    """

    ask: schema.Ask
    criterion: Item | None
    reasons: tuple[str, ...]
    tells_judge: bool
    differ: bool
    readers: tuple[Reader, ...]
    settled: Given | None
    seen: frozenset[int]
    has_looked: bool
    judge: str | None
    judged: Given | None

    @property
    def criterion_id(self) -> int | None:
        """The criterion's number; None for acuity."""
        return self.criterion.criterion_id if self.criterion else None


@dataclass(frozen=True)
class Case:
    """One response, or one case, with what is in question on it; the response's model is not told."""

    key: Key
    material: Material
    questions: tuple[Question, ...]


def open_case(engine: Engine, viewer: schema.Viewer, key: Key) -> Case:
    """Everything that the adjudicator sees of one response or case.

    Items that somebody else has settled are not in question any more; those that the viewer has settled stay, to be corrected.
    """
    with reads(engine) as session:
        case = _case(session, viewer, key)
    expose(engine, viewer, schema.Seen.ADJUDICATION, [key[0]])
    return case


def _case(session: Session, viewer: schema.Viewer, key: Key) -> Case:
    material = queries.material(session, (schema.Ask.GOLD_ACUITY if key[1] is None else schema.Ask.RUBRIC, *key))
    allow(session, viewer, check_can_settle, read_queries.readers(session, key).get(key, ()))
    check_can_open(viewer, key[0], queries.blind_examples(session, viewer))
    return Case(key, material, tuple(_questions(session, viewer, key, material)))


def _questions(session: Session, viewer: schema.Viewer, key: Key, material: Material) -> Iterator[Question]:
    rules = contents.rules(session)
    why = {conflict.item[2]: conflict for conflict in _needing(session, rules, key, settled_too=True)}
    said, mine = read_queries.said(session, key), queries.raters_of(session, viewer)
    numbers = _numbers(session, viewer, key, said)
    looked = read_queries.judge_shown(session, viewer.name, subject(*key))
    judged_on = cache(lambda ask: queries.judge_on(session, (ask, *key), rules.judge))  # criteria are judged together
    criteria: list[Item | None] = [*material.items, None]
    for criterion in criteria:
        number = criterion.criterion_id if criterion else None
        on_item = [(rater, verdict) for rater, verdict in said if verdict.criterion_id == number]
        settler, settled = _settlement(on_item)
        if not (number in why if settled is None else settler in mine):
            continue
        whole = schema.Ask.GOLD_ACUITY if key[1] is None else schema.Ask.RESPONSE_ACUITY
        ask = schema.Ask.RUBRIC if criterion else whole
        has_looked = number in looked
        conflict = why.get(number)  # None: only settled, by the viewer
        named, judged = judged_on(ask) if has_looked else (None, {})
        given = _shown(on_item, has_looked=has_looked)
        yield Question(
            ask=ask,
            criterion=criterion,
            reasons=() if conflict is None else conflict.reasons if has_looked else conflict.told_reasons,
            tells_judge=conflict is not None and conflict.tells_judge,
            differ=conflict is not None and conflict.differ,
            readers=_readers(given, numbers),
            settled=settled,
            seen=_standing(given),
            has_looked=has_looked,
            judge=named,
            judged=judged.get(number),
        )


def _settlement(on_item: Sequence[_SaidBy]) -> tuple[int, Given | None]:
    settlements = [(rater, v) for rater, v in on_item if v.stage is schema.Stage.ADJUDICATED and v.label is not None]
    return settlements[-1] if settlements else (0, None)


def _shown(on_item: Sequence[_SaidBy], *, has_looked: bool) -> list[_SaidBy]:
    """The verdicts on an item that its adjudicator is shown: all once they have looked at the judge's.

    Until then settlements, and of each reader the read that decides, without what was said of the judge: causes, severity and kind of its
    error, and the note of a read with the judge in view. A read that was revised came after the judge was shown; it stands in for the first
    one only where a file brought nothing else.
    """
    if has_looked:
        return list(on_item)
    of_judge = {"cause": None, "severity": None, "error_kind": None, "right_for_wrong_reason": False}
    deciding: dict[int, int] = {}
    for rater, verdict in sorted(on_item, key=lambda said: _ORDER.get(said[1].stage, 0)):
        if verdict.stage is not schema.Stage.ADJUDICATED:
            deciding.setdefault(rater, verdict.verdict_id)
    shown = []
    for rater, verdict in on_item:
        if verdict.stage is schema.Stage.ADJUDICATED:
            shown.append((rater, verdict))
        elif verdict.verdict_id == deciding[rater]:
            note = verdict.explanation if verdict.stage is schema.Stage.FIRST else None
            shown.append((rater, structs.replace(verdict, explanation=note, **of_judge)))
    return shown


def _standing(on_item: Sequence[_SaidBy]) -> frozenset[int]:
    return frozenset(verdict.verdict_id for _, verdict in on_item if verdict.label is not None)


def _numbers(session: Session, viewer: schema.Viewer, key: Key, said: Sequence[_SaidBy]) -> dict[int, int]:
    """Reader 1, 2, ... by rater: in an order that is random, and the same whenever this adjudicator opens this response."""
    secret = (contents.study_key(session) or "").encode()[:64]

    def place(rater: int) -> bytes:
        words = f"{key}:{viewer.person_id}:{rater}".encode()
        return hashlib.blake2b(words, key=secret, digest_size=8).digest()

    raters = {rater for rater, verdict in said if verdict.stage is not schema.Stage.ADJUDICATED}
    return {rater: number for number, rater in enumerate(sorted(raters, key=place), start=1)}


def _readers(on_item: Sequence[_SaidBy], numbers: dict[int, int]) -> tuple[Reader, ...]:
    by_reader: dict[int, list[Given]] = {}
    for rater, verdict in on_item:
        if verdict.stage is not schema.Stage.ADJUDICATED:
            by_reader.setdefault(numbers[rater], []).append(verdict)
    return tuple(
        Reader(number, tuple(sorted(by_reader[number], key=lambda verdict: _ORDER[verdict.stage])))
        for number in sorted(by_reader)
    )


_NOT_ASKED = "This item is not in question any more: a read was taken back, or the study's rules have changed. Nothing was saved."
_SETTLED = "Somebody else has settled this item meanwhile. Their settlement stands; yours was not saved."
_OWN_TAB = "You have settled this item in another tab. That settlement is shown now; the last press was not saved."
_AMENDED = "A reader has changed a verdict here since the screen was drawn. It is shown now: look again, then settle. Nothing was saved."


def look(engine: Engine, viewer: schema.Viewer, key: Key, criterion_id: int | None) -> None:
    """Show the judge's verdict on one item. It stays in the trail, and a settlement given afterwards counts as not blinded."""
    with writing(engine) as session:
        questions = {question.criterion_id: question for question in _case(session, viewer, key).questions}
        if criterion_id not in questions:
            raise NotFound(_NOT_ASKED)
        if not questions[criterion_id].has_looked:
            detail = {"criterion": criterion_id}
            store.append_event(session, actor=viewer.name, action=JUDGE_SHOWN, subject=subject(*key), detail=detail)


@dataclass(frozen=True)
class Settling:
    """How one item (no criterion: acuity) is settled, of which the screen showed the verdicts `seen` (`Question.seen`)."""

    criterion_id: int | None
    label: str
    cause: schema.ConflictCause | None
    rationale: str
    seen: Collection[int]


def settle(
    engine: Engine, viewer: schema.Viewer, key: Key, items: Sequence[Settling], *, at: datetime | None = None
) -> list[int]:
    """Settle items of one response or case, all or none: verdicts of stage `adjudicated`. Returns their numbers.

    An item that the viewer has settled before is corrected: the new verdict supersedes the old one. It counts as blinded unless the
    viewer looked at the judge's verdict on it (`look`), saw verdicts on the conversation on another page or in a file, could tell the
    judge's from what the item is in question for, or corrects what is not blinded. A read that is amended later leaves the item settled.
    """
    with writing(engine) as session:
        allow(session, viewer, check_can_adjudicate)
        if not items:
            msg = f"{subject(*key)}: expected items of a response or case of this study, got nothing to settle"
            raise NotFound(msg)
        store.wait_for_others(session)
        queries.hold_readings(session, *key)
        questions = {question.criterion_id: question for question in _case(session, viewer, key).questions}
        said = read_queries.said(session, key)
        mine = queries.raters_of(session, viewer)
        looked = read_queries.judge_shown(session, viewer.name, subject(*key))
        for item in items:
            on_item = [(by, verdict) for by, verdict in said if verdict.criterion_id == item.criterion_id]
            _check_unchanged(on_item, item, mine, has_looked=item.criterion_id in looked)
        guideline = contents.guideline(session)
        rater = store.ensure_rater(session, schema.RaterKind.REVIEWER, viewer.name)
        has_seen = queries.is_exposed(session, viewer.person_id, key[0], settling_too=False)
        verdicts = []
        for item in items:
            if item.criterion_id not in questions:
                raise NotFound(_NOT_ASKED)
            question = questions[item.criterion_id]
            check_settling(item, question)
            own = (item.criterion_id, rater, schema.Stage.ADJUDICATED)
            before = [verdict for by, verdict in said if (verdict.criterion_id, by, verdict.stage) == own]
            knows = has_seen or question.has_looked or question.tells_judge
            verdicts.append(
                schema.Verdict(
                    example_id=key[0],
                    response_id=key[1],
                    criterion_id=item.criterion_id,
                    rater_id=rater,
                    stage=schema.Stage.ADJUDICATED,
                    label=as_label(item.label),
                    explanation=item.rationale.strip(),
                    conflict_cause=item.cause,
                    selection=schema.Selection.ADJUDICATION,
                    blinded=not (knows or (before and before[-1].blinded is False)),
                    created_at=at,
                    supersedes=before[-1].verdict_id if before else None,
                    guideline_version=guideline.version if guideline else None,
                )
            )
        is_new = all(questions[item.criterion_id].settled is None for item in items)
        action = "conflict settled" if is_new else "settlement corrected"
        return store.add_verdicts(session, verdicts, actor=viewer.name, action=action)


def _check_unchanged(on_item: Sequence[_SaidBy], item: Settling, mine: Collection[int], *, has_looked: bool) -> None:
    settler, settled = _settlement(on_item)
    if settled is not None and settler not in mine:
        raise AlreadyChanged(_SETTLED)
    if _standing(_shown(on_item, has_looked=has_looked)) != frozenset(item.seen):
        is_own = settled is not None and settled.verdict_id not in item.seen
        raise AlreadyChanged(_OWN_TAB if is_own else _AMENDED)


def check_settling(item: Settling, question: Question) -> None:
    """A settlement is an answer to the question, says why, and why readers differed where they did."""
    check_answer(item.label, question.ask)
    if question.differ and item.cause is None:
        refuse("Say why the readers differed: their first reads conflict.")
    if not item.rationale.strip():
        refuse("Write the rationale: a settlement is kept with its reason.")
    check_note(item.rationale, name="rationale")
