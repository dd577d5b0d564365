"""What adjudication reads: verdicts that may need it, and one response or case as its adjudicator meets it."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import pandas as pd
from msgspec import structs
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy import case as expression_case
from sqlmodel import Session, col

from evalcore.reading import sheets, tasks
from evalcore.reading.sheets import Given, Item, Sheet
from evalcore.reading.tasks import Asked
from evalcore.study import contents
from evalcore.study.frames import frame, is_read, not_superseded
from evalcore.study.schema import JUDGE_SHOWN, Ask, Selection, Stage, Viewer
from evalcore.study.tables import TABLES, Assignment, AuditEvent, Criterion, Example, Reading, Task

"""The act in the audit trail by which an adjudicator looks at the judge's verdict on one item."""
READS = [
    "verdict_id",
    "example_id",
    "response_id",
    "criterion_id",
    "rater_id",
    "stage",
    "label",
    "severity",
    "selection",
    "points",
]


def _verdict() -> Any:
    return TABLES["verdict"]


def _of_physicians() -> ColumnElement[bool]:
    """Not a judge's; the word stands in the statement itself, else SQLite would not use the index of such verdicts."""
    of_physicians: ColumnElement[bool] = is_read(_verdict().c)
    return of_physicians


def _on(case: tuple[int, int | None] | int | None) -> list[ColumnElement[bool]]:
    verdict = _verdict().c
    if case is None:
        return []
    if isinstance(case, int):
        return [verdict.example_id == case]
    example_id, response_id = case
    response = verdict.response_id.is_(None) if response_id is None else verdict.response_id == response_id
    return [verdict.example_id == example_id, response]


def reads(
    session: Session, *, judge: str | None, with_judge: bool, case: tuple[int, int | None] | int | None = None
) -> pd.DataFrame:
    """Physicians' standing verdicts, as `conflicts.needing` takes them, with verdict_id.

    Also assigned open reads that their reader has changed since, where conversations are browsed: what was submitted decides.

    Args:
        judge: The judge that the study shows, or None, as `sheets.judge_on` chooses.
        with_judge: Read the judge's labels too; else judge_label is missing throughout.
        case: Only on this response, or this case: (example_id, response_id or None); or on everything of this example.
    """
    verdict, criterion = _verdict(), TABLES["criterion"]
    columns = [verdict.c.id, *(verdict.c[name] for name in READS[1:-1]), criterion.c.points]
    drawn = verdict.c.selection.in_([Selection.RANDOM, Selection.IMPORTANCE])
    submitted = (verdict.c.stage == Stage.OPEN) & drawn
    statement = (
        select(*columns)
        .select_from(verdict.outerjoin(criterion, criterion.c.id == verdict.c.criterion_id))
        .where(_of_physicians(), verdict.c.label.is_not(None), or_(not_superseded(), submitted), *_on(case))
    )
    found = frame(session, statement, READS)
    numbers = {name: pd.to_numeric(found[name]).astype("Int64") for name in ("response_id", "criterion_id", "points")}
    found = found.assign(**numbers, example_id=pd.to_numeric(found["example_id"]).astype("int64"))
    kinds = zip(found["criterion_id"].notna(), found["response_id"].isna(), strict=True)
    asks = [Ask.RUBRIC if rubric else Ask.GOLD_ACUITY if of_case else Ask.RESPONSE_ACUITY for rubric, of_case in kinds]
    found["ask"] = pd.Series(asks, index=found.index, dtype="str")
    found = found.merge(_wanted(session, case), on=["ask", "example_id", "response_id"], how="left")
    found["selection"] = found["selection"].mask(
        found.pop("chosen").eq(1), None
    )  # chosen and assigned: such reads fill a place too
    if not with_judge:
        return found.assign(judge_label=None)
    return found.merge(_judged(session, judge, case), on=["response_id", "criterion_id"], how="left")


