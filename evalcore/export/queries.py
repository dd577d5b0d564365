"""What is taken away, out of the database: verdicts and what they are on, as columns; and what a paper has to say of how a study was done."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import JSON, BigInteger, LargeBinary, String, bindparam, cast, func, literal_column, select
from sqlmodel import Session, col

from evalcore.runs.queries import rows
from evalcore.study import snapshot
from evalcore.study.frames import ITEM_BASE, frame, is_read, knowing, not_superseded
from evalcore.study.schema import Ask, Outcome, RaterKind, ReadingState, RunKind, Stage
from evalcore.study.tables import (
    STORED,
    TABLES,
    AnySelect,
    Assignment,
    Example,
    Rater,
    Reading,
    Response,
    Task,
    Verdict,
)

_VERDICTS, _FETCHED = 5_000, 1 << 10
"""Verdicts that one statement asks for, and rows that are fetched at once."""
_PAGES = 1000  # of 4 KB
_TYPES: dict[type, Any] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.large_string()}
_TYPES[datetime] = pa.timestamp("us", "UTC")


@contextmanager
def read_once(session: Session) -> Iterator[None]:
    """Within the block SQLite keeps next to nothing of what it has read: all of a study is read, and nothing of it twice."""
    connection = session.connection()
    if connection.dialect.name != "sqlite":
        yield
        return
    kept = connection.exec_driver_sql("PRAGMA cache_size").scalar_one()
    connection.exec_driver_sql(f"PRAGMA cache_size = {_PAGES}")
    try:
        yield
    finally:
        connection.exec_driver_sql(f"PRAGMA cache_size = {kept}")


def columns(session: Session, statement: AnySelect) -> pa.Table:
    """The rows of a statement as Arrow's columns, from those of the driver: SQLAlchemy's own take as long again."""
    kinds = ((column.name, getattr(column.type, "impl", column.type)) for column in statement.selected_columns)
    of = {name: _TYPES[kind.python_type] for name, kind in kinds}
    cursor = session.connection().execute(statement).cursor
    parts = [pa.schema(of.items()).empty_table()]
    while rows := cursor.fetchmany(_FETCHED):
        arrays = map(_array, zip(*rows, strict=True), of.values())
        parts.append(pa.table([*arrays], [*of]))
    return pa.concat_tables(parts).combine_chunks()


def _array(values: tuple[Any, ...], of: pa.DataType) -> pa.Array:
    if not (pa.types.is_timestamp(of) or pa.types.is_boolean(of)):
        return pa.array(values, of)
    made = pa.array(values)
    if pa.types.is_string(made.type):  # SQLite has no times, and numbers for yes and no
        made = made.cast(pa.timestamp("us"))
    return made.cast(of)


def rater_columns(session: Session) -> pa.Table:
    """One row a rater: rater_id, rater, rater_kind, prompt_version."""
    rater = TABLES["rater"].c
    named = (rater.id.label("rater_id"), rater.name.label("rater"), rater.kind.label("rater_kind"))
    return columns(session, select(*named, rater.prompt_version))


def response_columns(session: Session, names: Collection[str]) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Responses in the order of tables, each with its example_number and model_number; examples; and models."""
    response, example, model = TABLES["response"].c, TABLES["example"].c, TABLES["model"].c
    found, evaluations = snapshot.responses(session)
    named = (example.id.label("example_number"), example.prompt_id.label("example_id"))
    examples = columns(session, select(*named, example.dataset, example.theme, example.language, example.canary))
    examples = examples.sort_by([("dataset", "ascending"), ("example_id", "ascending")])
    models = columns(session, select(model.id.label("model_number"), model.name.label("model"))).sort_by("model")
    numbers = {
        "response_id": "id",
        "example_number": "example_id",
        "model_number": "model_id",
        "sample_index": "sample_index",
    }
    made = pa.table({name: pa.array(found[of], pa.int64()) for name, of in numbers.items()})
    if "evaluation" in names:
        called = pa.array(evaluations, pa.large_string()).take(pa.array(found["evaluation"]))
        known = columns(session, select(response.id, response.completion_id).where(response.completion_id.is_not(None)))
        said = known["completion_id"].take(pc.index_in(made["response_id"], known["id"]))
        made = made.append_column("evaluation", called).append_column("completion_id", said)
    places = [pc.index_in(made[table.column_names[0]], table[0]) for table in (models, examples)]
    return made.take(np.lexsort((found["id"], *places))), examples, models


def criterion_columns(session: Session) -> pa.Table:
    """One row a criterion, in the order of each rubric: criterion_id, criterion_position, criterion, points, axis, cluster."""
    criterion = TABLES["criterion"].c
    named = (criterion.id.label("criterion_id"), criterion.position.label("criterion_position"))
    words = (criterion.text.label("criterion"), criterion.points, criterion.axis, criterion.cluster)
    found = columns(session, select(*named, *words, criterion.example_id))
    return found.sort_by([("example_id", "ascending"), ("criterion_position", "ascending")]).drop_columns("example_id")


def verdicts(session: Session, names: Collection[str]) -> Iterator[pa.Table]:
    """All standing verdicts on criteria, also by older prompts and repeats, in the order of their numbers, in parts.

    verdict_id, response_id, criterion_id, rater_id, and those of the columns that are wanted which are a verdict's own.
    """
    verdict = TABLES["verdict"].c
    called = {"came_by": verdict.source, "file_sha256": verdict.source_hash, "read_at": verdict.created_at}
    own = {name: called.get(name, verdict.get(name)) for name in names if name != "response_id"}
    asked = [column.label(name) for name, column in own.items() if column is not None]
    number = verdict.id.label("verdict_id")
    statement = select(number, verdict.response_id, verdict.criterion_id, verdict.rater_id, *asked)
    statement = statement.where(verdict.criterion_id.is_not(None), verdict.label.is_not(None), not_superseded())
    last = session.connection().execute(select(func.max(verdict.id))).scalar_one() or 0
    for start in range(1, max(last, 1) + 1, _VERDICTS):
        yield columns(session, statement.where(verdict.id.between(start, start + _VERDICTS - 1)).order_by(verdict.id))


