"""What physicians have said: one item, one person, one conversation, and what adjudication is to look at."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, RowMapping, case, func, or_, select
from sqlmodel import Session, col, select as select_rows

from evalcore.reading.conflicts import Key, Read
from evalcore.reading.queries import Given, given, raters_of, shown_judges
from evalcore.reading.reference import TASK
from evalcore.study import schema
from evalcore.study.frames import frame, is_judge, is_read, not_superseded, repeats
from evalcore.study.schema import CASES, FILE_IMPORTED, JUDGE_SHOWN
from evalcore.study.tables import TABLES, AnySelect, Assignment, Example, Model, Rater, Reading, Response, Task, Verdict

RECENT = 500  # so many readings at most, the newest, tell how long the next will take


def item(session: Session, response_id: int, criterion_id: int | None, *, judge: str) -> RowMapping | None:
    """The item's example_id and the judge's label on it (None where that judge gave none); None where there is no such item."""
    verdict = TABLES["verdict"].c
    given = (
        select(verdict.label)
        .where(
            verdict.response_id == response_id,
            verdict.criterion_id == criterion_id if criterion_id is not None else verdict.criterion_id.is_(None),
            verdict.rater_id.in_(select(col(Rater.id)).where(is_judge(), col(Rater.name) == judge)),
            not_superseded(),
        )
        .order_by(verdict.rater_id.desc(), verdict.id.desc())  # the newest prompt
        .limit(1)
        .scalar_subquery()
    )
    statement = select(col(Response.example_id).label("example_id"), given.label("judge_label"))
    statement = statement.where(col(Response.id) == response_id)
    if criterion_id is not None:
        criterion = TABLES["criterion"]
        beside = criterion.c.example_id == col(Response.example_id)
        statement = statement.join(criterion, beside).where(criterion.c.id == criterion_id)
    return session.connection().execute(statement).mappings().first()


def example_of(session: Session, response_id: int) -> int | None:
    """The example that a response answers; None where there is no such response."""
    example = select(col(Response.example_id)).where(col(Response.id) == response_id)
    return session.connection().execute(example).scalar()


def newest_of(
    session: Session, response_id: int, criterion_id: int | None, rater_id: int, stage: schema.Stage
) -> Verdict | None:
    """A rater's newest verdict on an item at a stage, one taken back (label None) too."""
    statement = select_rows(Verdict).where(
        Verdict.response_id == response_id,
        Verdict.criterion_id == criterion_id,
        Verdict.rater_id == rater_id,
        Verdict.stage == stage.value,
        not_superseded(),
    )
    return session.exec(statement).first()


_ASK = case(
    (col(Verdict.criterion_id).is_not(None), schema.Ask.RUBRIC.value),
    (col(Verdict.response_id).is_not(None), schema.Ask.RESPONSE_ACUITY.value),
    else_=schema.Ask.GOLD_ACUITY.value,
).label("ask")


def my_reads(session: Session, viewer: schema.Viewer) -> pd.DataFrame:
    """One row a response (or case) and question that a person has given a label of their own on, newest first. Settling others' conflicts is no read.

    Returns:
        ask, example_id, response_id (missing for a case), first_words, model (missing for a case), read_at; and, missing where it was not read in
        Review: reading_id, state, seconds, locked_at.
    """
    task: tuple[Any, ...] = (_ASK, col(Verdict.example_id), col(Verdict.response_id), col(Example.first_words), col(Model.name).label("model"))  # fmt: skip
    given = (
        select(*task, func.max(col(Verdict.created_at)).label("read_at"))
        .join(Example, col(Example.id) == col(Verdict.example_id))
        .outerjoin(Response, col(Response.id) == col(Verdict.response_id))
        .outerjoin(Model, col(Model.id) == col(Response.model_id))
        .where(
            is_read(Verdict),
            col(Verdict.rater_id).in_(raters_of(session, viewer)),
            col(Verdict.stage) != schema.Stage.ADJUDICATED,
            col(Verdict.label).is_not(None),
            not_superseded(),
        )
        .group_by(*task)
    )
    columns: list[Any] = [
        col(Assignment.ask), col(Task.example_id), col(Task.response_id), col(Reading.id).label("reading_id"), col(Reading.state), col(Reading.seconds),
        col(Reading.locked_at),
    ]  # fmt: skip
    mine = _readings(*columns).where(col(Reading.person_id) == viewer.person_id)
    locked = mine.order_by(col(Reading.locked_at).desc())
    readings = frame(session, locked).drop_duplicates(TASK).astype({"response_id": "Int64", "reading_id": "Int64"})
    reads = frame(session, given).astype({"response_id": "Int64"}).merge(readings, on=TASK, how="left")
    reads["read_at"] = reads["locked_at"].fillna(reads["read_at"])
    return reads.sort_values("read_at", ascending=False, kind="stable", ignore_index=True)


