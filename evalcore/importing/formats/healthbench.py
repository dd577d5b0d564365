"""HealthBench's own files (arXiv 2505.08775; Professional: 2604.27470), and results of its reference tool openai/simple-evals."""

from collections.abc import Iterator, Sequence
from typing import Annotated, TypeVar

import msgspec

from evalcore.importing import context
from evalcore.importing.formats.values import check_entries, check_messages, decode, refuse
from evalcore.study.schema import (
    MAX_POINTS,
    MIN_POINTS,
    MOST_POINTS,
    PROFESSIONAL,
    Criterion,
    Example,
    Label,
    Message,
    Stage,
)

T = TypeVar("T")
Some = Annotated[list[T], msgspec.Meta(min_length=1)]
AnyPoints = Annotated[int, msgspec.Meta(ge=-MOST_POINTS, le=MOST_POINTS)]  # of the part whose points are not -10..10
UNRECORDED_MODEL = "model not recorded"
PHYSICIAN = "Physician's response"
"""Who answered: in the place of a model's name, so that it is read blind among the models' responses and scored beside them."""


class RubricItem(msgspec.Struct, gc=False):
    """A criterion as HealthBench writes it."""

    criterion: context.Name
    points: Annotated[int, msgspec.Meta(ge=MIN_POINTS, le=MAX_POINTS)]
    tags: list[str] = []


def _rubric(items: Sequence[RubricItem], field: str) -> tuple[Criterion, ...]:
    """The criteria; points 0 are a fault because they say neither desirable nor undesirable."""
    for index, item in enumerate(items):
        if item.points == 0:
            refuse(f"{field}[{index}].points", f"{MIN_POINTS}..{MAX_POINTS} without 0", 0)
    return tuple(Criterion(item.criterion, item.points, tuple(item.tags)) for item in items)


class ExampleRow(msgspec.Struct):
    """A line of an examples file. Unknown keys are tolerated."""

    prompt_id: context.Name
    prompt: Some[Message]
    rubrics: Some[RubricItem]
    example_tags: list[str] = []
    ideal_completions_data: msgspec.Raw = msgspec.Raw(b"")
    canary: str | None = None


def read(line: bytes, number: int, options: context.Options) -> Iterator[context.GivenExample]:
    """One example a line."""
    row = decode(line, ExampleRow)
    check_messages(row.prompt, field="prompt", is_asked=True)
    ideal = bytes(row.ideal_completions_data)
    example = Example(
        prompt_id=row.prompt_id,
        messages=tuple(row.prompt),
        rubric=_rubric(row.rubrics, "rubrics"),
        tags=tuple(row.example_tags),
        subsets=frozenset({options.subset} if options.subset else ()),
        ideal_completions=None if ideal in (b"", b"null") else ideal.decode(),
        canary=row.canary,
    )
    yield context.GivenExample(number, example)


EXAMPLES = context.FileFormat(
    name="healthbench-examples",
    title="HealthBench examples (oss_eval, hard, consensus), JSON Lines",
    columns={
        "prompt_id": "the example's name, unique in its data set",
        "prompt": "list of {role, content}; the last turn is the user's",
        "rubrics": "list of {criterion, points, tags}; points a whole number -10..10, not 0",
        "example_tags": "list; theme:NAME and physician_agreed_category:NAME are used",
        "ideal_completions_data": "kept as it is (optional)",
        "canary": "kept and written back out (optional)",
    },
    keys=frozenset({"prompt_id", "prompt", "rubrics"}),
    read=read,
    row=ExampleRow,
)


class GradedItem(RubricItem, kw_only=True, gc=False):
    """A criterion with the judge's verdict."""

    criteria_met: bool
    explanation: str | None = None


class Entry(msgspec.Struct):
    """One response with its verdicts."""

    prompt_id: context.Name
    prompt: Some[Message]
    completion: Some[Message]
    rubric_items: Some[GradedItem]
    completion_id: str | None = None


class _WideItem(GradedItem, kw_only=True, gc=False):
    points: AnyPoints


class _WideEntry(Entry):
    rubric_items: Some[_WideItem]  # type: ignore[assignment] # a list of its own kind


class _Metadata(msgspec.Struct):
    example_level_metadata: list[msgspec.Raw]


class _Document(msgspec.Struct):
    metadata: _Metadata


