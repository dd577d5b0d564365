"""HealthBench Professional (arXiv 2604.27470): tasks that clinicians bring, each with a physician's response."""

from collections.abc import Iterator

import msgspec

from evalcore.importing import context
from evalcore.importing.formats.healthbench import AnyPoints, Some
from evalcore.importing.formats.values import check_messages, decode, refuse
from evalcore.study.schema import PROFESSIONAL, Criterion, Example, Message

PHYSICIAN = "Physician's response"
"""Who answered: in the place of a model's name, so that it is read blind among the models' responses and scored beside them."""


class _Conversation(msgspec.Struct):
    messages: Some[Message]


class _Item(msgspec.Struct, gc=False):
    criterion_text: context.Name
    points: AnyPoints


class Task(msgspec.Struct):
    """A line of the file. Unknown keys are tolerated."""

    id: context.Name
    conversation: _Conversation
    rubric_items: Some[_Item]
    use_case: context.Name | None = None
    type: context.Name | None = None
    difficulty: context.Name | None = None
    specialty: context.Name | None = None
    physician_response: str | None = None
    canary_string: str | None = None


def read(line: bytes, number: int, options: context.Options) -> Iterator[context.GivenExample | context.Graded]:
    """One example a line, and the physician's response to it, where there is one, as a response without verdicts."""
    task = decode(line, Task)
    check_messages(task.conversation.messages, field="conversation.messages", is_asked=True)
    for index, item in enumerate(task.rubric_items):
        if item.points == 0:
            refuse(f"rubric_items[{index}].points", "a whole number other than 0", 0)
    tags = {"use_case": task.use_case, "type": task.type, "difficulty": task.difficulty, "specialty": task.specialty}
    example = Example(
        prompt_id=task.id,
        messages=tuple(task.conversation.messages),
        rubric=tuple(Criterion(item.criterion_text, item.points) for item in task.rubric_items),
        tags=tuple(f"{kind}:{name}" for kind, name in tags.items() if name is not None),
        subsets=frozenset({options.subset} if options.subset else ()),
        canary=task.canary_string,
    )
    yield context.GivenExample(number, example)
    if task.physician_response and task.physician_response.strip():
        yield context.Graded(
            line=number,
            prompt_id=task.id,
            model=PHYSICIAN,
            text=task.physician_response,
            sample_index=0,
            evaluation=options.evaluation,
            criteria=(),
            verdicts=(),
        )


FORMAT = context.FileFormat(
    name="healthbench-professional",
    title="HealthBench Professional (healthbench_professional_eval), JSON Lines",
    columns={
        "id": "the example's name, unique in its data set",
        "conversation": "object with messages, a list of {role, content}; the last turn is the user's",
        "rubric_items": "list of {criterion_text, points}; points a whole number, not 0, here also beyond -10..10",
        "use_case, type, difficulty, specialty": "what conversations can be chosen by, and scores grouped by (optional)",
        "physician_response": f"read and scored among the models' responses, under the name {PHYSICIAN} (optional)",
        "canary_string": "kept and written back out with exports, and shown to nobody (optional)",
    },
    keys=frozenset({"id", "conversation", "rubric_items"}),
    row=Task,
    read=read,
    part=PROFESSIONAL,
)