def _readings(*columns: Any) -> Any:
    statement = select(*columns).join(Task, col(Task.id) == col(Reading.task_id))
    statement = statement.join(Assignment, col(Assignment.id) == col(Task.assignment_id))
    return statement.where(col(Reading.state) != schema.ReadingState.READING)


def reading_times(session: Session) -> pd.DataFrame:
    """The newest locked readings of whole responses: seconds (of each pause two minutes at most), n_criteria (1 or more)."""
    of_example = TABLES["criterion"].c.example_id
    rubric = select(of_example.label("example_id"), func.count().label("n_criteria")).group_by(of_example).subquery()
    of_task = rubric.c.example_id == col(Task.example_id)
    readings = _readings(col(Reading.seconds), rubric.c.n_criteria).join(rubric, of_task)
    newest = readings.where(col(Assignment.ask) == schema.Ask.RUBRIC).order_by(col(Reading.id).desc()).limit(RECENT)
    return frame(session, newest)


def examples_of(session: Session, viewer: schema.Viewer) -> list[int]:
    """Examples on which a person has given any label."""
    mine = is_read(Verdict), col(Verdict.rater_id).in_(raters_of(session, viewer))
    return sorted(session.connection().execute(select(col(Verdict.example_id)).distinct().where(*mine)).scalars())


def level_readers(session: Session) -> pd.Series:
    """How many physicians have said which level a case, or any response to it, needs or recommends: n_level_readers, by example_id."""
    verdict, rater = TABLES["verdict"].c, TABLES["rater"]
    statement = (
        select(verdict.example_id, func.count(verdict.rater_id.distinct()).label("n_level_readers"))
        .join(rater, rater.c.id == verdict.rater_id)
        .where(rater.c.kind == schema.RaterKind.REVIEWER, is_read(verdict), verdict.criterion_id.is_(None))
        .where(verdict.label.is_not(None), not_superseded())
        .group_by(verdict.example_id)
    )
    return frame(session, statement).set_index("example_id")["n_level_readers"]


@dataclass(frozen=True)
class Opened:
    """One conversation with everything on it.

    `example`: its row; `messages` as a list of {role, content}. `verdicts`: all standing ones with their words, those on the case itself too (response_id
    missing), and those taken back (label None) of open stage; with brought_by: who imported the file that a physician's verdict came with.
    """

    example: dict[str, Any]
    subsets: list[str]
    criteria: pd.DataFrame
    responses: pd.DataFrame
    verdicts: pd.DataFrame

    @property
    def is_case(self) -> bool:
        """Whether it is a case of triage, with a level of care and without a rubric."""
        return bool(self.example["dataset"] == CASES)