def entries(document: bytes | bytearray) -> list[msgspec.Raw]:
    """The entries of a results file, raw until their turn; its `htmls` and `convos` repeat the rest and are skipped unread."""
    check_entries(document, "metadata", "example_level_metadata")
    try:
        whole = msgspec.json.decode(document, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        whole = decode(bytes(document), _Document)  # says what is wrong
    return whole.metadata.example_level_metadata


def read_entry(raw: bytes | msgspec.Raw, number: int, options: context.Options) -> Iterator[context.Graded]:
    """One response an entry, with one verdict a criterion."""
    entry = decode(raw, _WideEntry if options.subset == PROFESSIONAL else Entry)
    check_messages(entry.prompt, field="prompt")
    if any(message.role != "assistant" for message in entry.completion):
        refuse("completion[].role", "'assistant'", repr(entry.completion[0].role))
    judge = options.judge or ""
    yield context.Graded(
        line=number,
        prompt_id=entry.prompt_id,
        messages=tuple(entry.prompt),
        rubric=_rubric(entry.rubric_items, "rubric_items"),
        scored_rubric=True,
        model=options.model,
        completion_id=entry.completion_id,
        text="\n\n".join(message.content for message in entry.completion),
        criteria=context.row_refs(len(entry.rubric_items)),
        verdicts=tuple(
            context.judged(judge, item.explanation, is_met=item.criteria_met) for item in entry.rubric_items
        ),
    )


RESULTS = context.FileFormat(
    name="simple-evals",
    title="simple-evals results (NAME_allresults.json), one JSON document",
    columns={
        "metadata.example_level_metadata[]": "one entry a response: prompt_id, prompt (as sent), completion, rubric_items",
        "rubric_items[]": "criterion, points, tags, criteria_met (true or false), explanation",
        "(file name)": "{data set}_{model}_{date}_{time}_allresults.json; the judge is nowhere: fill in Judge",
    },
    keys=frozenset({"metadata"}),
    one_of=(frozenset({"score", "metrics", "htmls", "convos"}),),
    read=read_entry,
    row=Entry,
    document=_Document,
    kind=context.Kind.DOCUMENT,
    model_in_name=True,
)


class MetaRow(msgspec.Struct):
    """A line: one criterion of one response, read by two to four physicians; without the model and the criterion's points."""

    prompt_id: context.Name
    completion_id: context.Name
    prompt: Some[Message]
    completion: str
    rubric: context.Name
    category: str
    binary_labels: Some[bool]
    anonymized_physician_ids: list[str]
    canary: str | None = None


def read_meta(line: bytes, number: int, options: context.Options) -> Iterator[context.Graded]:
    """One response with one verdict a physician; they read without a judge's verdict."""
    row = decode(line, MetaRow)
    check_messages(row.prompt, field="prompt", is_asked=True)
    n_labels, n_names = len(row.binary_labels), len(row.anonymized_physician_ids)
    if n_labels != n_names or len(set(row.anonymized_physician_ids)) != n_names:
        refuse("anonymized_physician_ids", f"{n_labels} different names, one a label", n_names)
    cluster = row.category.removeprefix("cluster:")
    tags = ("level:cluster", f"cluster:{cluster}") if row.category.startswith("cluster:") else ()
    yield context.Graded(
        line=number,
        prompt_id=row.prompt_id,
        messages=tuple(row.prompt),
        rubric=(Criterion(row.rubric, None, tags),),
        model=options.model or UNRECORDED_MODEL,
        completion_id=row.completion_id,
        text=row.completion,
        canary=row.canary,
        criteria=(context.CriterionRef(row=0, cluster=cluster if tags else None, text=row.rubric),) * n_labels,
        verdicts=tuple(
            context.GivenVerdict(rater=name, stage=Stage.FIRST, label=Label.MET if met else Label.NOT_MET, blinded=True)
            for met, name in zip(row.binary_labels, row.anonymized_physician_ids, strict=True)
        ),
    )


META_EVAL = context.FileFormat(
    name="healthbench-meta-eval",
    title="HealthBench meta_eval (physicians' labels), JSON Lines",
    columns={
        "prompt_id, completion_id": "names of the example and of the response",
        "prompt, completion": "the conversation and the response",
        "rubric": "text of the criterion",
        "category": "its cluster, cluster:NAME",
        "binary_labels": "list of true and false, one a physician",
        "anonymized_physician_ids": "list of names, as long",
        "canary": "kept and written back out (optional)",
    },
    keys=frozenset({"completion_id", "binary_labels", "anonymized_physician_ids"}),
    read=read_meta,
    row=MetaRow,
)


# ---------------------------------------------------------------- HealthBench Professional (arXiv 2604.27470)


class _Conversation(msgspec.Struct):
    messages: Some[Message]


class _Item(msgspec.Struct, gc=False):
    criterion_text: context.Name
    points: AnyPoints


class Task(msgspec.Struct):
    """A task that clinicians bring. Unknown keys are tolerated."""

    id: context.Name
    conversation: _Conversation
    rubric_items: Some[_Item]
    use_case: context.Name | None = None
    type: context.Name | None = None
    difficulty: context.Name | None = None
    specialty: context.Name | None = None
    physician_response: str | None = None
    canary_string: str | None = None


def read_task(line: bytes, number: int, options: context.Options) -> Iterator[context.GivenExample | context.Graded]:
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


TASKS = context.FileFormat(
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
    read=read_task,
    part=PROFESSIONAL,
)
