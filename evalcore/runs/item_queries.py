"""The items of a run: which there are, which have an answer, and which are left to ask."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlmodel import Session

from evalcore.runs.queries import rows
from evalcore.runs.spec import Question, RunSpec
from evalcore.study.schema import CASES, Format, Outcome, RaterKind, RunKind, Stage, repeat_version
from evalcore.study.tables import STORED, TABLES, AnySelect, alias

_NOTHING: Any = sa.cast(sa.null(), sa.Integer)
_QUESTION = TABLES["run_question"].c


class Part(NamedTuple):
    """Items of a run that differ in nothing but what they are about."""

    format: str = ""
    sample_index: int = 0
    repeat: int = 0


class Items(NamedTuple):
    """The items of a part: the statement gives their keys in the order in which they are asked; `mixed`, a number that orders them by chance."""

    statement: AnySelect
    key: tuple[Any, Any, Any]
    is_there: sa.ColumnElement[bool]
    mixed: sa.ColumnElement[int]


def parts(spec: RunSpec) -> Iterator[Part]:
    """The parts of a run in the order in which they are asked: of an interrupted run every item has its first sample before any has its second."""
    if spec.kind is RunKind.JUDGE:
        yield from (Part(repeat=repeat) for repeat in range(spec.n_repeats))
    else:
        formats = spec.formats if spec.kind is RunKind.TRIAGE else ("",)
        yield from (Part(word, sample) for sample in range(spec.n_samples) for word in formats)


def evaluation(spec: RunSpec, asked: str) -> str:
    """What the answers of a run are made for, as `Response.dataset` holds it."""
    return Format(asked).evaluation if spec.kind is RunKind.TRIAGE else spec.dataset


def items(spec: RunSpec, part: Part) -> Items:
    """The items of one part of a run: examples (respond), cases (triage), or of responses each criterion, or the level of a conversation (judge).

    An answer is there where the model has a response of this sample, or the judge of this repeat a verdict on the item, also where it came with a file.
    """
    example, response, criterion, cases = (TABLES[one].c for one in ("example", "response", "criterion", "acuity_case"))
    statement: AnySelect
    key: tuple[Any, Any, Any]
    order: tuple[Any, ...]
    if spec.kind is not RunKind.JUDGE:
        key, order = (example.id, _NOTHING, _NOTHING), (example.id,)
        statement = sa.select(*key).where(example.dataset == _called("dataset", spec.dataset))
        if spec.kind is RunKind.TRIAGE:
            statement = statement.where(sa.exists().where(cases.example_id == example.id))
    elif spec.dataset == CASES:
        key, order = (response.example_id, response.id, _NOTHING), (response.id,)
        is_case = sa.exists().where(cases.example_id == response.example_id)
        in_conversation = response.dataset == Format.CONVERSATION.evaluation
        statement = sa.select(*key).where(in_conversation, response.text != "", is_case)
    else:
        key, order = (response.example_id, response.id, criterion.id), (response.id, criterion.position)
        statement = (
            sa.select(*key)
            .select_from(TABLES["response"])
            .join(TABLES["example"], example.id == response.example_id)
            .join(TABLES["criterion"], criterion.example_id == response.example_id)
            .where(example.dataset == _called("dataset", spec.dataset))
        )
    if spec.kind is RunKind.JUDGE and spec.of_models:
        model = TABLES["model"].c
        named = model.name.in_([_called("model", name) for name in spec.of_models])
        statement = statement.where(response.model_id.in_(sa.select(model.id).where(named)))
    numbers = (key[1], key[2]) if spec.kind is RunKind.JUDGE else (key[0],)
    # products of small numbers: below 2**31 in PostgreSQL's arithmetic
    factors = zip((number for number in numbers if number is not _NOTHING), (7_919, 10_477), strict=False)
    mixed: Any = sum((number % 20_011 * factor for number, factor in factors), 0) % 19_997
    return Items(statement.order_by(*order), key, _is_there(spec, part, *key), mixed)


def open_questions(run_id: int, spec: RunSpec, part: Part) -> AnySelect:
    """The items of a part that have no answer and are no question of the run yet: the columns of `run_question`, from run_id to repeat."""
    found = items(spec, part)
    example_id, response_id, criterion_id = found.key
    is_asked = sa.exists().where(
        *_of_part(run_id, part),
        _QUESTION.example_id == example_id,
        _or_0(_QUESTION.response_id) == _or_0(response_id),
        _or_0(_QUESTION.criterion_id) == _or_0(criterion_id),
    )
    constant: Any = sa.literal_column(f"'{part.format}'"), _literal(part.sample_index), _literal(part.repeat)
    columns = found.statement.with_only_columns(_literal(run_id), *found.key, *constant)
    return columns.where(~found.is_there, ~is_asked)


def not_answered(run_id: int, spec: RunSpec, part: Part, *, is_there: bool) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of a run's questions of this part that are open or have failed, whose item has an answer by now or has none."""
    still = sa.func.coalesce(_QUESTION.outcome, sa.literal_column("''")) != Outcome.ANSWERED.value
    there = _is_there(spec, part, _QUESTION.example_id, _QUESTION.response_id, _QUESTION.criterion_id)
    return *_of_part(run_id, part), still, there if is_there else ~there


