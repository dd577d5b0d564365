"""What a reader has before them, and what has been said on it."""

import json
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Select, Subquery, exists, func, select
from sqlmodel import Session, col
from sqlmodel import select as select_rows

from evalcore.reading.tasks import Asked
from evalcore.study.frames import is_judge
from evalcore.study.schema import Ask, Selection, Stage
from evalcore.study.tables import TABLES, Criterion, Example, Response


class Item(msgspec.Struct, frozen=True):
    """A criterion as a reader meets it."""

    criterion_id: int
    position: int
    text: str
    points: int | None
    axis: str | None
    cluster: str | None


class Sheet(msgspec.Struct, frozen=True):
    """What a reader has before them: the conversation, the response without its model, the criteria.

    Attributes:
        messages: What was sent to the model, as {role, content}, without instructions that are not the example's own.
        response: None where the case itself is read.
    """

    prompt_id: str
    language: str | None
    messages: list[dict[str, str]]
    response: str | None
    items: tuple[Item, ...]


def sheet(session: Session, asked: Asked) -> Sheet:
    """The texts of a task."""
    example = session.get_one(Example, asked.example_id)
    response = session.get_one(Response, asked.response_id) if asked.response_id is not None else None
    sent = response.sent_messages if response is not None and response.sent_messages else example.messages
    items: Sequence[Criterion] = ()
    if asked.ask is Ask.RUBRIC:
        rubric = select_rows(Criterion).where(Criterion.example_id == asked.example_id)
        items = session.exec(rubric.order_by(col(Criterion.position))).all()
    return Sheet(
        prompt_id=example.prompt_id,
        language=example.language,
        messages=_without_instructions(json.loads(sent), json.loads(example.messages)),
        response=response.text if response is not None else None,
        items=tuple(Item(c.id or 0, c.position, c.text, c.points, c.axis, c.cluster) for c in items),
    )


def _without_instructions(sent: list[dict[str, str]], own: list[dict[str, str]]) -> list[dict[str, str]]:
    """What was sent, without instructions to the model that are not the conversation's own: they may name it to a blind reader."""
    return [turn for turn in sent if turn["role"] in ("user", "assistant") or turn in own]


class Given(msgspec.Struct, frozen=True):
    """A standing verdict on one item of a response."""

    verdict_id: int
    label: str | None
    explanation: str | None
    cause: str | None
    severity: str | None
    error_kind: str | None
    right_for_wrong_reason: bool
    reason: str | None


def _on_item(asked: Asked) -> list[ColumnElement[bool]]:
    verdict = TABLES["verdict"].c
    whole = verdict.criterion_id.is_not(None) if asked.ask is Ask.RUBRIC else verdict.criterion_id.is_(None)
    response = verdict.response_id.is_(None) if asked.response_id is None else verdict.response_id == asked.response_id
    return [verdict.example_id == asked.example_id, response, whole]


def _given(session: Session, *conditions: ColumnElement[bool]) -> dict[int | None, Given]:
    verdict = TABLES["verdict"].c
    statement = select(*_given_columns()).where(*conditions, _stands()).order_by(verdict.id)
    return {row[0]: Given(*row[1:]) for row in session.connection().execute(statement)}


def _given_columns() -> list[Any]:
    """The criterion, then what a `Given` is made of, in its order."""
    verdict = TABLES["verdict"].c
    names = ("label", "explanation", "cause", "severity", "error_kind", "right_for_wrong_reason", "reason")
    return [verdict.criterion_id, verdict.id, *(verdict[name] for name in names)]


def _stands() -> ColumnElement[bool]:
    """Nothing has replaced the verdict; for statements on few verdicts, since each is looked up."""
    verdict, newer = TABLES["verdict"], TABLES["verdict"].alias("newer")
    return ~exists(select(newer.c.id).where(newer.c.supersedes == verdict.c.id)).correlate(verdict)


