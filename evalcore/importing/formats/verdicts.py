"""Verdicts on criteria, one a row: a judge's as JSON Lines; anybody's as CSV or JSON Lines, also what `overread export --what verdicts` writes."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated

import msgspec

from evalcore.importing import context
from evalcore.importing.context import shown
from evalcore.importing.formats.values import decode, refuse, storable, truth
from evalcore.study import schema

Index = Annotated[int, msgspec.Meta(ge=0)]
Position = Annotated[int, msgspec.Meta(ge=1)]


class JudgeRow(msgspec.Struct):
    """A line: one judge's verdict on a response that the study holds already."""

    prompt_id: context.Name
    criteria_met: bool
    completion_id: str | None = None
    model: str | None = None
    sample_index: Index | None = None
    category: str | None = None
    criterion_position: Position | None = None
    criterion: str | None = None
    judge: str | None = None
    explanation: str | None = None
    confidence: context.Share | None = None


def read_judged(line: bytes, number: int, options: context.Options) -> Iterator[context.Graded]:
    """One verdict."""
    row = decode(line, JudgeRow)
    judge = row.judge or options.judge
    model = row.model or options.model
    if not judge:
        refuse("judge", "the judge's name here or as Judge", "nothing")
    if row.completion_id is None and model is None:
        refuse("completion_id", "it, or model, to find the response", "nothing")
    if row.criterion_position is None and row.category is None and row.criterion is None:
        refuse("category", "it, or criterion_position, or criterion", "nothing")
    cluster = row.category.removeprefix("cluster:") if row.category else None
    yield context.Graded(
        line=number,
        prompt_id=row.prompt_id,
        model=row.model or (None if row.completion_id else model),
        sample_index=row.sample_index,
        completion_id=row.completion_id,
        criteria=(context.CriterionRef(position=row.criterion_position, cluster=cluster, text=row.criterion),),
        verdicts=(context.judged(judge, row.explanation, is_met=row.criteria_met, confidence=row.confidence),),
    )


JUDGE_VERDICTS = context.FileFormat(
    name="judge-verdicts",
    title="A judge's verdicts, JSON Lines",
    columns={
        "prompt_id": "the example's name",
        "completion_id": "the response's name; or model, with sample_index where there are repeats",
        "category": "the criterion's cluster; or criterion_position (from 1), or criterion (its text)",
        "criteria_met": "true or false",
        "judge": "who judged; else fill in Judge",
        "explanation": "why (optional)",
        "confidence": "0..1 (optional)",
    },
    keys=frozenset({"prompt_id", "criteria_met"}),
    read=read_judged,
    row=JudgeRow,
    has_confidences=True,
    model_in_name=True,
)


class VerdictRow(context.GivenVerdict, kw_only=True, gc=False):
    """A line: one verdict. In CSV an empty cell is no value."""

    example_id: context.Name
    label: schema.Label
    model: str | None = None
    completion_id: str | None = None
    sample_index: Index | None = None
    criterion_position: Position | None = None
    criterion: str | None = None
    dataset: str | None = None
    evaluation: str | None = None


def read(line: bytes, number: int, options: context.Options) -> Iterator[context.Graded]:
    """One verdict of a JSON Lines file."""
    yield _graded(decode(line, VerdictRow), number, options)


def read_cells(cells: context.Cells, number: int, options: context.Options) -> Iterator[context.Graded]:
    """One verdict of a CSV file: text cells, read by their column's type."""
    values: dict[str, str | bool | None] = {}
    for column, cell in cells.items():
        storable(cell, column)
        if cell != "" and column in VerdictRow.__struct_fields__:
            is_truth = column in ("blinded", "right_for_wrong_reason")
            values[column] = truth(cells, column) if is_truth else cell
    try:
        row = msgspec.convert(values, VerdictRow, strict=False)
    except msgspec.ValidationError:
        row = decode(msgspec.json.encode(_numbers(values)), VerdictRow)  # says what is wrong
    yield _graded(row, number, options)


