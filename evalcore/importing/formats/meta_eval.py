"""HealthBench's meta-evaluation, JSON Lines: physicians' labels on consensus criteria (file oss_meta_eval).

The rows record neither the model that wrote the completion nor the criterion's points.
"""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.healthbench_examples import check_messages
from evalcore.importing.formats.records import CriterionRef, GivenVerdict, Graded, Options
from evalcore.importing.formats.wire import decode
from evalcore.study.schema import Criterion, Label, Message, RaterKind, Stage

NAME = "healthbench-meta-eval"
TITLE = "HealthBench meta_eval (physicians' labels), JSON Lines"
COLUMNS = {
    "prompt_id, completion_id": "names of the example and of the response",
    "prompt, completion": "the conversation and the response",
    "rubric": "text of the criterion",
    "category": "its cluster, cluster:NAME",
    "binary_labels": "list of true and false, one a physician",
    "anonymized_physician_ids": "list of names, as long",
    "canary": "kept and written back out (optional)",
}
UNRECORDED_MODEL = "model not recorded"


class MetaRow(msgspec.Struct):
    """A line: one criterion of one response, read by two to four physicians."""

    prompt_id: Annotated[str, msgspec.Meta(min_length=1)]
    completion_id: Annotated[str, msgspec.Meta(min_length=1)]
    prompt: Annotated[list[Message], msgspec.Meta(min_length=1)]
    completion: str
    rubric: Annotated[str, msgspec.Meta(min_length=1)]
    category: str
    binary_labels: Annotated[list[bool], msgspec.Meta(min_length=1)]
    anonymized_physician_ids: list[str]
    canary: str | None = None


def recognises(keys: set[str]) -> bool:
    """Whether an object with these keys is a row of this format."""
    return {"completion_id", "binary_labels", "anonymized_physician_ids"} <= keys


def read(line: bytes, number: int, options: Options) -> Iterator[Graded]:
    """One response with one verdict a physician; they read without a judge's verdict.

    Raises:
        RowFault: The row is of another shape, or names another number of physicians than labels.
    """
    row = decode(line, MetaRow)
    check_messages(row.prompt, field="prompt")
    n_labels, n_names = len(row.binary_labels), len(row.anonymized_physician_ids)
    if n_labels != n_names or len(set(row.anonymized_physician_ids)) != n_names:
        msg = f"anonymized_physician_ids: expected {n_labels} different names, one a label, got {n_names}"
        raise RowFault(msg)
    cluster = row.category.removeprefix("cluster:")
    tags = ("level:cluster", f"cluster:{cluster}") if row.category.startswith("cluster:") else ()
    yield Graded(
        line=number,
        prompt_id=row.prompt_id,
        messages=tuple(row.prompt),
        rubric=(Criterion(row.rubric, None, tags),),
        model=options.model or UNRECORDED_MODEL,
        completion_id=row.completion_id,
        text=row.completion,
        canary=row.canary,
        verdicts=tuple(
            GivenVerdict(
                criterion=CriterionRef(row=0, cluster=cluster if tags else None, text=row.rubric),
                rater=name,
                rater_kind=RaterKind.REVIEWER,
                stage=Stage.FIRST,
                label=Label.MET if met else Label.NOT_MET,
                blinded=True,
            )
            for met, name in zip(row.binary_labels, row.anonymized_physician_ids, strict=True)
        ),
    )