def judge_on(session: Session, asked: Asked, judge: str | None) -> tuple[str | None, dict[int | None, Given]]:
    """The name of the judge to be shown and its verdicts on a task, by criterion_id.

    Args:
        judge: The study's choice; None, or one without a verdict here: the judge with the most verdicts on this task, by name.
    """
    verdict, rater = TABLES["verdict"].c, TABLES["rater"].c
    found = (
        select(rater.id, rater.name)
        .join(TABLES["verdict"], verdict.rater_id == rater.id)
        .where(is_judge(), verdict.label.is_not(None), *_on_item(asked))
        .group_by(rater.id, rater.name)
        .order_by(*_chosen_first(judge))
        .limit(1)
    )
    row = session.connection().execute(found).first()
    if row is None:
        return None, {}
    return row.name, _given(session, *_on_item(asked), verdict.rater_id == row.id, verdict.label.is_not(None))


def shown_judges(responses: Select[Any], judge: str | None) -> Subquery:
    """The judge that is shown on each of some responses' criteria, as `judge_on` chooses: response_id, rater_id, judge."""
    verdict, rater = TABLES["verdict"].alias("given"), TABLES["rater"]
    place = func.row_number().over(partition_by=verdict.c.response_id, order_by=_chosen_first(judge))
    ranked = (
        select(verdict.c.response_id, verdict.c.rater_id, rater.c.name.label("judge"), place.label("place"))
        .join(rater, rater.c.id == verdict.c.rater_id)
        .where(
            is_judge(),
            verdict.c.label.is_not(None),
            verdict.c.criterion_id.is_not(None),
            verdict.c.response_id.in_(responses),
        )
        .group_by(verdict.c.response_id, verdict.c.rater_id, rater.c.name)
        .subquery("ranked")
    )
    chosen = select(ranked.c.response_id, ranked.c.rater_id, ranked.c.judge).where(ranked.c.place == 1)
    return chosen.subquery("shown")


def _chosen_first(judge: str | None) -> tuple[Any, ...]:
    """The study's choice, then who has given the most verdicts, then by name, then the newest prompt; for statements grouped by rater."""
    rater = TABLES["rater"].c
    return (rater.name == (judge or "")).desc(), func.count().desc(), rater.name, func.max(rater.id).desc()


def has_item(session: Session, asked: Asked, criterion_id: int | None) -> bool:
    """Whether a task asks about this criterion, or, without one, about the whole."""
    if asked.ask is not Ask.RUBRIC:
        return criterion_id is None
    criterion = TABLES["criterion"].c
    found = select(criterion.id).where(criterion.id == criterion_id, criterion.example_id == asked.example_id)
    return session.connection().execute(found).scalar() is not None


def first_said(session: Session, asked: Asked, rater_id: int, stage: Stage) -> dict[int | None, Given]:
    """The read that one rater submitted, by criterion_id: at its stage the oldest verdicts that were not volunteered.

    An open read may have been changed since where conversations are browsed; what was submitted stays what was submitted.
    """
    verdict = TABLES["verdict"].c
    mine = [*_on_item(asked), verdict.rater_id == rater_id, verdict.stage == stage]
    if (
        asked.selection is not Selection.VOLUNTEERED
    ):  # else what was assigned looks as what somebody did of their own accord
        mine.append(func.coalesce(verdict.selection, "") != Selection.VOLUNTEERED)
    rows = session.connection().execute(select(*_given_columns()).where(*mine).order_by(verdict.id))
    first: dict[int | None, Given] = {}
    for row in rows:
        first.setdefault(row[0], Given(*row[1:]))
    return first


def said_by(session: Session, asked: Asked, rater_id: int, stages: Collection[Stage]) -> dict[int | None, Given]:
    """One rater's standing verdicts on a task at some stages, by criterion_id; of several stages the newest."""
    verdict = TABLES["verdict"].c
    return _given(session, *_on_item(asked), verdict.rater_id == rater_id, verdict.stage.in_(list(stages)))
