"""One response or case as its adjudicator meets it: the items in question, and what each reader says on them, without names."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pandas as pd
from msgspec import structs
from sqlmodel import Session

from evalcore.reading import conflict_queries, tasks
from evalcore.reading.conflict_queries import Said, SaidBy
from evalcore.reading.sheets import Given, Item, Sheet
from evalcore.study import contents
from evalcore.study.schema import Ask, Stage, Viewer

Key = tuple[int, int | None]
"""example_id, and response_id or None for the case itself."""
_ORDER = {Stage.FIRST: 0, Stage.OPEN: 1, Stage.REVISED: 2}


@dataclass(frozen=True)
class Reader:
    """What one reader says on one item, by stage in the order of reading (until the viewer looks: `shown`); who it is, is a number alone."""

    number: int
    said: tuple[Said, ...]


@dataclass(frozen=True)
class Question:
    """One item that needs an adjudicator, or that the viewer has settled.

    Attributes:
        criterion: None for acuity.
        reasons: Words of `metrics.conflicts.Reason`, the worst first; none where only the viewer's settlement stands. Until the viewer has
            looked, without those that tell what the judge said.
        tells_judge: Its being in question tells by itself what the judge said (`metrics.conflicts.tell_judge`).
        differ: The first reads conflict, so a settlement says why.
        settled: The viewer's own settlement that stands.
        seen: Numbers of all verdicts that are shown here: what `settle` is given back.
        judge, judged: Shown only once the viewer has looked; judged is None also where the judge labelled nothing here.
    """

    ask: Ask
    criterion: Item | None
    reasons: tuple[str, ...]
    tells_judge: bool
    differ: bool
    readers: tuple[Reader, ...]
    settled: Said | None
    seen: frozenset[int]
    has_looked: bool
    judge: str | None
    judged: Given | None

    @property
    def criterion_id(self) -> int | None:
        """The criterion's number; None for acuity."""
        return self.criterion.criterion_id if self.criterion else None


def subject(key: Key) -> str:
    """A response or case as the audit trail names it."""
    return f"example {key[0]}" if key[1] is None else f"response {key[1]}"


def questions(
    session: Session, viewer: Viewer, key: Key, sheet: Sheet, needing: pd.DataFrame, judge: str | None
) -> Iterator[Question]:
    """The items in question, in the rubric's order, acuity last.

    Args:
        session: Where to read.
        viewer: The adjudicator.
        key: The response or case.
        sheet: Its texts.
        needing: Its items that need an adjudicator, settled or not (`metrics.conflicts.needing`), with told_reasons (those that tell nothing
            of the judge) and tells_judge.
        judge: The judge that the study shows, or None.
    """
    why = {
        None if pd.isna(row["criterion_id"]) else int(row["criterion_id"]): row
        for row in needing.to_dict(orient="records")
    }
    said = conflict_queries.said(session, key)
    mine = tasks.raters_of(session, viewer)
    numbers = _numbers(session, viewer, key, said)
    looked = conflict_queries.judge_shown(session, viewer.name, subject(key))
    judged_on = cache(lambda ask: conflict_queries.judge_on(session, key, ask, judge))  # criteria are judged together
    criteria: list[Item | None] = [*sheet.items, None]
    for criterion in criteria:
        number = criterion.criterion_id if criterion else None
        on_item = [verdict for verdict in said if verdict.criterion_id == number]
        settled = settlement(on_item)
        is_asked = number in why if settled is None else settled.rater_id in mine
        if not is_asked:
            continue
        ask = Ask.RUBRIC if criterion else Ask.GOLD_ACUITY if key[1] is None else Ask.RESPONSE_ACUITY
        has_looked = number in looked
        named, judged = judged_on(ask) if has_looked else (None, {})
        given = shown(on_item, has_looked=has_looked)
        yield Question(
            ask=ask,
            criterion=criterion,
            reasons=why[number]["reasons" if has_looked else "told_reasons"] if number in why else (),
            tells_judge=bool(number in why and why[number]["tells_judge"]),
            differ=bool(number in why and why[number]["differ"]),
            readers=_readers(given, numbers),
            settled=settled.nameless() if settled else None,
            seen=standing(given),
            has_looked=has_looked,
            judge=named,
            judged=judged.get(number),
        )


def settlement(on_item: Sequence[SaidBy]) -> SaidBy | None:
    """The newest adjudication that stands on an item."""
    given = [verdict for verdict in on_item if verdict.stage is Stage.ADJUDICATED and verdict.label is not None]
    return max(given, key=lambda verdict: verdict.verdict_id, default=None)


def shown(on_item: Sequence[SaidBy], *, has_looked: bool) -> list[SaidBy]:
    """The verdicts on an item that its adjudicator is shown: all once they have looked at the judge's.

    Until then settlements, and of each reader the read that decides, without what was said of the judge: causes, severity and kind of its
    error, and the note of a read with the judge in view. A read that was revised came after the judge was shown; it stands in for the first
    one only where a file brought nothing else.
    """
    if has_looked:
        return list(on_item)
    deciding: dict[int, SaidBy] = {}
    for verdict in on_item:
        before = deciding.get(verdict.rater_id)
        if verdict.stage is not Stage.ADJUDICATED and (before is None or _ORDER[verdict.stage] < _ORDER[before.stage]):
            deciding[verdict.rater_id] = verdict
    of_readers = {verdict.verdict_id: _without_judge(verdict) for verdict in deciding.values()}
    return [
        of_readers.get(verdict.verdict_id, verdict)
        for verdict in on_item
        if verdict.verdict_id in of_readers or verdict.stage is Stage.ADJUDICATED
    ]


def _without_judge(verdict: SaidBy) -> SaidBy:
    note = verdict.explanation if verdict.stage is Stage.FIRST else None
    return structs.replace(
        verdict, cause=None, severity=None, error_kind=None, right_for_wrong_reason=False, explanation=note
    )


def standing(on_item: Sequence[SaidBy]) -> frozenset[int]:
    """Numbers of the verdicts that stand on an item, settlements too."""
    return frozenset(verdict.verdict_id for verdict in on_item if verdict.label is not None)


def _numbers(session: Session, viewer: Viewer, key: Key, said: Sequence[SaidBy]) -> dict[int, int]:
    """Reader 1, 2, ... by rater: in an order that is random, and the same whenever this adjudicator opens this response."""
    secret = (contents.study_key(session) or "").encode()[:64]

    def place(rater: int) -> bytes:
        words = f"{key}:{viewer.person_id}:{rater}".encode()
        return hashlib.blake2b(words, key=secret, digest_size=8).digest()

    raters = {verdict.rater_id for verdict in said if verdict.stage is not Stage.ADJUDICATED}
    return {rater: number for number, rater in enumerate(sorted(raters, key=place), start=1)}


def _readers(on_item: Sequence[SaidBy], numbers: dict[int, int]) -> tuple[Reader, ...]:
    given: dict[int, list[SaidBy]] = {}
    for verdict in on_item:
        if verdict.stage is not Stage.ADJUDICATED:
            given.setdefault(numbers[verdict.rater_id], []).append(verdict)
    return tuple(Reader(number, tuple(v.nameless() for v in _in_order(given[number]))) for number in sorted(given))


def _in_order(given: Iterable[SaidBy]) -> list[SaidBy]:
    return sorted(given, key=lambda verdict: _ORDER[verdict.stage])
