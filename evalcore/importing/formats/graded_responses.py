"""Graded responses, one a line of JSON with its rubric and a judge's grades; HealthBench's own words for the fields are understood as well."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from evalcore.importing import context
from evalcore.importing.formats import own
from evalcore.importing.formats.healthbench import Some
from evalcore.importing.formats.values import LAST_SAMPLE, cell, check_messages, decode, printable, refuse
from evalcore.importing.formats.verdicts import Index
from evalcore.study.schema import Criterion, Message

T = TypeVar("T")
Words = str | list[Message] | None
Told = bool | int | float | str | None


class GradedCriterion(msgspec.Struct, gc=False):
    """A criterion with its grade."""

    text: str | None = None
    criterion: str | None = None
    points: Told = None
    tags: list[str] = []
    met: Told = None
    criteria_met: Told = None
    explanation: str | None = None


class Line(msgspec.Struct):
    """A line: one response with all that it was graded on."""

    conversation: Words = None
    prompt: Words = None
    response: Words = None
    completion: Words = None
    criteria: Some[GradedCriterion] | None = None
    rubrics: Some[GradedCriterion] | None = None
    rubric_items: Some[GradedCriterion] | None = None
    example_id: str | None = None
    prompt_id: str | None = None
    model: str | None = None
    judge: str | None = None
    sample_index: Index | None = None
    evaluation: str | None = None
    completion_id: str | None = None
    sent: list[Message] | None = None
    example_tags: list[str] = []
    canary: str | None = None


def read(line: bytes, number: int, options: context.Options) -> Iterator[context.Graded]:
    """One response."""
    row = decode(line, Line)
    messages = _conversation(row)
    _, name = _given("", example_id=row.example_id, prompt_id=row.prompt_id)
    own.check_example(name or "", messages, "conversation")
    if row.sent:
        check_messages(row.sent, field="sent")
    if row.sample_index is not None and row.sample_index > LAST_SAMPLE:
        refuse("sample_index", f"a whole number from 0 to {LAST_SAMPLE}", row.sample_index)
    if not (model := printable(row.model or options.model or "", "model").strip()):
        refuse("model", "who answered, here or as Model", "nothing")
    judge = printable(row.judge or options.judge or "", "judge").strip()
    field, items = _given("", criteria=row.criteria, rubrics=row.rubrics, rubric_items=row.rubric_items)
    graded = [_criterion(item, f"{field}[{index}]") for index, item in enumerate(items or ())]
    if not graded:
        refuse(field, "at least one criterion", "nothing")
    verdicts = {}
    for index, (_, met, explanation) in enumerate(graded):
        if met is not None and not judge:
            refuse("judge", "the judge's name here or as Judge", "nothing")
        if met is not None:
            verdicts[index] = context.judged(judge, explanation, is_met=met)
    refs = context.row_refs(len(graded))
    yield context.Graded(
        line=number,
        prompt_id=name or "",
        messages=messages,
        sent=tuple(row.sent) if row.sent else None,
        rubric=tuple(criterion for criterion, _, _ in graded),
        scored_rubric=True,
        model=model,
        sample_index=row.sample_index,
        evaluation=printable(row.evaluation or options.evaluation, "evaluation"),
        completion_id=row.completion_id,
        text=_response(row),
        canary=row.canary,
        tags=tuple(row.example_tags),
        criteria=tuple(refs[index] for index in verdicts),
        verdicts=tuple(verdicts.values()),
        n_ungraded=len(graded) - len(verdicts),
    )


def _conversation(row: Line) -> tuple[Message, ...] | None:
    given: tuple[str, Words] = _given("", conversation=row.conversation, prompt=row.prompt)
    field, asked = given
    if not isinstance(asked, list):
        return own.conversation(asked, field)
    check_messages(asked, field=field, is_asked=True)
    return tuple(asked)


def _response(row: Line) -> str:
    given: tuple[str, Words] = _given("", response=row.response, completion=row.completion)
    field, text = given
    if isinstance(text, list):
        for index, message in enumerate(text):
            if message.role != "assistant":
                refuse(f"{field}[{index}].role", "'assistant'", context.shown(message.role))
        text = "\n\n".join(message.content for message in text)
    return text if text and text.strip() else refuse(field, "the response", "nothing")


def _criterion(item: GradedCriterion, place: str) -> tuple[Criterion, bool | None, str | None]:
    """The criterion, whether it is met (None: no grade), and why."""
    field, text = _given(f"{place}.", text=item.text, criterion=item.criterion)
    if not (text and text.strip()):
        refuse(f"{place}.{field}", "the criterion's text", "nothing")
    points = own.points(cell("points", item.points, ()), f"{place}.points")
    field, met = _given(f"{place}.", met=item.met, criteria_met=item.criteria_met)
    return (
        Criterion(text, points, tuple(item.tags)),
        own.grade(cell(field, met, ()), f"{place}.{field}"),
        item.explanation,
    )


def _given(place: str, **named: T | None) -> tuple[str, T | None]:
    """The one of several names for a field that the line uses, and its value; a fault where it uses more than one."""
    used = [name for name, value in named.items() if value is not None]
    if len(used) > 1:
        refuse(place + used[1], f"one of {' and '.join(used)}", "both")
    field = used[0] if used else next(iter(named))
    return field, named[field]


FORMAT = context.FileFormat(
    name="graded-responses",
    title="Graded responses with their rubric, one a line, JSON Lines",
    columns={
        "conversation": f"{own.CONVERSATION}; or prompt; or example_id alone, of an example of the study",
        "response": "the response, or a list of the assistant's turns; or completion",
        "criteria": "list of {text, points, met, explanation, tags}: all that it was graded on; or rubrics, or rubric_items",
        "criteria[].text": "the criterion's text; or criterion",
        "criteria[].points": f"{own.POINTS}; without: the criterion can be read, and is never scored",
        "criteria[].met": f"{own.GRADES}; or criteria_met",
        "criteria[].explanation, tags": "the judge's own words; axis:NAME and the like (optional)",
        "judge": "who graded; else fill in Judge",
        **own.OF_A_RESPONSE,
        "sent": "what was sent to the model, where that is not the conversation alone: a list of {role, content}",
        "example_tags, canary": "as in HealthBench's examples",
    },
    keys=frozenset(),
    one_of=(
        frozenset({"response", "completion"}),
        frozenset({"criteria", "rubrics", "rubric_items"}),
        frozenset({"conversation", "prompt", "example_id", "prompt_id"}),
    ),
    read=read,
    row=Line,
    is_own=True,
    writer=own.OwnRows,
)
