"""A judge's verdicts, JSON Lines: one verdict a line on a response that the study holds already."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.records import CriterionRef, GivenVerdict, Graded, Options
from evalcore.importing.formats.wire import decode
from evalcore.study.schema import Label, RaterKind, Stage

NAME = "judge-verdicts"
TITLE = "A judge's verdicts, JSON Lines"
COLUMNS = {
    "prompt_id": "the example's name",
    "completion_id": "the response's name; or model, with sample_index where there are repeats",
    "category": "the criterion's cluster; or criterion_position (from 1), or criterion (its text)",
    "criteria_met": "true or false",
    "judge": "who judged; else say --judge",
    "explanation": "why (optional)",
    "confidence": "0..1 (optional)",
}


class JudgeRow(msgspec.Struct):
    """A line: one verdict."""

    prompt_id: Annotated[str, msgspec.Meta(min_length=1)]
    criteria_met: bool
    completion_id: str | None = None
    model: str | None = None
    sample_index: Annotated[int, msgspec.Meta(ge=0)] | None = None
    category: str | None = None
    criterion_position: Annotated[int, msgspec.Meta(ge=1)] | None = None
    criterion: str | None = None
    judge: str | None = None
    explanation: str | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


def recognises(keys: set[str]) -> bool:
    """Whether an object with these keys is a row of this format."""
    return {"prompt_id", "criteria_met"} <= keys


def read(line: bytes, number: int, options: Options) -> Iterator[Graded]:
    """One verdict.

    Raises:
        RowFault: The row is of another shape, or does not say which response, criterion or judge is meant.
    """
    row = decode(line, JudgeRow)
    judge = row.judge or options.judge
    model = row.model or options.model
    if not judge:
        msg = "judge: expected the judge's name here or as --judge, got nothing"
        raise RowFault(msg)
    if row.completion_id is None and model is None:
        msg = "completion_id: expected it, or model, to find the response, got nothing"
        raise RowFault(msg)
    if row.criterion_position is None and row.category is None and row.criterion is None:
        msg = "category: expected it, or criterion_position, or criterion, got nothing"
        raise RowFault(msg)
    yield Graded(
        line=number,
        prompt_id=row.prompt_id,
        model=row.model or (None if row.completion_id else model),
        sample_index=row.sample_index,
        completion_id=row.completion_id,
        verdicts=(
            GivenVerdict(
                criterion=CriterionRef(
                    position=row.criterion_position,
                    cluster=row.category.removeprefix("cluster:") if row.category else None,
                    text=row.criterion,
                ),
                rater=judge,
                rater_kind=RaterKind.JUDGE,
                stage=Stage.JUDGE,
                label=Label.MET if row.criteria_met else Label.NOT_MET,
                explanation=row.explanation,
                confidence=row.confidence,
            ),
        ),
    )