def open_example(session: Session, example_id: int) -> Opened | None:
    """Everything about one example; None where there is none of this number."""
    row = session.get(Example, example_id)
    if row is None:
        return None
    response, criterion, verdict = (TABLES[name].c for name in ("response", "criterion", "verdict"))
    responses = (
        select(
            response.id.label("response_id"),
            col(Model.name).label("model"),
            response.dataset.label("evaluation"),
            response.sample_index,
            response.text,
            response.sent_messages,
            response.n_criteria,
            response.finish_reason,
            response.made_on,
        )
        .join(Model, col(Model.id) == response.model_id)
        .where(response.example_id == example_id)
        .order_by(col(Model.name), response.dataset, response.sample_index)
    )
    of_example = verdict.response_id.in_(select(response.id).where(response.example_id == example_id))
    statement = (
        select(TABLES["verdict"], col(Rater.name).label("rater"), col(Rater.kind).label("rater_kind"))
        .join(Rater, col(Rater.id) == verdict.rater_id)
        .where(verdict.example_id == example_id, or_(verdict.response_id.is_(None), of_example))
        .where(verdict.rater_id.not_in(repeats(session)))
        .where(not_superseded(), or_(verdict.label.is_not(None), verdict.stage == schema.Stage.OPEN))
        .order_by(verdict.id)
    )
    subset = TABLES["example_subset"].c
    subsets = select(subset.subset).where(subset.example_id == example_id)
    rubric = select(TABLES["criterion"]).where(criterion.example_id == example_id).order_by(criterion.position)
    verdicts = frame(session, statement).rename(columns={"id": "verdict_id"})
    is_imported = verdicts["rater_kind"].eq(schema.RaterKind.REVIEWER) & verdicts["source"].eq(schema.Source.IMPORT)
    by_file = verdicts["source_hash"].where(is_imported)
    verdicts["brought_by"] = by_file.map(_importers(session, list(by_file.dropna().unique()))).astype(object)
    return Opened(
        example=row.model_dump() | {"messages": json.loads(row.messages)},
        subsets=sorted(session.connection().execute(subsets).scalars()),
        criteria=frame(session, rubric).rename(columns={"id": "criterion_id"}),
        responses=frame(session, responses),
        verdicts=verdicts,
    )


def _importers(session: Session, hashes: Collection[str]) -> dict[str, str]:
    if not hashes:
        return {}
    event = TABLES["audit_event"].c
    named = or_(*(event.detail.contains(each) for each in hashes))
    imports = select(event.actor, event.detail).where(event.action == FILE_IMPORTED, named).order_by(event.id)
    importers: dict[str, str] = {}
    for actor, detail in session.connection().execute(imports):
        for each in hashes:
            if each in detail:
                importers.setdefault(each, actor)
    return importers


def _on(on: Key | int | None) -> list[ColumnElement[bool]]:
    verdict = TABLES["verdict"].c
    conditions: list[ColumnElement[bool]] = [is_read(verdict)]
    if isinstance(on, int):
        conditions.append(verdict.example_id == on)
    elif on is not None:
        response = verdict.response_id.is_(None) if on[1] is None else verdict.response_id == on[1]
        conditions += [verdict.example_id == on[0], response]
    return conditions


def reads(session: Session, *, judge: str | None, with_judge: bool, on: Key | int | None = None) -> list[Read]:
    """Physicians' standing verdicts, as `conflicts.needing` takes them: all, on one response or case, or on everything of an example.

    Also assigned open reads that their reader has changed since, where conversations are browsed: what was submitted decides.
    """
    verdict, criterion = TABLES["verdict"], TABLES["criterion"]
    names = ("id", "example_id", "response_id", "criterion_id", "rater_id", "stage", "label", "severity", "selection")
    drawn = verdict.c.selection.in_([schema.Selection.RANDOM, schema.Selection.IMPORTANCE])
    submitted = (verdict.c.stage == schema.Stage.OPEN) & drawn
    statement = (
        select(*(verdict.c[name] for name in names), criterion.c.points, _ASK)
        .select_from(verdict.outerjoin(criterion, criterion.c.id == verdict.c.criterion_id))
        .where(verdict.c.label.is_not(None), or_(not_superseded(), submitted), *_on(on))
    )
    wanted = _wanted(session, on)
    judged = _judged(session, judge, on) if with_judge else {}
    standing = []
    for number, *item, rater_id, stage, label, severity, selection, points, ask in _rows(session, statement):
        n_wanted, is_chosen = wanted.get((ask, *item[:2]), (None, False))
        # chosen and assigned: such reads fill a place too
        place = None if is_chosen else selection
        judge_label = judged.get((item[1], item[2]))
        of_verdict = rater_id, stage, label, severity
        standing.append(Read(number, tuple(item), *of_verdict, place, points, n_wanted, judge_label))
    return standing


def _rows(session: Session, statement: AnySelect) -> Sequence[Any]:
    return session.connection().execute(statement).all()


