"""HealthBench examples, JSON Lines: oss_eval, hard, consensus (arXiv 2505.08775; the reference tool's input files)."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from evalcore.errors import RowFault
from evalcore.importing.formats.records import Options
from evalcore.importing.formats.wire import decode
from evalcore.study.schema import MAX_POINTS, MIN_POINTS, Criterion, Example, Message

_NOTHING = msgspec.Raw(b"")
ROLES = ("system", "developer", "user", "assistant")

NAME = "healthbench-examples"
TITLE = "HealthBench examples (oss_eval, hard, consensus), JSON Lines"
COLUMNS = {
    "prompt_id": "the example's name, unique in its data set",
    "prompt": "list of {role, content}; the last turn is the user's",
    "rubrics": "list of {criterion, points, tags}; points a whole number -10..10, not 0",
    "example_tags": "list; theme:NAME and physician_agreed_category:NAME are used",
    "ideal_completions_data": "kept as it is (optional)",
    "canary": "kept and written back out (optional)",
}


class RubricItem(msgspec.Struct, gc=False):
    """A criterion as HealthBench writes it."""

    criterion: Annotated[str, msgspec.Meta(min_length=1)]
    points: Annotated[int, msgspec.Meta(ge=MIN_POINTS, le=MAX_POINTS)]
    tags: list[str] = []


class ExampleRow(msgspec.Struct):
    """A line of an examples file. Unknown keys are tolerated."""

    prompt_id: Annotated[str, msgspec.Meta(min_length=1)]
    prompt: Annotated[list[Message], msgspec.Meta(min_length=1)]
    rubrics: Annotated[list[RubricItem], msgspec.Meta(min_length=1)]
    example_tags: list[str] = []
    ideal_completions_data: msgspec.Raw = _NOTHING
    canary: str | None = None


def recognises(keys: set[str]) -> bool:
    """Whether an object with these keys is a row of this format."""
    return {"prompt_id", "prompt", "rubrics"} <= keys


def read(line: bytes, number: int, options: Options) -> Iterator[Example]:  # noqa: ARG001 - the importers' common signature
    """One example a line.

    Raises:
        RowFault: The row is of another shape, or breaks a rule of the format.
    """
    row = decode(line, ExampleRow)
    check_messages(row.prompt, field="prompt")
    ideal = bytes(row.ideal_completions_data)
    yield Example(
        prompt_id=row.prompt_id,
        messages=tuple(row.prompt),
        rubric=tuple(criterion_of(item, "rubrics", index) for index, item in enumerate(row.rubrics)),
        tags=tuple(row.example_tags),
        subsets=frozenset({options.subset} if options.subset else ()),
        ideal_completions=None if ideal in (b"", b"null") else ideal.decode(),
        canary=row.canary,
    )


def criterion_of(item: RubricItem, field: str, index: int) -> Criterion:
    """A criterion; points 0 are a fault because they say neither desirable nor undesirable."""
    if item.points == 0:
        msg = f"{field}[{index}].points: expected {MIN_POINTS}..{MAX_POINTS} without 0, got 0"
        raise RowFault(msg)
    return Criterion(item.criterion, item.points, tuple(item.tags))


def check_messages(messages: list[Message], *, field: str) -> None:
    """Roles are known and the conversation ends with the user's turn.

    Raises:
        RowFault: It does not.
    """
    check_roles(messages, field=field)
    if messages[-1].role != "user":
        msg = f"{field}[{len(messages) - 1}].role: expected the user's turn last, got {messages[-1].role!r}"
        raise RowFault(msg)


def check_roles(messages: list[Message], *, field: str) -> None:
    """Roles are known and the user has a turn: all that can be asked of what was sent to a model.

    Raises:
        RowFault: An unknown role, or no turn of the user's.
    """
    for index, message in enumerate(messages):
        if message.role not in ROLES:
            msg = f"{field}[{index}].role: expected one of {', '.join(ROLES)}, got {message.role!r}"
            raise RowFault(msg)
    if all(message.role != "user" for message in messages):
        msg = f"{field}: expected at least one turn of the user's, got none"
        raise RowFault(msg)