def _of_part(run_id: int, part: Part) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        _QUESTION.run_id == run_id,
        _QUESTION.format == part.format,
        _QUESTION.sample_index == part.sample_index,
        _QUESTION.repeat == part.repeat,
    )


def _is_there(
    spec: RunSpec, part: Part, example_id: Any, response_id: Any, criterion_id: Any
) -> sa.ColumnElement[bool]:
    if spec.kind is not RunKind.JUDGE:
        # a hidden one is there too: its place is taken, and nobody asks for it anew
        return sa.or_(*(_is_given(tables, spec, part, example_id) for tables in (TABLES, STORED)))
    verdict, rater = alias("verdict", "given").c, TABLES["rater"].c
    judge = sa.select(rater.id).where(
        rater.kind == RaterKind.JUDGE.value,
        rater.name == _called("judge", spec.model.name),
        rater.prompt_version == repeat_version(spec.prompt_version, part.repeat),
    )
    by_judge = (verdict.rater_id == judge.scalar_subquery(), verdict.stage == Stage.JUDGE.value)
    if spec.dataset == CASES:  # as the index on such verdicts has it
        on_it = _or_0(verdict.response_id) == response_id
        return sa.exists().where(verdict.example_id == example_id, on_it, verdict.criterion_id.is_(None), *by_judge)
    return sa.exists().where(verdict.response_id == response_id, verdict.criterion_id == criterion_id, *by_judge)


def _called(kind: str, name: str) -> Any:
    """The name that is shown for one of a run's specification, which keeps what was asked for."""
    other = TABLES["other_name"].c
    return sa.func.coalesce(sa.select(other.now).where(other.kind == kind, other.was == name).scalar_subquery(), name)


def _is_given(tables: Mapping[str, sa.Table], spec: RunSpec, part: Part, example_id: Any) -> sa.ColumnElement[bool]:
    response, model = tables["response"].alias("given").c, tables["model"].c
    name, made_for = spec.model.name, evaluation(spec, part.format)
    named = sa.select(model.id).where(model.name.in_([name, _called("model", name)]))
    return sa.exists().where(
        response.example_id == example_id,
        response.model_id.in_(named),
        response.dataset.in_([made_for, _called("evaluation", made_for)]),
        response.sample_index == part.sample_index,
    )


def _or_0(column: Any) -> Any:
    """As the indexes have it: with the number itself, since SQLite finds none by a bound variable."""
    return sa.func.coalesce(column, sa.literal_column("0"))


def _literal(value: int) -> Any:
    return sa.literal_column(str(int(value)))


def counted(session: Session, spec: RunSpec) -> tuple[int, int]:
    """All items of a run, and those that have an answer."""
    n_all = n_there = 0
    for part in parts(spec):
        found = items(spec, part)
        there = sa.func.coalesce(sa.func.sum(sa.case((found.is_there, 1), else_=0)), 0)
        summed = found.statement.order_by(None).with_only_columns(sa.func.count(), there)
        every, with_answer = session.connection().execute(summed).one()
        n_all, n_there = n_all + int(every), n_there + int(with_answer)
    return n_all, n_there


def left(session: Session, run_id: int, spec: RunSpec) -> tuple[int, int]:
    """Questions of a run whose items have no answer, whichever way it came: still to be asked, and failed."""
    n_open = n_failed = 0
    for part in parts(spec):
        of_part = not_answered(run_id, spec, part, is_there=False)
        numbers = sa.select(sa.func.count(), sa.func.count(_QUESTION.outcome)).where(*of_part)
        every, ended = session.connection().execute(numbers).one()
        n_open, n_failed = n_open + int(every) - int(ended), n_failed + int(ended)
    return n_open, n_failed


def drawn(session: Session, spec: RunSpec, most: int) -> list[Question]:
    """Some items without an answer, in an order that has nothing to do with what they are; their numbers are 0."""
    found: list[Question] = []
    for part in parts(spec):
        asked = items(spec, part)
        some = asked.statement.where(~asked.is_there).order_by(None).order_by(asked.mixed, *asked.key[:2]).limit(most)
        some_rows = session.connection().execute(some)
        found.extend(Question(0, row[0], row[1], row[2], *part) for row in some_rows)
        if len(found) >= most:
            break
    return found[:most]


class Usage(NamedTuple):
    """Means of so many questions, all their calls together; tokens: None where no server has counted them."""

    n_questions: int
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float | None


def usage_before(session: Session, spec: RunSpec) -> Usage:
    """What questions of runs with this model and prompt took."""
    numbers = [
        row.run_id
        for row in rows(session, name=spec.model.name)
        if (row.kind, row.spec.prompt_version) == (spec.kind, spec.prompt_version)
    ]
    call = TABLES["run_call"].c
    replied = (Outcome.ANSWERED.value, Outcome.UNREADABLE.value, Outcome.REFUSED.value)
    means = (sa.func.avg(sa.cast(one, sa.Float)) for one in (call.prompt_tokens, call.completion_tokens, call.seconds))
    summed = sa.select(sa.func.count(call.question_id.distinct()), sa.func.count(), *means)
    summed = summed.where(call.run_id.in_(numbers), call.outcome.in_(replied))
    n, n_calls, *each = session.connection().execute(summed).one()
    return Usage(int(n), *(None if mean is None else float(mean) * n_calls / n for mean in each))
