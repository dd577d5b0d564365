"""What adjudication reads: physicians' verdicts with what decides whether they need an adjudicator, and one case with its words."""

import json
from datetime import datetime
from typing import Any

import msgspec
import pandas as pd
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy import case as expression_case
from sqlmodel import Session, col

from evalcore.reading import sheets
from evalcore.reading.sheets import Given, Sheet
from evalcore.reading.tasks import Asked
from evalcore.study.frames import frame, is_read, not_superseded
from evalcore.study.schema import JUDGE_SHOWN, Ask, Selection, Stage
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
    """Physicians' standing verdicts, as `metrics.conflicts.needing` takes them, with verdict_id.

    Also assigned open reads that their reader has changed since, where conversations are browsed: what was submitted decides.

    Args:
        session: Where to read.
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
