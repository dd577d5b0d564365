"""Verdicts as a table, CSV or JSON Lines, with documented columns; also what `overread export --what verdicts` writes."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Annotated

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.records import CriterionRef, GivenVerdict, Graded, Options
from evalcore.importing.formats.wire import decode, shown
from evalcore.study.csv_cells import unguarded
from evalcore.study.schema import (
    CannotReason,
    Cause,
    ConflictCause,
    ErrorKind,
    Label,
    RaterKind,
    Selection,
    Severity,
    Stage,
)

NAME = "verdict-table"
TITLE = "Verdicts as CSV or JSON Lines"
COLUMNS = {
    "example_id": "the example's name (prompt_id)",
    "model": "who answered; with sample_index (0, 1, ...) where there are repeats; or completion_id",
    "criterion_position": "the criterion's place in the rubric, from 1; or criterion, its text",
    "rater": "name of the physician or judge",
    "label": "met, not_met, cannot_assess",
    "rater_kind": "reviewer (default) or judge",
    "stage": "first, revised, open, adjudicated, judge (default: first, for judges judge)",
    "explanation": "the rater's own words (optional, as all below)",
    "confidence": "0..1",
    "cause": ", ".join(Cause),
    "severity": ", ".join(Severity),
    "error_kind": ", ".join(ErrorKind),
    "reason": ", ".join(CannotReason),
    "conflict_cause": ", ".join(ConflictCause),
    "right_for_wrong_reason": "true or false",
    "selection": ", ".join(Selection),
    "inclusion_probability": "above 0, at most 1",
    "blinded": "true or false: the rater did not see the judge's verdict",
    "read_at": "time with zone, 2026-11-20T10:00:00+00:00",
    "dataset": "data set of the example",
    "evaluation": "what the response was made for, e.g. healthbench_hard, where the model answered for several",
}
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


class VerdictRow(msgspec.Struct):
    """A line: one verdict. In CSV an empty cell is no value."""

    example_id: Annotated[str, msgspec.Meta(min_length=1)]
    rater: Annotated[str, msgspec.Meta(min_length=1)]
    label: Label
    model: str | None = None
    completion_id: str | None = None
    sample_index: Annotated[int, msgspec.Meta(ge=0)] | None = None
    criterion_position: Annotated[int, msgspec.Meta(ge=1)] | None = None
    criterion: str | None = None
    rater_kind: RaterKind = RaterKind.REVIEWER
    stage: Stage | None = None
    explanation: str | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    cause: Cause | None = None
    severity: Severity | None = None
    error_kind: ErrorKind | None = None
    reason: CannotReason | None = None
    conflict_cause: ConflictCause | None = None
    right_for_wrong_reason: bool = False
    selection: Selection | None = None
    inclusion_probability: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    blinded: bool | None = None
    read_at: str | None = None
    dataset: str | None = None
    evaluation: str | None = None


def recognises(keys: set[str]) -> bool:
    """Whether an object or a table with these keys is of this format."""
    return {"example_id", "rater", "label"} <= keys


def read(line: bytes, number: int, options: Options) -> Iterator[Graded]:
    """One verdict of a JSON Lines file.

    Raises:
        RowFault: The row is of another shape, or breaks a rule of the format.
    """
    yield _graded(decode(line, VerdictRow), number, options)


def read_cells(cells: dict[str, str], number: int, options: Options) -> Iterator[Graded]:
    """One verdict of a CSV file: text cells, read by their column's type.

    Raises:
        RowFault: As `read`.
    """
    values: dict[str, str | bool] = {}
    for column, cell in cells.items():
        if "\x00" in cell:
            msg = f"{column}: expected text, got the character NUL"
            raise RowFault(msg)
        if cell != "" and column in VerdictRow.__struct_fields__:
            values[column] = (
                _truth(column, cell) if column in ("blinded", "right_for_wrong_reason") else unguarded(cell)
            )
    try:
        row = msgspec.convert(values, VerdictRow, strict=False)
    except msgspec.ValidationError:
        row = decode(msgspec.json.encode(_numbers(values)), VerdictRow)  # says what is wrong
    yield _graded(row, number, options)


def _truth(column: str, cell: str) -> bool:
    word = cell.strip().lower()
    if word not in _TRUE + _FALSE:
        msg = f"{column}: expected true or false, got {shown(cell)}"
        raise RowFault(msg)
    return word in _TRUE


def _numbers(values: dict[str, str | bool]) -> dict[str, object]:
    """The cells with numbers as numbers, where they are numbers."""
    out: dict[str, object] = dict(values)
    for column in ("sample_index", "criterion_position"):
        if re.fullmatch(r"-?[0-9]+", cell := str(values.get(column, ""))):
            out[column] = int(cell)
    for column in ("confidence", "inclusion_probability"):
        if column in values:
            try:
                number = float(values[column])
            except ValueError:
                continue
            if isfinite(number):
                out[column] = number
    return out


def _graded(row: VerdictRow, number: int, options: Options) -> Graded:
    if row.model is None and row.completion_id is None and options.model is None:
        msg = "model: expected it, or completion_id, to find the response, got nothing"
        raise RowFault(msg)
    if row.criterion_position is None and row.criterion is None:
        msg = "criterion_position: expected it, or criterion, got nothing"
        raise RowFault(msg)
    judged = row.rater_kind is RaterKind.JUDGE
    stage = row.stage or (Stage.JUDGE if judged else Stage.FIRST)
    if judged != (stage is Stage.JUDGE):
        msg = f"stage: expected judge for judges only, got {stage.value!r} with rater_kind {row.rater_kind.value!r}"
        raise RowFault(msg)
    check_time(row.read_at)
    return Graded(
        line=number,
        prompt_id=row.example_id,
        dataset=row.dataset,
        evaluation=row.evaluation,
        model=row.model or (None if row.completion_id else options.model),
        sample_index=row.sample_index,
        completion_id=row.completion_id,
        verdicts=(
            GivenVerdict(
                criterion=CriterionRef(position=row.criterion_position, text=row.criterion),
                rater=row.rater,
                rater_kind=row.rater_kind,
                stage=stage,
                label=row.label,
                explanation=row.explanation,
                confidence=row.confidence,
                cause=row.cause,
                severity=row.severity,
                error_kind=row.error_kind,
                reason=row.reason,
                conflict_cause=row.conflict_cause,
                right_for_wrong_reason=row.right_for_wrong_reason,
                selection=row.selection,
                inclusion_probability=row.inclusion_probability,
                blinded=row.blinded,
                read_at=row.read_at,
            ),
        ),
    )


def check_time(text: str | None) -> None:
    """When something was read is a time that every zone knows.

    Raises:
        RowFault: It is not.
    """
    if text is None:
        return
    try:
        at = datetime.fromisoformat(text)
        understood = at.tzinfo is not None and at.astimezone(UTC) is not None
    except (ValueError, OverflowError):  # the first and the last day of the calendar have no time in every zone
        understood = False
    if not understood:
        msg = f"read_at: expected a time with its zone such as 2026-11-20T10:00:00+00:00, got {shown(text)}"
        raise RowFault(msg)