def _wanted(session: Session, case: tuple[int, int | None] | int | None) -> pd.DataFrame:
    """How many readers each assigned item gets: ask, example_id, response_id, n_wanted, chosen (1 where somebody chose it and assigned it)."""
    task = TABLES["task"].c
    statement = (
        select(
            col(Assignment.ask),
            task.example_id,
            task.response_id,
            func.max(col(Assignment.n_readers)),
            func.max(expression_case((col(Assignment.selection) == Selection.VOLUNTEERED, 1), else_=0)),
        )
        .join(Task, col(Task.assignment_id) == col(Assignment.id))
        .group_by(col(Assignment.ask), task.example_id, task.response_id)
    )
    if case is not None:
        statement = statement.where(task.example_id == (case if isinstance(case, int) else case[0]))
    found = frame(session, statement, ["ask", "example_id", "response_id", "n_wanted", "chosen"])
    numbers = {name: pd.to_numeric(found[name]).astype("int64") for name in ("example_id", "n_wanted", "chosen")}
    asks, responses = found["ask"].astype("str"), pd.to_numeric(found["response_id"]).astype("Int64")
    return found.assign(ask=asks, response_id=responses, **numbers)


def _judged(session: Session, judge: str | None, case: tuple[int, int | None] | int | None) -> pd.DataFrame:
    """The labels of the judge that each response shows, on responses that physicians read: response_id, criterion_id, judge_label."""
    verdict = _verdict()
    read = select(verdict.c.response_id).where(_of_physicians(), verdict.c.response_id.is_not(None), *_on(case))
    judges = sheets.shown_judges(read, judge)
    shown = (judges.c.response_id == verdict.c.response_id) & (judges.c.rater_id == verdict.c.rater_id)
    statement = (
        select(verdict.c.response_id, verdict.c.criterion_id, verdict.c.label)
        .join(judges, shown)
        .where(verdict.c.criterion_id.is_not(None), verdict.c.label.is_not(None), not_superseded())
    )
    found = frame(session, statement, ["response_id", "criterion_id", "judge_label"])
    numbers = {name: pd.to_numeric(found[name]).astype("Int64") for name in ("response_id", "criterion_id")}
    return found.assign(**numbers)


def readers(
    session: Session, case: tuple[int, int | None] | int | None = None
) -> dict[tuple[int, int | None], set[str]]:
    """Names of those who ever gave a verdict on a response or case, adjudications apart; also where it was taken back."""
    verdict, rater = _verdict(), TABLES["rater"]
    statement = (
        select(verdict.c.example_id, verdict.c.response_id, rater.c.name)
        .join(rater, rater.c.id == verdict.c.rater_id)
        .where(_of_physicians(), verdict.c.stage != Stage.ADJUDICATED, *_on(case))
        .distinct()
    )
    found: dict[tuple[int, int | None], set[str]] = {}
    for example_id, response_id, name in session.connection().execute(statement):
        found.setdefault((example_id, response_id), set()).add(name)
    return found


def settled_by(session: Session, rater_ids: list[int]) -> pd.DataFrame:
    """What some raters have settled: example_id, response_id, n_items, settled_at; the newest first."""
    verdict = _verdict().c
    statement = (
        select(
            verdict.example_id,
            verdict.response_id,
            func.count().label("n_items"),
            func.max(verdict.created_at).label("settled_at"),
        )
        .where(_of_physicians(), verdict.stage == Stage.ADJUDICATED, verdict.rater_id.in_(rater_ids))
        .where(verdict.label.is_not(None), not_superseded())
        .group_by(verdict.example_id, verdict.response_id)
        .order_by(func.max(verdict.created_at).desc())
    )
    return frame(session, statement)


def beginnings(session: Session, example_ids: list[int]) -> dict[int, tuple[str, str | None]]:
    """First words and language of conversations, by example_id."""
    columns: list[Any] = [col(Example.id), col(Example.first_words), col(Example.language)]
    rows = session.connection().execute(select(*columns).where(col(Example.id).in_(example_ids)))
    return {row[0]: (row[1], row[2]) for row in rows}


class Said(msgspec.Struct, frozen=True):
    """A physician's standing verdict on one item, in full; who gave it is not told."""

    verdict_id: int
    criterion_id: int | None
    stage: Stage
    label: str | None
    explanation: str | None
    reason: str | None
    cause: str | None
    severity: str | None
    error_kind: str | None
    right_for_wrong_reason: bool
    conflict_cause: str | None
    blinded: bool | None
    created_at: datetime


class SaidBy(Said, frozen=True):
    """The same with who gave it, as a number."""

    rater_id: int

    def nameless(self) -> Said:
        """The verdict without who gave it."""
        return Said(**{name: getattr(self, name) for name in Said.__struct_fields__})