def _numbers(values: dict[str, str | bool | None]) -> dict[str, object]:
    out: dict[str, object] = dict(values)
    for column in ("sample_index", "criterion_position"):
        if re.fullmatch(r"-?[0-9]+", cell := str(values.get(column, ""))):
            out[column] = int(cell)
    for column in ("confidence", "inclusion_probability"):
        try:
            number = float(values.get(column) or "")
        except ValueError:
            continue
        if isfinite(number):
            out[column] = number
    return out


def _graded(row: VerdictRow, number: int, options: context.Options) -> context.Graded:
    if row.model is None and row.completion_id is None and options.model is None:
        refuse("model", "it, or completion_id, to find the response", "nothing")
    if row.criterion_position is None and row.criterion is None:
        refuse("criterion_position", "it, or criterion", "nothing")
    row.stage, row.explanation = stage_of(row.rater_kind, row.stage), row.explanation or None
    check_time(row.read_at)
    return context.Graded(
        line=number,
        prompt_id=row.example_id,
        dataset=row.dataset,
        evaluation=row.evaluation,
        model=row.model or (None if row.completion_id else options.model),
        sample_index=row.sample_index,
        completion_id=row.completion_id,
        criteria=(context.CriterionRef(position=row.criterion_position, text=row.criterion),),
        verdicts=(row,),
    )


def stage_of(kind: schema.RaterKind, stage: schema.Stage | None) -> schema.Stage:
    """The stage of a verdict; where none is said, a judge's, or a first read."""
    is_judge = kind is schema.RaterKind.JUDGE
    stage = stage or (schema.Stage.JUDGE if is_judge else schema.Stage.FIRST)
    if is_judge != (stage is schema.Stage.JUDGE):
        refuse("stage", "judge for judges only", f"{stage.value!r} with rater_kind {kind.value!r}")
    return stage


def check_time(text: str | None) -> None:
    """When something was read is a time that every zone knows."""
    if text is None:
        return
    try:
        at = datetime.fromisoformat(text)
        understood = at.tzinfo is not None and at.astimezone(UTC) is not None
    except (ValueError, OverflowError):  # the first and the last day of the calendar have no time in every zone
        understood = False
    if not understood:
        refuse("read_at", "a time with its zone such as 2026-11-20T10:00:00+00:00", shown(text))


OF_A_VERDICT = {  # the columns of a verdict on whatever item, behind its rater and label
    "rater_kind": "reviewer (default) or judge",
    "stage": "first, revised, open, adjudicated, judge (default: first, for judges judge)",
    "explanation": "the rater's own words (optional, as all below)",
    "confidence": "0..1",
    "cause": ", ".join(schema.Cause),
    "severity": ", ".join(schema.Severity),
    "error_kind": ", ".join(schema.ErrorKind),
    "reason": ", ".join(schema.CannotReason),
    "conflict_cause": ", ".join(schema.ConflictCause),
    "right_for_wrong_reason": "true or false",
    "selection": ", ".join(schema.Selection),
    "inclusion_probability": "above 0, at most 1",
    "blinded": "true or false: the rater did not see the judge's verdict",
    "read_at": "time with zone, 2026-11-20T10:00:00+00:00",
}
VERDICT_TABLE = context.FileFormat(
    name="verdict-table",
    title="Verdicts as CSV or JSON Lines",
    columns={
        "example_id": "the example's name (prompt_id)",
        "model": "who answered; with sample_index (0, 1, ...) where there are repeats; or completion_id",
        "criterion_position": "the criterion's place in the rubric, from 1; or criterion, its text",
        "rater": "name of the physician or judge",
        "label": "met, not_met, cannot_assess",
        **OF_A_VERDICT,
        "dataset": "data set of the example",
        "evaluation": "what the response was made for, e.g. healthbench_hard, where the model answered for several",
    },
    keys=frozenset({"example_id", "rater", "label"}),
    read=read,
    read_cells=read_cells,
    row=VerdictRow,
    is_guarded=True,
    has_confidences=True,
)