def explanations(session: Session, verdict_ids: npt.NDArray[np.int64]) -> pa.Array:
    """What verdicts with these numbers say, in this order; null where one says nothing, and where the number is 0. The database joins them: quicker."""
    verdict, order = STORED["verdict"].c, np.argsort(verdict_ids, kind="stable")
    numbers = verdict_ids[order]
    ends = [numbers[np.diff(numbers, **beside) != 1] for beside in ({"prepend": -2}, {"append": -2})]
    run = _listed(session, np.stack(ends, axis=1).tolist())
    first, last = (cast(run.op("->>")(literal_column(end)), BigInteger) for end in ("0", "1"))
    said = verdict.explanation
    if session.get_bind().dialect.name == "sqlite":  # joins them as it meets them: by number
        size: Any = func.coalesce(func.length(cast(said, LargeBinary)), -1)
        joined: list[Any] = [func.aggregate_strings(size, ","), cast(func.aggregate_strings(said, ""), LargeBinary)]
    else:
        size = cast(func.coalesce(func.octet_length(said), -1), String)
        joined = [func.aggregate_strings(*of).aggregate_order_by(verdict.id) for of in ((size, ","), (said, ""))]
    statement = select(*joined).select_from(run.table).join(verdict.id.table, verdict.id.between(first, last))
    listed, text = session.connection().execute(statement).one()
    sizes = np.full(len(numbers), -1)
    sizes[numbers > 0] = np.fromstring(listed, np.int64, sep=",") if listed else []
    content = text.encode() if isinstance(text, str) else text or b""
    buffers = pa.py_buffer(np.append(0, np.cumsum(sizes.clip(0)))), pa.py_buffer(content)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return pa.LargeStringArray.from_buffers(len(sizes), *buffers).take(pa.array(places, mask=sizes[places] < 0))


def _listed(session: Session, numbers: list[Any]) -> Any:
    """Numbers, or pairs of them, as a column of rows in the database."""
    listed = bindparam("listed", json.dumps(numbers), String)
    if session.get_bind().dialect.name == "postgresql":
        return func.json_array_elements(cast(listed, JSON)).table_valued("value").c.value
    return func.json_each(listed).table_valued("value").c.value


def reads(session: Session, response_ids: npt.NDArray[np.int64]) -> pa.Table:
    """All that physicians ever said of these responses by criterion: as `labels_of_items` asks, but without the rater's name and kind, is_standing."""
    verdict = TABLES["verdict"].c
    said = ("stage", "label", "explanation", "cause", "severity", "selection", "inclusion_probability", "blinded")
    standing = (verdict.label.is_not(None) & not_superseded()).label("is_standing")
    number, told = verdict.id.label("verdict_id"), (verdict[name] for name in ("rater_id", *said, "created_at"))
    of_these = verdict.response_id.in_(select(cast(cast(_listed(session, response_ids.tolist()), String), BigInteger)))
    statement = select(number, _item(verdict), *told, standing)
    return columns(session, _by_reviewers(statement).where(_item(verdict).is_not(None), of_these))


def read_items(session: Session) -> pa.ChunkedArray:
    """The items that physicians label, as item_id."""
    verdict = TABLES["verdict"].c
    standing = verdict.criterion_id.is_not(None), verdict.label.is_not(None), not_superseded()
    return columns(session, _by_reviewers(select(_item(verdict))).where(*standing))["item_id"]


def _by_reviewers(statement: AnySelect) -> AnySelect:
    verdict, rater = TABLES["verdict"].c, TABLES["rater"].c
    by = (rater.id == verdict.rater_id) & (rater.kind == RaterKind.REVIEWER)
    return statement.join(rater.id.table, by).where(is_read(verdict))


def _item(verdict: Any) -> Any:
    return (cast(verdict.response_id, BigInteger) * ITEM_BASE + verdict.criterion_id).label("item_id")


def first_reads(session: Session, hidden: frozenset[int] = frozenset()) -> pd.DataFrame:
    """Physicians' standing blind first reads of criteria, one row a read; person_id is missing where the physician is known from a file alone."""
    of_read = map(col, (Verdict.response_id, Verdict.criterion_id, Verdict.guideline_version, Verdict.created_at))
    knows = col(Verdict.id).in_(knowing()).label("knows_model")
    columns: list[Any] = [*of_read, col(Rater.name).label("rater"), col(Rater.person_id), knows]
    blinded = col(Verdict.blinded).is_(None) | col(Verdict.blinded).is_(True)
    return frame(session, _first(columns, hidden).where(blinded))


def _first(columns: list[Any], hidden: frozenset[int]) -> AnySelect:
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
    drawn = (Assignment.selection, Assignment.seed, Assignment.n_population, Assignment.cancelled_at)
    wanted = (Assignment.n_readers, Assignment.chosen_by)
    columns: list[Any] = [col(Task.id).label("task_id"), *map(col, (*of_task, *drawn, *wanted))]
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
    rows: dict[int, dict[str, Any]] = {int(row["id"]): dict(row, criteria=[]) for row in found}
    lines = select(criterion.example_id, criterion.text, criterion.points, criterion.tags)
    of_dataset = criterion.example_id.in_(select(example.id).where(example.dataset == dataset))
    lines = lines.where(of_dataset).order_by(criterion.example_id, criterion.position)
    for number, *line in session.connection().execute(lines):
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