def said(session: Session, case: tuple[int, int | None]) -> list[SaidBy]:
    """Every standing verdict of physicians on a response or a case, oldest first; settlements taken back too (label None)."""
    verdict = _verdict()
    names = [name for name in SaidBy.__struct_fields__ if name != "verdict_id"]
    columns = [verdict.c.id.label("verdict_id"), *(verdict.c[name] for name in names)]
    statement = (
        select(*columns)
        .where(_of_physicians(), *_on(case), not_superseded())
        .where(or_(verdict.c.label.is_not(None), verdict.c.stage == Stage.ADJUDICATED))
        .order_by(verdict.c.id)
    )
    rows = session.connection().execute(statement)
    return [msgspec.convert(dict(row), SaidBy) for row in rows.mappings()]


def _as_asked(case: tuple[int, int | None], ask: Ask) -> Asked:
    """A response or case as `sheets` takes it; nobody has assigned this, so the rest says nothing."""
    return Asked(0, 0, ask, *case, 0, 1.0, Selection.ADJUDICATION, 0, 0)


def sheet(session: Session, case: tuple[int, int | None]) -> Sheet | None:
    """The texts of a response or case, its model left out; None where there is none of these numbers."""
    example_id, response_id = case
    responses = TABLES["response"].c
    known = select(col(Example.id)).where(col(Example.id) == example_id)
    if response_id is not None:
        known = known.join(Criterion.metadata.tables["response"], responses.example_id == col(Example.id)).where(
            responses.id == response_id
        )
    if session.connection().execute(known).first() is None:
        return None
    return sheets.sheet(session, _as_asked(case, Ask.GOLD_ACUITY if response_id is None else Ask.RUBRIC))


def judge_on(
    session: Session, case: tuple[int, int | None], ask: Ask, judge: str | None
) -> tuple[str | None, dict[int | None, Given]]:
    """The judge that the study shows on a response or case, and its verdicts by criterion_id."""
    return sheets.judge_on(session, _as_asked(case, ask), judge)


def judge_shown(session: Session, actor: str, subject: str) -> set[int | None]:
    """On which items of a response or case somebody has looked at the judge's verdict, by criterion_id (None: acuity)."""
    looked = (col(AuditEvent.action) == JUDGE_SHOWN) & (col(AuditEvent.actor) == actor)
    details = select(col(AuditEvent.detail)).where(looked, col(AuditEvent.subject) == subject)
    return {json.loads(detail)["criterion"] for detail in session.connection().execute(details).scalars()}


def hold_readings(session: Session, case: tuple[int, int | None]) -> None:
    """Hold whoever reads or amends this response or case until the transaction ends; on SQLite the write lock does that already."""
    example_id, response_id = case
    of_response = col(Task.response_id).is_(None) if response_id is None else col(Task.response_id) == response_id
    statement = (
        select(col(Reading.id))
        .join(Task, col(Task.id) == col(Reading.task_id))
        .where(col(Task.example_id) == example_id, of_response)
        .order_by(col(Reading.id))
        .with_for_update(of=Reading)
    )
    session.connection().execute(statement).all()


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
        reasons: Words of `conflicts.Reason`, the worst first; none where only the viewer's settlement stands. Until the viewer has
            looked, without those that tell what the judge said.
        tells_judge: Its being in question tells by itself what the judge said (`conflicts.needing`).
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
        needing: Its items that need an adjudicator, settled or not (`conflicts.needing`), with told_reasons (those that tell nothing
            of the judge) and tells_judge.
        judge: The judge that the study shows, or None.
    """
    why = {
        None if pd.isna(row["criterion_id"]) else int(row["criterion_id"]): row
        for row in needing.to_dict(orient="records")
    }
    opinions = said(session, key)
    mine = tasks.raters_of(session, viewer)
    numbers = _numbers(session, viewer, key, opinions)
    looked = judge_shown(session, viewer.name, subject(key))
    judged_on = cache(lambda ask: judge_on(session, key, ask, judge))  # criteria are judged together
    criteria: list[Item | None] = [*sheet.items, None]
    for criterion in criteria:
        number = criterion.criterion_id if criterion else None
        on_item = [verdict for verdict in opinions if verdict.criterion_id == number]
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
