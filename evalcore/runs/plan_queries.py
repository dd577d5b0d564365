"""What a run would ask, counted; what earlier calls took; and what the study holds that a run could be about."""

from typing import NamedTuple

from sqlalchemy import Float, case, cast, distinct, exists, func, select
from sqlmodel import Session

from evalcore.runs import queries
from evalcore.runs.asked_tables import has_answer, items, not_answered, parts
from evalcore.study.run_words import Outcome, Question, RunSpec
from evalcore.study.schema import CASES, Format
from evalcore.study.tables import TABLES


class Counted(NamedTuple):
    """Items of a run: all, and those that have an answer."""

    n_all: int
    n_there: int


class Taken(NamedTuple):
    """What a question took on average, all its calls together.

    Attributes:
        n_questions: So many questions the averages are of.
        prompt_tokens, completion_tokens: None where no server has counted them.
        seconds: In flight.
    """

    n_questions: int
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float


def counted(session: Session, spec: RunSpec) -> Counted:
    """All items of a run, and those that have an answer."""
    n_all = n_there = 0
    for part in parts(spec):
        found = items(spec, part)
        there = func.coalesce(func.sum(case((found.is_there, 1), else_=0)), 0)
        summed = found.statement.order_by(None).with_only_columns(func.count(), there)
        every, with_answer = session.connection().execute(summed).one()
        n_all, n_there = n_all + int(every), n_there + int(with_answer)
    return Counted(n_all, n_there)


class Left(NamedTuple):
    """Questions of a run whose items have no answer: still to be asked, and failed."""

    n_open: int
    n_failed: int


def left(session: Session, run_id: int, spec: RunSpec) -> Left:
    """What is left of a run that was started; questions whose answer has come in another way since are not."""
    outcome = TABLES["run_question"].c.outcome
    n_open = n_failed = 0
    for part in parts(spec):
        summed = select(func.count(), func.count(outcome)).where(
            *not_answered(run_id, part), ~has_answer(spec, part)
        )  # fmt: skip
        every, ended = session.connection().execute(summed).one()
        n_open, n_failed = n_open + int(every) - int(ended), n_failed + int(ended)
    return Left(n_open, n_failed)


def drawn(session: Session, spec: RunSpec, most: int) -> list[Question]:
    """Some items without an answer, in an order that has nothing to do with what they are; their numbers are 0."""
    found: list[Question] = []
    for part in parts(spec):
        asked = items(spec, part)
        some = asked.statement.where(~asked.is_there).order_by(None).order_by(asked.mixed, *asked.key[:2]).limit(most)
        rows = session.connection().execute(some)
        found.extend(Question(0, row[0], row[1], row[2], part.format, part.sample_index, part.repeat) for row in rows)
        if len(found) >= most:
            break
    return found[:most]


def taken_before(session: Session, spec: RunSpec) -> Taken | None:
    """What questions of runs with this model and prompt took; None before the first answer."""
    numbers = [
        row.run_id
        for row in queries.rows(session, name=spec.model.name)
        if (row.kind, row.spec.prompt_version) == (spec.kind, spec.prompt_version)
    ]
    call = TABLES["run_call"].c
    replied = (Outcome.ANSWERED, Outcome.UNREADABLE, Outcome.REFUSED)
    summed = select(
        func.count(distinct(call.question_id)),
        func.count(call.prompt_tokens),
        func.count(call.completion_tokens),
        func.count(),
        func.avg(cast(call.prompt_tokens, Float)),
        func.avg(cast(call.completion_tokens, Float)),
        func.avg(call.seconds),
    ).where(call.run_id.in_(numbers), call.outcome.in_([word.value for word in replied]))
    n, n_prompt, n_completion, n_calls, prompt, completion, seconds = session.connection().execute(summed).one()
    if not n:
        return None
    each = n_calls / n
    return Taken(
        n_questions=int(n),
        prompt_tokens=float(prompt) * each if n_prompt else None,
        completion_tokens=float(completion) * each if n_completion else None,
        seconds=float(seconds) * each,
    )


def datasets(session: Session) -> list[str]:
    """The data sets of which there are examples."""
    example = TABLES["example"].c
    found = select(example.dataset).distinct().order_by(example.dataset)
    return [str(name) for name in session.connection().execute(found).scalars()]


def models_of(session: Session, dataset: str) -> list[str]:
    """The models whose responses to examples of a data set can be judged; of cases: those with a text in the format conversation."""
    example, response, model = (TABLES[name].c for name in ("example", "response", "model"))
    to_judge = exists().where(
        response.model_id == model.id, response.example_id == example.id, example.dataset == dataset
    )
    if dataset == CASES:
        to_judge = to_judge.where(response.dataset == Format.CONVERSATION.evaluation, response.text != "")
    found = select(model.name).where(to_judge).order_by(model.name)
    return [str(name) for name in session.connection().execute(found).scalars()]


def confidence_meaning(session: Session, judge: str) -> str | None:
    """What the study says that this judge's confidence is the probability of."""
    meaning = TABLES["judge_confidence"].c
    found = session.connection().execute(select(meaning.meaning).where(meaning.judge == judge)).scalar()
    return None if found is None else str(found)
