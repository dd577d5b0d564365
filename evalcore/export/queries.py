"""What a paper has to say of how a study was done, out of the database: who was asked how, who read when and by which guideline, and what was drawn."""

from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd
from sqlalchemy import func, or_, select
from sqlmodel import Session, col

from evalcore.runs.queries import rows
from evalcore.study.frames import Named, frame, is_read, knowing, not_superseded, verdicts
from evalcore.study.schema import Ask, Outcome, RaterKind, ReadingState, RunKind, Stage
from evalcore.study.tables import TABLES, Assignment, Example, Rater, Reading, Response, Task, Verdict

_VERDICTS, _RESPONSES = 5_000, 500
"""Verdicts, or responses with all that is said of them, that are in memory at once."""


def verdicts_by_number(session: Session, joined: Named) -> Iterator[pd.DataFrame]:
    """All standing verdicts with their texts and where they come from, also by older prompts and repeats, in the order of their numbers, in parts."""
    number = TABLES["verdict"].c.id
    last = session.connection().execute(select(func.max(number))).scalar_one() or 0
    for start in range(1, max(last, 1) + 1, _VERDICTS):
        of_part = (number.between(start, start + _VERDICTS - 1),)
        yield verdicts(session, texts=True, every_prompt=True, origin=True, joined=joined._replace(which=of_part))


def verdicts_by_response(session: Session, joined: Named, rater_ids: Collection[int]) -> Iterator[pd.DataFrame]:
    """What these raters say of all responses of `joined`, as `frames.verdicts` with their texts, in the order of the responses there, in parts."""
    verdict, numbers = TABLES["verdict"].c, joined.responses["response_id"].tolist()
    for start in range(0, max(len(numbers), 1), _RESPONSES):
        of_part = (verdict.response_id.in_(numbers[start : start + _RESPONSES]), verdict.rater_id.in_(rater_ids))
        yield verdicts(session, texts=True, joined=joined._replace(which=of_part))