def _wanted(session: Session, on: Key | int | None) -> dict[tuple[str, int, int | None], tuple[int, bool]]:
    """How many readers each assigned item gets (cancelled: got), by ask, example_id and response_id; and whether somebody chose it and assigned it."""
    task = TABLES["task"].c
    chosen = case((col(Assignment.selection) == schema.Selection.VOLUNTEERED, 1), else_=0)
    names: tuple[Any, ...] = (col(Assignment.ask), task.example_id, task.response_id)
    of_task = select(func.count()).where(col(Reading.task_id) == task.id)
    made = of_task.where(col(Reading.state) != schema.ReadingState.READING).correlate(Task).scalar_subquery()
    n_wanted = case((col(Assignment.cancelled_at).is_(None), col(Assignment.n_readers)), else_=made)
    statement = (
        select(*names, func.max(n_wanted), func.max(chosen))
        .join(Task, col(Task.assignment_id) == col(Assignment.id))
        .group_by(*names)
    )
    if on is not None:
        statement = statement.where(task.example_id == (on if isinstance(on, int) else on[0]))
    return {tuple(names): (n_wanted, bool(is_chosen)) for *names, n_wanted, is_chosen in _rows(session, statement)}


def _judged(session: Session, judge: str | None, on: Key | int | None) -> dict[tuple[int, int], str]:
    """The labels of the judge that each response shows, on responses that physicians read, by response_id and criterion_id."""
    verdict = TABLES["verdict"].c
    judges = shown_judges(select(verdict.response_id).where(verdict.response_id.is_not(None), *_on(on)), judge)
    shown = (judges.c.response_id == verdict.response_id) & (judges.c.rater_id == verdict.rater_id)
    statement = (
        select(verdict.response_id, verdict.criterion_id, verdict.label)
        .join(judges, shown)
        .where(verdict.criterion_id.is_not(None), verdict.label.is_not(None), not_superseded())
    )
    return {(response, criterion): label for response, criterion, label in _rows(session, statement)}


def readers(session: Session, on: Key | int | None = None) -> dict[Key, set[str]]:
    """Names of those who ever gave a verdict on a response or case, adjudications apart; also where it was taken back."""
    verdict, rater = TABLES["verdict"].c, TABLES["rater"]
    statement = (
        select(verdict.example_id, verdict.response_id, rater.c.name)
        .join(rater, rater.c.id == verdict.rater_id)
        .where(verdict.stage != schema.Stage.ADJUDICATED, *_on(on))
        .distinct()
    )
    named: dict[Key, set[str]] = {}
    for example_id, response_id, name in session.connection().execute(statement):
        named.setdefault((example_id, response_id), set()).add(name)
    return named


def settled_by(session: Session, rater_ids: list[int]) -> pd.DataFrame:
    """What some raters have settled: example_id, response_id (missing for a case), first_words, n_items, settled_at; the newest first."""
    verdict = TABLES["verdict"].c
    settled_at = func.max(verdict.created_at)
    of = (verdict.example_id, verdict.response_id, TABLES["example"].c.first_words)
    statement = (
        select(*of, func.count().label("n_items"), settled_at.label("settled_at"))
        .join(TABLES["example"], TABLES["example"].c.id == verdict.example_id)
        .where(verdict.stage == schema.Stage.ADJUDICATED, verdict.rater_id.in_(rater_ids), *_on(None))
        .where(verdict.label.is_not(None), not_superseded())
        .group_by(*of)
        .order_by(settled_at.desc())
    )
    return frame(session, statement)


def beginnings(session: Session, example_ids: list[int]) -> dict[int, tuple[str, str | None]]:
    """First words and language of conversations, by example_id."""
    columns: list[Any] = [col(Example.id), col(Example.first_words), col(Example.language)]
    rows = session.connection().execute(select(*columns).where(col(Example.id).in_(example_ids)))
    return {row[0]: (row[1], row[2]) for row in rows}


def said(session: Session, key: Key) -> list[tuple[int, Given]]:
    """Every standing verdict of physicians on a response or a case, behind who gave it, oldest first; settlements taken back too (label None)."""
    verdict = TABLES["verdict"].c
    stands = or_(verdict.label.is_not(None), verdict.stage == schema.Stage.ADJUDICATED), not_superseded()
    return given(session, *stands, *_on(key))


def judge_shown(session: Session, actor: str, subject: str) -> set[int | None]:
    """On which items of a response or case somebody has looked at the judge's verdict, by criterion_id (None: acuity)."""
    event = TABLES["audit_event"].c
    of_subject = event.action == JUDGE_SHOWN, event.actor == actor, event.subject == subject
    details = select(event.detail).where(*of_subject)
    return {json.loads(detail)["criterion"] for detail in session.connection().execute(details).scalars()}
