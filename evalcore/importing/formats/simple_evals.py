"""Results of the reference tool openai/simple-evals: one JSON document, `NAME_allresults.json`.

The file also holds `htmls` and `convos`, which repeat the rest with unescaped explanations: they are skipped unread.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.healthbench_examples import RubricItem, check_roles, criterion_of
from evalcore.importing.formats.records import CriterionRef, GivenVerdict, Graded, Options
from evalcore.importing.formats.wire import check_entries, decode
from evalcore.study.schema import Label, Message, RaterKind, Stage

NAME = "simple-evals"
TITLE = "simple-evals results (NAME_allresults.json), one JSON document"
COLUMNS = {
    "metadata.example_level_metadata[]": "one entry a response: prompt_id, prompt (as sent), completion, rubric_items",
    "rubric_items[]": "criterion, points, tags, criteria_met (true or false), explanation",
    "(file name)": "{data set}_{model}_{date}_{time}_allresults.json; the judge is nowhere: say --judge",
}
OWN_KEYS = {"score", "metrics", "htmls", "convos"}


class GradedItem(RubricItem, kw_only=True, gc=False):
    """A criterion with the judge's verdict."""

    criteria_met: bool
    explanation: str | None = None


class Entry(msgspec.Struct):
    """One response with its verdicts."""

    prompt_id: Annotated[str, msgspec.Meta(min_length=1)]
    prompt: Annotated[list[Message], msgspec.Meta(min_length=1)]
    completion: Annotated[list[Message], msgspec.Meta(min_length=1)]
    rubric_items: Annotated[list[GradedItem], msgspec.Meta(min_length=1)]
    completion_id: str | None = None


class _Metadata(msgspec.Struct):
    example_level_metadata: list[msgspec.Raw]


class Document(msgspec.Struct):
    """The whole file; entries stay raw bytes until their turn, so memory does not hold them all at once."""

    metadata: _Metadata


def recognises(keys: set[str]) -> bool:
    """Whether a document with these top keys is a result file."""
    return "metadata" in keys and bool(keys & OWN_KEYS)


def entries(document: bytes | bytearray) -> list[msgspec.Raw]:
    """The raw entries of a result file.

    Raises:
        RowFault: The document has another shape.
    """
    return decode_document(document).metadata.example_level_metadata


def decode_document(document: bytes | bytearray) -> Document:
    """The document with its entries undecoded."""
    check_entries(document, "metadata", "example_level_metadata")
    try:
        return msgspec.json.decode(document, type=Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode(bytes(document), Document)  # says what is wrong


def read(raw: bytes | msgspec.Raw, number: int, options: Options) -> Iterator[Graded]:
    """One response an entry, with one verdict a criterion.

    Raises:
        RowFault: The entry is of another shape.
    """
    entry = decode(raw, Entry)
    check_roles(entry.prompt, field="prompt")
    if any(message.role != "assistant" for message in entry.completion):
        msg = f"completion[].role: expected 'assistant', got {entry.completion[0].role!r}"
        raise RowFault(msg)
    judge = options.judge or ""
    rubric, verdicts = [], []
    for index, item in enumerate(entry.rubric_items):
        rubric.append(criterion_of(item, "rubric_items", index))
        verdicts.append(
            GivenVerdict(
                criterion=_refer_to(index),
                rater=judge,
                rater_kind=RaterKind.JUDGE,
                stage=Stage.JUDGE,
                label=Label.MET if item.criteria_met else Label.NOT_MET,
                explanation=item.explanation,
            )
        )
    yield Graded(
        line=number,
        prompt_id=entry.prompt_id,
        messages=tuple(entry.prompt),
        rubric=tuple(rubric),
        scored_rubric=True,
        model=options.model,
        completion_id=entry.completion_id,
        text="\n\n".join(message.content for message in entry.completion),
        verdicts=tuple(verdicts),
    )


@cache
def _refer_to(index: int) -> CriterionRef:
    return CriterionRef(row=index)