def first_reads(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """Physicians' standing blind first reads of criteria, one row a read; person_id is missing where the physician is known from a file alone."""
    columns: list[Any] = [
        col(Verdict.response_id),
        col(Verdict.criterion_id),
        col(Rater.name).label("rater"),
        col(Rater.person_id),
        col(Verdict.guideline_version),
        col(Verdict.created_at),
        col(Verdict.id).in_(knowing()).label("knows_model"),
    ]
    blinded = or_(col(Verdict.blinded).is_(None), col(Verdict.blinded).is_(True))
    return frame(session, _first(columns, hidden).where(blinded))


def _first(columns: list[Any], hidden: frozenset[int]) -> Any:
    given = col(Verdict.label).is_not(None), col(Verdict.criterion_id).is_not(None)
    first = col(Rater.kind) == RaterKind.REVIEWER, col(Verdict.stage) == Stage.FIRST
    of_read = select(*columns).join(Rater, col(Rater.id) == col(Verdict.rater_id))
    return of_read.where(is_read(Verdict), not_superseded(), *first, *given, *_shown(Verdict.example_id, hidden))


def _shown(example_id: Any, hidden: frozenset[int]) -> tuple[Any, ...]:
    return (col(example_id).not_in(list(hidden)),) if hidden else ()


def not_blind(session: Session, hidden: frozenset[int] = frozenset()) -> dict[str, int]:
    """Standing first reads of criteria that were not blind, by the reason, "" where a file gave none."""
    why = func.coalesce(col(Verdict.not_blind), "")
    statement = _first([why, func.count()], hidden).where(col(Verdict.blinded).is_(False))
    statement = statement.group_by(why).order_by(why.desc())
    return {str(reason): int(n) for reason, n in session.connection().execute(statement)}


def assigned(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """Responses assigned to be read by their rubrics, a row a response and assignment; n_readers are wanted."""
    of_task = (Task.assignment_id, Task.response_id, Task.inclusion_probability)
    drawn, wanted = (
        (Assignment.selection, Assignment.seed, Assignment.n_population, Assignment.cancelled_at),
        Assignment.n_readers,
    )
    columns: list[Any] = [col(Task.id).label("task_id"), *map(col, (*of_task, *drawn, wanted, Assignment.chosen_by))]
    statement = (
        select(*columns)
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .where(col(Assignment.ask) == Ask.RUBRIC, col(Task.response_id).is_not(None), *_shown(Task.example_id, hidden))
        .order_by(col(Task.assignment_id), col(Task.place))
    )
    return frame(session, statement)


def submitted(session: Session) -> pd.DataFrame:
    """Who has read which response for which assignment, one row a submitted reading."""
    of_task = (Reading.task_id, Task.assignment_id, Task.response_id, Reading.person_id, Assignment.selection)
    columns: list[Any] = [*map(col, of_task)]
    statement = (
        select(*columns)
        .join(Task, col(Reading.task_id) == col(Task.id))
        .join(Assignment, col(Assignment.id) == col(Task.assignment_id))
        .where(col(Reading.state) != ReadingState.READING, col(Assignment.ask) == Ask.RUBRIC)
    )
    return frame(session, statement)


def asked(session: Session) -> list[dict[str, Any]]:
    """Runs that brought an answer of a model to an example, or a judge's verdict, oldest first; temperature None: not sent; ended None: not yet."""
    call = TABLES["run_call"].c
    counted = select(call.run_id, func.count()).where(call.outcome == Outcome.ANSWERED).group_by(call.run_id)
    answered: dict[int, int] = {int(row[0]): int(row[1]) for row in session.connection().execute(counted)}
    return [
        {
            "kind": run.kind, "name": run.spec.model.name, "dataset": run.spec.dataset, "api_model": run.spec.model.api_model,
            "temperature": run.spec.model.temperature, "max_tokens": run.spec.model.max_tokens, "prompt_version": run.spec.prompt_version,
            "n_samples": run.spec.n_samples, "n_repeats": run.spec.n_repeats, "n_answered": answered[run.run_id], "begun": run.created_at,
            "ended": run.ended_at,
        }
        for run in reversed(rows(session, run_ids=list(answered)))
        if run.kind in (RunKind.RESPOND, RunKind.JUDGE)
    ]  # fmt: skip


def n_sent_otherwise(session: Session, hidden: frozenset[int] = frozenset()) -> int:
    """Responses to examples with a rubric to which something else than the conversation was sent."""
    criterion = TABLES["criterion"].c
    of_rubric = col(Response.example_id).in_(select(criterion.example_id).distinct())
    statement = select(func.count(col(Response.sent_messages))).where(of_rubric, *_shown(Response.example_id, hidden))
    return int(session.connection().execute(statement).scalar_one())


def rubric_examples(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """Examples with a rubric: example_id."""
    criterion = TABLES["criterion"].c
    columns: list[Any] = [col(Example.id).label("example_id")]
    of_rubric = col(Example.id).in_(select(criterion.example_id).distinct())
    return frame(session, select(*columns).where(of_rubric, *_shown(Example.id, hidden)))


def examples(session: Session, dataset: str, hidden: frozenset[int] = frozenset()) -> list[dict[str, Any]]:
    """The examples of a data set, with their criteria in order; messages, tags and ideal_completions are JSON."""
    example, criterion = TABLES["example"].c, TABLES["criterion"].c
    named = (example.id, example.prompt_id, example.messages, example.tags, example.ideal_completions, example.canary)
    statement = select(*named).where(example.dataset == dataset, *_shown(Example.id, hidden)).order_by(example.id)
    found = session.connection().execute(statement).mappings()
    rows: dict[int, dict[str, Any]] = {int(row["id"]): {**row, "criteria": []} for row in found}
    lines = select(criterion.example_id, criterion.text, criterion.points, criterion.tags)
    of_dataset = criterion.example_id.in_(select(example.id).where(example.dataset == dataset))
    for number, *line in session.connection().execute(
        lines.where(of_dataset).order_by(criterion.example_id, criterion.position)
    ):
        if number in rows:
            rows[number]["criteria"].append(line)
    return list(rows.values())


def responses(session: Session, dataset: str, hidden: frozenset[int] = frozenset()) -> list[dict[str, Any]]:
    """The responses to the examples of a data set: example_id (its name), model, text, sample_index, evaluation, completion_id, sent (JSON)."""
    response, example, model = TABLES["response"].c, TABLES["example"].c, TABLES["model"].c
    named = (
        example.prompt_id.label("example_id"), model.name.label("model"), response.text, response.sample_index,
        response.dataset.label("evaluation"), response.completion_id, response.sent_messages.label("sent"),
    )  # fmt: skip
    statement = (
        select(*named)
        .join(example.id.table, example.id == response.example_id)
        .join(model.id.table, model.id == response.model_id)
    )
    statement = statement.where(example.dataset == dataset, *_shown(Example.id, hidden)).order_by(response.id)
    return [dict(row) for row in session.connection().execute(statement).mappings()]
